#!/usr/bin/env python3
"""fovea.torch.enable() in the place of PyTorch's attention (torch_case.py)."""

import contextlib
import copy
import io
import logging
import math
import pathlib
import re
import unittest

from torch_case import Case, exact, numbers

import torch
import torch.nn.functional as F

import fovea
import fovea.torch as ft


class Enabled(Case):
    def calls_of(self, function):
        before = ft.calls()
        result = function()
        return result, {key: number - before.get(key, 0)
                        for key, number in ft.calls().items()
                        if number != before.get(key, 0)}

    def test_scaled_dot_product_attention(self):
        name = "_scaled_dot_product_flash_attention_for_cpu"
        for dtype in (torch.float16, torch.float32):
            q, k, v = (numbers(2, 2, 45, 32, dtype=dtype) for _ in range(3))
            for options in ({}, {"is_causal": True}, {"scale": 0.3},
                            {"attn_mask": torch.rand(45, 45) > 0.3},
                            {"attn_mask": torch.randn(2, 1, 45, 45, dtype=dtype)}):
                with self.subTest(f"{dtype} {list(options)}"):
                    def run():
                        out = F.scaled_dot_product_attention(q, k, v, **options)
                        return out, *self.gradients([out], (q, k, v))

                    expected = run()
                    with ft.enable(fallback=False):
                        got, calls = self.calls_of(run)
                    self.assertEqual(calls, {(name, "fovea"): 1,
                                             (f"{name}_backward", "fovea"): 1})
                    self.close(got, expected)
        _, calls = self.calls_of(run)  # all is taken back
        self.assertEqual(calls, {})

    def test_operators_of_gpus(self):
        q, k, v = (numbers(1, 2, 45, 32) for _ in range(3))
        bias = numbers(1, 2, 45, 45)
        flash = torch.ops.aten._scaled_dot_product_flash_attention
        efficient = torch.ops.aten._scaled_dot_product_efficient_attention
        self.addCleanup(torch.use_deterministic_algorithms, False)
        with ft.enable(fallback=False):
            for causal in (False, True):
                torch.use_deterministic_algorithms(causal)  # kernels that are, too
                mask = "causal-top-left" if causal else "none"
                for got, inputs, wanted in (
                        (flash(q, k, v, 0.0, causal)[0], (q, k, v), {}),
                        (efficient(q, k, v, None, True, 0.0, causal)[0], (q, k, v), {}),
                        (efficient(q, k, v, bias, True, 0.0, causal)[0],
                         (q, k, v, bias), {"bias": bias})):
                    expected = exact(q, k, v, mask, **wanted)[0]
                    self.close((got, *self.gradients([got], inputs)),
                               (expected, *self.gradients([expected], inputs)))
            for dropped in (flash(q, k, v, 0.5)[0], efficient(q, k, v, None, True, 0.5)[0]):
                (dv,) = torch.autograd.grad(dropped, v, torch.ones_like(dropped))
                self.assertAlmostEqual((dv * v).sum().item(), dropped.sum().item(),
                                       delta=0.5)

    def test_columns_together(self):
        """Tensors whose last stride is not 1, which results are not made like."""
        aten = torch.ops.aten
        q, k, v = (numbers(1, 2, 32, 45) for _ in range(3))
        wanted = exact(q.mT, k.mT, v.mT)[0]
        wanted = wanted, *self.gradients([wanted], (q, k, v))

        def rows(operator, given, *options):
            return operator(*(t.transpose(1, 2) for t in given), *options)[0].transpose(1, 2)

        with ft.enable(fallback=False):
            for run in (
                    lambda *given: aten._scaled_dot_product_flash_attention(*given)[0],
                    lambda *given: aten._scaled_dot_product_flash_attention_for_cpu(*given)[0],
                    lambda *given: aten._scaled_dot_product_efficient_attention(
                        *given, None, True)[0],
                    lambda *given: rows(aten._flash_attention_forward, given, None, None, 45, 45,
                                        0.0, False, False),
                    lambda *given: rows(aten._efficient_attention_forward, given, None, None,
                                        None, None, None, 0.0, 0, True)):
                got = run(q.mT, k.mT, v.mT)
                self.assertEqual(got.stride(-1), 1)
                self.close((got, *self.gradients([got], (q, k, v))), wanted)
                with self.assertRaisesRegex(fovea.InvalidArgumentError, "head_dim is 0, not in 1"):
                    run(*[q.mT[..., :0]] * 3)

    def test_variable_lengths(self):
        """torch.nn.attention.varlen's function, and what it is made of."""
        from torch.nn.attention.varlen import varlen_attn
        q, k, v = (numbers(40, 2, 32) for _ in range(3))
        sums = torch.tensor([0, 10, 40], dtype=torch.int32)
        for window, mask in (((-1, -1), "none"), ((-1, 0), "causal-top-left")):
            with ft.enable(fallback=False):
                got = varlen_attn(q, k, v, sums, sums, 30, 30, window_size=window)
                grads = self.gradients([got], (q, k, v))
            wanted = torch.cat([
                exact(*(t[None, a:b].transpose(1, 2) for t in (q, k, v)), mask)[0]
                .transpose(1, 2)[0] for a, b in ((0, 10), (10, 40))])
            self.close((got, *grads), (wanted, *self.gradients([wanted], (q, k, v))))
        used = torch.tensor([7, 20], dtype=torch.int32)
        with ft.enable(fallback=False):
            got = torch.ops.aten._flash_attention_forward(
                q, k, v, sums, sums, 30, 30, 0.0, False, False, seqused_k=used)[0]
            with self.assertRaisesRegex(fovea.NotFoundError, "block_table is given"):
                torch.ops.aten._flash_attention_forward(
                    q, k, v, sums, sums, 30, 30, 0.0, False, False, block_table=used)
        wanted = torch.cat([
            exact(*(t[None, a:b].transpose(1, 2) for t, b in ((q, c), (k, b), (v, b))))[0]
            .transpose(1, 2)[0] for a, b, c in ((0, 7, 10), (10, 30, 40))])
        self.close([got], [wanted])
        q, k, v = (numbers(1, n, 2, 32) for n in (30, 40, 40))  # in batches
        bias = torch.zeros(30, 40).masked_fill(
            torch.ones(30, 40, dtype=torch.bool).triu(11), -math.inf)
        wanted = exact(*(t.transpose(1, 2) for t in (q, k, v)), bias=bias)[0]
        for bounds in ({}, {"window_size_left": -1, "window_size_right": 5}):
            with ft.enable(fallback=False):
                got = torch.ops.aten._flash_attention_forward(
                    q, k, v, None, None, 30, 40, 0.0, True, False, **bounds)[0]
            self.close([got], [wanted.transpose(1, 2)])

    def test_xformers(self):
        """_efficient_attention_forward, and its gradients."""
        operator = torch.ops.aten._efficient_attention_forward
        q, k, v = numbers(2, 30, 2, 32), numbers(2, 45, 2, 32), numbers(2, 45, 2, 32)
        bias, heads = numbers(1, 2, 30, 45), [t.transpose(1, 2) for t in (q, k, v)]
        later = torch.zeros(30, 45).masked_fill(
            torch.ones(30, 45, dtype=torch.bool).triu(16), -math.inf)
        for kind, options, given in (
                (0, {"bias": bias}, bias), (1, {"mask": "causal-top-left"}, None),
                (2, {"bias": later}, None)):
            for deterministic in (False, True):
                torch.use_deterministic_algorithms(deterministic)
                try:
                    with ft.enable(fallback=False):
                        got = operator(q, k, v, given, None, None, None, None, 0.0, kind,
                                       True)
                        inputs = (q, k, v) if given is None else (q, k, v, bias)
                        grads = self.gradients(got[:1], inputs)
                finally:
                    torch.use_deterministic_algorithms(False)
                self.assertEqual(got[4:], (30, 45))
                out, lse = exact(*heads, **options)
                self.close((got[0].transpose(1, 2), got[1][..., :30], *grads),
                           (out, lse, *self.gradients([out], inputs)))
        with ft.enable(fallback=False), self.assertRaisesRegex(fovea.NotFoundError,
                                                               "window_size is given"):
            operator(q, k, v, None, None, None, None, None, 0.0, 1, window_size=3)

        # The mask that dropout has, by PyTorch's own name for it.
        with ft.enable(fallback=False):
            got = operator(q, k, v, None, None, None, None, None, 0.5, 0, True)
            mask = torch.ops.aten._fill_mem_eff_dropout_mask_(
                torch.empty(2, 2, 30, 45), 0.5, got[2].item(), got[3].item())
        weights = (heads[0].double() @ heads[1].double().mT * 32 ** -0.5).softmax(-1)
        self.close([got[0].transpose(1, 2)],
                   [(weights * (mask > 0) * 2) @ heads[2].double()])

    def test_nested(self):
        """Jagged tensors, where PyTorch chooses as it does on a GPU."""
        from torch.nested._internal import sdpa
        from torch.nn.attention import SDPBackend
        rows = [torch.randn(3, n, 2, 32, dtype=torch.float16) for n in (10, 30)]
        chosen = sdpa._select_sdp_backend

        def run():
            q, k, v = (torch.nested.nested_tensor(
                list(parts), layout=torch.jagged, requires_grad=True)
                for parts in zip(*rows))
            out = F.scaled_dot_product_attention(
                *(t.transpose(1, 2) for t in (q, k, v)), is_causal=True).transpose(1, 2)
            return out.values(), *(g.values() for g in torch.autograd.grad(
                (out.values() ** 2).sum(), (q, k, v)))

        expected = [torch.cat(parts) for parts in zip(*map(self.one, rows))]
        for backend, name in ((SDPBackend.FLASH_ATTENTION, "_flash_attention"),
                              (SDPBackend.EFFICIENT_ATTENTION, "_efficient_attention")):
            sdpa._select_sdp_backend = lambda *_, **__: backend
            try:
                with ft.enable(fallback=False):
                    got, calls = self.calls_of(run)
            finally:
                sdpa._select_sdp_backend = chosen
            self.assertEqual(calls, {(f"{name}_forward", "fovea"): 1,
                                     (f"{name}_backward", "fovea"): 1})
            self.close(got, expected)

    def one(self, tensors):
        """A sequence alone, (rows, heads, head_dim), and its gradients."""
        q, k, v = (tensor.clone().requires_grad_() for tensor in tensors)
        out = exact(*(t.transpose(0, 1)[None] for t in (q, k, v)),
                    "causal-top-left")[0][0].transpose(0, 1)
        return out, *torch.autograd.grad((out * out).sum(), (q, k, v))

    def test_fallback(self):
        q = numbers(1, 2, 45, 32, dtype=torch.float64)
        name = "_scaled_dot_product_flash_attention_for_cpu"
        expected = F.scaled_dot_product_attention(q, q, q)
        with ft.enable(), self.assertLogs("fovea", logging.WARNING) as log:
            got, calls = self.calls_of(lambda: F.scaled_dot_product_attention(q, q, q))
        self.assertTrue(torch.equal(got, expected))
        self.assertEqual(calls, {(name, "pytorch"): 1})
        self.assertIn("q: its elements are float64", log.output[0])
        with ft.enable(fallback=False):
            with ft.enable():
                F.scaled_dot_product_attention(q, q, q)
            # As it was.
            with self.assertRaisesRegex(TypeError, "float64"):
                F.scaled_dot_product_attention(q, q, q)

    @unittest.skipUnless(hasattr(torch.nn.attention, "activate_flash_attention_impl"),
                         "PyTorch is older than 2.11")
    def test_registry(self):
        q = numbers(1, 2, 45, 32)
        torch.nn.attention.activate_flash_attention_impl("fovea")
        try:
            _, calls = self.calls_of(lambda: F.scaled_dot_product_attention(q, q, q))
        finally:
            torch.nn.attention.restore_flash_attention_impl()
        self.assertEqual(len(calls), 1)
        _, calls = self.calls_of(lambda: F.scaled_dot_product_attention(q, q, q))
        self.assertEqual(calls, {})

    def test_training(self):
        """A transformer of two layers with padding trains to the same losses."""
        layer = torch.nn.TransformerEncoderLayer(32, 2, 64, dropout=0.0, batch_first=True)
        model = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        x = torch.randn(2, 20, 32)
        padding = torch.zeros(2, 20, dtype=torch.bool)
        padding[1, 15:] = True

        def train(model):
            optimiser, losses = torch.optim.SGD(model.parameters(), 0.1), []
            for _ in range(4):
                loss = ((model(x, src_key_padding_mask=padding) - x.flip(1)) ** 2).mean()
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
                losses.append(loss.item())
            return losses

        expected = train(copy.deepcopy(model))
        with ft.enable(fallback=False):
            losses, calls = self.calls_of(lambda: train(model))
        self.assertEqual(set(calls.values()), {8})
        self.assertLess(expected[-1], expected[0])
        for one, other in zip(losses, expected):
            self.assertAlmostEqual(one, other, places=5)

    def test_readme(self):
        """README's ten lines train."""
        text = (pathlib.Path(__file__).parents[2] / "README.md").read_text()
        code = re.search(r"^```python\n(import torch, fovea.torch\n.*?)^```", text, re.M | re.S)[1]
        self.addCleanup(ft.disable)
        with contextlib.redirect_stdout(io.StringIO()) as out:
            _, calls = self.calls_of(lambda: exec(code, {}))
        losses = [float(line.split()[1]) for line in out.getvalue().splitlines()]
        self.assertEqual((len(code.strip().replace("\n\n", "\n").splitlines()), len(losses)), (10, 5))
        self.assertEqual(set(calls.values()), {10})
        self.assertEqual(losses, sorted(losses, reverse=True))


if __name__ == "__main__":
    unittest.main()
