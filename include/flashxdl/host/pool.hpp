#pragma once
/// \file
/// The worker threads that run workgroups: the GPU's compute units, so to speak.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "flashxdl/host/kernel.hpp"
#include "flashxdl/host/workgroup.hpp"

namespace flashxdl::host::detail {

/// A kernel's workgroups, handed out one by one.
class Job {
public:
  explicit Job(const Kernel& kernel)
      : kernel_(kernel), count_(kernel.workgroups()), unfinished_(count_) {
    if (kernel.schedule.kind == Schedule::Kind::shuffle) shuffle();
  }

  /// Runs workgroups until none are left to take.
  void work(Workgroup& workgroup) {
    for (;;) {
      const std::uint64_t ticket = taken_.fetch_add(1, std::memory_order_relaxed);
      if (ticket >= count_) return;
      if (!cancelled_.load(std::memory_order_relaxed)) {
        if (auto failure = workgroup.run(kernel_, index_of(ticket))) fail(std::move(*failure));
      }
      finish_one();
    }
  }

  bool all_taken() const { return taken_.load(std::memory_order_relaxed) >= count_; }

  /// Waits for every workgroup; the message of the first that failed.
  std::optional<std::string> wait() {
    std::unique_lock lock(mutex_);
    finished_.wait(lock, [&] { return unfinished_.load(std::memory_order_acquire) == 0; });
    return failure_;
  }

private:
  void finish_one() {
    if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    const std::lock_guard lock(mutex_);
    finished_.notify_all();
  }

  /// The workgroups that have not started are cancelled.
  void fail(std::string message) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::move(message);
    cancelled_.store(true, std::memory_order_relaxed);
  }

  /// A random affine permutation of the workgroups, ticket -> ticket * factor + shift.
  void shuffle() {
    if (count_ > 0xffffffffull || count_ < 2) return;  // products must stay within 64 bits
    Random random(kernel_.schedule.seed);
    shift_ = random.next() % count_;
    do {
      factor_ = 1 + random.next() % count_;
    } while (std::gcd(factor_, count_) != 1);
  }
  std::uint64_t index_of(std::uint64_t ticket) const {
    return count_ > 0xffffffffull ? ticket : (ticket * factor_ + shift_) % count_;
  }

  const Kernel& kernel_;
  const std::uint64_t count_;
  std::uint64_t factor_ = 1;
  std::uint64_t shift_ = 0;
  std::atomic<std::uint64_t> taken_{0};
  std::atomic<std::uint64_t> unfinished_;
  std::atomic<bool> cancelled_{false};
  std::mutex mutex_;
  std::condition_variable finished_;
  std::optional<std::string> failure_;
};

class Pool {
public:
  /// Runs the whole kernel; the message if it failed. Kernels of several streams share the pool.
  std::optional<std::string> run(const Kernel& kernel) {
    auto job = std::make_shared<Job>(kernel);
    {
      const std::lock_guard lock(mutex_);
      start_threads();
      jobs_.push_back(job);
    }
    if (kernel.workgroups() == 1) {
      work_available_.notify_one();
    } else {
      work_available_.notify_all();
    }
    return job->wait();
  }

  /// Ends the threads. Nothing may run or come any more.
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    work_available_.notify_all();
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  }

private:
  void start_threads() {
    while (threads_.size() < worker_count()) threads_.emplace_back([this] { thread_loop(); });
  }

  void thread_loop() {
    Workgroup workgroup;
    std::unique_lock lock(mutex_);
    for (;;) {
      while (!jobs_.empty() && jobs_.front()->all_taken()) jobs_.pop_front();
      if (!jobs_.empty()) {
        const std::shared_ptr<Job> job = jobs_.front();
        lock.unlock();
        job->work(workgroup);
        lock.lock();
      } else if (stopping_) {
        return;
      } else {
        work_available_.wait(lock);
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable work_available_;
  std::deque<std::shared_ptr<Job>> jobs_;
  std::vector<std::thread> threads_;
  bool stopping_ = false;
};

/// Outlives every static object; the runtime stops its threads at exit.
inline Pool& pool() {
  static auto* instance = new Pool;
  return *instance;
}

}  // namespace flashxdl::host::detail
