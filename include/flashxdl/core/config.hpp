#pragma once
/// \file
/// Which machine this translation unit is compiled for, and the function attributes that go with
/// it.
///
/// | compiled as                  | FLASHXDL_AMDGCN | FLASHXDL_DEVICE_PASS | meaning |
/// |------------------------------|-----------------|----------------------|---------------------------------|
/// | HIP (`-x hip`), device pass  | 1               | 1                    | AMD machine code | |
/// HIP (`-x hip`), host pass    | 1               | 0                    | launches AMD machine
/// code       | | plain C++                    | 0               | 1                    | the CPU
/// target: fibers as lanes |

#if defined(__HIP__)
#define FLASHXDL_AMDGCN 1
#if defined(__HIP_DEVICE_COMPILE__)  // __AMDGCN__ is defined in both passes
#define FLASHXDL_DEVICE_PASS 1
#else
#define FLASHXDL_DEVICE_PASS 0
#endif
#define FLASHXDL_DEVICE __attribute__((device)) inline __attribute__((always_inline))
#define FLASHXDL_HOST_DEVICE \
  __attribute__((host)) __attribute__((device)) inline __attribute__((always_inline))
#define FLASHXDL_GLOBAL __attribute__((global))
/// After the parameters of a lambda in device code: it must not become a call, which would put the
/// register tiles it refers to into scratch memory.
#define FLASHXDL_INLINE __attribute__((always_inline))
#else
#define FLASHXDL_AMDGCN 0
#define FLASHXDL_DEVICE_PASS 1
#define FLASHXDL_DEVICE inline
#define FLASHXDL_HOST_DEVICE inline
#define FLASHXDL_GLOBAL
#define FLASHXDL_INLINE
#endif
