"""libfovea_torch.so: the operators in C++, where it and a PyTorch that takes it are."""

from __future__ import annotations

import ctypes
import logging
import os
import re
from typing import Optional

import torch

from . import _abi, _attention, _errors, _native

_NAME = "libfovea_torch.so.0"
_CHOICE, _PATH = "FOVEA_TORCH_OPERATORS", "FOVEA_TORCH_LIBRARY"
_log = logging.getLogger("fovea")

#: Which operators there are, and why: "c++" or "python".
kind, reason = "python", ""


def _set_aside(why: str, level: int = logging.INFO) -> None:
    global reason
    reason = why
    if os.environ.get(_CHOICE) == "c++":
        raise ImportError(f"fovea.torch: {_CHOICE} is 'c++', and {why}")
    _log.log(level, "PyTorch's operators are those in Python: %s", why)


def _load() -> Optional[ctypes.CDLL]:
    global kind, reason
    choice, named = os.environ.get(_CHOICE, ""), os.environ.get(_PATH)
    if choice not in ("", "c++", "python"):
        raise ImportError(f"fovea.torch: {_CHOICE} is '{choice}', not 'c++' or 'python'")
    if choice == "python":
        reason = f"{_CHOICE} says so"
        return None
    path = named or str(_native.LIBRARIES / _NAME)
    if not named and not os.path.lexists(path):
        _set_aside(f"there is no {path}")
        return None
    if tuple(map(int, re.findall(r"\d+", torch.__version__)[:2])) < (2, 10):
        _set_aside(f"PyTorch is {torch.__version__}, and those in C++ need 2.10")
        return None
    try:
        library = ctypes.CDLL(path)
        library.fovea_torch_version.restype = library.fovea_torch_error.restype = (
            ctypes.c_char_p)
        version, failure = library.fovea_torch_version(), library.fovea_torch_error()
    except (OSError, AttributeError) as error:
        raise ImportError(
            f"fovea.torch: {path} cannot be used: {error}; "
            + (f"{_PATH} names another file" if named else "install the package again")
            + f", or set {_CHOICE}=python") from None
    if failure:
        raise ImportError(f"fovea.torch: the operators of {path} cannot be registered: "
                          f"{failure.decode()}; load it once, before anything else that has "
                          "operators of these names")
    if version.decode() != _abi.VERSION:
        # They are registered: without them there would be none.
        raise ImportError(f"fovea.torch: {path} is of version {version.decode()}, and the "
                          f"package of {_abi.VERSION}; install both together")
    kind, reason = "c++", path
    return library


_library = _load()


@ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
def _provide(message, size):
    try:
        library = _attention.default_library()
        library.is_of_operators = True
        return library._context
    except BaseException as error:  # may not pass through C
        name = getattr(error, "status", "") or "TypeError"
        text = f"{name}: {error}".encode()[:size - 1]
        ctypes.memmove(message, text + b"\0", len(text) + 1)
        return None


def forget(context: Optional[int] = None) -> None:
    """The next call asks for the default library again; `context`: if it was that one's."""
    if _library is not None:
        _library.fovea_torch_forget(ctypes.c_void_p(context))


def host_is_device(given: bool) -> None:
    """For measurements: tensors of the host are taken for a device's."""
    if _library is not None:
        _library.fovea_torch_host_is_device(int(given))


if _library is not None:
    _library.fovea_torch_set_provider(_provide)
    _native.at_end.append(forget)


def told(error: RuntimeError) -> BaseException:
    """What an operator in C++ refused, as the package's exceptions have it."""
    found = re.match(r"(FOVEA_STATUS_\w+|TypeError)(?:\((\d+)\))?: (.*)", str(error), re.S)
    if isinstance(error, _errors.Error) or found is None:
        return error
    return (TypeError(found[3]) if found[1] == "TypeError"
            else _native.error_named(found[1], found[3], int(found[2] or 0)))
