/// \file
/// Streams and events: order, overlap, the null stream's rules, error codes.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "flashxdl/host/lane.hpp"
#include "flashxdl/host/runtime_api.hpp"

namespace {

namespace host = flashxdl::host;
using namespace std::chrono_literals;

/// Holds streams up until it is opened. Goes only when they have passed.
class Gate {
public:
  ~Gate() {
    open();
    while (holding_ != 0) std::this_thread::sleep_for(100us);
  }
  void open() { open_ = true; }
  void hold(hipStream_t stream) {
    ++holding_;
    ASSERT_EQ(hipLaunchHostFunc(stream, &wait, this), hipSuccess);
  }

private:
  static void wait(void* gate) {
    auto& self = *static_cast<Gate*>(gate);
    while (!self.open_) std::this_thread::sleep_for(100us);
    --self.holding_;
  }
  std::atomic<bool> open_{false};
  std::atomic<int> holding_{0};
};

/// Notes the order in which work on several streams happens.
class Journal {
public:
  void note(hipStream_t stream, const std::string& what) {
    ASSERT_EQ(host::launch("note", dim3(1), dim3(1), stream,
                           [this, what] {
                             const std::lock_guard lock(mutex_);
                             text_ += what;
                           }),
              hipSuccess);
  }
  std::string text() {
    const std::lock_guard lock(mutex_);
    return text_;
  }

private:
  std::mutex mutex_;
  std::string text_;
};

class HostStream : public ::testing::Test {
protected:
  void SetUp() override {
    for (auto& stream : blocking) ASSERT_EQ(hipStreamCreate(&stream), hipSuccess);
    ASSERT_EQ(hipStreamCreateWithFlags(&free, hipStreamNonBlocking), hipSuccess);
  }
  void TearDown() override {
    for (auto& stream : blocking) EXPECT_EQ(hipStreamDestroy(stream), hipSuccess);
    EXPECT_EQ(hipStreamDestroy(free), hipSuccess);
    (void)hipGetLastError();
  }
  static void settle() { std::this_thread::sleep_for(20ms); }

