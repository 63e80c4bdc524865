/// \file
/// Stream capture and replay.

#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>

#include "flashxdl/host/lane.hpp"
#include "flashxdl/host/runtime_api.hpp"

namespace {

namespace host = flashxdl::host;

class HostGraph : public ::testing::Test {
protected:
  void SetUp() override {
    ASSERT_EQ(hipStreamCreate(&stream), hipSuccess);
    ASSERT_EQ(hipStreamCreate(&side), hipSuccess);
    ASSERT_EQ(hipEventCreate(&forked), hipSuccess);
    ASSERT_EQ(hipEventCreate(&joined), hipSuccess);
  }
  void TearDown() override {
    EXPECT_EQ(hipStreamDestroy(stream), hipSuccess);
    EXPECT_EQ(hipStreamDestroy(side), hipSuccess);
    EXPECT_EQ(hipEventDestroy(forked), hipSuccess);
    EXPECT_EQ(hipEventDestroy(joined), hipSuccess);
    (void)hipGetLastError();
  }

  void begin(hipStreamCaptureMode mode = hipStreamCaptureModeGlobal) {
    ASSERT_EQ(hipStreamBeginCapture(stream, mode), hipSuccess);
  }
  hipStreamCaptureStatus status() {
    hipStreamCaptureStatus result = hipStreamCaptureStatusNone;
    EXPECT_EQ(hipStreamIsCapturing(stream, &result), hipSuccess);
    return result;
  }
  /// Ends the capture, which must succeed, and runs the graph some times.
  void end_and_run(int times) {
    hipGraph_t graph = nullptr;
    hipGraphExec_t executable = nullptr;
    ASSERT_EQ(hipStreamEndCapture(stream, &graph), hipSuccess);
    ASSERT_EQ(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0), hipSuccess);
    ASSERT_EQ(hipGraphDestroy(graph), hipSuccess);
    for (int i = 0; i < times; ++i) ASSERT_EQ(hipGraphLaunch(executable, stream), hipSuccess);
    ASSERT_EQ(hipStreamSynchronize(stream), hipSuccess);
    ASSERT_EQ(hipGraphExecDestroy(executable), hipSuccess);
  }
  void append(hipStream_t where, std::string& text, char letter) {
    ASSERT_EQ(host::launch("append", dim3(1), dim3(1), where, [&text, letter] { text += letter; }),
              hipSuccess);
  }

  hipStream_t stream = nullptr;
  hipStream_t side = nullptr;
  hipEvent_t forked = nullptr;
  hipEvent_t joined = nullptr;
};

TEST_F(HostGraph, CapturesInsteadOfRunningAndReplays) {
  int input = 1, output = 0;
  int* device = nullptr;
  ASSERT_EQ(hipMalloc(&device, 2 * sizeof(int)), hipSuccess);
  begin();
  EXPECT_EQ(status(), hipStreamCaptureStatusActive);
  ASSERT_EQ(hipMemsetAsync(device, 0, 2 * sizeof(int), stream), hipSuccess);
  ASSERT_EQ(hipMemcpyAsync(device, &input, sizeof(int), hipMemcpyHostToDevice, stream), hipSuccess);
  ASSERT_EQ(host::launch("add", dim3(1), dim3(64), stream,
                         [device] { host::atomic_add(device + 1, device[0]); }),
            hipSuccess);
  ASSERT_EQ(hipMemcpyAsync(&output, device + 1, sizeof(int), hipMemcpyDeviceToHost, stream),
            hipSuccess);
  hipGraph_t graph = nullptr;
  hipGraphExec_t executable = nullptr;
  ASSERT_EQ(hipStreamEndCapture(stream, &graph), hipSuccess);
  EXPECT_EQ(status(), hipStreamCaptureStatusNone);
  ASSERT_EQ(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0), hipSuccess);
  ASSERT_EQ(hipStreamSynchronize(stream), hipSuccess);
  EXPECT_EQ(output, 0);  // nothing has run yet
  for (input = 1; input < 5; ++input) {
    ASSERT_EQ(hipGraphLaunch(executable, stream), hipSuccess);
    ASSERT_EQ(hipStreamSynchronize(stream), hipSuccess);
    EXPECT_EQ(output, 64 * input);
  }
  ASSERT_EQ(hipGraphExecDestroy(executable), hipSuccess);
  ASSERT_EQ(hipGraphDestroy(graph), hipSuccess);
  ASSERT_EQ(hipFree(device), hipSuccess);
}

