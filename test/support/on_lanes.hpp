#pragma once
/// \file
/// Runs a piece of device code on the CPU target and waits, for tests of single primitives.

#include <gtest/gtest.h>

#include <utility>

#include "flashxdl/hip.hpp"

namespace flashxdl::test {

/// Runs body() in `threads` lanes of one workgroup; body writes its findings through captured
/// pointers.
template <class Body>
void on_lanes(unsigned threads, Body body) {
  ASSERT_EQ(host::launch("test", dim3(1), dim3(threads), nullptr, std::move(body)), hipSuccess);
  ASSERT_EQ(hipDeviceSynchronize(), hipSuccess) << host::last_launch_failure();
}

}  // namespace flashxdl::test
