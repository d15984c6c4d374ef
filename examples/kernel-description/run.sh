#!/usr/bin/env bash
# Kernels as plain code objects, launched by descriptions of them: forward and
# backward attention, compiled, checked against fp64 at sizes of the caller's, and
# timed by the model. The commands are those of $PATH.
#
#   run.sh FOLDER [CHIP] [OPTIONS of aot-launch]      CHIP: gfx942 (default), ...
set -euo pipefail
folder=${1:?a folder for code objects and descriptions}
shift
chip=gfx942
if [[ ${1:-} == gfx* ]]; then
  chip=$1
  shift
fi
mkdir -p "$folder"

compile() { # NAME OPTIONS...: the code object and, beside it, its description
  local name=$1
  shift
  aot-compile -q --target="$chip" "$@" --emit=hsaco -o "$folder/$name.hsaco"
  aot-compile -q --target="$chip" "$@" --emit=description -o "$folder/$name.json"
}
compile forward --op=forward --dtype=bf16 --head-dim=64 --mask=causal-bottom-right
compile backward --op=backward --dtype=fp16 --head-dim=64

# As the descriptions say, and at other sizes: grouped keys, odd lengths.
aot-launch "$folder" "$@"
aot-launch "$folder" --set heads=4,heads_k=2,batch=2,seqlen_q=100,seqlen_k=70 "$@"
aot-time "$folder" --seqlen=1024
