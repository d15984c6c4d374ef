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

import functools
import inspect
import re
import sys
import types
from typing import Any, Callable, Optional, Tuple

from ._features import Score
from ._score_functions import (absolute, ceil, convert, exp, exp2, floor, log, log2, maximum,
                               minimum, sigmoid, sqrt, tanh, trunc, where)
from ._score_program import (F32, HERE, I1, I32, LENGTHS, PLACES, Captured, Nothing, Program,
                             TraceError, Value, apply_torch, capture)

__all__ = ["TraceError", "Value", "absolute", "capture", "ceil", "exp", "exp2", "floor",
           "log", "log2", "maximum", "minimum", "sigmoid", "sqrt", "tanh", "trace",
           "trunc", "where"]


def _has_values(given) -> bool:
    if isinstance(given, (tuple, list)):
        return any(map(_has_values, given))
    if isinstance(given, dict):
        return any(map(_has_values, given.values()))
    return isinstance(given, Value)


def _torch_mode():
    """Sees the functions that are called with values where PyTorch looks at its tensors
    alone, as in tensor[value]."""
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "overrides"):
        return Nothing()
    return _torch_mode_class()()


@functools.lru_cache
def _torch_mode_class():
    from torch.overrides import TorchFunctionMode

    class Mode(TorchFunctionMode):
        def __torch_function__(self, function, _, inputs=(), options=None):
            options = options or {}
            if _has_values(inputs) or _has_values(options):
                return apply_torch(function, inputs, options)
            return function(*inputs, **options)

    return Mode


def _is_array(given: Any) -> bool:
    """Of a library whose arrays do not ask before they take an index."""
    if isinstance(given, (Value, Captured, type, types.ModuleType)):
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
    if code.co_filename.startswith(HERE):
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
    return Captured(item) if _is_array(item) else item


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
    program = Program(device)
    places = [Value(program, I32, text, True) for text in PLACES]
    lengths = [Value(program, I32, text, True) for text in LENGTHS]
    results, names = [], []
    for function, first, kind, kind_of_result in (
            (score, [Value(program, F32, "%x")], "score", F32), (mask, [], "mask", I1)):
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
        if kind == "mask" and value._kind == F32 or kind == "score" and value._kind == I1:
            raise TraceError(f"{where_} gives {value._kind}, "
                             + ("not whether the query sees the key" if kind == "mask"
                                else "not a score; what hides is the mask's"))
        results.append(convert(value, kind_of_result))
    if not results:
        raise TypeError("trace: neither a score nor a mask is given")
    # Not a name of the library's.
    name = name or "_".join(["traced", *(re.sub(r"\W", "", item) for item in names)])
    arguments = ["%x: f32", *(f"{text}: i32" for text in (*PLACES, *LENGTHS)),
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
