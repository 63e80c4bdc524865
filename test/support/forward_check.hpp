#pragma once
/// \file
/// Results of a forward kernel against the reference: O under rule T, LSE under its rule, the keep
/// mask bit for bit. Every check returns "" or one sentence with what was got and allowed.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>

#include "flashxdl/reference/mha_forward.hpp"
#include "flashxdl/reference/rule_t.hpp"
#include "support/forward_problem.hpp"

namespace flashxdl::test {

/// Part of a tensor [b, h, s, d]: its rows and columns from first to one before end.
struct Slice {
  static constexpr std::int64_t all = std::numeric_limits<std::int64_t>::max();
  std::int64_t first_row = 0, end_row = all;
  std::int64_t first_column = 0, end_column = all;
};

/// Calls body(b, h, s, d) for the elements of batches [first_batch, first_batch + batches) of a
/// shape that lie in the slice.
template <class Body>
void for_each_in(const Shape& shape, const Slice& slice, std::int64_t first_batch,
                 std::int64_t batches, const Body& body) {
  for (std::int64_t b = first_batch; b < first_batch + batches; ++b) {
    for (std::int64_t h = 0; h < shape.h; ++h) {
      for (std::int64_t s = slice.first_row; s < std::min(shape.s, slice.end_row); ++s) {
        for (std::int64_t d = slice.first_column; d < std::min(shape.d, slice.end_column); ++d) {
          body(b, h, s, d);
        }
      }
    }
  }
}

/// The largest error seen, and where.
class Worst {
public:
  void add(double got, double wanted, std::int64_t b, std::int64_t h, std::int64_t s,
           std::int64_t d) {
    const double error = reference::error_of(got, wanted);
    if (error <= error_) return;
    error_ = error;
    got_ = got;
    wanted_ = wanted;
    b_ = b, h_ = h, s_ = s, d_ = d;
  }
  double error() const { return error_; }
  std::string sentence(const std::string& tensor, double allowed) const {
    std::ostringstream out;
    out.precision(9);
    out << tensor << '[' << b_ << ',' << h_ << ',' << s_ << ',' << d_ << "] is " << got_
        << ", wanted " << wanted_ << ": error " << error_ << ", allowed " << allowed;
    return out.str();
  }

private:
  double error_ = -1, got_ = 0, wanted_ = 0;
  std::int64_t b_ = 0, h_ = 0, s_ = 0, d_ = 0;
};

/// Error and allowance of a tensor, and where it is worst.
template <class Rule>
struct Judgement {
  Rule rule;
  Worst worst{};
  std::string failure(const char* tensor) const {
    return rule.passed() ? "" : worst.sentence(tensor, rule.allowed());
  }
};

/// The keep mask of the batches that `args` describes, of which `first_batch` is the tensor's.
inline std::string check_keep(const TestTensor& tensor, const MhaForwardArgs& args,
                              std::uint64_t sequence_base, std::int64_t first_batch = 0) {
  if (!tensor) return "";
  const auto keep = reference::keep_mask(args, sequence_base);
  std::string failure;
  std::size_t n = 0, wrong = 0;
  for_each_in(tensor.layout.shape, {}, first_batch, args.batch,
              [&](std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) {
                const double got = tensor.output(b, h, s, d);
                const double wanted = keep[n++];
                if (got == wanted || wrong++ > 0) return;
                std::ostringstream out;
                out << "keep mask[" << b << ',' << h << ',' << s << ',' << d << "] is " << got
                    << ", wanted " << wanted;
                failure = out.str();
              });
  return wrong == 0 ? "" : failure + " (" + std::to_string(wrong) + " entries differ)";
}

/// Reference results of some batches of a problem.
class ForwardReference {
public:
  /// `sequence_base`: B*Hq of all groups before.
  ForwardReference(const ForwardProblem& problem, std::uint64_t sequence_base,
                   std::int64_t first_batch, std::int64_t batches)
      : problem_(problem), first_batch_(first_batch), batches_(batches) {
    MhaForwardArgs args = problem.host_args();
    sequence_base += static_cast<std::uint64_t>(first_batch * args.heads_q);
    args.batch = batches;
    skip_batches(args.q, args.dtype);
    skip_batches(args.k, args.dtype);
    skip_batches(args.v, args.dtype);
    if (args.bias.tensor.data != nullptr) skip_batches(args.bias.tensor, args.bias.dtype);
    args_ = args;
    sequence_base_ = sequence_base;
    exact_ = reference::mha_forward(args, sequence_base);
    plain_ = reference::mha_forward<reference::Plain>(args, sequence_base);
  }
  ForwardReference(const ForwardProblem& problem, std::uint64_t sequence_base)
      : ForwardReference(problem, sequence_base, 0, problem.shape.batch) {}

  const reference::MhaForwardResult& exact() const { return exact_; }
  std::int64_t first_batch() const { return first_batch_; }
  std::int64_t batches() const { return batches_; }

