#!/usr/bin/env python3
"""Compares kernels that take any window with those that have no mask.

    window_costs.py ANY NONE

ANY and NONE are folders of the same kernels' assembly, their reports beside them as
ANY.json and NONE.json (aot-compile --emit=asm --report=json). Of the innermost loops
of a launch with the most matrix instructions the one that compares the least is
taken, which is the one over blocks that are wholly visible. Fails unless it does the
same work in both, and unless the kernel that takes any window spills nothing and lets
as many waves share a SIMD. Prints a line a launch."""

import collections
import json
import pathlib
import re
import sys

MATRIX = re.compile("v_mfma|v_wmma")
# What must not grow. Two that issue as one are two; which do is chance.
CLASSES = {"matrix": MATRIX, "vector": re.compile("v_(?!mfma|wmma|nop|dual_nop)"),
           "LDS": re.compile("ds_"), "memory": re.compile("buffer_|global_"),
           "scratch": re.compile("scratch_|buffer_.* off, s"),
           "barrier": re.compile("s_barrier")}
# Moves are the register allocator's, and change with every edit of a kernel.
MOVE = re.compile("v_mov_b|v_pk_mov|v_accvgpr|v_dual_mov")
# A loop that may start anywhere has an address or two more to step.
ALLOWED = collections.Counter(vector=2)


def functions(text):
    """Lines by the name of the function that they are in."""
    found, name = collections.OrderedDict(), None
    for line in text.splitlines():
        label = re.match(r"(attn_\w+):", line)
        if label:
            name = label.group(1)
        if name:
            found.setdefault(name, []).append(line)
        if "s_endpgm" in line:
            name = None
    return found


def operations(line):
    """The operations of a line: those of a dual instruction are two."""
    code = re.split(";|//", line)[0].strip()
    if not re.match(r"[a-z]\w*_", code):
        return []
    return [part.strip() for part in code.split("::")]


def full_loop(lines):
    """Operations of the loop over visible blocks; None: there is none."""
    labels = {match.group(1): number for number, line in enumerate(lines)
              for match in [re.match(r"(\.LBB\w+):", line)] if match}
    spans = []
    for number, line in enumerate(lines):
        branch = re.match(r"\s+s_c?branch\w*\s+(\.LBB\w+)", line)
        if branch and labels.get(branch.group(1), len(lines)) < number:
            span = lines[labels[branch.group(1)]:number]
            if any(MATRIX.match(line.strip()) for line in span):
                spans.append((labels[branch.group(1)], number))
    inner = [span for span in spans if not any(
        span != other and span[0] <= other[0] and other[1] <= span[1]
        for other in spans)]
    loops = [[operation for line in lines[first:last]
              for operation in operations(line)] for first, last in inner]
    return min(loops, default=None, key=lambda loop: (
        -sum(bool(MATRIX.match(x)) for x in loop),
        sum(x.startswith("v_cmp") for x in loop)))


def counts(loop):
    return {name: sum(bool(pattern.match(x)) and not MOVE.match(x) for x in loop)
            for name, pattern in CLASSES.items()}


def launches(report):
    """Figures of each launch by chip and the name of its function."""
    return {(kernel["target"], launch["kernel"]): launch
            for kernel in json.loads(report.read_text())["kernels"]
            for launch in kernel.get("launches", [kernel])}


def main():
    window, plain = (pathlib.Path(folder) for folder in sys.argv[1:])
    figures = [launches(pathlib.Path(f"{folder}.json")) for folder in (window, plain)]
    messages, compared = [], 0
    for path in sorted(window.glob("*.s")):
        taken = functions(path.read_text())
        other = plain / re.sub(r"_d(\d+)", r"_d\1_none", path.name)
        for name, lines in functions(other.read_text()).items():
            loops = [full_loop(taken[name.replace("_none", "")]), full_loop(lines)]
            if loops == [None, None]:
                continue
            compared += 1
            now, before = map(counts, loops)
            chip = path.stem.rsplit(".", 1)[1]
            mine = figures[0][chip, name.replace("_none", "")]
            theirs = figures[1][chip, name]
            print(f"{path.stem} {name}: {now}, {mine['vgprs']} VGPRs, "
                  f"{mine['occupancy']} waves")
            messages += [f"{path.stem} {name}: {key} {now[key]}, without a mask "
                         f"{before[key]}" for key in now
                         if now[key] > before[key] + ALLOWED[key]]
            if mine["vgpr_spills"] or mine["sgpr_spills"]:
                messages.append(f"{path.stem} {name}: spills")
            if mine["occupancy"] < theirs["occupancy"]:
                messages.append(
                    f"{path.stem} {name}: {mine['occupancy']} waves a SIMD, "
                    f"without a mask {theirs['occupancy']}")
    if not compared:
        messages.append("no launch was compared")
    sys.exit("\n".join(messages) or 0)


if __name__ == "__main__":
    main()
