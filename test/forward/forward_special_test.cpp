// Forward on inputs with something peculiar: empty rows and problems, infinities, extreme scales
// and scores, exact results.

#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "support/forward_case.hpp"
#include "support/run_forward.hpp"

namespace flashxdl::test {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

class ForwardSpecial : public testing::TestWithParam<DataType> {
protected:
  DataType dtype() const { return GetParam(); }
  /// Two query heads on one KV head, head dimension 64.
  ForwardCase lengths(std::int64_t seqlen_q, std::int64_t seqlen_k) const {
    return {
        .dtype = dtype(), .heads_q = 2, .heads_kv = 1, .seqlen_q = seqlen_q, .seqlen_k = seqlen_k};
  }
};

/// Every element of O and of the LSE, by output(b, h, s, d).
template <class Check>
void for_each_output(const TestTensor& tensor, const Check& check) {
  tensor.layout.for_each([&](std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) {
    check(s, tensor.output(b, h, s, d));
  });
}

TEST_P(ForwardSpecial, RowsThatSeeNothing) {
  ForwardCase c = lengths(200, 100);
  c.mask = Mask::causal_bottom_right();
  ForwardProblem p = make_problem(c);
  EXPECT_EQ(run_and_check(p), "");
  for_each_output(p.o, [](std::int64_t s, double o) {
    if (s < 100) {
      EXPECT_EQ(o, 0) << s;
    }
  });
  for_each_output(p.lse, [](std::int64_t s, double lse) {
    if (s < 100) {
      EXPECT_EQ(lse, -infinity) << s;
    }
  });
}

TEST_P(ForwardSpecial, WindowBesideTheKeys) {
  ForwardCase c = lengths(150, 40);
  c.mask = Mask::window(Mask::Alignment::top_left, 3, 3);  // from row 43 on, nothing
  ForwardProblem p = make_problem(c);
  EXPECT_EQ(run_and_check(p), "");
  for_each_output(p.o, [](std::int64_t s, double o) {
    if (s >= 43) {
      EXPECT_EQ(o, 0) << s;
    }
  });
}

TEST_P(ForwardSpecial, InfiniteBiasInRowsColumnsAndWholeTiles) {
  ForwardCase c = lengths(70, 200);
  c.bias = BiasCase{.dtype = dtype()};
  ForwardProblem p = make_problem(c);
  p.bias.layout.for_each([&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
    const bool row = i == 0 || i == 37 || i == 69;
    const bool first_tiles = i % 2 == 1 && j < 150;  // keys come late
    const bool column = j == 3 || j == 199;
    if (row || first_tiles || column) p.bias.set(b, h, i, j, -infinity);
  });
  EXPECT_EQ(run_and_check(p), "");
  for_each_output(p.lse, [](std::int64_t s, double lse) {
    EXPECT_EQ(lse == -infinity, s == 0 || s == 37 || s == 69) << s;
  });
}

TEST_P(ForwardSpecial, LargestFiniteBias) {
  for (const auto bias_type : {DataType::fp16, DataType::bf16, DataType::fp32}) {
    const double lowest = bias_type == DataType::fp16   ? -65504.0
                          : bias_type == DataType::bf16 ? -0x1.fep127
                                                        : -static_cast<double>(FLT_MAX);
    ForwardCase c = lengths(70, 130);
    c.bias = BiasCase{.dtype = bias_type};
    ForwardProblem p = make_problem(c);
    p.bias.layout.for_each([&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
      // Row 0: nothing but lowest; row 1: everything highest; others: a third lowest.
      if (i == 0 || (i > 1 && j % 3 == 0)) p.bias.set(b, h, i, j, lowest);
      if (i == 1) p.bias.set(b, h, i, j, -lowest);
    });
    EXPECT_EQ(run_and_check(p), "") << name_of(bias_type);
    for_each_output(p.lse, [&](std::int64_t s, double lse) {
      EXPECT_TRUE(std::isfinite(lse)) << name_of(bias_type) << " row " << s;
    });
  }
}

TEST_P(ForwardSpecial, ScaleZeroNegativeTinyAndLarge) {
  for (const float scale : {0.0f, -0.0f, -0.125f, -3.0f, 1e-30f, 1e-38f, 50.0f}) {
    ForwardCase c = lengths(70, 131);
    c.mask = Mask::causal_bottom_right();
    c.scale = scale;
    ForwardProblem p = make_problem(c);
    EXPECT_EQ(run_and_check(p), "") << "scale " << scale;
  }
}

TEST_P(ForwardSpecial, ScaleZeroWithBias) {
  ForwardCase c = lengths(40, 70);
  c.scale = 0.0f;
  c.bias = BiasCase{.dtype = DataType::fp32, .neg_inf_fraction = 0.2};
  ForwardProblem p = make_problem(c);
  EXPECT_EQ(run_and_check(p), "");
}

TEST_P(ForwardSpecial, NegativeScaleWithBiasAndDropout) {
  ForwardCase c = lengths(70, 99);
  c.scale = -0.2f;
  c.bias = BiasCase{.dtype = dtype()};
  c.dropout = {.probability = 0.3, .seed = 6};
  ForwardProblem p = make_problem(c);
  EXPECT_EQ(run_and_check(p), "");
}

TEST_P(ForwardSpecial, HugeScores) {
  for (const double size : {1e2, 1e4}) {  // scores of about +-1e2 and +-1e4
    for (const bool causal : {false, true}) {
      ForwardCase c = lengths(70, 131);
      c.scale = static_cast<float>(size / 8);  // q . k is about 8
      if (causal) c.mask = Mask::causal_bottom_right();
      ForwardProblem p = make_problem(c);
      EXPECT_EQ(run_and_check(p), "") << size;
    }
  }
}

TEST_P(ForwardSpecial, EveryScoreFarBelowZeroOrAbove) {
  for (const double offset : {-1e4, -200.0, 200.0, 1e4}) {
    ForwardCase c = lengths(70, 131);
    c.scale = 1.0f;
    ForwardProblem p = make_problem(c);
    p.q.layout.for_each([&](std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) {
      p.q.set(b, h, s, d, d == 0 ? 1 : p.q.input(b, h, s, d) / 16);
    });
    p.k.layout.for_each([&](std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) {
      if (d == 0) p.k.set(b, h, s, d, offset);
    });
    EXPECT_EQ(run_and_check(p), "") << offset;
  }
}

TEST_P(ForwardSpecial, ConstantKeysAndValuesGiveExactlyOne) {
  ForwardProblem p = make_problem(lengths(130, 200));
  fill(p.k, [] { return 1.0; });
  fill(p.v, [] { return 1.0; });
  EXPECT_EQ(run_and_check(p), "");
  for_each_output(p.o, [](std::int64_t s, double o) { ASSERT_EQ(o, 1) << s; });
}

TEST_P(ForwardSpecial, ConstantValuesComeBackToHalfAnUlp) {
  // Random weights: rounding P to nearest leaves no bias, so 1 comes back as 1; the nearest other
  // numbers would be 1 - 2^-11 (fp16) or 1 - 2^-8 (bf16).
  ForwardProblem p = make_problem(lengths(130, 400));
  fill(p.v, [] { return 1.0; });
  EXPECT_EQ(run_and_check(p), "");
  double sum = 0;
  for_each_output(p.o, [&](std::int64_t, double o) { sum += o; });
  const double ulp = dtype() == DataType::fp16 ? 0x1p-11 : 0x1p-8;
  EXPECT_NEAR(sum / static_cast<double>(p.o.layout.shape.count()), 1, ulp / 8);
}

TEST_P(ForwardSpecial, OneKeyGivesItsValue) {
  ForwardProblem p = make_problem(lengths(70, 1));
  EXPECT_EQ(run_and_check(p), "");
  p.o.layout.for_each([&](std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) {
    ASSERT_EQ(p.o.output(b, h, s, d), p.v.input(b, 0, 0, d)) << s << ' ' << d;
  });
}

TEST_P(ForwardSpecial, OneQuery) {
  for (const std::int64_t seqlen_k : {1, 2, 63, 64, 65, 1000}) {
    ForwardProblem p = make_problem(lengths(1, seqlen_k));
    EXPECT_EQ(run_and_check(p), "") << seqlen_k;
  }
}

TEST_P(ForwardSpecial, EmptyProblems) {
  ForwardProblem no_queries = make_problem(lengths(0, 50));
  EXPECT_EQ(run_and_check(no_queries), "");
  ForwardCase c = lengths(20, 30);
  c.batch = 0;
  ForwardProblem no_batch = make_problem(c);
  EXPECT_EQ(run_and_check(no_batch), "");
  ForwardProblem nothing = make_problem(lengths(0, 0));
  EXPECT_EQ(run_and_check(nothing), "");
}

TEST_P(ForwardSpecial, NoKeysGiveZerosAndMinusInfinity) {
  for (const double p_drop : {0.0, 0.5}) {
    ForwardCase c = lengths(130, 0);
    c.dropout = {.probability = p_drop};
    ForwardProblem p = make_problem(c);
    EXPECT_EQ(run_and_check(p), "");
    for_each_output(p.o, [](std::int64_t, double o) { ASSERT_EQ(o, 0); });
    for_each_output(p.lse, [](std::int64_t, double lse) { ASSERT_EQ(lse, -infinity); });
  }
}

TEST_P(ForwardSpecial, EverythingDroppedLeavesTheLse) {
  ForwardCase c = lengths(70, 99);
  c.dropout = {.probability = 1.0, .seed = 4};
  ForwardProblem p = make_problem(c);
  EXPECT_EQ(run_and_check(p), "");
  for_each_output(p.o, [](std::int64_t, double o) { ASSERT_EQ(o, 0); });
}

TEST_P(ForwardSpecial, DropoutBelowResolutionIsNoDropoutBitForBit) {
  ForwardCase c = lengths(70, 99);
  ForwardProblem without = make_problem(c);
  c.dropout = {.probability = 0x1p-10, .seed = 4};  // rounds to 0 of 256
  ForwardProblem with = make_problem(c);
  EXPECT_EQ(run_and_check(without), "");
  EXPECT_EQ(run_and_check(with), "");
  EXPECT_EQ(
      std::memcmp(with.o.buffer->result(), without.o.buffer->result(), with.o.buffer->bytes()), 0);
}

TEST_P(ForwardSpecial, KeysAndValuesExpandedFromOneHead) {
  ForwardCase c = lengths(40, 97);
  c.heads_q = c.heads_kv = 4;
  ForwardProblem p = make_problem(c);
  for (TestTensor* tensor : {&p.k, &p.v}) tensor->layout.h = 0;
  EXPECT_EQ(run_and_check(p), "");
}

TEST_P(ForwardSpecial, RunsTwiceToTheSameBitsOnItsOwnStream) {
  hipStream_t stream = nullptr;
  check_hip(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), "hipStreamCreateWithFlags");
  ForwardCase c = lengths(200, 300);
  c.dropout = {.probability = 0.1, .seed = 77};
  ForwardProblem first = make_problem(c), second = make_problem(c);
  for (ForwardProblem* p : {&first, &second}) {
    p->upload();
    const Status status = run_batched(p->device_args(), stream);
    ASSERT_TRUE(status.ok()) << status.message();
    p->download();
    EXPECT_EQ(check_forward(*p), "");
  }
  check_hip(hipStreamDestroy(stream), "hipStreamDestroy");
  EXPECT_EQ(
      std::memcmp(first.o.buffer->result(), second.o.buffer->result(), first.o.buffer->bytes()), 0);
}

INSTANTIATE_TEST_SUITE_P(Types, ForwardSpecial, testing::Values(DataType::fp16, DataType::bf16),
                         [](const auto& instance) { return std::string(name_of(instance.param)); });

}  // namespace
}  // namespace flashxdl::test
