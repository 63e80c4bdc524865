// The reference forward itself: cases worked by hand, an independent brute force over every
// feature, and properties of attention.

#include "flashxdl/reference/mha_forward.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace {

using namespace flashxdl;
using reference::mha_forward;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// A small fp32 problem with its storage.
struct Problem {
  MhaForwardArgs args{};
  std::vector<float> q, k, v, bias;

  Problem(std::int64_t batch, std::int64_t heads_q, std::int64_t heads_kv, std::int64_t seqlen_q,
          std::int64_t seqlen_k, std::int64_t head_dim, std::int64_t head_dim_v, unsigned seed = 1)
      : random(seed) {
    args.dtype = DataType::fp32;
    args.batch = batch;
    args.heads_q = heads_q;
    args.heads_kv = heads_kv;
    args.seqlen_q = seqlen_q;
    args.seqlen_k = seqlen_k;
    args.head_dim = head_dim;
    args.head_dim_v = head_dim_v;
    fill(q, batch * heads_q * seqlen_q * head_dim);
    fill(k, batch * heads_kv * seqlen_k * head_dim);
    fill(v, batch * heads_kv * seqlen_k * head_dim_v);
    args.q = bhsd<const void*>(q.data(), heads_q, seqlen_q, head_dim);
    args.k = bhsd<const void*>(k.data(), heads_kv, seqlen_k, head_dim);
    args.v = bhsd<const void*>(v.data(), heads_kv, seqlen_k, head_dim_v);
  }
  Problem(const Problem&) = delete;

  void add_bias() {
    fill(bias, args.batch * args.heads_q * args.seqlen_q * args.seqlen_k);
    args.bias = {bhsd<const void*>(bias.data(), args.heads_q, args.seqlen_q, args.seqlen_k),
                 DataType::fp32};
  }

private:
  void fill(std::vector<float>& values, std::int64_t count) {
    std::uniform_real_distribution<float> uniform(-2, 2);
    values.resize(static_cast<std::size_t>(count));
    for (auto& value : values) value = uniform(random);
  }

  std::mt19937 random;
};

/// Attention by its formula, one score at a time, the mask by its inequality.
struct BruteForce {
  std::vector<double> o, lse;

  explicit BruteForce(const MhaForwardArgs& a, std::uint64_t sequence_base) {
    for (std::int64_t b = 0; b < a.batch; ++b) {
      for (std::int64_t h = 0; h < a.heads_q; ++h) {
        for (std::int64_t i = 0; i < a.seqlen_q; ++i) row(a, b, h, i, sequence_base);
      }
    }
  }

private:
  static double at(const Tensor<const void*>& t, std::int64_t b, std::int64_t h, std::int64_t row,
                   std::int64_t column) {
    return static_cast<const float*>(t.data)[t.offset(b, h, row, column)];
  }

  static bool visible(const MhaForwardArgs& a, std::int64_t i, std::int64_t j) {
    const bool bottom = a.mask.alignment == Mask::Alignment::bottom_right;
    const std::int64_t diagonal = i + (bottom ? a.seqlen_k - a.seqlen_q : 0);
    return (a.mask.left < 0 || diagonal - j <= a.mask.left) &&
           (a.mask.right < 0 || j - diagonal <= a.mask.right);
  }

