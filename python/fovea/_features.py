"""Feature groups: what a call may have besides queries, keys and values.

Each class is a structure of fovea.h, whose comments define it; `_fill` writes it.
"""

from __future__ import annotations

import ctypes
import dataclasses
import sys
from typing import Any, Optional, Sequence, Union

from . import _abi, _native
from ._arrays import as_plain, key_of_number, layout_of, view, without_dimensions
from ._errors import InvalidArgumentError

_INFINITE = 2**63 - 1  # FOVEA_WINDOW_INFINITE


def choice(name, value, table):
    """The number of a name in a table."""
    try:
        return table[value]
    except (KeyError, TypeError):
        raise InvalidArgumentError(
            f"{name} is {value!r}, not one of {', '.join(map(repr, table))}") from None


def of_class(name, feature, kind):
    """Refuses a feature that is none of its class."""
    if not isinstance(feature, kind):
        raise TypeError(f"{name} is {type(feature).__name__}, not a fovea.{kind.__name__}")


def as_number(given, name, remedy="give its item()"):
    """A number, or an array of one, as Python's: a call like it may have another in the
    same array.

    Args:
        remedy: for one whose gradient would be lost.

    Raises:
        TypeError: it is none.
        InvalidArgumentError: no float is as large.
    """
    is_plain = isinstance(given, (int, float))  # also torch.compile's symbols, without attributes
    if (not is_plain and getattr(given, "requires_grad", False)
            and sys.modules["torch"].is_grad_enabled()):
        raise TypeError(f"{name}: Tensor that requires a gradient, which no call gives of it; "
                        f"{remedy}")
    try:
        value = given.item() if not is_plain and hasattr(given, "item") else given
        if not isinstance(value, (str, bytes)):  # which float() would read
            return float(value)
    except OverflowError:
        raise InvalidArgumentError(f"{name} is a whole number that no float holds") from None
    except (TypeError, ValueError, RuntimeError):
        pass
    raise TypeError(f"{name} is {type(given).__name__}, not a number or an array of one")


def _normalize(feature, prefix, names):
    """Has whole numbers of any library as Python's; None, which stands for none, stays."""
    for name in names:
        given = getattr(feature, name)
        if given is not None:
            object.__setattr__(feature, name, _native.index(given, f"{prefix}.{name}"))


MASKS = {"none": _abi.FOVEA_MASK_NONE,
         "causal-top-left": _abi.FOVEA_MASK_CAUSAL_TOP_LEFT,
         "causal-bottom-right": _abi.FOVEA_MASK_CAUSAL_BOTTOM_RIGHT}
ALIGNMENTS = {"top-left": _abi.FOVEA_ALIGN_TOP_LEFT,
               "bottom-right": _abi.FOVEA_ALIGN_BOTTOM_RIGHT}
_WORD_ORDERS = {"0123": _abi.FOVEA_PHILOX_0123, "0213": _abi.FOVEA_PHILOX_0213}
_LSE_LAYOUTS = {"as-q": _abi.FOVEA_LSE_AS_Q, "batched": _abi.FOVEA_LSE_BATCHED}
_CAPTURES = {"float32": _abi.FOVEA_CAPTURE_F32, "float16": _abi.FOVEA_CAPTURE_F16,
             "bfloat16": _abi.FOVEA_CAPTURE_BF16, "int32": _abi.FOVEA_CAPTURE_I32,
             "bool": _abi.FOVEA_CAPTURE_BOOL}


@dataclasses.dataclass(frozen=True)
class Window:
    """A sliding window: query i sees keys from i + dl - left to i + dr + right.

    Args:
        left, right: keys; ``None``: no bound. May be negative.
        left_alignment, right_alignment: ``"bottom-right"`` (dl or dr is
            seqlen_k - seqlen_q) or ``"top-left"`` (it is 0).
    """

    left: Optional[int] = None
    right: Optional[int] = None
    left_alignment: str = "bottom-right"
    right_alignment: str = "bottom-right"

    def __post_init__(self):
        _normalize(self, "window", ("left", "right"))

    @classmethod
    def of_flash_attn(cls, left: int, right: int) -> Window:
        """flash-attn's ``window_size``: a negative number is no bound."""
        return cls(None if left < 0 else left, None if right < 0 else right)

    @classmethod
    def _of(cls, given) -> Window:
        """What stands for it, too: (left, right)."""
        if isinstance(given, tuple):
            if len(given) > len(_FIELDS[cls]):
                raise InvalidArgumentError(f"window is {given}, not (left, right)")
            given = cls(*given)
        of_class("window", given, cls)
        return given

    def _fill(self, call):
        group = call.group(_abi.fovea_window_t, _abi.FOVEA_GROUP_WINDOW)
        for side in ("left", "right"):
            bound = getattr(self, side)
            _native.set_whole(group, side, _INFINITE if bound is None else bound,
                              f"window.{side}")
            name = f"{side}_alignment"
            setattr(group, name,
                    choice(f"window.{name}", getattr(self, name), ALIGNMENTS))


