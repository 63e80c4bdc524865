// Philox4x32 against Random123's known answers (its kat_vectors: counter, key, result).

#include "flashxdl/reference/philox.hpp"

#include <gtest/gtest.h>

namespace {

using flashxdl::reference::philox4x32;
using flashxdl::reference::philox_draw;
using flashxdl::reference::PhiloxCounter;
using flashxdl::reference::PhiloxKey;

constexpr std::uint32_t ones = 0xffffffffu;
constexpr PhiloxCounter pi_counter{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344};
constexpr PhiloxKey pi_key{0xa4093822, 0x299f31d0};

TEST(Philox, KnownAnswersOf10Rounds) {
  EXPECT_EQ(philox4x32({}, {}), (PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}),
            (PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32(pi_counter, pi_key),
            (PhiloxCounter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Philox, KnownAnswersOf7Rounds) {
  EXPECT_EQ(philox4x32({}, {}, 7), (PhiloxCounter{0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48}));
  EXPECT_EQ(philox4x32({ones, ones, ones, ones}, {ones, ones}, 7),
            (PhiloxCounter{0x5207ddc2, 0x45165e59, 0x4d8ee751, 0x8c52f662}));
  EXPECT_EQ(philox4x32(pi_counter, pi_key, 7),
            (PhiloxCounter{0x4dfccaba, 0x190a87f0, 0xc47362ba, 0xb6b5242a}));
}

TEST(Philox, DrawPutsPositionLowAndSequenceHigh) {
  EXPECT_EQ(philox_draw(0x299f31d0'a4093822, 0x03707344'13198a2e, 0x85a308d3'243f6a88),
            philox4x32(pi_counter, pi_key));
}

static_assert(philox4x32({}, {})[0] == 0x6627e8d5, "usable in constant expressions");

}  // namespace
