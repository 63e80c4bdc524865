#pragma once
/// \file
/// The two products of forward attention for the 32 queries of a wave, one query to a lane pair:
/// S^T = K Q^T with K from LDS and Q in registers, and O^T += V^T P^T with V^T from LDS and P^T in
/// the registers that S^T left it in (FlashAttention-2, algorithm 1, lines 8 and 10, transposed).

#include <cstdint>

#include "flashxdl/arch/arch.hpp"
#include "flashxdl/block/chunk.hpp"
#include "flashxdl/block/tile_loader.hpp"
#include "flashxdl/core/config.hpp"
#include "flashxdl/core/registers.hpp"
#include "flashxdl/core/static_for.hpp"

namespace flashxdl::block {

/// Loads the query of this lane (row `query`), its half of every 16 columns; `keep` and `flip` are
/// applied to each pair of numbers (all ones and 0: unchanged).
template <bool Wide, int Steps>
FLASHXDL_DEVICE void load_query(Fragment (&q)[Steps], const GlobalMatrix& matrix, int query,
                                std::uint32_t keep, std::uint32_t flip) {
  const int half = static_cast<int>(arch::lane_id() / 32) * 8;
  static_for<Steps>([&](auto s) {
    const int column = 16 * s + half;
    q[s] = load_chunk<Wide, 8>(matrix.buffer, number_offset(matrix, query, column),
                               matrix.columns - column);
    static_for<4>([&](auto w) { q[s].set(w, (q[s][w] & keep) ^ flip); });
  });
}

/// scores[b] = (K Q^T) of keys 32 b .. 32 b + 31 of the tile.
template <class T, class KTile, int Blocks, int Steps>
FLASHXDL_DEVICE void multiply_keys(Accumulator (&scores)[Blocks], const arch::Lds& lds,
                                   std::uint32_t at, const Fragment (&q)[Steps]) {
  const std::uint32_t lane = arch::lane_id();
  static_for<Blocks>([&](auto b) {
    scores[b] = Accumulator{};
    static_for<Steps>([&](auto s) {
      const auto k = lds.read<4>(at + KTile::offset(32 * b + lane % 32, 2 * s + lane / 32));
      arch::mma<T>(scores[b], k, q[s]);
    });
  });
}

/// P^T rounded to 16 bits, as operands of the second product.
template <class T, int Blocks>
FLASHXDL_DEVICE void pack_probabilities(Fragment (&p)[2 * Blocks],
                                        const Accumulator (&scores)[Blocks]) {
  static_for<Blocks>([&](auto b) {
    static_for<8>([&](auto i) {
      p[2 * b + i / 4].set(i % 4, arch::pack<T>(scores[b][2 * i], scores[b][2 * i + 1]));
    });
  });
}

/// out[b] += (V^T P^T) of columns 32 b .. 32 b + 31 of V.
template <class T, class VTile, int Blocks, int Steps>
FLASHXDL_DEVICE void multiply_values(Accumulator (&out)[Blocks], const arch::Lds& lds,
                                     std::uint32_t at, const Fragment (&p)[Steps]) {
  const std::uint32_t lane = arch::lane_id();
  static_for<Steps>([&](auto s) {
    static_for<Blocks>([&](auto b) {
      const auto v = lds.read<4>(at + VTile::offset(32 * b + lane % 32, 2 * s + lane / 32));
      arch::mma<T>(out[b], v, p[s]);
    });
  });
}

/// Multiplies every value by the same factor.
template <int Blocks>
FLASHXDL_DEVICE void rescale(Accumulator (&out)[Blocks], float factor) {
  const arch::Pair factors = arch::pair(factor, factor);
  static_for<Blocks>([&](auto b) {
    static_for<8>([&](auto i) {
      const arch::Pair x = arch::pair(out[b][2 * i], out[b][2 * i + 1]) * factors;
      out[b].set(2 * i, x[0]);
      out[b].set(2 * i + 1, x[1]);
    });
  });
}

}  // namespace flashxdl::block
