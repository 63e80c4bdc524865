#pragma once
/// \file
/// Writes the keep mask of dropout, 1 = kept, for every score, visible or not: the same decisions,
/// by the same code and in the same registers, as the attention kernels make.

#include <cstdint>

#include "flashxdl/arch/arch.hpp"
#include "flashxdl/block/chunk.hpp"
#include "flashxdl/core/config.hpp"
#include "flashxdl/grid/mha_fwd_problem.hpp"
#include "flashxdl/grid/workgroup_map.hpp"
#include "flashxdl/thread/dropout.hpp"

namespace flashxdl::grid {

/// A workgroup writes Queries rows of one (batch, head), a wave 32 of them. Descriptors are those
/// of an attention kernel with query tiles of the same size.
template <int Bits, int Rounds, int Queries>
class GridwiseDropoutMask {
public:
  static constexpr const char* name = "DropoutMask";
  static constexpr int threads = Queries / 32 * arch::wave_size;
  static constexpr int waves_per_simd = 2;

  static FLASHXDL_DEVICE void run(arch::Constant<MhaFwdDescriptor> descriptor,
                                  std::uint32_t number) {
    const MhaFwdDescriptor problem = arch::load_constant(descriptor);
    if (problem.keep.data == nullptr) return;
    const WorkgroupPlace place = place_of(number, problem.tiles_q, problem.heads_q);
    const int query = static_cast<int>(place.tile) * Queries +
                      static_cast<int>(arch::wave_id() * 32 + arch::lane_id() % 32);
    const auto keep = operand_matrix(problem.keep, place.batch, place.head, problem.seqlen_q,
                                     problem.keys.seqlen_k);
    const std::uint32_t row = block::row_offset(keep, query);
    const thread::QueryDropout<Bits, Rounds> dropout(dropout_stream(problem, place),
                                                     static_cast<std::uint32_t>(query));
    const int half = static_cast<int>(arch::lane_id() / 32) * 4;
    for (int key = 0; key < problem.keys.seqlen_k; key += 32) {
      dropout.for_block(static_cast<std::uint32_t>(key), [&](auto i, bool kept) {
        const int j = key + half + 8 * (i / 4) + i % 4;
        const std::uint32_t at = arch::add_saturated(row, static_cast<std::uint32_t>(j));
        keep.buffer.store_u8(j < problem.keys.seqlen_k ? at : block::out_of_range,
                             kept ? std::uint8_t{1} : std::uint8_t{0});
      });
    }
  }
};

}  // namespace flashxdl::grid
