"""Attention as operators of PyTorch's: fovea::attention_forward and fovea::attention_backward.

Schemas are in _torch_schema. Kernels are those of libfovea_torch (python/operators), where
it is, else the functions here; fake kernels and formulas are here for both."""

from __future__ import annotations

import dataclasses
import operator
from typing import Any, List, Optional, Sequence, Tuple

import torch
from torch import Tensor
from torch._C._functorch import TransformType
from torch.autograd.forward_ad import unpack_dual
from torch.utils import _pytree as pytree

from . import _attention, _torch_library, _torch_schema
from ._arrays import view
from ._features import (ALIGNMENTS, Blocks, Capture, Dropout, Score, Sequences, Varlen, Window,
                        choice)
from ._native import whole


# A window is a text among an operator's arguments, since a tuple of None and numbers
# is none: "127:0", "inf:0", and behind it alignments that are not bottom-right.
def window_text(window: Optional[Window]) -> str:
    if window is None:
        return ""
    # A compiler's symbol has no text, but the number that the graph is then made for.
    bounds = ["inf" if bound is None else
              str(operator.index(whole(bound, f"window.{side}", -2**63, 2**63)))
              for side, bound in (("left", window.left), ("right", window.right))]
    for side in ("left_alignment", "right_alignment"):
        choice(f"window.{side}", getattr(window, side), ALIGNMENTS)
    return ":".join([*bounds, window.left_alignment, window.right_alignment])


def _window_of(text: str) -> Optional[Window]:
    if not text:
        return None
    left, right, *alignments = text.split(":")
    bounds = [None if bound == "inf" else int(bound) for bound in (left, right)]
    return Window(bounds[0], bounds[1], *alignments)


def plain(tensor: Optional[Tensor], rows: bool = True) -> Optional[Tensor]:
    """As kernels read it: without history, and of rows the last stride 1."""
    if tensor is None:
        return None
    tensor = tensor.detach()
    return rows_together(tensor) if rows and tensor.dim() else tensor.resolve_neg()


def rows_together(tensor: Tensor) -> Tensor:
    """With the elements of a row together, as kernels read them, and none that is negated when
    it is read."""
    if tensor.is_neg():
        tensor = tensor.resolve_neg()
    return (tensor.contiguous() if tensor.stride(-1) != 1 and tensor.shape[-1] > 1
            else tensor)


def empty(shape: Sequence[int], like: Tensor) -> Tensor:
    """Results lie as PyTorch's attention has them: the heads of a row side by side."""
    *batch, heads, rows, columns = shape
    strides = [columns, heads * columns, 1]
    if batch:
        strides.insert(0, heads * rows * columns)
    return torch.empty_strided(tuple(shape), strides, dtype=like.dtype,
                               device=like.device)


def as_bias(given: Tensor, q: Tensor, k: Tensor) -> Tuple[str, Tensor]:
    """A mask of booleans, or what is added to scores: the program of the library that takes
    it, and what that captures, broadcast, with rows as they are. A type of 16 bits that is
    not q's becomes it."""
    whole = given.expand(*q.shape[:3], k.shape[2])
    if whole.dtype == torch.bool:
        return "bias_bool", whole
    return "bias", whole if whole.dtype == torch.float32 else whole.to(q.dtype)


def _score_of(program: str, text: str, captures: Optional[List[Tensor]],
              gradients: Sequence[Optional[Tensor]]) -> Optional[Score]:
    if not program:
        return None
    given = []
    for capture, gradient in zip(captures or (), gradients):
        value: Any = plain(capture, rows=False)
        if not value.dim():  # a scalar
            value = value.item()
            gradient = None if gradient is None else gradient.view(1)
        given.append(value if gradient is None else Capture(value, gradient))
    return Score(program, given, text or None)


def dropout_of(p: float, seed: Optional[Tensor]) -> Optional[Dropout]:
    return None if seed is None else Dropout(p, seed=seed.detach())


