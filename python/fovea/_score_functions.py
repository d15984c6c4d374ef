"""The functions of a score program's values, by all of their names."""

from __future__ import annotations

import math
from typing import Any, Callable, List, Optional

from ._score_program import F32, FUNCTIONS, I1, I32, Program, Value, plain, refuse


def _program_of(*given) -> Program:
    for item in given:
        if isinstance(item, Value):
            return item._program
    raise TypeError("fovea.scores: none of the arguments is a value of a score program")


_KINDS = {bool: I1, int: I32, float: F32}


def _together(*given) -> List[Value]:
    """Values of one type: the wider of the arguments', as NumPy and PyTorch have it."""
    program = _program_of(*given)
    # Numbers of Python's are constants of that type and no conversions.
    items = [item if type(item) in _KINDS else program.lift(item) for item in map(plain, given)]
    kind = max([_KINDS.get(type(item)) or item._kind for item in items],
               key=(I1, I32, F32).index)
    return [program.constant(item, kind) if type(item) in _KINDS else convert(item, kind)
            for item in items]


def convert(value: Value, kind: str) -> Value:
    program, have = value._program, value._kind
    if have == kind:
        return value
    if kind == I1:
        zero = program.constant(0, have)
        return (program.emit(I1, f"arith.cmpf une, {value._name}, {zero._name} : f32")
                if have == F32 else
                program.emit(I1, f"arith.cmpi ne, {value._name}, {zero._name} : i32"))
    if value._signed is not None and kind == F32:  # a float's costs nothing
        return absolute(convert(value._signed, F32))
    operation = {(I1, I32): "extui", (I1, F32): "uitofp", (I32, F32): "sitofp",
                 (F32, I32): "fptosi"}[have, kind]
    return program.emit(kind, f"arith.{operation} {value._name} : {have} to {kind}",
                        have == I1 and kind == I32)


def _emit(operation: str, *values: Value, kind: Optional[str] = None,
          whole: bool = False) -> Value:
    names = ", ".join(value._name for value in values)
    return values[0]._program.emit(kind or values[0]._kind,
                                   f"{operation} {names} : {values[0]._kind}", whole)


def _float(value: Any) -> Value:
    return convert(_program_of(value).lift(value), F32)


def _unary(operation: str) -> Callable:
    def function(x):
        return _emit(operation, _float(x))
    return function


def _numbers(a, b) -> List[Value]:
    """Of two truths, integers: what a sum is of."""
    a, b = _together(a, b)
    return [convert(a, I32), convert(b, I32)] if a._kind == I1 else [a, b]


def _add(a, b, *, alpha=1):
    if alpha != 1:
        b = _multiply(b, alpha) if isinstance(b, Value) else b * alpha
    a, b = _numbers(a, b)
    return _emit("arith.addf" if a._kind == F32 else "arith.addi", a, b,
                 whole=a._whole and b._whole)


def _subtract(a, b, *, alpha=1):
    if alpha != 1:
        b = _multiply(b, alpha) if isinstance(b, Value) else b * alpha
    a, b = _numbers(a, b)
    return _emit("arith.subf" if a._kind == F32 else "arith.subi", a, b)


def _multiply(a, b):
    a, b = _together(a, b)
    if a._kind == I1:
        return _emit("arith.andi", a, b)
    return _emit("arith.mulf" if a._kind == F32 else "arith.muli", a, b,
                 whole=a._whole and b._whole)


def _divide(a, b, *, rounding_mode=None):
    if rounding_mode == "floor":
        return _floor_divide(a, b)
    if rounding_mode == "trunc":
        a, b = _numbers(a, b)
        return (trunc(_quotient(a, b)) if a._kind == F32 else
                _emit("arith.divsi", a, b, whole=a._whole and b._whole))
    program = _program_of(a, b)
    return _emit("arith.divf", *(
        program.constant(item, F32) if type(item) in _KINDS
        else convert(program.lift(item), F32) for item in map(plain, (a, b))))


def _rounds_down(a, b):
    """Quotient and remainder of C, and whether the one is to be less by 1."""
    q, r = _emit("arith.divsi", a, b), _emit("arith.remsi", a, b)
    zero = a._program.constant(0, I32)
    signs = _emit("arith.cmpi slt,", _emit("arith.xori", r, b), zero, kind=I1)
    return q, r, _emit("arith.andi", signs, _emit("arith.cmpi ne,", r, zero, kind=I1))


def _quotient(a, b):
    """Of floats, to the nearest: that of programs goes by way of the chip's reciprocal, which
    has 1 / 49 * 49 below 1."""
    q = _emit("arith.divf", a, b)
    left = _emit("math.fma", _negative(q), b, a)
    nearest = _emit("math.fma", left, _emit("arith.divf", left._program.constant(1, F32), b), q)
    # Of infinities there is nothing left.
    return where(_emit("arith.cmpf ord,", nearest, nearest, kind=I1), nearest, q)


