#pragma once
/// \file
/// Local memory of a workgroup on amdgcn.

#include <cstdint>

#include "flashxdl/core/config.hpp"
#include "flashxdl/core/registers.hpp"

namespace flashxdl::arch {

/// Byte-addressed LDS; reads and writes of Words 32-bit words are aligned to their size.
class Lds {
public:
  using Pointer = __attribute__((address_space(3))) char*;
  FLASHXDL_DEVICE explicit Lds(Pointer base) : base_(base) {}

  template <int Words>
  FLASHXDL_DEVICE Registers<std::uint32_t, Words> read(std::uint32_t offset) const {
    using Value = typename Registers<std::uint32_t, Words>::Storage;
    return {*(const __attribute__((address_space(3))) Value*)(base_ + offset)};
  }
  template <int Words>
  FLASHXDL_DEVICE void write(std::uint32_t offset, Registers<std::uint32_t, Words> value) const {
    using Value = typename Registers<std::uint32_t, Words>::Storage;
    *(__attribute__((address_space(3))) Value*)(base_ + offset) = value.v;
  }
  FLASHXDL_DEVICE void write_u16(std::uint32_t offset, std::uint16_t value) const {
    *(__attribute__((address_space(3))) std::uint16_t*)(base_ + offset) = value;
  }

private:
  Pointer base_;
};

/// The kernel's LDS, Bytes of it.
template <int Bytes>
FLASHXDL_DEVICE Lds workgroup_lds() {
  __attribute__((shared)) __attribute__((aligned(16))) static char arena[Bytes];
  return Lds((Lds::Pointer)arena);
}

}  // namespace flashxdl::arch
