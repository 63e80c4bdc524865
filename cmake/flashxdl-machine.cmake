# Which machine flashxdl's users compile for, and what that asks of compiler and linker. Used by the
# build tree and, installed, by find_package(flashxdl): both make their flashxdl::flashxdl with it.

include_guard(GLOBAL)

# Architectures that the library has kernels for.
set(FLASHXDL_KNOWN_GPU_TARGETS gfx908 gfx90a gfx942 gfx950)
# Taken when GPU_TARGETS is not given, cut to those that the compiler knows.
set(FLASHXDL_DEFAULT_GPU_TARGETS gfx90a gfx942)

# Sets `out` to the architectures of the AMD GPUs in this machine that have kernels here, as the
# amdgpu driver lists them (gfx_target_version 90010 is gfx90a); empty without such a GPU.
function(flashxdl_find_gpus out)
  set(found "")
  if(EXISTS /dev/kfd)
    file(GLOB nodes /sys/class/kfd/kfd/topology/nodes/*/properties)
    foreach(node IN LISTS nodes)
      file(STRINGS "${node}" line REGEX "^gfx_target_version ")
      if(line MATCHES "([0-9]+)([0-9][0-9])([0-9][0-9])$")
        math(EXPR minor "1${CMAKE_MATCH_2} - 100")
        math(EXPR stepping "1${CMAKE_MATCH_3} - 100")
        string(SUBSTRING "0123456789abcdef" ${stepping} 1 stepping)
        list(APPEND found "gfx${CMAKE_MATCH_1}${minor}${stepping}")
      endif()
    endforeach()
    list(REMOVE_DUPLICATES found)
    list(FILTER found INCLUDE REGEX "^(gfx908|gfx90a|gfx942|gfx950)$")
  endif()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

# HIP's runtime library and its C API header are all that the library needs of ROCm.
macro(flashxdl_find_hip)
  find_path(FLASHXDL_HIP_INCLUDE_DIR hip/hip_runtime_api.h
    HINTS ENV HIP_PATH ENV ROCM_PATH PATHS /opt/rocm PATH_SUFFIXES include)
  find_library(FLASHXDL_HIP_LIBRARY amdhip64
    HINTS ENV HIP_PATH ENV ROCM_PATH PATHS /opt/rocm PATH_SUFFIXES lib lib64)
  mark_as_advanced(FLASHXDL_HIP_INCLUDE_DIR FLASHXDL_HIP_LIBRARY)
endmacro()

# Sets `out` to host or amdgcn from FLASHXDL_TARGET (auto, host or amdgcn; unset is auto).
function(flashxdl_resolve_machine out)
  set(machine "${FLASHXDL_TARGET}")
  if(machine STREQUAL "")
    set(machine auto)
  endif()
  if(machine STREQUAL "auto")
    set(machine host)
    flashxdl_find_gpus(gpus)
    if(gpus)
      flashxdl_find_hip()
      if(NOT FLASHXDL_HIP_INCLUDE_DIR OR NOT FLASHXDL_HIP_LIBRARY)
        message(STATUS "flashxdl: found ${gpus} but not HIP (hip/hip_runtime_api.h and amdhip64); "
          "building for the CPU")
      elseif(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
        message(STATUS "flashxdl: found ${gpus} and HIP, but ${CMAKE_CXX_COMPILER} is not clang; "
          "building for the CPU (set CMAKE_CXX_COMPILER to a clang++ to build for the GPU)")
      else()
        set(machine amdgcn)
      endif()
    endif()
  endif()
  if(NOT machine MATCHES "^(host|amdgcn)$")
    message(FATAL_ERROR "FLASHXDL_TARGET is '${machine}'; it can be auto, host or amdgcn")
  endif()
  set(${out} ${machine} PARENT_SCOPE)
endfunction()

# HIP without ROCm's device headers and library, which the kernels do not use.
set(FLASHXDL_BARE_HIP -nogpuinc -nogpulib)

# Compiles an empty HIP source with the given options; sets `ok`, and `why` to what was said if not.
function(flashxdl_probe_hip ok why)
  execute_process(
    COMMAND "${CMAKE_CXX_COMPILER}" -Werror ${ARGN} -c -x hip /dev/null
            -o "${CMAKE_BINARY_DIR}/CMakeFiles/flashxdl_probe.o"
    RESULT_VARIABLE result OUTPUT_VARIABLE said ERROR_VARIABLE said)
  if(result EQUAL 0)
    set(${ok} TRUE PARENT_SCOPE)
  else()
    set(${ok} FALSE PARENT_SCOPE)
  endif()
  set(${why} "${said}" PARENT_SCOPE)
endfunction()

# Sets `out` to the checked list of architectures: GPU_TARGETS, or the default.
function(flashxdl_resolve_gpu_targets out)
  string(REPLACE "," ";" wanted "${GPU_TARGETS}")
  set(kept "")
  if(wanted)
    set(candidates ${wanted})
  else()
    set(candidates ${FLASHXDL_DEFAULT_GPU_TARGETS})
  endif()
  foreach(arch IN LISTS candidates)
    string(REGEX REPLACE ":.*" "" processor "${arch}")
    if(NOT processor IN_LIST FLASHXDL_KNOWN_GPU_TARGETS)
      list(JOIN FLASHXDL_KNOWN_GPU_TARGETS ", " known)
      message(FATAL_ERROR "GPU_TARGETS has '${arch}'; flashxdl has kernels for ${known}")
    endif()
    flashxdl_probe_hip(ok why ${FLASHXDL_BARE_HIP} --offload-arch=${arch})
    if(ok)
      list(APPEND kept ${arch})
    elseif(wanted)
      message(FATAL_ERROR "GPU_TARGETS has '${arch}', which ${CMAKE_CXX_COMPILER} cannot compile "
        "for (gfx942 and gfx950 need clang 20 or newer):\n${why}")
    endif()
  endforeach()
  if(NOT kept)
    list(JOIN candidates ", " candidates)
    message(FATAL_ERROR "${CMAKE_CXX_COMPILER} compiles for none of ${candidates}:\n${why}")
  endif()
  set(${out} "${kept}" PARENT_SCOPE)
endfunction()

# Gives the INTERFACE target what the machine needs; include_dir holds flashxdl/. A macro, so that
# the packages it finds are known in the caller's scope.
macro(flashxdl_require_machine target machine include_dir)
  if(${machine} STREQUAL "host")
    find_package(Threads REQUIRED)
    find_package(Boost 1.74 CONFIG REQUIRED COMPONENTS context)
    target_link_libraries(${target} INTERFACE Boost::context Threads::Threads)
    # <hip/hip_runtime.h> and <hip/hip_runtime_api.h> in the user's sources are the CPU target's.
    target_include_directories(${target} INTERFACE "${include_dir}/flashxdl/host/compat")
  else()
    flashxdl_require_amdgcn(${target})
  endif()
endmacro()

# HIP without ROCm's CMake packages: clang compiles C++ sources as HIP.
function(flashxdl_require_amdgcn target)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "FLASHXDL_TARGET=amdgcn compiles HIP with clang, but the C++ compiler is "
      "${CMAKE_CXX_COMPILER} (${CMAKE_CXX_COMPILER_ID}); set CMAKE_CXX_COMPILER to a clang++ "
      "(15 or newer for gfx908 and gfx90a, 20 or newer for gfx942 and gfx950)")
  endif()
  flashxdl_find_hip()
  if(NOT FLASHXDL_HIP_INCLUDE_DIR OR NOT FLASHXDL_HIP_LIBRARY)
    message(FATAL_ERROR "FLASHXDL_TARGET=amdgcn needs HIP's runtime: hip/hip_runtime_api.h is "
      "'${FLASHXDL_HIP_INCLUDE_DIR}', libamdhip64 is '${FLASHXDL_HIP_LIBRARY}' (on Debian: "
      "apt-get install libamdhip64-dev; elsewhere set ROCM_PATH)")
  endif()
  flashxdl_resolve_gpu_targets(architectures)
  list(TRANSFORM architectures PREPEND "--offload-arch=" OUTPUT_VARIABLE arch_options)
  # Where the compiler finds ROCm, the user's sources may use all of HIP, else its host API.
  set(hip_options "")
  flashxdl_probe_hip(has_rocm why ${arch_options})
  if(NOT has_rocm)
    set(hip_options ${FLASHXDL_BARE_HIP})
    # Newer clangs put C++ wrapper headers, which need ROCm's, before the standard library's.
    flashxdl_probe_hip(ok why ${FLASHXDL_BARE_HIP} -nohipwrapperinc ${arch_options})
    if(ok)
      list(APPEND hip_options -nohipwrapperinc)
    endif()
  endif()
  target_compile_options(${target} INTERFACE
    "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-x hip>"
    # Kernels live in registers: unoptimised they do not compile, so -O0 is for the host side only.
    "$<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xarch_device -O3>"
    "$<$<COMPILE_LANGUAGE:CXX>:${arch_options};${hip_options}>")
  target_include_directories(${target} SYSTEM INTERFACE "${FLASHXDL_HIP_INCLUDE_DIR}")
  target_link_libraries(${target} INTERFACE "${FLASHXDL_HIP_LIBRARY}")
  set_property(TARGET ${target} PROPERTY INTERFACE_FLASHXDL_GPU_TARGETS "${architectures}")
  message(STATUS "flashxdl: GPU_TARGETS ${architectures}, HIP ${FLASHXDL_HIP_LIBRARY}")
endfunction()
