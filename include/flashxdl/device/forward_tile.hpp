#pragma once
/// \file
/// The tiles of the built-in forward kernels.

#include "flashxdl/grid/mha_fwd_problem.hpp"

namespace flashxdl {

/// The built-in tile for a head dimension: registers and LDS decide how many keys fit a step.
constexpr MhaFwdTile forward_tile(MhaFwdProblem problem, int head_dim) {
  const bool plain = problem.bias == BiasKind::none && problem.dropout_bits == 0;
  return {.m = 128,
          .n = head_dim < 128 || (head_dim == 128 && plain) ? 64 : 32,
          .d = head_dim,
          .dv = head_dim,
          .waves_per_simd = head_dim <= 128 ? 2 : 1};
}

}  // namespace flashxdl