def _floored(a, b):
    """The floor of the quotient of floats, the remainder, and whether that is of the other
    sign than b, since the quotient was rounded up to a whole number: then the one is to be
    less by 1, and b is to be added to the other."""
    q, zero = floor(_quotient(a, b)), a._program.constant(0, F32)
    r = _emit("math.fma", _negative(q), b, a)  # exact: of as many bits as b
    below, above = (_emit(f"arith.cmpf {order},", r, zero, kind=I1) for order in ("olt", "ogt"))
    if b._number is not None:
        return q, r, below if b._number > 0 else above
    is_negative = _emit("arith.cmpf olt,", b, zero, kind=I1)
    return q, r, where(is_negative, above, below)


def _floor_divide(a, b):
    a, b = _numbers(a, b)
    if a._kind == F32:
        q, _, less = _floored(a, b)
        return _subtract(q, where(less, 1.0, 0.0))
    if a._whole and b._whole:
        return _emit("arith.divsi", a, b, whole=True)
    q, _, less = _rounds_down(a, b)
    return _emit("arith.subi", q, convert(less, I32))


def _remainder(a, b):
    """With the sign of b, as Python's."""
    a, b = _numbers(a, b)
    if a._kind == F32:
        _, r, less = _floored(a, b)
        return where(less, _add(r, b), r)
    if a._whole and b._whole:
        return _emit("arith.remsi", a, b, whole=True)
    _, r, less = _rounds_down(a, b)
    return _add(r, where(less, b, 0))


def _divmod(a, b):
    return _floor_divide(a, b), _remainder(a, b)


def _product_of_matrices(*_):
    raise refuse("a product of matrices is no part of a score program, whose values are single "
                 "numbers; take *")


def _negative(x):
    value = _program_of(x).lift(x)
    if value._kind == F32:
        return _emit("arith.negf", value)
    return _subtract(0, value)


def absolute(x: Any) -> Value:
    value = _program_of(x).lift(x)
    if value._kind == F32:
        return _emit("math.absf", value)
    if value._kind == I1 or value._whole:
        return value
    made = _emit("arith.maxsi", value, _negative(value), whole=True)
    made._signed = value
    return made


def _power(a, b):
    """x ** 2 is products, 2 ** x an exponential; others have no rule that holds for all."""
    a, b = plain(a), plain(b)
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
    raise refuse("a power is no part of a score program but for exponents that are whole "
                  "numbers of -8 to 8, or 0.5, and bases that are numbers above 0; take exp2 "
                  "and log2")


def _comparison(of_floats: str, of_integers: str) -> Callable:
    def function(a, b):
        a, b = _together(a, b)
        if a._kind == F32:
            return _emit(f"arith.cmpf {of_floats},", a, b, kind=I1)
        if a._kind == I1:
            a, b = convert(a, I32), convert(b, I32)
        return _emit(f"arith.cmpi {of_integers},", a, b, kind=I1)
    return function


def _bitwise(operation: str) -> Callable:
    def function(a, b):
        a, b = _together(a, b)
        if a._kind == F32:
            raise refuse(f"{operation} of bits takes truths and integers, and not floats")
        return _emit(f"arith.{operation}i", a, b, whole=a._whole and b._whole)
    return function


def _logical(operation: str) -> Callable:
    def function(a, b):
        program = _program_of(a, b)
        return _emit(f"arith.{operation}i",
                     *(convert(program.lift(item), I1) for item in (a, b)))
    return function


def _shifted(a, b):
    a, b = _numbers(a, b)
    if a._kind == F32:
        raise refuse("bits of floats are not shifted")
    return a, b


# A count that is not in 0 to 31 has no value in LLVM, and in hardware that of its last 5 bits.
# Here it shifts all bits out, as in PyTorch: a count below 0, too, a large one without its
# sign.
def _shift_left(a, b):
    a, b = _shifted(a, b)
    if b._number is not None:
        return (_emit("arith.shli", a, b) if 0 <= b._number < 32
                else a._program.constant(0, I32))
    fits = _emit("arith.cmpi ult,", b, a._program.constant(32, I32), kind=I1)
    return where(fits, _emit("arith.shli", a, b), 0)


def _shift_right(a, b):
    a, b = _shifted(a, b)
    if b._number is None:
        b = _emit("arith.minui", b, a._program.constant(31, I32))
    elif not 0 <= b._number < 32:
        b = a._program.constant(31, I32)
    return _emit("arith.shrsi", a, b, whole=a._whole)


def _invert(x):
    value = _program_of(x).lift(x)
    if value._kind == F32:
        raise refuse("~ takes truths and integers, and not floats")
    return _emit("arith.xori", value, value._program.constant(
        True if value._kind == I1 else -1, value._kind))


def _not(x):
    return _invert(convert(_program_of(x).lift(x), I1))


def where(condition: Any, a: Any, b: Any) -> Value:
    """a where the condition holds, else b."""
    program = _program_of(condition, a, b)
    truth = convert(program.lift(condition), I1)
    if isinstance(a, Value) or isinstance(b, Value):
        a, b = _together(a, b)
    else:
        kind = F32 if float in (type(a), type(b)) else None
        a, b = program.lift(a), program.lift(b)
        kind = kind or max((a._kind, b._kind), key=(I1, I32, F32).index)
        a, b = convert(a, kind), convert(b, kind)
    return program.emit(a._kind, f"arith.select {truth._name}, {a._name}, {b._name} : "
                        f"{a._kind}", a._whole and b._whole)


