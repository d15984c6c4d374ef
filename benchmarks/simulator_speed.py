#!/usr/bin/env python3
"""How fast the simulated device executes, by class of instruction.

    benchmarks/simulator_speed.py [--checks all]

Assembles one kernel a class: a loop of one instruction over and over, in 32
waves, and launches it with aot-launch on one host thread. Prints million wave
instructions a second, and the ratio to the first row: absolute figures depend on
the machine and on what else it does, so compare rows of one run. A fault in any
kernel ends the run.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

# Class, instruction, and what it stands for. v1 holds the lane's LDS offset, v3 its
# offset in a buffer whose address is in s[2:3], s[8:11] its resource.
ROWS = (
    ("vector fp32", "v_fma_f32 v10, v11, v12, v13"),
    ("vector integer", "v_add_u32 v10, v11, v12"),
    ("vector compare", "v_cmp_gt_f32 vcc, v11, v12"),
    ("vector fp64", "v_fma_f64 v[10:11], v[12:13], v[14:15], v[16:17]"),
    ("packed fp16", "v_pk_fma_f16 v10, v11, v12, v13"),
    ("packed fp32", "v_pk_fma_f32 v[10:11], v[12:13], v[14:15], v[16:17]"),
    ("modifiers", "v_add_f32 v10, -v11, |v12|"),
    ("DPP", "v_add_f32_dpp v10, v11, v12 row_shl:1 row_mask:0xf bank_mask:0xf"),
    ("transcendental", "v_exp_f32 v10, v11"),
    ("MFMA 32x32x8 f16", "v_mfma_f32_32x32x8_f16 v[32:47], v[10:11], v[12:13], v[32:47]"),
    ("MFMA 16x16x16 bf16", "v_mfma_f32_16x16x16_bf16 v[32:35], v[10:11], v[12:13], v[32:35]"),
    ("scalar", "s_add_u32 s20, s21, s22"),
    ("branch", "s_cbranch_execz end"),
    ("wait", "s_waitcnt lgkmcnt(0)"),
    ("LDS read, 16 bytes", "ds_read_b128 v[20:23], v1"),
    ("LDS write, 8 bytes", "ds_write_b64 v1, v[10:11]"),
    ("LDS exchange", "ds_bpermute_b32 v20, v1, v10"),
    ("global load, 16 bytes", "global_load_dwordx4 v[20:23], v3, s[2:3]"),
    ("buffer load, 16 bytes", "buffer_load_dwordx4 v[20:23], v3, s[8:11], 0 offen"),
    ("global store, 4 bytes", "global_store_dword v3, v10, s[2:3]"),
    ("global atomic", "global_atomic_add v3, v10, s[2:3]"),
)
REPEAT, WAVES, GROUPS = 100, 4, 8
TARGET = "gfx942"

KERNEL = """
.amdgcn_target "amdgcn-amd-amdhsa--{target}"
.text
.globl k
.p2align 8
.type k,@function
k:
  s_load_dwordx2 s[2:3], s[0:1], 0x0
  s_mov_b32 s20, {loops}
  v_and_b32 v0, 0x3ff, v0
  v_lshlrev_b32 v1, 4, v0
  v_and_b32 v1, 0x3f0, v1
  v_lshlrev_b32 v3, 4, v0
  s_waitcnt lgkmcnt(0)
  s_mov_b32 s8, s2
  s_mov_b32 s9, s3
  s_mov_b32 s10, 4096
  s_mov_b32 s11, 0x20000
  s_mov_b32 s30, 0
{zeros}
loop:
.rept {repeat}
  {instruction}
.endr
  s_add_u32 s30, s30, 1
  s_cmp_lt_u32 s30, {loops}
  s_cbranch_scc1 loop
end:
  s_waitcnt vmcnt(0) lgkmcnt(0)
  s_endpgm
.rodata
.p2align 6
.amdhsa_kernel k
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_float_denorm_mode_32 {denormals}
  .amdhsa_next_free_vgpr 64
  .amdhsa_accum_offset 64
  .amdhsa_next_free_sgpr 48
  .amdhsa_group_segment_fixed_size 1024
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--{target}
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .kernarg_segment_size: 8
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 1024
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 48
    .vgpr_count: 64
    .max_flat_workgroup_size: 256
...
.end_amdgpu_metadata
"""


def build(clang, folder, instruction, loops, denormals):
    """A code object and its description; the path of the latter."""
    zeros = "\n".join(f"  v_mov_b32 v{i}, 0" for i in range(10, 48))
    source = folder / "k.s"
    source.write_text(KERNEL.format(target=TARGET, instruction=instruction,
                                    repeat=REPEAT, loops=loops, zeros=zeros,
                                    denormals=denormals))
    subprocess.run([clang, "-target", "amdgcn-amd-amdhsa", f"-mcpu={TARGET}",
                    str(source), "-o", str(folder / "k.co")], check=True)
    description = folder / "k.json"
    description.write_text(json.dumps({
        "version": 1, "target": TARGET, "code_object": "k.co", "kernel": "k",
        "buffers": {"data": {"type": "i32", "shape": [4096]}},
        "grid": [GROUPS], "block": [64 * WAVES],
        "arguments": [{"kind": "buffer", "value": "data"}]}))
    return description


def seconds(launcher, description, checks):
    env = dict(os.environ, FOVEA_SIM_THREADS="1", FOVEA_SIM_CHECK=checks)
    run = subprocess.run([launcher, "--hip=sim", "--json", str(description)],
                         env=env, capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"aot-launch failed:\n{run.stdout}{run.stderr}")
    return json.loads(run.stdout)[0]["launches"][0]["seconds"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--aot-launch", default="build/bin/aot-launch", metavar="FILE")
    parser.add_argument("--clang", default="/usr/lib/llvm-22/bin/clang", metavar="FILE")
    parser.add_argument("--flush", action="store_true",
                        help="flush fp32 denormals, as kernels of other compilers may")
    parser.add_argument("--checks", default="none", metavar="LIST",
                        help="checkers to switch on (docs/Checkers.md)")
    options = parser.parse_args()
    denormals = 0 if options.flush else 3
    print("| class | instruction | M wave instructions/s | ratio |\n|---|---|---:|---:|")
    first = None
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for label, instruction in ROWS:
            # Two lengths: their difference holds neither loading nor decoding.
            few, many, best = 20, 420, []
            for _ in range(3):
                a = seconds(options.aot_launch,
                            build(options.clang, folder, instruction, few, denormals),
                            options.checks)
                b = seconds(options.aot_launch,
                            build(options.clang, folder, instruction, many, denormals),
                            options.checks)
                if b > a:
                    best.append(b - a)
            if not best:
                sys.exit(f"{label}: too short to time")
            rate = (many - few) * REPEAT * GROUPS * WAVES / min(best) / 1e6
            first = first or rate
            print(f"| {label} | `{instruction.split()[0]}` | {rate:.0f} | {rate / first:.2f} |",
                  flush=True)


if __name__ == "__main__":
    main()
