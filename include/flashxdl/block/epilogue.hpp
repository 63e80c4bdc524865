#pragma once
/// \file
/// Writes a wave's 32 output rows: through the wave's own part of LDS ("cshuffle"), so that global
/// stores are 16 bytes of consecutive columns.

#include <cstdint>

#include "flashxdl/arch/arch.hpp"
#include "flashxdl/block/chunk.hpp"
#include "flashxdl/block/lds_tile.hpp"
#include "flashxdl/block/tile_loader.hpp"
#include "flashxdl/core/config.hpp"
#include "flashxdl/core/registers.hpp"
#include "flashxdl/core/static_for.hpp"

namespace flashxdl::block {

/// LDS that store_rows needs for one wave.
template <int Blocks>
inline constexpr int row_store_bytes = LdsTile<32, 4 * Blocks>::bytes;

/// out [32 Blocks columns, 32 rows] (a matrix result: column of `out` = row of the matrix) times
/// `factor`, rounded to T, to rows first_row .. first_row + 31 of the matrix. The LDS at `at` is
/// the wave's own.
template <class T, bool Wide, int Blocks>
FLASHXDL_DEVICE void store_rows(const Accumulator (&out)[Blocks], float factor,
                                const GlobalMatrix& matrix, int first_row, const arch::Lds& lds,
                                std::uint32_t at) {
  using Tile = LdsTile<32, 4 * Blocks>;
  const std::uint32_t lane = arch::lane_id();
  static_for<Blocks>([&](auto b) {
    static_for<4>([&](auto g) {
      Registers<std::uint32_t, 2> four;
      static_for<2>([&](auto w) {
        four.set(w,
                 arch::pack<T>(out[b][4 * g + 2 * w] * factor, out[b][4 * g + 2 * w + 1] * factor));
      });
      lds.write<2>(at + Tile::offset(lane % 32, 4 * b + g) + lane / 32 * 8, four);
    });
  });
  arch::wave_sync();
  static_for<2 * Blocks>([&](auto s) {
    constexpr int units = 4 * Blocks;
    const int chunk = static_cast<int>(lane) + arch::wave_size * s;
    const int row = chunk / units;
    const int column = chunk % units * 8;
    const auto words = lds.read<4>(at + Tile::offset(static_cast<std::uint32_t>(row),
                                                     static_cast<std::uint32_t>(chunk % units)));
    store_chunk<Wide>(matrix.buffer, number_offset(matrix, first_row + row, column), words,
                      matrix.columns - column);
  });
}

}  // namespace flashxdl::block
