#!/usr/bin/env python3
"""Builds kernels with Triton, runs them on a HIP device, compares with NumPy.

    run.py --chip gfx942 --hip build/lib/libfovea_hipsim.so --cache build/triton

Exit status 0: everything asked for was built, run and found right.
"""

import argparse
import os
import sys
import time

import numpy as np

import cases
import reference
from build import Build, compile_kernel, kernarg
from device import Device, DeviceError

_TRITON_NAMES = {"fp16": "fp16", "bf16": "bf16", "fp32": "fp32", "int8": "i8",
                 "int32": "i32"}
_ATTENTION_STRIDES = {"Q": "q", "K": "k", "V": "v", "Out": "o", "DOut": "g"}


class Mismatch(Exception):
    """A result that is not what the reference says."""


def blocks(length, size):
    return -(-length // size)


def block_sizes(case):
    return dict(zip(("BLOCK_M", "BLOCK_N"), case.block))


def attention_build(case, kernel, pointers, floats, strides, sizes, blocks_used):
    """The build of one attention kernel of `case`, arguments in its order."""
    types = {name: "*" + ("fp32" if name in floats else case.kind)
             for name in pointers}
    if kernel != "attention_backward_delta":
        types["scale"] = "fp32"
    stride_names = [f"stride_{s}{axis}" for s in strides for axis in "bhs"]
    types.update({name: "i32" for name in stride_names + list(sizes)})
    constants = {"DIM": case.dim, "PADDED": case.padded}
    if kernel != "attention_backward_delta":
        constants["CAUSAL"] = case.causal
    constants.update({n: block_sizes(case)[n] for n in blocks_used})
    return Build(kernel, types, constants, case.options,
                 tuple(pointers) + tuple(stride_names) if case.tuned else (),
                 tuple(pointers) if case.tuned else ())


def attention_builds(case):
    """Builds of `case` by kernel name."""
    both, sizes = ("BLOCK_M", "BLOCK_N"), ("heads", "group", "seqlen_q", "seqlen_k")
    if not case.backward:
        return {"attention_forward": attention_build(
            case, "attention_forward", ("Q", "K", "V", "Out", "Lse"), ("Lse",),
            "qkvo", sizes, both)}
    inputs, floats = ("Q", "K", "V", "DOut", "Lse", "Delta"), ("Lse", "Delta")
    return {
        "attention_backward_delta": attention_build(
            case, "attention_backward_delta", ("Out", "DOut", "Delta"), floats,
            "og", ("heads", "seqlen_q"), ("BLOCK_M",)),
        "attention_backward_kv": attention_build(
            case, "attention_backward_kv", inputs + ("DK", "DV"), floats, "qkvg",
            sizes, both),
        "attention_backward_q": attention_build(
            case, "attention_backward_q", inputs + ("DQ",), floats, "qkvg", sizes,
            both),
    }


def matmul_type(case, chip):
    return cases.FP8[chip] if case.kind == "fp8" else _TRITON_NAMES[case.kind]


def matmul_build(case, chip):
    types = {"A": "*" + matmul_type(case, chip), "B": "*" + matmul_type(case, chip),
             "C": "*" + _TRITON_NAMES[case.out]}
    # A stride that is 1 is a constant, as in a launch from Python.
    unit = "stride_bk" if case.transposed else "stride_bn"
    names = ["m", "n", "k", "stride_am", "stride_bk", "stride_bn", "stride_cm"]
    types.update({name: "i32" for name in names if name != unit})
    constants = dict(zip(("BLOCK_M", "BLOCK_N", "BLOCK_K"), case.block))
    constants.update({"stride_ak": 1, unit: 1, "GROUP_M": 4, "PRECISION": case.precision})
    return Build("matmul", types, constants, case.options,
                 tuple(types) if case.tuned else (),
                 ("A", "B", "C") if case.tuned else ())


class Tensor:
    """A (batch, heads, sequence, dim) tensor in device memory whose row gaps and
    elements that nobody wrote are NaN."""

    def __init__(self, device, problem, heads, seqlen, dim, kind, values=None):
        shape = {"b": problem.batch, "h": heads, "s": seqlen}
        order = problem.layout
        memory = np.full([shape[axis] for axis in order] + [dim + problem.padding],
                         np.nan)
        self.axes = [order.index(axis) for axis in "bhs"] + [3]
        self.dim = dim
        encoded = reference.encode(memory, kind)
        if values is not None:
            self.view(encoded)[...] = reference.encode(values, kind)
        self.buffer = device.buffer(encoded)
        item = encoded.itemsize
        self.strides = [encoded.strides[order.index(axis)] // item for axis in "bhs"]

    def view(self, memory):
        return memory.transpose(self.axes)[..., :self.dim]

    def values(self):
        """The elements as fp64."""
        return reference.decode(self.view(self.buffer.read()))

    def check_gaps(self, name):
        gaps = self.buffer.read()[..., self.dim:]
        if not np.isnan(reference.decode(gaps)).all():
            raise Mismatch(f"{name}: written between its rows")


def compare(name, got, exact, plain, unit):
    """Largest error and the largest that is allowed: twice the plain algorithm's
    and one rounding of relative size `unit` of the largest value."""
    finite = np.isfinite(exact)
    if not (np.isfinite(got) == finite).all() or not (
            got[~finite] == exact[~finite]).all():
        count = int((np.isfinite(got) != finite).sum())
        raise Mismatch(f"{name}: {count} of {got.size} elements are NaN or infinite "
                       "where they must not be, or the reverse")
    if not finite.any():
        return 0.0, 0.0
    got, exact, plain = got[finite], exact[finite], plain[finite]
    error = np.abs(got - exact).max()
    budget = 2 * np.abs(plain - exact).max() + unit * np.abs(exact).max()
    if error > budget:
        raise Mismatch(f"{name}: error {error:.3g} exceeds {budget:.3g}")
    return error, budget


def launch(device, compiled, build, grid, values):
    function = device.load(compiled.image, compiled.kernel)
    device.launch(function, grid, (compiled.threads, 1, 1), kernarg(build, values),
                  compiled.lds)


def run_attention(device, case, problem, built):
    """Runs one problem; {result: (error, budget)}."""
    p, rng = problem, np.random.default_rng(7)
    draw = lambda heads, length, size: reference.decode(reference.encode(
        size * rng.standard_normal((p.batch, heads, length, case.dim)), case.kind))
    q, k = (draw(p.heads, p.seqlen_q, p.magnitude),
            draw(p.heads_k, p.seqlen_k, p.magnitude))
    v, dout = draw(p.heads_k, p.seqlen_k, 1), draw(p.heads, p.seqlen_q, 1)
    scale = float(np.float32(case.dim ** -0.5))
    tensor = lambda heads, length, values=None: Tensor(
        device, p, heads, length, case.dim, case.kind, values)
    tensors = {"Q": tensor(p.heads, p.seqlen_q, q), "K": tensor(p.heads_k, p.seqlen_k, k),
               "V": tensor(p.heads_k, p.seqlen_k, v)}
    out, lse = reference.forward(q, k, v, scale, case.causal)
    rows = np.full((p.batch, p.heads, p.seqlen_q), np.nan, np.float32)
    results = {}
    if case.backward:
        tensors["Out"] = tensor(p.heads, p.seqlen_q, out)
        tensors["DOut"] = tensor(p.heads, p.seqlen_q, dout)
        outputs = {"DQ": tensor(p.heads, p.seqlen_q), "DK": tensor(p.heads_k, p.seqlen_k),
                   "DV": tensor(p.heads_k, p.seqlen_k)}
        buffers = {"Lse": device.buffer(lse.astype(np.float32)),
                   "Delta": device.buffer(rows)}
    else:
        outputs = {"Out": tensor(p.heads, p.seqlen_q)}
        buffers = {"Lse": device.buffer(rows)}
    tensors.update(outputs)
    values = {name: t.buffer for name, t in tensors.items()}
    values.update(buffers)
    for name, short in _ATTENTION_STRIDES.items():
        for axis, stride in zip("bhs", tensors[name].strides if name in tensors else ()):
            values[f"stride_{short}{axis}"] = stride
    values.update(scale=scale, heads=p.heads, group=p.heads // p.heads_k,
                  seqlen_q=p.seqlen_q, seqlen_k=p.seqlen_k)
    by_query = (blocks(p.seqlen_q, case.block[0]), p.heads, p.batch)
    by_key = (blocks(p.seqlen_k, case.block[1]), p.heads_k, p.batch)
    for kernel, (build, compiled) in built.items():
        grid = by_key if kernel == "attention_backward_kv" else by_query
        launch(device, compiled, build, grid, values)
    if case.backward:
        exact = reference.backward(q, k, v, dout, scale, case.causal)
        plain = reference.plain_backward(q, k, v, dout, scale, case.causal, case.kind)
        for name, e, a in zip(("DQ", "DK", "DV"), exact, plain):
            results[name.lower()] = compare(name, outputs[name].values(), e, a,
                                            reference.UNIT[case.kind])
    else:
        plain, plain_lse = reference.plain_forward(q, k, v, scale, case.causal,
                                                   case.kind)
        results["out"] = compare("out", outputs["Out"].values(), out, plain,
                                 reference.UNIT[case.kind])
        results["lse"] = compare("lse", buffers["Lse"].read().astype(np.float64), lse,
                                 plain_lse, 8 * reference.UNIT["fp32"])
    for name, result in outputs.items():
        result.check_gaps(name)
    for buffer in values.values():
        if hasattr(buffer, "free"):
            buffer.free()
    return results


def matmul_inputs(case, chip, shape, rng):
    """(array as stored, its values as fp64)."""
    if case.kind == "int8":
        stored = rng.integers(-128, 128, shape, np.int8)
        return stored, stored.astype(np.float64)
    if case.kind == "fp8":
        table = reference.fp8_values(cases.FP8[chip])
        stored = rng.choice(np.flatnonzero(np.isfinite(table)), shape).astype(np.uint8)
        return stored, table[stored]
    stored = reference.encode(rng.standard_normal(shape), case.kind)
    return stored, reference.decode(stored)


def run_matmul(device, case, problem, built, chip):
    m, n, k = problem
    rng = np.random.default_rng(11)
    (build, compiled), = built.values()
    a_stored, a = matmul_inputs(case, chip, (m, k), rng)
    b_stored, b = matmul_inputs(case, chip, (n, k) if case.transposed else (k, n), rng)
    if case.transposed:
        b = b.T
    c = np.full((m, n), -1, np.int32) if case.out == "int32" else reference.encode(
        np.full((m, n), np.nan), case.out)
    buffers = {"A": device.buffer(a_stored), "B": device.buffer(b_stored),
               "C": device.buffer(c)}
    values = dict(buffers, m=m, n=n, k=k, stride_am=k, stride_cm=n, stride_bk=n,
                  stride_bn=k)
    grid = (blocks(m, case.block[0]) * blocks(n, case.block[1]), 1, 1)
    launch(device, compiled, build, grid, values)
    got = buffers["C"].read()
    exact = a @ b
    if case.out == "int32":
        if not (got == exact.astype(np.int64)).all():
            raise Mismatch(f"c: {int((got != exact).sum())} of {got.size} differ")
        result = {"c": (0.0, 0.0)}
    else:
        # fp32 sums in any order, of inputs as the precision takes them.
        unit = reference.UNIT["tf32" if case.precision == "tf32" else case.out]
        result = {"c": compare("c", reference.decode(got), exact, exact,
                               unit + k * reference.UNIT["fp32"])}
    for buffer in buffers.values():
        buffer.free()
    return result


def all_cases(chip, pattern):
    """(group, case, builds by kernel) of the chip."""
    sibling = chip in cases.SIBLINGS
    for case in cases.ATTENTION:
        if sibling and not case.everywhere:
            continue
        group = "backward" if case.backward else "forward"
        if pattern in f"{group} {case.name}":
            yield group, case, attention_builds(case)
    for case in cases.MATMUL:
        if sibling and not case.everywhere:
            continue
        if (not case.only or chip in case.only) and pattern in f"matmul {case.name}":
            yield "matmul", case, {"matmul": matmul_build(case, chip)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--chip", required=True, choices=cases.CHIPS + cases.SIBLINGS)
    parser.add_argument("--cache", required=True, help="folder of built kernels")
    parser.add_argument("--hip", help="HIP library; without it kernels are only built")
    parser.add_argument("--only", default="", metavar="TEXT",
                        help="only cases whose name contains TEXT")
    options = parser.parse_args()
    os.environ["FOVEA_SIM_TARGET"] = options.chip
    device = Device(options.hip) if options.hip else None
    failed = ran = 0
    for group, case, builds in all_cases(options.chip, options.only):
        built = {name: (build, compile_kernel(build, options.chip, options.cache))
                 for name, build in builds.items()}
        for problem in case.problems if device else ():
            label = f"{options.chip} {group} {case.name} {case.kind}"
            start = time.perf_counter()
            try:
                run = run_matmul if group == "matmul" else run_attention
                arguments = (options.chip,) if group == "matmul" else ()
                errors = run(device, case, problem, built, *arguments)
                text = ", ".join(f"{n} {e:.2e} of {b:.2e}" for n, (e, b) in errors.items())
                print(f"ok    {label} {problem}: {text} "
                      f"[{time.perf_counter() - start:.2f} s]", flush=True)
            except (DeviceError, Mismatch) as error:
                failed += 1
                print(f"FAIL  {label} {problem}: {error}", flush=True)
                if isinstance(error, DeviceError):
                    device.call("hipDeviceReset")
            ran += 1
    if device:
        print(f"{ran - failed} of {ran} problems right on {options.chip}")
        if not ran:
            print(f"no case contains '{options.only}'")
        return 1 if failed or not ran else 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
