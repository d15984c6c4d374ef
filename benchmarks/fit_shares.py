#!/usr/bin/env python3
"""Fits what the runtime takes splitting keys to cost (shareCostsOf() in
runtime/src/Choice.cpp) to predictions of aot-time, in two steps:

    benchmarks/fit_shares.py measure --package=kernels --target=gfx942 --json=shares.json
    benchmarks/fit_shares.py fit shares.json

The first predicts problems by every kernel of the package that splits keys, with the
numbers of shares that the rule tries, and by the one that does not; a file that is there
is gone on with. The second looks for the costs with which the rule, as docs/Runtime.md
("Split keys") states it, chooses what takes least: it lowers the mean of what its choices
take over the best ones and of how far costs are from times, where a problem that is
slower than unsplit counts for ten. It prints the costs before and after, and what
chips choose by them. Every time is a prediction, none a measurement."""

import argparse
import itertools
import json
import math
import pathlib
import random
import re
import subprocess
import sys
import types

import short_table

# As shareCostsOf(), in its order; `unit` is what they count in, in microseconds of the
# kernel that does not split: a workgroup of 128 rows and 32 keys.
NAMES = ("block", "rows", "least", "pair", "round", "streamed", "cached", "combine", "run",
         "row", "read", "written")
COSTS = {
    "gfx942": (0.3, 0.7, 0.5, 1.1, 2, 1, 0.385, 8, 1.5, 1 / 900, 1 / 6800, 1 / 7800),
    "gfx950": (1.37, 0.31, 0, 1.1, 6, 2.75, 1.06, 18, 4.3, 1 / 250, 1 / 2900, 1 / 2100)}
UNITS = {"gfx942": (304, 0.95), "gfx950": (256, 0.236)}
MARGIN, AGAIN, AT_ONCE = 1.1, 0.02, 64  # as Choice.h has them


