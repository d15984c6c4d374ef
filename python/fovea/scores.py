"""Score programs in Python: functions of a score and of where it stands.

    def score(s, b, h, i, j):
        return fovea.scores.where(i - j < 64, s, s - slopes[h] * (i - j))

    def mask(b, h, i, j):
        return documents[b, i] == documents[b, j]

    fovea.attention(q, k, v, score=score, mask=mask)

A function is called once, with values that stand for every query and key, and what it
computes of them is written down as a program (docs/ScorePrograms.md). So it has no
branches on them: :func:`where` in place of `if`, `&`, `|` and `~` in place of `and`, `or`
and `not`. NumPy's and PyTorch's functions of these names do what those here do.
docs/Python.md tells which there are, and what is captured.
"""

from __future__ import annotations

import builtins
import functools
import inspect
import linecache
import math
import os
import re
import struct
import sys
import types
from typing import Any, Callable, List, Optional, Tuple

from . import _arrays
from ._errors import InvalidArgumentError
from ._features import Score

__all__ = ["TraceError", "Value", "absolute", "capture", "ceil", "exp", "exp2", "floor",
           "log", "log2", "maximum", "minimum", "sigmoid", "sqrt", "tanh", "trace",
           "trunc", "where"]


class TraceError(InvalidArgumentError):
    """A function does what no score program does; the message has the line."""


_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def _place() -> str:
    """The line of the function that is traced which called something here."""
    inside = [_HERE] + [os.path.dirname(os.path.abspath(file)) + os.sep
                        for name in ("numpy", "torch")
                        if (file := getattr(sys.modules.get(name), "__file__", None))]
    frame: Optional[types.FrameType] = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(tuple(inside)):
            line = linecache.getline(code.co_filename, frame.f_lineno).strip()
            return (f"{code.co_filename}:{frame.f_lineno} in {code.co_name}"
                    + (f": `{line}`" if line else ""))
        frame = frame.f_back
    return "the score program"


def _refuse(what: str) -> TraceError:
    return TraceError(f"{_place()}: {what}")


# ---------------------------------------------------------------------------
# Values and what is done with them
# ---------------------------------------------------------------------------

_F32, _I32, _I1 = "f32", "i32", "i1"


class Value:
    """What stands for a number of every query and key: of f32, i32 or i1."""

    __slots__ = ("_program", "_kind", "_name", "_whole", "_signed")
    __array_priority__ = 1000
    # Comparisons give values; the identity is what a dictionary sees.
    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, program: "_Program", kind: str, name: str, whole: bool = False):
        self._program, self._kind, self._name = program, kind, name
        self._whole = whole  # an integer that is never negative
        self._signed: Optional[Value] = None  # the integer whose magnitude it is

    def __repr__(self) -> str:
        return f"<a score program's {self._kind}>"

    def __bool__(self) -> bool:
        raise _refuse("a branch on what differs from query to query and key to key, for all "
                      "of which a program does the same: take where(condition, a, b) for if, "
                      "& | ~ for and, or, not, minimum and maximum for min and max")

    def _no_number(self, *_) -> Any:
        raise _refuse("what differs from query to query and key to key becomes a number of "
                      "Python's or an array's index: take the functions of fovea.scores for "
                      "those of math, and capture(array)[...] for an array that is no "
                      "variable of the function's surroundings")

    __int__ = __float__ = __index__ = __complex__ = __round__ = _no_number

    def __iter__(self) -> Any:
        raise _refuse("it is one number, and not a sequence")

    __len__ = __iter__

    def __array__(self, *_, **__) -> Any:
        self._no_number()

    # What NumPy's and PyTorch's functions are called with.
    def __array_ufunc__(self, function, method, *inputs, **options):
        if method != "__call__" or options:
            raise _refuse(f"numpy.{function.__name__} with {method} or options is no part of "
                          "a score program")
        return _apply(f"numpy.{function.__name__}", function.__name__, inputs, {})

    def __array_function__(self, function, _, inputs, options):
        return _apply(f"numpy.{function.__name__}", function.__name__, inputs, options)

    @classmethod
    def __torch_function__(cls, function, _, inputs=(), options=None):
        return _apply_torch(function, inputs, options or {})

    def __getattr__(self, name: str) -> Any:
        if name in _TENSOR_FACTS:
            return _TENSOR_FACTS[name](self)
        if name.startswith("__") or name not in _FUNCTIONS:
            raise AttributeError(f"a score program's value has no {name}")
        return lambda *given, **options: _apply(f"Tensor.{name}", name, (self, *given),
                                                options)

    def __getitem__(self, _):
        raise _refuse("it is one number, and not an array")


