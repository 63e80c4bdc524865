#pragma once
/// \file
/// Device ops of forward attention, in Composable Kernel's manner: an op is one compiled kernel
/// with MakeArgument, IsSupportedArgument, workspace, invoker and type string.

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "flashxdl/core/problem.hpp"
#include "flashxdl/core/status.hpp"
#include "flashxdl/device/launch.hpp"
#include "flashxdl/device/mha_fwd_arguments.hpp"
#include "flashxdl/device/mha_fwd_kernels.hpp"
#include "flashxdl/device/stream_config.hpp"
#include "flashxdl/grid/gridwise_batched_mha_fwd_xdl_cshuffle_v2.hpp"
#include "flashxdl/grid/gridwise_dropout_mask.hpp"

namespace flashxdl::device {

namespace detail {

/// What the compiled kernel needs of a checked problem.
template <MhaFwdProblem P, MhaFwdTile T>
Status check_instance(const MhaForwardArgs& a) {
  if (a.dtype != P.dtype) {
    return Status::unsupported(std::string("dtype = ") + name_of(a.dtype) +
                               ": this instance is compiled for " + name_of(P.dtype));
  }
  const auto too_large = [](const char* name, std::int64_t value, int limit) {
    std::ostringstream text;
    text << name << " = " << value << ": this instance takes head dimensions up to " << limit;
    return Status::unsupported(text.str());
  };
  if (a.head_dim > T.d) return too_large("head_dim (D)", a.head_dim, T.d);
  if (a.head_dim_v > T.dv) return too_large("head_dim_v (Dv)", a.head_dim_v, T.dv);
  if (P.wide && !is_wide(a)) {
    return Status::unsupported(
        "Q, K, V, O: this instance moves 16 bytes at a time; addresses, strides, head_dim and "
        "head_dim_v must be multiples of 8 elements (an instance with wide = false takes any)");
  }
  const bool biased = a.bias.tensor.data != nullptr;
  if (P.bias == BiasKind::none && biased) {
    return Status::unsupported("bias: this instance is compiled without bias");
  }
  if (P.bias == BiasKind::vectors && !has_vector_bias(a)) {
    return Status::unsupported(
        "bias: this instance needs a bias of the input type with 8-byte aligned rows and "
        "seqlen_k (Sk) a multiple of 4 (BiasKind::any takes every bias, or none)");
  }
  if (P.dropout_bits == 0 && a.dropout.threshold() != 0) {
    std::ostringstream text;
    text << "dropout probability = " << a.dropout.probability
         << ": this instance is compiled without dropout";
    return Status::unsupported(text.str());
  }
  if (P.dropout_bits == 0 && a.keep_mask.data != nullptr) {
    return Status::unsupported("keep_mask: this instance is compiled without dropout");
  }
  if (P.dropout_bits != 0 && a.dropout.bits != P.dropout_bits &&
      (a.dropout.threshold() != 0 || a.keep_mask.data != nullptr)) {
    std::ostringstream text;
    text << "dropout bits = " << a.dropout.bits << ": this instance draws " << P.dropout_bits;
    return Status::unsupported(text.str());
  }
  return {};
}

inline Status check_grid(std::uint64_t workgroups) {
  if (workgroups < grid_limit) return {};
  std::ostringstream text;
  text << "batch x heads_q x query tiles = " << workgroups << ": one launch has at most "
       << grid_limit << " workgroups; split the batch";
  return Status::unsupported(text.str());
}

template <MhaFwdProblem P, MhaFwdTile T>
std::string type_string(const char* op, const char* algorithm) {
  std::ostringstream text;
  text << op << algorithm << "<" << name_of(P.dtype) << ", D" << T.d << ", Dv" << T.dv << ", m"
       << T.m << ", n" << T.n << ", mask any, bias "
       << (P.bias == BiasKind::none  ? "none"
           : P.bias == BiasKind::any ? "any"
                                     : "vectors")
       << ", dropout ";
  if (P.dropout_bits == 0) {
    text << "none";
  } else {
    text << P.dropout_bits << "bit philox" << T.philox_rounds;
  }
  text << (P.wide ? ", wide" : ", any alignment") << ", deterministic>";
  return text.str();
}

/// Runs an op's launches, timed on request; throws what they report.
template <class Launch>
float run_timed(const StreamConfig& config, Launch&& launch) {
  const auto require = [](const Status& status) {
    if (!status.ok()) throw std::runtime_error(status.message());
  };
  if (!config.time_kernel) {
    require(launch());
    return 0.0f;
  }
  for (int i = 0; i < config.warm_up; ++i) require(launch());
  Timer timer(config.stream);
  require(timer.start());
  for (int i = 0; i < config.repeat; ++i) require(launch());
  require(timer.stop());
  return timer.milliseconds() / static_cast<float>(std::max(config.repeat, 1));
}

template <class Op>
struct Invoker {
  /// Milliseconds of one run, averaged; 0 when not timed. Throws std::runtime_error with
  /// CheckArgument's sentence for an unsupported argument, and for a HIP error.
  template <class Argument>
  float Run(const Argument& argument, const StreamConfig& config = {}) {
    return run_timed(config, [&] { return Op::Launch(argument, config.stream); });
  }
};

/// Launches the algorithm, and the keep mask's kernel after it if `keep_mask` is wanted.
template <template <class> class Kernel, class Algorithm, MhaFwdProblem P, MhaFwdTile T>
Status launch_forward(Grid grid, const typename Kernel<Algorithm>::Arguments& arguments,
                      bool keep_mask, hipStream_t stream) {
  if (auto status = launch<Kernel<Algorithm>>(grid, arguments, stream); !status) return status;
  if constexpr (P.dropout_bits != 0) {
    using KeepMask =
        grid::GridwiseDropoutMask<thread::LaneHolds::query, P.dropout_bits, T.philox_rounds, T.m>;
    if (keep_mask) return launch<Kernel<KeepMask>>(grid, arguments, stream);
  }
  return {};
}

}  // namespace detail

/// One forward problem, one launch. Gridwise is one of grid/'s forward algorithms.
template <template <MhaFwdProblem, MhaFwdTile> class Gridwise, MhaFwdProblem P, MhaFwdTile T>
class DeviceBatchedMhaFwd {
  using Algorithm = Gridwise<P, T>;

public:
  struct Argument {
    MhaForwardArgs args;
  };

