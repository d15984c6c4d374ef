#!/usr/bin/env python3
"""Fits what the runtime takes splitting keys to cost (shareCostsOf() in
runtime/src/Choice.cpp) to predictions of aot-time, in two steps:

    benchmarks/fit_shares.py measure --package=kernels --target=gfx942 --json=shares.json
    benchmarks/fit_shares.py fit shares.json

The first predicts problems by every kernel of the package that splits keys, with the
numbers of shares that the rule tries, and by the one that does not; a file that is there
is gone on with. The second looks for the costs with which the rule, as
docs/SplitKeys.md states it, chooses what takes least: it lowers the mean of what its choices
take over the best ones and of how far costs are from times, where a problem that is
slower than unsplit counts for ten. From times it takes off what the kernel that does not
split takes beside its blocks, which its cost leaves out as well. It prints the costs
before and after, and what chips choose by them. Every time is a prediction, none a
measurement."""

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
         "row", "read", "written", "begin")
PAIR = NAMES.index("pair")
COSTS = {
    "gfx942": (0.365, 0.481, 0.489, 1.78, 1.66, 0.907, 0.517, 3.34, 1.5, 1 / 3534, 1 / 24096,
               1 / 9901, 1.03),
    "gfx950": (1.67, 0.613, 0.034, 1.64, 3.55, 0.867, 0.0354, 6.5, 6.1, 1 / 1383, 1 / 3968,
               1 / 2242, 0),
    "gfx1151": (0.245, 0.298, 0.18, 1.99, 6.45, 1.24, 0.49, 1.97, 0, 1 / 7634, 1 / 1098,
                1 / 2457, 0),
    "gfx1100": (0.129, 0.545, 0, 1.13, 0.0536, 0.65, 0.457, 2.26, 0.39, 1 / 1420, 1 / 3922,
                1 / 3968, 0),
    "gfx1201": (0.359, 0.509, 0.0949, 1.75, 0.0398, 1.36, 0.302, 3.93, 2.72, 1 / 690, 1 / 901,
                1 / 503, 0)}
UNITS = {"gfx942": (304, 0.95), "gfx950": (256, 0.236), "gfx1151": (40, 2.05),
         "gfx1100": (96, 2.3), "gfx1201": (64, 0.845)}
# What the kernel that does not split takes beside its blocks, in microseconds.
BESIDE = {"gfx942": 7.1, "gfx950": 8.3, "gfx1151": 5.1, "gfx1100": 5, "gfx1201": 5.1}
# As Choice.h has them.
MARGIN, AGAIN, UNSHARED, TOLERANCE = 1.1, 0.02, 4, 1.125
COLUMNS = 128  # of the head dimension that costs are fitted for


