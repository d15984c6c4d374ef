"""Attention and its gradients in fp64, by NumPy."""

import numpy as np


def visible(rows, keys, left, right):
    """Which keys each row sees, from the bottom-right diagonal."""
    i = np.arange(rows)[:, None] + keys - rows
    j = np.arange(keys)[None]
    return (j >= i - left) & (j <= i + right)


def attention(q, k, v, dout, seen=True, scale=None, bias=0.0, cap=None, sinks=None,
              keep=1.0, dlse=0.0):
    """out, lse, dq, dk, dv, dsinks, dbias of (batch, heads, rows, head_dim).

    Args:
        seen: (..., rows, keys), which weights there are.
        keep: (..., rows, keys), what weights are multiplied by behind the softmax.
    """
    q, k, v, dout = (np.asarray(a, np.float64) for a in (q, k, v, dout))
    group = q.shape[1] // k.shape[1]
    kk, vv = np.repeat(k, group, 1), np.repeat(v, group, 1)
    scale = q.shape[-1] ** -0.5 if scale is None else scale
    x = q @ kk.swapaxes(-1, -2) * scale
    slope = 1.0
    if cap is not None:
        slope = 1 - np.tanh(x / cap) ** 2
        x = cap * np.tanh(x / cap)
    x = np.where(seen, x + bias, -np.inf)
    sink = (np.full(q.shape[1], -np.inf) if sinks is None
            else np.asarray(sinks, np.float64))[None, :, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.maximum(x.max(-1, initial=-np.inf), sink)
        shift = np.where(np.isfinite(most), most, 0)
        lse = np.log(np.exp(x - shift[..., None]).sum(-1) + np.exp(sink - shift)) + shift
        p = np.where(np.isfinite(lse)[..., None], np.exp(x - lse[..., None]), 0)
    out = (p * keep) @ vv
    delta = (out * dout).sum(-1) - dlse
    dv = (p * keep).swapaxes(-1, -2) @ dout
    dx = p * (keep * (dout @ vv.swapaxes(-1, -2)) - delta[..., None])
    ds = dx * slope * scale
    dsinks = (None if sinks is None
              else -(np.exp(sink - lse) * delta).sum((0, 2)))

    def of_keys(gradient):
        return gradient.reshape(gradient.shape[0], k.shape[1], group,
                                *gradient.shape[2:]).sum(2)

    return (out, lse, ds @ kk, of_keys(ds.swapaxes(-1, -2) @ q), of_keys(dv), dsinks,
            dx)