  static Argument MakeArgument(const MhaForwardArgs& args) { return {args}; }

  /// Ok, or a sentence that names the argument, its value and what would do.
  static Status CheckArgument(const Argument& argument) {
    if (auto status = check_forward(argument.args); !status) return status;
    if (auto status = detail::check_instance<P, T>(argument.args); !status) return status;
    return detail::check_grid(describe_forward(argument.args, P, T.m).workgroups);
  }
  static bool IsSupportedArgument(const Argument& argument) { return CheckArgument(argument).ok(); }

  static std::size_t GetWorkSpaceSize(const Argument&) { return 0; }
  /// Takes any pointer: nothing is needed.
  static void SetWorkSpacePointer(Argument&, void*) {}

  /// Enqueues the kernel (and the keep mask's, if wanted) on the stream; nothing is waited for.
  static Status Launch(const Argument& argument, hipStream_t stream) {
    if (auto status = CheckArgument(argument); !status) return status;
    const auto problem = describe_forward(argument.args, P, T.m);
    const Grid grid(problem.workgroups);
    return detail::launch_forward<BatchedKernel, Algorithm, P, T>(
        grid, {problem, grid.x}, problem.keep.data != nullptr, stream);
  }

  using Invoker = detail::Invoker<DeviceBatchedMhaFwd>;
  static Invoker MakeInvoker() { return {}; }

