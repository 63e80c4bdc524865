#pragma once
/// \file
/// Matrix products on amdgcn.

#include <type_traits>

#include "flashxdl/arch/target.hpp"
#include "flashxdl/core/config.hpp"
#include "flashxdl/core/number.hpp"
#include "flashxdl/core/registers.hpp"

namespace flashxdl::arch {

namespace intrinsic {
typedef fp16 f16x4 __attribute__((ext_vector_type(4)));
typedef fp16 f16x8 __attribute__((ext_vector_type(8)));
typedef short i16x2 __attribute__((ext_vector_type(2)));
typedef short i16x4 __attribute__((ext_vector_type(4)));
}  // namespace intrinsic

/// acc [32, 32] += A [32, 16] B [16, 32]. Lane l holds 8 inner values of row (A) or column (B)
/// l % 32; which 8 is the caller's choice, the same for A and B: lanes 0-31 hold one half of the 16
/// inner values, lanes 32-63 the other. Result: column l % 32, rows 8 g + 4 (l / 32) + r in
/// register 4 g + r.
template <class T>
FLASHXDL_DEVICE void mma(Accumulator& acc, const Fragment& a, const Fragment& b) {
#if defined(__gfx950__)
  if constexpr (std::is_same_v<T, fp16>) {
    acc.v = __builtin_amdgcn_mfma_f32_32x32x16_f16(__builtin_bit_cast(intrinsic::f16x8, a.v),
                                                   __builtin_bit_cast(intrinsic::f16x8, b.v), acc.v,
                                                   0, 0, 0);
  } else {
    typedef __bf16 bf16x8 __attribute__((ext_vector_type(8)));
    acc.v = __builtin_amdgcn_mfma_f32_32x32x16_bf16(
        __builtin_bit_cast(bf16x8, a.v), __builtin_bit_cast(bf16x8, b.v), acc.v, 0, 0, 0);
  }
#else
  const auto step = [&](auto half_a, auto half_b) {
    if constexpr (std::is_same_v<T, fp16>) {
      acc.v = __builtin_amdgcn_mfma_f32_32x32x8f16(__builtin_bit_cast(intrinsic::f16x4, half_a),
                                                   __builtin_bit_cast(intrinsic::f16x4, half_b),
                                                   acc.v, 0, 0, 0);
    } else if constexpr (target == Arch::gfx908) {
      const auto a4 = __builtin_bit_cast(intrinsic::i16x4, half_a);
      const auto b4 = __builtin_bit_cast(intrinsic::i16x4, half_b);
      acc.v = __builtin_amdgcn_mfma_f32_32x32x4bf16(a4.lo, b4.lo, acc.v, 0, 0, 0);
      acc.v = __builtin_amdgcn_mfma_f32_32x32x4bf16(a4.hi, b4.hi, acc.v, 0, 0, 0);
    } else {
      acc.v = __builtin_amdgcn_mfma_f32_32x32x8bf16_1k(__builtin_bit_cast(intrinsic::i16x4, half_a),
                                                       __builtin_bit_cast(intrinsic::i16x4, half_b),
                                                       acc.v, 0, 0, 0);
    }
  };
  step(a.v.lo, b.v.lo);
  step(a.v.hi, b.v.hi);
#endif
}

}  // namespace flashxdl::arch
