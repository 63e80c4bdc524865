#pragma once
/// \file
/// Everything: attention on AMD matrix cores, and on the CPU.

#include "flashxdl/core/number.hpp"
#include "flashxdl/core/problem.hpp"
#include "flashxdl/core/status.hpp"
#include "flashxdl/device/device_mha_fwd.hpp"
#include "flashxdl/device/mha_forward.hpp"
#include "flashxdl/hip.hpp"
