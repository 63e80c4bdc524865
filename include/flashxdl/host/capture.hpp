#pragma once
/// \file
/// Recording of streams for graphs. Work of all streams of a capture goes to one list in the order
/// of the calls, which respects every dependency; replay runs the list from front to back. What
/// each stream has seen of the others is followed only to tell forks that were never joined.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "flashxdl/host/types.hpp"

namespace flashxdl::host::detail {

class Stream;

/// One entry of a stream or graph.
using Work = std::function<hipError_t()>;

/// For each stream, how much of the capture's list is known to come before.
using CaptureClock = std::map<const Stream*, std::size_t>;

/// Guarded by Streams' lock.
class Capture {
public:
  Capture(const Stream* origin, hipStreamCaptureMode mode) : origin_(origin), mode_(mode) {
    clocks_[origin];
  }

  hipError_t add(const Stream* stream, Work work) {
    if (invalid_) return hipErrorStreamCaptureInvalidated;
    works_.push_back(std::move(work));
    clocks_[stream][stream] = works_.size();
    return hipSuccess;
  }

  CaptureClock clock(const Stream* stream) const { return clocks_.at(stream); }

  /// What `stream` does from now on comes after what `clock` has seen.
  void join(const Stream* stream, const CaptureClock& clock) {
    for (const auto& [other, seen] : clock) {
      auto& known = clocks_[stream][other];
      known = std::max(known, seen);
    }
  }

  /// Has the origin seen everything?
  bool joined() const {
    const CaptureClock& seen = clocks_.at(origin_);
    return std::all_of(clocks_.begin(), clocks_.end(), [&](const auto& entry) {
      const auto last = entry.second.find(entry.first);
      if (last == entry.second.end()) return true;
      const auto known = seen.find(entry.first);
      return known != seen.end() && known->second >= last->second;
    });
  }

  /// Does the capture forbid this thread the calls that synchronise or allocate?
  bool forbids_unsafe_calls() const {
    return mode_ == hipStreamCaptureModeGlobal ||
           (mode_ == hipStreamCaptureModeThreadLocal && thread_ == std::this_thread::get_id());
  }

  void invalidate() { invalid_ = true; }
  bool invalid() const { return invalid_; }
  const Stream* origin() const { return origin_; }
  hipStreamCaptureMode mode() const { return mode_; }
  std::thread::id thread() const { return thread_; }
  bool ended() const { return ended_; }
  /// Ends the capture and gives what it recorded.
  std::vector<Work> end() {
    ended_ = true;
    return std::move(works_);
  }

private:
  const Stream* origin_;
  hipStreamCaptureMode mode_;
  std::thread::id thread_ = std::this_thread::get_id();
  bool invalid_ = false;
  bool ended_ = false;
  std::vector<Work> works_;
  std::map<const Stream*, CaptureClock> clocks_;
};

}  // namespace flashxdl::host::detail
