"""Tests of the Python module pyaotriton on the simulated device, each as a
process of its own: test_pyaotriton.py MINOR CLASS. Tensors are plain bytes of
fp16, and results are compared with attention in Python's doubles."""
import ctypes
import math
import os
import random
import struct
import sys
import unittest
import warnings

import pyaotriton
from pyaotriton import (DType, HipMemory, Stream, T0, T1, T2, T4, hipError_t)
from pyaotriton.v3 import flash

MINOR = int(sys.argv.pop(1))
TOP_LEFT = -2**31 + 1
WINDOWED = 3
HEAD_DIM = 64
# fp16 has 11 bits; sums of a few dozen products in fp32 add less than a last
# place, and P, dS and the result are rounded once each.
TOLERANCE = 4 * 2.0**-11


class Tensor:
    """fp16, fp32 or int32 on the device, contiguous."""
    CODES = {DType.kFloat16: "e", DType.kFloat32: "f", DType.kInt32: "i"}

    def __init__(self, sizes, values=None, dtype=DType.kFloat16):
        self.sizes, self.dtype = list(sizes), dtype
        self.count = math.prod(sizes)
        self.format = f"<{self.count}{self.CODES[dtype]}"
        self.memory = HipMemory()
        self.memory.alloc(struct.calcsize(self.format))
        assert self.memory.last_state() == hipError_t.hipSuccess
        # What a kernel does not write shows.
        fill = 0 if dtype == DType.kInt32 else float("nan")
        host = ctypes.create_string_buffer(struct.pack(
            self.format, *([fill] * self.count if values is None else values)))
        self.memory.load_from_host(ctypes.addressof(host),
                                   struct.calcsize(self.format))
        assert self.memory.last_state() == hipError_t.hipSuccess

    def strides(self):
        return [math.prod(self.sizes[i + 1:]) for i in range(len(self.sizes))]

    def view(self):
        return {4: T4, 2: T2, 1: T1}[len(self.sizes)](
            self.memory.get_pointer(), self.sizes, self.strides(), self.dtype)

    def values(self):
        size = struct.calcsize(self.format)
        host = ctypes.create_string_buffer(size)
        self.memory.store_to_host(ctypes.addressof(host), size)
        assert self.memory.last_state() == hipError_t.hipSuccess
        return struct.unpack(self.format, host.raw[:size])


def chance(count, seed):
    """Numbers that fp16 has."""
    source = random.Random(seed)
    return [source.randrange(-64, 65) / 64 for _ in range(count)]


def dot(left, right):
    return sum(map(float.__mul__, left, right))


