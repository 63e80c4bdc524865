// Runs cases from the field through the library's kernels: see README.md beside this file.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "cases/crash_note.hpp"
#include "cases/field_case.hpp"
#include "cases/field_run.hpp"
#include "cases/kernels.hpp"

namespace {

using namespace flashxdl::test;

/// `pattern` may hold '*' for any text.
bool matches(const char* pattern, const char* text) {
  if (*pattern == '\0') return *text == '\0';
  if (*pattern != '*') return *pattern == *text && matches(pattern + 1, text + 1);
  for (;; ++text) {
    if (matches(pattern + 1, text)) return true;
    if (*text == '\0') return false;
  }
}

struct Options {
  std::string file;
  std::vector<std::string> filters;
  std::vector<std::string> kernel_names;
  bool list = false;
  bool huge = false;
  bool times = false;
  bool quick = false;

  bool chosen(const FieldCase& c) const {
    if (filters.empty()) return true;
    for (const auto& filter : filters) {
      if (matches(filter.c_str(), c.id.c_str())) return true;
    }
    return false;
  }
};

std::vector<const Kernel*> chosen_kernels(const std::vector<std::string>& wanted) {
  std::vector<const Kernel*> chosen;
  std::string known;
  for (const Kernel& kernel : kernels()) {
    known += ' ' + kernel.name;
    if (wanted.empty() || std::find(wanted.begin(), wanted.end(), kernel.name) != wanted.end()) {
      chosen.push_back(&kernel);
    }
  }
  if (chosen.size() < wanted.size()) {
    throw std::runtime_error("--kernel: unknown kernel; there are:" + known);
  }
  return chosen;
}

int run(const Options& options) {
  const std::vector<const Kernel*> with = chosen_kernels(options.kernel_names);
  Tally tally;
  int chosen = 0, huge = 0, slow = 0, backward = 0;
  for (const FieldCase& c : read_cases(options.file)) {
    if (!options.chosen(c)) continue;
    ++chosen;
    if (options.list) {
      std::printf("%s%s\n", c.id.c_str(), c.is_huge() ? " (only with --huge)" : "");
    } else if (is_backward_refusal(c)) {
      ++backward;
      std::printf("left out %s: the refusal is about an argument of the backward\n", c.id.c_str());
    } else if (c.is_huge() && !options.huge) {
      ++huge;
      std::printf("left out %s: needs --huge\n", c.id.c_str());
    } else if (c.is_slow() && options.quick) {
      ++slow;
      std::printf("left out %s: takes long, and --quick is given\n", c.id.c_str());
    } else {
      const auto start = std::chrono::steady_clock::now();
      run_case(c, with, tally);
      const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
      if (options.times) std::printf("%8.2f s  %s\n", seconds.count(), c.id.c_str());
    }
  }
  if (chosen == 0) throw std::runtime_error("no case matches the filter");
  if (options.list) return 0;
  std::printf(
      "%d cases, %lld runs, %lld checks, %lld failures; %lld refusals where the case allows one.\n"
      "Left out: %lld checks of gradients, %lld backward calls, %d refusals of backward arguments, "
      "%d cases that need --huge, %d that take long, "
      "%lld runs that a kernel does not support.\n",
      chosen, static_cast<long long>(tally.runs), static_cast<long long>(tally.checks),
      static_cast<long long>(tally.failures), static_cast<long long>(tally.refusals_allowed),
      static_cast<long long>(tally.gradients), static_cast<long long>(tally.backward_calls),
      backward, huge, slow, static_cast<long long>(tally.not_supported));
  return tally.failures == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Runs cases from the field through attention kernels and checks the results.");
  Options options;
  app.add_option("file", options.file, "the cases, JSON")->required();
  app.add_option("--filter", options.filters, "ids of cases to run; '*' stands for any text");
  app.add_option("--kernel", options.kernel_names, "kernels to run them through");
  app.add_flag("--list", options.list, "print the ids and stop");
  app.add_flag("--times", options.times, "print the seconds that each case took");
  app.add_flag("--quick", options.quick, "without the cases that take long");
  app.add_flag("--huge", options.huge, "also the cases that take gigabytes of address space");
  CLI11_PARSE(app, argc, argv);
  std::setvbuf(stdout, nullptr, _IOLBF, 1 << 16);
  catch_crashes();
  try {
    return run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "flashxdl_cases: %s\n", error.what());
    return 2;
  }
}
