/// Attention from a program of one's own, on the GPU or on the CPU target: once by MhaForward,
/// which picks the kernel, and once by a device op chosen by hand. Both are right if they agree,
/// and if the average of values that are all 1 is 1.

#include <hip/hip_runtime_api.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <flashxdl/flashxdl.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using flashxdl::bf16;
using flashxdl::DataType;

/// The kernels that MhaForward may choose from here. Fewer kernels compile faster; without this
/// type there are all of flashxdl::BuiltInInstances.
struct MyKernels {
  static constexpr DataType dtypes[] = {DataType::bf16};
  static constexpr int head_dims[] = {64};
};

/// One kernel: bf16, head dimensions up to 64, no bias, no dropout.
using MyOp = flashxdl::device::DeviceBatchedMhaFwdXdlCshuffleV2<
    flashxdl::MhaFwdProblem{.dtype = DataType::bf16},
    flashxdl::MhaFwdTile{.m = 128, .n = 64, .d = 64, .dv = 64}>;

void check(hipError_t error, const char* what) {
  if (error != hipSuccess) {
    throw std::runtime_error(std::string(what) + ": " + hipGetErrorName(error));
  }
}

void check(const flashxdl::Status& status) {
  if (!status) throw std::runtime_error(status.message());
}

bf16* to_device(const std::vector<bf16>& host) {
  void* device = nullptr;
  const std::size_t bytes = host.size() * sizeof(bf16);
  check(hipMalloc(&device, bytes), "hipMalloc");
  check(hipMemcpy(device, host.data(), bytes, hipMemcpyHostToDevice), "copy in");
  return static_cast<bf16*>(device);
}

std::vector<float> to_host(const bf16* device, std::size_t count, hipStream_t stream) {
  std::vector<bf16> host(count);
  check(hipMemcpyAsync(host.data(), device, count * sizeof(bf16), hipMemcpyDeviceToHost, stream),
        "copy out");
  check(hipStreamSynchronize(stream), "the kernel");
  std::vector<float> numbers;
  for (const bf16 x : host) numbers.push_back(flashxdl::bf16_bits_to_float(x.bits));
  return numbers;
}

std::vector<bf16> make(std::size_t count, float (*value)(std::size_t)) {
  std::vector<bf16> numbers(count);
  for (std::size_t i = 0; i < count; ++i) {
    numbers[i] = {flashxdl::float_to_bf16_bits(value(i))};
  }
  return numbers;
}

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  float largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::fmax(largest, std::fabs(a[i] - b[i]));
  return largest;
}

int run() {
  constexpr std::int64_t batch = 2, heads = 4, seqlen_q = 200, seqlen_k = 300, dim = 64;
  constexpr std::size_t queries = batch * heads * seqlen_q * dim;
  constexpr std::size_t keys = batch * heads * seqlen_k * dim;
  const auto wave = [](std::size_t i) { return std::sin(0.37f * static_cast<float>(i % 9973)); };
  const auto one = [](std::size_t) { return 1.0f; };

  hipStream_t stream = nullptr;
  check(hipStreamCreate(&stream), "hipStreamCreate");
  bf16* const q = to_device(make(queries, wave));
  bf16* const k = to_device(make(keys, wave));
  bf16* const v = to_device(make(keys, wave));
  bf16* const ones = to_device(make(keys, one));
  bf16* const o = to_device(make(queries, one));

  // Tensors in [batch, head, sequence, dimension] order; any other strides would do.
  flashxdl::MhaForwardArgs args{.dtype = DataType::bf16,
                                .batch = batch,
                                .heads_q = heads,
                                .heads_kv = heads,
                                .seqlen_q = seqlen_q,
                                .seqlen_k = seqlen_k,
                                .head_dim = dim,
                                .head_dim_v = dim,
                                .q = flashxdl::bhsd<const void*>(q, heads, seqlen_q, dim),
                                .k = flashxdl::bhsd<const void*>(k, heads, seqlen_k, dim),
                                .v = flashxdl::bhsd<const void*>(v, heads, seqlen_k, dim),
                                .o = flashxdl::bhsd<void*>(o, heads, seqlen_q, dim),
                                .mask = flashxdl::Mask::causal_bottom_right()};

  check(flashxdl::MhaForward<MyKernels>(args, stream));
  const auto by_front = to_host(o, queries, stream);

  const auto argument = MyOp::MakeArgument(args);
  check(MyOp::CheckArgument(argument));
  MyOp::MakeInvoker().Run(argument, flashxdl::StreamConfig{.stream = stream});
  const auto by_hand = to_host(o, queries, stream);

  args.v.data = ones;
  check(flashxdl::MhaForward<MyKernels>(args, stream));
  const auto average = to_host(o, queries, stream);

  for (bf16* const pointer : {q, k, v, ones, o}) check(hipFree(pointer), "hipFree");
  check(hipStreamDestroy(stream), "hipStreamDestroy");

  const float disagreement = largest_difference(by_front, by_hand);
  const float off_one = largest_difference(average, std::vector<float>(queries, 1.0f));
  std::printf("%s\nfront and op by hand differ by %g; the average of ones is off by %g\n",
              MyOp::GetTypeString().c_str(), static_cast<double>(disagreement),
              static_cast<double>(off_one));
  // Both ran the same algorithm on the same numbers; half an ulp of 1 is 2^-9 below it.
  return disagreement == 0 && off_one <= 0x1p-8f ? 0 : 1;
}

}  // namespace

int main() {
  try {
    return run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
}
