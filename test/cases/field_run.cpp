#include "cases/field_run.hpp"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <set>

#include "cases/crash_note.hpp"
#include "cases/field_check.hpp"
#include "cases/field_problem.hpp"
#include "support/forward_case.hpp"
#include "support/run_forward.hpp"
#include "support/schedule.hpp"

namespace flashxdl::test {
namespace {

enum class Mode { batched, grouped };

/// A stream for the time of a run.
class Stream {
public:
  Stream() {
    check_hip(hipStreamCreateWithFlags(&stream_, hipStreamNonBlocking), "hipStreamCreateWithFlags");
  }
  ~Stream() { (void)hipStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  hipStream_t get() const { return stream_; }

private:
  hipStream_t stream_ = nullptr;
};

/// `name` as a word of `message`, in any case; '_' separates words.
bool names(const std::string& message, const std::string& name) {
  const auto lower = [](std::string text) {
    for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return text;
  };
  const std::string text = lower(message), word = lower(name);
  const auto inside_word = [&](std::size_t n) {
    return n < text.size() && std::isalnum(static_cast<unsigned char>(text[n]));
  };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    if (!inside_word(at + word.size()) && (at == 0 || !inside_word(at - 1))) return true;
  }
  return false;
}

/// The problems of one call, with their references: groups, or one batched problem.
class Call {
public:
  explicit Call(const FieldCase& c) : case_(c), problems_(make_problems(c, wants_keep(c))) {}

  std::vector<ForwardProblem>& problems() { return problems_; }

  void upload() {
    for (auto& problem : problems_) problem.upload();
  }
  void download() {
    for (auto& problem : problems_) problem.download();
  }
  std::string writes_outside(bool none_allowed) const {
    std::vector<const ForwardProblem*> all;
    for (const auto& problem : problems_) all.push_back(&problem);
    return test::writes_outside(all, none_allowed);
  }
  /// O and LSE, bit by bit.
  std::vector<std::byte> output_bits() const {
    std::vector<std::byte> bits;
    for (const auto& problem : problems_) {
      for (const TestTensor* tensor : {&problem.o, &problem.lse}) {
        const Buffer& buffer = *tensor->buffer;
        bits.insert(bits.end(), buffer.result(), buffer.result() + buffer.bytes());
      }
    }
    return bits;
  }
  CheckedProblem checked(std::size_t group) {
    if (references_.empty()) make_references();
    return {case_, problems_[group], references_[group]};
  }

private:
  static bool wants_keep(const FieldCase& c) {
    return std::any_of(c.checks.begin(), c.checks.end(), [](const Check& check) {
      const auto& t = check.tensors;
      return std::find(t.begin(), t.end(), "keep") != t.end();
    });
  }

  void make_references() {
    references_.resize(problems_.size());
    std::uint64_t sequence_base = 0;
    for (std::size_t g = 0; g < problems_.size(); ++g) {
      const ForwardProblem& problem = problems_[g];
      if (case_.check_sample.empty()) references_[g].emplace_back(problem, sequence_base);
      for (const std::int64_t b : case_.check_sample) {
        references_[g].emplace_back(problem, sequence_base, b, 1);
      }
      sequence_base += static_cast<std::uint64_t>(problem.shape.batch * problem.shape.heads_q);
    }
  }

  const FieldCase& case_;
  std::vector<ForwardProblem> problems_;
  std::vector<std::vector<ForwardReference>> references_;
};

/// One kernel and mode on the calls of a case.
class Run {
public:
  using Modify = std::function<void(MhaForwardArgs&)>;

  Run(const FieldCase& c, std::vector<std::unique_ptr<Call>>& calls, const Kernel& kernel,
      Mode mode, Tally& tally)
      : case_(c), calls_(calls), kernel_(kernel), mode_(mode), tally_(tally) {}

  void run() {
    note_for_crash(title());
    ++tally_.runs;
    try {
      const Status status = launch({});
      for (auto& call : calls_) call->download();
      judge(status);
    } catch (const std::exception& error) {
      fail(error.what());
    }
  }

private:
  std::string title() const {
    return case_.id + ' ' + kernel_.name +
           (mode_ == Mode::batched ? " batched"
            : case_.grouped        ? " grouped"
                                   : " as one group");
  }
  void fail(const std::string& what) {
    ++tally_.failures;
    std::printf("FAIL %s: %s\n", title().c_str(), what.c_str());
    std::fflush(stdout);
  }

