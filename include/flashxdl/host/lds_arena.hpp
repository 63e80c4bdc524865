#pragma once
/// \file
/// The LDS of the workgroup that runs on a thread. Whatever a workgroup finds there reads as NaN
/// in fp16, bf16 and fp32; what it did not ask for is poisoned under AddressSanitizer.

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>

#include "flashxdl/host/kernel.hpp"
#include "flashxdl/host/sanitizer.hpp"

namespace flashxdl::host::detail {

class LdsArena {
public:
  LdsArena() {
    memory_.reset(static_cast<std::byte*>(::operator new(arena_bytes, alignment)));
    poison(memory_.get(), arena_bytes);
  }
  ~LdsArena() { unpoison(memory_.get(), arena_bytes); }
  LdsArena(const LdsArena&) = delete;
  LdsArena& operator=(const LdsArena&) = delete;

  /// A workgroup starts: it has asked for nothing yet.
  void start() {
    if (used_ != 0) poison(base(), used_);
    used_ = 0;
  }

  /// The arena with at least `bytes` usable. Lanes may ask again; the largest request stands.
  std::byte* get(std::size_t bytes) {
    if (bytes > used_) extend(bytes);
    return base();
  }

private:
  static constexpr std::align_val_t alignment{4096};
  static constexpr std::size_t margin = 4096;  ///< poisoned, before and after
  static constexpr std::size_t arena_bytes = max_lds_bytes + 2 * margin;
  static constexpr int nan_byte = 0xff;

  struct Delete {
    void operator()(std::byte* p) const { ::operator delete(p, alignment); }
  };

  std::byte* base() const { return memory_.get() + margin; }

  void extend(std::size_t bytes) {
    if (bytes > max_lds_bytes) {
      throw std::length_error("the kernel asks for " + std::to_string(bytes) +
                              " bytes of LDS; a workgroup has at most " +
                              std::to_string(max_lds_bytes));
    }
    unpoison(base(), bytes);
    std::memset(base() + used_, nan_byte, bytes - used_);
    used_ = bytes;
  }

  std::unique_ptr<std::byte, Delete> memory_;
  std::size_t used_ = 0;
};

}  // namespace flashxdl::host::detail
