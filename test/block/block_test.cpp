// The blockwise pieces against their definitions.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <set>
#include <vector>

#include "flashxdl/block/lds_tile.hpp"
#include "flashxdl/block/mask.hpp"
#include "flashxdl/block/tile_loader.hpp"
#include "flashxdl/core/problem.hpp"
#include "flashxdl/device/mha_fwd_arguments.hpp"
#include "support/on_lanes.hpp"

namespace flashxdl::test {
namespace {

// Eight lanes read 16 bytes each in one cycle: without conflict if they use the 32 banks once.
template <int Rows, int Units>
void expect_no_conflicts() {
  using Tile = block::LdsTile<Rows, Units>;
  std::set<std::uint32_t> places;
  for (std::uint32_t row = 0; row < Rows; ++row) {
    for (std::uint32_t unit = 0; unit < Units; ++unit) {
      const std::uint32_t at = Tile::offset(row, unit);
      EXPECT_EQ(at % 16, 0u);
      EXPECT_LT(at, static_cast<std::uint32_t>(Tile::bytes));
      places.insert(at);
    }
  }
  EXPECT_EQ(places.size(), static_cast<std::size_t>(Rows * Units)) << "each unit has its own place";
  for (std::uint32_t first = 0; first < Rows; first += 8) {
    for (std::uint32_t unit = 0; unit < Units; ++unit) {
      std::set<std::uint32_t> banks;
      for (std::uint32_t row = first; row < first + 8; ++row) {
        banks.insert(Tile::offset(row, unit) / 16 % 8);
      }
      EXPECT_EQ(banks.size(), 8u) << Units << " units, rows from " << first << ", unit " << unit;
    }
  }
}

TEST(LdsTile, ReadsWithoutBankConflicts) {
  expect_no_conflicts<64, 4>();   // D = 32
  expect_no_conflicts<64, 8>();   // D = 64, and V^T of 64 keys
  expect_no_conflicts<64, 12>();  // D = 96
  expect_no_conflicts<32, 16>();  // D = 128
  expect_no_conflicts<32, 24>();  // D = 192
  expect_no_conflicts<32, 32>();  // D = 256
  expect_no_conflicts<256, 4>();  // V^T of 32 keys
}

// A tile starts and ends anywhere; every visible score lies in a visited tile, tiles are visited
// once, the full ones hold visible scores only, and no visited tile is wholly masked.
TEST(KeyTiles, CoverWhatIsVisible) {
  constexpr int keys = 32;
  std::mt19937 random(11);
  for (int trial = 0; trial < 3000; ++trial) {
    MhaForwardArgs a;
    a.batch = a.heads_q = a.heads_kv = 1;
    a.head_dim = a.head_dim_v = 8;
    a.seqlen_q = 1 + static_cast<int>(random() % 200);
    a.seqlen_k = static_cast<int>(random() % 300);
    const auto side = [&] { return static_cast<std::int64_t>(random() % 250) - 50; };
    a.mask =
        Mask::window(random() % 2 == 0 ? Mask::Alignment::top_left : Mask::Alignment::bottom_right,
                     side(), side());
    const auto range = device::describe_forward(a, MhaFwdProblem{}, 128).keys;
    const int begin = static_cast<int>(random() % static_cast<unsigned>(a.seqlen_q));
    const int end =
        std::min<int>(begin + 1 + static_cast<int>(random() % 128), static_cast<int>(a.seqlen_q));
    const block::KeyTiles<keys> tiles(range, begin, end);

    std::set<int> visited;
    for (int n = 0; n < tiles.count(); ++n) {
      const int key = tiles.key(n);
      ASSERT_EQ(key % keys, 0);
      ASSERT_TRUE(visited.insert(key).second) << "visited twice";
      int visible = 0;
      for (int i = begin; i < end; ++i) {
        for (int j = key; j < key + keys; ++j) {
          visible += j < a.seqlen_k && a.mask.visible(i, j, a.seqlen_q, a.seqlen_k) ? 1 : 0;
        }
      }
      if (n < tiles.full_count()) {
        ASSERT_EQ(visible, (end - begin) * keys);
      }
    }
    int needed = 0;
    for (int key = 0; key < a.seqlen_k; key += keys) {
      bool seen = false;
      for (int i = begin; i < end && !seen; ++i) {
        for (int j = key; j < std::min<int>(key + keys, static_cast<int>(a.seqlen_k)); ++j) {
          seen = seen || a.mask.visible(i, j, a.seqlen_q, a.seqlen_k);
        }
      }
      if (seen) {
        ++needed;
        ASSERT_TRUE(visited.count(key)) << "trial " << trial << ": visible keys are skipped";
      }
    }
    ASSERT_EQ(static_cast<int>(visited.size()), needed) << "trial " << trial << ": a tile too many";
  }
}

// Loads a ragged tile and looks at LDS: the rows of the matrix (or its columns), zero past the end.
template <template <int, int, int, bool> class Loader, bool Wide, int Rows, int Columns>
void expect_tile(int rows, int columns, int first_row) {
  const int pitch = Wide ? (columns + 7) / 8 * 8 : columns + 3;
  std::vector<std::uint16_t> memory(static_cast<std::size_t>(rows * pitch));
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::uint16_t>(i + 1);
  constexpr bool transposed = std::is_same_v<typename Loader<Rows, Columns, 256, Wide>::Tile,
                                             block::LdsTile<Columns, Rows / 8>> &&
                              Rows != Columns;
  std::array<std::uint16_t, static_cast<std::size_t>(Rows * Columns)> found{};
  on_lanes(256, [&] {
    using Load = Loader<Rows, Columns, 256, Wide>;
    const auto lds = arch::workgroup_lds<Load::Tile::bytes>();
    const block::GlobalMatrix matrix{
        arch::Buffer(memory.data(), static_cast<std::uint32_t>(((rows - 1) * pitch + columns) * 2)),
        static_cast<std::uint32_t>(pitch * 2), rows, columns};
    Load loader(matrix);
    loader.fetch(first_row);
    loader.store(lds, 0);
    arch::workgroup_sync();
    if (arch::thread_id() != 0) return;
    constexpr int outer = transposed ? Columns : Rows;
    constexpr int inner = transposed ? Rows : Columns;
    for (int r = 0; r < outer; ++r) {
      for (int c = 0; c < inner; ++c) {
        // Transposed rows hold, in each 16, the groups of four in the order 0, 2, 1, 3.
        const int group = c / 4 % 4;
        const int place = transposed ? c / 16 * 16 + (group % 2 * 2 + group / 2) * 4 + c % 4 : c;
        const auto words =
            lds.template read<1>(Load::Tile::offset(static_cast<std::uint32_t>(r),
                                                    static_cast<std::uint32_t>(place / 8)) +
                                 static_cast<std::uint32_t>(place % 8 / 2 * 4));
        const auto value = static_cast<std::uint16_t>(words[0] >> (place % 2 * 16));
        const int row = transposed ? c : r;
        const int column = transposed ? r : c;
        found[static_cast<std::size_t>(row * Columns + column)] = value;
      }
    }
  });
  for (int r = 0; r < Rows; ++r) {
    for (int c = 0; c < Columns; ++c) {
      const int row = first_row + r;
      const std::uint16_t expected =
          row < rows && c < columns ? memory[static_cast<std::size_t>(row * pitch + c)] : 0;
      ASSERT_EQ(found[static_cast<std::size_t>(r * Columns + c)], expected) << r << ", " << c;
    }
  }
}

TEST(TileLoader, KeepsRows) {
  expect_tile<block::RowTileLoader, true, 64, 96>(100, 72, 64);
  expect_tile<block::RowTileLoader, true, 32, 256>(32, 256, 0);
  expect_tile<block::RowTileLoader, false, 64, 96>(70, 71, 64);
  expect_tile<block::RowTileLoader, false, 64, 32>(5, 1, 0);
}

TEST(TileLoader, Transposes) {
  expect_tile<block::TransposingTileLoader, true, 64, 32>(100, 32, 64);
  expect_tile<block::TransposingTileLoader, true, 64, 96>(100, 72, 64);
  expect_tile<block::TransposingTileLoader, true, 32, 256>(35, 248, 32);
  expect_tile<block::TransposingTileLoader, false, 64, 96>(70, 71, 64);
  expect_tile<block::TransposingTileLoader, false, 32, 192>(33, 130, 0);
}

}  // namespace
}  // namespace flashxdl::test
