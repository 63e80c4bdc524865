/// \file
/// Meeting points of lanes: wave collectives, workgroup barriers, LDS.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "flashxdl/host/lane.hpp"
#include "flashxdl/host/runtime_api.hpp"

namespace {

namespace host = flashxdl::host;

template <class Body>
void run(const char* name, dim3 grid, dim3 block, const Body& body) {
  ASSERT_EQ(host::launch(name, grid, block, nullptr, body), hipSuccess);
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess) << host::last_launch_failure();
}

class HostWave : public ::testing::TestWithParam<host::Schedule> {
protected:
  void SetUp() override { host::set_schedule(GetParam()); }
  void TearDown() override { host::set_schedule(host::Schedule::sequential()); }
};

INSTANTIATE_TEST_SUITE_P(Schedules, HostWave,
                         ::testing::Values(host::Schedule::sequential(), host::Schedule::shuffle(1),
                                           host::Schedule::shuffle(2),
                                           host::Schedule::shuffle(77)));

struct Sum {
  unsigned in;
  unsigned out;
};

unsigned wave_sum(unsigned x) {
  Sum mine{x, 0};
  host::wave_collective("wave_sum", mine, [](const std::array<Sum*, 64>& lanes) {
    unsigned sum = 0;
    for (const Sum* lane : lanes) sum += lane != nullptr ? lane->in : 0;
    for (Sum* lane : lanes) {
      if (lane != nullptr) lane->out = sum;
    }
  });
  return mine.out;
}

TEST_P(HostWave, CollectivesSeeEveryLaneOfTheWaveAndNoOther) {
  for (const unsigned threads : {1u, 2u, 63u, 64u, 65u, 127u, 256u, 300u}) {
    std::vector<unsigned> result(threads);
    run("sums", dim3(1), dim3(threads), [&] {
      unsigned value = host::thread_id() + 1;
      for (int round = 0; round < 3; ++round) value = wave_sum(value) % 1000 + host::lane_id();
      result[host::thread_id()] = value;
    });
    for (unsigned first = 0; first < threads; first += 64) {
      const unsigned lanes = std::min(64u, threads - first);
      std::vector<unsigned> expected(lanes);
      for (unsigned i = 0; i < lanes; ++i) expected[i] = first + i + 1;
      for (int round = 0; round < 3; ++round) {
        unsigned sum = 0;
        for (const unsigned x : expected) sum += x;
        for (unsigned i = 0; i < lanes; ++i) expected[i] = sum % 1000 + i;
      }
      for (unsigned i = 0; i < lanes; ++i) ASSERT_EQ(result[first + i], expected[i]) << first + i;
    }
  }
}

TEST_P(HostWave, TheOperationRunsOnceForEachWave) {
  std::atomic<int> calls{0};
  std::atomic<int> lanes_seen{0};
  run("once", dim3(7), dim3(200), [&] {
    char mine = 0;
    host::wave_collective("once", mine, [&](const std::array<char*, 64>& lanes) {
      ++calls;
      for (const char* lane : lanes) lanes_seen += lane != nullptr ? 1 : 0;
    });
  });
  EXPECT_EQ(calls, 7 * 4);
  EXPECT_EQ(lanes_seen, 7 * 200);
}

TEST_P(HostWave, BarrierMakesLdsVisibleToTheWorkgroup) {
  constexpr unsigned threads = 320;
  std::vector<unsigned> result(threads * 16);
  run("rotate", dim3(16), dim3(threads), [&] {
    auto* tile = reinterpret_cast<unsigned*>(host::lds(threads * sizeof(unsigned)));
    const unsigned me = host::thread_id();
    unsigned value = me + 1000 * host::workgroup_id().x;
    for (int round = 0; round < 5; ++round) {
      tile[me] = value;
      host::workgroup_barrier();
      value = tile[(me + 67) % threads];
      host::workgroup_barrier();
    }
    result[host::workgroup_id().x * threads + me] = value;
  });
  for (unsigned g = 0; g < 16; ++g) {
    for (unsigned i = 0; i < threads; ++i) {
      ASSERT_EQ(result[g * threads + i], (i + 5 * 67) % threads + 1000 * g);
    }
  }
}

TEST_P(HostWave, WavesMayMeetAtDifferentCollectivesBetweenBarriers) {
  std::array<unsigned, 192> result{};
  run("uneven", dim3(1), dim3(192), [&] {
    unsigned sum = 0;
    for (unsigned i = 0; i < 3 * host::wave_id(); ++i) sum += wave_sum(1);
    host::workgroup_barrier();
    result[host::thread_id()] = sum;
  });
  for (unsigned i = 0; i < 192; ++i) ASSERT_EQ(result[i], 64 * 3 * (i / 64));
}

