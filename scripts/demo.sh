#!/usr/bin/env bash
# From a fresh machine to attention kernels that ran: installs what is missing,
# builds what the demo needs, compiles the kernels and runs a table of problems
# on the simulated device, checked against fp64. Quick when nothing changed.
#
#   demo.sh [CHIP] [OPTIONS of aot-run]      CHIP: gfx942 (default), gfx1100, ...
set -euo pipefail
cd "$(dirname "$0")/.."
build=${FOVEA_BUILD_DIR:-build}
chip=gfx942
if [[ ${1:-} == gfx* ]]; then
  chip=$1
  shift
fi
if [[ $chip == gfx942 ]]; then # the default package has all kernels
  ./scripts/build.sh aot-compile aot-run fovea_hipsim fovea_kernels
else
  ./scripts/build.sh aot-compile aot-run fovea_hipsim
  "$build/bin/aot-compile" --target="$chip" --op=forward --dtype=fp16,bf16 \
    --head-dim=16,40,64,80,96,128,192,256 --emit=package \
    -o "$build/kernels/$chip.fovea"
fi
export FOVEA_SIM_TARGET=$chip
exec "$build/bin/aot-run" --package="$build/kernels/$chip.fovea" --hip=sim \
  --suite=demo "$@"
