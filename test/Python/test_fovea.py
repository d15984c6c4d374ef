#!/usr/bin/env python3
"""Calls of the Python package and their arrays on the simulated device, against fp64.

    test_fovea.py PACKAGE [unittest's arguments]

fovea_case.py says what PACKAGE is.
"""

import gc
import threading
import unittest
import weakref

from fovea_case import Case, OnDevice, compiling, lib, numbers

import numpy as np

import fovea
from reference import attention as oracle, visible


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
        with self.assertRaisesRegex(TypeError, "scale is str, not a number"):
            fovea.attention(*self.all[:3], scale="0.5", library=lib)
        self.assertEqual(fovea.Dropout(np.float32(0.5)).p, 0.5)

    def test_whole_numbers(self):
        """None is cut off to the bits that the library has for it."""
        for words, options in (
                ("kernel is -1, not in 0 to 4294967295", {"kernel": -1}),
                (f"stream is {2**70}, not in 0 to {2**64 - 1}", {"stream": 2**70}),
                ("stream is -1, not in 0 to", {"stream": -1}),
                ("scale is a whole number that no float holds", {"scale": 10**400}),
                ("splits is 4294967297, not in 0 to 1024; give 0", {"splits": 2**32 + 1}),
                ("splits is -1, not in 0 to 1024; give 0, and the lib", {"splits": -1}),
                (r"score.captures\[0\] is 1099511627776, not in -2147483648 to",
                 {"score": fovea.Score("softcap", [2**40])}),
                ("window.left is 18446744073709551616, not in -92", {"window": (2**64, 0)})):
            self.refused(fovea.InvalidArgumentError, words, fovea.attention, *self.all[:3],
                         library=lib, **options)
        placed = [OnDevice(array) for array in (*self.all[:3], np.zeros_like(self.q))]
        self.refused(fovea.InvalidArgumentError, f"stream is {2**70}, not in", fovea.attention,
                     *placed[:3], out=placed[3], library=lib, stream=2**70)
        self.refused(fovea.InvalidArgumentError, "device is 4294967296, not in 0 to",
                     fovea.attention, *self.all[:3], library=lib, device=2**32)
        self.refused(fovea.InvalidArgumentError, "has a NUL in it", fovea.Library, "a\0b")
        # What equals a number is none, whatever a call before it had.
        fovea.attention(*self.all[:3], splits=1, library=lib)
        for words, options in (
                ("splits is '4', not a whole", {"splits": "4"}),
                ("splits is 1.0, not a whole", {"splits": 1.0}),
                ("kernel is 0.0, not a whole", {"kernel": 0.0}),
                ("window.right is 1.5, not a whole", {"window": (0, 1.5)}),
                (r"window.left is array\(\[1, 2\]\), not a whole",
                 {"window": (np.array([1, 2]), 0)})):
            self.refused(TypeError, words, fovea.attention, *self.all[:3], library=lib,
                         **options)
        self.refused(TypeError, "varlen.max_k is 40.0, not a whole", fovea.Varlen, max_k=40.0)
        self.refused(TypeError, "blocks.block_size is 1.5, not", fovea.Blocks, 0, 0,
                     block_size=(128, 1.5))
        packed, sums = [a[0] for a in self.all[:3]], np.array([0, 40], np.int32)
        for most in (-5, 2**70):
            self.refused(fovea.InvalidArgumentError, f"varlen.max_q is {most}, not in 0 to",
                         fovea.attention, *packed, library=lib,
                         varlen=fovea.Varlen.packed(sums, sums, most, 40))

    def test_numbers_of_numpy(self):
        """Are numbers, whose value a call is kept by, and no arrays."""
        q, k, v, dout = self.all
        rows, keys = q.shape[2], k.shape[2]
        for kind in (np.int64, np.int32, np.uint8, np.array):
            for left in (3, 5):
                seen = visible(rows, keys, left, 0)
                for window in ((kind(left), 0), fovea.Window(kind(left), 0)):
                    self.passes(*self.all, window=window, expected=oracle(*self.all, seen=seen))
            self.close(fovea.attention(q, k, v, library=lib, varlen=fovea.Varlen(
                max_q=kind(rows), max_k=kind(keys))), oracle(*self.all)[0])
        window = np.array(3)
        before = fovea.attention(q, k, v, window=(window, 0), library=lib)
        window[()] = 5
        after = fovea.attention(q, k, v, window=(window, 0), library=lib)
        self.close(before, oracle(*self.all, seen=visible(rows, keys, 3, 0))[0])
        self.close(after, oracle(*self.all, seen=visible(rows, keys, 5, 0))[0])
        for cap in (2.0, 3.0):
            self.close(fovea.attention(q, k, v, library=compiling, score=fovea.Score(
                "softcap", [np.float32(cap)])), oracle(*self.all, cap=cap)[0])
            held = np.array(cap, np.float32)
            score = fovea.Score("softcap", [held])
            of_capture = fovea.Score("softcap", (fovea.Capture(held),))
            held[()] = 5.0  # which comes too late
            for given in (score, of_capture):
                self.close(fovea.attention(q, k, v, library=compiling, score=given),
                           oracle(*self.all, cap=cap)[0])
        drops = [fovea.attention(q, k, v, library=compiling, dropout=fovea.Dropout(
            0.5, seed=seed, offset=np.int64(2))) for seed in (5, np.int64(5), np.uint64(6))]
        np.testing.assert_array_equal(drops[0], drops[1])
        self.assertFalse(np.array_equal(drops[0], drops[2]))
        self.refused(TypeError, "dropout.seed_out: int is no array", fovea.attention, q, k, v,
                     dropout=fovea.Dropout(0.5, seed_out=np.int64(0)), library=compiling)
        spec = fovea.Spec(q.shape, "float16")
        told = fovea.explain(spec, spec, spec, window=(np.int64(3), 0), scale=np.ones(1),
                             library=lib)
        self.assertIsNone(told.error)

    def test_signs_of_zeros(self):
        """Calls with zeros of two signs are two."""
        q, k, v = self.all[:3]
        for kind, zero, sign in [(kind, zero, sign) for kind in (float, np.float32, np.float64)
                                 for zero, sign in ((0.0, 1), (-0.0, -1))]:
            text = ("func.func @of_sign(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, "
                    "%n: i32, %c: f32) -> f32 {\n  %one = arith.constant 1.0 : f32\n"
                    "  %r = arith.divf %one, %c : f32\n  %z = arith.constant 0.0 : f32\n"
                    "  %p = arith.cmpf ogt, %r, %z : f32\n  %y = arith.negf %x : f32\n"
                    "  %s = arith.select %p, %x, %y : f32\n  return %s : f32\n}\n")
            got = fovea.attention(q, k, v, score=fovea.Score("of_sign", [kind(zero)], text),
                                  library=compiling)
            self.close(got, oracle(*self.all, scale=sign * q.shape[-1] ** -0.5)[0])

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

    def test_named(self):
        """What has a wrong type is told by its name."""
        q = numbers(1, 2, 40, 64)
        out, lse = fovea.attention(q, q, q, return_lse=True, library=lib)
        for kind, words, options in (
                (TypeError, "library is str, not a fovea.Library", {"library": "here"}),
                (TypeError, "stream is 'null', neither a hipStream_t", {"stream": "null"}),
                (TypeError, "stream is 1.5, neither a hipStream_t", {"stream": 1.5}),
                (TypeError, "score is int, not a fovea.Score", {"score": 3}),
                (ValueError, "score.program is empty", {"score": ""})):
            with self.subTest(words):
                self.refused(kind, words, fovea.attention, q, q, q, **{"library": lib, **options})
        for words, given in (("program is bytes, not a text", (b"softcap", [3.0])),
                             ("captures is float, not a tuple or a list", ("softcap", 3.0)),
                             ("captures is set, not a tuple or a list", ("softcap", {3.0})),
                             ("captures is NoneType, not a tuple", ("softcap", None)),
                             ("text is int, not a text or None", ("softcap", [3.0], 3))):
            self.refused(TypeError, f"score.{words}", fovea.Score, *given)
        for given in (("soft\0cap", [3.0]), ("softcap", [3.0], "a\0b")):
            self.refused(ValueError, "score.* which has a NUL in it", fovea.Score, *given)
        for p in (None, "0.5", np.zeros(2)):
            self.refused(TypeError, "dropout.p is .*, not a number or an array of one",
                         fovea.Dropout, p)
        for given in ("dq", None):
            self.refused(TypeError, "gradients is .*; give a tuple", fovea.attention_backward, out,
                         q, q, q, out, lse, gradients=given, library=lib)
        for given in (None, 0.5):
            self.refused(TypeError, "dropout is .*, not a fovea.Dropout", fovea.dropout_mask,
                         np.zeros((1, 2, 40, 40), np.float16), given, library=lib)

    def test_what_is_none(self):
        q = numbers(1, 2, 40, 64)
        read_only = np.zeros_like(q)
        read_only.flags.writeable = False
        used = np.array([3], np.int32)
        for kind, words, k, options in (
                (TypeError, "k: str is no array", "text", {}),
                (TypeError, "k: its elements are float64, not one of float16, bfloat16, float32$",
                 q.astype(float), {}),
                (TypeError, "k is float32, not float16", q.astype(np.float32), {}),
                (TypeError, "big-endian", q.astype(">f2"), {}),
                (TypeError, "k is a masked array", np.ma.masked_array(q, q > 0), {}),
                (ValueError, r"k has shape \(1, 2, 40, 32\).*head_dim is 32, others' 64",
                 q[..., :32], {}),
                (ValueError, r"\(batch, heads_k.*packed sequences take varlen", q[0], {}),
                (ValueError, "head_dim_v is 0; rows of v have at least one element", q,
                 {"v": q[..., :0]}),
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
                (ValueError, "varlen.k has both lengths and cumulative lengths", q,
                 {"varlen": fovea.Varlen(k=fovea.Sequences(used, np.array([0, 7], np.int32)))}),
                (ValueError, "varlen.q has both lengths and cumulative lengths", q[0],
                 {"q": q[0], "varlen": fovea.Varlen(*[fovea.Sequences(
                     used, np.array([0, 40], np.int32))] * 2, max_q=40, max_k=40)}),
                (TypeError, "k is a Spec", fovea.Spec(q.shape, "float16"), {})):
            with self.subTest(words):
                rest = {"q": q, "v": q, **options}
                if isinstance(options.get("v"), int):
                    rest["v"] = k
                if "varlen" in options:
                    rest["v"] = k
                self.refused(kind, words, fovea.attention, k=k, library=lib, **rest)
        # Nor is one taken for arrays of its layout that a call had before.
        fovea.attention(q, q, q, library=lib)
        self.refused(TypeError, "k is a Spec", fovea.attention, q,
                     fovea.Spec(q.shape, "float16"), q, library=lib)


if __name__ == "__main__":
    unittest.main()
