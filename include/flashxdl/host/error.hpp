#pragma once
/// \file
/// HIP's errors: the calling thread's last error, names and sentences.

#include <cstdio>
#include <iterator>
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

struct ErrorText {
  hipError_t code;
  const char* name;
  const char* sentence;
};

inline constexpr ErrorText error_texts[] = {
    {hipSuccess, "hipSuccess", "no error"},
    {hipErrorInvalidValue, "hipErrorInvalidValue", "invalid argument"},
    {hipErrorOutOfMemory, "hipErrorOutOfMemory", "out of memory"},
    {hipErrorNotInitialized, "hipErrorNotInitialized", "the runtime is not initialised"},
    {hipErrorDeinitialized, "hipErrorDeinitialized", "the runtime has shut down"},
    {hipErrorInvalidConfiguration, "hipErrorInvalidConfiguration",
     "invalid grid, block or LDS size of a launch"},
    {hipErrorInvalidSymbol, "hipErrorInvalidSymbol", "no such device symbol"},
    {hipErrorInvalidDevicePointer, "hipErrorInvalidDevicePointer", "not a device pointer"},
    {hipErrorInvalidMemcpyDirection, "hipErrorInvalidMemcpyDirection",
     "invalid direction of a copy"},
    {hipErrorInvalidDeviceFunction, "hipErrorInvalidDeviceFunction", "invalid kernel function"},
    {hipErrorNoDevice, "hipErrorNoDevice", "there is no device"},
    {hipErrorInvalidDevice, "hipErrorInvalidDevice", "no such device"},
    {hipErrorInvalidHandle, "hipErrorInvalidHandle", "invalid stream, event or graph"},
    {hipErrorIllegalState, "hipErrorIllegalState",
     "the stream or graph is not in a state that permits this"},
    {hipErrorNotReady, "hipErrorNotReady", "not finished yet"},
    {hipErrorIllegalAddress, "hipErrorIllegalAddress", "memory outside an allocation was written"},
    {hipErrorLaunchOutOfResources, "hipErrorLaunchOutOfResources",
     "the launch needs more resources than there are"},
    {hipErrorLaunchFailure, "hipErrorLaunchFailure", "a kernel failed; its message is on stderr"},
    {hipErrorNotSupported, "hipErrorNotSupported", "not supported on the CPU target"},
    {hipErrorStreamCaptureUnsupported, "hipErrorStreamCaptureUnsupported",
     "not permitted while a stream is capturing"},
    {hipErrorStreamCaptureInvalidated, "hipErrorStreamCaptureInvalidated",
     "an earlier error has invalidated the capture"},
    {hipErrorStreamCaptureMerge, "hipErrorStreamCaptureMerge", "would merge two captures"},
    {hipErrorStreamCaptureUnmatched, "hipErrorStreamCaptureUnmatched",
     "the capture did not begin on this stream"},
    {hipErrorStreamCaptureUnjoined, "hipErrorStreamCaptureUnjoined",
     "a stream that joined the capture was not joined back into its origin"},
    {hipErrorStreamCaptureIsolation, "hipErrorStreamCaptureIsolation",
     "would make captured work depend on work outside the capture"},
    {hipErrorStreamCaptureImplicit, "hipErrorStreamCaptureImplicit",
     "the null stream cannot take part while a blocking stream is capturing"},
    {hipErrorCapturedEvent, "hipErrorCapturedEvent", "the event was recorded in a capture"},
    {hipErrorStreamCaptureWrongThread, "hipErrorStreamCaptureWrongThread",
     "the capture began on another thread"},
    {hipErrorUnknown, "hipErrorUnknown", "unknown error"},
};

/// Of the last entry, unknown, for a number that is no error.
constexpr const ErrorText& error_text(hipError_t code) {
  for (const ErrorText& text : error_texts) {
    if (text.code == code) return text;
  }
  return error_texts[std::size(error_texts) - 1];
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
  return flashxdl::host::detail::error_text(error).name;
}

inline const char* hipGetErrorString(hipError_t error) {
  return flashxdl::host::detail::error_text(error).sentence;
}
