#!/usr/bin/env python3
"""Writes forward attention kernels that Triton builds, with kernel descriptions.

    export.py --chip gfx942 --out folder [--dim 64 --dim 128] [--kind bf16]

Each kernel comes as NAME.hsaco and NAME.json (docs/KernelDescription.md), so that
tools for any code object take them: aot-launch folder. They are built as a
framework launches them, with multiples of 16 and 32-bit offsets promised.
"""

import argparse
import itertools
import json
import os
import sys

import cases
from build import compile_kernel, wave_size
from run import attention_builds

# (query rows, keys), waves, stages, waves a SIMD that registers should leave room
# for; as kernel libraries tune them for CDNA and RDNA.
WAVE_64 = (((128, 64), 4, 1, 2), ((128, 64), 4, 1, 1), ((128, 64), 4, 2, 2),
           ((128, 128), 4, 1, 1), ((128, 64), 8, 2, 2))
WAVE_32 = (((64, 32), 4, 1, 2), ((128, 32), 8, 1, 2))

_KINDS = {"fp32": "f32", "i32": "i32", "i64": "i64"}
_TYPES = {"fp16": "f16", "bf16": "bf16"}
_BUFFERS = {"Q": "q", "K": "k", "V": "v", "Out": "out", "Lse": "lse"}
_SHAPES = {"q": ["batch", "heads", "seqlen_q", "dim"],
           "k": ["batch", "heads_k", "seqlen_k", "dim"]}


def strides(letter):
    """Expressions of the strides of batch, head and row in (b, h, s, d) order."""
    heads, rows = _SHAPES["q" if letter in "qo" else "k"][1:3]
    return (f"{heads} * {rows} * dim", f"{rows} * dim", "dim")


def describe(case, build, compiled, chip, name):
    expressions = {"scale": "scale", "group": "heads / heads_k"}
    for letter in "qkvo":
        for axis, text in zip("bhs", strides(letter)):
            expressions[f"stride_{letter}{axis}"] = text
    arguments = []
    for argument, kind in build.types.items():
        if kind.startswith("*"):
            arguments.append({"name": argument, "kind": "buffer",
                              "value": _BUFFERS[argument]})
        else:
            arguments.append({"name": argument, "kind": _KINDS[kind],
                              "value": expressions.get(argument, argument)})
    for scratch in ("global_scratch", "profile_scratch"):
        arguments.append({"name": scratch, "kind": "ptr", "value": 0})
    element = _TYPES[case.kind]
    normal = lambda seed: {"kind": "normal", "seed": seed}
    flops = "4 * batch * heads * seqlen_q * seqlen_k * dim"
    return {
        "version": 1, "name": name, "target": chip,
        "variables": {"batch": 1, "heads": 2, "heads_k": "heads", "seqlen": 512,
                      "seqlen_q": "seqlen", "seqlen_k": "seqlen", "dim": case.dim,
                      "scale": "1 / sqrt(dim)"},
        "buffers": {
            "q": {"type": element, "shape": _SHAPES["q"], "fill": normal(1)},
            "k": {"type": element, "shape": _SHAPES["k"], "fill": normal(2)},
            "v": {"type": element, "shape": _SHAPES["k"], "fill": normal(3)},
            "out": {"type": element, "shape": _SHAPES["q"], "fill": "nan"},
            "lse": {"type": "f32", "shape": _SHAPES["q"][:3], "fill": "nan"}},
        "launches": [{
            "code_object": name + ".hsaco", "kernel": compiled.kernel,
            "grid": [f"ceildiv(seqlen_q, {case.block[0]})", "heads", "batch"],
            "block": [compiled.threads], "dynamic_lds": compiled.lds,
            "arguments": arguments,
            "work": {"flops": flops + (" / 2" if case.causal else "")}}],
        "check": {"kind": "attention-forward", "q": "q", "k": "k", "v": "v",
                  "out": "out", "lse": "lse", "scale": "scale",
                  "mask": "causal-bottom-right" if case.causal else "none"}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chip", required=True)
    parser.add_argument("--out", required=True, help="folder to write to")
    parser.add_argument("--dim", type=int, action="append", help="head dimension")
    parser.add_argument("--kind", default="bf16", choices=sorted(_TYPES))
    options = parser.parse_args()
    os.makedirs(options.out, exist_ok=True)
    wave_64 = wave_size(options.chip) == 64
    for dim, causal, (block, warps, stages, waves) in itertools.product(
            options.dim or (64, 128), (False, True), WAVE_64 if wave_64 else WAVE_32):
        case = cases.AttentionCase("export", options.kind, dim, causal, block,
                                   dict(num_warps=warps, num_stages=stages,
                                        waves_per_eu=waves), (), tuned=True)
        (_, build), = attention_builds(case).items()
        compiled = compile_kernel(build, options.chip,
                                  os.path.join(options.out, "cache"))
        name = (f"triton.{options.kind}.d{dim}.{'causal' if causal else 'full'}."
                f"{block[0]}x{block[1]}.w{warps}.s{stages}.wpe{waves}")
        stem = os.path.join(options.out, name)
        with open(stem + ".hsaco", "wb") as file:
            file.write(compiled.image)
        with open(stem + ".json", "w") as file:
            json.dump(describe(case, build, compiled, options.chip, name), file,
                      indent=1)
        print(stem + ".json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
