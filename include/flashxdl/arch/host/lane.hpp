#pragma once
/// \file
/// Lanes, waves and workgroups on the CPU: each lane is a fiber, and what moves data between lanes
/// is a meeting point of the wave.

#include <array>
#include <bit>
#include <cstdint>

#include "flashxdl/arch/target.hpp"
#include "flashxdl/core/config.hpp"
#include "flashxdl/host/lane.hpp"

namespace flashxdl::arch {

inline std::uint32_t thread_id() {
  return host::thread_id();
}
inline std::uint32_t workgroup_id_x() {
  return host::workgroup_id().x;
}
inline std::uint32_t workgroup_id_y() {
  return host::workgroup_id().y;
}
inline std::uint32_t lane_id() {
  return host::lane_id();
}
inline std::uint32_t wave_id() {
  return host::wave_id();
}
template <class T>
inline T uniform(T x) {
  return x;
}

inline int recomputed(int x) {
  return x;
}

inline std::uint32_t recomputed_uniform(std::uint32_t x) {
  return x;
}

namespace detail {

struct Exchange {
  std::uint32_t in;
  std::uint32_t out;
};

/// Every lane gets the value of lane (own number XOR Distance); 0 where that lane does not exist.
template <int Distance>
inline std::uint32_t swap(const char* name, std::uint32_t x) {
  Exchange mine{x, 0};
  host::wave_collective(name, mine, [](const std::array<Exchange*, 64>& lanes) {
    for (std::size_t i = 0; i < lanes.size(); ++i) {
      const Exchange* other = lanes[i ^ static_cast<std::size_t>(Distance)];
      if (lanes[i] != nullptr && other != nullptr) lanes[i]->out = other->in;
    }
  });
  return mine.out;
}

}  // namespace detail

inline bool any(bool predicate) {
  detail::Exchange mine{predicate ? 1u : 0u, 0};
  host::wave_collective("any", mine, [](const std::array<detail::Exchange*, 64>& lanes) {
    std::uint32_t result = 0;
    for (const auto* lane : lanes) result |= lane != nullptr ? lane->in : 0u;
    for (auto* lane : lanes) {
      if (lane != nullptr) lane->out = result;
    }
  });
  return mine.out != 0;
}

template <int Distance>
inline std::uint32_t quad_swap(std::uint32_t x) {
  static_assert(Distance == 1 || Distance == 2, "a quad has 4 lanes: swap at distance 1 or 2");
  return detail::swap<Distance>(Distance == 1 ? "quad_swap<1>" : "quad_swap<2>", x);
}

inline float half_swap(float x) {
  return std::bit_cast<float>(detail::swap<32>("half_swap", std::bit_cast<std::uint32_t>(x)));
}

inline void wave_sync() {
  char mine = 0;
  host::wave_collective("wave_sync", mine, [](const std::array<char*, 64>&) {});
}

inline void workgroup_sync() {
  host::workgroup_barrier();
}

}  // namespace flashxdl::arch
