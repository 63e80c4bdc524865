#pragma once
/// \file
/// Where the elements of a logical tensor [b, h, s, d] lie in memory.

#include <cstdint>

namespace flashxdl::test {

struct Shape {
  std::int64_t b = 0, h = 0, s = 0, d = 0;

  constexpr std::int64_t count() const { return b * h * s * d; }
  friend constexpr bool operator==(const Shape&, const Shape&) = default;
};

/// Strides and offset count elements.
struct Layout {
  Shape shape{};
  std::int64_t b = 0, h = 0, s = 0, d = 1;
  std::int64_t offset = 0;

  constexpr std::int64_t at(std::int64_t ib, std::int64_t ih, std::int64_t is,
                            std::int64_t id) const {
    return offset + ib * b + ih * h + is * s + id * d;
  }
  /// One past the last element.
  constexpr std::int64_t extent() const {
    return shape.count() == 0 ? 0 : at(shape.b - 1, shape.h - 1, shape.s - 1, shape.d - 1) + 1;
  }
  /// Calls body(b, h, s, d) for every element, in logical order.
  template <class Body>
  void for_each(const Body& body) const {
    for (std::int64_t ib = 0; ib < shape.b; ++ib) {
      for (std::int64_t ih = 0; ih < shape.h; ++ih) {
        for (std::int64_t is = 0; is < shape.s; ++is) {
          for (std::int64_t id = 0; id < shape.d; ++id) body(ib, ih, is, id);
        }
      }
    }
  }
};

/// [b, h, s, d], `pitch` elements from row to row and room for `capacity` rows.
constexpr Layout bhsd_layout(Shape shape, std::int64_t pitch, std::int64_t capacity) {
  return {shape, shape.h * capacity * pitch, capacity * pitch, pitch, 1, 0};
}
constexpr Layout bhsd_layout(Shape shape) {
  return bhsd_layout(shape, shape.d, shape.s);
}

/// [b, s, h, d], `pitch` elements from head to head and room for `capacity` rows.
constexpr Layout bshd_layout(Shape shape, std::int64_t pitch, std::int64_t capacity) {
  return {shape, capacity * shape.h * pitch, pitch, shape.h * pitch, 1, 0};
}
constexpr Layout bshd_layout(Shape shape) {
  return bshd_layout(shape, shape.d, shape.s);
}

}  // namespace flashxdl::test
