#pragma once
/// \file
/// What a backward example computes.

#include <optional>

#include "common/forward_config.hpp"
#include "flashxdl/core/problem.hpp"

namespace flashxdl::example {

/// Whether a kernel keeps whole rows of Q, K, V and dO on chip, or passes them in slices.
enum class Algorithm {
  by_head_dim,  ///< resident up to 128, else streamed
  resident,
  streamed,
};

struct BackwardConfig {
  ForwardConfig forward{};  ///< with bias: dBias is wanted, too
  bool train = false;       ///< checks the forward as well, and both passes' keep masks

  Algorithm algorithm = Algorithm::by_head_dim;
  std::optional<DataType> gradient_dtype{};  ///< of dQ, dK, dV; default: the input type
  DataType dbias_dtype = DataType::fp32;
  bool deterministic = false;
};

}  // namespace flashxdl::example
