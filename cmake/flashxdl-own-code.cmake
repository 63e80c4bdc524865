# How the project compiles its own programs: strict warnings, no compiler extensions, sanitizers.

set(CMAKE_CXX_EXTENSIONS OFF)

add_library(flashxdl_own_code INTERFACE)
target_link_libraries(flashxdl_own_code INTERFACE flashxdl)
target_compile_options(flashxdl_own_code INTERFACE
  -Wall -Wextra -Wshadow -Wconversion $<$<BOOL:${FLASHXDL_WERROR}>:-Werror>)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # A guess that depends on what was inlined: it does not see that registers are loaded before the
  # loop that uses them whenever the loop runs at all.
  target_compile_options(flashxdl_own_code INTERFACE -Wno-maybe-uninitialized)
  # GCC 12 sees overlapping copies inside std::string where there are none (its bug 105651).
  if(CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(flashxdl_own_code INTERFACE -Wno-restrict)
  endif()
endif()

if(FLASHXDL_SANITIZE)
  if(NOT FLASHXDL_MACHINE STREQUAL "host")
    message(FATAL_ERROR "FLASHXDL_SANITIZE is '${FLASHXDL_SANITIZE}', but sanitizers are for "
      "FLASHXDL_TARGET=host; this is ${FLASHXDL_MACHINE}")
  endif()
  list(JOIN FLASHXDL_SANITIZE "," sanitizers)
  set(options -fsanitize=${sanitizers} -fno-sanitize-recover=all -fno-omit-frame-pointer -g)
  target_compile_options(flashxdl_own_code INTERFACE ${options})
  target_link_options(flashxdl_own_code INTERFACE ${options})
endif()
