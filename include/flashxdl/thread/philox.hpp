#pragma once
/// \file
/// Philox4x32 in registers. Source: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy
/// as 1, 2, 3" (SC 2011), section 4.3. Ten rounds are rocRAND's generator; seven pass the same
/// statistical tests at less cost.

#include <cstdint>

#include "flashxdl/arch/arch.hpp"
#include "flashxdl/core/config.hpp"
#include "flashxdl/core/registers.hpp"
#include "flashxdl/core/static_for.hpp"

namespace flashxdl::thread {

/// 128 random bits for the counter (position, sequence) under the key, which is equal in all lanes.
template <int Rounds>
FLASHXDL_DEVICE Registers<std::uint32_t, 4> philox4x32(std::uint64_t position,
                                                       std::uint64_t sequence, std::uint64_t key) {
  static_assert(Rounds >= 7 && Rounds <= 10, "Philox4x32 needs 7 rounds at least; 10 is standard");
  auto c0 = static_cast<std::uint32_t>(position);
  auto c1 = static_cast<std::uint32_t>(position >> 32);
  auto c2 = static_cast<std::uint32_t>(sequence);
  auto c3 = static_cast<std::uint32_t>(sequence >> 32);
  // The key schedule is scalar arithmetic: cheap to repeat, dear to keep in registers.
  std::uint32_t k0 = arch::recomputed_uniform(static_cast<std::uint32_t>(key));
  std::uint32_t k1 = arch::recomputed_uniform(static_cast<std::uint32_t>(key >> 32));
  static_for<Rounds>([&](auto) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53u} * c0;
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57u} * c2;
    c0 = static_cast<std::uint32_t>(product1 >> 32) ^ c1 ^ k0;
    c1 = static_cast<std::uint32_t>(product1);
    c2 = static_cast<std::uint32_t>(product0 >> 32) ^ c3 ^ k1;
    c3 = static_cast<std::uint32_t>(product0);
    k0 += 0x9E3779B9u;  // the golden ratio ...
    k1 += 0xBB67AE85u;  // ... and the square root of 3, less 1
  });
  Registers<std::uint32_t, 4> words;
  words.set(0, c0);
  words.set(1, c1);
  words.set(2, c2);
  words.set(3, c3);
  return words;
}

}  // namespace flashxdl::thread
