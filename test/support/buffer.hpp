#pragma once
/// \file
/// Device memory under test: an image of it on the host, NaN patterns in everything that is not an
/// element, and a check that nobody wrote there.

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "flashxdl/core/config.hpp"
#include "flashxdl/hip.hpp"

namespace flashxdl::test {

inline void check_hip(hipError_t error, const char* what) {
  if (error != hipSuccess) {
    throw std::runtime_error(std::string(what) + ": " + hipGetErrorString(error));
  }
}

/// How memory is placed.
enum class Placement {
  device,      ///< hipMalloc
  guard_page,  ///< CPU target: the last byte is followed by an unmapped page
  sparse,      ///< CPU target: address space without memory behind it until it is touched
};

inline constexpr bool placements_available = FLASHXDL_AMDGCN == 0;

/// Pages of the process: the device memory of the CPU target, placed exactly.
class Pages {
public:
  Pages(std::size_t bytes, bool guard) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t usable = (bytes + page - 1) / page * page;
    size_ = usable + page;
    void* base = mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
      throw std::runtime_error("mmap of " + std::to_string(size_) + " bytes failed");
    }
    base_ = static_cast<std::byte*>(base);
    if (guard && mprotect(base_ + usable, page, PROT_NONE) != 0) {
      munmap(base_, size_);
      throw std::runtime_error("mprotect of a guard page failed");
    }
    data_ = base_ + (guard ? usable - bytes : 0);
  }
  ~Pages() { munmap(base_, size_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  std::byte* data() const { return data_; }

private:
  std::byte* base_;
  std::byte* data_;
  std::size_t size_;
};

class Buffer {
public:
  /// `bytes` of memory, all canaries until something is written to host().
  Buffer(std::size_t bytes, Placement placement)
      : bytes_(bytes), front_(placement == Placement::device ? pad : 0) {
    if (placement != Placement::device && !placements_available) {
      throw std::runtime_error("guard pages and sparse memory exist on the CPU target only");
    }
    const std::size_t back = placement == Placement::device ? back_pad : 0;
    if (placement == Placement::device) {
      void* memory = nullptr;
      check_hip(hipMalloc(&memory, front_ + bytes + back), "hipMalloc");
      device_.reset(static_cast<std::byte*>(memory));
    } else {
      pages_ = std::make_unique<Pages>(bytes, placement == Placement::guard_page);
    }
    if (placement != Placement::sparse) image_.assign(front_ + bytes + back, canary);
  }

  /// The image that upload() sends. Sparse memory has none: it is the memory itself.
  std::byte* host() { return image_.empty() ? pages_->data() : image_.data() + front_; }
  const std::byte* host() const { return const_cast<Buffer*>(this)->host(); }
  /// What download() fetched.
  const std::byte* result() const { return image_.empty() ? host() : result_.data() + front_; }
  void* device() const { return pages_ ? pages_->data() : device_.get() + front_; }
  std::size_t bytes() const { return bytes_; }

  void upload() {
    if (image_.empty()) return;
    if (pages_) {
      std::memcpy(pages_->data(), image_.data(), image_.size());
      return;
    }
    check_hip(hipMemcpy(device_.get(), image_.data(), image_.size(), hipMemcpyHostToDevice),
              "hipMemcpy to the device");
  }
  void download() {
    if (image_.empty()) return;
    result_.resize(image_.size());
    if (pages_) {
      std::memcpy(result_.data(), pages_->data(), image_.size());
      return;
    }
    check_hip(hipMemcpy(result_.data(), device_.get(), image_.size(), hipMemcpyDeviceToHost),
              "hipMemcpy from the device");
  }

  /// What download() fetched is what upload() sends from now on: an output becomes an input.
  void adopt_result() {
    if (!image_.empty()) image_ = result_;
  }

  /// After download(): position of the first byte that differs from the image, relative to the
  /// buffer, where `written` says which bytes a kernel may write; -1 if there is none.
  template <class Written>
  std::ptrdiff_t first_change(const Written& written) const {
    if (image_.empty()) return no_change;
    if (std::memcmp(image_.data(), result_.data(), image_.size()) == 0) return no_change;
    const std::vector<bool> may_change = written(bytes_);
    for (std::size_t n = 0; n < image_.size(); ++n) {
      const bool inside = n >= front_ && n < front_ + bytes_;
      if (image_[n] == result_[n] || (inside && may_change[n - front_])) continue;
      return static_cast<std::ptrdiff_t>(n) - static_cast<std::ptrdiff_t>(front_);
    }
    return no_change;
  }

  static constexpr std::byte canary{0xff};  // NaN in fp16, bf16 and fp32
  static constexpr std::ptrdiff_t no_change = PTRDIFF_MAX;

private:
  static constexpr std::size_t pad = 256;
  // Under ASan the allocation ends flush with the last element, so that it sees reads past it too.
#if defined(__SANITIZE_ADDRESS__)
  static constexpr std::size_t back_pad = 0;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
  static constexpr std::size_t back_pad = 0;
#else
  static constexpr std::size_t back_pad = pad;
#endif
#else
  static constexpr std::size_t back_pad = pad;
#endif

  struct Free {
    void operator()(std::byte* memory) const { (void)hipFree(memory); }
  };

  void* start() const {
    return pages_ ? pages_->data() : device_.get();
  }

  std::size_t bytes_;
  std::size_t front_;
  std::unique_ptr<std::byte, Free> device_;
  std::unique_ptr<Pages> pages_;
  std::vector<std::byte> image_;
  std::vector<std::byte> result_;
};

}  // namespace flashxdl::test
