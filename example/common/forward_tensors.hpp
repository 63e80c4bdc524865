#pragma once
/// \file
/// The tensors of one forward problem, on the host and on the device.

#include <cstdint>
#include <random>

#include "common/device_memory.hpp"
#include "common/forward_config.hpp"
#include "common/tensor_memory.hpp"
#include "flashxdl/core/problem.hpp"

namespace flashxdl::example {

/// Q, K, V, O, and where the config asks for them bias and LSE. Inputs are filled and uploaded, the
/// outputs are NaN until a kernel writes them.
class ForwardTensors {
public:
  ForwardTensors(const ForwardConfig& config, const GroupShape& shape, std::mt19937_64& generator)
      : config_(config),
        shape_(shape),
        q_(bytes_of(config.dtype, shape.batch * shape.heads_q * shape.seqlen_q * config.head_dim)),
        k_(bytes_of(config.dtype, shape.batch * shape.heads_kv * shape.seqlen_k * config.head_dim)),
        v_(bytes_of(config.dtype,
                    shape.batch * shape.heads_kv * shape.seqlen_k * config.head_dim_v)),
        o_(bytes_of(config.dtype,
                    shape.batch * shape.heads_q * shape.seqlen_q * config.head_dim_v)),
        lse_(config.training
                 ? bytes_of(DataType::fp32, shape.batch * shape.heads_q * shape.seqlen_q)
                 : 0),
        bias_(config.bias ? bytes_of(config.bias_dtype, bias_elements()) : 0) {
    Fill fill(config.init, generator);
    initialise(q_, config.dtype, fill, Fill::Role::query_or_key);
    initialise(k_, config.dtype, fill, Fill::Role::query_or_key);
    initialise(v_, config.dtype, fill, Fill::Role::value);
    initialise(bias_, config.bias_dtype, fill, Fill::Role::bias);
    o_.fill_with_nan();
    lse_.fill_with_nan();
  }

  MhaForwardArgs device_args() const {
    return args(
        {q_.device(), k_.device(), v_.device(), o_.device(), lse_.device(), bias_.device()});
  }
  /// With host pointers, for the reference; O and LSE are what download() brought.
  MhaForwardArgs host_args() {
    return args({q_.host(), k_.host(), v_.host(), o_.host(), lse_.host(), bias_.host()});
  }
  void download() {
    o_.download();
    lse_.download();
  }
  /// What a kernel has to move at least: every tensor once.
  std::size_t bytes_moved() const {
    return q_.bytes() + k_.bytes() + v_.bytes() + o_.bytes() + lse_.bytes() + bias_.bytes();
  }
  /// Elements of the bias, dimensions that are broadcast counted once.
  std::int64_t bias_elements() const {
    return bias_batches() * bias_heads() * bias_rows() * shape_.seqlen_k;
  }

private:
  struct Pointers {
    const void* q;
    const void* k;
    const void* v;
    void* o;
    void* lse;
    const void* bias;
  };

  std::int64_t bias_batches() const { return broadcasts(config_, 'b') ? 1 : shape_.batch; }
  std::int64_t bias_heads() const { return broadcasts(config_, 'h') ? 1 : shape_.heads_q; }
  std::int64_t bias_rows() const { return broadcasts(config_, 'q') ? 1 : shape_.seqlen_q; }

  BiasTensor bias_tensor(const void* data) const {
    auto tensor = bhsd(data, bias_heads(), bias_rows(), shape_.seqlen_k);
    if (broadcasts(config_, 'b')) tensor.batch_stride = 0;
    if (broadcasts(config_, 'h')) tensor.head_stride = 0;
    if (broadcasts(config_, 'q')) tensor.row_stride = 0;
    return {tensor, config_.bias_dtype};
  }

  MhaForwardArgs args(const Pointers& at) const {
    const Layout in = config_.input_layout;
    MhaForwardArgs args{.dtype = config_.dtype,
                        .batch = shape_.batch,
                        .heads_q = shape_.heads_q,
                        .heads_kv = shape_.heads_kv,
                        .seqlen_q = shape_.seqlen_q,
                        .seqlen_k = shape_.seqlen_k,
                        .head_dim = config_.head_dim,
                        .head_dim_v = config_.head_dim_v,
                        .q = dense(in, at.q, shape_.heads_q, shape_.seqlen_q, config_.head_dim),
                        .k = dense(in, at.k, shape_.heads_kv, shape_.seqlen_k, config_.head_dim),
                        .v = dense(in, at.v, shape_.heads_kv, shape_.seqlen_k, config_.head_dim_v),
                        .o = dense(config_.output_layout, at.o, shape_.heads_q, shape_.seqlen_q,
                                   config_.head_dim_v),
                        .scale = config_.scale,
                        .mask = config_.mask,
                        .dropout = config_.dropout};
    if (config_.training) {
      args.lse = dense_lse(static_cast<float*>(at.lse), shape_.heads_q, shape_.seqlen_q);
    }
    if (config_.bias) args.bias = bias_tensor(at.bias);
    return args;
  }

  const ForwardConfig& config_;
  GroupShape shape_;
  DeviceMemory q_, k_, v_, o_, lse_, bias_;
};

}  // namespace flashxdl::example
