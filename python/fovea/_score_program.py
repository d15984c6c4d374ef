"""What a score program is written with: values, what they capture, and the text.

Functions of values are in _score_functions, which fills the table of them.
"""

from __future__ import annotations

import linecache
import math
import os
import re
import struct
import sys
import types
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import _arrays
from ._errors import InvalidArgumentError

# The functions of values, by the names that Python, NumPy, PyTorch and its operators have
# for them.
FUNCTIONS: Dict[str, Callable] = {}


class TraceError(InvalidArgumentError):
    """A function does what no score program does; the message has the line."""


HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def _of_a_graph(frame: types.FrameType, line: str) -> Optional[str]:
    """Of a line that torch.compile has made, the one that it was made of."""
    graph, name = getattr(frame.f_locals.get("self"), "graph", None), line.partition(" = ")[0]
    for node in getattr(graph, "nodes", ()):
        if node.name == name and node.stack_trace:
            found = re.findall(r'File "(.+)", line (\d+), in (.+)\n\s*(.*)', node.stack_trace)
            if found:
                return "{}:{} in {}: `{}`".format(*found[-1])
    return None


def _place() -> str:
    """The line of the function that is traced which called something here."""
    inside = [HERE] + [os.path.dirname(os.path.abspath(file)) + os.sep
                        for name in ("numpy", "torch")
                        if (file := getattr(sys.modules.get(name), "__file__", None))]
    frame: Optional[types.FrameType] = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(tuple(inside)):
            line = linecache.getline(code.co_filename, frame.f_lineno).strip()
            if found := _of_a_graph(frame, line):
                return found
            return (f"{code.co_filename}:{frame.f_lineno} in {code.co_name}"
                    + (f": `{line}`" if line else ""))
        frame = frame.f_back
    return "the score program"


def refuse(what: str) -> TraceError:
    return TraceError(f"{_place()}: {what}")


F32, I32, I1 = "f32", "i32", "i1"


class Value:
    """What stands for a number of every query and key: of f32, i32 or i1."""

    __slots__ = ("_program", "_kind", "_name", "_whole", "_signed", "_number")
    __array_priority__ = 1000
    # Comparisons give values; the identity is what a dictionary sees.
    __hash__ = object.__hash__  # type: ignore[assignment]

    def __init__(self, program: Program, kind: str, name: str, whole: bool = False):
        self._program, self._kind, self._name = program, kind, name
        self._whole = whole  # an integer that is never negative
        self._signed: Optional[Value] = None  # the integer whose magnitude it is
        self._number: Any = None  # of a constant

    def __repr__(self) -> str:
        return f"<a score program's {self._kind}>"

    def __bool__(self) -> bool:
        raise refuse("a branch on what differs from query to query and key to key, for all "
                      "of which a program does the same: take where(condition, a, b) for if, "
                      "& | ~ for and, or, not, minimum and maximum for min and max")

    def _no_number(self, *_) -> Any:
        raise refuse("what differs from query to query and key to key becomes a number of "
                      "Python's or an array's index: take the functions of fovea.scores for "
                      "those of math, and capture(array)[...] for an array that is no "
                      "variable of the function's surroundings")

    __int__ = __float__ = __index__ = __complex__ = __round__ = _no_number

    def __iter__(self) -> Any:
        raise refuse("it is one number, and not a sequence")

    __len__ = __iter__

    def __array__(self, *_, **__) -> Any:
        self._no_number()

    # What NumPy's and PyTorch's functions are called with.
    def __array_ufunc__(self, function, method, *inputs, **options):
        if method != "__call__" or options:
            raise refuse(f"numpy.{function.__name__} with {method} or options is no part of "
                          "a score program")
        return apply(f"numpy.{function.__name__}", function.__name__, inputs, {})

    def __array_function__(self, function, _, inputs, options):
        return apply(f"numpy.{function.__name__}", function.__name__, inputs, options)

    @classmethod
    def __torch_function__(cls, function, _, inputs=(), options=None):
        return apply_torch(function, inputs, options or {})

    def __getattr__(self, name: str) -> Any:
        if name in _TENSOR_FACTS:
            return _TENSOR_FACTS[name](self)
        if name.startswith("__") or name not in FUNCTIONS:
            raise AttributeError(f"a score program's value has no {name}")
        return lambda *given, **options: apply(f"Tensor.{name}", name, (self, *given),
                                                options)

    def __getitem__(self, _):
        raise refuse("it is one number, and not an array")


