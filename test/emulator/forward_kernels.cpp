// Device code of one forward kernel, batched and grouped, with the kernels that go with it; for
// script/emulate_forward.py. Compiled by the device pass alone, without HIP headers:
//
//   clang++ -x hip --cuda-device-only --offload-arch=gfx90a -nogpuinc -nogpulib -std=c++20 -O3
//       -Iinclude -Itest -DFLASHXDL_EMULATED_KERNEL='"fp16_d64"' test/emulator/forward_kernels.cpp
//
// FLASHXDL_EMULATED_KERNEL is a name of emulated_kernels.hpp.

#include "emulator/emulated_kernels.hpp"
#include "flashxdl/device/kernel_entry.hpp"
#include "flashxdl/device/mha_fwd_kernels.hpp"
#include "flashxdl/grid/gridwise_batched_mha_fwd_xdl_cshuffle_v2.hpp"
#include "flashxdl/grid/gridwise_dropout_mask.hpp"

namespace flashxdl {

constexpr std::size_t number = test::find_kernel(FLASHXDL_EMULATED_KERNEL);
static_assert(number != test::no_kernel, "no kernel of this name in emulated_kernels.hpp");
constexpr MhaFwdProblem problem = test::emulated_kernels[number].problem;
constexpr MhaFwdTile tile = test::emulated_kernels[number].tile();

using Attention = grid::GridwiseBatchedMhaFwdXdlCshuffleV2<problem, tile>;
// Where nothing is dropped, the keep mask's kernel is not part of the library.
constexpr int mask_bits = problem.dropout_bits > 0 ? problem.dropout_bits : 8;
using KeepMask =
    grid::GridwiseDropoutMask<thread::LaneHolds::query, mask_bits, tile.philox_rounds, tile.m>;

template __attribute__((global)) void device::kernel_entry<device::BatchedKernel<Attention>>(
    device::BatchedKernel<Attention>::Arguments);
template __attribute__((global)) void device::kernel_entry<device::GroupedKernel<Attention>>(
    device::GroupedKernel<Attention>::Arguments);
template __attribute__((global)) void device::kernel_entry<device::BatchedKernel<KeepMask>>(
    device::BatchedKernel<KeepMask>::Arguments);
template __attribute__((global)) void device::kernel_entry<device::GroupedKernel<KeepMask>>(
    device::GroupedKernel<KeepMask>::Arguments);
template __attribute__((global)) void device::kernel_entry<device::UploadKernel>(
    device::UploadKernel::Arguments);

}  // namespace flashxdl
