#!/usr/bin/env python3
"""Writes a tuning table for a package, by the predictions of aot-time: for each
problem with several schedules, which one is fastest for launches up to some size.

    scripts/tuning-rows.py gfx942.fovea > rows.json
    build/bin/aot-package tune gfx942.fovea --rows=rows.json

Predictions are of a model (docs/Timing.md), which has gfx942 and gfx950; where a GPU
is at hand, measure, and write the rows in the same form (docs/AotPackage.md).

Each length is predicted with as many queries as keys, for each number of heads. A
bucket reaches from one length to the next and takes the schedule that is fastest at
its upper end; the last has no end. Neighbours with one schedule become one row. A
schedule that is less than --margin faster than the one that the bucket below takes
does not take its place: the model is not that exact."""

import json
import sys

import kernel_figures as figures


def predict(options, package, problem, schedules):
    """Seconds by (length, heads) and schedule."""
    operation, *pairs = problem.split(";")
    values = dict(pair.split("=") for pair in pairs)
    command = [f"{options.build}/bin/aot-time", f"--package={package}",
               f"--op={operation}", f"--dtype={values['dtype']}",
               f"--head-dim={values['head_dim']}",
               "--mask=" + values.get("mask", "none").replace("_", "-"),
               f"--seqlen={options.lengths}", f"--heads={options.heads}",
               "--batch=1", "--report=json"]
    found = {}
    for run in figures.run_json(command)["runs"]:
        at = (run["variables"]["seqlen"], run["variables"]["heads"])
        found.setdefault(at, {})[run["schedule"]] = run["seconds"]
    return found


def choose(seconds, below, margin):
    """The fastest schedule, or the one of the bucket below if that is as good."""
    best = min(seconds, key=seconds.get)
    if below and seconds[below] <= seconds[best] * (1 + margin):
        return below
    return best


def rows_of(problem, predictions, margin):
    """Rows of a problem, in the order in which launches are held against them."""
    lengths = sorted({length for length, _ in predictions})
    all_heads = sorted({heads for _, heads in predictions})
    rows = []
    for heads in all_heads:
        below, column = None, []
        for length in lengths:
            below = choose(predictions[length, heads], below, margin)
            if column and column[-1]["schedule"] == below:
                column[-1]["max_seqlen_q"] = length
                continue
            column.append({"problem": problem, "max_seqlen_q": length,
                           "max_seqlen_k": None, "max_batch_heads": heads,
                           "schedule": below})
        column[-1]["max_seqlen_q"] = None
        rows.append(column)
    rows[-1] = [dict(row, max_batch_heads=None) for row in rows[-1]]
    # Numbers of heads whose columns are alike are one.
    kept = []
    for column in rows:
        if kept and ([(row["max_seqlen_q"], row["schedule"]) for row in kept[-1]]
                     == [(row["max_seqlen_q"], row["schedule"]) for row in column]):
            kept[-1] = column
        else:
            kept.append(column)
    # The first row that holds a launch counts, by length before heads: a long row
    # of few heads must not be hidden by a shorter one of more, so each column has
    # a row at every end.
    ends = sorted({row["max_seqlen_q"] for column in kept for row in column},
                  key=lambda end: (end is None, end))
    table = []
    for end in ends:
        for column in kept:
            row = next(row for row in column if row["max_seqlen_q"] is None
                       or (end is not None and end <= row["max_seqlen_q"]))
            # What the next number of heads takes too needs no row.
            if table and (table[-1]["max_seqlen_q"], table[-1]["schedule"]) == (
                    end, row["schedule"]):
                table.pop()
            table.append(dict(row, max_seqlen_q=end))
    return table


def main():
    parser = figures.parser_of(__doc__)
    parser.add_argument("package")
    parser.add_argument("--match", action="append", default=[], metavar="TEXT",
                        help="only problems with kernels in whose symbol, problem "
                        "and schedule this occurs")
    parser.add_argument("--lengths", default="256,512,1024,2048,4096,8192",
                        help="ends of the buckets (%(default)s)")
    parser.add_argument("--heads", default="16,64",
                        help="batch x query heads (%(default)s)")
    parser.add_argument("--margin", type=float, default=0.03)
    options = parser.parse_args()

    (listing,) = figures.run_json(
        [f"{options.build}/bin/aot-package", "list", "--json", options.package,
         *(f"--match={text}" for text in options.match)])
    schedules = {}
    for kernel in listing["list"]:
        schedules.setdefault(kernel["problem"], []).append(kernel["schedule"])
    several = {problem: found for problem, found in schedules.items()
               if len(found) > 1}
    table = []
    for number, (problem, found) in enumerate(several.items(), 1):
        print(f"[{number}/{len(several)}] {problem}: {len(found)} schedules",
              file=sys.stderr)
        table += rows_of(problem, predict(options, options.package, problem, found),
                         options.margin)
    json.dump(table, sys.stdout, indent=2)
    print()


if __name__ == "__main__":
    main()
