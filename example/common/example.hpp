#pragma once
/// \file
/// What the courses of all examples share: exit status, timing, output.

#include <cstddef>
#include <functional>
#include <string>

#include "flashxdl/core/problem.hpp"
#include "flashxdl/core/status.hpp"
#include "flashxdl/hip.hpp"

namespace flashxdl::example {

enum ExitCode {
  passed = 0,
  wrong_result = 1,
  refused = 2,  ///< the library does not take these arguments
  failed = 3,   ///< HIP, or something else around the kernel
};

/// What a program's launch function says.
struct Launched {
  Status status{};
  float milliseconds = 0;  ///< of one launch; 0: not measured
  std::string kernel{};    ///< its type string
};

/// Device time of one `launch()`: the average of `repeat` after one that warms up.
float average_milliseconds(hipStream_t stream, int repeat, const std::function<Status()>& launch);

/// The line "Perf: ..."; no rate where a CPU emulates the GPU.
void print_perf(const Launched& launched, double flops, double bytes);

/// Sizes and type of one problem.
void print_problem(const MhaForwardArgs& args);

/// "group 3: " where there are several.
void print_group_number(std::size_t number, std::size_t count);

/// Prints "passed" or "FAILED" and returns the exit status for that.
ExitCode print_verdict(bool right);

/// Says on stderr why a launch was not accepted and returns the exit status for that.
ExitCode report(const Status& status);

/// Runs a program's course; an exception is a message on stderr and exit status `failed`.
int run_guarded(const std::function<ExitCode()>& course);

}  // namespace flashxdl::example