def _torch_kind(value):
    torch = sys.modules.get("torch")
    name = {_F32: "float32", _I32: "int32", _I1: "bool"}[value._kind]
    return getattr(torch, name) if torch is not None else name


# Of a tensor, what PyTorch's functions of scores ask for.
_TENSOR_FACTS: dict = {
    "dtype": _torch_kind, "shape": lambda _: (), "ndim": lambda _: 0,
    "device": lambda value: value._program.device, "requires_grad": lambda _: False,
}


_PLACES = ("%batch", "%head", "%query", "%key")
_LENGTHS = ("%seqlen_q", "%seqlen_k")


class _Program:
    """The text that is being written, and what it captures."""

    def __init__(self, device: Any = None):
        self.lines: List[str] = []
        self.captures: List[Tuple[Any, str]] = []  # with their types
        self.device = device
        self._constants: dict = {}
        self._reads: dict = {}
        self._copies: dict = {}

    def emit(self, kind: str, text: str, whole: bool = False) -> Value:
        made = Value(self, kind, f"%{len(self.lines)}", whole)
        self.lines.append(f"{made._name} = {text}")
        return made

    def constant(self, number: Any, kind: str) -> Value:
        if kind == _F32:
            try:
                bits = struct.pack(">f", number)
            except OverflowError:
                bits = struct.pack(">f", math.copysign(math.inf, number))
            text = f"0x{bits.hex().upper()}"
        elif kind == _I32:
            if not -2**31 <= number < 2**31:
                raise _refuse(f"{number} is no integer of 32 bits, which a program has")
            text = str(int(number))
        else:
            text = "true" if number else "false"
        key = kind, text
        if key not in self._constants:
            self._constants[key] = self.emit(
                kind, f"arith.constant {text}" + ("" if kind == _I1 else f" : {kind}"),
                kind == _I32 and number >= 0)
        return self._constants[key]

    def lift(self, given: Any) -> Value:
        """A number, an array of one, or a value of this program."""
        if isinstance(given, Value):
            if given._program is not self:
                raise _refuse("it is a value of another score program")
            return given
        if isinstance(given, bool):
            return self.constant(given, _I1)
        if isinstance(given, int):
            return self.constant(given, _I32)
        if isinstance(given, float):
            return self.constant(given, _F32)
        if isinstance(given, _Captured):
            given = given._array
        if type(given).__module__ == "numpy" and getattr(given, "shape", None) == ():
            return self.lift(given.item())
        if hasattr(given, "__dlpack__") or hasattr(given, "__array_interface__"):
            return self.read(given, ())
        raise _refuse(f"{type(given).__name__} is no number, no array and no value of a score "
                      "program")

    def read(self, array: Any, index: Any) -> Value:
        """An element of an array."""
        if isinstance(array, _Captured):
            array = array._array
        shape = tuple(array.shape)
        index = index if isinstance(index, tuple) else (index,)
        for place in index:
            if place is None or place is Ellipsis or isinstance(place, slice):
                raise _refuse(f"an array is indexed with {place}; a program reads one element, "
                              "by an integer for each dimension")
        if len(index) != len(shape):
            raise _refuse(f"an array of shape {shape} is read with {len(index)} indices; a "
                          "program reads one element, by an integer for each dimension"
                          + ("" if index else ", and computes with no whole arrays"))
        given = array  # whose id tells it, however often it is read
        if not shape:  # a scalar is an array of one element, which nobody waits for
            array, index, shape = array.reshape((1,)), (0,), (1,)
        if len(shape) > 4:
            raise _refuse(f"an array has {len(shape)} dimensions, and a program reads those "
                          "of 1 to 4; reshape it outside of the function")
        places = []
        for place, extent in zip(index, shape):
            if isinstance(place, int) and not isinstance(place, bool) and place < 0:
                place += extent
            place = self.lift(place)
            if place._kind != _I32:
                raise _refuse(f"an index is {place._kind} and not an integer")
            places.append(place._name)
        # A gradient is of one way of reading.
        key = id(given), (tuple(places) if _wants_gradient(array) else None)
        if key not in self._reads:
            if len(self.captures) == 8:
                raise _refuse("a program captures at most 8 arrays")
            held, kind, element = self._held(array, places[-1] in _PLACES[2:])
            self._reads[key] = f"%c{len(self.captures)}", kind, element
            # The array as well: its id is a key.
            self.captures.append((held, kind))
            self._copies[id(given)] = given
        name, kind, element = self._reads[key]
        return self.emit(element, f"attn.at {name}[{', '.join(places)}] : {kind}")

    def _held(self, array: Any, by_rows: bool) -> Tuple[Any, str, str]:
        """An array of a type that programs read, its type, and its elements'.

        Args:
            by_rows: its last index is the query or the key, neighbours' neighbours.
        """
        array = _narrowed(array)
        with _without_gradients():
            seen = _arrays.view(array, "what the function captures")
        element = {"float32": _F32, "float16": _F32, "bfloat16": _F32, "int32": _I32,
                   "bool": _I1}.get(seen.dtype)
        if element is None:
            raise _refuse(f"an array of {seen.dtype} is captured, and programs read float32, "
                          "float16, bfloat16, int32 and bool")
        size = seen.itemsize
        together = by_rows and seen.strides[-1] == 1 and (size == 4 or not (
            seen.data % 4 or seen.shape[-1] * size % 4
            or any(stride * size % 4 for stride in seen.strides[:-1])))
        stored = {"float32": "f32", "float16": "f16", "bfloat16": "bf16", "int32": "i32",
                  "bool": "i1"}[seen.dtype]
        extents = "?x" * len(seen.shape)
        strides = ", ".join(["?"] * (len(seen.shape) - 1) + ["1" if together else "?"])
        return array, f"memref<{extents}{stored}, strided<[{strides}]>>", element