def as_tensor(given: Any, name: str) -> Tensor:
    """An array of any library, where it lies; a copy of one that is read-only, which PyTorch
    has no tensors for."""
    if isinstance(given, Tensor):
        return given
    seen = view(given, name, _attention._kinds(name))  # which names what is none
    if not hasattr(given, "__array_interface__"):
        return torch.from_dlpack(given)
    import numpy
    array = numpy.asarray(given)  # also of other classes with that interface
    if seen.dtype == "bfloat16":  # of no type of NumPy's
        array = array.view(numpy.int16)
    tensor = torch.from_numpy(array.copy() if seen.read_only else array)
    return tensor.view(torch.bfloat16) if seen.dtype == "bfloat16" else tensor


def as_listed(varlen: Optional[Varlen],
            blocks: Optional[Blocks]) -> Tuple[str, Optional[List[Tensor]], List[int]]:
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
                    lists.append(as_tensor(given, f"varlen.{names[-1]}"))
            most = getattr(varlen, f"max_{side}")
            sizes[number] = -1 if most is None else most
    if blocks is not None:
        for of_blocks in dataclasses.fields(blocks):
            given = getattr(blocks, of_blocks.name)
            if given is not None and of_blocks.name != "block_size":
                names.append(of_blocks.name)
                lists.append(as_tensor(given, f"blocks.{of_blocks.name}"))
        sizes[2:] = blocks.block_size
    return ",".join(names), lists or None, sizes


def _features_of(listed: str, lists: Optional[List[Tensor]],
                 sizes: Sequence[int]) -> Tuple[Optional[Varlen], Optional[Blocks]]:
    """What :func:`as_listed` was given."""
    sides: dict = {"q": {}, "k": {}}
    fields: dict = {}
    for name, tensor in zip(listed.split(","), lists or ()):
        side, _, field = name.rpartition(".")
        (sides[side] if side else fields)[field] = tensor.detach()
    max_q, max_k = (None if size < 0 else size for size in sizes[:2])
    varlen = (Varlen(Sequences(**sides["q"]), Sequences(**sides["k"]), max_q, max_k)
              if sides["q"] or sides["k"] or max_q is not None or max_k is not None else None)
    return varlen, (Blocks(**fields, block_size=(sizes[2], sizes[3])) if fields else None)


def _operator(schema, run) -> str:
    """Defines an operator with the kernel `run`, unless those in C++ are there."""
    name, signature = schema.split("(", 1)
    if _torch_library.kind == "python":
        torch.library.custom_op(f"fovea::{name}", run, mutates_args=(), schema=f"({signature}")
    return f"fovea::{name}"


def _run_forward(q: Tensor, k: Tensor, v: Tensor, scale: float, mask: str, window: str,
                 score: str, score_text: str, captures: Optional[List[Tensor]],
                 sinks: Optional[Tensor], dropout_p: float, seed: Optional[Tensor],
                 listed: str, lists: Optional[List[Tensor]], sizes: List[int], splits: int,
                 deterministic: bool) -> Tuple[Tensor, Tensor]:
    varlen, blocks = _features_of(listed, lists, sizes)
    out, lse = _forward_results(q, v, listed)
    _attention.attention(
        *map(plain, (q, k, v)), scale=scale, mask=mask, window=_window_of(window),
        score=_score_of(score, score_text, captures, [None] * len(captures or ())),
        sinks=plain(sinks, rows=False), dropout=dropout_of(dropout_p, seed),
        varlen=varlen, blocks=blocks, splits=splits, out=out, lse=lse)
    return out, lse


def _packs(listed):
    """Whether there are rows of no sequence."""
    return "." in listed


def _forward_results(q, v, listed):
    out = empty((*q.shape[:-1], v.shape[-1]), q)
    lse = q.new_empty(q.shape[:-1], dtype=torch.float32)
    if _packs(listed):  # rows of no sequence are not written
        out.zero_()
        lse.zero_()
    return out, lse


_FORWARD = _operator(_torch_schema.FORWARD, _run_forward)
forward = torch.ops.fovea.attention_forward.default


@torch.library.register_fake(_FORWARD)
def _(q, k, v, scale, mask, window, score, score_text, captures, sinks, dropout_p, seed,
      listed, lists, sizes, splits, deterministic):
    return _forward_results(q, v, listed)


