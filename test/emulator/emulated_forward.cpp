// The CPU target's half of script/emulate_forward.py:
//
//   flashxdl_emulated_forward list               cases, one JSON object to a line
//   flashxdl_emulated_forward prepare CASE DIR   writes buffers, and launches.json: what is
//   launched flashxdl_emulated_forward check CASE DIR     compares the buffers that the emulator
//   left there
//                                                with the CPU target and the reference
//
// check prints a JSON object, and exits non-zero if a comparison failed.

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "emulator/emulated_cases.hpp"
#include "emulator/emulated_kernels.hpp"
#include "support/run_forward.hpp"

namespace flashxdl::test {
namespace {

using nlohmann::json;

/// The memory of a case: inputs are random, but the same in every run of this program.
class CaseMemory {
public:
  struct Entry {
    std::string file;
    Buffer* buffer;
  };

  explicit CaseMemory(const EmulatedCase& c) {
    for (std::size_t g = 0; g < c.problems.size(); ++g) {
      ForwardCase each = c.problems[g];
      each.data_seed = 100 + g;
      problems_.push_back(make_problem(each));
      if (c.change) c.change(problems_.back());
      for (const auto& [name, tensor, is_output] : problems_.back().tensors()) {
        if (*tensor) add("group_" + std::to_string(g) + '_' + name, tensor->buffer.get());
      }
    }
    const auto bytes = MhaForwardWorkspaceSize(grouped_args(problems_));
    workspace_ = std::make_unique<Buffer>(bytes, Placement::device);
    if (c.grouped) add("workspace", workspace_.get());
  }

  std::vector<ForwardProblem>& problems() { return problems_; }
  const std::vector<Entry>& entries() const { return entries_; }
  void* workspace() const { return workspace_->device(); }

  /// [offset of the pointer, buffer, offset in the buffer] of a pointer at `offset` of `arguments`.
  json locate(const std::vector<std::byte>& arguments, std::size_t offset) const {
    const std::byte* pointer = nullptr;
    std::memcpy(&pointer, arguments.data() + offset, sizeof pointer);
    if (pointer == nullptr) return nullptr;
    for (std::size_t n = 0; n < entries_.size(); ++n) {
      const auto* first = static_cast<const std::byte*>(entries_[n].buffer->device());
      if (pointer < first || pointer >= first + entries_[n].buffer->bytes()) continue;
      return {offset, n, pointer - first};
    }
    throw std::logic_error("kernel arguments point into no buffer at byte " +
                           std::to_string(offset));
  }

private:
  void add(std::string name, Buffer* buffer) {
    const auto same = [&](const Entry& entry) { return entry.buffer == buffer; };
    if (std::any_of(entries_.begin(), entries_.end(), same)) return;  // packed tensors
    std::replace(name.begin(), name.end(), ' ', '_');
    entries_.push_back({name + ".bin", buffer});
  }

  std::vector<ForwardProblem> problems_;
  std::vector<Entry> entries_;
  std::unique_ptr<Buffer> workspace_;
};

/// Where the pointers of a descriptor at byte `base` are.
std::vector<std::size_t> descriptor_pointers(std::size_t base) {
  using D = MhaFwdDescriptor;
  std::vector<std::size_t> offsets{
      offsetof(D, q),   offsetof(D, k),           offsetof(D, v),
      offsetof(D, o),   offsetof(D, bias),        offsetof(D, keep),
      offsetof(D, lse), offsetof(D, seed_device), offsetof(D, offset_device)};
  static_assert(offsetof(D::Operand, data) == 0);
  for (auto& offset : offsets) offset += base;
  return offsets;
}

/// What a device op would launch, written down for the emulator.
class Launches {
public:
  explicit Launches(const CaseMemory& memory) : memory_(memory) {}

  /// `parts`: what the mangled name of the kernel contains.
  template <class Kernel>
  void add(std::vector<std::string> parts, device::Grid grid,
           const typename Kernel::Arguments& arguments, const std::vector<std::size_t>& pointers) {
    std::vector<std::byte> bytes(sizeof arguments);
    std::memcpy(bytes.data(), &arguments, sizeof arguments);
    json patches = json::array();
    for (const std::size_t offset : pointers) {
      const json patch = memory_.locate(bytes, offset);
      if (!patch.is_null()) patches.push_back(patch);
    }
    launches_.push_back({{"kernel", parts},
                         {"grid", {grid.x, grid.y, 1}},
                         {"block", {Kernel::threads, 1, 1}},
                         {"arguments", hexadecimal(bytes)},
                         {"pointers", patches}});
  }
  const json& get() const { return launches_; }

private:
  static std::string hexadecimal(const std::vector<std::byte>& bytes) {
    constexpr const char* digits = "0123456789abcdef";
    std::string text;
    for (const auto byte : bytes) {
      text += digits[std::to_integer<int>(byte) >> 4];
      text += digits[std::to_integer<int>(byte) & 15];
    }
    return text;
  }

