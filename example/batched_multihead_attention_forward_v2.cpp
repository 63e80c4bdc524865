/// The forward pass of training, with LSE and dropout, by the device op of one kernel: fp16, head
/// dimensions up to 64, 8 random bits for each score. What the op cannot do it refuses in words.

#include "common/forward_example.hpp"
#include "common/launch_op.hpp"
#include "flashxdl/device/device_mha_fwd.hpp"

using Op = flashxdl::device::DeviceBatchedMhaFwdXdlCshuffleV2<
    flashxdl::MhaFwdProblem{.dtype = flashxdl::DataType::fp16, .dropout_bits = 8, .wide = true},
    flashxdl::MhaFwdTile{.m = 128, .n = 64, .d = 64, .dv = 64}>;

int main(int argc, char** argv) {
  using namespace flashxdl;
  return example::run_forward_example(
      {.summary = "Multi-head attention forward with LSE and dropout, device op by hand",
       .training = true,
       .output_layout = example::Layout::bshd,
       .groups = {{.batch = 2, .heads_q = 3, .seqlen_q = 333, .seqlen_k = 500}},
       .head_dim = 64,
       .head_dim_v = 64,
       .dropout = {.probability = 0.1, .seed = 1}},
      argc, argv, [](const MhaForwardGroupedArgs& args, hipStream_t stream, int repeat) {
        return example::launch_op<Op>(Op::MakeArgument(args.groups.at(0)), stream, repeat);
      });
}
