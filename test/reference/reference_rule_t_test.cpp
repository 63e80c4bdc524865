// Rule T: the bound is the formula, and a wrong result cannot slip through it.

#include "flashxdl/reference/rule_t.hpp"

#include <gtest/gtest.h>

namespace {

using namespace flashxdl;
using reference::RuleLse;
using reference::RuleT;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

TEST(RuleT, BoundIsTheFormula) {
  RuleT rule(DataType::fp16);
  rule.add(1.0, 1.001, 1.003, 5.0, 7.0);
  rule.add(-2.0, -2.0, -2.0, 4.0, 3.0);
  EXPECT_NEAR(rule.error(), 0.001, 1e-12);
  EXPECT_DOUBLE_EQ(rule.allowed(), 2 * (1.003 - 1.001) + 5.0 * 0x1p-20 + 0x1p-22 * 7 * 2 + 0x1p-24);
  EXPECT_TRUE(rule.passed());
}

TEST(RuleT, RoundingOfTheOutputIsAlwaysAllowed) {
  RuleT rule(DataType::bf16);
  rule.add(3.0, 3.0, 3.0, 0, 0);
  EXPECT_DOUBLE_EQ(rule.allowed(), 2 * 3 * 0x1p-8 + 0x1p-133);
  RuleT fp32(DataType::fp32);
  fp32.add(3.0, 3.0, 3.0, 0, 0);
  EXPECT_DOUBLE_EQ(fp32.allowed(), 0x1p-149);
}

TEST(RuleT, WrongResultsFail) {
  for (const double got : {nan, infinity, -infinity, 1.1}) {
    RuleT rule(DataType::fp16);
    rule.add(got, 1.0, 1.0, 1.0, 1.0);
    rule.add(1.0, 1.0, 1.0, 1.0, 1.0);
    EXPECT_FALSE(rule.passed()) << got;
  }
  RuleT rule(DataType::fp16);
  rule.add(1.0, 7e4, infinity, 1.0, 1.0);  // the yardstick overflowed: no excuse
  EXPECT_FALSE(rule.passed());
}

TEST(RuleLse, BoundAndInfinities) {
  RuleLse rule;
  rule.add(-infinity, -infinity, 0);
  rule.add(100.0, 100.0003, 100);
  EXPECT_DOUBLE_EQ(rule.allowed(), 1e-5 + 4e-4);
  EXPECT_TRUE(rule.passed());
  rule.add(-1e30, -infinity, 0);
  EXPECT_FALSE(rule.passed());
  for (const double got : {nan, -infinity, infinity}) {
    RuleLse finite;
    finite.add(got, 0.0, 0);
    EXPECT_FALSE(finite.passed()) << got;
  }
}

}  // namespace
