#!/usr/bin/env python3
"""Writes docs/Kernels.md: registers, LDS, scratch, occupancy and compile time of
every default kernel, as `aot-compile --report=json` gives them.

    scripts/kernel-table.py [--build=build] [--report=FILE] [--output=FILE]

Without --report it compiles the kernels of kernels/default.json, one at a time,
so that the times are of an otherwise idle compiler."""

import argparse
import json
import pathlib
import resource
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADINGS = (
    ("type", "dtype"), ("head dim", "head_dim"), ("mask", "mask"),
    ("VGPRs", "vgprs"), ("AGPRs", "agprs"), ("SGPRs", "sgprs"),
    ("spills", "vgpr_spills"), ("scratch B", "scratch_bytes"),
    ("LDS B", "lds_bytes"), ("waves/SIMD", "occupancy"),
    ("matrix instr.", "matrix_instructions"), ("instr.", "instructions"),
    ("code B", "code_bytes"), ("CPU ms", "compile_ms"))


def compile_all(build):
    """The report, and the peak memory of the compiler in MiB."""
    result = subprocess.run(
        [f"{build}/bin/aot-compile", f"--spec={ROOT}/kernels/default.json",
         "--emit=none", "--report=json", "-j", "1", "-q"],
        stdout=subprocess.PIPE, check=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return json.loads(result.stdout), peak


def schedules(kernels):
    """Head dimensions of each schedule, in the order of the kernels."""
    found = {}
    for kernel in kernels:
        dims = found.setdefault(kernel["schedule"], [])
        if kernel["head_dim"] not in dims:
            dims.append(kernel["head_dim"])
    return found


def page(report, peak):
    kernels = report["kernels"]
    bad = [k["kernel"] for k in kernels if k["status"] not in ("compiled", "current")]
    if bad:
        sys.exit("no figures of " + ", ".join(bad))
    times = sorted(kernel["compile_ms"] for kernel in kernels)
    lines = ["# The kernels", "",
             "Written by `scripts/kernel-table.py`; do not edit. Figures are those "
             "of the code",
             "objects: registers of a wave, bytes of LDS of a workgroup, bytes of "
             "scratch of a",
             "lane, waves that fit a SIMD by registers and LDS, instructions in the "
             "code (not",
             "executed). CPU time is that of one compilation from `attn.forward` to "
             "HSACO on",
             "the machine where this page was made.", "",
             f"{len(kernels)} kernels for {', '.join(sorted({k['target'] for k in kernels}))}; "
             f"scratch in {sum(1 for k in kernels if k['scratch_bytes'])} of them; compile "
             f"time {times[0]:.0f} to {times[-1]:.0f} ms, median "
             f"{times[len(times) // 2]:.0f} ms" +
             (f"; peak memory of the compiler {peak:.0f} MiB." if peak else "."),
             "", "| schedule | head dimensions |", "|---|---|"]
    for schedule, dims in schedules(kernels).items():
        lines.append(f"| `{schedule}` | {', '.join(map(str, dims))} |")
    lines += ["", "| " + " | ".join(name for name, _ in HEADINGS) + " |",
              "|---|---:|---|" + "---:|" * (len(HEADINGS) - 3)]
    for kernel in kernels:
        cells = []
        for _, key in HEADINGS:
            value = kernel[key]
            cells.append("–" if value is None else
                         f"{value:.0f}" if isinstance(value, float) else
                         str(value))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=ROOT / "build", help="build folder")
    parser.add_argument("--report", help="a report made before ('-': stdin)")
    parser.add_argument("--output", default=ROOT / "docs" / "Kernels.md")
    options = parser.parse_args()
    if options.report:
        report, peak = json.load(sys.stdin if options.report == "-"
                                 else open(options.report)), None
    else:
        report, peak = compile_all(options.build)
    pathlib.Path(options.output).write_text(page(report, peak))


if __name__ == "__main__":
    main()
