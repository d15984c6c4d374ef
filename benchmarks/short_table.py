#!/usr/bin/env python3
"""Predicts forward passes that are too short to fill a chip, as the runtime would
launch them, and prints a table in Markdown: what is in docs/SplitKeys.md.

    benchmarks/short_table.py --package=kernels --target=gfx942
    benchmarks/short_table.py --package=kernels --target=gfx942,gfx950 --clock=1.2 \\
        --rows=1,16 --keys=4096,32768 --heads=8/1,32/4 --batch=1

The kernel and the number of shares of the keys are what libfovea chooses on the
simulated device, so the folder of the build must have the Python package. A problem is
predicted unsplit as well, by the kernel that is chosen for splits = 1. The package's
kernels for one chip:

    aot-compile --target=gfx942 --op=forward --dtype=bf16 --head-dim=128 \\
        --algorithm=flash,split --emit=package -o kernels

The bound is the larger of what the problem reads and writes once (K, V, Q, the output;
not the workspace) over the rate at which memory delivers, and of its operations over
the peak of the matrix instructions, both at the clock of the prediction and as the
model has them (docs/Timing.md); in parentheses over the rates of the data sheet. Where
it is 50 us or more, a row is `met` within a quarter of it; below, within a quarter of
it and what it costs to start and end the launches; `tie`: the estimate is not, but
lies within the model's interval of that. Times are microseconds; every figure is a
prediction, none a measurement.

`floor` is the least that a launch over shares and one that combines them could take by
the model's own constants, whatever their instructions, that over the measure, and the
mark that it leaves: what a better kernel of the kind might come to. It is, for numbers
of shares s and rows of a block b,

    launches + latencies
    + min over s and b of (max(B / m(n), O / (k(b) p n / u)) + 2 W(s) / m)

with the bytes B and operations O of the bound; w blocks of 16, 64 or 128 rows, those
of a group's heads in one; u compute units and n = min(u, w s) of them at work; m what
memory delivers, m(n) at most what n units may have under way by a latency; p the
matrix peak at the clock of the prediction, of which the kernel that does not split
keeps k(128) on a long grid that fills the chip, and blocks of fewer rows half, since
what their waves read from LDS takes as long as the products; and W(s) what the shares
leave, written once and read once. Latencies are those that wait for one another in
both launches (docs/SplitKeys.md, "What is left of it"). It is known of gfx942 and gfx950."""

import argparse
import itertools
import json
import os
import pathlib
import re
import subprocess
import sys
import typing

# Bytes a second and operations a second of bf16, from data sheets.
DATA_SHEETS = {"gfx942": (5.3e12, 1307e12), "gfx950": (8.0e12, 2516e12),
               "gfx1100": (960e9, 123e12), "gfx1151": (256e9, 59.4e12),
               "gfx1201": (640e9, 195e12)}


class Floor(typing.NamedTuple):
    """What a better kernel of two launches might come to (docs/SplitKeys.md)."""
    units: int
    kept: float         # of the matrix peak at its clock: length 16384, 4 x 16 heads
    peak_hz: float
    kept_of_few: float = 0.5         # by blocks of fewer rows than 128
    in_flight: int = 44 * 1024       # bytes of misses that a compute unit may have
    load: float = 586e-9             # of a load, from L1 to memory
    clocks: int = 5060 - 2 * 1230    # of all else in the chains of both launches


FLOORS = {"gfx942": Floor(304, 0.846, 2.1e9), "gfx950": Floor(256, 0.890, 2.4e9)}


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", metavar="FOLDER",
                        help="build folder, whose tools are used (default build)")
    parser.add_argument("--package", required=True, metavar="PATH",
                        help="a package or a folder of them")
    parser.add_argument("--target", default="gfx942", metavar="CHIP,CHIP...")
    parser.add_argument("--dtype", default="bf16", choices=("fp16", "bf16"))
    parser.add_argument("--head-dim", type=int, default=128)
    parser.add_argument("--rows", default="1,4,16,64,128,512", metavar="N,N...",
                        help="of queries")
    parser.add_argument("--keys", default="1024,4096,32768,131072", metavar="N,N...")
    parser.add_argument("--heads", default="8/1,32/4,64/8,8/8", metavar="Q/K,Q/K...")
    parser.add_argument("--batch", default="1,4", metavar="N,N...")
    parser.add_argument("--layout", default="bhsd", choices=("bhsd", "bshd"))
    parser.add_argument("--clock", help="GHz, in place of the model's")
    parser.add_argument("--splits", type=int, default=0,
                        help="shares of the keys (default: the rule's)")
    parser.add_argument("--most", type=float, default=300, metavar="US",
                        help="leave out problems with a larger bound (default 300)")
    parser.add_argument("--json", metavar="FILE", help="write all rows there too")
    args = parser.parse_args()
    if not os.access(f"{args.build}/bin/aot-time", os.X_OK):
        parser.error(f"there is no {args.build}/bin/aot-time; build the project, or "
                     "name its build folder with --build")
    return args


