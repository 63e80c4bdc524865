#pragma once
/// \file
/// HIP's runtime API under its own names: ROCm's on amdgcn, flashxdl/host/ on the CPU target.

#include "flashxdl/core/config.hpp"

#if FLASHXDL_AMDGCN
#ifndef __HIP_PLATFORM_AMD__
#define __HIP_PLATFORM_AMD__ 1
#endif
#include <hip/hip_runtime_api.h>
#else
#include "flashxdl/host/runtime_api.hpp"
#endif
