#pragma once
/// \file
/// What a user's HIP source finds under HIP's own names on the CPU target: the runtime API, the
/// qualifiers, coordinates, barriers, cross-lane operations and atomics. The library's own headers
/// include runtime_api.hpp instead, which defines no macros.
///
/// Differences from the GPU: cross-lane operations and __syncthreads need every lane of the wave
/// (or workgroup), none may have returned; __shared__ variables start with what an earlier
/// workgroup left; a lane that polls memory for another lane of its workgroup waits for ever.

#include <cmath>
#include <cstdlib>

#include "flashxdl/host/hip_device_functions.hpp"
#include "flashxdl/host/hip_qualifiers.hpp"
#include "flashxdl/host/runtime_api.hpp"
