# shellcheck shell=bash disable=SC2034
# Shared by the scripts beside it: packages, configuring, running programs. Source it from bash.

set -euo pipefail
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
build="${FLASHXDL_BUILD_DIR:-$root/build}"
jobs="${FLASHXDL_JOBS:-$(nproc)}"

# Debian packages, by what needs them.
packages_to_build=(g++ cmake ninja-build libboost-context-dev libcli11-dev)
packages_for_amd=(clang-15 clang-tools-15 lld-15 libamdhip64-dev)
packages_to_test=(libgtest-dev nlohmann-json3-dev librocrand-dev "${packages_for_amd[@]}"
  clang-22 lld-22 clang-format-14 python3)

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

installed() { dpkg-query -W -f '${Status}' "$1" 2>/dev/null | grep -q 'ok installed'; }

# Installs the named Debian packages that are missing: with apt as root, else it says which command
# does. A package that this system's sources do not have is reported; what needs it is left out.
need_packages() {
  if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    echo "This is not a Debian system; going on with what is installed. Needed are the likes of: $*"
    return 0
  fi
  local package missing=() known=() absent=()
  for package in "$@"; do
    installed "$package" || missing+=("$package")
  done
  [ ${#missing[@]} -eq 0 ] && return 0
  if [ "$(id -u)" -ne 0 ]; then
    fail "packages are missing; install them with: sudo apt-get install ${missing[*]}"
  fi
  say "Installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q
  for package in "${missing[@]}"; do
    if apt-cache show "$package" >/dev/null 2>&1; then
      known+=("$package")
    else
      absent+=("$package")
    fi
  done
  apt-get install -y -q --no-install-recommends ${known[@]+"${known[@]}"}
  if [ ${#absent[@]} -gt 0 ]; then
    echo "Not in this system's package sources: ${absent[*]}; checks that need them are left out."
  fi
}

# With an AMD GPU and no ROCm, the distribution's clang and HIP runtime are needed.
need_packages_to_build() {
  local packages=("${packages_to_build[@]}" "$@")
  if [ -e /dev/kfd ] && ! command -v amdclang++ >/dev/null && [ ! -d /opt/rocm ]; then
    packages+=("${packages_for_amd[@]}")
  fi
  need_packages "${packages[@]}"
}

# configure [CMake option]...
configure() {
  local generator=()
  if [ ! -e "$build/CMakeCache.txt" ] && command -v ninja >/dev/null; then generator=(-G Ninja); fi
  say "Configuring in $build"
  cmake -S "$root" -B "$build" ${generator[@]+"${generator[@]}"} "$@"
}

# build [target]...
build_targets() {
  say "Building with $jobs jobs"
  cmake --build "$build" -j "$jobs" ${1+--target "$@"}
}

# Runs each named program of the build, without arguments, and prints one summary line for each at
# the end; fails if one failed.
run_programs() {
  local name start status summary=() failed=0
  for name in "$@"; do
    say "$name"
    start=$SECONDS
    status=0
    "$build/bin/$name" || status=$?
    if [ "$status" -eq 0 ]; then
      summary+=("passed  $name ($((SECONDS - start)) s)")
    else
      summary+=("FAILED  $name (exit status $status)")
      failed=$((failed + 1))
    fi
  done
  say "Summary"
  printf '%s\n' "${summary[@]}"
  [ "$failed" -eq 0 ] || fail "$failed of $# programs failed"
}
