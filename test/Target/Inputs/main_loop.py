#!/usr/bin/env python3
"""Prints the main loop of a kernel's assembly, and what is in it.

Reads AMDGPU assembly (aot-compile --emit=asm) and finds the loop that counts:
of those that hold matrix instructions the one that compares the least for each
of them, which is the one that masks nothing. Its
instructions are printed in the order in which an iteration that does not
rescale executes them, from the loop's first block on; after them one line of
figures for each class of instruction. Fails if there is no such loop.
"""

import re
import sys

MATRIX = re.compile("v_mfma|v_wmma")
BANKS = 4  # of RDNA's register file: register v is in bank v % 4
BRANCH = re.compile(r"s_(?:c?branch\w*)\s+(\.LBB\S+)")


def blocks_of(text):
    """[(label, [instruction])] in the order of the text."""
    blocks = [("entry", [])]
    for line in text.splitlines():
        line = line.split(";")[0].split("//")[0].rstrip()
        label = re.match(r"(\.LBB\d+_\d+):", line)
        if label:
            blocks.append((label.group(1), []))
        elif re.match(r"\s+[a-z]\w*_", line):
            instruction = " ".join(line.split())
            blocks[-1][1].append(instruction)
            if BRANCH.match(instruction):
                blocks.append(("", []))
        if "s_endpgm" in line:
            break
    return blocks


def successors(blocks):
    """Indices that each block may continue at."""
    index = {label: i for i, (label, _) in enumerate(blocks)}
    result = []
    for i, (_, code) in enumerate(blocks):
        targets = [index[m.group(1)] for m in map(BRANCH.match, code) if m]
        falls = not (code and code[-1].split()[0] in ("s_branch", "s_endpgm"))
        if falls and i + 1 < len(blocks):
            targets.append(i + 1)
        result.append(targets)
    return result


def reach(start, edges):
    seen, todo = set(), list(edges[start])
    while todo:
        block = todo.pop()
        if block not in seen:
            seen.add(block)
            todo.extend(edges[block])
    return seen


def main_loop(blocks):
    """Header and blocks of the innermost loop with matrix instructions that
    masks the least."""
    edges = successors(blocks)
    reached = [reach(i, edges) for i in range(len(blocks))]
    live = reached[0] | {0}
    loops = []
    for i, (_, code) in enumerate(blocks):
        if i not in reached[i] or not any(map(MATRIX.match, code)):
            continue
        loop = {j for j in reached[i] if i in reached[j]}
        if loop not in (known for _, known in loops):
            loops.append((i, loop))
    if not loops:
        sys.exit("no loop holds a matrix instruction")

    def compares(candidate):
        code = [x for b in candidate[1] for x in blocks[b][1]]
        matrix = sum(bool(MATRIX.match(x)) for x in code)
        return sum(x.startswith("v_cmp") for x in code) / matrix

    first, loop = min(loops, key=compares)
    entered = [j for j in sorted(loop) if any(j in edges[k] for k in live - loop)]
    if len(entered) != 1:
        sys.exit(f"the loop at {blocks[first][0]} is entered at {len(entered)} places")
    return entered[0], loop, edges


def usual_path(blocks):
    """One iteration, by the shortest way that holds matrix instructions: the
    one without a rescale."""
    header, loop, edges = main_loop(blocks)
    best = None

    def walk(block, path):
        nonlocal best
        path = path + [block]
        for target in edges[block]:
            if target == header:
                code = [x for b in path for x in blocks[b][1]]
                cost = (not any(map(MATRIX.match, code)), len(code))
                if best is None or cost < best[0]:
                    best = (cost, code)
            elif target in loop and target not in path:
                walk(target, path)

    walk(header, [])
    return best[1]


def clashes(instruction):
    """Whether two of what a WMMA reads begin in one bank."""
    if not instruction.startswith("v_wmma"):
        return False
    _, *read = instruction.split(None, 1)[1].split(", ")
    first = [re.match(r"v\[(\d+):", operand) for operand in read[:3]]
    banks = [int(m.group(1)) % BANKS for m in first if m]
    return len(set(banks)) < len(banks)


def main():
    text = sys.stdin.read()
    blocks = blocks_of(text)
    code = usual_path(blocks)
    print("\n".join(code))
    classes = {
        "matrix": MATRIX,
        "vector": "v_(?!mfma|wmma|nop)",
        "exchange": "v_permlane|ds_bpermute|ds_swizzle|v_\\w+_dpp",
        "select": "v_cndmask|v_dual_cndmask",
        "barrier": "s_barrier(?!_signal)",
        "exp": "v_exp_f32",
        "perm": "v_perm_b32",
        "packed": r"v_pk_(?:add|mul|fma)_f32",
        "accvgpr": "v_accvgpr",
        "scratch": "scratch_",
        "branch": "s_cbranch",
        "load": "buffer_load",
        "store": "buffer_store|global_store",
    }
    for name, pattern in classes.items():
        print(f"count {name}: {sum(bool(re.match(pattern, x)) for x in code)}")
    print(f"count clash: {sum(map(clashes, code))}")
    whole = [x for _, part in blocks for x in part]
    for name in ("scratch", "accvgpr"):
        found = sum(bool(re.match(classes[name], x)) for x in whole)
        print(f"kernel {name}: {found}")


if __name__ == "__main__":
    main()
