#pragma once
/// \file
/// A forward problem with its memory: made from shapes and layouts, filled, run, checked.

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "flashxdl/core/problem.hpp"
#include "support/test_tensor.hpp"

namespace flashxdl::test {

struct ForwardProblem {
  /// Sizes, dtype, scale, mask, dropout; the pointers stay empty.
  MhaForwardArgs shape{};
  TestTensor q{}, k{}, v{}, o{}, lse{}, bias{}, keep{};

  MhaForwardArgs device_args() const { return args(true); }
  /// Pointers to the images of the inputs; for the reference.
  MhaForwardArgs host_args() const { return args(false); }

  void upload() { for_each_buffer(&Buffer::upload); }
  void download() { for_each_buffer(&Buffer::download); }

  struct Named {
    const char* name;
    const TestTensor* tensor;
    bool is_output;
  };
  std::vector<Named> tensors() const {
    return {{"Q", &q, false},          {"K", &k, false}, {"V", &v, false},
            {"bias", &bias, false},    {"O", &o, true},  {"LSE", &lse, true},
            {"keep mask", &keep, true}};
  }

  static Shape q_shape(const MhaForwardArgs& a) {
    return {a.batch, a.heads_q, a.seqlen_q, a.head_dim};
  }
  static Shape k_shape(const MhaForwardArgs& a) {
    return {a.batch, a.heads_kv, a.seqlen_k, a.head_dim};
  }
  static Shape v_shape(const MhaForwardArgs& a) {
    return {a.batch, a.heads_kv, a.seqlen_k, a.head_dim_v};
  }
  static Shape o_shape(const MhaForwardArgs& a) {
    return {a.batch, a.heads_q, a.seqlen_q, a.head_dim_v};
  }
  /// LSE as a tensor: its rows have one column.
  static Shape lse_shape(const MhaForwardArgs& a) { return {a.batch, a.heads_q, a.seqlen_q, 1}; }
  /// Scores: bias and keep mask.
  static Shape score_shape(const MhaForwardArgs& a) {
    return {a.batch, a.heads_q, a.seqlen_q, a.seqlen_k};
  }

private:
  void for_each_buffer(void (Buffer::*action)()) {
    std::vector<Buffer*> done;  // packed tensors share one
    for (const auto& named : tensors()) {
      Buffer* buffer = named.tensor->buffer.get();
      if (buffer == nullptr || std::find(done.begin(), done.end(), buffer) != done.end()) continue;
      (buffer->*action)();
      done.push_back(buffer);
    }
  }

  template <class Pointer>
  static Tensor<Pointer> view(const TestTensor& tensor, bool device) {
    if (!tensor) return {};
    return device ? tensor.on_device<Pointer>() : tensor.on_host<Pointer>();
  }

  MhaForwardArgs args(bool device) const {
    MhaForwardArgs a = shape;
    a.q = view<const void*>(q, device);
    a.k = view<const void*>(k, device);
    a.v = view<const void*>(v, device);
    a.o = view<void*>(o, device);
    const auto rows = view<void*>(lse, device);
    a.lse = {static_cast<float*>(rows.data), rows.batch_stride, rows.head_stride};
    a.bias = {view<const void*>(bias, device), bias.dtype.value_or(DataType::fp32)};
    const auto scores = view<void*>(keep, device);
    a.keep_mask = {static_cast<std::uint8_t*>(scores.data), scores.batch_stride, scores.head_stride,
                   scores.row_stride, scores.column_stride};
    return a;
  }
};

/// After download() of problems that may share buffers: a sentence for every buffer with a write
/// outside of all their outputs (with `none_allowed`, any write), or "".
inline std::string writes_outside(const std::vector<const ForwardProblem*>& problems,
                                  bool none_allowed = false) {
  std::map<const Buffer*, std::vector<ForwardProblem::Named>> uses;
  for (const ForwardProblem* problem : problems) {
    for (const auto& named : problem->tensors()) {
      if (*named.tensor) uses[named.tensor->buffer.get()].push_back(named);
    }
  }
  std::string found;
  for (const auto& [buffer, tensors] : uses) {
    const auto written = [&tensors = tensors, none_allowed](std::size_t bytes) {
      std::vector<bool> marked(bytes);
      for (const auto& named : tensors) {
        if (named.is_output && !none_allowed) named.tensor->mark_elements(marked);
      }
      return marked;
    };
    const std::ptrdiff_t at = buffer->first_change(written);
    if (at == Buffer::no_change) continue;
    found += std::string(tensors.front().name) + ": byte " + std::to_string(at) + " of " +
             std::to_string(buffer->bytes()) + " was overwritten; ";
  }
  return found;
}

}  // namespace flashxdl::test