def _wants_gradient(array: Any) -> bool:
    return bool(getattr(array, "requires_grad", False))


def _without_gradients():
    torch = sys.modules.get("torch")
    return torch.no_grad() if torch is not None and hasattr(torch, "no_grad") else (
        _Nothing())


class _Nothing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def _narrowed(array: Any) -> Any:
    """Integers of other widths as 32 bits, and fp64 as fp32."""
    kind = str(array.dtype).rpartition(".")[2]
    if kind in ("int64", "uint64", "uint32", "int16", "int8", "uint8", "uint16"):
        on_host = getattr(getattr(array, "device", "cpu"), "type", "cpu") == "cpu"
        if kind in ("int64", "uint64", "uint32") and on_host and math.prod(array.shape):
            least, most = int(array.min()), int(array.max())
            if least < -2**31 or most >= 2**31:
                raise _refuse(f"an array of {kind} with elements of {least} to {most} is "
                              "captured, and programs have integers of 32 bits")
        return _converted(array, "int32")
    return _converted(array, "float32") if kind == "float64" else array


def _converted(array, kind):
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        return array.to(getattr(torch, kind))
    return array.astype(kind)


class _Captured:
    """An array of the function's surroundings, whose elements values may index."""

    def __init__(self, array):
        self._array = array

    def __getitem__(self, index):
        values = [place for place in (index if isinstance(index, tuple) else (index,))
                  if isinstance(place, Value)]
        if values:
            return values[0]._program.read(self._array, index)
        return self._array[index]

    def __setitem__(self, *_):
        raise _refuse("an array is written to, and a score program reads alone")

    def __getattr__(self, name):
        return getattr(self._array, name)


def capture(array: Any) -> Any:
    """An array whose elements a score program reads, `capture(array)[b, h]`: where the
    function has it neither by a name of its module nor of the function around it, as the
    attribute of an object. PyTorch's tensors need none of this."""
    return _Captured(array)


# ---------------------------------------------------------------------------
# The functions of values
# ---------------------------------------------------------------------------

def _program_of(*given) -> "_Program":
    for item in given:
        if isinstance(item, Value):
            return item._program
    raise TypeError("fovea.scores: none of the arguments is a value of a score program")


def _together(*given) -> List[Value]:
    """Values of one type: the wider of the arguments', as NumPy and PyTorch have it."""
    program = _program_of(*given)
    values = [program.lift(item) for item in given]
    kinds = {value._kind for value in values}
    kind = _F32 if _F32 in kinds else _I32 if _I32 in kinds else _I1
    # Numbers of Python's are constants of that type and no conversions.
    return [program.constant(item, kind) if type(item) in (bool, int, float)
            else _convert(value, kind) for item, value in zip(given, values)]


def _convert(value: Value, kind: str) -> Value:
    program, have = value._program, value._kind
    if have == kind:
        return value
    if kind == _I1:
        zero = program.constant(0, have)
        return (program.emit(_I1, f"arith.cmpf une, {value._name}, {zero._name} : f32")
                if have == _F32 else
                program.emit(_I1, f"arith.cmpi ne, {value._name}, {zero._name} : i32"))
    if value._signed is not None and kind == _F32:  # a float's costs nothing
        return absolute(_convert(value._signed, _F32))
    operation = {(_I1, _I32): "extui", (_I1, _F32): "uitofp", (_I32, _F32): "sitofp",
                 (_F32, _I32): "fptosi"}[have, kind]
    return program.emit(kind, f"arith.{operation} {value._name} : {have} to {kind}",
                        have == _I1 and kind == _I32)


def _emit(operation: str, *values: Value, kind: Optional[str] = None,
          whole: bool = False) -> Value:
    names = ", ".join(value._name for value in values)
    return values[0]._program.emit(kind or values[0]._kind,
                                   f"{operation} {names} : {values[0]._kind}", whole)


