// The dropout stream is rocRAND's: a user can reproduce the mask with rocRAND alone.

#include <gtest/gtest.h>

#include <random>

#include "flashxdl/reference/dropout_mask.hpp"

#if __has_include(<rocrand/rocrand_philox4x32_10.h>)
#include "reference/rocrand_on_cpu.hpp"

namespace {

using namespace flashxdl;

reference::PhiloxCounter rocrand_draw(std::uint64_t seed, std::uint64_t sequence,
                                      std::uint64_t offset) {
  rocrand_state_philox4x32_10 state;
  rocrand_init(seed, sequence, offset, &state);
  const uint4 draw = rocrand4(&state);
  return {draw.x, draw.y, draw.z, draw.w};
}

TEST(Rocrand, GivesTheSame128BitsForRandomSeedsSequencesAndOffsets) {
  std::mt19937_64 random(20240601);
  for (int n = 0; n < 10000; ++n) {
    const std::uint64_t seed = random();
    // Streams and positions of every magnitude; positions stay below 2^62 so that offset fits.
    const std::uint64_t sequence = random() >> (random() % 64);
    const std::uint64_t position = random() >> (2 + random() % 62);
    ASSERT_EQ(reference::philox_draw(seed, sequence, position),
              rocrand_draw(seed, sequence, 4 * position))
        << "seed " << seed << " sequence " << sequence << " position " << position;
  }
}

TEST(Rocrand, ReproducesTheMaskOf8Bits) {
  const Dropout dropout{.probability = 0.3, .seed = 0x123456789abcdef0, .offset = 4'000'000'007};
  const std::int64_t seqlen_k = 37;
  const std::uint64_t sequence = 11;
  const reference::DropoutMask mask(dropout, sequence, seqlen_k);
  for (std::int64_t i = 0; i < 21; ++i) {
    for (std::int64_t j = 0; j < seqlen_k; ++j) {
      const auto block = static_cast<std::uint64_t>(i / 4 * ((seqlen_k + 3) / 4) + j / 4);
      const auto draw = rocrand_draw(dropout.seed, sequence, dropout.offset / 4 * 4 + 4 * block);
      const std::uint32_t byte = draw[static_cast<std::size_t>(i % 4)] >> (8 * (j % 4)) & 0xff;
      ASSERT_EQ(mask.keep(i, j), byte >= dropout.threshold()) << i << ' ' << j;
    }
  }
}

TEST(Rocrand, ReproducesTheNumbersOf16Bits) {
  const Dropout dropout{.probability = 0.3, .seed = 99, .offset = 12, .bits = 16};
  const std::int64_t seqlen_k = 18;
  const reference::DropoutMask mask(dropout, 2, seqlen_k);
  rocrand_state_philox4x32_10 state;
  for (std::int64_t i = 0; i < 10; ++i) {
    for (std::int64_t j = 0; j < seqlen_k; ++j) {
      const auto block = static_cast<std::uint64_t>(i / 4 * ((seqlen_k + 3) / 4) + j / 4);
      rocrand_init(dropout.seed, 2, dropout.offset + 8 * block, &state);
      std::uint32_t words[8];
      for (auto& word : words) word = rocrand(&state);
      const std::uint32_t high = words[i % 4] >> (8 * (j % 4)) & 0xff;
      const std::uint32_t low = words[4 + i % 4] >> (8 * (j % 4)) & 0xff;
      ASSERT_EQ(mask.random_number(i, j), high << 8 | low) << i << ' ' << j;
    }
  }
}

}  // namespace

#else

TEST(Rocrand, HeaderIsInstalled) {
  GTEST_SKIP() << "rocrand/rocrand_philox4x32_10.h not found: install librocrand-dev";
}

#endif
