#pragma once
/// \file
/// Kernels around a gridwise forward algorithm: for one problem, whose descriptor comes with the
/// launch, and for a list of problems, whose descriptors lie in device memory.

#include <cstddef>
#include <cstdint>

#include "flashxdl/arch/arch.hpp"
#include "flashxdl/core/config.hpp"
#include "flashxdl/grid/mha_fwd_problem.hpp"
#include "flashxdl/grid/workgroup_map.hpp"

namespace flashxdl::device {

struct BatchedArguments {
  MhaFwdDescriptor problem;
  std::uint32_t grid_x;
};

template <class Gridwise>
struct BatchedKernel {
  using Arguments = BatchedArguments;
  static constexpr const char* name = Gridwise::name;
  static constexpr int threads = Gridwise::threads;
  static constexpr int waves_per_simd = Gridwise::waves_per_simd;

  static FLASHXDL_DEVICE void run(arch::Constant<Arguments> a) {
    const std::uint64_t number = grid::workgroup_number(a->grid_x);
    if (number < a->problem.workgroups) {
      Gridwise::run(&a->problem, static_cast<std::uint32_t>(number));
    }
  }
};

struct GroupedArguments {
  const MhaFwdDescriptor* groups;
  std::uint64_t workgroups;
  std::uint32_t count;
  std::uint32_t grid_x;
};

template <class Gridwise>
struct GroupedKernel {
  using Arguments = GroupedArguments;
  static constexpr const char* name = Gridwise::name;
  static constexpr int threads = Gridwise::threads;
  static constexpr int waves_per_simd = Gridwise::waves_per_simd;

  static FLASHXDL_DEVICE void run(arch::Constant<Arguments> a) {
    const std::uint64_t number = grid::workgroup_number(a->grid_x);
    if (number >= a->workgroups) return;
    const auto groups = arch::constant(a->groups);
    const auto problem = groups + grid::find_group(groups, a->count, number);
    Gridwise::run(problem, static_cast<std::uint32_t>(number - problem->first_group));
  }
};

/// Writes descriptors to device memory from the launch's own arguments: nothing of the caller's is
/// read after the call, and a captured graph carries its descriptors.
struct UploadKernel {
  static constexpr int batch = 8;
  struct Arguments {
    MhaFwdDescriptor* to;
    std::uint32_t count;
    MhaFwdDescriptor items[batch];
  };
  static_assert(sizeof(Arguments) <= 4096, "kernel arguments are at most 4 KiB");
  static constexpr const char* name = "DescriptorUpload";
  static constexpr int threads = arch::wave_size;
  static constexpr int waves_per_simd = 1;

  /// The launch that writes groups[first] and what follows it, at most `batch` of them, to their
  /// places in `to`.
  static Arguments part(const MhaFwdDescriptor* groups, std::size_t count, std::size_t first,
                        MhaFwdDescriptor* to) {
    Arguments arguments{};
    arguments.to = to + first;
    const std::size_t left = count - first;
    arguments.count = left < batch ? static_cast<std::uint32_t>(left) : std::uint32_t{batch};
    for (std::size_t n = 0; n < arguments.count; ++n) arguments.items[n] = groups[first + n];
    return arguments;
  }

  static FLASHXDL_DEVICE void run(arch::Constant<Arguments> a) {
    constexpr std::uint32_t words = sizeof(MhaFwdDescriptor) / 4;
    static_assert(sizeof(MhaFwdDescriptor) % 4 == 0, "descriptors are copied word by word");
    const arch::Buffer to(a->to, a->count * words * 4);
    for (std::uint32_t item = 0; item < a->count; ++item) {
      for (std::uint32_t i = arch::thread_id(); i < words; i += threads) {
        const auto from = (arch::Constant<std::uint32_t>)&a->items[item];
        to.store_u32((item * words + i) * 4, from[i]);
      }
    }
  }
};

}  // namespace flashxdl::device