def _float(value: Any) -> Value:
    return _convert(_program_of(value).lift(value), _F32)


def _unary(operation: str) -> Callable:
    def function(x):
        return _emit(operation, _float(x))
    return function


def _numbers(a, b) -> List[Value]:
    """Of two truths, integers: what a sum is of."""
    a, b = _together(a, b)
    return [_convert(a, _I32), _convert(b, _I32)] if a._kind == _I1 else [a, b]


def _add(a, b, *, alpha=1):
    if alpha != 1:
        b = _multiply(b, alpha) if isinstance(b, Value) else b * alpha
    a, b = _numbers(a, b)
    return _emit("arith.addf" if a._kind == _F32 else "arith.addi", a, b,
                 whole=a._whole and b._whole)


def _subtract(a, b, *, alpha=1):
    if alpha != 1:
        b = _multiply(b, alpha) if isinstance(b, Value) else b * alpha
    a, b = _numbers(a, b)
    return _emit("arith.subf" if a._kind == _F32 else "arith.subi", a, b)


def _multiply(a, b):
    a, b = _together(a, b)
    if a._kind == _I1:
        return _emit("arith.andi", a, b)
    return _emit("arith.mulf" if a._kind == _F32 else "arith.muli", a, b,
                 whole=a._whole and b._whole)


def _divide(a, b, *, rounding_mode=None):
    if rounding_mode == "floor":
        return _floor_divide(a, b)
    if rounding_mode == "trunc":
        a, b = _numbers(a, b)
        return (trunc(_emit("arith.divf", a, b)) if a._kind == _F32 else
                _emit("arith.divsi", a, b, whole=a._whole and b._whole))
    program = _program_of(a, b)
    return _emit("arith.divf", *(
        program.constant(item, _F32) if type(item) in (bool, int, float)
        else _convert(program.lift(item), _F32) for item in (a, b)))


def _rounds_down(a, b):
    """Quotient and remainder of C, and whether the one is to be less by 1."""
    q, r = _emit("arith.divsi", a, b), _emit("arith.remsi", a, b)
    zero = a._program.constant(0, _I32)
    signs = _emit("arith.cmpi slt,", _emit("arith.xori", r, b), zero, kind=_I1)
    return q, r, _emit("arith.andi", signs, _emit("arith.cmpi ne,", r, zero, kind=_I1))


def _floor_divide(a, b):
    a, b = _numbers(a, b)
    if a._kind == _F32:
        return floor(_emit("arith.divf", a, b))
    if a._whole and b._whole:
        return _emit("arith.divsi", a, b, whole=True)
    q, _, less = _rounds_down(a, b)
    return _emit("arith.subi", q, _convert(less, _I32))


def _remainder(a, b):
    """With the sign of b, as Python's."""
    a, b = _numbers(a, b)
    if a._kind == _F32:
        return _subtract(a, _multiply(floor(_emit("arith.divf", a, b)), b))
    if a._whole and b._whole:
        return _emit("arith.remsi", a, b, whole=True)
    _, r, less = _rounds_down(a, b)
    return _add(r, where(less, b, 0))


def _negative(x):
    value = _program_of(x).lift(x)
    if value._kind == _F32:
        return _emit("arith.negf", value)
    return _subtract(0, value)


def absolute(x: Any) -> Value:
    value = _program_of(x).lift(x)
    if value._kind == _F32:
        return _emit("math.absf", value)
    if value._kind == _I1 or value._whole:
        return value
    made = _emit("arith.maxsi", value, _negative(value), whole=True)
    made._signed = value
    return made


def _power(a, b):
    """x ** 2 is products, 2 ** x an exponential; others have no rule that holds for all."""
    if isinstance(b, float) and b.is_integer() and isinstance(a, Value):
        a, b = _float(a), int(b)
    if isinstance(a, Value) and type(b) is int and 0 <= b <= 8:
        if b == 0:
            return a._program.constant(1, a._kind)
        made = a
        for bit in bin(b)[3:]:
            made = _multiply(made, made)
            made = _multiply(made, a) if bit == "1" else made
        return made
    if isinstance(a, Value) and b == 0.5:
        return sqrt(a)
    if isinstance(a, Value) and type(b) is int and -8 <= b < 0:
        return _divide(1.0, _power(a, -b))
    if type(a) in (int, float) and a > 0 and isinstance(b, Value):
        if a == 2:
            return exp2(b)
        return exp2(_multiply(_float(b), math.log2(a)))
    raise _refuse("a power is no part of a score program but for exponents that are whole "
                  "numbers of -8 to 8, or 0.5, and bases that are numbers above 0; take exp2 "
                  "and log2")


