/// \file
/// HIP's cross-lane operations and atomics against their definitions.

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstdint>
#include <functional>

#include "flashxdl/host/hip_runtime.hpp"

namespace {

namespace host = flashxdl::host;

template <class T>
T value_of(unsigned lane) {
  return static_cast<T>(lane * 3 + 1);
}

/// `source(lane)` must be the lane whose value `operation(value)` gives, for every lane.
template <class T, class Operation, class Source>
void expect_reads(const Operation& operation, const Source& source, const char* what) {
  std::array<T, 64> result{};
  ASSERT_EQ(host::launch(what, dim3(1), dim3(64), nullptr,
                         [&] { result[threadIdx.x] = operation(value_of<T>(threadIdx.x)); }),
            hipSuccess);
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess) << host::last_launch_failure();
  for (unsigned lane = 0; lane < 64; ++lane) {
    EXPECT_EQ(result[lane], value_of<T>(source(lane))) << what << ", lane " << lane;
  }
}

template <class T>
void check_shuffles() {
  for (const int width : {2, 8, 16, 32, 64}) {
    const auto w = static_cast<unsigned>(width);
    for (unsigned delta = 0; delta < w; ++delta) {
      const int d = static_cast<int>(delta);
      expect_reads<T>([&](T v) { return __shfl(v, d, width); },
                      [&](unsigned lane) { return lane / w * w + delta; }, "__shfl");
      expect_reads<T>([&](T v) { return __shfl_xor(v, d, width); },
                      [&](unsigned lane) { return lane ^ delta; }, "__shfl_xor");
      expect_reads<T>([&](T v) { return __shfl_up(v, delta, width); },
                      [&](unsigned lane) { return lane % w >= delta ? lane - delta : lane; },
                      "__shfl_up");
      expect_reads<T>([&](T v) { return __shfl_down(v, delta, width); },
                      [&](unsigned lane) { return lane % w + delta < w ? lane + delta : lane; },
                      "__shfl_down");
    }
  }
}

TEST(HipDeviceFunctions, ShuffleInt) {
  check_shuffles<int>();
}
TEST(HipDeviceFunctions, ShuffleUnsigned) {
  check_shuffles<unsigned>();
}
TEST(HipDeviceFunctions, ShuffleFloat) {
  check_shuffles<float>();
}
TEST(HipDeviceFunctions, ShuffleDouble) {
  check_shuffles<double>();
}

TEST(HipDeviceFunctions, EachLaneMayNameItsOwnSource) {
  expect_reads<int>([](int v) { return __shfl(v, static_cast<int>(63 - threadIdx.x)); },
                    [](unsigned lane) { return 63 - lane; }, "reversed");
  expect_reads<int>([](int v) { return __shfl(v, 65); }, [](unsigned) { return 1u; }, "wrapped");
  expect_reads<int>([](int v) { return __shfl_xor(v, 32, 32); },
                    [](unsigned lane) { return lane < 32 ? lane : lane - 32; },
                    "xor beyond the group");
}

TEST(HipDeviceFunctions, Votes) {
  std::array<unsigned long long, 100> ballots{};
  std::array<int, 100> any{}, all{}, none{};
  ASSERT_EQ(host::launch("votes", dim3(1), dim3(100), nullptr,
                         [&] {
                           const unsigned i = threadIdx.x;
                           ballots[i] = __ballot(i % 3 == 0);
                           any[i] = __any(i == 70);
                           all[i] = __all(i < 99);
                           none[i] = __any(0) + 2 * __all(1);
                         }),
            hipSuccess);
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess) << host::last_launch_failure();
  unsigned long long expected[2] = {};
  for (unsigned i = 0; i < 100; i += 3) expected[i / 64] |= 1ull << (i % 64);
  for (unsigned i = 0; i < 100; ++i) {
    EXPECT_EQ(ballots[i], expected[i / 64]);
    EXPECT_EQ(any[i], i < 64 ? 0 : 1);
    EXPECT_EQ(all[i], i < 64 ? 1 : 0);
    EXPECT_EQ(none[i], 2);
  }
}

TEST(HipDeviceFunctions, Atomics) {
  int sum = 0, least = 1000, most = -1000, spins = 0;
  unsigned claimed = 0;
  float fsum = 0;
  unsigned long long wide = 0;
  ASSERT_EQ(host::launch("atomics", dim3(20), dim3(64), nullptr,
                         [&] {
                           const int i = static_cast<int>(threadIdx.x + 64 * blockIdx.x);
                           atomicAdd(&sum, i);
                           atomicAdd(&fsum, 0.25f);
                           atomicAdd(&wide, 1ull << 33);
                           atomicMin(&least, i - 10);
                           atomicMax(&most, i);
                           if (atomicCAS(&claimed, 0u, 1u) == 0u) atomicExch(&spins, i + 1);
                         }),
            hipSuccess);
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
  EXPECT_EQ(sum, 1280 * 1279 / 2);
  EXPECT_EQ(fsum, 320.0f);
  EXPECT_EQ(wide, 1280ull << 33);
  EXPECT_EQ(least, -10);
  EXPECT_EQ(most, 1279);
  EXPECT_EQ(claimed, 1u);
  EXPECT_GT(spins, 0);
}

TEST(HipDeviceFunctions, CoordinatesConvert) {
  dim3 block, grid;
  unsigned sum = 0;
  ASSERT_EQ(host::launch("convert", dim3(1, 2), dim3(2, 3, 4), nullptr,
                         [&] {
                           block = blockDim;
                           grid = gridDim;
                           atomicAdd(&sum, threadIdx.x + 10 * threadIdx.y + 100 * threadIdx.z +
                                               1000 * blockIdx.y);
                         }),
            hipSuccess);
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
  EXPECT_EQ(block, dim3(2, 3, 4));
  EXPECT_EQ(grid, dim3(1, 2));
  EXPECT_EQ(sum, 2 * (12 * 1 + 10 * 8 * 3 + 100 * 6 * 6) + 24 * 1000u);
  EXPECT_EQ(warpSize, 64);
  EXPECT_EQ(__popc(0xf0f0u), 8);
  EXPECT_EQ(__popcll(~0ull), 64);
}

}  // namespace
