/// Attention forward in bf16, tensors in BHSD order, one head to a batch: O = softmax(scale * Q
/// K^T) V.

#include "common/launch_front.hpp"

int main(int argc, char** argv) {
  using namespace flashxdl;
  return example::run_forward_example({.summary = "Batched attention, bf16, BHSD",
                                       .init = 2,
                                       .dtype = DataType::bf16,
                                       .groups = {{.batch = 4, .seqlen_q = 1020, .seqlen_k = 1020}},
                                       .head_dim = 64,
                                       .head_dim_v = 128},
                                      argc, argv, example::launch_batched);
}
