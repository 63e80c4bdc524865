#pragma once
/// \file
/// Matrix products on the CPU: the 64 lanes meet, the last one computes for all, element by
/// element as the instruction's layout says (arch/mfma_layout.hpp).

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "flashxdl/arch/mfma_layout.hpp"
#include "flashxdl/arch/target.hpp"
#include "flashxdl/core/number.hpp"
#include "flashxdl/core/registers.hpp"
#include "flashxdl/host/lane.hpp"

namespace flashxdl::arch {

/// One lane's operands of a matrix instruction.
template <class Layout>
struct MfmaOperands {
  const std::uint16_t* a;  ///< Layout::operand_values 16-bit numbers
  const std::uint16_t* b;
  float* d;  ///< Layout::result_values, added to
};

namespace detail {

/// 16-bit numbers of all lanes -> fp32, as plain arithmetic that vectorises.
template <class T, int Count>
inline void widen(const std::uint16_t (&in)[Count], float (&out)[Count]) {
  for (int i = 0; i < Count; ++i) {
    if constexpr (std::is_same_v<T, bf16>) {
      out[i] = std::bit_cast<float>(std::uint32_t{in[i]} << 16);
    } else {
      const std::uint32_t magnitude = in[i] & 0x7fffu;
      const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
      const std::uint32_t special = magnitude >= 0x7c00u ? 0x7f800000u : 0u;
      const std::uint32_t sign = static_cast<std::uint32_t>(in[i] & 0x8000u) << 16;
      out[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | special | sign);
    }
  }
}

/// D += A B over the lanes' registers.
template <class T, class L>
void mfma(const std::array<MfmaOperands<L>*, 64>& lanes) {
  constexpr int values = L::operand_values;
  std::uint16_t bits_a[64 * values];
  std::uint16_t bits_b[64 * values];
  for (int lane = 0; lane < 64; ++lane) {
    const auto* own = lanes[static_cast<std::size_t>(lane)];
    for (int i = 0; i < values; ++i) {
      bits_a[lane * values + i] = own != nullptr ? own->a[i] : std::uint16_t{0};
      bits_b[lane * values + i] = own != nullptr ? own->b[i] : std::uint16_t{0};
    }
  }
  float a[64 * values];
  float b[64 * values];
  widen<T>(bits_a, a);
  widen<T>(bits_b, b);

  // The rows of A in the order of a lane group's result registers: then a lane's update is
  // result_values multiply-adds with one broadcast of B for each k.
  float rows[L::groups_n][L::K][L::result_values];
  for (int group = 0; group < L::groups_n; ++group) {
    for (int r = 0; r < L::result_values; ++r) {
      const int m = L::d_row(group * L::N, r);
      for (int k = 0; k < L::K; ++k) {
        const Place at = L::a(m, k);
        rows[group][k][r] = a[at.lane * values + at.index];
      }
    }
  }
  for (int lane = 0; lane < 64; ++lane) {
    auto* own = lanes[static_cast<std::size_t>(lane)];
    if (own == nullptr) continue;
    float sum[L::result_values];
    for (int r = 0; r < L::result_values; ++r) sum[r] = own->d[r];
    for (int k = 0; k < L::K; ++k) {
      const Place at = L::b(k, L::d_column(lane));
      const float factor = b[at.lane * values + at.index];
      for (int r = 0; r < L::result_values; ++r) sum[r] += rows[lane / L::N][k][r] * factor;
    }
    for (int r = 0; r < L::result_values; ++r) own->d[r] = sum[r];
  }
}

}  // namespace detail

/// One matrix instruction of the layout L on type T.
template <class T, class L>
inline void mfma(const std::uint16_t* a, const std::uint16_t* b, float* d) {
  MfmaOperands<L> mine{a, b, d};
  host::wave_collective("mfma", mine, detail::mfma<T, L>);
}

/// acc [32, 32] += A [32, 16] B [16, 32]; see arch/amdgcn/mfma.hpp for the lanes' shares.
template <class T>
inline void mma(Accumulator& acc, const Fragment& a, const Fragment& b) {
  std::uint16_t a16[8];
  std::uint16_t b16[8];
  std::memcpy(a16, a.v, sizeof a16);
  std::memcpy(b16, b.v, sizeof b16);
  using L = Mfma32x32x16;  // 8 inner values a lane; the narrower instructions add the same products
  mfma<T, L>(a16, b16, acc.v);
}

}  // namespace flashxdl::arch
