/// The forward pass of training for several problems in one launch, each with its own bias on the
/// scaled scores; O in BSHD order, LSE and dropout.

#include "common/launch_front.hpp"

int main(int argc, char** argv) {
  using namespace flashxdl;
  return example::run_forward_example(
      {.summary = "Grouped multi-head attention forward with bias, LSE and dropout",
       .grouped = true,
       .training = true,
       .bias = true,
       .output_layout = example::Layout::bshd,
       .groups = {{.batch = 1, .heads_q = 2, .heads_kv = 2, .seqlen_q = 130, .seqlen_k = 257},
                  {.batch = 2, .heads_q = 3, .heads_kv = 3, .seqlen_q = 0, .seqlen_k = 64},
                  {.batch = 2, .heads_q = 4, .heads_kv = 2, .seqlen_q = 65, .seqlen_k = 129}},
       .head_dim = 128,
       .head_dim_v = 128,
       .dropout = {.probability = 0.2, .seed = 1},
       .bias_dtype = DataType::fp16},
      argc, argv, example::launch_grouped);
}
