#!/usr/bin/env python3
"""The Python package on the simulated device, against fp64.

    test_fovea.py PACKAGE [unittest's arguments]

PACKAGE has forward and backward kernels of fp16 and bf16 for head dimension 64 with
the group varlen, with and without windows, for gfx942. What has other features is
compiled on demand. The libraries are the package's own, or as FOVEA_LIBRARY says.
"""

import ctypes
import gc
import os
import pathlib
import subprocess
import sys
import tempfile
import threading
import unittest
import weakref
from unittest import mock

try:
    import numpy as np
except ImportError:
    print("not run: NumPy is not installed")
    sys.exit(77)

import fovea
from fovea import _attention, scores
from reference import attention as oracle, visible

PACKAGE = sys.argv.pop(1)
ROOT = pathlib.Path(__file__).resolve().parents[2]


def setUpModule():
    global lib, compiling
    lib = fovea.Library(PACKAGE, hip="sim", compile="never")
    compiling = fovea.Library(hip="sim", compile="always")


def numbers(*shape, dtype=np.float16, seed=0):
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(dtype)


class Case(unittest.TestCase):
    def close(self, got, expected, bound=4e-3):
        """By the largest magnitude: fp16 rounds, and P and dS are of 16 bits."""
        got = np.asarray(got, np.float64)
        self.assertEqual(got.shape, np.shape(expected))
        finite = np.isfinite(expected)
        np.testing.assert_array_equal(got[~finite], expected[~finite])
        got, expected = got[finite], np.asarray(expected)[finite]
        self.assertLess(np.abs(got - expected).max(initial=0),
                        bound * max(1.0, np.abs(expected).max(initial=0)))

    def refused(self, kind, words, function, *arguments, **options):
        with self.assertRaisesRegex(kind, words) as caught:
            function(*arguments, **options)
        return caught.exception

    def passes(self, q, k, v, dout, library=None, bound=4e-3, expected=None, score=None,
               **options):
        """Both passes against the oracle."""
        library = library or lib
        dlse = options.pop("dlse", None)
        out, lse = fovea.attention(q, k, v, return_lse=True, library=library, score=score,
                                   **options)
        grads = fovea.attention_backward(dout, q, k, v, out, lse, dlse=dlse, score=score,
                                         library=library, **options)
        for got, wanted in zip((out, lse, *grads[:3]), expected):
            self.close(got, wanted, bound)
        return out, lse, grads


