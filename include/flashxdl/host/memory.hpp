#pragma once
/// \file
/// Device memory on the CPU: each allocation a heap block of its own, full of NaN, between canaries
/// that AddressSanitizer sees as poisoned; and pinned host memory, which is the same without NaN.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <new>

#include "flashxdl/host/kernel.hpp"
#include "flashxdl/host/sanitizer.hpp"
#include "flashxdl/host/types.hpp"

namespace flashxdl::host::detail {

struct Allocation {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  bool on_device = false;
  unsigned flags = 0;

  bool contains(const void* p) const {
    const auto* byte = static_cast<const std::byte*>(p);
    return !std::less<>()(byte, data) && std::less<>()(byte, data + bytes);
  }
};

class Memory {
public:
  hipError_t allocate(void** pointer, std::size_t bytes, bool on_device, unsigned flags = 0) {
    *pointer = nullptr;
    if (bytes == 0) return hipSuccess;
    const std::lock_guard lock(mutex_);
    if (on_device && bytes > total_bytes() - allocated_bytes_) return hipErrorOutOfMemory;
    if (bytes > total_bytes()) return hipErrorOutOfMemory;
    auto* block = static_cast<std::byte*>(
        ::operator new (block_bytes(bytes), std::align_val_t{guard_bytes}, std::nothrow));
    if (block == nullptr) return hipErrorOutOfMemory;
    const Allocation made{block + guard_bytes, bytes, on_device, flags};
    if (on_device) {
      std::memset(made.data, nan_byte, bytes);
      allocated_bytes_ += bytes;
    }
    guard(made);
    allocations_[made.data] = made;
    *pointer = made.data;
    return hipSuccess;
  }

  /// Invalid value unless `pointer` is the start of an allocation of that kind; illegal address if
  /// somebody wrote past its ends.
  hipError_t release(void* pointer, bool on_device) {
    if (pointer == nullptr) return hipSuccess;
    const std::lock_guard lock(mutex_);
    const auto found = allocations_.find(static_cast<std::byte*>(pointer));
    if (found == allocations_.end() || found->second.on_device != on_device) {
      return hipErrorInvalidValue;
    }
    const Allocation gone = found->second;
    allocations_.erase(found);
    if (on_device) allocated_bytes_ -= gone.bytes;
    const bool intact = unguard(gone);
    ::operator delete (gone.data - guard_bytes, std::align_val_t{guard_bytes});
    return intact ? hipSuccess : hipErrorIllegalAddress;
  }

  /// The allocation that `pointer` lies in; `data` is null if there is none.
  Allocation find(const void* pointer) {
    const std::lock_guard lock(mutex_);
    auto* key = const_cast<std::byte*>(static_cast<const std::byte*>(pointer));
    auto after = allocations_.upper_bound(key);
    if (after == allocations_.begin()) return {};
    const Allocation& candidate = std::prev(after)->second;
    return candidate.contains(pointer) ? candidate : Allocation{};
  }

  std::size_t allocated_bytes() {
    const std::lock_guard lock(mutex_);
    return allocated_bytes_;
  }

  /// The memory that the emulated device claims to have.
  static std::size_t total_bytes() {
    static const std::size_t bytes =
        positive_setting("FLASHXDL_HOST_MEMORY_MIB", 16384, std::size_t{1} << 30) << 20;
    return bytes;
  }

private:
  static constexpr std::size_t guard_bytes = 256;  ///< before and after; also the alignment
  static constexpr int nan_byte = 0xff;            ///< NaN in fp16, bf16, fp32 and double
  static constexpr int guard_byte = 0xc3;

  static constexpr std::size_t block_bytes(std::size_t bytes) { return bytes + 2 * guard_bytes; }

  static void guard(const Allocation& a) {
    std::memset(a.data - guard_bytes, guard_byte, guard_bytes);
    std::memset(a.data + a.bytes, guard_byte, guard_bytes);
    poison(a.data - guard_bytes, guard_bytes);
    poison(a.data + a.bytes, guard_bytes);
  }

  static bool unguard(const Allocation& a) {
    unpoison(a.data - guard_bytes, block_bytes(a.bytes));
    const bool before = guard_intact(a, a.data - guard_bytes, "before");
    const bool after = guard_intact(a, a.data + a.bytes, "after");
    return before && after;
  }

  static bool guard_intact(const Allocation& a, const std::byte* guard, const char* where) {
    const auto* broken = std::find_if(guard, guard + guard_bytes,
                                      [](std::byte b) { return b != std::byte{guard_byte}; });
    if (broken == guard + guard_bytes) return true;
    std::fprintf(stderr,
                 "flashxdl host: memory %s an allocation of %zu bytes was overwritten, at byte "
                 "offset %lld from its start\n",
                 where, a.bytes, static_cast<long long>(broken - a.data));
    return false;
  }

  std::mutex mutex_;
  std::map<std::byte*, Allocation, std::less<>> allocations_;
  std::size_t allocated_bytes_ = 0;
};

inline Memory& memory() {
  static auto* instance = new Memory;  // outlives every static object
  return *instance;
}

}  // namespace flashxdl::host::detail

namespace flashxdl::host {

/// Device memory that is allocated now, in bytes; for tests that look for leaks.
inline std::size_t allocated_bytes() {
  return detail::memory().allocated_bytes();
}

}  // namespace flashxdl::host
