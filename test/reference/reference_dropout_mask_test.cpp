// The dropout mask: known first block, threshold, positions, statistics.

#include "flashxdl/reference/dropout_mask.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "flashxdl/reference/mha_forward.hpp"

namespace {

using namespace flashxdl;
using reference::DropoutMask;

TEST(DropoutMask, FirstBlockOfSeed1) {
  const DropoutMask mask(Dropout{.probability = 0.5, .seed = 1}, 0, 64);
  const DropoutMask::Block expected{{{112, 6, 232, 227},  //
                                     {188, 14, 10, 229},
                                     {192, 34, 242, 149},
                                     {39, 170, 21, 182}}};
  EXPECT_EQ(mask.block(0, 0), expected);
  EXPECT_FALSE(mask.keep(0, 0));  // 112 < 128
  EXPECT_TRUE(mask.keep(0, 2));   // 232
}

TEST(DropoutMask, HighByteOf16BitsComesFromTheFirstOfTwoDraws) {
  const DropoutMask bytes(Dropout{.probability = 0.5, .seed = 1}, 0, 4);
  const DropoutMask words(Dropout{.probability = 0.5, .seed = 1, .bits = 16}, 0, 4);
  for (std::int64_t i = 0; i < 4; ++i) {
    for (std::int64_t j = 0; j < 4; ++j) {
      EXPECT_EQ(words.random_number(i, j) >> 8, bytes.random_number(i, j));
      EXPECT_EQ(words.random_number(i, j) & 0xff, bytes.random_number(i + 4, j));
    }
  }
}

TEST(DropoutMask, OffsetIsFlooredToWholeDraws) {
  const auto number = [](std::uint64_t offset) {
    return DropoutMask(Dropout{.probability = 0.5, .seed = 5, .offset = offset}, 3, 64)
        .random_number(2, 1);
  };
  EXPECT_EQ(number(8), number(11));
  EXPECT_NE(number(8), number(12));
}

TEST(DropoutMask, PositionsAre64Bits) {
  // 2^20 x 2^20 scores: the last block lies past 2^32 draws.
  const std::int64_t seqlen_k = 1 << 20;
  const DropoutMask mask(Dropout{.probability = 0.5, .seed = 5}, 0, seqlen_k);
  const std::int64_t i = (1 << 20) - 1;
  const std::uint64_t position =
      static_cast<std::uint64_t>(i / 4) * (1u << 18) + static_cast<std::uint64_t>(77);
  ASSERT_GT(position, 0xffffffffu);
  EXPECT_EQ(mask.random_number(i, 77 * 4), reference::philox_draw(5, 0, position)[3] & 0xff);
}

TEST(DropoutMask, SeedAndOffsetFromMemoryWin) {
  const std::uint64_t seed = 42, offset = 400;
  Dropout by_pointer{.probability = 0.5, .seed = 1, .offset = 0};
  by_pointer.seed_device = &seed;
  by_pointer.offset_device = &offset;
  const Dropout by_value{.probability = 0.5, .seed = seed, .offset = offset};
  EXPECT_EQ(DropoutMask(by_pointer, 0, 8).block(1, 1), DropoutMask(by_value, 0, 8).block(1, 1));
}

TEST(DropoutMask, AdvanceSeparatesTwoCalls) {
  const std::int64_t seqlen_q = 9, seqlen_k = 7;
  for (const int bits : {8, 16}) {
    const Dropout first{.probability = 0.5, .seed = 3, .offset = 4, .bits = bits};
    Dropout second = first;
    second.offset += Dropout::offset_advance(seqlen_q, seqlen_k, bits);
    // One further block of the first call would be the first block of the second.
    EXPECT_EQ(DropoutMask(first, 0, seqlen_k).block(3, 0),
              DropoutMask(second, 0, seqlen_k).block(0, 0));
    EXPECT_NE(DropoutMask(first, 0, seqlen_k).block(2, 1),
              DropoutMask(second, 0, seqlen_k).block(0, 0));
  }
}

TEST(DropoutMask, RowsAgreeWithSingleScores) {
  const std::int64_t seqlen_k = 23;
  const DropoutMask mask(Dropout{.probability = 0.4, .seed = 8}, 1, seqlen_k);
  for (const std::int64_t first : {0, 1, 3, 4, 18}) {
    for (const std::int64_t end : {19, 20, 21, 23}) {
      std::vector<std::uint8_t> row(23, 7);
      mask.keep_row(6, first, end, row.data());
      for (std::int64_t j = 0; j < seqlen_k; ++j) {
        const int expected = j < first || j >= end ? 7 : mask.keep(6, j) ? 1 : 0;
        ASSERT_EQ(row[static_cast<std::size_t>(j)], expected) << first << ' ' << end << ' ' << j;
      }
    }
  }
}

TEST(DropoutMask, RateIsTheProbabilityInForce) {
  for (const int bits : {8, 16}) {
    for (const double p : {0.1, 0.2, 0.5, 0.9}) {
      MhaForwardArgs args{.batch = 2, .heads_q = 2, .seqlen_q = 256, .seqlen_k = 256};
      args.dropout = {.probability = p, .seed = 77, .bits = bits};
      const auto keep = reference::keep_mask(args);
      double kept = 0;
      for (const auto k : keep) kept += k;
      const double n = static_cast<double>(keep.size());
      const double expected = 1 - args.dropout.probability_in_force();
      EXPECT_NEAR(kept / n, expected, 5 * std::sqrt(expected * (1 - expected) / n))
          << bits << " bits, p = " << p;
    }
  }
}

TEST(DropoutMask, SevenRoundsGiveAnotherMaskOfTheSameRate) {
  MhaForwardArgs args{.batch = 1, .heads_q = 1, .seqlen_q = 256, .seqlen_k = 256};
  args.dropout = {.probability = 0.25, .seed = 77};
  const auto ten = reference::keep_mask(args);
  const auto seven = reference::keep_mask(args, 0, 7);
  double equal = 0, kept = 0;
  for (std::size_t n = 0; n < ten.size(); ++n) {
    equal += ten[n] == seven[n];
    kept += seven[n];
  }
  EXPECT_NEAR(kept / 65536, 0.75, 5 * std::sqrt(0.75 * 0.25 / 65536));
  EXPECT_NEAR(equal / 65536, 0.625, 5 * std::sqrt(0.625 * 0.375 / 65536));
}

TEST(DropoutMask, ProbabilityZeroAndOne) {
  const DropoutMask none(Dropout{.probability = 0}, 0, 16);
  const DropoutMask all(Dropout{.probability = 1}, 0, 16);
  for (std::int64_t i = 0; i < 16; ++i) {
    for (std::int64_t j = 0; j < 16; ++j) {
      EXPECT_TRUE(none.keep(i, j));
      EXPECT_FALSE(all.keep(i, j));
    }
  }
  EXPECT_EQ((Dropout{.probability = 1}.keep_scale()), 0.0);
  EXPECT_EQ((Dropout{.probability = 0.1}.threshold()), 26u);
  EXPECT_EQ((Dropout{.probability = 0.1}.probability_in_force()), 26.0 / 256);
  EXPECT_EQ((Dropout{.probability = 0.1}.keep_scale()), 256.0 / 230);
}

}  // namespace
