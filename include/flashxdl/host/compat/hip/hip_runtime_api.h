#pragma once
/// \file
/// <hip/hip_runtime_api.h> on the CPU target: put compat/ on the include path.

#include "flashxdl/host/runtime_api.hpp"
