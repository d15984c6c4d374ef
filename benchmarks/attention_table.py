#!/usr/bin/env python3
"""Predicts attention kernels of this project beside those of others, by pass, chip,
head dimension, mask and length, and prints tables in Markdown: all of
docs/Comparison.md in one run.

    benchmarks/attention_table.py AITER=aiter Triton=triton
    benchmarks/attention_table.py --pass=forward,backward --target=gfx942,gfx950 \\
        --package=kernels "AITER=aiter/*/f*" "AITER=aiter/*/a32"

NAME=PATH is a column; a NAME may come several times. PATH is a kernel description
(docs/KernelDescription.md), a folder with descriptions in it or below it, or a
pattern of such; it may hold all passes, chips, types, head dimensions and masks,
which are read from the descriptions. They need the variables batch, heads and
seqlen, and a check. Of several that fit, the one with the best predicted rate counts
at each length, as a tuned library would choose. The package's kernels are treated
alike; of backward passes each algorithm is a column. A package with both algorithms:

    aot-compile --target=gfx942,gfx950 --op=backward --dtype=bf16 \\
        --head-dim=64,128 --algorithm=deterministic,atomic --emit=package -o kernels

Every kernel with figures was executed and checked at a small size; one whose result
is wrong has none. Every figure is a prediction (docs/Timing.md), none a measurement.

With --scores a table has a row for each score program (docs/ScorePrograms.md) and
kernel: milliseconds with the interval of the model, the speed over the first kernel
of the program, vector instructions for a score, how many more that is than without a
program, vector registers and bytes of scratch of a lane. Kernels of the package and
descriptions belong to the program whose text they have:

    aot-compile --target=gfx942 --op=forward --dtype=bf16 --head-dim=64,128 \\
        --score=bias --emit=package -o kernels/bias   # and without --score
    benchmarks/flex_attention.py --target=gfx942 -o flex
    benchmarks/attention_table.py --scores=none,bias --batch=4 --seqlens=4096 \\
        --check=heads=1,seqlen=4096 --package=kernels FlexAttention=flex

With --ratio a table follows of how many times as fast one column is as another, at the
clock that the model expects and, in clocks, at a fixed one (--clock), each with its
interval. The first depends on how much power the model gives to matrix products, the
second does not; a kernel that does more work a clock lowers its own clock.

    benchmarks/attention_table.py --package=kernels --pass=backward --target=gfx942 \
        "AITER a32=aiter/a32*" --ratio "Fovea atomic/AITER a32"

Otherwise a cell is TFLOPS; in parentheses the share of the pass in which the matrix cores
work; behind it the speed over that of the first column, with ~ where the model
cannot tell which is faster: the ratio is closer to 1 than the error that aot-time
gives for ratios. '-': no kernel, or no credible prediction; the reason is on
standard error."""

import argparse
import glob
import hashlib
import json
import math
import os
import pathlib
import re
import subprocess
import sys
from typing import NamedTuple


class Problem(NamedTuple):
    """What a table is about; `target` may be None in a description's."""
    op: str  # of aot-time: forward, backward
    target: str
    dtype: str
    head_dim: int
    mask: str
    score: str = ""  # digits of a score program


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peers", nargs="*", metavar="NAME=PATH",
                        help="descriptions of somebody's kernels")
    parser.add_argument("--build", default="build", metavar="FOLDER",
                        help="build folder, whose tools are used (default build)")
    parser.add_argument("--package", metavar="PATH",
                        help="this project's kernels, a package or a folder of them "
                        "(default: kernels in the build folder)")
    parser.add_argument("--pass", dest="passes", default="forward",
                        metavar="PASS,PASS", help="forward, backward (default forward)")
    parser.add_argument("--target", default="gfx942", metavar="CHIP,CHIP...")
    parser.add_argument("--dtype", default="bf16", choices=("fp16", "bf16"))
    parser.add_argument("--head-dims", default="64,128", metavar="N,N...")
    parser.add_argument("--masks", default="none,causal", metavar="MASK,MASK",
                        help="none, causal")
    parser.add_argument("--scores", metavar="NAME,NAME...",
                        help="score programs of the package, or none: a table of them "
                        "without a mask")
    parser.add_argument("--seqlens", default="1024,2048,4096,8192,16384",
                        metavar="N,N...")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--check", default="", metavar="NAME=N,...",
                        help="heads and seqlen of the check (default --heads, 512); for "
                        "descriptions of one size")
    parser.add_argument("--ratio", action="append", default=[], metavar="NAME/NAME",
                        help="how many times as fast the first of two columns is as the "
                        "second; may be repeated")
    parser.add_argument("--clock", type=float, default=1.5, metavar="GHZ",
                        help="the fixed clock of --ratio (default 1.5)")
    parser.add_argument("--all", action="store_true",
                        help="a column for each kernel instead of each NAME")
    parser.add_argument("--json", metavar="FILE", help="write all runs there too")
    args = parser.parse_args()
    args.package = args.package or f"{args.build}/kernels"
    args.checked = {"heads": args.heads, "seqlen": 512}
    for text in filter(None, args.check.split(",")):
        name, _, number = text.partition("=")
        if name not in args.checked or not number.isdigit():
            parser.error(f"--check={args.check}: '{text}' is neither heads=N nor "
                         "seqlen=N")
        args.checked[name] = int(number)
    if not os.access(f"{args.build}/bin/aot-time", os.X_OK):
        parser.error(f"there is no {args.build}/bin/aot-time; build the project, or "
                     "name its build folder with --build")
    if args.scores and args.all:
        parser.error("--all goes with tables of lengths, --scores does not")
    if args.scores and args.ratio:
        parser.error("--ratio goes with tables of lengths, --scores does not")
    if args.clock <= 0:
        parser.error(f"--clock={args.clock}: a clock is more than 0 GHz")
    args.columns = []  # of each table
    args.ratio = [tuple(pair.split("/")) for pair in args.ratio]
    for pair in args.ratio:
        if len(pair) != 2 or not all(pair):
            parser.error(f"--ratio={'/'.join(pair)} is not NAME/NAME")
    return args


