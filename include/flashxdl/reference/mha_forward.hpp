#pragma once
/// \file
/// Attention forward on the CPU, by the formula: s = scale * (q . k) + bias, mask, p = softmax(s),
/// o = dropout(p) . v. Two arithmetics run the same code: Exact, double throughout, and Plain, the
/// yardstick, which rounds as a straightforward 16-bit implementation does.
///
/// All pointers of the arguments must be host-readable; O, LSE and the keep mask are not written.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "flashxdl/core/problem.hpp"
#include "flashxdl/reference/dropout_mask.hpp"
#include "flashxdl/reference/parallel_for.hpp"

namespace flashxdl::reference {

/// Dense results. `o` and `o_terms` are [B, Hq, Sq, Dv], the others [B, Hq, Sq].
struct MhaForwardResult {
  std::vector<double> o;
  std::vector<double> lse;            ///< natural logarithm; -inf where no key is visible
  std::vector<double> o_terms;        ///< o with every term replaced by its absolute value
  std::vector<double> largest_score;  ///< largest |s| among the entries with p > 0
  std::vector<std::int64_t> visible;  ///< keys that the row sees, -inf bias entries taken out
  std::vector<std::int64_t> kept;     ///< those of them that dropout keeps
};

/// double from the inputs to the result.
struct Exact {
  using Real = double;
  static constexpr double round(double value, DataType) { return value; }
};

/// Scores and softmax in fp32; the probabilities and the output rounded to the input type.
struct Plain {
  using Real = float;
  static float round(float value, DataType type) {
    float rounded = 0;
    store_element(&rounded, type, 0, value);
    return load_element(&rounded, type, 0);
  }
};

namespace detail {

/// One (batch, query head) of a forward problem: inputs gathered once, rows computed one by one.
template <class Arithmetic>
class ForwardHead {
public:
  using Real = typename Arithmetic::Real;

  ForwardHead(const MhaForwardArgs& args, std::int64_t b, std::int64_t h, std::uint64_t sequence,
              int rounds)
      : args_(args),
        b_(b),
        h_(h),
        dropout_(args.dropout, sequence, args.seqlen_k, rounds),
        keys_(size(args.head_dim * args.seqlen_k)),
        values_(size(args.seqlen_k * args.head_dim_v)),
        scores_(size(args.seqlen_k)),
        kept_(size(args.seqlen_k)),
        sums_(size(args.head_dim_v)),
        terms_(size(args.head_dim_v)) {
    const std::int64_t h_kv = h / (args.heads_q / args.heads_kv);
    for (std::int64_t j = 0; j < args.seqlen_k; ++j) {
      for (std::int64_t d = 0; d < args.head_dim; ++d) {  // transposed: rows of keys_ are columns
        keys_[size(d * args.seqlen_k + j)] = load(args.k, b, h_kv, j, d);
      }
      for (std::int64_t d = 0; d < args.head_dim_v; ++d) {
        values_[size(j * args.head_dim_v + d)] = load(args.v, b, h_kv, j, d);
      }
    }
  }

  void compute_row(std::int64_t i, MhaForwardResult& result) {
    const std::int64_t first =
        std::max<std::int64_t>(0, args_.mask.first_key(i, args_.seqlen_q, args_.seqlen_k));
    const std::int64_t end =
        std::min(args_.seqlen_k, args_.mask.end_key(i, args_.seqlen_q, args_.seqlen_k));
    const std::int64_t row = (b_ * args_.heads_q + h_) * args_.seqlen_q + i;
    result.lse[size(row)] = -std::numeric_limits<double>::infinity();
    if (first >= end) return;
    compute_scores(i, first, end);
    const Real largest = *std::max_element(&scores_[size(first)], &scores_[0] + end);
    if (largest == -std::numeric_limits<Real>::infinity()) return;
    const Real sum = exponentiate(first, end, largest, row, result);
    result.lse[size(row)] = static_cast<double>(largest + std::log(sum));
    dropout_.keep_row(i, first, end, kept_.data());
    accumulate(first, end, sum, row, result);
  }

private:
  static constexpr std::size_t size(std::int64_t n) { return static_cast<std::size_t>(n); }

  Real load(const Tensor<const void*>& t, std::int64_t b, std::int64_t h, std::int64_t row,
            std::int64_t column) const {
    return load_element(t.data, args_.dtype, t.offset(b, h, row, column));
  }

  /// scores_[j] = scale * (q . k) + bias
  void compute_scores(std::int64_t i, std::int64_t first, std::int64_t end) {
    std::fill(&scores_[size(first)], &scores_[0] + end, Real{0});
    for (std::int64_t d = 0; d < args_.head_dim; ++d) {
      const Real q = load(args_.q, b_, h_, i, d);
      const Real* key = &keys_[size(d * args_.seqlen_k)];
      for (std::int64_t j = first; j < end; ++j) scores_[size(j)] += q * key[j];
    }
    const Real scale = args_.scale_or_default();
    const auto& bias = args_.bias.tensor;
    for (std::int64_t j = first; j < end; ++j) {
      scores_[size(j)] *= scale;
      if (bias.data != nullptr) {
        scores_[size(j)] += load_element(bias.data, args_.bias.dtype, bias.offset(b_, h_, i, j));
      }
    }
  }

