#!/usr/bin/env python3
"""fovea.context_parallel in 2 and 4 processes over gloo, each with a simulated device of
its own: outputs, log-sum-exps and gradients held to attention of the whole sequence in
fp64; and PyTorch's own context_parallel over fovea.torch.enable().

Kernels are compiled on demand. Where PyTorch is missing nothing is run.
"""

import multiprocessing
import os
import pathlib
import sys
import tempfile
import traceback
import unittest

try:
    import torch
    import torch.distributed as dist
except ImportError as error:
    print(f"not run: {error}")
    sys.exit(77)

import fovea
import fovea.context_parallel as cp
import fovea.torch

BOUND = 1e-4  # fp32, of the largest number


def whole(q, k, v, causal, softcap=0.0):
    """out and lse of the whole sequence in fp64."""
    q, k, v = (tensor.double() for tensor in (q, k, v))
    k, v = (tensor.repeat_interleave(q.shape[1] // k.shape[1], 1) for tensor in (k, v))
    scores = q @ k.mT * q.shape[-1] ** -0.5
    if softcap:
        scores = softcap * (scores / softcap).tanh()
    if causal:
        scores = scores.masked_fill(
            torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -torch.inf)
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


def numbers(rows, heads=(4, 2)):
    torch.manual_seed(0)  # the same in all processes
    return [torch.randn(2, number, rows, 32) for number in (heads[0], heads[1], heads[1])]


def close(case, got, wanted):
    if got.shape != wanted.shape:
        raise AssertionError(f"{case}: shape {got.shape}, not {wanted.shape}")
    error = (got - wanted).abs().max().item()
    if not error < BOUND * max(1, wanted.abs().max().item()):
        raise AssertionError(f"{case}: {error} off")


def weighted(out, lse, rows):
    """A loss that all rows of both have to do with; `rows`: where they stand."""
    factors = torch.linspace(-1, 1, 64, dtype=out.dtype)[rows]
    return (out * out.detach().sign() * factors[:, None]).sum() + (lse * factors).sum()


def compare(method, causal, balanced=True, softcap=0.0, group=None):
    case = f"{method}, causal {causal}, balanced {balanced}, softcap {softcap}"
    inputs = numbers(64)
    exact = [tensor.double().requires_grad_() for tensor in inputs]
    out, lse = whole(*exact, causal, softcap)
    wanted = [out, lse, *torch.autograd.grad(
        weighted(out, lse, torch.arange(64)), exact)]
    parts = [cp.split(tensor, 2, group, balanced).requires_grad_() for tensor in inputs]
    results = cp.attention(*parts, group, method=method,
                           mask="causal-top-left" if causal else "none", balanced=balanced,
                           softcap=softcap, return_lse=True)
    rows = cp.split(torch.arange(64), 0, group, balanced)
    got = [*results, *torch.autograd.grad(weighted(*results, rows), parts)]
    for name, one, other in zip(("out", "lse", "dq", "dk", "dv"), got, wanted):
        close(f"{case}: {name}", cp.join(one, 2, group, balanced), other)


def both_methods():
    for method in "ring", "all-gather":
        for causal, balanced in (False, True), (True, True), (True, False):
            compare(method, causal, balanced)
        compare(method, True, softcap=2.0)


def in_a_group():
    """Processes of a group that begins with another than the first one."""
    groups = [dist.new_group([0, 1]), dist.new_group([2, 3])]
    compare("ring", True, group=groups[dist.get_rank() // 2])
    compare("all-gather", True, group=groups[dist.get_rank() // 2])


def of_16_bits():
    inputs = [tensor.bfloat16() for tensor in numbers(64)]
    out = cp.join(cp.attention(*(cp.split(tensor, 2) for tensor in inputs),
                               mask="causal-top-left"), 2)
    assert out.dtype == torch.bfloat16
    error = (out - whole(*inputs, True)[0]).abs().max().item()
    assert error < 2e-2, error


def of_pytorch():
    """Its ring calls the operator that enable() serves; on the CPU scaled_dot_product_attention
    takes another than on a GPU, so it is told which."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.experimental import context_parallel

    def attention(q, k, v, is_causal=False):
        return torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, is_causal)[0]

    attention.__name__ = "scaled_dot_product_attention"  # by which it is replaced
    inputs = [tensor.requires_grad_() for tensor in numbers(64, (2, 2))]
    out, lse = whole(*inputs, True)
    factors = torch.linspace(-1, 1, 64)[:, None]
    wanted = [out, *torch.autograd.grad((out * factors).sum(), inputs)]
    former = torch.nn.functional.scaled_dot_product_attention
    torch.nn.functional.scaled_dot_product_attention = attention
    buffers = [tensor.detach().clone() for tensor in inputs] + [factors.clone()]
    before = fovea.torch.calls()
    with fovea.torch.enable(fallback=False), context_parallel(
            init_device_mesh("cpu", (dist.get_world_size(),)), buffers=buffers,
            buffer_seq_dims=[2, 2, 2, 0]):
        parts = [tensor.clone().requires_grad_() for tensor in buffers[:3]]
        out = torch.nn.functional.scaled_dot_product_attention(*parts, is_causal=True)
        got = [out, *torch.autograd.grad((out * buffers[3]).sum(), parts)]
        got = [cp.join(tensor, 2) for tensor in got]  # in pieces as ours
    torch.nn.functional.scaled_dot_product_attention = former
    for name, one, other in zip(("out", "dq", "dk", "dv"), got, wanted):
        close(f"PyTorch's: {name}", one, other)
    for name in ("_scaled_dot_product_flash_attention",
                 "_scaled_dot_product_flash_attention_backward"):
        number = fovea.torch.calls()[name, "fovea"] - before.get((name, "fovea"), 0)
        assert number == dist.get_world_size(), (name, number)


def process(works, rank, size, store, said):
    """One of the processes."""
    torch.set_num_threads(1)
    try:
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank,
                                world_size=size)
        for work in works:
            work()
        dist.barrier()
        said.put((rank, ""))
    except BaseException:  # pylint: disable=broad-except
        said.put((rank, traceback.format_exc()))
        os._exit(1)  # others wait for it no longer
    dist.destroy_process_group()


class Processes(unittest.TestCase):
    def run_in(self, size, *works):
        # Forked before any device is there, and with PyTorch imported.
        context = multiprocessing.get_context("fork")
        said = context.SimpleQueue()  # what is put is there, whatever comes then
        with tempfile.TemporaryDirectory() as folder:
            store = pathlib.Path(folder) / "store"
            made = [context.Process(target=process, args=(works, rank, size, store, said))
                    for rank in range(size)]
            for one in made:
                one.start()
            try:
                for _ in made:
                    self.assertTrue(said._reader.poll(120), "a process says nothing")
                    rank, trouble = said.get()
                    self.assertEqual(trouble, "", f"process {rank} of {size}")
            finally:
                for one in made:
                    one.join(5)
                    one.kill()

    def test_2(self):
        self.run_in(2, both_methods, of_16_bits, of_pytorch)

    def test_4(self):
        self.run_in(4, both_methods, in_a_group)


class Arguments(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        dist.init_process_group("gloo", init_method=f"file://{folder.name}/store", rank=0,
                                world_size=1)
        self.addCleanup(dist.destroy_process_group)

    def test_alone(self):
        both_methods()

    def test_refused(self):
        q = torch.randn(1, 2, 9, 32)
        for options, message in (
                ({"method": "tree"}, "method is 'tree', not one of 'ring', 'all-gather'"),
                ({"mask": "causal-bottom-right"}, "mask is 'causal-bottom-right', not one"),
                ({"mask": "causal-top-left"}, "q has 9 rows, and balanced.*balanced=False"),
                ({"softcap": -1.0}, "softcap is -1.0")):
            with self.assertRaisesRegex(fovea.InvalidArgumentError, message):
                cp.attention(q, q, q, **options)
        with self.assertRaisesRegex(fovea.InvalidArgumentError, "q has 9 rows and k 8"):
            cp.attention(q, q[:, :, :8], q[:, :, :8], mask="causal-top-left", balanced=False)
        with self.assertRaisesRegex(fovea.InvalidArgumentError, "9 rows in dimension 2.*pad"):
            cp.split(q, 2)

    def test_merge(self):
        """Of keys that nobody sees nothing comes, and no NaN."""
        out, lse = torch.ones(3, 4), torch.tensor([0.0, -torch.inf, -torch.inf])
        more, more_lse = torch.zeros(3, 4), torch.tensor([0.0, 1.0, -torch.inf])
        both, both_lse = cp.merge(out, lse, more, more_lse)
        self.assertEqual(both[:, 0].tolist(), [0.5, 0.0, 0.0])
        self.assertEqual(both_lse[1:].tolist(), [1.0, -torch.inf])


if __name__ == "__main__":
    # Classes in this order: processes are forked first.
    loader = unittest.defaultTestLoader
    tests = unittest.TestSuite(loader.loadTestsFromTestCase(kind)
                               for kind in (Processes, Arguments))
    sys.exit(not unittest.TextTestRunner(verbosity=2).run(tests).wasSuccessful())
