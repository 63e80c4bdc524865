#pragma once
/// \file
/// Attention backward on the CPU, by the formulas, with pd = dropout(p) and the keep factor m
/// (0, or the scale of the kept):
///
///     dV = pd^T dO        dP = (dO V^T) * m        dS = p * (dP - rowsum(dO * O))
///     dQ = scale * dS K   dK = scale * dS^T Q      dBias = dS
///
/// in the arithmetics of probabilities.hpp; Plain rounds O, p and dS to the input type before they
/// enter a product. dK and dV are summed over the query heads of a KV head, dBias over the
/// dimensions where its stride is 0.
///
/// All pointers of the inputs must be host-readable; O and LSE are computed anew, not read, and
/// nothing is written. Of the gradients only types count, and whether and how dBias is broadcast.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "flashxdl/core/problem.hpp"
#include "flashxdl/reference/mha_forward.hpp"
#include "flashxdl/reference/parallel_for.hpp"
#include "flashxdl/reference/probabilities.hpp"

namespace flashxdl::reference {

/// Dense results: dQ [B, Hq, Sq, D], dK [B, Hkv, Sk, D], dV [B, Hkv, Sk, Dv]; dBias [B, Hq, Sq, Sk]
/// with extent 1 where its stride is 0, empty if it is not wanted.
struct MhaBackwardResult {
  std::vector<double> dq, dk, dv, dbias;
  /// The same formulas with every term replaced by its absolute value.
  std::vector<double> dq_terms, dk_terms, dv_terms, dbias_terms;
  std::vector<double> largest_score;  ///< [B, Hq, Sq]: largest |s| among the entries with p > 0
};

namespace detail {

/// Numbers that are summed up, beside the sums of their terms' absolute values.
template <class Real>
struct Sums {
  std::vector<Real> value, terms;

  explicit Sums(std::int64_t count = 0) : value(size(count)), terms(size(count)) {}

  void clear() {
    std::fill(value.begin(), value.end(), Real{0});
    std::fill(terms.begin(), terms.end(), Real{0});
  }
  /// Adds factor * from[n] to element at + n, for 0 <= n < count; `terms` >= |factor|.
  void add(std::int64_t at, Real factor, Real factor_terms, const Real* from, std::int64_t count) {
    Real* to = value.data() + at;
    for (std::int64_t n = 0; n < count; ++n) to[n] += factor * from[n];
    to = terms.data() + at;
    for (std::int64_t n = 0; n < count; ++n) to[n] += factor_terms * std::abs(from[n]);
  }
};

/// dBias, which heads may share.
class BiasGradientSums {
public:
  explicit BiasGradientSums(const MhaBackwardArgs& args) {
    const auto& tensor = args.dbias.tensor;
    if (tensor.data == nullptr) return;
    batches_ = tensor.batch_stride == 0 ? 1 : args.forward.batch;
    heads_ = tensor.head_stride == 0 ? 1 : args.forward.heads_q;
    rows_ = tensor.row_stride == 0 ? 1 : args.forward.seqlen_q;
    columns_ = args.forward.seqlen_k;
    sums_ = Sums<double>(batches_ * heads_ * rows_ * columns_);
  }

  /// Adds dS of row i, for keys from first to one before end.
  template <class Real>
  void add(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t first, std::int64_t end,
           const Sums<Real>& ds) {
    if (sums_.value.empty()) return;
    const std::int64_t row =
        ((std::min(b, batches_ - 1) * heads_ + std::min(h, heads_ - 1)) * rows_ +
         std::min(i, rows_ - 1)) *
        columns_;
    const std::lock_guard lock(mutex_);
    for (std::int64_t j = first; j < end; ++j) {
      sums_.value[size(row + j)] += static_cast<double>(ds.value[size(j)]);
      sums_.terms[size(row + j)] += static_cast<double>(ds.terms[size(j)]);
    }
  }

  template <class Arithmetic>
  void store(DataType dtype, MhaBackwardResult& result) {
    using Real = typename Arithmetic::Real;
    for (double& sum : sums_.value) {
      sum = static_cast<double>(Arithmetic::round(static_cast<Real>(sum), dtype));
    }
    result.dbias = std::move(sums_.value);
    result.dbias_terms = std::move(sums_.terms);
  }

private:
  std::mutex mutex_;
  std::int64_t batches_ = 0, heads_ = 0, rows_ = 0, columns_ = 0;
  Sums<double> sums_;  // [batches, heads, rows, columns]
};

/// One (batch, KV head): its query heads are added up one by one.
template <class Arithmetic>
class BackwardHead {
public:
  using Real = typename Arithmetic::Real;

