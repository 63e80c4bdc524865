#pragma once
/// \file
/// What a forward example computes: each program fills in what is particular to it, the command
/// line overrides the rest.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flashxdl/core/problem.hpp"

namespace flashxdl::example {

/// Order of a tensor in memory: [batch, head, row, column] or [batch, row, head, column].
enum class Layout { bhsd, bshd };

struct GroupShape {
  std::int64_t batch = 1;
  std::int64_t heads_q = 1;
  std::int64_t heads_kv = 1;
  std::int64_t seqlen_q = 0;
  std::int64_t seqlen_k = 0;
};

struct ForwardConfig {
  std::string summary{};  ///< one sentence for --help
  bool grouped = false;   ///< several problems in one launch
  bool training = false;  ///< writes the LSE, takes dropout
  bool bias = false;

  // What to do; the first three are also positional.
  bool verify = true;
  int init = 1;
  bool time = false;
  int repeat = 10;  ///< launches that are timed

  // The problem.
  DataType dtype = DataType::fp16;
  Layout input_layout = Layout::bhsd;
  Layout output_layout = Layout::bhsd;
  std::vector<GroupShape> groups{};  ///< exactly one unless grouped
  std::int64_t head_dim = 64;
  std::int64_t head_dim_v = 64;
  std::optional<float> scale{};  ///< default 1/sqrt(head_dim)
  Mask mask{};
  Dropout dropout{};
  DataType bias_dtype = DataType::fp16;
  std::string bias_broadcast{};  ///< letters b, h, q: dimensions of size 1
};

inline bool broadcasts(const ForwardConfig& config, char dimension) {
  return config.bias_broadcast.find(dimension) != std::string::npos;
}

}  // namespace flashxdl::example
