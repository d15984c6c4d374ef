#!/usr/bin/env python3
"""Compiles every head dimension for every chip, or a spec's kernels, and names those
that use scratch memory, spill registers or cannot be compiled.

    scripts/spill-sweep.py [--build=build] [--ops=forward,backward] [--targets=...]
    scripts/spill-sweep.py --spec=kernels/sdpa.json [--targets=...] [--thin] [--table]

The grids of test/Execute choose some head dimensions of each chip; this is all of
them, and takes a minute or two a chip and op, a spec as long as its library. Run it
after the schedule tables, the lowering or LLVM change. Chips with the code of another
one (SAME_CODE of kernel_figures.py) are left out unless they are named. A line goes
out for each kernel at fault; the exit status is 1 if there is one. Of a spec those
are at fault that use scratch, and --table prints the rows of docs/KernelLibraries.md
in the place of their lines; --thin takes, in fp16, those alone that cut columns, with
and without dropout, which want the most registers: a sixth of sdpa.json."""

import json
import pathlib
import sys
import tempfile

import kernel_figures as figures

OPS = ("forward", "backward")
SMALLEST, LARGEST, STEP = 16, 512, 8
# Head dimensions whose schedules are tuned.
TUNED = (64, 128)


def faults(kernel):
    """What is wrong with a kernel, one text for each of its launches at fault."""
    if kernel["status"] == "failed":
        yield str(kernel["error"]).splitlines()[0]
        return
    for launch in figures.launches_of(kernel):
        found = [f"{launch[key]} {text}" for key, text in (
            ("scratch_bytes", "bytes of scratch"),
            ("vgpr_spills", "VGPRs spilled"), ("sgpr_spills", "SGPRs spilled"))
            if launch[key]]
        if found:
            yield (f"{launch['kernel']}: {', '.join(found)}; "
                   f"{launch['vgprs']} VGPRs, {launch['agprs']} AGPRs, "
                   f"{launch['schedule']}")


def compile_all(build, options):
    """The report's kernels."""
    return figures.run_json(
        [f"{build}/bin/aot-compile", *options, "--emit=none", "--report=json", "-q"],
        allowed=(0, 1))["kernels"]


def table_row(target, kernels):
    """Of docs/KernelLibraries.md."""
    good = [kernel for kernel in kernels if kernel["status"] != "failed"]
    tuned = [kernel for kernel in good if kernel.get("head_dim") in TUNED]
    later = sum("first_schedule" in kernel for kernel in good)
    spills = figures.spills
    return (f"| {target} | {len(kernels)} | {later} "
            f"| {sum(map(figures.uses_scratch, kernels))} "
            f"| {spills(good, 'vgpr_spills')} | {spills(good, 'sgpr_spills')} "
            f"| {spills(tuned, 'sgpr_spills')} |")


def thin(spec):
    """The objects of a spec with the kernels of --thin."""
    for given in spec:
        groups = [names for names in given.get("groups", [])
                  if "head_dims" in names.split("+")]
        if groups and "fp16" in given["dtypes"]:
            kept = {key: value for key, value in given.items() if key != "tuning"}
            yield {**kept, "dtypes": ["fp16"], "groups": groups}


def sweep_spec(options, targets):
    """How many kernels of the spec use scratch."""
    at_fault = 0
    folder = tempfile.TemporaryDirectory()
    spec = pathlib.Path(options.spec)
    if options.thin:
        spec = pathlib.Path(folder.name, spec.name)
        spec.write_text(json.dumps(list(thin(json.loads(
            pathlib.Path(options.spec).read_text(encoding="utf-8"))))),
            encoding="utf-8")
    for target in targets:
        kernels = compile_all(options.build, [
            f"--spec={spec}", f"--target={target}", f"-j{options.jobs}"])
        wrong = [kernel for kernel in kernels if figures.uses_scratch(kernel)]
        at_fault += len(wrong)
        if options.table:
            print(table_row(target, kernels), flush=True)
            continue
        for kernel in wrong:
            for text in faults(kernel):
                print(f"{target} {kernel['kernel']}: {text}")
        print(f"{target}: {len(wrong)} of {len(kernels)} kernels use scratch",
              flush=True)
    return at_fault


def sweep_head_dims(options, targets):
    """How many kernels of all head dimensions use scratch or spill."""
    at_fault = 0
    for op in options.ops.split(","):
        for target in targets:
            head_dims = options.head_dims.split(",") if options.head_dims \
                else range(SMALLEST, LARGEST + 1, STEP)
            kernels, wrong = 0, 0
            for head_dim in head_dims:
                for kernel in compile_all(options.build, [
                        f"--target={target}", f"--op={op}",
                        f"--dtype={options.dtypes}", f"--head-dim={head_dim}",
                        f"--mask={options.masks}", f"-j{options.jobs}"]):
                    kernels += 1
                    texts = list(faults(kernel))
                    wrong += bool(texts)
                    for text in texts:
                        print(f"{target} {kernel['kernel']}: {text}", flush=True)
            at_fault += wrong
            print(f"{target} {op}: {wrong} of {kernels} kernels at fault",
                  flush=True)
    return at_fault


def main():
    parser = figures.parser_of(__doc__)
    parser.add_argument("--targets", help="default: all with code of their own")
    parser.add_argument("--jobs", default="1", help="kernels at a time")
    parser.add_argument("--spec", help="its kernels, instead of what follows")
    parser.add_argument("--thin", action="store_true",
                        help="of a spec, kernels in fp16 that cut columns")
    parser.add_argument("--table", action="store_true",
                        help="print a row for each chip")
    parser.add_argument("--ops", default=",".join(OPS))
    parser.add_argument("--dtypes", default="fp16,bf16")
    parser.add_argument("--masks", default="any")
    parser.add_argument("--head-dims", help="default: all multiples of 8")
    options = parser.parse_args()
    targets = options.targets.split(",") if options.targets else [
        name for name in figures.targets_of(options.build)
        if name not in figures.SAME_CODE]
    sweep = sweep_spec if options.spec else sweep_head_dims
    sys.exit(1 if sweep(options, targets) else 0)


if __name__ == "__main__":
    main()