def up(value, by):
    return -(-value // by)


class Kernel:
    def __init__(self, record):
        self.schedule = record["schedule"]
        self.block_m, self.block_n = record["block_m"], record["block_n"]
        self.threads, self.occupancy = record["threads"], record["occupancy"]
        self.splits = self.schedule.startswith("split")


class Case:
    """A problem and a kernel."""

    def __init__(self, problem, kernel, units):
        self.kernel, self.units = kernel, units
        group = problem.heads_q // problem.heads_k
        self.packs = (problem.rows <= kernel.block_m and
                      up(group * problem.rows, kernel.block_m) < group)
        packed = group if self.packs else 1
        self.heads_k = problem.batch * problem.heads_k
        self.row_blocks = up(problem.rows * packed, kernel.block_m)
        self.workgroups = problem.batch * problem.heads_q // packed * self.row_blocks
        self.blocks = up(problem.keys, kernel.block_n)
        self.rows = problem.batch * problem.heads_q * problem.rows
        even = units // 38 * 36 if units % 38 == 0 else units
        self.places = even * max(256 // kernel.threads, 1)

    def shares(self):
        """What splitsOf() tries."""
        most = min(self.blocks, 1024)
        fill = min(4 * self.places // self.workgroups, most)
        tried = [1, fill // 8, fill // 4, fill // 2, 3 * fill // 4, fill, 16, 32, 64, 128]
        return sorted({up(self.blocks, up(self.blocks, s)) for s in tried
                       if 1 <= s <= fill})

    def cost(self, costs, shares):
        """shareCost() of Choice.cpp."""
        (block, rows, least, pair, round_, streamed, cached, combine, run, row, read,
         written) = costs
        kernel = self.kernel
        rounds = up(self.workgroups * shares, self.places)
        room = kernel.occupancy * 256 // max(kernel.threads, 256) >= 2
        turns = rounds // 2 * pair + rounds % 2 if room else rounds
        waves = 1 + max(256 / kernel.threads - 1, 0) / 2
        of_block = kernel.block_n / 32 * max(block * waves + rows * kernel.block_m / 128,
                                             least)
        keys = self.blocks * kernel.block_n / 32 / self.units
        again = AGAIN * (self.workgroups - self.heads_k)
        return (max(turns * up(self.blocks, shares) * of_block,
                    (self.heads_k + again) * keys * streamed,
                    self.workgroups * keys * cached) +
                (rounds - 1) * round_ + combine + run * (up(shares, AT_ONCE) - 1) +
                self.rows * (max(row, read * shares) + written * shares))

    def unsplit_cost(self):
        """costOf() of a kernel that does not split, in the same unit."""
        return (up(self.workgroups, self.units) * self.kernel.block_m / 128 *
                self.blocks * self.kernel.block_n / 32)


def measure(args):
    listed = subprocess.run([f"{args.build}/bin/aot-package", "list", "--json",
                             str(pathlib.Path(args.package) / f"{args.target}.fovea")],
                            capture_output=True, text=True, check=True).stdout
    kernels = [Kernel(record) for record in json.loads(listed)[0]["list"]]
    path = pathlib.Path(args.json)
    data = json.loads(path.read_text()) if path.exists() else {"target": args.target,
                                                               "times": {}}
    units = UNITS[args.target][0]
    for heads, keys, rows in itertools.product(args.heads.split(","), args.keys.split(","),
                                               args.rows.split(",")):
        problem = short_table.Problem(args, args.target, 1, heads, int(rows), int(keys))
        if problem.bound(short_table.DATA_SHEETS[args.target]) > args.most / 1e6:
            continue
        for kernel in kernels:
            case = Case(problem, kernel, units)
            # Others are slower by far.
            if kernel.splits and (case.row_blocks > 8 or
                                  kernel.block_m >= 128 and case.rows < 128):
                continue
            tried = case.shares() if kernel.splits else [1]
            for shares in tried:
                key = f"{heads} {rows} {keys} {kernel.schedule} {shares}"
                if (key in data["times"] or
                        shares < tried[-1] / 4 and case.workgroups * shares < units / 4):
                    continue
                launches = short_table.predict(args, problem,
                                               (kernel.schedule, shares, case.packs))
                data["times"][key] = 1e6 * short_table.seconds(launches)
            data["kernels"] = [vars(k) for k in kernels]
            path.write_text(json.dumps(data, indent=1))
        print(f"{heads} {rows} {keys}", flush=True)


class Table:
    """All problems of a file: of each the cases with their times."""

    def __init__(self, data):
        self.units, self.unit = UNITS[data["target"]]
        kernels = {}
        for record in data["kernels"]:
            kernel = types.SimpleNamespace(**record)
            kernels[kernel.schedule] = kernel
        self.problems = {}
        for key, time in data["times"].items():
            heads, rows, keys, schedule, shares = key.split(" ")
            if schedule not in kernels:
                continue
            args = types.SimpleNamespace(head_dim=128)
            problem = short_table.Problem(args, data["target"], 1, heads, int(rows), int(keys))
            case = Case(problem, kernels[schedule], self.units)
            self.problems.setdefault((heads, int(rows), int(keys)), []).append(
                (case, int(shares), time))

    def chosen(self, costs):
        """Of each problem what the rule takes, its time, the best and the one unsplit."""
        for name, rows in self.problems.items():
            split = [(case.cost(costs, shares) * MARGIN, time, case, shares)
                     for case, shares, time in rows if case.kernel.splits]
            plain = [(case.unsplit_cost(), time, case, 1)
                     for case, _, time in rows if not case.kernel.splits]
            yield name, min(split + plain, key=lambda row: row[0]), min(
                row[1] for row in split + plain), min(row[1] for row in plain)

    def loss(self, costs):
        total = count = 0
        for _, choice, best, unsplit in self.chosen(costs):
            slower = 10 if choice[1] > 1.002 * unsplit else 1
            total += slower * (choice[1] / best - 1)
            total += 0.3 * max(choice[1] / best - 1.03, 0)
            count += 1
        far = [abs(math.log(case.cost(costs, shares) * self.unit / time))
               for rows in self.problems.values() for case, shares, time in rows
               if case.kernel.splits]
        return total / count + 0.02 * sum(far) / len(far)


def report(table, costs):
    over, worst, slower = [], None, 0
    for name, choice, best, unsplit in table.chosen(costs):
        over.append(choice[1] / best)
        slower += choice[1] > 1.002 * unsplit
        if worst is None or over[-1] > worst[0]:
            worst = over[-1], name
    print("  " + ", ".join(f"{name} {value:.4g}" if value >= 0.01 or value == 0 else
                           f"{name} 1/{1 / value:.0f}"
                           for name, value in zip(NAMES, costs)))
    print(f"  {len(over)} problems: {100 * (sum(over) / len(over) - 1):.1f} % over the best "
          f"on average, {100 * (worst[0] - 1):.1f} % at most ({' '.join(map(str, worst[1]))}), "
          f"{slower} slower than unsplit")


def fit(args):
    data = json.loads(pathlib.Path(args.file).read_text())
    table = Table(data)
    costs = list(COSTS[data["target"]])
    print("before:")
    report(table, costs)
    chance = random.Random(1)
    least = table.loss(costs)
    for step in range(args.steps):
        scale = 0.5 * 0.02 ** (step / args.steps)
        tried = list(costs)
        for index in chance.sample(range(len(costs)), chance.choice((1, 1, 2, 3))):
            tried[index] = (tried[index] or 0.02) * math.exp(chance.gauss(0, scale))
        loss = table.loss(tried)
        if loss <= least:
            costs, least = tried, loss
    costs = [float(f"{value:.3g}") for value in costs]
    print("after:")
    report(table, costs)
    if args.verbose:
        for name, choice, best, unsplit in table.chosen(costs):
            case = choice[2]
            print(f"  {name}: {case.kernel.block_m} rows, {choice[3]} shares, "
                  f"{choice[1]:.1f} us (best {best:.1f}, unsplit {unsplit:.1f}), "
                  f"cost {choice[0] / MARGIN * table.unit:.1f}")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(dest="step", required=True)
    first = steps.add_parser("measure", help="predict times")
    first.add_argument("--build", default="build", metavar="FOLDER")
    first.add_argument("--package", required=True, metavar="FOLDER")
    first.add_argument("--target", required=True, choices=sorted(UNITS))
    first.add_argument("--heads", default="32/4,8/1", metavar="Q/K,Q/K...")
    first.add_argument("--rows", default="1,16,64,128,512", metavar="N,N...")
    first.add_argument("--keys", default="1024,4096,32768,131072", metavar="N,N...")
    first.add_argument("--most", type=float, default=300, metavar="US",
                       help="leave out problems with a larger bound (default 300)")
    first.add_argument("--json", required=True, metavar="FILE")
    first.set_defaults(dtype="bf16", head_dim=128, layout="bhsd", clock=None)
    second = steps.add_parser("fit", help="fit costs to them")
    second.add_argument("file", metavar="FILE")
    second.add_argument("--steps", type=int, default=4000, metavar="N",
                        help="trials (default 4000)")
    second.add_argument("--verbose", action="store_true", help="print all choices")
    args = parser.parse_args()
    return measure(args) if args.step == "measure" else fit(args)


if __name__ == "__main__":
    sys.exit(main())
