/// Several attention problems of different sizes in one launch, fp16, BSHD order. A group may be
/// empty.

#include "common/launch_front.hpp"

int main(int argc, char** argv) {
  using namespace flashxdl;
  return example::run_forward_example(
      {.summary = "Grouped attention, fp16, BSHD",
       .grouped = true,
       .dtype = DataType::fp16,
       .input_layout = example::Layout::bshd,
       .output_layout = example::Layout::bshd,
       .groups = {{.batch = 1, .heads_q = 2, .heads_kv = 2, .seqlen_q = 257, .seqlen_k = 391},
                  {.batch = 2, .heads_q = 1, .heads_kv = 1, .seqlen_q = 128, .seqlen_k = 128},
                  {.batch = 1, .heads_q = 3, .heads_kv = 3, .seqlen_q = 0, .seqlen_k = 100},
                  {.batch = 2, .heads_q = 3, .heads_kv = 3, .seqlen_q = 130, .seqlen_k = 65}},
       .head_dim = 40,
       .head_dim_v = 80},
      argc, argv, example::launch_grouped);
}