def _run_backward(dout: Tensor, dlse: Optional[Tensor], q: Tensor, k: Tensor, v: Tensor,
                   out: Tensor, lse: Tensor, wanted: List[bool], scale: float, mask: str,
                   window: str, score: str, score_text: str, captures: Optional[List[Tensor]],
                   sinks: Optional[Tensor], dropout_p: float, seed: Optional[Tensor],
                   listed: str, lists: Optional[List[Tensor]], sizes: List[int],
                   deterministic: bool) -> List[Tensor]:
    varlen, blocks = _features_of(listed, lists, sizes)
    results = _backward_results(q, k, v, sinks, captures, wanted, listed)
    dsinks, of_captures = results[3], results[4:]
    of_keys = _wants_keys(wanted)
    asked: dict = {name: result for name, result, is_wanted in
             zip(("dq", "dk", "dv"), results, (wanted[0], of_keys, of_keys))
             if is_wanted}
    _attention.attention_backward(
        plain(dout), plain(q), plain(k), plain(v), plain(out), plain(lse),
        scale=scale, mask=mask, window=_window_of(window),
        score=_score_of(score, score_text, captures,
                        [gradient if is_wanted else None for gradient, is_wanted in
                         zip(of_captures, wanted[4:])]),
        sinks=plain(sinks, rows=False) if wanted[3] else None,
        dropout=dropout_of(dropout_p, seed),
        varlen=varlen, blocks=blocks, dlse=plain(dlse),
        gradients=asked, dsinks=dsinks if wanted[3] else None,
        deterministic=deterministic, **asked)
    return _in_types(results, captures, wanted)


def _in_types(results, captures, wanted):
    """Gradients of captures are summed in fp32, and given in the captures' types."""
    return [*results[:4], *(gradient.to(capture.dtype) if is_wanted else gradient
                            for gradient, capture, is_wanted in
                            zip(results[4:], captures or (), wanted[4:]))]


def _wants_keys(wanted):
    """dk and dv come together, and those of captures with them."""
    return wanted[1] or wanted[2] or any(wanted[4:])


def _backward_results(q, k, v, sinks, captures, wanted, listed):
    """Those that are not wanted are empty: an operator's results are tensors."""
    def made(tensor, is_wanted, make):
        return make(tensor) if is_wanted else q.new_empty(0)

    of_keys = _wants_keys(wanted)
    results = [made(tensor, is_wanted, lambda t: empty(t.shape, t)) for
               tensor, is_wanted in ((q, wanted[0]), (k, of_keys), (v, of_keys))]
    if _packs(listed):
        for result in results:
            result.zero_()
    results.append(made(sinks, wanted[3], torch.empty_like))
    for capture, is_wanted in zip(captures or (), wanted[4:]):
        results.append(made(capture, is_wanted,
                            lambda t: t.new_zeros(t.shape, dtype=torch.float32)))
    return results


_BACKWARD = _operator(_torch_schema.BACKWARD, _run_backward)
backward = torch.ops.fovea.attention_backward.default


@torch.library.register_fake(_BACKWARD)
def _(dout, dlse, q, k, v, out, lse, wanted, scale, mask, window, score, score_text,
      captures, sinks, dropout_p, seed, listed, lists, sizes, deterministic):
    return _in_types(_backward_results(q, k, v, sinks, captures, wanted, listed),
                     captures, wanted)


def _keep(ctx, inputs, output):
    (q, k, v, scale, mask, window, score, score_text, captures, sinks, dropout_p, seed,
     listed, lists, sizes, _, deterministic) = inputs
    ctx.set_materialize_grads(False)
    ctx.counts = [None if given is None else len(given) for given in (captures, lists)]
    ctx.save_for_backward(q, k, v, *output, sinks, seed, *(captures or ()), *(lists or ()))
    ctx.rest = (scale, mask, window, score, score_text, dropout_p, listed, sizes,
                deterministic)


