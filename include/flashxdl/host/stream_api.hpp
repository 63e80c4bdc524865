#pragma once
/// \file
/// hipStream*, hipDeviceSynchronize, hipLaunchHostFunc and the last error, on streams.

#include <memory>
#include <utility>
#include <vector>

#include "flashxdl/host/error.hpp"
#include "flashxdl/host/stream.hpp"
#include "flashxdl/host/types.hpp"

namespace flashxdl::host::detail {

/// Appends work to the stream, or to the graph that the stream is capturing.
inline hipError_t enqueue(hipStream_t handle, Work work) {
  auto& all = streams();
  const auto lock = all.lock();
  const auto stream = all.find(handle);
  if (!stream) return hipErrorInvalidResourceHandle;
  if (all.stopped()) return hipErrorDeinitialized;
  if (stream->capture) return stream->capture->add(stream.get(), std::move(work));
  if (all.is_null(stream) && all.null_stream_forbidden()) return hipErrorStreamCaptureImplicit;
  all.submit(stream, std::move(work));
  return hipSuccess;
}

/// The failure that the stream has not reported yet; reported now. The caller holds the lock.
inline hipError_t take_failure(Stream& stream) {
  return std::exchange(stream.failure, hipSuccess);
}

/// The null stream answers for the blocking streams too.
inline hipError_t take_failure(Streams& all, const std::shared_ptr<Stream>& stream) {
  hipError_t failure = take_failure(*stream);
  if (!all.is_null(stream)) return failure;
  for (const auto& other : all.all()) {
    if (!other->blocking) continue;
    const hipError_t theirs = take_failure(*other);
    if (failure == hipSuccess) failure = theirs;
  }
  return failure;
}

/// Runs the work on the null stream and waits for it: hipMemcpy and its kind.
inline hipError_t run_synchronously(Work work) {
  auto& all = streams();
  auto lock = all.lock();
  if (all.stopped()) return hipErrorDeinitialized;
  if (all.null_stream_forbidden()) return hipErrorStreamCaptureImplicit;
  const auto stream = all.find(nullptr);
  all.wait(lock, all.submit(stream, std::move(work)));
  return take_failure(all, stream);
}

/// Waits for all work submitted so far, without reporting failures.
inline void wait_for_all(Streams& all, Streams::Lock& lock) {
  for (const auto& stream : all.all()) all.wait(lock, {stream, stream->submitted});
}

/// hipErrorStreamCaptureUnsupported while a capture forbids this thread to synchronise.
inline hipError_t refuse_during_capture(Streams& all) {
  return all.unsafe_calls_forbidden() ? hipErrorStreamCaptureUnsupported : hipSuccess;
}

}  // namespace flashxdl::host::detail

inline hipError_t hipStreamCreateWithFlags(hipStream_t* stream, unsigned flags) {
  namespace d = flashxdl::host::detail;
  if (stream == nullptr || flags > hipStreamNonBlocking) return d::report(hipErrorInvalidValue);
  auto& all = d::streams();
  const auto lock = all.lock();
  if (all.stopped()) return d::report(hipErrorDeinitialized);
  *stream = all.create(flags == hipStreamDefault);
  return hipSuccess;
}

inline hipError_t hipStreamCreate(hipStream_t* stream) {
  return hipStreamCreateWithFlags(stream, hipStreamDefault);
}

/// Priorities change nothing here.
inline hipError_t hipStreamCreateWithPriority(hipStream_t* stream, unsigned flags, int) {
  return hipStreamCreateWithFlags(stream, flags);
}

/// Waits for the stream's work.
inline hipError_t hipStreamDestroy(hipStream_t handle) {
  namespace d = flashxdl::host::detail;
  auto& all = d::streams();
  std::shared_ptr<d::Stream> stream;
  {
    const auto lock = all.lock();
    stream = handle == nullptr ? nullptr : all.find(handle);
    if (!stream) return d::report(hipErrorInvalidResourceHandle);
    if (stream->capture) stream->capture->invalidate();
    stream->capture.reset();
  }
  all.destroy(stream);
  return d::report(d::take_failure(*stream));
}

