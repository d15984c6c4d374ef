"""FlexAttention's functions and masks as score programs and lists of blocks."""

from __future__ import annotations

import contextlib
import math
from typing import Any, Callable, Optional, Sequence, Tuple

import torch
from torch import Tensor

from . import _attention, scores
from ._errors import InvalidArgumentError
from ._features import Blocks, Capture, Score

# What a BlockMask is made of that was made of no mask: one block of everything.
_WHOLE = 1 << 30
_LN2 = math.log(2)


def _is_plain(function: Optional[Callable]) -> bool:
    """Whether it leaves scores, or shows keys, as they are."""
    if function is None:
        return True
    from torch.nn.attention import flex_attention as flex
    if isinstance(function, torch.fx.GraphModule):  # the compiler's, of one of these
        *_, last = function.graph.nodes
        result = last.args[0][0] if isinstance(last.args[0], tuple) else last.args[0]
        return result.op == "placeholder" or (
            result.op == "call_method" and result.target == "new_ones")
    return function in (flex.noop_mask, flex._identity)


def _program(score_mod, mask_mod, device) -> Optional[Score]:
    functions = [None if _is_plain(function) else function
                 for function in (score_mod, mask_mod)]
    return None if functions == [None, None] else scores.trace(*functions, device=device)


def _fit(query, key, value, blocks: Optional[Blocks]):
    """One batch of keys serves all of the queries."""
    if key.dim() == 4 == query.dim() and key.shape[0] == 1 != query.shape[0] and (
            blocks is not None):
        key, value = (tensor.expand(query.shape[0], -1, -1, -1) for tensor in (key, value))
    return key, value


def _divides(block_size: Sequence[int]) -> None:
    if any(size % 128 for size in block_size):
        raise InvalidArgumentError(
            f"block_mask has blocks of {tuple(map(int, block_size))}, and kernels lists of "
            "multiples of 128; give create_block_mask such a BLOCK_SIZE")


def _is_of(lengths: Sequence[int], query: Tensor, key: Tensor) -> None:
    given = query.shape[-2], key.shape[-2]
    if tuple(lengths) != given:
        raise InvalidArgumentError(
            f"block_mask is of {tuple(map(int, lengths))} queries and keys, and the tensors "
            f"have {tuple(map(int, given))}")


def is_block_mask(given: Any) -> None:
    from torch.nn.attention.flex_attention import BlockMask
    if not isinstance(given, BlockMask):
        raise TypeError(f"block_mask is {type(given).__name__}, not a BlockMask; "
                        "create_block_mask() makes one of a function")


def arguments(query: Tensor, key: Tensor, value: Tensor, score_mod: Optional[Callable],
              block_mask: Any) -> Tuple[Optional[Score], Optional[Blocks], Tensor, Tensor]:
    """The score program, the lists and the keys and values of a call."""
    if block_mask is None:
        return _program(score_mod, None, query.device), None, key, value
    blocks = None
    if block_mask.BLOCK_SIZE[0] < _WHOLE:
        _is_of(block_mask.seq_lengths, query, key)
        _divides(block_mask.BLOCK_SIZE)
        blocks = Blocks.of(block_mask)
    score = _program(score_mod, block_mask.mask_mod, query.device)
    return (score, blocks, *_fit(query, key, value, blocks))


# Of the higher-order operators: a BlockMask as its tuple, functions as graphs of what is
# captured behind their arguments, log-sum-exps in base 2.

def fits(query: Tensor, key: Tensor, block_mask: tuple) -> None:
    """Holds the lengths that a BlockMask was made for to the tensors'."""
    if block_mask[-3] < _WHOLE:
        _is_of(block_mask[:2], query, key)


_LISTS = ("kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices",
          "q_num_blocks", "q_indices", "full_q_num_blocks", "full_q_indices")


def served(query, key, value, score_mod, block_mask, score_buffers, mask_buffers):
    """As :func:`arguments`, of what a higher-order operator is given."""
    *_, q_block, kv_block, mask_mod = block_mask
    blocks = None
    if q_block < _WHOLE:
        _divides((q_block, kv_block))
        blocks = Blocks(**dict(zip(_LISTS, block_mask[2:10])),
                        block_size=(q_block, kv_block))

    def score(s, b, h, i, j):
        return score_mod(s, b, h, i, j, *score_buffers)

    def mask(b, h, i, j):
        return mask_mod(b, h, i, j, *mask_buffers)

    program = _program(None if _is_plain(score_mod) else score,
                       None if _is_plain(mask_mod) else mask, query.device)
    return (program, blocks, *_fit(query, key, value, blocks))


