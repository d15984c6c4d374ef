"""flash-attn's functions over Fovea's kernels, for programs that have theirs.

    from fovea.flash_attn import flash_attn_func

Tensors are (batch, sequence, heads, head_dim) of float16 or bfloat16, or (total, heads,
head_dim) where sequences are packed, with gradients; float32 is taken, too. Windows
count from the bottom-right diagonal, and -1 is no bound. The log-sum-exp of a row that
sees no key is -infinity. What is not served raises fovea.Error.
"""

from __future__ import annotations

import functools
from typing import Any, Optional, Tuple, Union

import torch
from torch import Tensor

from . import _errors, torch as _torch
from ._features import Score, Sequences, Varlen, Window
from ._native import index

__all__ = ["flash_attn_func", "flash_attn_kvpacked_func", "flash_attn_qkvpacked_func",
           "flash_attn_varlen_func", "flash_attn_varlen_kvpacked_func",
           "flash_attn_varlen_qkvpacked_func", "flash_attn_with_kvcache"]


@functools.lru_cache
def _window(left, right):
    window = Window.of_flash_attn(left, right)
    return None if window == Window() else window


def _attention(q, k, v, batch, varlen, dropout_p, softmax_scale, causal, window_size,
               softcap, alibi_slopes, deterministic, return_attn_probs, s_aux=None,
               splits=0):
    if return_attn_probs and dropout_p:
        raise _errors.NotFoundError(
            "return_attn_probs is true and dropout_p is not 0: which weights are dropped "
            "is not returned; fovea.dropout_mask tells it for a seed")
    if not isinstance(window_size, (tuple, list)) or len(window_size) != 2:
        raise _errors.InvalidArgumentError(f"window_size is {window_size}, not (left, right)")
    left, right = (index(bound, "window_size") for bound in window_size)
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
        sinks=None if s_aux is None else s_aux.float(), varlen=varlen, splits=splits,
        deterministic=deterministic or None, return_lse=True)
    out = out.transpose(-3, -2)
    return (out, lse, None) if return_attn_probs else out


def _refuse_pages(block_table):
    if block_table is not None:
        raise _errors.NotFoundError("block_table is given: pages of a cache are not "
                                    "served; gather the keys")


def flash_attn_func(q: Tensor, k: Tensor, v: Tensor, dropout_p: float = 0.0,
                    softmax_scale: Optional[float] = None, causal: bool = False,
                    window_size: Tuple[int, int] = (-1, -1), softcap: float = 0.0,
                    alibi_slopes: Optional[Tensor] = None, deterministic: bool = False,
                    return_attn_probs: bool = False, *,
                    s_aux: Optional[Tensor] = None) -> Any:
    """Attention of (batch, sequence, heads, head_dim).

    Args:
        s_aux: (heads), sinks, by the name that kernels of the Hugging Face hub have.

    Returns:
        out, as q; with `return_attn_probs` (out, lse, None), lse (batch, heads,
        sequence).
    """
    return _attention(q, k, v, q.shape[0], None, dropout_p, softmax_scale, causal,
                      window_size, softcap, alibi_slopes, deterministic,
                      return_attn_probs, s_aux)


def flash_attn_varlen_func(q: Tensor, k: Tensor, v: Tensor, cu_seqlens_q: Tensor,
                           cu_seqlens_k: Tensor, max_seqlen_q: int, max_seqlen_k: int,
                           dropout_p: float = 0.0,
                           softmax_scale: Optional[float] = None, causal: bool = False,
                           window_size: Tuple[int, int] = (-1, -1),
                           softcap: float = 0.0, alibi_slopes: Optional[Tensor] = None,
                           deterministic: bool = False, return_attn_probs: bool = False,
                           block_table: Optional[Tensor] = None, *,
                           s_aux: Optional[Tensor] = None) -> Any:
    """Attention of packed sequences, (total, heads, head_dim); cu_seqlens are int32
    (batch + 1), `s_aux` as of :func:`flash_attn_func`.

    Returns:
        out, as q; with `return_attn_probs` (out, lse, None), lse (heads, total).
    """
    _refuse_pages(block_table)
    return _attention(q, k, v, cu_seqlens_q.shape[0] - 1,
                      Varlen.packed(cu_seqlens_q, cu_seqlens_k, max_seqlen_q,
                                    max_seqlen_k), dropout_p, softmax_scale, causal,
                      window_size, softcap, alibi_slopes, deterministic,
                      return_attn_probs, s_aux)


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