  const CaseMemory& memory_;
  json launches_ = json::array();
};

constexpr const char* attention = "GridwiseBatchedMhaFwdXdlCshuffleV2";
constexpr const char* keep_mask = "GridwiseDropoutMask";

/// One of emulated_kernels with its device ops.
template <std::size_t Number>
struct Instance {
  static constexpr MhaFwdProblem problem = emulated_kernels[Number].problem;
  static constexpr MhaFwdTile tile = emulated_kernels[Number].tile();
  using Algorithm = grid::GridwiseBatchedMhaFwdXdlCshuffleV2<problem, tile>;
  using BatchedOp = device::DeviceBatchedMhaFwdXdlCshuffleV2<problem, tile>;
  using GroupedOp = device::DeviceGroupedMhaFwdXdlCshuffleV2<problem, tile>;

  static std::string type_string(bool grouped) {
    return grouped ? GroupedOp::GetTypeString() : BatchedOp::GetTypeString();
  }

  static void launch_batched(Launches& launches, const MhaForwardArgs& args) {
    using Kernel = device::BatchedKernel<Algorithm>;
    const MhaFwdDescriptor descriptor = device::describe_forward(args, problem, tile.m);
    const device::Grid grid(descriptor.workgroups);
    const auto pointers = descriptor_pointers(offsetof(typename Kernel::Arguments, problem));
    const auto add = [&](const char* algorithm) {
      launches.add<Kernel>({"13BatchedKernel", algorithm}, grid, {descriptor, grid.x}, pointers);
    };
    add(attention);
    if (args.keep_mask.data != nullptr) add(keep_mask);
  }

  static void launch_grouped(Launches& launches, const MhaForwardGroupedArgs& args,
                             void* workspace) {
    using Kernel = device::GroupedKernel<Algorithm>;
    using device::UploadKernel;
    const auto groups = device::describe_forward_groups(args, problem, tile.m);
    auto* const on_device = static_cast<MhaFwdDescriptor*>(workspace);
    for (std::size_t first = 0; first < groups.size(); first += UploadKernel::batch) {
      const auto part = UploadKernel::part(groups.data(), groups.size(), first, on_device);
      std::vector<std::size_t> pointers{offsetof(UploadKernel::Arguments, to)};
      for (std::size_t n = 0; n < part.count; ++n) {
        for (const auto offset : descriptor_pointers(offsetof(UploadKernel::Arguments, items) +
                                                     n * sizeof(MhaFwdDescriptor))) {
          pointers.push_back(offset);
        }
      }
      launches.add<UploadKernel>({"12UploadKernel"}, device::Grid(1), part, pointers);
    }
    const std::uint64_t workgroups = groups.back().first_group + groups.back().workgroups;
    const device::Grid grid(workgroups);
    const auto add = [&](const char* algorithm) {
      launches.add<Kernel>(
          {"13GroupedKernel", algorithm}, grid,
          {on_device, workgroups, static_cast<std::uint32_t>(groups.size()), grid.x},
          {offsetof(typename Kernel::Arguments, groups)});
    };
    add(attention);
    const bool keep = std::any_of(groups.begin(), groups.end(),
                                  [](const auto& g) { return g.keep.data != nullptr; });
    if (keep) add(keep_mask);
  }
};

/// Calls body(Instance) for the kernel of a case.
template <class Body>
void with_instance(const EmulatedCase& c, const Body& body) {
  const std::size_t number = find_kernel(c.kernel);
  if (number == no_kernel) throw std::logic_error("no such kernel: " + std::string(c.kernel));
  static_for<static_cast<int>(no_kernel)>([&](auto n) {
    if (static_cast<std::size_t>(n) == number) body(Instance<static_cast<std::size_t>(n)>{});
  });
}

/// The case's kernel must be the one that users get.
void require_choice(const EmulatedCase& c, CaseMemory& memory) {
  with_instance(c, [&](auto instance) {
    const auto args = grouped_args(memory.problems());
    const std::string chosen =
        c.grouped ? MhaForwardTypeString(args) : MhaForwardTypeString(args.groups.front());
    const std::string here = decltype(instance)::type_string(c.grouped);
    if (chosen != here) {
      throw std::logic_error("MhaForward picks " + chosen + ", but the case names " + here);
    }
  });
}

void write_file(const std::string& path, const void* data, std::size_t bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path);
}

/// Reads exactly `bytes` bytes.
std::vector<char> read_file(const std::string& path, std::size_t bytes) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> data(bytes + 1);
  file.read(data.data(), static_cast<std::streamsize>(data.size()));
  if (static_cast<std::size_t>(file.gcount()) != bytes) {
    throw std::runtime_error(path + ": missing, or not of " + std::to_string(bytes) + " bytes");
  }
  data.pop_back();
  return data;
}

