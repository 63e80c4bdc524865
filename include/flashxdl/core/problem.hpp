#pragma once
/// \file
/// The arguments of attention: shapes, strided tensors, mask, dropout. Plain structs that are
/// filled with designated initialisers; everything is counted in elements, 64 bits.
///
/// Logical orders: Q [B, Hq, Sq, D], K [B, Hkv, Sk, D], V [B, Hkv, Sk, Dv], O [B, Hq, Sq, Dv],
/// LSE [B, Hq, Sq], bias and keep mask [B, Hq, Sq, Sk]. Any strides; the last dimension contiguous.

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "flashxdl/core/number.hpp"

namespace flashxdl {

/// A strided view in the logical order [batch, head, row, column]. The row is a position in the
/// sequence; the column a head dimension (bias, keep mask: a key). Stride 0 broadcasts an input.
template <class Pointer>
struct Tensor {
  Pointer data = nullptr;
  std::int64_t batch_stride = 0;
  std::int64_t head_stride = 0;
  std::int64_t row_stride = 0;
  std::int64_t column_stride = 1;  ///< must be 1

  constexpr std::int64_t offset(std::int64_t b, std::int64_t h, std::int64_t row,
                                std::int64_t column) const {
    return b * batch_stride + h * head_stride + row * row_stride + column * column_stride;
  }
};

/// Dense [batch, head, row, column].
template <class Pointer>
constexpr Tensor<Pointer> bhsd(Pointer data, std::int64_t heads, std::int64_t rows,
                               std::int64_t columns) {
  return {data, heads * rows * columns, rows * columns, columns, 1};
}

/// Dense [batch, row, head, column].
template <class Pointer>
constexpr Tensor<Pointer> bshd(Pointer data, std::int64_t heads, std::int64_t rows,
                               std::int64_t columns) {
  return {data, heads * rows * columns, columns, heads * columns, 1};
}

/// LSE [B, Hq, Sq], fp32; consecutive rows are adjacent.
struct LseTensor {
  float* data = nullptr;  ///< null: not written
  std::int64_t batch_stride = 0;
  std::int64_t head_stride = 0;
};

constexpr LseTensor dense_lse(float* data, std::int64_t heads, std::int64_t rows) {
  return {data, heads * rows, rows};
}

/// An additive bias on the scaled scores; its own type, any broadcast by stride 0.
struct BiasTensor {
  Tensor<const void*> tensor{};  ///< null data: no bias
  DataType dtype = DataType::fp32;
};

/// Query i sees key j iff  i + shift - left <= j <= i + shift + right  (inclusive), where shift is
/// 0 for top-left and Sk - Sq for bottom-right alignment; a negative left or right is unlimited.
struct Mask {
  enum class Alignment : std::uint8_t { top_left, bottom_right };

  Alignment alignment = Alignment::top_left;
  std::int64_t left = -1;
  std::int64_t right = -1;

  static constexpr Mask none() { return {}; }
  static constexpr Mask causal_top_left() { return {Alignment::top_left, -1, 0}; }
  static constexpr Mask causal_bottom_right() { return {Alignment::bottom_right, -1, 0}; }
  static constexpr Mask window(Alignment alignment, std::int64_t left, std::int64_t right) {
    return {alignment, left, right};
  }

  constexpr std::int64_t shift(std::int64_t seqlen_q, std::int64_t seqlen_k) const {
    return alignment == Alignment::bottom_right ? seqlen_k - seqlen_q : 0;
  }
  /// First visible key of query i, and one past the last; may lie outside [0, Sk).
  constexpr std::int64_t first_key(std::int64_t i, std::int64_t seqlen_q,
                                   std::int64_t seqlen_k) const {
    return left < 0 || left > seqlen_q + seqlen_k ? 0 : i + shift(seqlen_q, seqlen_k) - left;
  }
  constexpr std::int64_t end_key(std::int64_t i, std::int64_t seqlen_q,
                                 std::int64_t seqlen_k) const {
    return right < 0 || right > seqlen_q + seqlen_k ? seqlen_k
                                                    : i + shift(seqlen_q, seqlen_k) + right + 1;
  }
  constexpr bool visible(std::int64_t i, std::int64_t j, std::int64_t seqlen_q,
                         std::int64_t seqlen_k) const {
    return j >= first_key(i, seqlen_q, seqlen_k) && j < end_key(i, seqlen_q, seqlen_k);
  }
};

/// Dropout on the probabilities, after the softmax. The mask is a pure function of (seed, offset,
/// sequence, i, j) on rocRAND's Philox4x32-10 stream: see docs/dropout.md.
struct Dropout {
  double probability = 0;  ///< in [0, 1]; rounded to a multiple of 2^-bits
  std::uint64_t seed = 0;
  std::uint64_t offset = 0;  ///< in 32-bit draws, as rocRAND counts them; offset/4 is floored
  const std::uint64_t* seed_device = nullptr;    ///< read by the kernel instead of `seed`
  const std::uint64_t* offset_device = nullptr;  ///< read by the kernel instead of `offset`
  int bits = 8;                                  ///< 8 or 16 random bits for each score

