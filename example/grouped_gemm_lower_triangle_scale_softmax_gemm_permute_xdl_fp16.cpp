/// Several causal attention problems of different sizes in one launch, fp16, BSHD order: in each
/// group query i sees the keys j <= i (top-left alignment). A group may be empty.

#include "common/launch_front.hpp"

int main(int argc, char** argv) {
  using namespace flashxdl;
  return example::run_forward_example(
      {.summary = "Grouped attention, causal (top-left), fp16, BSHD",
       .grouped = true,
       .dtype = DataType::fp16,
       .input_layout = example::Layout::bshd,
       .output_layout = example::Layout::bshd,
       .groups = {{.batch = 1, .heads_q = 2, .heads_kv = 2, .seqlen_q = 391, .seqlen_k = 257},
                  {.batch = 2, .heads_q = 4, .heads_kv = 4, .seqlen_q = 129, .seqlen_k = 300},
                  {.batch = 1, .heads_q = 2, .heads_kv = 2, .seqlen_q = 77, .seqlen_k = 0},
                  {.batch = 1, .heads_q = 3, .heads_kv = 3, .seqlen_q = 64, .seqlen_k = 64}},
       .head_dim = 40,
       .head_dim_v = 40,
       .mask = Mask::causal_top_left()},
      argc, argv, example::launch_grouped);
}
