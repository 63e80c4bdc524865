#pragma once
/// \file
/// The generated forward cases: sweeps over one thing at a time, then products of everything.

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "support/forward_case.hpp"

namespace flashxdl::test {

using CaseList = std::vector<ForwardCase>;

namespace detail {

inline constexpr std::array both_types{DataType::fp16, DataType::bf16};
inline constexpr std::array arrangements{Arrangement::bhsd, Arrangement::bshd, Arrangement::packed,
                                         Arrangement::pitched, Arrangement::misaligned};

/// Lengths around every tile edge.
inline constexpr std::array<std::int64_t, 10> edges{1, 31, 32, 33, 63, 64, 65, 127, 128, 129};

inline void add_lengths(CaseList& list) {
  std::vector<std::pair<std::int64_t, std::int64_t>> lengths{
      {97, 101}, {131, 67}, {257, 31}, {31, 257}, {2, 3}, {300, 5}, {5, 300}};
  for (const auto n : edges) {
    lengths.insert(lengths.end(), {{n, 70}, {37, n}, {n, n}});
  }
  for (const auto dtype : both_types) {
    for (const auto& [seqlen_q, seqlen_k] : lengths) {
      list.push_back({.dtype = dtype,
                      .heads_q = 2,
                      .heads_kv = 2,
                      .seqlen_q = seqlen_q,
                      .seqlen_k = seqlen_k});
    }
  }
}

inline void add_head_dimensions(CaseList& list) {
  std::vector<std::pair<std::int64_t, std::int64_t>> dimensions{
      {64, 128}, {128, 64}, {192, 128}, {40, 72}, {1, 256}, {256, 1}, {32, 96}, {100, 3}};
  for (const std::int64_t d : {1,  2,  3,   8,   16,  31,  32,  33,  40,  63,  65, 72,
                               96, 97, 100, 104, 128, 129, 160, 192, 200, 255, 256}) {
    dimensions.emplace_back(d, d);
  }
  for (const auto dtype : both_types) {
    for (const auto& [d, dv] : dimensions) {
      list.push_back({.dtype = dtype,
                      .heads_q = 2,
                      .heads_kv = 1,
                      .seqlen_q = 70,
                      .seqlen_k = 67,
                      .head_dim = d,
                      .head_dim_v = dv});
    }
  }
}

inline std::vector<Mask> masks() {
  using enum Mask::Alignment;
  return {Mask::causal_top_left(),           Mask::causal_bottom_right(),
          Mask::window(top_left, 10, 0),     Mask::window(top_left, 0, 10),
          Mask::window(top_left, 70, 40),    Mask::window(top_left, -1, 3),
          Mask::window(bottom_right, 16, 0), Mask::window(bottom_right, 64, 64),
          Mask::window(bottom_right, 0, 0),  Mask::window(bottom_right, 200, -1)};
}

inline void add_masks(CaseList& list) {
  const std::array<std::pair<std::int64_t, std::int64_t>, 7> lengths{
      {{64, 64}, {100, 130}, {130, 100}, {1, 77}, {77, 1}, {129, 257}, {257, 129}}};
  std::size_t n = 0;
  for (const Mask& mask : masks()) {
    for (const auto& [seqlen_q, seqlen_k] : lengths) {
      list.push_back({.dtype = both_types[n++ % 2],
                      .heads_q = 2,
                      .heads_kv = 2,
                      .seqlen_q = seqlen_q,
                      .seqlen_k = seqlen_k,
                      .mask = mask});
    }
  }
}

inline void add_biases(CaseList& list) {
  std::size_t n = 0;
  for (const auto bias_type : {DataType::fp16, DataType::bf16, DataType::fp32}) {
    for (const int broadcast : {0, 1, 2, 3, 4, 5, 6, 7}) {
      for (const bool causal : {false, true}) {
        const BiasCase bias{.dtype = bias_type,
                            .over_batch = (broadcast & 1) != 0,
                            .over_head = (broadcast & 2) != 0,
                            .over_query = (broadcast & 4) != 0,
                            .neg_inf_fraction = causal ? 0.3 : 0.0};
        list.push_back({.dtype = both_types[n % 2],
                        .batch = 2,
                        .heads_q = 2,
                        .heads_kv = 1,
                        .seqlen_q = 70,
                        .seqlen_k = 99,
                        .head_dim = 32,
                        .head_dim_v = 32,
                        .mask = causal ? Mask::causal_bottom_right() : Mask::none(),
                        .bias = bias,
                        .arrangement = arrangements[n % 5 == 2 ? 0 : n % 5]});
        ++n;
      }
    }
  }
}

inline void add_dropouts(CaseList& list) {
  const std::array<std::pair<std::int64_t, std::int64_t>, 4> lengths{
      {{33, 70}, {128, 128}, {130, 67}, {5, 203}}};
  for (const auto dtype : both_types) {
    for (const int bits : {8, 16}) {
      for (const double p : {0.1, 0.5, 0.9}) {
        for (const auto& [seqlen_q, seqlen_k] : lengths) {
          list.push_back({.dtype = dtype,
                          .batch = 2,
                          .heads_q = 2,
                          .heads_kv = 1,
                          .seqlen_q = seqlen_q,
                          .seqlen_k = seqlen_k,
                          .mask = p == 0.5 ? Mask::causal_top_left() : Mask::none(),
                          .dropout = {.probability = p,
                                      .seed = 0x1234'5678'9abc'def0u,
                                      .offset = 0xffff'fff0u,
                                      .bits = bits}});
        }
      }
    }
  }
}

inline void add_heads_and_layouts(CaseList& list) {
  const std::array<std::pair<std::int64_t, std::int64_t>, 4> heads{
      {{6, 2}, {4, 1}, {3, 3}, {9, 3}}};
  std::size_t n = 0;
  for (const auto& [heads_q, heads_kv] : heads) {
    for (const auto arrangement : arrangements) {
      for (const std::int64_t d : {64, 40, 7}) {
        list.push_back({.dtype = both_types[n++ % 2],
                        .batch = 2,
                        .heads_q = heads_q,
                        .heads_kv = heads_kv,
                        .seqlen_q = 71,
                        .seqlen_k = 71,
                        .head_dim = d,
                        .head_dim_v = d,
                        .arrangement = arrangement});
      }
    }
  }
}

/// Everything at once, chosen at random, the same on every machine.
inline void add_products(CaseList& list) {
  Random random(20240229);
  const auto pick = [&random](const auto& values) {
    return values[random.next() % std::size(values)];
  };
  const auto odds = [&random](double p) { return random.uniform() < p; };
  constexpr std::array<std::int64_t, 8> dimensions{16, 32, 48, 64, 72, 96, 128, 192};
  constexpr std::array<std::int64_t, 3> kv_heads{1, 2, 3};
  constexpr std::array bias_types{DataType::fp16, DataType::bf16, DataType::fp32};
  constexpr std::array<double, 3> probabilities{0.15, 0.4, 0.8};
  constexpr std::array<float, 3> scales{0.3f, -0.2f, 0.05f};
  for (std::uint64_t n = 0; n < 120; ++n) {
    ForwardCase c{.dtype = pick(both_types)};
    c.batch = 1 + static_cast<std::int64_t>(random.next() % 2);
    c.heads_kv = pick(kv_heads);
    c.heads_q = c.heads_kv * (1 + static_cast<std::int64_t>(random.next() % 3));
    c.seqlen_q = 1 + static_cast<std::int64_t>(random.next() % 200);
    c.seqlen_k = 1 + static_cast<std::int64_t>(random.next() % 260);
    c.head_dim = pick(dimensions);
    c.head_dim_v = odds(0.5) ? c.head_dim : pick(dimensions);
    if (odds(0.5)) c.mask = pick(masks());
    if (odds(0.5)) {
      c.bias = BiasCase{pick(bias_types), odds(0.3), odds(0.3), odds(0.2), odds(0.3) ? 0.2 : 0.0};
    }
    if (odds(0.5)) {
      c.dropout = {.probability = pick(probabilities),
                   .seed = random.next(),
                   .offset = random.next() >> (1 + random.next() % 60),
                   .bits = odds(0.5) ? 8 : 16};
      c.keep = odds(0.3);
    }
    if (odds(0.3)) c.scale = pick(scales);
    c.arrangement = pick(arrangements);
    if (c.arrangement == Arrangement::packed) {
      c.seqlen_k = c.seqlen_q;
      c.head_dim_v = c.head_dim;
    }
    c.lse = odds(0.8);
    c.data_seed = 100 + n;
    list.push_back(c);
  }
}

}  // namespace detail

inline CaseList forward_cases() {
  CaseList list;
  detail::add_lengths(list);
  detail::add_head_dimensions(list);
  detail::add_masks(list);
  detail::add_biases(list);
  detail::add_dropouts(list);
  detail::add_heads_and_layouts(list);
  detail::add_products(list);
  return list;
}

}  // namespace flashxdl::test
