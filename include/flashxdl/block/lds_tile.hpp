#pragma once
/// \file
/// A tile in LDS: rows of 16-byte units whose order inside the row is permuted by the row number,
/// so that lanes which read the same column of consecutive rows hit different banks, without
/// padding.

#include <cstdint>

#include "flashxdl/core/config.hpp"

namespace flashxdl::block {

/// Rows x Units 16-byte units.
template <int Rows, int Units>
struct LdsTile {
  static_assert(Units % 4 == 0, "an LDS row is a multiple of 64 bytes: 32 numbers of 16 bits");
  static constexpr int bytes = Rows * Units * 16;

  /// Byte offset of a unit. Eight consecutive rows use the 32 banks once; rows 32 apart differ by a
  /// constant.
  static FLASHXDL_HOST_DEVICE constexpr std::uint32_t offset(std::uint32_t row,
                                                             std::uint32_t unit) {
    const std::uint32_t key =
        Units % 8 == 0 ? (row & 7u) ^ ((row >> 3) & 3u) : ((row >> 1) ^ (row >> 3)) & 3u;
    return (row * static_cast<std::uint32_t>(Units) + (unit ^ key)) * 16u;
  }
};

}  // namespace flashxdl::block
