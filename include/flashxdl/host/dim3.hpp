#pragma once
/// \file
/// HIP's dim3: the extent of a grid or block, or a coordinate in one.

#include <cstdint>

struct dim3 {
  std::uint32_t x;
  std::uint32_t y;
  std::uint32_t z;
  constexpr dim3(std::uint32_t x_ = 1, std::uint32_t y_ = 1, std::uint32_t z_ = 1)
      : x(x_), y(y_), z(z_) {}
  friend constexpr bool operator==(const dim3&, const dim3&) = default;
};

namespace flashxdl::host {
using Dim3 = ::dim3;
}  // namespace flashxdl::host
