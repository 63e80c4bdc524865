/// \file
/// Shuffled schedules show missing synchronisation as wrong results, and are repeatable.

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <string_view>
#include <vector>

#include "flashxdl/host/lane.hpp"
#include "flashxdl/host/runtime_api.hpp"

namespace {

namespace host = flashxdl::host;

constexpr unsigned threads = 256;
constexpr unsigned groups = 3;

class HostSchedule : public ::testing::Test {
protected:
  void TearDown() override { host::set_schedule(host::Schedule::sequential()); }

  template <class Body>
  static void run(host::Schedule schedule, const Body& body) {
    host::set_schedule(schedule);
    ASSERT_EQ(host::launch("scheduled", dim3(groups), dim3(threads), nullptr, body), hipSuccess);
    ASSERT_EQ(hipDeviceSynchronize(), hipSuccess) << host::last_launch_failure();
  }

  /// Of `seeds` shuffled runs of a kernel that hands each lane another's number, how many are
  /// right.
  template <class Kernel>
  static int right_runs(int seeds, const Kernel& exchange) {
    int right = 0;
    for (int seed = 0; seed < seeds; ++seed) {
      std::vector<unsigned> result(groups * threads);
      run(host::Schedule::shuffle(static_cast<std::uint64_t>(seed)),
          [&] { result[host::workgroup_id().x * threads + host::thread_id()] = exchange(); });
      bool all = true;
      for (unsigned i = 0; i < result.size(); ++i) all = all && result[i] == 1;
      right += all ? 1 : 0;
    }
    return right;
  }
};

unsigned* tile() {
  return reinterpret_cast<unsigned*>(host::lds(threads * sizeof(unsigned)));
}

void wave_sync() {
  char mine = 0;
  host::wave_collective("wave_sync", mine, [](const auto&) {});
}

/// Waves talk through LDS: lane i reads what lane i + 64 wrote.
template <bool barrier>
unsigned across_waves() {
  const unsigned me = host::thread_id();
  tile()[me] = me;
  // Something that all kernels do between a write and a read: the lanes of the wave meet.
  wave_sync();
  if (barrier) host::workgroup_barrier();
  const unsigned from = (me + 64) % threads;
  return tile()[from] == from ? 1 : 0;
}

/// The lanes of a wave talk through LDS: each reads what its neighbour wrote.
template <bool meeting>
unsigned within_a_wave() {
  const unsigned me = host::thread_id();
  tile()[me] = me;
  if (meeting) wave_sync();
  const unsigned from = me ^ 1u;
  return tile()[from] == from ? 1 : 0;
}

/// A tile used twice: the second barrier, before it is overwritten, is the one that people forget.
template <bool barrier>
unsigned reuse() {
  const unsigned me = host::thread_id();
  unsigned right = 1;
  for (unsigned round = 0; round < 4; ++round) {
    tile()[me] = me + 1000 * round;
    host::workgroup_barrier();
    const unsigned from = (me + 64) % threads;
    if (tile()[from] != from + 1000 * round) right = 0;
    if (barrier) host::workgroup_barrier();
  }
  return right;
}

TEST_F(HostSchedule, MissingBarrierBetweenWavesShows) {
  EXPECT_LT(right_runs(20, across_waves<false>), 20);
  EXPECT_EQ(right_runs(20, across_waves<true>), 20);
}

TEST_F(HostSchedule, MissingMeetingWithinAWaveShows) {
  EXPECT_LT(right_runs(20, within_a_wave<false>), 20);
  EXPECT_EQ(right_runs(20, within_a_wave<true>), 20);
}

TEST_F(HostSchedule, MissingBarrierBeforeReuseShows) {
  EXPECT_LT(right_runs(20, reuse<false>), 20);
  EXPECT_EQ(right_runs(20, reuse<true>), 20);
}

/// The order in which the lanes of one workgroup pass a few points.
std::vector<unsigned> trace() {
  std::vector<unsigned> order;
  EXPECT_EQ(host::launch("trace", dim3(1), dim3(threads), nullptr,
                         [&] {
                           for (int round = 0; round < 3; ++round) {
                             order.push_back(host::thread_id());
                             wave_sync();
                             order.push_back(host::thread_id());
                             host::workgroup_barrier();
                           }
                         }),
            hipSuccess);
  EXPECT_EQ(hipDeviceSynchronize(), hipSuccess);
  return order;
}

TEST_F(HostSchedule, ASeedRepeatsItsOrder) {
  host::set_schedule(host::Schedule::shuffle(5));
  const auto first = trace();
  EXPECT_EQ(first, trace());
  host::set_schedule(host::Schedule::shuffle(6));
  EXPECT_NE(first, trace());
  host::set_schedule(host::Schedule::sequential());
  const auto plain = trace();
  EXPECT_NE(first, plain);
  EXPECT_EQ(plain, trace());
}

TEST_F(HostSchedule, ShufflesWavesLanesAndWorkgroups) {
  host::set_schedule(host::Schedule::shuffle(3));
  const auto order = trace();
  int wave_changes = 0;
  int lane_steps = 0;
  for (std::size_t i = 1; i < order.size(); ++i) {
    wave_changes += order[i] / 64 != order[i - 1] / 64 ? 1 : 0;
    lane_steps += order[i] != order[i - 1] + 1 ? 1 : 0;
  }
  EXPECT_GT(wave_changes, 6 * 4 / 2);
  EXPECT_GT(lane_steps, static_cast<int>(order.size() / 2));
}

TEST_F(HostSchedule, ParsesTheEnvironment) {
  using host::detail::parse_schedule;
  host::Schedule schedule = host::Schedule::shuffle(9);
  EXPECT_TRUE(parse_schedule("", schedule));
  EXPECT_EQ(schedule, host::Schedule::sequential());
  EXPECT_TRUE(parse_schedule("shuffle:12", schedule));
  EXPECT_EQ(schedule, host::Schedule::shuffle(12));
  EXPECT_TRUE(parse_schedule("sequential", schedule));
  EXPECT_EQ(schedule, host::Schedule::sequential());
  for (const char* bad :
       {"shuffle", "shuffle:", "shuffle:x", "shuffle:1x", "shuffle:-1", "random"}) {
    EXPECT_FALSE(parse_schedule(bad, schedule)) << bad;
  }
}

}  // namespace