def _comparison(of_floats: str, of_integers: str) -> Callable:
    def function(a, b):
        a, b = _together(a, b)
        if a._kind == _F32:
            return _emit(f"arith.cmpf {of_floats},", a, b, kind=_I1)
        if a._kind == _I1:
            a, b = _convert(a, _I32), _convert(b, _I32)
        return _emit(f"arith.cmpi {of_integers},", a, b, kind=_I1)
    return function


def _bitwise(operation: str) -> Callable:
    def function(a, b):
        a, b = _together(a, b)
        if a._kind == _F32:
            raise _refuse(f"{operation} of bits takes truths and integers, and not floats")
        return _emit(f"arith.{operation}i", a, b, whole=a._whole and b._whole)
    return function


def _logical(operation: str) -> Callable:
    def function(a, b):
        program = _program_of(a, b)
        return _emit(f"arith.{operation}i",
                     *(_convert(program.lift(item), _I1) for item in (a, b)))
    return function


def _shift(operation: str) -> Callable:
    def function(a, b):
        a, b = _numbers(a, b)
        if a._kind == _F32:
            raise _refuse("bits of floats are not shifted")
        return _emit(f"arith.{operation}", a, b,
                     whole=operation == "shrsi" and a._whole)
    return function


def _invert(x):
    value = _program_of(x).lift(x)
    if value._kind == _F32:
        raise _refuse("~ takes truths and integers, and not floats")
    return _emit("arith.xori", value, value._program.constant(
        True if value._kind == _I1 else -1, value._kind))


def _not(x):
    return _invert(_convert(_program_of(x).lift(x), _I1))


def where(condition: Any, a: Any, b: Any) -> Value:
    """a where the condition holds, else b."""
    program = _program_of(condition, a, b)
    truth = _convert(program.lift(condition), _I1)
    if isinstance(a, Value) or isinstance(b, Value):
        a, b = _together(a, b)
    else:
        kind = _F32 if float in (type(a), type(b)) else None
        a, b = program.lift(a), program.lift(b)
        kind = kind or max((a._kind, b._kind), key=(_I1, _I32, _F32).index)
        a, b = _convert(a, kind), _convert(b, kind)
    return program.emit(a._kind, f"arith.select {truth._name}, {a._name}, {b._name} : "
                        f"{a._kind}", a._whole and b._whole)


def _extreme(of_floats: str, of_integers: str) -> Callable:
    def function(a, b):
        a, b = _numbers(a, b)
        return _emit(f"arith.{of_floats if a._kind == _F32 else of_integers}", a, b,
                     whole=(a._whole or b._whole) if of_integers == "maxsi"
                     else a._whole and b._whole)
    return function


minimum = _extreme("minimumf", "minsi")
maximum = _extreme("maximumf", "maxsi")


def _clamp(x, min=None, max=None, a_min=None, a_max=None):
    least, most = (min if a_min is None else a_min), (max if a_max is None else a_max)
    made = x if least is None else maximum(x, least)
    return made if most is None else minimum(made, most)


exp, exp2, log = _unary("math.exp"), _unary("math.exp2"), _unary("math.log")
log2, sqrt, tanh = _unary("math.log2"), _unary("math.sqrt"), _unary("math.tanh")


def _rounded(operation: str) -> Callable:
    def function(x):
        value = _program_of(x).lift(x)
        return _emit(operation, value) if value._kind == _F32 else value
    return function


floor, ceil, trunc = map(_rounded, ("math.floor", "math.ceil", "math.trunc"))


def sigmoid(x: Any) -> Value:
    """1 / (1 + exp(-x))."""
    return _divide(1.0, _add(exp(_negative(_float(x))), 1.0))


def _kind_of(dtype: Any) -> str:
    name = str(dtype).rpartition(".")[2].rstrip("'>").removeprefix("<class '")
    if name.startswith(("float", "bfloat", "double", "half")):
        return _F32
    if name.startswith(("int", "uint", "long")):
        return _I32
    if name.startswith("bool"):
        return _I1
    raise _refuse(f"a program has no {dtype}")


def _to(x, *given, dtype=None, **_):
    """Other devices and memory formats are nothing to a program; 16 bits stay fp32."""
    for item in given:
        if isinstance(item, Value):
            return _convert(x, item._kind)
        if type(item).__name__ in ("dtype", "type") or isinstance(item, str):
            dtype = item if not str(item).startswith(("cpu", "cuda")) else dtype
    return x if dtype is None else _convert(x, _kind_of(dtype))