def warn(text):
    print(f"attention_table.py: {text}", file=sys.stderr, flush=True)


def run_tool(args, tool, *options):
    command = [f"{args.build}/bin/{tool}", *map(str, options)]
    return subprocess.run(command, capture_output=True, text=True)


# What descriptions are about.

def value(expression, variables, depth=0):
    """A shape's extent where it is a number or a variable, otherwise None."""
    if isinstance(expression, int):
        return expression
    if depth > 8 or expression not in variables:
        return None
    return value(variables[expression], variables, depth + 1)


def problem_of(path):
    """The problem of a description of attention over sequences of one length; None
    for others. Masks are the same top-left and bottom-right where lengths are."""
    try:
        text = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError):
        return None
    check = text.get("check") if isinstance(text, dict) else None
    kind, _, op = (check or {}).get("kind", "").partition("-")
    if kind != "attention" or "starts_q" in check or "window_left" in check:
        return None
    q, v = (text["buffers"][check[role]] for role in ("q", "v"))
    variables = text.get("variables", {})
    dims = [value(buffer["shape"][-1], variables) for buffer in (q, v)]
    if dims[0] is None or dims[0] != dims[1]:
        return None
    mask = "none" if check.get("mask", "none") == "none" else "causal"
    dtype = "fp16" if q["type"] == "f16" else q["type"]
    return Problem(op, text.get("target"), dtype, dims[0], mask,
                   digits_of(check.get("score", "")))


def digits_of(program):
    """What keys of packages call a program."""
    return hashlib.sha256(program.encode()).hexdigest()[:16] if program else ""


def digits_in_package(args, target, name):
    """The programs of a name (docs/PackageFormat.md), "" for none."""
    if name == "none":
        return ""
    path = pathlib.Path(args.package)
    files = sorted(path.glob("*.fovea")) if path.is_dir() else [path]
    listed = run_tool(args, "aot-package", "list", *files).stdout
    known = dict.fromkeys(re.findall(rf"^ *score program (\w+) {name}$", listed, re.M))
    if len(known) != 1:
        sys.exit(f"attention_table.py: {args.package} has {len(known)} score programs "
                 f"'{name}'; compile it with aot-compile --score={name}")
    return next(iter(known))


def descriptions_of(name_and_path):
    """NAME and its descriptions, each with its problem."""
    name, equals, pattern = name_and_path.partition("=")
    if not equals:
        sys.exit(f"attention_table.py: '{name_and_path}' is not NAME=PATH")
    paths = [pathlib.Path(path) for path in sorted(glob.glob(pattern))]
    files = [file for path in paths
             for file in (sorted(path.rglob("*.json")) if path.is_dir() else [path])]
    found = [(file, problem) for file in files if (problem := problem_of(file))]
    if not found:
        sys.exit(f"attention_table.py: '{pattern}' has no description of attention "
                 "with a check")
    return name, found


def fits(described, wanted):
    return described._replace(target=described.target or wanted.target) == wanted


# Correctness comes before speed.

