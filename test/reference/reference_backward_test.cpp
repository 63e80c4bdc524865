// The reference backward itself: cases worked by hand, gradients against central differences of the
// double forward, and the plain implementation beside it.

#include "flashxdl/reference/mha_backward.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace {

using namespace flashxdl;
using reference::mha_backward;
using reference::MhaBackwardResult;

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Sizes {
  std::int64_t batch = 1, heads_q = 1, heads_kv = 1;
  std::int64_t seqlen_q = 5, seqlen_k = 6, head_dim = 3, head_dim_v = 3;
};

/// A small fp32 problem with its storage.
struct Problem {
  MhaBackwardArgs args{};
  std::vector<float> q, k, v, d_o, bias;

  explicit Problem(const Sizes& s, unsigned seed = 1) : random_(seed) {
    MhaForwardArgs& f = args.forward;
    f.dtype = DataType::fp32;
    f.batch = s.batch;
    f.heads_q = s.heads_q;
    f.heads_kv = s.heads_kv;
    f.seqlen_q = s.seqlen_q;
    f.seqlen_k = s.seqlen_k;
    f.head_dim = s.head_dim;
    f.head_dim_v = s.head_dim_v;
    f.q = filled(q, s.batch, s.heads_q, s.seqlen_q, s.head_dim);
    f.k = filled(k, s.batch, s.heads_kv, s.seqlen_k, s.head_dim);
    f.v = filled(v, s.batch, s.heads_kv, s.seqlen_k, s.head_dim_v);
    args.d_o = filled(d_o, s.batch, s.heads_q, s.seqlen_q, s.head_dim_v);
  }
  Problem(const Problem&) = delete;

  /// A bias with its gradient; bit 0, 1, 2 of `broadcast`: one slice for batches, heads, rows.
  void add_bias(int broadcast = 0) {
    const MhaForwardArgs& f = args.forward;
    const std::int64_t batches = broadcast & 1 ? 1 : f.batch, heads = broadcast & 2 ? 1 : f.heads_q;
    const std::int64_t rows = broadcast & 4 ? 1 : f.seqlen_q;
    auto tensor = filled(bias, batches, heads, rows, f.seqlen_k);
    if (broadcast & 1) tensor.batch_stride = 0;
    if (broadcast & 2) tensor.head_stride = 0;
    if (broadcast & 4) tensor.row_stride = 0;
    args.forward.bias = {tensor, DataType::fp32};
    // Nothing is written there.
    args.dbias = {{bias.data(), tensor.batch_stride, tensor.head_stride, tensor.row_stride, 1},
                  DataType::fp32};
  }

  /// sum of dO * O
  double loss(std::uint64_t sequence_base) const {
    const auto o = reference::mha_forward(args.forward, sequence_base).o;
    double sum = 0;
    std::size_t n = 0;
    for (std::int64_t b = 0; b < args.forward.batch; ++b) {
      for (std::int64_t h = 0; h < args.forward.heads_q; ++h) {
        for (std::int64_t i = 0; i < args.forward.seqlen_q; ++i) {
          for (std::int64_t d = 0; d < args.forward.head_dim_v; ++d) {
            sum += o[n++] * static_cast<double>(load_element(args.d_o.data, args.forward.dtype,
                                                             args.d_o.offset(b, h, i, d)));
          }
        }
      }
    }
    return sum;
  }

private:
  Tensor<const void*> filled(std::vector<float>& values, std::int64_t b, std::int64_t h,
                             std::int64_t rows, std::int64_t columns) {
    std::uniform_int_distribution<int> steps(-512, 512);
    values.resize(static_cast<std::size_t>(b * h * rows * columns));
    for (auto& value : values) value = static_cast<float>(steps(random_)) / 256;
    return bhsd<const void*>(values.data(), h, rows, columns);
  }

  std::mt19937 random_;
};

