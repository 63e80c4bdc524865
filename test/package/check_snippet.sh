#!/usr/bin/env bash
# Compiles the C++ code block of a Markdown page: check_snippet.sh PAGE COMPILER [OPTION]...
set -euo pipefail
page="$1"
shift
code="$(sed -n '/^```cpp$/,/^```$/{//!p}' "$page")"
[ -n "$code" ] || { echo "$page has no C++ code block" >&2; exit 1; }
"$@" -fsyntax-only - <<<"$code"
echo "the code block of $page compiles"
