#pragma once
/// \file
/// Runs a case through a kernel, batched and grouped, and checks what came out.

#include <cstdint>
#include <string>
#include <vector>

#include "cases/field_case.hpp"
#include "cases/kernels.hpp"

namespace flashxdl::test {

/// What happened, over cases.
struct Tally {
  std::int64_t runs = 0;
  std::int64_t checks = 0;          ///< made
  std::int64_t failures = 0;        ///< lines
  std::int64_t gradients = 0;       ///< checks left out: they look at gradients
  std::int64_t backward_calls = 0;  ///< calls left out
  std::int64_t refusals_allowed = 0;
  std::int64_t not_supported = 0;  ///< runs that a special kernel declined
};

/// Prints a line for every failure.
void run_case(const FieldCase& c, const std::vector<const Kernel*>& kernels, Tally& tally);

/// The refusal that the case wants concerns an argument of the backward alone.
bool is_backward_refusal(const FieldCase& c);

}  // namespace flashxdl::test