/// Every element of `gradient` is the slope of the loss along that element of `input`.
void expect_slopes(const char* name, const Problem& p, std::vector<float>& input,
                   const std::vector<double>& gradient, std::uint64_t sequence_base) {
  ASSERT_EQ(gradient.size(), input.size()) << name;
  constexpr float step = 0x1p-12f;  // exact on top of the inputs
  for (std::size_t n = 0; n < input.size(); ++n) {
    const float middle = input[n];
    if (!std::isfinite(middle)) continue;
    input[n] = middle + step;
    const double above = p.loss(sequence_base);
    input[n] = middle - step;
    const double below = p.loss(sequence_base);
    input[n] = middle;
    const double slope = (above - below) / (2 * static_cast<double>(step));
    ASSERT_NEAR(gradient[n], slope, 1e-5 * (1 + std::abs(slope))) << name << " element " << n;
  }
}

void expect_slopes(Problem& p, std::uint64_t sequence_base = 0) {
  const MhaBackwardResult result = mha_backward(p.args, sequence_base);
  expect_slopes("dQ", p, p.q, result.dq, sequence_base);
  expect_slopes("dK", p, p.k, result.dk, sequence_base);
  expect_slopes("dV", p, p.v, result.dv, sequence_base);
  expect_slopes("dBias", p, p.bias, result.dbias, sequence_base);
}

void expect_zero(const std::vector<double>& values, std::size_t first, std::size_t end) {
  ASSERT_LE(end, values.size());
  for (std::size_t n = first; n < end; ++n) EXPECT_EQ(values[n], 0) << "element " << n;
}
void expect_zero(const std::vector<double>& values) {
  expect_zero(values, 0, values.size());
}

TEST(ReferenceBackward, TwoKeysByHand) {
  Problem p({.seqlen_q = 1, .seqlen_k = 2, .head_dim = 1, .head_dim_v = 1});
  p.q = {2};
  p.k = {0, 1};
  p.v = {1, 5};
  p.d_o = {-3};
  p.args.forward.scale = 0.5f;  // scores 0 and 1
  p.args.dbias.tensor = {p.q.data(), 2, 2, 2, 1};
  const auto result = mha_backward(p.args);
  const double w0 = 1 / (1 + std::exp(1.0)), w1 = 1 - w0;
  const double o = w0 + 5 * w1;
  const double ds0 = w0 * (-3 * 1 + 3 * o), ds1 = w1 * (-3 * 5 + 3 * o);
  const auto expect = [](const std::vector<double>& got, const std::vector<double>& wanted) {
    ASSERT_EQ(got.size(), wanted.size());
    for (std::size_t n = 0; n < got.size(); ++n) EXPECT_NEAR(got[n], wanted[n], 1e-14) << n;
  };
  expect(result.dv, {-3 * w0, -3 * w1});
  expect(result.dbias, {ds0, ds1});
  expect(result.dq, {0.5 * ds1});
  expect(result.dk, {0.5 * ds0 * 2, 0.5 * ds1 * 2});
  const double terms0 = w0 * (3 * 1 + 3 * o), terms1 = w1 * (3 * 5 + 3 * o);
  expect(result.dv_terms, {3 * w0, 3 * w1});
  expect(result.dbias_terms, {terms0, terms1});
  expect(result.dq_terms, {0.5 * terms1});
  expect(result.dk_terms, {0.5 * terms0 * 2, 0.5 * terms1 * 2});
  expect(result.largest_score, {1});
}

TEST(ReferenceBackward, DropoutByHand) {
  // Seed 1, first row of the first block: 112 6 232 227; p = 0.5 keeps the last two.
  Problem p({.seqlen_q = 1, .seqlen_k = 4, .head_dim = 1, .head_dim_v = 1});
  p.q = {0};
  p.v = {1, 2, 4, 8};
  p.d_o = {1};
  p.args.forward.dropout = {.probability = 0.5, .seed = 1};
  p.add_bias();
  p.bias = {0, 0, 0, 0};
  const auto result = mha_backward(p.args);  // O = 6
  EXPECT_EQ(result.dv, (std::vector<double>{0, 0, 0.5, 0.5}));
  EXPECT_EQ(result.dbias, (std::vector<double>{-1.5, -1.5, 0.5, 2.5}));
}

