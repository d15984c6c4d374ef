"""flash-attn's functions over Fovea's kernels, for programs that have theirs.

    from fovea.flash_attn import flash_attn_func

Tensors are (batch, sequence, heads, head_dim) of float16 or bfloat16, or (total, heads,
head_dim) where sequences are packed, with gradients; float32 is taken, too. Windows
count from the bottom-right diagonal, and -1 is no bound. The log-sum-exp of a row that
sees no key is -infinity. What is not served raises fovea.Error.
"""

from __future__ import annotations

import functools
from typing import Any, Optional, Tuple

from torch import Tensor

from . import _errors, torch as _torch
from ._features import Score, Varlen, Window

__all__ = ["flash_attn_func", "flash_attn_kvpacked_func", "flash_attn_qkvpacked_func",
           "flash_attn_varlen_func", "flash_attn_varlen_kvpacked_func",
           "flash_attn_varlen_qkvpacked_func"]


@functools.lru_cache
def _window(left, right):
    window = Window.of_flash_attn(left, right)
    return None if window == Window() else window


def _attention(q, k, v, batch, varlen, dropout_p, softmax_scale, causal, window_size,
               softcap, alibi_slopes, deterministic, return_attn_probs):
    if return_attn_probs and dropout_p:
        raise _errors.NotFoundError(
            "return_attn_probs is true and dropout_p is not 0: which weights are dropped "
            "is not returned; fovea.dropout_mask tells it for a seed")
    left, right = map(int, window_size)
    names, captures = [], []
    if softcap > 0:
        names.append("softcap")
        captures.append(float(softcap))
    if alibi_slopes is not None:  # (heads), or (batch, heads)
        names.append("alibi")
        captures.append(alibi_slopes.float().expand(batch, q.shape[-2]))
    out, lse = _torch.attention(
        *(tensor.transpose(-3, -2) for tensor in (q, k, v)), scale=softmax_scale,
        window=_window(left, 0 if causal else right),
        score=Score(",".join(names), captures) if names else None, dropout_p=dropout_p,
        varlen=varlen, deterministic=deterministic or None, return_lse=True)
    out = out.transpose(-3, -2)
    return (out, lse, None) if return_attn_probs else out


def flash_attn_func(q: Tensor, k: Tensor, v: Tensor, dropout_p: float = 0.0,
                    softmax_scale: Optional[float] = None, causal: bool = False,
                    window_size: Tuple[int, int] = (-1, -1), softcap: float = 0.0,
                    alibi_slopes: Optional[Tensor] = None, deterministic: bool = False,
                    return_attn_probs: bool = False) -> Any:
    """Attention of (batch, sequence, heads, head_dim).

    Returns:
        out, as q; with `return_attn_probs` (out, lse, None), lse (batch, heads,
        sequence).
    """
    return _attention(q, k, v, q.shape[0], None, dropout_p, softmax_scale, causal,
                      window_size, softcap, alibi_slopes, deterministic,
                      return_attn_probs)


def flash_attn_varlen_func(q: Tensor, k: Tensor, v: Tensor, cu_seqlens_q: Tensor,
                           cu_seqlens_k: Tensor, max_seqlen_q: int, max_seqlen_k: int,
                           dropout_p: float = 0.0,
                           softmax_scale: Optional[float] = None, causal: bool = False,
                           window_size: Tuple[int, int] = (-1, -1),
                           softcap: float = 0.0, alibi_slopes: Optional[Tensor] = None,
                           deterministic: bool = False, return_attn_probs: bool = False,
                           block_table: Optional[Tensor] = None) -> Any:
    """Attention of packed sequences, (total, heads, head_dim); cu_seqlens are int32
    (batch + 1).

    Returns:
        out, as q; with `return_attn_probs` (out, lse, None), lse (heads, total).
    """
    if block_table is not None:
        raise _errors.NotFoundError("block_table is given: pages of a cache are not "
                                    "served; gather the keys")
    return _attention(q, k, v, cu_seqlens_q.shape[0] - 1,
                      Varlen.packed(cu_seqlens_q, cu_seqlens_k, max_seqlen_q,
                                    max_seqlen_k), dropout_p, softmax_scale, causal,
                      window_size, softcap, alibi_slopes, deterministic,
                      return_attn_probs)


def flash_attn_qkvpacked_func(qkv: Tensor, *arguments: Any, **options: Any) -> Any:
    """:func:`flash_attn_func` of (batch, sequence, 3, heads, head_dim)."""
    q, k, v = qkv.unbind(2)
    return flash_attn_func(q, k, v, *arguments, **options)


def flash_attn_kvpacked_func(q: Tensor, kv: Tensor, *arguments: Any,
                             **options: Any) -> Any:
    """:func:`flash_attn_func`, keys and values (batch, sequence, 2, heads, head_dim)."""
    k, v = kv.unbind(2)
    return flash_attn_func(q, k, v, *arguments, **options)


def flash_attn_varlen_qkvpacked_func(qkv: Tensor, cu_seqlens: Tensor, max_seqlen: int,
                                     *arguments: Any, **options: Any) -> Any:
    """:func:`flash_attn_varlen_func` of (total, 3, heads, head_dim)."""
    q, k, v = qkv.unbind(1)
    return flash_attn_varlen_func(q, k, v, cu_seqlens, cu_seqlens, max_seqlen,
                                  max_seqlen, *arguments, **options)


def flash_attn_varlen_kvpacked_func(q: Tensor, kv: Tensor, *arguments: Any,
                                    **options: Any) -> Any:
    """:func:`flash_attn_varlen_func`, keys and values (total, 2, heads, head_dim)."""
    k, v = kv.unbind(1)
    return flash_attn_varlen_func(q, k, v, *arguments, **options)
