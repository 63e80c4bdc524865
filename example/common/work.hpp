#pragma once
/// \file
/// How much work a problem is.

#include <algorithm>
#include <cstdint>

#include "flashxdl/core/problem.hpp"

namespace flashxdl::example {

/// Pairs (query, key) that the mask lets through, over all batches and query heads.
inline std::int64_t visible_pairs(const MhaForwardArgs& args) {
  std::int64_t pairs = 0;
  for (std::int64_t i = 0; i < args.seqlen_q; ++i) {
    const std::int64_t first = args.mask.first_key(i, args.seqlen_q, args.seqlen_k);
    const std::int64_t end = args.mask.end_key(i, args.seqlen_q, args.seqlen_k);
    pairs +=
        std::max<std::int64_t>(0, std::min(end, args.seqlen_k) - std::max<std::int64_t>(first, 0));
  }
  return args.batch * args.heads_q * pairs;
}

/// Two matrix products, over D and Dv.
inline double forward_flops(const MhaForwardArgs& args) {
  return 2.0 * static_cast<double>(visible_pairs(args)) *
         static_cast<double>(args.head_dim + args.head_dim_v);
}

/// Five: S, dQ and dK over D, dP and dV over Dv.
inline double backward_flops(const MhaForwardArgs& args) {
  return 2.0 * static_cast<double>(visible_pairs(args)) *
         static_cast<double>(3 * args.head_dim + 2 * args.head_dim_v);
}

/// Dropout sequences of a problem: its (batch, query head) pairs.
inline std::uint64_t sequences(const MhaForwardArgs& args) {
  return static_cast<std::uint64_t>(args.batch * args.heads_q);
}

}  // namespace flashxdl::example
