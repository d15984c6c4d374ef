#!/usr/bin/env bash
# Builds everything and runs all tests: unit, lit + FileCheck, execution on the
# simulated device. Extra arguments go to ctest (e.g. -R lit).
set -euo pipefail
cd "$(dirname "$0")/.."
./scripts/build.sh
cd "${FOVEA_BUILD_DIR:-build}"
exec ctest --output-on-failure -j "$(nproc)" "$@"
