#pragma once
/// \file
/// The inputs that the emulated kernels run on.

#include <functional>
#include <string_view>
#include <vector>

#include "support/forward_case.hpp"

namespace flashxdl::test {

struct EmulatedCase {
  std::string_view name;
  std::string_view kernel;  ///< of emulated_kernels.hpp; must be what MhaForward picks
  bool grouped = false;
  std::vector<ForwardCase> problems;                 ///< one, or the groups
  std::function<void(ForwardProblem&)> change = {};  ///< makes random inputs special
};

/// One key that takes most of the weight and many small ones, whose probabilities are subnormal in
/// fp16 next to it; V constant, so that weight that gets lost shows.
inline void make_attention_sink(ForwardProblem& p) {
  fill(p.q, [] { return 0.0; });
  fill(p.v, [] { return 1.0; });
  p.bias.layout.for_each([&](std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) {
    p.bias.set(b, h, i, j, j == 0 ? 10.0 : 0.0);
  });
}

inline std::vector<EmulatedCase> emulated_cases() {
  const auto fp16 = DataType::fp16, bf16 = DataType::bf16;
  const auto causal = Mask::causal_bottom_right();
  const auto window = Mask::window(Mask::Alignment::bottom_right, 20, 5);
  const Dropout dropout8{.probability = 0.2, .seed = 0x1234567890abcdefu, .offset = 40};
  const Dropout dropout16{.probability = 0.3, .seed = 7, .offset = 8, .bits = 16};

  const auto ragged = [&](DataType dtype) {
    return ForwardCase{.dtype = dtype, .seqlen_q = 100, .seqlen_k = 130};
  };
  const auto with_dropout = [&](DataType dtype, const Dropout& dropout) {
    ForwardCase c = ragged(dtype);
    c.mask = causal;
    c.dropout = dropout;
    return c;
  };
  const auto with_bias = [&](DataType dtype) {
    return ForwardCase{.dtype = dtype,
                       .heads_q = 4,
                       .heads_kv = 2,
                       .seqlen_q = 50,
                       .seqlen_k = 72,
                       .head_dim = 128,
                       .head_dim_v = 128,
                       .bias = BiasCase{.dtype = dtype}};
  };
  const auto groups = [&](DataType dtype) {
    ForwardCase a = ragged(dtype), b = ragged(dtype), c = ragged(dtype);
    a.seqlen_q = 33, a.seqlen_k = 70, a.heads_q = 2;
    b.seqlen_q = 129, b.seqlen_k = 65, b.mask = causal;
    c.seqlen_q = 1, c.seqlen_k = 200, c.head_dim = 40, c.head_dim_v = 24, c.scale = -0.3f;
    return std::vector{a, b, c};
  };
  const auto dropped_groups = [&](DataType dtype) {
    auto list = groups(dtype);
    list[0].batch = 2;
    for (auto& each : list) each.dropout = dropout8;
    list[0].keep = list[2].keep = true;
    return list;
  };
  ForwardCase windowed = ragged(fp16);
  windowed.mask = window;
  ForwardCase narrow = ragged(fp16);
  narrow.head_dim = 32, narrow.head_dim_v = 24, narrow.arrangement = Arrangement::bshd;
  ForwardCase large = ragged(fp16);
  large.seqlen_q = 40, large.seqlen_k = 70, large.head_dim = 256, large.head_dim_v = 256;
  ForwardCase sink = with_bias(fp16);
  sink.heads_q = sink.heads_kv = 1, sink.seqlen_q = 32, sink.seqlen_k = 1100;
  const auto misaligned = [&](DataType dtype) {
    ForwardCase c = with_dropout(dtype, dropout8);
    c.seqlen_q = 40, c.seqlen_k = 67, c.head_dim = 61, c.head_dim_v = 35;
    c.arrangement = Arrangement::misaligned;
    c.bias = BiasCase{.dtype = DataType::fp32, .neg_inf_fraction = 0.1};
    c.keep = true;
    return c;
  };

  return {
      {"d64_causal_dropout8", "fp16_d64_dropout8", false, {with_dropout(fp16, dropout8)}},
      {"d128_bias_gqa", "fp16_d128_bias", false, {with_bias(fp16)}},
      {"d64_three_groups", "fp16_d64", true, groups(fp16)},
      {"d64", "fp16_d64", false, {ragged(fp16)}},
      {"d64_window", "fp16_d64", false, {windowed}},
      {"d32_bshd", "fp16_d32", false, {narrow}},
      {"d256", "fp16_d256", false, {large}},
      {"d64_causal_dropout16", "fp16_d64_any_dropout16", false, {with_dropout(fp16, dropout16)}},
      {"d64_three_groups_dropout8", "fp16_d64_dropout8", true, dropped_groups(fp16)},
      {"d64_misaligned", "fp16_d64_any_alignment", false, {misaligned(fp16)}},
      {"d128_attention_sink", "fp16_d128_bias", false, {sink}, make_attention_sink},
      {"bf16_d64_causal_dropout8", "bf16_d64_dropout8", false, {with_dropout(bf16, dropout8)}},
      {"bf16_d128_bias_gqa", "bf16_d128_bias", false, {with_bias(bf16)}},
      {"bf16_d64_three_groups", "bf16_d64", true, groups(bf16)},
      {"bf16_d64_misaligned", "bf16_d64_any_alignment", false, {misaligned(bf16)}},
  };
}

}  // namespace flashxdl::test
