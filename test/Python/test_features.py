#!/usr/bin/env python3
"""Features of kernels and score programs in Python, compiled on demand, against fp64.

    test_features.py PACKAGE [unittest's arguments]

fovea_case.py says what PACKAGE is.
"""

import ctypes
import re
import unittest
from unittest import mock

from fovea_case import Case, OnDevice, compiling, numbers

import numpy as np

import fovea
from fovea import _attention, scores
from reference import attention as oracle


class Features(Case):
    """Each with kernels that are compiled for it."""

    def setUp(self):
        self.all = [numbers(1, 4, 40, 32, seed=i) for i in range(4)]

    def both(self, *, wanted={}, **options):
        return self.passes(*self.all, library=compiling,
                           expected=oracle(*self.all, **wanted), **options)

    def test_sinks_and_gradients_of_lse(self):
        sinks, dlse = numbers(4, dtype=np.float32), numbers(1, 4, 40, dtype=np.float32)
        wanted = {"sinks": sinks, "dlse": dlse}
        _, _, grads = self.both(sinks=sinks, dlse=dlse, wanted=wanted)
        self.close(grads.dsinks, oracle(*self.all, **wanted)[5])

    def test_dropout(self):
        seed, used = np.array([2**40 + 3], np.uint64), np.zeros(1, np.uint64)
        dropout = fovea.Dropout(0.3, seed=seed, offset=5)
        mask = fovea.dropout_mask(np.zeros((1, 4, 40, 40), np.float16), dropout,
                                  library=compiling)
        self.assertEqual(set(np.unique(mask)), {np.float16(-.5), np.float16(.5)})
        self.assertLess(abs((mask < 0).mean() - 0.3), 0.02)
        self.both(dropout=dropout, wanted={"keep": (mask > 0) / 0.7})
        fovea.attention(*self.all[:3], library=compiling, dropout=fovea.Dropout(
            0.3, seed=seed, offset=5, offset_out=used))
        self.assertEqual(used[0], 5)

    def test_scores(self):
        self.both(score=fovea.Score("softcap", [2.0]), wanted={"cap": 2.0})
        bias = numbers(1, 1, 40, 40)  # one for all heads
        whole = np.broadcast_to(bias, (1, 4, 40, 40))
        gradient = np.ones((1, 4, 40, 40), np.float32)
        out, lse, _ = self.both(score=fovea.Score("bias", [whole]),
                                wanted={"bias": whole})
        fovea.attention_backward(
            self.all[3], *self.all[:3], out, lse, library=compiling,
            score=fovea.Score("bias", [fovea.Capture(whole, gradient)]))
        self.close(gradient - 1, oracle(*self.all, bias=whole)[6])  # is added to
        for cap in (3.0, 1.0):  # a value is part of what calls have alike
            self.close(fovea.attention(*self.all[:3], library=compiling,
                                       score=fovea.Score("softcap", [cap])),
                       oracle(*self.all, cap=cap)[0])
        # A kernel at hand for rows that are not contiguous serves others as well; what
        # it lacks is compiled of the same program.
        odd = numbers(1, 4, 40, 41)[..., :40]
        fovea.attention(*self.all[:3], score=fovea.Score("bias", [odd]),
                        library=(other := fovea.Library(hip="sim", compile="always")))
        out = fovea.attention(*self.all[:3], score=fovea.Score("bias", [whole]),
                              sinks=np.zeros(4, np.float32), library=other)
        self.close(out, oracle(*self.all, bias=whole, sinks=np.zeros(4))[0])
        text = compiling.score_text("softcap")
        self.assertIn("captures(f32)", text.splitlines()[0])
        self.refused(fovea.InvalidArgumentError, "nosuch", fovea.attention, *self.all[:3],
                     score="nosuch", library=compiling)

    def test_head_dims(self):
        q, k = self.all[:2]
        v, dout = numbers(1, 4, 40, 48), numbers(1, 4, 40, 48, seed=1)
        self.passes(q, k, v, dout, library=compiling, expected=oracle(q, k, v, dout))

        # Rows of an odd number of elements, without memory behind the last.
        q, k, v, dout = (numbers(1, 4, 40, 33, seed=i) for i in range(4))
        q, k, v, dout = (np.pad(a, [(0, 0)] * 3 + [(0, 1)])[..., :33]
                         for a in (q, k, v, dout))
        out = np.zeros((1, 4, 40, 34), np.float16)[..., :33]
        fovea.attention(q, k, v, out=out, library=compiling)
        self.close(out, oracle(q, k, v, dout)[0])

    def test_blocks(self):
        q, k, v = (numbers(1, 2, 300, 32, seed=i) for i in range(3))
        counts = np.array([[[1, 2, 1]]], np.int32)
        lists = np.array([[[[2, 9], [0, 1], [1, 9]]]], np.int32)
        seen = np.zeros((3, 3), bool)
        seen[0, 2] = seen[1, 0] = seen[1, 1] = seen[2, 1] = True
        seen = seen.repeat(128, 0).repeat(128, 1)[:300, :300]
        out = fovea.attention(q, k, v, blocks=fovea.Blocks(counts, lists),
                              library=compiling)
        self.close(out, oracle(q, k, v, v, seen)[0])
        self.refused(fovea.InvalidArgumentError, "blocks.kv_indices is int64",
                     fovea.attention, q, k, v, library=compiling,
                     blocks=fovea.Blocks(counts, lists.astype(np.int64)))
        self.refused(fovea.InvalidArgumentError, "blocks.block_size is", fovea.attention, q, k, v,
                     library=compiling,
                     blocks=fovea.Blocks(counts, lists, block_size=(128, 2**70)))
        for words, given in (
                ("kv_num_blocks is missing; give it", (None, None)),
                ("kv_num_blocks is missing; give it", (None, None, counts, lists)),
                ("kv_num_blocks is missing beside blocks.kv_indices", (None, lists)),
                ("full_kv_indices is missing beside blocks.full_kv", (counts, lists, counts))):
            self.refused(fovea.InvalidArgumentError, words, fovea.Blocks, *given)
        for size in ((128,), 128, np.array([128, 128])):
            self.refused(fovea.InvalidArgumentError,
                         r"blocks.block_size is .*128.*, not \(queries, keys\)", fovea.Blocks,
                         counts, lists, block_size=size)

    def test_shares_of_keys(self):
        q, k, v = (numbers(1, 2, n, 32, seed=n) for n in (3, 500, 500))
        with fovea.Library(hip="sim", compile="always") as made:
            for splits, shares in ((4, 4), (0, 0)):
                out = fovea.attention(q, k, v, splits=splits, library=made)
                self.close(out, oracle(q, k, v, numbers(1, 2, 3, 32))[0])
                why = fovea.explain(q, k, v, splits=splits, library=made).chosen.reason
                self.assertEqual(f", {shares} shares of the keys" in why, shares > 0, why)
            # Of more keys shares pay unasked.
            k, v = (numbers(1, 2, 8000, 32, seed=n) for n in (1, 2))
            out = fovea.attention(q, k, v, library=made)
            self.close(out, oracle(q, k, v, numbers(1, 2, 3, 32))[0])
            why = fovea.explain(q, k, v, library=made).chosen.reason
            self.assertIn("shares of the keys", why)

    def test_named_kernel_and_text(self):
        """A text says which program is meant, also where the kernel is named: another
        may have its name."""
        q, k, v = (numbers(1, 2, 40, 32, seed=n) for n in range(3))
        for factor in (0.5, 2.0):
            score = scores.trace(lambda s, *_: s * factor, name="one_of_two")
            out = fovea.attention(q, k, v, score=score, library=compiling)
            kernel = fovea.explain(q, k, v, score=score, library=compiling).chosen.kernel
            again = fovea.attention(q, k, v, score=score, library=compiling, kernel=kernel)
            np.testing.assert_array_equal(again, out)
        self.refused(fovea.NotFoundError, "score program", fovea.attention, q, k, v,
                     score=scores.trace(lambda s, *_: s + 2.0, name="one_of_two"),
                     library=compiling, kernel=kernel)

    def test_compiled_meanwhile(self):
        """A launch is of the kernel that its workspace was planned for, though a better
        one may be compiled in between: one that needs more. The plan is made as if
        shares had been refused, since it has a kernel for them compiled otherwise."""
        q, k, v = (numbers(1, 2, n, 40, seed=n) for n in (3, 6000, 6000))
        arrays = [OnDevice(array) for array in (q, k, v, np.zeros_like(q))]
        operation, launched = _attention.FORWARD, []

        def recorded(context, reference, stream):
            params = reference._obj
            launched.append((params.kernel, params.workspace_bytes))
            return enqueue(context, reference, stream)

        def selected(context, params, *arguments):
            if compiled:
                return select(context, params, *arguments)
            compiled.append(None)
            params.splits = 1
            status = select(context, params, *arguments)
            params.splits = 0
            fovea.attention(q, k, v, splits=4, library=made)
            return status

        expected = oracle(q, k, v, numbers(1, 2, 3, 40))[0]
        select, enqueue, compiled = operation.select, operation.enqueue, []
        made = fovea.Library(hip="sim", compile="always")
        self.addCleanup(made.close)
        with mock.patch.object(operation, "select", selected), \
                mock.patch.object(operation, "enqueue", recorded):
            for _ in range(2):  # planned, and kept
                fovea.attention(*arrays[:3], out=arrays[3], library=made)
                self.close(arrays[3].values(), expected)
            self.close(fovea.attention(q, k, v, library=made), expected)
        shares, *plain = launched
        self.assertGreater(shares[1], 0)
        self.assertEqual(plain[0], plain[1])
        self.assertNotEqual(plain[0][0], shares[0])
        self.assertEqual(plain[2][0], shares[0])  # which is planned from now on
        self.assertGreater(plain[2][1], 0)

    def test_captured(self):
        """On a stream that is being captured a call is of what is loaded, though a better
        kernel could be compiled, and is so afterwards."""
        made = fovea.Library(hip="sim", compile="auto")
        self.addCleanup(made.close)
        hip, pointer = made._hip, ctypes.POINTER(ctypes.c_void_p)

        def call(name, kinds, *given):
            hip._function(name, kinds)(*given)

        def inputs(rows, keys):
            q, k, v = (numbers(1, 2, n, 40, seed=n) for n in (rows, keys, keys))
            return (q, k, v), [OnDevice(array) for array in (q, k, v, np.zeros_like(q))]

        warm = inputs(64, 64)[1]
        fovea.attention(*warm[:3], out=warm[3], library=made)
        (q, k, v), arrays = inputs(3, 6000)
        expected = oracle(q, k, v, numbers(1, 2, 3, 40))[0]
        stream, graph, run = (ctypes.c_void_p() for _ in range(3))
        call("hipStreamCreate", [pointer], stream)
        call("hipStreamBeginCapture", [ctypes.c_void_p, ctypes.c_int], stream, 0)
        planned, plan = [], _attention._Call._plan

        def recorded(*given):
            planned.append(plan(*given))
            return planned[-1]

        with mock.patch.object(_attention._Call, "_plan", recorded):
            fovea.attention(*arrays[:3], out=arrays[3], library=made, stream=stream.value)
            call("hipStreamEndCapture", [ctypes.c_void_p, pointer], stream, graph)
            self.assertFalse(arrays[3].values().any())
            call("hipGraphInstantiate", [pointer, *[ctypes.c_void_p] * 3, ctypes.c_size_t],
                 run, graph, None, None, 0)
            call("hipGraphLaunch", [ctypes.c_void_p] * 2, run, stream)
            hip.hipStreamSynchronize(stream)
            self.close(arrays[3].values(), expected)
            for _ in range(2):  # planned, and kept
                fovea.attention(*arrays[:3], out=arrays[3], library=made,
                                stream=stream.value)
                hip.hipStreamSynchronize(stream)
                self.close(arrays[3].values(), expected)
        (_, bytes_then, provisional), (_, size, kept) = planned
        self.assertEqual((bytes_then, provisional, kept), (0, True, False))
        self.assertGreater(size, 0)


