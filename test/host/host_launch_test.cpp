/// \file
/// Launching: coordinates, limits, names, many workgroups, sharing the pool.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "flashxdl/host/lane.hpp"
#include "flashxdl/host/runtime_api.hpp"

namespace {

namespace host = flashxdl::host;

/// Every lane of every workgroup once, each with the coordinates of its place.
void expect_every_lane_once(dim3 grid, dim3 block) {
  const std::size_t lanes_per_block = std::size_t{block.x} * block.y * block.z;
  const std::size_t blocks = std::size_t{grid.x} * grid.y * grid.z;
  std::vector<std::atomic<int>> seen(blocks * lanes_per_block);
  std::atomic<int> wrong{0};
  const hipError_t error = host::launch("coordinates", grid, block, nullptr, [&] {
    const dim3 t = host::thread_index();
    const dim3 b = host::workgroup_id();
    const std::size_t in_block = t.x + block.x * (t.y + std::size_t{block.y} * t.z);
    const std::size_t in_grid = b.x + grid.x * (b.y + std::size_t{grid.y} * b.z);
    const bool right = t.x < block.x && t.y < block.y && t.z < block.z && b.x < grid.x &&
                       b.y < grid.y && b.z < grid.z && host::thread_id() == in_block &&
                       host::lane_id() == in_block % 64 && host::wave_id() == in_block / 64 &&
                       host::block_dim() == block && host::grid_dim() == grid;
    if (!right) ++wrong;
    ++seen.at(in_grid * lanes_per_block + in_block);
  });
  ASSERT_EQ(error, hipSuccess);
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
  EXPECT_EQ(wrong, 0);
  for (std::size_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], 1) << "lane " << i;
}

TEST(HostLaunch, CoordinatesInThreeDimensions) {
  expect_every_lane_once(dim3(1), dim3(1));
  expect_every_lane_once(dim3(3, 2, 4), dim3(8, 4, 2));
  expect_every_lane_once(dim3(5, 1, 3), dim3(7, 3, 5));  // 105 lanes: a wave of 64 and one of 41
  expect_every_lane_once(dim3(2, 3), dim3(1, 1, 1024));
  expect_every_lane_once(dim3(2), dim3(1024));
  expect_every_lane_once(dim3(7), dim3(63));
}

TEST(HostLaunch, CoordinatesUnderShuffledSchedules) {
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    host::set_schedule(host::Schedule::shuffle(seed));
    expect_every_lane_once(dim3(3, 2, 4), dim3(9, 4, 5));
    expect_every_lane_once(dim3(1), dim3(256));
  }
  host::set_schedule(host::Schedule::sequential());
  expect_every_lane_once(dim3(3, 2, 4), dim3(9, 4, 5));
}

TEST(HostLaunch, SequentialScheduleRunsLanesAndWavesInOrder) {
  std::vector<unsigned> order;  // one workgroup: one thread at a time
  ASSERT_EQ(host::launch("order", dim3(1), dim3(130), nullptr,
                         [&] { order.push_back(host::thread_id()); }),
            hipSuccess);
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
  ASSERT_EQ(order.size(), 130u);
  for (unsigned i = 0; i < order.size(); ++i) EXPECT_EQ(order[i], i);
}

TEST(HostLaunch, RefusesWhatHipRefuses) {
  const auto launch = [](dim3 grid, dim3 block) {
    return host::launch("refused", grid, block, nullptr, [] { FAIL() << "was launched"; });
  };
  for (const auto& [grid, block] : std::vector<std::pair<dim3, dim3>>{
           {dim3(0), dim3(64)},
           {dim3(1, 0), dim3(64)},
           {dim3(1, 1, 0), dim3(64)},
           {dim3(1), dim3(0)},
           {dim3(1), dim3(64, 0)},
           {dim3(1), dim3(64, 1, 0)},
           {dim3(1), dim3(1025)},
           {dim3(1), dim3(32, 33)},
           {dim3(1), dim3(65536, 65536, 2)},
           {dim3(1, 65536), dim3(64)},
           {dim3(1, 1, 65536), dim3(64)},
           {dim3(1u << 26), dim3(64)},
       }) {
    EXPECT_EQ(launch(grid, block), hipErrorInvalidConfiguration)
        << "grid " << grid.x << ' ' << grid.y << ' ' << grid.z << " block " << block.x << ' '
        << block.y << ' ' << block.z;
    EXPECT_EQ(hipPeekAtLastError(), hipErrorInvalidConfiguration);
    EXPECT_EQ(hipGetLastError(), hipErrorInvalidConfiguration);
    EXPECT_EQ(hipGetLastError(), hipSuccess);
  }
  int on_the_stack = 0;
  EXPECT_EQ(host::launch("refused", dim3(1), dim3(1), reinterpret_cast<hipStream_t>(&on_the_stack),
                         [] {}),
            hipErrorInvalidResourceHandle);
  EXPECT_EQ(hipGetLastError(), hipErrorInvalidResourceHandle);
}