def _gradients(ctx, run, wanted, dout, dlse):
    """Of q, k, v, sinks and captures; None where they are not wanted."""
    q, k, v, out, lse, sinks, seed, *others = ctx.saved_tensors
    count = ctx.counts[0] or 0
    captures, lists = others[:count] or None, others[count:] or None
    (scale, mask, window, score, score_text, dropout_p, listed, sizes,
     deterministic) = ctx.rest
    if dout is None:
        dout = torch.zeros_like(out)
    try:
        found = run(dout, dlse, q, k, v, out, lse, wanted, scale, mask, window, score,
                    score_text, captures, sinks, dropout_p, seed, listed, lists, sizes,
                    deterministic)
    except RuntimeError as error:
        told = _torch_library.told(error)
        if getattr(told, "is_of_determinism", False):
            told = type(told)(f"{told}; deterministic is 1 since the call of the forward pass "
                              "had deterministic=True, or had none while "
                              "torch.use_deterministic_algorithms(True) held")
            told.cause = "deterministic"
        raise told from error.__cause__
    return [gradient if is_wanted else None for gradient, is_wanted in zip(found, wanted)]


def _differentiate(ctx, dout, dlse):
    needs, (captures, lists) = ctx.needs_input_grad, ctx.counts
    # A list's flags are a list of its own, where there is one; so are its gradients.
    of_captures = (needs[8] if isinstance(needs[8], (list, tuple))
                   else [needs[8]] * (captures or 0))
    dq, dk, dv, dsinks, *rest = _gradients(
        ctx, backward, [*needs[:3], needs[9], *of_captures], dout, dlse)
    return (dq, dk, dv, None, None, None, None, None,
            None if captures is None else rest, dsinks, None, None,
            None, None if lists is None else [None] * lists, None, None, None)


def _refuse(*_):
    raise RuntimeError("fovea::attention_backward has no autograd formula: gradients of "
                       "gradients are not there")


torch.library.register_autograd(_FORWARD, _differentiate, setup_context=_keep)
torch.library.register_autograd(_BACKWARD, _refuse)


def _past(operator, run):
    """The kernel beneath an operator, past its formula: that in C++ is the faster one, also
    through PyTorch's dispatcher."""
    if _torch_library.kind == "python":
        return run

    def kernel(*arguments):
        with torch._C._AutoDispatchBelowAutograd():
            return operator(*arguments)
    return kernel


_forward_kernel = _past(forward, _run_forward)
_backward_kernel = _past(backward, _run_backward)


class _Recorded(torch.autograd.Function):
    """What the operator's formula records, where nobody has to see an operator."""

    @staticmethod
    def forward(ctx, q, k, v, sinks, rest, *captures):
        inputs = (q, k, v, *rest[:5], captures or None, sinks, *rest[5:])
        results = _forward_kernel(*inputs)
        _keep(ctx, inputs, results)
        return results

    @staticmethod
    def backward(ctx, dout, dlse):
        needs = ctx.needs_input_grad
        # Under create_graph the operator says that it has no derivative.
        run = _backward_kernel if not torch.is_grad_enabled() and is_unseen() else backward
        dq, dk, dv, dsinks, *rest = _gradients(
            ctx, run, [*needs[:4], *needs[5:]], dout, dlse)
        return dq, dk, dv, dsinks, None, *rest


def recorded(q, k, v, scale, mask, window, score, score_text, captures, sinks, *rest):
    """:func:`forward`, past the operator."""
    return _Recorded.apply(q, k, v, sinks, (scale, mask, window, score, score_text, *rest),
                           *(captures or ()))


def _each(function):
    """A function's rule under vmap: a call for each of the batch. PyTorch's own for any operator
    knows no lists of tensors."""
    def run(info, in_dims, *inputs):
        given, spec = pytree.tree_flatten(inputs)
        dims = pytree._broadcast_to_and_flatten(in_dims, spec)

        def one(select):
            return function(*pytree.tree_unflatten(
                [item if dim is None else select(item, dim) for item, dim in zip(given, dims)],
                spec))

        made = [one(lambda item, dim: item.select(dim, number))
                for number in range(info.batch_size)]
        if not made:  # zeros stand for one, of whose results none are taken
            results = one(lambda item, dim: item.sum(dim, dtype=item.dtype))
            return pytree.tree_map(lambda result: result[None][:0], results), 0
        return type(made[0])(map(torch.stack, zip(*made))), 0
    return run


torch.library.register_vmap(_FORWARD, _each(forward))
torch.library.register_vmap(_BACKWARD, _each(backward))


