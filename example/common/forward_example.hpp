#pragma once
/// \file
/// The course of a forward example: read the command line, fill inputs, launch, print one Perf
/// line, compare with the reference. The exit status is 0 only if the launch worked and, where that
/// was asked for, the result is right.

#include <functional>
#include <string>

#include "common/forward_config.hpp"
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

/// Starts the kernel on the stream and, where repeat is not 0, measures it over that many launches.
/// `args` has device pointers, and exactly one group unless the program is grouped.
using LaunchForward =
    std::function<Launched(const MhaForwardGroupedArgs& args, hipStream_t stream, int repeat)>;

/// Device time of one `launch()`: the average of `repeat` after one that warms up.
float average_milliseconds(hipStream_t stream, int repeat, const std::function<Status()>& launch);

/// The program; returns its exit status.
int run_forward_example(ForwardConfig config, int argc, const char* const* argv,
                        const LaunchForward& launch);

}  // namespace flashxdl::example
