// The threadwise pieces: Philox and the dropout decisions against the reference, the transpose and
// the online softmax against their definitions.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>
#include <vector>

#include "flashxdl/arch/mfma_layout.hpp"
#include "flashxdl/reference/dropout_mask.hpp"
#include "flashxdl/reference/philox.hpp"
#include "flashxdl/thread/dropout.hpp"
#include "flashxdl/thread/online_softmax.hpp"
#include "flashxdl/thread/philox.hpp"
#include "support/on_lanes.hpp"

namespace flashxdl::test {
namespace {

TEST(Philox, GivesRandom123sVectors) {
  const auto ten = thread::philox4x32<10>(0, 0, 0);
  EXPECT_EQ(ten[0], 0x6627e8d5u);
  EXPECT_EQ(ten[1], 0xe169c58du);
  EXPECT_EQ(ten[2], 0xbc57ac4cu);
  EXPECT_EQ(ten[3], 0x9b00dbd8u);
  const auto seven = thread::philox4x32<7>(0, 0, 0);
  EXPECT_EQ(seven[0], 0x5f6fb709u);
  EXPECT_EQ(seven[1], 0x0d893f64u);
  EXPECT_EQ(seven[2], 0x4f121f81u);
  EXPECT_EQ(seven[3], 0x4f730a48u);
}

TEST(QuadTranspose, ExchangesWordsAndLanes) {
  std::array<Registers<std::uint32_t, 4>, 64> out{};
  on_lanes(64, [&] {
    const std::uint32_t lane = arch::lane_id();
    Registers<std::uint32_t, 4> x{};
    for (int w = 0; w < 4; ++w) x.set(w, 10 * lane + static_cast<std::uint32_t>(w));
    out[lane] = thread::quad_transpose(x);
  });
  for (std::uint32_t lane = 0; lane < 64; ++lane) {
    for (std::uint32_t w = 0; w < 4; ++w) {
      EXPECT_EQ(out[lane][static_cast<int>(w)], 10 * (lane / 4 * 4 + w) + lane % 4);
    }
  }
}

TEST(ByteTranspose, ExchangesWordsAndBytes) {
  Registers<std::uint32_t, 4> x{};
  for (int w = 0; w < 4; ++w) {
    for (std::uint32_t b = 0; b < 4; ++b) {
      x.set(w, x[w] | ((10 * static_cast<std::uint32_t>(w) + b) << (8 * b)));
    }
  }
  const auto y = thread::byte_transpose(x);
  for (int w = 0; w < 4; ++w) {
    for (std::uint32_t b = 0; b < 4; ++b) {
      EXPECT_EQ((y[w] >> (8 * b)) & 0xffu, 10 * b + static_cast<std::uint32_t>(w));
    }
  }
}

// The lanes of a wave hold the queries (or keys) 64 .. 95, and decide for 96 keys (queries).
template <thread::LaneHolds Holds, int Bits, int Rounds>
void expect_decisions(std::uint64_t offset) {
  using Layout = arch::Mfma32x32x8;
  constexpr std::uint32_t length = 96;  // of both sequences: 3 blocks of 32
  const thread::DropoutStream stream{.seed = 0x123456789abcdefull,
                                     .offset = offset,
                                     .sequence = (std::uint64_t{5} << 32) + 17,
                                     .threshold = Bits == 8 ? 77u : 20000u,
                                     .key_blocks = length / 4};
  std::vector<int> kept(32 * length, -1);
  on_lanes(64, [&] {
    const int lane = static_cast<int>(arch::lane_id());
    const thread::LaneDropout<Holds, Bits, Rounds> dropout(stream, 64u + arch::lane_id() % 32);
    for (std::uint32_t block = 0; block < length; block += 32) {
      dropout.for_block(block, [&](auto i, bool keep) {
        const auto other = block + static_cast<std::uint32_t>(Layout::d_row(lane, i));
        kept[static_cast<std::size_t>(lane % 32) * length + other] = keep ? 1 : 0;
      });
    }
  });
  Dropout dropout{.seed = stream.seed, .offset = offset, .bits = Bits};
  dropout.probability = static_cast<double>(stream.threshold) / (1 << Bits);
  const reference::DropoutMask mask(dropout, stream.sequence, length, Rounds);
  for (std::int64_t own = 0; own < 32; ++own) {
    for (std::int64_t other = 0; other < length; ++other) {
      const bool expected = Holds == thread::LaneHolds::query ? mask.keep(64 + own, other)
                                                              : mask.keep(other, 64 + own);
      ASSERT_EQ(kept[static_cast<std::size_t>(own * length + other)], expected ? 1 : 0)
          << own << ", " << other;
    }
  }
}

template <thread::LaneHolds Holds>
void expect_all_decisions() {
  expect_decisions<Holds, 8, 10>(0);
  expect_decisions<Holds, 8, 7>(4 * 1234 + 3);
  expect_decisions<Holds, 16, 10>(8);
  // Positions that pass 2^32 within the block, and wrap at 2^64.
  expect_decisions<Holds, 8, 10>(4 * ((std::uint64_t{1} << 32) - 400));
  expect_decisions<Holds, 16, 10>(std::numeric_limits<std::uint64_t>::max() - 1000);
}

TEST(LaneDropout, DecidesAsTheReferenceForLanesThatHoldQueries) {
  expect_all_decisions<thread::LaneHolds::query>();
}
TEST(LaneDropout, DecidesAsTheReferenceForLanesThatHoldKeys) {
  expect_all_decisions<thread::LaneHolds::key>();
}

template <int Exponent>
void expect_softmax() {
  using Layout = arch::Mfma32x32x8;
  constexpr int steps = 3;
  constexpr float unit = 0.37f;
  constexpr float inf = std::numeric_limits<float>::infinity();
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0.0f, 4.0f);
  // scores[step][key][query]; the first step of query 3 and everything of query 4 is masked.
  std::vector<float> scores(steps * 64 * 32);
  const auto at = [](int step, int key, int query) {
    return static_cast<std::size_t>((step * 64 + key) * 32 + query);
  };
  for (auto& s : scores) s = normal(random);
  for (int step = 0; step < steps; ++step) {
    for (int key = 0; key < 64; ++key) {
      if (step == 0) scores[at(step, key, 3)] = -inf;
      scores[at(step, key, 4)] = -inf;
    }
  }
  std::array<float, 32> lse{}, weight{};
  on_lanes(64, [&] {
    const int lane = static_cast<int>(arch::lane_id());
    thread::OnlineSoftmax<Exponent> softmax;
    float kept = 0.0f;  // the weight of key 5 of the first step, un-normalised
    for (int step = 0; step < steps; ++step) {
      Accumulator block[2];
      for (int b = 0; b < 2; ++b) {
        for (int i = 0; i < 16; ++i) {
          block[b].set(i, scores[at(step, 32 * b + Layout::d_row(lane, i), lane % 32)]);
        }
      }
      kept *= softmax.update(block, unit);
      if (step == 0 && lane >= 32) kept += block[0][1];  // key 5 = row 5 of the first block
    }
    softmax.finish();
    if (lane >= 32) {
      weight[static_cast<std::size_t>(lane - 32)] = kept * softmax.reciprocal_sum();
      lse[static_cast<std::size_t>(lane - 32)] = softmax.log_sum_exp(unit / 1.44269504f);
    }
  });
  for (int query = 0; query < 32; ++query) {
    double sum = 0.0;
    for (int step = 0; step < steps; ++step) {
      for (int key = 0; key < 64; ++key) sum += std::exp2(unit * scores[at(step, key, query)]);
    }
    const auto q = static_cast<std::size_t>(query);
    if (sum == 0.0) {
      EXPECT_EQ(lse[q], -inf);
      EXPECT_EQ(weight[q], 0.0f);
      continue;
    }
    EXPECT_NEAR(lse[q], std::log(sum), 2e-6 * (1 + std::fabs(std::log(sum))));
    EXPECT_NEAR(weight[q], std::exp2(unit * scores[at(0, 5, query)]) / sum, 1e-6);
  }
}

TEST(OnlineSoftmax, AgreesWithTheDefinition) {
  expect_softmax<0>();
  expect_softmax<15>();
}

}  // namespace
}  // namespace flashxdl::test
