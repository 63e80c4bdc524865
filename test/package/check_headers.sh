#!/usr/bin/env bash
# Compiles every header under a directory alone, two inclusions deep, and fails if one does not:
# check_headers.sh INCLUDE_DIR LEAVE_OUT_REGEX COMPILER [OPTION]...
# Headers whose path relative to INCLUDE_DIR matches LEAVE_OUT_REGEX belong to another machine.
set -euo pipefail
include_dir="$1" leave_out="$2"
shift 2

check_one() {
  local header="$1"
  shift
  # Included twice: the second time checks the guard.
  printf '#include "%s"\n#include "%s"\n' "$header" "$header" |
    "$@" -fsyntax-only - || { echo "FAILED: $header does not compile alone" >&2; return 1; }
}
export -f check_one

mapfile -t headers < <(cd "$include_dir" && find . -name '*.hpp' -printf '%P\n' | sort |
  grep -Ev "$leave_out")
[ ${#headers[@]} -gt 0 ] || { echo "no header in $include_dir" >&2; exit 1; }
printf '%s\0' "${headers[@]}" |
  xargs -0 -P "$(nproc)" -I{} bash -c 'check_one "$@"' _ {} "$@" -I "$include_dir"
echo "${#headers[@]} headers compile alone"
