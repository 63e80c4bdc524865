#pragma once
/// \file
/// Masks as key ranges. Query i sees the keys [first(i), end(i)), both non-decreasing in i; a tile
/// is then skipped, fully visible, or an edge whose scores are tested one by one.

#include <cstdint>
#include <limits>

#include "flashxdl/arch/arch.hpp"
#include "flashxdl/core/config.hpp"
#include "flashxdl/core/registers.hpp"
#include "flashxdl/core/static_for.hpp"

namespace flashxdl::block {

/// Query i sees keys j with i + first_shift <= j < i + end_shift and 0 <= j < seqlen_k. The shifts
/// of an unlimited side are far outside (device/ fills them from core's Mask).
struct KeyRange {
  std::int32_t first_shift;
  std::int32_t end_shift;
  std::int32_t seqlen_k;

  FLASHXDL_HOST_DEVICE constexpr int first(int query) const {
    const int key = query + first_shift;
    return key < 0 ? 0 : key;
  }
  FLASHXDL_HOST_DEVICE constexpr int end(int query) const {
    const int key = query + end_shift;
    return key < seqlen_k ? key : seqlen_k;
  }
  /// Any of the queries [begin, end_query) sees any of the keys [key, key + keys).
  FLASHXDL_HOST_DEVICE constexpr bool visible(int begin, int end_query, int key, int keys) const {
    return begin < end_query && first(begin) < key + keys && end(end_query - 1) > key;
  }
};

/// The tiles of TileKeys keys that queries [begin, end) visit: first those that need no test, then
/// the edges on both sides.
template <int TileKeys>
class KeyTiles {
public:
  FLASHXDL_HOST_DEVICE constexpr KeyTiles(const KeyRange& range, int begin, int end) {
    const int lowest = range.first(begin);
    const int highest = range.end(end - 1);
    if (lowest >= highest) return;  // nothing visible
    first_ = lowest / TileKeys;
    count_ = (highest + TileKeys - 1) / TileKeys - first_;
    full_first_ = (range.first(end - 1) + TileKeys - 1) / TileKeys;
    const int lowest_end = range.end(begin);
    const int full_end = lowest_end < 0 ? 0 : lowest_end / TileKeys;
    full_count_ = full_end > full_first_ ? full_end - full_first_ : 0;
    if (full_count_ == 0) full_first_ = first_ + count_;
  }

  FLASHXDL_HOST_DEVICE constexpr int count() const { return count_; }
  FLASHXDL_HOST_DEVICE constexpr int full_count() const { return full_count_; }

  /// First key of the n-th tile to visit.
  FLASHXDL_HOST_DEVICE constexpr int key(int n) const {
    const int edge = n - full_count_;               // counts the edges
    const int edges_before = full_first_ - first_;  // on the lower side
    const int tile = edge < 0              ? full_first_ + n
                     : edge < edges_before ? first_ + edge
                                           : first_ + full_count_ + edge;
    return tile * TileKeys;
  }

private:
  int first_ = 0;
  int count_ = 0;
  int full_first_ = 0;
  int full_count_ = 0;
};

/// Sets the scores of keys that `query` does not see to -inf; `key` is the tile's first key.
template <int Blocks>
FLASHXDL_DEVICE void mask_scores(Accumulator (&scores)[Blocks], const KeyRange& range, int query,
                                 int key) {
  const int lane_key = key + static_cast<int>(arch::lane_id() / 32) * 4;
  const int first = range.first(query) - lane_key;
  const int end = range.end(query) - lane_key;
  const auto visible = static_cast<std::uint32_t>(end > first ? end - first : 0);
  static_for<Blocks>([&](auto b) {
    static_for<16>([&](auto i) {
      constexpr int j = 32 * b + 8 * (i / 4) + i % 4;
      const bool hidden = !(static_cast<std::uint32_t>(j - first) < visible);
      scores[b].set(i, hidden ? -std::numeric_limits<float>::infinity() : scores[b][i]);
    });
  });
}

}  // namespace flashxdl::block