class Results(Case):
    def setUp(self):
        self.q, self.dout = numbers(2, 4, 50, 64), numbers(2, 4, 50, 64, seed=1)
        self.k, self.v = numbers(2, 2, 77, 64), numbers(2, 2, 77, 64, seed=1)
        self.all = self.q, self.k, self.v, self.dout

    def test_both_passes(self):
        self.passes(*self.all, expected=oracle(*self.all))

    def test_causal(self):
        seen = visible(50, 77, 77, 0)
        self.passes(*self.all, mask="causal-bottom-right",
                    expected=oracle(*self.all, seen))
        # The other diagonal, and rows that see no key.
        seen = visible(50, 77, 77, -27)
        self.passes(*self.all, mask="causal-top-left", expected=oracle(*self.all, seen))
        seen = visible(50, 77, -100, 77)
        out, lse, grads = self.passes(*self.all, window=(-100, None),
                                      expected=oracle(*self.all, seen))
        self.assertTrue((lse == -np.inf).all() and not out.any() and not grads.dk.any())

    def test_windows(self):
        for window in ((9, 3), fovea.Window.of_flash_attn(9, 3),
                       fovea.Window(9 - 27, 3 + 27, "top-left", "top-left"),
                       fovea.Window(9 + 27, 3, "top-left")):
            if window == fovea.Window(36, 3, "top-left"):
                seen = visible(50, 77, 36 + 27, 3)
            else:
                seen = visible(50, 77, 9, 3)
            self.passes(*self.all, window=window, scale=-0.2,
                        expected=oracle(*self.all, seen, scale=-0.2))

    def test_memory_orders(self):
        """(batch, sequence, 3, heads, head_dim), one behind the other."""
        packed = numbers(2, 50, 3, 4, 64)
        q, k, v = (packed[:, :, i].swapaxes(1, 2) for i in range(3))
        dout = self.dout
        expected = oracle(q, k, v, dout)
        out, lse, _ = self.passes(q, k, v, dout, expected=expected)
        # Results lie as q does, without its gaps.
        self.assertTrue(out.swapaxes(1, 2).flags.c_contiguous)
        # Gradients between one another's rows, and bytes between them as they were.
        room = np.full((2, 50, 4, 4, 64), 7, np.float16)
        dq, dk, dv = (room[:, :, i].swapaxes(1, 2) for i in range(3))
        result = fovea.attention_backward(dout, q, k, v, out, lse, dq=dq, dk=dk, dv=dv,
                                          library=lib)
        self.assertIs(result.dq, dq)
        for got, wanted in zip((dq, dk, dv), expected[2:]):
            self.close(got, wanted)
        self.assertTrue((room[:, :, 3] == 7).all())
        # A result between the rows of what is read.
        both = np.stack([q.swapaxes(1, 2), np.zeros((2, 50, 4, 64), np.float16)], 2)
        q, out = (both[:, :, i].swapaxes(1, 2) for i in range(2))
        fovea.attention(q, k, v, out=out, library=lib)
        self.close(out, expected[0])

    def test_rows_that_overlap(self):
        """Rows of one place: no query past the last has anything there."""
        q, dout = (np.broadcast_to(a[:, :, :1], a.shape) for a in (self.q, self.dout))
        self.passes(q, self.k, self.v, dout, expected=oracle(q, self.k, self.v, dout))

    def test_given_results(self):
        out, lse = np.zeros_like(self.q), np.zeros((2, 4, 50), np.float32)
        got = fovea.attention(*self.all[:3], out=out, lse=lse, library=lib)
        self.assertIs(got[0], out)
        self.close(out, oracle(*self.all)[0])
        only = fovea.attention_backward(self.dout, *self.all[:3], out, lse,
                                        gradients=["dq"], library=lib)
        self.assertIsNone(only.dk)
        self.close(only.dq, oracle(*self.all)[2])

    def test_nothing(self):
        out, lse = fovea.attention(self.q, self.k[:, :, :0], self.v[:, :, :0],
                                   return_lse=True, library=lib)
        self.assertTrue((lse == -np.inf).all() and not out.any())
        self.assertEqual(fovea.attention(self.q[:, :, :0], self.k, self.v,
                                         library=lib).shape, (2, 4, 0, 64))

    def test_packed_sequences(self):
        lengths = [0, 20, 20, 50]
        sums = np.array(lengths, np.int32)
        q, k, v, dout = (numbers(4, 50, 64, seed=i) for i in range(4))
        varlen = fovea.Varlen.packed(sums, sums, 30, 30)
        out, lse = fovea.attention(q, k, v, varlen=varlen, mask="causal-bottom-right",
                                   return_lse=True, library=lib)
        self.assertEqual((out.shape, lse.shape), ((4, 50, 64), (4, 50)))
        grads = fovea.attention_backward(dout, q, k, v, out, lse, varlen=varlen,
                                         mask="causal-bottom-right", library=lib)
        for begin, end in zip(lengths, lengths[1:]):
            one = np.s_[None, :, begin:end]
            expected = oracle(q[one], k[one], v[one], dout[one],
                              visible(end - begin, end - begin, 50, 0))
            for got, wanted in zip((out, lse, *grads[:3]), expected):
                self.close(got[None, :, begin:end], wanted)

    def test_padded_sequences(self):
        """Rows of no sequence are zeros in results that the library makes."""
        used = np.array([50, 13], np.int32)
        out, lse = fovea.attention(
            self.q, self.k, self.v, return_lse=True, library=lib,
            varlen=fovea.Varlen(fovea.Sequences(used), fovea.Sequences(used)))
        self.assertTrue((out[1, :, 13:] == 0).all() and (lse[1, :, 13:] == 0).all())

    def test_scale_in_an_array(self):
        """Read at each call, whatever is kept of the one before."""
        scale = np.array(0.1, np.float32)
        before = fovea.attention(*self.all[:3], scale=scale, library=lib)
        scale[()] = 0.7
        after = fovea.attention(*self.all[:3], scale=scale, library=lib)
        self.close(before, oracle(*self.all, scale=float(np.float32(0.1)))[0])
        self.close(after, oracle(*self.all, scale=float(np.float32(0.7)))[0])
        with self.assertRaisesRegex(TypeError, "scale is str, not a number"):
            fovea.attention(*self.all[:3], scale="much", library=lib)
        self.assertEqual(fovea.Dropout(np.float32(0.5)).p, 0.5)

    def test_calls_alike(self):
        """What is kept of a call holds no addresses and no values of another's."""
        one, other = (numbers(1, 2, 40, 64, seed=i) for i in (1, 2))
        for q, k, v in ((one, one, one), (one, other, one), (other, other, one)):
            self.passes(q, k, v, one, expected=oracle(q, k, v, one))
        for scale in (0.1, 0.2):
            self.close(fovea.attention(one, other, one, scale=scale, library=lib),
                       oracle(one, other, one, one, scale=scale)[0])
        kept = len(lib._calls)
        fovea.attention(one, other, one, scale=0.2, library=lib)
        self.assertEqual(len(lib._calls), kept)
        for number in range(600):  # and not for ever
            fovea.attention(one[:, :, :0], other, one, scale=number, library=lib)
        self.assertLess(len(lib._calls), 520)

    def test_keeps_no_arrays(self):
        sums = np.array([0, 20, 50], np.int32)
        arrays = [numbers(4, 50, 64, seed=i) for i in range(3)] + [sums]
        result = fovea.attention(*arrays[:3], library=lib,
                                 varlen=fovea.Varlen.packed(sums, sums, 30, 30))
        seen = [weakref.ref(array) for array in [*arrays, result]]
        del arrays, sums, result
        gc.collect()
        self.assertEqual([ref() is None for ref in seen], [True] * 5)

    def test_threads(self):
        expected = fovea.attention(*self.all[:3], library=lib)
        results = [None] * 4

        def run(i):
            results[i] = fovea.attention(*self.all[:3], library=lib)

        threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        for result in results:
            np.testing.assert_array_equal(result, expected)


