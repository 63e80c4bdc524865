#pragma once
/// \file
/// Choosing the schedule of the CPU target in tests.

#include <cstdint>

#include "flashxdl/core/config.hpp"
#include "flashxdl/hip.hpp"

#if !FLASHXDL_AMDGCN
#include "flashxdl/host/schedule.hpp"
#endif

namespace flashxdl::test {

#if FLASHXDL_AMDGCN

/// A GPU schedules by itself: repetitions are all that one can ask for.
class ScheduleGuard {
public:
  void shuffle(std::uint64_t) const {}
  void sequential() const {}
};

#else

/// Sets schedules and puts the first one back at the end.
class ScheduleGuard {
public:
  ScheduleGuard() : before_(host::schedule()) {}
  ~ScheduleGuard() { host::set_schedule(before_); }
  ScheduleGuard(const ScheduleGuard&) = delete;
  ScheduleGuard& operator=(const ScheduleGuard&) = delete;

  void shuffle(std::uint64_t seed) const { host::set_schedule(host::Schedule::shuffle(seed)); }
  void sequential() const { host::set_schedule(host::Schedule::sequential()); }

private:
  host::Schedule before_;
};

#endif

}  // namespace flashxdl::test
