#!/usr/bin/env bash
# Builds all examples for an AMD GPU and runs them; on a machine without one they have to say so:
# check_amd_examples.sh CMAKE SOURCE_DIR BUILD_DIR COMPILER ARCHITECTURE
set -euo pipefail
cmake="$1" source="$2" build="$3" compiler="$4" architecture="$5"

"$cmake" -S "$source" -B "$build" -DFLASHXDL_TARGET=amdgcn "-DGPU_TARGETS=$architecture" \
  "-DCMAKE_CXX_COMPILER=$compiler" -DFLASHXDL_BUILD_EXAMPLES=ON -DFLASHXDL_BUILD_TESTS=OFF
"$cmake" --build "$build" -j "$(nproc)"

wanted=0 says='^passed'
if [ ! -e /dev/kfd ]; then wanted=3 says='no device was found'; fi
count=0
for program in "$build"/bin/example_*; do
  "$source/test/example/expect_exit.sh" "$wanted" "$says" "$program"
  count=$((count + 1))
done
[ "$count" -ge 11 ] || { echo "only $count examples in $build/bin" >&2; exit 1; }
echo "$count examples build for $architecture and end as they should"