def _extreme(of_floats: str, of_integers: str) -> Callable:
    def function(a, b):
        a, b = _numbers(a, b)
        return _emit(f"arith.{of_floats if a._kind == F32 else of_integers}", a, b,
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
        return _emit(operation, value) if value._kind == F32 else value
    return function


floor, ceil, trunc = map(_rounded, ("math.floor", "math.ceil", "math.trunc"))


def sigmoid(x: Any) -> Value:
    """1 / (1 + exp(-x))."""
    # Where the exponential overflows, its derivative would be infinite and be multiplied by 0.
    return _divide(1.0, _add(exp(minimum(_negative(_float(x)), 87.0)), 1.0))


def _kind_of(dtype: Any) -> str:
    name = str(dtype).rpartition(".")[2].rstrip("'>").removeprefix("<class '")
    if name.startswith(("float", "bfloat", "double", "half")):
        return F32
    if name.startswith(("int", "uint", "long")):
        return I32
    if name.startswith("bool"):
        return I1
    raise refuse(f"a program has no {dtype}")


def _to(x, *given, dtype=None, **_):
    """Other devices and memory formats are nothing to a program; 16 bits stay fp32."""
    for item in given:
        if isinstance(item, Value):
            return convert(x, item._kind)
        if type(item).__name__ in ("dtype", "type") or isinstance(item, str):
            dtype = item if not str(item).startswith(("cpu", "cuda")) else dtype
    return x if dtype is None else convert(x, _kind_of(dtype))


def _made_like(number: Optional[float]) -> Callable:
    """torch.zeros_like and Tensor.new_zeros, of no dimensions."""
    def function(x, *given, dtype=None, fill_value=None, **_):
        value = number
        sizes = [item for item in given if isinstance(item, (tuple, list))]
        rest = [item for item in given if not isinstance(item, (tuple, list))]
        if number is None:
            value = fill_value if fill_value is not None else rest[0]
        if any(len(size) for size in sizes):
            raise refuse(f"a tensor of shape {sizes[0]} is made; a program has scalars")
        kind = x._kind if dtype is None else _kind_of(dtype)
        return convert(x._program.lift(value), kind) if isinstance(value, Value) else (
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
        raise refuse("part of an array is taken; a program reads one element")
    return _program_of(place).read(array, (place,))


_AND, _OR, _XOR = _logical("and"), _logical("or"), _logical("xor")
FUNCTIONS.update({
    "add": _add, "sub": _subtract, "subtract": _subtract, "mul": _multiply,
    "multiply": _multiply, "div": _divide, "divide": _divide, "true_divide": _divide,
    "truediv": _divide, "floor_divide": _floor_divide, "floordiv": _floor_divide,
    "remainder": _remainder, "mod": _remainder, "divmod": _divmod,
    "matmul": _product_of_matrices, "neg": _negative, "negative": _negative,
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
    "lshift": _shift_left, "left_shift": _shift_left, "bitwise_left_shift": _shift_left,
    "rshift": _shift_right, "right_shift": _shift_right,
    "bitwise_right_shift": _shift_right,
    "to": _to, "type": _to, "astype": _to, "_to_copy": _to, "convert_element_type": _to,
    "type_as": _to, "float": lambda x, **_: convert(x, F32),
    "double": lambda x, **_: convert(x, F32), "half": lambda x, **_: convert(x, F32),
    "bfloat16": lambda x, **_: convert(x, F32),
    "int": lambda x, **_: convert(x, I32), "long": lambda x, **_: convert(x, I32),
    "bool": lambda x, **_: convert(x, I1),
    "clone": _same, "detach": _same, "contiguous": _same, "alias": _same,
    "lift_fresh": _same, "lift_fresh_copy": _same,
    "new_zeros": _made_like(0), "zeros_like": _made_like(0),
    "new_ones": _made_like(1), "ones_like": _made_like(1),
    "new_full": _made_like(None), "full_like": _made_like(None),
    "new_tensor": lambda x, value, **_: x._program.lift(value),
    "index": _index, "getitem": _getitem, "select": _select,
})

for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "divmod", "matmul", "pow",
              "and", "or", "xor", "lshift", "rshift"):
    def _forward(self, other, function=FUNCTIONS[_name]):
        return function(self, other)

    def _reflected(self, other, function=FUNCTIONS[_name]):
        return function(other, self)

    setattr(Value, f"__{_name}__", _forward)
    setattr(Value, f"__r{_name}__", _reflected)
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(Value, f"__{_name}__", FUNCTIONS[_name])
for _name, _function in (("neg", _negative), ("pos", _same), ("abs", absolute),
                         ("invert", _invert), ("floor", floor), ("ceil", ceil),
                         ("trunc", trunc)):
    setattr(Value, f"__{_name}__", _function)
# Assigning __eq__ has taken the hash.
Value.__hash__ = object.__hash__  # type: ignore[assignment,method-assign]