@dataclasses.dataclass(frozen=True)
class Capture:
    """What a score program reads, where its gradient is wanted.

    Args:
        value: a number, or an array of 1 to 4 dimensions of float32, float16,
            bfloat16, int32 or bool; a dimension of stride 0 is broadcast. One without
            dimensions is the number that it has when the argument is made.
        gradient: of a backward call, an array of the value's shape (of a number: of
            one element) that the gradient is **added** to, float32. With ``stored``:
            that it is stored to, of the value's type.
    """

    value: Any
    gradient: Any = None
    stored: bool = False

    def __post_init__(self):
        object.__setattr__(self, "value", without_dimensions(self.value))


@dataclasses.dataclass(frozen=True)
class Score:
    """A program between the scaled products and the softmax (docs/ScorePrograms.md).

    Args:
        program: its name, ``"softcap"``, several with commas, or the digits of its key.
        captures: numbers, arrays and :class:`Capture`, in the program's order.
        text: MLIR with functions that are programs, for kernels that are compiled on
            demand.
    """

    program: str
    captures: Sequence[Any] = ()
    text: Optional[str] = None

    def __post_init__(self):
        for name, kinds, wanted in (("program", str, "a text"),
                                    ("captures", (tuple, list), "a tuple or a list"),
                                    ("text", (str, type(None)), "a text or None")):
            given = getattr(self, name)
            if not isinstance(given, kinds):
                raise TypeError(f"score.{name} is {type(given).__name__}, not {wanted}")
        object.__setattr__(self, "captures", type(self.captures)(
            [without_dimensions(given) for given in self.captures]))
        if not self.program:
            raise InvalidArgumentError("score.program is empty; give the name of a program or "
                                       "the 16 digits of its key, or score=None")
        for name in ("program", "text"):
            if "\0" in (getattr(self, name) or ""):  # where C ends a text
                raise InvalidArgumentError(
                    f"score.{name} is {getattr(self, name)!r}, which has a NUL in it")

    def _fill(self, call):
        group = call.group(_abi.fovea_score_t, _abi.FOVEA_GROUP_SCORE)
        group.program = self.program.encode()
        if self.text is not None:
            group.text = self.text.encode()
        captures = (_abi.fovea_capture_t * len(self.captures))()
        group.captures = call.keep(captures)
        group.capture_count = len(captures)
        group.capture_size = ctypes.sizeof(_abi.fovea_capture_t)
        for number, (capture, given) in enumerate(zip(captures, self.captures)):
            if not isinstance(given, Capture):
                given = Capture(given)
            name = f"score.captures[{number}]"
            if isinstance(given.value, (bool, int, float)):
                whole = isinstance(given.value, int)
                capture.type = (_abi.FOVEA_CAPTURE_I32 if whole
                                else _abi.FOVEA_CAPTURE_F32)
                capture.value = (_native.whole(given.value, name, -2**31, 2**31) if whole
                                 else given.value)
                shape = (1,)
            else:
                seen = view(given.value, name)
                capture.type = choice(f"the type of {name}", seen.dtype, _CAPTURES)
                shape = seen.shape
                capture.rank = len(shape)
                if not 1 <= len(shape) <= 4:
                    raise InvalidArgumentError(
                        f"{name} has {len(shape)} dimensions, not 1 to 4; a scalar is "
                        "a number: give its item()")
                capture.extents[:len(shape)] = shape
                capture.strides[:len(shape)] = seen.strides
                call.address(capture, "data", seen, name)
            if given.gradient is not None:
                gradient = call.expect(given.gradient, f"{name}.gradient", shape,
                                       None if given.stored else "float32")
                capture.gradient_strides[:len(shape)] = gradient.strides
                call.address(capture, "gradient", gradient, f"{name}.gradient", True)
                if given.stored:
                    group.stored_gradients |= 1 << number


