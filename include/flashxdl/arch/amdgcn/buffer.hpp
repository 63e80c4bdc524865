#pragma once
/// \file
/// Buffer instructions: a 64-bit base in scalar registers, 32-bit byte offsets in lanes, and the
/// machine's own range check. Source: "AMD Instinct MI200 ISA", section 9.1 (buffer resources).
/// The LLVM intrinsics are named directly because clang 15 has no builtins for them.

#include <cstdint>

#include "flashxdl/core/config.hpp"
#include "flashxdl/core/registers.hpp"
#include "flashxdl/core/static_for.hpp"

namespace flashxdl::arch {

namespace intrinsic {
typedef std::uint32_t u32x2 __attribute__((ext_vector_type(2)));
typedef std::uint32_t u32x4 __attribute__((ext_vector_type(4)));
typedef std::int32_t i32x4 __attribute__((ext_vector_type(4)));

__attribute__((device)) std::uint16_t load_u16(i32x4 resource, int offset, int scalar_offset,
                                               int cache) __asm("llvm.amdgcn.raw.buffer.load.i16");
__attribute__((device)) std::uint32_t load_u32(i32x4 resource, int offset, int scalar_offset,
                                               int cache) __asm("llvm.amdgcn.raw.buffer.load.i32");
__attribute__((device)) u32x2 load_u32x2(i32x4 resource, int offset, int scalar_offset,
                                         int cache) __asm("llvm.amdgcn.raw.buffer.load.v2i32");
__attribute__((device)) u32x4 load_u32x4(i32x4 resource, int offset, int scalar_offset,
                                         int cache) __asm("llvm.amdgcn.raw.buffer.load.v4i32");
__attribute__((device)) void store_u8(std::uint8_t value, i32x4 resource, int offset,
                                      int scalar_offset,
                                      int cache) __asm("llvm.amdgcn.raw.buffer.store.i8");
__attribute__((device)) void store_u16(std::uint16_t value, i32x4 resource, int offset,
                                       int scalar_offset,
                                       int cache) __asm("llvm.amdgcn.raw.buffer.store.i16");
__attribute__((device)) void store_u32(std::uint32_t value, i32x4 resource, int offset,
                                       int scalar_offset,
                                       int cache) __asm("llvm.amdgcn.raw.buffer.store.i32");
__attribute__((device)) void store_u32x4(u32x4 value, i32x4 resource, int offset, int scalar_offset,
                                         int cache) __asm("llvm.amdgcn.raw.buffer.store.v4i32");
__attribute__((device)) float add_f32(float value, i32x4 resource, int offset, int scalar_offset,
                                      int cache) __asm("llvm.amdgcn.raw.buffer.atomic.fadd.f32");
}  // namespace intrinsic

/// A pointer to memory that no kernel writes while this one runs: read through the scalar cache.
template <class T>
using Constant = const __attribute__((address_space(4))) T*;
template <class T>
FLASHXDL_DEVICE Constant<T> constant(const T* pointer) {
  return (Constant<T>)pointer;
}
/// A copy of *pointer, which is equal in all lanes.
template <class T>
FLASHXDL_DEVICE T load_constant(Constant<T> pointer) {
  static_assert(sizeof(T) % 8 == 0, "constants are copied in 8-byte words");
  struct Words {
    std::uint64_t word[sizeof(T) / 8];
  } words;
  const auto from = (Constant<std::uint64_t>)pointer;
  static_for<sizeof(T) / 8>([&](auto i) { words.word[i] = from[i]; });
  return __builtin_bit_cast(T, words);
}

/// The same pointer, but what is read through it is read anew from here on, not kept in registers
/// since an earlier read.
template <class T>
FLASHXDL_DEVICE Constant<T> reread(Constant<T> pointer) {
  asm volatile("" : "+s"(pointer));
  return pointer;
}
/// Where the machine keeps the arguments of the running kernel, whose only parameter is a T.
template <class T>
FLASHXDL_DEVICE Constant<T> kernel_arguments(const T&) {
  return (Constant<T>)__builtin_amdgcn_kernarg_segment_ptr();
}

/// `bytes` of global memory from `base`. Base and size are uniform over the wave.
class Buffer {
public:
  FLASHXDL_DEVICE Buffer(const void* base, std::uint32_t bytes) {
    const auto address = reinterpret_cast<std::uint64_t>(base);
    resource_[0] = static_cast<int>(address);
    resource_[1] = static_cast<int>((address >> 32) & 0xffff);
    resource_[2] = static_cast<int>(bytes);
    resource_[3] = 0x00020000;  // 32-bit data, no swizzle
  }

  /// Words consecutive 32-bit words at a byte offset; 0 where out of range.
  template <int Words>
  FLASHXDL_DEVICE Registers<std::uint32_t, Words> load(std::uint32_t offset) const {
    static_assert(Words == 1 || Words == 2 || Words == 4, "buffer loads move 1, 2 or 4 words");
    const int at = static_cast<int>(offset);
    Registers<std::uint32_t, Words> r;
    if constexpr (Words == 1) r.v[0] = intrinsic::load_u32(resource_, at, 0, 0);
    if constexpr (Words == 2) r.v = intrinsic::load_u32x2(resource_, at, 0, 0);
    if constexpr (Words == 4) r.v = intrinsic::load_u32x4(resource_, at, 0, 0);
    return r;
  }
  FLASHXDL_DEVICE std::uint16_t load_u16(std::uint32_t offset) const {
    return intrinsic::load_u16(resource_, static_cast<int>(offset), 0, 0);
  }

  FLASHXDL_DEVICE void store(std::uint32_t offset, Registers<std::uint32_t, 4> value) const {
    intrinsic::store_u32x4(value.v, resource_, static_cast<int>(offset), 0, 0);
  }
  FLASHXDL_DEVICE void store_u32(std::uint32_t offset, std::uint32_t value) const {
    intrinsic::store_u32(value, resource_, static_cast<int>(offset), 0, 0);
  }
  /// Adds to the fp32 number there, atomically over the device.
  FLASHXDL_DEVICE void add_f32(std::uint32_t offset, float value) const {
    (void)intrinsic::add_f32(value, resource_, static_cast<int>(offset), 0, 0);
  }
  FLASHXDL_DEVICE void store_u16(std::uint32_t offset, std::uint16_t value) const {
    intrinsic::store_u16(value, resource_, static_cast<int>(offset), 0, 0);
  }
  FLASHXDL_DEVICE void store_u8(std::uint32_t offset, std::uint8_t value) const {
    intrinsic::store_u8(value, resource_, static_cast<int>(offset), 0, 0);
  }

private:
  intrinsic::i32x4 resource_;
};

}  // namespace flashxdl::arch
