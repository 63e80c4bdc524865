#pragma once
/// \file
/// A workgroup on one OS thread: its lanes are fibers that pass control straight to each other.
///
/// Every stop of a lane - a wave collective, a workgroup barrier, the end of the kernel - is a
/// meeting of all lanes of its wave. A lane that arrives hands control to the next lane in the
/// wave's ring, so a meeting of 64 lanes takes 63 switches; the last to arrive closes the meeting
/// and goes on. A lane that meets at another place than its neighbours is a divergence: the
/// workgroup fails with a message, and its suspended lanes are unwound by an exception.

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "flashxdl/host/dim3.hpp"
#include "flashxdl/host/fiber.hpp"
#include "flashxdl/host/kernel.hpp"
#include "flashxdl/host/lds_arena.hpp"
#include "flashxdl/host/schedule.hpp"

namespace flashxdl::host::detail {

class Workgroup;
struct Wave;

/// One cache line, without sanitizers.
struct alignas(64) Lane {
  Fiber fiber;
  Lane* next = nullptr;  ///< in the wave's ring
  Wave* wave = nullptr;
  Workgroup* workgroup = nullptr;
  unsigned id = 0;      ///< within the wave
  bool active = false;  ///< inside the kernel
  dim3 thread;          ///< threadIdx
};

/// Where lanes can meet. `slot_type` tells apart operations of one name on different types.
struct MeetingPlace {
  const char* name = nullptr;
  const void* slot_type = nullptr;

  bool operator==(const MeetingPlace& other) const {
    return slot_type == other.slot_type &&
           (name == other.name || std::strcmp(name, other.name) == 0);
  }
};

inline constexpr MeetingPlace barrier_place{"workgroup barrier", &barrier_place};
inline constexpr MeetingPlace end_place{"end of the kernel", &end_place};

struct Wave {
  enum class State : std::uint8_t { running, at_barrier, ended };

  unsigned id = 0;
  unsigned lanes = 0;    ///< 64, fewer in the last wave of some blocks
  unsigned arrived = 0;  ///< lanes at the meeting that is open
  State state = State::running;
  MeetingPlace place;  ///< of the meeting that is open
  Lane* first_arrived = nullptr;
  Lane* resume = nullptr;  ///< where the wave goes on
  /// std::array<Slot*, 64> of the meeting that is open
  alignas(64) std::byte slots[wave_size * sizeof(void*)];
};

/// Leaves a lane of a workgroup that has failed.
struct Unwind {};

template <class Slot>
inline constexpr char slot_type_tag = 0;

/// The lane that runs on this thread; null outside a kernel.
inline constinit thread_local Lane* current_lane = nullptr;

class Workgroup {
public:
  Workgroup() = default;
  Workgroup(const Workgroup&) = delete;
  Workgroup& operator=(const Workgroup&) = delete;
  ~Workgroup();

  /// Runs workgroup `index` of the kernel on this thread; gives the message if it failed.
  std::optional<std::string> run(const Kernel& kernel, std::uint64_t index);

  const Kernel& kernel() const { return *kernel_; }
  const dim3& block_index() const { return block_index_; }
  LdsArena& lds() { return lds_; }

  /// A meeting of the lanes of a wave; see lane.hpp.
  template <class Slot, class Op>
  void collective(Lane& lane, const char* name, Slot& mine, Op&& op);
  void barrier(Lane& lane);

private:
  /// Joins or opens the wave's meeting; true for the lane that completes it.
  bool arrive(Lane& lane, const MeetingPlace& place);
  void wait(Lane& lane, Lane& next);
  void meeting_closed(Lane& lane);
  Lane* barrier_reached(Lane& lane);
  Lane* kernel_left(Lane& lane);
  Wave* other_running_wave(const Wave& wave);
  Lane* suspended_lane();
  void shuffle_lanes(Wave& wave);

  void fail(std::string what);
  [[noreturn]] void fail_and_unwind(std::string what);
  void refuse_if_failing();
  std::string diverged(const Lane& waiting, const MeetingPlace& there, const Lane& late,
                       const MeetingPlace& here) const;
  std::string describe(const Lane& lane) const;

  static void lane_entry(void* lane);
  void lane_loop(Lane& lane);
  void run_kernel(Lane& lane);
  void make_lanes(unsigned threads);
  void lay_out(const Kernel& kernel);
  void start(std::uint64_t index);
  void check_stacks();