def up(value, by):
    return -(-value // by)


def at_once(schedule):
    """Shares of a row that are combined at once, as combinedAtOnceOf() of Catalog.cpp has them."""
    found = re.search(r";combine\w*:block_m=1,block_n=(\d+)", schedule)
    return int(found.group(1)) if found else 64


class Kernel:
    def __init__(self, record):
        self.schedule = record["schedule"]
        self.block_m, self.block_n = record["block_m"], record["block_n"]
        self.threads, self.occupancy = record["threads"], record["occupancy"]
        self.splits = self.schedule.startswith("split")
        if record.get("launches"):  # of all the most; the first one's, "share:32:128,..."
            self.threads = int(record["launches"].split(",")[0].split(":")[2])


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
        self.launches = COLUMNS / problem.args.head_dim
        even = units // 38 * 36 if units % 38 == 0 else units
        self.places = even * max(256 // kernel.threads, 1)

    def shares(self):
        """What splitsOf() tries."""
        if self.workgroups >= self.places:
            return [1]
        most = min(self.blocks, 1024)
        fill = min(4 * self.places // self.workgroups, most)
        tried = [1, fill // 8, fill // 4, fill // 2, 3 * fill // 4, fill, 16, 32, 64, 128]
        return sorted({up(self.blocks, up(self.blocks, s)) for s in tried
                       if 1 <= s <= fill})

    def terms(self, shares):
        """What shareCost() of Choice.cpp multiplies costs by."""
        kernel = self.kernel
        rounds = up(self.workgroups * shares, self.places)
        room = kernel.occupancy * 256 // max(kernel.threads, 256) >= 2
        waves = 1 + max(256 / kernel.threads - 1, 0) / 2
        of_share = up(self.blocks, shares) * kernel.block_n / 32
        keys = self.blocks * kernel.block_n / 32 / self.units
        again = AGAIN * (self.workgroups - self.heads_k)
        return (rounds // 2 if room else 0, rounds % 2 if room else rounds, of_share, waves,
                kernel.block_m / 128, (self.heads_k + again) * keys, self.workgroups * keys,
                (rounds - 1) * self.launches, self.launches,
                (up(shares, at_once(kernel.schedule)) - 1) * self.launches, self.rows, shares)

    def unsplit_cost(self):
        """costOf() of a kernel that does not split, in the same unit."""
        return (up(self.workgroups, self.units) * self.kernel.block_m / 128 *
                self.blocks * self.kernel.block_n / 32)


def cost_of(costs, terms):
    """shareCost() of Choice.cpp."""
    (block, rows, least, pair, round_, streamed, cached, combine, run, row, read,
     written, begin) = costs
    (pairs, alone, of_share, waves, block_rows, memory, caches, again, once, runs, all_rows,
     shares) = terms
    return (max((pairs * pair + alone) * of_share *
                max(block * waves + rows * block_rows, least),
                memory * streamed, caches * cached) +
            begin * block_rows * once + again * round_ + combine * once + run * runs +
            all_rows * (max(row, read * shares) + written * shares))


def measure(args):
    listed = subprocess.run([f"{args.build}/bin/aot-package", "list", "--json",
                             str(pathlib.Path(args.package) / f"{args.target}.fovea")],
                            capture_output=True, text=True, check=True).stdout
    kernels = [Kernel(record) for record in json.loads(listed)[0]["list"]]
    path = pathlib.Path(args.json)
    data = json.loads(path.read_text()) if path.exists() else {"target": args.target,
                                                               "head_dim": args.head_dim,
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
            if kernel.splits and case.row_blocks > 8:
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


class Row:
    """A prediction: of a problem by a kernel in a number of shares."""

    def __init__(self, case, shares, time):
        self.case, self.shares, self.time = case, shares, time
        self.splits = case.kernel.splits
        self.terms = case.terms(shares)
        self.unsplit_cost = case.unsplit_cost()
        self.is_tried = not self.splits or shares in case.shares()

    def cost(self, costs):
        """costOf() of Choice.cpp, divided by the tolerance of those that do not split."""
        if not self.splits:
            return self.unsplit_cost / TOLERANCE
        return cost_of(costs, self.terms) * MARGIN * (UNSHARED if self.shares == 1 else 1)


class Table:
    """All problems of a file: of each the rows."""

    def __init__(self, data):
        columns = data.get("head_dim", COLUMNS)
        self.units, self.unit = UNITS[data["target"]]
        self.unit *= columns / COLUMNS
        self.beside = BESIDE[data["target"]]
        kernels = {}
        for record in data["kernels"]:
            kernel = types.SimpleNamespace(**record)
            kernels[kernel.schedule] = kernel
        self.problems = {}
        for key, time in data["times"].items():
            heads, rows, keys, schedule, shares = key.split(" ")
            if schedule not in kernels:
                continue
            args = types.SimpleNamespace(head_dim=columns)
            problem = short_table.Problem(args, data["target"], 1, heads, int(rows), int(keys))
            case = Case(problem, kernels[schedule], self.units)
            self.problems.setdefault((heads, int(rows), int(keys)), []).append(
                Row(case, int(shares), time))

    def chosen(self, costs):
        """Of each problem what the rule takes, its time, the best and the one unsplit."""
        for name, rows in self.problems.items():
            choice = min((row for row in rows if row.is_tried),
                         key=lambda row: row.cost(costs))
            yield (name, choice, min(row.time for row in rows),
                   min(row.time for row in rows if not row.splits))

    def loss(self, costs):
        total = count = 0
        for _, choice, best, unsplit in self.chosen(costs):
            slower = 10 if choice.time > 1.002 * unsplit else 1
            total += slower * (choice.time / best - 1)
            total += 1.0 * max(choice.time / best - 1.03, 0)
            count += 1
        far = [abs(math.log((cost_of(costs, row.terms) * self.unit + self.beside) / row.time))
               for rows in self.problems.values() for row in rows if row.splits]
        return total / count + 0.02 * sum(far) / len(far)


def report(table, costs):
    over, worst, slower = [], None, 0
    for name, choice, best, unsplit in table.chosen(costs):
        over.append(choice.time / best)
        slower += choice.time > 1.002 * unsplit
        if worst is None or over[-1] > worst[0]:
            worst = over[-1], name
    print("  " + ", ".join(f"{name} {value:.4g}" if value >= 0.01 or value == 0 else
                           f"{name} 1/{1 / value:.0f}"
                           for name, value in zip(NAMES, costs)))
    print(f"  {len(over)} problems: {100 * (sum(over) / len(over) - 1):.1f} % over the best "
          f"on average, {100 * (worst[0] - 1):.1f} % at most ({' '.join(map(str, worst[1]))}), "
          f"{slower} slower than unsplit")


def loss_of(tables, costs):
    return sum(table.loss(costs) for table in tables)


def search(tables, costs, steps, seed):
    """Takes steps by chance, smaller ones in the course of it, that do not lose."""
    chance = random.Random(seed)
    least = loss_of(tables, costs)
    for step in range(steps):
        scale = 0.5 * 0.02 ** (step / steps)
        tried = list(costs)
        for index in chance.sample(range(len(costs)), chance.choice((1, 1, 2, 3))):
            tried[index] = (tried[index] or 0.02) * math.exp(chance.gauss(0, scale))
        # Two workgroups that share a unit take as long as one, up to twice.
        tried[PAIR] = min(max(tried[PAIR], 1), 2)
        loss = loss_of(tables, tried)
        if loss <= least:
            costs, least = tried, loss
    return costs


def fit(args):
    files = [json.loads(pathlib.Path(file).read_text()) for file in args.file]
    (target,) = {data["target"] for data in files}
    tables = [Table(data) for data in files]
    costs = list(COSTS[target])

    def report_all():
        for table in tables:
            report(table, costs)

    print("before:")
    report_all()
    costs = min((search(tables, costs, args.steps, seed) for seed in range(1, args.tries + 1)),
                key=lambda costs: loss_of(tables, costs))
    costs = [float(f"{value:.3g}") for value in costs]
    print("after:")
    report_all()
    if args.verbose:
        for name, choice, best, unsplit in [row for table in tables
                                            for row in table.chosen(costs)]:
            split = "split" if choice.splits else "unsplit"
            print(f"  {name}: {choice.case.kernel.block_m} rows, {split}, {choice.shares} "
                  f"shares, {choice.time:.1f} us (best {best:.1f}, unsplit {unsplit:.1f})")


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
    first.add_argument("--head-dim", type=int, default=128, metavar="N")
    first.add_argument("--json", required=True, metavar="FILE")
    first.set_defaults(dtype="bf16", layout="bhsd", clock=None)
    second = steps.add_parser("fit", help="fit costs to them")
    second.add_argument("file", metavar="FILE", nargs="+",
                        help="of one chip; several: each a list of kernels")
    second.add_argument("--steps", type=int, default=4000, metavar="N",
                        help="steps of a search (default 4000)")
    second.add_argument("--tries", type=int, default=4, metavar="N",
                        help="searches, of which the best counts (default 4)")
    second.add_argument("--verbose", action="store_true", help="print all choices")
    args = parser.parse_args()
    return measure(args) if args.step == "measure" else fit(args)


if __name__ == "__main__":
    sys.exit(main())
