#pragma once
/// \file
/// Online softmax of one query over blocks of keys, in registers. Source: Milakov and Gimelshein,
/// "Online normalizer calculation for softmax" (2018); Dao, "FlashAttention-2" (2023), algorithm 1:
/// the output is not normalised until the end.
///
/// A query lies in two lanes, 32 apart, each with half of the keys; only the maximum is exchanged
/// for every block, the sums are joined once at the end.

#include <limits>

#include "flashxdl/arch/arch.hpp"
#include "flashxdl/core/config.hpp"
#include "flashxdl/core/registers.hpp"
#include "flashxdl/core/static_for.hpp"

namespace flashxdl::thread {

/// Exponent is added to every p's: p reaches 2^Exponent, which cancels in the output. With 15, fp16
/// keeps all bits of p down to 2^-29 of the largest; MI200's matrix cores take what is subnormal in
/// fp16, below 2^-14 without it, as zero ("AMD Instinct MI200 ISA", 7.2).
template <int Exponent = 0>
class OnlineSoftmax {
public:
  /// Replaces scores by p = 2^((s - max) * unit + Exponent), unit > 0. Returns the factor by which
  /// earlier sums and outputs shrink. A maximum of -inf (no visible key yet) gives p = 0.
  template <int Blocks>
  FLASHXDL_DEVICE float update(Accumulator (&scores)[Blocks], float unit) {
    float top = scores[0][0];
    static_for<Blocks>([&](auto b) {
      static_for<8>(
          [&](auto i) { top = arch::max(arch::max(top, scores[b][2 * i]), scores[b][2 * i + 1]); });
    });
    const float before = max_;
    max_ = arch::max(before, arch::max(top, arch::half_swap(top)));
    const float base = max_ == -infinity ? 0.0f : max_;
    const float factor = arch::exp2((before - base) * unit);

    // (s - max) first: exact near the maximum however large the scores are.
    const arch::Pair bases = arch::pair(base, base);
    const arch::Pair units = arch::pair(unit, unit);
    const arch::Pair exponents = arch::pair(Exponent, Exponent);
    arch::Pair sum = arch::pair(sum_ * factor, 0.0f);
    static_for<Blocks>([&](auto b) {
      static_for<8>([&](auto i) {
        const arch::Pair x =
            (arch::pair(scores[b][2 * i], scores[b][2 * i + 1]) - bases) * units + exponents;
        const arch::Pair p = arch::pair(arch::exp2(x[0]), arch::exp2(x[1]));
        scores[b].set(2 * i, p[0]);
        scores[b].set(2 * i + 1, p[1]);
        sum = sum + p;
      });
    });
    sum_ = sum[0] + sum[1];
    return factor;
  }

  /// Joins the sums of the two lanes of a query; once, after the last block.
  FLASHXDL_DEVICE void finish() { sum_ += arch::half_swap(sum_); }

  /// 1 / sum of p; 0 for a query without visible keys.
  FLASHXDL_DEVICE float reciprocal_sum() const {
    return sum_ > 0.0f ? arch::reciprocal(sum_) : 0.0f;
  }
  /// ln(sum exp s); natural_unit turns the scores' unit into the natural one. -inf without keys.
  FLASHXDL_DEVICE float log_sum_exp(float natural_unit) const {
    constexpr float ln2 = 0.693147180559945309f;
    return sum_ > 0.0f ? arch::fma(max_, natural_unit, (arch::log2(sum_) - Exponent) * ln2)
                       : -infinity;
  }

private:
  static constexpr float infinity = std::numeric_limits<float>::infinity();
  float max_ = -infinity;
  float sum_ = 0.0f;
};

}  // namespace flashxdl::thread
