#pragma once
/// \file
/// hipMalloc, hipMemcpy, hipMemset and their kind.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>

#include "flashxdl/host/error.hpp"
#include "flashxdl/host/memory.hpp"
#include "flashxdl/host/stream_api.hpp"
#include "flashxdl/host/types.hpp"

namespace flashxdl::host::detail {

/// A range for a copy or fill: `must_be_device` refuses plain host memory, and a range that begins
/// in an allocation must end in it.
inline bool valid_range(const void* pointer, std::size_t bytes, bool must_be_device) {
  if (pointer == nullptr) return false;
  const Allocation a = memory().find(pointer);
  if (a.data == nullptr) return !must_be_device;
  return bytes <=
         a.bytes - static_cast<std::size_t>(static_cast<const std::byte*>(pointer) - a.data);
}

inline hipError_t check_copy(const void* to, const void* from, std::size_t bytes,
                             hipMemcpyKind kind) {
  if (kind < hipMemcpyHostToHost || kind > hipMemcpyDefault) return hipErrorInvalidMemcpyDirection;
  if (bytes == 0) return hipSuccess;
  const bool to_device = kind == hipMemcpyHostToDevice || kind == hipMemcpyDeviceToDevice;
  const bool from_device = kind == hipMemcpyDeviceToHost || kind == hipMemcpyDeviceToDevice;
  const bool valid = valid_range(to, bytes, to_device) && valid_range(from, bytes, from_device);
  return valid ? hipSuccess : hipErrorInvalidValue;
}

inline Work copy_work(void* to, const void* from, std::size_t bytes) {
  return [=] {
    if (bytes != 0) std::memmove(to, from, bytes);
    return hipSuccess;
  };
}

inline Work fill_work(void* to, int value, std::size_t bytes) {
  return [=] {
    if (bytes != 0) std::memset(to, value, bytes);
    return hipSuccess;
  };
}

inline hipError_t check_fill(const void* to, std::size_t bytes) {
  return bytes == 0 || valid_range(to, bytes, true) ? hipSuccess : hipErrorInvalidValue;
}

inline hipError_t allocate(void** pointer, std::size_t bytes, bool on_device, unsigned flags) {
  if (pointer == nullptr) return hipErrorInvalidValue;
  {
    auto& all = streams();
    const auto lock = all.lock();
    if (const auto error = refuse_during_capture(all); error != hipSuccess) return error;
  }
  return memory().allocate(pointer, bytes, on_device, flags);
}

/// Waits for the device first: queued work may use the memory.
inline hipError_t release(void* pointer, bool on_device) {
  if (pointer == nullptr) return hipSuccess;
  {
    auto& all = streams();
    auto lock = all.lock();
    if (const auto error = refuse_during_capture(all); error != hipSuccess) return error;
    wait_for_all(all, lock);
  }
  return memory().release(pointer, on_device);
}

}  // namespace flashxdl::host::detail

/// 256-byte aligned, every 16-, 32- and 64-bit word a NaN. 0 bytes give a null pointer.
inline hipError_t hipMalloc(void** pointer, std::size_t bytes) {
  namespace d = flashxdl::host::detail;
  return d::report(d::allocate(pointer, bytes, true, 0));
}

template <class T>
inline hipError_t hipMalloc(T** pointer, std::size_t bytes) {
  return hipMalloc(reinterpret_cast<void**>(pointer), bytes);
}

inline hipError_t hipFree(void* pointer) {
  namespace d = flashxdl::host::detail;
  return d::report(d::release(pointer, true));
}

inline hipError_t hipHostMalloc(void** pointer, std::size_t bytes,
                                unsigned flags = hipHostMallocDefault) {
  namespace d = flashxdl::host::detail;
  return d::report(d::allocate(pointer, bytes, false, flags));
}

template <class T>
inline hipError_t hipHostMalloc(T** pointer, std::size_t bytes,
                                unsigned flags = hipHostMallocDefault) {
  return hipHostMalloc(reinterpret_cast<void**>(pointer), bytes, flags);
}

inline hipError_t hipHostFree(void* pointer) {
  namespace d = flashxdl::host::detail;
  return d::report(d::release(pointer, false));
}

