#pragma once
/// \file
/// A loop over the CPU's threads.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace flashxdl::reference {

/// Calls body(i) once for every 0 <= i < count, in no particular order. `cost` is about the number
/// of operations of one call: little work stays on the calling thread.
template <class Body>
void parallel_for(std::int64_t count, double cost, const Body& body) {
  constexpr double worth_a_thread = 1e6;
  const double work = cost * static_cast<double>(count);
  const std::int64_t threads =
      work < worth_a_thread ? 1 : std::max(1u, std::thread::hardware_concurrency());
  std::atomic<std::int64_t> next{0};
  const auto run = [&] {
    for (std::int64_t i = next++; i < count; i = next++) body(i);
  };
  std::vector<std::thread> others;
  for (std::int64_t t = 1; t < std::min(threads, count); ++t) others.emplace_back(run);
  run();
  for (auto& other : others) other.join();
}

}  // namespace flashxdl::reference