  static std::string GetTypeString() {
    return detail::type_string<P, T>("DeviceBatched", Algorithm::name);
  }
};

/// A list of forward problems, one launch. The descriptors live in a workspace of the caller's.
template <template <MhaFwdProblem, MhaFwdTile> class Gridwise, MhaFwdProblem P, MhaFwdTile T>
class DeviceGroupedMhaFwd {
  using Algorithm = Gridwise<P, T>;

public:
  struct Argument {
    MhaForwardGroupedArgs args;
    void* workspace = nullptr;
  };

  static Argument MakeArgument(MhaForwardGroupedArgs args) { return {std::move(args)}; }

  /// Ok, or a sentence that names the group, the argument, its value and what would do.
  static Status CheckArgument(const Argument& argument) {
    std::uint64_t workgroups = 0;
    for (std::size_t g = 0; g < argument.args.groups.size(); ++g) {
      const auto& args = argument.args.groups[g];
      Status status = check_forward(args);
      if (status.ok()) status = detail::check_instance<P, T>(args);
      if (!status.ok()) {
        return {status.code(), "group " + std::to_string(g) + ": " + status.message()};
      }
      workgroups += describe_forward(args, P, T.m).workgroups;
    }
    return detail::check_grid(workgroups);
  }
  static bool IsSupportedArgument(const Argument& argument) { return CheckArgument(argument).ok(); }

  /// Bytes of device memory for the descriptors, 8-byte aligned.
  static std::size_t GetWorkSpaceSize(const Argument& argument) {
    return argument.args.groups.size() * sizeof(MhaFwdDescriptor);
  }
  static void SetWorkSpacePointer(Argument& argument, void* workspace) {
    argument.workspace = workspace;
  }

  /// Enqueues the upload of the descriptors and the kernel on the stream; nothing is waited for,
  /// and nothing of the argument is read afterwards.
  static Status Launch(const Argument& argument, hipStream_t stream) {
    if (auto status = CheckArgument(argument); !status) return status;
    const auto groups = describe_forward_groups(argument.args, P, T.m);
    if (groups.empty()) return {};
    if (argument.workspace == nullptr) {
      return Status::invalid("workspace: null pointer; " +
                             std::to_string(GetWorkSpaceSize(argument)) +
                             " bytes of device memory are needed (SetWorkSpacePointer)");
    }
    auto* const on_device = static_cast<MhaFwdDescriptor*>(argument.workspace);
    if (auto status = upload(groups, on_device, stream); !status) return status;

    const std::uint64_t workgroups = groups.back().first_group + groups.back().workgroups;
    const Grid grid(workgroups);
    const auto count = static_cast<std::uint32_t>(groups.size());
    const bool keep_mask = std::any_of(groups.begin(), groups.end(),
                                       [](const auto& g) { return g.keep.data != nullptr; });
    return detail::launch_forward<GroupedKernel, Algorithm, P, T>(
        grid, {on_device, workgroups, count, grid.x}, keep_mask, stream);
  }

  using Invoker = detail::Invoker<DeviceGroupedMhaFwd>;
  static Invoker MakeInvoker() { return {}; }

  static std::string GetTypeString() {
    return detail::type_string<P, T>("DeviceGrouped", Algorithm::name);
  }

private:
  static Status upload(const std::vector<MhaFwdDescriptor>& groups, MhaFwdDescriptor* to,
                       hipStream_t stream) {
    for (std::size_t first = 0; first < groups.size(); first += UploadKernel::batch) {
      const auto arguments = UploadKernel::part(groups.data(), groups.size(), first, to);
      if (auto status = launch<UploadKernel>(Grid(1), arguments, stream); !status) return status;
    }
    return {};
  }
};

/// FlashAttention-2 forward.
template <MhaFwdProblem P, MhaFwdTile T>
using DeviceBatchedMhaFwdXdlCshuffleV2 =
    DeviceBatchedMhaFwd<grid::GridwiseBatchedMhaFwdXdlCshuffleV2, P, T>;
template <MhaFwdProblem P, MhaFwdTile T>
using DeviceGroupedMhaFwdXdlCshuffleV2 =
    DeviceGroupedMhaFwd<grid::GridwiseBatchedMhaFwdXdlCshuffleV2, P, T>;

}  // namespace flashxdl::device
