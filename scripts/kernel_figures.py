"""Figures of kernels: what aot-compile reports of the code objects, and what
aot-time --count finds that a wave executes for a block of keys. Used by the
scripts beside it that print tables and pages of kernels."""

import argparse
import json
import pathlib
import resource
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

# Blocks of keys that a kernel goes through before counting starts, and those that
# are counted: enough to be in the main loop, and for loops that are unrolled.
BLOCKS_BEFORE, BLOCKS_COUNTED = 8, 8

# Chips for which LLVM makes the same instructions as for another one
# (docs/AotCompile.md, "Every target is compiled by itself").
SAME_CODE = {"gfx1152": "gfx1150", "gfx1153": "gfx1150", "gfx1201": "gfx1200"}


def parser_of(documentation):
    """Of such a script's command line: its page, and --build."""
    parser = argparse.ArgumentParser(
        description=documentation,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build",
                        help="build folder")
    return parser


def run_json(command, allowed=(0,)):
    """What a command prints. Of a status that is allowed besides 0 its output
    tells the reason, and what it says on standard error is dropped."""
    result = subprocess.run([str(part) for part in command], check=False,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if result.returncode not in allowed:
        sys.stderr.buffer.write(result.stderr)
        sys.exit(f"{command[0]} ended with {result.returncode}")
    return json.loads(result.stdout)


def launches_of(kernel):
    """The GPU kernels of one."""
    return kernel.get("launches", [kernel])


def uses_scratch(kernel):
    """Or could not be compiled."""
    return kernel["status"] == "failed" or any(
        launch["scratch_bytes"] for launch in launches_of(kernel))


def spills(kernels, key):
    """"3, 12": of how many kernels, and the most of one."""
    counts = [max(launch[key] for launch in launches_of(kernel))
              for kernel in kernels]
    there = [count for count in counts if count]
    return f"{len(there)}, {max(there)}" if there else "0"


def parse_schedule(text):
    """"block_m=128,inst=mfma_32x32x8" as a dictionary; numbers are numbers."""
    pairs = (part.split("=") for part in text.split(","))
    return {name: int(value) if value.lstrip("-").isdigit() else value
            for name, value in pairs}


def reduction_moves(kernel, schedule, wave_size):
    """Moves between lanes that the maxima of the rows take for a block of keys:
    none where lanes ask for their own, as the compiler says. Elsewhere:

    In the accumulator of S^T a lane holds keys of one query, and wave_size / n
    lanes hold those of the same query, n being the instruction's columns. They
    find the maximum in log2 of that many exchanges of one register, once for each
    n queries of the wave. (The sums are reduced once, after the loop.)"""
    if kernel["row_maxima"] != "exchanged":
        return 0
    columns = int(schedule["inst"].split("_")[1].split("x")[1])
    queries = (schedule["block_m"] * schedule.get("value_split", 1)
               // schedule["waves"])
    lanes = wave_size // columns
    return queries // columns * (lanes.bit_length() - 1)


class Compiled:
    """Kernels of a specification, compiled into packages in a folder that lasts
    as long as this does."""

    def __init__(self, build, targets, dtypes, head_dims, masks, op="forward",
                 options=()):
        self.build = pathlib.Path(build)
        self.folder = tempfile.TemporaryDirectory()
        command = [self.build / "bin/aot-compile", "--target=" + ",".join(targets),
                   f"--op={op}", "--dtype=" + ",".join(dtypes),
                   "--head-dim=" + ",".join(map(str, head_dims)),
                   "--mask=" + ",".join(masks), *options, "--emit=package", "-o",
                   self.folder.name, "--report=json", "-j", "1", "-q"]
        # 1: some kernels failed, which the report names.
        report = run_json(command, allowed=(0, 1))
        self.compiler = report["compiler"]
        self.kernels = report["kernels"]
        self.peak_mib = resource.getrusage(
            resource.RUSAGE_CHILDREN).ru_maxrss / 1024

    def count(self, kernel, arguments):
        """What aot-time finds of the kernel at a problem; a kernel that takes a
        window gets one that leaves everything visible. An error that is not the
        kernel's, such as a chip that is not simulated, is its `error`."""
        mask = "none" if kernel["mask"] == "any" else kernel["mask"]
        package = pathlib.Path(self.folder.name) / f"{kernel['target']}.fovea"
        command = [self.build / "bin/aot-time", f"--package={package}",
                   "--op=" + kernel["op"], "--dtype=" + kernel["dtype"],
                   "--head-dim=" + str(kernel["head_dim"]),
                   "--mask=" + mask.replace("_", "-"), *arguments,
                   "--report=json"]
        (run,) = run_json(command, allowed=(0, 2))["runs"]
        return run

    def count_block(self, kernel):
        """What a wave of a forward kernel executes for a block of keys."""
        schedule = parse_schedule(kernel["schedule"])
        block = schedule["block_n"]
        run = self.count(kernel, [
            "--count", "--per", f"seqlen_k={block}x{BLOCKS_COUNTED}", "--heads=1",
            f"--seqlen-q={schedule['block_m']}",
            f"--seqlen-k={block * BLOCKS_BEFORE}"])
        return run if "error" in run else run["launches"][0]


def targets_of(build):
    """The rows of `aot-compile --list-targets` by name: lanes of a wave and what
    people call the chip."""
    text = subprocess.run([f"{build}/bin/aot-compile", "--list-targets"],
                          stdout=subprocess.PIPE, text=True, check=True).stdout
    head, *rows = text.splitlines()
    wave, family, product = (head.index(name)
                             for name in ("wave", "family", "product"))
    return {row.split()[0]: {"wave_size": int(row[wave:].split()[0]),
                             "family": row[family:].split()[0],
                             "product": row[product:].strip()}
            for row in rows}


def add_counts(compiled, kernel, wave_size):
    """Adds what the kernel executes for a block of keys to its figures, or why
    there are no counts."""
    launch = compiled.count_block(kernel)
    if "error" in launch:
        kernel["not_counted"] = launch["error"].split(";")[0]
        return
    executed, classes = launch["executed"], launch["executed"]["classes"]
    schedule = parse_schedule(kernel["schedule"])
    stored = executed["lds_bytes_stored"] * launch["waves"] / launch["workgroups"]
    kernel.update(
        matrix=classes["mfma"],
        vector=classes["valu"] + classes["trans"] - executed["accumulator_moves"],
        accumulator_moves=executed["accumulator_moves"],
        exponentials=executed["exponentials"], lds=classes["lds"],
        memory=classes["vmem"], scalar=classes["salu"] + classes["smem"],
        waits=executed["waits"], barriers=executed["barriers"],
        instructions=executed["instructions"],
        share=100 * executed["matrix_share"], flops=executed["matrix_flops"],
        conflicts=executed["lds_conflict_clocks"],
        conflicts_in=executed["lds_conflicts"],
        scratch_accesses=executed["scratch_accesses"],
        lane_moves=executed["lane_moves"],
        p_moves=executed["lane_moves"] - reduction_moves(kernel, schedule, wave_size),
        lds_stored=stored)


def cell(value):
    """A figure as text; what is not known is a dash."""
    if value is None:
        return "–"
    if isinstance(value, float):
        return f"{value:.0f}" if value == int(value) else f"{value:.1f}"
    return str(value)


def table(headings, rows, left=1, texts=0):
    """Lines of a Markdown table; `left` columns are not numbers, nor the last `texts`."""
    numbers = len(headings) - left - texts
    lines = ["| " + " | ".join(headings) + " |",
             "|" + "---|" * left + "---:|" * numbers + "---|" * texts]
    return lines + ["| " + " | ".join(map(cell, row)) + " |" for row in rows]
