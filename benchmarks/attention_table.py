#!/usr/bin/env python3
"""Predicts forward attention of this project beside kernels of others, by head
dimension, mask and length, and prints a table in Markdown.

    benchmarks/attention_table.py AITER=kernels/aiter Triton=kernels/triton

Each NAME=PATH is a folder of kernel descriptions (docs/KernelDescription.md) of
forward attention, or one description. Type, head dimension and mask are read
from a description's check; of several that fit, the one with the best predicted
rate counts at each length, as a tuned library would choose. Every figure is a
prediction (docs/Timing.md), none a measurement.
"""

import argparse
import json
import pathlib
import subprocess
import sys


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peers", nargs="*", metavar="NAME=PATH",
                        help="descriptions of somebody's kernels")
    parser.add_argument("--aot-time", default="build/bin/aot-time", metavar="FILE")
    parser.add_argument("--package", default="build/kernels",
                        help="this project's kernels (default build/kernels)")
    parser.add_argument("--target", default="gfx942", metavar="CHIP")
    parser.add_argument("--dtype", default="bf16", choices=("fp16", "bf16"))
    parser.add_argument("--head-dims", default="64,128", metavar="N,N...")
    parser.add_argument("--masks", default="none,causal", metavar="MASK,MASK",
                        help="none, causal")
    parser.add_argument("--seqlens", default="1024,2048,4096,8192,16384",
                        metavar="N,N...")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--heads", type=int, default=16)
    parser.add_argument("--all", action="store_true",
                        help="a column for each kernel instead of each NAME")
    parser.add_argument("--json", metavar="FILE", help="write all runs there too")
    return parser.parse_args()


def value(expression, variables, depth=0):
    """A shape's extent where it is a number or a variable, otherwise None."""
    if isinstance(expression, int):
        return expression
    if depth > 8 or expression not in variables:
        return None
    return value(variables[expression], variables, depth + 1)


def problem_of(path):
    """(type, head dimension, mask, target) of a description of forward attention
    over sequences of one length; None for others."""
    try:
        text = json.loads(path.read_text("utf-8-sig"))
    except (OSError, ValueError):
        return None
    check = text.get("check") if isinstance(text, dict) else None
    if not check or check.get("kind") != "attention-forward" or "starts_q" in check:
        return None
    q, v = (text["buffers"][check[role]] for role in ("q", "v"))
    variables = text.get("variables", {})
    dims = [value(b["shape"][-1], variables) for b in (q, v)]
    if dims[0] is None or dims[0] != dims[1]:
        return None
    mask = "none" if check.get("mask", "none") == "none" else "causal"
    return q["type"], dims[0], mask, text.get("target")


def kernels_of(name_and_path):
    name, equals, path = name_and_path.partition("=")
    if not equals:
        sys.exit(f"attention_table.py: '{name_and_path}' is not NAME=PATH")
    path = pathlib.Path(path)
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    found = [(file, problem) for file in files if (problem := problem_of(file))]
    if not found:
        sys.exit(f"attention_table.py: {path} has no description of forward attention")
    return name, found


def predict(args, dim, mask, seqlen, files):
    """Predictions by label, the project's own under "fovea"."""
    command = [args.aot_time, f"--package={args.package}", f"--target={args.target}",
               f"--dtype={args.dtype}", f"--head-dim={dim}",
               "--mask=" + ("none" if mask == "none" else "causal-bottom-right"),
               f"--batch={args.batch}", f"--heads={args.heads}",
               f"--seqlen={seqlen}", "--report=json", *map(str, files)]
    done = subprocess.run(command, capture_output=True, text=True)
    try:
        runs = json.loads(done.stdout)["runs"]
    except ValueError:
        sys.exit(f"attention_table.py: {' '.join(command)}\n{done.stderr}")
    for run in runs:
        if "error" in run:
            print(f"{run['label']} at {seqlen}: {run['error']}", file=sys.stderr)
    return runs


def rate(run):
    """TFLOPS as the forward convention credits them, or None without a
    credible prediction."""
    if run is None or "error" in run or not run["seconds"]:
        return None
    # A kernel that did not do its work was given nothing to do.
    executed = sum(launch["flops_executed"] for launch in run["launches"])
    if executed < 0.7 * run["flops_credited"]:
        return None
    return run["flops_credited"] / run["seconds"] / 1e12


def cell(run, ours):
    speed = rate(run)
    if speed is None:
        return "-"
    longest = max(run["launches"], key=lambda launch: launch["seconds"])
    text = f"{speed:.0f} ({100 * longest['matrix_of_chip']:.0f} %)"
    if run is not ours and rate(ours):
        text += f" {speed / rate(ours):.2f}x"
    return text


def main():
    args = arguments()
    groups = [kernels_of(peer) for peer in args.peers]
    element = "f16" if args.dtype == "fp16" else "bf16"
    every = []
    print(f"Forward attention, {args.target}, {args.dtype}, batch {args.batch}, "
          f"{args.heads} heads: predicted TFLOPS (share of the time that the\n"
          "matrix cores work) and the ratio to fovea. Masked problems are credited "
          "half the operations.\n")
    for dim in map(int, args.head_dims.split(",")):
        for mask in args.masks.split(","):
            wanted = [(name, [file for file, (kind, d, m, target) in found
                              if (kind, d, m) == (element, dim, mask) and
                              target in (None, args.target)])
                      for name, found in groups]
            columns = [(file.stem, [file]) for _, files in wanted for file in files] \
                if args.all else wanted
            files = list(dict.fromkeys(f for _, files in columns for f in files))
            print(f"**head dimension {dim}, mask {mask}**\n")
            print("| length | fovea | " + "".join(f"{n} | " for n, _ in columns))
            print("|---:|---:|" + "---:|" * len(columns), flush=True)
            for seqlen in args.seqlens.split(","):
                runs = predict(args, dim, mask, seqlen, files)
                every += [dict(run, head_dim=dim, mask=mask) for run in runs]
                # The package's kernels come first, then one run a file.
                own, rest = runs[:len(runs) - len(files)], runs[len(runs) - len(files):]
                by_file = dict(zip(files, rest))
                ours = max(own, key=lambda run: rate(run) or 0, default=None)
                cells = [max((by_file[f] for f in fs), key=lambda r: rate(r) or 0,
                             default=None) for _, fs in columns]
                print(f"| {seqlen} | {cell(ours, ours)} | " +
                      "".join(f"{cell(run, ours)} | " for run in cells), flush=True)
            print()
    if args.json:
        pathlib.Path(args.json).write_text(json.dumps(every, indent=1))


if __name__ == "__main__":
    main()