def _rows(tensor: Tensor) -> Tensor:
    return tensor if tensor.stride(-1) == 1 or tensor.shape[-1] == 1 else (
        tensor.contiguous())


def _like_query(query: Tensor, columns: int) -> Tensor:
    """Of the query's order of memory, as PyTorch's fake kernels have it."""
    from torch._higher_order_ops.flex_attention import _permute_strides
    return _permute_strides(query.new_empty((*query.shape[:-1], columns)), query.stride())


@contextlib.contextmanager
def _recording():
    """Has gradients recorded where an operator runs, below what records them."""
    keys, hidden = torch._C.DispatchKey, torch._C._dispatch_tls_local_exclude_set()
    for key in (keys.ADInplaceOrView, keys.AutogradOther, keys.AutogradCPU,
                keys.AutogradCUDA):
        hidden = hidden.remove(key)
    with torch._C._ForceDispatchKeyGuard(torch._C._dispatch_tls_local_include_set(),
                                         hidden), torch.enable_grad():
        yield


def forward(query, key, value, score_mod, block_mask, scale, score_buffers, mask_buffers):
    with torch.no_grad():
        program, blocks, key, value = served(query, key, value, score_mod, block_mask,
                                             score_buffers, mask_buffers)
        out = _like_query(query, value.shape[-1])
        lse = query.new_empty(query.shape[:-1], dtype=torch.float32)
        _attention.attention(*map(_rows, (query, key, value)), scale=scale, score=program,
                             blocks=blocks, out=out, lse=lse)
        return out, lse.div_(_LN2)


def backward(query, key, value, out, logsumexp, grad_out, grad_logsumexp, score_mod,
             block_mask, scale, score_buffers, mask_buffers):
    wanted = [isinstance(buffer, Tensor) and buffer.requires_grad
              for buffer in score_buffers]
    batch = key.shape[0]
    # Captured under gradients, so that what is made of the buffers passes theirs on.
    buffers = [buffer.detach().requires_grad_() if wants else buffer
               for buffer, wants in zip(score_buffers, wanted)]
    with _recording():
        program, blocks, key, value = served(query, key, value, score_mod, block_mask,
                                             buffers, mask_buffers)
    captures = [] if program is None else program.captures
    learnt = [capture for capture in captures if capture.requires_grad]
    sums = {id(capture): torch.zeros_like(capture, dtype=torch.float32,
                                          requires_grad=False) for capture in learnt}
    with torch.no_grad():
        if program is not None:
            program = Score(program.program, [
                Capture(capture.detach(), sums[id(capture)]) if id(capture) in sums
                else capture for capture in captures], program.text)
        if grad_out is None:
            grad_out = torch.zeros_like(out)
        lse = (logsumexp * _LN2).contiguous()
        dq = _like_query(query, query.shape[-1])
        dk, dv = (tensor.new_empty(tensor.shape) for tensor in (key, value))
        _attention.attention_backward(
            *map(_rows, (grad_out, query, key, value, out)), lse, scale=scale,
            score=program, blocks=blocks,
            dlse=None if grad_logsumexp is None else (grad_logsumexp / _LN2).contiguous(),
            dq=dq, dk=dk, dv=dv,
            deterministic=torch.are_deterministic_algorithms_enabled())
        if batch != key.shape[0]:
            dk, dv = dk.sum(0, keepdim=True), dv.sum(0, keepdim=True)
    of_buffers = [None] * len(buffers)
    if learnt:
        inputs = [buffer for buffer, wants in zip(buffers, wanted) if wants]
        found = iter(torch.autograd.grad(
            learnt, inputs, [sums[id(capture)].to(capture.dtype) for capture in learnt],
            allow_unused=True))
        of_buffers = [next(found) if wants else None for wants in wanted]
    return dq, dk, dv, tuple(of_buffers)