def _made_like(number: Optional[float]) -> Callable:
    """torch.zeros_like and Tensor.new_zeros, of no dimensions."""
    def function(x, *given, dtype=None, fill_value=None, **_):
        value = number
        sizes = [item for item in given if isinstance(item, (tuple, list))]
        rest = [item for item in given if not isinstance(item, (tuple, list))]
        if number is None:
            value = fill_value if fill_value is not None else rest[0]
        if any(len(size) for size in sizes):
            raise _refuse(f"a tensor of shape {sizes[0]} is made; a program has scalars")
        kind = x._kind if dtype is None else _kind_of(dtype)
        return _convert(x._program.lift(value), kind) if isinstance(value, Value) else (
            x._program.constant(value, kind))
    return function


def _same(x, *_, **__):
    return x


def _masked_fill(x, mask, value):
    return where(mask, value, x)


def _index(array, places):
    return _program_of(*places).read(array, tuple(places))


def _getitem(array, place):
    if isinstance(array, Value):
        return array[place]
    places = place if isinstance(place, tuple) else (place,)
    return _program_of(*places).read(array, places)


def _select(array, dim, place):
    if isinstance(array, Value) or len(array.shape) != 1:
        raise _refuse("part of an array is taken; a program reads one element")
    return _program_of(place).read(array, (place,))


_AND, _OR, _XOR = _logical("and"), _logical("or"), _logical("xor")
# By the names that Python, NumPy, PyTorch and its operators have for them.
_FUNCTIONS: dict = {
    "add": _add, "sub": _subtract, "subtract": _subtract, "mul": _multiply,
    "multiply": _multiply, "div": _divide, "divide": _divide, "true_divide": _divide,
    "truediv": _divide, "floor_divide": _floor_divide, "floordiv": _floor_divide,
    "remainder": _remainder, "mod": _remainder, "neg": _negative, "negative": _negative,
    "pos": _same, "positive": _same, "abs": absolute, "absolute": absolute,
    "fabs": absolute, "pow": _power, "power": _power, "float_power": _power,
    "square": lambda x: _multiply(x, x), "reciprocal": lambda x: _divide(1.0, x),
    "rsub": lambda a, b, alpha=1: _subtract(b, a, alpha=alpha),
    "exp": exp, "exp2": exp2, "log": log, "log2": log2, "sqrt": sqrt,
    "rsqrt": lambda x: _divide(1.0, sqrt(x)), "tanh": tanh, "sigmoid": sigmoid,
    "expit": sigmoid, "floor": floor, "ceil": ceil, "trunc": trunc, "fix": trunc,
    "relu": lambda x: maximum(x, 0), "minimum": minimum, "maximum": maximum,
    "min": minimum, "max": maximum, "clamp": _clamp, "clip": _clamp,
    "clamp_min": lambda x, min: _clamp(x, min), "clamp_max": lambda x, max: _clamp(
        x, None, max),
    "where": where, "masked_fill": _masked_fill,
    "eq": _comparison("oeq", "eq"), "equal": _comparison("oeq", "eq"),
    "ne": _comparison("une", "ne"), "not_equal": _comparison("une", "ne"),
    "lt": _comparison("olt", "slt"), "less": _comparison("olt", "slt"),
    "le": _comparison("ole", "sle"), "less_equal": _comparison("ole", "sle"),
    "gt": _comparison("ogt", "sgt"), "greater": _comparison("ogt", "sgt"),
    "ge": _comparison("oge", "sge"), "greater_equal": _comparison("oge", "sge"),
    "logical_and": _AND, "logical_or": _OR, "logical_xor": _XOR, "logical_not": _not,
    "and": _bitwise("and"), "bitwise_and": _bitwise("and"),
    "or": _bitwise("or"), "bitwise_or": _bitwise("or"),
    "xor": _bitwise("xor"), "bitwise_xor": _bitwise("xor"),
    "invert": _invert, "bitwise_not": _invert,
    "lshift": _shift("shli"), "left_shift": _shift("shli"),
    "bitwise_left_shift": _shift("shli"), "rshift": _shift("shrsi"),
    "right_shift": _shift("shrsi"), "bitwise_right_shift": _shift("shrsi"),
    "to": _to, "type": _to, "astype": _to, "_to_copy": _to, "convert_element_type": _to,
    "type_as": _to, "float": lambda x, **_: _convert(x, _F32),
    "double": lambda x, **_: _convert(x, _F32), "half": lambda x, **_: _convert(x, _F32),
    "bfloat16": lambda x, **_: _convert(x, _F32),
    "int": lambda x, **_: _convert(x, _I32), "long": lambda x, **_: _convert(x, _I32),
    "bool": lambda x, **_: _convert(x, _I1),
    "clone": _same, "detach": _same, "contiguous": _same, "alias": _same,
    "lift_fresh": _same, "lift_fresh_copy": _same,
    "new_zeros": _made_like(0), "zeros_like": _made_like(0),
    "new_ones": _made_like(1), "ones_like": _made_like(1),
    "new_full": _made_like(None), "full_like": _made_like(None),
    "new_tensor": lambda x, value, **_: x._program.lift(value),
    "index": _index, "getitem": _getitem, "select": _select,
}

