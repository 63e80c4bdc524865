/// \file
/// What the examples share: counting work, and telling right results from wrong ones.

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "common/command_line.hpp"
#include "common/verify_forward.hpp"
#include "common/work.hpp"
#include "flashxdl/core/number.hpp"
#include "flashxdl/reference/mha_forward.hpp"

namespace {

using namespace flashxdl;

MhaForwardArgs shape(std::int64_t batch, std::int64_t heads, std::int64_t seqlen_q,
                     std::int64_t seqlen_k, std::int64_t d, std::int64_t dv, Mask mask) {
  return {.batch = batch,
          .heads_q = heads,
          .heads_kv = heads,
          .seqlen_q = seqlen_q,
          .seqlen_k = seqlen_k,
          .head_dim = d,
          .head_dim_v = dv,
          .mask = mask};
}

TEST(ForwardWork, CountsTwoProductsOfAllPairsWithoutAMask) {
  EXPECT_EQ(example::forward_flops(shape(2, 3, 10, 20, 192, 128, Mask::none())),
            2.0 * (2 * 3 * 10 * 20) * (192 + 128));
}

TEST(BackwardWork, CountsFiveProducts) {
  EXPECT_EQ(example::backward_flops(shape(2, 3, 10, 20, 192, 128, Mask::none())),
            2.0 * (2 * 3 * 10 * 20) * (3 * 192 + 2 * 128));
  EXPECT_EQ(example::backward_flops(shape(1, 1, 100, 100, 64, 64, Mask::causal_top_left())),
            2.0 * 5050 * 5 * 64);
}

TEST(ForwardWork, CountsVisiblePairsOnly) {
  const auto pairs = [](std::int64_t seqlen_q, std::int64_t seqlen_k, Mask mask) {
    return example::visible_pairs(shape(1, 1, seqlen_q, seqlen_k, 64, 64, mask));
  };
  EXPECT_EQ(pairs(100, 100, Mask::causal_top_left()), 5050);
  EXPECT_EQ(pairs(1, 1000, Mask::causal_top_left()), 1);
  EXPECT_EQ(pairs(1, 1000, Mask::causal_bottom_right()), 1000);
  EXPECT_EQ(pairs(1000, 10, Mask::causal_bottom_right()), 55);
  EXPECT_EQ(pairs(5, 5, Mask::window(Mask::Alignment::top_left, 1, 1)), 13);
  EXPECT_EQ(pairs(0, 7, Mask::none()), 0);
  EXPECT_EQ(pairs(7, 0, Mask::none()), 0);
}

/// A small problem with host memory, its results from the plain reference.
struct Problem {
  std::vector<fp16> q, k, v, o;
  std::vector<float> lse;
  MhaForwardArgs args = shape(1, 2, 9, 11, 8, 4, Mask::causal_top_left());

