#pragma once
/// \file
/// A forward problem with its memory: made from shapes and layouts, filled, run, checked.

#include "flashxdl/core/problem.hpp"
#include "support/tensor_list.hpp"

namespace flashxdl::test {

struct ForwardProblem {
  /// Sizes, dtype, scale, mask, dropout; the pointers stay empty.
  MhaForwardArgs shape{};
  TestTensor q{}, k{}, v{}, o{}, lse{}, bias{}, keep{};

  MhaForwardArgs device_args() const { return args(true); }
  /// Pointers to the images of the inputs; for the reference.
  MhaForwardArgs host_args() const { return args(false); }

  void upload() { for_each_buffer(tensors(), &Buffer::upload); }
  void download() { for_each_buffer(tensors(), &Buffer::download); }

  TensorList tensors() const {
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
  MhaForwardArgs args(bool device) const {
    MhaForwardArgs a = shape;
    a.q = q.on<const void*>(device);
    a.k = k.on<const void*>(device);
    a.v = v.on<const void*>(device);
    a.o = o.on<void*>(device);
    const auto rows = lse.on<void*>(device);
    a.lse = {static_cast<float*>(rows.data), rows.batch_stride, rows.head_stride};
    a.bias = {bias.on<const void*>(device), bias.dtype.value_or(DataType::fp32)};
    const auto scores = keep.on<void*>(device);
    a.keep_mask = {static_cast<std::uint8_t*>(scores.data), scores.batch_stride, scores.head_stride,
                   scores.row_stride, scores.column_stride};
    return a;
  }
};

}  // namespace flashxdl::test