class Problem:
    def __init__(self, args, target, batch, heads, rows, keys):
        self.target, self.batch, self.rows, self.keys = target, batch, rows, keys
        self.heads_q, self.heads_k = map(int, heads.split("/"))
        self.args = args

    def bytes(self):
        elements = self.heads_k * self.keys + self.heads_q * self.rows
        return 2 * 2 * self.batch * self.args.head_dim * elements

    def operations(self):
        return 4 * self.batch * self.heads_q * self.rows * self.keys * self.args.head_dim

    def bound(self, rates):
        return max(self.bytes() / rates[0], self.operations() / rates[1])

    def floor(self, rates, fixed):
        """Seconds; None: nothing is known of the chip."""
        chip = FLOORS.get(self.target)
        if not chip:
            return None
        memory, peak = rates
        rows_of_group = self.heads_q // self.heads_k * self.rows

        def least(shares, block):
            blocks = self.batch * self.heads_k * -(-rows_of_group // block)
            units = min(chip.units, blocks * shares)
            kept = chip.kept if block >= 128 else chip.kept_of_few
            # Sums, in 16 bits but by kernels of 16 rows, and four terms in f32.
            of_share = (self.args.head_dim * (4 if block <= 16 else 2) + 16) * (
                self.batch * self.heads_q * self.rows)
            return (max(self.bytes() / min(memory, units * chip.in_flight / chip.load),
                        self.operations() / (kept * peak * units / chip.units)) +
                    2 * shares * of_share / memory)

        latencies = 2 * chip.load + chip.clocks / chip.peak_hz
        return fixed + latencies + min(
            least(shares, block) for shares in range(2, 1025) for block in (16, 64, 128))


def specs(fovea, problem):
    """Q, K and V as the library sees them."""
    order = (0, 1, 2, 3) if problem.args.layout == "bhsd" else (0, 2, 1, 3)
    dtype = {"fp16": "float16", "bf16": "bfloat16"}[problem.args.dtype]
    return [fovea.Spec((problem.batch, heads, rows, problem.args.head_dim), dtype, order)
            for heads, rows in ((problem.heads_q, problem.rows),
                                (problem.heads_k, problem.keys),
                                (problem.heads_k, problem.keys))]


def choose(fovea, library, problem, splits):
    """The schedule, the shares, and whether heads of a group are rows."""
    found = fovea.explain(*specs(fovea, problem), splits=splits, return_lse=True,
                          library=library)
    if not found.chosen:
        return None
    shares = re.search(r"(\d+) shares? of the keys", found.chosen.reason)
    return (re.search(r"\((.*)\)", found.chosen.name)[1],
            int(shares[1]) if shares else 1,
            "the heads of a group as rows" in found.chosen.reason)


def predict(args, problem, choice):
    """Launches of a kernel, predicted as the runtime launches it."""
    schedule, shares, packs = choice
    command = [f"{args.build}/bin/aot-time", f"--package={args.package}",
               f"--target={problem.target}", f"--dtype={args.dtype}",
               f"--head-dim={args.head_dim}", f"--schedule={schedule}",
               f"--layout={args.layout}", f"--batch={problem.batch}",
               f"--heads={problem.heads_q}", f"--heads-k={problem.heads_k}",
               f"--seqlen-q={problem.rows}", f"--seqlen-k={problem.keys}", "--report=json"]
    if "split" in schedule.partition(";")[0]:
        heads = problem.heads_q // problem.heads_k if packs else 1
        command += [f"--set=splits={shares}", f"--set=packed_heads={heads}"]
    if args.clock:
        command.append(f"--clock={args.clock}")
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        (run,) = json.loads(done.stdout)["runs"]
        return run["launches"]
    except (ValueError, KeyError):
        sys.exit(f"short_table.py: {' '.join(command)}\n{done.stdout}{done.stderr}")


def seconds(launches):
    return sum(launch["seconds"] for launch in launches)


def mark_of(over, error):
    return "met" if over <= 1.25 else "tie" if over / (1 + error) <= 1.25 else "missed"


def row_of(args, fovea, library, problem):
    """A row of the table; None: its bound is too large."""
    if problem.bound(DATA_SHEETS[problem.target]) > args.most / 1e6:
        return None
    choice = choose(fovea, library, problem, args.splits)
    plain = choose(fovea, library, problem, 1)
    if not choice or not plain:
        sys.exit(f"short_table.py: {args.package} lacks kernels of {problem.target}; "
                 "compile those of --algorithm=flash,split")
    launches = predict(args, problem, choice)
    unsplit = launches if choice == plain else predict(args, problem, plain)
    longest = max(launches, key=lambda launch: launch["seconds"])
    rates = (longest["memory"]["peak_bytes_per_second"],
             longest["peak_flops_per_second"] * longest["clock_hz"] /
             longest["peak_clock_hz"])
    bound, sheet = problem.bound(rates), problem.bound(DATA_SHEETS[problem.target])
    fixed = sum(launch["launch_seconds"] for launch in launches)
    least = bound if bound >= 50e-6 else bound + fixed
    time, error = seconds(launches), longest["time_error"]
    over = time / least
    floor = problem.floor(rates, fixed) if len(launches) > 1 else None
    mark = mark_of(over, error)
    return {"target": problem.target, "batch": problem.batch, "rows": problem.rows,
            "keys": problem.keys, "heads_q": problem.heads_q,
            "heads_k": problem.heads_k, "bound": bound, "sheet": sheet,
            "by": ("memory" if problem.bytes() / rates[0] >
                   problem.operations() / rates[1] else "matrix"),
            "least": least, "schedule": choice[0], "shares": choice[1],
            "packs": choice[2], "launches": [launch["seconds"] for launch in launches],
            "seconds": time, "error": error, "over": over, "mark": mark,
            "floor": floor, "floor_over": floor and floor / least,
            "floor_mark": floor and mark_of(floor / least, error),
            "unsplit": seconds(unsplit), "clock": longest["clock_hz"]}


def us(value):
    return f"{1e6 * value:.1f}"


def print_row(row):
    block = re.search(r"block_m=(\d+)", row["schedule"])[1]
    parts = " + ".join(map(us, row["launches"]))
    total = f"{parts} = {us(row['seconds'])}" if len(row["launches"]) > 1 else parts
    floor = (f"{us(row['floor'])}: {row['floor_over']:.2f} {row['floor_mark']}"
             if row["floor"] else "")
    print(f"| {row['batch']} | {row['heads_q']}/{row['heads_k']} | {row['rows']} | "
          f"{row['keys']} | {us(row['bound'])} ({us(row['sheet'])}) {row['by']} | "
          f"{us(row['unsplit'])} | {block}{', packed' if row['packs'] else ''} | "
          f"{row['shares']} | {total} | {row['over']:.2f} {row['mark']} | {floor} | "
          f"{row['unsplit'] / row['seconds']:.1f}x |", flush=True)


def main():
    args = arguments()
    sys.path.insert(0, f"{args.build}/python")
    rows = []
    for target in args.target.split(","):
        # The library reads it when it is opened, and in a process there is one.
        if len(args.target.split(",")) > 1:
            subprocess.run([sys.executable, __file__, *sys.argv[1:],
                            f"--target={target}"], check=True)
            continue
        os.environ["FOVEA_SIM_TARGET"] = target
        import fovea
        path = pathlib.Path(args.package)
        library = fovea.Library(path / f"{target}.fovea" if path.is_dir() else path,
                                hip="sim", compile="never")
        print(f"\n**{target}, {args.dtype}, head dimension {args.head_dim}"
              f"{f', {args.clock} GHz' if args.clock else ''}**\n\n"
              "| batch | heads | rows | keys | bound | unsplit | block | shares | "
              "launches | over the mark's measure | floor | faster |\n"
              "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
        for heads, batch, keys, number in itertools.product(
                args.heads.split(","), args.batch.split(","), args.keys.split(","),
                args.rows.split(",")):
            problem = Problem(args, target, int(batch), heads, int(number), int(keys))
            if row := row_of(args, fovea, library, problem):
                rows.append(row)
                print_row(row)
    if rows:
        marks = [row["mark"] for row in rows]
        slower = [row for row in rows if row["seconds"] > row["unsplit"]]
        print(f"\n{len(rows)} problems: {marks.count('met')} met, "
              f"{marks.count('tie')} met, tie, {marks.count('missed')} missed; "
              f"{len(slower)} slower than unsplit")
        floors = [row["floor_mark"] for row in rows]
        if any(floors):
            print(f"floors: {floors.count('met')} within the mark, {floors.count('tie')} "
                  f"within a tie, {floors.count('missed')} beyond it")
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
