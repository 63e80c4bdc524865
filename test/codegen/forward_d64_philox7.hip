// The forward kernels whose hot loops have bounds in numbers: D = 64, fp16, no mask, with 7-round
// Philox.
#include "flashxdl/device/device_mha_fwd.hpp"

namespace flashxdl {

constexpr MhaFwdTile tile{.m = 128, .n = 64, .d = 64, .dv = 64, .philox_rounds = 7};

#if FLASHXDL_TEST_DROPOUT
template class device::DeviceBatchedMhaFwd<grid::GridwiseBatchedMhaFwdXdlCshuffleV2,
                                           MhaFwdProblem{.dropout_bits = 8}, tile>;
#else
template class device::DeviceBatchedMhaFwd<grid::GridwiseBatchedMhaFwdXdlCshuffleV2,
                                           MhaFwdProblem{}, tile>;
#endif

}  // namespace flashxdl