TEST(ReferenceBackward, IsTheSlopeOfTheForward) {
  Problem p({});
  expect_slopes(p);
}

TEST(ReferenceBackward, HeadDimensionsDiffer) {
  Problem narrow({.head_dim = 6, .head_dim_v = 2});
  expect_slopes(narrow);
  Problem wide({.head_dim = 1, .head_dim_v = 5});
  expect_slopes(wide);
}

TEST(ReferenceBackward, Dropout) {
  for (const int bits : {8, 16}) {
    Problem p({.batch = 2, .heads_q = 2, .heads_kv = 2});
    p.args.forward.dropout = {.probability = 0.4, .seed = 11, .offset = 24, .bits = bits};
    expect_slopes(p);
    expect_slopes(p, 7);
  }
}

TEST(ReferenceBackward, SevenRoundsAreAnotherMask) {
  Problem p({.seqlen_q = 9, .seqlen_k = 9});
  p.args.forward.dropout = {.probability = 0.5, .seed = 3};
  EXPECT_NE(mha_backward(p.args, 0, 7).dv, mha_backward(p.args).dv);
}

TEST(ReferenceBackward, BiasBroadcastsAreSums) {
  for (int broadcast = 0; broadcast < 8; ++broadcast) {
    Problem p({.batch = 2, .heads_q = 2, .heads_kv = 2, .seqlen_q = 4, .seqlen_k = 5});
    p.add_bias(broadcast);
    p.args.forward.dropout = {.probability = 0.3, .seed = 5};
    expect_slopes(p);
  }
}

TEST(ReferenceBackward, BiasGradientMayBeDenseWhereTheBiasIsNot) {
  Problem p({.batch = 2, .heads_q = 3, .heads_kv = 3});
  p.add_bias(7);
  const auto summed = mha_backward(p.args).dbias;
  p.args.dbias.tensor = bhsd<void*>(p.bias.data(), 3, 5, 6);
  const auto dense = mha_backward(p.args).dbias;
  ASSERT_EQ(summed.size(), 6u);
  ASSERT_EQ(dense.size(), 2u * 3 * 5 * 6);
  for (std::size_t j = 0; j < 6; ++j) {
    double sum = 0;
    for (std::size_t n = j; n < dense.size(); n += 6) sum += dense[n];
    EXPECT_NEAR(summed[j], sum, 1e-13) << j;
  }
}

TEST(ReferenceBackward, Masks) {
  using enum Mask::Alignment;
  for (const Mask& mask :
       {Mask::causal_top_left(), Mask::causal_bottom_right(), Mask::window(top_left, 1, 0),
        Mask::window(bottom_right, 2, 1), Mask::window(top_left, -1, 2)}) {
    for (const auto& [seqlen_q, seqlen_k] : {std::pair{6, 4}, {4, 6}, {5, 5}}) {
      Problem p({.seqlen_q = seqlen_q, .seqlen_k = seqlen_k});
      p.args.forward.mask = mask;
      p.add_bias();
      expect_slopes(p);
    }
  }
}

TEST(ReferenceBackward, QueryHeadsOfAGroupAreSummed) {
  for (const std::int64_t heads_kv : {1, 2}) {
    Problem p({.batch = 2, .heads_q = 6, .heads_kv = heads_kv, .seqlen_q = 3, .seqlen_k = 4});
    p.args.forward.dropout = {.probability = 0.3, .seed = 2};
    expect_slopes(p, 3);
  }
}

TEST(ReferenceBackward, EveryFeatureAtOnce) {
  Problem p({.batch = 2,
             .heads_q = 4,
             .heads_kv = 2,
             .seqlen_q = 6,
             .seqlen_k = 9,
             .head_dim = 4,
             .head_dim_v = 2});
  p.add_bias(2);
  p.args.forward.scale = -0.7f;
  p.args.forward.mask = Mask::window(Mask::Alignment::bottom_right, 4, 1);
  p.args.forward.dropout = {.probability = 0.3, .seed = 9, .offset = 20};
  expect_slopes(p, 13);
}