@dataclasses.dataclass(frozen=True)
class Dropout:
    """Weights dropped by chance, with AOTriton's masks (docs/Dropout.md).

    Args:
        p: probability that a weight is dropped, 0 to 1.
        seed, offset: numbers, or arrays of one element of 64 bits, which kernels read
            when they run.
        word_order: ``"0123"``, as AOTriton from 0.14 on, or ``"0213"``, as 0.10 to 0.13.
        seed_out, offset_out: of a forward call, arrays of one element of 64 bits that
            receive what was used.
    """

    p: float
    seed: Any = 0
    offset: Any = 0
    word_order: str = "0123"
    seed_out: Any = None
    offset_out: Any = None

    def __post_init__(self):
        object.__setattr__(self, "p", as_number(self.p, "dropout.p"))

    def _fill(self, call):
        group = call.group(_abi.fovea_dropout_t, _abi.FOVEA_GROUP_DROPOUT)
        group.p = self.p
        group.word_order = choice("dropout.word_order", self.word_order, _WORD_ORDERS)
        for name in ("seed", "offset"):
            given = getattr(self, name)
            if isinstance(given, int):
                setattr(group, f"{name}_value", given % 2**64)
            else:
                call.address(group, name, _one(given, f"dropout.{name}"),
                             f"dropout.{name}")
            receives = getattr(self, f"{name}_out")
            if receives is not None:
                call.address(group, f"{name}_out",
                             _one(receives, f"dropout.{name}_out"),
                             f"dropout.{name}_out", True)


def _one(given, name):
    seen = view(given, name)
    if seen.dtype not in ("int64", "uint64") or any(n != 1 for n in seen.shape):
        raise InvalidArgumentError(
            f"{name} is {seen.dtype} of shape {seen.shape}, not one element of int64 "
            "or uint64")
    return seen


@dataclasses.dataclass(frozen=True)
class Sequences:
    """Lengths and places of the sequences of one side (docs/VariableLengths.md).

    Args:
        lengths: int32 (batch), the length of each. Or
        cumulative: int32 (batch + 1), never falling: sequence z has
            cumulative[z + 1] - cumulative[z]. Neither: all have the call's length.
        starts: int32 (batch), the row with which each begins.
    """

    lengths: Any = None
    cumulative: Any = None
    starts: Any = None

    def _given(self):
        """Names of the arrays that there are, and of how many elements more than sequences."""
        return [(field, more) for field, more in
                (("lengths", 0), ("cumulative", 1), ("starts", 0))
                if getattr(self, field) is not None]

    def _batch(self, name):
        """How many there are, of which something is given."""
        field, more = self._given()[0]
        shape = view(getattr(self, field), f"{name}.{field}").shape
        if len(shape) != 1 or shape[0] < more:
            raise InvalidArgumentError(
                f"{name}.{field} has shape {shape}, not (batch{' + 1' * more})")
        return shape[0] - more

    def _fill(self, call, group, name, batch, total):
        rows = (("lengths", batch, "lengths", _abi.FOVEA_LENGTHS_EACH),
                ("cumulative", batch + 1, "lengths", _abi.FOVEA_LENGTHS_CUMULATIVE),
                ("starts", batch, "starts", None))
        for field, count, target, kind in rows:
            given = getattr(self, field)
            if given is None:
                continue
            seen = call.expect(given, f"{name}.{field}", (count,), "int32")
            if count > 1 and seen.strides[0] != 1:
                raise InvalidArgumentError(
                    f"{name}.{field} has a stride of {seen.strides[0]}; copy it")
            call.address(group, target, seen, f"{name}.{field}")
            if kind is not None:
                group.kind = kind
        if total is not None:
            group.layout, group.total = _abi.FOVEA_ROWS_PACKED, total