  /// Index of a row in exact(): its LSE, visible and kept keys.
  std::size_t row(std::int64_t b, std::int64_t h, std::int64_t s) const {
    return static_cast<std::size_t>(((b - first_batch_) * args_.heads_q + h) * args_.seqlen_q + s);
  }

  Judgement<reference::RuleT> judge_o(const Slice& slice = {}) const {
    return judge_o(slice, [&](std::size_t n, std::size_t, std::int64_t) {
      return std::pair{exact_.o[n], exact_.o_terms[n]};
    });
  }
  std::string check_o(const Slice& slice = {}) const { return judge_o(slice).failure("O"); }

  /// Every row of O is the mean of V over its visible keys.
  std::string check_mean_v(const Slice& slice = {}) const {
    std::vector<double> mean, magnitude;
    mean_of_visible_values(mean, magnitude);
    return judge_o(slice,
                   [&](std::size_t n, std::size_t, std::int64_t) {
                     return std::pair{mean[n], magnitude[n]};
                   })
        .failure("O");
  }

  /// Of a problem with an LSE.
  Judgement<reference::RuleLse> judge_lse(const Slice& slice = {}) const {
    Judgement<reference::RuleLse> judgement{};
    for_each_in(problem_.lse.layout.shape, slice, first_batch_, batches_,
                [&](std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t) {
                  const double got = problem_.lse.output(b, h, s, 0);
                  const std::size_t n = row(b, h, s);
                  judgement.rule.add(got, exact_.lse[n], exact_.largest_score[n]);
                  judgement.worst.add(got, exact_.lse[n], b, h, s, 0);
                });
    return judgement;
  }
  std::string check_lse(const Slice& slice = {}) const {
    return problem_.lse ? judge_lse(slice).failure("LSE") : "";
  }

  std::string check_keep() const {
    return test::check_keep(problem_.keep, args_, sequence_base_, first_batch_);
  }

private:
  void skip_batches(Tensor<const void*>& tensor, DataType dtype) const {
    tensor.data = static_cast<const std::byte*>(tensor.data) +
                  first_batch_ * tensor.batch_stride * static_cast<std::int64_t>(size_of(dtype));
  }

  /// `wanted(element, row, column)` gives the value and its sum of absolute terms.
  template <class Wanted>
  Judgement<reference::RuleT> judge_o(const Slice& slice, const Wanted& wanted) const {
    Judgement<reference::RuleT> judgement{reference::RuleT(args_.dtype)};
    for_each_in(problem_.o.layout.shape, slice, first_batch_, batches_,
                [&](std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) {
                  const std::size_t r = row(b, h, s);
                  const std::size_t n =
                      r * static_cast<std::size_t>(args_.head_dim_v) + static_cast<std::size_t>(d);
                  const double got = problem_.o.output(b, h, s, d);
                  const auto [value, terms] = wanted(n, r, d);
                  judgement.rule.add(got, value, plain_.o[n], terms, exact_.largest_score[r]);
                  judgement.worst.add(got, value, b, h, s, d);
                });
    return judgement;
  }

  void mean_of_visible_values(std::vector<double>& mean, std::vector<double>& magnitude) const {
    mean.assign(exact_.o.size(), 0);
    magnitude.assign(exact_.o.size(), 0);
    const auto& a = args_;
    std::size_t n = 0;
    const Shape rows{a.batch, a.heads_q, a.seqlen_q, a.head_dim_v};
    for_each_in(
        rows, {}, 0, a.batch, [&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t d) {
          double count = 0;
          for (std::int64_t j = 0; j < a.seqlen_k; ++j) {
            if (!a.mask.visible(i, j, a.seqlen_q, a.seqlen_k)) continue;
            const double v =
                load_element(a.v.data, a.dtype, a.v.offset(b, h / (a.heads_q / a.heads_kv), j, d));
            ++count;
            mean[n] += v;
            magnitude[n] += std::abs(v);
          }
          if (count > 0) {
            mean[n] /= count;
            magnitude[n] /= count;
          }
          ++n;
        });
  }

  const ForwardProblem& problem_;
  MhaForwardArgs args_{};  // of the batches alone
  std::uint64_t sequence_base_ = 0;
  std::int64_t first_batch_, batches_;
  reference::MhaForwardResult exact_{}, plain_{};
};

/// All checks at once: O, LSE, keep mask, nothing written outside.
inline std::string check_forward(const ForwardProblem& problem, std::uint64_t sequence_base = 0) {
  const ForwardReference reference(problem, sequence_base);
  std::string failures;
  for (const std::string& failure : {reference.check_o(), reference.check_lse(),
                                     reference.check_keep(), writes_outside(problem.tensors())}) {
    if (!failure.empty()) failures += failure + "; ";
  }
  return failures;
}

}  // namespace flashxdl::test
