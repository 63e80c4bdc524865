#pragma once
/// \file
/// Runs the library's forward on problems, batched or as one grouped call, and waits.

#include <cstdint>
#include <string>
#include <vector>

#include "flashxdl/flashxdl.hpp"
#include "support/forward_check.hpp"
#include "support/forward_problem.hpp"

namespace flashxdl::test {

/// Workspace for the time of a call: NaN patterns, with a guarded surrounding.
class Workspace {
public:
  explicit Workspace(std::size_t bytes) : buffer_(bytes, Placement::device) { buffer_.upload(); }

  void* data() const { return buffer_.bytes() > 0 ? buffer_.device() : nullptr; }
  std::size_t bytes() const { return buffer_.bytes(); }
  /// Of work that is done: nothing was written before or behind the workspace.
  bool kept_within() {
    buffer_.download();
    const auto all = [](std::size_t bytes) { return std::vector<bool>(bytes, true); };
    return buffer_.first_change(all) == Buffer::no_change;
  }

private:
  Buffer buffer_;
};

/// The outcome of a call and of what it launched.
inline Status finish(Status status, hipStream_t stream) {
  if (!status.ok()) return status;
  const hipError_t error = hipStreamSynchronize(stream);
  if (error == hipSuccess) return {};
  return {StatusCode::runtime_error, std::string("after the launch: ") + hipGetErrorString(error)};
}
inline Status finish(Status status, hipStream_t stream, Workspace& workspace) {
  status = finish(status, stream);
  if (!status.ok() || workspace.kept_within()) return status;
  return {StatusCode::runtime_error, "memory beside the workspace was overwritten"};
}

inline Status run_batched(const MhaForwardArgs& args, hipStream_t stream = nullptr) {
  return finish(MhaForward(args, stream), stream);
}

inline Status run_grouped(const MhaForwardGroupedArgs& args, hipStream_t stream = nullptr) {
  Workspace workspace(MhaForwardWorkspaceSize(args));
  return finish(MhaForward(args, workspace.data(), workspace.bytes(), stream), stream, workspace);
}

/// Uploads, runs, downloads and checks; "" or what went wrong.
inline std::string run_and_check(ForwardProblem& problem) {
  problem.upload();
  const Status status = run_batched(problem.device_args());
  if (!status.ok()) return "not run: " + status.message();
  problem.download();
  return check_forward(problem);
}

inline MhaForwardGroupedArgs grouped_args(const std::vector<ForwardProblem>& problems) {
  MhaForwardGroupedArgs args;
  for (const auto& problem : problems) args.groups.push_back(problem.device_args());
  return args;
}

/// The same for one grouped call; dropout sequences count on from problem to problem.
inline std::string run_and_check_grouped(std::vector<ForwardProblem>& problems) {
  for (auto& problem : problems) problem.upload();
  const Status status = run_grouped(grouped_args(problems));
  if (!status.ok()) return "not run: " + status.message();
  std::string failures;
  std::uint64_t sequence_base = 0;
  for (std::size_t g = 0; g < problems.size(); ++g) {
    problems[g].download();
    const std::string failure = check_forward(problems[g], sequence_base);
    if (!failure.empty()) failures += "group " + std::to_string(g) + ": " + failure;
    sequence_base +=
        static_cast<std::uint64_t>(problems[g].shape.batch * problems[g].shape.heads_q);
  }
  return failures;
}

}  // namespace flashxdl::test
