#!/usr/bin/env bash
# run.sh COMPILE RUN CHIP FOLDER: every program of the library, alone and in
# compositions of three, in a forward and a gradient kernel of the chip, with
# captures by chance, held to fp64. Without FOVEA_FULL_GRIDS=1 half of the programs run
# on gfx942, the others on gfx1201, and every eighth on the other chips, with one
# algorithm in turn.
set -euo pipefail
compile=$1 run=$2 chip=$3 folder=$4
rm -rf "$folder"
mkdir -p "$folder"

# Names, and --captures; a program more of the library has a row more.
programs='
softcap 5
alibi 0.1
bias 2
bias_strided 2
bias_f32 2
relative 2,9
bias_bool 1
bias_bool_strided 1
documents 1,1
prefix_lm 90
chunked 37
sliding_window 30,7
softcap,alibi,documents 5,0.1,1,1
relative,bias,prefix_lm 2,9,2,90
softcap,bias_f32,sliding_window 5,2,30,7
bias_strided,bias_bool,chunked 2,1,37
'
for name in $("$compile" --list-scores | grep -o '^[a-z_0-9]*'); do
  if ! grep -q "^$name " <<<"$programs"; then
    echo "'$name' of the library has no row in $0"
    exit 1
  fi
done

check() { # label, arguments of aot-run
  local label=$1 said
  shift
  if ! said=$("$run" --package="$folder/kernels" --hip=sim --dtype=bf16 --head-dim=64 \
        --batch=2 --heads=4 --heads-k=2 --seqlen-q=70 --seqlen-k=133 --score="$name" \
        --captures="$captures" "$@" 2>&1); then
    echo "FAIL $chip $name $label"
    echo "$said"
    failed=1
  fi
}

make() { # operation, algorithm
  "$compile" --target="$chip" --op="$1" --algorithm="$2" --dtype=bf16 --head-dim=64 \
    --score="$name" --emit=package -q -o "$folder/kernels/$1.fovea" || failed=1
}

failed=0
number=0
while read -r name captures; do
  [ -n "$name" ] || continue
  number=$((number + 1))
  algorithms="deterministic atomic"
  if [ "${FOVEA_FULL_GRIDS:-0}" = 0 ]; then
    case $chip in
    gfx942) [ $((number % 2)) = 0 ] || continue ;;
    gfx1201) [ $((number % 2)) = 1 ] || continue ;;
    *) [ $(((number + 10#${chip//[!0-9]/}) % 8)) = 0 ] || continue ;;
    esac
    # In turn, and each algorithm gets compositions.
    set -- $algorithms
    shift $((number / 3 % 2))
    algorithms=$1
  fi
  rm -rf "$folder/kernels"
  mkdir "$folder/kernels"
  make forward flash
  check forward
  for algorithm in $algorithms; do
    rm -f "$folder/kernels/backward.fovea"
    make backward "$algorithm"
    check "$algorithm" --op=backward --no-deterministic
  done
done <<<"$programs"
exit $failed
