"""Attention: calls of fovea.h, made of arrays."""

from __future__ import annotations

import collections.abc
import contextlib
import ctypes
import math
from typing import Any, Callable, Iterable, NamedTuple, Optional, Union

from . import _abi, _arrays, _memory, _native, scores
from ._errors import InvalidArgumentError
from ._features import (FEATURES, KINDS, MASKS, Blocks, Dropout, Score, Varlen, Window,
                        WindowLike, as_number, as_window, choice, key_of, of_class, with_views)
from ._library import Explanation, Library, default_library, explained

DTYPES = {"float16": _abi.FOVEA_DTYPE_F16, "bfloat16": _abi.FOVEA_DTYPE_BF16,
          "float32": _abi.FOVEA_DTYPE_F32}

# The tensors' dimensions, by the sizes of the structures that they follow from, and
# their type where it is not the problem's.
_Q = ("batch", "heads_q", "seqlen_q", "head_dim")
_K = ("batch", "heads_k", "seqlen_k", "head_dim")
_V = ("batch", "heads_k", "seqlen_k", "head_dim_v")
_OUT = ("batch", "heads_q", "seqlen_q", "head_dim_v")
_LSE = ("batch", "heads_q", "seqlen_q")
_HEADS = ("heads_q",)
_TENSORS = {"q": (_Q, None), "k": (_K, None), "v": (_V, None), "out": (_OUT, None),
            "dout": (_OUT, None), "dq": (_Q, None), "dk": (_K, None), "dv": (_V, None),
            "lse": (_LSE, "float32"), "dlse": (_LSE, "float32"),
            "sinks": (_HEADS, "float32"), "dsinks": (_HEADS, "float32")}
_SIZES = ("batch", "heads_q", "heads_k", "seqlen_q", "seqlen_k", "head_dim")
# What an empty array has for an address, which nothing reads.
_NOWHERE = 256
# How many calls' structures a thread keeps of a library.
_KEPT = 512


def _kinds(name):
    """The types that an array of a call may have."""
    if name not in _TENSORS:
        return KINDS.get(name.partition(".")[0], tuple(DTYPES))  # or that of a dropout mask
    kind = _TENSORS[name][1]
    return (kind,) if kind else tuple(DTYPES)


def _listed(dims):
    """Extents or their names, as a shape is written."""
    return f"({', '.join(dims)}{',' * (len(dims) == 1)})"


def misshapen(name, shape, dims=None):
    """Why an array of another number of dimensions is refused.

    Args:
        dims: names of those that it is to have; None: of calls without packed sequences.
    """
    return InvalidArgumentError(
        f"{name} has shape {shape}, not {_listed(dims or _TENSORS[name][0])}"
        + ("; packed sequences take varlen=" if name in ("q", "k") and len(shape) == 3 else ""))


