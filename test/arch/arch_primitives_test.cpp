// Each primitive of the CPU's machine layer against its definition.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "flashxdl/arch/arch.hpp"
#include "support/on_lanes.hpp"

namespace flashxdl::test {
namespace {

TEST(Lanes, SwapWithinQuadsAndHalves) {
  std::array<std::uint32_t, 64> one{}, two{};
  std::array<float, 64> half{};
  on_lanes(64, [&] {
    const std::uint32_t lane = arch::lane_id();
    one[lane] = arch::quad_swap<1>(lane);
    two[lane] = arch::quad_swap<2>(lane);
    half[lane] = arch::half_swap(static_cast<float>(lane));
  });
  for (std::uint32_t lane = 0; lane < 64; ++lane) {
    EXPECT_EQ(one[lane], lane ^ 1u);
    EXPECT_EQ(two[lane], lane ^ 2u);
    EXPECT_EQ(half[lane], static_cast<float>(lane ^ 32u));
  }
}

TEST(Lanes, AnyIsTrueIfOneLaneIs) {
  std::array<int, 128> with{}, without{};
  on_lanes(128, [&] {
    with[arch::thread_id()] = arch::any(arch::thread_id() == 77) ? 1 : 0;
    without[arch::thread_id()] = arch::any(false) ? 1 : 0;
  });
  for (std::size_t i = 0; i < 128; ++i) {
    EXPECT_EQ(with[i], i < 64 ? 0 : 1) << "only the wave of lane 77 sees it";
    EXPECT_EQ(without[i], 0);
  }
}

TEST(Buffers, GiveZeroAndDropStoresOutOfRange) {
  std::vector<std::uint32_t> memory(8);
  for (std::uint32_t i = 0; i < 8; ++i) memory[i] = 0x01010101u * (i + 1);
  const arch::Buffer buffer(memory.data(), 18);  // 4 words and a half
  EXPECT_EQ(buffer.load<1>(12)[0], 0x04040404u);
  EXPECT_EQ(buffer.load<1>(16)[0], 0u) << "a word that is only partly inside";
  const auto four = buffer.load<4>(8);
  EXPECT_EQ(four[0], 0x03030303u);
  EXPECT_EQ(four[1], 0x04040404u);
  EXPECT_EQ(four[2], 0u);
  EXPECT_EQ(four[3], 0u);
  EXPECT_EQ(buffer.load_u16(16), 0x0505u);
  EXPECT_EQ(buffer.load_u16(18), 0u);
  EXPECT_EQ(buffer.load<4>(0xffffffffu)[0], 0u);

  buffer.store(8, Registers<std::uint32_t, 4>::filled(7));
  buffer.store_u16(18, 9);
  buffer.store_u32(0xfffffffeu, 9);
  buffer.store_u8(17, 1);
  EXPECT_EQ(memory[2], 7u);
  EXPECT_EQ(memory[3], 7u);
  EXPECT_EQ(memory[4], 0x05050105u);
  for (std::size_t i = 5; i < 8; ++i) EXPECT_EQ(memory[i], 0x01010101u * (i + 1));
}

TEST(Math, PacksAsTheNumbersConvert) {
  std::mt19937 random(3);
  for (int i = 0; i < 100000; ++i) {
    const float a = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    const float b = std::bit_cast<float>(static_cast<std::uint32_t>(random()));
    if (std::isnan(a) || std::isnan(b)) continue;
    const std::uint32_t h = arch::pack<fp16>(a, b);
    EXPECT_EQ(arch::low_half<fp16>(h),
              fp16_bits_to_float(std::bit_cast<std::uint16_t>(static_cast<fp16>(a))));
    EXPECT_EQ(arch::high_half<fp16>(h),
              fp16_bits_to_float(std::bit_cast<std::uint16_t>(static_cast<fp16>(b))));
    const std::uint32_t w = arch::pack<bf16>(a, b);
    const float back = arch::low_half<bf16>(w);
    if (std::isfinite(back) && std::fabs(a) > 1e-30f) {
      EXPECT_LE(std::fabs(back - a), std::fabs(a) * 0x1p-8f);
    }
    EXPECT_EQ(arch::high_half<bf16>(w), Number<bf16>::to_float(Number<bf16>::from_float(b)));
  }
}

TEST(Math, SelectsBytes) {
  EXPECT_EQ(arch::select_bytes<0x07060302>(0xddccbbaau, 0x44332211u), 0xddcc4433u);
  EXPECT_EQ(arch::select_bytes<0x05040100>(0xddccbbaau, 0x44332211u), 0xbbaa2211u);
  EXPECT_EQ(arch::select_bytes<0x0c000c07>(0xddccbbaau, 0x44332211u), 0x001100ddu);
}

TEST(Math, AddsWithSaturation) {
  constexpr auto top = std::numeric_limits<std::uint32_t>::max();
  EXPECT_EQ(arch::add_saturated(3u, 4u), 7u);
  EXPECT_EQ(arch::add_saturated(top, 0u), top);
  EXPECT_EQ(arch::add_saturated(top, 1u), top);
  EXPECT_EQ(arch::add_saturated(top - 4, 4u), top);
  EXPECT_EQ(arch::add_saturated(0x80000000u, 0x80000000u), top);
}

TEST(Math, MaximumTakesTheNumber) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(arch::max(nan, 2.0f), 2.0f);
  EXPECT_EQ(arch::max(-1.0f, 2.0f), 2.0f);
}

TEST(Lds, StartsPoisoned) {
  std::uint32_t bits = 0;
  on_lanes(64, [&] {
    const auto lds = arch::workgroup_lds<1024>();
    if (arch::thread_id() == 0) bits = lds.read<1>(512)[0];
  });
  EXPECT_TRUE(std::isnan(std::bit_cast<float>(bits)));
  EXPECT_TRUE(std::isnan(arch::low_half<fp16>(bits)));
  EXPECT_TRUE(std::isnan(arch::low_half<bf16>(bits)));
}

}  // namespace
}  // namespace flashxdl::test
