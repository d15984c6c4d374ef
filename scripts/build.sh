#!/usr/bin/env bash
# Installs what is missing, configures once and builds everything into build/, several
# sources to a compilation: that is fastest for all that there is, and
# FOVEA_CMAKE_ARGS=-DCMAKE_UNITY_BUILD=OFF for what is being changed.
# Extra arguments go to ninja. CC, CXX and FOVEA_CMAKE_ARGS are honoured.
set -euo pipefail
cd "$(dirname "$0")/.."
./scripts/install-deps.sh
build=${FOVEA_BUILD_DIR:-build}
if [[ ! -f $build/build.ninja ]]; then
  export CC=${CC:-/usr/lib/llvm-22/bin/clang} CXX=${CXX:-/usr/lib/llvm-22/bin/clang++}
  # shellcheck disable=SC2086
  cmake -G Ninja -S . -B "$build" -DCMAKE_UNITY_BUILD=ON ${FOVEA_CMAKE_ARGS:-}
fi
ninja -C "$build" "$@"
