"""Attention and its gradients in fp64, and the 16-bit types as NumPy lacks one."""

import numpy as np


# Largest relative error of one rounding to a type. tf32 has 11 bits like fp16, and
# matrix units may cut off what is beyond.
UNIT = {"fp16": 2.0 ** -11, "bf16": 2.0 ** -8, "fp32": 2.0 ** -24, "tf32": 2.0 ** -10}


def to_bf16(values):
    """Rounds to bfloat16 (nearest, ties to even); raw bits as uint16."""
    bits = np.asarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def encode(values, kind):
    """`values` as the type "fp16", "bf16" or "fp32" has them in memory."""
    if kind == "bf16":
        return to_bf16(values)
    return np.asarray(values, np.float16 if kind == "fp16" else np.float32)


def decode(array):
    """Elements as fp64; uint16 is bfloat16."""
    if array.dtype == np.uint16:
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return array.astype(np.float64)


def _logits(q, k, scale, causal):
    s = np.einsum("bhid,bhjd->bhij", q, k) * scale
    if causal:
        rows, keys = np.arange(s.shape[2])[:, None], np.arange(s.shape[3])[None]
        s = np.where(keys <= rows + s.shape[3] - s.shape[2], s, -np.inf)
    return s


def forward(q, k, v, scale, causal):
    """(out, lse) of fp64 tensors (batch, heads, sequence, dim)."""
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    s = _logits(q, k, scale, causal)
    top = s.max(-1, keepdims=True)
    top = np.where(np.isinf(top), 0.0, top)
    p = np.exp(s - top)
    total = p.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = (top + np.log(total))[..., 0]
    return np.einsum("bhij,bhjd->bhid", p / np.where(total == 0, 1, total), v), lse


def backward(q, k, v, dout, scale, causal):
    """(dq, dk, dv) of the forward above for the gradient `dout` of its output."""
    group = q.shape[1] // k.shape[1]
    wide_k, wide_v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    out, lse = forward(q, k, v, scale, causal)
    s = _logits(q, wide_k, scale, causal)
    p = np.exp(s - np.where(np.isinf(lse), 0.0, lse)[..., None])
    dp = np.einsum("bhid,bhjd->bhij", dout, wide_v)
    ds = p * (dp - (out * dout).sum(-1, keepdims=True)) * scale
    fold = lambda x: x.reshape(k.shape[0], k.shape[1], group, *x.shape[2:]).sum(2)
    return (np.einsum("bhij,bhjd->bhid", ds, wide_k),
            fold(np.einsum("bhij,bhid->bhjd", ds, q)),
            fold(np.einsum("bhij,bhid->bhjd", p, dout)))


def plain_forward(q, k, v, scale, causal, kind):
    """(out, lse) of the plain algorithm: probabilities and the output rounded to the
    inputs' type, the rest in fp32."""
    log2e = 1.4426950408889634
    rounded = lambda x: decode(encode(x, kind)).astype(np.float32)
    group = q.shape[1] // k.shape[1]
    k, v = (np.repeat(x, group, 1).astype(np.float32) for x in (k, v))
    s = _logits(q.astype(np.float32), k, np.float32(scale * log2e), causal)
    top = s.max(-1, keepdims=True)
    top = np.where(np.isinf(top), np.float32(0), top)
    p = np.exp2(s - top)
    total = p.sum(-1, keepdims=True)
    out = np.einsum("bhij,bhjd->bhid", rounded(p), v)
    with np.errstate(divide="ignore"):
        lse = ((top + np.log2(total)) / np.float32(log2e))[..., 0]
    return rounded(out / np.where(total == 0, np.float32(1), total)), lse


def plain_backward(q, k, v, dout, scale, causal, kind):
    """(dq, dk, dv) of the plain algorithm: probabilities, their gradients and the
    forward's output rounded to the inputs' type, the rest in fp32."""
    rounded = lambda x: decode(encode(x, kind)).astype(np.float32)
    group = q.shape[1] // k.shape[1]
    shape = k.shape
    out, lse = forward(q, k, v, scale, causal)
    q, dout = q.astype(np.float32), dout.astype(np.float32)
    k, v = (np.repeat(x, group, 1).astype(np.float32) for x in (k, v))
    lse = np.where(np.isinf(lse), 0.0, lse).astype(np.float32)
    p = np.exp(_logits(q, k, np.float32(scale), causal) - lse[..., None])
    delta = (rounded(out) * dout).sum(-1, keepdims=True)
    ds = rounded(p * (np.einsum("bhid,bhjd->bhij", dout, v) - delta))
    fold = lambda x: x.reshape(shape[0], shape[1], group, *x.shape[2:]).sum(2)
    scale = np.float32(scale)
    return (rounded(np.einsum("bhij,bhjd->bhid", ds, k) * scale),
            rounded(fold(np.einsum("bhij,bhid->bhjd", ds, q)) * scale),
            rounded(fold(np.einsum("bhij,bhid->bhjd", rounded(p), dout))))


def fp8_values(name):
    """The 256 values of Triton's fp8e4nv, fp8e4b8, fp8e5 or fp8e5b16. The "b" ones
    have one NaN (0x80) and no infinities."""
    exponent_bits = int(name[4])
    mantissa_bits = 7 - exponent_bits
    offset = "b" in name[4:]
    bias = (1 << (exponent_bits - 1)) - (0 if offset else 1)
    codes = np.arange(256)
    exponent = codes >> mantissa_bits & ((1 << exponent_bits) - 1)
    mantissa = (codes & ((1 << mantissa_bits) - 1)) / (1 << mantissa_bits)
    values = np.where(exponent == 0, mantissa * 2.0 ** (1 - bias),
                      (1 + mantissa) * 2.0 ** (exponent - float(bias)))
    values = np.where(codes & 0x80, -values, values)
    if offset:
        values[0x80] = np.nan
    elif name == "fp8e5":
        values[(codes & 0x7C) == 0x7C] = np.nan
    else:
        values[(codes & 0x7F) == 0x7F] = np.nan
    return values