def _torch_kind(value):
    torch = sys.modules.get("torch")
    name = {F32: "float32", I32: "int32", I1: "bool"}[value._kind]
    return getattr(torch, name) if torch is not None else name


# Of a tensor, what PyTorch's functions of scores ask for.
_TENSOR_FACTS: dict = {
    "dtype": _torch_kind, "shape": lambda _: (), "ndim": lambda _: 0,
    "device": lambda value: value._program.device, "requires_grad": lambda _: False,
}


def apply(spelled, name, inputs, options):
    function = FUNCTIONS.get(name)
    if function is None:
        raise refuse(f"{spelled} is no part of a score program; docs/Python.md lists what is")
    try:
        return function(*inputs, **{key: item for key, item in options.items()
                                    if item is not None})
    except TraceError:
        raise
    except TypeError as error:
        raise refuse(f"{spelled} with these arguments is no part of a score program: "
                      f"{error}") from None


def apply_torch(function, inputs, options):
    """A function of PyTorch's, a method of its tensors or an operator."""
    schema = getattr(function, "_schema", None)
    name = schema.name.split("::")[-1] if schema is not None else function.__name__
    spelled = f"torch.{name}"
    if name == "__get__":  # an attribute of a tensor
        return function(*inputs, **options)
    if name.startswith("__"):
        name = name.strip("_")
        if name not in FUNCTIONS and name.startswith("r") and name[1:] in FUNCTIONS:
            name, inputs = name[1:], inputs[::-1]
    return apply(spelled, name.rstrip("_") if name not in FUNCTIONS else name, inputs,
                  options)


# Numbers that torch.compile leaves open; a program is of one, and others have their own.
_OPEN = {"SymBool": bool, "SymInt": int, "SymFloat": float}
PLACES = ("%batch", "%head", "%query", "%key")
LENGTHS = ("%seqlen_q", "%seqlen_k")


