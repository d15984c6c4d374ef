"""PyTorch: attention with gradients, as operators, and in place of PyTorch's own.

    out = fovea.torch.attention(q, k, v, mask="causal-top-left")
    fovea.torch.enable()    # scaled_dot_product_attention runs on Fovea's kernels

docs/Python.md is the manual. The operators are `fovea::attention_forward` and
`fovea::attention_backward`.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import logging
import math
import warnings
from typing import Any, Callable, List, Optional, Sequence, Tuple, Union

try:
    import torch
    from torch import Tensor
except ImportError as error:
    raise ImportError(f"fovea.torch needs PyTorch 2.10 or newer: {error}") from None

from . import _attention, _errors, _flex, scores as _scores
from ._features import (Blocks, Capture, Dropout, Score, Sequences, Varlen, Window,
                        WindowLike)

__all__ = ["attention", "calls", "disable", "enable", "flex_attention"]

_log = logging.getLogger("fovea")


# ---------------------------------------------------------------------------
# The operators
# ---------------------------------------------------------------------------

# A window is a text among an operator's arguments, since a tuple of None and numbers
# is none: "127:0", "inf:0", and behind it alignments that are not bottom-right.
def _window_text(window: Optional[WindowLike]) -> str:
    if window is None:
        return ""
    if not isinstance(window, Window):
        window = Window(*window)
    bounds = ["inf" if bound is None else str(bound)
              for bound in (window.left, window.right)]
    return ":".join([*bounds, window.left_alignment, window.right_alignment])


def _window_of(text: str) -> Optional[Window]:
    if not text:
        return None
    left, right, *alignments = text.split(":")
    bounds = [None if bound == "inf" else int(bound) for bound in (left, right)]
    return Window(bounds[0], bounds[1], *alignments)


def _plain(tensor: Optional[Tensor], rows: bool = True) -> Optional[Tensor]:
    """As kernels read it: without history, and of rows the last stride 1."""
    if tensor is None:
        return None
    tensor = tensor.detach()
    return _rows_together(tensor) if rows and tensor.dim() else tensor


def _rows_together(tensor: Tensor) -> Tensor:
    return (tensor.contiguous() if tensor.stride(-1) != 1 and tensor.shape[-1] > 1
            else tensor)


def _empty(shape: Sequence[int], like: Tensor) -> Tensor:
    """Results lie as PyTorch's attention has them: the heads of a row side by side."""
    *batch, heads, rows, columns = shape
    strides = [columns, heads * columns, 1]
    if batch:
        strides.insert(0, heads * rows * columns)
    return torch.empty_strided(tuple(shape), strides, dtype=like.dtype,
                               device=like.device)


def _score_of(program: str, text: str, captures: List[Tensor],
              gradients: Sequence[Optional[Tensor]]) -> Optional[Score]:
    if not program:
        return None
    given = []
    for capture, gradient in zip(captures, gradients):
        value: Any = capture.detach()
        if not value.dim():  # a scalar
            value = value.item()
        given.append(value if gradient is None else Capture(value, gradient))
    return Score(program, given, text or None)


def _dropout_of(p: float, seed: Optional[Tensor]) -> Optional[Dropout]:
    return None if seed is None else Dropout(p, seed=seed.detach())


def _listed(varlen: Optional[Varlen],
            blocks: Optional[Blocks]) -> Tuple[str, List[Tensor], List[int]]:
    """Lengths of sequences and lists of blocks as an operator takes them: the fields'
    names, "q.cumulative,k.cumulative", and their tensors; and the most rows of q and k,
    -1 for what is not said, and the blocks' sizes."""
    names, lists, sizes = [], [], [-1, -1, 0, 0]
    if varlen is not None:
        for number, side in enumerate(("q", "k")):
            for field in ("lengths", "cumulative", "starts"):
                given = getattr(getattr(varlen, side), field)
                if given is not None:
                    names.append(f"{side}.{field}")
                    lists.append(given)
            most = getattr(varlen, f"max_{side}")
            sizes[number] = -1 if most is None else most
    if blocks is not None:
        for of_blocks in dataclasses.fields(blocks):
            given = getattr(blocks, of_blocks.name)
            if isinstance(given, Tensor):
                names.append(of_blocks.name)
                lists.append(given)
        sizes[2:] = blocks.block_size
    return ",".join(names), lists, sizes