TEST(ReferenceBackward, Scales) {
  for (const float scale : {-0.5f, 0.25f, 2.0f}) {
    Problem p({});
    p.args.forward.scale = scale;
    expect_slopes(p);
  }
  Problem p({});
  p.args.forward.scale = 0.0f;
  p.add_bias();
  expect_slopes(p);
  const auto result = mha_backward(p.args);
  expect_zero(result.dq);
  expect_zero(result.dk);
}

TEST(ReferenceBackward, StridesAreFollowed) {
  Problem p({.batch = 2, .heads_q = 3, .heads_kv = 3});
  p.args.forward.q = bshd<const void*>(p.q.data(), 3, 5, 3);
  p.args.forward.k = bshd<const void*>(p.k.data(), 3, 6, 3);
  p.args.d_o.batch_stride = p.args.d_o.head_stride = p.args.d_o.row_stride = 0;
  const auto result = mha_backward(p.args);
  std::vector<double> dq_in_memory(result.dq.size());
  std::size_t n = 0;
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t h = 0; h < 3; ++h) {
      for (std::int64_t i = 0; i < 5; ++i) {
        for (std::int64_t d = 0; d < 3; ++d) {
          const auto at = static_cast<std::size_t>(p.args.forward.q.offset(b, h, i, d));
          dq_in_memory[at] = result.dq[n++];
        }
      }
    }
  }
  expect_slopes("dQ", p, p.q, dq_in_memory, 0);
  expect_slopes("dV", p, p.v, result.dv, 0);
}

TEST(ReferenceBackward, RowsThatSeeNothingContributeNothing) {
  Problem p({.seqlen_q = 5, .seqlen_k = 2});
  p.args.forward.mask = Mask::causal_bottom_right();  // rows 0..2 see nothing
  const auto whole = mha_backward(p.args);
  expect_zero(whole.dq, 0, 3 * 3);
  // The last two rows alone give the same.
  MhaBackwardArgs last = p.args;
  last.forward.seqlen_q = 2;
  last.forward.q.data = p.q.data() + 3 * 3;
  last.d_o.data = p.d_o.data() + 3 * 3;
  const auto part = mha_backward(last);
  EXPECT_EQ(whole.dk, part.dk);
  EXPECT_EQ(whole.dv, part.dv);
}

TEST(ReferenceBackward, MinusInfinityBiasIsAMask) {
  Problem p({.seqlen_q = 3});
  p.add_bias();
  for (std::size_t j = 0; j < 6; ++j) p.bias[j] = -std::numeric_limits<float>::infinity();
  p.bias[6 + 2] = -std::numeric_limits<float>::infinity();
  const auto result = mha_backward(p.args);
  expect_zero(result.dq, 0, 3);
  expect_zero(result.dbias, 0, 6);
  EXPECT_EQ(result.dbias[6 + 2], 0);
  expect_slopes("dQ", p, p.q, result.dq, 0);
  expect_slopes("dK", p, p.k, result.dk, 0);
  expect_slopes("dV", p, p.v, result.dv, 0);
  expect_slopes("dBias", p, p.bias, result.dbias, 0);
}

TEST(ReferenceBackward, EverythingDroppedGivesZero) {
  for (const int bits : {8, 16}) {
    Problem p({.heads_q = 2});
    p.add_bias();
    p.args.forward.dropout = {.probability = 1, .bits = bits};
    const auto result = mha_backward(p.args);
    for (const auto* gradient : {&result.dq, &result.dk, &result.dv, &result.dbias}) {
      expect_zero(*gradient);
    }
  }
}

TEST(ReferenceBackward, EmptyProblems) {
  Problem no_keys({.heads_q = 2, .seqlen_k = 0});
  expect_zero(mha_backward(no_keys.args).dq);
  Problem no_queries({.heads_q = 2, .seqlen_q = 0});
  no_queries.add_bias(4);
  const auto result = mha_backward(no_queries.args);
  EXPECT_EQ(result.dk.size(), 18u);
  EXPECT_EQ(result.dbias.size(), 12u);
  expect_zero(result.dk);
  expect_zero(result.dv);
  expect_zero(result.dbias);
  Problem no_batch({.batch = 0});
  EXPECT_TRUE(mha_backward(no_batch.args).dk.empty());
}