class _Call:
    """The structures of calls that differ in the addresses of their arrays alone."""

    def __init__(self, params, views, varlen=None):
        self.params = _native.new(params)
        self.sizes = {}
        self.varlen = None
        self._described = varlen
        self._groups = []
        self._kept = []
        self._addresses = []  # (structure, field, view, name, written)
        self._packed = set()  # sides, "q" and "k"
        self._plans = {}  # what _plan() gives, by device
        self._refusal = None  # the error and its text: why it can be explained and not run
        self.views = views  # of arrays, in the order of their addresses
        self.makers = []  # of results that are not given
        self.made = []  # the first ones

    # Structures.
    def group(self, structure, number):
        made = structure()
        made.header.struct_size, made.header.group = ctypes.sizeof(structure), number
        self._groups.append(made)
        return made

    def keep(self, structure):
        self._kept.append(structure)
        return ctypes.addressof(structure)

    def address(self, structure, field, view, name, written=False):
        if written and view.read_only:
            raise InvalidArgumentError(f"{name} receives a result and is read-only")
        self._addresses.append((structure, field, view, name, written))

    # Arrays.
    def expect(self, array, name, shape, dtype=None):
        seen = _arrays.view(array, name, (dtype,) if dtype else _arrays.KINDS)
        if seen.shape != tuple(shape):
            raise InvalidArgumentError(
                f"{name} has shape {seen.shape}, not {tuple(shape)}")
        if dtype is not None and seen.dtype != dtype:
            raise TypeError(f"{name} is {seen.dtype}, not {dtype}")
        return seen

    def dims(self, name):
        """Names of a tensor's dimensions in this call."""
        dims = _TENSORS[name][0]
        if name in ("lse", "dlse") and self._described is not None and (
                self._described.lse_layout == "batched"):
            return dims
        for side in self._packed:
            if f"seqlen_{side}" in dims:
                return tuple(f"total_{side}" if dim == f"seqlen_{side}" else dim
                             for dim in dims if dim != "batch")
        return dims

    def shape(self, name):
        return tuple(self.sizes[dim] for dim in self.dims(name))

    def see(self, name, array):
        """Holds an array to the sizes that others have, or takes its own."""
        seen = _arrays.view(array, name, _kinds(name))
        rank = len(_TENSORS[name][0])
        if name in ("q", "k") and self._described is not None and (
                len(seen.shape) == rank - 1):
            self._packed.add(name)
        dims = self.dims(name)
        if len(seen.shape) != len(dims):
            raise misshapen(name, seen.shape, dims)
        for dim, extent in zip(dims, seen.shape):
            known = self.sizes.setdefault(dim, extent)
            if known != extent:
                expected = _listed([str(self.sizes.get(dim, dim)) for dim in dims])
                raise InvalidArgumentError(
                    f"{name} has shape {seen.shape}, not {expected}: its {dim} is "
                    f"{extent}, others' {known}")
        kind = _TENSORS[name][1] or self.sizes.setdefault("dtype", seen.dtype)
        if seen.dtype != kind:
            raise TypeError(f"{name} is {seen.dtype}, not {kind}")
        return seen

    def tensor(self, structure, name, array, written=False):
        """One of the structures' tensors: its strides, and its address to come."""
        seen = self.see(name, array)
        dims = self.dims(name)
        strides = dict(zip((dim.partition("_")[0] for dim in dims), seen.strides))
        rows = strides.get("seqlen", strides.get("total"))
        if "head" in strides:  # the last one, of head_dim
            if seen.strides[-1] != 1 and seen.shape[-1] > 1 and seen.span:
                raise InvalidArgumentError(
                    f"{name}: its last stride is {seen.strides[-1]}, not 1; copy it")
            field = getattr(structure, name)
            field.stride_batch = strides.get("batch", 0)
            field.stride_head, field.stride_seq = strides["heads"], rows
            self.address(field, "data", seen, name, written)
            return seen
        if rows is not None:
            if self.varlen is not None:
                self._lse_stride(name, rows)
            elif rows != 1 and self.sizes["seqlen_q"] > 1 and seen.span:
                raise InvalidArgumentError(
                    f"{name}: its last stride is {rows}, not 1; copy it")
            setattr(structure, f"{name}_stride_batch", strides.get("batch", 0))
        setattr(structure, f"{name}_stride_head", strides["heads"])
        self.address(structure, name, seen, name, written)
        return seen

    def _lse_stride(self, name, rows):
        known = self.varlen.lse_stride_seq
        if known and known != rows:
            raise InvalidArgumentError(
                f"{name}: its last stride is {rows}, that of lse {known}; with varlen "
                "both are the same")
        self.varlen.lse_stride_seq = rows

    # What both passes have.
    def problem(self, q, k, v, scale, mask, window, score, dropout, varlen, blocks,
                kernel):
        for name, array in (("q", q), ("k", k), ("v", v)):
            self.tensor(self.params, name, array)
        self._lengths(varlen)
        params = self.params
        params.dtype = choice("the type of q", self.sizes["dtype"], DTYPES)
        for size in _SIZES:
            setattr(params, size, self.sizes[size])
        params.scale = default_scale(params.head_dim) if scale is None else scale
        params.mask = choice("mask", mask, MASKS)
        _native.set_whole(params, "kernel", kernel, "kernel")
        if self.sizes["head_dim_v"] != self.sizes["head_dim"]:
            # Which stands for head_dim in the structure.
            if not self.sizes["head_dim_v"]:
                raise InvalidArgumentError(
                    "head_dim_v is 0; rows of v have at least one element")
            self.group(_abi.fovea_head_dims_t, _abi.FOVEA_GROUP_HEAD_DIMS
                       ).head_dim_v = self.sizes["head_dim_v"]
        if window is not None:
            window = Window._of(window)
        if isinstance(score, str):
            score = Score(score)
        for name, feature, kind in (("window", window, Window), ("score", score, Score),
                                    ("dropout", dropout, Dropout),
                                    ("blocks", blocks, Blocks)):
            if feature is not None:
                of_class(name, feature, kind)
                feature._fill(self)

    def _lengths(self, varlen):
        if varlen is None:
            return
        of_class("varlen", varlen, Varlen)
        for side in ("q", "k"):
            if side not in self._packed:
                varlen._hold(side, self.sizes[f"seqlen_{side}"])
                continue
            varlen._hold(side, None)
            batch = getattr(varlen, side)._batch(f"varlen.{side}")
            self.sizes[f"seqlen_{side}"] = getattr(varlen, f"max_{side}")
            if self.sizes.setdefault("batch", batch) != batch:
                raise InvalidArgumentError(
                    f"varlen.{side} has {batch} sequences, others "
                    f"{self.sizes['batch']}")
        self.varlen = varlen._fill(self)

    # The end.
    def complete(self, like):
        """What there is to do once. Results are like the array `like`."""
        following = None
        for group in reversed(self._groups):
            group.header.next = following
            following = ctypes.addressof(group)
        self.params.groups = following
        places = {}
        for _, _, view, name, _ in self._addresses:
            places.setdefault(view.device, name)
        if len(places) > 1:
            self._refusal = (
                InvalidArgumentError,
                "arrays of a call are all in the host's memory or all on one device: "
                + ", ".join(f"{name} is " + ("the host's" if place is None
                                             else f"on device {place}")
                            for place, name in places.items()))
        self.place = next(iter(places))
        self._stream = _arrays.current_stream_of(like)
        self.address_of = _arrays.address_of(like)
        number = {id(view): at for at, view in enumerate(self.views)}
        self._patches = []
        self._spans = []  # (number, bytes, written), of what has any
        for structure, field, view, name, written in self._addresses:
            if isinstance(view.owner, _arrays.Spec):
                self._refusal = (TypeError, f"{name} is a Spec, which stands for an array "
                                 "where nothing runs")
            setattr(structure, field, _NOWHERE)
            if view.span:
                self._patches.append((structure, field, number[id(view)]))
                self._spans.append((number[id(view)], view.span, written))
        # And the arrays with them.
        self._addresses = self.views = self._described = None
        self._reference = ctypes.byref(self.params)
        self._kernel = self.params.kernel  # that the caller names; 0: none

    def explain(self, library, function, device):
        return explained(lambda step: function(
            library._context, self.params,
            -1 if device is None else _native.device_number(device), step, None))

    def launch(self, library, operation, addresses, device, stream):
        """Enqueues it; with arrays of the host, returns when all is done."""
        if self._refusal is not None:
            # A new one each time: what was raised holds its frames' arrays.
            kind, message = self._refusal
            raise kind(message)
        place, hip = self.place, library._hip
        if place is not None:
            if device is not None and device != place:
                raise InvalidArgumentError(f"device is {device}, and the arrays are on "
                                           f"device {place}")
            if stream is None:
                stream = self._stream(place) if self._stream is not None else 0
            elif type(stream) is not int or not 0 <= stream < 2**64:
                stream = _arrays.stream_number(stream)
            if hip.current_device() == place:
                self._enqueue(library, operation, addresses, place, stream)
            else:
                with hip.device(place):
                    self._enqueue(library, operation, addresses, place, stream)
            return
        stream = 0 if stream is None else _arrays.stream_number(stream)
        if device is not None:
            device = _native.device_number(device)
        with hip.device(device), _memory.Mirror(hip) as mirror:
            for at, span, written in self._spans:
                mirror.add(addresses[at], span, written)
            mirror.copy_in()
            self.params.kernel, size, _ = self._plan(library, operation, stream)
            if size:
                self.params.workspace = mirror.block(size)
                self.params.workspace_bytes = size
            for structure, field, at in self._patches:
                setattr(structure, field, mirror.address(addresses[at]))
            _native.check(operation.enqueue(library._context, self._reference, stream))
            hip.hipStreamSynchronize(stream)
            mirror.copy_out()

    def _enqueue(self, library, operation, addresses, place, stream):
        """On the current device, for arrays of it."""
        for structure, field, at in self._patches:
            setattr(structure, field, addresses[at])
        plan = self._plans.get(place)
        if plan is None:
            plan = self._plan(library, operation, stream)
            if not plan[2]:
                self._plans[place] = plan
        self.params.kernel, size, _ = plan
        if not size:
            status = operation.enqueue(library._context, self._reference, stream)
            if status:
                _native.check(status)
            return
        with _workspace(library._hip, size, stream) as address:
            self.params.workspace, self.params.workspace_bytes = address, size
            _native.check(operation.enqueue(library._context, self._reference, stream))

    def _plan(self, library, operation, stream):
        """The kernel and the workspace that it needs: together, since another kernel may
        be compiled before the launch and be the better choice. And whether they are
        those of a stream that is being captured, and not of others."""
        self.params.kernel = self._kernel
        if operation.select is None:
            return self._kernel, 0, False
        self.params.stream = stream
        plan = _native.new(operation.plan)
        _native.check(operation.select(library._context, self.params, -1, plan))
        return plan.kernel, plan.workspace_bytes, bool(plan.provisional)