def _features_of(listed: str, lists: List[Tensor],
                 sizes: Sequence[int]) -> Tuple[Optional[Varlen], Optional[Blocks]]:
    """What :func:`_listed` was given."""
    sides: dict = {"q": {}, "k": {}}
    fields: dict = {}
    for name, tensor in zip(listed.split(","), lists):
        side, _, field = name.rpartition(".")
        (sides[side] if side else fields)[field] = tensor.detach()
    max_q, max_k = (None if size < 0 else size for size in sizes[:2])
    varlen = (Varlen(Sequences(**sides["q"]), Sequences(**sides["k"]), max_q, max_k)
              if sides["q"] or sides["k"] else None)
    return varlen, (Blocks(**fields, block_size=(sizes[2], sizes[3])) if fields else None)


@torch.library.custom_op("fovea::attention_forward", mutates_args=())
def _forward(q: Tensor, k: Tensor, v: Tensor, scale: float, mask: str, window: str,
             score: str, score_text: str, captures: List[Tensor],
             sinks: Optional[Tensor], dropout_p: float, seed: Optional[Tensor],
             listed: str, lists: List[Tensor], sizes: List[int], splits: int,
             deterministic: bool) -> Tuple[Tensor, Tensor]:
    varlen, blocks = _features_of(listed, lists, sizes)
    out, lse = _forward_results(q, v, listed)
    _attention.attention(
        *map(_plain, (q, k, v)), scale=scale, mask=mask, window=_window_of(window),
        score=_score_of(score, score_text, captures, [None] * len(captures)),
        sinks=_plain(sinks, rows=False), dropout=_dropout_of(dropout_p, seed),
        varlen=varlen, blocks=blocks, splits=splits, out=out, lse=lse)
    return out, lse


def _packs(listed):
    """Whether there are rows of no sequence."""
    return "." in listed


def _forward_results(q, v, listed):
    out = _empty((*q.shape[:-1], v.shape[-1]), q)
    lse = q.new_empty(q.shape[:-1], dtype=torch.float32)
    if _packs(listed):  # rows of no sequence are not written
        out.zero_()
        lse.zero_()
    return out, lse


@_forward.register_fake
def _(q, k, v, scale, mask, window, score, score_text, captures, sinks, dropout_p, seed,
      listed, lists, sizes, splits, deterministic):
    return _forward_results(q, v, listed)


@torch.library.custom_op("fovea::attention_backward", mutates_args=())
def _backward(dout: Tensor, dlse: Optional[Tensor], q: Tensor, k: Tensor, v: Tensor,
              out: Tensor, lse: Tensor, wanted: List[bool], scale: float, mask: str,
              window: str, score: str, score_text: str, captures: List[Tensor],
              sinks: Optional[Tensor], dropout_p: float, seed: Optional[Tensor],
              listed: str, lists: List[Tensor], sizes: List[int],
              deterministic: bool) -> List[Tensor]:
    varlen, blocks = _features_of(listed, lists, sizes)
    results = _backward_results(q, k, v, sinks, captures, wanted, listed)
    dsinks, of_captures = results[3], results[4:]
    of_keys = wanted[1] or wanted[2]
    asked: dict = {name: result for name, result, is_wanted in
             zip(("dq", "dk", "dv"), results, (wanted[0], of_keys, of_keys))
             if is_wanted}
    _attention.attention_backward(
        _plain(dout), _plain(q), _plain(k), _plain(v), _plain(out), _plain(lse),
        scale=scale, mask=mask, window=_window_of(window),
        score=_score_of(score, score_text, captures,
                        [gradient if is_wanted else None for gradient, is_wanted in
                         zip(of_captures, wanted[4:])]),
        sinks=_plain(sinks, rows=False) if wanted[3] else None,
        dropout=_dropout_of(dropout_p, seed),
        varlen=varlen, blocks=blocks, dlse=_plain(dlse),
        gradients=asked, dsinks=dsinks if wanted[3] else None,
        deterministic=deterministic, **asked)
    return _in_types(results, captures, wanted)


def _in_types(results, captures, wanted):
    """Gradients of captures are summed in fp32, and given in the captures' types."""
    return [*results[:4], *(gradient.to(capture.dtype) if is_wanted else gradient
                            for gradient, capture, is_wanted in
                            zip(results[4:], captures, wanted[4:]))]