TEST(ReferenceBackward, NoBiasGradientWhereNoneIsWanted) {
  Problem p({});
  p.add_bias();
  p.args.dbias = {};
  EXPECT_TRUE(mha_backward(p.args).dbias.empty());
}

TEST(ReferenceBackward, ManyThreadsGiveWhatOneGives) {
  Problem p({.batch = 3,
             .heads_q = 4,
             .heads_kv = 2,
             .seqlen_q = 70,
             .seqlen_k = 90,
             .head_dim = 8,
             .head_dim_v = 8});
  p.add_bias(3);
  const auto whole = mha_backward(p.args);
  std::vector<double> dbias(whole.dbias.size());
  for (std::int64_t b = 0; b < 3; ++b) {
    for (std::int64_t h = 0; h < 2; ++h) {
      MhaBackwardArgs one = p.args;
      one.forward.batch = one.forward.heads_kv = 1;
      one.forward.heads_q = 2;
      const auto shift = [&](Tensor<const void*>& t, const std::vector<float>& from,
                             std::int64_t heads) {
        t.data = from.data() + b * t.batch_stride + h * heads * t.head_stride;
      };
      shift(one.forward.q, p.q, 2);
      shift(one.forward.k, p.k, 1);
      shift(one.forward.v, p.v, 1);
      shift(one.d_o, p.d_o, 2);
      const auto part = mha_backward(one);
      for (std::size_t n = 0; n < dbias.size(); ++n) dbias[n] += part.dbias[n];
      const auto first = static_cast<std::size_t>((b * 2 + h) * 90 * 8);
      for (std::size_t n = 0; n < part.dk.size(); ++n) {
        ASSERT_EQ(part.dk[n], whole.dk[first + n]);
        ASSERT_EQ(part.dv[n], whole.dv[first + n]);
      }
    }
  }
  for (std::size_t n = 0; n < dbias.size(); ++n) ASSERT_NEAR(dbias[n], whole.dbias[n], 1e-12);
}

TEST(ReferenceBackward, HugeScoresStayFinite) {
  Problem p({.seqlen_q = 2, .seqlen_k = 3, .head_dim = 1});
  p.q = {1e4f, -1e4f};
  p.k = {1, 2, 3};
  p.args.forward.scale = 1.0f;
  const auto result = mha_backward(p.args);  // each row is one key: no slope
  expect_zero(result.dq);
  expect_zero(result.dk);
  EXPECT_EQ(result.largest_score[0], 3e4);
  EXPECT_EQ(result.dv[6], static_cast<double>(p.d_o[0]));
}

// ---- Plain

/// The problem in a 16-bit type.
void convert(Problem& p, DataType dtype, std::vector<std::vector<std::uint16_t>>& storage) {
  p.args.forward.dtype = dtype;
  for (auto [tensor, values] : {std::pair{&p.args.forward.q, &p.q},
                                {&p.args.forward.k, &p.k},
                                {&p.args.forward.v, &p.v},
                                {&p.args.d_o, &p.d_o}}) {
    auto& bits = storage.emplace_back(values->size());
    for (std::size_t n = 0; n < bits.size(); ++n) {
      store_element(bits.data(), dtype, static_cast<std::int64_t>(n), (*values)[n]);
    }
    tensor->data = bits.data();
  }
}

