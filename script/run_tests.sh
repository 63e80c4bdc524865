#!/usr/bin/env bash
# Builds everything and runs the whole test suite: script/run_tests.sh [CMake option]...
# Installs missing Debian packages when run as root. FLASHXDL_BUILD_DIR (default: build) and
# FLASHXDL_JOBS (default: the number of cores) come from the environment.
# shellcheck source=script/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

need_packages_to_build "${packages_to_test[@]}"
configure -DFLASHXDL_BUILD_EXAMPLES=ON -DFLASHXDL_BUILD_TESTS=ON "$@"
build_targets
say "Testing"
cd "$build" || exit 1
ctest --output-on-failure -j "$jobs"
