#include "common/launch_front.hpp"

#include "common/device_memory.hpp"
#include "flashxdl/flashxdl.hpp"

namespace flashxdl::example {
namespace {

Launched launch_and_measure(const std::function<Status()>& launch, hipStream_t stream, int repeat) {
  Launched result{.status = launch()};
  if (result.status && repeat > 0) {
    result.milliseconds = average_milliseconds(stream, repeat, launch);
  }
  return result;
}

}  // namespace

Launched launch_batched(const MhaForwardGroupedArgs& args, hipStream_t stream, int repeat) {
  const MhaForwardArgs& problem = args.groups.at(0);
  Launched result = launch_and_measure([&] { return MhaForward(problem, stream); }, stream, repeat);
  if (result.status) result.kernel = MhaForwardTypeString(problem);
  return result;
}

Launched launch_grouped(const MhaForwardGroupedArgs& args, hipStream_t stream, int repeat) {
  // The workspace takes the descriptors of the groups.
  const DeviceBuffer workspace(MhaForwardWorkspaceSize(args));
  Launched result = launch_and_measure(
      [&] { return MhaForward(args, workspace.data(), workspace.bytes(), stream); }, stream,
      repeat);
  if (result.status) result.kernel = MhaForwardTypeString(args);
  check_hip(hipStreamSynchronize(stream), "the kernel");  // before the workspace goes
  return result;
}

}  // namespace flashxdl::example