class Checks:
    """Says whose results are right; each kernel is executed once, when asked for."""

    def __init__(self, args):
        self.args = args
        self.known = {}

    def passes(self, run, problem):
        if "file" in run:
            key, check = (run["file"], problem.target), self.description_passes
        else:
            key, check = problem, self.right_schedules
        if key not in self.known:
            self.known[key] = check(*key) if "file" in run else check(key)
        return self.known[key] if "file" in run else run["schedule"] in self.known[key]

    def description_passes(self, file, target):
        sizes = ",".join(f"{name}={n}" for name, n in self.args.checked.items())
        done = run_tool(self.args, "aot-launch", file, f"--target={target}",
                        "--hip=sim", "--set", f"batch=1,{sizes}")
        if done.returncode:
            warn(f"{file} is left out:\n{done.stdout}{done.stderr}")
        return not done.returncode

    def right_schedules(self, problem):
        """Schedules of the package's kernels that give right results."""
        args, heads, seqlen = self.args, *self.args.checked.values()
        listed = run_tool(args, "aot-run", f"--package={args.package}", "--list").stdout
        key = f"{problem.op};dtype={problem.dtype};head_dim={problem.head_dim};"
        score = f"score={problem.score};" if problem.score else "(?!.*score=)"
        options = [f"--package={args.package}", f"--target={problem.target}",
                   f"--op={problem.op}", f"--dtype={problem.dtype}",
                   f"--head-dim={problem.head_dim}", f"--mask={full_mask(problem)}",
                   f"--heads={heads}", f"--heads-k={heads}", f"--seqlen-q={seqlen}",
                   f"--seqlen-k={seqlen}", "--hip=sim", "--json"]
        if problem.score:
            options.append(f"--score={problem.score}")
        if problem.op == "backward":
            options.append("--no-deterministic")
        right = set()
        for number in re.findall(rf"^ *(\d+) +{problem.target} +{key}{score}", listed,
                                 re.M):
            command = ["aot-run", f"--kernel={number}", *options]
            done = run_tool(args, *command)
            if done.returncode and "narrow_sums is 0" in done.stdout:
                done = run_tool(args, *command, "--narrow-sums")
            if done.returncode:
                warn(f"kernel {number} of {args.package} is left out:\n"
                     f"{done.stdout}{done.stderr}")
                continue
            right.add(re.search(r"\((.*?)\)", json.loads(done.stdout)["kernel"])[1])
        return right

    def best(self, runs, problem):
        """The fastest of what is right; None without any."""
        for run in sorted(filter(rate, runs), key=rate, reverse=True):
            if self.passes(run, problem):
                return run
        return None


# Predictions.

def full_mask(problem):
    return "none" if problem.mask == "none" else "causal-top-left"


def problem_options(args, problem):
    """What of the package aot-time takes."""
    options = [f"--package={args.package}", f"--target={problem.target}",
               f"--op={problem.op}", f"--dtype={problem.dtype}",
               f"--head-dim={problem.head_dim}", f"--mask={full_mask(problem)}"]
    return options + ([f"--score={problem.score}"] if problem.score else [])


def predict(args, problem, seqlen, files, clock=0):
    """Runs of the package's kernels, then one for each file; at a clock of so many GHz,
    0: the model's."""
    done = run_tool(args, "aot-time", *problem_options(args, problem),
                    f"--batch={args.batch}", f"--heads={args.heads}",
                    f"--seqlen={seqlen}", f"--clock={clock}", "--report=json", *files)
    try:
        runs = json.loads(done.stdout)["runs"]
    except ValueError:
        sys.exit(f"attention_table.py: {' '.join(done.args)}\n{done.stderr}")
    for file, run in zip(reversed(files), reversed(runs)):
        run["file"] = str(file)
    for run in runs:
        run.update(problem._asdict())
        if doubt := doubt_of(run, operations(args, problem, seqlen)):
            run["error"] = doubt
            warn(f"{run['label']} at {seqlen}: {doubt}")
    return runs


def operations(args, problem, seqlen):
    """What convention credits: two products forward, five backward, half of them
    under a mask."""
    products = 2 if problem.op == "forward" else 5
    flops = 2 * products * args.batch * args.heads * int(seqlen) ** 2 * problem.head_dim
    return flops if problem.mask == "none" else flops / 2


def doubt_of(run, operations):
    """Why a prediction is not that of the problem, or None."""
    if "error" in run:
        return run["error"]
    credited = run["flops_credited"]
    if abs(credited / operations - 1) > 0.05:
        return (f"the description credits {credited:.3g} operations, the problem has "
                f"{operations:.3g}; do sizes follow its variables batch, heads and "
                "seqlen?")
    executed = sum(launch["flops_executed"] for launch in run["launches"]) / credited
    if executed < 0.7:
        return f"the kernel does {executed:.2f} times the work that is credited"
    return None


