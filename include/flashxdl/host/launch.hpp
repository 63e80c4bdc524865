#pragma once
/// \file
/// Launching a kernel on the CPU target.

#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "flashxdl/host/error.hpp"
#include "flashxdl/host/kernel.hpp"
#include "flashxdl/host/pool.hpp"
#include "flashxdl/host/stream_api.hpp"
#include "flashxdl/host/types.hpp"

namespace flashxdl::host {

namespace detail {

/// HIP's limits: 1024 lanes in a block, 65535 blocks in y and z, 2^32 lanes in each direction.
inline hipError_t check_launch(const dim3& grid, const dim3& block, std::size_t dynamic_lds_bytes) {
  const auto fits = [](std::uint32_t blocks, std::uint32_t lanes, std::uint32_t most_lanes) {
    return blocks != 0 && lanes != 0 && lanes <= most_lanes &&
           std::uint64_t{blocks} * lanes <= 0xffffffffull;
  };
  const bool valid =
      fits(grid.x, block.x, max_block_threads) && fits(grid.y, block.y, max_block_threads) &&
      fits(grid.z, block.z, max_block_threads) && grid.y <= 65535 && grid.z <= 65535 &&
      std::uint64_t{block.x} * block.y * block.z <= max_block_threads &&
      dynamic_lds_bytes <= max_lds_bytes;
  return valid ? hipSuccess : hipErrorInvalidConfiguration;
}

inline hipError_t run_kernel(const Kernel& kernel) {
  const auto failure = pool().run(kernel);
  if (!failure) return hipSuccess;
  record_launch_failure(*failure);
  return hipErrorLaunchFailure;
}

/// The compiler's spelling of a type.
template <class Type>
constexpr std::string_view type_name() {
  std::string_view text = __PRETTY_FUNCTION__;
  constexpr std::string_view before = "Type = ";
  if (const auto at = text.find(before); at != text.npos) text.remove_prefix(at + before.size());
  return text.substr(0, text.find_first_of(";]"));
}

template <class Body>
hipError_t launch(std::string name, dim3 grid, dim3 block, std::size_t dynamic_lds_bytes,
                  hipStream_t stream, Body&& body) {
  using Stored = std::decay_t<Body>;
  if (const auto error = check_launch(grid, block, dynamic_lds_bytes); error != hipSuccess) {
    return report(error);
  }
  auto kernel = std::make_shared<Kernel>();
  kernel->name = name.empty() ? std::string(type_name<Stored>()) : std::move(name);
  kernel->grid = grid;
  kernel->block = block;
  kernel->dynamic_lds_bytes = dynamic_lds_bytes;
  kernel->schedule = schedule();
  kernel->body = std::make_shared<Stored>(std::forward<Body>(body));
  kernel->invoke = [](const void* stored) { (*static_cast<const Stored*>(stored))(); };
  return report(enqueue(stream, [kernel = std::shared_ptr<const Kernel>(std::move(kernel))] {
    return run_kernel(*kernel);
  }));
}

}  // namespace detail

/// Runs `body()` in every lane of grid x block. `body` is copied or moved here, once; lanes share
/// it as const. A null or empty name is replaced by one made of the type.
/// Returns hipErrorInvalidConfiguration or hipErrorInvalidResourceHandle for what is wrong with
/// the launch itself; a kernel that fails is reported by the next synchronising call.
template <class Body>
hipError_t launch(const char* name, dim3 grid, dim3 block, hipStream_t stream, Body&& body) {
  return detail::launch(name == nullptr ? "" : name, grid, block, 0, stream,
                        std::forward<Body>(body));
}

/// The same for a kernel function; the arguments are copied at the call.
template <class... Parameters, class... Arguments>
hipError_t launch_function(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block,
                           std::size_t dynamic_lds_bytes, hipStream_t stream,
                           Arguments&&... arguments) {
  static_assert(sizeof...(Parameters) == sizeof...(Arguments),
                "the number of arguments is not the kernel's");
  if (kernel == nullptr) return detail::report(hipErrorInvalidDeviceFunction);
  std::tuple<std::decay_t<Parameters>...> values(std::forward<Arguments>(arguments)...);
  return detail::launch(name == nullptr ? "" : name, grid, block, dynamic_lds_bytes, stream,
                        [kernel, values = std::move(values)] { std::apply(kernel, values); });
}

}  // namespace flashxdl::host
