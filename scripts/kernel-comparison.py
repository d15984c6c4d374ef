#!/usr/bin/env python3
"""Writes docs/kernels/Others.md: what a wave executes in our kernels and in those of
others, and what their code objects take.

    scripts/kernel-comparison.py AITER=a.json AITER=b.json Triton=c.json \\
        --static=figures.csv

Each NAME=FILE is a kernel description (docs/KernelDescription.md) of an unmasked
forward kernel with the variables heads, seqlen_q and seqlen_k; `aot-time --count`
executes it beside ours of the same chip, type and head dimension. The CSV file has
figures that one reader of machine code found, ours (peer "fovea") among them:
target, pass, dtype, head_dim, mask, peer, vgpr, agpr, vgpr_spills, scratch_bytes,
lds_bytes, waves_per_simd, code_bytes, bound_frac_peak. Chips of which it has no
kernel of ours are left out."""

import csv
import pathlib
import re

import kernel_figures as figures

# Figures of this many matrix operations: 64 keys, 32 queries, head dimension 128.
OPERATIONS = 2 ** 20
KEYS_BEFORE, KEYS, TIMES = 1024, 64, 16

EXECUTED = (
    ("kernel", "kernel"), ("VGPRs", "vgprs"), ("AGPRs", "agprs"),
    ("scratch B", "scratch_bytes"), ("LDS B", "lds_bytes"), ("matrix", "matrix"),
    ("vector", "vector"), ("exp", "exponentials"), ("packed", "packed"),
    ("acc moves", "accumulator_moves"), ("lane moves", "lane_moves"),
    ("LDS", "lds"), ("memory", "memory"), ("scalar", "scalar"),
    ("waits", "waits"), ("share %", "share"), ("conflicts", "conflicts"))

STATIC = (
    ("type", "dtype"), ("head dim", "head_dim"), ("kernel", "peer"),
    ("VGPRs", "vgpr"), ("AGPRs", "agpr"), ("spills", "vgpr_spills"),
    ("scratch B", "scratch_bytes"), ("LDS B", "lds_bytes"),
    ("waves/SIMD", "waves_per_simd"), ("code B", "code_bytes"),
    ("bound %", "bound"))


def count(build, arguments):
    """The launches' runs that aot-time --count makes of its arguments, each at the
    same size."""
    return figures.run_json(
        [f"{build}/bin/aot-time", *arguments, "--count", "--per",
         f"seqlen_k={KEYS}x{TIMES}", "--set",
         f"heads=1,seqlen_q=256,seqlen_k={KEYS_BEFORE}", "--report=json"])["runs"]


def row_of(label, launch):
    """A launch's figures for OPERATIONS matrix operations."""
    executed, classes = launch["executed"], launch["executed"]["classes"]
    scale = OPERATIONS / executed["matrix_flops"]
    row = {"kernel": label, "share": 100 * executed["matrix_share"],
           "lds_bytes": launch["lds_bytes"],
           "scratch_bytes": launch["scratch_bytes"], **launch["registers"]}
    moves = executed["accumulator_moves"]
    for key, value in {
            "matrix": classes["mfma"],
            "vector": classes["valu"] + classes["trans"] - moves,
            "exponentials": executed["exponentials"],
            "packed": executed["packed_floats"], "accumulator_moves": moves,
            "lane_moves": executed["lane_moves"], "lds": classes["lds"],
            "memory": classes["vmem"],
            "scalar": classes["salu"] + classes["smem"],
            "waits": executed["waits"],
            "conflicts": executed["lds_conflict_clocks"]}.items():
        row[key] = round(value * scale, 1)
        row[key] = int(row[key]) if row[key] == int(row[key]) else row[key]
    return row


def label_of(name, run, dtype):
    """What tells a kernel from others of its chip, type and head dimension."""
    said = {"attn", "fwd", "full", dtype, run["target"].split(":")[0]}
    parts = (part for part in re.split("[._]", run["label"])
             if part not in said and not re.fullmatch("h?d[0-9]+", part))
    return " ".join((name, *parts))


def executed_tables(build, others):
    """Sections by chip, type and head dimension: ours first."""
    found = {}
    for text in others:
        name, path = text.split("=", 1)
        (run,) = count(build, [path])
        variables, (launch,) = run["variables"], run["launches"]
        head_dim = variables.get("dim", variables.get("dim_q"))
        dtype = "fp16" if "f16" in pathlib.Path(path).stem.replace("bf16", "") \
            else "bf16"
        found.setdefault((run["target"].split(":")[0], dtype, head_dim),
                         []).append(row_of(label_of(name, run, dtype), launch))
    lines = []
    for (target, dtype, head_dim), rows in sorted(found.items()):
        compiled = figures.Compiled(build, [target], [dtype], [head_dim], ["none"])
        (run,) = count(build, [f"--package={compiled.folder.name}/{target}.fovea",
                               f"--dtype={dtype}", f"--head-dim={head_dim}"])
        rows.insert(0, row_of("Fovea", run["launches"][0]))
        lines += [f"### {target}, {dtype}, head dimension {head_dim}", ""]
        lines += figures.table([name for name, _ in EXECUTED],
                               [[row[key] for _, key in EXECUTED] for row in rows])
        lines += [""]
    return lines


def static_tables(files):
    rows = [row for path in files for row in csv.DictReader(open(path))]
    rows = [row for row in rows if (row["pass"], row["mask"]) == ("fwd", "full")]
    lines = []
    for target in sorted({row["target"] for row in rows}):
        ours = {(row["dtype"], row["head_dim"]) for row in rows
                if row["target"] == target and row["peer"] == "fovea"}
        if not ours:
            continue
        chosen = [row for row in rows if row["target"] == target
                  and (row["dtype"], row["head_dim"]) in ours]
        chosen.sort(key=lambda row: (row["dtype"], int(row["head_dim"]),
                                     row["peer"] != "fovea", row["peer"]))
        for row in chosen:
            row["bound"] = round(100 * float(row["bound_frac_peak"]))
            row["waves_per_simd"] = f"{float(row['waves_per_simd']):g}"
            row["peer"] = "Fovea" if row["peer"] == "fovea" else row["peer"]
        lines += [f"### {target}", ""]
        lines += figures.table([name for name, _ in STATIC],
                               [[row[key] for _, key in STATIC] for row in chosen])
        lines += [""]
    return lines


def main():
    parser = figures.parser_of(__doc__)
    parser.add_argument("others", nargs="*", metavar="NAME=FILE")
    parser.add_argument("--static", action="append", default=[],
                        help="CSV file; several are put together")
    parser.add_argument("--output",
                        default=figures.ROOT / "docs" / "kernels" / "Others.md")
    options = parser.parse_args()
    text = (figures.ROOT / "scripts" / "kernel-comparison.md").read_text()
    pathlib.Path(options.output).write_text(text.format(
        executed="\n".join(executed_tables(options.build, options.others)).strip(),
        static="\n".join(static_tables(options.static)).strip()))


if __name__ == "__main__":
    main()
