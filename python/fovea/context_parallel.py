"""Attention of sequences that are spread over processes (context parallelism).

    import fovea.context_parallel as cp
    q, k, v = (cp.split(tensor, 2, group) for tensor in (q, k, v))
    out = cp.attention(q, k, v, group, mask="causal-top-left")

Every process has as many rows of each sequence. Keys and values go around a ring, or all
come at once; what one process' queries get of another's keys is merged by the
log-sum-exp. All that is sent is sent by torch.distributed. docs/Python.md is the manual.
"""

from __future__ import annotations

import math
from typing import Any, List, Optional, Tuple

try:
    import torch
    import torch.distributed as dist
    from torch import Tensor
    if not dist.is_available():
        raise ImportError("this build of PyTorch is without torch.distributed")
except ImportError as error:
    raise ImportError(f"fovea.context_parallel needs PyTorch 2.10 or newer: {error}") from None

from . import _attention, _errors, torch as _torch
from ._features import Score
from ._torch_operators import backward as _backward

__all__ = ["attention", "join", "merge", "split"]

_METHODS = ("ring", "all-gather")
_MASKS = ("none", "causal-top-left")


def merge(out: Tensor, lse: Tensor, more: Tensor, more_lse: Tensor) -> Tuple[Tensor, Tensor]:
    """Attention to two sets of keys of attention to each.

    Args:
        out, more: (..., rows, head_dim_v) of float32, what each gave.
        lse, more_lse: (..., rows), its log-sum-exp; -infinity where no key was seen.

    Returns:
        (out, lse) of both together.
    """
    both = torch.logaddexp(lse, more_lse)
    seen = both != -math.inf
    shares = [torch.where(seen, (one - both).exp(), 0.0)[..., None]
              for one in (lse, more_lse)]
    return out * shares[0] + more * shares[1], both


def _chunks(size: int, rank: int, balanced: bool) -> List[int]:
    """Which of the sequence's equal pieces a process has; balanced, of twice as many pieces
    one from the front and one from the back, so that all have as much to do under a causal
    mask."""
    return [rank, 2 * size - 1 - rank] if balanced else [rank]


def split(tensor: Tensor, dim: int, group: Optional[dist.ProcessGroup] = None,
          balanced: bool = True) -> Tensor:
    """This process' part of a whole sequence.

    Args:
        tensor: the same in all processes.
        dim: the dimension of rows.
        group: processes; None: all.
        balanced: the first and the last piece that are left, as :func:`attention` with
            `balanced` has them; False: one piece.

    Raises:
        fovea.InvalidArgumentError: rows are no multiple of the pieces.
    """
    size, rank = dist.get_world_size(group), dist.get_rank(group)
    pieces = size * (2 if balanced else 1)
    if tensor.shape[dim] % pieces:
        raise _errors.InvalidArgumentError(
            f"tensor has {tensor.shape[dim]} rows in dimension {dim}, no multiple of the "
            f"{pieces} pieces of {size} processes; pad it")
    parts = tensor.chunk(pieces, dim)
    return torch.cat([parts[piece] for piece in _chunks(size, rank, balanced)], dim)


def join(tensor: Tensor, dim: int, group: Optional[dist.ProcessGroup] = None,
         balanced: bool = True) -> Tensor:
    """The whole sequence of all processes' parts (:func:`split`), in all of them. Without
    gradients."""
    size = dist.get_world_size(group)
    tensor = tensor.detach().contiguous()
    all_parts = [torch.empty_like(tensor) for _ in range(size)]
    dist.all_gather(all_parts, tensor, group)
    placed: dict = {}
    for rank, part in enumerate(all_parts):
        numbers = _chunks(size, rank, balanced)
        placed.update(zip(numbers, part.chunk(len(numbers), dim)))
    return torch.cat([placed[piece] for piece in sorted(placed)], dim)


