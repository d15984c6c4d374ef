#!/usr/bin/env bash
# Installs Triton and NumPy into a virtual environment in the build folder, for
# the tests of kernels that Triton builds, and configures anew so that there are
# such tests. Triton compiles for AMD GPUs without one, and without ROCm. The
# project builds and tests without it, too. FOVEA_BUILD_DIR is honoured.
set -euo pipefail
cd "$(dirname "$0")/.."
version=3.9.0
build=${FOVEA_BUILD_DIR:-build}
if [[ ! -f $build/CMakeCache.txt ]]; then
  echo "install-triton.sh: '$build' is no build folder; run scripts/build.sh first" >&2
  exit 2
fi
python3 -m venv "$build/triton-venv"
"$build/triton-venv/bin/pip" install --quiet "triton==$version" numpy
cmake -U FOVEA_TRITON_PYTHON "$build"