class Half:
    """bfloat16, which NumPy lacks: the upper halves of fp32."""

    dtype = "bfloat16"

    def __init__(self, values):
        self.bits = (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(
            np.uint16)
        self.__array_interface__ = {**self.bits.__array_interface__, "typestr": "<V2"}

    def values(self):
        return (self.bits.astype(np.uint32) << 16).view(np.float32)


class OnlyDLPack:
    def __init__(self, array):
        self.array = array

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def __dlpack__(self, **options):
        if options:
            raise TypeError("an old one")
        return self.array.__dlpack__()


class _Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("type", ctypes.c_int32),
                ("id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p),
                ("strides", ctypes.c_void_p), ("offset", ctypes.c_uint64)]


class _Managed(ctypes.Structure):
    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p),
                ("deleter", ctypes.c_void_p)]


_new_capsule = ctypes.pythonapi.PyCapsule_New
_new_capsule.restype = ctypes.py_object
_new_capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class OnDevice:
    """An array of the simulated device, as another library would have it."""

    def __init__(self, array, device_type=10):
        self.hip, self.host = lib._hip, np.ascontiguousarray(array)
        self.memory = ctypes.c_void_p()
        self.hip.hipMalloc(self.memory, self.host.nbytes)
        self.hip.hipMemcpy(self.memory, self.host.ctypes.data, self.host.nbytes, 1)
        self.extents = (ctypes.c_int64 * array.ndim)(*array.shape)
        self.managed = _Managed(_Tensor(
            self.memory, device_type, 0, array.ndim, 2, 8 * self.host.itemsize, 1,
            ctypes.addressof(self.extents), None, 0))

    def __dlpack_device__(self):
        return self.managed.tensor.type, 0

    def __dlpack__(self, *, stream):
        return _new_capsule(ctypes.addressof(self.managed), b"dltensor", None)

    def values(self):
        self.hip.hipStreamSynchronize(0)
        self.hip.hipMemcpy(self.host.ctypes.data, self.memory, self.host.nbytes, 2)
        return self.host


