#include "common/example.hpp"

#include <cstdint>
#include <cstdio>
#include <exception>
#include <stdexcept>

#include "flashxdl/core/config.hpp"
#include "flashxdl/device/stream_config.hpp"

namespace flashxdl::example {

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

void print_group_number(std::size_t number, std::size_t count) {
  if (count > 1) std::printf("group %zu: ", number);
}

ExitCode print_verdict(bool right) {
  std::printf("%s\n", right ? "passed" : "FAILED");
  return right ? passed : wrong_result;
}

ExitCode report(const Status& status) {
  std::fprintf(stderr, "error: %s\n", status.message().c_str());
  return status.code() == StatusCode::runtime_error ? failed : refused;
}

int run_guarded(const std::function<ExitCode()>& course) {
  try {
    return course();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return failed;
  }
}

}  // namespace flashxdl::example