void add_to(int* target, int value, const char* /*unused*/) {
  if (host::thread_id() == 0) *target += value;
}

TEST(HostLaunch, CopiesArgumentsAtTheCall) {
  hipStream_t stream = nullptr;
  ASSERT_EQ(hipStreamCreate(&stream), hipSuccess);
  int sum = 0;
  for (int i = 1; i <= 100; ++i) {
    ASSERT_EQ(
        host::launch_function("add_to", add_to, dim3(1), dim3(64), 0, stream, &sum, i, "text"),
        hipSuccess);
  }
  ASSERT_EQ(hipStreamSynchronize(stream), hipSuccess);
  EXPECT_EQ(sum, 5050);
  ASSERT_EQ(hipStreamDestroy(stream), hipSuccess);
  EXPECT_EQ(
      host::launch_function("null", static_cast<void (*)()>(nullptr), dim3(1), dim3(1), 0, nullptr),
      hipErrorInvalidDeviceFunction);
  EXPECT_EQ(hipGetLastError(), hipErrorInvalidDeviceFunction);
}

TEST(HostLaunch, DestroysTheBodyBeforeTheStreamIsDone) {
  const auto owner = std::make_shared<int>(1);
  ASSERT_EQ(host::launch("owner", dim3(2), dim3(64), nullptr, [owner] { (void)*owner; }),
            hipSuccess);
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
  EXPECT_EQ(owner.use_count(), 1);
}

struct NamedBody {
  void operator()() const { throw 1; }
};

TEST(HostLaunch, NamelessKernelsAreNamedAfterTheirType) {
  ASSERT_EQ(host::launch(nullptr, dim3(1), dim3(1), nullptr, NamedBody{}), hipSuccess);
  EXPECT_EQ(hipDeviceSynchronize(), hipErrorLaunchFailure);
  EXPECT_EQ(hipGetLastError(), hipErrorLaunchFailure);
  EXPECT_NE(host::last_launch_failure().find("NamedBody'"), std::string::npos)
      << host::last_launch_failure();
}

TEST(HostLaunch, ManyTinyWorkgroups) {
  using Clock = std::chrono::steady_clock;
  constexpr unsigned groups = 65536;
  std::atomic<std::uint64_t> sum{0};
  ASSERT_EQ(host::launch("warm-up", dim3(64), dim3(256), nullptr, [] {}), hipSuccess);
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
  const auto start = Clock::now();
  ASSERT_EQ(host::launch("tiny", dim3(groups), dim3(256), nullptr,
                         [&sum] {
                           if (host::thread_id() == 255) sum += host::workgroup_id().x;
                         }),
            hipSuccess);
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  EXPECT_EQ(sum, std::uint64_t{groups} * (groups - 1) / 2);
  const double per_group = seconds * 1e6 / groups;
  RecordProperty("us_per_empty_workgroup_of_256", std::to_string(per_group));
  std::printf("an empty workgroup of 256 lanes: %.2f us\n", per_group);
}

TEST(HostLaunch, CostOfAMeeting) {
  using Clock = std::chrono::steady_clock;
  constexpr int rounds = 20000;
  const auto start = Clock::now();
  ASSERT_EQ(host::launch("meetings", dim3(1), dim3(64), nullptr,
                         [] {
                           for (int i = 0; i < rounds; ++i) {
                             char nothing = 0;
                             host::wave_collective("meet", nothing, [](const auto&) {});
                           }
                         }),
            hipSuccess);
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  std::printf("a switch from lane to lane: %.1f ns\n", seconds * 1e9 / rounds / 63);
}

}  // namespace