TEST_F(HostGraph, ForkAndJoin) {
  std::string main_text, side_text;
  begin();
  append(stream, main_text, 'a');
  ASSERT_EQ(hipEventRecord(forked, stream), hipSuccess);
  ASSERT_EQ(hipStreamWaitEvent(side, forked), hipSuccess);
  append(side, side_text, 'x');
  append(stream, main_text, 'b');
  ASSERT_EQ(hipEventRecord(joined, side), hipSuccess);
  ASSERT_EQ(hipStreamWaitEvent(stream, joined), hipSuccess);
  append(stream, side_text, 'y');
  end_and_run(3);
  EXPECT_EQ(main_text, "ababab");
  EXPECT_EQ(side_text, "xyxyxy");
  EXPECT_EQ(hipEventQuery(forked), hipErrorCapturedEvent);
  EXPECT_EQ(hipEventSynchronize(forked), hipErrorCapturedEvent);
  EXPECT_EQ(hipStreamWaitEvent(stream, forked), hipErrorCapturedEvent);
}

TEST_F(HostGraph, ForkWithoutJoinIsAnError) {
  std::string text;
  begin();
  ASSERT_EQ(hipEventRecord(forked, stream), hipSuccess);
  ASSERT_EQ(hipStreamWaitEvent(side, forked), hipSuccess);
  append(side, text, 'x');
  hipGraph_t graph = nullptr;
  EXPECT_EQ(hipStreamEndCapture(side, &graph), hipErrorStreamCaptureUnmatched);
  EXPECT_EQ(hipStreamEndCapture(stream, &graph), hipErrorStreamCaptureUnjoined);
  EXPECT_EQ(graph, nullptr);
  EXPECT_EQ(status(), hipStreamCaptureStatusNone);
  append(side, text, 'y');  // both streams are usable again
  ASSERT_EQ(hipStreamSynchronize(side), hipSuccess);
  EXPECT_EQ(text, "y");
}

TEST_F(HostGraph, SynchronousCallsAreRefusedDuringCapture) {
  int a = 0, b = 0;
  void* p = nullptr;
  hipGraph_t graph = nullptr;
  begin();
  EXPECT_EQ(hipDeviceSynchronize(), hipErrorStreamCaptureUnsupported);
  EXPECT_EQ(hipMalloc(&p, 16), hipErrorStreamCaptureUnsupported);
  EXPECT_EQ(hipMallocAsync(&p, 16, stream), hipErrorStreamCaptureUnsupported);
  EXPECT_EQ(status(), hipStreamCaptureStatusActive);
  EXPECT_EQ(hipStreamSynchronize(stream), hipErrorStreamCaptureUnsupported);
  EXPECT_EQ(status(), hipStreamCaptureStatusInvalidated);
  EXPECT_EQ(host::launch("late", dim3(1), dim3(1), stream, [] {}),
            hipErrorStreamCaptureInvalidated);
  EXPECT_EQ(hipStreamEndCapture(stream, &graph), hipErrorStreamCaptureInvalidated);

  begin();
  EXPECT_EQ(hipMemcpy(&a, &b, sizeof a, hipMemcpyHostToHost), hipErrorStreamCaptureImplicit);
  EXPECT_EQ(hipStreamEndCapture(stream, &graph), hipErrorStreamCaptureInvalidated);

  begin();
  EXPECT_EQ(host::launch("null", dim3(1), dim3(1), nullptr, [] {}), hipErrorStreamCaptureImplicit);
  EXPECT_EQ(hipStreamEndCapture(stream, &graph), hipErrorStreamCaptureInvalidated);
  EXPECT_EQ(hipDeviceSynchronize(), hipSuccess);
}

