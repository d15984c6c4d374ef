"""Open packages, the HIP library and the kernels that are loaded from them."""

from __future__ import annotations

import ctypes
import dataclasses
import logging
import os
import threading
import types
import weakref
from typing import Callable, Iterator, Optional, Tuple

from . import _abi, _memory, _native, _wheels
from ._errors import Error, InvalidArgumentError

# A kernel's description is the structure's fields but the first.
_KERNEL_FIELDS = [field[0] for field in _abi.fovea_kernel_info_t._fields_[1:]]


class Kernel(types.SimpleNamespace):
    """A kernel of the open packages; attributes are the fields of fovea_kernel_info_t:
    `id`, `package`, `target`, `problem`, `schedule`, `symbol`, `vgprs` and so on."""


_STATES = {_abi.FOVEA_CANDIDATE_CHOSEN: "chosen",
           _abi.FOVEA_CANDIDATE_ACCEPTED: "accepted",
           _abi.FOVEA_CANDIDATE_REFUSED: "refused",
           _abi.FOVEA_CANDIDATE_TUNING_MISSED: "tuning-missed"}
_HIP_KINDS = {_abi.FOVEA_HIP_ROCM: "rocm", _abi.FOVEA_HIP_SIM: "sim",
              _abi.FOVEA_HIP_PATH: "path"}


@dataclasses.dataclass(frozen=True)
class Candidate:
    """A step of a choice: `state` is ``"chosen"``, ``"accepted"``, ``"refused"`` or
    ``"tuning-missed"``; `kernel` its id, 0 of a tuning row."""

    kernel: int
    state: str
    name: str
    reason: str


@dataclasses.dataclass(frozen=True)
class Explanation:
    """How a call's kernel is chosen. True where there is one.

    Attributes:
        candidates: the steps, as fovea_forward_explain() has them.
        message: the library's, where there is none.
        error: the exception that the call would raise, or None.
    """

    candidates: Tuple[Candidate, ...]
    message: str
    error: Optional[Error]

    @property
    def chosen(self) -> Optional[Candidate]:
        """The kernel that is taken; None: no kernel is, or nothing is to be done."""
        return next((c for c in self.candidates if c.state == "chosen"), None)

    def __bool__(self) -> bool:
        return self.error is None

    def __str__(self) -> str:
        lines = [f"{step.name}: {step.reason}" for step in self.candidates]
        return "\n".join(lines or [self.message or "nothing to compute"])


@dataclasses.dataclass(frozen=True)
class HipLibrary:
    """The HIP library in use; `kind` is ``"rocm"``, ``"sim"`` or ``"path"``."""

    kind: str
    path: str
    reason: str
    runtime_version: int
    device_count: int


@dataclasses.dataclass(frozen=True)
class Device:
    """A device: HIP's name of its chip, e.g. ``"gfx942:sramecc+:xnack-"``."""

    arch: str
    compute_units: int


