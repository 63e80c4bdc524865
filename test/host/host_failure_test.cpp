/// \file
/// Kernels that go wrong: divergence, exceptions, stack overflow. Each must be reported in words
/// and leave the runtime usable.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "flashxdl/host/lane.hpp"
#include "flashxdl/host/runtime_api.hpp"

namespace {

namespace host = flashxdl::host;

void meet(const char* name) {
  int mine = 0;
  host::wave_collective(name, mine, [](const auto&) {});
}

/// Counts the lanes that left the kernel, in whatever way.
struct Leaving {
  std::atomic<int>& count;
  ~Leaving() { ++count; }
};

class HostFailure : public ::testing::Test {
protected:
  void SetUp() override { ASSERT_EQ(hipStreamCreate(&stream_), hipSuccess); }
  void TearDown() override {
    expect_next_launch_works();
    EXPECT_EQ(hipStreamDestroy(stream_), hipSuccess);
    host::set_schedule(host::Schedule::sequential());
  }

  /// The message of the failure; checks how the API reports it.
  template <class Body>
  std::string failure_of(const char* name, dim3 grid, dim3 block, const Body& body) {
    EXPECT_EQ(host::launch(name, grid, block, stream_, body), hipSuccess);
    EXPECT_EQ(hipStreamSynchronize(stream_), hipErrorLaunchFailure);
    EXPECT_EQ(hipGetLastError(), hipErrorLaunchFailure);
    EXPECT_EQ(hipGetLastError(), hipSuccess);
    EXPECT_EQ(hipStreamSynchronize(stream_), hipSuccess);
    return host::last_launch_failure();
  }

  void expect_next_launch_works() {
    std::atomic<int> lanes{0};
    EXPECT_EQ(host::launch("next", dim3(9), dim3(130), stream_,
                           [&] {
                             meet("a");
                             host::workgroup_barrier();
                             ++lanes;
                           }),
              hipSuccess);
    EXPECT_EQ(hipStreamSynchronize(stream_), hipSuccess);
    EXPECT_EQ(lanes, 9 * 130);
  }

