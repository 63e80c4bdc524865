#!/usr/bin/env bash
# Fails if a C++ file of the tree is not formatted as .clang-format says:
# check_format.sh CLANG_FORMAT SOURCE_DIR
set -euo pipefail
cd "$2"
folders=()
for folder in include instances example test script; do
  if [ -d "$folder" ]; then folders+=("$folder"); fi
done
mapfile -d '' files < <(find "${folders[@]}" \( -name '*.hpp' -o -name '*.cpp' \) -print0)
[ ${#files[@]} -gt 0 ] || { echo "no C++ file in $2" >&2; exit 1; }
"$1" --version
"$1" --dry-run -Werror "${files[@]}"
echo "${#files[@]} files are formatted"
