/// \file
/// Device and pinned memory, copies and fills of the CPU target.

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "flashxdl/host/lane.hpp"
#include "flashxdl/host/runtime_api.hpp"

namespace {

namespace host = flashxdl::host;

class HostMemory : public ::testing::Test {
protected:
  void SetUp() override { before_ = host::allocated_bytes(); }
  void TearDown() override {
    EXPECT_EQ(host::allocated_bytes(), before_) << "the test leaks device memory";
    (void)hipGetLastError();
  }
  std::size_t before_ = 0;
};

TEST_F(HostMemory, AllocationsAreAlignedCountedAndFullOfNaN) {
  for (const std::size_t bytes : {1u, 4u, 100u, 256u, 4097u, 1u << 20}) {
    std::byte* p = nullptr;
    ASSERT_EQ(hipMalloc(&p, bytes), hipSuccess);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(p) % 256, 0u);
    EXPECT_EQ(host::allocated_bytes(), before_ + bytes);
    for (std::size_t i = 0; i + 4 <= bytes; i += 4) {
      float f = 0;
      std::uint16_t h = 0;
      std::memcpy(&f, p + i, sizeof f);
      std::memcpy(&h, p + i, sizeof h);
      ASSERT_TRUE(std::isnan(f) && (h & 0x7fffu) > 0x7f80u) << i;
    }
    EXPECT_EQ(hipFree(p), hipSuccess);
    EXPECT_EQ(host::allocated_bytes(), before_);
  }
}

TEST_F(HostMemory, NothingAndNullAreFine) {
  float* p = reinterpret_cast<float*>(this);
  EXPECT_EQ(hipMalloc(&p, 0), hipSuccess);
  EXPECT_EQ(p, nullptr);
  EXPECT_EQ(hipFree(nullptr), hipSuccess);
  EXPECT_EQ(hipHostFree(nullptr), hipSuccess);
  EXPECT_EQ(hipMemcpy(nullptr, nullptr, 0, hipMemcpyDefault), hipSuccess);
  EXPECT_EQ(hipMemset(nullptr, 0, 0), hipSuccess);
}

TEST_F(HostMemory, WrongPointersAreRefused) {
  int* p = nullptr;
  EXPECT_EQ(hipMalloc(static_cast<void**>(nullptr), 4), hipErrorInvalidValue);
  ASSERT_EQ(hipMalloc(&p, 64), hipSuccess);
  int local = 0;
  EXPECT_EQ(hipFree(&local), hipErrorInvalidValue);
  EXPECT_EQ(hipFree(p + 1), hipErrorInvalidValue);
  EXPECT_EQ(hipHostFree(p), hipErrorInvalidValue);
  EXPECT_EQ(hipFreeAsync(&local, nullptr), hipErrorInvalidValue);
  EXPECT_EQ(hipGetLastError(), hipErrorInvalidValue);
  EXPECT_EQ(hipFree(p), hipSuccess);
  EXPECT_EQ(hipFree(p), hipErrorInvalidValue);
}

TEST_F(HostMemory, TooMuchIsOutOfMemory) {
  void* p = this;
  EXPECT_EQ(hipMalloc(&p, std::size_t{1} << 60), hipErrorOutOfMemory);
  EXPECT_EQ(p, nullptr);
  EXPECT_EQ(hipGetLastError(), hipErrorOutOfMemory);
  std::size_t free = 0, total = 0;
  ASSERT_EQ(hipMalloc(&p, 1 << 20), hipSuccess);
  ASSERT_EQ(hipMemGetInfo(&free, &total), hipSuccess);
  EXPECT_EQ(free + (1 << 20) + before_, total);
  EXPECT_EQ(hipMemGetInfo(nullptr, &total), hipErrorInvalidValue);
  ASSERT_EQ(hipFree(p), hipSuccess);
}

TEST_F(HostMemory, OverrunsAreFound) {
  std::byte* p = nullptr;
  if (host::detail::address_sanitizer) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    ASSERT_EQ(hipMalloc(&p, 1001), hipSuccess);
    volatile std::byte* bytes = p;
    EXPECT_DEATH(bytes[1001] = std::byte{0}, "use-after-poison");
    EXPECT_DEATH(bytes[-1] = std::byte{0}, "use-after-poison");
    ASSERT_EQ(hipFree(p), hipSuccess);
    return;
  }
  for (const std::ptrdiff_t at :
       {std::ptrdiff_t{-256}, std::ptrdiff_t{-1}, std::ptrdiff_t{1001}, std::ptrdiff_t{1256}}) {
    ASSERT_EQ(hipMalloc(&p, 1001), hipSuccess);
    *(p + at) = std::byte{0};
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(hipFree(p), hipErrorIllegalAddress);
    const std::string message = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(message.find(at < 0 ? "memory before" : "memory after"), std::string::npos)
        << message;
    EXPECT_NE(message.find("byte offset " + std::to_string(at)), std::string::npos) << message;
  }
}

