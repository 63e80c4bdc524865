#pragma once
/// \file
/// The __global__ function of every kernel. Together with a kernel's own header it is all that the
/// device pass needs: no HIP headers.

#include "flashxdl/arch/arch.hpp"
#include "flashxdl/core/config.hpp"

namespace flashxdl::device {

/// A kernel is a type with `Arguments` (trivially copyable), `threads`, `waves_per_simd`, `name`
/// and a device function run(arch::Constant<Arguments>).
template <class Kernel>
#if FLASHXDL_AMDGCN
__attribute__((amdgpu_flat_work_group_size(Kernel::threads, Kernel::threads),
               amdgpu_waves_per_eu(Kernel::waves_per_simd)))
#endif
FLASHXDL_GLOBAL void
kernel_entry([[maybe_unused]] typename Kernel::Arguments arguments) {
#if FLASHXDL_DEVICE_PASS
  Kernel::run(arch::kernel_arguments(arguments));
#endif
}

}  // namespace flashxdl::device
