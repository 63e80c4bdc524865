#pragma once
/// \file
/// What a lane can do and know on the CPU target: who it is, meet the other lanes of its wave or
/// workgroup, find the workgroup's LDS. Call these from inside a kernel only.
///
/// A lane that waits in a loop for another lane without meeting it never yields: lanes take turns
/// at meeting points and nowhere else.

#include <array>
#include <cstddef>
#include <stdexcept>
#include <utility>

#include "flashxdl/host/atomics.hpp"
#include "flashxdl/host/dim3.hpp"
#include "flashxdl/host/workgroup.hpp"

namespace flashxdl::host {

namespace detail {

inline Lane& this_lane() {
  Lane* lane = current_lane;
  if (lane == nullptr) [[unlikely]] {
    throw std::logic_error("flashxdl host: a device-side function was called outside a kernel");
  }
  return *lane;
}

}  // namespace detail

/// Number of the lane within its wave, 0 to 63.
inline unsigned lane_id() {
  return detail::this_lane().id;
}
/// Number of the wave within its workgroup.
inline unsigned wave_id() {
  return detail::this_lane().wave->id;
}
/// Lanes that exist in this wave: 64, or fewer in the last wave of a block that is no multiple.
inline unsigned wave_lanes() {
  return detail::this_lane().wave->lanes;
}
inline const Dim3& thread_index() {
  return detail::this_lane().thread;
}
/// Number of the lane within its workgroup.
inline unsigned thread_id() {
  const detail::Lane& lane = detail::this_lane();
  return lane.wave->id * detail::wave_size + lane.id;
}
inline const Dim3& workgroup_id() {
  return detail::this_lane().workgroup->block_index();
}
inline const Dim3& block_dim() {
  return detail::this_lane().workgroup->kernel().block;
}
inline const Dim3& grid_dim() {
  return detail::this_lane().workgroup->kernel().grid;
}

/// A meeting point of all lanes of the wave. Each lane brings `mine`; the last to arrive calls
/// `op(lanes)` once, with lanes[i] pointing to lane i's slot (null where the block has no such
/// lane); then all go on, and find in `mine` what `op` left there. Lanes of one wave must meet at
/// the same `name` with the same Slot type: anything else fails the launch as a divergence.
template <class Slot, class Op>
inline void wave_collective(const char* name, Slot& mine, Op&& op) {
  detail::Lane& lane = detail::this_lane();
  lane.workgroup->collective(lane, name, mine, std::forward<Op>(op));
}

/// __syncthreads: all lanes of the workgroup meet.
inline void workgroup_barrier() {
  detail::Lane& lane = detail::this_lane();
  lane.workgroup->barrier(lane);
}

/// The workgroup's LDS: the same address for all its lanes, 64-byte aligned, NaN in every 16- and
/// 32-bit format when the workgroup starts. At most 160 KiB, else std::length_error.
inline std::byte* lds(std::size_t bytes) {
  return detail::this_lane().workgroup->lds().get(bytes);
}

}  // namespace flashxdl::host
