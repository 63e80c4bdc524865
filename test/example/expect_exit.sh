#!/usr/bin/env bash
# Runs a program that has to end with the given status and to print a line that matches the regular
# expression, on stdout for status 0 and on stderr otherwise:
# expect_exit.sh STATUS REGEX PROGRAM [ARGUMENT]...
set -uo pipefail
wanted="$1" pattern="$2"
shift 2
errors="$(mktemp)"
trap 'rm -f "$errors"' EXIT
output="$("$@" 2>"$errors")"
status=$?
printf '%s\n' "$output"
cat "$errors" >&2
if [ "$wanted" -ne 0 ]; then output="$(cat "$errors")"; fi
[ "$status" -eq "$wanted" ] || { echo "exit status $status, not $wanted" >&2; exit 1; }
grep -Eq -- "$pattern" <<<"$output" || { echo "no line matches '$pattern'" >&2; exit 1; }