  void row(const MhaForwardArgs& a, std::int64_t b, std::int64_t h, std::int64_t i,
           std::uint64_t sequence_base) {
    const reference::DropoutMask keep(
        a.dropout, sequence_base + static_cast<std::uint64_t>(b * a.heads_q + h), a.seqlen_k);
    const std::int64_t h_kv = h * a.heads_kv / a.heads_q;
    const auto score = [&](std::int64_t j) {
      double dot = 0;
      for (std::int64_t d = 0; d < a.head_dim; ++d) {
        dot += at(a.q, b, h, i, d) * at(a.k, b, h_kv, j, d);
      }
      const double bias = a.bias.tensor.data ? at(a.bias.tensor, b, h, i, j) : 0.0;
      return dot * static_cast<double>(a.scale_or_default()) + bias;
    };
    double sum = 0;
    for (std::int64_t j = 0; j < a.seqlen_k; ++j) {
      if (visible(a, i, j)) sum += std::exp(score(j));
    }
    lse.push_back(std::log(sum));
    for (std::int64_t d = 0; d < a.head_dim_v; ++d) {
      double out = 0;
      for (std::int64_t j = 0; j < a.seqlen_k && sum > 0; ++j) {
        if (!visible(a, i, j) || !keep.keep(i, j)) continue;
        out += std::exp(score(j)) / sum * at(a.v, b, h_kv, j, d) /
               (1 - a.dropout.probability_in_force());
      }
      o.push_back(out);
    }
  }
};

void expect_close(const std::vector<double>& got, const std::vector<double>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t n = 0; n < got.size(); ++n) {
    if (got[n] == wanted[n]) continue;  // infinities
    ASSERT_NEAR(got[n], wanted[n], 1e-12 * (1 + std::abs(wanted[n]))) << "element " << n;
  }
}

void expect_brute_force(const MhaForwardArgs& args, std::uint64_t sequence_base = 0) {
  const auto result = mha_forward(args, sequence_base);
  const BruteForce expected(args, sequence_base);
  expect_close(result.o, expected.o);
  expect_close(result.lse, expected.lse);
}

TEST(ReferenceForward, TwoKeysByHand) {
  Problem p(1, 1, 1, 1, 2, 1, 2);
  p.q = {2};
  p.k = {0, 1};
  p.v = {1, 10, 5, -10};
  p.args.scale = 0.5f;  // scores 0 and 1
  const auto result = mha_forward(p.args);
  const double weight = 1 / (1 + std::exp(1.0));
  expect_close(result.o, {weight * 1 + (1 - weight) * 5, weight * 10 - (1 - weight) * 10});
  expect_close(result.lse, {std::log(1 + std::exp(1.0))});
  expect_close(result.o_terms, {weight * 1 + (1 - weight) * 5, 10});
  EXPECT_EQ(result.largest_score[0], 1);
  EXPECT_EQ(result.visible[0], 2);
  EXPECT_EQ(result.kept[0], 2);
}

TEST(ReferenceForward, DefaultScaleIsOneOverTheRootOfTheHeadDimension) {
  Problem p(1, 1, 1, 1, 1, 4, 1);
  p.q = {1, 1, 1, 1};
  p.k = {1, 2, 3, 4};
  EXPECT_EQ(mha_forward(p.args).lse[0], 5);
}

TEST(ReferenceForward, DropoutByHand) {
  // Seed 1, first row of the first block: 112 6 232 227; p = 0.5 keeps the last two.
  Problem p(1, 1, 1, 1, 4, 1, 1);
  p.q = {0};
  p.v = {1, 2, 4, 8};
  p.args.dropout = {.probability = 0.5, .seed = 1};
  const auto result = mha_forward(p.args);
  EXPECT_DOUBLE_EQ(result.o[0], (4 + 8) * 0.25 * 2);
  EXPECT_DOUBLE_EQ(result.lse[0], std::log(4.0));
  EXPECT_EQ(result.kept[0], 2);
}

TEST(ReferenceForward, MasksAreTheirInequalities) {
  using enum Mask::Alignment;
  for (const auto alignment : {top_left, bottom_right}) {
    for (const std::int64_t left : {-1, 0, 1, 4, 100}) {
      for (const std::int64_t right : {-1, 0, 2, 100}) {
        for (const std::int64_t seqlen_q : {1, 5, 9}) {
          for (const std::int64_t seqlen_k : {1, 5, 9}) {
            Problem p(1, 1, 1, seqlen_q, seqlen_k, 2, 2);
            p.args.mask = Mask::window(alignment, left, right);
            expect_brute_force(p.args);
          }
        }
      }
    }
  }
}

