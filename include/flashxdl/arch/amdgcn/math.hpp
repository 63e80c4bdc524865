#pragma once
/// \file
/// Arithmetic of one lane on amdgcn.

#include <cstdint>
#include <type_traits>

#include "flashxdl/arch/target.hpp"
#include "flashxdl/core/config.hpp"
#include "flashxdl/core/number.hpp"
#include "flashxdl/core/registers.hpp"

namespace flashxdl::arch {

/// v_exp_f32: 2^x, 1 ulp; subnormal results become 0.
FLASHXDL_DEVICE float exp2(float x) {
#if __has_builtin(__builtin_amdgcn_exp2f)
  return __builtin_amdgcn_exp2f(x);
#else
  return __builtin_exp2f(x);
#endif
}
/// v_log_f32: log2(x), 1 ulp.
FLASHXDL_DEVICE float log2(float x) {
#if __has_builtin(__builtin_amdgcn_logf)
  return __builtin_amdgcn_logf(x);
#else
  return __builtin_log2f(x);
#endif
}
FLASHXDL_DEVICE float reciprocal(float x) {
  return __builtin_amdgcn_rcpf(x);
}
FLASHXDL_DEVICE float max(float a, float b) {
  return __builtin_fmaxf(a, b);
}
/// x within [0, 1]; 0 for NaN. Part of the instruction that computes x.
FLASHXDL_DEVICE float saturate(float x) {
  return __builtin_amdgcn_fmed3f(x, 0.0f, 1.0f);
}
FLASHXDL_DEVICE float fma(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}

/// Two fp32 numbers in an aligned pair of registers: one packed instruction from gfx90a on.
typedef float Pair __attribute__((ext_vector_type(2)));
FLASHXDL_DEVICE Pair pair(float a, float b) {
  return Pair{a, b};
}

/// Bytes of the 8-byte value high:low, chosen by the bytes of Selector (0-3 low, 4-7 high, 12
/// zero).
template <std::uint32_t Selector>
FLASHXDL_DEVICE std::uint32_t select_bytes(std::uint32_t high, std::uint32_t low) {
  return __builtin_amdgcn_perm(high, low, Selector);
}

/// a + b, at most 2^32 - 1.
FLASHXDL_DEVICE std::uint32_t add_saturated(std::uint32_t a, std::uint32_t b) {
  return __builtin_elementwise_add_sat(a, b);
}

/// Two fp32 numbers rounded to 16 bits, to nearest even: a in the low half, b in the high.
template <class T>
FLASHXDL_DEVICE std::uint32_t pack(float a, float b) {
  if constexpr (std::is_same_v<T, fp16>) {
    typedef fp16 Pair16 __attribute__((ext_vector_type(2)));
    return __builtin_bit_cast(std::uint32_t, Pair16{static_cast<fp16>(a), static_cast<fp16>(b)});
  } else {
#if defined(__gfx950__)
    typedef __bf16 Pair16 __attribute__((ext_vector_type(2)));
    return __builtin_bit_cast(std::uint32_t, __builtin_convertvector(Pair{a, b}, Pair16));
#else
    const auto round = [](float x) {
      const auto u = __builtin_bit_cast(std::uint32_t, x);
      return u + 0x7fffu + ((u >> 16) & 1u);
    };
    return select_bytes<0x07060302>(round(b), round(a));
#endif
  }
}

/// The two 16-bit numbers of a word as fp32.
template <class T>
FLASHXDL_DEVICE float low_half(std::uint32_t word) {
  if constexpr (std::is_same_v<T, fp16>) {
    return static_cast<float>(__builtin_bit_cast(fp16, static_cast<std::uint16_t>(word)));
  } else {
    return __builtin_bit_cast(float, word << 16);
  }
}
template <class T>
FLASHXDL_DEVICE float high_half(std::uint32_t word) {
  if constexpr (std::is_same_v<T, fp16>) {
    return static_cast<float>(__builtin_bit_cast(fp16, static_cast<std::uint16_t>(word >> 16)));
  } else {
    return __builtin_bit_cast(float, word & 0xffff0000u);
  }
}

}  // namespace flashxdl::arch
