#pragma once
/// \file
/// The call that most users want: MhaForward picks a built-in kernel for the arguments and launches
/// it on the stream.
///
/// Built-in kernels: head dimension tiles of 32, 64, 96, 128, 192 and 256, fp16 and bf16, each in a
/// few variants by bias, dropout and alignment. A program that needs a few of them only names its
/// own set, and compiles only that:
///
///     struct MySet { static constexpr flashxdl::DataType dtypes[] = {flashxdl::DataType::bf16};
///                    static constexpr int head_dims[] = {128}; };
///     flashxdl::MhaForward<MySet>(args, stream);
///
/// With FLASHXDL_PREBUILT_INSTANCES defined the built-in kernels are not compiled here but linked
/// (the CMake target flashxdl_instances).

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <sstream>
#include <string>

#include "flashxdl/core/static_for.hpp"
#include "flashxdl/device/device_mha_fwd.hpp"
#include "flashxdl/device/forward_tile.hpp"

namespace flashxdl {

/// The set of kernels that MhaForward chooses from.
struct BuiltInInstances {
  static constexpr DataType dtypes[] = {DataType::fp16, DataType::bf16};
  static constexpr int head_dims[] = {32, 64, 96, 128, 192, 256};
};

namespace device {

/// What decides between the variants of a kernel; for a list, what holds for all of it.
struct ForwardTraits {
  bool wide = true;
  bool biased = false;
  bool vector_bias = true;
  bool random = false;
  int bits = 8;

  explicit ForwardTraits(const MhaForwardArgs& args) { join(args); }
  explicit ForwardTraits(const MhaForwardGroupedArgs& args) {
    for (const auto& group : args.groups) join(group);
  }

private:
  void join(const MhaForwardArgs& args) {
    wide = wide && is_wide(args);
    biased = biased || args.bias.tensor.data != nullptr;
    vector_bias = vector_bias && has_vector_bias(args);
    if (args.dropout.threshold() != 0 || args.keep_mask.data != nullptr) {
      random = true;
      bits = args.dropout.bits;
    }
  }
};

/// The built-in kernels of one type and head dimension.
template <DataType Type, int HeadDim>
struct MhaForwardFamily {
  static Status launch(const MhaForwardArgs& args, hipStream_t stream);
  static Status launch(const MhaForwardGroupedArgs& args, void* workspace, hipStream_t stream);
  static Status check(const MhaForwardArgs& args);
  static Status check(const MhaForwardGroupedArgs& args);
  static std::string type_string(const MhaForwardArgs& args);
  static std::string type_string(const MhaForwardGroupedArgs& args);

private:
  template <BiasKind Bias, int Bits, bool Wide>
  struct Variant {
    static constexpr MhaFwdProblem problem{
        .dtype = Type, .bias = Bias, .dropout_bits = Bits, .wide = Wide};
    static constexpr MhaFwdTile tile = forward_tile(problem, HeadDim);
    using Batched = DeviceBatchedMhaFwdXdlCshuffleV2<problem, tile>;
    using Grouped = DeviceGroupedMhaFwdXdlCshuffleV2<problem, tile>;
  };