  const Kernel* kernel_ = nullptr;
  dim3 block_index_;
  dim3 laid_out_block_{0, 0, 0};
  bool shuffled_ = false;
  bool ring_disturbed_ = false;
  bool failing_ = false;
  bool quitting_ = false;
  unsigned waves_at_barrier_ = 0;
  unsigned waves_ended_ = 0;
  Random random_{0};
  std::string failure_;
  Fiber home_;  ///< the worker thread's own flow
  std::vector<Wave> waves_;
  std::vector<std::unique_ptr<Lane[]>> lanes_;  ///< by wave; grows to the largest block seen
  std::vector<std::unique_ptr<StackBlock>> stacks_;
  LdsArena lds_;
};

// ---- meetings -----------------------------------------------------------------------------------

inline bool Workgroup::arrive(Lane& lane, const MeetingPlace& place) {
  Wave& wave = *lane.wave;
  if (wave.arrived == 0) {
    wave.place = place;
    wave.first_arrived = &lane;
  } else if (!(wave.place == place)) [[unlikely]] {
    fail(diverged(*wave.first_arrived, wave.place, lane, place));
    return false;
  }
  return ++wave.arrived == wave.lanes;
}

/// Runs `next`; returns when this lane is resumed, or throws if the workgroup failed meanwhile.
inline void Workgroup::wait(Lane& lane, Lane& next) {
  Fiber::switch_to(lane.fiber, next.fiber);
  current_lane = &lane;
  if (failing_) [[unlikely]]
    throw Unwind{};
}

template <class Slot, class Op>
void Workgroup::collective(Lane& lane, const char* name, Slot& mine, Op&& op) {
  using Slots = std::array<Slot*, wave_size>;
  static_assert(sizeof(Slots) == sizeof(Wave::slots));
  if (failing_) [[unlikely]]
    return refuse_if_failing();
  Wave& wave = *lane.wave;
  if (wave.arrived == 0) {
    auto* slots = ::new (static_cast<void*>(wave.slots)) Slots;
    for (unsigned i = wave.lanes; i < wave_size; ++i) (*slots)[i] = nullptr;
  }
  const bool last = arrive(lane, {name, &slot_type_tag<Slot>});
  if (failing_) [[unlikely]]
    throw Unwind{};
  auto& slots = *std::launder(reinterpret_cast<Slots*>(wave.slots));
  slots[lane.id] = &mine;
  if (!last) return wait(lane, *lane.next);
  std::forward<Op>(op)(std::as_const(slots));
  meeting_closed(lane);
}

inline void Workgroup::meeting_closed(Lane& lane) {
  Wave& wave = *lane.wave;
  wave.arrived = 0;
  if (!shuffled_) return;
  shuffle_lanes(wave);
  Wave* next = other_running_wave(wave);
  if (next == nullptr || random_.below(2) == 0) next = &wave;
  if (next->resume != &lane) wait(lane, *next->resume);
}

inline void Workgroup::barrier(Lane& lane) {
  if (failing_) [[unlikely]]
    return refuse_if_failing();
  const bool last = arrive(lane, barrier_place);
  if (failing_) [[unlikely]]
    throw Unwind{};
  Lane* next = last ? barrier_reached(lane) : lane.next;
  if (failing_) [[unlikely]]
    throw Unwind{};
  if (next != &lane) wait(lane, *next);
}

/// The wave of `lane` stands at the barrier as a whole: which lane runs now.
inline Lane* Workgroup::barrier_reached(Lane& lane) {
  Wave& wave = *lane.wave;
  wave.arrived = 0;
  wave.state = Wave::State::at_barrier;
  wave.resume = &lane;
  ++waves_at_barrier_;
  if (waves_at_barrier_ == waves_.size()) {
    waves_at_barrier_ = 0;
    for (Wave& each : waves_) {
      each.state = Wave::State::running;
      if (shuffled_) shuffle_lanes(each);
    }
    return shuffled_ ? waves_[random_.below(static_cast<unsigned>(waves_.size()))].resume : &lane;
  }
  if (waves_ended_ != 0) {
    for (const Wave& each : waves_) {
      if (each.state != Wave::State::ended) continue;
      fail(diverged(lane, barrier_place, lanes_[each.id][0], end_place));
      return nullptr;
    }
  }
  return other_running_wave(wave)->resume;
}

/// The lane returned from the kernel: which lane runs now; null when the workgroup is done.
inline Lane* Workgroup::kernel_left(Lane& lane) {
  Wave& wave = *lane.wave;
  const bool last = arrive(lane, end_place);
  if (failing_) return nullptr;
  if (!last) return lane.next;
  wave.arrived = 0;
  wave.state = Wave::State::ended;
  if (++waves_ended_ == waves_.size()) return nullptr;
  if (waves_at_barrier_ != 0) {
    for (const Wave& each : waves_) {
      if (each.state != Wave::State::at_barrier) continue;
      fail(diverged(*each.resume, barrier_place, lane, end_place));
      return nullptr;
    }
  }
  return other_running_wave(wave)->resume;
}

/// The next wave after `wave`, or a random other one, that can run; null if there is none.
inline Wave* Workgroup::other_running_wave(const Wave& wave) {
  const auto count = static_cast<unsigned>(waves_.size());
  unsigned id = shuffled_ ? random_.below(count) : wave.id;
  for (unsigned i = 0; i < count; ++i) {
    id = id + 1 == count ? 0 : id + 1;
    Wave& candidate = waves_[id];
    if (&candidate != &wave && candidate.state == Wave::State::running) return &candidate;
  }
  return nullptr;
}

/// A new random ring for the wave, and a new lane to start with. All its lanes are at rest.
inline void Workgroup::shuffle_lanes(Wave& wave) {
  std::array<std::uint8_t, wave_size> order{};
  for (unsigned i = 0; i < wave.lanes; ++i) {
    const unsigned j = random_.below(i + 1);
    order[i] = order[j];
    order[j] = static_cast<std::uint8_t>(i);
  }
  Lane* lanes = lanes_[wave.id].get();
  for (unsigned i = 0; i < wave.lanes; ++i) {
    lanes[order[i]].next = &lanes[order[i + 1 == wave.lanes ? 0 : i + 1]];
  }
  wave.resume = &lanes[order[0]];
  ring_disturbed_ = true;
}

// ---- failures -----------------------------------------------------------------------------------

/// The first failure stands; what follows from it is no news.
inline void Workgroup::fail(std::string what) {
  if (!failing_) failure_ = std::move(what);
  failing_ = true;
}

inline void Workgroup::fail_and_unwind(std::string what) {
  fail(std::move(what));
  throw Unwind{};
}

/// At a meeting point of a lane that is already being unwound (a destructor meets), or that
/// swallowed the exception.
inline void Workgroup::refuse_if_failing() {
  if (std::uncaught_exceptions() == 0) throw Unwind{};
}

inline std::string to_string(const dim3& d) {
  return "(" + std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z) + ")";
}

