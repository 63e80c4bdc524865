#pragma once
/// \file
/// Where and how an invoker runs.

#include "flashxdl/core/status.hpp"
#include "flashxdl/device/launch.hpp"
#include "flashxdl/hip.hpp"

namespace flashxdl {

struct StreamConfig {
  hipStream_t stream = nullptr;
  bool time_kernel = false;
  int warm_up = 1;  ///< runs before the timed ones
  int repeat = 10;  ///< timed runs
};

namespace device {

/// Time between two points of a stream, by events.
class Timer {
public:
  explicit Timer(hipStream_t stream) : stream_(stream) {}
  ~Timer() {
    if (begin_ != nullptr) (void)hipEventDestroy(begin_);
    if (end_ != nullptr) (void)hipEventDestroy(end_);
  }
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;

  Status start() {
    if (auto status = check_hip(hipEventCreate(&begin_), "hipEventCreate"); !status) return status;
    if (auto status = check_hip(hipEventCreate(&end_), "hipEventCreate"); !status) return status;
    return check_hip(hipEventRecord(begin_, stream_), "hipEventRecord");
  }
  /// Waits for the work in between.
  Status stop() {
    if (auto status = check_hip(hipEventRecord(end_, stream_), "hipEventRecord"); !status)
      return status;
    if (auto status = check_hip(hipEventSynchronize(end_), "hipEventSynchronize"); !status)
      return status;
    return check_hip(hipEventElapsedTime(&milliseconds_, begin_, end_), "hipEventElapsedTime");
  }
  float milliseconds() const { return milliseconds_; }

private:
  hipStream_t stream_;
  hipEvent_t begin_ = nullptr;
  hipEvent_t end_ = nullptr;
  float milliseconds_ = 0.0f;
};

}  // namespace device
}  // namespace flashxdl