def _backward_results(q, k, v, sinks, captures, wanted, listed):
    """Those that are not wanted are empty: an operator's results are tensors."""
    def made(tensor, is_wanted, make):
        return make(tensor) if is_wanted else q.new_empty(0)

    # dk and dv come together.
    of_keys = wanted[1] or wanted[2]
    results = [made(tensor, is_wanted, lambda t: _empty(t.shape, t)) for
               tensor, is_wanted in ((q, wanted[0]), (k, of_keys), (v, of_keys))]
    if _packs(listed):
        for result in results:
            result.zero_()
    results.append(made(sinks, wanted[3], torch.empty_like))
    for capture, is_wanted in zip(captures, wanted[4:]):
        results.append(made(capture, is_wanted,
                            lambda t: t.new_zeros(t.shape, dtype=torch.float32)))
    return results


@_backward.register_fake
def _(dout, dlse, q, k, v, out, lse, wanted, scale, mask, window, score, score_text,
      captures, sinks, dropout_p, seed, listed, lists, sizes, deterministic):
    return _in_types(_backward_results(q, k, v, sinks, captures, wanted, listed),
                     captures, wanted)


def _keep(ctx, inputs, output):
    (q, k, v, scale, mask, window, score, score_text, captures, sinks, dropout_p, seed,
     listed, lists, sizes, _, deterministic) = inputs
    ctx.set_materialize_grads(False)
    ctx.counts = len(captures), len(lists)
    ctx.save_for_backward(q, k, v, *output, sinks, seed, *captures, *lists)
    ctx.rest = (scale, mask, window, score, score_text, dropout_p, listed, sizes,
                deterministic)


def _differentiate(ctx, dout, dlse):
    q, k, v, out, lse, sinks, seed, *others = ctx.saved_tensors
    captures, lists = others[:ctx.counts[0]], others[ctx.counts[0]:]
    (scale, mask, window, score, score_text, dropout_p, listed, sizes,
     deterministic) = ctx.rest
    needs = ctx.needs_input_grad
    # A list's flags are a list of its own, where there is one.
    of_captures = needs[8] if isinstance(needs[8], (list, tuple)) else (
        [needs[8]] * len(captures))
    wanted = [needs[0], needs[1], needs[2], needs[9], *of_captures]
    if dout is None:
        dout = torch.zeros_like(out)
    dq, dk, dv, dsinks, *rest = _backward(
        dout, dlse, q, k, v, out, lse, wanted, scale, mask, window, score, score_text,
        captures, sinks, dropout_p, seed, listed, lists, sizes, deterministic)

    def given(gradient, is_wanted):
        return gradient if is_wanted else None

    return (given(dq, wanted[0]), given(dk, wanted[1]), given(dv, wanted[2]),
            None, None, None, None, None,
            [given(gradient, is_wanted) for gradient, is_wanted in
             zip(rest, of_captures)], given(dsinks, wanted[3]),
            None, None, None, [None] * len(lists), None, None, None)


_forward.register_autograd(_differentiate, setup_context=_keep)


def _runs_now(q: Tensor, k: Tensor, v: Tensor, score: Optional[Score],
              sinks: Optional[Tensor]) -> bool:
    """Whether nobody has to see an operator: there is no gradient to record, and no
    compiler, mode, transform or profiler. It costs more than the call."""
    if (torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack()
            or torch._C._len_torch_function_stack() or torch._C._get_tracing_state()
            or torch._C._functorch.peek_interpreter_stack() is not None
            or torch.autograd.forward_ad._current_level >= 0
            or torch._C._autograd._profiler_enabled()):
        return False
    tensors = [q, k, v]
    if score is not None:
        for given in score.captures:
            if isinstance(given, Tensor) and given.dim():
                tensors.append(given)
            elif not isinstance(given, (bool, int, float)):
                return False  # what operators' arguments are made of first
    if sinks is not None:
        tensors.append(sinks)
    records = torch.is_grad_enabled()
    for tensor in tensors:
        if (records and tensor.requires_grad) or type(tensor) not in _CLASSES:
            return False
    return True


_CLASSES = (Tensor, torch.nn.Parameter)


