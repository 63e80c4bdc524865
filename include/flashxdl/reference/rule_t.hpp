#pragma once
/// \file
/// Rule T: how far a result may lie from the double one. The yardstick is the error of a plain
/// implementation in the same 16-bit type; the small terms cover sums that cancel and the
/// precision of an fp32 LSE.

#include <algorithm>
#include <cmath>
#include <limits>

#include "flashxdl/core/number.hpp"

namespace flashxdl::reference {

/// |got - wanted|; 0 for equal infinities, infinite where just one is not finite.
inline double error_of(double got, double wanted) {
  if (got == wanted) return 0;
  const double difference = std::abs(got - wanted);
  return std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
}

/// Relative rounding of an output type, and its smallest subnormal.
constexpr double unit_roundoff(DataType type) {
  return type == DataType::fp16 ? 0x1p-11 : type == DataType::bf16 ? 0x1p-8 : 0.0;
}
constexpr double smallest_subnormal(DataType type) {
  return type == DataType::fp16 ? 0x1p-24 : type == DataType::bf16 ? 0x1p-133 : 0x1p-149;
}

/// Collects the elements of one tensor (or of a slice of it); allowed, as the largest absolute
/// error: 2*max(E, u*M) + 2^-20*A + 2^-22*S*M + the smallest subnormal.
class RuleT {
public:
  explicit RuleT(DataType output) : output_(output) {}

  /// `plain`: of the plain implementation; `terms`: the sum of absolute values; `score`: the
  /// largest |s| of the row. A plain result that overflowed says nothing about precision.
  void add(double got, double wanted, double plain, double terms, double score) {
    error_ = std::max(error_, error_of(got, wanted));
    if (std::isfinite(plain)) plain_error_ = std::max(plain_error_, std::abs(plain - wanted));
    largest_ = std::max(largest_, std::abs(wanted));
    terms_ = std::max(terms_, terms);
    score_ = std::max(score_, score);
  }

  double error() const { return error_; }
  double allowed() const {
    return 2 * std::max(plain_error_, unit_roundoff(output_) * largest_) + 0x1p-20 * terms_ +
           0x1p-22 * score_ * largest_ + smallest_subnormal(output_);
  }
  bool passed() const { return error_ <= allowed(); }

private:
  DataType output_;
  double error_ = 0;
  double plain_error_ = 0;  // E
  double largest_ = 0;      // M
  double terms_ = 0;        // A
  double score_ = 0;        // S
};

/// The same for the LSE; allowed: 1e-5 + 4e-6 * max(1, S). -inf must be -inf.
class RuleLse {
public:
  void add(double got, double wanted, double score) {
    error_ = std::max(error_, error_of(got, wanted));
    score_ = std::max(score_, score);
  }
  double error() const { return error_; }
  double allowed() const { return 1e-5 + 4e-6 * std::max(1.0, score_); }
  bool passed() const { return error_ <= allowed(); }

private:
  double error_ = 0;
  double score_ = 0;
};

}  // namespace flashxdl::reference
