#pragma once
/// \file
/// Random numbers for test data: the same on every platform and standard library.

#include <cmath>
#include <cstdint>
#include <numbers>

namespace flashxdl::test {

class Random {
public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  /// SplitMix64.
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  /// In (0, 1).
  double uniform() { return (static_cast<double>(next() >> 11) + 0.5) * 0x1p-53; }
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  /// Box and Muller.
  double normal() {
    return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform());
  }
  /// Student's t with `df` degrees of freedom: heavy tails.
  double student_t(int df) {
    double squares = 0;
    for (int n = 0; n < df; ++n) {
      const double x = normal();
      squares += x * x;
    }
    return normal() / std::sqrt(squares / df);
  }

private:
  std::uint64_t state_;
};

}  // namespace flashxdl::test
