#pragma once
/// \file
/// The forward kernels whose AMD machine code is run by script/emulate_forward.py. Free of HIP: the
/// device pass (forward_kernels.cpp) and the program of the CPU target (emulated_forward.cpp) both
/// read it.

#include <cstddef>
#include <iterator>
#include <string_view>

#include "flashxdl/device/forward_tile.hpp"
#include "flashxdl/grid/mha_fwd_problem.hpp"

namespace flashxdl::test {

/// One of the kernels that MhaForward chooses from.
struct EmulatedKernel {
  std::string_view name;
  MhaFwdProblem problem;
  int head_dim;

  constexpr MhaFwdTile tile() const { return forward_tile(problem, head_dim); }
};

inline constexpr EmulatedKernel emulated_kernels[] = {
    {"fp16_d32", {.dtype = DataType::fp16}, 32},
    {"fp16_d64", {.dtype = DataType::fp16}, 64},
    {"bf16_d64", {.dtype = DataType::bf16}, 64},
    {"fp16_d64_dropout8", {.dtype = DataType::fp16, .dropout_bits = 8}, 64},
    {"bf16_d64_dropout8", {.dtype = DataType::bf16, .dropout_bits = 8}, 64},
    {"fp16_d64_any_dropout16",
     {.dtype = DataType::fp16, .bias = BiasKind::any, .dropout_bits = 16},
     64},
    {"fp16_d64_any_alignment",
     {.dtype = DataType::fp16, .bias = BiasKind::any, .dropout_bits = 8, .wide = false},
     64},
    {"bf16_d64_any_alignment",
     {.dtype = DataType::bf16, .bias = BiasKind::any, .dropout_bits = 8, .wide = false},
     64},
    {"fp16_d128_bias", {.dtype = DataType::fp16, .bias = BiasKind::vectors}, 128},
    {"bf16_d128_bias", {.dtype = DataType::bf16, .bias = BiasKind::vectors}, 128},
    {"fp16_d256", {.dtype = DataType::fp16}, 256},
};

constexpr std::size_t no_kernel = std::size(emulated_kernels);

/// Index in emulated_kernels; no_kernel if there is none of that name.
constexpr std::size_t find_kernel(std::string_view name) {
  std::size_t n = 0;
  while (n < no_kernel && emulated_kernels[n].name != name) ++n;
  return n;
}

}  // namespace flashxdl::test