TEST_F(HostMemory, CopiesInEveryDirection) {
  std::vector<int> source(1000), result(1000);
  std::iota(source.begin(), source.end(), 7);
  int *a = nullptr, *b = nullptr, *pinned = nullptr;
  const std::size_t bytes = 1000 * sizeof(int);
  ASSERT_EQ(hipMalloc(&a, bytes), hipSuccess);
  ASSERT_EQ(hipMalloc(&b, bytes), hipSuccess);
  ASSERT_EQ(hipHostMalloc(&pinned, bytes), hipSuccess);
  EXPECT_EQ(hipMemcpy(pinned, source.data(), bytes, hipMemcpyHostToHost), hipSuccess);
  EXPECT_EQ(hipMemcpy(a, pinned, bytes, hipMemcpyHostToDevice), hipSuccess);
  EXPECT_EQ(hipMemcpy(b, a, bytes, hipMemcpyDeviceToDevice), hipSuccess);
  EXPECT_EQ(hipMemcpy(result.data(), b, bytes, hipMemcpyDeviceToHost), hipSuccess);
  EXPECT_EQ(result, source);
  EXPECT_EQ(hipMemset(a, 0, bytes), hipSuccess);
  EXPECT_EQ(hipMemset(a + 10, 0x11, 8), hipSuccess);
  EXPECT_EQ(hipMemcpy(result.data(), a, bytes, hipMemcpyDefault), hipSuccess);
  EXPECT_EQ(result[9], 0);
  EXPECT_EQ(result[10], 0x11111111);
  EXPECT_EQ(result[11], 0x11111111);
  EXPECT_EQ(result[12], 0);
  EXPECT_EQ(hipFree(a), hipSuccess);
  EXPECT_EQ(hipFree(b), hipSuccess);
  EXPECT_EQ(hipHostFree(pinned), hipSuccess);
}

TEST_F(HostMemory, BadCopiesAreRefused) {
  int host_array[16] = {};
  int* device = nullptr;
  ASSERT_EQ(hipMalloc(&device, sizeof host_array), hipSuccess);
  const std::size_t bytes = sizeof host_array;
  EXPECT_EQ(hipMemcpy(device, nullptr, bytes, hipMemcpyHostToDevice), hipErrorInvalidValue);
  EXPECT_EQ(hipMemcpy(nullptr, device, bytes, hipMemcpyDeviceToHost), hipErrorInvalidValue);
  EXPECT_EQ(hipMemcpy(device + 1, host_array, bytes, hipMemcpyHostToDevice), hipErrorInvalidValue);
  EXPECT_EQ(hipMemcpy(host_array, host_array, bytes, hipMemcpyHostToDevice), hipErrorInvalidValue);
  EXPECT_EQ(hipMemcpy(host_array, host_array, bytes, hipMemcpyDeviceToHost), hipErrorInvalidValue);
  EXPECT_EQ(hipMemcpyAsync(device, host_array, bytes + 1, hipMemcpyHostToDevice),
            hipErrorInvalidValue);
  EXPECT_EQ(hipMemcpy(device, host_array, bytes, static_cast<hipMemcpyKind>(9)),
            hipErrorInvalidMemcpyDirection);
  EXPECT_EQ(hipMemset(host_array, 0, bytes), hipErrorInvalidValue);
  EXPECT_EQ(hipMemset(device, 0, bytes + 1), hipErrorInvalidValue);
  EXPECT_EQ(hipMemsetAsync(nullptr, 0, 1), hipErrorInvalidValue);
  EXPECT_EQ(hipFree(device), hipSuccess);
}

TEST_F(HostMemory, PointerAttributes) {
  int *device = nullptr, *pinned = nullptr;
  int plain = 0;
  ASSERT_EQ(hipMalloc(&device, 64), hipSuccess);
  ASSERT_EQ(hipHostMalloc(&pinned, 64, hipHostMallocMapped), hipSuccess);
  hipPointerAttribute_t attributes{};
  ASSERT_EQ(hipPointerGetAttributes(&attributes, device + 3), hipSuccess);
  EXPECT_EQ(attributes.type, hipMemoryTypeDevice);
  EXPECT_EQ(attributes.devicePointer, device + 3);
  ASSERT_EQ(hipPointerGetAttributes(&attributes, pinned), hipSuccess);
  EXPECT_EQ(attributes.type, hipMemoryTypeHost);
  EXPECT_EQ(attributes.hostPointer, pinned);
  EXPECT_EQ(attributes.allocationFlags, hipHostMallocMapped);
  EXPECT_EQ(hipPointerGetAttributes(&attributes, &plain), hipErrorInvalidValue);
  EXPECT_EQ(hipPointerGetAttributes(&attributes, device + 16), hipErrorInvalidValue);
  EXPECT_EQ(hipPointerGetAttributes(nullptr, device), hipErrorInvalidValue);
  EXPECT_EQ(hipFree(device), hipSuccess);
  EXPECT_EQ(hipHostFree(pinned), hipSuccess);
}

