// Grouped forward: groups that differ in everything that may differ, empty and tiny ones among
// them.

#include <gtest/gtest.h>

#include <string>

#include "support/forward_case.hpp"
#include "support/run_forward.hpp"

namespace flashxdl::test {
namespace {

using Groups = std::vector<ForwardCase>;

std::string run(const Groups& cases) {
  std::vector<ForwardProblem> groups;
  for (const auto& c : cases) groups.push_back(make_problem(c));
  return run_and_check_grouped(groups);
}

ForwardCase group(std::int64_t seqlen_q, std::int64_t seqlen_k) {
  return {.heads_q = 2,
          .heads_kv = 1,
          .seqlen_q = seqlen_q,
          .seqlen_k = seqlen_k,
          .data_seed = static_cast<std::uint64_t>(1000 * seqlen_q + seqlen_k)};
}

TEST(Grouped, DifferentLengths) {
  EXPECT_EQ(run({group(128, 64), group(1, 300), group(257, 33), group(64, 1)}), "");
}

TEST(Grouped, EmptyAndOneRowGroups) {
  EXPECT_EQ(run({group(0, 79), group(37, 54), group(5, 0), group(1, 1), group(0, 0), group(26, 26),
                 group(0, 96)}),
            "");
}

TEST(Grouped, OnlyEmptyGroups) {
  ForwardCase no_batch = group(4, 4);
  no_batch.batch = 0;
  EXPECT_EQ(run({group(0, 5), no_batch, group(0, 0)}), "");
}

TEST(Grouped, NoGroups) {
  EXPECT_EQ(run({}), "");
}

TEST(Grouped, OneGroupEqualsTheBatchedCallBitForBit) {
  for (const auto dtype : {DataType::fp16, DataType::bf16}) {
    ForwardCase c = group(131, 97);
    c.dtype = dtype;
    c.batch = 2;
    c.dropout = {.probability = 0.2, .seed = 3};
    ForwardProblem batched = make_problem(c);
    std::vector<ForwardProblem> grouped;
    grouped.push_back(make_problem(c));
    ASSERT_EQ(run_and_check(batched), "");
    ASSERT_EQ(run_and_check_grouped(grouped), "");
    for (const auto member : {&ForwardProblem::o, &ForwardProblem::lse}) {
      const Buffer& one = *(batched.*member).buffer;
      const Buffer& other = *(grouped[0].*member).buffer;
      EXPECT_EQ(std::memcmp(one.result(), other.result(), one.bytes()), 0);
    }
  }
}

TEST(Grouped, HeadsBatchesMasksScalesLayoutsDiffer) {
  ForwardCase a = group(65, 130);
  a.heads_q = 6;
  a.heads_kv = 2;
  a.mask = Mask::causal_bottom_right();
  a.arrangement = Arrangement::bshd;
  ForwardCase b = group(33, 33);
  b.batch = 3;
  b.mask = Mask::window(Mask::Alignment::top_left, 5, 2);
  b.scale = -0.3f;
  b.arrangement = Arrangement::packed;
  ForwardCase c = group(129, 31);
  c.arrangement = Arrangement::misaligned;
  c.lse = false;
  ForwardCase d = group(70, 70);
  d.arrangement = Arrangement::pitched;
  d.scale = 0.0f;
  for (const auto dtype : {DataType::fp16, DataType::bf16}) {
    Groups all{a, b, c, d};
    for (auto& each : all) each.dtype = dtype;
    EXPECT_EQ(run(all), "") << name_of(dtype);
  }
}

TEST(Grouped, HeadDimensionsDiffer) {
  ForwardCase a = group(40, 50), b = group(64, 64), c = group(33, 129);
  a.head_dim = a.head_dim_v = 32;
  b.head_dim = 72, b.head_dim_v = 128;
  c.head_dim = 128, c.head_dim_v = 8;
  EXPECT_EQ(run({a, b, c}), "");
}

TEST(Grouped, SomeWithBiasSomeWithout) {
  ForwardCase with = group(65, 70);
  with.batch = 2;
  with.bias = BiasCase{.dtype = DataType::fp16, .over_batch = true, .neg_inf_fraction = 0.2};
  ForwardCase broadcast = group(31, 140);
  broadcast.bias = BiasCase{.dtype = DataType::fp16, .over_query = true};
  EXPECT_EQ(run({with, group(40, 40), broadcast}), "");
}

TEST(Grouped, DropoutWithDifferentHeadCounts) {
  for (const int bits : {8, 16}) {
    Groups all{group(65, 70), group(0, 12), group(33, 129), group(1, 6)};
    all[1].heads_q = 5;
    all[1].heads_kv = 5;
    all[2].batch = 2;
    for (auto& each : all) {
      each.dropout = {.probability = 0.4, .seed = 21, .offset = 8, .bits = bits};
      each.keep = true;
    }
    EXPECT_EQ(run(all), "") << bits;
  }
}

TEST(Grouped, ManySmallGroups) {
  Groups all;
  for (std::int64_t n = 0; n < 500; ++n) {
    ForwardCase c = group(n % 7, (n * 5) % 11);
    c.head_dim = c.head_dim_v = 16;
    all.push_back(c);
  }
  EXPECT_EQ(run(all), "");
}

TEST(Grouped, WorkspaceTooSmallIsRefused) {
  std::vector<ForwardProblem> groups;
  groups.push_back(make_problem(group(4, 4)));
  const MhaForwardGroupedArgs args = grouped_args(groups);
  const std::size_t bytes = MhaForwardWorkspaceSize(args);
  ASSERT_GT(bytes, 0u);
  const Workspace workspace(bytes);
  EXPECT_FALSE(MhaForward(args, workspace.data(), bytes - 1).ok());
  const Status status = MhaForward(args, nullptr, bytes);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("workspace"), std::string::npos) << status.message();
}

TEST(Grouped, DisagreeingTypesAreRefused) {
  std::vector<ForwardProblem> groups;
  groups.push_back(make_problem(group(4, 4)));
  ForwardCase other = group(5, 5);
  other.dtype = DataType::bf16;
  groups.push_back(make_problem(other));
  const Status status = CheckForward(grouped_args(groups));
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("dtype"), std::string::npos) << status.message();
}

}  // namespace
}  // namespace flashxdl::test
