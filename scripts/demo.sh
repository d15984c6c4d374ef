#!/usr/bin/env bash
# From a fresh machine to attention kernels that ran: installs what is missing,
# builds what the demo needs, compiles the kernels and runs a table of problems
# on the simulated device, checked against fp64. Quick when nothing changed.
# Extra arguments go to aot-run (aot-run --help).
set -euo pipefail
cd "$(dirname "$0")/.."
./scripts/build.sh aot-compile aot-run fovea_hipsim fovea_kernels
build=${FOVEA_BUILD_DIR:-build}
exec "$build/bin/aot-run" --package="$build/kernels" --hip=sim --suite=demo "$@"