  Problem() : q(2 * 9 * 8), k(2 * 11 * 8), v(2 * 11 * 4), o(2 * 9 * 4), lse(2 * 9) {
    int n = 0;
    for (auto* numbers : {&q, &k, &v}) {
      for (fp16& x : *numbers)
        x = Number<fp16>::from_float(static_cast<float>(n++ % 13) / 8 - 0.5f);
    }
    args.q = bhsd<const void*>(q.data(), 2, 9, 8);
    args.k = bhsd<const void*>(k.data(), 2, 11, 8);
    args.v = bhsd<const void*>(v.data(), 2, 11, 4);
    args.o = bhsd<void*>(o.data(), 2, 9, 4);
    args.lse = dense_lse(lse.data(), 2, 9);
    const auto result = reference::mha_forward<reference::Plain>(args);
    for (std::size_t i = 0; i < o.size(); ++i) {
      o[i] = Number<fp16>::from_float(static_cast<float>(result.o[i]));
    }
    for (std::size_t i = 0; i < lse.size(); ++i) lse[i] = static_cast<float>(result.lse[i]);
  }
};

TEST(VerifyForward, AcceptsWhatIsRight) {
  const Problem problem;
  EXPECT_TRUE(example::verify_forward(problem.args, 0));
}

TEST(VerifyForward, SeesOneWrongElement) {
  for (const float wrong :
       {0.75f, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    Problem problem;
    problem.o.back() = Number<fp16>::from_float(wrong);
    EXPECT_FALSE(example::verify_forward(problem.args, 0)) << wrong;
  }
}

TEST(VerifyForward, SeesOneWrongLse) {
  Problem problem;
  problem.lse[3] += 1e-3f;
  EXPECT_FALSE(example::verify_forward(problem.args, 0));
}

TEST(VerifyForward, SeesAnotherMask) {
  Problem problem;
  problem.args.mask = Mask::none();
  EXPECT_FALSE(example::verify_forward(problem.args, 0));
}

/// Parses the words after the program's name.
template <class Config>
std::optional<int> parse(Config& config, std::vector<const char*> words) {
  words.insert(words.begin(), "example");
  return example::parse_command_line(config, static_cast<int>(words.size()), words.data());
}

TEST(CommandLine, TakesVerifyInitTimeByPosition) {
  example::ForwardConfig config{.groups = {{}}};
  ASSERT_EQ(parse(config, {"0", "2", "1"}), std::nullopt);
  EXPECT_FALSE(config.verify);
  EXPECT_EQ(config.init, 2);
  EXPECT_TRUE(config.time);
}

TEST(CommandLine, TakesNamedOptions) {
  example::ForwardConfig config{.training = true, .groups = {{}}};
  ASSERT_EQ(parse(config, {"--batch", "2", "--heads", "4", "--heads-kv", "2", "--seqlen-q", "5",
                           "--scale", "0", "--dropout", "0.25", "--mask", "window:top-left:3:-1",
                           "--dtype", "bf16", "--verify", "0"}),
            std::nullopt);
  EXPECT_EQ(config.groups[0].batch, 2);
  EXPECT_EQ(config.groups[0].heads_q, 4);
  EXPECT_EQ(config.groups[0].heads_kv, 2);
  EXPECT_EQ(config.groups[0].seqlen_q, 5);
  EXPECT_EQ(config.scale, 0.0f);
  EXPECT_EQ(config.dropout.probability, 0.25);
  EXPECT_EQ(config.mask.left, 3);
  EXPECT_EQ(config.mask.right, -1);
  EXPECT_EQ(config.dtype, DataType::bf16);
  EXPECT_FALSE(config.verify);
}

TEST(CommandLine, ReplacesGroups) {
  example::ForwardConfig config{.grouped = true, .groups = {{}, {}, {}}};
  ASSERT_EQ(parse(config, {"--group", "1,2,3,4", "--group", "5,6,3,0,7"}), std::nullopt);
  ASSERT_EQ(config.groups.size(), 2u);
  EXPECT_EQ(config.groups[0].heads_kv, 2);
  EXPECT_EQ(config.groups[0].seqlen_k, 4);
  EXPECT_EQ(config.groups[1].heads_kv, 3);
  EXPECT_EQ(config.groups[1].seqlen_q, 0);
}

TEST(CommandLine, TakesOptionsOfTheBackward) {
  example::BackwardConfig config{.forward = {.bias = true, .groups = {{}}}};
  ASSERT_EQ(parse(config, {"0", "--seqlen-k", "9", "--algorithm", "streamed", "--grad-dtype",
                           "fp32", "--dbias-dtype", "bf16", "--deterministic"}),
            std::nullopt);
  EXPECT_FALSE(config.forward.verify);
  EXPECT_EQ(config.forward.groups[0].seqlen_k, 9);
  EXPECT_EQ(config.algorithm, example::Algorithm::streamed);
  EXPECT_EQ(config.gradient_dtype, DataType::fp32);
  EXPECT_EQ(config.dbias_dtype, DataType::bf16);
  EXPECT_TRUE(config.deterministic);
  ASSERT_EQ(parse(config, {"--grad-dtype", "input"}), std::nullopt);
  EXPECT_EQ(config.gradient_dtype, std::nullopt);
}

TEST(CommandLine, RefusesOptionsThatTheBackwardDoesNotHave) {
  const std::vector<std::vector<const char*>> lines = {{"--algorithm", "fast"},
                                                       {"--grad-dtype", "fp64"},
                                                       {"--dbias-dtype", "fp32"},
                                                       {"--head-dim", "-64"}};
  for (const auto& line : lines) {
    example::BackwardConfig config{.forward = {.groups = {{}}}};  // without bias
    const auto status = parse(config, line);
    ASSERT_TRUE(status.has_value()) << line[0];
    EXPECT_NE(*status, 0) << line[0];
  }
  example::ForwardConfig forward{.groups = {{}}};
  EXPECT_NE(parse(forward, {"--deterministic"}).value_or(0), 0);
}

TEST(CommandLine, RefusesWhatItDoesNotUnderstand) {
  const std::vector<std::vector<const char*>> lines = {{"--batch", "-1"},
                                                       {"--seqlen-q", "x"},
                                                       {"--mask", "lower"},
                                                       {"--dtype", "fp8"},
                                                       {"--mask", "window:top-left"},
                                                       {"--unknown"},
                                                       {"1", "2", "0", "44"},
                                                       {"--init", "9"},
                                                       {"--mask", "window:left:1:x"}};
  for (const auto& line : lines) {
    example::ForwardConfig config{.groups = {{}}};
    const auto status = parse(config, line);
    ASSERT_TRUE(status.has_value()) << line[0];
    EXPECT_NE(*status, 0) << line[0];
  }
  for (const char* group : {"1,2,3", "1,2,3,4,5,6", "1,-2,3,4", "a"}) {
    example::ForwardConfig config{.grouped = true, .groups = {{}}};
    const auto status = parse(config, {"--group", group});
    ASSERT_TRUE(status.has_value()) << group;
    EXPECT_NE(*status, 0) << group;
  }
}

TEST(CommandLine, HelpEndsTheProgramWell) {
  example::ForwardConfig config{.groups = {{}}};
  EXPECT_EQ(parse(config, {"--help"}), 0);
}

}  // namespace
