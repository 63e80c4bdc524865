#include "common/forward_example.hpp"

#include <cstdint>
#include <random>
#include <vector>

#include "common/command_line.hpp"
#include "common/device_memory.hpp"
#include "common/forward_tensors.hpp"
#include "common/verify_forward.hpp"
#include "common/work.hpp"
#include "flashxdl/core/config.hpp"

namespace flashxdl::example {
namespace {

/// Compares group by group.
ExitCode verify(std::vector<ForwardTensors>& tensors) {
  bool right = true;
  std::uint64_t first_sequence = 0;
  for (std::size_t g = 0; g < tensors.size(); ++g) {
    tensors[g].download();
    const MhaForwardArgs args = tensors[g].host_args();
    print_group_number(g, tensors.size());
    right = verify_forward(args, first_sequence) && right;
    first_sequence += sequences(args);
  }
  return print_verdict(right);
}

ExitCode run(const ForwardConfig& config, const LaunchForward& launch) {
  require_device();
  std::mt19937_64 generator(1);
  std::vector<ForwardTensors> tensors;
  MhaForwardGroupedArgs args;
  double flops = 0;
  double bytes = 0;
  for (const GroupShape& shape : config.groups) {
    print_group_number(tensors.size(), config.groups.size());
    tensors.emplace_back(config, shape, generator);
    args.groups.push_back(tensors.back().device_args());
    print_problem(args.groups.back());
    flops += forward_flops(args.groups.back());
    bytes += static_cast<double>(tensors.back().bytes_moved());
  }

  const Stream stream;
  const bool timed = config.time && FLASHXDL_AMDGCN != 0;
  const Launched launched = launch(args, stream.get(), timed ? config.repeat : 0);
  if (!launched.status) return report(launched.status);
  stream.synchronize();
  print_perf(launched, flops, bytes);
  return config.verify ? verify(tensors) : passed;
}

}  // namespace

int run_forward_example(ForwardConfig config, int argc, const char* const* argv,
                        const LaunchForward& launch) {
  if (const auto status = parse_command_line(config, argc, argv)) return *status;
  return run_guarded([&] { return run(config, launch); });
}

}  // namespace flashxdl::example
