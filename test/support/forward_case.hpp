#pragma once
/// \file
/// A forward case in a few words, for generated tests: made into a ForwardProblem with random data.

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>

#include "flashxdl/core/problem.hpp"
#include "support/forward_problem.hpp"
#include "support/random.hpp"

namespace flashxdl::test {

/// How Q, K, V and O lie in memory.
enum class Arrangement {
  bhsd,
  bshd,
  packed,      ///< Q, K, V in one [B, S, Hq + 2 Hkv, D] buffer; needs Sq = Sk and D = Dv
  pitched,     ///< 3 elements of gap after every row, 2 rows of gap after every head
  misaligned,  ///< every tensor starts one element past an aligned address
};

inline const char* name_of(Arrangement arrangement) {
  switch (arrangement) {
    case Arrangement::bhsd:
      return "bhsd";
    case Arrangement::bshd:
      return "bshd";
    case Arrangement::packed:
      return "packed";
    case Arrangement::pitched:
      return "pitched";
    case Arrangement::misaligned:
      return "misaligned";
  }
  return "unknown";
}

struct BiasCase {
  DataType dtype = DataType::fp32;
  bool over_batch = false, over_head = false, over_query = false;  ///< broadcast: stride 0
  double neg_inf_fraction = 0;
};

struct ForwardCase {
  DataType dtype = DataType::fp16;
  std::int64_t batch = 1, heads_q = 1, heads_kv = 1;
  std::int64_t seqlen_q = 1, seqlen_k = 1, head_dim = 64, head_dim_v = 64;
  Mask mask{};
  std::optional<BiasCase> bias{};
  Dropout dropout{};
  std::optional<float> scale{};
  Arrangement arrangement = Arrangement::bhsd;
  bool lse = true;
  bool keep = false;
  std::uint64_t data_seed = 1;

