"""PyTorch: attention with gradients, as operators, and in place of PyTorch's own.

    out = fovea.torch.attention(q, k, v, mask="causal-top-left")
    fovea.torch.enable()    # scaled_dot_product_attention runs on Fovea's kernels

docs/Python.md is the manual. The operators are `fovea::attention_forward` and
`fovea::attention_backward`.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Callable, Optional, Union

try:
    import torch
    from torch import Tensor
    from torch._ops import HigherOrderOperator
except ImportError as error:
    raise ImportError(f"fovea.torch needs PyTorch 2.10 or newer: {error}") from None

from . import _arrays, _attention, _errors, _flex, _torch_library, scores as _scores
from ._features import (MASKS, Blocks, Capture, Score, Varlen, Window, WindowLike, as_number,
                        choice, of_class)
from ._native import whole
from ._torch_enable import calls, disable, enable
from ._torch_operators import (as_listed, as_tensor, dropout_of, forward, is_transformed, is_unseen,
                               plain, recorded, refuse_tangents, rows_together, transformed,
                               way_of, window_text)

__all__ = ["attention", "calls", "disable", "enable", "flex_attention", "operators"]


def operators() -> str:
    """Which kernels the operators have, ``"c++"`` or ``"python"``, and behind it why."""
    return f"{_torch_library.kind}: {_torch_library.reason}"


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
    _are_tensors(q, k, v)
    if torch._C._is_any_autocast_enabled() and torch.is_autocast_enabled(
            kind := q.device.type):
        wanted = torch.get_autocast_dtype(kind)
        q, k, v = q.to(wanted), k.to(wanted), v.to(wanted)
    scale = _attention.as_scale(scale)
    program: Any = score
    if callable(score) or callable(mask):
        program, mask = _resolve(score, mask, q.device)
    if isinstance(program, str):
        program = Score(program)
    window = _held(q, k, v, window, program, varlen, blocks)
    if sinks is not None:
        sinks = as_tensor(sinks, "sinks")
    if type(dropout_p) is not float:
        dropout_p = as_number(dropout_p, "dropout_p")
    splits = _attention.as_splits(splits)
    # Drawn here, so that the operators give the same for the same arguments.
    seed = (torch.randint(2**62, (1,), dtype=torch.int64, device=q.device)
            if dropout_p else None)
    records = way_of(q, k, v, program, sinks)
    if records is None:
        refuse_tangents(q, k, v, sinks, *(program.captures if program else ()))
    if records is False:
        if program is not None and any(isinstance(given, Tensor) and given.is_neg()
                                       for given in program.captures):
            program = dataclasses.replace(program, captures=[
                given.resolve_neg() if isinstance(given, Tensor) else given
                for given in program.captures])
        made = _attention.FORWARD.run(
            None, None, None,
            (rows_together(q), rows_together(k), rows_together(v), None, None,
             None if sinks is None else sinks.resolve_neg()),
            (window, program, dropout_of(dropout_p, seed), varlen,
             blocks), (scale, mask, splits, 0, return_lse, True))
        return tuple(made) if return_lse else made[0]
    choice("mask", mask, MASKS)  # which an operator would take bytes for
    captures = None if program is None or not program.captures else [
        _capture(given, f"score.captures[{number}]", q.device)
        for number, given in enumerate(program.captures)]
    if deterministic is None:
        deterministic = torch.are_deterministic_algorithms_enabled()
    try:
        out, lse = (recorded if records else transformed if is_transformed() else forward)(
            q, k, v, _attention.default_scale(q.shape[-1]) if scale is None else scale, mask,
            window_text(window), program.program if program else "",
            (program.text or "") if program else "", captures, sinks, dropout_p, seed,
            *as_listed(varlen, blocks), splits, bool(deterministic))
    except RuntimeError as error:
        told = _torch_library.told(error)
        if told is error and not isinstance(error, _errors.Error) and is_unseen():
            # PyTorch's own, of a type that the operator does not have: fovea.attention's words.
            with torch.no_grad():
                _attention.FORWARD.call(
                    (*map(plain, (q, k, v)), None, None, sinks),
                    (window, program, dropout_of(dropout_p, seed), varlen, blocks),
                    (scale, mask, splits, 0, True, True))
        raise told from error.__cause__
    return (out, lse) if return_lse else out


_resolve = torch.compiler.disable(
    _scores.resolve, reason="functions of scores are traced by Fovea: fovea.scores.trace() them "
    "before, and give the Score; or take fovea.torch.flex_attention")


def _are_tensors(*given) -> None:
    for name, tensor in zip("qkv", given):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} is {type(tensor).__name__}, not a tensor of PyTorch's; "
                            "fovea.attention takes other arrays")
        if tensor.layout is not torch.strided or tensor.is_nested:
            _arrays.strided(tensor, name)  # which says why not


def _held(q, k, v, window, score, varlen, blocks) -> Optional[Window]:
    """Refuses, in fovea.attention's words, what no argument of an operator's holds, or what
    would be lost on the way there. Returns the window."""
    for name, feature, kind in (("score", score, Score), ("varlen", varlen, Varlen),
                                ("blocks", blocks, Blocks)):
        if feature is not None:
            of_class(name, feature, kind)
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if tensor.dim() not in (3, 4):
            raise _attention.misshapen(name, tuple(tensor.shape))
    if varlen is not None:
        if varlen.lse_layout != "as-q":
            raise _errors.InvalidArgumentError(
                f"varlen.lse_layout is '{varlen.lse_layout}', and fovea.torch has 'as-q' alone")
        for side, tensor in (("q", q), ("k", k)):
            varlen._hold(side, None if tensor.dim() == 3 else tensor.shape[2])
    return None if window is None else Window._of(window)


def _capture(given, name, device) -> Tensor:
    """As operators take it: a number is a tensor without dimensions."""
    if isinstance(given, Capture):
        raise TypeError(f"{name} is a fovea.Capture, and fovea.torch gives gradients of tensors "
                        "that require them; give its value")
    if isinstance(given, int):
        return torch.tensor(whole(given, name, -2**31, 2**31), dtype=torch.int32)
    if isinstance(given, float):
        return torch.tensor(given, dtype=torch.float32)
    if hasattr(given, "__array_interface__"):
        return as_tensor(given, name).to(device)
    try:
        return torch.as_tensor(given, device=device)
    except (TypeError, ValueError, RuntimeError):
        _arrays.view(given, name)  # which names it
        raise


class _FlexOperator(HigherOrderOperator):
    """Flex attention in a graph of torch.compile's, with the functions as graphs and what
    they capture behind. Whoever runs or compiles the graph further has them traced, and
    comes to the operators of :func:`attention`."""

    def __init__(self) -> None:
        super().__init__("fovea_flex_attention", cacheable=True)
        # So the compiler makes graphs of the functions as it does for PyTorch's own; and
        # what it writes calls this.
        self.__name__, self.__module__ = "flex_attention", __name__

    def __call__(self, query, key, value, score_mod, block_mask, scale, kernel_options,
                 score_buffers=(), mask_buffers=()):
        _flex.fits(query, key, block_mask)
        score, blocks, key, value = _flex.served(query, key, value, score_mod, block_mask,
                                                 score_buffers, mask_buffers)
        return attention(query, key, value, scale=scale, score=score, blocks=blocks,
                         return_lse=True)


_flex_operator = _FlexOperator()


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
    _are_tensors(query, key, value)
    if block_mask is not None:
        _flex.is_block_mask(block_mask)
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
    if torch.compiler.is_compiling():
        from torch.nn.attention import flex_attention as flex
        if block_mask is None:
            block_mask = flex._create_empty_block_mask(query, key)
        out, lse = _flex_operator(
            query, key, value, flex._identity if score_mod is None else score_mod,
            block_mask.as_tuple(),
            _attention.default_scale(query.shape[-1]) if scale is None else scale, {})
    else:
        score, blocks, key, value = _flex.arguments(query, key, value, score_mod, block_mask)
        out, lse = attention(query, key, value, scale=scale, score=score, blocks=blocks,
                             return_lse=True)
    if return_aux is not None:
        from torch.nn.attention.flex_attention import AuxOutput
        return out, AuxOutput(lse=lse if return_aux.lse else None, max_scores=None)
    return (out, lse) if return_lse else out
