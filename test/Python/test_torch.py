#!/usr/bin/env python3
"""The operators of fovea.torch, in C++ and in Python, against PyTorch in fp64 (torch_case.py)."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import warnings
from unittest import mock

from torch_case import Case, exact, numbers

import numpy as np
import torch

import fovea
import fovea.torch as ft
from fovea import _torch_library, _torch_operators as operators


class Operators(Case):
    def both(self, inputs, expected, **options):
        q, k, v = inputs[:3]
        results = ft.attention(q, k, v, return_lse=True, **options)
        self.close((*results, *self.gradients(results, inputs)),
                   (*expected, *self.gradients(expected, inputs)))

    def test_gradients(self):
        q, k, v = numbers(1, 4, 40, 32), numbers(1, 2, 40, 32), numbers(1, 2, 40, 32)
        self.both((q, k, v), exact(q, k, v, "causal-top-left"), mask="causal-top-left")

    def test_captures(self):
        q, k, v = (numbers(1, 2, 40, 32) for _ in range(3))
        bias = numbers(1, 2, 40, 40)
        self.both((q, k, v, bias), exact(q, k, v, bias=bias),
                  score=fovea.Score("bias", [bias]))

    def test_captures_alone(self):
        """Whichever of the others want a gradient."""
        given = [numbers(1, 2, 40, 32).detach() for _ in range(3)]
        bias, sinks = torch.randn(40, 40), torch.randn(2)
        for names in ("bias", "bias sinks", "bias q", "bias v"):
            tensors = dict(zip(("q", "k", "v", "bias", "sinks"), (
                tensor.clone() for tensor in (*given, bias, sinks))))
            inputs = [tensors[name].requires_grad_() for name in names.split()]
            q, k, v, bias, sinks = tensors.values()
            scores = fovea.Score("bias", [bias.expand(1, 2, 40, 40)])
            wanted = exact(q, k, v, bias=bias)[0]
            if sinks.requires_grad:  # a key without a value
                wide = [torch.cat([torch.zeros(1, 2, 1, 32), t.float()], 2) for t in (k, v)]
                wanted = exact(q, *wide, bias=torch.cat(
                    [sinks[None, :, None, None].expand(1, 2, 40, 1),
                     bias.expand(1, 2, 40, 40)], -1))[0]
            expected = (wanted, *self.gradients([wanted], inputs))
            for seen in (False, True):
                with self.subTest(names, seen=seen), (
                        torch.autograd.profiler.profile() if seen else torch.enable_grad()):
                    got = ft.attention(q, k, v, score=scores,
                                       sinks=sinks if sinks.requires_grad else None)
                    self.close((got, *self.gradients([got], inputs)), expected)

    def test_sinks(self):
        q, k, v = (numbers(1, 2, 40, 32) for _ in range(3))
        sinks = numbers(2, dtype=torch.float32)
        got = ft.attention(q, k, v, sinks=sinks)
        keys = torch.cat([torch.zeros(1, 2, 1, 32), k.float()], 2)  # one without a value
        values = torch.cat([torch.zeros(1, 2, 1, 32), v.float()], 2)
        bias = torch.cat([sinks[None, :, None, None].expand(1, 2, 40, 1),
                          torch.zeros(1, 2, 40, 40)], -1)
        wanted = exact(q, keys, values, bias=bias)[0]
        self.close((got, *self.gradients([got], (q, k, v, sinks))),
                   (wanted, *self.gradients([wanted], (q, k, v, sinks))))

    def test_packed(self):
        q, k, v = (numbers(2, 40, 32) for _ in range(3))
        sums = torch.tensor([0, 10, 40], dtype=torch.int32)
        out = ft.attention(q, k, v, varlen=fovea.Varlen.packed(sums, sums, 30, 30))
        wanted = torch.cat([exact(*(t[None, :, a:b] for t in (q, k, v)))[0][0]
                            for a, b in ((0, 10), (10, 40))], 1)
        self.close((out, *self.gradients([out], (q, k, v))),
                   (wanted, *self.gradients([wanted], (q, k, v))))

    def test_dropout(self):
        q, k, v = (numbers(1, 2, 40, 32) for _ in range(3))
        torch.manual_seed(5)
        first = ft.attention(q, k, v, dropout_p=0.5)
        torch.manual_seed(5)
        again = ft.attention(q, k, v, dropout_p=0.5)
        other = ft.attention(q, k, v, dropout_p=0.5)
        self.assertTrue(torch.equal(first, again) and not torch.equal(first, other))
        # Linear in v: the backward pass drops what the forward one dropped.
        (dv,) = torch.autograd.grad(first, v, torch.ones_like(first))
        self.assertAlmostEqual((dv * v).sum().item(), first.sum().item(), delta=0.5)

    def test_autocast(self):
        x = torch.randn(1, 2, 40, 32)
        with torch.autocast("cpu", torch.bfloat16):
            self.assertEqual(ft.attention(x, x, x).dtype, torch.bfloat16)

    def test_negated(self):
        """Elements that are negated when they are read, with gradients and without."""
        q, k, v = (numbers(1, 2, 40, 32) for _ in range(3))
        sinks, bias = torch.randn(2), torch.randn(1, 2, 40, 40)
        wanted = ft.attention(-q, k, v, sinks=-sinks, score=fovea.Score("bias", [-bias]))
        for context in (torch.enable_grad(), torch.no_grad()):
            with context:
                self.assertTrue(torch.equal(wanted, ft.attention(
                    torch._neg_view(q), k, v, sinks=torch._neg_view(sinks),
                    score=fovea.Score("bias", [torch._neg_view(bias)]))))

    def test_without_gradients(self):
        """Past the operators, with the same bits in the same places."""
        q, k, v = (numbers(1, 2, 40, 32) for _ in range(3))
        bias = numbers(1, 2, 40, 40)
        for options in ({}, {"score": fovea.Score("bias", [bias])}):
            recorded = ft.attention(q, k, v, return_lse=True, **options)
            with torch.no_grad():
                plain = ft.attention(q, k, v, return_lse=True, **options)
            for one, other in zip(recorded, plain):
                self.assertTrue(torch.equal(one, other))
                self.assertEqual(one.stride(), other.stride())
        with self.assertRaisesRegex(TypeError, "q: Tensor that requires a gradient"):
            fovea.attention(q, k, v)
        with torch.no_grad():
            self.assertTrue(torch.equal(fovea.attention(q, k, v), ft.attention(q, k, v)))
            one = torch.tensor(0.5, requires_grad=True)  # whose gradient nobody waits for
            self.assertTrue(torch.equal(ft.attention(q, k, v, scale=one),
                                        ft.attention(q, k, v, scale=0.5)))
        with self.assertRaisesRegex(TypeError, "k: .*device 'meta', neither"):
            fovea.attention(q.detach(), k.detach().to("meta"), v.detach())

    def test_deterministic(self):
        """What cannot be so names who asked for it."""
        q, k, v = (numbers(1, 2, 40, 32) for _ in range(3))
        slopes = torch.tensor([[0.5, 0.25]]).requires_grad_()
        self.addCleanup(torch.use_deterministic_algorithms, False)
        for options, flag in (({"deterministic": True}, False), ({}, True)):
            torch.use_deterministic_algorithms(flag)
            out = ft.attention(q, k, v, score=fovea.Score("alibi", [slopes]), **options)
            with self.assertRaisesRegex(
                    fovea.InvalidArgumentError,
                    r"deterministic is 1(.|\n)*use_deterministic_algorithms\(True\) held$"
            ) as caught:
                out.sum().backward()
            self.assertTrue(caught.exception.is_of_determinism)
            # What is refused ahead of the library has no cause of a call before.
            with self.assertRaises(fovea.InvalidArgumentError) as caught:
                ft.attention(q, k[..., :16], v)
            self.assertFalse(caught.exception.is_of_determinism)

    def test_recorded(self):
        """Gradients past the operators are those of their formula, to the bit."""
        sums = torch.tensor([0, 10, 40], dtype=torch.int32)
        q, k, v = (numbers(1, 2, 40, 32) for _ in range(3))
        packed = [numbers(2, 40, 32) for _ in range(3)]
        bias, sinks = numbers(1, 2, 40, 40), numbers(2, dtype=torch.float32)
        for inputs, options in (
                ((q, k, v), {"mask": "causal-top-left", "window": None}),
                ((q, k, v, bias), {"score": fovea.Score("bias", [bias])}),
                ((q, k, v, sinks), {"sinks": sinks, "window": (9, 0)}),
                (packed, {"varlen": fovea.Varlen.packed(sums, sums, 30, 30)})):
            def both():
                results = ft.attention(*inputs[:3], return_lse=True, **options)
                kinds.append(type(results[0].grad_fn).__name__)
                return *results, *self.gradients(results, inputs)

            kinds = []
            got = both()
            with mock.patch.object(ft, "way_of", lambda *_: None):
                wanted = both()
            self.assertEqual([kind for kind in kinds if "Recorded" in kind], kinds[:1])
            for one, other in zip(got, wanted, strict=True):
                self.assertTrue(torch.equal(one, other))
                self.assertEqual(one.stride(), other.stride())
        (dq,) = torch.autograd.grad(ft.attention(q, k, v).sum(), q, create_graph=True)
        with self.assertRaisesRegex(RuntimeError, "attention_backward.*no autograd"):
            dq.sum().backward()

    def test_tangents(self):
        """Forward mode is refused where PyTorch would drop a tangent."""
        x = torch.randn(1, 2, 9, 32)
        for function in (ft.attention, ft.flex_attention):
            def jvp(q):
                return torch.func.jvp(lambda q: function(q, x, x), (q,), (q,))

            for run in (jvp, lambda q: torch.func.vmap(jvp)(q[None])):
                with self.assertRaisesRegex(NotImplementedError, "no forward-mode derivative"):
                    run(x)
        with torch.autograd.forward_ad.dual_level():
            dual = torch.autograd.forward_ad.make_dual(x, x)
            with self.assertRaisesRegex(NotImplementedError, "no forward-mode derivative"):
                ft.attention(x, x, dual)
            self.assertTrue(torch.equal(ft.attention(x, x, x), ft.attention(x, x, x)))
        with self.assertRaises(RuntimeError):
            torch.func.jvp(torch.func.grad(lambda q: ft.attention(q, x, x).sum()), (x,), (x,))

    def test_transforms(self):
        """torch.func's: grad, of several arguments, over and under vmap, jacrev, vjp."""
        q, k, v = (torch.randn(1, 2, 40, 32) for _ in range(3))
        bias, sinks = torch.randn(1, 2, 40, 40), torch.randn(2)
        ours = lambda q, k, v: ft.attention(  # noqa: E731
            q, k, v, mask="causal-top-left").square().sum()
        theirs = lambda *given: exact(*given, "causal-top-left")[0].square().sum()  # noqa: E731
        func = torch.func
        wanted = func.grad(theirs, (0, 1, 2))(q, k, v)
        self.close(func.grad(ours, (0, 1, 2))(q, k, v), wanted, 1e-5)
        self.close(func.vmap(func.grad(ours, (0, 1, 2)))(*(t.expand(2, *t.shape)
                                                           for t in (q, k, v))),
                   [gradient.expand(2, *gradient.shape) for gradient in wanted], 1e-5)
        self.close(func.vjp(ours, q, k, v)[1](torch.ones(())), wanted, 1e-5)
        rows = [func.jacrev(lambda q: function(q, k, v)[:, :, :3].sum((0, 3)))(q) for function in (
            ft.attention, lambda *given: exact(*given)[0])]
        self.close(rows[:1], rows[1:], 1e-5)
        learnt = lambda bias, sinks: ft.attention(  # noqa: E731
            q, k, v, score=fovea.Score("bias", [bias]), sinks=sinks).square().sum()
        inputs = [tensor.clone().requires_grad_() for tensor in (bias, sinks)]
        self.close(func.grad(learnt, (0, 1))(bias, sinks),
                   torch.autograd.grad(learnt(*inputs), inputs), 1e-5)
        for function in (ft.attention, lambda *given: func.vmap(ft.attention)(*(
                t[None] for t in given))[0]):
            self.assertTrue(torch.equal(func.functionalize(function)(q, k, v),
                                        ft.attention(q, k, v)))
        with self.assertRaisesRegex(RuntimeError, "gradients of gradients are not there"):
            func.grad(lambda q: func.grad(ours)(q, k, v).sum())(q)

    def test_vmap(self):
        """Over anything that is an array, also alone, and over nothing."""
        q, bias = torch.randn(2, 1, 2, 140, 32), torch.randn(2, 1, 2, 140, 140)
        lengths = torch.tensor([[5], [130]], dtype=torch.int32)
        numbers = torch.tensor([[[[2, 1]]], [[[1, 2]]]], dtype=torch.int32)
        indices = torch.tensor([[[[[0, 1], [0, 0]]]], [[[[1, 0], [1, 0]]]]], dtype=torch.int32)
        func, loss = torch.func, lambda run: lambda *given: run(*given).square().sum()
        biased = lambda q, bias: ft.attention(  # noqa: E731
            q, q, q, score=fovea.Score("bias", [bias]))
        limited = lambda q, lengths: ft.attention(  # noqa: E731
            q, q, q, varlen=fovea.Varlen(k=fovea.Sequences(lengths)))
        for run, inputs in (
                (lambda bias: biased(q[0], bias), [bias]), (biased, [q, bias]),
                (func.grad(loss(biased), 1), [q, bias]),
                (lambda lengths: limited(q[0], lengths), [lengths]),
                (func.grad(loss(limited)), [q, lengths]),
                (lambda *lists: ft.attention(q[0], q[0], q[0], blocks=fovea.Blocks(*lists)),
                 [numbers, indices]),
                (lambda cap: ft.attention(q[0], q[0], q[0], score=fovea.Score("softcap", [cap])),
                 [torch.tensor([2.0, 3.0])])):
            wanted = torch.stack([run(*given) for given in zip(*inputs)])
            self.assertTrue(torch.equal(func.vmap(run)(*inputs), wanted))
            none = func.vmap(run)(*[given[:0] for given in inputs])
            self.assertEqual(none.shape, (0, *wanted.shape[1:]))
        self.assertTrue(torch.equal(
            func.grad(loss(func.vmap(lambda bias: biased(q[0], bias))))(bias),
            func.vmap(func.grad(loss(lambda bias: biased(q[0], bias))))(bias)))
        both = func.vmap(biased)
        for way in (func.functionalize(both), torch.compile(both, backend="aot_eager")):
            self.assertTrue(torch.equal(way(q, bias), both(q, bias)))
        # Those of functions, too; one of 16 bits begins between words.
        for dtype in (torch.float32, torch.bfloat16):
            x, table = torch.randn(1, 1, 39, 32, dtype=dtype), torch.randn(2, 39, 39, dtype=dtype)
            run = loss(lambda table: ft.attention(  # noqa: E731
                x, x, x, score=lambda s, b, h, i, j: s + table[i, j]))
            inputs = [one.clone().requires_grad_() for one in table]
            wanted = torch.stack([torch.autograd.grad(run(one), one)[0] for one in inputs])
            self.close([func.vmap(func.grad(run))(table), func.grad(run)(table[1])],
                       [wanted, wanted[1]], 1e-5)
        rows = func.jacrev(lambda q: ft.attention(q, q, q)[:, :, :0])(q[0])
        self.assertEqual(rows.shape, (1, 2, 0, 32, 1, 2, 140, 32))

    def test_nothing(self):
        """Gradients of nothing are expanded, with strides of 0 throughout."""
        for batch, heads, rows in ((0, 2, 9), (1, 0, 9), (1, 2, 0)):
            inputs = [torch.randn(batch, heads, n, 32, requires_grad=True)
                      for n in (rows, 9, 9)]
            for function in (ft.attention, ft.flex_attention):
                for got, tensor in zip(torch.autograd.grad(
                        function(*inputs).sum(), inputs), inputs):
                    self.assertTrue(torch.equal(got, torch.zeros_like(tensor)))

    def test_opcheck(self):
        q, k, v = (numbers(1, 2, 40, 32) for _ in range(3))
        plain = dict(
            scale=0.1, mask="none", window="", score="", score_text="", captures=[],
            sinks=None, dropout_p=0.0, seed=None, listed="", lists=[],
            sizes=[-1, -1, 0, 0], splits=0, deterministic=False)
        for options in ({}, {"mask": "causal-top-left"},
                        {"score": "bias", "captures": [numbers(1, 2, 40, 40)]},
                        {"sinks": numbers(2, dtype=torch.float32)},
                        {"dropout_p": 0.5, "seed": torch.tensor([5])},
                        {"listed": "kv_num_blocks,kv_indices,q_num_blocks,q_indices",
                         "lists": [torch.tensor([[[1]]], dtype=torch.int32),
                                   torch.tensor([[[[0]]]], dtype=torch.int32)] * 2,
                         "sizes": [-1, -1, 128, 128]}):
            with self.subTest(options.keys()):
                found = torch.library.opcheck(
                    torch.ops.fovea.attention_forward.default,
                    (q, k, v, *{**plain, **options}.values()))
                self.assertEqual(set(found.values()), {"SUCCESS"})

    def test_float_divisions(self):
        """Also where a quotient is rounded up to a whole number, as 1 / 0.1 is."""
        given = (0.1, 0.2, 0.05, 1 / 3, 2 / 3, 0.3, 1.1, 2.2, 3, 7, 49, -0.3)
        divisors = torch.tensor([*map(float, given)])
        q = torch.zeros(1, len(given), 320, 8)
        k = q[:, :, :1]  # the only key, whose score is all that there is

        def of_numbers(function, h, x):
            made = x
            for head, divisor in enumerate(given):
                made = torch.where(h == head, function(x, divisor), made)
            return made

        for function, bound in ((torch.floor_divide, 0.1), (torch.remainder, 1e-4),
                                (lambda a, b: torch.div(a, b, rounding_mode="trunc"), 0.1)):
            expected = function(torch.arange(320.0) - 20, divisors[:, None])
            for score in (lambda s, b, h, i, j: s + function(i - 20.0, divisors[h]),
                          lambda s, b, h, i, j: s + of_numbers(function, h, i - 20.0)):
                _, lse = ft.attention(q, k, k, score=score, return_lse=True)
                self.assertLess((lse[0] - expected).abs().max().item(), bound)

    def test_gradients_of_remainders(self):
        q, k, v = (numbers(1, 2, 40, 32, dtype=torch.float32) for _ in range(3))
        step = torch.tensor([0.7, -1.3]).requires_grad_()
        out = ft.attention(q, k, v, score=lambda s, b, h, i, j: s % step[h])
        scores = q.double() @ k.double().mT * 32 ** -0.5
        wanted = (scores % step.double()[:, None, None]).softmax(-1) @ v.double()
        self.close((out, *self.gradients([out], (q, k, v, step))),
                   (wanted, *self.gradients([wanted], (q, k, v, step))))

    def test_gradients_of_sigmoid(self):
        """Also where the exponential in it overflows: of the score, and of a capture."""
        q, k = torch.zeros(1, 1, 4, 32), torch.zeros(1, 1, 8, 32)
        q[..., 0], k[..., 0] = 1.0, torch.tensor([0.0, 1.0, -1.0, 88.0, -88.0, -100.0, 3e4, -3e4])
        v, table = torch.randn(1, 1, 8, 32), torch.tensor([0.5, -200.0, 200.0, -1e30])
        inputs = [tensor.requires_grad_() for tensor in (q, k, v, table)]
        out = ft.attention(q, k, v, scale=1.0, score=lambda s, b, h, i, j:
                           torch.sigmoid(s) + torch.sigmoid(table[i] * (j - 2)))
        given = (table.double()[:, None] * (torch.arange(8) - 2)).sigmoid()
        wanted = ((q.double() @ k.double().mT).sigmoid() + given).softmax(-1) @ v.double()
        self.close((out, *self.gradients([out], inputs)),
                   (wanted, *self.gradients([wanted], inputs)), 1e-5)

    def test_compile(self):
        def function(q, k, v):
            return ft.attention(q.sin(), k, v, mask="causal-top-left",
                                score=fovea.Score("softcap", [30.0])).cos()

        compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
        q, k, v = (numbers(1, 2, 40, 32) for _ in range(3))
        results = function(q, k, v), compiled(q, k, v)
        self.assertTrue(torch.equal(*results))
        for one, other in zip(*(self.gradients([r], (q, k, v)) for r in results)):
            self.assertTrue(torch.equal(one, other))
        # A scale that is a symbol.
        scaled = lambda q, k, v: ft.attention(q, k, v, scale=q.shape[-1] ** -0.25)  # noqa: E731
        compiled = torch.compile(scaled, fullgraph=True, backend="aot_eager", dynamic=True)
        self.assertTrue(torch.equal(scaled(q, k, v), compiled(q, k, v)))
        # And so are bounds of windows.
        window = lambda q, k, v, left: ft.attention(q, k, v, window=(left, 0))  # noqa: E731
        compiled = torch.compile(window, fullgraph=True, backend="aot_eager")
        for left in (3, 5, 7):
            self.assertTrue(torch.equal(window(q, k, v, left), compiled(q, k, v, left)))

    def test_numbers_in_tensors(self):
        """What is captured and has no dimensions, compiled as well."""
        q = torch.randn(1, 2, 40, 32)
        capped = lambda run: lambda cap: run(  # noqa: E731
            q, q, q, score=fovea.Score("softcap", [cap]))
        compiled = torch.compile(capped(ft.attention), fullgraph=True, backend="aot_eager")
        for cap in (2.0, 3.0):
            wanted = capped(ft.attention)(cap)
            for run in (capped(fovea.attention), capped(ft.attention), compiled):
                self.assertTrue(torch.equal(run(torch.tensor(cap)), wanted))
        cap = torch.tensor(2.0, requires_grad=True)
        scores = (q.double() @ q.double().mT * 32 ** -0.5 / cap).tanh() * cap
        self.close(*(self.gradients([out], [cap]) for out in (
            capped(ft.attention)(cap), scores.softmax(-1) @ q.double())), 1e-5)

    def test_compile_varlen(self):
        """Sequences of one side, and most rows that are symbols."""
        q, k, v = (numbers(1, 2, 40, 32) for _ in range(3))
        lengths = torch.tensor([23], dtype=torch.int32)
        for function in (
                lambda q, k, v: ft.attention(q, k, v, varlen=fovea.Varlen(
                    k=fovea.Sequences(lengths))),
                lambda q, k, v: ft.attention(q, k, v, varlen=fovea.Varlen(
                    q=fovea.Sequences(lengths), max_q=q.shape[2], max_k=k.shape[2]))):
            compiled = torch.compile(function, fullgraph=True, backend="aot_eager", dynamic=True)
            results = function(q, k, v), compiled(q, k, v)
            self.assertTrue(torch.equal(*results))
            for one, other in zip(*(self.gradients([r], (q, k, v)) for r in results)):
                self.assertTrue(torch.equal(one, other))

    def test_compile_functions(self):
        """Score functions are traced outside of graphs, which says why where there may be one
        graph alone."""
        q, k, v = (numbers(1, 2, 40, 32) for _ in range(3))
        function = lambda q, k, v: ft.attention(  # noqa: E731
            q.sin(), k, v, score=lambda s, b, h, i, j: s - 0.25 * abs(i - j)).cos()
        compiled = torch.compile(function, backend="aot_eager")
        self.assertTrue(torch.equal(function(q, k, v), compiled(q, k, v)))
        torch._dynamo.reset()  # what was compiled in parts
        with self.assertRaisesRegex(Exception, r"fovea.scores.trace\(\) them before"):
            torch.compile(function, fullgraph=True, backend="aot_eager")(q, k, v)