  hipStream_t blocking[2] = {};
  hipStream_t free = nullptr;
};

TEST_F(HostStream, WorkOfAStreamIsDoneInOrder) {
  std::vector<int> order;
  for (int i = 0; i < 500; ++i) {
    ASSERT_EQ(host::launch("step", dim3(1), dim3(1), free, [&order, i] { order.push_back(i); }),
              hipSuccess);
  }
  ASSERT_EQ(hipStreamSynchronize(free), hipSuccess);
  ASSERT_EQ(order.size(), 500u);
  for (int i = 0; i < 500; ++i) ASSERT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST_F(HostStream, CallsReturnBeforeTheWorkIsDone) {
  Gate gate;
  int source = 1, result = 0;
  int* device = nullptr;
  ASSERT_EQ(hipMalloc(&device, sizeof(int)), hipSuccess);
  gate.hold(free);
  ASSERT_EQ(hipMemcpyAsync(device, &source, sizeof(int), hipMemcpyHostToDevice, free), hipSuccess);
  ASSERT_EQ(hipMemcpyAsync(&result, device, sizeof(int), hipMemcpyDeviceToHost, free), hipSuccess);
  EXPECT_EQ(hipStreamQuery(free), hipErrorNotReady);
  source = 2;  // host memory is read when the stream gets there
  EXPECT_EQ(result, 0);
  gate.open();
  ASSERT_EQ(hipStreamSynchronize(free), hipSuccess);
  EXPECT_EQ(result, 2);
  EXPECT_EQ(hipStreamQuery(free), hipSuccess);
  ASSERT_EQ(hipFree(device), hipSuccess);
}

TEST_F(HostStream, StreamsDoNotWaitForEachOther) {
  Gate gate;
  Journal journal;
  gate.hold(blocking[0]);
  journal.note(blocking[0], "held ");
  journal.note(blocking[1], "other ");
  journal.note(free, "free ");
  ASSERT_EQ(hipStreamSynchronize(blocking[1]), hipSuccess);
  ASSERT_EQ(hipStreamSynchronize(free), hipSuccess);
  EXPECT_EQ(journal.text().find("held"), std::string::npos);
  gate.open();
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
  EXPECT_NE(journal.text().find("held"), std::string::npos);
}

TEST_F(HostStream, NullStreamWaitsForBlockingStreamsAndTheyForIt) {
  Gate gate;
  Journal journal;
  gate.hold(blocking[0]);
  journal.note(blocking[0], "1");
  journal.note(nullptr, "2");
  journal.note(blocking[1], "3");
  settle();
  EXPECT_EQ(journal.text(), "");
  EXPECT_EQ(hipStreamQuery(nullptr), hipErrorNotReady);
  gate.open();
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
  EXPECT_EQ(journal.text(), "123");
}

TEST_F(HostStream, NonBlockingStreamsIgnoreTheNullStream) {
  Gate held_null, held_free;
  Journal journal;
  held_null.hold(nullptr);
  journal.note(free, "free ");
  ASSERT_EQ(hipStreamSynchronize(free), hipSuccess);
  EXPECT_EQ(journal.text(), "free ");
  held_null.open();
  held_free.hold(free);
  journal.note(free, "later ");
  journal.note(nullptr, "null ");
  ASSERT_EQ(hipStreamSynchronize(nullptr), hipSuccess);
  EXPECT_EQ(journal.text(), "free null ");
  held_free.open();
  ASSERT_EQ(hipStreamSynchronize(free), hipSuccess);
  EXPECT_EQ(journal.text(), "free null later ");
}

TEST_F(HostStream, SynchronousCopyWaitsForBlockingStreams) {
  int* device = nullptr;
  ASSERT_EQ(hipMalloc(&device, sizeof(int)), hipSuccess);
  int result = 0;
  ASSERT_EQ(host::launch("slow", dim3(1), dim3(1), blocking[0],
                         [device] {
                           std::this_thread::sleep_for(20ms);
                           *device = 5;
                         }),
            hipSuccess);
  ASSERT_EQ(hipMemcpy(&result, device, sizeof(int), hipMemcpyDeviceToHost), hipSuccess);
  EXPECT_EQ(result, 5);
  ASSERT_EQ(hipFree(device), hipSuccess);
}

TEST_F(HostStream, AStreamWaitsForAnEventOfAnother) {
  hipEvent_t event = nullptr;
  ASSERT_EQ(hipEventCreateWithFlags(&event, hipEventDisableTiming), hipSuccess);
  Journal journal;
  ASSERT_EQ(hipStreamWaitEvent(free, event), hipSuccess);  // never recorded: nothing to wait for
  ASSERT_EQ(hipEventQuery(event), hipSuccess);
  ASSERT_EQ(hipEventSynchronize(event), hipSuccess);
  {
    Gate gate;
    gate.hold(blocking[0]);
    journal.note(blocking[0], "1");
    ASSERT_EQ(hipEventRecord(event, blocking[0]), hipSuccess);
    ASSERT_EQ(hipStreamWaitEvent(free, event), hipSuccess);
    journal.note(free, "2");
    settle();
    EXPECT_EQ(journal.text(), "");
    EXPECT_EQ(hipEventQuery(event), hipErrorNotReady);
    // A later record does not move the wait that is queued already.
    gate.open();
    ASSERT_EQ(hipEventSynchronize(event), hipSuccess);
  }
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess);
  EXPECT_EQ(journal.text(), "12");
  EXPECT_EQ(hipEventQuery(event), hipSuccess);
  ASSERT_EQ(hipEventDestroy(event), hipSuccess);
}

TEST_F(HostStream, ElapsedTime) {
  hipEvent_t start = nullptr, stop = nullptr, untimed = nullptr;
  ASSERT_EQ(hipEventCreate(&start), hipSuccess);
  ASSERT_EQ(hipEventCreate(&stop), hipSuccess);
  ASSERT_EQ(hipEventCreateWithFlags(&untimed, hipEventDisableTiming), hipSuccess);
  float ms = -1;
  EXPECT_EQ(hipEventElapsedTime(&ms, start, stop), hipErrorInvalidHandle);  // not recorded
  Gate gate;
  ASSERT_EQ(hipEventRecord(start, free), hipSuccess);
  gate.hold(free);
  ASSERT_EQ(hipEventRecord(stop, free), hipSuccess);
  ASSERT_EQ(hipEventRecord(untimed, free), hipSuccess);
  EXPECT_EQ(hipEventElapsedTime(&ms, start, stop), hipErrorNotReady);
  std::this_thread::sleep_for(30ms);
  gate.open();
  ASSERT_EQ(hipEventSynchronize(stop), hipSuccess);
  ASSERT_EQ(hipStreamSynchronize(free), hipSuccess);
  ASSERT_EQ(hipEventElapsedTime(&ms, start, stop), hipSuccess);
  EXPECT_GE(ms, 25.0f);
  EXPECT_LT(ms, 10000.0f);
  EXPECT_EQ(hipEventElapsedTime(&ms, start, untimed), hipErrorInvalidHandle);
  EXPECT_EQ(hipEventElapsedTime(nullptr, start, stop), hipErrorInvalidValue);
  for (const auto event : {start, stop, untimed}) EXPECT_EQ(hipEventDestroy(event), hipSuccess);
}

TEST_F(HostStream, HostFunctionsRunInOrder) {
  Journal journal;
  struct Call {
    Journal* journal;
    std::string seen;
  } call{&journal, ""};
  journal.note(free, "kernel");
  ASSERT_EQ(hipLaunchHostFunc(
                free,
                [](void* p) {
                  auto* c = static_cast<Call*>(p);
                  c->seen = c->journal->text();
                },
                &call),
            hipSuccess);
  ASSERT_EQ(hipStreamSynchronize(free), hipSuccess);
  EXPECT_EQ(call.seen, "kernel");
  EXPECT_EQ(hipLaunchHostFunc(free, nullptr, nullptr), hipErrorInvalidValue);
}

TEST_F(HostStream, DestroyWaitsForTheWork) {
  hipStream_t stream = nullptr;
  ASSERT_EQ(hipStreamCreate(&stream), hipSuccess);
  std::atomic<int> done{0};
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(host::launch("work", dim3(2), dim3(64), stream, [&done] { ++done; }), hipSuccess);
  }
  ASSERT_EQ(hipStreamDestroy(stream), hipSuccess);
  EXPECT_EQ(done, 100 * 2 * 64);
}