TEST(ReferenceForward, EveryFeatureAtOnce) {
  for (const int bits : {8, 16}) {
    for (const std::int64_t heads_kv : {1, 2, 6}) {
      Problem p(2, 6, heads_kv, 11, 14, 5, 3);
      p.add_bias();
      p.args.scale = -0.7f;
      p.args.mask = Mask::window(Mask::Alignment::bottom_right, 6, 1);
      p.args.dropout = {.probability = 0.3, .seed = 9, .offset = 20, .bits = bits};
      expect_brute_force(p.args, 13);
    }
  }
}

TEST(ReferenceForward, BiasBroadcasts) {
  Problem p(2, 2, 2, 3, 4, 2, 2);
  p.add_bias();
  for (const int which : {0, 1, 2, 3, 4, 5, 6, 7}) {
    auto args = p.args;
    if (which & 1) args.bias.tensor.batch_stride = 0;
    if (which & 2) args.bias.tensor.head_stride = 0;
    if (which & 4) args.bias.tensor.row_stride = 0;
    expect_brute_force(args);
  }
}

TEST(ReferenceForward, StridesAreFollowed) {
  Problem p(2, 3, 3, 5, 7, 4, 6);
  auto args = p.args;
  args.q = bshd<const void*>(p.q.data(), 3, 5, 4);
  args.k = bshd<const void*>(p.k.data(), 3, 7, 4);
  args.v = bshd<const void*>(p.v.data(), 3, 7, 6);
  expect_brute_force(args);
}

TEST(ReferenceForward, RowsThatSeeNothing) {
  Problem p(1, 1, 1, 5, 2, 3, 2);
  p.args.mask = Mask::causal_bottom_right();  // rows 0..2 see nothing
  const auto result = mha_forward(p.args);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(result.lse[i], -infinity);
    EXPECT_EQ(result.o[2 * i], 0);
    EXPECT_EQ(result.visible[i], 0);
  }
  EXPECT_EQ(result.visible[3], 1);
  EXPECT_DOUBLE_EQ(result.o[6], static_cast<double>(p.v[0]));
}

TEST(ReferenceForward, MinusInfinityBiasIsAMask) {
  Problem p(1, 1, 1, 3, 6, 2, 2);
  p.add_bias();
  for (std::size_t j = 0; j < 6; ++j) p.bias[j] = -std::numeric_limits<float>::infinity();
  p.bias[6 + 2] = -std::numeric_limits<float>::infinity();
  const auto result = mha_forward(p.args);
  EXPECT_EQ(result.lse[0], -infinity);
  EXPECT_EQ(result.o[0], 0);
  EXPECT_EQ(result.o[1], 0);
  EXPECT_EQ(result.visible[1], 5);
  expect_brute_force(p.args);
}

TEST(ReferenceForward, EmptyProblems) {
  Problem no_keys(1, 2, 2, 3, 0, 2, 2);
  const auto result = mha_forward(no_keys.args);
  expect_close(result.o, std::vector<double>(12, 0.0));
  expect_close(result.lse, std::vector<double>(6, -infinity));
  Problem no_queries(1, 2, 2, 0, 3, 2, 2);
  EXPECT_TRUE(mha_forward(no_queries.args).o.empty());
  Problem no_batch(0, 2, 2, 3, 3, 2, 2);
  EXPECT_TRUE(mha_forward(no_batch.args).lse.empty());
}

TEST(ReferenceForward, ConstantValuesComeBack) {
  Problem p(1, 2, 1, 9, 17, 4, 3);
  for (auto& v : p.v) v = 3;
  for (const double o : mha_forward(p.args).o) EXPECT_NEAR(o, 3, 1e-14);
}