class _Operation:
    """A function of the library, and what its structures are made of.

    Args:
        plan: the structure that receives a choice; None: there is no workspace.
        build: makes a _Call of the array that results are like, a list of views and the
            arguments by name, the arrays among them views.
        arrays: names of the arguments that are arrays; the first is what results are
            made like.
        features: of those that may have arrays.
        options: of all others.
    """

    def __init__(self, name, plan, build, arrays, features, options):
        self.plan, self.build = plan, build
        self.enqueue = getattr(_native.lib, f"fovea_{name}")
        self.select = getattr(_native.lib, f"fovea_{name}_select") if plan else None
        self.arrays, self.features, self.options = arrays, features, options

    def call(self, arrays, features, options):
        views = []

        def viewed(array, name):
            views.append(_arrays.view(array, name, _kinds(name)))
            return views[-1]

        arguments = dict(zip(self.options, options))
        for name, array in zip(self.arrays, arrays):
            arguments[name] = None if array is None else viewed(array, name)
        for name, feature in zip(self.features, features):
            # What is no feature is refused by its own type.
            arguments[name] = (with_views(feature, name, viewed)
                               if isinstance(feature, FEATURES) else feature)
        call = self.build(arrays[0], views, **arguments)
        call.complete(arrays[0])
        return call

    def run(self, library, device, stream, arrays, features, options):
        """Returns the results that were made.

        Structures are kept for calls that differ in addresses alone, by thread, since
        addresses are written into them.
        """
        if library is None:
            library = default_library()
        seen = _arrays.Seen()
        try:
            key = [self, type(arrays[0]), options]
            for array in arrays:
                key.append(None if array is None
                           else _arrays.layout_of(type(array))(array, seen))
            for feature in features:
                key.append(None if feature is None else key_of(feature, seen))
            key, kept = tuple(key), library._calls
            call = kept.get(key)
        except (TypeError, RuntimeError, InvalidArgumentError):
            # An array or a value that is none, or that has no address, is named here.
            self.call(arrays, features, options)
            raise
        except AttributeError:
            of_class("library", library, Library)
            raise
        if call is None:
            call = self.call(arrays, features, options)
            if len(kept) >= _KEPT:
                kept.clear()
            kept[key] = call
            made, call.made = call.made, None
        else:
            made = [make(arrays[0]) for make in call.makers]
        for array in made:
            seen.append(call.address_of(array, seen))
        call.launch(library, self, seen, device, stream)
        return made


