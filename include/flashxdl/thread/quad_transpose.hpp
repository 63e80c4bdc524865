#pragma once
/// \file
/// The 4x4 transpose of words inside a quad of lanes: two butterfly steps, no LDS.

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

}  // namespace flashxdl::thread
