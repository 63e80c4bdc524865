#pragma once
/// \file
/// In which order lanes, waves and workgroups run on the CPU. Any order is legal on the GPU, so a
/// kernel whose result depends on it is wrong: shuffled schedules are there to show that.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>

namespace flashxdl::host {

struct Schedule {
  enum class Kind : std::uint8_t {
    sequential,  ///< a wave runs until a workgroup barrier or its end, then the next wave
    shuffle,     ///< lanes, waves and workgroups are reordered pseudo-randomly at meeting points
  };
  Kind kind = Kind::sequential;
  std::uint64_t seed = 0;  ///< of the shuffle; the same seed repeats a workgroup's order

  static constexpr Schedule sequential() { return {}; }
  static constexpr Schedule shuffle(std::uint64_t seed) { return {Kind::shuffle, seed}; }
  friend constexpr bool operator==(const Schedule&, const Schedule&) = default;
};

namespace detail {

/// SplitMix64: small, and good enough to reorder things.
class Random {
public:
  explicit constexpr Random(std::uint64_t seed) : state_(seed) {}

  constexpr std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
  }
  /// Uniform in [0, bound), bound > 0.
  constexpr std::uint32_t below(std::uint32_t bound) {
    return static_cast<std::uint32_t>(((next() >> 32) * bound) >> 32);
  }

private:
  std::uint64_t state_;
};

/// Reads "sequential" or "shuffle:SEED"; false if `text` is neither.
inline bool parse_schedule(std::string_view text, Schedule& schedule) {
  if (text.empty() || text == "sequential") {
    schedule = Schedule::sequential();
    return true;
  }
  constexpr std::string_view prefix = "shuffle:";
  if (!text.starts_with(prefix) || text.size() == prefix.size()) return false;
  const std::string digits(text.substr(prefix.size()));
  if (digits.find_first_not_of("0123456789") != std::string::npos) return false;
  schedule = Schedule::shuffle(std::strtoull(digits.c_str(), nullptr, 10));
  return true;
}

struct ScheduleSetting {
  std::mutex mutex;
  Schedule schedule;

  ScheduleSetting() {
    const char* text = std::getenv("FLASHXDL_HOST_SCHEDULE");
    if (text == nullptr || parse_schedule(text, schedule)) return;
    std::fprintf(stderr,
                 "flashxdl host: FLASHXDL_HOST_SCHEDULE is '%s'; it must be 'sequential' or "
                 "'shuffle:SEED' with a decimal seed\n",
                 text);
    std::abort();
  }
};

inline ScheduleSetting& schedule_setting() {
  static auto* setting = new ScheduleSetting;  // outlives every static object
  return *setting;
}

}  // namespace detail

/// For the launches that follow; replaces what FLASHXDL_HOST_SCHEDULE said.
inline void set_schedule(Schedule schedule) {
  auto& setting = detail::schedule_setting();
  const std::lock_guard lock(setting.mutex);
  setting.schedule = schedule;
}

inline Schedule schedule() {
  auto& setting = detail::schedule_setting();
  const std::lock_guard lock(setting.mutex);
  return setting.schedule;
}

}  // namespace flashxdl::host