def _part(rank: int, source: int, rows: int, causal: bool, balanced: bool):
    """Which queries of `rank` see which keys of `source`, and how; None: none."""
    whole = slice(None)
    if not causal:
        return whole, whole, "none"
    if source == rank:  # later rows stand behind earlier ones in a part, too
        return whole, whole, "causal-top-left"
    if balanced:  # pieces from the front see the front's alone; those from the back all
        half = rows // 2
        return ((whole, slice(half), "none") if source < rank
                else (slice(half, None), whole, "none"))
    return (whole, whole, "none") if source < rank else None


class _Ring:
    """Tensors go on to the next process at each step."""

    def __init__(self, group):
        self.group = group
        self.size, self.rank = dist.get_world_size(group), dist.get_rank(group)
        self.to, self.fro = (
            (self.rank + step) % self.size if group is None
            else dist.get_global_rank(group, (self.rank + step) % self.size)
            for step in (1, -1))

    def start(self, tensors):
        """Sends them; returns what `wait` takes."""
        if self.size == 1:
            return tensors, []
        received = [torch.empty_like(tensor) for tensor in tensors]
        operations = [dist.P2POp(way, tensor, peer, self.group)
                      for way, peer, given in ((dist.isend, self.to, tensors),
                                               (dist.irecv, self.fro, received))
                      for tensor in given]
        return received, dist.batch_isend_irecv(operations)

    def wait(self, started):
        received, works = started
        for work in works:
            work.wait()
        return received

    def sources(self, *tensors):
        """(source, its tensors): this process' own, and then those that come, which are
        under way while the caller works."""
        tensors = [tensor.contiguous() for tensor in tensors]
        for step in range(self.size):
            last = step == self.size - 1
            started = None if last else self.start(tensors)
            yield (self.rank - step) % self.size, tensors
            if started is not None:
                tensors = self.wait(started)


class _AllGather(_Ring):
    """The same of tensors that all come at once."""

    def sources(self, *tensors):
        gathered = []
        for tensor in tensors:
            tensor = tensor.contiguous()
            parts = [torch.empty_like(tensor) for _ in range(self.size)]
            dist.all_gather(parts, tensor, self.group)
            gathered.append(parts)
        for step in range(self.size):
            source = (self.rank - step) % self.size
            yield source, [parts[source] for parts in gathered]


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, group, method, scale, causal, balanced, softcap):
        ring = (_Ring if method == "ring" else _AllGather)(group)
        score = Score("softcap", [softcap]) if softcap else None
        out = q.new_zeros((*q.shape[:-1], v.shape[-1]), dtype=torch.float32)
        lse = q.new_full(q.shape[:-1], -math.inf, dtype=torch.float32)
        for source, (keys, values) in ring.sources(k, v):
            part = _part(ring.rank, source, q.shape[2], causal, balanced)
            if part is None:
                continue
            rows, columns, mask = part
            more, more_lse = _torch.attention(
                q[:, :, rows], keys[:, :, columns], values[:, :, columns], scale=scale,
                mask=mask, score=score, return_lse=True)
            out[:, :, rows], lse[:, :, rows] = merge(
                out[:, :, rows], lse[:, :, rows], more.float(), more_lse)
        out = out.to(q.dtype)
        ctx.save_for_backward(q, k, v, out, lse)
        ctx.rest = ring, method, scale, causal, balanced, softcap
        ctx.set_materialize_grads(False)
        return out, lse

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, dout, dlse):
        # A weight is exp(score - lse) of all keys, so a part's gradients are those of a call
        # with the whole's out and lse.
        q, k, v, out, lse = ctx.saved_tensors
        ring, method, scale, causal, balanced, softcap = ctx.rest
        if dout is None:
            dout = torch.zeros_like(out)
        dq = torch.zeros_like(q, dtype=torch.float32)

        def gradients(source, keys, values):
            """Adds to dq; dk and dv of one process' keys."""
            sums = [torch.zeros_like(tensor, dtype=torch.float32) for tensor in (keys, values)]
            part = _part(ring.rank, source, q.shape[2], causal, balanced)
            if part is None:
                return sums
            rows, columns, mask = part
            of_q, of_k, of_v, *_ = _backward(
                dout[:, :, rows], None if dlse is None else dlse[:, :, rows].contiguous(),
                q[:, :, rows], keys[:, :, columns], values[:, :, columns], out[:, :, rows],
                lse[:, :, rows].contiguous(), [True, True, True, False] + [False] * bool(softcap),
                scale, mask, "", "softcap" if softcap else "", "",
                [torch.tensor(softcap)] if softcap else None, None, 0.0, None, "", None,
                [-1, -1, 0, 0], torch.are_deterministic_algorithms_enabled())
            dq[:, :, rows] += of_q
            for total, more in zip(sums, (of_k, of_v)):
                total[:, :, columns] += more
            return sums

        if method == "ring":
            # Gradients of keys go around with their keys, once more than these.
            sums = None
            for source, (keys, values) in ring.sources(k, v):
                found = gradients(source, keys, values)
                if sums is not None:
                    found = [one + other for one, other in zip(ring.wait(sums), found)]
                sums = ring.start(found)
            dk, dv = ring.wait(sums)
        else:
            found = {source: gradients(source, *tensors)
                     for source, tensors in ring.sources(k, v)}
            dk, dv = (_sum_of_all([found[source][number] for source in range(ring.size)],
                                  ring.group) for number in range(2))
        return dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype), *[None] * 6


