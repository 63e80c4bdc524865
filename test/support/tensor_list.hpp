#pragma once
/// \file
/// The tensors of a problem as a list: uploads, downloads, and a check of who wrote where. Several
/// tensors may share a buffer (packed QKV).

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "support/test_tensor.hpp"

namespace flashxdl::test {

struct NamedTensor {
  const char* name;
  const TestTensor* tensor;  ///< may be empty
  bool is_output;
};

using TensorList = std::vector<NamedTensor>;

/// Calls action() once for every buffer of the list.
inline void for_each_buffer(const TensorList& tensors, void (Buffer::*action)()) {
  std::vector<Buffer*> done;
  for (const auto& named : tensors) {
    Buffer* buffer = named.tensor->buffer.get();
    if (buffer == nullptr || std::find(done.begin(), done.end(), buffer) != done.end()) continue;
    (buffer->*action)();
    done.push_back(buffer);
  }
}

/// After a download: a sentence for every buffer with a write outside of the outputs (with
/// `none_allowed`, any write), or "".
inline std::string writes_outside(const TensorList& tensors, bool none_allowed = false) {
  std::map<const Buffer*, TensorList> uses;
  for (const auto& named : tensors) {
    if (*named.tensor) uses[named.tensor->buffer.get()].push_back(named);
  }
  std::string found;
  for (const auto& [buffer, users] : uses) {
    const auto written = [&users = users, none_allowed](std::size_t bytes) {
      std::vector<bool> marked(bytes);
      for (const auto& named : users) {
        if (named.is_output && !none_allowed) named.tensor->mark_elements(marked);
      }
      return marked;
    };
    const std::ptrdiff_t at = buffer->first_change(written);
    if (at == Buffer::no_change) continue;
    found += std::string(users.front().name) + ": byte " + std::to_string(at) + " of " +
             std::to_string(buffer->bytes()) + " was overwritten; ";
  }
  return found;
}

/// The same for problems, which may share buffers.
template <class Problem>
std::string writes_outside(const std::vector<const Problem*>& problems, bool none_allowed = false) {
  TensorList all;
  for (const Problem* problem : problems) {
    const TensorList tensors = problem->tensors();
    all.insert(all.end(), tensors.begin(), tensors.end());
  }
  return writes_outside(all, none_allowed);
}

}  // namespace flashxdl::test
