#!/usr/bin/env python3
"""Builds a spec's library for each chip and prints what it takes: the rows of
docs/KernelLibraries.md.

    scripts/library-table.py [--build=build] [--targets=gfx942,...] -o FOLDER

A chip is minutes of two cores (`aot-compile --dry-run` says how many). Its package,
its report (<chip>.json) and what the build took (<chip>.time: seconds as user, of
the system and of the clock, and the most memory in KiB) stay in the folder, and a
chip that has all three is not built again: a folder is for one compiler. How many
of AOTriton's variants are served comes from the test Functionals, which knows the
chips that it prints."""

import json
import os
import pathlib
import re
import subprocess
import sys
import time

import kernel_figures as figures

# Of AOTriton's forward kernel and its three kernels of gradients, for all types.
VARIANTS = 3 * 432 + 396
SPEC = figures.ROOT / "kernels/sdpa.json"
HEAD = """| chip | kernels: forward, backward, mask | processor s | MB | variants served | \
by another schedule | VGPRs spilled: kernels, most | SGPRs to lanes: kernels, most | \
scratch: kernels, most bytes |
|---|---|---:|---:|---:|---:|---|---|---|"""


def build(options, target):
    """The package, with its report and the build's costs beside it."""
    folder = pathlib.Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    report, took = folder / f"{target}.json", folder / f"{target}.time"
    package = folder / f"{target}.fovea"
    if report.exists() and took.exists() and package.exists():
        return report, took, package
    package.unlink(missing_ok=True)  # of a build that did not end: figures lack
    start = time.monotonic()
    process = subprocess.Popen(
        [f"{options.build}/bin/aot-compile", f"--spec={options.spec}",
         f"--target={target}", "--emit=package", "-o", str(folder),
         f"-j{options.jobs}", "--report=json", f"--report-file={report}", "-q"],
        stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1):  # 1: some failed
        sys.exit(f"aot-compile ended with {os.waitstatus_to_exitcode(status)}")
    took.write_text(f"{usage.ru_utime:.2f} {usage.ru_stime:.2f} "
                    f"{time.monotonic() - start:.2f} {usage.ru_maxrss}\n",
                    encoding="utf-8")
    return report, took, package


def served(options):
    """AOTriton's variants that have a kernel, by chip."""
    text = subprocess.run(
        [f"{options.build}/test/bin/FoveaCompilerTests",
         "--gtest_filter=*Functionals*"],
        stdout=subprocess.PIPE, text=True, check=True).stdout
    counts = {}
    for chip, count in re.findall(r"^(gfx\w+): \w+: (\d+) served$", text, re.M):
        counts[chip] = counts.get(chip, 0) + int(count)
    return counts


def row(target, report, took, package, variants):
    kernels = json.loads(report.read_text(encoding="utf-8"))["kernels"]
    good = [kernel for kernel in kernels if kernel["status"] != "failed"]
    user, system, _, _ = map(float, took.read_text(encoding="utf-8").split())
    ops = ", ".join(str(sum(kernel["op"] == op for kernel in good))
                    for op in ("forward", "backward", "dropout_mask"))
    later = sum("first_schedule" in kernel for kernel in good)
    share = "not counted" if variants is None else \
        f"{variants}, {100 * variants / VARIANTS:.0f} %"
    failed = f", {len(kernels) - len(good)} failed" if len(good) != len(kernels) \
        else ""
    return (f"| {target} | {ops}{failed} | {user + system:.0f} "
            f"| {package.stat().st_size / 1e6:.2f} | {share} | {later} "
            f"| {figures.spills(good, 'vgpr_spills')} "
            f"| {figures.spills(good, 'sgpr_spills')} "
            f"| {figures.spills(good, 'scratch_bytes')} |")


def main():
    parser = figures.parser_of(__doc__)
    parser.add_argument("--spec", default=SPEC)
    parser.add_argument("--targets", default="gfx942,gfx950,gfx1100,gfx1201")
    parser.add_argument("--jobs", default="2", help="kernels at a time")
    parser.add_argument("-o", "--output", required=True, help="folder of packages")
    options = parser.parse_args()
    # Those that the test counts are of this spec.
    variants = served(options) if pathlib.Path(options.spec) == SPEC else {}
    print(HEAD)
    for target in options.targets.split(","):
        print(row(target, *build(options, target), variants.get(target)),
              flush=True)


if __name__ == "__main__":
    main()