for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor",
              "lshift", "rshift"):
    def _forward(self, other, function=_FUNCTIONS[_name]):
        return function(self, other)

    def _reflected(self, other, function=_FUNCTIONS[_name]):
        return function(other, self)

    setattr(Value, f"__{_name}__", _forward)
    setattr(Value, f"__r{_name}__", _reflected)
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Value, f"__{_name}__", _FUNCTIONS[_name])
for _name, _function in (("neg", _negative), ("pos", _same), ("abs", absolute),
                         ("invert", _invert), ("floor", floor), ("ceil", ceil),
                         ("trunc", trunc)):
    setattr(Value, f"__{_name}__", _function)
# Assigning __eq__ has taken the hash.
Value.__hash__ = object.__hash__  # type: ignore[assignment,method-assign]


def _apply(spelled, name, inputs, options):
    function = _FUNCTIONS.get(name)
    if function is None:
        raise _refuse(f"{spelled} is no part of a score program; docs/Python.md lists what is")
    try:
        return function(*inputs, **{key: item for key, item in options.items()
                                    if item is not None})
    except TraceError:
        raise
    except TypeError as error:
        raise _refuse(f"{spelled} with these arguments is no part of a score program: "
                      f"{error}") from None


def _apply_torch(function, inputs, options):
    """A function of PyTorch's, a method of its tensors or an operator."""
    schema = getattr(function, "_schema", None)
    name = schema.name.split("::")[-1] if schema is not None else function.__name__
    spelled = f"torch.{name}"
    if name == "__get__":  # an attribute of a tensor
        return function(*inputs, **options)
    if name.startswith("__"):
        name = name.strip("_")
        if name not in _FUNCTIONS and name.startswith("r") and name[1:] in _FUNCTIONS:
            name, inputs = name[1:], inputs[::-1]
    return _apply(spelled, name.rstrip("_") if name not in _FUNCTIONS else name, inputs,
                  options)


# ---------------------------------------------------------------------------
# Tracing
# ---------------------------------------------------------------------------

def _has_values(given) -> bool:
    if isinstance(given, (tuple, list)):
        return builtins.any(map(_has_values, given))
    if isinstance(given, dict):
        return builtins.any(map(_has_values, given.values()))
    return isinstance(given, Value)


def _torch_mode():
    """Sees the functions that are called with values where PyTorch looks at its tensors
    alone, as in tensor[value]."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "overrides"):
        return _Nothing()
    return _torch_mode_class()()


@functools.lru_cache
def _torch_mode_class():
    from torch.overrides import TorchFunctionMode

    class Mode(TorchFunctionMode):
        def __torch_function__(self, function, _, inputs=(), options=None):
            options = options or {}
            if _has_values(inputs) or _has_values(options):
                return _apply_torch(function, inputs, options)
            return function(*inputs, **options)

    return Mode


def _is_array(given: Any) -> bool:
    """Of a library whose arrays do not ask before they take an index."""
    if isinstance(given, (Value, _Captured, type, types.ModuleType)):
        return False
    module = type(given).__module__.partition(".")[0]
    if module == "torch" or type(given).__module__ == "numpy" and not getattr(
            given, "shape", ()):
        return False
    return hasattr(given, "__array_interface__") or hasattr(given, "__dlpack__")


def _rebound(function: Any, done: Optional[dict] = None) -> Any:
    """The function, and those that it calls by the names around it, with arrays in the
    place of which values may index them."""
    done = {} if done is None else done
    if isinstance(function, functools.partial):
        return functools.partial(
            _rebound(function.func, done), *map(_wrapped, function.args),
            **{key: _wrapped(item) for key, item in function.keywords.items()})
    if isinstance(function, types.MethodType):
        return types.MethodType(_rebound(function.__func__, done), function.__self__)
    if not isinstance(function, types.FunctionType):
        return function
    if id(function) in done:
        return done[id(function)]
    code, names = function.__code__, set()
    if code.co_filename.startswith(_HERE):
        return function

    def collect(code):
        names.update(code.co_names)
        for item in code.co_consts:
            if isinstance(item, types.CodeType):
                collect(item)

    collect(code)
    around = function.__globals__
    cells = function.__closure__ or ()
    held = [around[name] for name in names if name in around]
    held += [cell.cell_contents for cell in cells if _filled(cell)]
    if not any(_is_array(item) or isinstance(item, (types.FunctionType, functools.partial))
               for item in held):
        return function
    new_globals, new_cells = dict(around), tuple(types.CellType() for _ in cells)
    made = types.FunctionType(code, new_globals, function.__name__, function.__defaults__,
                              new_cells)
    made.__kwdefaults__ = function.__kwdefaults__
    done[id(function)] = made

    def replaced(item):
        return _wrapped(item) if not isinstance(
            item, (types.FunctionType, functools.partial)) else _rebound(item, done)

    for name in names:
        if name in around:
            new_globals[name] = replaced(around[name])
    for cell, new in zip(cells, new_cells):
        if _filled(cell):
            new.cell_contents = replaced(cell.cell_contents)
    return made


def _filled(cell) -> bool:
    try:
        cell.cell_contents
    except ValueError:  # of a variable that has no value yet
        return False
    return True


def _wrapped(item: Any) -> Any:
    return _Captured(item) if _is_array(item) else item


def _arguments(function: Any, given: int, kind: str) -> int:
    """How many a function takes: `given`, or also the lengths."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return given
    for count in (given, given + 2):
        try:
            signature.bind(*range(count))
            return count
        except TypeError:
            continue
    names = "b, h, i, j" if kind == "mask" else "s, b, h, i, j"
    raise TraceError(f"{kind} takes {signature}, not ({names}), or ({names}, seqlen_q, "
                     "seqlen_k)")


