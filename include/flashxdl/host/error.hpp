#pragma once
/// \file
/// HIP's errors: the calling thread's last error, names and sentences.

#include <cstdio>
#include <mutex>
#include <string>

#include "flashxdl/host/types.hpp"

namespace flashxdl::host {

namespace detail {

inline constinit thread_local hipError_t last_error = hipSuccess;

/// Every API function returns through here.
inline hipError_t report(hipError_t error) {
  if (error != hipSuccess) last_error = error;
  return error;
}

struct LaunchFailures {
  std::mutex mutex;
  std::string last;
};

inline LaunchFailures& launch_failures() {
  static auto* failures = new LaunchFailures;  // outlives every static object
  return *failures;
}

inline void record_launch_failure(const std::string& message) {
  std::fprintf(stderr, "flashxdl host: %s\n", message.c_str());
  auto& failures = launch_failures();
  const std::lock_guard lock(failures.mutex);
  failures.last = message;
}

}  // namespace detail

/// What the most recent failed launch said; empty if none failed.
inline std::string last_launch_failure() {
  auto& failures = detail::launch_failures();
  const std::lock_guard lock(failures.mutex);
  return failures.last;
}

}  // namespace flashxdl::host

inline const char* hipGetErrorName(hipError_t error) {
  switch (error) {
    case hipSuccess:
      return "hipSuccess";
    case hipErrorInvalidValue:
      return "hipErrorInvalidValue";
    case hipErrorOutOfMemory:
      return "hipErrorOutOfMemory";
    case hipErrorNotInitialized:
      return "hipErrorNotInitialized";
    case hipErrorDeinitialized:
      return "hipErrorDeinitialized";
    case hipErrorInvalidConfiguration:
      return "hipErrorInvalidConfiguration";
    case hipErrorInvalidSymbol:
      return "hipErrorInvalidSymbol";
    case hipErrorInvalidDevicePointer:
      return "hipErrorInvalidDevicePointer";
    case hipErrorInvalidMemcpyDirection:
      return "hipErrorInvalidMemcpyDirection";
    case hipErrorInvalidDeviceFunction:
      return "hipErrorInvalidDeviceFunction";
    case hipErrorNoDevice:
      return "hipErrorNoDevice";
    case hipErrorInvalidDevice:
      return "hipErrorInvalidDevice";
    case hipErrorInvalidHandle:
      return "hipErrorInvalidHandle";
    case hipErrorIllegalState:
      return "hipErrorIllegalState";
    case hipErrorNotReady:
      return "hipErrorNotReady";
    case hipErrorIllegalAddress:
      return "hipErrorIllegalAddress";
    case hipErrorLaunchOutOfResources:
      return "hipErrorLaunchOutOfResources";
    case hipErrorLaunchFailure:
      return "hipErrorLaunchFailure";
    case hipErrorNotSupported:
      return "hipErrorNotSupported";
    case hipErrorStreamCaptureUnsupported:
      return "hipErrorStreamCaptureUnsupported";
    case hipErrorStreamCaptureInvalidated:
      return "hipErrorStreamCaptureInvalidated";
    case hipErrorStreamCaptureMerge:
      return "hipErrorStreamCaptureMerge";
    case hipErrorStreamCaptureUnmatched:
      return "hipErrorStreamCaptureUnmatched";
    case hipErrorStreamCaptureUnjoined:
      return "hipErrorStreamCaptureUnjoined";
    case hipErrorStreamCaptureIsolation:
      return "hipErrorStreamCaptureIsolation";
    case hipErrorStreamCaptureImplicit:
      return "hipErrorStreamCaptureImplicit";
    case hipErrorCapturedEvent:
      return "hipErrorCapturedEvent";
    case hipErrorStreamCaptureWrongThread:
      return "hipErrorStreamCaptureWrongThread";
    case hipErrorUnknown:
      break;
  }
  return "hipErrorUnknown";
}

inline const char* hipGetErrorString(hipError_t error) {
  switch (error) {
    case hipSuccess:
      return "no error";
    case hipErrorInvalidValue:
      return "invalid argument";
    case hipErrorOutOfMemory:
      return "out of memory";
    case hipErrorDeinitialized:
      return "the runtime has shut down";
    case hipErrorInvalidConfiguration:
      return "invalid grid, block or LDS size of a launch";
    case hipErrorInvalidDevicePointer:
      return "not a device pointer";
    case hipErrorInvalidMemcpyDirection:
      return "invalid direction of a copy";
    case hipErrorInvalidDeviceFunction:
      return "invalid kernel function";
    case hipErrorInvalidDevice:
      return "no such device";
    case hipErrorInvalidHandle:
      return "invalid stream, event or graph";
    case hipErrorNotReady:
      return "not finished yet";
    case hipErrorIllegalAddress:
      return "memory outside an allocation was written";
    case hipErrorLaunchFailure:
      return "a kernel failed; its message is on stderr";
    case hipErrorNotSupported:
      return "not supported on the CPU target";
    case hipErrorStreamCaptureUnsupported:
      return "not permitted while a stream is capturing";
    case hipErrorStreamCaptureInvalidated:
      return "an earlier error has invalidated the capture";
    case hipErrorStreamCaptureMerge:
      return "would merge two captures";
    case hipErrorStreamCaptureUnmatched:
      return "the capture did not begin on this stream";
    case hipErrorStreamCaptureUnjoined:
      return "a stream that joined the capture was not joined back into its origin";
    case hipErrorStreamCaptureIsolation:
      return "would make captured work depend on work outside the capture";
    case hipErrorStreamCaptureImplicit:
      return "the null stream cannot take part while a blocking stream is capturing";
    case hipErrorCapturedEvent:
      return "the event was recorded in a capture";
    case hipErrorStreamCaptureWrongThread:
      return "the capture began on another thread";
    default:
      return hipGetErrorName(error);
  }
}
