#pragma once
/// \file
/// The checks of a case on the results of one problem.

#include <cstdint>
#include <string>
#include <vector>

#include "cases/field_case.hpp"
#include "support/forward_check.hpp"

namespace flashxdl::test {

/// One problem after its run, with the references of the batches that are looked at.
struct CheckedProblem {
  const FieldCase& field_case;
  const ForwardProblem& problem;
  const std::vector<ForwardReference>& references;
};

/// The outcome of `check` on `tensor` (one of check.tensors, no gradient): "" or a sentence.
/// same_bits_as, same_as_mask, no_shared_blocks and untouched_outside compare runs: not here.
std::string run_check(const Check& check, const std::string& tensor, const CheckedProblem& on);

inline bool compares_runs(const Check& check) {
  return check.is == "same_bits_as" || check.is == "same_as_mask" ||
         check.is == "no_shared_blocks" || check.is == "untouched_outside";
}

}  // namespace flashxdl::test
