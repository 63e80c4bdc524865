#pragma once
/// \file
/// Which piece of which problem a workgroup computes.

#include <cstdint>

#include "flashxdl/arch/arch.hpp"
#include "flashxdl/core/config.hpp"

namespace flashxdl::grid {

/// A tile of one (batch, query head).
struct WorkgroupPlace {
  std::uint32_t batch;
  std::uint32_t head;
  std::uint32_t tile;
};

/// Linear number of this workgroup; grids past the x limit continue in y.
FLASHXDL_DEVICE std::uint64_t workgroup_number(std::uint32_t grid_x) {
  return std::uint64_t{arch::workgroup_id_y()} * grid_x + arch::workgroup_id_x();
}

/// Tiles of a head are neighbours, so that they share K and V in the caches; the last tile comes
/// first: under a causal mask it is the longest.
FLASHXDL_DEVICE WorkgroupPlace place_of(std::uint32_t number, std::uint32_t tiles,
                                        std::uint32_t heads) {
  const std::uint32_t head_number = arch::uniform(number / tiles);
  const std::uint32_t tile = number - head_number * tiles;
  const std::uint32_t batch = arch::uniform(head_number / heads);
  return {batch, head_number - batch * heads, tiles - 1 - tile};
}

/// The group that a workgroup belongs to: the last with first_group <= number. Empty groups own no
/// workgroups and are never found.
template <class Groups>
FLASHXDL_DEVICE std::uint32_t find_group(Groups groups, std::uint32_t count, std::uint64_t number) {
  std::uint32_t low = 0;
  std::uint32_t high = count;
  while (high - low > 1) {
    const std::uint32_t middle = low + (high - low) / 2;
    if (groups[middle].first_group <= number) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return arch::uniform(low);
}

}  // namespace flashxdl::grid
