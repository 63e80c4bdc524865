#pragma once
/// \file
/// FlashAttention-2 forward. Source: Dao, "FlashAttention-2: Faster Attention with Better
/// Parallelism and Work Partitioning" (2023), algorithm 1.
///
/// A workgroup owns T.m queries of one (batch, head), a wave 32 of them, and walks over the tiles
/// of T.n keys that its queries see:
///
///     S^T = K Q^T            K from LDS, Q in registers for the whole walk
///     m, l, P = online softmax of S, one query to a lane pair
///     O^T = O^T * factor + V^T dropout(P)^T     P stays in the registers that S^T left it in
///
/// and at the end O = O^T / l, LSE = m + ln l. While one tile is computed, the next is on its way
/// from global memory.

#include <cstdint>

#include "flashxdl/arch/arch.hpp"
#include "flashxdl/block/attention_gemm.hpp"
#include "flashxdl/block/bias.hpp"
#include "flashxdl/block/epilogue.hpp"
#include "flashxdl/block/mask.hpp"
#include "flashxdl/block/tile_loader.hpp"
#include "flashxdl/core/config.hpp"
#include "flashxdl/grid/mha_fwd_problem.hpp"
#include "flashxdl/grid/workgroup_map.hpp"
#include "flashxdl/thread/dropout.hpp"
#include "flashxdl/thread/online_softmax.hpp"

namespace flashxdl::grid {

template <MhaFwdProblem P, MhaFwdTile T>
class GridwiseBatchedMhaFwdXdlCshuffleV2 {
  static_assert(P.dtype != DataType::fp32, "Q, K and V are fp16 or bf16");
  static_assert(P.dropout_bits == 0 || P.dropout_bits == 8 || P.dropout_bits == 16,
                "dropout draws 0 (none), 8 or 16 bits for each score");
  static_assert(T.m % 32 == 0 && T.m >= 32 && T.m <= 512, "a wave owns 32 queries; 1 to 16 waves");
  static_assert(T.n % 32 == 0, "a key tile is a multiple of the 32 keys of a matrix instruction");
  static_assert(T.d % 32 == 0 && T.dv % 32 == 0, "head dimension tiles are multiples of 32");

  using Input = typename InputType<P.dtype>::type;

public:
  using Descriptor = MhaFwdDescriptor;
  static constexpr const char* name = "MhaFwdXdlCshuffleV2";
  static constexpr int waves = T.m / 32;
  static constexpr int threads = waves * arch::wave_size;
  static constexpr int waves_per_simd = T.waves_per_simd;

private:
  using KLoader = block::RowTileLoader<T.n, T.d, threads, P.wide>;
  using VLoader = block::TransposingTileLoader<T.n, T.dv, threads, P.wide>;
  using Softmax = thread::OnlineSoftmax<P.dtype == DataType::fp16 ? 15 : 0>;
  using KTile = typename KLoader::Tile;
  using VTile = typename VLoader::Tile;
  static constexpr std::uint32_t k_at = 0;
  static constexpr std::uint32_t v_at = KTile::bytes;
  static constexpr int output_bytes = block::row_store_bytes<T.dv / 32>;

public:
  static constexpr int lds_bytes = KTile::bytes + VTile::bytes > waves* output_bytes
                                       ? KTile::bytes + VTile::bytes
                                       : waves* output_bytes;
  static_assert(lds_bytes <= arch::lds_capacity(arch::target),
                "K and V tiles do not fit in LDS: take fewer keys (n) or a smaller head dimension");

