#pragma once
/// \file
/// Launches kernels on either target, and turns HIP's errors into Status.

#include <cstdint>
#include <sstream>
#include <string>

#include "flashxdl/core/config.hpp"
#include "flashxdl/core/status.hpp"
#include "flashxdl/device/kernel_entry.hpp"
#include "flashxdl/hip.hpp"

namespace flashxdl::device {

/// Status of a HIP call; `what` says what the call was for.
inline Status check_hip(hipError_t error, const char* what) {
  if (error == hipSuccess) return {};
  std::ostringstream text;
  text << what << ": " << hipGetErrorName(error) << ": " << hipGetErrorString(error);
  return {StatusCode::runtime_error, text.str()};
}

/// The grid of `workgroups`: x as far as HIP allows, then y.
struct Grid {
  static constexpr std::uint32_t most_x = 1u << 21;
  std::uint32_t x;
  std::uint32_t y;

  explicit constexpr Grid(std::uint64_t workgroups)
      : x(static_cast<std::uint32_t>(workgroups < most_x ? workgroups : most_x)),
        y(static_cast<std::uint32_t>((workgroups + most_x - 1) / most_x)) {}
};

/// Workgroups that one launch can have.
inline constexpr std::uint64_t grid_limit = std::uint64_t{Grid::most_x} * 2000;

/// Enqueues the kernel; nothing is launched for an empty grid.
template <class Kernel>
Status launch(Grid grid, const typename Kernel::Arguments& arguments, hipStream_t stream) {
  if (grid.x == 0 || grid.y == 0) return {};
  const dim3 blocks(grid.x, grid.y, 1);
  const dim3 threads(Kernel::threads, 1, 1);
#if FLASHXDL_AMDGCN
  auto copy = arguments;
  void* pointers[] = {&copy};
  const hipError_t error = hipLaunchKernel(reinterpret_cast<const void*>(&kernel_entry<Kernel>),
                                           blocks, threads, pointers, 0, stream);
#else
  const hipError_t error = host::launch(Kernel::name, blocks, threads, stream,
                                        [arguments] { kernel_entry<Kernel>(arguments); });
#endif
  return check_hip(error, Kernel::name);
}

}  // namespace flashxdl::device
