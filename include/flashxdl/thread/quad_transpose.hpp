#pragma once
/// \file
/// The 4x4 transposes of words inside a quad of lanes (two butterfly steps, no LDS) and of bytes
/// inside a lane.

#include <cstdint>

#include "flashxdl/arch/arch.hpp"
#include "flashxdl/core/config.hpp"
#include "flashxdl/core/registers.hpp"

namespace flashxdl::thread {

/// Word w of lane q of the quad becomes word q of lane w.
FLASHXDL_DEVICE Registers<std::uint32_t, 4> quad_transpose(Registers<std::uint32_t, 4> x) {
  const std::uint32_t lane = arch::lane_id();
  // Exchanges the off-diagonal words of each 2x2 block of (lane bit, word bit).
  const auto exchange = [&](auto distance, int first, int second) {
    constexpr int d = decltype(distance)::value;
    const bool upper = (lane & static_cast<std::uint32_t>(d)) != 0;
    const std::uint32_t from_second = arch::quad_swap<d>(x[second]);
    const std::uint32_t from_first = arch::quad_swap<d>(x[first]);
    x.set(first, upper ? from_second : x[first]);
    x.set(second, upper ? x[second] : from_first);
  };
  const std::integral_constant<int, 1> one{};
  const std::integral_constant<int, 2> two{};
  exchange(one, 0, 1);
  exchange(one, 2, 3);
  exchange(two, 0, 2);
  exchange(two, 1, 3);
  return x;
}

/// Byte b of word w becomes byte w of word b.
FLASHXDL_DEVICE Registers<std::uint32_t, 4> byte_transpose(const Registers<std::uint32_t, 4>& x) {
  constexpr std::uint32_t bytes_01 = 0x05010400;  // bytes 0 and 1 of two words, interleaved
  constexpr std::uint32_t bytes_23 = 0x07030602;
  constexpr std::uint32_t low_halves = 0x05040100;
  constexpr std::uint32_t high_halves = 0x07060302;
  const std::uint32_t first_01 = arch::select_bytes<bytes_01>(x[1], x[0]);
  const std::uint32_t first_23 = arch::select_bytes<bytes_23>(x[1], x[0]);
  const std::uint32_t last_01 = arch::select_bytes<bytes_01>(x[3], x[2]);
  const std::uint32_t last_23 = arch::select_bytes<bytes_23>(x[3], x[2]);
  Registers<std::uint32_t, 4> y;
  y.set(0, arch::select_bytes<low_halves>(last_01, first_01));
  y.set(1, arch::select_bytes<high_halves>(last_01, first_01));
  y.set(2, arch::select_bytes<low_halves>(last_23, first_23));
  y.set(3, arch::select_bytes<high_halves>(last_23, first_23));
  return y;
}

}  // namespace flashxdl::thread
