#!/bin/sh
# check_codegen.sh ISA_STATS COMPILER ARCH OUTPUT SOURCE [compiler flags] -- [isa_stats limits]
# Compiles the device side of SOURCE and checks every kernel in it.
set -eu
stats=$1 compiler=$2 arch=$3 output=$4 source=$5
shift 5
flags=
while [ "$1" != -- ]; do
  flags="$flags $1"
  shift
done
shift
# shellcheck disable=SC2086 # flags are words without spaces
"$compiler" -x hip --cuda-device-only --offload-arch="$arch" -std=c++20 -O3 -S $flags "$source" \
  -o "$output"
exec python3 "$stats" "$output" --check --mfma GridwiseBatchedMha "$@"
