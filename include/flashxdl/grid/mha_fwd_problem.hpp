#pragma once
/// \file
/// What a forward kernel is compiled for (MhaFwdProblem, MhaFwdTile) and what it is told at run
/// time (MhaFwdDescriptor).

#include <cstdint>

#include "flashxdl/arch/target.hpp"
#include "flashxdl/block/bias.hpp"
#include "flashxdl/block/mask.hpp"
#include "flashxdl/block/tile_loader.hpp"
#include "flashxdl/core/config.hpp"
#include "flashxdl/core/number.hpp"
#include "flashxdl/grid/workgroup_map.hpp"
#include "flashxdl/thread/dropout.hpp"

namespace flashxdl {

/// The features of a forward kernel; a template argument.
struct MhaFwdProblem {
  DataType dtype = DataType::fp16;  ///< of Q, K, V, O: fp16 or bf16
  BiasKind bias = BiasKind::none;
  int dropout_bits = 0;  ///< 0: no dropout; 8 or 16 random bits for each score
  bool wide = true;  ///< 16-byte accesses: pointers, strides, D and Dv are multiples of 8 numbers
};

/// The tile of a forward kernel and its policies; a template argument.
struct MhaFwdTile {
  int m = 128;             ///< queries of a workgroup, 32 to a wave
  int n = 64;              ///< keys of a step
  int d = 64;              ///< largest head dimension of Q and K
  int dv = 64;             ///< largest head dimension of V and O
  int philox_rounds = 10;  ///< 10: rocRAND's stream; 7: cheaper, another stream
  int waves_per_simd = 2;  ///< registers are limited so that this many waves fit
};

/// One forward problem as the kernel sees it: bytes, 32-bit extents, folded scales. Filled by
/// device/mha_fwd_arguments.hpp; trivially copyable, so that an array of them can live in device
/// memory.
struct MhaFwdDescriptor {
  struct Operand {
    const void* data;
    std::int64_t batch_bytes;
    std::int64_t head_bytes;
    std::uint32_t row_bytes;
    std::uint32_t slice_bytes;  ///< extent of one (batch, head): the buffer's range
  };

  Operand q;
  Operand k;
  Operand v;
  Operand o;
  Operand bias;
  Operand keep;  ///< written by GridwiseDropoutMask; null data: not wanted
  float* lse;
  std::int64_t lse_batch;  ///< strides in elements
  std::int64_t lse_head;

  std::int32_t seqlen_q;
  std::int32_t head_dim;
  std::int32_t head_dim_v;
  block::KeyRange keys;  ///< the mask and Sk

  std::uint32_t heads_q;
  std::uint32_t heads_per_kv;
  std::uint32_t tiles_q;      ///< query tiles of one (batch, head)
  std::uint64_t workgroups;   ///< of the whole problem
  std::uint64_t first_group;  ///< grouped: workgroups of all problems before

  float score_scale;         ///< |scale|
  float exp2_scale;          ///< p = 2^((score - max) * exp2_scale)
  float natural_unit;        ///< LSE = max * natural_unit + ln(sum)
  std::uint32_t query_keep;  ///< applied to pairs of Q: the sign of scale, 0 for scale 0
  std::uint32_t query_flip;

  DataType bias_type;

  std::uint64_t seed;
  std::uint64_t offset;
  const std::uint64_t* seed_device;
  const std::uint64_t* offset_device;
  std::uint64_t first_sequence;  ///< dropout sequence of (batch 0, head 0)
  std::uint32_t dropout_threshold;
  float keep_scale;
};

namespace grid {

/// The matrix of one (batch, head).
FLASHXDL_DEVICE block::GlobalMatrix operand_matrix(const MhaFwdDescriptor::Operand& operand,
                                                   std::uint32_t batch, std::uint32_t head,
                                                   int rows, int columns) {
  const char* base = static_cast<const char*>(operand.data) + batch * operand.batch_bytes +
                     head * operand.head_bytes;
  return {arch::Buffer(base, operand.slice_bytes), operand.row_bytes, rows, columns};
}

/// The random numbers of one (batch, query head).
FLASHXDL_DEVICE thread::DropoutStream dropout_stream(const MhaFwdDescriptor& problem,
                                                     std::uint32_t batch, std::uint32_t head) {
  return {.seed = thread::value_or_load(problem.seed, problem.seed_device),
          .offset = thread::value_or_load(problem.offset, problem.offset_device),
          .sequence = problem.first_sequence + std::uint64_t{batch} * problem.heads_q + head,
          .threshold = problem.dropout_threshold,
          .key_blocks = (static_cast<std::uint32_t>(problem.keys.seqlen_k) + 3) / 4};
}

}  // namespace grid

/// The input type of a problem.
template <DataType Type>
struct InputType;
template <>
struct InputType<DataType::fp16> {
  using type = fp16;
};
template <>
struct InputType<DataType::bf16> {
  using type = bf16;
};

}  // namespace flashxdl