@contextlib.contextmanager
def _workspace(hip, size, stream):
    """Memory of a device for the work that is enqueued meanwhile."""
    made = ctypes.c_void_p()
    hip.hipMallocAsync(made, size, stream)
    try:
        yield made.value
    finally:
        hip.hipFreeAsync(made, stream)


def _results(call, like, given, zeros, heads_together=False):
    """The arrays that a call writes: views of those that were given, and others like q.

    Args:
        heads_together: the heads of a row lie side by side, whatever q has.
    """
    if heads_together:
        inner = len(call.dims("q")) - 1
        order = (*range(inner - 2), inner - 1, inner - 2, inner)
    else:
        order = _arrays.order_of(_arrays.view(like, "q"))
    written = {}
    for name, array in given.items():
        if array is None:
            dims, kind = _TENSORS[name]
            shape = call.shape(name)
            make = _arrays.maker(like, shape, kind,
                                 order if len(shape) == len(order) else None, zeros)
            call.makers.append(make)
            call.made.append(make(like))
            array = _arrays.view(call.made[-1], name)
            call.views.append(array)
        written[name] = array
    return written


def default_scale(head_dim):
    """1 / sqrt(head_dim); of rows without elements, which the library refuses, a number."""
    return 1 / math.sqrt(head_dim or 1)


