#pragma once
/// \file
/// Fibers on Boost.Context, and their stacks. A fiber belongs to one OS thread for life and is
/// entered again and again, so that starting work on it costs one switch and no allocation.

#include <algorithm>
#include <array>
#include <boost/context/fiber.hpp>
#include <boost/context/preallocated.hpp>
#include <boost/context/stack_context.hpp>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "flashxdl/host/sanitizer.hpp"

namespace flashxdl::host::detail {

/// One flow of control: the thread's own (default constructed) or one with its own stack.
/// Switching passes straight from one fiber to another; nothing lies between.
class Fiber {
public:
  using Entry = void (*)(void*);

  Fiber() { shadow_.adopt_current(); }
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Gives this fiber the stack [low, low + size) and the function that the first switch enters.
  /// The function returns only when nothing more shall run here; control then goes back to the
  /// fiber that entered this one last.
  void create(std::byte* low, std::size_t size, Entry entry, void* argument) {
    shadow_.create(low, size);
    boost::context::stack_context context;
    context.size = size;
    context.sp = low + size;
    context_ = boost::context::fiber(
        std::allocator_arg, boost::context::preallocated(context.sp, context.size, context),
        NoDeallocation{}, [this, entry, argument](boost::context::fiber&& suspended) {
          arrive(std::move(suspended));
          entry(argument);
          previous_->previous_ = this;
          FiberShadow::leave(shadow_, previous_->shadow_, true);
          return std::move(previous_->context_);
        });
  }

  void destroy() { shadow_.destroy(); }

  /// Runs `to`; returns when some fiber switches back to `from`, the fiber that runs now.
  static void switch_to(Fiber& from, Fiber& to) {
    FiberShadow::leave(from.shadow_, to.shadow_);
    to.previous_ = &from;
    from.arrive(std::move(to.context_).resume());
  }

private:
  struct NoDeallocation {  // the stack is part of a StackBlock
    static void deallocate(boost::context::stack_context&) {}
  };

  void arrive(boost::context::fiber&& suspended) {
    // A fiber that ended hands over an empty context.
    previous_->context_ = std::move(suspended);
    FiberShadow::enter(shadow_, previous_->shadow_);
  }

  boost::context::fiber context_;
  Fiber* previous_ = nullptr;  ///< who entered this fiber last
  [[no_unique_address]] FiberShadow shadow_;
};

/// The stacks of `count` fibers in one allocation. Below each stack lies a gap: an overflow runs
/// into it, first over the canary at the stack's low end. Consecutive stacks are staggered by an
/// odd number of cache lines, so that equal depths do not meet in the same cache sets.
class StackBlock {
public:
  StackBlock(std::size_t count, std::size_t stack_bytes)
      : count_(count), stack_bytes_(stack_bytes), pitch_(gap_bytes + stack_bytes + stagger_bytes) {
    memory_.reset(static_cast<std::byte*>(::operator new(count* pitch_, alignment)));
    for (std::size_t i = 0; i < count_; ++i) {
      set_canary(i);
      poison(memory_.get() + i * pitch_, gap_bytes);
    }
  }
  ~StackBlock() { unpoison(memory_.get(), count_ * pitch_); }
  StackBlock(const StackBlock&) = delete;
  StackBlock& operator=(const StackBlock&) = delete;

  /// Lowest usable byte of stack i, above the canary.
  std::byte* low(std::size_t i) const { return canary(i) + canary_bytes; }
  std::size_t usable_bytes() const { return stack_bytes_ - canary_bytes; }

  void set_canary(std::size_t i) {
    std::fill_n(reinterpret_cast<std::uint64_t*>(canary(i)), canary_words, canary_pattern);
  }
  bool canary_intact(std::size_t i) const {
    const auto* words = reinterpret_cast<const std::uint64_t*>(canary(i));
    std::uint64_t difference = 0;
    for (std::size_t w = 0; w < canary_words; ++w) difference |= words[w] ^ canary_pattern;
    return difference == 0;
  }

private:
  static constexpr std::align_val_t alignment{4096};
  static constexpr std::size_t gap_bytes = 16 * 1024;
  static constexpr std::size_t stagger_bytes = 5 * 64;
  static constexpr std::size_t canary_words = 8;
  static constexpr std::size_t canary_bytes = canary_words * sizeof(std::uint64_t);
  static constexpr std::uint64_t canary_pattern = 0xc0de5afe57ac4e0dull;

  struct Delete {
    void operator()(std::byte* p) const { ::operator delete(p, alignment); }
  };

  std::byte* canary(std::size_t i) const { return memory_.get() + i * pitch_ + gap_bytes; }

  std::size_t count_;
  std::size_t stack_bytes_;
  std::size_t pitch_;
  std::unique_ptr<std::byte, Delete> memory_;
};

}  // namespace flashxdl::host::detail
