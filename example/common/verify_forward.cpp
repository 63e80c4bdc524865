#include "common/verify_forward.hpp"

#include <cstdio>

#include "flashxdl/reference/mha_forward.hpp"
#include "flashxdl/reference/rule_t.hpp"

namespace flashxdl::example {

bool verify_forward(const MhaForwardArgs& args, std::uint64_t first_sequence) {
  const auto exact = reference::mha_forward<reference::Exact>(args, first_sequence);
  const auto plain = reference::mha_forward<reference::Plain>(args, first_sequence);
  reference::RuleT output(args.dtype);
  reference::RuleLse lse;

  std::size_t row = 0;
  for (std::int64_t b = 0; b < args.batch; ++b) {
    for (std::int64_t h = 0; h < args.heads_q; ++h) {
      for (std::int64_t i = 0; i < args.seqlen_q; ++i, ++row) {
        std::size_t at = row * static_cast<std::size_t>(args.head_dim_v);
        for (std::int64_t d = 0; d < args.head_dim_v; ++d, ++at) {
          const float got = load_element(args.o.data, args.dtype, args.o.offset(b, h, i, d));
          output.add(got, exact.o[at], plain.o[at], exact.o_terms[at], exact.largest_score[row]);
        }
        if (args.lse.data != nullptr) {
          const float got = args.lse.data[b * args.lse.batch_stride + h * args.lse.head_stride + i];
          lse.add(got, exact.lse[row], exact.largest_score[row]);
        }
      }
    }
  }

  std::printf("O: largest error %.3g, allowed %.3g", output.error(), output.allowed());
  if (args.lse.data != nullptr) {
    std::printf("; LSE: largest error %.3g, allowed %.3g", lse.error(), lse.allowed());
  }
  const bool passed = output.passed() && lse.passed();
  std::printf("%s\n", passed ? "" : "  <-- wrong");
  return passed;
}

}  // namespace flashxdl::example
