#!/bin/sh
# Finds the tuning tables of kernels/tuning anew, by prediction: for each chip that the
# timing model knows, head dimensions 64 and 128.
#
#   scripts/tune-tables.sh [-b build] [-s state-folder] [-o folder] [chip...] [-- options]
#
# What is behind -- goes to each aot-tune (-j2, --budget=20m). Killed, it goes on where it
# was: answers are kept in the state folder (build/tuning). Run it after the schedule
# tables, the lowering, LLVM or the timing model changed.
set -eu
cd "$(dirname "$0")/.."
build=build folder=kernels/tuning state=
while getopts b:s:o: option; do
  case $option in
  b) build=$OPTARG ;;
  s) state=$OPTARG ;;
  o) folder=$OPTARG ;;
  *) exit 2 ;;
  esac
done
shift $((OPTIND - 1))
state=${state:-$build/tuning}
mkdir -p "$state"
chips=
while [ $# -gt 0 ] && [ "${1#-}" = "$1" ]; do
  chips="$chips $1"
  shift
done
[ "${1-}" != -- ] || shift
# Of each chip a clock (GHz) that it holds under load: what is faster at the clock of
# the power model must be no slower there. Chips that are missing take the file of
# another, which their rows of the table of chips name. Behind the clock the batches of
# 16 heads.
for row in gfx908:1.15:2,16 gfx90a:1.3:2,16 gfx942:1.2:2,16 gfx950:1.8:2,16 \
  gfx1100:2.3:2 gfx1102:2.3:2 gfx1151:2.1:2 gfx1200:2.7:2 gfx1201:2.6:2; do
  chip=${row%%:*} clock=${row#*:}
  case " ${chips:-$chip} " in *" $chip "*) ;; *) continue ;; esac
  for op in forward backward; do
    "$build/bin/aot-tune" --by=prediction --target="$chip" --op=$op \
      --dtype=bf16,fp16 --head-dim=64,128 --seqlen=512,4096 --batch="${clock#*:}" --heads=16 \
      --mask=none,causal-top-left --clock="${clock%:*}" \
      --state="$state/$chip.state" -o "$folder" "$@"
  done
done