def _sum_of_all(parts: List[Tensor], group) -> Tensor:
    """Of a tensor for each process, the sum of those for this one. Added here, in fp32 and
    in one order, whatever the backend."""
    sent = torch.stack(parts)
    received = torch.empty_like(sent)
    dist.all_to_all_single(received, sent, group=group)
    return received.sum(0)


def attention(q: Tensor, k: Tensor, v: Tensor, group: Optional[dist.ProcessGroup] = None, *,
              method: str = "ring", scale: Optional[float] = None, mask: str = "none",
              balanced: bool = True, softcap: float = 0.0, return_lse: bool = False) -> Any:
    """Attention of this process' queries to all processes' keys, with gradients.

    All processes of `group` call it, with the same shapes. In order: this process' own
    keys, then those of the process before it, and so on.

    Args:
        q: (batch, heads_q, rows, head_dim), this process' part (:func:`split`).
        k, v: (batch, heads_k, rows, head_dim), (..., head_dim_v).
        group: processes, in the order of the sequence; None: all.
        method: "ring", by which keys go on from process to process while attention runs,
            or "all-gather", by which all come at once and lie in memory together.
        scale: multiplies the products; None: 1/sqrt(head_dim).
        mask: "none" or "causal-top-left", of the whole sequence.
        balanced: with a causal mask, parts are of `split(..., balanced=True)`.
        softcap: above 0: scores are softcap * tanh(score / softcap).
        return_lse: the log-sum-exp is wanted, too.

    Returns:
        out, (batch, heads_q, rows, head_dim_v); with `return_lse` (out, lse), through
        which there are gradients as well.

    Raises:
        fovea.Error, TypeError: as fovea.torch.attention, and of arguments that it has not.
    """
    for name, given, known in (("method", method, _METHODS), ("mask", mask, _MASKS)):
        if given not in known:
            raise _errors.InvalidArgumentError(
                f"{name} is {given!r}, not one of {', '.join(map(repr, known))}")
    causal = mask != "none"
    if causal and q.shape[2] != k.shape[2]:
        raise _errors.InvalidArgumentError(
            f"q has {q.shape[2]} rows and k {k.shape[2]}; a causal mask takes the same")
    if causal and balanced and q.shape[2] % 2:
        raise _errors.InvalidArgumentError(
            f"q has {q.shape[2]} rows, and balanced parts are two pieces; pad it, or give "
            "balanced=False")
    if not softcap >= 0:
        raise _errors.InvalidArgumentError(f"softcap is {softcap}; give 0 or more")
    scale = _attention.as_scale(scale)
    out, lse = _Attention.apply(
        q, k, v, group, method,
        _attention.default_scale(q.shape[-1]) if scale is None else scale, causal, balanced,
        float(softcap))
    return (out, lse) if return_lse else out
