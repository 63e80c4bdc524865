/// The forward pass of training with a bias on the scaled scores, here one for all batches
/// (broadcast over b); O in BSHD order, LSE and dropout.

#include "common/launch_front.hpp"

int main(int argc, char** argv) {
  using namespace flashxdl;
  return example::run_forward_example(
      {.summary = "Multi-head attention forward with bias, LSE and dropout",
       .training = true,
       .bias = true,
       .output_layout = example::Layout::bshd,
       .groups = {{.batch = 2, .heads_q = 3, .seqlen_q = 250, .seqlen_k = 300}},
       .head_dim = 128,
       .head_dim_v = 128,
       .dropout = {.probability = 0.1, .seed = 1},
       .bias_dtype = DataType::fp16,
       .bias_broadcast = "b"},
      argc, argv, example::launch_batched);
}
