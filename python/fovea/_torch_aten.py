"""PyTorch's own operators of attention, as Fovea serves them."""

from __future__ import annotations

from typing import Callable, Optional, Tuple

import torch
from torch import Tensor

from . import _attention, _errors, _flex
from ._features import Capture, Dropout, Score, Sequences, Varlen, Window
from ._torch_operators import as_bias, empty, plain, rows_together


class NotServed(Exception):
    """A call that Fovea has no form for."""


# What a call may be handed on for; failures of a device or of a kernel are raised.
REFUSALS = (NotServed, TypeError, _errors.InvalidArgumentError,
             _errors.NotFoundError, _errors.IncompatibleError, _errors.NoDeviceError)


def _causal(is_causal):
    return "causal-top-left" if is_causal else "none"


def _bias(bias: Optional[Tensor], q: Tensor, k: Tensor,
          gradient: Optional[Tensor] = None) -> Optional[Score]:
    """A mask of booleans, or what is added to scores: broadcast, rows as they are."""
    if bias is None:
        return None
    name, whole = as_bias(bias.detach(), q, k)
    return Score(name, [whole if gradient is None else Capture(whole, gradient)])


def _seeds(dropout_p: float, q: Tensor) -> Tuple[Tensor, Tensor]:
    """Seed and offset as this build of PyTorch keeps them between the passes: 0-dim
    numbers on ROCm; else both in one tensor, and one that is unused."""
    if dropout_p:
        seed = torch.randint(2**62, (1,), dtype=torch.int64, device=q.device)
    else:
        seed = torch.zeros(1, dtype=torch.int64, device=q.device)
    if torch.version.hip:
        return seed[0], torch.zeros_like(seed)[0]
    return (torch.cat([seed, torch.zeros_like(seed)]).view(torch.uint64),
            torch.zeros((), dtype=torch.uint64, device=q.device))


def _philox(dropout_p: float, seed: Tensor, offset: Tensor) -> Optional[Dropout]:
    if not dropout_p:
        return None
    if seed.dim():
        seed, offset = seed[0], seed[1]
    return Dropout(dropout_p, seed=seed.detach(), offset=offset.detach())


def _like(tensor: Tensor, make: Callable = torch.empty_like) -> Tensor:
    """A result, as PyTorch's fake kernels have it: of the order of memory of what it is the
    like of, but with the elements of a row together, since kernels write it."""
    made = make(tensor)
    return made if rows_together(made) is made else make(
        tensor, memory_format=torch.contiguous_format)


def _scale(scale, q):
    return _attention.default_scale(q.shape[-1]) if scale is None else scale


def _cpu_forward(q, k, v, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None):
    if dropout_p:
        raise NotServed("PyTorch's operator has no seed to keep for dropout")
    out = _like(q)
    lse = q.new_empty((q.shape[0], q.shape[2], q.shape[1]),
                      dtype=torch.float32).transpose(1, 2)
    written = lse.contiguous()
    _attention.attention(*map(plain, (q, k, v)), scale=_scale(scale, q),
                         mask=_causal(is_causal), score=_bias(attn_mask, q, k), out=out,
                         lse=written)
    return out, lse.copy_(written)


def _cpu_backward(grad_out, q, k, v, out, lse, dropout_p, is_causal, *, attn_mask=None,
                  scale=None):
    results = [empty(tensor.shape, tensor) for tensor in (q, k, v)]
    _attention.attention_backward(
        *map(plain, (grad_out, q, k, v, out)), lse.detach().contiguous(),
        scale=_scale(scale, q), mask=_causal(is_causal), score=_bias(attn_mask, q, k),
        dq=results[0], dk=results[1], dv=results[2],
        deterministic=torch.are_deterministic_algorithms_enabled())
    return tuple(results)


def _flash_forward(q, k, v, dropout_p=0.0, is_causal=False, return_debug_mask=False, *,
                   scale=None):
    seed, offset = _seeds(dropout_p, q)
    debug = q.new_empty(0)
    if return_debug_mask and dropout_p:  # below 0 where a weight is dropped, as on ROCm
        debug = _attention.dropout_mask(q.new_empty((*q.shape[:3], k.shape[2])).detach(),
                                        _philox(dropout_p, seed, offset))
    out, lse = _like(q), q.new_empty(q.shape[:3], dtype=torch.float32)
    _attention.attention(*map(plain, (q, k, v)), scale=_scale(scale, q),
                         mask=_causal(is_causal), dropout=_philox(dropout_p, seed, offset),
                         out=out, lse=lse)
    return out, lse, None, None, q.shape[2], k.shape[2], seed, offset, debug