TEST(HostLds, StartsAsNaNInEveryWorkgroup) {
  constexpr unsigned bytes = 1000;
  std::atomic<int> not_nan{0};
  std::atomic<int> misaligned{0};
  run("poisoned", dim3(50), dim3(64), [&] {
    std::byte* lds = host::lds(bytes);
    if (reinterpret_cast<std::uintptr_t>(lds) % 64 != 0) ++misaligned;
    if (host::thread_id() == 0) {
      for (unsigned i = 0; i + 4 <= bytes; i += 4) {
        float f = 0;
        std::uint16_t h = 0;
        std::memcpy(&f, lds + i, sizeof f);
        std::memcpy(&h, lds + i, sizeof h);
        const bool bf16_nan = (h & 0x7fffu) > 0x7f80u;
        const bool fp16_nan = (h & 0x7fffu) > 0x7c00u;
        if (f == f || !bf16_nan || !fp16_nan) ++not_nan;
      }
    }
    host::workgroup_barrier();
    std::memset(lds + host::thread_id(), 0, 1);
    std::memset(lds + host::thread_id() * 8, 0, 8);
  });
  EXPECT_EQ(not_nan, 0);
  EXPECT_EQ(misaligned, 0);
}

TEST(HostLds, IsOneAddressForAWorkgroup) {
  std::vector<std::byte*> seen(256);
  run("address", dim3(1), dim3(256), [&] { seen[host::thread_id()] = host::lds(64); });
  for (const std::byte* address : seen) EXPECT_EQ(address, seen[0]);
}

TEST(HostLds, AllOf160KiBButNoMore) {
  run("largest", dim3(2), dim3(64), [] {
    std::byte* lds = host::lds(160 * 1024);
    lds[160 * 1024 - 1 - host::lane_id()] = std::byte{1};
  });
  ASSERT_EQ(host::launch("too large", dim3(2), dim3(64), nullptr,
                         [] { (void)host::lds(160 * 1024 + 1); }),
            hipSuccess);
  EXPECT_EQ(hipDeviceSynchronize(), hipErrorLaunchFailure);
  EXPECT_EQ(hipGetLastError(), hipErrorLaunchFailure);
  const std::string message = host::last_launch_failure();
  EXPECT_NE(message.find("'too large'"), std::string::npos) << message;
  EXPECT_NE(message.find("163841 bytes of LDS"), std::string::npos) << message;
}

TEST(HostLds, OverrunIsCaughtByAddressSanitizer) {
  if (!host::detail::address_sanitizer) GTEST_SKIP() << "built without AddressSanitizer";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto overrun = [](unsigned bytes) {
    (void)host::launch("overrun", dim3(1), dim3(1), nullptr, [bytes] {
      volatile std::byte* lds = host::lds(bytes);
      lds[bytes] = std::byte{1};
    });
    (void)hipDeviceSynchronize();
  };
  EXPECT_DEATH(overrun(64), "use-after-poison");
  EXPECT_DEATH(overrun(1001), "use-after-poison");
}

TEST(HostLane, DeviceFunctionsOutsideAKernelSaySo) {
  EXPECT_THROW((void)host::lane_id(), std::logic_error);
  EXPECT_THROW(host::workgroup_barrier(), std::logic_error);
  EXPECT_THROW((void)host::lds(1), std::logic_error);
}

TEST(HostAtomics, ManyWorkgroups) {
  float sum = 0;
  double sum64 = 0;
  unsigned most = 0;
  int least = 0;
  std::uint64_t count = 0;
  run("atomics", dim3(40), dim3(96), [&] {
    host::atomic_add(&sum, 1.0f);
    host::atomic_add(&sum64, 0.5);
    host::atomic_add(&count, 2);
    host::atomic_max(&most, host::thread_id() * 3 + host::workgroup_id().x);
    host::atomic_min(&least, -static_cast<int>(host::thread_id()));
  });
  EXPECT_EQ(sum, 40.0f * 96.0f);
  EXPECT_EQ(sum64, 20.0 * 96.0);
  EXPECT_EQ(count, 2u * 40 * 96);
  EXPECT_EQ(most, 95u * 3 + 39);
  EXPECT_EQ(least, -95);
  int value = 5;
  EXPECT_EQ(host::atomic_exchange(&value, 6), 5);
  EXPECT_EQ(host::atomic_compare_exchange(&value, 5, 7), 6);
  EXPECT_EQ(value, 6);
  EXPECT_EQ(host::atomic_compare_exchange(&value, 6, 7), 6);
  EXPECT_EQ(value, 7);
}

}  // namespace
