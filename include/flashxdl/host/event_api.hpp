#pragma once
/// \file
/// hipEvent*, hipStreamWaitEvent.

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "flashxdl/host/error.hpp"
#include "flashxdl/host/stream_api.hpp"
#include "flashxdl/host/types.hpp"

namespace flashxdl::host::detail {

/// One hipEventRecord. Guarded by Streams' lock but for `time`, which is written before the
/// ticket's completion and read after it.
struct EventRecord {
  Ticket ticket;
  std::chrono::steady_clock::time_point time;
};

struct Event {
  unsigned flags = 0;
  std::shared_ptr<EventRecord> record;  ///< of the latest hipEventRecord outside captures
  std::shared_ptr<Capture> capture;     ///< set if the latest hipEventRecord was captured
  CaptureClock capture_clock;

  bool recorded() const { return record != nullptr; }
  bool done() const { return !record || record->ticket.stream->done(record->ticket.number); }
};

/// All events; guarded by Streams' lock.
class Events {
public:
  static hipEvent_t handle_of(Event& event) { return reinterpret_cast<hipEvent_t>(&event); }

  hipEvent_t create(unsigned flags) {
    events_.push_back(std::make_shared<Event>());
    events_.back()->flags = flags;
    return handle_of(*events_.back());
  }
  /// Null for a handle that is no event.
  std::shared_ptr<Event> find(hipEvent_t handle) const {
    const auto found = std::find_if(events_.begin(), events_.end(),
                                    [&](const auto& e) { return handle_of(*e) == handle; });
    return found == events_.end() ? nullptr : *found;
  }
  void destroy(const std::shared_ptr<Event>& event) { std::erase(events_, event); }

private:
  std::vector<std::shared_ptr<Event>> events_;
};

inline Events& events() {
  static auto* instance = new Events;  // outlives every static object
  return *instance;
}

inline hipError_t record_event(hipEvent_t event_handle, hipStream_t stream_handle) {
  auto& all = streams();
  const auto lock = all.lock();
  const auto event = events().find(event_handle);
  const auto stream = all.find(stream_handle);
  if (!event || !stream) return hipErrorInvalidResourceHandle;
  if (all.stopped()) return hipErrorDeinitialized;
  if (stream->capture) {
    if (stream->capture->invalid()) return hipErrorStreamCaptureInvalidated;
    event->capture = stream->capture;
    event->capture_clock = stream->capture->clock(stream.get());
    return hipSuccess;
  }
  if (all.is_null(stream) && all.null_stream_forbidden()) return hipErrorStreamCaptureImplicit;
  auto record = std::make_shared<EventRecord>();
  record->ticket = all.submit(stream, [record] {
    record->time = std::chrono::steady_clock::now();
    return hipSuccess;
  });
  event->record = std::move(record);
  event->capture.reset();
  return hipSuccess;
}

/// A capturing stream waits for captured work, any other stream for submitted work.
inline hipError_t wait_event(hipStream_t stream_handle, hipEvent_t event_handle) {
  auto& all = streams();
  const auto lock = all.lock();
  const auto event = events().find(event_handle);
  const auto stream = all.find(stream_handle);
  if (!event || !stream) return hipErrorInvalidResourceHandle;
  if (all.stopped()) return hipErrorDeinitialized;
  if (event->capture) {
    if (event->capture->ended()) return hipErrorCapturedEvent;
    if (all.is_null(stream)) return hipErrorStreamCaptureImplicit;
    if (stream->capture && stream->capture != event->capture) {
      stream->capture->invalidate();
      return hipErrorStreamCaptureMerge;
    }
    stream->capture = event->capture;
    stream->capture->join(stream.get(), event->capture_clock);
    return hipSuccess;
  }
  if (stream->capture) {
    if (!event->recorded()) return hipSuccess;
    stream->capture->invalidate();
    return hipErrorStreamCaptureIsolation;
  }
  if (event->done()) return hipSuccess;
  all.submit(stream, nullptr, {event->record->ticket});
  return hipSuccess;
}

}  // namespace flashxdl::host::detail

inline hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned flags) {
  namespace d = flashxdl::host::detail;
  constexpr unsigned known = hipEventBlockingSync | hipEventDisableTiming | hipEventInterprocess;
  if (event == nullptr || (flags & ~known) != 0) return d::report(hipErrorInvalidValue);
  const auto lock = d::streams().lock();
  *event = d::events().create(flags);
  return hipSuccess;
}

inline hipError_t hipEventCreate(hipEvent_t* event) {
  return hipEventCreateWithFlags(event, hipEventDefault);
}

inline hipError_t hipEventDestroy(hipEvent_t handle) {
  namespace d = flashxdl::host::detail;
  const auto lock = d::streams().lock();
  const auto event = d::events().find(handle);
  if (!event) return d::report(hipErrorInvalidResourceHandle);
  d::events().destroy(event);
  return hipSuccess;
}

inline hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream = nullptr) {
  namespace d = flashxdl::host::detail;
  return d::report(d::record_event(event, stream));
}

inline hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags = 0) {
  namespace d = flashxdl::host::detail;
  if (flags != 0) return d::report(hipErrorInvalidValue);
  return d::report(d::wait_event(stream, event));
}

inline hipError_t hipEventSynchronize(hipEvent_t handle) {
  namespace d = flashxdl::host::detail;
  auto& all = d::streams();
  auto lock = all.lock();
  const auto event = d::events().find(handle);
  if (!event) return d::report(hipErrorInvalidResourceHandle);
  if (event->capture) return d::report(hipErrorCapturedEvent);
  if (!event->recorded()) return hipSuccess;
  const auto record = event->record;
  all.wait(lock, record->ticket);
  return d::report(d::take_failure(all, record->ticket.stream));
}

inline hipError_t hipEventQuery(hipEvent_t handle) {
  namespace d = flashxdl::host::detail;
  const auto lock = d::streams().lock();
  const auto event = d::events().find(handle);
  if (!event) return d::report(hipErrorInvalidResourceHandle);
  if (event->capture) return d::report(hipErrorCapturedEvent);
  return event->done() ? hipSuccess : hipErrorNotReady;
}

inline hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t start, hipEvent_t stop) {
  namespace d = flashxdl::host::detail;
  if (milliseconds == nullptr) return d::report(hipErrorInvalidValue);
  const auto lock = d::streams().lock();
  const auto from = d::events().find(start);
  const auto to = d::events().find(stop);
  if (!from || !to) return d::report(hipErrorInvalidResourceHandle);
  if (((from->flags | to->flags) & hipEventDisableTiming) != 0 || !from->recorded() ||
      !to->recorded()) {
    return d::report(hipErrorInvalidHandle);
  }
  if (!from->done() || !to->done()) return hipErrorNotReady;
  *milliseconds =
      std::chrono::duration<float, std::milli>(to->record->time - from->record->time).count();
  return hipSuccess;
}
