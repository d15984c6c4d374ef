#!/usr/bin/env python3
"""Writes docs/Kernels.md and docs/kernels/<chip>.md: what the compiler makes of a
choice of problems for every chip. Resources come from `aot-compile --report=json`,
what a wave executes for a block of keys from `aot-time --count`.

    scripts/kernel-table.py [--build=build]

With --check nothing is written: the kernels that --targets, --dtypes and
--head-dims choose are compiled and counted, and compared with the pages in all that
this project decides: `scripts/kernel-table.py --check` says whether they are stale. Registers, instructions that LLVM chooses, sizes and
times also follow from LLVM's version and are not compared."""

import collections
import pathlib
import sys

import kernel_figures as figures

HEAD_DIMS = (16, 32, 64, 96, 128, 160, 192, 256, 384, 512)
DTYPES = ("fp16", "bf16")
MASKS = ("any",)  # the kernel that takes a window serves every mask

# Heading, key of a kernel's figures, and whether --check compares it. Kernels of
# other chips with equal figures, but for the time, share a page.
COLUMNS = (
    ("type", "dtype", True), ("head dim", "head_dim", True),
    ("block", "block", True), ("VGPRs", "vgprs", False), ("AGPRs", "agprs", False),
    ("SGPRs", "sgprs", False), ("spills", "spills", True),
    ("scratch B", "scratch_bytes", True), ("LDS B", "lds_bytes", True),
    ("waves/SIMD", "occupancy", False),
    ("matrix", "matrix", True), ("vector", "vector", False),
    ("exp", "exponentials", True), ("acc moves", "accumulator_moves", False),
    ("LDS", "lds", False), ("memory", "memory", False),
    ("scalar", "scalar", False), ("waits", "waits", False),
    ("share %", "share", False), ("P moves", "p_moves", True),
    ("conflicts", "conflicts", True), ("code B", "code_bytes", False),
    ("CPU ms", "compile_ms", False))
TIMES = ("compile_ms",)
ROW = ("dtype", "head_dim")  # what names a row of a page


def failed(kernel):
    return kernel["status"] not in ("compiled", "current")


def prepare(kernel):
    """Figures that are put together from others."""
    schedule = figures.parse_schedule(kernel["schedule"])
    kernel["block"] = f"{schedule['block_m']} x {schedule['block_n']}"
    if not failed(kernel):
        kernel["spills"] = kernel["vgpr_spills"] + kernel["sgpr_spills"]


def collect(build, targets, dtypes, head_dims, masks):
    """Kernels by target with all their figures, and their compilation."""
    twins = {target: figures.SAME_CODE[target] for target in targets
             if figures.SAME_CODE.get(target) in targets}
    compiled = figures.Compiled(
        build, [target for target in targets if target not in twins], dtypes,
        head_dims, masks)
    known = figures.targets_of(build)
    by_target = collections.OrderedDict()
    for number, kernel in enumerate(compiled.kernels):
        if sys.stderr.isatty():
            print(f"\r[{number + 1}/{len(compiled.kernels)}] counting",
                  end="", file=sys.stderr)
        if not failed(kernel):
            figures.add_counts(compiled, kernel,
                               known[kernel["target"]]["wave_size"])
        prepare(kernel)
        by_target.setdefault(kernel["target"], []).append(kernel)
    if sys.stderr.isatty():
        print("\r\033[K", end="", file=sys.stderr)
    for target, twin in twins.items():
        by_target[target] = [{**kernel, "target": target}
                             for kernel in by_target[twin]]
    return collections.OrderedDict(
        (target, by_target[target]) for target in targets), compiled


def row_of(kernel):
    return [kernel.get(key) for _, key, _ in COLUMNS]


def fingerprint(kernels):
    return tuple((kernel["schedule"],) + tuple(
        str(kernel.get(key)) for _, key, _ in COLUMNS if key not in TIMES)
        for kernel in kernels)


def grouped(by_target):
    """Lists of targets whose kernels have the same figures, in order."""
    groups = collections.OrderedDict()
    for target, kernels in by_target.items():
        groups.setdefault(fingerprint(kernels), []).append(target)
    return list(groups.values())


