#pragma once
/// \file
/// The architecture that the kernels of this translation unit are compiled for.

#include "flashxdl/core/config.hpp"

namespace flashxdl::arch {

enum class Arch { gfx908, gfx90a, gfx942, gfx950 };

#if FLASHXDL_AMDGCN && FLASHXDL_DEVICE_PASS
#if defined(__gfx908__)
inline constexpr Arch target = Arch::gfx908;
#elif defined(__gfx90a__)
inline constexpr Arch target = Arch::gfx90a;
#elif defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__)
inline constexpr Arch target = Arch::gfx942;
#elif defined(__gfx950__)
inline constexpr Arch target = Arch::gfx950;
#else
#error \
    "flashxdl has no kernels for this GPU: compile for gfx908, gfx90a, gfx942 or gfx950 (--offload-arch)"
#endif
#else
/// The CPU target computes with the matrix instructions of this architecture.
inline constexpr Arch target = Arch::gfx90a;
#endif

/// Lanes of a wave; nothing outside arch/ may assume the number.
inline constexpr int wave_size = 64;

/// LDS of a workgroup, bytes.
constexpr int lds_capacity(Arch a) {
  return a == Arch::gfx950 ? 160 * 1024 : 64 * 1024;
}

/// Packed fp32 arithmetic (v_pk_fma_f32 and its kin).
constexpr bool has_packed_fp32(Arch a) {
  return a != Arch::gfx908;
}

}  // namespace flashxdl::arch
