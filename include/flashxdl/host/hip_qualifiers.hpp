#pragma once
/// \file
/// HIP's qualifiers and launch macros, which can be nothing but macros.

#include "flashxdl/host/launch.hpp"

// NOLINTBEGIN: these names are HIP's.
#define __global__
#define __device__
#define __host__
#define __constant__
#define __launch_bounds__(...)
#define __forceinline__ inline __attribute__((always_inline))
#ifndef __noinline__
#define __noinline__ __attribute__((noinline))
#endif
/// A workgroup runs on one thread, so a variable of the thread is one of the workgroup.
#define __shared__ static thread_local
#define HIP_DYNAMIC_SHARED(type, variable) \
  type* variable = ::flashxdl::host::dynamic_shared<type>();

#define HIP_KERNEL_NAME(...) (__VA_ARGS__)
/// As in HIP the launch gives nothing back: ask hipGetLastError.
#define hipLaunchKernelGGL(kernel, grid, block, shared_bytes, stream, ...)                   \
  ((void)::flashxdl::host::launch_function(#kernel, kernel, (grid), (block), (shared_bytes), \
                                           (stream)__VA_OPT__(, ) __VA_ARGS__))
// NOLINTEND
