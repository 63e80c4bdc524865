#pragma once
/// \file
/// A loop whose index is a compile-time constant in every iteration.

#include <type_traits>
#include <utility>

#include "flashxdl/core/config.hpp"

namespace flashxdl {

/// Calls body(std::integral_constant<int, i>) for i = 0 .. Count-1.
template <int Count, class Body>
FLASHXDL_HOST_DEVICE constexpr void static_for(Body&& body) {
  [&]<int... I>(std::integer_sequence<int, I...>) FLASHXDL_INLINE {
    (body(std::integral_constant<int, I>{}), ...);
  }
  (std::make_integer_sequence<int, Count>{});
}

}  // namespace flashxdl
