#pragma once
/// \file
/// rocRAND's own device header, unmodified, compiled for the CPU. It asks for a few names of HIP's
/// device dialect; they are given here and taken back below.

#include <cmath>

#if defined(__HIP_PLATFORM_AMD__) || defined(__HIP_DEVICE_COMPILE__)
#error "rocrand_on_cpu.hpp is for plain C++ translation units"
#endif

// Functions of HIP's device library that the header's floating-point parts call, on a CPU.
inline float __logf(float x) {
  return std::log(x);
}
inline float __sinf(float x) {
  return std::sin(x);
}
inline float __cosf(float x) {
  return std::cos(x);
}
inline void __sincosf(float x, float* sine, float* cosine) {
  *sine = std::sin(x);
  *cosine = std::cos(x);
}

struct uint2 {
  unsigned int x, y;
};
struct uint4 {
  unsigned int x, y, z, w;
};

#define FQUALIFIERS inline
#define __host__
#define __device__
#define __global__
#define __forceinline__
#include <rocrand/rocrand_philox4x32_10.h>
#undef FQUALIFIERS
#undef __host__
#undef __device__
#undef __global__
#undef __forceinline__
