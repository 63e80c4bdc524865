/// Attention forward in fp16 on tensors in BSHD order, as a projection of [batch, sequence,
/// features] leaves them: nothing has to be permuted before or after.

#include "common/launch_front.hpp"

int main(int argc, char** argv) {
  using namespace flashxdl;
  return example::run_forward_example(
      {.summary = "Batched attention, fp16, BSHD",
       .dtype = DataType::fp16,
       .input_layout = example::Layout::bshd,
       .output_layout = example::Layout::bshd,
       .groups = {{.batch = 2, .heads_q = 3, .seqlen_q = 120, .seqlen_k = 1000}},
       .head_dim = 64,
       .head_dim_v = 128},
      argc, argv, example::launch_batched);
}