def flash_attn_with_kvcache(q: Tensor, k_cache: Tensor, v_cache: Tensor,
                            k: Optional[Tensor] = None, v: Optional[Tensor] = None,
                            rotary_cos: Optional[Tensor] = None,
                            rotary_sin: Optional[Tensor] = None,
                            cache_seqlens: Union[int, Tensor, None] = None,
                            cache_batch_idx: Optional[Tensor] = None,
                            cache_leftpad: Optional[Tensor] = None,
                            block_table: Optional[Tensor] = None,
                            softmax_scale: Optional[float] = None, causal: bool = False,
                            window_size: Tuple[int, int] = (-1, -1), softcap: float = 0.0,
                            rotary_interleaved: bool = True,
                            alibi_slopes: Optional[Tensor] = None, num_splits: int = 0,
                            return_softmax_lse: bool = False, *,
                            s_aux: Optional[Tensor] = None) -> Any:
    """Attention to a cache, (batch, most keys, heads_k, head_dim), without gradients.

    Args:
        q: (batch, queries, heads, head_dim), behind the keys of its sequence.
        k, v: (batch, new keys, heads_k, head_dim), which are written into the cache behind
            the first cache_seqlens keys before attention.
        cache_seqlens: how many keys each sequence has, a number or int32 (batch); None:
            all.
        cache_leftpad: int32 (batch), the first key of each.
        num_splits: shares of the keys; 0: by the rule.
        rotary_cos, rotary_sin, rotary_interleaved, cache_batch_idx, block_table: not
            served; leave them out.

    Returns:
        out, as q; with `return_softmax_lse` (out, lse), lse (batch, heads, queries).

    Raises:
        fovea.NotFoundError: of what is not served.
    """
    _refuse_pages(block_table)
    for name, given, remedy in (
            ("rotary_cos", rotary_cos, "rotate q and k before"),
            ("rotary_sin", rotary_sin, "rotate q and k before"),
            ("cache_batch_idx", cache_batch_idx, "index the cache before")):
        if given is not None:
            raise _errors.NotFoundError(f"{name} is given, which is not served; {remedy}")
    if (k is None) != (v is None):
        raise _errors.InvalidArgumentError("k and v are given together, or neither")
    batch = q.shape[0]
    if cache_seqlens is None:
        if k is not None:
            raise _errors.InvalidArgumentError(
                "k is given without cache_seqlens, so nothing says where it belongs")
        cache_seqlens = k_cache.shape[1]
    lengths = torch.as_tensor(cache_seqlens, device=q.device)
    if lengths.is_floating_point():  # which int32 would cut off
        raise TypeError(f"cache_seqlens is {cache_seqlens!r}, not of whole numbers")
    if lengths.shape not in ((), (1,), (batch,)):
        raise _errors.InvalidArgumentError(
            f"cache_seqlens has shape {tuple(lengths.shape)}, not ({batch},), the sequences of q")
    lengths = lengths.int().expand(batch)
    with torch.no_grad():
        if k is not None:
            places = lengths[:, None] + torch.arange(k.shape[1], device=q.device)
            rows = torch.arange(batch, device=q.device)[:, None]
            k_cache[rows, places], v_cache[rows, places] = k, v
            lengths = lengths + k.shape[1]
        if cache_leftpad is not None:
            lengths = lengths - cache_leftpad
        out, lse, _ = _attention(
            q, k_cache, v_cache, batch,
            Varlen(k=Sequences(lengths=lengths.int().contiguous(), starts=cache_leftpad)),
            0.0, softmax_scale, causal, window_size, softcap, alibi_slopes, False, True, s_aux,
            num_splits)
    return (out, lse) if return_softmax_lse else out
