#!/usr/bin/env python3
"""fovea.torch on the simulated device, against PyTorch's own attention in fp64.

Kernels are compiled on demand. Where PyTorch is missing nothing is run.
"""

import contextlib
import copy
import io
import logging
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest
import warnings
from unittest import mock

try:
    import torch
except ImportError:
    print("not run: PyTorch is not installed")
    sys.exit(77)
import torch.nn.functional as F
from torch.nn.attention import flex_attention as flex

import fovea
import fovea.torch as ft
from fovea import _torch_library, _torch_operators as operators


def numbers(*shape, dtype=torch.float16):
    return torch.randn(*shape, dtype=dtype).requires_grad_()


def exact(q, k, v, mask="none", bias=None):
    """out and lse in fp64."""
    q, k, v = (tensor.double() for tensor in (q, k, v))
    k, v = (tensor.repeat_interleave(q.shape[1] // k.shape[1], 1) for tensor in (k, v))
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    if bias is not None:
        scores = scores + bias.double()
    if mask == "causal-top-left":
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, -math.inf)
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def close(self, got, expected, bound=4e-3):
        for one, other in zip(got, expected, strict=True):
            self.assertEqual(one.shape, other.shape)
            error = (one.double() - other.double()).abs().max().item()
            self.assertLess(error, bound * max(1, other.abs().max().item()))

    def gradients(self, results, inputs):
        loss = sum((result * result).sum() for result in results)
        return torch.autograd.grad(loss, inputs)


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
        with self.assertRaisesRegex(TypeError, "k: .*device 'meta', neither"):
            fovea.attention(q.detach(), k.detach().to("meta"), v.detach())

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
                (TypeError, "k is bfloat16, not float16", (q, other, v), {}),
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


class FlashAttn(Case):
    def test_functions(self):
        from fovea import flash_attn
        qkv = numbers(1, 40, 3, 2, 32)
        slopes = torch.tensor([0.5, 0.25])
        i = torch.arange(40)
        bias = -slopes[:, None, None] * (i[:, None] - i).abs()
        hidden = torch.zeros(40, 40).masked_fill(
            (i[:, None] < i) | (i[:, None] - 9 > i), -math.inf)
        out, lse, none = flash_attn.flash_attn_qkvpacked_func(
            qkv, causal=True, window_size=(9, -1), alibi_slopes=slopes,
            return_attn_probs=True)
        wanted = exact(*(t.transpose(1, 2) for t in qkv.unbind(2)), bias=bias + hidden)
        self.assertIsNone(none)
        self.close((out.transpose(1, 2), lse, *self.gradients([out], [qkv])),
                   (*wanted, *self.gradients(wanted[:1], [qkv])))
        capped = flash_attn.flash_attn_func(*qkv.unbind(2), softcap=1e4)
        self.close([capped.transpose(1, 2)],
                   [exact(*(t.transpose(1, 2) for t in qkv.unbind(2)))[0]])
        sums = torch.tensor([0, 10, 40], dtype=torch.int32)
        packed = flash_attn.flash_attn_varlen_kvpacked_func(
            qkv[0, :, 0], qkv[0, :, 1:], sums, sums, 30, 30)
        one = flash_attn.flash_attn_kvpacked_func(qkv[:, 10:, 0], qkv[:, 10:, 1:])
        self.close([packed[10:]], [one[0]])
        with self.assertRaisesRegex(fovea.NotFoundError, "block_table"):
            flash_attn.flash_attn_varlen_func(packed, packed, packed, sums, sums, 30, 30,
                                              block_table=sums)


class Flex(Case):
    """FlexAttention's own examples, against PyTorch's math in fp64."""

    def exact(self, q, k, v, score_mod, mask_mod, scale=None):
        from torch._higher_order_ops.flex_attention import math_attention
        out, lse, _ = math_attention(
            *(t.double() for t in (q, k, v)), score_mod or flex._identity,
            (None, mask_mod or flex.noop_mask), scale or q.shape[-1] ** -0.5, {})
        return out, lse * math.log(2)

    def examples(self, heads, rows):
        slopes = torch.exp2(-torch.arange(1, heads + 1) * 8.0 / heads).requires_grad_()
        table = torch.randn(2 * rows, heads).requires_grad_()
        bias = torch.randn(rows, rows, dtype=torch.float16).requires_grad_()
        documents, prefix = torch.arange(rows) // 41, torch.tensor([20, 100])
        factor = torch.tensor(0.5, requires_grad=True)

        def causal(b, h, i, j):
            return i >= j

        def window(b, h, i, j):
            return (i >= j) & (i - j <= 30)

        def document(b, h, i, j):
            return documents[i] == documents[j]

        return {  # score_mod, mask_mod, what has a gradient
            "alibi": (lambda s, b, h, i, j: s + slopes[h] * (j - i), causal, [slopes]),
            "alibi by the head": (lambda s, b, h, i, j: s + torch.exp2(
                -((h + 1) * 8.0 / heads)) * (j - i).abs(), None, []),
            "softcap": (lambda s, b, h, i, j: 5 * torch.tanh(s / 5), None, []),
            "sliding window": (None, window, []),
            "documents": (None, flex.and_masks(causal, document), []),
            "prefix lm": (None, flex.or_masks(causal, lambda b, h, i, j: j < prefix[b]),
                          []),
            "relative": (lambda s, b, h, i, j: s + table[j - i + rows, h], None, [table]),
            "bias": (lambda s, b, h, i, j: s * factor + bias[i, j], causal,
                     [factor, bias]),
            "causal as a score": (lambda s, b, h, i, j: torch.where(i >= j, s, -math.inf),
                                  None, []),
        }

    def mask_of(self, mask_mod, name, rows, **options):
        return flex.create_block_mask(
            mask_mod, 2 if name == "prefix lm" else None, None, rows, rows, device="cpu",
            **options) if mask_mod else None

    def test_examples(self):
        rows = 150
        for name, (score_mod, mask_mod, learnt) in self.examples(4, rows).items():
            with self.subTest(name):
                q = numbers(2, 4, rows, 32)
                k, v = (numbers(2, 2, rows, 32) for _ in range(2))
                inputs = q, k, v, *learnt
                got = ft.flex_attention(
                    q, k, v, score_mod, self.mask_of(mask_mod, name, rows),
                    enable_gqa=True, return_lse=True)
                wanted = self.exact(q, k, v, score_mod, mask_mod)
                self.close((*got, *self.gradients(got, inputs)),
                           (*wanted, *self.gradients(wanted, inputs)))

    def test_compiled_numbers(self):
        """One that changes, and one that a length makes, have other programs."""
        def function(q, k, v, most):
            return ft.flex_attention(q, k, v, lambda s, b, h, i, j: torch.where(
                (j < most) & (i - j < q.shape[2] - 3), s, -math.inf))

        torch._dynamo.reset()
        compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
        for rows, most in ((40, 5), (40, 9), (33, 9), (21, 7)):
            inputs = *(numbers(1, 2, rows, 16) for _ in range(3)), most
            self.assertTrue(torch.equal(compiled(*inputs), function(*inputs)))

    def test_compiled(self):
        """One graph, forward and backward, with the bits that it has by itself; captured
        tensors and the BlockMask are read anew, and other lengths are the same graph."""
        rows = 150
        examples = self.examples(4, rows)
        lines = []
        examples["plain"] = None, None, []
        for name in ("documents", "relative", "plain"):
            score_mod, mask_mod, learnt = examples[name]
            with self.subTest(name):
                def function(q, k, v, blocks):
                    out, aux = ft.flex_attention(
                        q.neg(), k, v, score_mod, blocks, enable_gqa=True,
                        return_aux=flex.AuxRequest(lse=True))
                    return out.neg(), aux.lse

                torch._dynamo.reset()
                compiled = torch.compile(function, fullgraph=True, backend="aot_eager")
                q = numbers(2, 4, rows, 32)
                k, v = (numbers(2, 2, rows, 32) for _ in range(2))
                blocks = self.mask_of(mask_mod, name, rows)
                wanted, got = function(q, k, v, blocks), compiled(q, k, v, blocks)
                inputs = q, k, v, *learnt
                wanted = *wanted, *self.gradients(wanted, inputs)
                got = *got, *self.gradients(got, inputs)
                for one, other in zip(got[:5], wanted[:5]):
                    self.assertTrue(torch.equal(one, other))
                self.close(got[5:], wanted[5:])  # sums, in any order
        with fovea.Library(hip="sim", compile="auto", log="dispatch", log_to=lines.append
                           ) as library, mock.patch.object(
                               fovea._attention, "default_library", lambda: library):
            _torch_library.forget()
            compiled(q, k, v, blocks)
        self.assertTrue(lines)
        self.assertFalse([line for line in lines if "score" in line], lines)
        factor = torch.tensor([0.5, 2.0])

        def scaled(q):
            return ft.flex_attention(q, q, q, lambda s, b, h, i, j: s * factor[h])

        torch._dynamo.reset()
        torch._dynamo.utils.counters.clear()
        compiled = torch.compile(scaled, fullgraph=True, backend="aot_eager", dynamic=True)
        for length in (40, 50):
            q = numbers(1, 2, length, 32)
            self.assertTrue(torch.equal(compiled(q), scaled(q)))
            factor.mul_(2)
        self.assertEqual(torch._dynamo.utils.counters["stats"]["unique_graphs"], 1)

    def test_operator(self):
        """PyTorch's own, served: its function, which has no gradients on the CPU, and the
        operator beneath, which has."""
        from torch._higher_order_ops.flex_attention import flex_attention as operator
        rows = 150
        for name in ("alibi", "bias"):
            score_mod, mask_mod, learnt = self.examples(2, rows)[name]
            q, k, v = (numbers(1, 2, rows, 32) for _ in range(3))
            blocks = self.mask_of(mask_mod, name, rows)
            wanted = self.exact(q, k, v, score_mod, mask_mod)
            before = ft.calls()
            with ft.enable(fallback=False):
                with torch.no_grad(), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    self.close([flex.flex_attention(q.detach(), k.detach(), v.detach(),
                                                    score_mod, blocks)], wanted[:1])

                def of_buffers(s, b, h, i, j, *buffers):
                    if name == "alibi":
                        return s + buffers[0][h] * (j - i)
                    return s * buffers[0] + buffers[1][i, j]

                out, lse, _ = operator(q, k, v, of_buffers, blocks.as_tuple(), 32 ** -0.5,
                                       {}, tuple(learnt), ())
                got = out, lse * math.log(2)
                inputs = q, k, v, *learnt
                self.close((*got, *self.gradients(got, inputs)),
                           (*wanted, *self.gradients(wanted, inputs)))
            self.assertEqual({key: number - before.get(key, 0)
                              for key, number in ft.calls().items() if "flex" in key[0]},
                             {("flex_attention", "fovea"): 2,
                              ("flex_attention_backward", "fovea"): 1})

    def test_refused(self):
        q = numbers(1, 2, 150, 32)
        small = self.mask_of(lambda b, h, i, j: i >= j, "", 150, BLOCK_SIZE=64)
        other = self.mask_of(lambda b, h, i, j: i >= j, "", 140)
        for kind, words, options in (
                (fovea.InvalidArgumentError, r"\(64, 64\).* multiples of 128",
                 {"block_mask": small}),
                (fovea.InvalidArgumentError, r"\(140, 140\).*\(150, 150\)",
                 {"block_mask": other}),
                (fovea.InvalidArgumentError, "kernel_options has BLOCK_M",
                 {"kernel_options": {"BLOCK_M": 64}}),
                (fovea.NotFoundError, "max_scores",
                 {"return_aux": flex.AuxRequest(max_scores=True)}),
                (fovea.scores.TraceError, "test_torch.py.*a branch on",
                 {"score_mod": lambda s, b, h, i, j: s if i > j else s * 2}),
                (fovea.scores.TraceError, "torch.erf is no part of a score program",
                 {"score_mod": lambda s, b, h, i, j: torch.erf(s)})):
            with self.subTest(words), self.assertRaisesRegex(kind, words):
                ft.flex_attention(q, q, q, **options)
            compiled = torch.compile(ft.flex_attention, fullgraph=True, backend="eager")
            if "erf" in words:
                words = f"test_torch.py:.*{words}"
            elif "150" not in words:
                continue
            with self.subTest(f"compiled: {words}"), \
                    self.assertRaisesRegex(RuntimeError, words):
                compiled(q, q, q, **options)
        with self.assertRaisesRegex(fovea.InvalidArgumentError, "enable_gqa=True"):
            ft.flex_attention(q, q[:, :1], q[:, :1])
        with ft.enable(), self.assertLogs("fovea", logging.WARNING) as log, \
                warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            flex.flex_attention(*(q.detach().clone() for _ in range(3)), block_mask=small)
        self.assertIn("flex_attention: block_mask has blocks of (64, 64)", log.output[0])


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
        with ft.enable(fallback=False):
            got = torch.ops.aten._flash_attention_forward(
                q, k, v, None, None, 30, 40, 0.0, True, False)[0]
        bias = torch.zeros(30, 40).masked_fill(
            torch.ones(30, 40, dtype=torch.bool).triu(11), -math.inf)
        wanted = exact(*(t.transpose(1, 2) for t in (q, k, v)), bias=bias)[0]
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