def as_scale(scale):
    """A scale as a number; None, for the default, stays."""
    return None if scale is None else as_number(
        scale, "scale", "multiply q by it, and have scale=1.0, or give its item()")


def as_splits(splits):
    """Shares of the keys as a number of those that there may be."""
    if type(splits) is int and 0 <= splits <= 1024:  # as fovea.h has it
        return splits
    number = _native.index(splits, "splits")
    if not 0 <= number <= 1024:
        raise InvalidArgumentError(
            f"splits is {number}, not in 0 to 1024; give 0, and the library chooses, or 1 for "
            "keys that are not split")
    return number


def attention(q: Any, k: Any, v: Any, *, scale: Optional[float] = None,
              mask: Union[str, Callable] = "none", window: Optional[WindowLike] = None,
              score: Union[Score, str, Callable, None] = None, sinks: Any = None,
              dropout: Optional[Dropout] = None, varlen: Optional[Varlen] = None,
              blocks: Optional[Blocks] = None, splits: int = 0, out: Any = None,
              lse: Any = None, return_lse: bool = False, kernel: int = 0,
              library: Optional[Library] = None, device: Optional[int] = None,
              stream: Any = None) -> Any:
    """Attention: ``out = softmax(scale * q k^T, masked) v``, summed in fp32.

    A row that sees no key has zeros in `out` and -infinity (or its head's sink) in
    `lse`. docs/Python.md tells which arrays are taken, and where they run.

    Args:
        q: (batch, heads_q, seqlen_q, head_dim) of float16, bfloat16 or float32; where
            `varlen` has it packed, (heads_q, total, head_dim).
        k: (batch, heads_k, seqlen_k, head_dim), heads_k a divisor of heads_q.
        v: (batch, heads_k, seqlen_k, head_dim_v).
        scale: multiplies q k^T before the softmax; None: 1 / sqrt(head_dim).
        mask: ``"none"``, ``"causal-top-left"`` or ``"causal-bottom-right"``; or a
            function (batch, head, query, key) that says what is seen (:mod:`fovea.scores`).
        window: (left, right) keys from the bottom-right diagonal, None for no bound; or
            a :class:`Window`. In place of a mask.
        score: a score program by name, a :class:`Score`, or a function (score, batch,
            head, query, key) (:mod:`fovea.scores`).
        sinks: (heads_q) of float32: a logit that takes part in each row's softmax.
        dropout, varlen, blocks: see their classes.
        splits: how many workgroups share out the keys of a block of rows; 0: by the
            rule of docs/SplitKeys.md, 1: they are not split.
        out: receives the result; None: an array like q is made.
        lse: receives the log-sum-exp, (batch, heads_q, seqlen_q) of float32, the natural
            logarithm; packed, (heads_q, total).
        return_lse: whether it is wanted where no array is given.
        kernel: id of the kernel to use; 0: the library picks.
        library: None: :func:`default_library`.
        device: for arrays of the host, the device's number; None: the thread's current
            one.
        stream: a hipStream_t as a number, or an object with `cuda_stream`.

    Returns:
        out; with `return_lse` or `lse`, (out, lse).

    Raises:
        InvalidArgumentError: a value or a shape is wrong; or what is written shares
            memory with another array.
        NotFoundError: no kernel serves the call; the message has each one's reason.
        TypeError: no array, or one of another type or kind of memory.
        Error: as fovea_forward() of fovea.h.
    """
    if callable(score) or callable(mask):
        score, mask = scores.resolve(score, mask)
    scale, window = as_scale(scale), as_window(window)
    splits, kernel = as_splits(splits), _native.index(kernel, "kernel")
    wants_lse = bool(return_lse) or lse is not None
    made = FORWARD.run(library, device, stream, (q, k, v, out, lse, sinks),
                       (window, score, dropout, varlen, blocks),
                       (scale, mask, splits, kernel, wants_lse, False))
    if out is None:
        out = made[0]
    if not wants_lse:
        return out
    return out, made[-1] if lse is None else lse


