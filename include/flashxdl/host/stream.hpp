#pragma once
/// \file
/// Streams: queues of work, each emptied in order by a thread of its own, with HIP's rules about
/// the null stream. All queues share one lock, so that the order in which work was submitted is
/// one order, and what an entry waits for was always submitted before it: no deadlock.

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "flashxdl/host/capture.hpp"
#include "flashxdl/host/error.hpp"
#include "flashxdl/host/pool.hpp"
#include "flashxdl/host/types.hpp"

namespace flashxdl::host::detail {

class Stream;

/// The completion of one entry of a stream. Default: complete.
struct Ticket {
  std::shared_ptr<Stream> stream;
  std::uint64_t number = 0;
};

/// A queue. Everything but `thread` is guarded by Streams' lock.
class Stream {
public:
  struct Entry {
    Work work;
    std::vector<Ticket> after;
  };

  explicit Stream(bool is_blocking) : blocking(is_blocking) {}

  bool idle() const { return completed == submitted; }
  bool done(std::uint64_t number) const { return completed >= number; }

  const bool blocking;  ///< takes part in the null stream's ordering
  std::deque<Entry> queue;
  std::uint64_t submitted = 0;
  std::uint64_t completed = 0;
  bool closing = false;
  hipError_t failure = hipSuccess;   ///< of an entry, not yet reported to the user
  std::shared_ptr<Capture> capture;  ///< records instead of running, while set
  std::condition_variable submitted_changed;
  std::thread thread;
};

/// All streams of the process.
class Streams {
public:
  using Lock = std::unique_lock<std::mutex>;

  Lock lock() { return Lock(mutex_); }

  /// Null for a handle that is no stream. The null handle is the null stream.
  std::shared_ptr<Stream> find(hipStream_t handle) {
    if (handle == nullptr) return null_stream_;
    const auto found = std::find_if(streams_.begin(), streams_.end(),
                                    [&](const auto& s) { return handle_of(*s) == handle; });
    return found == streams_.end() ? nullptr : *found;
  }

  hipStream_t create(bool blocking) {
    streams_.push_back(std::make_shared<Stream>(blocking));
    return handle_of(*streams_.back());
  }

  /// Waits for the stream's work, then ends it.
  void destroy(const std::shared_ptr<Stream>& stream) {
    std::thread thread;
    {
      const Lock guard = lock();
      std::erase(streams_, stream);
      stream->closing = true;
      stream->submitted_changed.notify_all();
      thread = std::move(stream->thread);
    }
    if (thread.joinable()) thread.join();
  }

  /// Appends work; the caller holds the lock. Beyond `after`, it waits for what the null stream's
  /// rules say.
  Ticket submit(const std::shared_ptr<Stream>& stream, Work work, std::vector<Ticket> after = {}) {
    if (stream == null_stream_) {
      for (const auto& other : streams_) {
        if (other->blocking) after.push_back({other, other->submitted});
      }
    } else if (stream->blocking) {
      after.push_back({null_stream_, null_stream_->submitted});
    }
    std::erase_if(after, [](const Ticket& t) { return t.stream->done(t.number); });
    stream->queue.push_back({std::move(work), std::move(after)});
    if (!stream->thread.joinable()) {
      stream->thread = std::thread([this, stream] { thread_loop(*stream); });
    }
    stream->submitted_changed.notify_one();
    return {stream, ++stream->submitted};
  }

  void wait(Lock& lock, const Ticket& ticket) {
    progress_.wait(lock, [&] { return !ticket.stream || ticket.stream->done(ticket.number); });
  }

  /// Every stream, the null stream first.
  std::vector<std::shared_ptr<Stream>> all() const {
    std::vector<std::shared_ptr<Stream>> result{null_stream_};
    result.insert(result.end(), streams_.begin(), streams_.end());
    return result;
  }

  /// May this thread synchronise or allocate? Not while certain captures are going on.
  bool unsafe_calls_forbidden() const {
    return std::any_of(streams_.begin(), streams_.end(), [](const auto& s) {
      return s->capture && s->capture->forbids_unsafe_calls();
    });
  }

  /// The null stream would wait for a blocking stream that is capturing: an error, which also
  /// spoils the capture.
  bool null_stream_forbidden() {
    bool forbidden = false;
    for (const auto& stream : streams_) {
      if (!stream->blocking || !stream->capture) continue;
      stream->capture->invalidate();
      forbidden = true;
    }
    return forbidden;
  }

  bool is_null(const std::shared_ptr<Stream>& stream) const { return stream == null_stream_; }
  bool stopped() const { return stopped_; }

  /// At exit: finishes all work and ends all threads.
  void stop() {
    std::vector<std::shared_ptr<Stream>> remaining;
    {
      const Lock guard = lock();
      remaining = all();
    }
    for (const auto& stream : remaining) destroy(stream);
    const Lock guard = lock();
    stopped_ = true;
  }

  static hipStream_t handle_of(Stream& stream) { return reinterpret_cast<hipStream_t>(&stream); }

private:
  void thread_loop(Stream& stream) {
    Lock guard = lock();
    for (;;) {
      stream.submitted_changed.wait(guard, [&] { return !stream.queue.empty() || stream.closing; });
      if (stream.queue.empty()) return;
      Stream::Entry entry = std::move(stream.queue.front());
      stream.queue.pop_front();
      for (const Ticket& ticket : entry.after) wait(guard, ticket);
      guard.unlock();
      const hipError_t result = entry.work ? entry.work() : hipSuccess;
      entry = {};  // arguments are destroyed before completion is announced
      guard.lock();
      if (result != hipSuccess) stream.failure = result;
      ++stream.completed;
      progress_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable progress_;
  std::shared_ptr<Stream> null_stream_ = std::make_shared<Stream>(true);
  std::vector<std::shared_ptr<Stream>> streams_;
  bool stopped_ = false;
};

/// Outlives every static object. A guard finishes the work and ends the threads when the static
/// objects go; work submitted later is refused with hipErrorDeinitialized.
inline Streams& streams() {
  static auto* instance = new Streams;
  static const struct AtExit {
    ~AtExit() {
      instance->stop();
      pool().stop();
    }
  } at_exit;
  return *instance;
}

}  // namespace flashxdl::host::detail