def _flash_backward(grad_out, q, k, v, out, lse, cum_seq_q, cum_seq_k, max_q, max_k,
                    dropout_p, is_causal, philox_seed, philox_offset, *, scale=None):
    results = [_like(tensor) for tensor in (q, k, v)]
    _attention.attention_backward(
        *map(plain, (grad_out, q, k, v, out, lse)), scale=_scale(scale, q),
        mask=_causal(is_causal), dropout=_philox(dropout_p, philox_seed, philox_offset),
        dq=results[0], dk=results[1], dv=results[2],
        deterministic=torch.are_deterministic_algorithms_enabled())
    return tuple(results)


def _efficient_forward(q, k, v, attn_bias, compute_log_sumexp, dropout_p=0.0,
                       is_causal=False, *, scale=None):
    seed, offset = _efficient_seeds(dropout_p, q)
    out = empty((*q.shape[:3], v.shape[-1]), q)
    rows = q.shape[2]
    lse = _efficient_lse(q, (*q.shape[:2], rows), compute_log_sumexp)
    _attention.attention(
        *map(plain, (q, k, v)), scale=_scale(scale, q), mask=_causal(is_causal),
        score=_bias(attn_bias, q, k), dropout=_philox(dropout_p, seed, offset), out=out,
        lse=lse[..., :rows] if compute_log_sumexp else None)
    return out, lse, seed, offset