/// Allocates at once, which no correct program can tell from allocating in stream order.
inline hipError_t hipMallocAsync(void** pointer, std::size_t bytes, hipStream_t stream) {
  namespace d = flashxdl::host::detail;
  if (pointer == nullptr) return d::report(hipErrorInvalidValue);
  {
    auto& all = d::streams();
    const auto lock = all.lock();
    const auto target = all.find(stream);
    if (!target) return d::report(hipErrorInvalidResourceHandle);
    if (target->capture) return d::report(hipErrorStreamCaptureUnsupported);
  }
  return d::report(d::memory().allocate(pointer, bytes, true));
}

template <class T>
inline hipError_t hipMallocAsync(T** pointer, std::size_t bytes, hipStream_t stream) {
  return hipMallocAsync(reinterpret_cast<void**>(pointer), bytes, stream);
}

inline hipError_t hipFreeAsync(void* pointer, hipStream_t stream) {
  namespace d = flashxdl::host::detail;
  if (pointer == nullptr) return hipSuccess;
  const d::Allocation found = d::memory().find(pointer);
  if (found.data != pointer || !found.on_device) return d::report(hipErrorInvalidValue);
  {
    auto& all = d::streams();
    const auto lock = all.lock();
    const auto target = all.find(stream);
    if (target && target->capture) return d::report(hipErrorStreamCaptureUnsupported);
  }
  return d::report(d::enqueue(stream, [pointer] { return d::memory().release(pointer, true); }));
}

/// Host memory is read, and written, when the stream gets there.
inline hipError_t hipMemcpyAsync(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind,
                                 hipStream_t stream = nullptr) {
  namespace d = flashxdl::host::detail;
  if (const auto error = d::check_copy(to, from, bytes, kind); error != hipSuccess) {
    return d::report(error);
  }
  return d::report(d::enqueue(stream, d::copy_work(to, from, bytes)));
}

inline hipError_t hipMemcpy(void* to, const void* from, std::size_t bytes, hipMemcpyKind kind) {
  namespace d = flashxdl::host::detail;
  if (const auto error = d::check_copy(to, from, bytes, kind); error != hipSuccess) {
    return d::report(error);
  }
  return d::report(d::run_synchronously(d::copy_work(to, from, bytes)));
}

inline hipError_t hipMemsetAsync(void* to, int value, std::size_t bytes,
                                 hipStream_t stream = nullptr) {
  namespace d = flashxdl::host::detail;
  if (const auto error = d::check_fill(to, bytes); error != hipSuccess) return d::report(error);
  return d::report(d::enqueue(stream, d::fill_work(to, value, bytes)));
}

inline hipError_t hipMemset(void* to, int value, std::size_t bytes) {
  namespace d = flashxdl::host::detail;
  if (const auto error = d::check_fill(to, bytes); error != hipSuccess) return d::report(error);
  return d::report(d::run_synchronously(d::fill_work(to, value, bytes)));
}

inline hipError_t hipMemGetInfo(std::size_t* free_bytes, std::size_t* total_bytes) {
  namespace d = flashxdl::host::detail;
  if (free_bytes == nullptr || total_bytes == nullptr) return d::report(hipErrorInvalidValue);
  *total_bytes = d::Memory::total_bytes();
  *free_bytes = *total_bytes - flashxdl::host::allocated_bytes();
  return hipSuccess;
}

/// Invalid value for memory that the runtime did not allocate.
inline hipError_t hipPointerGetAttributes(hipPointerAttribute_t* attributes, const void* pointer) {
  namespace d = flashxdl::host::detail;
  if (attributes == nullptr || pointer == nullptr) return d::report(hipErrorInvalidValue);
  const d::Allocation found = d::memory().find(pointer);
  if (found.data == nullptr) return d::report(hipErrorInvalidValue);
  auto* address = const_cast<void*>(pointer);
  *attributes = {};
  attributes->type = found.on_device ? hipMemoryTypeDevice : hipMemoryTypeHost;
  attributes->devicePointer = address;
  attributes->hostPointer = found.on_device ? nullptr : address;
  attributes->allocationFlags = found.flags;
  return hipSuccess;
}