def rate(run):
    """TFLOPS, 0 without a credible prediction."""
    if run is None or "error" in run:
        return 0
    return run["flops_credited"] / run["seconds"] / 1e12


def matrix_share(run):
    """Share of the launches' time in which the chip's matrix cores work."""
    busy = sum(launch["matrix_of_chip"] * launch["seconds"]
               for launch in run["launches"])
    return busy / run["seconds"]


def longest(run):
    return max(run["launches"], key=lambda launch: launch["seconds"])


def ratio_error(run, other):
    """How far a ratio of two runs may be off, as aot-time's own table has it; the
    errors are its model's."""
    return max(longest(run)["ratio_error"], longest(other)["ratio_error"])


def is_tie(run, other):
    ratio = rate(run) / rate(other)
    return max(ratio, 1 / ratio) <= 1 + ratio_error(run, other)


def cell(run, first):
    if not rate(run):
        return "-"
    text = f"{rate(run):.0f} ({100 * matrix_share(run):.0f} %)"
    if run is not first and rate(first):
        tie = "~" if is_tie(run, first) else ""
        text += f" {rate(run) / rate(first):.2f}x{tie}"
    return text


# Tables.

def own_columns(runs):
    """The package's runs by column, the algorithm that aot-compile takes first."""
    columns = {}
    for run in runs:
        algorithm = run["schedule"].partition(";")[0]
        name = "Fovea" if "=" in algorithm else f"Fovea {algorithm}"
        columns.setdefault(name, []).append(run)
    return dict(sorted(columns.items(), key=lambda column: "atomic" in column[0]))


def peer_columns(args, problem, peers):
    """Files by column: those of the problem."""
    columns = {}
    for name, found in peers:
        files = [file for file, described in found if fits(described, problem)]
        if args.all:
            columns.update({f"{name} {file.stem}": [file] for file in files})
        else:
            columns.setdefault(name, []).extend(files)
    return columns


def columns_at(args, problem, seqlen, theirs, checks, clock=0):
    """The run of each column at a length, and all runs."""
    files = list(dict.fromkeys(file for found in theirs.values() for file in found))
    runs = predict(args, problem, seqlen, files, clock)
    by_file = {run["file"]: run for run in runs if "file" in run}
    columns = own_columns(run for run in runs if "file" not in run)
    columns.update({name: [by_file[str(file)] for file in found]
                    for name, found in theirs.items()})
    return {name: checks.best(found, problem) for name, found in columns.items()}, runs


def print_table(args, problem, peers, checks):
    """A table; its runs."""
    print(f"**head dimension {problem.head_dim}, mask {problem.mask}**\n")
    theirs = peer_columns(args, problem, peers)
    every, ratios = [], []
    for seqlen in args.seqlens.split(","):
        columns, runs = columns_at(args, problem, seqlen, theirs, checks)
        if not every:
            args.columns.append(list(columns))
            print("| length | " + " | ".join(columns) + " |")
            print("|---:|" + "---:|" * len(columns))
        first = next(iter(columns.values()))
        cells = [cell(run, first) for run in columns.values()]
        print(f"| {seqlen} | {' | '.join(cells)} |", flush=True)
        every += runs
        if args.ratio:
            fixed, runs = columns_at(args, problem, seqlen, theirs, checks, args.clock)
            every += runs
            ratios += ratio_rows(args, seqlen, columns, fixed)
    print()
    if ratios:
        print(f"| length | | at the model's clock | in clocks, at {args.clock:g} GHz |")
        print("|---:|---|---|---|")
        print("\n".join(ratios) + "\n")
    return every


def ratio_rows(args, seqlen, columns, fixed):
    """A row for each pair of --ratio of which both have figures."""
    rows = []
    for name, other in args.ratio:
        pairs = [(found.get(name), found.get(other)) for found in (columns, fixed)]
        if all(rate(run) for pair in pairs for run in pair):
            cells = [f"| {ratio_text(*pair)} " for pair in pairs]
            rows.append(f"| {seqlen} | {name} / {other} {''.join(cells)}|")
    return rows


def ratio_text(run, other):
    ratio, error = rate(run) / rate(other), 1 + ratio_error(run, other)
    return f"{ratio:.2f} ({ratio / error:.2f} to {ratio * error:.2f})"


def check_ratios(args):
    """That each name of --ratio was a column somewhere."""
    names = dict.fromkeys(name for columns in args.columns for name in columns)
    for pair in args.ratio:
        for name in pair:
            if name not in names:
                sys.exit(f"attention_table.py: --ratio={'/'.join(pair)}: there is no column "
                         f"'{name}'; those there are: {', '.join(names)}")


