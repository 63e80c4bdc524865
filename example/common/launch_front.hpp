#pragma once
/// \file
/// Launching through the run-time front, MhaForward, which picks the kernel.

#include "common/forward_example.hpp"

namespace flashxdl::example {

/// One problem.
Launched launch_batched(const MhaForwardGroupedArgs& args, hipStream_t stream, int repeat);

/// All groups in one launch.
Launched launch_grouped(const MhaForwardGroupedArgs& args, hipStream_t stream, int repeat);

}  // namespace flashxdl::example
