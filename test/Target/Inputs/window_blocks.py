#!/usr/bin/env python3
"""Counts the blocks that kernels visit and mask under windows.

    window_blocks.py AOT_TIME PACKAGE TARGET OP HEAD_DIM [PAIRED]

Of each kernel with matrix products one workgroup is executed under every window, and
its matrix instructions and selections are counted. A kernel must visit the blocks in
which some row of the workgroup sees something and no other, and mask those of them
in which some row does not see all. With PAIRED, of kernels whose full blocks go in
pairs, it may mask one more. Prints a line a window; fails if one has others."""

import json
import math
import subprocess
import sys
import tempfile

INFINITE = math.inf
LENGTH = 3072  # of what is visited

# What row (or key) r of the workgroup sees: [r + first, r + last].
WINDOWS = [
    (-INFINITE, INFINITE), (-INFINITE, 0), (-INFINITE, 777),
    (-INFINITE, LENGTH - 300), (500, INFINITE), (533, INFINITE),
    (LENGTH - 300, INFINITE), (512, 1535), (500, 1500), (531, 1500),
    (500, 1600), (2500, 3200),
]
NARROW = (-20, 20)  # no block is seen in whole


def count(options, owns_keys, rows, window):
    """[(kernel, waves, matrix instructions and selections of a wave)]"""
    first, last = window[:2]
    sides = (last, -first) if owns_keys else (-first, last)
    length = window[2] if len(window) > 2 else LENGTH
    lengths = (length, rows) if owns_keys else (rows, length)
    mask = ":".join("inf" if side == INFINITE else str(side) for side in sides)
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run(
            options + ["--count", "--batch=1", "--heads=1", "--report=none",
                       f"--json={file.name}", f"--mask={mask},top-left",
                       f"--seqlen-q={lengths[0]}", f"--seqlen-k={lengths[1]}"],
            check=True, stdout=subprocess.DEVNULL)
        runs = json.load(open(file.name))["runs"]
    result = {}
    for launch in runs[0]["launches"]:
        counts = launch["executed"]["mnemonics"]
        matrix = sum(n for name, n in counts.items() if "mfma" in name)
        if matrix:
            result[launch["kernel"]] = (launch["block"][0], matrix,
                                        counts.get("v_cndmask_b32", 0))
    return result, runs[0]["schedule"]


def schedules(text):
    """{kernel's suffix: {parameter: value}}"""
    result = {}
    for part in text.split(";"):
        name, _, fields = part.rpartition(":")
        if "=" in fields:
            result[name] = dict(field.split("=") for field in fields.split(","))
    return result


def expected(first, last, rows, block):
    """Blocks from the first that is seen on: (to visit, to mask)"""
    begin = max(0, first)
    end = min(LENGTH, rows + last)
    begin_of_all, end_of_all = max(0, rows - 1 + first), min(LENGTH, last + 1)
    visited = max(0, math.ceil((end - begin) / block))
    full = sum(begin + i * block >= begin_of_all
               and begin + (i + 1) * block <= end_of_all for i in range(visited))
    return visited, visited - full


def check(options, kernel, schedule, is_paired):
    owns_keys = kernel.endswith(("_dkdv", "_fused"))
    rows, block = int(schedule["block_m"]), int(schedule["block_n"])
    of = lambda *window: count(options, owns_keys, rows, window)[0][kernel]
    everything = (-INFINITE, INFINITE)
    threads, *most = of(*everything)
    _, *half = of(*everything, LENGTH // 2)
    a_block = [(x - y) / (LENGTH / 2 / block) for x, y in zip(most, half)]
    around = [x - LENGTH / block * y for x, y in zip(most, a_block)]
    blocks_of = lambda matrix: (matrix - around[0]) / a_block[0]
    masking = lambda matrix, selections: (
        selections - around[1] - blocks_of(matrix) * a_block[1])
    # Each lane selects for each of its scores; keys past the last one have
    # bounds of their own where dQ is summed over them.
    a_mask = rows * block / threads
    if kernel.endswith("_fused"):
        _, *narrow = of(*NARROW)
        bounds = masking(*narrow) / expected(*NARROW, rows, block)[1] - a_mask
        assert 0 <= bounds < a_mask / 2
        a_mask += bounds
    failed = False
    for first, last in WINDOWS:
        _, matrix, selections = of(first, last)
        visited = blocks_of(matrix)
        masked = masking(matrix, selections) / a_mask
        wanted = expected(first, last, rows, block)
        more = masked - wanted[1]
        # A block that rescales executes a little more.
        good = (abs(visited - wanted[0]) < 0.2 and
                min(abs(more), abs(more - is_paired)) < 0.4)
        failed |= not good
        print(f"{kernel} {first} to {last}: visits {visited:.1f} of {wanted[0]}, "
              f"masks {masked:.1f} of {wanted[1]}{'' if good else ' WRONG'}")
    return failed


def main():
    aot_time, package, target, op, dim = sys.argv[1:6]
    options = [aot_time, f"--package={package}", f"--target={target}",
               f"--op={op}", f"--head-dim={dim}"]
    first, text = count(options, False, 128, WINDOWS[0])
    of = schedules(text)
    return any([check(options, kernel,
                      of.get(kernel.rsplit("_", 1)[1]) or of[""],
                      "PAIRED" in sys.argv) for kernel in first])


sys.exit(main())
