#pragma once
/// \file
/// Moves [Rows, Columns] tiles of a matrix of 16-bit numbers from global memory through registers
/// to LDS, all threads of the workgroup together: fetch() starts the loads, store() waits for them
/// and writes LDS, so that a tile is in flight while the one before is used.
///
/// Rows and columns past the matrix read as 0.

#include <cstdint>

#include "flashxdl/arch/arch.hpp"
#include "flashxdl/block/chunk.hpp"
#include "flashxdl/block/lds_tile.hpp"
#include "flashxdl/core/config.hpp"
#include "flashxdl/core/registers.hpp"
#include "flashxdl/core/static_for.hpp"

namespace flashxdl::block {

/// A matrix in global memory: rows of `columns` numbers, row_bytes apart.
struct GlobalMatrix {
  arch::Buffer buffer;
  std::uint32_t row_bytes;
  int rows;
  int columns;
};

/// Byte offset of a row, out of range past the last one.
FLASHXDL_DEVICE std::uint32_t row_offset(const GlobalMatrix& m, int row) {
  return row < m.rows ? static_cast<std::uint32_t>(row) * m.row_bytes : out_of_range;
}

/// Byte offset of a number, out of range past the last row or column.
FLASHXDL_DEVICE std::uint32_t number_offset(const GlobalMatrix& m, int row, int column) {
  return column < m.columns
             ? arch::add_saturated(row_offset(m, row), static_cast<std::uint32_t>(column) * 2u)
             : out_of_range;
}

/// Keeps the rows: LDS holds [Rows, Columns].
template <int Rows, int Columns, int Threads, bool Wide>
class RowTileLoader {
  static constexpr int units = Columns / 8;
  static constexpr int chunks = Rows * units;
  static constexpr int steps = (chunks + Threads - 1) / Threads;

public:
  using Tile = LdsTile<Rows, units>;

  FLASHXDL_DEVICE explicit RowTileLoader(const GlobalMatrix& matrix) : matrix_(matrix) {
    static_for<steps>([&](auto s) {
      const int chunk = chunk_of(s);
      const int column = chunk % units * 8;
      valid_[s] = matrix.columns - column;
      offset_[s] = chunk < chunks ? number_offset(matrix, chunk / units, column) : out_of_range;
    });
  }

  /// Starts loading the tile whose first row is `row` < rows of the matrix.
  FLASHXDL_DEVICE void fetch(int row) {
    const std::uint32_t base = static_cast<std::uint32_t>(row) * matrix_.row_bytes;
    static_for<steps>([&](auto s) {
      data_[s] =
          load_chunk<Wide, 8>(matrix_.buffer, arch::add_saturated(offset_[s], base), valid_[s]);
    });
  }

  FLASHXDL_DEVICE void store(const arch::Lds& lds, std::uint32_t at) const {
    static_for<steps>([&](auto s) {
      const int chunk = chunk_of(s);
      const auto row = static_cast<std::uint32_t>(chunk / units);
      const auto unit = static_cast<std::uint32_t>(chunk % units);
      if ((s + 1) * Threads <= chunks || chunk < chunks) {
        lds.write<4>(at + Tile::offset(row, unit), data_[s]);
      }
    });
  }

private:
  static FLASHXDL_DEVICE int chunk_of(int step) {
    return static_cast<int>(arch::thread_id()) + step * Threads;
  }

  GlobalMatrix matrix_;
  std::uint32_t offset_[steps];
  int valid_[steps];
  Registers<std::uint32_t, 4> data_[steps];
};

/// Transposes on the way: LDS holds [Columns, Rows], as the second product of attention wants V.
/// A thread moves 4 rows of a few columns and transposes 4x4 blocks in registers. Inside each 16
/// rows the groups of 4 stand in the order 0, 2, 1, 3: lane half h of a 32x32 product owns groups h
/// and h + 2 (the register order of its result), which thus are one 16-byte unit.
template <int Rows, int Columns, int Threads, bool Wide>
class TransposingTileLoader {
  static constexpr int width_for(int w) {
    return w == 2 || Rows / 4 * (Columns / w) > Threads / 2 ? w : width_for(w / 2);
  }
  static constexpr int width = width_for(8);  ///< columns of a thread
  static constexpr int runs = Columns / width;
  static constexpr int chunks = Rows / 4 * runs;
  static constexpr int steps = (chunks + Threads - 1) / Threads;
  static constexpr int words = width / 2;

public:
  using Tile = LdsTile<Columns, Rows / 8>;

  FLASHXDL_DEVICE explicit TransposingTileLoader(const GlobalMatrix& matrix) : matrix_(matrix) {
    static_for<steps>([&](auto s) {
      const int chunk = chunk_of(s);
      const int column = chunk % runs * width;
      valid_[s] = matrix.columns - column;
      offset_[s] = chunk < chunks ? number_offset(matrix, chunk / runs * 4, column) : out_of_range;
    });
  }

  FLASHXDL_DEVICE void fetch(int row) {
    static_for<4>([&](auto r) {
      const std::uint32_t base = row_offset(matrix_, row + r);
      static_for<steps>([&](auto s) {
        data_[s][r] = load_chunk<Wide, width>(matrix_.buffer, arch::add_saturated(offset_[s], base),
                                              valid_[s]);
      });
    });
  }

  FLASHXDL_DEVICE void store(const arch::Lds& lds, std::uint32_t at) const {
    static_for<steps>([&](auto s) {
      const int chunk = chunk_of(s);
      const auto group = static_cast<std::uint32_t>(chunk / runs);
      const auto column = static_cast<std::uint32_t>(chunk % runs * width);
      const std::uint32_t unit = group / 4 * 2 + group % 2;
      const std::uint32_t half = group / 2 % 2 * 8;
      if ((s + 1) * Threads <= chunks || chunk < chunks) {
        static_for<width>([&](auto c) {
          constexpr std::uint32_t select = c % 2 == 0 ? 0x05040100 : 0x07060302;
          Registers<std::uint32_t, 2> four;
          four.set(0, arch::select_bytes<select>(data_[s][1][c / 2], data_[s][0][c / 2]));
          four.set(1, arch::select_bytes<select>(data_[s][3][c / 2], data_[s][2][c / 2]));
          lds.write<2>(at + Tile::offset(column + c, unit) + half, four);
        });
      }
    });
  }

private:
  static FLASHXDL_DEVICE int chunk_of(int step) {
    return static_cast<int>(arch::thread_id()) + step * Threads;
  }

  GlobalMatrix matrix_;
  std::uint32_t offset_[steps];
  int valid_[steps];
  Registers<std::uint32_t, words> data_[steps][4];
};

}  // namespace flashxdl::block