class _Transformed(torch.autograd.Function):
    """:class:`_Recorded` where transforms of torch.func look on, which want no formula of an
    operator's, but one with its context apart."""

    @staticmethod
    def forward(q, k, v, sinks, rest, *captures):
        return forward(q, k, v, *rest[:5], list(captures) or None, sinks, *rest[5:])

    @staticmethod
    def vmap(info, in_dims, *inputs):
        return _each(_Transformed.apply)(info, in_dims, *inputs)

    @staticmethod
    def setup_context(ctx, inputs, output):
        q, k, v, sinks, rest, *captures = inputs
        _keep(ctx, (q, k, v, *rest[:5], captures or None, sinks, *rest[5:]), output)

    @staticmethod
    def backward(ctx, dout, dlse):
        needs = ctx.needs_input_grad
        dq, dk, dv, dsinks, *rest = _gradients(
            ctx, _TransformedGradients.apply, [*needs[:4], *needs[5:]], dout, dlse)
        return dq, dk, dv, dsinks, None, *rest


class _TransformedGradients(torch.autograd.Function):
    @staticmethod
    def forward(*inputs):
        return tuple(backward(*inputs))

    @staticmethod
    def vmap(info, in_dims, *inputs):
        return _each(_TransformedGradients.apply)(info, in_dims, *inputs)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    backward = staticmethod(_refuse)


def transformed(q, k, v, scale, mask, window, score, score_text, captures, sinks, *rest):
    """:func:`forward`, for transforms of torch.func."""
    return _Transformed.apply(q, k, v, sinks, (scale, mask, window, score, score_text, *rest),
                              *(captures or ()))


def is_transformed() -> bool:
    """Whether transforms of torch.func look on that want a function of autograd's, and no
    compiler, which has its own way."""
    if torch.compiler.is_compiling():
        return False
    levels = torch._C._functorch.get_interpreter_stack()
    # Functionalize knows operators alone.
    return levels is not None and all(level.key() != TransformType.Functionalize
                                      for level in levels)


def is_unseen() -> bool:
    """Whether no compiler, mode, transform or profiler looks on, who would have to see an
    operator. It costs more than the call."""
    return not (
        torch.compiler.is_compiling() or torch._C._len_torch_dispatch_stack()
        or torch._C._len_torch_function_stack() or torch._C._get_tracing_state()
        or torch._C._functorch.peek_interpreter_stack() is not None
        or torch.autograd.forward_ad._current_level >= 0
        or torch._C._autograd._profiler_enabled())


def way_of(q: Tensor, k: Tensor, v: Tensor, score: Optional[Score],
           sinks: Optional[Tensor]) -> Optional[bool]:
    """None: a call is an operator's. Else it goes past it: whether gradients are to be
    recorded."""
    if not is_unseen():
        return None
    tensors = [q, k, v]
    if score is not None:
        for given in score.captures:
            if isinstance(given, Tensor) and given.dim():
                tensors.append(given)
            elif not isinstance(given, (bool, int, float)):
                return None  # what operators' arguments are made of first
    if sinks is not None:
        tensors.append(sinks)
    records, records_any = torch.is_grad_enabled(), False
    for tensor in tensors:
        if type(tensor) not in _CLASSES:
            return None
        records_any |= records and tensor.requires_grad
    return records_any


_CLASSES = (Tensor, torch.nn.Parameter)


def refuse_tangents(*tensors: Optional[Tensor]) -> None:
    """Operators know no forward-mode derivative, and PyTorch drops a tangent in silence where
    no input wants a gradient."""
    if torch.compiler.is_compiling() or torch.autograd.forward_ad._current_level < 0:
        return
    for tensor in tensors:
        while isinstance(tensor, Tensor):
            is_batch = torch._C._functorch.is_batchedtensor(tensor)
            if not is_batch and unpack_dual(tensor).tangent is not None:
                raise NotImplementedError(
                    "fovea::attention_forward has no forward-mode derivative (jvp); take "
                    "gradients, or leave this call to PyTorch: with torch.nn.attention."
                    "sdpa_kernel(SDPBackend.MATH)")
            tensor = (torch._C._functorch.get_unwrapped(tensor)
                      if torch._C._functorch.is_functorch_wrapped_tensor(tensor) else None)