def _forward(like, views, q, k, v, out, lse, sinks, window, score, dropout, varlen,
             blocks, scale, mask, splits, kernel, wants_lse, heads_together):
    call = _Call(_abi.fovea_forward_params_t, views, varlen)
    call.problem(q, k, v, scale, mask, window, score, dropout, varlen, blocks, kernel)
    _native.set_whole(call.params, "splits", splits, "splits")
    if sinks is not None:
        call.tensor(call.group(_abi.fovea_sinks_t, _abi.FOVEA_GROUP_SINKS), "sinks",
                    sinks)
    # Rows of no sequence are not written: those of our own arrays are zeros.
    written = _results(call, like, {"out": out} | ({"lse": lse} if wants_lse else {}),
                       varlen is not None, heads_together)
    for name, array in written.items():
        call.tensor(call.params, name, array, written=True)
    return call


_FEATURES = ("window", "score", "dropout", "varlen", "blocks")
FORWARD = _Operation(
    "forward", _abi.fovea_forward_plan_t, _forward, ("q", "k", "v", "out", "lse", "sinks"),
    _FEATURES, ("scale", "mask", "splits", "kernel", "wants_lse", "heads_together"))


class Gradients(NamedTuple):
    """What :func:`attention_backward` returns; None where it was not wanted."""

    dq: Any
    dk: Any
    dv: Any
    dsinks: Any


def as_wanted(gradients):
    """The names of gradients."""
    if isinstance(gradients, str) or not isinstance(gradients, collections.abc.Iterable):
        raise TypeError(f"gradients is {gradients!r}, not several of 'dq', 'dk' and 'dv'; give "
                        "a tuple of them")
    return tuple(gradients)