  BackwardHead(const MhaBackwardArgs& args, std::int64_t b, std::int64_t h_kv)
      : args_(args),
        forward_(args.forward),
        b_(b),
        h_kv_(h_kv),
        keys_(gather<Real>(forward_.k, forward_.dtype, b, h_kv, forward_.seqlen_k,
                           forward_.head_dim)),
        values_(gather<Real>(forward_.v, forward_.dtype, b, h_kv, forward_.seqlen_k,
                             forward_.head_dim_v, true)),
        dk_(forward_.seqlen_k * forward_.head_dim),
        dv_(forward_.seqlen_k * forward_.head_dim_v),
        dq_(forward_.head_dim),
        ds_(forward_.seqlen_k) {}

  void add_query_head(std::int64_t h, std::uint64_t sequence, int rounds,
                      const MhaForwardResult& forward, BiasGradientSums& dbias,
                      MhaBackwardResult& result) {
    const auto q =
        gather<Real>(forward_.q, forward_.dtype, b_, h, forward_.seqlen_q, forward_.head_dim);
    const auto d_o =
        gather<Real>(args_.d_o, forward_.dtype, b_, h, forward_.seqlen_q, forward_.head_dim_v);
    Probabilities<Arithmetic> p(forward_, b_, h, sequence, rounds);
    for (std::int64_t i = 0; i < forward_.seqlen_q; ++i) {
      if (!p.compute_row(i)) continue;
      const std::int64_t row = (b_ * forward_.heads_q + h) * forward_.seqlen_q + i;
      const Real* d_o_row = d_o.data() + i * forward_.head_dim_v;
      compute_ds(p, d_o_row, row, forward);
      add_dv(p, d_o_row);
      add_dk(p, q.data() + i * forward_.head_dim);
      dbias.add(b_, h, i, p.first(), p.end(), ds_);
      store_dq(p, row, result);
    }
  }

  void store(MhaBackwardResult& result) const {
    const std::int64_t row = (b_ * forward_.heads_kv + h_kv_) * forward_.seqlen_k;
    const Real scale = forward_.scale_or_default();
    const Real keep_scale = static_cast<Real>(forward_.dropout.keep_scale());
    store(dk_, scale, row * forward_.head_dim, result.dk, result.dk_terms);
    store(dv_, keep_scale, row * forward_.head_dim_v, result.dv, result.dv_terms);
  }

private:
  /// Of one row: dS = p * (m * (dO . V) - dO . O).
  void compute_ds(const Probabilities<Arithmetic>& p, const Real* d_o, std::int64_t row,
                  const MhaForwardResult& forward) {
    const std::int64_t first = p.first(), count = p.end() - first;
    Real delta = 0, delta_terms = 0;
    ds_.clear();
    for (std::int64_t d = 0; d < forward_.head_dim_v; ++d) {
      const std::size_t at = size(row * forward_.head_dim_v + d);
      delta += d_o[d] * static_cast<Real>(forward.o[at]);
      delta_terms += std::abs(d_o[d]) * static_cast<Real>(forward.o_terms[at]);
      const Real* value = values_.data() + d * forward_.seqlen_k + first;
      ds_.add(first, d_o[d], std::abs(d_o[d]), value, count);
    }
    const Real keep_scale = static_cast<Real>(forward_.dropout.keep_scale());
    for (std::int64_t j = first; j < p.end(); ++j) {
      const Real m = p.kept(j) ? keep_scale : 0;
      Real& value = ds_.value[size(j)];
      Real& terms = ds_.terms[size(j)];
      value = p[j] == 0 ? 0 : Arithmetic::round(p[j] * (m * value - delta), forward_.dtype);
      terms = p[j] == 0 ? 0 : p[j] * (m * terms + delta_terms);
    }
  }

  void add_dv(const Probabilities<Arithmetic>& p, const Real* d_o) {
    for (std::int64_t j = p.first(); j < p.end(); ++j) {
      if (!p.kept(j)) continue;
      const Real pd = Arithmetic::round(p[j], forward_.dtype);
      if (pd != 0) dv_.add(j * forward_.head_dim_v, pd, pd, d_o, forward_.head_dim_v);
    }
  }