  hipStream_t stream_ = nullptr;
};

#define EXPECT_CONTAINS(text, part) \
  EXPECT_NE((text).find(part), std::string::npos) << (text) << "\n  lacks: " << (part)

TEST_F(HostFailure, LaneReturnsWhileOthersWaitAtACollective) {
  std::atomic<int> left{0};
  const auto message = failure_of("early return", dim3(1), dim3(64), [&] {
    const Leaving leaving{left};
    if (host::lane_id() == 5) return;
    meet("shuffle");
  });
  EXPECT_CONTAINS(message, "kernel 'early return', workgroup (0,0,0): divergence");
  EXPECT_CONTAINS(message, "wave 0 lane 0 (thread (0,0,0)) waits at 'shuffle'");
  EXPECT_CONTAINS(message, "but wave 0 lane 5 (thread (5,0,0)) returned from the kernel");
  EXPECT_CONTAINS(message, "5 of the wave's 64 lanes had arrived");
  EXPECT_EQ(left, 6);  // lanes 0 to 5 had started; all were unwound
}

TEST_F(HostFailure, LanesArriveAfterOthersReturned) {
  const auto message = failure_of("late", dim3(3, 2), dim3(8, 16), [&] {
    const bool here = host::workgroup_id() == dim3(2, 1, 0) && host::wave_id() == 1;
    if (here && host::lane_id() < 40) return;
    meet("reduce");
  });
  EXPECT_CONTAINS(message, "workgroup (2,1,0)");
  EXPECT_CONTAINS(message, "wave 1 lane 0 (thread (0,8,0)) returned from the kernel");
  EXPECT_CONTAINS(message, "wave 1 lane 40 (thread (0,13,0)) waits at 'reduce'");
}

TEST_F(HostFailure, LanesWaitAtDifferentOperations) {
  const auto message = failure_of("branches", dim3(1), dim3(64), [&] {
    if (host::lane_id() % 2 == 0) {
      meet("even");
    } else {
      meet("odd");
    }
  });
  EXPECT_CONTAINS(message, "lane 0 (thread (0,0,0)) waits at 'even'");
  EXPECT_CONTAINS(message, "lane 1 (thread (1,0,0)) waits at 'odd'");
}

TEST_F(HostFailure, OneNameWithTwoOperandTypes) {
  const auto message = failure_of("types", dim3(1), dim3(64), [&] {
    if (host::lane_id() < 32) {
      float mine = 0;
      host::wave_collective("mfma", mine, [](const auto&) {});
    } else {
      double mine = 0;
      host::wave_collective("mfma", mine, [](const auto&) {});
    }
  });
  EXPECT_CONTAINS(message, "lane 32 (thread (32,0,0)) waits at 'mfma'");
  EXPECT_CONTAINS(message, "same name, different operand types");
}

TEST_F(HostFailure, EqualNamesAtDifferentAddressesMeet) {
  const std::string copies[2] = {"exchange", "exchange"};
  std::atomic<int> met{0};
  ASSERT_EQ(host::launch("names", dim3(1), dim3(64), stream_,
                         [&] {
                           meet(copies[host::lane_id() % 2].c_str());
                           ++met;
                         }),
            hipSuccess);
  EXPECT_EQ(hipStreamSynchronize(stream_), hipSuccess);
  EXPECT_EQ(met, 64);
}

TEST_F(HostFailure, BarrierAgainstCollectiveInOneWave) {
  const auto message = failure_of("mixed", dim3(1), dim3(64), [&] {
    if (host::lane_id() == 63) {
      meet("last");
    } else {
      host::workgroup_barrier();
    }
  });
  EXPECT_CONTAINS(message, "lane 0 (thread (0,0,0)) waits at 'workgroup barrier'");
  EXPECT_CONTAINS(message, "lane 63 (thread (63,0,0)) waits at 'last'");
}

TEST_F(HostFailure, AWaveThatReturnedMissesTheBarrier) {
  for (const unsigned gone : {0u, 1u, 2u}) {
    std::atomic<int> left{0};
    const auto message = failure_of("lost wave", dim3(1), dim3(192), [&] {
      const Leaving leaving{left};
      if (host::wave_id() == gone) return;
      host::workgroup_barrier();
    });
    EXPECT_CONTAINS(message, "waits at 'workgroup barrier'");
    EXPECT_CONTAINS(message, "but wave " + std::to_string(gone) + " lane");
    EXPECT_CONTAINS(message, "returned from the kernel");
    EXPECT_GT(left, 64);
    EXPECT_EQ(left % 64, 0);  // a wave that had started was unwound as a whole
  }
}

TEST_F(HostFailure, UnderShuffledSchedulesToo) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    host::set_schedule(host::Schedule::shuffle(seed));
    const auto message = failure_of("shuffled", dim3(4), dim3(200), [&] {
      meet("all");
      if (host::thread_id() == 77) return;
      host::workgroup_barrier();
    });
    EXPECT_CONTAINS(message, "wave 1 lane 13 (thread (77,0,0)) returned from the kernel");
    EXPECT_CONTAINS(message, "waits at 'workgroup barrier'");
  }
}

TEST_F(HostFailure, ExceptionsOfTheKernel) {
  std::atomic<int> left{0};
  auto message = failure_of("throwing", dim3(1), dim3(128), [&] {
    const Leaving leaving{left};
    meet("first");
    if (host::thread_id() == 70) throw std::runtime_error("no such tile");
    host::workgroup_barrier();
  });
  EXPECT_CONTAINS(message, "kernel 'throwing'");
  EXPECT_CONTAINS(message, "wave 1 lane 6 (thread (70,0,0)) threw an exception: no such tile");
  EXPECT_EQ(left, 128);
  message = failure_of("throwing", dim3(1), dim3(2), [] { throw 3; });
  EXPECT_CONTAINS(message, "threw an exception that is not a std::exception");
}

TEST_F(HostFailure, ExceptionsCaughtWithinTheKernelAreNoFailure) {
  std::atomic<int> caught{0};
  ASSERT_EQ(host::launch("catching", dim3(3), dim3(64), stream_,
                         [&] {
                           try {
                             throw std::runtime_error("mine");
                           } catch (const std::runtime_error&) {
                             ++caught;
                           }
                           meet("after");
                         }),
            hipSuccess);
  EXPECT_EQ(hipStreamSynchronize(stream_), hipSuccess);
  EXPECT_EQ(caught, 3 * 64);
}

struct MeetsInItsDestructor {
  ~MeetsInItsDestructor() {
    meet("destructor");
    host::workgroup_barrier();
  }
};

TEST_F(HostFailure, DestructorsMayMeetWhileTheWorkgroupIsUnwound) {
  const auto message = failure_of("destructors", dim3(1), dim3(128), [&] {
    const MeetsInItsDestructor object;
    if (host::thread_id() == 3) meet("lonely");
    host::workgroup_barrier();
  });
  EXPECT_CONTAINS(message, "'lonely'");
}

