#!/usr/bin/env python3
"""What a call of attention costs in Python, over a HIP library that launches nothing.

    PYTHONPATH=build/python benchmarks/python_call.py KERNELS build/test/lib/libfovea_emptyhip.so
        [--flash-attn=FILE]

KERNELS has forward kernels of bf16 for head dimension 64 and gfx942. FILE is a
flash_attn_interface.py of flash-attn's, the caller's own: it is run with an extension
that makes its results and launches nothing either. Tensors lie in the host's memory and
are taken for a device's. Prints microseconds of the thread's CPU, the least of several
rounds that take turns, and what they are over the C interface's: absolute figures depend
on the machine, so compare rows of one run. What HIP was given is counted.
"""

import argparse
import ctypes
import time
import types
import sys

import torch

import fovea
import fovea.flash_attn
import fovea.torch
from fovea import _arrays, _attention, _native, _torch_library, _torch_operators


def flash_attn(path):
    """flash-attn's module, of functions that take tensors of the CPU."""
    stub = types.ModuleType("flash_attn_2_cuda")
    stub.fwd = lambda q, *rest: (
        torch.empty_like(q), q.new_empty(q.shape[0], q.shape[2], q.shape[1],
                                         dtype=torch.float32), q.new_empty(0), q.new_empty(2))
    sys.modules["flash_attn_2_cuda"] = stub
    made, define = types.ModuleType("flash_attn_interface"), torch.library.custom_op
    torch.library.custom_op = lambda *given, **options: define(
        *given, **{**options, "device_types": None})
    try:
        exec(compile(open(path).read(), path, "exec"), made.__dict__)
    finally:
        torch.library.custom_op = define
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kernels")
    parser.add_argument("hip")
    parser.add_argument("--flash-attn")
    parser.add_argument("--calls", type=int, default=2000, help="of a round")
    given = parser.parse_args()

    lib = fovea.Library(given.kernels, hip=given.hip, compile="never")
    _attention.default_library = lambda: lib
    _arrays.torch_devices["cpu"] = True
    _arrays._torch_stream = lambda device: 0
    if _torch_library.kind == "c++":
        _torch_library.forget()
        _torch_library.host_is_device(True)
    print(f"operators: {fovea.torch.operators()}")
    thread = ctypes.CDLL(given.hip).fovea_empty_hip_thread
    thread.restype = ctypes.POINTER(ctypes.c_uint64)

    q, k, v = (torch.zeros(2, 16, 1000, 64, dtype=torch.bfloat16) for _ in range(3))
    rows = [tensor.transpose(1, 2).contiguous() for tensor in (q, k, v)]
    learnt = [tensor.clone().requires_grad_() for tensor in (q, k, v)]
    out = torch.empty_like(q)
    rest = 0.125, "none", "", "", "", [], None, 0.0, None, "", [], [-1, -1, 0, 0], 0, False
    fovea.attention(q, k, v, out=out)
    (kept,) = lib._calls.values()
    context, forward = lib._context, _native.lib.fovea_forward
    cases = {
        "the C interface's function, by ctypes": lambda: forward(
            context, kept._reference, 0),
        "fovea.attention, out given": lambda: fovea.attention(q, k, v, out=out),
        "fovea.attention": lambda: fovea.attention(q, k, v),
        "fovea.torch.attention": lambda: fovea.torch.attention(q, k, v),
        "fovea.flash_attn.flash_attn_func": lambda: fovea.flash_attn.flash_attn_func(
            *rows, causal=True),
        "fovea.torch.attention, gradients recorded": lambda: fovea.torch.attention(
            *learnt),
        "the same by the operator": lambda: _torch_operators.forward(
            *learnt, *rest),
        "the operator, no gradient recorded": lambda: _torch_operators.forward(
            q, k, v, *rest),
        "its kernel in Python": lambda: _torch_operators._run_forward(q, k, v, *rest),
        "its kernel, past the formula": lambda: _torch_operators._forward_kernel(
            q, k, v, *rest),
    }
    launching = set(cases)
    if given.flash_attn:
        theirs = flash_attn(given.flash_attn)
        cases["flash_attn.flash_attn_func, its extension a stub"] = (
            lambda: theirs.flash_attn_func(*rows, causal=True))
        cases["the same, gradients recorded"] = (
            lambda: theirs.flash_attn_func(*learnt, causal=True))

    least = dict.fromkeys(cases, float("inf"))
    for _ in range(9):
        for name, call in cases.items():
            before = thread().contents.value
            begin = time.thread_time()
            for _ in range(given.calls):
                call()
            least[name] = min(least[name],
                              (time.thread_time() - begin) / given.calls * 1e6)
            launched = thread().contents.value - before
            if launched != given.calls * (name in launching):
                sys.exit(f"{name}: HIP was given {launched} launches of {given.calls}")
    base = next(iter(least.values()))
    print(f"{'microseconds':>50}    over the C interface's")
    for name, cost in least.items():
        print(f"{name:50} {cost:7.2f} {cost - base:7.2f}")


if __name__ == "__main__":
    main()
