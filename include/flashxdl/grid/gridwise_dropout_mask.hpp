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
/// of a forward kernel with query tiles of the same size. Holds: as the lanes of forward (query) or
/// backward (key) do.
template <thread::LaneHolds Holds, int Bits, int Rounds, int Queries>
class GridwiseDropoutMask {
  using Dropout = thread::LaneDropout<Holds, Bits, Rounds>;

public:
  using Descriptor = MhaFwdDescriptor;
  static constexpr const char* name = "DropoutMask";
  static constexpr int threads = Queries / 32 * arch::wave_size;
  static constexpr int waves_per_simd = 2;

  static FLASHXDL_DEVICE void run(arch::Constant<MhaFwdDescriptor> descriptor,
                                  std::uint32_t number) {
    const MhaFwdDescriptor problem = arch::load_constant(descriptor);
    if (problem.keep.data == nullptr) return;
    const WorkgroupPlace place = place_of(number, problem.tiles_q, problem.heads_q);
    const int first_query =
        static_cast<int>(place.tile) * Queries + static_cast<int>(arch::wave_id()) * 32;
    const auto keep = operand_matrix(problem.keep, place.batch, place.head, problem.seqlen_q,
                                     problem.keys.seqlen_k);
    const auto stream = dropout_stream(problem, place.batch, place.head);
    constexpr bool holds_query = Holds == thread::LaneHolds::query;
    const int own = static_cast<int>(arch::lane_id() % 32);
    const int half = static_cast<int>(arch::lane_id() / 32) * 4;
    for (int key = 0; key < problem.keys.seqlen_k; key += 32) {
      const int own_first = holds_query ? first_query : key;
      const int other_first = holds_query ? key : first_query;
      const Dropout dropout(stream, static_cast<std::uint32_t>(own_first + own));
      dropout.for_block(static_cast<std::uint32_t>(other_first), [&](auto i, bool kept) {
        const int other = half + 8 * (i / 4) + i % 4;
        const int row = first_query + (holds_query ? own : other);
        const int column = key + (holds_query ? other : own);
        const std::uint32_t at =
            arch::add_saturated(block::row_offset(keep, row), static_cast<std::uint32_t>(column));
        keep.buffer.store_u8(column < problem.keys.seqlen_k ? at : block::out_of_range,
                             kept ? std::uint8_t{1} : std::uint8_t{0});
      });
    }
  }
};

}  // namespace flashxdl::grid