TEST_F(HostFailure, TheRemainingWorkgroupsAreCancelled) {
  std::atomic<unsigned> ran{0};
  (void)failure_of("cancelled", dim3(100000), dim3(64), [&] {
    if (host::lane_id() == 0) ++ran;
    if (host::lane_id() == 1) throw std::runtime_error("stop");
  });
  EXPECT_LT(ran, 1000u);
}

TEST_F(HostFailure, LaterWorkOnTheStreamStillRuns) {
  int after = 0;
  ASSERT_EQ(host::launch("fails", dim3(1), dim3(1), stream_, [] { throw 1; }), hipSuccess);
  ASSERT_EQ(host::launch("runs", dim3(1), dim3(1), stream_, [&] { after = 1; }), hipSuccess);
  EXPECT_EQ(hipStreamSynchronize(stream_), hipErrorLaunchFailure);
  EXPECT_EQ(after, 1);
  (void)hipGetLastError();
}

TEST_F(HostFailure, EveryWayOfWaitingReportsIt) {
  const auto fail_on = [](hipStream_t stream) {
    ASSERT_EQ(host::launch("fails", dim3(1), dim3(1), stream, [] { throw 1; }), hipSuccess);
  };
  fail_on(stream_);
  EXPECT_EQ(hipDeviceSynchronize(), hipErrorLaunchFailure);
  EXPECT_EQ(hipGetLastError(), hipErrorLaunchFailure);

  fail_on(nullptr);
  int from = 1, to = 0;
  EXPECT_EQ(hipMemcpy(&to, &from, sizeof to, hipMemcpyHostToHost), hipErrorLaunchFailure);
  EXPECT_EQ(hipGetLastError(), hipErrorLaunchFailure);

  fail_on(stream_);
  while (hipStreamQuery(stream_) == hipErrorNotReady) {
  }
  EXPECT_EQ(hipGetLastError(), hipErrorLaunchFailure);

  fail_on(stream_);
  hipEvent_t event = nullptr;
  ASSERT_EQ(hipEventCreate(&event), hipSuccess);
  ASSERT_EQ(hipEventRecord(event, stream_), hipSuccess);
  EXPECT_EQ(hipEventSynchronize(event), hipErrorLaunchFailure);
  EXPECT_EQ(hipGetLastError(), hipErrorLaunchFailure);
  ASSERT_EQ(hipEventDestroy(event), hipSuccess);

  fail_on(stream_);
  while (hipPeekAtLastError() == hipSuccess) {  // comes by itself when the stream gets there
  }
  EXPECT_EQ(hipGetLastError(), hipErrorLaunchFailure);
  EXPECT_EQ(hipStreamSynchronize(stream_), hipSuccess);
}

/// Writes every byte of a frame of about `kib` KiB.
__attribute__((noinline)) int use_stack(unsigned kib) {
  constexpr unsigned frame = 1024;
  volatile char bytes[frame];
  for (unsigned i = 0; i < frame; ++i) bytes[i] = static_cast<char>(i);
  return kib <= 1 ? bytes[frame / 2] : use_stack(kib - 1) + bytes[1];
}

TEST_F(HostFailure, StackOverflow) {
  const auto kib = static_cast<unsigned>(host::detail::stack_bytes() / 1024);
  const auto overflow = [&](unsigned depth) {
    return [depth] {
      if (host::lane_id() == 9) (void)use_stack(depth);
    };
  };
  if (host::detail::address_sanitizer) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    // Twice the stack, for half of it may go to the sanitizer's own copies of the frames; what
    // then overflows is found either by the poison below the stack or by the canary.
    EXPECT_DEATH(
        {
          (void)host::launch("deep", dim3(1), dim3(64), nullptr, overflow(2 * kib));
          if (hipDeviceSynchronize() == hipErrorLaunchFailure) std::abort();
        },
        "use-after-poison|stack overflow");
    return;
  }
  ASSERT_EQ(host::launch("shallow", dim3(1), dim3(64), stream_, overflow(kib / 2)), hipSuccess);
  EXPECT_EQ(hipStreamSynchronize(stream_), hipSuccess);
  const auto message = failure_of("deep", dim3(1), dim3(64), overflow(kib));
  EXPECT_CONTAINS(message, "kernel 'deep', workgroup (0,0,0): stack overflow");
  EXPECT_CONTAINS(message, "wave 0 lane 9 (thread (9,0,0))");
  EXPECT_CONTAINS(message, "FLASHXDL_HOST_STACK_KIB");
}

}  // namespace
