#pragma once
/// \file
/// The machine under the kernels. Both folders give the same functions in flashxdl::arch:
///
/// | header | gives |
/// |---|---|
/// | lane.hpp   | thread, lane, wave and workgroup numbers; moves between lanes; barriers |
/// | buffer.hpp | range-checked global memory: loads out of range give 0, stores are dropped |
/// | lds.hpp    | the workgroup's local memory |
/// | math.hpp   | exp2, log2, reciprocal, packed fp32, conversions to 16 bits |
/// | mfma.hpp   | matrix products of register fragments |

#include "flashxdl/core/config.hpp"

#if FLASHXDL_AMDGCN
#include "flashxdl/arch/amdgcn/buffer.hpp"
#include "flashxdl/arch/amdgcn/lane.hpp"
#include "flashxdl/arch/amdgcn/lds.hpp"
#include "flashxdl/arch/amdgcn/math.hpp"
#include "flashxdl/arch/amdgcn/mfma.hpp"
#else
#include "flashxdl/arch/host/buffer.hpp"
#include "flashxdl/arch/host/lane.hpp"
#include "flashxdl/arch/host/lds.hpp"
#include "flashxdl/arch/host/math.hpp"
#include "flashxdl/arch/host/mfma.hpp"
#endif