  MhaForwardArgs shape() const {
    MhaForwardArgs a{};
    a.dtype = dtype;
    a.batch = batch;
    a.heads_q = heads_q;
    a.heads_kv = heads_kv;
    a.seqlen_q = seqlen_q;
    a.seqlen_k = seqlen_k;
    a.head_dim = head_dim;
    a.head_dim_v = head_dim_v;
    a.scale = scale;
    a.mask = mask;
    a.dropout = dropout;
    return a;
  }
};

namespace detail {

inline void describe_mask(std::ostream& out, const Mask& mask) {
  if (mask.left < 0 && mask.right < 0) return;
  const bool bottom = mask.alignment == Mask::Alignment::bottom_right;
  const auto side = [](std::int64_t n) { return n < 0 ? std::string("inf") : std::to_string(n); };
  out << (bottom ? "_bottom_right" : "_top_left");
  if (mask.left >= 0 || mask.right != 0) {
    out << "_window_" << side(mask.left) << '_' << side(mask.right);
  }
}

inline void describe_bias(std::ostream& out, const BiasCase& bias) {
  out << "_bias_" << name_of(bias.dtype);
  if (bias.over_batch) out << "_1b";
  if (bias.over_head) out << "_1h";
  if (bias.over_query) out << "_1q";
  if (bias.neg_inf_fraction > 0) out << "_neginf";
}

}  // namespace detail

/// A name for gtest: letters, digits and underscores, and all that one needs to repeat the case.
inline std::string name_of(const ForwardCase& c) {
  std::ostringstream out;
  out << name_of(c.dtype) << "_B" << c.batch << "_Hq" << c.heads_q << "_Hkv" << c.heads_kv << "_Sq"
      << c.seqlen_q << "_Sk" << c.seqlen_k << "_D" << c.head_dim << "_Dv" << c.head_dim_v;
  detail::describe_mask(out, c.mask);
  if (c.bias) detail::describe_bias(out, *c.bias);
  if (c.dropout.probability > 0) {
    out << "_drop" << c.dropout.threshold() << "of" << (1 << c.dropout.bits) << "_seed"
        << c.dropout.seed << "_offset" << c.dropout.offset;
  }
  if (c.scale) {
    out << "_scale" << (*c.scale < 0 ? "_minus_" : "_")
        << static_cast<int>(std::abs(*c.scale) * 1000) << "_milli";
  }
  out << '_' << name_of(c.arrangement);
  if (!c.lse) out << "_nolse";
  if (c.keep) out << "_keep";
  out << "_data" << c.data_seed;
  return out.str();
}

inline void PrintTo(const ForwardCase& c, std::ostream* out) {
  *out << name_of(c);
}

namespace detail {

inline Layout arrange(const Shape& shape, Arrangement arrangement) {
  switch (arrangement) {
    case Arrangement::bshd:
      return bshd_layout(shape);
    case Arrangement::pitched:
      return bhsd_layout(shape, shape.d + 3, shape.s + 2);
    case Arrangement::misaligned: {
      Layout layout = bhsd_layout(shape);
      layout.offset = 1;
      return layout;
    }
    case Arrangement::bhsd:
    case Arrangement::packed:
      break;
  }
  return bhsd_layout(shape);
}

struct Packed {
  TestTensor q, k, v;
};

/// Q, K and V, or their gradients, as columns of one [B, S, Hq + 2 Hkv, D] buffer.
inline Packed make_packed(const MhaForwardArgs& a, DataType dtype) {
  const std::int64_t heads = a.heads_q + 2 * a.heads_kv;
  const Shape all{a.batch, heads, a.seqlen_q, a.head_dim};
  const TestTensor whole = make_tensor(dtype, bshd_layout(all));
  const auto part = [&](std::int64_t first_head, std::int64_t count) {
    TestTensor tensor = whole;
    tensor.layout.shape.h = count;
    tensor.layout.offset = first_head * a.head_dim;
    return tensor;
  };
  return {part(0, a.heads_q), part(a.heads_q, a.heads_kv),
          part(a.heads_q + a.heads_kv, a.heads_kv)};
}

inline Layout bias_layout(const MhaForwardArgs& a, const BiasCase& bias, Arrangement arrangement) {
  Shape stored = ForwardProblem::score_shape(a);
  if (bias.over_batch) stored.b = 1;
  if (bias.over_head) stored.h = 1;
  if (bias.over_query) stored.s = 1;
  Layout layout = arrange(stored, arrangement);
  layout.shape = ForwardProblem::score_shape(a);
  if (bias.over_batch) layout.b = 0;
  if (bias.over_head) layout.h = 0;
  if (bias.over_query) layout.s = 0;
  return layout;
}

}  // namespace detail

/// Fills every element with value().
template <class Value>
void fill(TestTensor& tensor, const Value& value) {
  tensor.layout.for_each([&](std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) {
    tensor.set(b, h, s, d, value());
  });
}

/// The memory of a case, inputs normal(0, 1); not uploaded yet.
inline ForwardProblem make_problem(const ForwardCase& c) {
  ForwardProblem p;
  p.shape = c.shape();
  const auto make = [&](const Shape& shape) {
    return make_tensor(c.dtype, detail::arrange(shape, c.arrangement));
  };
  if (c.arrangement == Arrangement::packed) {
    const auto packed = detail::make_packed(p.shape, c.dtype);
    p.q = packed.q, p.k = packed.k, p.v = packed.v;
  } else {
    p.q = make(ForwardProblem::q_shape(p.shape));
    p.k = make(ForwardProblem::k_shape(p.shape));
    p.v = make(ForwardProblem::v_shape(p.shape));
  }
  p.o = make(ForwardProblem::o_shape(p.shape));
  if (c.lse) p.lse = make_tensor(DataType::fp32, bhsd_layout(ForwardProblem::lse_shape(p.shape)));
  if (c.keep) {
    p.keep = make_tensor(std::nullopt,
                         detail::arrange(ForwardProblem::score_shape(p.shape), c.arrangement));
  }
  Random random(c.data_seed);
  for (TestTensor* tensor : {&p.q, &p.k, &p.v}) fill(*tensor, [&] { return random.normal(); });
  if (c.bias) {
    p.bias = make_tensor(c.bias->dtype, detail::bias_layout(p.shape, *c.bias, c.arrangement));
    fill(p.bias, [&] {
      return random.uniform() < c.bias->neg_inf_fraction ? -std::numeric_limits<double>::infinity()
                                                         : random.normal();
    });
  }
  return p;
}

}  // namespace flashxdl::test
