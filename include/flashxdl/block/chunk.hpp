#pragma once
/// \file
/// A run of 16-bit numbers in global memory, moved by one wide instruction where the tensor's
/// alignment allows, else number by number.

#include <cstdint>

#include "flashxdl/arch/arch.hpp"
#include "flashxdl/core/config.hpp"
#include "flashxdl/core/registers.hpp"
#include "flashxdl/core/static_for.hpp"

namespace flashxdl::block {

/// A byte offset that is out of range in every buffer, also after add_saturated.
inline constexpr std::uint32_t out_of_range = 0xffffffffu;

/// Loads Count numbers; those from `valid` on are 0. With Wide the run is whole and aligned, or its
/// offset is out of range.
template <bool Wide, int Count>
FLASHXDL_DEVICE Registers<std::uint32_t, Count / 2> load_chunk(const arch::Buffer& buffer,
                                                               std::uint32_t offset,
                                                               [[maybe_unused]] int valid) {
  if constexpr (Wide) {
    return buffer.load<Count / 2>(offset);
  } else {
    Registers<std::uint32_t, Count / 2> words;
    const int present = arch::recomputed(valid);
    static_for<Count / 2>([&](auto i) {
      const auto number = [&](int e) -> std::uint32_t {
        const auto step = static_cast<std::uint32_t>(2 * e);
        return buffer.load_u16(e < present ? arch::add_saturated(offset, step) : out_of_range);
      };
      words.set(i, number(2 * i) | (number(2 * i + 1) << 16));
    });
    return words;
  }
}

/// Stores 8 numbers, the first `valid` of them; with Wide as above.
template <bool Wide>
FLASHXDL_DEVICE void store_chunk(const arch::Buffer& buffer, std::uint32_t offset,
                                 Registers<std::uint32_t, 4> words, [[maybe_unused]] int valid) {
  if constexpr (Wide) {
    buffer.store(offset, words);
  } else {
    static_for<8>([&](auto e) {
      const std::uint32_t word = words[e / 2] >> (16 * (e % 2));
      buffer.store_u16(
          e < valid ? arch::add_saturated(offset, static_cast<std::uint32_t>(2 * e)) : out_of_range,
          static_cast<std::uint16_t>(word));
    });
  }
}

}  // namespace flashxdl::block