inline std::string Workgroup::describe(const Lane& lane) const {
  return "wave " + std::to_string(lane.wave->id) + " lane " + std::to_string(lane.id) +
         " (thread " + to_string(lane.thread) + ")";
}

inline std::string Workgroup::diverged(const Lane& waiting, const MeetingPlace& there,
                                       const Lane& late, const MeetingPlace& here) const {
  const auto stand = [](const MeetingPlace& place) {
    if (place == end_place) return std::string("returned from the kernel");
    return "waits at '" + std::string(place.name) + "'";
  };
  std::string text = "divergence: " + describe(waiting) + " " + stand(there) + ", but " +
                     describe(late) + " " + stand(here);
  if (waiting.wave == late.wave) {
    text += "; " + std::to_string(waiting.wave->arrived) + " of the wave's " +
            std::to_string(waiting.wave->lanes) + " lanes had arrived";
    if (std::strcmp(there.name, here.name) == 0) text += "; same name, different operand types";
  }
  return text;
}

inline Lane* Workgroup::suspended_lane() {
  for (const Wave& wave : waves_) {
    for (unsigned i = 0; i < wave.lanes; ++i) {
      if (lanes_[wave.id][i].active) return &lanes_[wave.id][i];
    }
  }
  return nullptr;
}

// ---- the life of a lane
// ---------------------------------------------------------------------------

inline void Workgroup::lane_entry(void* argument) {
  auto& lane = *static_cast<Lane*>(argument);
  lane.workgroup->lane_loop(lane);
}

/// Once round the loop for each workgroup.
inline void Workgroup::lane_loop(Lane& lane) {
  while (!quitting_) {
    run_kernel(lane);
    Lane* next = failing_ ? nullptr : kernel_left(lane);
    if (failing_) next = suspended_lane();
    Fiber::switch_to(lane.fiber, next != nullptr ? next->fiber : home_);
  }
}

