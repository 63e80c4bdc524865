#pragma once
/// \file
/// HIP's device-side names that are plain C++ here: coordinates, barriers, cross-lane operations,
/// atomics.

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "flashxdl/host/atomics.hpp"
#include "flashxdl/host/lane.hpp"

namespace flashxdl::host {

namespace detail {

/// threadIdx and its like: each member reads the coordinate of the lane that asks.
template <const dim3& (*coordinates)()>
struct Coordinates {
  template <std::uint32_t dim3::*member>
  struct Member {
    constexpr Member() = default;
    Member(const Member&) = delete;  // `auto i = threadIdx.x` would not be a number
    operator std::uint32_t() const { return coordinates().*member; }
  };
  Member<&dim3::x> x;
  Member<&dim3::y> y;
  Member<&dim3::z> z;
  operator dim3() const { return coordinates(); }
};

template <class T>
concept ShuffleValue = std::is_trivially_copyable_v<T> &&(sizeof(T) == 4 || sizeof(T) == 8);

template <class T>
struct Shuffle {
  T value;
  unsigned source;  ///< the lane to read from
};

/// Each lane gives its value and names the lane that it reads from; a lane that does not exist in
/// the block gives the reader its own value.
template <ShuffleValue T>
T shuffle(const char* name, T value, unsigned source) {
  Shuffle<T> mine{value, source};
  wave_collective(name, mine, [](const auto& lanes) {
    std::array<T, wave_size> values{};
    for (unsigned i = 0; i < wave_size; ++i) {
      if (lanes[i] != nullptr) values[i] = lanes[i]->value;
    }
    for (auto* lane : lanes) {
      if (lane != nullptr && lanes[lane->source] != nullptr) lane->value = values[lane->source];
    }
  });
  return mine.value;
}

/// Lanes read within their own group of `width`, a power of two.
inline unsigned group_base(int width) {
  return lane_id() & ~(static_cast<unsigned>(width) - 1);
}

struct Ballot {
  std::uint64_t bits;
};

}  // namespace detail

/// The bytes that the launch gave as dynamic shared memory.
template <class T>
T* dynamic_shared() {
  return reinterpret_cast<T*>(lds(detail::this_lane().workgroup->kernel().dynamic_lds_bytes));
}

}  // namespace flashxdl::host

// NOLINTBEGIN: these names are HIP's.
inline constexpr flashxdl::host::detail::Coordinates<&flashxdl::host::thread_index> threadIdx{};
inline constexpr flashxdl::host::detail::Coordinates<&flashxdl::host::workgroup_id> blockIdx{};
inline constexpr flashxdl::host::detail::Coordinates<&flashxdl::host::block_dim> blockDim{};
inline constexpr flashxdl::host::detail::Coordinates<&flashxdl::host::grid_dim> gridDim{};
inline constexpr int warpSize = static_cast<int>(flashxdl::host::detail::wave_size);

inline void __syncthreads() {
  flashxdl::host::workgroup_barrier();
}

template <class T>
inline T __shfl(T value, int source, int width = warpSize) {
  namespace d = flashxdl::host::detail;
  const unsigned within = static_cast<unsigned>(source) & (static_cast<unsigned>(width) - 1);
  return d::shuffle("__shfl", value, d::group_base(width) + within);
}

template <class T>
inline T __shfl_xor(T value, int mask, int width = warpSize) {
  namespace d = flashxdl::host::detail;
  const unsigned self = flashxdl::host::lane_id();
  const unsigned source = self ^ static_cast<unsigned>(mask);
  const bool inside = source < d::group_base(width) + static_cast<unsigned>(width);
  return d::shuffle("__shfl_xor", value, inside ? source : self);
}

template <class T>
inline T __shfl_up(T value, unsigned delta, int width = warpSize) {
  namespace d = flashxdl::host::detail;
  const unsigned self = flashxdl::host::lane_id();
  const bool inside = self - d::group_base(width) >= delta;
  return d::shuffle("__shfl_up", value, inside ? self - delta : self);
}

template <class T>
inline T __shfl_down(T value, unsigned delta, int width = warpSize) {
  namespace d = flashxdl::host::detail;
  const unsigned self = flashxdl::host::lane_id();
  const unsigned within = self - d::group_base(width);
  const bool inside = delta < static_cast<unsigned>(width) - within;
  return d::shuffle("__shfl_down", value, inside ? self + delta : self);
}

inline unsigned long long __ballot(int predicate) {
  flashxdl::host::detail::Ballot mine{predicate != 0 ? 1u : 0u};
  flashxdl::host::wave_collective("__ballot", mine, [](const auto& lanes) {
    std::uint64_t bits = 0;
    for (unsigned i = 0; i < lanes.size(); ++i) {
      if (lanes[i] != nullptr) bits |= lanes[i]->bits << i;
    }
    for (auto* lane : lanes) {
      if (lane != nullptr) lane->bits = bits;
    }
  });
  return mine.bits;
}

inline int __any(int predicate) {
  return __ballot(predicate) != 0 ? 1 : 0;
}

inline int __all(int predicate) {
  return __ballot(predicate == 0) == 0 ? 1 : 0;
}

inline unsigned __lane_id() {
  return flashxdl::host::lane_id();
}
inline int __popc(unsigned value) {
  return std::popcount(value);
}
inline int __popcll(unsigned long long value) {
  return std::popcount(value);
}

inline void __threadfence() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
}
inline void __threadfence_block() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

template <flashxdl::host::Arithmetic T>
inline T atomicAdd(T* address, std::type_identity_t<T> value) {
  return flashxdl::host::atomic_add(address, value);
}
template <flashxdl::host::Arithmetic T>
inline T atomicMax(T* address, std::type_identity_t<T> value) {
  return flashxdl::host::atomic_max(address, value);
}
template <flashxdl::host::Arithmetic T>
inline T atomicMin(T* address, std::type_identity_t<T> value) {
  return flashxdl::host::atomic_min(address, value);
}
template <flashxdl::host::Arithmetic T>
inline T atomicExch(T* address, std::type_identity_t<T> value) {
  return flashxdl::host::atomic_exchange(address, value);
}
template <std::integral T>
inline T atomicCAS(T* address, std::type_identity_t<T> expected, std::type_identity_t<T> desired) {
  return flashxdl::host::atomic_compare_exchange(address, expected, desired);
}
// NOLINTEND