def attention_backward(dout: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, *,
                       scale: Optional[float] = None,
                       mask: Union[str, Callable] = "none",
                       window: Optional[WindowLike] = None,
                       score: Union[Score, str, Callable, None] = None, sinks: Any = None,
                       dropout: Optional[Dropout] = None,
                       varlen: Optional[Varlen] = None,
                       blocks: Optional[Blocks] = None, dlse: Any = None,
                       gradients: Iterable[str] = ("dq", "dk", "dv"), dq: Any = None,
                       dk: Any = None, dv: Any = None, dsinks: Any = None,
                       deterministic: bool = False, narrow_sums: bool = False,
                       kernel: int = 0, library: Optional[Library] = None,
                       device: Optional[int] = None, stream: Any = None) -> Gradients:
    """The gradients of :func:`attention`, whose arguments have the same meaning and
    values here.

    Args:
        dout: (batch, heads_q, seqlen_q, head_dim_v), the gradient of `out`.
        out, lse: what the forward pass returned.
        sinks: of the forward pass; given, their gradient is computed.
        score: gradients of captures are added or stored where :class:`Capture` says.
        dlse: the gradient of `lse`, as it; None: zeros.
        gradients: which are wanted, of ``"dq"``, ``"dk"`` and ``"dv"``; the last two
            both or not at all.
        dq, dk, dv, dsinks: receive them; None: arrays like q are made.
        deterministic: the same bits in every run; kernels that add up with atomics are
            refused.
        narrow_sums: dq is summed in the type of q, by kernels that do so.

    Raises:
        InvalidArgumentError, NotFoundError, TypeError, Error: as :func:`attention`.
    """
    if callable(score) or callable(mask):
        score, mask = scores.resolve(score, mask)
    scale, window = as_scale(scale), as_window(window)
    kernel, wanted = _native.index(kernel, "kernel"), as_wanted(gradients)
    arrays = {"dq": dq, "dk": dk, "dv": dv}
    made = iter(_BACKWARD.run(
        library, device, stream, (q, k, v, dout, out, lse, sinks, dlse, dq, dk, dv, dsinks),
        (window, score, dropout, varlen, blocks),
        (scale, mask, wanted, bool(deterministic), bool(narrow_sums), kernel)))
    for name, array in arrays.items():
        if array is None and name in wanted:
            arrays[name] = next(made)
    if sinks is not None and dsinks is None:
        dsinks = next(made)
    return Gradients(arrays["dq"], arrays["dk"], arrays["dv"], dsinks)


def _backward(like, views, q, k, v, dout, out, lse, sinks, dlse, dq, dk, dv, dsinks,
              window, score, dropout, varlen, blocks, scale, mask, wanted, deterministic,
              narrow_sums, kernel):
    call = _Call(_abi.fovea_backward_params_t, views, varlen)
    call.problem(q, k, v, scale, mask, window, score, dropout, varlen, blocks, kernel)
    call.params.deterministic = deterministic
    call.params.narrow_sums = narrow_sums
    for name, array in (("out", out), ("dout", dout), ("lse", lse)):
        call.tensor(call.params, name, array)
    if dlse is not None:
        call.tensor(call.group(_abi.fovea_dlse_t, _abi.FOVEA_GROUP_DLSE), "dlse", dlse)
    given = {"dq": dq, "dk": dk, "dv": dv}
    for name in wanted:
        choice("gradients", name, given)
    for name, array in given.items():
        if array is not None and name not in wanted:
            raise InvalidArgumentError(f"{name} is given, and gradients has no '{name}'")
    results = {name: given[name] for name in given if name in wanted}
    of_sinks = None
    if sinks is not None:
        of_sinks = call.group(_abi.fovea_dsinks_t, _abi.FOVEA_GROUP_DSINKS)
        call.tensor(of_sinks, "sinks", sinks)
        results["dsinks"] = dsinks
    elif dsinks is not None:
        raise InvalidArgumentError("dsinks is given, and no sinks")
    written = _results(call, like, results, varlen is not None)
    for name, array in written.items():
        call.tensor(of_sinks if name == "dsinks" else call.params, name, array,
                    written=True)
    return call


_BACKWARD = _Operation(
    "backward", _abi.fovea_backward_plan_t, _backward,
    ("q", "k", "v", "dout", "out", "lse", "sinks", "dlse", "dq", "dk", "dv", "dsinks"),
    _FEATURES, ("scale", "mask", "wanted", "deterministic", "narrow_sums", "kernel"))


