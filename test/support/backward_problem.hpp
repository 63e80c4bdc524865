#pragma once
/// \file
/// A backward problem with its memory, around the forward problem whose O and LSE it reads.

#include <optional>

#include "flashxdl/core/problem.hpp"
#include "support/forward_problem.hpp"

namespace flashxdl::test {

struct BackwardProblem {
  ForwardProblem forward{};
  TestTensor d_o{};
  /// Empty ones are not wanted. dBias has one slice along a dimension where its stride is 0.
  TestTensor dq{}, dk{}, dv{}, dbias{};
  std::optional<DataType> gradient_dtype{};
  bool deterministic = false;

  MhaBackwardArgs device_args() const { return args(true); }
  /// Pointers to the images of the inputs; for the reference.
  MhaBackwardArgs host_args() const { return args(false); }

  void upload() { for_each_buffer(tensors(), &Buffer::upload); }
  void download() { for_each_buffer(tensors(), &Buffer::download); }

  /// After the forward's download(): O and LSE become inputs.
  void adopt_forward() {
    for (const TestTensor* tensor : {&forward.o, &forward.lse}) {
      if (*tensor) tensor->buffer->adopt_result();
    }
  }

  TensorList tensors() const {
    TensorList list = forward.tensors();
    for (auto& named : list) named.is_output = named.tensor == &forward.keep;
    const TensorList own{{"dO", &d_o, false},
                         {"dQ", &dq, true},
                         {"dK", &dk, true},
                         {"dV", &dv, true},
                         {"dBias", &dbias, true}};
    list.insert(list.end(), own.begin(), own.end());
    return list;
  }

private:
  MhaBackwardArgs args(bool device) const {
    MhaBackwardArgs a{};
    a.forward = device ? forward.device_args() : forward.host_args();
    a.d_o = d_o.on<const void*>(device);
    a.dq = dq.on<void*>(device);
    a.dk = dk.on<void*>(device);
    a.dv = dv.on<void*>(device);
    a.gradient_dtype = gradient_dtype;
    a.dbias = {dbias.on<void*>(device), dbias.dtype.value_or(DataType::fp32)};
    a.deterministic = deterministic;
    return a;
  }
};

}  // namespace flashxdl::test
