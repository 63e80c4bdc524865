#pragma once
/// \file
/// The kernels that cases run through.

#include <functional>
#include <string>
#include <vector>

#include "flashxdl/flashxdl.hpp"
#include "flashxdl/hip.hpp"

namespace flashxdl::test {

struct Kernel {
  std::string name;
  bool general;  ///< must support every valid case; others may say `unsupported`
  std::function<Status(const MhaForwardArgs&, hipStream_t)> batched;
  std::function<std::size_t(const MhaForwardGroupedArgs&)> workspace_size;
  std::function<Status(const MhaForwardGroupedArgs&, void*, std::size_t, hipStream_t)> grouped;
};

inline const std::vector<Kernel>& kernels() {
  static const std::vector<Kernel> table{
      {"fwd_v2", true,
       [](const MhaForwardArgs& args, hipStream_t stream) { return MhaForward(args, stream); },
       [](const MhaForwardGroupedArgs& args) { return MhaForwardWorkspaceSize(args); },
       [](const MhaForwardGroupedArgs& args, void* workspace, std::size_t bytes,
          hipStream_t stream) { return MhaForward(args, workspace, bytes, stream); }},
  };
  return table;
}

}  // namespace flashxdl::test