TEST_F(HostGraph, RelaxedAndThreadLocalModes) {
  void* p = nullptr;
  begin(hipStreamCaptureModeRelaxed);
  EXPECT_EQ(hipMalloc(&p, 16), hipSuccess);
  EXPECT_EQ(hipFree(p), hipSuccess);
  end_and_run(1);

  begin(hipStreamCaptureModeThreadLocal);
  EXPECT_EQ(hipMalloc(&p, 16), hipErrorStreamCaptureUnsupported);
  std::thread([&] {
    EXPECT_EQ(hipMalloc(&p, 16), hipSuccess);
    EXPECT_EQ(hipFree(p), hipSuccess);
    hipGraph_t graph = nullptr;
    EXPECT_EQ(hipStreamEndCapture(stream, &graph), hipErrorStreamCaptureWrongThread);
  }).join();
  end_and_run(1);
}

TEST_F(HostGraph, MisuseIsRefused) {
  hipGraph_t graph = nullptr;
  hipGraphExec_t executable = nullptr;
  int something = 0;
  EXPECT_EQ(hipStreamBeginCapture(nullptr, hipStreamCaptureModeGlobal),
            hipErrorStreamCaptureUnsupported);
  EXPECT_EQ(hipStreamEndCapture(stream, &graph), hipErrorIllegalState);
  EXPECT_EQ(hipStreamEndCapture(stream, nullptr), hipErrorInvalidValue);
  EXPECT_EQ(hipGraphInstantiate(&executable, reinterpret_cast<hipGraph_t>(&something)),
            hipErrorInvalidValue);
  EXPECT_EQ(hipGraphLaunch(reinterpret_cast<hipGraphExec_t>(&something), stream),
            hipErrorInvalidValue);
  EXPECT_EQ(hipGraphDestroy(reinterpret_cast<hipGraph_t>(&something)), hipErrorInvalidValue);
  EXPECT_EQ(hipGraphExecDestroy(nullptr), hipErrorInvalidValue);
  begin();
  EXPECT_EQ(hipStreamBeginCapture(stream, hipStreamCaptureModeGlobal), hipErrorIllegalState);
  ASSERT_EQ(hipStreamBeginCapture(side, hipStreamCaptureModeGlobal), hipSuccess);
  ASSERT_EQ(hipEventRecord(forked, stream), hipSuccess);
  EXPECT_EQ(hipStreamWaitEvent(side, forked), hipErrorStreamCaptureMerge);
  EXPECT_EQ(hipStreamEndCapture(side, &graph), hipErrorStreamCaptureInvalidated);
  end_and_run(1);

  ASSERT_EQ(hipEventRecord(joined, side), hipSuccess);
  begin();
  EXPECT_EQ(hipStreamWaitEvent(stream, joined), hipErrorStreamCaptureIsolation);
  EXPECT_EQ(hipStreamEndCapture(stream, &graph), hipErrorStreamCaptureInvalidated);
}

TEST_F(HostGraph, FailureEndsTheReplay) {
  std::atomic<int> after{0};
  begin();
  ASSERT_EQ(host::launch("fails", dim3(1), dim3(1), stream, [] { throw 1; }), hipSuccess);
  ASSERT_EQ(host::launch("after", dim3(1), dim3(1), stream, [&] { ++after; }), hipSuccess);
  hipGraph_t graph = nullptr;
  hipGraphExec_t executable = nullptr;
  ASSERT_EQ(hipStreamEndCapture(stream, &graph), hipSuccess);
  ASSERT_EQ(hipGraphInstantiate(&executable, graph), hipSuccess);
  ASSERT_EQ(hipGraphLaunch(executable, stream), hipSuccess);
  EXPECT_EQ(hipStreamSynchronize(stream), hipErrorLaunchFailure);
  EXPECT_EQ(after, 0);
  ASSERT_EQ(hipGraphExecDestroy(executable), hipSuccess);
  ASSERT_EQ(hipGraphDestroy(graph), hipSuccess);
}

}  // namespace