inline void Workgroup::run_kernel(Lane& lane) {
  lane.active = true;
  current_lane = &lane;
  // A control transfer out of a catch block would mix up the exceptions of two fibers; so the
  // handlers only take notes.
  try {
    kernel_->invoke(kernel_->body.get());
  } catch (const Unwind&) {
  } catch (const std::exception& e) {
    fail(describe(lane) + " threw an exception: " + e.what());
  } catch (...) {
    fail(describe(lane) + " threw an exception that is not a std::exception");
  }
  lane.active = false;
}

// ---- the life of a workgroup
// ----------------------------------------------------------------------

inline Workgroup::~Workgroup() {
  quitting_ = true;
  for (auto& wave : lanes_) {
    for (unsigned i = 0; i < wave_size; ++i) {
      Fiber::switch_to(home_, wave[i].fiber);
      wave[i].fiber.destroy();
    }
  }
}

inline void Workgroup::make_lanes(unsigned threads) {
  while (lanes_.size() * wave_size < threads) {
    auto stacks = std::make_unique<StackBlock>(wave_size, stack_bytes());
    auto lanes = std::make_unique<Lane[]>(wave_size);
    for (unsigned i = 0; i < wave_size; ++i) {
      lanes[i].workgroup = this;
      lanes[i].id = i;
      lanes[i].fiber.create(stacks->low(i), stacks->usable_bytes(), &lane_entry, &lanes[i]);
    }
    stacks_.push_back(std::move(stacks));
    lanes_.push_back(std::move(lanes));
  }
}

/// Waves, rings and thread coordinates for the kernel's block, in the natural order.
inline void Workgroup::lay_out(const Kernel& kernel) {
  if (kernel.block == laid_out_block_ && !ring_disturbed_) return;
  const unsigned threads = kernel.threads();
  make_lanes(threads);
  waves_.resize((threads + wave_size - 1) / wave_size);
  for (unsigned w = 0; w < waves_.size(); ++w) {
    Wave& wave = waves_[w];
    wave.id = w;
    wave.lanes = std::min(wave_size, threads - w * wave_size);
    for (unsigned i = 0; i < wave.lanes; ++i) {
      Lane& lane = lanes_[w][i];
      const unsigned t = w * wave_size + i;
      lane.wave = &wave;
      lane.next = &lanes_[w][i + 1 == wave.lanes ? 0 : i + 1];
      lane.thread = dim3(t % kernel.block.x, t / kernel.block.x % kernel.block.y,
                         t / kernel.block.x / kernel.block.y);
    }
  }
  laid_out_block_ = kernel.block;
  ring_disturbed_ = false;
}

inline void Workgroup::start(std::uint64_t index) {
  const dim3& grid = kernel_->grid;
  block_index_ = dim3(static_cast<std::uint32_t>(index % grid.x),
                      static_cast<std::uint32_t>(index / grid.x % grid.y),
                      static_cast<std::uint32_t>(index / grid.x / grid.y));
  shuffled_ = kernel_->schedule.kind == Schedule::Kind::shuffle;
  random_ = Random(kernel_->schedule.seed * 0x2545f4914f6cdd1dull + index);
  failing_ = false;
  waves_at_barrier_ = 0;
  waves_ended_ = 0;
  lds_.start();
  for (Wave& wave : waves_) {
    wave.arrived = 0;
    wave.state = Wave::State::running;
    wave.resume = &lanes_[wave.id][0];
    if (shuffled_) shuffle_lanes(wave);
  }
}

inline std::optional<std::string> Workgroup::run(const Kernel& kernel, std::uint64_t index) {
  kernel_ = &kernel;
  lay_out(kernel);
  start(index);
  const auto first = shuffled_ ? random_.below(static_cast<unsigned>(waves_.size())) : 0;
  Fiber::switch_to(home_, waves_[first].resume->fiber);
  current_lane = nullptr;
  check_stacks();
  if (!failing_) return std::nullopt;
  return "kernel '" + kernel.name + "', workgroup " + to_string(block_index_) + ": " + failure_;
}

inline void Workgroup::check_stacks() {
  for (const Wave& wave : waves_) {
    StackBlock& stacks = *stacks_[wave.id];
    for (unsigned i = 0; i < wave.lanes; ++i) {
      if (stacks.canary_intact(i)) [[likely]]
        continue;
      stacks.set_canary(i);
      failing_ = false;  // whatever else went wrong, this explains it
      fail("stack overflow: " + describe(lanes_[wave.id][i]) + " used more than its " +
           std::to_string(stack_bytes() / 1024) +
           " KiB of stack; set FLASHXDL_HOST_STACK_KIB to a larger number");
    }
  }
}

}  // namespace flashxdl::host::detail
