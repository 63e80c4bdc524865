#pragma once
/// \file
/// Arithmetic of one lane on the CPU.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "flashxdl/core/number.hpp"

namespace flashxdl::arch {

inline float exp2(float x) {
  return std::exp2(x);
}
inline float log2(float x) {
  return std::log2(x);
}
inline float reciprocal(float x) {
  return 1.0f / x;
}
/// As v_max_f32: the other number if one is NaN.
inline float max(float a, float b) {
  return std::fmax(a, b);
}
/// 0 for NaN.
inline float saturate(float x) {
  return x > 0.0f ? std::min(x, 1.0f) : 0.0f;
}
inline float fma(float a, float b, float c) {
  return a * b + c;
}

struct Pair {
  float v[2];
  float operator[](int i) const { return v[i]; }
  friend Pair operator+(Pair a, Pair b) { return {{a.v[0] + b.v[0], a.v[1] + b.v[1]}}; }
  friend Pair operator-(Pair a, Pair b) { return {{a.v[0] - b.v[0], a.v[1] - b.v[1]}}; }
  friend Pair operator*(Pair a, Pair b) { return {{a.v[0] * b.v[0], a.v[1] * b.v[1]}}; }
};
inline Pair pair(float a, float b) {
  return {{a, b}};
}

template <std::uint32_t Selector>
inline std::uint32_t select_bytes(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bytes = (std::uint64_t{high} << 32) | low;
  std::uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i) {
    const std::uint32_t which = (Selector >> (8 * i)) & 0xffu;
    if (which < 8) result |= static_cast<std::uint32_t>((bytes >> (8 * which)) & 0xffu) << (8 * i);
  }
  return result;
}

inline std::uint32_t add_saturated(std::uint32_t a, std::uint32_t b) {
  return a > std::numeric_limits<std::uint32_t>::max() - b
             ? std::numeric_limits<std::uint32_t>::max()
             : a + b;
}

template <class T>
inline std::uint32_t pack(float a, float b) {
  if constexpr (std::is_same_v<T, fp16>) {
    return float_to_fp16_bits(a) | (std::uint32_t{float_to_fp16_bits(b)} << 16);
  } else {
    return float_to_bf16_bits(a) | (std::uint32_t{float_to_bf16_bits(b)} << 16);
  }
}

template <class T>
inline float low_half(std::uint32_t word) {
  const auto bits = static_cast<std::uint16_t>(word);
  return std::is_same_v<T, fp16> ? fp16_bits_to_float(bits) : bf16_bits_to_float(bits);
}
template <class T>
inline float high_half(std::uint32_t word) {
  return low_half<T>(word >> 16);
}

}  // namespace flashxdl::arch
