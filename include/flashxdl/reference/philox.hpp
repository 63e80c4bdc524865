#pragma once
/// \file
/// Philox4x32, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random
/// numbers: as easy as 1, 2, 3" (SC 2011): a bijection of 128 bits under a 64-bit key.

#include <array>
#include <cstdint>

namespace flashxdl::reference {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

/// The 128 random bits of `counter` under `key`. 10 rounds are the usual choice (Random123,
/// rocRAND); 7 are the fewest that pass TestU01's BigCrush.
constexpr PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key, int rounds = 10) {
  for (int round = 0; round < rounds; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53u} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
  }
  return counter;
}

/// Draw number `position` of stream `sequence` under `seed`, numbered as rocRAND numbers them
/// (subsequence, offset / 4).
constexpr PhiloxCounter philox_draw(std::uint64_t seed, std::uint64_t sequence,
                                    std::uint64_t position, int rounds = 10) {
  return philox4x32(
      {static_cast<std::uint32_t>(position), static_cast<std::uint32_t>(position >> 32),
       static_cast<std::uint32_t>(sequence), static_cast<std::uint32_t>(sequence >> 32)},
      {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}, rounds);
}

}  // namespace flashxdl::reference
