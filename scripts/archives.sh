#!/usr/bin/env bash
# Builds archives for older distributions into dist/ (docs/Packages.md). --help says more.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/manylinux.sh
version=$(sed -n 's/^project(fovea VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
parts=(runtime aotriton compiler simulator)
# Rows of the compiler's table.
mapfile -t chips < <(sed -n 's/^ *\(.*[(]\)\?chip(k[A-Z][^"]*"\(gfx[^"]*\)".*/\2/p' \
  lib/Target/TargetInfo.cpp)

usage() {
  cat <<END_OF_USAGE
usage: scripts/archives.sh [SWITCH...]

Builds archives that run with the C library $manylinux_glibc and newer, from what this machine has
and zig's list of that library's symbols; no container. LLVM, SQLite, zstd and libstdc++ are
linked in; libfovea, AOTriton's libraries and what runs them take libstdc++'s functions for
exceptions from the system. Ends with a check of all that was packed. Run again, it goes on
where it was.

  --without=LIST      of ${parts[*]:2}, with commas between them: not built
  --images=LIST       chips, with commas between them: compiles a whole library for each,
                      an archive of its own; fovea-...-kernels has no kernels then, only specs,
                      tuning rows and score programs
  --spec=FILE         with --images: what these libraries have (kernels/sdpa.json)
  --list              prints the archives' names and builds nothing
  --help              this

  ./scripts/archives.sh --without=compiler
  ./scripts/archives.sh --images=gfx942,gfx1201 --spec=kernels/inference.json

FOVEA_BUILD_DIR names another folder than build-archives, of a path without spaces, CC and
CXX other compilers than clang 22.
END_OF_USAGE
}

refuse() {
  echo "archives.sh: $1" >&2
  echo "  ./scripts/archives.sh --help shows what it takes" >&2
  exit 2
}

# list_of SWITCH BEFORE VALUE KNOWN...: sets `list` to the words of VALUE, each of which is
# known. BEFORE is what the switch had before.
list_of() {
  local switch=$1 before=$2 words word
  IFS=, read -ra words <<<"$3"
  shift 3
  [[ -z $before ]] || refuse "$switch is given twice; one has a list: $switch=${before// /,},..."
  list=
  for word in "${words[@]}"; do
    [[ -n $word ]] || continue
    [[ " $* " == *" $word "* ]] || refuse "$switch has no '$word': $*"
    [[ " $list " != *" $word "* ]] || refuse "$switch names '$word' twice"
    list+=${list:+ }$word
  done
  [[ -n $list ]] || refuse "$switch names nothing: $*"
}

without= images= names_only= spec=
while [[ $# -gt 0 ]]; do
  case $1 in
  --help | -h)
    usage
    exit
    ;;
  --without=*)
    list_of --without "$without" "${1#*=}" "${parts[@]:2}"
    without=$list
    ;;
  --images=*)
    list_of --images "$images" "${1#*=}" "${chips[@]}"
    images=$list
    ;;
  --spec=*)
    [[ -z $spec ]] || refuse "--spec is given twice: '$spec' and '${1#*=}'"
    spec=${1#*=}
    [[ -f $spec ]] || refuse "--spec names '$spec', which is no file; kernels/ has some"
    ;;
  --list) names_only=yes ;;
  --without | --images | --spec) refuse "'$1' has no value: $1=..." ;;
  *) refuse "there is no switch '$1'" ;;
  esac
  shift
done
has() { [[ " $without " != *" $1 "* ]]; }
[[ -z $images ]] || has compiler ||
  refuse "--images needs the compiler, which --without=compiler leaves out"
[[ -z $spec || -n $images ]] || refuse "--spec is what --images compiles, which is not given"
spec=${spec:-kernels/sdpa.json}

names=()
for part in "${parts[@]}"; do
  ! has "$part" || names+=("fovea-$version-$manylinux_tag-$part.tar.gz")
done
! has compiler || names+=("fovea-$version-kernels.tar.gz")
for chip in $images; do
  names+=("fovea-$version-images-amd-$chip.tar.gz")
done
if [[ -n $names_only ]]; then
  printf '%s\n' "${names[@]}"
  exit
fi

work=${FOVEA_BUILD_DIR:-build-archives}
mkdir -p "$work" dist
work=$(realpath "$work")
export CC=${CC:-/usr/lib/llvm-22/bin/clang} CXX=${CXX:-/usr/lib/llvm-22/bin/clang++}
step() { echo "archives.sh, $SECONDS s: $1"; }

step "what links for $manylinux_tag"
manylinux_link "$work"

# configure PACKS: kernels to pack, separated by semicolons.
configure() {
  local build_compiler=OFF build_simulator=OFF
  ! has compiler || build_compiler=ON
  ! has simulator || build_simulator=ON
  cmake -G Ninja -S . -B "$work" --log-level=WARNING -DFOVEA_LINK_STATIC=ON \
    -DFOVEA_PACKAGE_MACHINE="$manylinux_tag" -DFOVEA_BUILD_TOOLS=ON \
    -DFOVEA_BUILD_COMPILER=$build_compiler -DFOVEA_BUILD_SIMULATOR=$build_simulator \
    -DFOVEA_BUILD_CTS=$build_simulator -DFOVEA_BUILD_TESTS=OFF -DFOVEA_BUILD_BENCHMARKS=OFF \
    -DFOVEA_BUILD_PYAOTRITON=OFF -DFOVEA_TORCH=OFF -DFOVEA_IMAGE_PACKS="$1"
}

packs=
if [[ -n $images ]]; then
  step "the compiler, for the images"
  configure ""
  ninja -C "$work" aot-compile
  for chip in $images; do
    step "kernels for $chip"
    "$work/bin/aot-compile" --spec="$spec" --target="$chip" --emit=package --prune \
      -o "$work/images"
    packs+=${packs:+;}$work/images/$chip.fovea
  done
fi
step "programs and libraries"
configure "$packs"
ninja -C "$work"

step "archives"
rm -rf "$work/packed" "$work/tree"
(cd "$work" && cpack -G TGZ -B "$work/packed")
mkdir "$work/tree"
for name in "${names[@]}"; do
  tar xf "$work/packed/$name" -C "$work/tree"
done
step "check"
manylinux_check "$work/tree/fovea-$version"
for name in "${names[@]}"; do
  mv "$work/packed/$name" dist/
done
rm -rf "$work/tree"
step "done; $(du -sh "$work" | cut -f 1) in $work"
(cd dist && ls -l "${names[@]}")
