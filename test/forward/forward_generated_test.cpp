// The library's forward against the reference, under rule T, on generated cases. Every case runs as
// a batched call; every third also as a grouped call between an empty group and a one-row group.

#include <gtest/gtest.h>

#include <string>

#include "forward/forward_case_list.hpp"
#include "support/run_forward.hpp"

namespace flashxdl::test {
namespace {

class Forward : public testing::TestWithParam<ForwardCase> {};

TEST_P(Forward, Batched) {
  ForwardProblem problem = make_problem(GetParam());
  EXPECT_EQ(run_and_check(problem), "");
}

class ForwardAmongGroups : public testing::TestWithParam<ForwardCase> {};

TEST_P(ForwardAmongGroups, Grouped) {
  ForwardCase empty = GetParam();
  empty.seqlen_q = 0;
  ForwardCase one_row = GetParam();
  one_row.seqlen_q = 1;
  if (GetParam().arrangement == Arrangement::packed) {
    empty.arrangement = one_row.arrangement = Arrangement::bhsd;
  }
  std::vector<ForwardProblem> groups;
  for (const auto& c : {empty, GetParam(), one_row, empty}) groups.push_back(make_problem(c));
  EXPECT_EQ(run_and_check_grouped(groups), "");
}

std::string numbered_name(const testing::TestParamInfo<ForwardCase>& info) {
  return std::to_string(info.index) + '_' + name_of(info.param);
}

CaseList every_third() {
  CaseList list;
  const CaseList all = forward_cases();
  for (std::size_t n = 0; n < all.size(); n += 3) list.push_back(all[n]);
  return list;
}

INSTANTIATE_TEST_SUITE_P(Generated, Forward, testing::ValuesIn(forward_cases()), numbered_name);
INSTANTIATE_TEST_SUITE_P(Generated, ForwardAmongGroups, testing::ValuesIn(every_third()),
                         numbered_name);

TEST(ForwardCases, AreAtLeast300) {
  EXPECT_GE(forward_cases().size(), 300u);
}

}  // namespace
}  // namespace flashxdl::test
