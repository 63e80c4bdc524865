#pragma once
/// \file
/// Stream capture and the graphs that come of it.

#include <algorithm>
#include <cstddef>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "flashxdl/host/capture.hpp"
#include "flashxdl/host/error.hpp"
#include "flashxdl/host/stream_api.hpp"
#include "flashxdl/host/types.hpp"

namespace flashxdl::host::detail {

/// Captured work, run from front to back. Shared by a graph and what was instantiated from it.
using GraphWorks = std::vector<Work>;

/// Handles of one kind, each naming some captured work; guarded by Streams' lock.
template <class Handle>
class GraphTable {
public:
  Handle add(std::shared_ptr<const GraphWorks> works) {
    entries_.push_back(std::make_unique<Entry>(Entry{std::move(works)}));
    return handle_of(*entries_.back());
  }
  /// Null for an unknown handle.
  std::shared_ptr<const GraphWorks> find(Handle handle) const {
    const auto found = position(handle);
    return found == entries_.end() ? nullptr : (*found)->works;
  }
  bool remove(Handle handle) {
    const auto found = position(handle);
    if (found == entries_.end()) return false;
    entries_.erase(found);
    return true;
  }

private:
  struct Entry {
    std::shared_ptr<const GraphWorks> works;
  };
  using Entries = std::vector<std::unique_ptr<Entry>>;

  static Handle handle_of(Entry& entry) { return reinterpret_cast<Handle>(&entry); }
  typename Entries::const_iterator position(Handle handle) const {
    return std::find_if(entries_.begin(), entries_.end(),
                        [&](const auto& e) { return handle_of(*e) == handle; });
  }

  Entries entries_;
};

struct Graphs {
  GraphTable<hipGraph_t> graphs;
  GraphTable<hipGraphExec_t> executables;
};

inline Graphs& graphs() {
  static auto* instance = new Graphs;  // outlives every static object
  return *instance;
}

/// The first failure ends the replay.
inline hipError_t replay(const GraphWorks& works) {
  for (const Work& work : works) {
    if (const auto error = work(); error != hipSuccess) return error;
  }
  return hipSuccess;
}

inline hipError_t end_capture(hipStream_t handle, hipGraph_t* graph) {
  auto& all = streams();
  const auto lock = all.lock();
  const auto stream = all.find(handle);
  *graph = nullptr;
  if (!stream) return hipErrorInvalidResourceHandle;
  const auto capture = stream->capture;
  if (!capture) return hipErrorIllegalState;
  if (capture->origin() != stream.get()) return hipErrorStreamCaptureUnmatched;
  if (capture->mode() != hipStreamCaptureModeRelaxed &&
      capture->thread() != std::this_thread::get_id()) {
    return hipErrorStreamCaptureWrongThread;
  }
  for (const auto& each : all.all()) {
    if (each->capture == capture) each->capture.reset();
  }
  auto works = std::make_shared<GraphWorks>(capture->end());
  if (capture->invalid()) return hipErrorStreamCaptureInvalidated;
  if (!capture->joined()) return hipErrorStreamCaptureUnjoined;
  *graph = graphs().graphs.add(std::move(works));
  return hipSuccess;
}

}  // namespace flashxdl::host::detail

inline hipError_t hipStreamBeginCapture(hipStream_t handle, hipStreamCaptureMode mode) {
  namespace d = flashxdl::host::detail;
  if (mode < hipStreamCaptureModeGlobal || mode > hipStreamCaptureModeRelaxed) {
    return d::report(hipErrorInvalidValue);
  }
  auto& all = d::streams();
  const auto lock = all.lock();
  const auto stream = all.find(handle);
  if (!stream) return d::report(hipErrorInvalidResourceHandle);
  if (all.is_null(stream)) return d::report(hipErrorStreamCaptureUnsupported);
  if (stream->capture) return d::report(hipErrorIllegalState);
  stream->capture = std::make_shared<d::Capture>(stream.get(), mode);
  return hipSuccess;
}

/// Gives the graph of everything that the stream, and the streams forked from it and joined again,
/// were asked to do since hipStreamBeginCapture.
inline hipError_t hipStreamEndCapture(hipStream_t stream, hipGraph_t* graph) {
  namespace d = flashxdl::host::detail;
  if (graph == nullptr) return d::report(hipErrorInvalidValue);
  return d::report(d::end_capture(stream, graph));
}

inline hipError_t hipStreamIsCapturing(hipStream_t handle, hipStreamCaptureStatus* status) {
  namespace d = flashxdl::host::detail;
  if (status == nullptr) return d::report(hipErrorInvalidValue);
  auto& all = d::streams();
  const auto lock = all.lock();
  const auto stream = all.find(handle);
  if (!stream) return d::report(hipErrorInvalidResourceHandle);
  *status = !stream->capture             ? hipStreamCaptureStatusNone
            : stream->capture->invalid() ? hipStreamCaptureStatusInvalidated
                                         : hipStreamCaptureStatusActive;
  return hipSuccess;
}

inline hipError_t hipGraphInstantiate(hipGraphExec_t* executable, hipGraph_t graph,
                                      hipGraphNode_t* error_node = nullptr, char* log = nullptr,
                                      std::size_t log_bytes = 0) {
  namespace d = flashxdl::host::detail;
  if (executable == nullptr) return d::report(hipErrorInvalidValue);
  const auto lock = d::streams().lock();
  auto works = d::graphs().graphs.find(graph);
  if (!works) return d::report(hipErrorInvalidValue);
  *executable = d::graphs().executables.add(std::move(works));
  if (error_node != nullptr) *error_node = nullptr;
  if (log != nullptr && log_bytes != 0) *log = '\0';
  return hipSuccess;
}

inline hipError_t hipGraphLaunch(hipGraphExec_t executable, hipStream_t stream) {
  namespace d = flashxdl::host::detail;
  std::shared_ptr<const d::GraphWorks> works;
  {
    const auto lock = d::streams().lock();
    works = d::graphs().executables.find(executable);
  }
  if (!works) return d::report(hipErrorInvalidValue);
  return d::report(d::enqueue(stream, [works] { return d::replay(*works); }));
}

inline hipError_t hipGraphDestroy(hipGraph_t graph) {
  namespace d = flashxdl::host::detail;
  const auto lock = d::streams().lock();
  return d::report(d::graphs().graphs.remove(graph) ? hipSuccess : hipErrorInvalidValue);
}

inline hipError_t hipGraphExecDestroy(hipGraphExec_t executable) {
  namespace d = flashxdl::host::detail;
  const auto lock = d::streams().lock();
  return d::report(d::graphs().executables.remove(executable) ? hipSuccess : hipErrorInvalidValue);
}