TEST(PlainBackward, RoundsOperandsAndResults) {
  // Three equal keys: P = 1/3 rounds to 0x1.554p-2 in fp16; O = (1 + 2 + 4)/3 rounds, too.
  Problem p({.seqlen_q = 1, .seqlen_k = 3, .head_dim = 1, .head_dim_v = 1});
  p.q = {1};
  p.k = {1, 1, 1};
  p.v = {1, 2, 4};
  p.d_o = {1};
  std::vector<std::vector<std::uint16_t>> storage;
  convert(p, DataType::fp16, storage);
  p.args.gradient_dtype = DataType::fp32;
  p.args.dbias.tensor = {storage[0].data(), 3, 3, 3, 1};
  const auto fp16 = [](float x) { return fp16_bits_to_float(float_to_fp16_bits(x)); };
  const auto result = mha_backward<reference::Plain>(p.args);
  const float third = 1.0f / 3.0f, o = fp16(7 * 0x1.554p-2f);
  float dq = 0;
  for (std::size_t j = 0; j < 3; ++j) {
    const float ds = fp16(third * (p.v[j] - o));
    dq += ds;
    EXPECT_EQ(result.dv[j], 0x1.554p-2);
    EXPECT_EQ(result.dbias[j], static_cast<double>(ds));
    EXPECT_EQ(result.dk[j], static_cast<double>(ds));
  }
  EXPECT_EQ(result.dq[0], static_cast<double>(dq));
  p.args.gradient_dtype.reset();
  p.args.forward.scale = 0.3f;
  p.args.dbias.dtype = DataType::bf16;
  const auto rounded = mha_backward<reference::Plain>(p.args);
  const float ds0 = fp16(third * (1 - o));
  EXPECT_EQ(rounded.dk[0], static_cast<double>(fp16(ds0 * 0.3f)));
  EXPECT_EQ(rounded.dbias[0], static_cast<double>(bf16_bits_to_float(float_to_bf16_bits(ds0))));
}

TEST(PlainBackward, IsCloseToTheExactOne) {
  for (const DataType dtype : {DataType::fp16, DataType::bf16}) {
    for (const double probability : {0.0, 0.3}) {
      Problem p({.batch = 2,
                 .heads_q = 4,
                 .heads_kv = 2,
                 .seqlen_q = 33,
                 .seqlen_k = 70,
                 .head_dim = 16,
                 .head_dim_v = 8});
      p.add_bias(1);
      p.args.forward.dropout.probability = probability;
      p.args.forward.mask = Mask::causal_bottom_right();
      std::vector<std::vector<std::uint16_t>> storage;
      convert(p, dtype, storage);
      const auto exact = mha_backward(p.args);
      const auto plain = mha_backward<reference::Plain>(p.args);
      const double unit = dtype == DataType::fp16 ? 0x1p-11 : 0x1p-8;
      const auto expect_close = [&](const char* name, const std::vector<double>& a,
                                    const std::vector<double>& b) {
        double error = 0, largest = 0;
        ASSERT_EQ(a.size(), b.size());
        for (std::size_t n = 0; n < a.size(); ++n) {
          error = std::max(error, std::abs(a[n] - b[n]));
          largest = std::max(largest, std::abs(a[n]));
        }
        EXPECT_LT(error, 4 * unit * largest) << name << ' ' << name_of(dtype);
        EXPECT_GT(error, unit * largest / 64) << name << ' ' << name_of(dtype);  // it does round
      };
      expect_close("dQ", exact.dq, plain.dq);
      expect_close("dK", exact.dk, plain.dk);
      expect_close("dV", exact.dv, plain.dv);
      expect_close("dBias", exact.dbias, plain.dbias);
    }
  }
}

TEST(ReferenceBackward, TermsBoundTheGradients) {
  Problem p({.batch = 2, .heads_q = 4, .heads_kv = 2});
  p.add_bias(4);
  p.args.forward.scale = -0.4f;
  const auto result = mha_backward(p.args);
  for (const auto& [gradient, terms] : {std::pair{&result.dq, &result.dq_terms},
                                        {&result.dk, &result.dk_terms},
                                        {&result.dv, &result.dv_terms},
                                        {&result.dbias, &result.dbias_terms}}) {
    ASSERT_EQ(gradient->size(), terms->size());
    for (std::size_t n = 0; n < gradient->size(); ++n) {
      EXPECT_LE(std::abs((*gradient)[n]), (*terms)[n] * (1 + 1e-12));
    }
  }
}

}  // namespace
