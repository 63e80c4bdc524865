#pragma once
/// \file
/// The dropout mask by its definition: which scores of one (batch, query head) are kept.
///
/// A 4x4 block of scores, rows 4r..4r+3 and columns 4c..4c+3, takes one 128-bit Philox draw (16
/// random bits: two consecutive ones, high bytes first) at position
/// offset/4 + draws * (r * ceil(Sk/4) + c) of the stream of its sequence. Score (i, j) owns byte
/// j%4, little endian, of word i%4.

#include <array>
#include <cstdint>

#include "flashxdl/core/problem.hpp"
#include "flashxdl/reference/philox.hpp"

namespace flashxdl::reference {

class DropoutMask {
public:
  /// The random numbers of one block, row by row.
  using Block = std::array<std::array<std::uint32_t, 4>, 4>;

  /// `sequence`: running index of (batch, query head), over all groups before in a grouped call.
  /// Reads seed_device and offset_device where they are set, so they must be host-readable here.
  constexpr DropoutMask(const Dropout& dropout, std::uint64_t sequence, std::int64_t seqlen_k,
                        int rounds = 10)
      : seed_(dropout.seed_device != nullptr ? *dropout.seed_device : dropout.seed),
        sequence_(sequence),
        first_((dropout.offset_device != nullptr ? *dropout.offset_device : dropout.offset) / 4),
        blocks_per_row_(static_cast<std::uint64_t>((seqlen_k + 3) / 4)),
        threshold_(dropout.threshold()),
        bits_(dropout.bits),
        rounds_(rounds) {}

  /// The random numbers of block (r, c), 0 <= number < 2^bits.
  constexpr Block block(std::int64_t r, std::int64_t c) const {
    const std::uint64_t index =
        static_cast<std::uint64_t>(r) * blocks_per_row_ + static_cast<std::uint64_t>(c);
    if (bits_ != 16) return bytes_of(draw(index));
    const Block high = bytes_of(draw(2 * index));
    const Block low = bytes_of(draw(2 * index + 1));
    Block numbers{};
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t j = 0; j < 4; ++j) numbers[i][j] = high[i][j] << 8 | low[i][j];
    }
    return numbers;
  }

  constexpr std::uint32_t random_number(std::int64_t i, std::int64_t j) const {
    return block(i / 4, j / 4)[static_cast<std::size_t>(i % 4)][static_cast<std::size_t>(j % 4)];
  }

  constexpr bool keep(std::int64_t i, std::int64_t j) const {
    return threshold_ == 0 || random_number(i, j) >= threshold_;
  }

  /// keep(i, j) for `first` <= j < `end`, into row[j].
  constexpr void keep_row(std::int64_t i, std::int64_t first, std::int64_t end,
                          std::uint8_t* row) const {
    for (std::int64_t j = first; j < end;) {
      const std::int64_t next = j - j % 4 + 4 < end ? j - j % 4 + 4 : end;
      const auto numbers = threshold_ == 0 ? Block{} : block(i / 4, j / 4);
      for (; j < next; ++j) {
        row[j] =
            numbers[static_cast<std::size_t>(i % 4)][static_cast<std::size_t>(j % 4)] >= threshold_;
      }
    }
  }

private:
  constexpr PhiloxCounter draw(std::uint64_t index) const {
    return philox_draw(seed_, sequence_, first_ + index, rounds_);
  }

  static constexpr Block bytes_of(const PhiloxCounter& words) {
    Block bytes{};
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t j = 0; j < 4; ++j) bytes[i][j] = words[i] >> (8 * j) & 0xffu;
    }
    return bytes;
  }

  std::uint64_t seed_;
  std::uint64_t sequence_;
  std::uint64_t first_;
  std::uint64_t blocks_per_row_;
  std::uint32_t threshold_;
  int bits_;
  int rounds_;
};

}  // namespace flashxdl::reference