  /// scores_[j] becomes exp(s - largest); returns their sum and notes what the row sees.
  Real exponentiate(std::int64_t first, std::int64_t end, Real largest, std::int64_t row,
                    MhaForwardResult& result) {
    Real sum = 0;
    double largest_magnitude = 0;
    std::int64_t visible = 0;
    for (std::int64_t j = first; j < end; ++j) {
      const Real s = scores_[size(j)];
      const Real p = std::exp(s - largest);
      if (p > 0) {
        largest_magnitude = std::max(largest_magnitude, std::abs(static_cast<double>(s)));
      }
      if (s != -std::numeric_limits<Real>::infinity()) ++visible;
      scores_[size(j)] = p;
      sum += p;
    }
    result.largest_score[size(row)] = largest_magnitude;
    result.visible[size(row)] = visible;
    return sum;
  }

  /// o = sum over the kept keys of p * v, scaled by 1 / (1 - dropout probability in force)
  void accumulate(std::int64_t first, std::int64_t end, Real sum, std::int64_t row,
                  MhaForwardResult& result) {
    std::fill(sums_.begin(), sums_.end(), Real{0});
    std::fill(terms_.begin(), terms_.end(), Real{0});
    std::int64_t kept = 0;
    const std::int64_t columns = args_.head_dim_v;
    for (std::int64_t j = first; j < end; ++j) {
      if (kept_[size(j)] == 0) continue;
      const Real p = Arithmetic::round(scores_[size(j)] / sum, args_.dtype);
      if (p == 0) continue;
      ++kept;
      const Real* value = &values_[size(j * columns)];
      for (std::int64_t d = 0; d < columns; ++d) sums_[size(d)] += p * value[d];
      for (std::int64_t d = 0; d < columns; ++d) terms_[size(d)] += p * std::abs(value[d]);
    }
    result.kept[size(row)] = kept;
    const Real keep_scale = static_cast<Real>(args_.dropout.keep_scale());
    for (std::int64_t d = 0; d < columns; ++d) {
      result.o[size(row * columns + d)] =
          static_cast<double>(Arithmetic::round(sums_[size(d)] * keep_scale, args_.dtype));
      result.o_terms[size(row * columns + d)] = static_cast<double>(terms_[size(d)] * keep_scale);
    }
  }

  const MhaForwardArgs& args_;
  std::int64_t b_, h_;
  DropoutMask dropout_;
  std::vector<Real> keys_, values_;  // [D, Sk] and [Sk, Dv]
  std::vector<Real> scores_;         // [Sk]
  std::vector<std::uint8_t> kept_;   // [Sk]
  std::vector<Real> sums_, terms_;   // [Dv]
};

}  // namespace detail

/// The forward of one problem. `sequence_base`: B*Hq of all groups before, in a grouped call.
/// `rounds`: of Philox.
template <class Arithmetic = Exact>
MhaForwardResult mha_forward(const MhaForwardArgs& args, std::uint64_t sequence_base = 0,
                             int rounds = 10) {
  const std::int64_t heads = args.batch * args.heads_q;
  const auto rows = static_cast<std::size_t>(heads * args.seqlen_q);
  const std::size_t elements = rows * static_cast<std::size_t>(args.head_dim_v);
  MhaForwardResult result{std::vector<double>(elements),   std::vector<double>(rows),
                          std::vector<double>(elements),   std::vector<double>(rows),
                          std::vector<std::int64_t>(rows), std::vector<std::int64_t>(rows)};
  const double cost = static_cast<double>(args.seqlen_q + 1) * static_cast<double>(args.seqlen_k) *
                      static_cast<double>(args.head_dim + args.head_dim_v);
  parallel_for(heads, cost, [&](std::int64_t index) {
    detail::ForwardHead<Arithmetic> head(args, index / args.heads_q, index % args.heads_q,
                                         sequence_base + static_cast<std::uint64_t>(index), rounds);
    for (std::int64_t i = 0; i < args.seqlen_q; ++i) head.compute_row(i, result);
  });
  return result;
}

/// The keep mask [B, Hq, Sq, Sk], dense: 1 where a score is kept.
inline std::vector<std::uint8_t> keep_mask(const MhaForwardArgs& args,
                                           std::uint64_t sequence_base = 0, int rounds = 10) {
  const std::int64_t heads = args.batch * args.heads_q;
  std::vector<std::uint8_t> keep(static_cast<std::size_t>(heads * args.seqlen_q * args.seqlen_k));
  parallel_for(
      heads, static_cast<double>(args.seqlen_q * args.seqlen_k) * 50, [&](std::int64_t index) {
        const DropoutMask mask(args.dropout, sequence_base + static_cast<std::uint64_t>(index),
                               args.seqlen_k, rounds);
        for (std::int64_t i = 0; i < args.seqlen_q; ++i) {
          mask.keep_row(i, 0, args.seqlen_k,
                        keep.data() + (index * args.seqlen_q + i) * args.seqlen_k);
        }
      });
  return keep;
}

}  // namespace flashxdl::reference
