#pragma once
/// \file
/// Results of a backward kernel against the reference: the gradients under rule T, the keep mask
/// bit for bit. Every check returns "" or one sentence with what was got and allowed.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "flashxdl/reference/mha_backward.hpp"
#include "support/backward_problem.hpp"
#include "support/forward_check.hpp"

namespace flashxdl::test {

class BackwardReference {
public:
  /// `sequence_base`: B*Hq of all groups before.
  explicit BackwardReference(const BackwardProblem& problem, std::uint64_t sequence_base = 0)
      : problem_(problem),
        sequence_base_(sequence_base),
        exact_(reference::mha_backward(problem.host_args(), sequence_base)),
        plain_(reference::mha_backward<reference::Plain>(problem.host_args(), sequence_base)) {}

  const reference::MhaBackwardResult& exact() const { return exact_; }

  using Rule = Judgement<reference::RuleT>;
  Rule judge_dq(const Slice& slice = {}) const {
    return judge(problem_.dq, exact_.dq, plain_.dq, exact_.dq_terms, slice);
  }
  Rule judge_dk(const Slice& slice = {}) const {
    return judge(problem_.dk, exact_.dk, plain_.dk, exact_.dk_terms, slice);
  }
  Rule judge_dv(const Slice& slice = {}) const {
    return judge(problem_.dv, exact_.dv, plain_.dv, exact_.dv_terms, slice);
  }
  Rule judge_dbias(const Slice& slice = {}) const {
    return judge(problem_.dbias, exact_.dbias, plain_.dbias, exact_.dbias_terms, slice);
  }

  /// Of the gradients that are wanted.
  std::string check_dq(const Slice& slice = {}) const {
    return problem_.dq ? judge_dq(slice).failure("dQ") : "";
  }
  std::string check_dk(const Slice& slice = {}) const {
    return problem_.dk ? judge_dk(slice).failure("dK") : "";
  }
  std::string check_dv(const Slice& slice = {}) const {
    return problem_.dv ? judge_dv(slice).failure("dV") : "";
  }
  std::string check_dbias(const Slice& slice = {}) const {
    return problem_.dbias ? judge_dbias(slice).failure("dBias") : "";
  }
  std::string check_keep() const {
    return test::check_keep(problem_.forward.keep, problem_.forward.host_args(), sequence_base_);
  }

private:
  Rule judge(const TestTensor& tensor, const std::vector<double>& exact,
             const std::vector<double>& plain, const std::vector<double>& terms,
             const Slice& slice) const {
    double score = 0;
    for (const double s : exact_.largest_score) score = std::max(score, s);
    Rule judgement{reference::RuleT(tensor.dtype.value())};
    const Shape& shape = tensor.layout.shape;
    const Layout dense = bhsd_layout(shape);
    for_each_in(shape, slice, 0, shape.b,
                [&](std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) {
                  const auto n = static_cast<std::size_t>(dense.at(b, h, s, d));
                  const double got = tensor.output(b, h, s, d);
                  judgement.rule.add(got, exact.at(n), plain.at(n), terms.at(n), score);
                  judgement.worst.add(got, exact[n], b, h, s, d);
                });
    return judgement;
  }

  const BackwardProblem& problem_;
  std::uint64_t sequence_base_;
  reference::MhaBackwardResult exact_, plain_;
};

/// All checks at once: gradients, keep mask, nothing written outside of them.
inline std::string check_backward(const BackwardProblem& problem, std::uint64_t sequence_base = 0) {
  const BackwardReference reference(problem, sequence_base);
  std::string failures;
  for (const std::string& failure :
       {reference.check_dq(), reference.check_dk(), reference.check_dv(), reference.check_dbias(),
        reference.check_keep(), writes_outside(problem.tensors())}) {
    if (!failure.empty()) failures += failure + "; ";
  }
  return failures;
}

}  // namespace flashxdl::test
