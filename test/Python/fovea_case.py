"""What tests of the Python package share: arrays, comparisons, and the libraries.

The first argument of a test is a package with forward and backward kernels of fp16 and
bf16 for head dimension 64 with the group varlen, with and without windows, for gfx942.
What has other features is compiled on demand. The libraries are the package's own, or
as FOVEA_LIBRARY says.
"""

import ctypes
import pathlib
import sys
import unittest

try:
    import numpy as np
except ImportError:
    print("not run: NumPy is not installed")
    sys.exit(77)

import fovea

PACKAGE = sys.argv.pop(1)
ROOT = pathlib.Path(__file__).resolve().parents[2]

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
