#pragma once
/// \file
/// <hip/hip_runtime.h> on the CPU target: put compat/ on the include path.

#include "flashxdl/host/hip_runtime.hpp"