  /// A score is dropped if its random number is below this; 0 = nothing, 2^bits = everything.
  constexpr std::uint32_t threshold() const {
    return static_cast<std::uint32_t>(probability * (1 << bits) + 0.5);
  }
  /// The probability in force, threshold / 2^bits.
  constexpr double probability_in_force() const {
    return static_cast<double>(threshold()) / (1 << bits);
  }
  /// The scale of the kept, 2^bits / (2^bits - threshold); 0 when everything is dropped.
  constexpr double keep_scale() const {
    return threshold() >= (1u << bits)
               ? 0.0
               : static_cast<double>(1 << bits) / static_cast<double>((1u << bits) - threshold());
  }
  /// Add this to the offset after a call, and the next call shares no draw with it.
  static constexpr std::uint64_t offset_advance(std::int64_t seqlen_q, std::int64_t seqlen_k,
                                                int bits) {
    const auto rows = static_cast<std::uint64_t>((seqlen_q + 3) / 4);
    const auto columns = static_cast<std::uint64_t>((seqlen_k + 3) / 4);
    return 4 * rows * columns * (bits == 16 ? 2 : 1);
  }
};

/// Forward attention: O = dropout(softmax(scale * Q K^T + bias, mask)) V.
struct MhaForwardArgs {
  DataType dtype = DataType::fp16;  ///< of Q, K, V, O: fp16 or bf16

  std::int64_t batch = 0;
  std::int64_t heads_q = 0;
  std::int64_t heads_kv = 0;  ///< divides heads_q; query head h reads head h / (heads_q/heads_kv)
  std::int64_t seqlen_q = 0;
  std::int64_t seqlen_k = 0;
  std::int64_t head_dim = 0;    ///< D, of Q and K: 1 to 256
  std::int64_t head_dim_v = 0;  ///< Dv, of V and O: 1 to 256

  Tensor<const void*> q{};
  Tensor<const void*> k{};
  Tensor<const void*> v{};
  Tensor<void*> o{};
  LseTensor lse{};    ///< natural logarithm of sum exp(s); optional
  BiasTensor bias{};  ///< optional

  std::optional<float> scale{};  ///< default 1/sqrt(head_dim); any finite value, 0 included
  Mask mask{};
  Dropout dropout{};
  Tensor<std::uint8_t*> keep_mask{};  ///< optional: 1 where the score was kept, 0 where dropped

  float scale_or_default() const {
    return scale.value_or(
        static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim < 1 ? 1 : head_dim))));
  }
};

/// A list of forward problems, one launch. The groups agree on dtype and dropout bits; shapes,
/// strides, pointers, scale, mask and the rest are each group's own. Sequence indices of dropout
/// count on from group to group: B*Hq of every group before, empty ones too.
struct MhaForwardGroupedArgs {
  std::vector<MhaForwardArgs> groups{};
};

/// dBias: where to and in which type. Stride 0 over batch, head or row means one slice for all,
/// which receives the sum; usually the strides are those of the bias.
struct BiasGradient {
  Tensor<void*> tensor{};           ///< null data: not wanted
  DataType dtype = DataType::fp32;  ///< fp32, or the type of the bias
};

/// Backward attention: the gradients of a loss with respect to Q, K, V and the bias, given that
/// with respect to O. All gradients are overwritten, not added to.
struct MhaBackwardArgs {
  /// The arguments of the forward call. Its O and LSE are read, and both are required. A keep mask,
  /// if given, is written again, from the decisions of the backward kernel.
  MhaForwardArgs forward{};

  Tensor<const void*> d_o{};  ///< [B, Hq, Sq, Dv], of the type of O

  Tensor<void*> dq{};  ///< [B, Hq, Sq, D]; null data: not wanted, as for the others
  Tensor<void*> dk{};  ///< [B, Hkv, Sk, D], summed over the query heads of a KV head
  Tensor<void*> dv{};  ///< [B, Hkv, Sk, Dv], summed likewise
  std::optional<DataType> gradient_dtype{};  ///< of dQ, dK, dV: the input type (default) or fp32
  BiasGradient dbias{};                      ///< needs a bias

  bool deterministic = false;  ///< the same bits on every run; takes more workspace

  DataType gradient_dtype_or_default() const { return gradient_dtype.value_or(forward.dtype); }
};

/// A list of backward problems, one call; what holds for MhaForwardGroupedArgs holds here.
struct MhaBackwardGroupedArgs {
  std::vector<MhaBackwardArgs> groups{};
};

}  // namespace flashxdl
