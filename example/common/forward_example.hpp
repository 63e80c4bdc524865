#pragma once
/// \file
/// The course of a forward example: read the command line, fill inputs, launch, print one Perf
/// line, compare with the reference. The exit status is 0 only if the launch worked and, where that
/// was asked for, the result is right.

#include <functional>

#include "common/example.hpp"
#include "common/forward_config.hpp"

namespace flashxdl::example {

/// Starts the kernel on the stream and, where repeat is not 0, measures it over that many launches.
/// `args` has device pointers, and exactly one group unless the program is grouped.
using LaunchForward =
    std::function<Launched(const MhaForwardGroupedArgs& args, hipStream_t stream, int repeat)>;

/// The program; returns its exit status.
int run_forward_example(ForwardConfig config, int argc, const char* const* argv,
                        const LaunchForward& launch);

}  // namespace flashxdl::example