def attention(q: Tensor, k: Tensor, v: Tensor, *, scale: Optional[float] = None,
              mask: Union[str, Callable] = "none", window: Optional[WindowLike] = None,
              score: Union[Score, str, Callable, None] = None, sinks: Optional[Tensor] = None,
              dropout_p: float = 0.0, varlen: Optional[Varlen] = None,
              blocks: Optional[Blocks] = None, splits: int = 0,
              deterministic: Optional[bool] = None, return_lse: bool = False) -> Any:
    """:func:`fovea.attention` with gradients for q, k, v, sinks and the tensors that
    `score` captures, through `lse` as well.

    Args:
        q: (batch, heads_q, seqlen_q, head_dim) of float16, bfloat16 or float32, on the
            CPU or a GPU. Under autocast q, k and v take its type.
        k, v: (batch, heads_k, seqlen_k, head_dim), (..., head_dim_v).
        dropout_p: probability that a weight is dropped, by a seed from PyTorch's
            generator.
        deterministic: the same gradients in every run; None: as
            torch.use_deterministic_algorithms() says.
        scale, mask, window, score, sinks, varlen, blocks, splits: as of
            fovea.attention.

    Returns:
        out; with `return_lse` (out, lse).

    Raises:
        fovea.Error, TypeError: as fovea.attention.
    """
    if torch._C._is_any_autocast_enabled() and torch.is_autocast_enabled(
            kind := q.device.type):
        wanted = torch.get_autocast_dtype(kind)
        q, k, v = q.to(wanted), k.to(wanted), v.to(wanted)
    program: Any = score
    if callable(score) or callable(mask):
        program, mask = _scores.resolve(score, mask, q.device)
    if isinstance(program, str):
        program = Score(program)
    if varlen is not None and varlen.lse_layout != "as-q":
        raise _errors.InvalidArgumentError(
            f"varlen.lse_layout is '{varlen.lse_layout}', and fovea.torch has 'as-q' alone")
    # Drawn here, so that the operators give the same for the same arguments.
    seed = (torch.randint(2**62, (1,), dtype=torch.int64, device=q.device)
            if dropout_p else None)
    if _runs_now(q, k, v, program, sinks):
        made = _attention.FORWARD.run(
            None, None, None,
            (_rows_together(q), _rows_together(k), _rows_together(v), None, None, sinks),
            (window, program, _dropout_of(dropout_p, seed), varlen,
             blocks), (None if scale is None else float(scale), mask, splits, 0, return_lse, True))
        return tuple(made) if return_lse else made[0]
    captures = [] if program is None else [
        torch.tensor(given, dtype=torch.int32 if isinstance(given, int)
                     else torch.float32) if isinstance(given, (int, float)) else
        torch.as_tensor(given, device=q.device) for given in program.captures]
    if deterministic is None:
        deterministic = torch.are_deterministic_algorithms_enabled()
    out, lse = _forward(
        q, k, v, 1 / math.sqrt(q.shape[-1]) if scale is None else float(scale), mask,
        _window_text(window), program.program if program else "",
        (program.text or "") if program else "", captures, sinks, dropout_p, seed,
        *_listed(varlen, blocks), splits, deterministic)
    return (out, lse) if return_lse else out


@torch.compiler.disable
def flex_attention(query: Tensor, key: Tensor, value: Tensor,
                   score_mod: Optional[Callable] = None, block_mask: Any = None,
                   scale: Optional[float] = None, enable_gqa: bool = False,
                   return_lse: bool = False, kernel_options: Optional[dict] = None, *,
                   return_aux: Any = None) -> Any:
    """torch.nn.attention.flex_attention.flex_attention, with gradients on every device.

    `score_mod` and the mask_mod of `block_mask` are traced each time (fovea.scores), and
    the BlockMask is lists of blocks (docs/BlockLists.md), whose sizes are multiples of
    128. Gradients of tensors that `score_mod` captures are given, too.

    Args:
        kernel_options: None: they are of PyTorch's kernels.
        return_aux: an AuxRequest of lse alone.

    Returns:
        as PyTorch's function.

    Raises:
        fovea.scores.TraceError: of a function that is no score program.
        fovea.Error, TypeError: as :func:`attention`.
    """
    if kernel_options:
        raise _errors.InvalidArgumentError(
            f"kernel_options has {', '.join(kernel_options)}, of PyTorch's kernels; leave "
            "it out")
    if return_aux is not None and return_aux.max_scores:
        raise _errors.NotFoundError("return_aux asks for max_scores, which no kernel gives")
    if query.dim() == 4 == key.dim() and query.shape[1] != key.shape[1] and not enable_gqa:
        raise _errors.InvalidArgumentError(
            f"query has {query.shape[1]} heads and key {key.shape[1]}; heads that share keys "
            "take enable_gqa=True")
    score, blocks, key, value = _flex.arguments(query, key, value, score_mod, block_mask)
    out, lse = attention(query, key, value, scale=scale, score=score, blocks=blocks,
                         return_lse=True)
    if return_aux is not None:
        from torch.nn.attention.flex_attention import AuxOutput
        return out, AuxOutput(lse=lse if return_aux.lse else None, max_scores=None)
    return (out, lse) if return_lse else out


