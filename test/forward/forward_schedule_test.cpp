// A subset of the forward cases under shuffled schedules of lanes, waves and workgroups: the same
// bits as under the default schedule. A missing barrier shows here.

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "flashxdl/core/config.hpp"
#include "forward/forward_case_list.hpp"
#include "support/run_forward.hpp"
#include "support/schedule.hpp"

#if FLASHXDL_AMDGCN

TEST(ForwardSchedules, AreOfTheCpuTarget) {
  GTEST_SKIP() << "schedules can be chosen on the CPU target only";
}

#else

namespace flashxdl::test {
namespace {

std::vector<std::byte> result_of(const TestTensor& tensor) {
  if (!tensor) return {};
  return {tensor.buffer->result(), tensor.buffer->result() + tensor.buffer->bytes()};
}

class ForwardSchedules : public testing::TestWithParam<ForwardCase> {};

TEST_P(ForwardSchedules, GiveTheSameBits) {
  const ScheduleGuard guard;
  guard.sequential();
  ForwardProblem problem = make_problem(GetParam());
  ASSERT_EQ(run_and_check(problem), "");
  const auto o = result_of(problem.o), lse = result_of(problem.lse);
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    guard.shuffle(seed);
    problem.upload();  // outputs are canaries again
    const Status status = run_batched(problem.device_args());
    ASSERT_TRUE(status.ok()) << status.message();
    problem.download();
    EXPECT_EQ(result_of(problem.o), o) << "O under shuffle:" << seed;
    EXPECT_EQ(result_of(problem.lse), lse) << "LSE under shuffle:" << seed;
  }
}

CaseList every_tenth() {
  CaseList list;
  const CaseList all = forward_cases();
  for (std::size_t n = 5; n < all.size(); n += 10) list.push_back(all[n]);
  return list;
}

INSTANTIATE_TEST_SUITE_P(Generated, ForwardSchedules, testing::ValuesIn(every_tenth()),
                         [](const auto& instance) {
                           return std::to_string(instance.index) + '_' + name_of(instance.param);
                         });

TEST(ForwardSchedulesGrouped, GiveTheSameBits) {
  const ScheduleGuard guard;
  guard.sequential();
  std::vector<ForwardProblem> groups;
  for (const auto& [seqlen_q, seqlen_k] : {std::pair{130, 200}, {0, 3}, {1, 65}, {64, 129}}) {
    groups.push_back(make_problem({.heads_q = 4,
                                   .heads_kv = 2,
                                   .seqlen_q = seqlen_q,
                                   .seqlen_k = seqlen_k,
                                   .mask = Mask::causal_bottom_right(),
                                   .dropout = {.probability = 0.3, .seed = 1}}));
  }
  ASSERT_EQ(run_and_check_grouped(groups), "");
  std::vector<std::vector<std::byte> > results;
  for (const auto& group : groups) results.push_back(result_of(group.o));
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    guard.shuffle(seed);
    for (auto& group : groups) group.upload();
    const Status status = run_grouped(grouped_args(groups));
    ASSERT_TRUE(status.ok()) << status.message();
    for (std::size_t g = 0; g < groups.size(); ++g) {
      groups[g].download();
      EXPECT_EQ(result_of(groups[g].o), results[g]) << "group " << g << " under shuffle:" << seed;
    }
  }
}

}  // namespace
}  // namespace flashxdl::test

#endif