class Problem:
    """One sequence, (1, heads, length, HEAD_DIM), and its reference."""

    def __init__(self, heads=2, heads_k=1, queries=20, keys=24, causal=False,
                 seed=1):
        self.heads, self.heads_k = heads, heads_k
        self.queries, self.keys, self.causal = queries, keys, causal
        self.scale = 0.125
        self.q, self.dout = (chance(heads * queries * HEAD_DIM, seed + i)
                             for i in (0, 1))
        self.k, self.v = (chance(heads_k * keys * HEAD_DIM, seed + i)
                          for i in (2, 3))

    def rows(self, values, head, length):
        start = head * length * HEAD_DIM
        return [values[start + i * HEAD_DIM:start + (i + 1) * HEAD_DIM]
                for i in range(length)]

    def reference(self):
        """Output, log-sum-exp, dQ, dK, dV."""
        group = self.heads // self.heads_k
        out, lse, dq = [], [], []
        dk = [[0.0] * HEAD_DIM for _ in range(self.heads_k * self.keys)]
        dv = [[0.0] * HEAD_DIM for _ in range(self.heads_k * self.keys)]
        for head in range(self.heads):
            k = self.rows(self.k, head // group, self.keys)
            v = self.rows(self.v, head // group, self.keys)
            first = head // group * self.keys
            for i, (q, dout) in enumerate(
                    zip(self.rows(self.q, head, self.queries),
                        self.rows(self.dout, head, self.queries))):
                seen = min(i + 1, self.keys) if self.causal else self.keys
                scores = [self.scale * dot(q, k[j]) for j in range(seen)]
                total = math.log(sum(map(math.exp, scores)))
                weights = [math.exp(score - total) for score in scores]
                lse.append(total)
                out += [dot(weights, [v[j][d] for j in range(seen)])
                        for d in range(HEAD_DIM)]
                dp = [dot(dout, v[j]) for j in range(seen)]
                delta = dot(weights, dp)
                ds = [self.scale * w * (x - delta)
                      for w, x in zip(weights, dp)]
                dq += [dot(ds, [k[j][d] for j in range(seen)])
                       for d in range(HEAD_DIM)]
                for j in range(seen):
                    for d in range(HEAD_DIM):
                        dk[first + j][d] += ds[j] * q[d]
                        dv[first + j][d] += weights[j] * dout[d]
        return out, lse, dq, sum(dk, []), sum(dv, [])

    def tensors(self):
        of_q = (1, self.heads, self.queries, HEAD_DIM)
        of_k = (1, self.heads_k, self.keys, HEAD_DIM)
        return {"Q": Tensor(of_q, self.q), "K": Tensor(of_k, self.k),
                "V": Tensor(of_k, self.v), "Out": Tensor(of_q),
                "L": Tensor((self.heads, self.queries), dtype=DType.kFloat32),
                "DO": Tensor(of_q, self.dout), "DQ": Tensor(of_q),
                "DK": Tensor(of_k), "DV": Tensor(of_k)}

    def forward(self, tensors):
        params = flash.attn_fwd_params()
        return self.common(params, tensors, ("Q", "K", "V", "Out", "L"))

    def backward(self, tensors):
        params = flash.attn_bwd_params()
        if MINOR >= 11:
            lazy = pyaotriton.lazy_tensor
            params.D = lazy.delta(tensors["L"].view(), 0)
            params.DQ_ACC = lazy.dq_acc(tensors["Q"].view(), None)
        else:  # the workspace is a tensor as the others are
            tensors["D"] = Tensor(tensors["L"].sizes, dtype=DType.kFloat32)
        return self.common(params, tensors, tensors)

    def common(self, params, tensors, names):
        for name in names:
            setattr(params, name, tensors[name].view())
        params.Sm_scale = self.scale
        if self.causal:
            params.causal_type = WINDOWED
            params.window_left = params.window_right = TOP_LEFT
        return params


def names_of(module):
    return {name for name in dir(module) if not name.startswith("__")}


class Names(unittest.TestCase):
    """What there is, without a call of the library."""

    def test_submodules(self):
        import pyaotriton.v2.flash
        import pyaotriton.v3.flash
        v2 = {"check_gpu", "debug_simulate_encoded_softmax"}
        if MINOR < 13:
            v2 |= {"attn_fwd", "attn_bwd", "attn_bwd_fused",
                   "attn_fwd_compact_varlen", "attn_bwd_compact_varlen",
                   "FwdExtraArguments", "BwdExtraArguments",
                   "FusedBwdExtraArguments"}
        self.assertEqual(names_of(pyaotriton.v2.flash), v2)
        v3 = {"attn_fwd", "attn_bwd", "attn_options", "attn_fwd_params",
              "attn_bwd_params"}
        if MINOR == 11:
            v3.add("aiter_bwd")
        if MINOR >= 14:
            v3 |= {"VarlenMode", "VarlenBits", "VarlenStacked", "VarlenLength",
                   "VarlenPosition", "VarlenLseLayout", "varlen_to_wire"}
        self.assertEqual(names_of(flash), v3)
        lazy = {"LT2", "LT4", "delta", "dq_acc"}
        if MINOR >= 12:
            lazy |= {"eager_delta", "eager_null_dq_acc"}
        if MINOR >= 11:
            import pyaotriton.lazy_tensor
            self.assertEqual(names_of(pyaotriton.lazy_tensor), lazy)
        self.assertEqual("lazy_tensor" in names_of(pyaotriton), MINOR >= 11)
        self.assertEqual(hasattr(flash.attn_options(), "force_backend_index"),
                         MINOR >= 11)
        self.assertEqual(hasattr(HipMemory, "zero_memory"), MINOR >= 12)
        self.assertEqual(hasattr(flash.attn_options(), "deterministic"),
                         MINOR >= 12)

    def test_versions(self):
        self.assertEqual(
            (flash.attn_fwd_params.kVersion, flash.attn_bwd_params.kVersion),
            {10: (1, 1), 11: (1, 3), 12: (3, 6), 14: (4, 7)}[MINOR])
        params = flash.attn_fwd_params()
        self.assertEqual(hasattr(params, "varlen_type"), MINOR < 14)
        self.assertEqual(hasattr(params, "seq_strides_q"), MINOR == 12)
        self.assertEqual(hasattr(params, "varlen_bits"), MINOR >= 14)

    def test_enumerations(self):
        self.assertEqual(
            {name: int(value) for name, value in DType.__members__.items()},
            {"kUnknown": 0, "kFloat32": 1, "kFloat16": 2, "kBFloat16": 3,
             "kInt8": 10, "kInt16": 11, "kInt32": 12, "kInt64": 13,
             "kUInt8": 20, "kUInt16": 21, "kUInt32": 22, "kUInt64": 23})
        self.assertIs(type(pyaotriton.kBFloat16), DType)
        self.assertEqual(len(hipError_t.__members__), 78)
        if MINOR < 13:
            index = pyaotriton.v2.CppTuneSpecialKernelIndex
            self.assertEqual((int(index.kDefault), int(index.kSkipGPUCall)),
                             (-1, -2))

    def test_tensors(self):
        view = T4(4096, [1, 2, 3, 64], (384, 192, 64, 1), DType.kBFloat16)
        self.assertEqual(view.sizes, [1, 2, 3, 64])
        self.assertEqual(view.strides, [384, 192, 64, 1])
        self.assertEqual((view.size(2), view.stride(1)), (3, 192))
        self.assertEqual((view.data_ptr, view.dtype), (4096, DType.kBFloat16))
        self.assertEqual(repr(view), "T4(0x1000, [1, 2, 3, 64], "
                                     "[384, 192, 64, 1], DType.kBFloat16)")
        self.assertTrue(view)
        self.assertFalse(T0(0, DType.kUInt64))
        self.assertEqual(T0(16, DType.kUInt64).data_ptr, 16)

    def test_wrong_arguments(self):
        with self.assertRaisesRegex(IndexError, "dimension 2 of a tensor"):
            T2(0, [1, 1], [1, 1], DType.kFloat32).size(2)
        with self.assertRaisesRegex(TypeError, "sizes"):
            T4(0, [1, 2, 3], [1, 1, 1, 1], DType.kFloat16)
        with self.assertRaises(TypeError):
            T4(0, [-1, 2, 3, 4], [1, 1, 1, 1], DType.kFloat16)
        params = flash.attn_bwd_params()
        with self.assertRaises(AttributeError):
            params.Dq = 1
        with self.assertRaises(TypeError):
            params.Q = T2(0, [1, 1], [1, 1], DType.kFloat16)
        wrong, text = (
            (T2, r"attn_bwd_params\.D: a lazy_tensor\.LT2 or None, not a .*T2")
            if MINOR >= 11 else (T1, "incompatible function arguments"))
        with self.assertRaisesRegex(TypeError, text):
            rank = 2 if wrong is T2 else 1
            params.D = wrong(0, [1] * rank, [1] * rank, DType.kFloat32)
        with self.assertRaisesRegex(TypeError, "params"):
            flash.attn_fwd(params, 3)
        with self.assertRaises(TypeError):
            params.causal_type = 300
        with self.assertRaisesRegex(ValueError, "4 bytes, where 0 are"):
            HipMemory().load_from_host(16, 4)

    @unittest.skipIf(MINOR < 14, "of 0.14")
    def test_varlen_bits(self):
        bits = flash.VarlenBits()
        bits.qmode.stacked = flash.VarlenStacked.THD
        bits.qmode.length = flash.VarlenLength.CUMULATIVE
        bits.qmode.position = flash.VarlenPosition.REUSE
        bits.kmode.length = flash.VarlenLength.INDIVIDUAL
        bits.lse_layout = flash.VarlenLseLayout.TH
        self.assertEqual(flash.varlen_to_wire(bits), 0x1040b)
        with self.assertRaisesRegex(ValueError, "VarlenMode.length is 4"):
            bits.qmode.length = 4
        params = flash.attn_fwd_params()
        params.varlen_bits.kmode.stacked = 1
        self.assertEqual(flash.varlen_to_wire(params.varlen_bits), 0x100)


class Device(unittest.TestCase):
    """Calls on a simulated gfx942."""

    def near(self, found, wanted, what):
        self.assertEqual(len(found), len(wanted))
        most = max(map(abs, wanted))
        worst = max(abs(a - b) if a == a else math.inf
                    for a, b in zip(found, wanted))
        self.assertLessEqual(worst, TOLERANCE * most, what)

    def check(self, tensors, problem, gradients=True):
        out, lse, *rest = problem.reference()
        self.near(tensors["Out"].values(), out, "Out")
        self.near(tensors["L"].values(), lse, "L")
        if gradients:
            for name, wanted in zip(("DQ", "DK", "DV"), rest):
                self.near(tensors[name].values(), wanted, name)

    def test_statuses(self):
        """By the names that the HIP library has for the numbers."""
        library = ctypes.CDLL(os.environ["FOVEA_HIPSIM"])
        library.hipGetErrorName.restype = ctypes.c_char_p
        unknown = library.hipGetErrorName(424242)
        known = 0
        for name, value in hipError_t.__members__.items():
            found = library.hipGetErrorName(int(value))
            if found == unknown:
                continue
            known += 1
            others = {other for other, same in hipError_t.__members__.items()
                      if int(same) == int(value)}
            self.assertIn(found.decode(), others)
        self.assertGreater(known, 20)

    def test_check_gpu(self):
        self.assertEqual(pyaotriton.v2.flash.check_gpu(Stream()),
                         hipError_t.hipSuccess)

    def test_both_passes(self):
        for causal in (False, True):
            problem = Problem(causal=causal)
            tensors = problem.tensors()
            self.assertEqual(
                flash.attn_fwd(problem.forward(tensors),
                               flash.attn_fwd_params.kVersion),
                hipError_t.hipSuccess)
            params = problem.backward(tensors)
            for _ in range(2):  # a workspace may be asked for again
                self.assertEqual(
                    flash.attn_bwd(params, flash.attn_bwd_params.kVersion,
                                   Stream(), flash.attn_options()),
                    hipError_t.hipSuccess)
            self.assertEqual(pyaotriton.hipDeviceSynchronize(),
                             hipError_t.hipSuccess)
            self.check(tensors, problem)
            # Memory of the device, wholly without the parameters' objects.
            del params

    def test_compact(self):
        """Sequences of different lengths, one behind the other."""
        heads, lengths = 2, (5, 9)
        problems = [Problem(heads, heads, n, n, True, seed=10 * n)
                    for n in lengths]
        total = sum(lengths)

        def pack(member):
            rows = [problem.rows(getattr(problem, member), head, n)
                    for head in range(heads)
                    for problem, n in zip(problems, lengths)]
            return [x for part in rows for row in part for x in row]
        sizes = (1, heads, total, HEAD_DIM)
        q, k, v = (Tensor(sizes, pack(name)) for name in "qkv")
        out = Tensor(sizes)
        ends = Tensor((3,), (0, 5, 14), DType.kInt32)
        params = flash.attn_fwd_params()
        params.Q, params.K, params.V = q.view(), k.view(), v.view()
        params.Out = out.view()
        params.Sm_scale = problems[0].scale
        params.causal_type = WINDOWED
        params.window_left = params.window_right = TOP_LEFT
        params.Max_seqlen_q = params.Max_seqlen_k = max(lengths)
        if MINOR >= 14:
            params.seqinfo_q0 = params.seqinfo_k0 = ends.view()
            for mode in (params.varlen_bits.qmode, params.varlen_bits.kmode):
                mode.stacked = flash.VarlenStacked.THD
                mode.length = flash.VarlenLength.CUMULATIVE
                mode.position = flash.VarlenPosition.REUSE
        else:
            params.cu_seqlens_q = params.cu_seqlens_k = ends.view()
            params.varlen_type = 1
        self.assertEqual(
            flash.attn_fwd(params, flash.attn_fwd_params.kVersion),
            hipError_t.hipSuccess)
        found, at = out.values(), 0
        wanted = [problem.reference()[0] for problem in problems]
        for head in range(heads):
            for n, reference in zip(lengths, wanted):
                size = n * HEAD_DIM
                self.near(found[at:at + size],
                          reference[head * size:(head + 1) * size], "Out")
                at += size

    @unittest.skipIf(MINOR >= 13, "of 0.11 and 0.12")
    def test_v2(self):
        v2 = pyaotriton.v2.flash
        problem = Problem(causal=True, seed=7)
        tensors = problem.tensors()
        t = {name: tensor.view() for name, tensor in tensors.items()}
        none4 = T4(0, [0] * 4, [0] * 4, DType.kFloat16)
        none0 = T0(0, DType.kUInt64)
        self.assertEqual(
            v2.attn_fwd(t["Q"], t["K"], t["V"], none4, problem.scale, t["L"],
                        t["Out"], 0.0, none0, none0, 0, none0, none0, none4,
                        True, T0(0, DType.kInt32), Stream(),
                        v2.FwdExtraArguments()),
            hipError_t.hipSuccess)
        delta = Tensor(tensors["L"].sizes, dtype=DType.kFloat32)
        self.assertEqual(
            v2.attn_bwd(q=t["Q"], k=t["K"], v=t["V"], b=none4,
                        sm_scale=problem.scale, out=t["Out"], dout=t["DO"],
                        dq=t["DQ"], dk=t["DK"], dv=t["DV"], db=none4,
                        softmax_lse=t["L"], delta=delta.view(), dropout_p=0.0,
                        philox_seed=none0, philox_offset1=none0,
                        philox_offset2=0, is_causal=True),
            hipError_t.hipSuccess)
        self.check(tensors, problem)

    @unittest.skipIf(MINOR < 12, "from 0.12 on")
    def test_eager(self):
        problem = Problem(seed=3)
        tensors = problem.tensors()
        flash.attn_fwd(problem.forward(tensors), flash.attn_fwd_params.kVersion)
        params = problem.backward(tensors)
        delta = Tensor(tensors["L"].sizes, dtype=DType.kFloat32)
        lazy = pyaotriton.lazy_tensor
        params.D = lazy.eager_delta(delta.view())
        params.DQ_ACC = lazy.eager_null_dq_acc(
            T4(0, [0] * 4, [0] * 4, DType.kFloat32))
        options = flash.attn_options()
        options.deterministic = True
        self.assertEqual(
            flash.attn_bwd(params, flash.attn_bwd_params.kVersion,
                           options=options), hipError_t.hipSuccess)
        self.check(tensors, problem)
        memory = HipMemory()
        memory.alloc(8)
        memory.zero_memory()
        host = ctypes.create_string_buffer(b"12345678")
        memory.store_to_host(ctypes.addressof(host), 8)
        self.assertEqual(host.raw[:8], bytes(8))

    def test_refusals(self):
        """A status, as of AOTriton's module, and the reason as a warning."""
        problem = Problem()
        tensors = problem.tensors()
        params = problem.forward(tensors)
        with self.assertWarnsRegex(RuntimeWarning, "attn_fwd: .*ayout"):
            self.assertEqual(flash.attn_fwd(params, 99),
                             hipError_t.hipErrorInvalidSymbol)
        params.causal_type = 1
        with self.assertWarnsRegex(RuntimeWarning, "causal_type is 1"):
            self.assertEqual(
                flash.attn_fwd(params, flash.attn_fwd_params.kVersion),
                hipError_t.hipErrorInvalidValue)
        self.assertIn("causal_type is 1", pyaotriton.fovea_last_message())
        self.assertTrue(math.isnan(tensors["Out"].values()[0]))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with self.assertRaisesRegex(RuntimeWarning, "causal_type is 1"):
                flash.attn_fwd(params, flash.attn_fwd_params.kVersion)
        backward = problem.backward(tensors)
        if MINOR >= 11:
            backward.D = backward.DQ_ACC = None
        else:
            backward.D = T2(0, [0] * 2, [0] * 2, DType.kFloat32)
        with self.assertWarnsRegex(RuntimeWarning, "attn_bwd: .*workspace"):
            self.assertEqual(
                flash.attn_bwd(backward, flash.attn_bwd_params.kVersion),
                hipError_t.hipErrorNotSupported)


    @unittest.skipIf(MINOR < 11, "from 0.11 on")
    def test_lazy_tensors_that_fail(self):
        """By the status that HIP gave to the allocation."""
        lazy = pyaotriton.lazy_tensor
        problem = Problem()
        tensors = problem.tensors()
        flash.attn_fwd(problem.forward(tensors), flash.attn_fwd_params.kVersion)
        large = T2(0, [2**30, 2**20], [0, 0], DType.kFloat32)
        small = T2(0, [problem.heads, problem.queries], [0, 0], DType.kFloat32)
        for delta, status, reason in (
                (lazy.delta(large, None), hipError_t.hipErrorOutOfMemory,
                 r"attn_bwd: D was to be allocated .*; lazy_tensor.LT2 of "
                 r"4503599627370496 bytes: hipMalloc failed with status 2"),
                (lazy.delta(small, 99), hipError_t.hipErrorInvalidDevice,
                 r"attn_bwd: D .*: hipSetDevice failed with status 101")):
            params = problem.backward(tensors)
            params.D = delta
            with self.assertWarnsRegex(RuntimeWarning, reason):
                self.assertEqual(
                    flash.attn_bwd(params, flash.attn_bwd_params.kVersion),
                    status)
            self.assertRegex(pyaotriton.fovea_last_message(), reason)
            self.assertTrue(math.isnan(tensors["DQ"].values()[0]))
        pyaotriton.hipGetLastError()
        with self.assertRaisesRegex(ValueError, r"sizes \[4294967297, 4294967296"
                                                r"\], which have more bytes"):
            lazy.delta(T2(0, [2**32 + 1, 2**32], [0, 0], DType.kFloat32), None)
        with self.assertRaisesRegex(ValueError, "more bytes in fp32"):
            lazy.dq_acc(T4(0, [2**16] * 4, [0] * 4, DType.kFloat32), None)
        self.assertEqual(
            flash.attn_bwd(problem.backward(tensors),
                           flash.attn_bwd_params.kVersion),
            hipError_t.hipSuccess)
        self.assertEqual(pyaotriton.fovea_last_message(), "")
        self.check(tensors, problem)


class Throws(unittest.TestCase):
    """FOVEA_AOTRITON_ERRORS=throw."""

    def test_refusal(self):
        with self.assertRaisesRegex(RuntimeError, "fovea-aotriton: attn_fwd: "):
            flash.attn_fwd(flash.attn_fwd_params(), 99)

    @unittest.skipIf(MINOR < 11, "from 0.11 on")
    def test_lazy_tensor(self):
        problem = Problem()
        tensors = problem.tensors()
        params = problem.backward(tensors)
        params.D = pyaotriton.lazy_tensor.delta(tensors["L"].view(), 99)
        with self.assertRaisesRegex(
                RuntimeError, "^fovea-aotriton: attn_bwd: D .*hipSetDevice"):
            flash.attn_bwd(params, flash.attn_bwd_params.kVersion)


class NoDevice(unittest.TestCase):
    """No HIP library: the module is there all the same."""

    def test_import(self):
        self.assertEqual(pyaotriton.hipGetLastError(),
                         hipError_t.hipErrorNoDevice)
        self.assertIn("/nowhere", pyaotriton.fovea_last_message())
        self.assertEqual(pyaotriton.hipDeviceSynchronize(),
                         hipError_t.hipErrorNoDevice)
        memory = HipMemory()
        memory.alloc(16)
        self.assertEqual(memory.last_state(), hipError_t.hipErrorNoDevice)
        self.assertEqual(memory.get_pointer(), 0)
        self.assertEqual(pyaotriton.v2.flash.check_gpu(Stream()),
                         hipError_t.hipErrorNoDevice)
        view = T4(4096, [1, 1, 8, 64], [512, 512, 64, 1], DType.kFloat16)
        params = flash.attn_fwd_params()
        params.Q = params.K = params.V = params.Out = view
        with self.assertWarnsRegex(RuntimeWarning, "attn_fwd: .*/nowhere"):
            self.assertEqual(
                flash.attn_fwd(params, flash.attn_fwd_params.kVersion),
                hipError_t.hipErrorNoDevice)


if __name__ == "__main__":
    unittest.main()
