#pragma once
/// \file
/// hipGetDevice*, for the one device there is: this machine's CPU.

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "flashxdl/host/error.hpp"
#include "flashxdl/host/kernel.hpp"
#include "flashxdl/host/memory.hpp"
#include "flashxdl/host/types.hpp"

namespace flashxdl::host::detail {

inline void set_text(char (&field)[256], std::string_view text) {
  *std::copy_n(text.data(), std::min(text.size(), sizeof(field) - 1), field) = '\0';
}

inline hipDeviceProp_t device_properties() {
  hipDeviceProp_t p{};
  set_text(p.name, "flashxdl host target (a CPU emulates the GPU)");
  set_text(p.gcnArchName, "host");
  p.totalGlobalMem = Memory::total_bytes();
  p.sharedMemPerBlock = 65536;
  p.maxSharedMemoryPerMultiProcessor = 65536;
  p.regsPerBlock = 65536;
  p.warpSize = static_cast<int>(wave_size);
  p.maxThreadsPerBlock = static_cast<int>(max_block_threads);
  p.maxThreadsPerMultiProcessor = static_cast<int>(max_block_threads);
  std::fill_n(p.maxThreadsDim, 3, static_cast<int>(max_block_threads));
  p.maxGridSize[0] = 2147483647;
  p.maxGridSize[1] = 65535;
  p.maxGridSize[2] = 65535;
  p.totalConstMem = 65536;
  p.multiProcessorCount = static_cast<int>(worker_count());
  p.concurrentKernels = 1;
  p.integrated = 1;
  return p;
}

}  // namespace flashxdl::host::detail

inline hipError_t hipGetDeviceCount(int* count) {
  namespace d = flashxdl::host::detail;
  if (count == nullptr) return d::report(hipErrorInvalidValue);
  *count = 1;
  return hipSuccess;
}

inline hipError_t hipGetDevice(int* device) {
  namespace d = flashxdl::host::detail;
  if (device == nullptr) return d::report(hipErrorInvalidValue);
  *device = 0;
  return hipSuccess;
}

inline hipError_t hipSetDevice(int device) {
  namespace d = flashxdl::host::detail;
  return d::report(device == 0 ? hipSuccess : hipErrorInvalidDevice);
}

inline hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int device) {
  namespace d = flashxdl::host::detail;
  if (properties == nullptr) return d::report(hipErrorInvalidValue);
  if (device != 0) return d::report(hipErrorInvalidDevice);
  *properties = d::device_properties();
  return hipSuccess;
}

inline hipError_t hipDeviceGetAttribute(int* value, hipDeviceAttribute_t attribute, int device) {
  namespace d = flashxdl::host::detail;
  if (value == nullptr) return d::report(hipErrorInvalidValue);
  if (device != 0) return d::report(hipErrorInvalidDevice);
  const hipDeviceProp_t p = d::device_properties();
  const auto give = [value](auto number) {
    *value = static_cast<int>(number);
    return hipSuccess;
  };
  switch (attribute) {
    case hipDeviceAttributeConcurrentKernels:
      return give(p.concurrentKernels);
    case hipDeviceAttributeIntegrated:
      return give(p.integrated);
    case hipDeviceAttributeL2CacheSize:
      return give(p.l2CacheSize);
    case hipDeviceAttributeComputeCapabilityMajor:
      return give(p.major);
    case hipDeviceAttributeComputeCapabilityMinor:
      return give(p.minor);
    case hipDeviceAttributeManagedMemory:
      return give(p.managedMemory);
    case hipDeviceAttributeMaxBlockDimX:
      return give(p.maxThreadsDim[0]);
    case hipDeviceAttributeMaxBlockDimY:
      return give(p.maxThreadsDim[1]);
    case hipDeviceAttributeMaxBlockDimZ:
      return give(p.maxThreadsDim[2]);
    case hipDeviceAttributeMaxGridDimX:
      return give(p.maxGridSize[0]);
    case hipDeviceAttributeMaxGridDimY:
      return give(p.maxGridSize[1]);
    case hipDeviceAttributeMaxGridDimZ:
      return give(p.maxGridSize[2]);
    case hipDeviceAttributeMaxThreadsPerBlock:
      return give(p.maxThreadsPerBlock);
    case hipDeviceAttributeMaxThreadsPerMultiProcessor:
      return give(p.maxThreadsPerMultiProcessor);
    case hipDeviceAttributeMultiprocessorCount:
      return give(p.multiProcessorCount);
    case hipDeviceAttributeMaxRegistersPerBlock:
      return give(p.regsPerBlock);
    case hipDeviceAttributeMaxSharedMemoryPerBlock:
      return give(p.sharedMemPerBlock);
    case hipDeviceAttributeMaxSharedMemoryPerMultiprocessor:
      return give(p.maxSharedMemoryPerMultiProcessor);
    case hipDeviceAttributeTotalConstantMemory:
      return give(p.totalConstMem);
    case hipDeviceAttributeTotalGlobalMem:  // HIP fills an int here as well: it saturates
      return give(std::min<std::size_t>(p.totalGlobalMem, 0x7fffffff));
    case hipDeviceAttributeUnifiedAddressing:
      return give(1);
    case hipDeviceAttributeWarpSize:
      return give(p.warpSize);
  }
  return d::report(hipErrorInvalidValue);
}