def _efficient_lse(like, shape, is_wanted):
    """Where PyTorch is not ROCm's it expects rows up to a multiple of 32."""
    *others, rows = shape
    held = rows if torch.version.hip else -(-rows // 32) * 32
    return like.new_zeros((*others, held if is_wanted else 0), dtype=torch.float32)


def _efficient_seeds(dropout_p, q):
    seed, _ = _seeds(dropout_p, q)
    seed = seed.view(torch.int64)[:1] if seed.dim() else seed
    return seed.reshape(()), q.new_zeros((), dtype=torch.int64)


def _efficient_backward(grad_out, q, k, v, attn_bias, out, lse, philox_seed,
                        philox_offset, dropout_p, grad_input_mask, is_causal=False, *,
                        scale=None):
    wants_bias = attn_bias is not None and attn_bias.numel() and grad_input_mask[3]
    bias = attn_bias if attn_bias is not None and attn_bias.numel() else None
    gradient = (bias.new_zeros((*q.shape[:3], k.shape[2]), dtype=torch.float32)
                if wants_bias else None)
    results = [empty(tensor.shape, tensor) for tensor in (q, k, v)]
    _attention.attention_backward(
        *map(plain, (grad_out, q, k, v, out)), plain(lse)[..., :q.shape[2]],
        scale=_scale(scale, q), mask=_causal(is_causal), score=_bias(bias, q, k, gradient),
        dropout=_philox(dropout_p, philox_seed, philox_offset),
        dq=results[0], dk=results[1], dv=results[2],
        deterministic=torch.are_deterministic_algorithms_enabled())
    if wants_bias:  # of the bias as it was given
        gradient = gradient.sum_to_size(bias.shape).to(bias.dtype)
    return (*results, gradient)


# What flash-attn's functions of PyTorch have: (batch, sequence, heads, head_dim), or
# (total, heads, head_dim) with cumulative lengths; masks and windows from the
# bottom-right diagonal, as flash-attn's.
def _rows(tensor: Tensor) -> Tensor:
    return tensor.transpose(-3, -2)


def _flash_options(q, k, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, seeds, is_causal,
                   scale, window_size_left, window_size_right, seqused_k=None):
    left, right = (None if bound is None or bound < 0 else bound
                   for bound in (window_size_left, window_size_right))
    if is_causal:  # whatever is said of keys behind, as in flash-attn
        right = 0
    window = None if left is None and right is None else Window(left, right)
    sides = []
    for cumulative, used in ((cum_seq_q, None), (cum_seq_k, seqused_k)):
        if used is not None:  # a part of what is there of each
            sides.append(Sequences(lengths=used, starts=None if cumulative is None
                                   else cumulative[:-1]))
        else:
            sides.append(Sequences(cumulative=cumulative))
    packs = cum_seq_q is not None, cum_seq_k is not None
    varlen = Varlen(*sides, *(most if is_packed else None for most, is_packed in
                              zip((max_q, max_k), packs)))
    return {"scale": _scale(scale, q), "window": window,
            "dropout": _philox(dropout_p, *seeds),
            "varlen": varlen if any(packs) or seqused_k is not None else None}


def _packed_forward(q, k, v, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, is_causal,
                    return_debug_mask, *, scale=None, window_size_left=None,
                    window_size_right=None, seqused_k=None, alibi_slopes=None,
                    block_table=None, num_splits=None, out=None):
    for name, given in (("return_debug_mask", return_debug_mask or None),
                        ("alibi_slopes", alibi_slopes), ("block_table", block_table)):
        if given is not None:
            raise NotServed(f"{name} is given")
    seeds = _seeds(dropout_p, q)
    out = _like(q, torch.zeros_like) if out is None else out
    lse = _rows(q).new_zeros(_rows(q).shape[:-1], dtype=torch.float32)
    _attention.attention(
        *(plain(_rows(tensor)) for tensor in (q, k, v)), out=_rows(out.detach()),
        lse=lse, splits=num_splits or 0,
        **_flash_options(q, k, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p, seeds,
                         is_causal, scale, window_size_left, window_size_right,
                         seqused_k))
    return out, lse, *seeds, q.new_empty(0)


def _packed_forward_into(out, *arguments, **options):
    return _packed_forward(*arguments, **options, out=out)[1]


def _packed_backward(grad_out, q, k, v, out, lse, cum_seq_q, cum_seq_k, max_q, max_k,
                     dropout_p, is_causal, rng_state, unused, *, scale=None,
                     window_size_left=None, window_size_right=None):
    results = [_like(tensor, torch.zeros_like) for tensor in (q, k, v)]
    dq, dk, dv = map(_rows, results)
    _attention.attention_backward(
        *(plain(_rows(tensor)) for tensor in (grad_out, q, k, v, out)), plain(lse),
        dq=dq, dk=dk, dv=dv,
        deterministic=torch.are_deterministic_algorithms_enabled(),
        **_flash_options(q, k, cum_seq_q, cum_seq_k, max_q, max_k, dropout_p,
                         (rng_state, unused), is_causal, scale, window_size_left,
                         window_size_right))
    return tuple(results)


# What xformers' functions of PyTorch have: (batch, sequence, heads, head_dim), or one
# batch with the sequences behind one another.
_MASK_TYPES = ("none", "causal-top-left", "causal-bottom-right")


def _xformers_options(query, key, bias, cu_seqlens_q, cu_seqlens_k, max_seqlen_q,
                      max_seqlen_k, dropout_p, seeds, custom_mask_type, scale, seqlen_k,
                      window_size, gradient=None):
    if window_size is not None:
        raise NotServed("window_size is given")
    if not 0 <= custom_mask_type < len(_MASK_TYPES):
        raise NotServed(f"custom_mask_type is {custom_mask_type}")
    if (cu_seqlens_q is None) != (cu_seqlens_k is None):
        raise NotServed("cu_seqlens of one side are given, and of the other not")
    varlen = None
    if cu_seqlens_q is not None or seqlen_k is not None:
        keys = Sequences(cumulative=cu_seqlens_k) if seqlen_k is None else Sequences(
            lengths=seqlen_k, starts=None if cu_seqlens_k is None else cu_seqlens_k[:-1])
        packed = cu_seqlens_q is not None
        varlen = Varlen(Sequences(cumulative=cu_seqlens_q), keys,
                        max_seqlen_q if packed else None, max_seqlen_k if packed else None,
                        "batched" if packed else "as-q")
        if bias is not None:
            raise NotServed("a bias is given beside lengths of sequences")
    return {"scale": _scale(scale, query), "mask": _MASK_TYPES[custom_mask_type],
            "score": _bias(bias, _rows(query), _rows(key), gradient),
            "dropout": _philox(dropout_p, *seeds), "varlen": varlen}


def _by_heads(packed, *tensors):
    """(batch, heads, sequence, head_dim), or without the batch of sequences in one row."""
    return [plain(_rows(tensor[0] if packed else tensor)) for tensor in tensors]


def _xformers_forward(query, key, value, bias, cu_seqlens_q, cu_seqlens_k, max_seqlen_q,
                      max_seqlen_k, dropout_p, custom_mask_type, compute_log_sumexp=False,
                      *, scale=None, seqlen_k=None, window_size=None):
    seeds = _efficient_seeds(dropout_p, query)
    packed = cu_seqlens_q is not None
    max_q = max_seqlen_q if packed else query.shape[1]
    max_k = max_seqlen_k if max_seqlen_k is not None else key.shape[1]
    out = query.new_zeros((*query.shape[:3], value.shape[-1]))
    batch = cu_seqlens_q.shape[0] - 1 if packed else query.shape[0]
    lse = _efficient_lse(query, (batch, query.shape[2], max_q), compute_log_sumexp)
    _attention.attention(
        *_by_heads(packed, query, key, value), out=_rows(out[0] if packed else out),
        lse=lse[..., :max_q] if compute_log_sumexp else None,
        **_xformers_options(query, key, bias, cu_seqlens_q, cu_seqlens_k, max_q, max_k,
                            dropout_p, seeds, custom_mask_type, scale, seqlen_k,
                            window_size))
    return out, lse, *seeds, max_q, max_k


def _xformers_backward(grad_out, query, key, value, bias, out, cu_seqlens_q, cu_seqlens_k,
                       max_seqlen_q, max_seqlen_k, logsumexp, dropout_p, philox_seed,
                       philox_offset, custom_mask_type, bias_requires_grad, *, scale=None,
                       num_splits_key=None, window_size=None, shared_storage_dqdkdv=False):
    packed = cu_seqlens_q is not None
    if shared_storage_dqdkdv:  # gradients of one tensor's parts are one tensor's
        results = list(query.new_zeros((*query.shape[:-2], 3, *query.shape[-2:])).unbind(-3))
    else:
        results = [_like(tensor, torch.zeros_like) for tensor in (query, key, value)]
    gradient = None
    if bias is not None and bias_requires_grad:
        gradient = bias.new_zeros((query.shape[0], query.shape[2], query.shape[1],
                                   key.shape[1]), dtype=torch.float32)
    max_q = max_seqlen_q if packed else query.shape[1]
    dq, dk, dv = (_rows(result[0] if packed else result) for result in results)
    _attention.attention_backward(
        *_by_heads(packed, grad_out, query, key, value, out),
        plain(logsumexp)[..., :max_q], dq=dq, dk=dk, dv=dv,
        # How the keys are split (num_splits_key) is the kernel's to choose.
        deterministic=torch.are_deterministic_algorithms_enabled(),
        **_xformers_options(query, key, bias, cu_seqlens_q, cu_seqlens_k, max_q,
                            max_seqlen_k, dropout_p, (philox_seed, philox_offset),
                            custom_mask_type, scale, None, window_size, gradient))
    if gradient is not None:
        gradient = gradient.sum_to_size(bias.shape).to(bias.dtype)
    return (*results, query.new_empty(0) if gradient is None else gradient)


def _fill_dropout_mask(mask, dropout_p, seed, offset):
    """Above 0 where a weight is kept, as PyTorch's on ROCm."""
    _attention.dropout_mask(mask, Dropout(dropout_p, seed=seed, offset=offset))
    return mask


# The higher-order operators that torch.nn.attention.flex_attention makes.
def flex_forward(query, key, value, score_mod, block_mask, scale, kernel_options,
                 score_mod_other_buffers=(), mask_mod_other_buffers=()):
    if kernel_options.get("OUTPUT_MAX"):
        raise NotServed("the largest scores are asked for")
    out, lse = _flex.forward(query, key, value, score_mod, block_mask, scale,
                             score_mod_other_buffers, mask_mod_other_buffers)
    return out, lse, lse.new_empty(0)


def flex_backward(query, key, value, out, logsumexp, grad_out, grad_logsumexp, fw_graph,
                  joint_graph, block_mask, scale, kernel_options,
                  score_mod_other_buffers=(), mask_mod_other_buffers=()):
    return _flex.backward(query, key, value, out, logsumexp, grad_out, grad_logsumexp,
                          fw_graph, block_mask, scale, score_mod_other_buffers,
                          mask_mod_other_buffers)


# PyTorch's operators: what serves them, and for tensors of which devices.
OVERRIDES: Tuple[Tuple[str, Callable, Tuple[str, ...]], ...] = (
    ("_scaled_dot_product_flash_attention_for_cpu", _cpu_forward, ("CPU",)),
    ("_scaled_dot_product_flash_attention_for_cpu_backward", _cpu_backward, ("CPU",)),
    ("_scaled_dot_product_flash_attention", _flash_forward, ("CPU", "CUDA")),
    ("_scaled_dot_product_flash_attention_backward", _flash_backward, ("CPU", "CUDA")),
    ("_scaled_dot_product_efficient_attention", _efficient_forward, ("CPU", "CUDA")),
    ("_scaled_dot_product_efficient_attention_backward", _efficient_backward,
     ("CPU", "CUDA")),
    ("_flash_attention_forward", _packed_forward, ("CPU", "CUDA")),
    ("_flash_attention_forward_no_dropout_inplace", _packed_forward_into,
     ("CPU", "CUDA")),
    ("_flash_attention_backward", _packed_backward, ("CPU", "CUDA")),
    ("_efficient_attention_forward", _xformers_forward, ("CPU", "CUDA")),
    ("_efficient_attention_backward", _xformers_backward, ("CPU", "CUDA")),
    ("_fill_mem_eff_dropout_mask_", _fill_dropout_mask, ("CPU", "CUDA")),
)
