#pragma once
/// \file
/// Range-checked global memory on the CPU, as AMD's raw buffers behave.

#include <cstdint>
#include <cstring>

#include "flashxdl/core/registers.hpp"
#include "flashxdl/host/atomics.hpp"

namespace flashxdl::arch {

template <class T>
using Constant = const T*;
template <class T>
inline Constant<T> constant(const T* pointer) {
  return pointer;
}
template <class T>
inline T load_constant(const T* pointer) {
  return *pointer;
}

template <class T>
inline Constant<T> reread(const T* pointer) {
  return pointer;
}
template <class T>
inline Constant<T> kernel_arguments(const T& arguments) {
  return &arguments;
}

class Buffer {
public:
  Buffer(const void* base, std::uint32_t bytes)
      : base_(static_cast<char*>(const_cast<void*>(base))), bytes_(bytes) {}

  template <int Words>
  Registers<std::uint32_t, Words> load(std::uint32_t offset) const {
    static_assert(Words == 1 || Words == 2 || Words == 4, "buffer loads move 1, 2 or 4 words");
    Registers<std::uint32_t, Words> r{};
    for (int i = 0; i < Words; ++i) {  // each word is checked by itself
      const std::uint64_t at = std::uint64_t{offset} + 4 * static_cast<std::uint64_t>(i);
      if (at + 4 <= bytes_) std::memcpy(&r.v[i], base_ + at, 4);
    }
    return r;
  }
  std::uint16_t load_u16(std::uint32_t offset) const {
    std::uint16_t value = 0;
    if (inside(offset, 2)) std::memcpy(&value, base_ + offset, 2);
    return value;
  }

  void store(std::uint32_t offset, Registers<std::uint32_t, 4> value) const {
    for (int i = 0; i < 4; ++i) {
      const std::uint64_t at = std::uint64_t{offset} + 4 * static_cast<std::uint64_t>(i);
      if (at + 4 <= bytes_) std::memcpy(base_ + at, &value.v[i], 4);
    }
  }
  void store_u32(std::uint32_t offset, std::uint32_t value) const { put(offset, value); }
  void add_f32(std::uint32_t offset, float value) const {
    if (inside(offset, 4)) host::atomic_add(reinterpret_cast<float*>(base_ + offset), value);
  }
  void store_u16(std::uint32_t offset, std::uint16_t value) const { put(offset, value); }
  void store_u8(std::uint32_t offset, std::uint8_t value) const { put(offset, value); }

private:
  bool inside(std::uint32_t offset, std::uint32_t size) const {
    return std::uint64_t{offset} + size <= bytes_;
  }
  template <class T>
  void put(std::uint32_t offset, T value) const {
    if (inside(offset, sizeof(T))) std::memcpy(base_ + offset, &value, sizeof(T));
  }

  char* base_;
  std::uint64_t bytes_;
};

}  // namespace flashxdl::arch
