#pragma once
/// \file
/// The tiles of the built-in forward kernels.

#include "flashxdl/grid/mha_fwd_problem.hpp"

namespace flashxdl {

/// The built-in tile for a head dimension: as many keys in a step as registers and LDS allow
/// without spills (ctest label codegen holds that).
constexpr MhaFwdTile forward_tile(MhaFwdProblem problem, int head_dim) {
  const bool plain = problem.bias == BiasKind::none && problem.dropout_bits == 0;
  // In bf16, 64 keys at D = 96 cost clang 22 two scalar registers too many on gfx90a.
  const bool few_keys = head_dim > 128 || (head_dim == 128 && !plain) ||
                        (head_dim == 96 && plain && problem.dtype == DataType::bf16);
  return {.m = 128,
          .n = few_keys ? 32 : 64,
          .d = head_dim,
          .dv = head_dim,
          .waves_per_simd = head_dim <= 128 ? 2 : 1};
}

}  // namespace flashxdl