def trace(score: Optional[Callable] = None, mask: Optional[Callable] = None, *,
          name: Optional[str] = None, device: Any = None) -> Score:
    """The score program of functions of Python.

    Args:
        score: of the scaled product, the batch, the query's head, the query and the key,
            and, if it has room for them, the lengths of their sequences; gives a number.
        mask: of the same without the product; gives whether the query sees the key.
        name: of the program; None: ``traced_`` and the functions' names.
        device: what the `device` of the values is, for functions that ask.

    Returns:
        a :class:`fovea.Score`, with the arrays that the functions read as captures. Its
        `text` may be compiled ahead, by ``aot-compile --score-file``.

    Raises:
        TraceError: a function does what no program does; the message has the line.
    """
    program = _Program(device)
    places = [Value(program, _I32, text, True) for text in _PLACES]
    lengths = [Value(program, _I32, text, True) for text in _LENGTHS]
    results, names = [], []
    for function, first, kind, kind_of_result in (
            (score, [Value(program, _F32, "%x")], "score", _F32), (mask, [], "mask", _I1)):
        if function is None:
            continue
        if not callable(function):
            raise TypeError(f"{kind} is {type(function).__name__}, not a function")
        count = _arguments(function, len(first) + len(places), kind)
        names.append(getattr(function, "__name__", kind))
        with _torch_mode():
            result = _rebound(function)(*[*first, *places, *lengths][:count])
        where_ = _described(function)
        try:
            value = program.lift(result)
        except TraceError:
            raise TraceError(f"{where_} gives {type(result).__name__}, not a number"
                             ) from None
        if kind == "mask" and value._kind == _F32 or kind == "score" and value._kind == _I1:
            raise TraceError(f"{where_} gives {value._kind}, "
                             + ("not whether the query sees the key" if kind == "mask"
                                else "not a score; what hides is the mask's"))
        results.append(_convert(value, kind_of_result))
    if not results:
        raise TypeError("trace: neither a score nor a mask is given")
    # Not a name of the library's.
    name = name or "_".join(["traced", *(re.sub(r"\W", "", item) for item in names)])
    arguments = ["%x: f32", *(f"{text}: i32" for text in (*_PLACES, *_LENGTHS)),
                 *(f"%c{number}: {kind}" for number, (_, kind) in
                   enumerate(program.captures))]
    kinds = ", ".join(result._kind for result in results)
    lines = [f"func.func @{name}({', '.join(arguments)}) -> ({kinds}) {{",
             *(f"  {line}" for line in program.lines),
             f"  return {', '.join(result._name for result in results)} : {kinds}", "}"]
    return Score(name, [array for array, _ in program.captures], "\n".join(lines) + "\n")


def resolve(score: Any, mask: Any, device: Any = None) -> Tuple[Any, Any]:
    """The arguments `score` and `mask` of a call, traced where they are functions."""
    functions = [item if callable(item) else None for item in (score, mask)]
    if functions == [None, None]:
        return score, mask
    made = trace(*functions, device=device)
    if functions[0] is None and score is not None:
        first = Score(score) if isinstance(score, str) else score
        made = Score(f"{first.program},{made.program}",
                     [*first.captures, *made.captures],
                     (first.text or "") + (made.text or ""))
    return made, mask if functions[1] is None else "none"


def _described(function) -> str:
    code = getattr(function, "__code__", None)
    name = getattr(function, "__name__", "the function")
    return (f"{code.co_filename}:{code.co_firstlineno}: {name}" if code is not None else name)
