"""libfovea.so and libfovea_compiler.so: where they are, and calls of them."""

import ctypes
import operator
import os
import pathlib

from . import _abi, _errors, _wheels

#: Where a wheel, and the build folder, have libraries and commands.
LIBRARIES = pathlib.Path(__file__).parent / "lib"
COMMANDS = pathlib.Path(__file__).parent / "bin"

_STATUS = {number: name for name, number in vars(_abi).items()
           if name.startswith("FOVEA_STATUS_")}
_CAUSE = {number: name.removeprefix("FOVEA_CAUSE_").lower()
          for name, number in vars(_abi).items()
          if name.startswith("FOVEA_CAUSE_") and name != "FOVEA_CAUSE_NONE"}
_COMPILER_STATUS = {number: name for name, number in vars(_abi).items()
                    if name.startswith("FOVEA_COMPILER_STATUS_")}
# A status that the header has and the table of classes lacks would be told as none.
assert set(_STATUS.values()) - {"FOVEA_STATUS_OK"} == set(_errors.BY_STATUS)


def _open(variable, name, functions):
    """Opens a library and gives its functions their prototypes."""
    named = os.environ.get(variable)
    beside = LIBRARIES / name
    # The loader's path only where the package brings no libraries of its own.
    path = named or (str(beside) if beside.parent.exists() else name)
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(
            f"fovea: {name} cannot be opened: {error}; "
            + (f"{variable} names another file" if named else
               f"install the package again, or name the library with {variable}")
        ) from None
    for function, (result, parameters) in functions.items():
        try:
            entry = getattr(library, function)
        except AttributeError:
            raise ImportError(
                f"fovea: {path} has no {function}: it is of an earlier version "
                f"than this package, {_abi.VERSION}; install both together"
            ) from None
        entry.restype, entry.argtypes = result, parameters
    return library


lib = _open("FOVEA_LIBRARY", "libfovea.so.0", _abi.FOVEA_FUNCTIONS)


def error(status, message, cause=_abi.FOVEA_CAUSE_NONE):
    """The exception for a status, with a message that is the library's or ours."""
    return error_named(_STATUS.get(status, f"status {status}"), message, cause)


def error_named(name, message, cause=_abi.FOVEA_CAUSE_NONE):
    """The exception for the name of a status."""
    made = _errors.BY_STATUS.get(name, _errors.InternalError)(_wheels.with_remedy(message))
    made.cause = _CAUSE.get(cause, "")
    return made


def text(given) -> str:
    """What C says, of a path or a damaged file, too, which need be no UTF-8."""
    return (given or b"").decode(errors="backslashreplace")


def check(status):
    """Raises what a call of libfovea returned, in the library's words."""
    if status:
        # Of the calling thread, which has made no other call since.
        raise error(status, text(lib.fovea_last_message()) or
                    text(lib.fovea_status_name(status)),
                    lib.fovea_last_cause())


def new(structure, **fields):
    """A structure that knows its size."""
    made = structure(**fields)
    made.struct_size = ctypes.sizeof(structure)
    return made


def c_text(given, name, encode=str.encode):
    """A text for C, which ends it at the first NUL; `encode` of paths: os.fsencode."""
    made = encode(given)
    if b"\0" in made:
        raise _errors.InvalidArgumentError(f"{name} is {given!r}, which has a NUL in it")
    return made


def index(given, name) -> int:
    """A whole number of any library as Python's, whose value tells calls apart.

    Raises:
        TypeError: it is none.
    """
    if isinstance(given, int) and not isinstance(given, bool):
        return given  # also torch.compile's symbols
    try:
        return operator.index(given)
    except TypeError:
        raise TypeError(f"{name} is {given!r}, not a whole number") from None


def whole(given, name, least, beyond) -> int:
    """A whole number of a range.

    Raises:
        TypeError: it is none.
        InvalidArgumentError: it is outside.
    """
    number = index(given, name)
    if not least <= number < beyond:
        raise _errors.InvalidArgumentError(
            f"{name} is {number}, not in {least} to {beyond - 1}")
    return number


def set_whole(structure, field, given, name):
    """Sets a field to a whole number; ctypes alone would cut off what has no room.

    Raises:
        TypeError, InvalidArgumentError: as :func:`whole`, of what the field holds.
    """
    kind = dict(structure._fields_)[field]
    values = 1 << 8 * ctypes.sizeof(kind)
    least = 0 if kind(-1).value > 0 else -values // 2
    setattr(structure, field, whole(given, name, least, least + values))


def device_number(given) -> int:
    """A device's number.

    Raises:
        TypeError: it is none.
        InvalidArgumentError: no device may have it.
    """
    try:
        number = operator.index(given)
    except TypeError:
        raise TypeError(f"device is {given!r}; it is the number of a GPU, as 0, or None "
                        "for the thread's current one. Arrays of the host are computed "
                        "on it, too") from None
    if not 0 <= number < 2**31:  # what C has for it
        raise _errors.InvalidArgumentError(f"device is {number}, not in 0 to {2**31 - 1}")
    return number


#: Functions that are told of the address of a context that ends.
at_end: list = []
_compiler = None


def compiler():
    """libfovea_compiler.so, opened when it is first asked for."""
    global _compiler
    if _compiler is None:
        try:
            _compiler = _open("FOVEA_COMPILER_LIBRARY", "libfovea_compiler.so.0",
                              _abi.COMPILER_FUNCTIONS)
        except ImportError as reason:
            raise _errors.NotFoundError(_wheels.with_remedy(str(reason))) from None
    return _compiler


def check_compiler(status):
    if status:
        refusal = _errors.CompileError(text(compiler().fovea_compiler_last_message()))
        refusal.status = _COMPILER_STATUS.get(status, f"status {status}")
        raise refusal