def vector_a_score(args, run, problem):
    """Vector instructions, none of them of the matrix cores, that a lane executes for
    a score at the size of the check, before and after the loop too; what is computed
    twice counts twice. Counted once."""
    if "vector_a_score" not in run:
        subject = [run["file"]] if "file" in run else [
            *problem_options(args, problem), f"--schedule={run['schedule']}"]
        sizes = [f"--{name}={n}" for name, n in args.checked.items()]
        done = run_tool(args, "aot-time", "--count", "--batch=1", *sizes,
                        "--report=json", *subject)
        try:
            (counted,) = json.loads(done.stdout)["runs"]
            (launch,) = counted["launches"]
        except ValueError:
            sys.exit(f"attention_table.py: {' '.join(done.args)}\n{done.stderr}")
        classes = launch["executed"]["classes"]
        lanes = launch["workgroups"] * math.prod(launch["block"])
        scores = args.checked["heads"] * args.checked["seqlen"] ** 2
        run["vector_a_score"] = (classes["valu"] + classes["trans"]) * lanes / scores
    return run["vector_a_score"]


def score_cells(args, run, problem, first, plain):
    """Cells of a kernel; `first` is that which it is compared with, `plain` the one
    without a program."""
    if run is None:
        return ["-"] * 6
    launch = longest(run)
    low, high = (1e3 * run["seconds"] * factor
                 for factor in (1 / (1 + launch["time_error"]), 1 + launch["time_error"]))
    speed = f"{rate(run) / rate(first):.2f}x" if first and run is not first else ""
    speed += "~" if speed and is_tie(run, first) else ""
    vector = vector_a_score(args, run, problem)
    more = ""
    if problem.score and plain:
        more = f"{vector - plain['vector_a_score']:.1f}"
    return [f"{1e3 * run['seconds']:.2f} ({low:.2f} to {high:.2f})", speed,
            f"{vector:.1f}", more, str(launch["registers"]["vgprs"]),
            str(launch["scratch_bytes"])]


def print_scores(args, op, target, dim, peers, checks):
    """A table of score programs at a length; its runs."""
    every = []
    for seqlen in args.seqlens.split(","):
        print(f"**head dimension {dim}, length {seqlen}**\n")
        print("| program | kernel | milliseconds | speed | vector a score | more | "
              "registers | scratch |")
        print("|---|---|---|---|---:|---:|---:|---:|")
        plain = {}
        for name in args.scores.split(","):
            problem = Problem(op, target, args.dtype, dim, "none",
                              digits_in_package(args, target, name))
            theirs = {column: files for column, files
                      in peer_columns(args, problem, peers).items() if files}
            columns, runs = columns_at(args, problem, seqlen, theirs, checks)
            if not problem.score:
                plain = columns
            first = next(iter(columns.values()))
            for column, run in columns.items():
                cells = score_cells(args, run, problem, first, plain.get(column))
                print(f"| `{name}` | {column} | {' | '.join(cells)} |", flush=True)
            every += runs
        print()
    return every


def print_chip(args, op, target, peers, checks):
    print(f"## {op.capitalize()}, {target}\n")
    if args.scores:
        print(f"{args.dtype}, batch {args.batch}, {args.heads} heads, predicted.\n")
    else:
        print(f"{args.dtype}, batch {args.batch}, {args.heads} heads: predicted TFLOPS. "
              "Masked problems are credited half the\noperations.\n")
    # Whose kernels are all of another pass or chip has no column.
    peers = [(name, found) for name, found in peers
             if any(described.op == op and described.target in (None, target)
                    for _, described in found)]
    every = []
    for dim in map(int, args.head_dims.split(",")):
        if args.scores:
            every += print_scores(args, op, target, dim, peers, checks)
            continue
        for mask in args.masks.split(","):
            problem = Problem(op, target, args.dtype, dim, mask)
            every += print_table(args, problem, peers, checks)
    if any(launch["error_is_estimate"] for run in every
           for launch in run.get("launches", [])):
        print(f"What is a tie on {target} is a guess: too few of its kernels are "
              "published.\n")
    return every


def main():
    args = arguments()
    peers = [descriptions_of(peer) for peer in args.peers]
    checks = Checks(args)
    every = []
    for op in args.passes.split(","):
        for target in args.target.split(","):
            every += print_chip(args, op, target, peers, checks)
    check_ratios(args)
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(every, indent=1))


if __name__ == "__main__":
    main()