@dataclasses.dataclass(frozen=True)
class Varlen:
    """Sequences of different lengths. A side whose tensors have three dimensions,
    (heads, total, head_dim), is packed.

    Args:
        q, k: the sequences of queries, and of keys and values; None: all have the call's
            length.
        max_q, max_k: the most queries and keys that any sequence has; of a side that
            is not packed by default its tensors' length.
        lse_layout: where rows of lse lie: ``"as-q"``, (heads_q, total) where q is
            packed, or ``"batched"``, (batch, heads_q, max_q).
    """

    # Which torch.compile makes, and takes no default that is one.
    q: Sequences = None  # type: ignore[assignment]
    k: Sequences = None  # type: ignore[assignment]
    max_q: Optional[int] = None
    max_k: Optional[int] = None
    lse_layout: str = "as-q"

    def __post_init__(self):
        for side in ("q", "k"):
            if getattr(self, side) is None:
                object.__setattr__(self, side, Sequences())
        _normalize(self, "varlen", ("max_q", "max_k"))

    @classmethod
    def packed(cls, cumulative_q, cumulative_k, max_q: int, max_k: int) -> Varlen:
        """flash-attn's ``cu_seqlens_q``, ``cu_seqlens_k``."""
        return cls(Sequences(cumulative=cumulative_q),
                   Sequences(cumulative=cumulative_k), max_q, max_k)

    def _hold(self, side, rows):
        """Refuses what a side cannot have.

        Args:
            rows: that its tensors have; None: it is packed.
        """
        sequences, most = getattr(self, side), getattr(self, f"max_{side}")
        of_class(f"varlen.{side}", sequences, Sequences)
        if sequences.lengths is not None and sequences.cumulative is not None:
            raise InvalidArgumentError(
                f"varlen.{side} has both lengths and cumulative lengths")
        if rows is not None and most is not None and most != rows:
            raise InvalidArgumentError(
                f"varlen.max_{side} is {most}, and {side} has {rows} rows; give None")
        if rows is None and (most is None or not sequences._given()):
            raise InvalidArgumentError(
                f"{side} is packed and varlen has no "
                + (f"max_{side}" if most is None else f"lengths of {side}"))
        if rows is None:
            _native.whole(most, f"varlen.max_{side}", 0, 2**31)

    def _fill(self, call):
        group = call.group(_abi.fovea_varlen_t, _abi.FOVEA_GROUP_VARLEN)
        group.lse_layout = choice("varlen.lse_layout", self.lse_layout, _LSE_LAYOUTS)
        for side in ("q", "k"):
            getattr(self, side)._fill(call, getattr(group, side), f"varlen.{side}",
                                      call.sizes["batch"],
                                      call.sizes.get(f"total_{side}"))
        return group


# The lists of blocks, by their attributes' beginnings; and what rows and entries of
# each are blocks of.
_LISTS = (("kv", "seqlen_q"), ("full_kv", "seqlen_q"), ("q", "seqlen_k"),
          ("full_q", "seqlen_k"))


