#pragma once
/// \file
/// Matrix-core instructions D += A B with fp32 results, and where each matrix element lives:
/// A [M, K], B [K, N], D [M, N] -> (lane, index among the lane's values). Checked element by
/// element against AMD's tables (test/arch/mfma_layout_test.cpp).

namespace flashxdl::arch {

struct Place {
  int lane;
  int index;
  friend constexpr bool operator==(Place, Place) = default;
};

template <int M_, int N_, int K_>
struct MfmaLayout {
  static constexpr int M = M_;
  static constexpr int N = N_;
  static constexpr int K = K_;
  static constexpr int lanes = 64;
  static constexpr int groups_m = lanes / M;  ///< lane groups that share A's rows
  static constexpr int groups_n = lanes / N;  ///< lane groups that share B's columns
  static constexpr int operand_values = M * K / lanes;
  static constexpr int result_values = M * N / lanes;

  /// A lane holds consecutive k of one row of A ...
  static constexpr Place a(int m, int k) {
    return {m + M * (k / operand_values), k % operand_values};
  }
  /// ... and of one column of B.
  static constexpr Place b(int k, int n) {
    return {n + N * (k / operand_values), k % operand_values};
  }
  /// A lane holds one column of D: runs of 4 rows, dealt round robin to the lane groups.
  static constexpr Place d(int m, int n) {
    return {n + N * (m / 4 % groups_n), m / (4 * groups_n) * 4 + m % 4};
  }
  static constexpr int d_row(int lane, int index) {
    return index / 4 * (4 * groups_n) + lane / N * 4 + index % 4;
  }
  static constexpr int d_column(int lane) { return lane % N; }
};

/// The matrix instructions that the kernels use, by architecture.
using Mfma32x32x4 = MfmaLayout<32, 32, 4>;    ///< gfx908 bf16
using Mfma16x16x8 = MfmaLayout<16, 16, 8>;    ///< gfx908 bf16
using Mfma32x32x8 = MfmaLayout<32, 32, 8>;    ///< fp16; bf16 from gfx90a
using Mfma16x16x16 = MfmaLayout<16, 16, 16>;  ///< fp16; bf16 from gfx90a
using Mfma32x32x16 = MfmaLayout<32, 32, 16>;  ///< gfx950
using Mfma16x16x32 = MfmaLayout<16, 16, 32>;  ///< gfx950

}  // namespace flashxdl::arch