class Arrays(Case):
    def test_bfloat16(self):
        q, k, v = (Half(numbers(1, 2, 40, 64, seed=i)) for i in range(3))
        out = Half(np.zeros((1, 2, 40, 64)))
        fovea.attention(q, k, v, out=out, library=lib)
        expected = oracle(q.values(), k.values(), v.values(), v.values())[0]
        self.close(out.values(), expected, 2e-2)
        self.refused(TypeError, "results cannot be made like Half", fovea.attention, q, k,
                     v, library=lib)

    def test_dlpack(self):
        q, k, v = (numbers(1, 2, 40, 64, seed=i) for i in range(3))
        out = np.zeros_like(q)
        fovea.attention(*map(OnlyDLPack, (q, k, v)), out=out, library=lib)
        self.close(out, oracle(q, k, v, v)[0])

    def test_device_memory(self):
        host = q, k, v, dout = [numbers(1, 2, 40, 64, seed=i) for i in range(4)]
        expected = oracle(*host)
        q, k, v, dout = map(OnDevice, host)
        out, dq, dk, dv = (OnDevice(np.zeros_like(host[0])) for _ in range(4))
        lse = OnDevice(np.zeros((1, 2, 40), np.float32))
        fovea.attention(q, k, v, out=out, lse=lse, library=lib)
        fovea.attention_backward(dout, q, k, v, out, lse, dq=dq, dk=dk, dv=dv,
                                 library=lib)
        for got, wanted in zip((out, lse, dq, dk, dv), expected):
            self.close(got.values(), wanted)
        self.refused(fovea.InvalidArgumentError, "k is the host's", fovea.attention, q,
                     host[1], v, out=out, library=lib)
        self.refused(fovea.InvalidArgumentError, "device is 3", fovea.attention, q, k, v,
                     out=out, device=3, library=lib)
        self.refused(TypeError, "device is 'cpu'; it is the number", fovea.attention, *host[:3],
                     device="cpu", library=lib)
        self.refused(TypeError, "device type 8, neither", fovea.attention, q,
                     OnDevice(host[1], 8), v, out=out, library=lib)

    def test_what_is_none(self):
        q = numbers(1, 2, 40, 64)
        read_only = np.zeros_like(q)
        read_only.flags.writeable = False
        for kind, words, k, options in (
                (TypeError, "k: str is no array", "text", {}),
                (TypeError, "k: its elements are float64, not one of float16, bfloat16, float32$",
                 q.astype(float), {}),
                (TypeError, "k is float32, not float16", q.astype(np.float32), {}),
                (TypeError, "big-endian", q.astype(">f2"), {}),
                (ValueError, r"k has shape \(1, 2, 40, 32\).*head_dim is 32, others' 64",
                 q[..., :32], {}),
                (ValueError, r"\(batch, heads_k.*packed sequences take varlen", q[0], {}),
                (ValueError, "k: its last stride is 2", np.repeat(q, 2, -1)[..., ::2], {}),
                (ValueError, "k: a stride is negative", q[:, :, ::-1], {}),
                (ValueError, r"heads_q \(2\) must be a multiple of heads_k \(3\)",
                 numbers(1, 3, 40, 64), {"v": 0}),
                (ValueError, "out.*is read-only", q, {"out": read_only}),
                (ValueError, "share memory", q, {"out": q}),
                (ValueError, "mask is 'causal', not one of 'none', 'causal-top-left'", q,
                 {"mask": "causal"}),
                (ValueError, "window and a mask|mask.*window", q,
                 {"mask": "causal-top-left", "window": (1, 2)}),
                (TypeError, "dropout is float, not a fovea.Dropout", q, {"dropout": .1}),
                (ValueError, "q is packed and varlen has no lengths", q[0],
                 {"q": q[0], "varlen": fovea.Varlen(max_q=1, max_k=1)}),
                (TypeError, "k is a Spec", fovea.Spec(q.shape, "float16"), {})):
            with self.subTest(words):
                rest = {"q": q, "v": q, **options}
                if options.get("v") == 0:
                    rest["v"] = k
                if "varlen" in options:
                    rest["v"] = k
                self.refused(kind, words, fovea.attention, k=k, library=lib, **rest)
        # Nor is one taken for arrays of its layout that a call had before.
        fovea.attention(q, q, q, library=lib)
        self.refused(TypeError, "k is a Spec", fovea.attention, q,
                     fovea.Spec(q.shape, "float16"), q, library=lib)


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

    def test_shares_of_keys(self):
        q, k, v = (numbers(1, 2, n, 32, seed=n) for n in (3, 500, 500))
        out = fovea.attention(q, k, v, splits=4, library=compiling)
        self.close(out, oracle(q, k, v, numbers(1, 2, 3, 32))[0])

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
        one may be compiled in between: one that needs more."""
        q, k, v = (numbers(1, 2, n, 40, seed=n) for n in (3, 500, 500))
        arrays = [OnDevice(array) for array in (q, k, v, np.zeros_like(q))]
        operation, launched = _attention.FORWARD, []

        def recorded(context, reference, stream):
            params = reference._obj
            launched.append((params.kernel, params.workspace_bytes))
            return enqueue(context, reference, stream)

        def selected(*arguments):
            status = select(*arguments)
            if not compiled:
                compiled.append(None)
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

        def addend(h, i, j):
            d = i - j
            made = np.where(d > 3 + 0 * h, d // 3, d % 4 - (-d) // 5) * factor
            made = made + (d % -3) * (i / (j + 1)) - np.minimum(np.abs(d), 5)
            made += ((ids[i] == ids[j]) | ~(d < 2) & (h == 0)) * scale + (i >> 1 ^ j & 3)
            made += np.sqrt(j + 1.0) - np.exp2(-0.1 * j) + np.log(i + 2) ** 2
            made += 2 ** (-1.0 * h) + np.floor(d / 2) + np.maximum(np.tanh(d / 9), 0.1)
            made -= np.clip(d, -2, None) + 1 / (1 + np.exp(-0.2 * d))
            made += (d <= -2) * 0.5 + (j >= 7) - (j != 5) * 0.25
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
                (r"test_fovea.py:\d+ in <lambda>: `.*`: a branch on what differs.*where\(",
                 lambda s, b, h, i, j: s if i > j else -s),
                ("a branch .* minimum and maximum", lambda s, b, h, i, j: max(s, 0.0)),
                (r"a number of Python's.*capture\(array\)", Model().score),
                ("functions of fovea.scores", lambda s, b, h, i, j: math.exp(s)),
                ("numpy.sin is no part", lambda s, b, h, i, j: np.sin(s)),
                (r"array of shape \(1, 2\) is read with 1", lambda s, b, h, i, j:
                 s + keep[h]),
                ("an array is indexed with Ellipsis", lambda s, b, h, i, j:
                 s + keep[..., h]),
                ("is read with 0 indices", lambda s, b, h, i, j: s * keep),
                ("an index is f32", lambda s, b, h, i, j: s + keep[b, s]),
                ("at most 8 arrays", lambda s, b, h, i, j: s + sum(a[h] for a in many)),
                ("no integer of 32 bits", lambda s, b, h, i, j: s + (i + 2**31)),
                ("gives NoneType, not a number", lambda s, b, h, i, j: None),
                ("gives i1, not a score", lambda s, b, h, i, j: i > j),
                (r"score takes \(s, b\), not \(s, b, h, i, j\)", lambda s, b: s)):
            with self.subTest(words):
                self.refused(scores.TraceError, words, scores.trace, function)
        self.refused(scores.TraceError, "not whether the query sees", scores.trace,
                     mask=lambda b, h, i, j: 1.0 * i)
        self.refused(scores.TraceError, "elements of 0 to 4294967296 ", scores.trace,
                     mask=lambda b, h, i, j: wide[i] == wide[j])


wide = np.array([0, 2**32])


class Packages(Case):
    def test_kernels(self):
        self.assertEqual([k.id for k in lib.kernels],
                         list(range(1, len(lib.kernels) + 1)))
        self.assertIn("head_dim=64", lib.kernels[0].problem)
        self.assertEqual(lib.hip.kind, "sim")
        self.assertTrue(lib.device().arch.startswith("gfx942"))
        self.refused(fovea.InvalidArgumentError, "7", lib.device, 7)
        self.refused(TypeError, "device is 'cpu'", lib.device, "cpu")
        spec = fovea.Spec((1, 1, 4, 32), "float16")
        self.refused(TypeError, "device is 1.5", fovea.explain, spec, spec, spec, device=1.5,
                     library=lib)

    def test_explain(self):
        def spec(n, d=64):
            return fovea.Spec((1, n, 100, d), "bfloat16")

        for backward in (False, True):
            found = fovea.explain(spec(4), spec(2), spec(2), backward=backward,
                                  mask="causal-top-left", library=lib)
            self.assertTrue(found)
            self.assertEqual(lib.kernels[found.chosen.kernel - 1].problem.partition(
                ";")[0], "backward" if backward else "forward")
            self.assertIn("refused", {step.state for step in found.candidates})
            self.assertIn("chosen", str(found))
        missing = fovea.explain(spec(4, 72), spec(4, 72), spec(4, 72), library=lib)
        self.assertFalse(missing)
        self.assertIsInstance(missing.error, fovea.NotFoundError)
        self.assertIn("FOVEA_COMPILE", missing.message)

    def test_time(self):
        spec = fovea.Spec((1, 2, 256, 64), "bfloat16")
        for backward, launches in ((False, 1), (True, 3)):
            found = fovea.time(spec, spec, spec, backward=backward, window=(31, 0),
                               library=lib, samples=1)
            self.assertIn(found.kernel.problem, {k.problem for k in lib.kernels})
            self.assertEqual(len(found.launches) > 1, launches > 1)
            self.assertLess(found.low, found.seconds)
            self.assertLess(found.seconds, found.high)
            self.assertTrue(found.is_tie(found))
            self.assertRegex(str(found), r"us \(.* to .*\) predicted for gfx942, .* TFLOPS")
            self.assertIn("no measurement", found._repr_html_())
            self.assertIn("window_left=31", found.text)
        wide = fovea.Spec((1, 2, 256, 32), "bfloat16")
        self.refused(fovea.NotFoundError, "FOVEA_COMPILE", fovea.time, wide, wide, wide,
                     library=lib)
        none = fovea.Spec((1, 2, 0, 64), "bfloat16")
        self.refused(fovea.InvalidArgumentError, "nothing to compute", fovea.time, none,
                     none, none, library=lib)

    def test_compile(self):
        kernel = fovea.compile("forward;dtype=bf16;head_dim=64;window=1", "gfx950",
                               schedule="block_m=64;waves=2")
        self.assertEqual(kernel.image[:4], b"\x7fELF")
        self.assertIn("block_m=64", kernel.schedule)
        self.assertTrue(kernel.contract and kernel.figures["vgprs"] > 0)
        refusal = self.refused(fovea.CompileError, "unknown chip 'gfx1'", fovea.compile,
                               "forward;dtype=bf16;head_dim=64", "gfx1")
        self.assertEqual(refusal.status, "FOVEA_COMPILER_STATUS_INVALID_ARGUMENT")

    def test_verify(self):
        (package,) = pathlib.Path(PACKAGE).glob("*.fovea")
        self.assertIn("kernels are sound", fovea.verify(package))
        with tempfile.NamedTemporaryFile(suffix=".fovea") as broken:
            content = bytearray(package.read_bytes())
            middle = len(content) // 2  # of images; the end may hold nothing
            content[middle:middle + 2000] = b"\xff" * 2000
            broken.write(content)
            broken.flush()
            self.refused(fovea.CorruptError, "", fovea.verify, broken.name)
        # What is told need be no UTF-8.
        self.refused(fovea.NotFoundError, r"no\\xe1", fovea.Library, b"/no\xe1")

    def test_refused(self):
        for kind, also, words, arguments in (
                (fovea.NotFoundError, LookupError, "no such file", {"paths": ["/no"]}),
                (fovea.InvalidArgumentError, ValueError, "options.compile is 'maybe'",
                 {"compile": "maybe"}),
                (fovea.InvalidArgumentError, ValueError, "loud", {"log": "loud"})):
            with self.subTest(words):
                paths = arguments.pop("paths", [])
                refusal = self.refused(kind, words, fovea.Library, *paths, **arguments)
                self.assertIsInstance(refusal, also)
                self.assertTrue(refusal.status.startswith("FOVEA_STATUS_"))
        no_hip = fovea.Library(PACKAGE, hip="/nowhere.so")
        self.refused(fovea.NoDeviceError, "/nowhere.so", lambda: no_hip.hip)
        with fovea.Library(PACKAGE) as closed:
            pass
        self.refused(fovea.InvalidArgumentError, "is closed", lambda: closed.kernels)

    def test_log(self):
        lines = []
        with fovea.Library(PACKAGE, hip="sim", log="info", log_to=lines.append) as one:
            one.hip
        self.assertTrue(any("gfx942.fovea" in line for line in lines))


def python(code, **variables):
    done = subprocess.run([sys.executable, "-B", "-c", code], text=True,
                          env={**os.environ, **variables}, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, timeout=60)
    return done.returncode, done.stdout


CALL = f"""
import fovea, numpy as np
lib = fovea.Library({PACKAGE!r}, hip="sim", compile="never")
x = np.ones((1, 1, 9, 64), np.float16)
"""


class Processes(Case):
    def test_the_end(self):
        """Contexts that nobody closed, and the library of calls that name none."""
        code, text = python(CALL + "fovea.attention(x, x, x, library=lib)\n"
                            "print(fovea.attention(x, x, x).sum())",
                            FOVEA_KERNELS=PACKAGE, FOVEA_HIP_LIBRARY="sim",
                            FOVEA_COMPILE="never")
        self.assertEqual((code, text.strip()), (0, "576.0"))

    def test_fork(self):
        code, text = python(CALL + """
