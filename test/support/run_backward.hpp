#pragma once
/// \file
/// Runs backward kernels on problems, after the library's own forward, and waits.

#include <cstdint>
#include <string>
#include <vector>

#include "flashxdl/flashxdl.hpp"
#include "support/backward_check.hpp"
#include "support/backward_problem.hpp"
#include "support/run_forward.hpp"

namespace flashxdl::test {

/// What computes gradients, with a workspace of its own; waits for the end.
struct BackwardRunner {
  Status (*batched)(const MhaBackwardArgs&, hipStream_t);
  Status (*grouped)(const MhaBackwardGroupedArgs&, hipStream_t);
};

/// MhaBackward, with its choice of kernels.
template <class Args>
Status run_library_backward(const Args& args, hipStream_t stream) {
  Workspace workspace(MhaBackwardWorkspaceSize(args));
  return finish(MhaBackward(args, workspace.data(), workspace.bytes(), stream), stream, workspace);
}
inline constexpr BackwardRunner library_backward{run_library_backward<MhaBackwardArgs>,
                                                 run_library_backward<MhaBackwardGroupedArgs>};

/// A device op.
template <class Op, class Args>
Status run_op(const Args& args, hipStream_t stream) {
  auto argument = Op::MakeArgument(args);
  if (Status status = Op::CheckArgument(argument); !status.ok()) return status;
  Workspace workspace(Op::GetWorkSpaceSize(argument));
  Op::SetWorkSpacePointer(argument, workspace.data());
  return finish(Op::Launch(argument, stream), stream, workspace);
}
template <class Batched, class Grouped>
constexpr BackwardRunner op_runner() {
  return {run_op<Batched, MhaBackwardArgs>, run_op<Grouped, MhaBackwardGroupedArgs>};
}

/// Uploads, and runs the forward whose O and LSE the backward reads. The outputs of the backward,
/// the keep mask among them, are NaN patterns afterwards.
inline Status run_forward_of(BackwardProblem& problem) {
  problem.upload();
  if (Status status = run_batched(problem.forward.device_args()); !status.ok()) return status;
  problem.forward.download();
  problem.adopt_forward();
  problem.upload();
  return {};
}

/// Forward, backward, download, checks; "" or what went wrong.
inline std::string run_and_check(BackwardProblem& problem,
                                 const BackwardRunner& runner = library_backward) {
  if (Status status = run_forward_of(problem); !status.ok()) return status.message();
  if (Status status = runner.batched(problem.device_args(), nullptr); !status.ok()) {
    return "not run: " + status.message();
  }
  problem.download();
  return check_backward(problem);
}

inline MhaBackwardGroupedArgs grouped_args(const std::vector<BackwardProblem>& problems) {
  MhaBackwardGroupedArgs args;
  for (const auto& problem : problems) args.groups.push_back(problem.device_args());
  return args;
}

/// The forward of a list, as one grouped call.
inline Status run_forward_of(std::vector<BackwardProblem>& problems) {
  MhaForwardGroupedArgs args;
  for (auto& problem : problems) {
    problem.upload();
    args.groups.push_back(problem.forward.device_args());
  }
  if (Status status = run_grouped(args); !status.ok()) return status;
  for (auto& problem : problems) {
    problem.forward.download();
    problem.adopt_forward();
    problem.upload();
  }
  return {};
}

/// Downloads and checks every group; dropout sequences count on from problem to problem.
inline std::string check_groups(std::vector<BackwardProblem>& problems) {
  std::string failures;
  std::uint64_t sequence_base = 0;
  for (std::size_t g = 0; g < problems.size(); ++g) {
    problems[g].download();
    const std::string failure = check_backward(problems[g], sequence_base);
    if (!failure.empty()) failures += "group " + std::to_string(g) + ": " + failure;
    const MhaForwardArgs& shape = problems[g].forward.shape;
    sequence_base += static_cast<std::uint64_t>(shape.batch * shape.heads_q);
  }
  return failures;
}

/// The same as run_and_check for one grouped call.
inline std::string run_and_check_grouped(std::vector<BackwardProblem>& problems,
                                         const BackwardRunner& runner = library_backward) {
  if (Status status = run_forward_of(problems); !status.ok()) return status.message();
  if (Status status = runner.grouped(grouped_args(problems), nullptr); !status.ok()) {
    return "not run: " + status.message();
  }
  return check_groups(problems);
}

/// The bits of all gradients, one tensor after the other.
inline std::vector<std::byte> gradient_bits(const BackwardProblem& problem) {
  std::vector<std::byte> bits;
  for (const TestTensor* tensor : {&problem.dq, &problem.dk, &problem.dv, &problem.dbias}) {
    if (!*tensor) continue;
    const std::byte* first = tensor->buffer->result();
    bits.insert(bits.end(), first, first + tensor->buffer->bytes());
  }
  return bits;
}

}  // namespace flashxdl::test
