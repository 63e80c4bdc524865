#pragma once
/// \file
/// Filling the memory of a tensor, and describing it.

#include <cstdint>
#include <random>

#include "common/device_memory.hpp"
#include "common/forward_config.hpp"
#include "flashxdl/core/problem.hpp"

namespace flashxdl::example {

/// One number of the kind that --init asks for.
class Fill {
public:
  enum class Role { query_or_key, value, bias };

  Fill(int init, std::mt19937_64& generator) : init_(init), generator_(generator) {}

  float next(Role role) {
    switch (init_) {
      case 0:
        return 0;
      case 1: {
        const auto integer = static_cast<float>(generator_() % (role == Role::bias ? 2 : 4));
        return integer - (role == Role::bias ? 1.0f : 2.0f);
      }
      case 2:
        return uniform_(generator_) - (role == Role::query_or_key ? 0.0f : 0.5f);
      default:
        return normal_(generator_);
    }
  }

private:
  int init_;
  std::mt19937_64& generator_;
  std::uniform_real_distribution<float> uniform_{0, 1};
  std::normal_distribution<float> normal_{0, 1};
};

inline std::size_t bytes_of(DataType type, std::int64_t elements) {
  return size_of(type) * static_cast<std::size_t>(elements);
}

/// Fills all of the memory on host and device.
inline void initialise(DeviceMemory& memory, DataType type, Fill& fill, Fill::Role role) {
  const auto elements = static_cast<std::int64_t>(memory.bytes() / size_of(type));
  for (std::int64_t i = 0; i < elements; ++i) {
    store_element(memory.host(), type, i, fill.next(role));
  }
  memory.upload();
}

template <class Pointer>
Tensor<Pointer> dense(Layout layout, Pointer data, std::int64_t heads, std::int64_t rows,
                      std::int64_t columns) {
  return layout == Layout::bhsd ? bhsd(data, heads, rows, columns)
                                : bshd(data, heads, rows, columns);
}

/// Another tensor with the same strides.
template <class Pointer, class Other>
Tensor<Pointer> same_strides(const Tensor<Other>& other, Pointer data) {
  return {data, other.batch_stride, other.head_stride, other.row_stride, other.column_stride};
}

}  // namespace flashxdl::example