  /// All calls on one stream, without waiting in between.
  Status launch(const Modify& modify) {
    for (auto& call : calls_) call->upload();
    const Stream stream;
    std::vector<std::unique_ptr<Workspace>> workspaces;
    std::unique_ptr<BusyStream> busy;
    if (case_.busy_stream) busy = std::make_unique<BusyStream>(kernel_);
    Status status;
    for (auto& call : calls_) {
      status = launch_call(*call, modify, stream.get(), workspaces);
      if (!status.ok()) break;
    }
    return finish(status, stream.get());
  }

  Status launch_call(Call& call, const Modify& modify, hipStream_t stream,
                     std::vector<std::unique_ptr<Workspace>>& workspaces) {
    MhaForwardGroupedArgs args = grouped_args(call.problems());
    if (modify) std::for_each(args.groups.begin(), args.groups.end(), modify);
    if (mode_ == Mode::batched) return kernel_.batched(args.groups.at(0), stream);
    workspaces.push_back(std::make_unique<Workspace>(kernel_.workspace_size(args)));
    const Workspace& workspace = *workspaces.back();
    return kernel_.grouped(args, workspace.data(), workspace.bytes(), stream);
  }

  /// Work on another stream, so that calls do not have the device to themselves.
  class BusyStream {
  public:
    explicit BusyStream(const Kernel& kernel)
        : problem_(make_problem({.heads_q = 4, .heads_kv = 4, .seqlen_q = 256, .seqlen_k = 256})) {
      problem_.upload();
      for (int n = 0; n < 3; ++n) {
        const Status status = kernel.batched(problem_.device_args(), stream_.get());
        if (!status.ok()) throw std::runtime_error("busy stream: " + status.message());
      }
    }
    ~BusyStream() { (void)hipStreamSynchronize(stream_.get()); }

  private:
    ForwardProblem problem_;
    Stream stream_;
  };

  void judge(const Status& status) {
    if (status.code() == StatusCode::runtime_error) return fail(status.message());
    const bool refused = !status.ok();
    if (refused && case_.expected == Expected::ok) {
      if (status.code() == StatusCode::unsupported && !kernel_.general) {
        ++tally_.not_supported;
        return;
      }
      return fail("refused: " + status.message());
    }
    if (!refused && case_.expected == Expected::refused) return fail("ran; wanted a refusal");
    if (refused) return judge_refusal(status.message());
    judge_results();
  }

  void judge_refusal(const std::string& message) {
    ++tally_.checks;
    if (case_.expected == Expected::ok_or_refused) ++tally_.refusals_allowed;
    if (message.empty()) fail("refused without a sentence");
    for (const std::string& name : case_.message_must_name) {
      if (!names(message, name)) {
        fail("the refusal does not name '" + name + "': " + message);
      }
    }
    for (const auto& call : calls_) {
      const std::string written = call->writes_outside(true);
      if (!written.empty()) fail("refused, and yet " + written);
    }
  }

  void judge_results() {
    for (const auto& call : calls_) {
      ++tally_.checks;
      const std::string written = call->writes_outside(false);
      if (!written.empty()) fail("untouched_outside: " + written);
    }
    for (const Check& check : case_.checks) {
      if (!compares_runs(check)) judge_check(check);
    }
    for (const Check& check : case_.checks) {  // these run again
      if (compares_runs(check)) judge_runs(check);
    }
  }

  void judge_check(const Check& check) {
    for (const std::string& tensor : check.tensors) {
      if (is_gradient(tensor)) continue;
      for (std::size_t n = 0; n < calls_.size(); ++n) judge_tensor(check, tensor, n);
    }
  }

  void judge_tensor(const Check& check, const std::string& tensor, std::size_t n) {
    constexpr int lines = 5;  // for each check
    int failed = 0;
    const std::size_t groups = calls_[n]->problems().size();
    if (check.group && *check.group >= groups) throw std::runtime_error("no such group");
    const std::size_t first = check.group.value_or(0);
    const std::size_t end = check.group ? first + 1 : groups;
    for (std::size_t g = first; g < end; ++g) {
      ++tally_.checks;
      const std::string failure = run_check(check, tensor, calls_[n]->checked(g));
      if (failure.empty() || failed++ >= lines) continue;
      fail((calls_.size() > 1 ? "call " + std::to_string(n) + ", " : "") +
           (groups > 1 ? "group " + std::to_string(g) + ", " : "") + check.is + ": " + failure);
    }
    if (failed > lines) {
      fail(check.is + " of " + tensor + ": " + std::to_string(failed - lines) + " more groups");
    }
  }

