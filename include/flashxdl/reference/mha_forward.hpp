#pragma once
/// \file
/// Attention forward on the CPU, by the formula: o = dropout(p) . v, in the arithmetics and with
/// the p of probabilities.hpp.
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
#include "flashxdl/reference/probabilities.hpp"

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

namespace detail {

/// One (batch, query head) of a forward problem, computed row by row.
template <class Arithmetic>
class ForwardHead {
public:
  using Real = typename Arithmetic::Real;

  ForwardHead(const MhaForwardArgs& args, std::int64_t b, std::int64_t h, std::uint64_t sequence,
              int rounds)
      : args_(args),
        first_row_((b * args.heads_q + h) * args.seqlen_q),
        probabilities_(args, b, h, sequence, rounds),
        values_(gather<Real>(args.v, args.dtype, b, h / (args.heads_q / args.heads_kv),
                             args.seqlen_k, args.head_dim_v)),
        sums_(size(args.head_dim_v)),
        terms_(size(args.head_dim_v)) {}

  void compute_row(std::int64_t i, MhaForwardResult& result) {
    const std::int64_t row = first_row_ + i;
    result.lse[size(row)] = -std::numeric_limits<double>::infinity();
    if (!probabilities_.compute_row(i)) return;
    result.lse[size(row)] = static_cast<double>(probabilities_.lse());
    result.largest_score[size(row)] = probabilities_.largest_score();
    result.visible[size(row)] = probabilities_.visible();
    accumulate(row, result);
  }

private:
  /// o = sum over the kept keys of p * v, scaled by 1 / (1 - dropout probability in force)
  void accumulate(std::int64_t row, MhaForwardResult& result) {
    std::fill(sums_.begin(), sums_.end(), Real{0});
    std::fill(terms_.begin(), terms_.end(), Real{0});
    std::int64_t kept = 0;
    const std::int64_t columns = args_.head_dim_v;
    for (std::int64_t j = probabilities_.first(); j < probabilities_.end(); ++j) {
      if (!probabilities_.kept(j)) continue;
      const Real p = Arithmetic::round(probabilities_[j], args_.dtype);
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
  std::int64_t first_row_;
  Probabilities<Arithmetic> probabilities_;
  std::vector<Real> values_;        // [Sk, Dv]
  std::vector<Real> sums_, terms_;  // [Dv]
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
