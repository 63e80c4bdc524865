#pragma once
/// \file
/// Launching a device op by hand, as users of Composable Kernel know it.

#include <string>

#include "common/device_memory.hpp"
#include "common/example.hpp"
#include "flashxdl/device/stream_config.hpp"

namespace flashxdl::example {

/// Check, give workspace, run, and name the kernel.
template <class Op>
Launched launch_op(typename Op::Argument argument, hipStream_t stream, int repeat) {
  Launched result{.status = Op::CheckArgument(argument)};
  if (!result.status) return result;
  const DeviceBuffer workspace(Op::GetWorkSpaceSize(argument));
  Op::SetWorkSpacePointer(argument, workspace.data());
  const StreamConfig config{
      .stream = stream, .time_kernel = repeat > 0, .repeat = repeat > 0 ? repeat : 1};
  result.milliseconds = Op::MakeInvoker().Run(argument, config);
  result.kernel = Op::GetTypeString();
  check_hip(hipStreamSynchronize(stream), "the kernel");  // before the workspace goes
  return result;
}

}  // namespace flashxdl::example
