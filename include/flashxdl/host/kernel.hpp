#pragma once
/// \file
/// One kernel launch as the workgroups see it, and the process's settings for running it.

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "flashxdl/host/dim3.hpp"
#include "flashxdl/host/sanitizer.hpp"
#include "flashxdl/host/schedule.hpp"

namespace flashxdl::host::detail {

inline constexpr unsigned wave_size = 64;
inline constexpr unsigned max_block_threads = 1024;
inline constexpr std::size_t max_lds_bytes = 160 * 1024;

/// What a launch runs. Every lane calls `invoke(body)`.
struct Kernel {
  std::string name;
  dim3 grid;
  dim3 block;
  std::size_t dynamic_lds_bytes = 0;
  Schedule schedule;
  std::shared_ptr<const void> body;
  void (*invoke)(const void* body) = nullptr;

  std::uint64_t workgroups() const { return std::uint64_t{grid.x} * grid.y * grid.z; }
  unsigned threads() const { return block.x * block.y * block.z; }
};

/// A positive integer from the environment, or `fallback` where the variable is not set.
inline std::size_t positive_setting(const char* variable, std::size_t fallback, std::size_t most) {
  const char* text = std::getenv(variable);
  if (text == nullptr || *text == '\0') return fallback;
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text, &end, 10);
  if (*end == '\0' && *text != '-' && value >= 1 && value <= most) return value;
  std::fprintf(stderr, "flashxdl host: %s is '%s'; it must be an integer from 1 to %zu\n", variable,
               text, most);
  std::abort();
}

inline std::size_t stack_bytes() {
  static const std::size_t bytes =
      1024 * std::max<std::size_t>(16, positive_setting("FLASHXDL_HOST_STACK_KIB",
                                                        address_sanitizer ? 256 : 64, 65536));
  return bytes;
}

inline unsigned worker_count() {
  static const auto count = static_cast<unsigned>(positive_setting(
      "FLASHXDL_HOST_WORKERS", std::max(1u, std::thread::hardware_concurrency()), 1024));
  return count;
}

}  // namespace flashxdl::host::detail