class Program:
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
        if kind == F32:
            try:
                bits = struct.pack(">f", number)
            except OverflowError:
                bits = struct.pack(">f", math.inf if number > 0 else -math.inf)
            text = f"0x{bits.hex().upper()}"
        elif kind == I32:
            if not -2**31 <= number < 2**31:
                raise refuse(f"{number} is no integer of 32 bits, which a program has")
            text = str(int(number))
        else:
            text = "true" if number else "false"
        key = kind, text
        if key not in self._constants:
            made = self.emit(
                kind, f"arith.constant {text}" + ("" if kind == I1 else f" : {kind}"),
                kind == I32 and number >= 0)
            made._number = number
            self._constants[key] = made
        return self._constants[key]

    def lift(self, given: Any) -> Value:
        """A number, an array of one, or a value of this program."""
        if isinstance(given, Value):
            if given._program is not self:
                raise refuse("it is a value of another score program")
            return given
        given = plain(given)
        if isinstance(given, bool):
            return self.constant(given, I1)
        if isinstance(given, int):
            return self.constant(given, I32)
        if isinstance(given, float):
            return self.constant(given, F32)
        if isinstance(given, Part):
            raise refuse(f"an array of shape {tuple(given._array.shape)} is read with "
                         f"{len(given._index)} indices; a program reads one element, by an "
                         "integer for each dimension")
        if isinstance(given, Captured):
            given = given._array
        if type(given).__module__ == "torch" and type(given).__name__ in _OPEN:
            return self.lift(_OPEN[type(given).__name__](given))
        if hasattr(given, "__dlpack__") or hasattr(given, "__array_interface__"):
            return self.read(given, ())
        raise refuse(f"{type(given).__name__} is no number, no array and no value of a score "
                      "program")

    def read(self, array: Any, index: Any) -> Any:
        """An element of an array, or what waits for the rest of its indices."""
        if isinstance(array, Captured):
            array = array._array
        index = index if isinstance(index, tuple) else (index,)
        if isinstance(array, Part):
            array, index = array._array, (*array._index, *index)
        shape = tuple(array.shape)
        for place in index:
            if place is None or place is Ellipsis or isinstance(place, slice):
                raise refuse(f"an array is indexed with {place}; a program reads one element, "
                              "by an integer for each dimension")
        if 0 < len(index) < len(shape):
            return Part(self, array, index)
        if len(index) != len(shape):
            raise refuse(f"an array of shape {shape} is read with {len(index)} indices; a "
                          "program reads one element, by an integer for each dimension"
                          + ("" if index else ", and computes with no whole arrays"))
        given = array  # whose id tells it, however often it is read
        if not shape:  # a scalar is an array of one element, which nobody waits for
            array, index, shape = array.reshape((1,)), (0,), (1,)
        if len(shape) > 4:
            raise refuse(f"an array has {len(shape)} dimensions, and a program reads those "
                          "of 1 to 4; reshape it outside of the function")
        places = []
        for place, extent in zip(index, shape):
            place = plain(place)
            if isinstance(place, int) and not isinstance(place, bool) and place < 0:
                place += extent
            place = self.lift(place)
            if place._kind != I32:
                raise refuse(f"an index is {place._kind} and not an integer")
            places.append(place._name)
        # A gradient is of one way of reading.
        key = id(given), (tuple(places) if _wants_gradient(array) else None)
        if key not in self._reads:
            if len(self.captures) == 8:
                raise refuse("a program captures at most 8 arrays")
            held, kind, element = self._held(array, places[-1] in PLACES[2:])
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
        if _arrays.is_planned(array):
            seen = _arrays.planned(array)
        elif _arrays.is_wrapped(array):
            seen = _arrays.planned(array)
            seen.data = 1  # where one of a batch begins is not known
        else:
            with _without_gradients():
                seen = _arrays.view(array, "what the function captures")
        element = {"float32": F32, "float16": F32, "bfloat16": F32, "int32": I32,
                   "bool": I1}.get(seen.dtype)
        if element is None:
            raise refuse(f"an array of {seen.dtype} is captured, and programs read float32, "
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


def plain(given: Any) -> Any:
    """NumPy's scalars, and its arrays without dimensions, as the numbers of Python's that a
    program has; anything else as it is."""
    if type(given).__module__ == "numpy" and getattr(given, "shape", None) == ():
        return given.item()
    return _arrays.as_plain(given)


def _wants_gradient(array: Any) -> bool:
    return bool(getattr(array, "requires_grad", False))


def _without_gradients():
    torch = sys.modules.get("torch")
    return torch.no_grad() if torch is not None and hasattr(torch, "no_grad") else (
        Nothing())


class Nothing:
    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


def _narrowed(array: Any) -> Any:
    """Integers of other widths as 32 bits, and fp64 as fp32."""
    kind = str(array.dtype).rpartition(".")[2]
    if kind in ("int64", "uint64", "uint32", "int16", "int8", "uint8", "uint16"):
        on_host = getattr(getattr(array, "device", "cpu"), "type", "cpu") == "cpu"
        if (kind in ("int64", "uint64", "uint32") and on_host and math.prod(array.shape)
                and not _arrays.is_planned(array)):
            least, most = int(array.min()), int(array.max())
            if least < -2**31 or most >= 2**31:
                raise refuse(f"an array of {kind} with elements of {least} to {most} is "
                              "captured, and programs have integers of 32 bits")
        return _converted(array, "int32")
    return _converted(array, "float32") if kind == "float64" else array


def _converted(array, kind):
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(array, torch.Tensor):
        return array.to(getattr(torch, kind))
    return array.astype(kind)


class Captured:
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
        raise refuse("an array is written to, and a score program reads alone")

    def __getattr__(self, name):
        return getattr(self._array, name)


class Part:
    """An array of which the first dimensions have their indices: array[b] of array[b][h]."""

    __slots__ = ("_program", "_array", "_index")

    def __init__(self, program: Program, array: Any, index: Tuple[Any, ...]):
        self._program, self._array, self._index = program, array, index

    def __getitem__(self, index: Any) -> Any:
        return self._program.read(self, index)

    @classmethod
    def __torch_function__(cls, function, _, inputs=(), options=None):
        return apply_torch(function, inputs, options or {})


def capture(array: Any) -> Any:
    """An array whose elements a score program reads, `capture(array)[b, h]`: where the
    function has it neither by a name of its module nor of the function around it, as the
    attribute of an object. PyTorch's tensors need none of this."""
    return Captured(array)