int prepare(const EmulatedCase& c, const std::string& directory) {
  CaseMemory memory(c);
  require_choice(c, memory);
  json buffers = json::array();
  for (const auto& [file, buffer] : memory.entries()) {
    write_file(directory + '/' + file, buffer->host(), buffer->bytes());
    buffers.push_back(file);
  }
  Launches launches(memory);
  with_instance(c, [&](auto instance) {
    using Chosen = decltype(instance);
    const auto args = grouped_args(memory.problems());
    if (c.grouped) {
      Chosen::launch_grouped(launches, args, memory.workspace());
    } else {
      Chosen::launch_batched(launches, args.groups.front());
    }
  });
  const std::string text = json{{"buffers", buffers}, {"launches", launches.get()}}.dump(1);
  write_file(directory + "/launches.json", text.data(), text.size());
  return EXIT_SUCCESS;
}

/// Elements of an output, in logical order.
std::vector<double> values(const TestTensor& tensor) {
  std::vector<double> all;
  if (!tensor) return all;
  tensor.layout.for_each([&](std::int64_t b, std::int64_t h, std::int64_t s, std::int64_t d) {
    all.push_back(tensor.output(b, h, s, d));
  });
  return all;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (std::size_t n = 0; n < a.size(); ++n) {
    largest = std::max(largest, reference::error_of(a[n], b[n]));
  }
  return largest;
}

/// Differences of one tensor of one problem.
template <class Rule>
json report(const Rule& rule, double to_cpu) {
  return {{"cpu_target", to_cpu}, {"reference", rule.error()}, {"allowed", rule.allowed()}};
}

/// The problem's outputs against those of the CPU target, and against the reference.
json compare(const ForwardProblem& problem, const std::vector<double>& cpu_o,
             const std::vector<double>& cpu_lse, std::uint64_t sequence_base,
             std::string& failures) {
  const ForwardReference reference(problem, sequence_base);
  failures += check_forward(problem, sequence_base);
  const auto rule_o = reference.judge_o().rule;
  const double o_to_cpu = largest_difference(values(problem.o), cpu_o);
  json result{{"O", report(rule_o, o_to_cpu)}};
  if (o_to_cpu > rule_o.allowed()) failures += "O differs from the CPU target; ";
  if (problem.lse) {
    const auto rule_lse = reference.judge_lse().rule;
    const double lse_to_cpu = largest_difference(values(problem.lse), cpu_lse);
    result["LSE"] = report(rule_lse, lse_to_cpu);
    if (lse_to_cpu > rule_lse.allowed()) failures += "LSE differs from the CPU target; ";
  }
  return result;
}

int check(const EmulatedCase& c, const std::string& directory) {
  CaseMemory memory(c);
  auto& problems = memory.problems();
  for (auto& problem : problems) problem.upload();
  const auto args = grouped_args(problems);
  const Status status = c.grouped ? run_grouped(args) : run_batched(args.groups.front());
  if (!status.ok()) throw std::runtime_error("CPU target: " + status.message());
  std::vector<std::vector<double>> cpu_o, cpu_lse;
  for (auto& problem : problems) {
    problem.download();
    cpu_o.push_back(values(problem.o));
    cpu_lse.push_back(values(problem.lse));
  }

  for (const auto& [file, buffer] : memory.entries()) {
    const auto data = read_file(directory + '/' + file, buffer->bytes());
    check_hip(hipMemcpy(buffer->device(), data.data(), data.size(), hipMemcpyHostToDevice),
              "hipMemcpy of the emulator's results");
  }
  json comparisons = json::array();
  std::string failures;
  std::uint64_t sequence_base = 0;
  for (std::size_t g = 0; g < problems.size(); ++g) {
    problems[g].download();
    std::string failure;
    comparisons.push_back(compare(problems[g], cpu_o[g], cpu_lse[g], sequence_base, failure));
    if (!failure.empty()) failures += "group " + std::to_string(g) + ": " + failure;
    sequence_base +=
        static_cast<std::uint64_t>(problems[g].shape.batch * problems[g].shape.heads_q);
  }
  std::cout << json{{"comparisons", comparisons}, {"failures", failures}} << '\n';
  return failures.empty() ? EXIT_SUCCESS : EXIT_FAILURE;
}

int list() {
  for (const auto& c : emulated_cases()) {
    const auto dtype = c.problems.front().dtype;
    std::cout << json{{"name", c.name}, {"kernel", c.kernel}, {"dtype", name_of(dtype)}} << '\n';
  }
  return EXIT_SUCCESS;
}

int run(const std::vector<std::string>& arguments) {
  if (arguments == std::vector<std::string>{"list"}) return list();
  if (arguments.size() == 3 && (arguments[0] == "prepare" || arguments[0] == "check")) {
    for (const auto& c : emulated_cases()) {
      if (c.name != arguments[1]) continue;
      return arguments[0] == "prepare" ? prepare(c, arguments[2]) : check(c, arguments[2]);
    }
    throw std::invalid_argument("no case is called " + arguments[1]);
  }
  throw std::invalid_argument("usage: list | prepare CASE DIRECTORY | check CASE DIRECTORY");
}

}  // namespace
}  // namespace flashxdl::test

int main(int argc, char** argv) {
  try {
    return flashxdl::test::run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << "error: " << error.what() << '\n';
    return 2;
  }
}
