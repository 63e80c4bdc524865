#!/usr/bin/env bash
# Installs the build, moves it, and uses it from outside as users do:
# check_package.sh CMAKE BUILD_DIR SOURCE_DIR WORK_DIR MACHINE COMPILER [CMake option]...
# MACHINE (host or amdgcn) and the options are what the users' projects are configured with.
set -euo pipefail
cmake="$1" build="$2" source="$3" work="$4" machine="$5" compiler="$6"
shift 6
options=("-DFLASHXDL_TARGET=$machine" "-DCMAKE_CXX_COMPILER=$compiler" "$@")
prefix="$work/moved prefix"

fail() { printf 'FAILED: %s\n' "$*" >&2; exit 1; }

# configure NAME SOURCE [CMake option]...
configure() {
  local name="$1" from="$2"
  shift 2
  "$cmake" -S "$from" -B "$work/$name" "${options[@]}" "$@" >"$work/$name.log" 2>&1
}

# must_configure_and_build NAME SOURCE [CMake option]...
must_configure_and_build() {
  configure "$@" || { cat "$work/$1.log" >&2; fail "$1 does not configure"; }
  "$cmake" --build "$work/$1" >"$work/$1.log" 2>&1 ||
    { cat "$work/$1.log" >&2; fail "$1 does not build"; }
}

# must_refuse NAME MESSAGE SOURCE [CMake option]...
must_refuse() {
  local name="$1" message="$2"
  shift 2
  if configure "$name" "$@"; then fail "$name configures, but should not"; fi
  tr -s '\n ' ' ' <"$work/$name.log" | grep -q -- "$message" ||
    { cat "$work/$name.log" >&2; fail "$name does not say '$message'"; }
}

# On a machine without a GPU a program for amdgcn has to fail, and say why.
must_run() {
  local status=0
  "$@" >"$work/run.log" 2>&1 || status=$?
  cat "$work/run.log"
  if [ "$status" -eq 0 ]; then return; fi
  if [ "$machine" != amdgcn ] || [ -e /dev/kfd ] ||
    ! grep -Eq 'hipError(NoDevice|InvalidDevice)' "$work/run.log"; then
    fail "$1 ends with status $status"
  fi
}

rm -rf "$work"
mkdir -p "$work"
"$cmake" --install "$build" --prefix "$work/first prefix" >"$work/install.log"
mv "$work/first prefix" "$prefix"
[ -s "$prefix/include/flashxdl/flashxdl.hpp" ] || fail "flashxdl.hpp is not installed"
if grep -rnF -e "$source" -e "$build" -e "$work" "$prefix"; then
  fail "installed files name directories of this machine"
fi
echo "installed files are relocatable"

must_configure_and_build client "$source/example/client" "-DCMAKE_PREFIX_PATH=$prefix"
must_run "$work/client/flashxdl_client"

package=("$source/test/package/consumer" -DHOW=package "-DCMAKE_PREFIX_PATH=$prefix")
# The README's program is a user's, too.
sed -n '/^```cpp$/,/^```$/{//!p}' "$source/README.md" >"$work/readme.cpp"
[ -s "$work/readme.cpp" ] || fail "README.md has no C++ program"
must_configure_and_build consumer "${package[@]}" -DWANTED=0.1 "-DPROGRAM=$work/readme.cpp"
must_run "$work/consumer/consumer"
status=0
"$work/consumer/program" || status=$?
if [ "$status" -ne 0 ] && { [ "$machine" = host ] || [ -e /dev/kfd ]; }; then
  fail "the README's program ends with status $status"
fi
echo "the README's program works"
for version in 0.0 0.2 1.0; do
  must_refuse "version-$version" "compatible with requested version" "${package[@]}" \
    "-DWANTED=$version"
done
must_refuse bad-target "it can be auto, host or amdgcn" "${package[@]}" -DFLASHXDL_TARGET=gpu
if [ "$machine" = amdgcn ]; then
  must_refuse other-gpu "GPU_TARGETS has 'gfx1030'" "${package[@]}" -DGPU_TARGETS=gfx1030
fi
echo "versions and options are checked"

must_configure_and_build subdirectory "$source/test/package/consumer" -DHOW=subdirectory \
  "-DFLASHXDL_SOURCE=$source"
must_run "$work/subdirectory/consumer"
rm -rf "$work"