TEST(ReferenceForward, HalvesMergeByTheirLse) {
  Problem p(1, 1, 1, 4, 10, 3, 2);
  const auto whole = mha_forward(p.args);
  auto half = p.args;
  half.seqlen_k = 6;
  const auto first = mha_forward(half);
  half.seqlen_k = 4;
  half.k.data = p.k.data() + 6 * 3;
  half.v.data = p.v.data() + 6 * 2;
  const auto second = mha_forward(half);
  for (std::size_t i = 0; i < 4; ++i) {
    const double lse = std::log(std::exp(first.lse[i]) + std::exp(second.lse[i]));
    EXPECT_NEAR(whole.lse[i], lse, 1e-12);
    for (std::size_t d = 2 * i; d < 2 * i + 2; ++d) {
      EXPECT_NEAR(
          whole.o[d],
          std::exp(first.lse[i] - lse) * first.o[d] + std::exp(second.lse[i] - lse) * second.o[d],
          1e-12);
    }
  }
}

TEST(ReferenceForward, KeyOrderDoesNotMatter) {
  Problem p(1, 1, 1, 4, 9, 3, 2);
  const auto before = mha_forward(p.args);
  auto backwards = p.args;
  backwards.k.data = p.k.data() + 8 * 3;
  backwards.k.row_stride = -3;
  backwards.v.data = p.v.data() + 8 * 2;
  backwards.v.row_stride = -2;
  const auto after = mha_forward(backwards);
  expect_close(after.o, before.o);
  expect_close(after.lse, before.lse);
}

TEST(ReferenceForward, HugeScoresStayFinite) {
  Problem p(1, 1, 1, 2, 3, 1, 1);
  p.q = {1e4f, -1e4f};
  p.k = {1, 2, 3};
  p.args.scale = 1.0f;
  const auto result = mha_forward(p.args);
  expect_close(result.lse, {3e4, -1e4});
  expect_close(result.o, {static_cast<double>(p.v[2]), static_cast<double>(p.v[0])});
  EXPECT_EQ(result.largest_score[0], 3e4);  // the others have p = 0
}

TEST(PlainForward, RoundsProbabilitiesAndOutputToTheInputType) {
  // Three equal keys: P = 1/3 rounds to 0x1.556p-2 in fp16, whose triple is below 1.
  const std::vector<fp16> one(3, static_cast<fp16>(1.0f));
  MhaForwardArgs args{};
  args.batch = args.heads_q = args.heads_kv = args.seqlen_q = args.head_dim = args.head_dim_v = 1;
  args.seqlen_k = 3;
  args.q = args.k = args.v = bhsd<const void*>(one.data(), 1, 3, 1);
  args.dtype = DataType::fp16;
  EXPECT_EQ(mha_forward<reference::Plain>(args).o[0],
            static_cast<double>(fp16_bits_to_float(float_to_fp16_bits(3 * 0x1.554p-2f))));
  EXPECT_NEAR(mha_forward(args).o[0], 1.0, 1e-15);
}

TEST(PlainForward, IsCloseToTheExactOne) {
  Problem p(1, 2, 1, 33, 70, 16, 8);
  p.add_bias();
  std::vector<std::uint16_t> q, k, v;
  for (const float x : p.q) q.push_back(float_to_bf16_bits(x));
  for (const float x : p.k) k.push_back(float_to_bf16_bits(x));
  for (const float x : p.v) v.push_back(float_to_bf16_bits(x));
  p.args.dtype = DataType::bf16;
  p.args.q.data = q.data();
  p.args.k.data = k.data();
  p.args.v.data = v.data();
  const auto exact = mha_forward(p.args);
  const auto plain = mha_forward<reference::Plain>(p.args);
  double largest = 0;
  for (std::size_t n = 0; n < exact.o.size(); ++n) {
    largest = std::max(largest, std::abs(exact.o[n] - plain.o[n]));
  }
  EXPECT_LT(largest, 2 * 0x1p-8);
  EXPECT_GT(largest, 0x1p-12);  // it does round
  for (std::size_t n = 0; n < exact.lse.size(); ++n) {
    EXPECT_NEAR(exact.lse[n], plain.lse[n], 1e-5);
  }
}

}  // namespace