SLOPES = np.array([[0.5, 0.25]], np.float32)


class Functions(Case):
    """Score programs in Python (fovea.scores)."""

    def text(self, score=None, mask=None):
        made = scores.trace(score, mask)
        return compiling.score_text(made.program, "float16", made.text)

    def test_are_the_library_s(self):
        """To the digit, and so with its kernels."""
        bias, seen = numbers(1, 2, 40, 40), np.ones((1, 2, 40, 40), bool)
        table = np.zeros((2, 9), np.float32)

        def alibi(s, b, h, i, j, m, n):
            return s - SLOPES[b, h] * abs(i + (n - m) - j)

        def relative(s, b, h, i, j, m, n):
            d = np.clip(j - (i + (n - m)), -most, most)
            return s + table[h, d + most]

        most = 4
        self.assertEqual(self.text(alibi), compiling.score_text("alibi"))
        self.assertEqual(self.text(lambda s, *at: bias[at] + s),
                         compiling.score_text("bias", "float16"))
        self.assertEqual(self.text(mask=lambda b, h, i, j: seen[b, h, i, j]),
                         compiling.score_text("bias_bool"))
        self.assertIn("f32[head:?, ?]", self.text(relative))

    def test_operations(self):
        """One function of values, and of NumPy's arrays."""
        bias, ids = numbers(2, 40, 2), np.arange(40, dtype=np.int64) // 7
        factor, scale = np.float32(0.5), np.array(0.25, np.float32)
        last, end = np.int64(-1), np.array(-2)  # which count from the end

        def addend(h, i, j):
            d = i - j
            made = np.where(d > 3 + 0 * h, d // 3, d % 4 - (-d) // 5) * factor
            made = made + (d % -3) * (i / (j + 1)) - np.minimum(np.abs(d), 5)
            made += ((ids[i] == ids[j]) | ~(d < 2) & (h == 0)) * scale + (i >> 1 ^ j & 3)
            made += np.sqrt(j + 1.0) - np.exp2(-0.1 * j) + np.log(i + 2) ** 2
            made += 2 ** (-1.0 * h) + np.floor(d / 2) + np.maximum(np.tanh(d / 9), 0.1)
            made -= np.clip(d, -2, None) + 1 / (1 + np.exp(-0.2 * d))
            made += (d <= -2) * 0.5 + (j >= 7) - (j != 5) * 0.25
            made += (d / 4 * 10**11) * 1e-11 + (j * 0.1) ** np.int64(2) - sum(divmod(d, 3))
            made += bias[0, last, 0] * j - bias[0, end, 1] * (d % np.int16(3))
            return made * 0.2 + bias[h, i, 1]

        def score(s, b, h, i, j):
            return s + addend(h, i, j)

        def mask(b, h, i, j):
            return np.logical_not(np.equal(i % 8, 3)) | (j != i)

        arrays = [numbers(1, 2, 40, 32, seed=i) for i in range(4)]
        h, i, j = np.ogrid[:2, :40, :40]
        out = fovea.attention(*arrays[:3], score=score, mask=mask, library=compiling)
        self.close(out, oracle(*arrays, mask(0, h, i, j), bias=addend(h, i, j))[0])
        # Behind a program of the library.
        out = fovea.attention(*arrays[:3], score=fovea.Score("softcap", [2.0]), mask=mask,
                              library=compiling)
        self.close(out, oracle(*arrays, mask(0, h, i, j), cap=2.0)[0])

    def rows(self, number, function):
        """What a function makes of each of as many queries: their only key's score."""
        q, k = np.zeros((1, 1, number, 32), np.float32), np.zeros((1, 1, 1, 32), np.float32)
        return fovea.attention(q, k, k, score=lambda s, b, h, i, j: s + function(i),
                               return_lse=True, library=compiling)[1][0, 0]

    def test_shifts(self):
        """By more than there is, and by less than nothing, all bits are shifted out."""
        counts = np.array([0, 1, 7, 30, 31, 32, 33, 64, 2**31 - 1, -1, -31, -32, -2**31],
                          np.int32)
        inside = (counts >= 0) & (counts < 32)
        for number in (77, -1000):
            value = np.array([number], np.int32)
            left = np.where(inside, number << np.where(inside, counts, 0).astype(object), 0)
            right = number >> np.where(inside, counts, 31)
            for function, expected in ((lambda x, n: x << n, left), (lambda x, n: x >> n, right)):
                # Of what is read: every bit, half of them at a time.
                got = [self.rows(len(counts), lambda i: function(value[0 * i], counts[i])
                                 >> low & 0xffff) for low in (0, 16)]
                np.testing.assert_array_equal(np.rint(got), [
                    [wanted >> low & 0xffff for wanted in expected] for low in (0, 16)])
                # Of constants.
                for count, wanted in zip(counts.tolist(), expected):
                    got = self.rows(1, lambda i: function(value[0 * i], count) & 0xffff)
                    self.assertEqual(np.rint(got), wanted & 0xffff)
        text = scores.trace(lambda s, b, h, i, j: s + (i << 3) + (j >> 31)).text
        self.assertNotRegex(text, "select|minui")  # which counts of constants do not need

    def test_what_is_none(self):
        import math
        keep = numbers(1, 2)
        many = [numbers(3, seed=i) for i in range(9)]

        class Model:
            bias = keep

            def score(self, s, b, h, i, j):
                return s + self.bias[b, h]

            def captures(self, s, b, h, i, j):
                return s + scores.capture(self.bias)[b][h]

        self.assertIn("captures(f16", self.text(Model().captures))
        for words, function in (
                (r"test_features.py:\d+ in <lambda>: `.*`: a branch on what differs.*where\(",
                 lambda s, b, h, i, j: s if i > j else -s),
                ("a branch .* minimum and maximum", lambda s, b, h, i, j: max(s, 0.0)),
                (r"a number of Python's.*capture\(array\)", Model().score),
                ("functions of fovea.scores", lambda s, b, h, i, j: math.exp(s)),
                ("numpy.sin is no part", lambda s, b, h, i, j: np.sin(s)),
                (r"array of shape \(1, 2\) is read with 1", lambda s, b, h, i, j:
                 s + keep[h]),
                ("an array is indexed with Ellipsis", lambda s, b, h, i, j:
                 s + keep[..., h]),
                ("a product of matrices is no part", lambda s, b, h, i, j: s @ j),
                ("is read with 0 indices", lambda s, b, h, i, j: s * keep),
                ("an index is f32", lambda s, b, h, i, j: s + keep[b, s]),
                ("at most 8 arrays", lambda s, b, h, i, j:
                 s + sum(scores.capture(a)[h] for a in many)),
                ("no integer of 32 bits", lambda s, b, h, i, j: s + (i + 2**31)),
                ("gives NoneType, not a number", lambda s, b, h, i, j: None),
                ("gives i1, not a score", lambda s, b, h, i, j: i > j),
                (r"score takes \(s, b\), not \(s, b, h, i, j\)", lambda s, b: s)):
            with self.subTest(words):
                told = str(self.refused(scores.TraceError, "", scores.trace, function))
                # But for the line, which is this table's and has the words, too.
                self.assertRegex(re.sub("`.*`", "`line`", told), words)
        self.refused(scores.TraceError, "not whether the query sees", scores.trace,
                     mask=lambda b, h, i, j: 1.0 * i)
        self.refused(scores.TraceError, "elements of 0 to 4294967296 ", scores.trace,
                     mask=lambda b, h, i, j: wide[i] == wide[j])


wide = np.array([0, 2**32])


if __name__ == "__main__":
    unittest.main()