  void judge_runs(const Check& check) {
    if (check.is == "untouched_outside") return;  // made for every run
    if (std::all_of(check.tensors.begin(), check.tensors.end(), is_gradient)) return;
    ++tally_.checks;
    if (check.is == "no_shared_blocks") return judge_no_shared_blocks();
    if (check.is == "same_as_mask") {
      const Mask mask = parse_mask(check.mask);
      return judge_same_bits("mask " + check.mask, [&](MhaForwardArgs& a) { a.mask = mask; });
    }
    if (check.run == "no_dropout") {
      return judge_same_bits("no dropout", [](MhaForwardArgs& a) { a.dropout = {}; });
    }
    if (check.run != "repeat") throw std::runtime_error("unknown run '" + check.run + "'");
    const ScheduleGuard guard;
    for (int n = 1; n < case_.repeat; ++n) {
      std::string name = "repetition " + std::to_string(n);
      if (!case_.shuffle_seeds.empty()) {
        const std::uint64_t seed =
            case_.shuffle_seeds[static_cast<std::size_t>(n - 1) % case_.shuffle_seeds.size()];
        guard.shuffle(seed);
        name += ", schedule shuffle:" + std::to_string(seed);
      }
      judge_same_bits(name, {});
    }
  }

  /// The last run's outputs against those of one more run.
  void judge_same_bits(const std::string& what, const Modify& modify) {
    std::vector<std::vector<std::byte>> before;
    for (const auto& call : calls_) before.push_back(call->output_bits());
    const Status status = launch(modify);
    if (!status.ok()) return fail(what + ": " + status.message());
    for (std::size_t n = 0; n < calls_.size(); ++n) {
      calls_[n]->download();
      if (calls_[n]->output_bits() != before[n]) fail("other bits with " + what);
    }
  }

  /// Calls under one seed take disjoint intervals of positions.
  void judge_no_shared_blocks() {
    if (calls_.size() < 2) throw std::runtime_error("no_shared_blocks needs calls");
    for (std::size_t x = 0; x < calls_.size(); ++x) {
      for (std::size_t y = 0; y < x; ++y) {
        const auto& a = calls_[x]->problems().front().shape;
        const auto& b = calls_[y]->problems().front().shape;
        if (a.dropout.seed != b.dropout.seed) continue;
        const std::uint64_t first = std::min(a.dropout.offset, b.dropout.offset) / 4;
        const std::uint64_t second = std::max(a.dropout.offset, b.dropout.offset) / 4;
        const std::uint64_t draws =
            Dropout::offset_advance(a.seqlen_q, a.seqlen_k, a.dropout.bits) / 4;
        if (second - first < draws) {
          fail("calls " + std::to_string(y) + " and " + std::to_string(x) + " share draws");
        }
      }
    }
  }

  const FieldCase& case_;
  std::vector<std::unique_ptr<Call>>& calls_;
  const Kernel& kernel_;
  Mode mode_;
  Tally& tally_;
};

/// Gradient checks of one run.
std::int64_t gradient_checks(const FieldCase& c) {
  std::int64_t count = 0;
  for (const Check& check : c.checks) {
    count += std::count_if(check.tensors.begin(), check.tensors.end(), is_gradient);
  }
  return count;
}

}  // namespace

bool is_backward_refusal(const FieldCase& c) {
  static const std::set<std::string> arguments{"dO", "dQ", "dK", "dV", "dBias"};
  return c.expected == Expected::refused &&
         std::any_of(c.message_must_name.begin(), c.message_must_name.end(),
                     [](const std::string& name) { return arguments.contains(name); });
}

void run_case(const FieldCase& c, const std::vector<const Kernel*>& kernels, Tally& tally) {
  note_for_crash(c.id);
  std::vector<FieldCase> variants{c};  // one for each forward call
  if (!c.calls.empty()) {
    variants.clear();
    for (const CallField& call : c.calls) {
      if (!call.forward) {
        ++tally.backward_calls;
        continue;
      }
      variants.push_back(c);
      variants.back().dropout.seed = call.seed;
      variants.back().dropout.offset = call.offset;
    }
  }
  try {
    std::vector<std::unique_ptr<Call>> calls;
    for (const auto& variant : variants) calls.push_back(std::make_unique<Call>(variant));
    tally.gradients += gradient_checks(c);
    for (const Kernel* kernel : kernels) {
      for (const Mode mode : {Mode::batched, Mode::grouped}) {
        if (mode == Mode::batched && c.grouped) continue;
        Run(c, calls, *kernel, mode, tally).run();
      }
    }
  } catch (const std::exception& error) {
    ++tally.failures;
    std::printf("FAIL %s: %s\n", c.id.c_str(), error.what());
  }
}

}  // namespace flashxdl::test