class Library:
    """Packages of kernels, and what they are run with.

    Args:
        paths: packages, or folders of packages (``*.fovea``).
        hip: ``"rocm"``, ``"sim"``, ``"auto"`` or the path of a HIP library; None: as
            the variable FOVEA_HIP_LIBRARY says, else auto.
        compile: ``"never"``, ``"auto"`` or ``"always"``; None: as FOVEA_COMPILE says,
            else never.
        log: ``"off"``, ``"info"`` or ``"dispatch"``; None: as FOVEA_LOG says, else off.
        log_to: receives each line of the log, perhaps from several threads; None:
            standard error does. It may call nothing of fovea.

    Raises:
        NotFoundError, CorruptError, IncompatibleError, IoError, BusyError: a package
            was refused.
        InvalidArgumentError: of an argument or a variable.
    """

    def __init__(self, *paths: os.PathLike | str, hip: Optional[str] = None,
                 compile: Optional[str] = None, log: Optional[str] = None,
                 log_to: Optional[Callable[[str], None]] = None):
        options = _native.new(
            _abi.fovea_context_options_t, hip_library=_text(hip, "hip", os.fsencode),
            log=_text(log, "log"), compile=_text(compile, "compile", os.fsencode))
        if log_to is not None:
            self._log = _abi.fovea_log_fn(  # lives as long as the context
                lambda _, line: log_to(line.decode(errors="replace")))
            options.log_fn = self._log
        context = ctypes.c_void_p()
        _native.check(_native.lib.fovea_context_create(options, context))
        self._handle, self._process = context.value, os.getpid()
        # Not at the interpreter's end, when work may be running and HIP be gone.
        self._finalizer = weakref.finalize(self, _destroy, self._handle, os.getpid())
        self._finalizer.atexit = False
        self._kept = threading.local()
        self._hip_lock = threading.Lock()
        self._hip_calls: Optional[_memory.Hip] = None
        self.is_of_operators = False  # those in C++ have it
        for path in paths:
            self.open(path)

    def open(self, path: os.PathLike | str) -> None:
        """Opens a package, or all of a folder; all or none."""
        _native.check(_native.lib.fovea_package_open(
            self._context, _native.c_text(path, "path", os.fsencode)))
        self._kept = threading.local()  # others may be chosen, with other workspaces

    def close(self) -> None:
        """Unloads all kernels. What was launched must have ended."""
        self._finalizer()

    def __enter__(self) -> Library:
        return self

    def __exit__(self, *_) -> None:
        self.close()

    @property
    def _context(self):
        if not self._finalizer.alive:
            raise InvalidArgumentError("the fovea.Library is closed")
        if self._process != os.getpid():
            raise self._forked()
        return self._handle

    def _forked(self):
        return InvalidArgumentError(
            f"the fovea.Library was made by process {self._process}, of which this "
            "is a fork; make it, and call HIP first, in the process that uses it "
            "(multiprocessing's start method 'spawn')")

    @property
    def _calls(self) -> dict:
        """Structures of calls that this thread has made."""
        try:
            return self._kept.calls
        except AttributeError:
            self._kept.calls = {}
            return self._kept.calls

    @property
    def _hip(self) -> _memory.Hip:
        context = self._context  # closed, or of another process: before any call
        if self._hip_calls is not None:
            return self._hip_calls
        with self._hip_lock:
            if self._hip_calls is None:
                self._hip_calls = _memory.Hip(context)
            return self._hip_calls

    @property
    def kernels(self) -> Tuple[Kernel, ...]:
        """Those of the open packages, and those that were compiled on demand. The one
        with id n is number n - 1."""
        return tuple(self._kernels())

    def _kernels(self) -> Iterator[Kernel]:
        info = _native.new(_abi.fovea_kernel_info_t)
        for number in range(_native.lib.fovea_kernel_count(self._context)):
            _native.check(
                _native.lib.fovea_kernel_info(self._context, number + 1, info))
            fields = {name: getattr(info, name) for name in _KERNEL_FIELDS}
            yield Kernel(**{name: _native.text(value) if isinstance(value, bytes) else value
                            for name, value in fields.items()})

    @property
    def hip(self) -> HipLibrary:
        """The HIP library, which is opened if that has not happened.

        Raises:
            NoDeviceError, IncompatibleError: there is none.
        """
        info = _native.new(_abi.fovea_hip_library_info_t)
        _native.check(_native.lib.fovea_hip_library_info(self._context, info))
        return HipLibrary(_HIP_KINDS[info.kind], _native.text(info.path),
                          _native.text(info.reason), info.runtime_version,
                          info.device_count)

    def device(self, number: int = 0) -> Device:
        """Describes a device.

        Raises:
            InvalidArgumentError: there is no such device.
            TypeError: `number` is no number.
        """
        info = _native.new(_abi.fovea_device_info_t)
        _native.check(_native.lib.fovea_device_info(
            self._context, _native.device_number(number), info))
        return Device(_native.text(info.arch), info.compute_units)

    def score_text(self, program: str, dtype: str = "bfloat16",
                   text: Optional[str] = None) -> str:
        """The canonical text of a score program; its first line names the captures.

        Raises:
            InvalidArgumentError: there is no such program, or the text is wrong.
            NotFoundError: nothing is compiled on demand.
        """
        from ._attention import DTYPES
        from ._features import choice
        canonical = ctypes.c_char_p()
        _native.check(_native.lib.fovea_score_text(
            self._context, choice("dtype", dtype, DTYPES),
            _native.c_text(program, "program"), _text(text, "text"), canonical))
        return _native.text(canonical.value)


def _text(given, name, encode=str.encode):
    return None if given is None else _native.c_text(given, name, encode)


def _destroy(handle, process):
    if process == os.getpid():
        for tell in _native.at_end:
            tell(handle)
        _native.lib.fovea_context_destroy(handle)


def explained(call) -> Explanation:
    """Collects the steps of a choice.

    Args:
        call: makes it, with the function and the pointer that it is given.
    """
    steps, failures = [], []

    def step(_, candidate):
        try:
            found = _abi.fovea_candidate_t.from_address(candidate)
            steps.append(Candidate(found.kernel, _STATES[found.state],
                                   _native.text(found.name), _native.text(found.reason)))
        except BaseException as error:  # may not pass through C
            failures.append(error)

    status = call(_abi.fovea_explain_fn(step))
    message = _native.text(_native.lib.fovea_last_message())
    if failures:
        raise failures[0]
    return Explanation(tuple(steps), message,
                       _native.error(status, message, _native.lib.fovea_last_cause())
                       if status else None)


_default: Optional[Library] = None
_default_lock = threading.Lock()
_log = logging.getLogger("fovea")


def default_library() -> Library:
    """The library of calls that name none: the packages of FOVEA_KERNELS, with ``:``
    between them, or else, where it is not set, those that wheels have brought, of which
    one that is refused is passed over with a line of the logger ``fovea``; what is missing
    is compiled unless FOVEA_COMPILE says otherwise. A process that was forked has one of
    its own, unless that of before had begun with HIP, which does not survive it."""
    global _default
    with _default_lock:
        if _default is not None and _default._process != os.getpid() and (
                _default._hip_calls is not None or _default.is_of_operators):
            raise _default._forked()
        if _default is None or _default._process != os.getpid():
            named = os.environ.get("FOVEA_KERNELS")
            library = Library(*filter(None, (named or "").split(":")),
                              compile=None if os.environ.get("FOVEA_COMPILE") else "auto")
            for path in _wheels.kernels() if named is None else ():
                try:
                    library.open(path)
                except Error as reason:
                    _log.warning("%s; it is passed over: %s", reason,
                                 _wheels.kernels_remedy(path))
            _default = library
        return _default
