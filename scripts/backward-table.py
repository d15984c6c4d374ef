#!/usr/bin/env python3
"""Writes docs/kernels/Backward.md: what the compiler makes of gradients for a chip
of each kind, and what a wave executes for a block, beside what others' kernels take.

    scripts/backward-table.py [--build=build] [--static=figures.csv]

The CSV file is that of kernel-comparison.py; its rows of pass "bwd" without a mask
are taken."""

import csv
import sys

import kernel_figures as figures

# A chip of each generation and size of register file.
TARGETS = "gfx908,gfx90a,gfx942,gfx950,gfx1100,gfx1151,gfx1201"
HEAD_DIMS = (32, 64, 96, 128, 256)
DTYPES = ("bf16", "fp16")
ALGORITHMS = ("deterministic", "atomic")
# Largest head dimensions with an atomic schedule; none: all.
LARGEST_ATOMIC = {"gfx1100": 64, "gfx1151": 64, "gfx1201": 96}
# Kernels that go over their rows once, without a loop.
STREAMS = ("delta", "prepare", "convert")
# Lengths of the two launches whose difference is counted: whole blocks, and whole
# workgroups, of every schedule.
LENGTHS = (768, 1536)

COLUMNS = (
    ("type", "dtype"), ("head dim", "head_dim"), ("kernel", "part"),
    ("block", "block"), ("VGPRs", "vgprs"), ("AGPRs", "agprs"), ("SGPRs", "sgprs"),
    ("spills", "spills"), ("scratch B", "scratch_bytes"), ("LDS B", "lds_bytes"),
    ("waves/SIMD", "occupancy"), ("matrix", "matrix"), ("vector", "vector"),
    ("exp", "exponentials"), ("LDS", "lds"), ("memory", "memory"),
    ("share %", "share"), ("lane moves", "lane_moves"), ("conflicts", "conflicts"))

OTHERS = (
    ("type", "dtype"), ("head dim", "head_dim"), ("kernel", "peer"),
    ("VGPRs", "vgpr"), ("AGPRs", "agpr"), ("spills", "vgpr_spills"),
    ("scratch B", "scratch_bytes"), ("LDS B", "lds_bytes"),
    ("waves/SIMD", "waves_per_simd"), ("bound %", "bound"))


def add_counts(compiled, kernel):
    """Adds to each launch that has a loop what a wave executes for one
    block of the rows that it visits. Each has as many blocks more in the longer of
    the two problems as the lengths differ by."""
    runs = [compiled.count(kernel, ["--count", "--heads=1", f"--seqlen-q={length}",
                                    f"--seqlen-k={length}"])
            for length in LENGTHS]
    if "error" in runs[0]:
        return
    for number, launch in enumerate(kernel["launches"]):
        if launch["part"] in STREAMS:
            continue
        short, long = (run["launches"][number]["executed"] for run in runs)
        blocks = (LENGTHS[1] - LENGTHS[0]) // launch["block_n"]

        def each(value):
            return (value(long) - value(short)) / blocks
        matrix = each(lambda found: found["matrix_clocks"])
        vector = each(lambda found: found["vector_clocks"])
        launch.update(
            matrix=each(lambda found: found["classes"]["mfma"]),
            vector=each(lambda found: found["classes"]["valu"]
                        + found["classes"]["trans"]
                        - found["accumulator_moves"]),
            exponentials=each(lambda found: found["exponentials"]),
            lds=each(lambda found: found["classes"]["lds"]),
            memory=each(lambda found: found["classes"]["vmem"]),
            lane_moves=each(lambda found: found["lane_moves"]),
            conflicts=each(lambda found: found["lds_conflict_clocks"]),
            share=round(100 * matrix / (matrix + vector)))


def prepare(kernel):
    """Figures of launches that are put together from others."""
    for launch in kernel["launches"]:
        schedule = figures.parse_schedule(launch["schedule"])
        launch.update(
            dtype=kernel["dtype"], head_dim=kernel["head_dim"],
            part=launch["kernel"].rsplit("_", 1)[1], block_n=schedule["block_n"],
            spills=launch["vgpr_spills"] + launch["sgpr_spills"])
        launch["block"] = (f"{schedule['block_m']} x {schedule['block_n']}"
                           if launch["part"] not in STREAMS
                           else schedule["block_m"])


def row_of(launch):
    values = [launch.get(key) for _, key in COLUMNS]
    return [round(value, 1) if isinstance(value, float) else value
            for value in values]


def compiled_kernels(build, target, algorithm):
    """The launches' rows of an algorithm, of the head dimensions that it has."""
    largest = (LARGEST_ATOMIC.get(target, max(HEAD_DIMS))
               if algorithm == "atomic" else max(HEAD_DIMS))
    head_dims = [head_dim for head_dim in HEAD_DIMS if head_dim <= largest]
    compiled = figures.Compiled(build, [target], DTYPES, head_dims, ["any"],
                                op="backward",
                                options=[f"--algorithm={algorithm}"])
    for kernel in compiled.kernels:
        if kernel["status"] == "failed":
            sys.exit(f"{kernel['kernel']}: {kernel['error']}")
        prepare(kernel)
        add_counts(compiled, kernel)
        yield from (row_of(launch) for launch in kernel["launches"])


def sections_of(build, targets, algorithm):
    """Tables by chip."""
    known, lines = figures.targets_of(build), []
    for target in targets:
        rows = list(compiled_kernels(build, target, algorithm))
        lines += [f"#### {target} ({known[target]['product']})", ""]
        lines += figures.table([name for name, _ in COLUMNS], rows) + [""]
        print(f"{target}, {algorithm}: {len(rows)} kernels", file=sys.stderr,
              flush=True)
    return lines


def others_of(files, targets):
    rows = [row for path in files for row in csv.DictReader(open(path))]
    rows = [row for row in rows if (row["pass"], row["mask"]) == ("bwd", "full")
            and row["target"] in targets]
    lines = []
    for target in sorted({row["target"] for row in rows}):
        chosen = sorted((row for row in rows if row["target"] == target),
                        key=lambda row: (row["dtype"], int(row["head_dim"]),
                                         row["peer"]))
        for row in chosen:
            row["bound"] = round(100 * float(row["bound_frac_peak"]))
            row["waves_per_simd"] = f"{float(row['waves_per_simd']):g}"
        lines += [f"### {target}", ""]
        lines += figures.table([name for name, _ in OTHERS],
                               [[row[key] for _, key in OTHERS] for row in chosen])
        lines += [""]
    return lines


def main():
    parser = figures.parser_of(__doc__)
    parser.add_argument("--targets", default=TARGETS)
    parser.add_argument("--static", action="append", default=[],
                        help="CSV file; several are put together")
    parser.add_argument("--output",
                        default=figures.ROOT / "docs" / "kernels" / "Backward.md")
    options = parser.parse_args()
    targets = options.targets.split(",")
    text = (figures.ROOT / "scripts" / "backward-table.md").read_text()
    ours = {algorithm: "\n".join(sections_of(options.build, targets,
                                             algorithm)).strip()
            for algorithm in ALGORITHMS}
    page = text.format(
        **ours,
        others="\n".join(others_of(options.static, targets)).strip())
    with open(options.output, "w") as file:
        file.write(page)


if __name__ == "__main__":
    main()