TEST_F(HostMemory, StreamOrderedAllocation) {
  hipStream_t stream = nullptr;
  ASSERT_EQ(hipStreamCreate(&stream), hipSuccess);
  int* p = nullptr;
  int result = 0;
  ASSERT_EQ(hipMallocAsync(&p, sizeof(int), stream), hipSuccess);
  ASSERT_EQ(host::launch("write", dim3(1), dim3(1), stream, [p] { *p = 42; }), hipSuccess);
  ASSERT_EQ(hipMemcpyAsync(&result, p, sizeof(int), hipMemcpyDeviceToHost, stream), hipSuccess);
  ASSERT_EQ(hipFreeAsync(p, stream), hipSuccess);
  ASSERT_EQ(hipStreamSynchronize(stream), hipSuccess);
  EXPECT_EQ(result, 42);
  EXPECT_EQ(hipFree(p), hipErrorInvalidValue);
  ASSERT_EQ(hipStreamDestroy(stream), hipSuccess);
}

TEST_F(HostMemory, FreeWaitsForTheDevice) {
  hipStream_t stream = nullptr;
  ASSERT_EQ(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking), hipSuccess);
  int* p = nullptr;
  ASSERT_EQ(hipMalloc(&p, sizeof(int)), hipSuccess);
  for (int i = 0; i < 200; ++i) {
    ASSERT_EQ(host::launch("use", dim3(8), dim3(64), stream, [p] { host::atomic_add(p, 1); }),
              hipSuccess);
  }
  ASSERT_EQ(hipFree(p), hipSuccess);
  EXPECT_EQ(hipStreamQuery(stream), hipSuccess);
  ASSERT_EQ(hipStreamDestroy(stream), hipSuccess);
}

TEST(HostDevice, DescribesItself) {
  int count = 0, device = -1, value = 0;
  EXPECT_EQ(hipGetDeviceCount(&count), hipSuccess);
  EXPECT_EQ(count, 1);
  EXPECT_EQ(hipGetDevice(&device), hipSuccess);
  EXPECT_EQ(device, 0);
  EXPECT_EQ(hipSetDevice(0), hipSuccess);
  EXPECT_EQ(hipSetDevice(1), hipErrorInvalidDevice);
  hipDeviceProp_t p{};
  ASSERT_EQ(hipGetDeviceProperties(&p, 0), hipSuccess);
  EXPECT_NE(std::string(p.name).find("CPU emulates"), std::string::npos);
  EXPECT_STREQ(p.gcnArchName, "host");
  EXPECT_EQ(p.warpSize, 64);
  EXPECT_EQ(p.maxThreadsPerBlock, 1024);
  EXPECT_EQ(p.sharedMemPerBlock, 65536u);
  EXPECT_GE(p.multiProcessorCount, 1);
  EXPECT_EQ(hipDeviceGetAttribute(&value, hipDeviceAttributeMultiprocessorCount, 0), hipSuccess);
  EXPECT_EQ(value, p.multiProcessorCount);
  EXPECT_EQ(hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, 0), hipSuccess);
  EXPECT_EQ(value, 64);
  EXPECT_EQ(hipDeviceGetAttribute(&value, static_cast<hipDeviceAttribute_t>(-5), 0),
            hipErrorInvalidValue);
  EXPECT_EQ(hipDeviceGetAttribute(&value, hipDeviceAttributeWarpSize, 2), hipErrorInvalidDevice);
  EXPECT_EQ(hipGetDeviceProperties(nullptr, 0), hipErrorInvalidValue);
  (void)hipGetLastError();
}

TEST(HostErrors, HaveNamesAndSentences) {
  EXPECT_STREQ(hipGetErrorName(hipSuccess), "hipSuccess");
  EXPECT_STREQ(hipGetErrorName(hipErrorLaunchFailure), "hipErrorLaunchFailure");
  EXPECT_STREQ(hipGetErrorName(hipErrorInvalidResourceHandle), "hipErrorInvalidHandle");
  EXPECT_STREQ(hipGetErrorName(static_cast<hipError_t>(12345)), "hipErrorUnknown");
  EXPECT_STREQ(hipGetErrorString(hipErrorOutOfMemory), "out of memory");
  EXPECT_EQ(hipErrorLaunchFailure, 719);
  EXPECT_EQ(hipErrorNotReady, 600);
  EXPECT_EQ(hipErrorStreamCaptureUnsupported, 900);
}

}  // namespace
