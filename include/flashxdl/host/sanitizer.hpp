#pragma once
/// \file
/// What AddressSanitizer and ThreadSanitizer must be told about fibers, LDS and device memory.
/// Without a sanitizer every function here is empty.

#include <cstddef>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FLASHXDL_HOST_ASAN 1
#endif
#if __has_feature(thread_sanitizer)
#define FLASHXDL_HOST_TSAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define FLASHXDL_HOST_ASAN 1
#endif
#if defined(__SANITIZE_THREAD__)
#define FLASHXDL_HOST_TSAN 1
#endif
#ifndef FLASHXDL_HOST_ASAN
#define FLASHXDL_HOST_ASAN 0
#endif
#ifndef FLASHXDL_HOST_TSAN
#define FLASHXDL_HOST_TSAN 0
#endif

#if FLASHXDL_HOST_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if FLASHXDL_HOST_TSAN
#include <sanitizer/tsan_interface.h>
#endif

namespace flashxdl::host::detail {

inline constexpr bool address_sanitizer = FLASHXDL_HOST_ASAN != 0;

inline void poison([[maybe_unused]] const void* begin, [[maybe_unused]] std::size_t bytes) {
#if FLASHXDL_HOST_ASAN
  __asan_poison_memory_region(begin, bytes);
#endif
}

inline void unpoison([[maybe_unused]] const void* begin, [[maybe_unused]] std::size_t bytes) {
#if FLASHXDL_HOST_ASAN
  __asan_unpoison_memory_region(begin, bytes);
#endif
}

/// The sanitizers' view of one fiber: where its stack is, and their own state while it sleeps.
class FiberShadow {
public:
  /// The flow of control that runs now, on the thread's own stack; its bounds are learnt when the
  /// first fiber is entered from it.
  void adopt_current() {
#if FLASHXDL_HOST_TSAN
    tsan_ = __tsan_get_current_fiber();
#endif
  }

  void create([[maybe_unused]] const void* stack_low, [[maybe_unused]] std::size_t stack_size) {
#if FLASHXDL_HOST_ASAN
    low_ = stack_low;
    size_ = stack_size;
#endif
#if FLASHXDL_HOST_TSAN
    tsan_ = __tsan_create_fiber(0);
#endif
  }

  void destroy() {
#if FLASHXDL_HOST_TSAN
    __tsan_destroy_fiber(tsan_);
#endif
  }

  /// In `from`, just before control passes to `to`; `last` if `from` never runs again.
  static void leave([[maybe_unused]] FiberShadow& from, [[maybe_unused]] FiberShadow& to,
                    [[maybe_unused]] bool last = false) {
#if FLASHXDL_HOST_ASAN
    __sanitizer_start_switch_fiber(last ? nullptr : &from.fake_stack_, to.low_, to.size_);
#endif
#if FLASHXDL_HOST_TSAN
    __tsan_switch_to_fiber(to.tsan_, 0);
#endif
  }

  /// In `self`, just after control came back to it (or reached it first) from `previous`.
  static void enter([[maybe_unused]] FiberShadow& self, [[maybe_unused]] FiberShadow& previous) {
#if FLASHXDL_HOST_ASAN
    __sanitizer_finish_switch_fiber(self.fake_stack_, &previous.low_, &previous.size_);
#endif
  }

private:
#if FLASHXDL_HOST_ASAN
  void* fake_stack_ = nullptr;
  const void* low_ = nullptr;
  std::size_t size_ = 0;
#endif
#if FLASHXDL_HOST_TSAN
  void* tsan_ = nullptr;
#endif
};

}  // namespace flashxdl::host::detail
