"""``fovea qualify``: aot-qualify's report (docs/Qualify.md), with what PyTorch and other
libraries say and do on this machine.

What is asked of PyTorch is asked of the module that is handed in, so that it can be tried
without a GPU.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import warnings
from typing import Any, Callable, Dict, Iterator, List, Optional, Tuple

from . import _compile, _wheels

Facts = List[Dict[str, str]]
Rows = List[Dict[str, Any]]

_LENGTHS = (512, 1024, 2048, 4096, 8192, 16384)
_HEADS, _TOKENS = 16, 16384  # as aot-qualify's own
_WARM_UPS, _ROUNDS = 5, 15


def _attempt(facts: Facts, question: str, ask: Callable[[], Any]) -> Any:
    """Asks, and writes the answer or the error down as one."""
    try:
        answer = ask()
    except Exception as error:  # whatever a library of others throws is its answer
        facts.append({"question": question, "answer": f"{type(error).__name__}: {error}"})
        return None
    facts.append({"question": question, "answer": str(answer)})
    return answer


def _module(name: str) -> Any:
    """The module, or None; one that is there and does not load is an error."""
    if importlib.util.find_spec(name) is None:
        return None
    return importlib.import_module(name)


@contextlib.contextmanager
def _reasons(into: List[str]) -> Iterator[None]:
    """Takes the warnings that a call gives: PyTorch's reasons."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            yield
        finally:
            into.extend(str(warning.message).splitlines()[0] for warning in caught)


def _can_use(torch: Any, name: str, tensors: Tuple[Any, Any, Any], causal: bool) -> str:
    """What can_use_flash_attention and its like say, with the reasons that they give."""
    parameters = torch.backends.cuda.SDPAParams(*tensors, None, 0.0, causal, False)
    reasons: List[str] = []
    with _reasons(reasons):
        answer = getattr(torch.backends.cuda, name)(parameters, True)
    return f"{answer}" + ("".join(f"; {reason}" for reason in reasons) if not answer else "")


def _forced(torch: Any, backend: Any, tensors: Tuple[Any, Any, Any]) -> str:
    """A call that may take this backend alone, beside the math one in fp32."""
    sdpa = torch.nn.functional.scaled_dot_product_attention
    kernel = torch.nn.attention.sdpa_kernel
    reasons: List[str] = []
    try:
        with _reasons(reasons), kernel([backend]):
            out = sdpa(*tensors)
    except RuntimeError as error:
        return "refused: " + "; ".join(reasons or [str(error).splitlines()[0]])
    with kernel([torch.nn.attention.SDPBackend.MATH]):
        exact = sdpa(*(tensor.float() for tensor in tensors))
    return f"ran; largest difference from math in fp32 {float((out.float() - exact).abs().max()):.2e}"


def _kernels(torch: Any, tensors: Tuple[Any, Any, Any]) -> str:
    """The names of the GPU kernels that a call runs: they tell AOTriton's, CK's and AITER's."""
    profiler = torch.profiler
    with profiler.profile(activities=[profiler.ProfilerActivity.CUDA]) as profile:
        torch.nn.functional.scaled_dot_product_attention(*tensors)
        torch.cuda.synchronize()
    return ", ".join(event.key for event in profile.key_averages()) or "none seen"


def ask_torch(torch: Any, facts: Facts) -> bool:
    """PyTorch's choice, and why; whether it has a GPU to measure on."""
    hip = getattr(torch.version, "hip", None)
    facts.append({"question": "PyTorch", "answer": f"{torch.__version__}, "
                  + (f"for HIP {hip}" if hip else "not built for ROCm")})
    has_gpu = bool(hip) and torch.cuda.is_available()
    facts.append({"question": "its GPU",
                  "answer": torch.cuda.get_device_name(0) if has_gpu else "none"})
    if has_gpu:
        _attempt(facts, "its chip", lambda: torch.cuda.get_device_properties(0).gcnArchName)
        _attempt(facts, "its preferred library of flash attention",
                 torch.backends.cuda.preferred_rocm_fa_library)
    for backend in ("flash", "mem_efficient", "math"):
        _attempt(facts, f"{backend} is enabled",
                 getattr(torch.backends.cuda, f"{backend}_sdp_enabled"))
    device = "cuda" if has_gpu else "cpu"
    tensors = tuple(torch.randn(1, 2, 128, 64, device=device).to(torch.bfloat16)
                    for _ in range(3))
    backends = torch.nn.attention.SDPBackend
    for causal in (False, True):
        for name in ("can_use_flash_attention", "can_use_efficient_attention"):
            _attempt(facts, f"{name}, bf16, head dimension 64" + (", causal" if causal else ""),
                     lambda: _can_use(torch, name, tensors, causal))
    _attempt(facts, "the backend that it takes by itself",
             lambda: backends(torch._fused_sdp_choice(*tensors)).name)
    for backend in (backends.FLASH_ATTENTION, backends.EFFICIENT_ATTENTION):
        _attempt(facts, f"a call that may take {backend.name} alone",
                 lambda: _forced(torch, backend, tensors))
    if has_gpu:
        _attempt(facts, "the kernels of a call", lambda: _kernels(torch, tensors))
    _attempt(facts, "Fovea's operators", lambda: importlib.import_module("fovea.torch").operators())
    images = pathlib.Path(torch.__file__).parent / "lib" / "aotriton.images"
    if images.is_dir():
        chips = sorted(entry.name for entry in images.iterdir())
        facts.append({"question": "AOTriton's images in PyTorch", "answer": ", ".join(chips)})
    return has_gpu