def schedules(kernels):
    """Head dimensions and types of each schedule, in the order of the kernels."""
    found = collections.OrderedDict()
    for kernel in kernels:
        dims = found.setdefault(kernel["schedule"], collections.OrderedDict())
        dims.setdefault(kernel["dtype"], [])
        if kernel["head_dim"] not in dims[kernel["dtype"]]:
            dims[kernel["dtype"]].append(kernel["head_dim"])
    rows = []
    for schedule, types in found.items():
        lists = {tuple(dims) for dims in types.values()}
        text = ("; ".join(f"{dtype}: " + ", ".join(map(str, dims))
                          for dtype, dims in types.items())
                if len(lists) > 1 or len(types) < len(DTYPES)
                else ", ".join(map(str, next(iter(lists)))))
        rows.append((f"`{schedule}`", text))
    return rows


def chip_page(targets, known, kernels):
    lines = [f"# Kernels of {', '.join(targets)}", "",
             "Written by `scripts/kernel-table.py`; do not edit. "
             "[Kernels.md](../Kernels.md) says what",
             "the columns mean.", ""]
    lines += [f"* {name}: {known[name]['product']}" for name in targets]
    lines += ["", "| schedule | head dimensions |", "|---|---|"]
    lines += [f"| {schedule} | {dims} |" for schedule, dims in schedules(kernels)]
    lines += [""]
    headings = [name for name, _, _ in COLUMNS]
    lines += figures.table(headings, map(row_of, kernels))
    for reason in sorted({k["not_counted"] for k in kernels if "not_counted" in k}):
        lines += ["", f"Not executed: {reason}."]
    reasons = collections.OrderedDict()
    for kernel in filter(failed, kernels):
        error = str(kernel.get("error", kernel["status"])).splitlines()[0]
        reason = error.removeprefix(kernel["kernel"] + ": ").split(";")[0]
        reasons.setdefault(reason, []).append(f"`{kernel['kernel']}`")
    for reason, names in reasons.items():
        lines += ["", f"Could not be compiled ({reason}): {', '.join(names)}."]
    return "\n".join(lines) + "\n"


def share_of(kernels, dtype, head_dim):
    for kernel in kernels:
        if (kernel["dtype"], kernel["head_dim"]) == (
                dtype, head_dim) and not failed(kernel):
            share = kernel.get("share")
            waves = f"{kernel['occupancy']} w"
            return waves if share is None else f"{share:.0f} %, {waves}"
    return "–"


def worst(kernels, key):
    values = [k[key] for k in kernels if k.get(key) is not None]
    return max(values) if values else None


def overview(groups, by_target, known, compiled):
    every = [kernel for kernels in by_target.values() for kernel in kernels]
    good = [kernel for kernel in every if not failed(kernel)]
    counted = [kernel for kernel in good if "matrix" in kernel]
    times = sorted(kernel["compile_ms"] for kernel in good)
    rows = []
    for targets in groups:
        kernels = by_target[targets[0]]
        rows.append([f"[{', '.join(targets)}](kernels/{targets[0]}.md)",
                     f"{sum(1 for k in kernels if not failed(k))} of {len(kernels)}",
                     worst(kernels, "scratch_bytes"), worst(kernels, "spills"),
                     worst(kernels, "p_moves"), worst(kernels, "conflicts")] +
                    [share_of(kernels, "bf16", dim) for dim in (64, 128, 256, 512)])
    text = (figures.ROOT / "scripts" / "kernel-table.md").read_text()
    beyond = [k for k in counted if k["lds_stored"] > tile_bytes(k)]
    return text.format(
        table="\n".join(figures.table(
            ["chips", "kernels", "scratch B", "spills", "P moves", "conflicts",
             "64", "128", "256", "512"], rows)),
        compiled=len(good), asked=len(every), targets=len(by_target),
        scratch=sum(1 for k in good if k["scratch_bytes"]),
        spills=sum(1 for k in good if k["spills"]), counted=len(counted),
        conflicts=sum(1 for k in counted if k["conflicts"]),
        beyond=len(beyond), least=f"{times[0]:.0f}", most=f"{times[-1]:.0f}",
        median=f"{times[len(times) // 2]:.0f}",
        peak=f"{compiled.peak_mib:.0f}", compiler=compiled.compiler.split(", lib")[0])


