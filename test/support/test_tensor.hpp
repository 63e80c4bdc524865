#pragma once
/// \file
/// A logical tensor in a Buffer; several tensors may share one (packed QKV).

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "flashxdl/core/problem.hpp"
#include "support/buffer.hpp"
#include "support/layout.hpp"

namespace flashxdl::test {

/// Elements are of a DataType, or bytes (the keep mask) where there is none.
struct TestTensor {
  std::shared_ptr<Buffer> buffer{};
  Layout layout{};
  std::optional<DataType> dtype{};

  explicit operator bool() const { return buffer != nullptr; }
  std::size_t element_size() const { return dtype ? size_of(*dtype) : 1; }

  void set(std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d, double value) {
    store_element(buffer->host(), dtype.value(), layout.at(b, h, s, d), static_cast<float>(value));
  }
  /// The input that upload() sends.
  double input(std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) const {
    return load(buffer->host(), layout.at(b, h, s, d));
  }
  /// The output that download() fetched.
  double output(std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) const {
    return load(buffer->result(), layout.at(b, h, s, d));
  }

  template <class Pointer>
  Tensor<Pointer> on_device() const {
    return view<Pointer>(static_cast<std::byte*>(buffer->device()));
  }
  template <class Pointer>
  Tensor<Pointer> on_host() const {
    return view<Pointer>(buffer->host());
  }
  /// Null data where there is no tensor.
  template <class Pointer>
  Tensor<Pointer> on(bool device) const {
    if (!*this) return {};
    return device ? on_device<Pointer>() : on_host<Pointer>();
  }

  /// Marks the bytes of the elements.
  void mark_elements(std::vector<bool>& marked) const {
    layout.for_each([&](std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) {
      const auto first = static_cast<std::size_t>(layout.at(b, h, s, d)) * element_size();
      for (std::size_t n = 0; n < element_size(); ++n) marked[first + n] = true;
    });
  }

private:
  double load(const std::byte* data, std::int64_t index) const {
    if (!dtype) return std::to_integer<int>(data[index]);
    return static_cast<double>(load_element(data, *dtype, index));
  }
  template <class Pointer>
  Tensor<Pointer> view(std::byte* data) const {
    void* first = data + layout.offset * static_cast<std::int64_t>(element_size());
    return {static_cast<Pointer>(first), layout.b, layout.h, layout.s, layout.d};
  }
};

/// A tensor with a buffer of its own.
inline TestTensor make_tensor(std::optional<DataType> dtype, const Layout& layout,
                              Placement placement = Placement::device) {
  TestTensor tensor{nullptr, layout, dtype};
  tensor.buffer = std::make_shared<Buffer>(
      static_cast<std::size_t>(layout.extent()) * tensor.element_size(), placement);
  return tensor;
}

}  // namespace flashxdl::test
