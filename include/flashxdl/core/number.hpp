#pragma once
/// \file
/// The number formats of the library: fp16 (IEEE binary16), bf16 (the upper half of an fp32), fp32.
/// Conversions here are exact integer arithmetic, usable in constant expressions and on every
/// target; kernels use the machine's own conversions (arch/convert.hpp), which agree bit for bit.

#include <bit>
#include <cstddef>
#include <cstdint>

#include "flashxdl/core/config.hpp"

namespace flashxdl {

enum class DataType : std::uint8_t { fp16, bf16, fp32 };

using fp16 = _Float16;

/// bfloat16: sign, 8 exponent bits, 7 fraction bits.
struct bf16 {
  std::uint16_t bits;
  friend constexpr bool operator==(bf16, bf16) = default;
};

constexpr std::size_t size_of(DataType type) {
  return type == DataType::fp32 ? 4 : 2;
}

constexpr const char* name_of(DataType type) {
  switch (type) {
    case DataType::fp16:
      return "fp16";
    case DataType::bf16:
      return "bf16";
    case DataType::fp32:
      return "fp32";
  }
  return "unknown";
}

/// fp16 bit pattern -> fp32, exact (subnormals, infinities and NaN included).
constexpr float fp16_bits_to_float(std::uint16_t h) {
  const std::uint32_t sign = static_cast<std::uint32_t>(h & 0x8000u) << 16;
  const std::uint32_t exponent = (h >> 10) & 0x1fu;
  std::uint32_t fraction = h & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (fraction << 13));
  if (exponent != 0) {
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (fraction << 13));
  }
  // Zero and subnormals: fraction * 2^-24, exact in fp32.
  const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
  return sign != 0 ? -magnitude : magnitude;
}

/// fp32 -> fp16 bit pattern, to nearest even.
constexpr std::uint16_t float_to_fp16_bits(float value) {
  const auto u = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((u >> 16) & 0x8000u);
  const std::uint32_t magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // >= 65520
  if (magnitude >= 0x38800000u) {                                                   // normal
    const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
  }
  if (magnitude < 0x33000000u) return sign;  // below half the smallest subnormal
  const std::uint32_t exponent = magnitude >> 23;
  const std::uint32_t fraction = (magnitude & 0x7fffffu) | 0x800000u;
  const std::uint32_t shift = 126 - exponent;  // 14..24
  const std::uint32_t kept = fraction >> shift;
  const std::uint32_t rest = fraction & ((1u << shift) - 1);
  const std::uint32_t half = 1u << (shift - 1);
  const std::uint32_t up = rest > half || (rest == half && (kept & 1u)) ? 1u : 0u;
  return static_cast<std::uint16_t>(sign | (kept + up));
}

/// bf16 bit pattern -> fp32, exact.
constexpr float bf16_bits_to_float(std::uint16_t b) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(b) << 16);
}

/// fp32 -> bf16 bit pattern, to nearest even; NaN stays NaN.
constexpr std::uint16_t float_to_bf16_bits(float value) {
  const auto u = std::bit_cast<std::uint32_t>(value);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((u >> 16) | 0x40u);
  return static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

/// What the library needs to know of an input type: its tag and its conversions.
template <class T>
struct Number;

template <>
struct Number<fp16> {
  static constexpr DataType type = DataType::fp16;
  static constexpr float to_float(fp16 x) {
    return fp16_bits_to_float(std::bit_cast<std::uint16_t>(x));
  }
  static constexpr fp16 from_float(float x) { return std::bit_cast<fp16>(float_to_fp16_bits(x)); }
};

template <>
struct Number<bf16> {
  static constexpr DataType type = DataType::bf16;
  static constexpr float to_float(bf16 x) { return bf16_bits_to_float(x.bits); }
  static constexpr bf16 from_float(float x) { return bf16{float_to_bf16_bits(x)}; }
};

template <>
struct Number<float> {
  static constexpr DataType type = DataType::fp32;
  static constexpr float to_float(float x) { return x; }
  static constexpr float from_float(float x) { return x; }
};

/// Run-time typed element access; `data` holds elements of `type`, `index` counts elements.
inline float load_element(const void* data, DataType type, std::int64_t index) {
  switch (type) {
    case DataType::fp16:
      return fp16_bits_to_float(static_cast<const std::uint16_t*>(data)[index]);
    case DataType::bf16:
      return bf16_bits_to_float(static_cast<const std::uint16_t*>(data)[index]);
    case DataType::fp32:
      break;
  }
  return static_cast<const float*>(data)[index];
}

inline void store_element(void* data, DataType type, std::int64_t index, float value) {
  switch (type) {
    case DataType::fp16:
      static_cast<std::uint16_t*>(data)[index] = float_to_fp16_bits(value);
      return;
    case DataType::bf16:
      static_cast<std::uint16_t*>(data)[index] = float_to_bf16_bits(value);
      return;
    case DataType::fp32:
      static_cast<float*>(data)[index] = value;
      return;
  }
}

}  // namespace flashxdl