def _median_seconds(torch: Any, call: Callable[[], Any]) -> Tuple[float, float]:
    """By events, after a warm-up: the median, and the quartiles' distance over it."""
    for _ in range(_WARM_UPS):
        call()
    times = []
    for _ in range(_ROUNDS):
        start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        call()
        stop.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(stop) / 1e3)
    low, median, high = statistics.quantiles(times, n=4)
    return median, (high - low) / median


def _callers(torch: Any, facts: Facts) -> Dict[str, Callable[[Any, Any, Any, bool], Any]]:
    """Forward attention of (batch, heads, seq, dim) by each library that is here."""
    sdpa = torch.nn.functional.scaled_dot_product_attention
    backends = torch.nn.attention.SDPBackend

    def pytorch(backend: Any) -> Callable[[Any, Any, Any, bool], Any]:
        def call(q: Any, k: Any, v: Any, causal: bool) -> Any:
            with torch.nn.attention.sdpa_kernel([backend]):
                return sdpa(q, k, v, is_causal=causal)
        return call

    def rows_first(function: Callable[..., Any]) -> Callable[[Any, Any, Any, bool], Any]:
        def call(q: Any, k: Any, v: Any, causal: bool) -> Any:
            return function(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2),
                            causal=causal)
        return call

    callers = {"PyTorch flash": pytorch(backends.FLASH_ATTENTION),
               "PyTorch efficient": pytorch(backends.EFFICIENT_ATTENTION)}
    for name, package in (("AITER", "aiter"), ("flash-attn", "flash_attn")):
        module = _attempt(facts, name, lambda: _module(package) or "not installed")
        function = getattr(module, "flash_attn_func", None)
        if function:
            callers[name] = rows_first(function)
    module = _attempt(facts, "AOTriton's own module", lambda: _module("pyaotriton") or "not installed")
    if not isinstance(module, (str, type(None))):
        facts.append({"question": "AOTriton's own module is measured",
                      "answer": "no: PyTorch's flash and efficient calls are its kernels"})
    return callers


def measure(torch: Any, facts: Facts, lengths: Tuple[int, ...] = _LENGTHS) -> Rows:
    """The benchmark of aot-qualify with the other libraries' functions."""
    rows: Rows = []
    for library, call in _callers(torch, facts).items():
        for dtype in ("bf16", "fp16"):
            for dim in (64, 128):
                for causal in (False, True):
                    for length in lengths:
                        batch = max(1, _TOKENS // length)
                        flops = 4 * batch * _HEADS * length * length * dim / (2 if causal else 1)
                        row = {"library": library, "op": "forward", "dtype": dtype,
                               "head_dim": dim, "batch": batch, "heads": _HEADS,
                               "mask": "causal-bottom-right" if causal else "none",
                               "seqlen": length, "flops": flops}
                        kind = torch.bfloat16 if dtype == "bf16" else torch.float16
                        try:
                            q, k, v = (torch.randn(batch, _HEADS, length, dim, device="cuda").to(kind)
                                       for _ in range(3))
                            row["seconds"], row["spread"] = _median_seconds(
                                torch, lambda: call(q, k, v, causal))
                        except Exception as error:  # another library's, whatever it is
                            row["why"] = f"{type(error).__name__}: {error}"
                        rows.append(row)
    return rows


def gather(torch: Optional[Any], measures: bool = True) -> Dict[str, Any]:
    """What aot-qualify --peers takes."""
    facts: Facts = []
    rows: Rows = []
    if torch is None:
        facts.append({"question": "PyTorch", "answer": "not installed: not asked"})
    else:
        has_gpu = ask_torch(torch, facts)
        if has_gpu and measures:
            rows = measure(torch, facts)
        elif measures:
            facts.append({"question": "times of other libraries",
                          "answer": "not measured: PyTorch has no GPU"})
    return {"format": "fovea-peers", "version": 1, "facts": facts, "rows": rows}


def main(arguments: List[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="fovea qualify", allow_abbrev=False,
        description="What GPU, HIP and PyTorch this machine has, whether kernels are right on "
                    "it and how fast. Asks PyTorch which backend it takes and why, measures "
                    "the libraries that are installed, then runs aot-qualify, which takes all "
                    "other options and writes the report (docs/Qualify.md).",
        epilog="aot-qualify --help lists the other options; exit codes are its own.")
    parser.add_argument("--no-torch", action="store_true", help="do not ask PyTorch")
    parser.add_argument("--no-measure", action="store_true",
                        help="do not measure PyTorch and other libraries")
    options, others = parser.parse_known_args(arguments)
    command = _compile.find_command("aot-qualify")
    if command is None:
        print("fovea qualify:", _wheels.with_remedy(
            "there is no aot-qualify beside the package or on the PATH; it is one of the "
            "project's commands (docs/Qualify.md)"), file=sys.stderr)
        return 2
    torch = None
    if not options.no_torch:
        try:
            torch = importlib.import_module("torch")
        except ImportError as error:
            if importlib.util.find_spec("torch") is not None:
                print(f"fovea qualify: PyTorch is installed and does not load: {error}",
                      file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        peers = os.path.join(folder, "peers.json")
        with open(peers, "w", encoding="utf-8") as file:
            json.dump(gather(torch, not options.no_measure), file)
        return subprocess.run([command, *others, f"--peers={peers}"]).returncode
