#!/usr/bin/env python3
"""Writes docs/kernels/Loops.md: the hot loops of tuned kernels from barrier to
barrier, what a wave executes in each piece, how long it takes there and what it
waits for, as `aot-time` predicts it.

    scripts/loop-page.py [--build=build] [--output=docs/kernels/Loops.md]"""

import collections
import pathlib
import subprocess
import tempfile

import kernel_figures as figures

TARGETS = ("gfx942", "gfx950")
SIZE = {"batch": 4, "heads": 16, "seqlen": 4096}
# Pass, head dimension, algorithm, and which of its launches has the loop.
KERNELS = (("forward", 128, None), ("forward", 64, None),
           ("backward", 128, "atomic"), ("backward", 128, "atomic16"))

# Columns, and the classes of instructions that they count.
COLUMNS = (("matrix", ("mfma",)), ("vector", ("valu",)), ("exp", ("trans",)),
           ("LDS", ("lds",)), ("memory", ("vmem",)),
           ("scalar", ("salu", "smem", "branch")), ("waits", ("sync",)))

HEAD = """# Hot loops of tuned kernels, piece by piece

Written by `scripts/loop-page.py`; do not edit. bf16, {size}, no mask. **No figure is
a measurement**: `aot-time` predicts them ([Timing.md](../Timing.md) has its errors).

A piece ends at a barrier. *clocks* is what one wave takes for it in one iteration,
waits included; *matrix busy* the part of them in which the wave's own matrix
instructions execute, so two waves of a SIMD that share the core fairly have 50 % each.
The last columns say what it waits for and at which instruction the longest
([AotTime.md](../AotTime.md) explains the reasons). What ends up behind `barrier` is the
time in which the other waves of a workgroup finish their piece: where the two groups of
waves are half an iteration apart, it is their turn of the matrix core and no loss.

The same as a picture, clock by clock, and the whole listing:
```sh
aot-time --package=kernels --target=gfx950 --head-dim=128 {options} \\
    --timeline=loop.html --annotate
```
"""


def waits_of(instructions, total, clocks):
    """Clocks of an iteration by reason. `share` is of the time of all waves."""
    by_reason = collections.Counter()
    for one in instructions:
        stalled = sum(one["stalls"].values())
        if stalled:
            whole = one["share"] / total * clocks
            part = stalled / (one["busy_clocks"] + stalled)
            for reason, value in one["stalls"].items():
                by_reason[reason] += whole * part * value / stalled
    return by_reason


def piece_row(number, piece, total, loop):
    counted = collections.Counter(one["class"] for one in piece)
    share = sum(one["share"] for one in piece)
    clocks = share / total * loop["clocks"]
    matrix = sum(one["busy_clocks"] / one["issues"] for one in piece
                 if one["class"] == "mfma" and one["issues"])
    waits = waits_of(piece, total, loop["clocks"])
    longest = max(piece, key=lambda one: sum(one["stalls"].values()))
    reasons = ", ".join(f"{reason} {value:.0f}"
                        for reason, value in waits.most_common(3) if value >= 10)
    return [str(number), f"+0x{piece[0]['offset']:x}",
            *(str(sum(counted[name] for name in names)) for _, names in COLUMNS),
            f"{clocks:.0f}", f"{100 * matrix / clocks:.0f} %", reasons or "-",
            f"`{longest['text'].split(' ')[0]}` +0x{longest['offset']:x}"]


def loop_of(launch):
    loop = next(loop for loop in launch["loops"] if loop["hot"])
    inside = [one for one in launch["instructions"]
              if loop["first_offset"] <= one["offset"] <= loop["last_offset"]]
    total = sum(one["share"] for one in inside)
    pieces, piece = [], []
    for one in inside:
        piece.append(one)
        if one["text"].startswith("s_barrier"):
            pieces.append(piece)
            piece = []
    if piece:
        pieces.append(piece)
    head = ["piece", "from", *(name for name, _ in COLUMNS), "clocks",
            "matrix busy", "waits for, clocks", "longest at"]
    rows = [piece_row(number + 1, piece, total, loop)
            for number, piece in enumerate(pieces)]
    all_waits = waits_of(inside, total, loop["clocks"])
    rows.append(["all", "", *[str(sum(int(row[2 + at]) for row in rows))
                              for at in range(len(COLUMNS))],
                 f"{loop['clocks']:.0f}",
                 f"{100 * loop['matrix_clocks'] / loop['clocks']:.0f} %",
                 ", ".join(f"{reason} {value:.0f}"
                           for reason, value in all_waits.most_common(4)), ""])
    return loop, "\n".join(figures.table(head, rows, left=0, texts=2))


def section(launch, run):
    loop, rows = loop_of(launch)
    error = 100 * launch["time_error"]
    registers = launch["registers"]
    units = launch["units"]
    return f"""
## {run["target"]}, `{launch["kernel"]}`
Schedule `{run["schedule"]}`; {registers["vgprs"]} VGPRs, {registers["agprs"]} AGPRs, \
{launch["lds_bytes"] // 1024} KiB of LDS, {launch["waves_per_simd"]:.0f} waves a SIMD.
{1e6 * launch["seconds"]:.0f} us at {1e-9 * launch["clock_hz"]:.2f} GHz \
(nine of ten within {error:.0f} %), {1e-12 * launch["flops_per_second"]:.0f} TFLOPS. \
Busy in a working compute unit: matrix cores {100 * units["matrix"]:.0f} %, \
vector ALU {100 * units["valu"]:.0f} %, LDS {100 * units["lds"]:.0f} %, \
issue slots {100 * units["issue"]:.0f} %. The loop has {100 * loop["share"]:.0f} % of \
the time, {loop["iterations_per_wave"]:.0f} iterations a wave.

{rows}
"""


def main():
    parser = figures.parser_of(__doc__)
    parser.add_argument("--output", type=pathlib.Path,
                        default=figures.ROOT / "docs" / "kernels" / "Loops.md")
    given = parser.parse_args()
    size = [f"--{name}={value}" for name, value in SIZE.items()]
    text = HEAD.format(
        size=", ".join(f"{name} {value}" for name, value in SIZE.items()),
        options=" ".join(size))
    with tempfile.TemporaryDirectory() as folder:
        for target in TARGETS:
            for number, (op, head_dim, algorithm) in enumerate(KERNELS):
                package = pathlib.Path(folder) / f"{target}-{number}"
                subprocess.run(
                    [given.build / "bin" / "aot-compile", f"--target={target}",
                     f"--op={op}", "--dtype=bf16", f"--head-dim={head_dim}",
                     *([f"--algorithm={algorithm}"] if algorithm else []),
                     "--emit=package", "-q", "-o", package], check=True)
                run = figures.run_json(
                    [given.build / "bin" / "aot-time", f"--package={package}",
                     f"--op={op}", f"--head-dim={head_dim}", *size,
                     "--report=json"])["runs"][0]
                longest = max(run["launches"], key=lambda one: one["seconds"])
                text += section(longest, run)
    given.output.write_text(text)


if __name__ == "__main__":
    main()
