#!/usr/bin/env python3
"""Compiles every head dimension for every chip and names the kernels that use
scratch memory, spill registers or cannot be compiled.

    scripts/spill-sweep.py [--build=build] [--ops=forward,backward] [--targets=...]

The grids of test/Execute choose some head dimensions of each chip; this is all of
them, and takes a minute or two a chip and op. Run it after the schedule tables, the
lowering or LLVM change. Chips with the code of another one (SAME_CODE of
kernel_figures.py) are left out unless they are named. A line goes out for each
kernel at fault; the exit status is 1 if there is one."""

import argparse
import sys

import kernel_figures as figures

OPS = ("forward", "backward")
SMALLEST, LARGEST, STEP = 16, 512, 8


def faults(kernel):
    """What is wrong with a kernel, one text for each of its launches at fault."""
    if kernel["status"] == "failed":
        yield str(kernel["error"]).splitlines()[0]
        return
    for launch in kernel.get("launches", [kernel]):
        found = [f"{launch[key]} {text}" for key, text in (
            ("scratch_bytes", "bytes of scratch"),
            ("vgpr_spills", "VGPRs spilled"), ("sgpr_spills", "SGPRs spilled"))
            if launch[key]]
        if found:
            yield (f"{launch['kernel']}: {', '.join(found)}; "
                   f"{launch['vgprs']} VGPRs, {launch['agprs']} AGPRs, "
                   f"{launch['schedule']}")


def compile_all(build, target, op, dtypes, head_dim, masks):
    """The report's kernels of one chip, op and head dimension."""
    return figures.run_json(
        [f"{build}/bin/aot-compile", f"--target={target}", f"--op={op}",
         f"--dtype={dtypes}", f"--head-dim={head_dim}", f"--mask={masks}",
         "--emit=none", "--report=json", "-j", "1", "-q"],
        allowed=(0, 1))["kernels"]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=figures.ROOT / "build",
                        help="build folder")
    parser.add_argument("--targets", help="default: all with code of their own")
    parser.add_argument("--ops", default=",".join(OPS))
    parser.add_argument("--dtypes", default="fp16,bf16")
    parser.add_argument("--masks", default="any")
    parser.add_argument("--head-dims", help="default: all multiples of 8")
    options = parser.parse_args()
    targets = options.targets.split(",") if options.targets else [
        name for name in figures.targets_of(options.build)
        if name not in figures.SAME_CODE]
    at_fault = 0
    for op in options.ops.split(","):
        for target in targets:
            head_dims = options.head_dims.split(",") if options.head_dims \
                else range(SMALLEST, LARGEST + 1, STEP)
            kernels, wrong = 0, 0
            for head_dim in head_dims:
                for kernel in compile_all(options.build, target, op, options.dtypes,
                                          head_dim, options.masks):
                    kernels += 1
                    texts = list(faults(kernel))
                    wrong += bool(texts)
                    for text in texts:
                        print(f"{target} {kernel['kernel']}: {text}", flush=True)
            at_fault += wrong
            print(f"{target} {op}: {wrong} of {kernels} kernels at fault",
                  flush=True)
    sys.exit(1 if at_fault else 0)


if __name__ == "__main__":
    main()
