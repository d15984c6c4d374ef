#!/usr/bin/env bash
# Builds everything and runs all tests: unit, lit + FileCheck, execution on the
# simulated device. --help says what else it does.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() {
  cat <<'END'
usage: scripts/test.sh [SWITCH...] [ARGUMENT...]

Installs what is missing, builds, and runs the tests. Each ARGUMENT from the first that
is no SWITCH on goes to ctest: -R lit, -L unit, -j1, --rerun-failed.

  (none)              everything, by clang: what CI runs; folder build
  --compiler=NAME     gcc or clang (default); gcc: build-gcc, each source by itself, which
                      finds what one lacks of its own includes
  --assertions        libstdc++ checks indices, iterators and optionals, and assert() is
                      on in what includes no header of LLVM, whose layouts depend on it
                      and whose headers' own assertions are its build's; build-assertions
  --sanitize=LIST     of address, undefined, thread, with commas between them; thread goes
                      with undefined alone. The runtime, packages, simulator, reference and
                      tools are instrumented, and their tests run. The compiler is not built:
                      LLVM's libraries are not instrumented; programs that are not, as Python
                      and installed clients, do not load the libraries. build-address-undefined
  --full              besides, what is left out for the sake of time: full grids of more
                      chips, each fault and score program on each chip; hours
  --help              this

Switches go together, and each combination has a folder of its own: --compiler=gcc
--assertions builds in build-gcc-assertions.

  ./scripts/test.sh --sanitize=address,undefined -L unit
  ./scripts/test.sh --compiler=gcc --assertions -R lit

FOVEA_BUILD_DIR names another folder than build, FOVEA_CMAKE_ARGS has arguments for CMake
when a folder is configured for the first time.
END
}

# What every refusal ends with.
refuse() {
  echo "test.sh: $1" >&2
  echo "  ./scripts/test.sh --help shows the switches, ctest --help what else is taken" >&2
  exit 2
}

compiler=clang assertions= sanitize= full=()
while [[ $# -gt 0 ]]; do
  case $1 in
  --help | -h)
    usage
    exit
    ;;
  --compiler=gcc | --compiler=clang) compiler=${1#*=} ;;
  --compiler=*) refuse "'$1' names no compiler: gcc, clang" ;;
  --assertions) assertions=yes ;;
  --full)
    full=(-C Full) # tests that are of that configuration, besides all others
    export FOVEA_FULL_GRIDS=1
    ;;
  --sanitize=*)
    [[ -z $sanitize ]] || refuse "--sanitize is given twice; one has a list: --sanitize=address,undefined"
    sanitize=${1#*=}
    for name in address undefined thread; do # in this order, whatever was written
      [[ ,$sanitize, == *,$name,* ]] && found=${found:+$found-}$name
    done
    for name in ${sanitize//,/ }; do
      [[ -${found:-}- == *-"$name"-* ]] || refuse "--sanitize has no '$name': address, undefined, thread"
    done
    [[ -n ${found:-} ]] || refuse "--sanitize names nothing: address, undefined, thread"
    [[ $found != address*thread ]] || refuse "--sanitize takes address or thread, which cannot be in one program"
    sanitize=$found
    ;;
  --compiler | --sanitize) refuse "'$1' has no value: $1=..." ;;
  *) break ;;
  esac
  shift
done

./scripts/install-deps.sh
known=$(ctest --help)
for argument in "$@"; do # before anything is built for them
  case $argument in
  --compiler* | --assertions | --sanitize* | --full | --help)
    refuse "'$argument' stands behind an argument of ctest's; switches come first"
    ;;
  --*)
    [[ $known == *[,\ ]"${argument%%=*}"[$' \n,=<[']* ]] ||
      refuse "neither this script nor ctest has an option '$argument'"
    ;;
  esac
done

folder=${FOVEA_BUILD_DIR:-build}
settings=()
if [[ $compiler == gcc ]]; then
  folder+=-gcc
  export CC=gcc CXX=g++
  settings+=(-DCMAKE_UNITY_BUILD=OFF) # each source by itself, with what it includes
fi
if [[ -n $assertions ]]; then
  folder+=-assertions
  settings+=(-DFOVEA_ASSERTIONS=ON)
fi
if [[ -n $sanitize ]]; then
  folder+=-$sanitize
  settings+=(-DFOVEA_BUILD_COMPILER=OFF -DFOVEA_BUILD_BENCHMARKS=OFF
    "-DFOVEA_SANITIZE=${sanitize//-/,}")
  # The first finding ends a test. Memory that LLVM's own libraries hold to the end of
  # the process is theirs; what is poisoned by hand in LLVM's headers is poisoned in our
  # half of its allocators alone.
  export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_stack_use_after_return=1:allow_user_poisoning=0}
  export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
  export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1}
fi
export FOVEA_BUILD_DIR=$folder
export FOVEA_CMAKE_ARGS="${settings[*]} ${FOVEA_CMAKE_ARGS:-}"
./scripts/build.sh
cd "$folder"
exec ctest --output-on-failure -j "$(nproc)" "${full[@]}" "$@"