  /// Calls body with the Variant for these traits.
  template <class Body>
  static auto with_variant(const ForwardTraits& traits, Body&& body) {
    const bool random16 = traits.random && traits.bits == 16;
    if (!traits.wide) {
      return random16 ? body(Variant<BiasKind::any, 16, false>{})
                      : body(Variant<BiasKind::any, 8, false>{});
    }
    if (random16) return body(Variant<BiasKind::any, 16, true>{});
    if (traits.biased && !traits.vector_bias) return body(Variant<BiasKind::any, 8, true>{});
    if (traits.biased) {
      return traits.random ? body(Variant<BiasKind::vectors, 8, true>{})
                           : body(Variant<BiasKind::vectors, 0, true>{});
    }
    return traits.random ? body(Variant<BiasKind::none, 8, true>{})
                         : body(Variant<BiasKind::none, 0, true>{});
  }
};

// Defined outside the class: inline functions would be compiled wherever they are used, prebuilt or
// not.
template <DataType Type, int HeadDim>
Status MhaForwardFamily<Type, HeadDim>::launch(const MhaForwardArgs& args, hipStream_t stream) {
  return with_variant(ForwardTraits(args), [&](auto v) {
    using Op = typename decltype(v)::Batched;
    return Op::Launch(Op::MakeArgument(args), stream);
  });
}

template <DataType Type, int HeadDim>
Status MhaForwardFamily<Type, HeadDim>::launch(const MhaForwardGroupedArgs& args, void* workspace,
                                               hipStream_t stream) {
  return with_variant(ForwardTraits(args), [&](auto v) {
    using Op = typename decltype(v)::Grouped;
    auto argument = Op::MakeArgument(args);
    Op::SetWorkSpacePointer(argument, workspace);
    return Op::Launch(argument, stream);
  });
}

template <DataType Type, int HeadDim>
Status MhaForwardFamily<Type, HeadDim>::check(const MhaForwardArgs& args) {
  return with_variant(ForwardTraits(args), [&](auto v) {
    using Op = typename decltype(v)::Batched;
    return Op::CheckArgument(Op::MakeArgument(args));
  });
}

template <DataType Type, int HeadDim>
Status MhaForwardFamily<Type, HeadDim>::check(const MhaForwardGroupedArgs& args) {
  return with_variant(ForwardTraits(args), [&](auto v) {
    using Op = typename decltype(v)::Grouped;
    return Op::CheckArgument(Op::MakeArgument(args));
  });
}

template <DataType Type, int HeadDim>
std::string MhaForwardFamily<Type, HeadDim>::type_string(const MhaForwardArgs& args) {
  return with_variant(ForwardTraits(args),
                      [](auto v) { return decltype(v)::Batched::GetTypeString(); });
}

template <DataType Type, int HeadDim>
std::string MhaForwardFamily<Type, HeadDim>::type_string(const MhaForwardGroupedArgs& args) {
  return with_variant(ForwardTraits(args),
                      [](auto v) { return decltype(v)::Grouped::GetTypeString(); });
}

#ifdef FLASHXDL_PREBUILT_INSTANCES
extern template struct MhaForwardFamily<DataType::fp16, 32>;
extern template struct MhaForwardFamily<DataType::fp16, 64>;
extern template struct MhaForwardFamily<DataType::fp16, 96>;
extern template struct MhaForwardFamily<DataType::fp16, 128>;
extern template struct MhaForwardFamily<DataType::fp16, 192>;
extern template struct MhaForwardFamily<DataType::fp16, 256>;
extern template struct MhaForwardFamily<DataType::bf16, 32>;
extern template struct MhaForwardFamily<DataType::bf16, 64>;
extern template struct MhaForwardFamily<DataType::bf16, 96>;
extern template struct MhaForwardFamily<DataType::bf16, 128>;
extern template struct MhaForwardFamily<DataType::bf16, 192>;
extern template struct MhaForwardFamily<DataType::bf16, 256>;
#endif

namespace detail {

/// Calls body(family) with the smallest family of the set that takes the type and head dimension;
/// `none` is returned if there is none.
template <class Instances, class Result, class Body>
Result with_family(DataType dtype, std::int64_t head_dim, Result none, Body&& body) {
  constexpr int dtypes = static_cast<int>(std::size(Instances::dtypes));
  constexpr int dims = static_cast<int>(std::size(Instances::head_dims));
  bool found = false;
  static_for<dtypes>([&](auto t) {
    static_for<dims>([&](auto d) {
      constexpr DataType type = Instances::dtypes[t];
      constexpr int limit = Instances::head_dims[d];
      if (!found && dtype == type && head_dim <= limit) {
        found = true;
        none = body(MhaForwardFamily<type, limit>{});
      }
    });
  });
  return none;
}

inline std::int64_t largest_head_dim(const MhaForwardArgs& args) {
  return std::max(args.head_dim, args.head_dim_v);
}

inline Status no_instance(DataType dtype, std::int64_t head_dim) {
  std::ostringstream text;
  text << "head dimension = " << head_dim << " with dtype = " << name_of(dtype)
       << ": the chosen set of instances has no kernel for it";
  return Status::unsupported(text.str());
}

/// What the groups of a list must agree on.
inline Status check_groups(const MhaForwardGroupedArgs& args) {
  const MhaForwardArgs* random = nullptr;
  for (std::size_t g = 0; g < args.groups.size(); ++g) {
    const auto& group = args.groups[g];
    const auto label = "group " + std::to_string(g) + ": ";
    if (auto status = check_forward(group); !status) {
      return {status.code(), label + status.message()};
    }
    if (group.dtype != args.groups[0].dtype) {
      return Status::unsupported(label + "dtype = " + name_of(group.dtype) +
                                 " differs from group 0's " + name_of(args.groups[0].dtype));
    }
    if (group.dropout.threshold() == 0 && group.keep_mask.data == nullptr) continue;
    if (random == nullptr) random = &group;
    if (group.dropout.bits != random->dropout.bits) {
      return Status::unsupported(label + "dropout bits = " + std::to_string(group.dropout.bits) +
                                 " differ from another group's " +
                                 std::to_string(random->dropout.bits));
    }
  }
  return {};
}

template <class Instances, class Body>
Status with_grouped_family(const MhaForwardGroupedArgs& args, Body&& body) {
  if (auto status = check_groups(args); !status) return status;
  if (args.groups.empty()) return {};
  std::int64_t head_dim = 1;
  for (const auto& group : args.groups) head_dim = std::max(head_dim, largest_head_dim(group));
  const DataType dtype = args.groups[0].dtype;
  return with_family<Instances>(dtype, head_dim, no_instance(dtype, head_dim), body);
}

}  // namespace detail
}  // namespace device

/// What MhaForward would refuse, without launching: ok, or a sentence that names the argument, its
/// value and what would do.
template <class Instances = BuiltInInstances>
Status CheckForward(const MhaForwardArgs& args) {
  if (auto status = device::check_forward(args); !status) return status;
  const auto head_dim = device::detail::largest_head_dim(args);
  return device::detail::with_family<Instances>(
      args.dtype, head_dim, device::detail::no_instance(args.dtype, head_dim),
      [&](auto family) { return decltype(family)::check(args); });
}
template <class Instances = BuiltInInstances>
Status CheckForward(const MhaForwardGroupedArgs& args) {
  return device::detail::with_grouped_family<Instances>(
      args, [&](auto family) { return decltype(family)::check(args); });
}

/// Enqueues attention forward on the stream and returns; nothing is waited for or allocated. Device
/// pointers throughout. Errors: CheckForward's sentences, or HIP's name for a failed call.
template <class Instances = BuiltInInstances>
Status MhaForward(const MhaForwardArgs& args, hipStream_t stream = nullptr) {
  if (auto status = device::check_forward(args); !status) return status;
  const auto head_dim = device::detail::largest_head_dim(args);
  return device::detail::with_family<Instances>(
      args.dtype, head_dim, device::detail::no_instance(args.dtype, head_dim),
      [&](auto family) { return decltype(family)::launch(args, stream); });
}

/// Bytes of device memory, 8-byte aligned, that a grouped call needs until its work is done.
inline std::size_t MhaForwardWorkspaceSize(const MhaForwardGroupedArgs& args) {
  return args.groups.size() * sizeof(MhaFwdDescriptor);
}

/// The same for a list of problems, in one launch.
template <class Instances = BuiltInInstances>
Status MhaForward(const MhaForwardGroupedArgs& args, void* workspace, std::size_t workspace_bytes,
                  hipStream_t stream = nullptr) {
  const std::size_t needed = MhaForwardWorkspaceSize(args);
  if (workspace_bytes < needed) {
    return device::detail::refuse("workspace_bytes", workspace_bytes,
                                  "MhaForwardWorkspaceSize(args) bytes are needed");
  }
  return device::detail::with_grouped_family<Instances>(
      args, [&](auto family) { return decltype(family)::launch(args, workspace, stream); });
}

/// The type string of the kernel that MhaForward picks; empty if it would refuse.
template <class Instances = BuiltInInstances>
std::string MhaForwardTypeString(const MhaForwardArgs& args) {
  if (!device::check_forward(args).ok()) return {};
  return device::detail::with_family<Instances>(
      args.dtype, device::detail::largest_head_dim(args), std::string(),
      [&](auto family) { return decltype(family)::type_string(args); });
}
/// The same for a list; empty, too, for a list without groups.
template <class Instances = BuiltInInstances>
std::string MhaForwardTypeString(const MhaForwardGroupedArgs& args) {
  std::string name;
  const auto status = device::detail::with_grouped_family<Instances>(args, [&](auto family) {
    name = decltype(family)::type_string(args);
    return Status();
  });
  return status ? name : std::string();
}

}  // namespace flashxdl
