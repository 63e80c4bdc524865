/// \file
/// A HIP source as a user writes it, compiled unchanged for the CPU target.

#include <gtest/gtest.h>
#include <hip/hip_runtime.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <vector>

namespace {

#define HIP_CHECK(call) ASSERT_EQ(hipSuccess, (call)) << hipGetErrorString(hipGetLastError())

__constant__ float factor = 3.0f;

__device__ __forceinline__ float scaled(float x) {
  return factor * x;
}

__global__ void vector_add(const float* a, const float* b, float* c, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) c[i] = scaled(a[i]) + b[i];
}

template <int block_size>
__global__ void __launch_bounds__(block_size) reduce(const float* in, float* out, int n) {
  __shared__ float partial[block_size / 64];
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  float sum = i < n ? in[i] : 0.0f;
  for (unsigned delta = 32; delta > 0; delta /= 2) sum += __shfl_down(sum, delta);
  if (threadIdx.x % static_cast<unsigned>(warpSize) == 0) partial[threadIdx.x / 64] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int w = 1; w < block_size / 64; ++w) sum += partial[w];
    atomicAdd(out, sum);
  }
}

__global__ void reverse(int* data) {
  HIP_DYNAMIC_SHARED(int, tile)
  const unsigned n = blockDim.x;
  tile[threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  data[threadIdx.x] = tile[n - 1 - threadIdx.x];
}

TEST(HipSource, VectorAdd) {
  const int n = 1000;
  std::vector<float> a(n), b(n), c(n);
  std::iota(a.begin(), a.end(), 0.0f);
  std::iota(b.begin(), b.end(), 100.0f);
  float *da = nullptr, *db = nullptr, *dc = nullptr;
  const std::size_t bytes = n * sizeof(float);
  HIP_CHECK(hipMalloc(&da, bytes));
  HIP_CHECK(hipMalloc(&db, bytes));
  HIP_CHECK(hipMalloc(&dc, bytes));
  HIP_CHECK(hipMemcpy(da, a.data(), bytes, hipMemcpyHostToDevice));
  HIP_CHECK(hipMemcpy(db, b.data(), bytes, hipMemcpyHostToDevice));
  const dim3 blockDim(256);
  const dim3 gridDim((n + 255) / 256);
  hipLaunchKernelGGL(vector_add, gridDim, blockDim, 0, 0, da, db, dc, n);
  HIP_CHECK(hipGetLastError());
  HIP_CHECK(hipMemcpy(c.data(), dc, bytes, hipMemcpyDeviceToHost));
  for (std::size_t i = 0; i < c.size(); ++i) ASSERT_EQ(c[i], 3 * a[i] + b[i]) << i;
  HIP_CHECK(hipFree(da));
  HIP_CHECK(hipFree(db));
  HIP_CHECK(hipFree(dc));
}

TEST(HipSource, ReductionThroughShuffleAndSharedMemory) {
  const int n = 5000;
  std::vector<float> in(n, 1.0f);
  in[4999] = 11.0f;
  float *din = nullptr, *dout = nullptr;
  HIP_CHECK(hipMalloc(&din, n * sizeof(float)));
  HIP_CHECK(hipMalloc(&dout, sizeof(float)));
  HIP_CHECK(hipMemcpy(din, in.data(), n * sizeof(float), hipMemcpyHostToDevice));
  HIP_CHECK(hipMemset(dout, 0, sizeof(float)));
  hipLaunchKernelGGL(HIP_KERNEL_NAME(reduce<256>), dim3((n + 255) / 256), dim3(256), 0, nullptr,
                     din, dout, n);
  float sum = 0;
  HIP_CHECK(hipMemcpy(&sum, dout, sizeof(float), hipMemcpyDeviceToHost));
  EXPECT_EQ(sum, 5010.0f);
  HIP_CHECK(hipFree(din));
  HIP_CHECK(hipFree(dout));
}

TEST(HipSource, DynamicSharedMemory) {
  std::vector<int> data(100);
  std::iota(data.begin(), data.end(), 0);
  int* device = nullptr;
  const std::size_t bytes = data.size() * sizeof(int);
  HIP_CHECK(hipMalloc(&device, bytes));
  HIP_CHECK(hipMemcpy(device, data.data(), bytes, hipMemcpyHostToDevice));
  hipLaunchKernelGGL(reverse, 1, 100, bytes, 0, device);
  HIP_CHECK(hipMemcpy(data.data(), device, bytes, hipMemcpyDeviceToHost));
  for (int i = 0; i < 100; ++i) ASSERT_EQ(data[static_cast<std::size_t>(i)], 99 - i);
  HIP_CHECK(hipFree(device));
}

}  // namespace
