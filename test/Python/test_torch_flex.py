#!/usr/bin/env python3
"""FlexAttention and flash-attn's functions by fovea, against PyTorch in fp64 (torch_case.py)."""

import logging
import math
import unittest
import warnings
from unittest import mock

from torch_case import Case, exact, numbers

import numpy as np
import torch
from torch.nn.attention import flex_attention as flex

import fovea
import fovea.torch as ft
from fovea import _torch_library


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

    def test_numbers(self):
        """Those of NumPy and PyTorch are taken, and none is cut off."""
        from fovea import flash_attn
        q, k, v = (torch.randn(1, 40, 2, 32) for _ in range(3))
        plain = flash_attn.flash_attn_func(q, k, v, window_size=(3, 0))
        for window in ((np.int64(3), 0), [torch.tensor(3), 0]):
            self.assertTrue(torch.equal(plain, flash_attn.flash_attn_func(
                q, k, v, window_size=window)))
        for kind, words, window in (
                (TypeError, "window_size is 1.5, not a whole number", (1.5, 0)),
                (fovea.InvalidArgumentError, r"window_size is \(1,\), not \(left, right\)", (1,))):
            with self.assertRaisesRegex(kind, words):
                flash_attn.flash_attn_func(q, k, v, window_size=window)
        cached = flash_attn.flash_attn_with_kvcache(q[:, :1], k, v, cache_seqlens=7)
        for lengths in (np.int64(7), [7], torch.tensor(7), torch.tensor([7])):
            self.assertTrue(torch.equal(cached, flash_attn.flash_attn_with_kvcache(
                q[:, :1], k, v, cache_seqlens=lengths)))
        for kind, words, lengths in (
                (TypeError, "cache_seqlens is 7.5, not of whole numbers", 7.5),
                (ValueError, r"cache_seqlens has shape \(2,\), not \(1,\)", [7, 8])):
            with self.assertRaisesRegex(kind, words):
                flash_attn.flash_attn_with_kvcache(q[:, :1], k, v, cache_seqlens=lengths)


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
                (TypeError, "block_mask is function, not a BlockMask; create_block_mask",
                 {"block_mask": lambda b, h, i, j: i >= j}),
                (fovea.InvalidArgumentError, "kernel_options has BLOCK_M",
                 {"kernel_options": {"BLOCK_M": 64}}),
                (fovea.NotFoundError, "max_scores",
                 {"return_aux": flex.AuxRequest(max_scores=True)}),
                (fovea.scores.TraceError, "test_torch_flex.py.*a branch on",
                 {"score_mod": lambda s, b, h, i, j: s if i > j else s * 2}),
                (fovea.scores.TraceError, "torch.erf is no part of a score program",
                 {"score_mod": lambda s, b, h, i, j: torch.erf(s)})):
            with self.subTest(words), self.assertRaisesRegex(kind, words):
                ft.flex_attention(q, q, q, **options)
            compiled = torch.compile(ft.flex_attention, fullgraph=True, backend="eager")
            if "erf" in words:
                words = f"test_torch_flex.py:.*{words}"
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


if __name__ == "__main__":
    unittest.main()
