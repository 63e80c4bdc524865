#pragma once
/// \file
/// Register tiles: the values of one lane. On amdgcn they are vectors, so that a tile stays one
/// aligned run of registers; on the CPU plain arrays.

#include <cstdint>

#include "flashxdl/core/config.hpp"

namespace flashxdl {

template <class T, int Count>
struct Registers {
  static constexpr int size = Count;

#if FLASHXDL_AMDGCN
  typedef T Storage __attribute__((ext_vector_type(Count)));
#else
  typedef T Storage[Count];
#endif
  Storage v;

  FLASHXDL_HOST_DEVICE constexpr T operator[](int i) const {
    return v[i];
  }
  FLASHXDL_HOST_DEVICE constexpr void set(int i, T value) {
    v[i] = value;
  }

  static FLASHXDL_HOST_DEVICE constexpr Registers filled(T value) {
    Registers r{};
    for (int i = 0; i < Count; ++i) r.v[i] = value;
    return r;
  }
};

/// Eight 16-bit numbers: one lane's share of a matrix operand, 16 values of the inner dimension.
using Fragment = Registers<std::uint32_t, 4>;
/// One lane's 16 results of a 32x32 matrix product.
using Accumulator = Registers<float, 16>;

}  // namespace flashxdl