inline hipError_t hipStreamGetFlags(hipStream_t handle, unsigned* flags) {
  namespace d = flashxdl::host::detail;
  if (flags == nullptr) return d::report(hipErrorInvalidValue);
  auto& all = d::streams();
  const auto lock = all.lock();
  const auto stream = all.find(handle);
  if (!stream) return d::report(hipErrorInvalidResourceHandle);
  *flags = stream->blocking ? hipStreamDefault : hipStreamNonBlocking;
  return hipSuccess;
}

inline hipError_t hipStreamSynchronize(hipStream_t handle) {
  namespace d = flashxdl::host::detail;
  auto& all = d::streams();
  auto lock = all.lock();
  const auto stream = all.find(handle);
  if (!stream) return d::report(hipErrorInvalidResourceHandle);
  if (stream->capture) {
    stream->capture->invalidate();
    return d::report(hipErrorStreamCaptureUnsupported);
  }
  if (all.is_null(stream)) {
    if (all.null_stream_forbidden()) return d::report(hipErrorStreamCaptureImplicit);
    for (const auto& other : all.all()) {
      if (other->blocking) all.wait(lock, {other, other->submitted});
    }
  } else {
    all.wait(lock, {stream, stream->submitted});
  }
  return d::report(d::take_failure(all, stream));
}

inline hipError_t hipStreamQuery(hipStream_t handle) {
  namespace d = flashxdl::host::detail;
  auto& all = d::streams();
  const auto lock = all.lock();
  const auto stream = all.find(handle);
  if (!stream) return d::report(hipErrorInvalidResourceHandle);
  if (stream->capture) {
    stream->capture->invalidate();
    return d::report(hipErrorStreamCaptureUnsupported);
  }
  if (!stream->idle()) return hipErrorNotReady;
  return d::report(d::take_failure(all, stream));
}

inline hipError_t hipDeviceSynchronize() {
  namespace d = flashxdl::host::detail;
  auto& all = d::streams();
  auto lock = all.lock();
  if (const auto error = d::refuse_during_capture(all); error != hipSuccess) {
    return d::report(error);
  }
  d::wait_for_all(all, lock);
  hipError_t failure = hipSuccess;
  for (const auto& stream : all.all()) {
    const hipError_t theirs = d::take_failure(*stream);
    if (failure == hipSuccess) failure = theirs;
  }
  return d::report(failure);
}

inline hipError_t hipLaunchHostFunc(hipStream_t stream, hipHostFn_t function, void* user_data) {
  namespace d = flashxdl::host::detail;
  if (function == nullptr) return d::report(hipErrorInvalidValue);
  return d::report(d::enqueue(stream, [function, user_data] {
    function(user_data);
    return hipSuccess;
  }));
}

/// The last error of this thread's calls, or of work that failed on a stream unnoticed so far.
inline hipError_t hipPeekAtLastError() {
  namespace d = flashxdl::host::detail;
  if (d::last_error != hipSuccess) return d::last_error;
  auto& all = d::streams();
  const auto lock = all.lock();
  for (const auto& stream : all.all()) {
    if (stream->failure != hipSuccess) return stream->failure;
  }
  return hipSuccess;
}

/// hipPeekAtLastError, and forgets it.
inline hipError_t hipGetLastError() {
  namespace d = flashxdl::host::detail;
  if (d::last_error != hipSuccess) return std::exchange(d::last_error, hipSuccess);
  auto& all = d::streams();
  const auto lock = all.lock();
  for (const auto& stream : all.all()) {
    if (const auto failure = d::take_failure(*stream); failure != hipSuccess) return failure;
  }
  return hipSuccess;
}