TEST_F(HostStream, UnknownHandlesAreRefused) {
  int something = 0;
  const auto stream = reinterpret_cast<hipStream_t>(&something);
  const auto event = reinterpret_cast<hipEvent_t>(&something);
  unsigned flags = 7;
  float ms = 0;
  EXPECT_EQ(hipStreamSynchronize(stream), hipErrorInvalidResourceHandle);
  EXPECT_EQ(hipStreamQuery(stream), hipErrorInvalidResourceHandle);
  EXPECT_EQ(hipStreamDestroy(stream), hipErrorInvalidResourceHandle);
  EXPECT_EQ(hipStreamDestroy(nullptr), hipErrorInvalidResourceHandle);
  EXPECT_EQ(hipStreamGetFlags(stream, &flags), hipErrorInvalidResourceHandle);
  EXPECT_EQ(hipEventRecord(event, free), hipErrorInvalidResourceHandle);
  EXPECT_EQ(hipEventSynchronize(event), hipErrorInvalidResourceHandle);
  EXPECT_EQ(hipEventQuery(event), hipErrorInvalidResourceHandle);
  EXPECT_EQ(hipEventDestroy(event), hipErrorInvalidResourceHandle);
  EXPECT_EQ(hipEventElapsedTime(&ms, event, event), hipErrorInvalidResourceHandle);
  EXPECT_EQ(hipStreamWaitEvent(free, event), hipErrorInvalidResourceHandle);
  EXPECT_EQ(hipStreamCreate(nullptr), hipErrorInvalidValue);
  hipStream_t created = nullptr;
  EXPECT_EQ(hipStreamCreateWithFlags(&created, 2), hipErrorInvalidValue);
  hipEvent_t created_event = nullptr;
  EXPECT_EQ(hipEventCreateWithFlags(&created_event, 0x80), hipErrorInvalidValue);
  ASSERT_EQ(hipStreamGetFlags(free, &flags), hipSuccess);
  EXPECT_EQ(flags, hipStreamNonBlocking);
  ASSERT_EQ(hipStreamGetFlags(blocking[0], &flags), hipSuccess);
  EXPECT_EQ(flags, hipStreamDefault);
}

TEST_F(HostStream, LastErrorBelongsToTheThread) {
  EXPECT_EQ(hipSetDevice(5), hipErrorInvalidDevice);
  hipError_t elsewhere = hipErrorUnknown;
  std::thread([&] { elsewhere = hipGetLastError(); }).join();
  EXPECT_EQ(elsewhere, hipSuccess);
  EXPECT_EQ(hipGetLastError(), hipErrorInvalidDevice);
}

TEST_F(HostStream, ManyThreadsUseTheRuntime) {
  std::atomic<int> lanes{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&] {
      hipStream_t stream = nullptr;
      ASSERT_EQ(hipStreamCreate(&stream), hipSuccess);
      for (int i = 0; i < 30; ++i) {
        ASSERT_EQ(host::launch("shared", dim3(3), dim3(100), stream,
                               [&] {
                                 host::workgroup_barrier();
                                 ++lanes;
                               }),
                  hipSuccess);
        if (i % 10 == 0) {
          ASSERT_EQ(hipStreamSynchronize(stream), hipSuccess);
        }
      }
      ASSERT_EQ(hipStreamDestroy(stream), hipSuccess);
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(lanes, 6 * 30 * 3 * 100);
}

}  // namespace
