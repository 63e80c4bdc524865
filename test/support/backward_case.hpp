#pragma once
/// \file
/// A backward case in a few words, made into a BackwardProblem with random data.

#include <optional>
#include <ostream>
#include <sstream>
#include <string>

#include "support/backward_problem.hpp"
#include "support/forward_case.hpp"

namespace flashxdl::test {

struct BiasGradientCase {
  bool fp32 = true;    ///< else the type of the bias
  bool dense = false;  ///< one element for each score, although the bias is broadcast
};

struct BackwardCase {
  ForwardCase forward{};
  std::optional<BiasGradientCase> dbias{};
  std::optional<DataType> gradient_dtype{};
  bool dq = true, dk = true, dv = true;
  std::optional<Arrangement> gradients{};  ///< default: as the inputs
  bool deterministic = false;

  Arrangement gradient_arrangement() const { return gradients.value_or(forward.arrangement); }
};

inline std::string name_of(const BackwardCase& c) {
  std::ostringstream out;
  out << name_of(c.forward);
  if (c.dbias) {
    out << "_dbias" << (c.dbias->fp32 ? "_fp32" : "") << (c.dbias->dense ? "_dense" : "");
  }
  if (c.gradient_dtype) out << "_gradients_" << name_of(*c.gradient_dtype);
  if (!c.dq) out << "_nodq";
  if (!c.dk) out << "_nodk";
  if (!c.dv) out << "_nodv";
  if (c.gradients) out << "_to_" << name_of(*c.gradients);
  if (c.deterministic) out << "_deterministic";
  return out.str();
}

inline void PrintTo(const BackwardCase& c, std::ostream* out) {
  *out << name_of(c);
}

namespace detail {

inline TestTensor make_dbias(const MhaForwardArgs& a, const BiasCase& bias,
                             const BiasGradientCase& gradient, Arrangement arrangement) {
  const BiasCase to = gradient.dense ? BiasCase{} : bias;
  Layout layout = bias_layout(a, to, arrangement);
  if (to.over_batch) layout.shape.b = 1;
  if (to.over_head) layout.shape.h = 1;
  if (to.over_query) layout.shape.s = 1;
  return make_tensor(gradient.fp32 ? DataType::fp32 : bias.dtype, layout);
}

}  // namespace detail

/// The memory of a case, inputs and dO normal(0, 1); not uploaded, the forward not run yet.
inline BackwardProblem make_problem(const BackwardCase& c) {
  BackwardProblem p;
  p.forward = make_problem(c.forward);
  const MhaForwardArgs& a = p.forward.shape;
  if (!p.forward.lse) {
    p.forward.lse = make_tensor(DataType::fp32, bhsd_layout(ForwardProblem::lse_shape(a)));
  }
  p.d_o = make_tensor(a.dtype, detail::arrange(ForwardProblem::o_shape(a), c.forward.arrangement));
  Random random(~c.forward.data_seed);
  fill(p.d_o, [&] { return random.normal(); });

  p.gradient_dtype = c.gradient_dtype;
  p.deterministic = c.deterministic;
  const DataType dtype = c.gradient_dtype.value_or(a.dtype);
  if (c.gradient_arrangement() == Arrangement::packed) {
    const auto packed = detail::make_packed(a, dtype);
    p.dq = packed.q, p.dk = packed.k, p.dv = packed.v;
  } else {
    const auto make = [&](const Shape& shape) {
      return make_tensor(dtype, detail::arrange(shape, c.gradient_arrangement()));
    };
    p.dq = make(ForwardProblem::q_shape(a));
    p.dk = make(ForwardProblem::k_shape(a));
    p.dv = make(ForwardProblem::v_shape(a));
  }
  if (!c.dq) p.dq = {};
  if (!c.dk) p.dk = {};
  if (!c.dv) p.dv = {};
  if (c.dbias && c.forward.bias) {
    p.dbias = detail::make_dbias(a, *c.forward.bias, *c.dbias, c.gradient_arrangement());
  }
  return p;
}

}  // namespace flashxdl::test
