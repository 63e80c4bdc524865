/// Causal attention forward in fp16, BSHD order: query i sees the keys j <= i (top-left alignment),
/// the lower triangle of the scores.

#include "common/launch_front.hpp"

int main(int argc, char** argv) {
  using namespace flashxdl;
  return example::run_forward_example(
      {.summary = "Batched attention, causal (top-left), fp16, BSHD",
       .dtype = DataType::fp16,
       .input_layout = example::Layout::bshd,
       .output_layout = example::Layout::bshd,
       .groups = {{.batch = 2, .heads_q = 3, .seqlen_q = 300, .seqlen_k = 500}},
       .head_dim = 64,
       .head_dim_v = 128,
       .mask = Mask::causal_top_left()},
      argc, argv, example::launch_batched);
}