# ---------------------------------------------------------------------------
# PyTorch's own operators
# ---------------------------------------------------------------------------

class _NotServed(Exception):
    """A call that Fovea has no form for."""


# What a call may be handed on for; failures of a device or of a kernel are raised.
_REFUSALS = (_NotServed, TypeError, _errors.InvalidArgumentError,
             _errors.NotFoundError, _errors.IncompatibleError, _errors.NoDeviceError)


def _causal(is_causal):
    return "causal-top-left" if is_causal else "none"


def _bias(bias: Optional[Tensor], q: Tensor, k: Tensor,
          gradient: Optional[Tensor] = None) -> Optional[Score]:
    """A mask of booleans, or what is added to scores: broadcast, rows as they are."""
    if bias is None:
        return None
    whole = bias.detach().expand(*q.shape[:3], k.shape[2])
    return Score("bias_bool" if bias.dtype == torch.bool else "bias",
                 [whole if gradient is None else Capture(whole, gradient)])


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


def _scale(scale, q):
    return 1 / math.sqrt(q.shape[-1]) if scale is None else scale


def _cpu_forward(q, k, v, dropout_p=0.0, is_causal=False, *, attn_mask=None, scale=None):
    if dropout_p:
        raise _NotServed("PyTorch's operator has no seed to keep for dropout")
    out = torch.empty_like(q)
    lse = q.new_empty((q.shape[0], q.shape[2], q.shape[1]),
                      dtype=torch.float32).transpose(1, 2)
    written = lse.contiguous()
    _attention.attention(*map(_plain, (q, k, v)), scale=_scale(scale, q),
                         mask=_causal(is_causal), score=_bias(attn_mask, q, k), out=out,
                         lse=written)
    return out, lse.copy_(written)


