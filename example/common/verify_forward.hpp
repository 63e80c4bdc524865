#pragma once
/// \file
/// Compares the results of a forward example with the double reference.

#include <cstdint>

#include "flashxdl/core/problem.hpp"

namespace flashxdl::example {

/// Prints the largest errors of O and LSE beside the allowed ones (rule T, reference/rule_t.hpp),
/// and returns whether all are allowed. `args` has host pointers; `first_sequence` counts the B*Hq
/// of all groups before.
bool verify_forward(const MhaForwardArgs& args, std::uint64_t first_sequence);

}  // namespace flashxdl::example
