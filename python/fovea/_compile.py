"""The compiler in process, and the commands that come with it."""

from __future__ import annotations

import ctypes
import dataclasses
import json
import os
import shutil
import subprocess
from typing import Any, Dict, Optional

from . import _abi, _native, _wheels
from ._errors import CorruptError, NotFoundError

_TEXTS = ("target", "problem", "schedule", "symbol", "launches", "score_name",
          "score_text")
_FIGURES = [field[0] for field in _abi.fovea_compiled_info_t._fields_[1:]
            if field[1] in (ctypes.c_int32, ctypes.c_double) and field[0] != "reserved"]


@dataclasses.dataclass(frozen=True)
class CompiledKernel:
    """A code object, and what there is to know of it.

    Attributes:
        image: the code object.
        target, problem, schedule, symbol, launches, score_name, score_text: texts, as
            fovea_compiled_info_t of fovea/compiler.h has them.
        contract: what a launch needs (docs/KernelAbi.md).
        report: what the compiler reports of registers, sizes and passes.
        figures: registers, bytes, instructions by name.
    """

    image: bytes = dataclasses.field(repr=False)
    target: str
    problem: str
    schedule: str
    symbol: str
    launches: str
    score_name: str
    score_text: str = dataclasses.field(repr=False)
    contract: Dict[str, Any] = dataclasses.field(repr=False)
    report: Dict[str, Any] = dataclasses.field(repr=False)
    figures: Dict[str, float] = dataclasses.field(repr=False)


def compile(problem: str, target: str, *, schedule: Optional[str] = None,
            score: Optional[str] = None, score_text: Optional[str] = None,
            captures: Optional[str] = None) -> CompiledKernel:
    """Compiles one kernel, in 0.1 to some seconds of the calling thread.

    Packages are made by ``aot-compile``; calls of attention compile what is missing by
    themselves (docs/CompileOnDemand.md).

    Args:
        problem: ``"forward;dtype=bf16;head_dim=128;window=1"`` (docs/PackageFormat.md).
        target: the chip, ``"gfx942"``.
        schedule: parameters in place of the chosen ones, ``"block_m=64"``.
        score: a score program, by the names of ``aot-compile --score``.
        score_text: MLIR with functions that are programs.
        captures: what calls give it, ``"f32, bf16[?, ?, ?, 1]"``.

    Raises:
        CompileError: the compiler's words, with the places of diagnostics.
        NotFoundError: there is no compiler's library.
    """
    library = _native.compiler()
    given = {"target": target, "problem": problem, "schedule": schedule, "score": score,
             "score_text": score_text, "captures": captures}
    request = _native.new(_abi.fovea_compile_request_t,
                          **{name: text.encode() for name, text in given.items()
                             if text is not None})
    compiled = ctypes.c_void_p()
    _native.check_compiler(library.fovea_compile(request, compiled))
    try:
        info = _native.new(_abi.fovea_compiled_info_t)
        _native.check_compiler(library.fovea_compiled_info(compiled, info))
        texts: Dict[str, Any] = {name: _native.text(getattr(info, name))
                                 for name in _TEXTS}
        return CompiledKernel(
            ctypes.string_at(info.image, info.image_bytes), **texts,
            contract=json.loads(info.contract), report=json.loads(info.report),
            figures={name: getattr(info, name) for name in _FIGURES})
    finally:
        library.fovea_compiled_destroy(compiled)


def find_command(name: str) -> Optional[str]:
    """The path of a command of Fovea's: beside the package, or in PATH."""
    beside = _native.COMMANDS / name
    return str(beside) if beside.exists() else shutil.which(name)


def command(name: str, *arguments: str) -> subprocess.CompletedProcess:
    """Runs a command of Fovea's; what it says is the result's `stdout`."""
    found = find_command(name)
    if found is None:
        raise NotFoundError(_wheels.with_remedy(
            f"{name} is neither in {_native.COMMANDS} nor in PATH; install Fovea's tools"))
    return subprocess.run([found, *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)


def verify(path: os.PathLike | str) -> str:
    """Holds a package to its own sums and format and loads its kernels on the simulated
    chip, as ``aot-package verify`` does.

    Returns:
        what the command printed.

    Raises:
        CorruptError: it found something.
        NotFoundError: the command is neither in the package of Python nor in PATH.
    """
    done = command("aot-package", "verify", os.fspath(path))
    if done.returncode:
        raise CorruptError(done.stdout.strip())
    return done.stdout