def tile_bytes(kernel):
    """Bytes of the LDS tiles of K and V for a block of keys. Rows are multiples of
    64 bytes; where loads go to LDS directly they are powers of two."""
    schedule = figures.parse_schedule(kernel["schedule"])
    columns = -(-kernel["head_dim"] // 32) * 32
    if schedule.get("direct_copy"):
        columns = 1 << (columns - 1).bit_length()
    return 2 * 2 * schedule["block_n"] * columns


def cells_of(page):
    """Rows of a page's last table by (type, head dim): text by heading."""
    rows, headings = {}, None
    for line in page.splitlines():
        if not line.startswith("|"):
            headings = None
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if headings is None:
            headings = cells
        elif len(cells) == len(COLUMNS) and not cells[0].startswith("---"):
            row = dict(zip(headings, cells))
            rows[row["type"], row["head dim"]] = row
    return rows


def page_of(folder, target):
    """The page that has a target's kernels; None if there is none."""
    for path in sorted(folder.glob("*.md")):
        text = path.read_text()
        if target in text.splitlines()[0].removeprefix(
                "# Kernels of ").split(", "):
            return text
    return None


def check(by_target, folder):
    """Messages of what differs from the pages."""
    messages = []
    for target, kernels in by_target.items():
        page = page_of(folder, target)
        if page is None:
            messages.append(f"{target}: no page has it")
            continue
        rows = cells_of(page)
        for kernel in kernels:
            name = tuple(str(kernel[key]) for key in ROW)
            if name not in rows:
                messages.append(f"{target} {' '.join(name)}: no row")
                continue
            for heading, key, compared in COLUMNS:
                now = figures.cell(kernel.get(key))
                if compared and key not in ROW and rows[name][heading] != now:
                    messages.append(f"{target} {' '.join(name)}: {heading} is "
                                    f"{rows[name][heading]}, now {now}")
    return messages


def main():
    parser = figures.parser_of(__doc__)
    parser.add_argument("--docs", default=figures.ROOT / "docs",
                        help="folder of the pages")
    parser.add_argument("--targets", help="default: all")
    parser.add_argument("--dtypes", default=",".join(DTYPES))
    parser.add_argument("--head-dims", default=",".join(map(str, HEAD_DIMS)))
    parser.add_argument("--check", action="store_true",
                        help="compare with the pages and write nothing")
    options = parser.parse_args()
    docs = pathlib.Path(options.docs)
    known = figures.targets_of(options.build)
    chosen = options.targets or options.dtypes != parser.get_default("dtypes") \
        or options.head_dims != parser.get_default("head_dims")
    if chosen and not options.check and docs == figures.ROOT / "docs":
        parser.error("the project's own pages are of all targets, types and head "
                     "dimensions; name another folder with --docs, or --check")
    targets = options.targets.split(",") if options.targets else list(known)
    by_target, compiled = collect(options.build, targets,
                                  options.dtypes.split(","),
                                  options.head_dims.split(","), MASKS)
    if options.check:
        messages = check(by_target, docs / "kernels")
        for message in messages:
            print(message)
        if messages:
            sys.exit("the pages are not what the compiler makes; if that is as it "
                     "should be, run scripts/kernel-table.py")
        return
    folder = docs / "kernels"
    folder.mkdir(exist_ok=True, parents=True)
    for path in folder.glob("gfx*.md"):
        path.unlink()
    groups = grouped(by_target)
    for group in groups:
        (folder / f"{group[0]}.md").write_text(
            chip_page(group, known, by_target[group[0]]))
    (docs / "Kernels.md").write_text(overview(groups, by_target, known, compiled))


if __name__ == "__main__":
    main()