@dataclasses.dataclass(frozen=True)
class Blocks:
    """Which blocks of keys each block of queries sees (docs/BlockLists.md), by the
    names of FlexAttention's BlockMask. All int32, the last dimension contiguous.

    Args:
        kv_num_blocks, full_kv_num_blocks: (batch or 1, heads_q or 1, blocks of q).
        kv_indices, full_kv_indices: the same, and behind it a dimension of entries.
        q_num_blocks, q_indices, full_q_num_blocks, full_q_indices: the other way
            round, which a backward pass needs.
        block_size: queries and keys of a block, multiples of 128.
    """

    kv_num_blocks: Any
    kv_indices: Any
    full_kv_num_blocks: Any = None
    full_kv_indices: Any = None
    q_num_blocks: Any = None
    q_indices: Any = None
    full_q_num_blocks: Any = None
    full_q_indices: Any = None
    block_size: tuple = (128, 128)

    def __post_init__(self):
        for lists, _ in _LISTS:
            names = f"{lists}_num_blocks", f"{lists}_indices"
            missing = [name for name in names if getattr(self, name) is None]
            if len(missing) == 1:
                beside = names[1 - names.index(missing[0])]
                raise InvalidArgumentError(
                    f"blocks.{missing[0]} is missing beside blocks.{beside}")
        if self.kv_num_blocks is None:
            raise InvalidArgumentError(
                "blocks.kv_num_blocks is missing; give it, with numbers of 0 where it lists "
                "nothing, or blocks=None")
        if not isinstance(self.block_size, (tuple, list)) or len(self.block_size) != 2:
            raise InvalidArgumentError(
                f"blocks.block_size is {self.block_size}, not (queries, keys)")
        object.__setattr__(self, "block_size", tuple(
            [_native.index(size, "blocks.block_size") for size in self.block_size]))

    @classmethod
    def of(cls, block_mask: Any) -> Blocks:
        """The lists of a BlockMask. Its mask_mod is a score program's to compute."""
        names = [field.name for field in dataclasses.fields(cls)][:-1]
        return cls(**{name: getattr(block_mask, name) for name in names},
                   block_size=tuple(block_mask.BLOCK_SIZE))

    def _fill(self, call):
        group = call.group(_abi.fovea_blocks_t, _abi.FOVEA_GROUP_BLOCKS)
        for field, size in zip(("q_block", "kv_block"), self.block_size):
            _native.set_whole(group, field, size, "blocks.block_size")
        rows = {"seqlen_q": group.q_block, "seqlen_k": group.kv_block}
        for lists, side in _LISTS:
            counts = getattr(self, f"{lists}_num_blocks")
            if counts is None:
                continue
            target = getattr(group, lists)
            shape = (call.sizes["batch"], call.sizes["heads_q"],
                     -(-call.sizes[side] // max(rows[side], 1)))
            for field, extra in (("num_blocks", ()), ("indices", ("entries",))):
                name = f"blocks.{lists}_{field}"
                given = getattr(self, f"{lists}_{field}")
                seen = view(given, name)
                expected = shape + seen.shape[3:]
                if (seen.dtype != "int32" or len(seen.shape) != 3 + len(extra)
                        or any(have not in (1, want) for have, want in
                               zip(seen.shape[:2], shape))
                        or seen.shape[2] != shape[2]):
                    raise InvalidArgumentError(
                        f"{name} is {seen.dtype} of shape {seen.shape}, not int32 of "
                        f"{expected[:3] + extra}, where the first two may be 1")
                if seen.shape[-1] > 1 and seen.strides[-1] != 1:
                    raise InvalidArgumentError(
                        f"{name}: its last stride is {seen.strides[-1]}; copy it")
                strides = [0 if extent == 1 else stride for extent, stride in
                           zip(seen.shape, seen.strides)]
                setattr(target, f"{field}_stride_batch", strides[0])
                setattr(target, f"{field}_stride_head", strides[1])
                if extra:
                    target.indices_stride_block = strides[2]
                    target.entries = seen.shape[3]
                call.address(target, field, seen, name)


WindowLike = Union[Window, "tuple[Optional[int], Optional[int]]"]


def as_window(given):
    """A tuple of other than Python's numbers as the window that it stands for."""
    if type(given) is tuple:
        for item in given:
            if not isinstance(item, _PLAIN):
                return Window._of(given)
    return given


#: The types that arrays of features have, by the beginnings of their names.
KINDS = {"score": tuple(_CAPTURES), "dropout": ("int64", "uint64"), "varlen": ("int32",),
         "blocks": ("int32",)}
# What a call's structures hold of a feature but the addresses of arrays.
_FIELDS = {kind: tuple(field.name for field in dataclasses.fields(kind))
           for kind in (Window, Capture, Score, Dropout, Sequences, Varlen, Blocks)}
_PLAIN = (bool, int, float, str, type(None))
#: What may have arrays of an argument that is a feature.
FEATURES = (*_FIELDS, tuple)


def key_of(feature, seen):
    """It as a key; the addresses are appended to `seen`, in the order of fields."""
    kind = type(feature)
    fields = _FIELDS.get(kind)
    if fields is not None:
        return (kind, *[key_of(getattr(feature, name), seen) for name in fields])
    if kind in (tuple, list):
        return tuple([key_of(item, seen) for item in feature])
    if isinstance(feature, _PLAIN):
        return kind, key_of_number(feature)
    return layout_of(kind)(feature, seen)


def with_views(feature, name, viewed):
    """The feature with what `viewed` makes of its arrays and their names, in the order
    of :func:`key_of`."""
    kind = type(feature)
    fields = _FIELDS.get(kind)
    if fields is not None:
        return kind(*[with_views(getattr(feature, field), name if field == "value" else
                                 f"{name}.{field}", viewed) for field in fields])
    if kind in (tuple, list):
        return kind(with_views(item, f"{name}[{number}]", viewed)
                    for number, item in enumerate(feature))
    feature = as_plain(feature)
    return feature if isinstance(feature, _PLAIN) else viewed(feature, name)
