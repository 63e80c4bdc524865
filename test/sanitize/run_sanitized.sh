#!/usr/bin/env bash
# Builds a few test programs, and the kernels with them, under sanitizers and runs them:
# run_sanitized.sh CMAKE SOURCE_DIR BUILD_DIR COMPILER SANITIZERS PROGRAM...
set -euo pipefail
cmake="$1" source="$2" build="$3" compiler="$4" sanitizers="$5"
shift 5

# -O1: the checks are what counts here, not speed, and the kernels compile in half the time.
"$cmake" -S "$source" -B "$build" -DFLASHXDL_TARGET=host "-DCMAKE_CXX_COMPILER=$compiler" \
  -DCMAKE_BUILD_TYPE=None -DCMAKE_CXX_FLAGS=-O1 "-DFLASHXDL_SANITIZE=$sanitizers" \
  -DFLASHXDL_BUILD_TESTS=ON -DFLASHXDL_BUILD_EXAMPLES=OFF
"$cmake" --build "$build" -j "$(nproc)" --target "$@"
for program in "$@"; do
  "$build/bin/test/$program" --gtest_brief=1
done