IN_CPP = unittest.skipUnless(_torch_library.kind == "c++", f"operators: {ft.operators()}")


class Kernels(Case):
    """Those of the operators, in C++ and in Python."""

    def test_refused(self):
        q, k, v = (numbers(1, 2, 40, 32) for _ in range(3))
        cut, other = numbers(1, 2, 30, 32), numbers(1, 2, 40, 32, dtype=torch.bfloat16)
        for kind, words, arguments, options in (
                (fovea.InvalidArgumentError,
                 r"v has shape \(1, 2, 30, 32\), not \(1, 2, 40, head_dim_v\): its seqlen_k "
                 "is 30, others' 40", (q, k, cut), {}),
                (fovea.InvalidArgumentError, r"q has shape \(2, 40, 32\), not \(batch, heads_q",
                 (q[0], k, v), {}),
                (fovea.InvalidArgumentError, "head_dim_v is 0; rows of v have at least one",
                 (q, k, v[..., :0]), {}),
                (fovea.InvalidArgumentError, "head_dim is 0, not in 1 to 576",
                 (q[..., :0], k[..., :0], v[..., :0]), {}),
                (TypeError, "k is bfloat16, not float16", (q, other, v), {}),
                (TypeError, "scale is str, not a number or an array of one", (q, k, v),
                 {"scale": "1"}),
                (TypeError, "scale: Tensor that requires a gradient.*multiply q by it", (q, k, v),
                 {"scale": torch.tensor(0.3, requires_grad=True)}),
                (fovea.InvalidArgumentError, "mask is 'causal', not one of 'none', 'causal-top",
                 (q, k, v), {"mask": "causal"}),
                (fovea.InvalidArgumentError, "unknown score program 'no-such", (q, k, v),
                 {"score": fovea.Score("no-such-program")}),
                (TypeError, "varlen.q.cumulative is int64, not int32", (q[0], k[0], v[0]),
                 {"varlen": fovea.Varlen.packed(*[torch.tensor([0, 40])] * 2, 40, 40)}),
                (fovea.InvalidArgumentError, "q is packed and varlen has no lengths of q",
                 (q[0], k[0], v[0]), {"varlen": fovea.Varlen(k=fovea.Sequences(
                     lengths=torch.tensor([40], dtype=torch.int32)), max_q=40, max_k=40)})):
            with self.subTest(words):
                with self.assertRaisesRegex(kind, words):
                    ft.attention(*arguments, **options)

    def test_refused_alike(self):
        """With gradients and without them in the words of fovea.attention."""
        q, k, v = (numbers(1, 2, 40, 32) for _ in range(3))
        counts, lists = torch.ones(1, 1, 1, dtype=torch.int32), torch.zeros(1, 1, 1, 1).int()
        packed, sums = (q[0], k[0], v[0]), torch.tensor([0, 40], dtype=torch.int32)
        for kind, words, arguments, options in (
                (TypeError, "^window is int, not a fovea.Window", (), {"window": 5}),
                (TypeError, "^window is list, not a fovea.Window", (), {"window": [1, 2]}),
                (fovea.InvalidArgumentError, "^window.left_alignment is 3, not one of 'top-left'",
                 (), {"window": (1, 2, 3)}),
                (fovea.InvalidArgumentError, r"^window is \(1, 2, .*\), not \(left, right\)", (),
                 {"window": (1, 2, "top-left", "top-left", 3)}),
                (TypeError, "^window.left is 1.5, not a whole number", (), {"window": (1.5, 2)}),
                (fovea.InvalidArgumentError, f"^window.left is {2**70}, not in -", (),
                 {"window": (2**70, 0)}),
                (TypeError, "^blocks is int, not a fovea.Blocks", (), {"blocks": 3}),
                (TypeError, "^blocks.kv_num_blocks: list is no array", (),
                 {"blocks": fovea.Blocks([[[1]]], [[[[0]]]])}),
                (TypeError, "^varlen is int, not a fovea.Varlen", (), {"varlen": 3}),
                (TypeError, "^varlen.q is int, not a fovea.Sequences", (),
                 {"varlen": fovea.Varlen(3)}),
                (fovea.InvalidArgumentError, "^varlen.max_k is 3, and k has 40 rows; give None", (),
                 {"varlen": fovea.Varlen(max_k=3)}),
                (fovea.InvalidArgumentError, "^varlen.max_q is -1, and q has 40 rows; give None",
                 (), {"varlen": fovea.Varlen(max_q=-1)}),
                (fovea.InvalidArgumentError, "^k is packed and varlen has no lengths of k",
                 (q, k[0], v[0]), {"varlen": fovea.Varlen(max_k=40)}),
                (fovea.InvalidArgumentError, "^q is packed and varlen has no max_q",
                 (q[0], k[0], v[0]), {"varlen": fovea.Varlen()}),
                (fovea.InvalidArgumentError, r"^q has shape .*\); packed sequences take varlen=",
                 (q[0], k, v), {}),
                (TypeError, "^varlen.k.lengths: list is no array", (),
                 {"varlen": fovea.Varlen(k=fovea.Sequences([40]))}),
                (TypeError, "^score is ellipsis, not a fovea.Score", (), {"score": ...}),
                (TypeError, "^score is Tensor, not a fovea.Score", (), {"score": lists}),
                (TypeError, r"^score.captures\[0\]: NoneType is no array", (),
                 {"score": fovea.Score("softcap", [None])}),
                (TypeError, "^sinks: float is no array", (), {"sinks": 0.5}),
                (TypeError, "^v: its elements are float64, not one of float16, bfloat16, float32$",
                 (q, k, v.double()), {}),
                (TypeError, "^k: its elements are complex64, not one of float16, bfloat16, flo",
                 (q, k.to(torch.complex64), v), {}),
                (TypeError, "^sinks: its elements are float64, not float32$", (),
                 {"sinks": torch.zeros(2).double()}),
                (TypeError, "^varlen.k.lengths: its elements are int16, not int32$", (),
                 {"varlen": fovea.Varlen(k=fovea.Sequences(torch.tensor([3]).short()))}),
                (TypeError, "^blocks.kv_indices: its elements are uint8, not int32$", (),
                 {"blocks": fovea.Blocks(counts, lists.byte())}),
                (TypeError, r"^score.captures\[0\]: its elements are float8_e5m2, not one of "
                 "float32, float16, bfloat16, int32, bool$", (),
                 {"score": fovea.Score("alibi", [torch.ones(1, 2).to(torch.float8_e5m2)])}),
                (TypeError, "^splits is 1.5, not a whole number", (), {"splits": 1.5}),
                (TypeError, "^splits is 0.0, not a whole number", (), {"splits": 0.0}),
                (fovea.InvalidArgumentError, "^splits is -1, not in 0 to 1024; give 0, and the", (),
                 {"splits": -1}),
                (fovea.InvalidArgumentError, f"^splits is {2**70}, not in 0 to 1024; give 0", (),
                 {"splits": 2**70}),
                (TypeError, r"^window.left is tensor\(3.\), not a whole number", (),
                 {"window": (torch.tensor(3.0), 0)}),
                (fovea.InvalidArgumentError, "^varlen.max_q is -5, not in 0 to", packed,
                 {"varlen": fovea.Varlen.packed(sums, sums, -5, 40)}),
                (fovea.InvalidArgumentError, f"^varlen.max_q is {2**70}, not in 0 to", packed,
                 {"varlen": fovea.Varlen.packed(sums, sums, 2**70, 40)}),
                (fovea.InvalidArgumentError, "^score.program is empty; give", (), {"score": ""}),
                (fovea.InvalidArgumentError, r"^score.captures\[0\] is 1099511627776, not in -", (),
                 {"score": fovea.Score("softcap", [2**40])}),
                (fovea.InvalidArgumentError, "^mask is b'none', not one of 'none'", (),
                 {"mask": b"none"}),
                (fovea.InvalidArgumentError, r"^sinks has shape \(3,\), not \(2,\)", (),
                 {"sinks": torch.zeros(3)}),
                (fovea.InvalidArgumentError, "^mask is None, not one of 'none'", (),
                 {"mask": None}),
                (fovea.InvalidArgumentError, r"^q has shape \(\), not \(batch, heads_q, seq",
                 (q[0, 0, 0, 0], k, v), {}),
                (fovea.InvalidArgumentError, r"^k has shape \(\), not \(batch, heads_k, seq",
                 (q, k[0, 0, 0, 0], v), {}),
                (fovea.InvalidArgumentError, r"^v has shape \(32,\), not \(batch, heads_k, seq",
                 (q, k, v[0, 0, 0]), {})):
            with self.subTest(words):
                arguments = arguments or (q, k, v)
                with self.assertRaisesRegex(kind, words):
                    ft.attention(*arguments, **options)
                for function in (ft.attention, fovea.attention):
                    with torch.no_grad(), self.assertRaisesRegex(kind, words):
                        function(*arguments, **options)
                if not isinstance(options.get("sinks"), float):  # nor where an operator is seen
                    with torch.autograd.profiler.profile(), self.assertRaisesRegex(kind, words):
                        ft.attention(*arguments, **options)
        for score in (fovea.Score("softcap", [fovea.Capture(2.0)]),
                      fovea.Score("bias", [fovea.Capture(counts)])):
            for context in (torch.enable_grad(), torch.no_grad()):
                with context, self.assertRaisesRegex(TypeError, "is a fovea.Capture, and fovea.t"):
                    ft.attention(q, k, v, score=score)
        with self.assertRaisesRegex(TypeError, "^k is list, not a tensor of PyTorch's"):
            ft.attention(q, [1], v)
        for other, words in (
                (q.detach().to_sparse(), "q is a tensor of torch.sparse_coo, .*to_dense"),
                (torch.nested.nested_tensor([q[0].detach()]), "q is a nested tensor; .*varlen=")):
            for function in (ft.attention, fovea.attention, ft.flex_attention):
                for context in (torch.enable_grad(), torch.no_grad()):
                    with context, self.assertRaisesRegex(TypeError, words):
                        function(other, k.detach(), v.detach())
        array = q.detach().numpy()
        for context in (torch.enable_grad(), torch.autocast("cpu")):
            with context, self.assertRaisesRegex(TypeError, "^q is ndarray, not a tensor of"):
                ft.attention(array, array, array)
        for p in ("0.5", None, torch.ones(2)):
            for context in (torch.enable_grad(), torch.no_grad()):
                with context, self.assertRaisesRegex(TypeError, "^dropout_p is .*, not a number"):
                    ft.attention(q, k, v, dropout_p=p)
        # Of the operators' own arguments, too, which graphs have.
        for run in (operators.forward, operators._run_forward):
            with torch.no_grad(), self.assertRaisesRegex(
                    Exception, "varlen.max_k is 3, and k has 40 rows; give None"):
                run(q, k, v, 0.2, "none", "", "", "", None, None, 0.0, None, "", None,
                    [-1, 3, 0, 0], 0, False)

    def test_numbers(self):
        """Of NumPy and PyTorch, where numbers are, with gradients and without."""
        q, k, v = (numbers(1, 2, 40, 32) for _ in range(3))
        packed, sums = (q[0], k[0], v[0]), torch.tensor([0, 40], dtype=torch.int32)
        counts, lists = torch.ones(1, 1, 1, dtype=torch.int32), torch.zeros(1, 1, 1, 1).int()

        def options(kind):
            yield (q, k, v), {"window": (kind(3), 0)}
            yield (q, k, v), {"splits": kind(2)}
            yield (q, k, v), {"varlen": fovea.Varlen(max_q=kind(40), max_k=kind(40))}
            yield packed, {"varlen": fovea.Varlen.packed(sums, sums, kind(40), kind(40))}
            yield (q, k, v), {"blocks": fovea.Blocks(
                counts, lists, q_num_blocks=counts, q_indices=lists,
                block_size=(kind(128), kind(128)))}
            yield (q, k, v), {"window": fovea.Window(None, kind(0)), "scale": kind(1)}

        for kind in (np.int64, np.array, torch.tensor):
            for (inputs, wanted), (_, given) in zip(options(int), options(kind), strict=True):
                with self.subTest(given):
                    plain = ft.attention(*inputs, **wanted)
                    self.assertTrue(torch.equal(plain, ft.attention(*inputs, **given)))
                    with torch.no_grad():
                        for function in (ft.attention, fovea.attention):
                            self.close([function(*inputs, **given)], [plain])
        # Arrays of NumPy's too, wherever there are tensors but q, k and v.
        sinks, lengths = torch.randn(2), torch.tensor([23], dtype=torch.int32)
        features = lambda as_given: {  # noqa: E731
            "sinks": as_given(sinks), "varlen": fovea.Varlen(k=fovea.Sequences(as_given(lengths))),
            "blocks": fovea.Blocks(as_given(counts), as_given(lists), None, None,
                                   as_given(counts), as_given(lists))}
        plain = ft.attention(q, k, v, **features(lambda tensor: tensor))
        wanted = self.gradients([plain], (q, k, v))
        given = features(lambda tensor: tensor.numpy())
        for seen in (False, True):
            with torch.autograd.profiler.profile() if seen else torch.enable_grad():
                got = ft.attention(q, k, v, **given)
                self.close((got, *self.gradients([got], (q, k, v))), (plain, *wanted), 1e-6)
            with torch.no_grad():
                self.close([ft.attention(q, k, v, **given)], [plain])
        for softcap in (np.float32(2), np.float64(2)):
            score = fovea.Score("softcap", [softcap])
            with torch.no_grad():
                self.close([fovea.attention(q, k, v, score=score)],
                           [ft.attention(q, k, v, score=fovea.Score("softcap", [2.0]))])

    def test_other_arrays(self):
        """Of classes that are not NumPy's own, and read-only ones, with gradients and without."""
        class Other:
            def __init__(self, array, **changes):
                self.array, self.dtype = array, array.dtype
                self.__array_interface__ = {**array.__array_interface__, **changes}

        def fixed(array):
            array = array.copy()
            array.flags.writeable = False
            return array

        q, k, v = (numbers(1, 2, 40, 32, dtype=torch.bfloat16) for _ in range(3))
        bias, halves = torch.randn(1, 2, 40, 40), torch.randn(1, 2, 40, 40, dtype=torch.bfloat16)
        of_halves = Other(halves.view(torch.int16).numpy(), typestr="<V2")
        of_halves.dtype = "bfloat16"
        lengths = torch.tensor([23], dtype=torch.int32)
        for capture, kinds in ((bias, [Other(bias.numpy()), fixed(bias.numpy())]),
                               (halves, [of_halves])):
            run = lambda bias, lengths: ft.attention(  # noqa: E731
                q, k, v, score=fovea.Score("bias", [bias]),
                varlen=fovea.Varlen(k=fovea.Sequences(lengths)))
            wanted = run(capture, lengths)
            for given in kinds:
                for make in (Other, fixed):
                    for context in (torch.enable_grad(), torch.no_grad()):
                        with context, warnings.catch_warnings():
                            warnings.simplefilter("error")
                            self.close([run(given, make(lengths.numpy()))], [wanted], 1e-6)
        with self.assertRaisesRegex(TypeError, "elements are float64, not one of float32, float16"):
            run(bias.double().numpy(), lengths)

    @IN_CPP
    def test_same(self):
        """Both give the same bits in the same places."""
        q, k, v = numbers(1, 4, 40, 32), numbers(1, 2, 50, 32), numbers(1, 2, 50, 64)
        sums = torch.tensor([0, 10, 40], dtype=torch.int32)
        packed = [numbers(2, 40, 32) for _ in range(3)]
        bias, sinks = numbers(1, 4, 40, 50, dtype=torch.float32), numbers(4, dtype=torch.float32)
        blocks = [torch.tensor([[[1]]], dtype=torch.int32),
                  torch.tensor([[[[0]]]], dtype=torch.int32)] * 2
        plain = dict(scale=0.2, mask="none", window="", score="", score_text="", captures=None,
                     sinks=None, dropout_p=0.0, seed=None, listed="", lists=None,
                     sizes=[-1, -1, 0, 0])
        for inputs, options in (
                ((q, k, v), {"mask": "causal-bottom-right"}),
                ((q.mT.contiguous().mT, k, v), {"window": "7:inf:top-left:bottom-right"}),
                ((q, k, v), {"score": "bias", "captures": [bias]}),
                ((q, k, v), {"score": "softcap", "captures": [torch.tensor(20.0)]}),
                ((q, k, v), {"sinks": sinks}),
                ((q, k, v), {"dropout_p": 0.3, "seed": torch.tensor([5])}),
                (packed, {"listed": "q.cumulative,k.cumulative", "lists": [sums, sums],
                          "sizes": [30, 30, 0, 0]}),
                ((q, k, v), {"listed": "kv_num_blocks,kv_indices,q_num_blocks,q_indices",
                             "lists": blocks, "sizes": [-1, -1, 128, 128]})):
            with self.subTest(options), torch.no_grad():
                given = {**plain, **options}
                for deterministic in (False, True):
                    made = [run(*inputs, *given.values(), 0, deterministic)
                            for run in (operators.forward, operators._run_forward)]
                    out, lse = made[0]
                    wanted = [True] * 3 + [given["sinks"] is not None, *(
                        capture.dim() > 0 for capture in given["captures"] or ())]
                    made += [run(out, lse, *inputs, out, lse, wanted, *given.values(),
                                 True)
                             for run in (operators.backward, operators._run_backward)]
                    for one, other in zip((*made[0], *made[2]), (*made[1], *made[3]),
                                          strict=True):
                        self.assertTrue(torch.equal(one, other))
                        self.assertEqual((one.stride(), one.dtype),
                                         (other.stride(), other.dtype))

    def said(self, code, **variables):
        """What a process of its own says."""
        ran = subprocess.run([sys.executable, "-B", "-c", code], text=True, check=False,
                             env={**os.environ, **variables}, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT)
        return ran.stdout.strip()

    def test_choice(self):
        """Without the library, the operators are those in Python, and a line says so; what
        is there and cannot be used is an error."""
        told = ("import logging; logging.basicConfig(level=logging.INFO, format='%(message)s'); "
                "import torch; {}; import fovea.torch as ft; print(ft.operators())")
        missing = "fovea._native.LIBRARIES = __import__('pathlib').Path('/none')"
        with tempfile.TemporaryDirectory() as folder:
            broken = pathlib.Path(folder, "broken.so")
            broken.write_bytes(b"\x7fELF")
            for change, variables, words in (
                    (f"import fovea; {missing}", {}, "^PyTorch's operators are those in Python: "
                     "there is no /none/lib.*\npython: there is no /none/lib"),
                    (f"import fovea; {missing}", {"FOVEA_TORCH_OPERATORS": "c++"},
                     "ImportError: fovea.torch: FOVEA_TORCH_OPERATORS is 'c\\+\\+', and there is "
                     "no"),
                    ("torch.__version__ = '2.9.1'", {"FOVEA_TORCH_LIBRARY": str(broken)},
                     "PyTorch is 2.9.1, and those in C\\+\\+ need 2.10\npython"),
                    ("pass", {"FOVEA_TORCH_LIBRARY": str(broken)},
                     "ImportError: fovea.torch: .*broken.so cannot be used: .*"
                     "FOVEA_TORCH_LIBRARY names another file"),
                    ("pass", {"FOVEA_TORCH_OPERATORS": "python"}, "^python: FOVEA_TORCH_OPERATORS"),
                    ("pass", {"FOVEA_TORCH_OPERATORS": "rust"}, "is 'rust', not 'c\\+\\+' or")):
                variables = {"FOVEA_TORCH_OPERATORS": "", **variables}
                with self.subTest(words):
                    self.assertRegex(self.said(told.format(change), **variables), words)

    @IN_CPP
    def test_without_python(self):
        """AOTInductor's model, run here and by a program without Python."""
        class Model(torch.nn.Module):
            def forward(self, q, k, v):
                return ft.attention(q.sin(), k, v, mask="causal-top-left",
                                    score=fovea.Score("softcap", [30.0])).cos()

        inputs = [torch.randn(1, 2, 40, 32, dtype=torch.float16) for _ in range(3)]
        wanted = Model()(*inputs)
        with tempfile.TemporaryDirectory() as folder, torch.no_grad(), \
                warnings.catch_warnings():
            warnings.simplefilter("ignore")
            package = torch._inductor.aoti_compile_and_package(
                torch.export.export(Model(), tuple(inputs)), package_path=f"{folder}/model.pt2")
            self.assertTrue(torch.equal(torch._inductor.aoti_load_package(package)(*inputs),
                                        wanted))
            torch.save(inputs, f"{folder}/in.pt")
            source, program = pathlib.Path(__file__).parent / "aoti_main.cpp", f"{folder}/main"
            home = pathlib.Path(torch.__file__).parent
            subprocess.run(
                [os.environ.get("CXX", "c++"), "-std=c++20", "-w", "-isystem", home / "include",
                 "-isystem", home / "include/torch/csrc/api/include", source, "-o", program,
                 f"-L{home}/lib", f"-Wl,-rpath,{home}/lib", "-ltorch", "-ltorch_cpu", "-lc10",
                 "-ldl"], check=True)
            subprocess.run([program, _torch_library.reason, package, f"{folder}/in.pt",
                            f"{folder}/out.pt"], check=True)
            self.assertTrue(torch.equal(torch.load(f"{folder}/out.pt"), wanted))


if __name__ == "__main__":
    unittest.main()
