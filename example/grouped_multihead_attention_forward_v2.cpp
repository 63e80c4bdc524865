/// The forward pass of training for several problems in one launch, with LSE and dropout, by the
/// device op of one kernel: fp16, head dimensions up to 64, 8 random bits for each score. The
/// descriptors of the groups go to a workspace that the caller provides (launch_op does).

#include "common/forward_example.hpp"
#include "common/launch_op.hpp"
#include "flashxdl/device/device_mha_fwd.hpp"

using Op = flashxdl::device::DeviceGroupedMhaFwdXdlCshuffleV2<
    flashxdl::MhaFwdProblem{.dtype = flashxdl::DataType::fp16, .dropout_bits = 8, .wide = true},
    flashxdl::MhaFwdTile{.m = 128, .n = 64, .d = 64, .dv = 64}>;

int main(int argc, char** argv) {
  using namespace flashxdl;
  return example::run_forward_example(
      {.summary = "Grouped multi-head attention forward with LSE and dropout, device op by hand",
       .grouped = true,
       .training = true,
       .output_layout = example::Layout::bshd,
       .groups = {{.batch = 2, .heads_q = 3, .heads_kv = 3, .seqlen_q = 257, .seqlen_k = 130},
                  {.batch = 1, .heads_q = 4, .heads_kv = 2, .seqlen_q = 100, .seqlen_k = 391},
                  {.batch = 3, .heads_q = 2, .heads_kv = 2, .seqlen_q = 50, .seqlen_k = 0},
                  {.batch = 1, .heads_q = 5, .heads_kv = 5, .seqlen_q = 129, .seqlen_k = 129}},
       .head_dim = 64,
       .head_dim_v = 64,
       .dropout = {.probability = 0.2, .seed = 1}},
      argc, argv, [](const MhaForwardGroupedArgs& args, hipStream_t stream, int repeat) {
        return example::launch_op<Op>(Op::MakeArgument(args), stream, repeat);
      });
}
