#pragma once
/// \file
/// Checks forward arguments and turns them into what the kernels read.

#include <cmath>
#include <cstdint>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "flashxdl/core/problem.hpp"
#include "flashxdl/core/status.hpp"
#include "flashxdl/grid/mha_fwd_problem.hpp"

namespace flashxdl::device {

/// A (batch, head) slice is addressed by 32-bit byte offsets; the last 64 KiB stay free, so that
/// offsets past the end never wrap.
inline constexpr std::int64_t slice_limit = (std::int64_t{1} << 32) - (1 << 16);
/// Queries and keys are counted in 32 bits with room for the mask's shifts.
inline constexpr std::int64_t seqlen_limit = std::int64_t{1} << 30;
inline constexpr std::int64_t head_dim_limit = 256;

namespace detail {

/// "name = value: what is wrong".
template <class Value>
Status refuse(const char* name, const Value& value, const char* why) {
  std::ostringstream text;
  text << name << " = " << value << ": " << why;
  return Status::invalid(text.str());
}

/// What a tensor is called, and how much of it is described.
struct Extent {
  const char* name;
  std::int64_t batch, heads, rows, columns;
  std::size_t element;  ///< bytes
  bool output;

  bool empty() const { return batch == 0 || heads == 0 || rows == 0 || columns == 0; }
};

template <class Pointer>
Status check_tensor(const Extent& e, const Tensor<Pointer>& t) {
  if (e.empty()) return {};
  const auto say = [&](const auto&... parts) {
    std::ostringstream text;
    text << e.name << ": ";
    (text << ... << parts);
    return Status::invalid(text.str());
  };
  if (t.data == nullptr) {
    return say("null pointer; a tensor of ", e.batch, " x ", e.heads, " x ", e.rows, " x ",
               e.columns, " elements is needed");
  }
  if (reinterpret_cast<std::uintptr_t>(t.data) % e.element != 0) {
    return say("address ", static_cast<const void*>(t.data), " is not a multiple of the element's ",
               e.element, " bytes");
  }
  if (t.column_stride != 1 && (e.columns > 1 || t.column_stride != 0)) {
    return say("the last dimension has stride ", t.column_stride,
               "; it must be contiguous, stride 1");
  }
  if (e.rows > 1 && t.row_stride < 0) {
    return say("row stride ", t.row_stride, " is negative; copy the tensor or reverse it first");
  }
  const auto bytes = static_cast<std::int64_t>(e.element);
  const std::int64_t row_elements = slice_limit / bytes - e.columns;
  if (e.rows > 1 && t.row_stride > row_elements / (e.rows - 1)) {
    return say("one (batch, head) slice of ", e.rows, " rows with row stride ", t.row_stride,
               " elements spans more than ", slice_limit,
               " bytes; it must stay under 4 GiB (32-bit offsets)");
  }
  if (e.output) {
    const bool rows_overlap = e.rows > 1 && t.row_stride < e.columns;
    const bool heads_overlap = e.heads > 1 && t.head_stride == 0;
    const bool batches_overlap = e.batch > 1 && t.batch_stride == 0;
    if (rows_overlap || heads_overlap || batches_overlap) {
      return say("strides (batch ", t.batch_stride, ", head ", t.head_stride, ", row ",
                 t.row_stride, ") make elements of an output overlap");
    }
  }
  return {};
}

}  // namespace detail

/// What is wrong with the arguments, whatever the kernel.
inline Status check_forward(const MhaForwardArgs& a) {
  using detail::refuse;
  if (a.dtype == DataType::fp32) {
    return refuse("dtype", name_of(a.dtype), "Q, K, V and O are fp16 or bf16");
  }
  const struct {
    const char* name;
    std::int64_t value;
    std::int64_t limit;
  } sizes[] = {{"batch", a.batch, std::numeric_limits<std::int32_t>::max()},
               {"heads_q (Hq)", a.heads_q, std::numeric_limits<std::int32_t>::max()},
               {"heads_kv (Hkv)", a.heads_kv, std::numeric_limits<std::int32_t>::max()},
               {"seqlen_q (Sq)", a.seqlen_q, seqlen_limit},
               {"seqlen_k (Sk)", a.seqlen_k, seqlen_limit}};
  for (const auto& size : sizes) {
    if (size.value < 0) return refuse(size.name, size.value, "a size cannot be negative");
    if (size.value > size.limit) {
      return refuse(size.name, size.value,
                    size.limit == seqlen_limit ? "at most 2^30 positions" : "at most 2^31 - 1");
    }
  }
  for (const auto& [name, value] : {std::pair{"head dimension head_dim (D)", a.head_dim},
                                    std::pair{"head dimension head_dim_v (Dv)", a.head_dim_v}}) {
    if (value < 1 || value > head_dim_limit) {
      return refuse(name, value, "kernels take head dimensions from 1 to 256");
    }
  }
  if (a.heads_q > 0 && (a.heads_kv == 0 || a.heads_q % a.heads_kv != 0)) {
    std::ostringstream text;
    text << "heads_q (Hq) = " << a.heads_q
         << " is not a multiple of heads_kv (Hkv) = " << a.heads_kv
         << ": every KV head serves the same number of query heads";
    return Status::invalid(text.str());
  }
  const float scale = a.scale_or_default();
  if (!std::isfinite(scale)) return refuse("scale", scale, "the softmax scale must be finite");
  const Dropout& d = a.dropout;
  if (!(d.probability >= 0.0 && d.probability <= 1.0)) {
    return refuse("dropout probability", d.probability, "must lie in [0, 1]");
  }
  if (d.bits != 8 && d.bits != 16) {
    return refuse("dropout bits", d.bits, "8 or 16 random bits for each score");
  }

  using detail::check_tensor;
  if (auto s = check_tensor({"Q", a.batch, a.heads_q, a.seqlen_q, a.head_dim, 2, false}, a.q); !s)
    return s;
  if (auto s = check_tensor({"K", a.batch, a.heads_kv, a.seqlen_k, a.head_dim, 2, false}, a.k); !s)
    return s;
  if (auto s = check_tensor({"V", a.batch, a.heads_kv, a.seqlen_k, a.head_dim_v, 2, false}, a.v);
      !s)
    return s;
  if (auto s = check_tensor({"O", a.batch, a.heads_q, a.seqlen_q, a.head_dim_v, 2, true}, a.o); !s)
    return s;
  if (a.bias.tensor.data != nullptr) {
    if (auto s = check_tensor(
            {"bias", a.batch, a.heads_q, a.seqlen_q, a.seqlen_k, size_of(a.bias.dtype), false},
            a.bias.tensor);
        !s)
      return s;
  }
  if (a.keep_mask.data != nullptr) {
    if (auto s = check_tensor({"keep_mask", a.batch, a.heads_q, a.seqlen_q, a.seqlen_k, 1, true},
                              a.keep_mask);
        !s)
      return s;
  }
  if (a.lse.data != nullptr) {
    const Tensor<float*> lse{a.lse.data, a.lse.batch_stride, a.lse.head_stride, a.seqlen_q, 1};
    if (auto s = check_tensor({"LSE", a.batch, a.heads_q, 1, a.seqlen_q, 4, true}, lse); !s)
      return s;
  }
  return {};
}

/// 16-byte accesses are possible: every tensor's address, strides and columns are multiples of 8
/// numbers.
inline bool is_wide(const MhaForwardArgs& a) {
  const auto aligned = [&](const auto& t, std::int64_t rows, std::int64_t heads) {
    return reinterpret_cast<std::uintptr_t>(t.data) % 16 == 0 &&
           (rows <= 1 || t.row_stride % 8 == 0) && (heads <= 1 || t.head_stride % 8 == 0) &&
           (a.batch <= 1 || t.batch_stride % 8 == 0);
  };
  return a.head_dim % 8 == 0 && a.head_dim_v % 8 == 0 && aligned(a.q, a.seqlen_q, a.heads_q) &&
         aligned(a.k, a.seqlen_k, a.heads_kv) && aligned(a.v, a.seqlen_k, a.heads_kv) &&
         aligned(a.o, a.seqlen_q, a.heads_q);
}

/// The bias can be read as BiasKind::vectors says.
inline bool has_vector_bias(const MhaForwardArgs& a) {
  const auto& t = a.bias.tensor;
  return t.data != nullptr && a.bias.dtype == a.dtype && a.seqlen_k % 4 == 0 &&
         reinterpret_cast<std::uintptr_t>(t.data) % 8 == 0 &&
         (a.seqlen_q <= 1 || t.row_stride % 4 == 0) && (a.heads_q <= 1 || t.head_stride % 4 == 0) &&
         (a.batch <= 1 || t.batch_stride % 4 == 0);
}

/// The descriptor of a checked problem for a kernel with query tiles of tile_m. An empty problem
/// has no workgroups.
inline MhaFwdDescriptor describe_forward(const MhaForwardArgs& a, const MhaFwdProblem& problem,
                                         int tile_m) {
  MhaFwdDescriptor d{};
  const auto operand = [](const auto& t, std::int64_t rows, std::int64_t columns,
                          std::size_t element) {
    const auto size = static_cast<std::int64_t>(element);
    MhaFwdDescriptor::Operand o{};
    o.data = t.data;
    if (t.data == nullptr || rows == 0 || columns == 0) return o;
    o.batch_bytes = t.batch_stride * size;
    o.head_bytes = t.head_stride * size;
    o.row_bytes = rows > 1 ? static_cast<std::uint32_t>(t.row_stride * size) : 0u;
    o.slice_bytes = static_cast<std::uint32_t>((rows > 1 ? (rows - 1) * t.row_stride * size : 0) +
                                               columns * size);
    return o;
  };
  d.q = operand(a.q, a.seqlen_q, a.head_dim, 2);
  d.k = operand(a.k, a.seqlen_k, a.head_dim, 2);
  d.v = operand(a.v, a.seqlen_k, a.head_dim_v, 2);
  d.o = operand(a.o, a.seqlen_q, a.head_dim_v, 2);
  d.bias = operand(a.bias.tensor, a.seqlen_q, a.seqlen_k, size_of(a.bias.dtype));
  d.keep = operand(a.keep_mask, a.seqlen_q, a.seqlen_k, 1);
  d.lse = a.lse.data;
  d.lse_batch = a.lse.batch_stride;
  d.lse_head = a.lse.head_stride;

  d.seqlen_q = static_cast<std::int32_t>(a.seqlen_q);
  d.head_dim = static_cast<std::int32_t>(a.head_dim);
  d.head_dim_v = static_cast<std::int32_t>(a.head_dim_v);
  const auto shift = a.mask.shift(a.seqlen_q, a.seqlen_k);
  const auto clamp = [](std::int64_t x) {
    return static_cast<std::int32_t>(std::min(std::max(x, -seqlen_limit), seqlen_limit));
  };
  // Distances past both lengths see everything; cutting them first keeps the sums in range.
  const auto reach = [&](std::int64_t x) { return std::min(x, a.seqlen_q + a.seqlen_k); };
  d.keys = {clamp(a.mask.left < 0 ? -seqlen_limit : shift - reach(a.mask.left)),
            clamp(a.mask.right < 0 ? seqlen_limit : shift + reach(a.mask.right) + 1),
            static_cast<std::int32_t>(a.seqlen_k)};

  d.heads_q = static_cast<std::uint32_t>(a.heads_q);
  d.heads_per_kv = static_cast<std::uint32_t>(a.heads_kv > 0 ? a.heads_q / a.heads_kv : 1);
  d.tiles_q = static_cast<std::uint32_t>((a.seqlen_q + tile_m - 1) / tile_m);
  d.workgroups = static_cast<std::uint64_t>(a.batch * a.heads_q) * d.tiles_q;

  constexpr float log2e = 1.44269504088896341f;
  const float scale = a.scale_or_default();
  d.score_scale = std::fabs(scale);
  const bool biased = problem.bias != BiasKind::none;
  const float unit = biased || scale == 0.0f ? 1.0f : d.score_scale;
  // Clamped so that the masked -inf times the factor stays -inf, and 0 times it stays 0.
  d.exp2_scale = std::min(std::max(unit * log2e, std::numeric_limits<float>::min()),
                          std::numeric_limits<float>::max());
  d.natural_unit = unit;
  d.query_keep = scale == 0.0f ? 0u : 0xffffffffu;
  d.query_flip = scale < 0.0f ? 0x80008000u : 0u;
  d.bias_type = a.bias.dtype;

  d.seed = a.dropout.seed;
  d.offset = a.dropout.offset;
  d.seed_device = a.dropout.seed_device;
  d.offset_device = a.dropout.offset_device;
  d.dropout_threshold = a.dropout.threshold();
  d.keep_scale = static_cast<float>(a.dropout.keep_scale());
  return d;
}

/// Descriptors of the groups that have work, with their ranges of workgroups and dropout sequences
/// (which count all groups).
inline std::vector<MhaFwdDescriptor> describe_forward_groups(const MhaForwardGroupedArgs& args,
                                                             const MhaFwdProblem& problem,
                                                             int tile_m) {
  std::vector<MhaFwdDescriptor> groups;
  std::uint64_t workgroups = 0;
  std::uint64_t sequences = 0;
  for (const auto& group : args.groups) {
    auto d = describe_forward(group, problem, tile_m);
    d.first_group = workgroups;
    d.first_sequence = sequences;
    workgroups += d.workgroups;
    sequences += static_cast<std::uint64_t>(group.batch * group.heads_q);
    if (d.workgroups > 0) groups.push_back(d);
  }
  return groups;
}

}  // namespace flashxdl::device
