#pragma once
/// \file
/// HIP's runtime API for the CPU target, without the device-side names of hip_runtime.hpp.

#include "flashxdl/host/device_api.hpp"
#include "flashxdl/host/event_api.hpp"
#include "flashxdl/host/graph_api.hpp"
#include "flashxdl/host/launch.hpp"
#include "flashxdl/host/memory_api.hpp"
#include "flashxdl/host/stream_api.hpp"
#include "flashxdl/host/types.hpp"
