#pragma once
/// \file
/// Launching a device op by hand, as users of Composable Kernel know it.

#include <string>

#include "common/example.hpp"
#include "flashxdl/device/stream_config.hpp"

namespace flashxdl::example {

/// Check, run, and name the kernel.
template <class Op>
Launched launch_op(const typename Op::Argument& argument, hipStream_t stream, int repeat) {
  Launched result{.status = Op::CheckArgument(argument)};
  if (!result.status) return result;
  const StreamConfig config{
      .stream = stream, .time_kernel = repeat > 0, .repeat = repeat > 0 ? repeat : 1};
  result.milliseconds = Op::MakeInvoker().Run(argument, config);
  result.kernel = Op::GetTypeString();
  return result;
}

}  // namespace flashxdl::example
