# Before project(): for FLASHXDL_TARGET=amdgcn, or auto with an AMD GPU here, the C++ compiler has
# to be a clang. Unless the user names a compiler, take ROCm's or else the distribution's: clang 15
# for gfx908 and gfx90a, a newer one for the rest.

if(DEFINED CMAKE_CXX_COMPILER OR DEFINED ENV{CXX} OR CMAKE_TOOLCHAIN_FILE)
  return()
endif()
set(_flashxdl_wants_clang FALSE)
if(FLASHXDL_TARGET STREQUAL "amdgcn")
  set(_flashxdl_wants_clang TRUE)
elseif(NOT FLASHXDL_TARGET OR FLASHXDL_TARGET STREQUAL "auto")
  flashxdl_find_gpus(_flashxdl_gpus)
  if(_flashxdl_gpus)
    set(_flashxdl_wants_clang TRUE)
  endif()
endif()
if(NOT _flashxdl_wants_clang)
  return()
endif()

set(_flashxdl_clangs clang++-22 clang++-21 clang++-20)
if(GPU_TARGETS AND NOT GPU_TARGETS MATCHES "gfx94|gfx95")
  list(PREPEND _flashxdl_clangs clang++-15 clang++-16 clang++-17 clang++-18 clang++-19)
else()
  list(APPEND _flashxdl_clangs clang++-19 clang++-18 clang++-17 clang++-16 clang++-15)
endif()
find_program(_flashxdl_clang NAMES amdclang++ ${_flashxdl_clangs} clang++ NAMES_PER_DIR
  HINTS ENV ROCM_PATH PATHS /opt/rocm PATH_SUFFIXES bin llvm/bin NO_CACHE)
if(_flashxdl_clang)
  set(CMAKE_CXX_COMPILER "${_flashxdl_clang}" CACHE FILEPATH "C++ compiler (chosen by flashxdl)")
endif()