def _cpu_backward(grad_out, q, k, v, out, lse, dropout_p, is_causal, *, attn_mask=None,
                  scale=None):
    results = [_empty(tensor.shape, tensor) for tensor in (q, k, v)]
    _attention.attention_backward(
        *map(_plain, (grad_out, q, k, v, out)), lse.detach().contiguous(),
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
    out, lse = torch.empty_like(q), q.new_empty(q.shape[:3], dtype=torch.float32)
    _attention.attention(*map(_plain, (q, k, v)), scale=_scale(scale, q),
                         mask=_causal(is_causal), dropout=_philox(dropout_p, seed, offset),
                         out=out, lse=lse)
    return out, lse, None, None, q.shape[2], k.shape[2], seed, offset, debug


def _flash_backward(grad_out, q, k, v, out, lse, cum_seq_q, cum_seq_k, max_q, max_k,
                    dropout_p, is_causal, philox_seed, philox_offset, *, scale=None):
    results = [torch.empty_like(tensor) for tensor in (q, k, v)]
    _attention.attention_backward(
        *map(_plain, (grad_out, q, k, v, out, lse)), scale=_scale(scale, q),
        mask=_causal(is_causal), dropout=_philox(dropout_p, philox_seed, philox_offset),
        dq=results[0], dk=results[1], dv=results[2],
        deterministic=torch.are_deterministic_algorithms_enabled())
    return tuple(results)


def _efficient_forward(q, k, v, attn_bias, compute_log_sumexp, dropout_p=0.0,
                       is_causal=False, *, scale=None):
    seed, offset = _efficient_seeds(dropout_p, q)
    out = _empty((*q.shape[:3], v.shape[-1]), q)
    rows = q.shape[2]
    lse = _efficient_lse(q, (*q.shape[:2], rows), compute_log_sumexp)
    _attention.attention(
        *map(_plain, (q, k, v)), scale=_scale(scale, q), mask=_causal(is_causal),
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
    results = [_empty(tensor.shape, tensor) for tensor in (q, k, v)]
    _attention.attention_backward(
        *map(_plain, (grad_out, q, k, v, out)), _plain(lse)[..., :q.shape[2]],
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
    if is_causal and right is None:
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
            raise _NotServed(f"{name} is given")
    seeds = _seeds(dropout_p, q)
    out = torch.zeros_like(q) if out is None else out
    lse = _rows(q).new_zeros(_rows(q).shape[:-1], dtype=torch.float32)
    _attention.attention(
        *(_plain(_rows(tensor)) for tensor in (q, k, v)), out=_rows(out.detach()),
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
    results = [torch.zeros_like(tensor) for tensor in (q, k, v)]
    dq, dk, dv = map(_rows, results)
    _attention.attention_backward(
        *(_plain(_rows(tensor)) for tensor in (grad_out, q, k, v, out)), _plain(lse),
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
        raise _NotServed("window_size is given")
    if not 0 <= custom_mask_type < len(_MASK_TYPES):
        raise _NotServed(f"custom_mask_type is {custom_mask_type}")
    if (cu_seqlens_q is None) != (cu_seqlens_k is None):
        raise _NotServed("cu_seqlens of one side are given, and of the other not")
    varlen = None
    if cu_seqlens_q is not None or seqlen_k is not None:
        keys = Sequences(cumulative=cu_seqlens_k) if seqlen_k is None else Sequences(
            lengths=seqlen_k, starts=None if cu_seqlens_k is None else cu_seqlens_k[:-1])
        packed = cu_seqlens_q is not None
        varlen = Varlen(Sequences(cumulative=cu_seqlens_q), keys,
                        max_seqlen_q if packed else None, max_seqlen_k if packed else None,
                        "batched" if packed else "as-q")
        if bias is not None:
            raise _NotServed("a bias is given beside lengths of sequences")
    return {"scale": _scale(scale, query), "mask": _MASK_TYPES[custom_mask_type],
            "score": _bias(bias, _rows(query), _rows(key), gradient),
            "dropout": _philox(dropout_p, *seeds), "varlen": varlen}


def _by_heads(packed, *tensors):
    """(batch, heads, sequence, head_dim), or without the batch of sequences in one row."""
    return [_plain(_rows(tensor[0] if packed else tensor)) for tensor in tensors]


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
        results = [torch.zeros_like(tensor) for tensor in (query, key, value)]
    gradient = None
    if bias is not None and bias_requires_grad:
        gradient = bias.new_zeros((query.shape[0], query.shape[2], query.shape[1],
                                   key.shape[1]), dtype=torch.float32)
    max_q = max_seqlen_q if packed else query.shape[1]
    dq, dk, dv = (_rows(result[0] if packed else result) for result in results)
    _attention.attention_backward(
        *_by_heads(packed, grad_out, query, key, value, out),
        _plain(logsumexp)[..., :max_q], dq=dq, dk=dk, dv=dv,
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


# PyTorch's operators: what serves them, and for tensors of which devices.
_OVERRIDES: Tuple[Tuple[str, Callable, Tuple[str, ...]], ...] = (
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

_enabled: Optional[torch.library.Library] = None
_taken_back: list = []  # functions that do that to what a library of PyTorch's does not
_calls: collections.Counter = collections.Counter()
_told: set = set()


# The higher-order operators that torch.nn.attention.flex_attention makes.
def _flex_forward(query, key, value, score_mod, block_mask, scale, kernel_options,
                  score_mod_other_buffers=(), mask_mod_other_buffers=()):
    if kernel_options.get("OUTPUT_MAX"):
        raise _NotServed("the largest scores are asked for")
    out, lse = _flex.forward(query, key, value, score_mod, block_mask, scale,
                             score_mod_other_buffers, mask_mod_other_buffers)
    return out, lse, lse.new_empty(0)


def _flex_backward(query, key, value, out, logsumexp, grad_out, grad_logsumexp, fw_graph,
                   joint_graph, block_mask, scale, kernel_options,
                   score_mod_other_buffers=(), mask_mod_other_buffers=()):
    return _flex.backward(query, key, value, out, logsumexp, grad_out, grad_logsumexp,
                          fw_graph, block_mask, scale, score_mod_other_buffers,
                          mask_mod_other_buffers)


class _Enabled:
    """What :func:`enable` returns; leaving it as a context takes all back."""

    def __enter__(self) -> _Enabled:
        return self

    def __exit__(self, *_) -> None:
        disable()

    def remove(self) -> None:
        disable()


def _tell(name: str, reason: BaseException) -> None:
    text = f"{name}: {reason}"
    if text not in _told:
        _told.add(text)
        _log.warning("%s; PyTorch's own kernel serves the call", text)


def _serve_or_fall_back(name, former, fallback, serve, arguments, options):
    """`serve` of the arguments; where it refuses, what was there before, called by
    `former` unless that is None."""
    try:
        result = serve(*arguments, **options)
    except _REFUSALS as reason:
        if former is None or not fallback:
            if isinstance(reason, _NotServed):
                raise _errors.NotFoundError(f"{name}: {reason}") from None
            raise
        _calls[name, "pytorch"] += 1
        _tell(name, reason)
        return former(*arguments, **options)
    _calls[name, "fovea"] += 1
    return result


def _override(name, serve, key, fallback):
    """Registers `serve`, and behind it what was there before."""
    former = None
    if torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", key):
        former = torch.library.get_kernel(f"aten::{name}", key)

    def served(keys, *arguments, **options):
        before = None if former is None else functools.partial(former.call_boxed, keys)
        return _serve_or_fall_back(name, before, fallback, serve, arguments, options)

    with warnings.catch_warnings():  # that another kernel was there is the purpose
        warnings.filterwarnings("ignore", "Warning only once for all operators")
        _enabled.impl(name, served, key, with_keyset=True)


def _override_flex(hop, serve, key, fallback):
    """Has a higher-order operator served by `serve` for tensors of a device."""
    kernels, name = hop.py_kernels, hop.name()
    former = kernels.get(key, kernels.get(torch._C.DispatchKey.CompositeExplicitAutograd))

    def served(*arguments, **options):
        return _serve_or_fall_back(name, former, fallback, serve, arguments, options)

    before = kernels.get(key)
    kernels[key] = served
    hop._dispatch_cache.clear()

    def take_back():
        if before is None:
            kernels.pop(key, None)
        else:
            kernels[key] = before
        hop._dispatch_cache.clear()

    _taken_back.append(take_back)


def enable(fallback: bool = True) -> _Enabled:
    """Has Fovea serve PyTorch's operators of attention, and so
    scaled_dot_product_attention.

    Args:
        fallback: a call that Fovea does not serve goes to PyTorch's own kernel, where
            there is one, and the logger ``fovea`` says why, once for each reason.
            False: it raises.

    Returns:
        an object whose `remove()`, or leaving it as a context, is :func:`disable`.
    """
    global _enabled
    if _enabled is not None:
        disable()
    _enabled = torch.library.Library("aten", "IMPL")
    keys = ("CPU", "CUDA") if torch.version.hip else ("CPU",)
    for name, serve, devices in _OVERRIDES:
        for key in devices:
            if key in keys:
                _override(name, serve, key, fallback)
    from torch._higher_order_ops.flex_attention import (
        flex_attention as forward, flex_attention_backward as backward)
    for hop, serve in ((forward, _flex_forward), (backward, _flex_backward)):
        for key in keys:
            _override_flex(hop, serve, getattr(torch._C.DispatchKey, key), fallback)
    return _Enabled()


def disable() -> None:
    """Takes :func:`enable` back."""
    global _enabled
    if _enabled is not None:
        _enabled._destroy()
        _enabled = None
    while _taken_back:
        _taken_back.pop()()


def calls() -> dict:
    """How many calls of each operator went which way since the process began:
    {(operator, "fovea" or "pytorch"): number}."""
    return dict(_calls)


try:  # from PyTorch 2.11 on
    from torch.nn.attention import register_flash_attention_impl
except ImportError:
    pass
else:  # torch.nn.attention.activate_flash_attention_impl("fovea") is enable()
    register_flash_attention_impl("fovea", register_fn=enable)