import os
fovea.attention(x, x, x, library=lib)
if os.fork() == 0:
    try:
        fovea.attention(x, x, x, library=lib)
    except fovea.InvalidArgumentError as error:
        print(error, flush=True)
    os._exit(0)
os.wait()
print(fovea.attention(x, x, x, library=lib).sum())
""")
        self.assertEqual(code, 0, text)
        self.assertRegex(text, r"of which this is a fork(.|\n)*576")

    def test_fork_of_the_default(self):
        """A fork has a default library of its own, and no device that was used."""
        for before, words in (("", "576"), ("call()", "InvalidArgumentError: .*this is a fork")):
            code, text = python(CALL + f"""
import os, signal
signal.alarm(50)
def call():
    print(fovea.attention(x, x, x).sum())
{before}
if os.fork() == 0:
    signal.alarm(20)
    try:
        call()
    except fovea.Error as error:
        print(type(error).__name__, error, sep=": ", flush=True)
    os._exit(0)
os.wait()
""", FOVEA_KERNELS=PACKAGE, FOVEA_HIP_LIBRARY="sim", FOVEA_COMPILE="never")
            self.assertEqual(code, 0, text)
            self.assertRegex(text, words)

    def test_another_chip(self):
        code, text = python(CALL + "fovea.attention(x, x, x, library=lib)",
                            FOVEA_SIM_TARGET="gfx1100")
        self.assertEqual(code, 1)
        self.assertRegex(text, "NotFoundError: (.|\n)*gfx1100")

    def test_a_fault_of_a_kernel(self):
        code, text = python(CALL + "fovea.attention(x, x, x, library=lib)",
                            FOVEA_SIM_BUDGET="10", FOVEA_SIM_QUIET="1")
        self.assertEqual(code, 1)
        self.assertRegex(text, "fovea.*HipError: hipStreamSynchronize: "
                         "hipErrorLaunchTimeOut\n(.|\n)*attn_fwd")

    def test_half_installed(self):
        for library, words in (
                ("/nowhere.so", "libfovea.so.0 cannot be opened: /nowhere.so.*"
                 "FOVEA_LIBRARY names another file"),
                (str(pathlib.Path(fovea.__file__).parent / "lib/libfovea_hipsim.so"),
                 "has no fovea_last_message: it is of an earlier version than this")):
            code, text = python("import fovea", FOVEA_LIBRARY=library)
            self.assertEqual(code, 1)
            self.assertRegex(text, "ImportError: fovea: .*" + words)
        code, text = python("import fovea; fovea.compile('', '')",
                            FOVEA_COMPILER_LIBRARY="/nowhere.so")
        self.assertRegex(text, "NotFoundError: fovea: libfovea_compiler.so.0 cannot be")


@unittest.skipUnless((ROOT / "python").exists(), "not beside the sources")
class Abi(Case):
    def test_layouts(self):
        """A field that ctypes would have elsewhere is refused, and nothing written."""
        baseline = (ROOT / "test/Abi/fovea.abi").read_text()
        line = "field fovea_device_info_t.arch at 8, 8 bytes, const char*"
        self.assertIn(line, baseline)
        for other, words in (
                (baseline, None),
                (baseline.replace(line, line.replace("at 8", "at 16")),
                 "arch .* is 8 bytes at 16, in ctypes 8 at 8"),
                (baseline.replace("struct fovea_window_t 40", "struct fovea_window_t 48"),
                 "fovea_window_t has 48 bytes, in ctypes 40"),
                (baseline.replace(line, line.replace("const char*", "wchar_t")),
                 "no type of ctypes is known for 'wchar_t'")):
            with tempfile.TemporaryDirectory() as folder:
                table = pathlib.Path(folder, "fovea.abi")
                table.write_text(other)
                made = pathlib.Path(folder, "_abi.py")
                done = subprocess.run(
                    [sys.executable, "-B", ROOT / "python/generate_abi.py", made, "1",
                     table], stderr=subprocess.PIPE, text=True)
                self.assertEqual(made.exists(), words is None, done.stderr)
                self.assertRegex(done.stderr, words or "^$")


if __name__ == "__main__":
    unittest.main()
