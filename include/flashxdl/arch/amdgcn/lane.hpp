#pragma once
/// \file
/// Lanes, waves and workgroups on amdgcn.

#include <cstdint>

#include "flashxdl/arch/target.hpp"
#include "flashxdl/core/config.hpp"

namespace flashxdl::arch {

FLASHXDL_DEVICE std::uint32_t thread_id() {
  return __builtin_amdgcn_workitem_id_x();
}
FLASHXDL_DEVICE std::uint32_t workgroup_id_x() {
  return __builtin_amdgcn_workgroup_id_x();
}
FLASHXDL_DEVICE std::uint32_t workgroup_id_y() {
  return __builtin_amdgcn_workgroup_id_y();
}
FLASHXDL_DEVICE std::uint32_t lane_id() {
  return __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
}

/// A value that is equal in all lanes, moved to a scalar register.
FLASHXDL_DEVICE std::uint32_t uniform(std::uint32_t x) {
  return static_cast<std::uint32_t>(__builtin_amdgcn_readfirstlane(static_cast<int>(x)));
}
FLASHXDL_DEVICE std::int32_t uniform(std::int32_t x) {
  return __builtin_amdgcn_readfirstlane(x);
}

/// The same value, but computed anew from here on: keeps the compiler from holding what follows
/// from it in registers over a whole loop.
FLASHXDL_DEVICE int recomputed(int x) {
  asm volatile("" : "+v"(x));
  return x;
}

/// The same for a value that is equal in all lanes. Old compilers do not hold so much, and would
/// move the value to vector registers.
FLASHXDL_DEVICE std::uint32_t recomputed_uniform(std::uint32_t x) {
#if __clang_major__ >= 18
  x = uniform(x);
  asm volatile("" : "+s"(x));
#endif
  return x;
}

FLASHXDL_DEVICE std::uint32_t wave_id() {
  return uniform(thread_id() / wave_size);
}

/// True in every lane if it is true in any lane of the wave.
FLASHXDL_DEVICE bool any(bool predicate) {
  constexpr int not_equal = 33;  // LLVM's integer predicate NE
  return __builtin_amdgcn_uicmp(predicate ? 1u : 0u, 0u, not_equal) != 0;
}

/// The value of the lane whose number differs in bit log2(Distance), within a quad of lanes.
template <int Distance>
FLASHXDL_DEVICE std::uint32_t quad_swap(std::uint32_t x) {
  static_assert(Distance == 1 || Distance == 2, "a quad has 4 lanes: swap at distance 1 or 2");
  constexpr int quad_perm = Distance == 1 ? 0b10'11'00'01 : 0b01'00'11'10;
  return static_cast<std::uint32_t>(
      __builtin_amdgcn_update_dpp(0, static_cast<int>(x), quad_perm, 0xf, 0xf, true));
}

/// The value of the lane 32 lanes away: the lane that holds the same column of a 32x32 result.
FLASHXDL_DEVICE float half_swap(float x) {
  const int address = static_cast<int>((lane_id() ^ 32u) * 4u);
  return __builtin_bit_cast(float,
                            __builtin_amdgcn_ds_bpermute(address, __builtin_bit_cast(int, x)));
}

/// Meeting point of the lanes of a wave: orders their LDS accesses. Waves run in lockstep, so the
/// machine needs nothing; the compiler must not move LDS accesses across it.
FLASHXDL_DEVICE void wave_sync() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

/// Barrier of the workgroup: LDS written before is visible after.
FLASHXDL_DEVICE void workgroup_sync() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

}  // namespace flashxdl::arch