  void add_dk(const Probabilities<Arithmetic>& p, const Real* q) {
    for (std::int64_t j = p.first(); j < p.end(); ++j) {
      const Real terms = ds_.terms[size(j)];
      if (terms == 0) continue;
      dk_.add(j * forward_.head_dim, ds_.value[size(j)], terms, q, forward_.head_dim);
    }
  }

  void store_dq(const Probabilities<Arithmetic>& p, std::int64_t row, MhaBackwardResult& result) {
    dq_.clear();
    for (std::int64_t j = p.first(); j < p.end(); ++j) {
      const Real terms = ds_.terms[size(j)];
      if (terms == 0) continue;
      const Real* key = keys_.data() + j * forward_.head_dim;
      dq_.add(0, ds_.value[size(j)], terms, key, forward_.head_dim);
    }
    store(dq_, forward_.scale_or_default(), row * forward_.head_dim, result.dq, result.dq_terms);
  }

  /// Times `factor`, rounded to the type of the gradients.
  void store(const Sums<Real>& sums, Real factor, std::int64_t at, std::vector<double>& value,
             std::vector<double>& terms) const {
    const DataType dtype = args_.gradient_dtype_or_default();
    for (std::size_t n = 0; n < sums.value.size(); ++n) {
      value[size(at) + n] = static_cast<double>(Arithmetic::round(sums.value[n] * factor, dtype));
      terms[size(at) + n] = static_cast<double>(sums.terms[n] * std::abs(factor));
    }
  }

  const MhaBackwardArgs& args_;
  const MhaForwardArgs& forward_;
  std::int64_t b_, h_kv_;
  std::vector<Real> keys_;    // [Sk, D]
  std::vector<Real> values_;  // [Dv, Sk]
  Sums<Real> dk_, dv_;        // [Sk, D] and [Sk, Dv], without their factors
  Sums<Real> dq_, ds_;        // of one row: [D] and [Sk]
};

}  // namespace detail

/// The backward of one problem. `sequence_base`: B*Hq of all groups before, in a grouped call.
/// `philox_rounds`: of the dropout mask.
template <class Arithmetic = Exact>
MhaBackwardResult mha_backward(const MhaBackwardArgs& args, std::uint64_t sequence_base = 0,
                               int philox_rounds = 10) {
  const MhaForwardArgs& f = args.forward;
  MhaForwardResult forward = mha_forward<Arithmetic>(f, sequence_base, philox_rounds);
  detail::BiasGradientSums dbias(args);
  MhaBackwardResult result{};
  for (auto [rows, columns, value, terms] :
       {std::tuple{f.heads_q * f.seqlen_q, f.head_dim, &result.dq, &result.dq_terms},
        {f.heads_kv * f.seqlen_k, f.head_dim, &result.dk, &result.dk_terms},
        {f.heads_kv * f.seqlen_k, f.head_dim_v, &result.dv, &result.dv_terms}}) {
    value->resize(detail::size(f.batch * rows * columns));
    terms->resize(detail::size(f.batch * rows * columns));
  }
  const std::int64_t ratio = f.heads_kv == 0 ? 0 : f.heads_q / f.heads_kv;
  const double cost = 8 * static_cast<double>(ratio) * static_cast<double>(f.seqlen_q + 1) *
                      static_cast<double>(f.seqlen_k) *
                      static_cast<double>(f.head_dim + f.head_dim_v);
  parallel_for(f.batch * f.heads_kv, cost, [&](std::int64_t index) {
    const std::int64_t b = index / f.heads_kv, h_kv = index % f.heads_kv;
    detail::BackwardHead<Arithmetic> head(args, b, h_kv);
    for (std::int64_t h = h_kv * ratio; h < (h_kv + 1) * ratio; ++h) {
      const auto sequence = sequence_base + static_cast<std::uint64_t>(b * f.heads_q + h);
      head.add_query_head(h, sequence, philox_rounds, forward, dbias, result);
    }
    head.store(result);
  });
  dbias.store<Arithmetic>(args.dbias.dtype, result);
  result.largest_score = std::move(forward.largest_score);
  return result;
}

}  // namespace flashxdl::reference
