#pragma once
/// \file
/// Local memory of a workgroup on the CPU: poisoned when a workgroup starts.

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "flashxdl/core/registers.hpp"
#include "flashxdl/host/lane.hpp"

namespace flashxdl::arch {

class Lds {
public:
  explicit Lds(std::byte* base) : base_(base) {}

  template <int Words>
  Registers<std::uint32_t, Words> read(std::uint32_t offset) const {
    assert(offset % (Words * 4) == 0 && "LDS reads are aligned to their size");
    Registers<std::uint32_t, Words> r;
    std::memcpy(&r.v, base_ + offset, sizeof r.v);
    return r;
  }
  template <int Words>
  void write(std::uint32_t offset, Registers<std::uint32_t, Words> value) const {
    assert(offset % (Words * 4) == 0 && "LDS writes are aligned to their size");
    std::memcpy(base_ + offset, &value.v, sizeof value.v);
  }
  void write_u16(std::uint32_t offset, std::uint16_t value) const {
    assert(offset % 2 == 0 && "LDS writes are aligned to their size");
    std::memcpy(base_ + offset, &value, sizeof value);
  }

private:
  std::byte* base_;
};

template <int Bytes>
inline Lds workgroup_lds() {
  return Lds(host::lds(Bytes));
}

}  // namespace flashxdl::arch
