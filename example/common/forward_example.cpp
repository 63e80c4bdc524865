#include "common/forward_example.hpp"

#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <random>
#include <stdexcept>
#include <vector>

#include "common/command_line.hpp"
#include "common/device_memory.hpp"
#include "common/forward_tensors.hpp"
#include "common/forward_work.hpp"
#include "common/verify_forward.hpp"
#include "flashxdl/core/config.hpp"
#include "flashxdl/device/stream_config.hpp"

namespace flashxdl::example {
namespace {

void print_perf(const Launched& launched, double flops, double bytes) {
  if constexpr (!FLASHXDL_AMDGCN) {
    std::printf("Perf: no rate, a CPU emulates the GPU; %s\n", launched.kernel.c_str());
  } else if (launched.milliseconds > 0) {
    const double seconds = static_cast<double>(launched.milliseconds) * 1e-3;
    std::printf("Perf: %.4g ms, %.4g TFlops, %.4g GB/s, %s\n", seconds * 1e3,
                flops / seconds * 1e-12, bytes / seconds * 1e-9, launched.kernel.c_str());
  } else {
    std::printf("Perf: not timed (--time 1); %s\n", launched.kernel.c_str());
  }
}

void print_problem(const MhaForwardArgs& args) {
  const auto number = [](std::int64_t n) { return std::to_string(n); };
  const std::string text = "batch " + number(args.batch) + ", heads " + number(args.heads_q) +
                           " of Q and " + number(args.heads_kv) + " of K and V, Sq " +
                           number(args.seqlen_q) + ", Sk " + number(args.seqlen_k) + ", D " +
                           number(args.head_dim) + ", Dv " + number(args.head_dim_v);
  std::printf("%s, %s\n", name_of(args.dtype), text.c_str());
}

/// "group 3: " where there are several.
void print_group_number(std::size_t number, std::size_t count) {
  if (count > 1) std::printf("group %zu: ", number);
}

/// Compares group by group; true if all are right.
bool verify(std::vector<ForwardTensors>& tensors) {
  bool right = true;
  std::uint64_t first_sequence = 0;
  for (std::size_t g = 0; g < tensors.size(); ++g) {
    tensors[g].download();
    const MhaForwardArgs args = tensors[g].host_args();
    print_group_number(g, tensors.size());
    right = verify_forward(args, first_sequence) && right;
    first_sequence += static_cast<std::uint64_t>(args.batch * args.heads_q);
  }
  std::printf("%s\n", right ? "passed" : "FAILED");
  return right;
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

  hipStream_t stream = nullptr;
  check_hip(hipStreamCreate(&stream), "hipStreamCreate");
  const bool timed = config.time && FLASHXDL_AMDGCN != 0;
  const Launched launched = launch(args, stream, timed ? config.repeat : 0);
  if (!launched.status) {
    std::fprintf(stderr, "error: %s\n", launched.status.message().c_str());
    return launched.status.code() == StatusCode::runtime_error ? failed : refused;
  }
  check_hip(hipStreamSynchronize(stream), "the kernel");
  print_perf(launched, flops, bytes);
  const bool right = !config.verify || verify(tensors);
  check_hip(hipStreamDestroy(stream), "hipStreamDestroy");
  return right ? passed : wrong_result;
}

}  // namespace

float average_milliseconds(hipStream_t stream, int repeat, const std::function<Status()>& launch) {
  const auto require = [](const Status& status) {
    if (!status) throw std::runtime_error(status.message());
  };
  require(launch());
  device::Timer timer(stream);
  require(timer.start());
  for (int i = 0; i < repeat; ++i) require(launch());
  require(timer.stop());
  return timer.milliseconds() / static_cast<float>(repeat);
}

int run_forward_example(ForwardConfig config, int argc, const char* const* argv,
                        const LaunchForward& launch) {
  if (const auto status = parse_command_line(config, argc, argv)) return *status;
  try {
    return run(config, launch);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return failed;
  }
}

}  // namespace flashxdl::example
