#!/usr/bin/env bash
# Installs the distribution packages that building, testing and running Fovea
# needs (Debian 12 or newer). Does nothing, and needs no root, when all of them
# are there already.
set -euo pipefail

packages=(
  build-essential cmake ninja-build git
  llvm-22-dev llvm-22-tools libmlir-22-dev mlir-22-tools liblld-22-dev
  clang-22 clang-tools-22 libclang-rt-22-dev lld-22
  libsqlite3-dev sqlite3 libzstd-dev libxxhash-dev
  libgtest-dev libbenchmark-dev libcli11-dev nlohmann-json3-dev
  python3 pkgconf
  python3-dev pybind11-dev # pyaotriton, the Python module of AOTriton's interface
  python3-numpy # tests of the Python package
  mkdocs doxygen # the target `site`, which finds links that lead nowhere
  groff-base # holds the manual pages to their format
  libamdhip64-5 # ROCm's own library, for a test of libfovea with it
)

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2>/dev/null || true)
  [[ $status == ii* ]] || missing+=("$package")
done
if [[ ${#missing[@]} -eq 0 ]]; then
  exit 0
fi

echo "Installing ${#missing[@]} packages: ${missing[*]}"
sudo=()
if [[ $(id -u) -ne 0 ]]; then
  command -v sudo >/dev/null || {
    echo "error: these packages are missing and installing them needs root:" >&2
    echo "  apt-get install ${missing[*]}" >&2
    exit 1
  }
  sudo=(sudo)
fi
"${sudo[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -y --no-install-recommends "${missing[@]}"
