#pragma once
/// \file
/// The memory and data of a case.

#include <vector>

#include "cases/field_case.hpp"
#include "support/forward_problem.hpp"

namespace flashxdl::test {

/// The problems of a case, one for each group (one for a batched case), inputs filled. The data
/// depend on the case's id alone. With `keep`, the keep mask is asked for too.
std::vector<ForwardProblem> make_problems(const FieldCase& c, bool keep);

}  // namespace flashxdl::test
