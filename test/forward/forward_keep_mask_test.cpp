// The keep mask that the library writes equals the reference's bit for bit; and the output follows
// the same mask.

#include <gtest/gtest.h>

#include <string>

#include "support/forward_case.hpp"
#include "support/run_forward.hpp"

namespace flashxdl::test {
namespace {

ForwardCase keep_case(int bits, std::int64_t seqlen_q, std::int64_t seqlen_k) {
  return {
      .batch = 2,
      .heads_q = 6,
      .heads_kv = 2,
      .seqlen_q = seqlen_q,
      .seqlen_k = seqlen_k,
      .head_dim = 32,
      .head_dim_v = 32,
      .dropout = {.probability = 0.35, .seed = 0xfeed'0000'0000'0001u, .offset = 7, .bits = bits},
      .keep = true};
}

class KeepMask : public testing::TestWithParam<int> {};

TEST_P(KeepMask, Batched) {
  for (const std::int64_t seqlen_q : {1, 2, 3, 4, 33, 130}) {
    for (const std::int64_t seqlen_k : {1, 3, 4, 5, 66, 129, 131}) {
      ForwardProblem problem = make_problem(keep_case(GetParam(), seqlen_q, seqlen_k));
      EXPECT_EQ(run_and_check(problem), "") << "Sq " << seqlen_q << " Sk " << seqlen_k;
    }
  }
}

TEST_P(KeepMask, GroupedCountsSequencesOverGroupsWithEmptyOnes) {
  std::vector<ForwardProblem> groups;
  for (const auto& [seqlen_q, seqlen_k] : {std::pair{33, 70}, {0, 9}, {5, 0}, {1, 3}, {130, 67}}) {
    ForwardCase c = keep_case(GetParam(), seqlen_q, seqlen_k);
    c.heads_q = 2 + 2 * static_cast<std::int64_t>(groups.size() % 2);  // 2, 4, 2, 4, 2
    groups.push_back(make_problem(c));
  }
  EXPECT_EQ(run_and_check_grouped(groups), "");
}

TEST_P(KeepMask, UnderMasksAndLayouts) {
  for (const auto arrangement :
       {Arrangement::bshd, Arrangement::pitched, Arrangement::misaligned}) {
    for (const Mask& mask : {Mask::causal_top_left(), Mask::causal_bottom_right()}) {
      ForwardCase c = keep_case(GetParam(), 70, 135);
      c.mask = mask;
      c.arrangement = arrangement;
      ForwardProblem problem = make_problem(c);
      EXPECT_EQ(run_and_check(problem), "") << name_of(c);
    }
  }
}

TEST_P(KeepMask, LargeOffsetsAndSeeds) {
  for (const std::uint64_t offset :
       {std::uint64_t{0}, std::uint64_t{3}, 0x3'ffff'fffcu + std::uint64_t{0},
        std::uint64_t{0x7fff'ffff'ffff'fff0u}, ~std::uint64_t{0}}) {
    for (const std::uint64_t seed : {std::uint64_t{0}, ~std::uint64_t{0}}) {
      ForwardCase c = keep_case(GetParam(), 37, 41);
      c.dropout.offset = offset;
      c.dropout.seed = seed;
      ForwardProblem problem = make_problem(c);
      EXPECT_EQ(run_and_check(problem), "") << "offset " << offset << " seed " << seed;
    }
  }
}

TEST_P(KeepMask, ExtremeProbabilities) {
  const double step = 1.0 / (1 << GetParam());
  for (const double p : {0.0, step / 4, step, 1 - step, 1.0}) {
    ForwardCase c = keep_case(GetParam(), 37, 41);
    c.dropout.probability = p;
    ForwardProblem problem = make_problem(c);
    EXPECT_EQ(run_and_check(problem), "") << "p = " << p;
  }
}

TEST_P(KeepMask, SeedAndOffsetFromDeviceMemory) {
  ForwardProblem problem = make_problem(keep_case(GetParam(), 70, 67));
  Buffer numbers(2 * sizeof(std::uint64_t), Placement::device);
  const std::uint64_t seed = 0xabcdef0123456789u, offset = 4444;
  std::memcpy(numbers.host(), &seed, sizeof seed);
  std::memcpy(numbers.host() + sizeof seed, &offset, sizeof offset);
  numbers.upload();
  problem.upload();
  MhaForwardArgs args = problem.device_args();
  args.dropout.seed_device = static_cast<const std::uint64_t*>(numbers.device());
  args.dropout.offset_device = args.dropout.seed_device + 1;
  const Status status = run_batched(args);
  ASSERT_TRUE(status.ok()) << status.message();
  problem.download();
  problem.shape.dropout.seed = seed;  // what the reference is to take
  problem.shape.dropout.offset = offset;
  EXPECT_EQ(check_forward(problem), "");
}

INSTANTIATE_TEST_SUITE_P(Bits, KeepMask, testing::Values(8, 16), [](const auto& instance) {
  return std::to_string(instance.param) + "_bits";
});

}  // namespace
}  // namespace flashxdl::test
