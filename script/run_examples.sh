#!/usr/bin/env bash
# Builds all example programs and runs them: script/run_examples.sh [CMake option]...
# Installs missing Debian packages when run as root. FLASHXDL_BUILD_DIR (default: build) and
# FLASHXDL_JOBS (default: the number of cores) come from the environment.
# shellcheck source=script/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_packages_to_build
configure -DFLASHXDL_BUILD_EXAMPLES=ON -DFLASHXDL_BUILD_TESTS=OFF "$@"
build_targets

mapfile -t names < <(cd "$build/bin" && find . -maxdepth 1 -name 'example_*' -printf '%f\n' | sort)
[ ${#names[@]} -gt 0 ] || fail "no example program in $build/bin"
run_programs "${names[@]}"
