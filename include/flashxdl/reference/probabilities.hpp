#pragma once
/// \file
/// What forward and backward share: p = softmax(scale * (q . k) + bias, mask), row by row, in two
/// arithmetics. Exact is double throughout; Plain, the yardstick, rounds as a straightforward
/// 16-bit implementation does.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "flashxdl/core/problem.hpp"
#include "flashxdl/reference/dropout_mask.hpp"

namespace flashxdl::reference {

/// double from the inputs to the result.
struct Exact {
  using Real = double;
  static constexpr double round(double value, DataType) { return value; }
};

/// Scores and softmax in fp32; the operands of the products that follow, and the results, rounded
/// to 16 bits.
struct Plain {
  using Real = float;
  static float round(float value, DataType type) {
    float rounded = 0;
    store_element(&rounded, type, 0, value);
    return load_element(&rounded, type, 0);
  }
};

namespace detail {

constexpr std::size_t size(std::int64_t n) {
  return static_cast<std::size_t>(n);
}

/// Rows and columns of one (batch, head) as one dense matrix; with `transposed`, [columns, rows].
template <class Real, class Pointer>
std::vector<Real> gather(const Tensor<Pointer>& tensor, DataType dtype, std::int64_t b,
                         std::int64_t h, std::int64_t rows, std::int64_t columns,
                         bool transposed = false) {
  std::vector<Real> matrix(size(rows * columns));
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < columns; ++c) {
      matrix[size(transposed ? c * rows + r : r * columns + c)] =
          load_element(tensor.data, dtype, tensor.offset(b, h, r, c));
    }
  }
  return matrix;
}

/// The probabilities of one (batch, query head) and their dropout: inputs gathered once, rows
/// computed one by one.
template <class Arithmetic>
class Probabilities {
public:
  using Real = typename Arithmetic::Real;

  Probabilities(const MhaForwardArgs& args, std::int64_t b, std::int64_t h, std::uint64_t sequence,
                int rounds)
      : args_(args),
        b_(b),
        h_(h),
        dropout_(args.dropout, sequence, args.seqlen_k, rounds),
        keys_(gather<Real>(args.k, args.dtype, b, h / (args.heads_q / args.heads_kv), args.seqlen_k,
                           args.head_dim, true)),
        row_(size(args.seqlen_k)),
        kept_(size(args.seqlen_k)) {}

  /// False if row i sees no key; else the members below describe it.
  bool compute_row(std::int64_t i) {
    first_ = std::max<std::int64_t>(0, args_.mask.first_key(i, args_.seqlen_q, args_.seqlen_k));
    end_ = std::min(args_.seqlen_k, args_.mask.end_key(i, args_.seqlen_q, args_.seqlen_k));
    if (first_ >= end_) return false;
    compute_scores(i);
    const Real largest = *std::max_element(&row_[size(first_)], &row_[0] + end_);
    if (largest == -std::numeric_limits<Real>::infinity()) return false;
    normalise(largest);
    dropout_.keep_row(i, first_, end_, kept_.data());
    return true;
  }

  std::int64_t first() const { return first_; }  ///< key inside the mask
  std::int64_t end() const { return end_; }      ///< one past the last
  Real operator[](std::int64_t j) const { return row_[size(j)]; }
  bool kept(std::int64_t j) const { return kept_[size(j)] != 0; }
  Real lse() const { return lse_; }
  double largest_score() const { return largest_score_; }  ///< |s|, where p > 0
  std::int64_t visible() const { return visible_; }        ///< -inf bias entries taken out

private:
  /// row_[j] = scale * (q . k) + bias
  void compute_scores(std::int64_t i) {
    std::fill(&row_[size(first_)], &row_[0] + end_, Real{0});
    for (std::int64_t d = 0; d < args_.head_dim; ++d) {
      const Real q = load_element(args_.q.data, args_.dtype, args_.q.offset(b_, h_, i, d));
      const Real* key = &keys_[size(d * args_.seqlen_k)];
      for (std::int64_t j = first_; j < end_; ++j) row_[size(j)] += q * key[j];
    }
    const Real scale = args_.scale_or_default();
    const auto& bias = args_.bias.tensor;
    for (std::int64_t j = first_; j < end_; ++j) {
      row_[size(j)] *= scale;
      if (bias.data != nullptr) {
        row_[size(j)] += load_element(bias.data, args_.bias.dtype, bias.offset(b_, h_, i, j));
      }
    }
  }

  /// row_[j] becomes exp(s) / sum exp(s).
  void normalise(Real largest) {
    Real sum = 0;
    largest_score_ = 0;
    visible_ = 0;
    for (std::int64_t j = first_; j < end_; ++j) {
      const Real s = row_[size(j)];
      const Real p = std::exp(s - largest);
      if (p > 0) largest_score_ = std::max(largest_score_, std::abs(static_cast<double>(s)));
      if (s != -std::numeric_limits<Real>::infinity()) ++visible_;
      row_[size(j)] = p;
      sum += p;
    }
    lse_ = largest + std::log(sum);
    for (std::int64_t j = first_; j < end_; ++j) row_[size(j)] /= sum;
  }

  const MhaForwardArgs& args_;
  std::int64_t b_, h_;
  DropoutMask dropout_;
  std::vector<Real> keys_;          // [D, Sk]
  std::vector<Real> row_;           // [Sk]
  std::vector<std::uint8_t> kept_;  // [Sk]
  std::int64_t first_ = 0, end_ = 0, visible_ = 0;
  double largest_score_ = 0;
  Real lse_ = 0;
};

}  // namespace detail
}  // namespace flashxdl::reference
