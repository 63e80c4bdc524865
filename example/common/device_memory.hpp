#pragma once
/// \file
/// HIP for the examples: errors become exceptions, memory and streams free themselves.

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "flashxdl/hip.hpp"

namespace flashxdl::example {

/// Throws what HIP says; `what` names the call.
inline void check_hip(hipError_t error, const char* what) {
  if (error == hipSuccess) return;
  throw std::runtime_error(std::string(what) + ": " + hipGetErrorName(error) + ", " +
                           hipGetErrorString(error));
}

/// Throws if this machine has no device that HIP can use.
inline void require_device() {
  int count = 0;
  const hipError_t error = hipGetDeviceCount(&count);
  if (error == hipErrorNoDevice || (error == hipSuccess && count == 0)) {
    throw std::runtime_error("no device was found: HIP sees no AMD GPU in this machine");
  }
  check_hip(error, "hipGetDeviceCount");
}

/// Bytes on the device.
class DeviceBuffer {
public:
  explicit DeviceBuffer(std::size_t bytes) : bytes_(bytes) {
    if (bytes > 0) check_hip(hipMalloc(&data_, bytes), "hipMalloc");
  }
  DeviceBuffer(DeviceBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  DeviceBuffer& operator=(DeviceBuffer&&) = delete;
  ~DeviceBuffer() {
    if (data_ != nullptr) static_cast<void>(hipFree(data_));
  }

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

/// Bytes on the device with their copy on the host.
class DeviceMemory {
public:
  explicit DeviceMemory(std::size_t bytes) : host_(bytes), device_(bytes) {}

  void* host() { return host_.data(); }
  const void* host() const { return host_.data(); }
  void* device() const { return device_.data(); }
  std::size_t bytes() const { return host_.size(); }

  void upload() { copy(device(), host(), hipMemcpyHostToDevice); }
  void download() { copy(host(), device(), hipMemcpyDeviceToHost); }
  /// Every byte 0xff: NaN in fp16, bf16 and fp32.
  void fill_with_nan() {
    if (!host_.empty()) check_hip(hipMemset(device(), 0xff, host_.size()), "hipMemset");
  }

private:
  void copy(void* to, const void* from, hipMemcpyKind kind) const {
    if (!host_.empty()) check_hip(hipMemcpy(to, from, host_.size(), kind), "hipMemcpy");
  }

  std::vector<std::byte> host_;
  DeviceBuffer device_;
};

class Stream {
public:
  Stream() { check_hip(hipStreamCreate(&stream_), "hipStreamCreate"); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  ~Stream() { static_cast<void>(hipStreamDestroy(stream_)); }

  hipStream_t get() const { return stream_; }
  void synchronize() const { check_hip(hipStreamSynchronize(stream_), "the kernel"); }

private:
  hipStream_t stream_ = nullptr;
};

}  // namespace flashxdl::example
