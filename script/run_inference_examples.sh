#!/usr/bin/env bash
# Builds and runs the seven inference programs, with one summary line each:
# script/run_inference_examples.sh [CMake option]...
# shellcheck source=script/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

names=(
  example_batched_gemm_scale_softmax_gemm_xdl_fp16
  example_batched_gemm_scale_softmax_gemm_xdl_bf16
  example_batched_gemm_scale_softmax_gemm_permute_xdl_fp16
  example_batched_gemm_scale_softmax_gemm_permute_xdl_bf16
  example_grouped_gemm_scale_softmax_gemm_permute_xdl_fp16
  example_batched_gemm_lower_triangle_scale_softmax_gemm_permute_xdl_fp16
  example_grouped_gemm_lower_triangle_scale_softmax_gemm_permute_xdl_fp16
)
need_packages_to_build
configure -DFLASHXDL_BUILD_EXAMPLES=ON "$@"
build_targets "${names[@]}"
run_programs "${names[@]}"
