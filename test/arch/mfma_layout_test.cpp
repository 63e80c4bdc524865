// The layout traits against AMD's own tables, element by element, and the CPU's matrix instructions
// against their definition D += A B.
#include "flashxdl/arch/mfma_layout.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "flashxdl/arch/arch.hpp"
#include "support/on_lanes.hpp"

namespace flashxdl::test {
namespace {

using nlohmann::json;

json amd_tables() {
  std::ifstream file(std::string(FLASHXDL_TEST_DATA) + "/arch/mfma_layouts.json");
  return json::parse(file).at("instructions");
}

arch::Place place(const json& pair) {
  return {pair.at(0).get<int>(), pair.at(1).get<int>()};
}

template <class L>
void expect_layout(const json& table) {
  ASSERT_EQ(table.at("m").get<int>(), L::M);
  ASSERT_EQ(table.at("n").get<int>(), L::N);
  ASSERT_EQ(table.at("k").get<int>(), L::K);
  for (int m = 0; m < L::M; ++m) {
    for (int k = 0; k < L::K; ++k) EXPECT_EQ(L::a(m, k), place(table.at("A").at(m).at(k)));
  }
  for (int k = 0; k < L::K; ++k) {
    for (int n = 0; n < L::N; ++n) EXPECT_EQ(L::b(k, n), place(table.at("B").at(k).at(n)));
  }
  for (int m = 0; m < L::M; ++m) {
    for (int n = 0; n < L::N; ++n) {
      const arch::Place at = place(table.at("D").at(m).at(n));
      EXPECT_EQ(L::d(m, n), at);
      EXPECT_EQ(L::d_row(at.lane, at.index), m);
      EXPECT_EQ(L::d_column(at.lane), n);
    }
  }
}

// Every 16-bit instruction that the kernels use on an architecture in AMD's file. gfx950's 32x32x16
// and 16x16x32 are not in it; the 8-bit instructions of the same shape and the same 8 values to a
// lane are.
TEST(MfmaLayout, AgreesWithAmdsTables) {
  using Check = void (*)(const json&);
  const std::map<std::string, Check> used = {
      {"gfx908 v_mfma_f32_32x32x8f16", expect_layout<arch::Mfma32x32x8>},
      {"gfx908 v_mfma_f32_16x16x16f16", expect_layout<arch::Mfma16x16x16>},
      {"gfx908 v_mfma_f32_32x32x4bf16", expect_layout<arch::Mfma32x32x4>},
      {"gfx908 v_mfma_f32_16x16x8bf16", expect_layout<arch::Mfma16x16x8>},
      {"gfx90a v_mfma_f32_32x32x8f16", expect_layout<arch::Mfma32x32x8>},
      {"gfx90a v_mfma_f32_16x16x16f16", expect_layout<arch::Mfma16x16x16>},
      {"gfx90a v_mfma_f32_32x32x8bf16_1k", expect_layout<arch::Mfma32x32x8>},
      {"gfx90a v_mfma_f32_16x16x16bf16_1k", expect_layout<arch::Mfma16x16x16>},
      {"gfx942 v_mfma_f32_32x32x8_f16", expect_layout<arch::Mfma32x32x8>},
      {"gfx942 v_mfma_f32_16x16x16_f16", expect_layout<arch::Mfma16x16x16>},
      {"gfx942 v_mfma_f32_32x32x8_bf16", expect_layout<arch::Mfma32x32x8>},
      {"gfx942 v_mfma_f32_16x16x16_bf16", expect_layout<arch::Mfma16x16x16>},
      {"gfx942 v_mfma_f32_32x32x16_fp8_fp8", expect_layout<arch::Mfma32x32x16>},
      {"gfx942 v_mfma_f32_16x16x32_fp8_fp8", expect_layout<arch::Mfma16x16x32>},
  };
  std::size_t checked = 0;
  for (const auto& table : amd_tables()) {
    const auto name =
        table.at("gfx").get<std::string>() + " " + table.at("instruction").get<std::string>();
    const auto check = used.find(name);
    if (check == used.end()) continue;
    SCOPED_TRACE(name);
    check->second(table);
    ++checked;
  }
  EXPECT_EQ(checked, used.size());
}

template <class T>
T small_integer(std::mt19937& random) {
  return Number<T>::from_float(static_cast<float>(static_cast<int>(random() % 17) - 8));
}

// Small integers: every sum is exact, so the order of additions does not matter.
template <class T, class L>
void expect_product() {
  std::mt19937 random(7);
  std::vector<T> a(static_cast<std::size_t>(L::M * L::K));
  std::vector<T> b(static_cast<std::size_t>(L::K * L::N));
  for (auto* matrix : {&a, &b}) {
    for (auto& x : *matrix) x = small_integer<T>(random);
  }
  std::vector<float> d(static_cast<std::size_t>(L::M * L::N), 0.0f);
  on_lanes(64, [&a, &b, &d] {
    const int lane = static_cast<int>(arch::lane_id());
    std::uint16_t own_a[L::operand_values];
    std::uint16_t own_b[L::operand_values];
    for (int i = 0; i < L::operand_values; ++i) {
      const int k = lane / L::M * L::operand_values + i;
      own_a[i] = std::bit_cast<std::uint16_t>(a[static_cast<std::size_t>(lane % L::M * L::K + k)]);
      own_b[i] = std::bit_cast<std::uint16_t>(b[static_cast<std::size_t>(k * L::N + lane % L::N)]);
    }
    float own_d[L::result_values];
    for (auto& x : own_d) x = 1.0f;
    arch::mfma<T, L>(own_a, own_b, own_d);
    for (int i = 0; i < L::result_values; ++i) {
      d[static_cast<std::size_t>(L::d_row(lane, i) * L::N + L::d_column(lane))] = own_d[i];
    }
  });
  for (int m = 0; m < L::M; ++m) {
    for (int n = 0; n < L::N; ++n) {
      float sum = 1.0f;
      for (int k = 0; k < L::K; ++k) {
        sum += Number<T>::to_float(a[static_cast<std::size_t>(m * L::K + k)]) *
               Number<T>::to_float(b[static_cast<std::size_t>(k * L::N + n)]);
      }
      EXPECT_EQ(d[static_cast<std::size_t>(m * L::N + n)], sum) << m << ", " << n;
    }
  }
}

TEST(Mfma, ComputesTheProduct) {
  expect_product<fp16, arch::Mfma32x32x8>();
  expect_product<fp16, arch::Mfma16x16x16>();
  expect_product<fp16, arch::Mfma32x32x16>();
  expect_product<fp16, arch::Mfma16x16x32>();
  expect_product<bf16, arch::Mfma32x32x4>();
  expect_product<bf16, arch::Mfma16x16x8>();
  expect_product<bf16, arch::Mfma32x32x8>();
  expect_product<bf16, arch::Mfma16x16x32>();
}

}  // namespace
}  // namespace flashxdl::test
