#pragma once
/// \file
/// Says which run was on when the program touched memory that it may not (a guard page).

#include <csignal>
#include <cstddef>
#include <cstring>
#include <string>

#include <unistd.h>

namespace flashxdl::test {

namespace detail {
inline char crash_line[512] = "FAIL\n";
inline volatile std::size_t crash_line_length = 5;

inline struct sigaction before_segv, before_bus;

/// Prints the line and lets whoever was there before (a sanitizer, or the default) go on: the
/// access that failed is made again on return.
inline void on_crash(int signal) {
  const auto written = write(STDOUT_FILENO, crash_line, crash_line_length);
  if (written < 0) _exit(3);
  sigaction(signal, signal == SIGSEGV ? &before_segv : &before_bus, nullptr);
}
}  // namespace detail

/// From now on a crash prints `title`.
inline void note_for_crash(const std::string& title) {
  const std::string line =
      "FAIL " + title.substr(0, 400) + ": crashed: access to memory outside of every tensor\n";
  std::memcpy(detail::crash_line, line.data(), line.size());
  detail::crash_line_length = line.size();
}

inline void catch_crashes() {
  struct sigaction action {};
  action.sa_handler = detail::on_crash;
  sigemptyset(&action.sa_mask);
  sigaction(SIGSEGV, &action, &detail::before_segv);
  sigaction(SIGBUS, &action, &detail::before_bus);
}

}  // namespace flashxdl::test