def explain(q: Any, k: Any, v: Any, *, backward: bool = False,
            return_lse: bool = False, dlse: Any = None,
            gradients: Iterable[str] = ("dq", "dk", "dv"), deterministic: bool = False,
            narrow_sums: bool = False, splits: int = 0, scale: Optional[float] = None,
            mask: Union[str, Callable] = "none", window: Optional[WindowLike] = None,
            score: Union[Score, str, Callable, None] = None, sinks: Any = None,
            dropout: Optional[Dropout] = None, varlen: Optional[Varlen] = None,
            blocks: Optional[Blocks] = None, kernel: int = 0,
            library: Optional[Library] = None,
            device: Optional[int] = None) -> Explanation:
    """Chooses a kernel as :func:`attention` does, or with `backward` as
    :func:`attention_backward`, and tells how; nothing is run. What is missing may be
    compiled.

    Args:
        q, k, v: arrays, or :class:`Spec`.
        device: the device's number; None: the thread's current one.

    Raises:
        InvalidArgumentError, TypeError: of shapes and types. What the library refuses
            is the result's `error`.
    """
    library = library or default_library()
    score, mask = scores.resolve(score, mask)
    scale, window, splits = as_scale(scale), as_window(window), as_splits(splits)
    features = (window, score, dropout, varlen, blocks)
    if backward:
        probe = _Call(_abi.fovea_backward_params_t, [], varlen)
        probe.problem(q, k, v, None, "none", None, None, None, varlen, None, 0)
        kind = probe.sizes["dtype"]
        like = _arrays.Spec(probe.shape("q"), kind)
        out, lse = (_arrays.Spec(probe.shape(name), _TENSORS[name][1] or kind)
                    for name in ("out", "lse"))
        call = _BACKWARD.call(
            (like, k, v, out, out, lse, sinks, dlse, None, None, None, None), features,
            (scale, mask, as_wanted(gradients), bool(deterministic), bool(narrow_sums), kernel))
        return call.explain(library, _native.lib.fovea_backward_explain, device)
    seen = _arrays.view(q, "q", tuple(DTYPES))
    like = _arrays.Spec(seen.shape, seen.dtype, _arrays.order_of(seen))
    call = FORWARD.call((like, k, v, None, None, sinks), features,
                        (scale, mask, splits, kernel, return_lse, False))
    return call.explain(library, _native.lib.fovea_forward_explain, device)


def dropout_mask(mask: Any, dropout: Dropout, *, kernel: int = 0,
                 library: Optional[Library] = None, device: Optional[int] = None,
                 stream: Any = None) -> Any:
    """Writes which weights a call of attention with this dropout keeps: 0.5 where one
    is kept, -0.5 where it is dropped.

    Args:
        mask: receives it, (batch, heads_q, seqlen_q, seqlen_k) of float16, bfloat16 or
            float32, sizes of that call.

    Returns:
        mask.

    Raises:
        Error, TypeError: as :func:`attention`.
    """
    _DROPOUT_MASK.run(library, device, stream, (mask,), (dropout,), (kernel,))
    return mask


def _dropout_mask(_, views, mask, dropout, kernel):
    call = _Call(_abi.fovea_dropout_mask_params_t, views)
    sizes = ("batch", "heads_q", "seqlen_q", "seqlen_k")
    if len(mask.shape) != len(sizes) or (mask.strides[-1] != 1 and mask.shape[-1] > 1):
        raise InvalidArgumentError(
            f"mask has shape {mask.shape} and strides {mask.strides}, not "
            f"({', '.join(sizes)}) with a last stride of 1")
    for name, extent in zip(sizes, mask.shape):
        setattr(call.params, name, extent)
    call.params.dtype = choice("the type of mask", mask.dtype, DTYPES)
    _native.set_whole(call.params, "kernel", kernel, "kernel")
    (call.params.mask.stride_batch, call.params.mask.stride_head,
     call.params.mask.stride_seq) = mask.strides[:3]
    call.address(call.params.mask, "data", mask, "mask", written=True)
    of_class("dropout", dropout, Dropout)
    dropout._fill(call)
    return call


_DROPOUT_MASK = _Operation("dropout_mask", None, _dropout_mask, ("mask",), ("dropout",),
                           ("kernel",))