  /// Computes tile `number` of the problem.
  static FLASHXDL_DEVICE void run(arch::Constant<MhaFwdDescriptor> descriptor,
                                  std::uint32_t number) {
    const MhaFwdDescriptor problem = arch::load_constant(descriptor);
    const WorkgroupPlace place = place_of(number, problem.tiles_q, problem.heads_q);
    const std::uint32_t kv_head = place.head / problem.heads_per_kv;
    const arch::Lds lds = arch::workgroup_lds<lds_bytes>();

    const int wave_query = first_query_of_wave(place);
    const int query = wave_query + static_cast<int>(arch::lane_id() % 32);

    Fragment q[T.d / 16];
    block::load_query<P.wide>(
        q, operand_matrix(problem.q, place.batch, place.head, problem.seqlen_q, problem.head_dim),
        query, problem.query_keep, problem.query_flip);

    KLoader k_loader(
        operand_matrix(problem.k, place.batch, kv_head, problem.keys.seqlen_k, problem.head_dim));
    VLoader v_loader(
        operand_matrix(problem.v, place.batch, kv_head, problem.keys.seqlen_k, problem.head_dim_v));
    const block::BiasRow<P.bias, Input> bias(
        operand_matrix(problem.bias, place.batch, place.head, problem.seqlen_q,
                       problem.keys.seqlen_k),
        problem.bias_type, query);
    const auto dropout = make_dropout(problem, place, query);

    const int first_query = static_cast<int>(place.tile) * T.m;
    const int end_query = min(first_query + T.m, problem.seqlen_q);
    const block::KeyTiles<T.n> tiles(problem.keys, first_query, end_query);

    Softmax softmax;
    Accumulator out[T.dv / 32] = {};

    // One step of algorithm 1 (lines 8 to 10); Edge: some scores may be masked.
    const auto step = [&](auto edge, int n) FLASHXDL_INLINE {
      const int key = tiles.key(n);
      arch::workgroup_sync();  // the tile before is used up
      k_loader.store(lds, k_at);
      v_loader.store(lds, v_at);
      arch::workgroup_sync();
      if (n + 1 < tiles.count()) {
        k_loader.fetch(tiles.key(n + 1));
        v_loader.fetch(tiles.key(n + 1));
      }

      if constexpr (edge) {  // the workgroup's tile, but perhaps not this wave's
        if (!problem.keys.visible(wave_query, min(wave_query + 32, end_query), key, T.n)) return;
      }

      Accumulator scores[T.n / 32];
      block::multiply_keys<Input, KTile>(scores, lds, k_at, q);
      if constexpr (P.bias != BiasKind::none) bias.apply(scores, problem.score_scale, key);
      if constexpr (edge) block::mask_scores(scores, problem.keys, query, key);

      const float factor = softmax.update(scores, problem.exp2_scale);
      if (arch::any(factor != 1.0f)) block::rescale(out, factor);

      if constexpr (P.dropout_bits != 0) drop(scores, dropout, key);
      Fragment p[T.n / 16];
      block::pack_probabilities<Input>(p, scores);
      block::multiply_values<Input, VTile>(out, lds, v_at, p);
    };

    if (tiles.count() > 0) {
      k_loader.fetch(tiles.key(0));
      v_loader.fetch(tiles.key(0));
    }
    int n = 0;
    for (; n < tiles.full_count(); ++n) step(std::false_type{}, n);
    for (; n < tiles.count(); ++n) step(std::true_type{}, n);

    softmax.finish();
    arch::workgroup_sync();  // LDS changes hands: from tiles to output rows
    store(arch::reread(descriptor), arch::recomputed_uniform(number), softmax, out, lds);
  }

private:
  struct NoDropout {};

  static FLASHXDL_DEVICE auto make_dropout(const MhaFwdDescriptor& problem,
                                           const WorkgroupPlace& place, int query) {
    if constexpr (P.dropout_bits != 0) {
      return thread::QueryDropout<P.dropout_bits, T.philox_rounds>(
          dropout_stream(problem, place.batch, place.head), static_cast<std::uint32_t>(query));
    } else {
      return NoDropout{};
    }
  }

  template <int Blocks, class Dropout>
  static FLASHXDL_DEVICE void drop(Accumulator (&scores)[Blocks], const Dropout& dropout, int key) {
    static_for<Blocks>([&](auto b) {
      dropout.for_block(static_cast<std::uint32_t>(key + 32 * b),
                        [&](auto i, bool keep) { scores[b].set(i, keep ? scores[b][i] : 0.0f); });
    });
  }

  static FLASHXDL_DEVICE int min(int a, int b) { return a < b ? a : b; }

  /// First query of this wave.
  static FLASHXDL_DEVICE int first_query_of_wave(const WorkgroupPlace& place) {
    return static_cast<int>(place.tile) * T.m + static_cast<int>(arch::wave_id()) * 32;
  }

  /// Normalises and writes O and LSE (algorithm 1, lines 12 to 15). Finds its place and the problem
  /// once more: they were not worth scalar registers during the walk.
  static FLASHXDL_DEVICE void store(arch::Constant<MhaFwdDescriptor> descriptor,
                                    std::uint32_t number, const Softmax& softmax,
                                    const Accumulator (&out)[T.dv / 32], const arch::Lds& lds) {
    const MhaFwdDescriptor problem = arch::load_constant(descriptor);
    const WorkgroupPlace place = place_of(number, problem.tiles_q, problem.heads_q);
    const int wave_query = first_query_of_wave(place);

    float scale = softmax.reciprocal_sum();
    if constexpr (P.dropout_bits != 0) scale *= problem.keep_scale;
    block::store_rows<Input, P.wide>(
        out, scale,
        operand_matrix(problem.o, place.batch, place.head, problem.seqlen_q, problem.head_dim_v),
        wave_query, lds, arch::wave_id() * static_cast<std::uint32_t>(output_bytes));

    if (problem.lse == nullptr) return;
    float* lse = problem.lse + place.batch * problem.lse_batch + place.head * problem.lse_head;
    const arch::Buffer buffer(lse, static_cast<std::uint32_t>(problem.seqlen_q) * 4u);
    const float value = softmax.log_sum_exp(problem.natural_unit);
    const std::uint32_t lane = arch::lane_id();
    if (lane < 32) {
      buffer.store_u32((static_cast<std::uint32_t>(wave_query) + lane) * 4u,
                       __builtin_bit_cast(std::uint32_t, value));
    }
  }
};

}  // namespace flashxdl::grid
