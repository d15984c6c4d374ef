"""Predicted times: aot-time's, of the kernel that a call takes (docs/AotTime.md)."""

from __future__ import annotations

import dataclasses
import html
import json
import math
import pathlib
import re
import tempfile
from typing import Any, Callable, Dict, Iterable, List, Optional, Tuple, Union

from . import _arrays, _attention, _compile
from ._errors import HipError, InvalidArgumentError, NotFoundError
from ._features import Capture, Score, Window, WindowLike
from ._library import Kernel, Library, default_library

# The order of axes in memory, by that of batch, heads and sequence.
_LAYOUTS = {(0, 1, 2): "bhsd", (0, 2, 1): "bshd", (2, 0, 1): "sbhd"}
# What a window is called where there is none.
_INFINITE = "inf"


@dataclasses.dataclass(frozen=True)
class Prediction:
    """What a kernel would take on the chip by the timing model: no measurement.

    Attributes:
        seconds: of all launches, with what it takes to start and end them.
        low, high: nine of ten published attention kernels lie within (docs/Timing.md).
        flops: operations that are credited.
        kernel: the kernel, as of :attr:`Library.kernels`.
        launches: aot-time's figures of each, by the names of docs/AotTime.md.
        text: aot-time's report; with `annotate` behind it what each instruction costs.
    """

    seconds: float
    low: float
    high: float
    flops: float
    kernel: Kernel = dataclasses.field(repr=False)
    launches: List[Dict[str, Any]] = dataclasses.field(repr=False)
    text: str = dataclasses.field(repr=False)

    @property
    def tflops(self) -> float:
        """Credited operations over time, 10^12 a second."""
        return self.flops / self.seconds / 1e12

    def is_tie(self, other: Prediction) -> bool:
        """Whether the model cannot tell which of two is faster."""
        error = max(launch["ratio_error"] for one in (self, other) for launch in one.launches)
        return abs(math.log(self.seconds / other.seconds)) <= math.log1p(error)

    def __str__(self) -> str:
        return (f"{_duration(self.seconds)} ({_duration(self.low)} to {_duration(self.high)}) "
                f"predicted for {self.kernel.target}, {self.tflops:.1f} TFLOPS: "
                f"{self.kernel.problem}")

    def _repr_html_(self) -> str:
        """The interval, and by launch what its time goes into."""
        most = self.high * 1.05
        parts = [f'<div style="font:13px sans-serif;max-width:46em">'
                 f"<p><b>{_duration(self.seconds)}</b>, {_duration(self.low)} to "
                 f"{_duration(self.high)}, predicted for {html.escape(self.kernel.target)} "
                 f"(no measurement): {self.tflops:.1f} TFLOPS</p>",
                 _picture([(self.low / most, self.high / most, "#9ab8d8"),
                           (self.seconds / most - 0.002, self.seconds / most + 0.002,
                            "#1f4e8c")], 14, "time from 0, the interval, the prediction")]
        for launch in self.launches:
            reasons = sorted(launch["stalls"].items(), key=lambda item: -item[1])
            shares = [("issuing", launch["issued_share"], "#3a7d44"),
                      *((name, share, colour) for (name, share), colour in
                        zip(reasons[:5], ("#b5534c", "#d08b3e", "#d9c04f", "#8a6fae",
                                          "#6b8e9c")))]
            shares.append(("other waits", max(0.0, 1 - sum(s for _, s, _ in shares)),
                           "#bbbbbb"))
            at, bars = 0.0, []
            for _, share, colour in shares:
                bars.append((at, at + share, colour))
                at += share
            legend = ", ".join(
                f'<span style="color:{colour}">&#9632;</span> {html.escape(name)} '
                f"{100 * share:.0f} %" for name, share, colour in shares if share >= 0.005)
            units = ", ".join(f"{html.escape(name.replace('_', ' '))} {100 * share:.0f} %"
                              for name, share in launch["units"].items())
            parts.append(f"<p><code>{html.escape(launch['kernel'])}</code>, "
                         f"{_duration(launch['seconds'])}: a wave's time</p>"
                         + _picture(bars, 18, "shares of a wave's time")
                         + f"<p>{legend}<br>busy units: {units}</p>")
        return "".join(parts) + f"<p>{html.escape(self.kernel.problem)}<br>" \
            f"{html.escape(self.kernel.schedule)}</p></div>"


def _picture(bars: Iterable[Tuple[float, float, str]], height: int, title: str) -> str:
    return (f'<svg viewBox="0 0 1000 {height}" width="100%" height="{height}" '
            f'preserveAspectRatio="none" role="img"><title>{html.escape(title)}</title>'
            f'<rect width="1000" height="{height}" fill="#eeeeee"/>'
            + "".join(f'<rect x="{1000 * begin:.1f}" width="{1000 * (end - begin):.1f}" '
                      f'height="{height}" fill="{colour}"/>' for begin, end, colour in bars)
            + "</svg>")


def _duration(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} us"


def _window_option(mask: str, window: Optional[WindowLike]) -> str:
    if window is None:
        return mask
    if not isinstance(window, Window):
        window = Window(*window)
    bounds = ":".join(_INFINITE if bound is None else str(bound)
                      for bound in (window.left, window.right))
    return f"{bounds},{window.left_alignment}:{window.right_alignment}"


def time(q: Any, k: Any, v: Any, *, backward: bool = False, mask: str = "none",
         window: Optional[WindowLike] = None, score: Union[Score, str, Callable, None] = None,
         kernel: int = 0, library: Optional[Library] = None, device: Optional[int] = None,
         samples: int = 8, annotate: bool = False) -> Prediction:
    """Predicts how long a call of :func:`attention` takes on the device's chip, or with
    `backward` one of :func:`attention_backward`; nothing of the call is run. A few
    workgroups are executed on a simulated device, by the command ``aot-time``.

    Args:
        q, k, v: arrays, or :class:`Spec`.
        score: of its captures numbers count; arrays are by chance.
        samples: workgroups that are replayed; more are slower and more exact.
        annotate: whether the result's text has the disassembly with costs.
        others: as of :func:`explain`, which chooses the kernel.

    Raises:
        NotFoundError: there is no kernel, or no model of the chip (docs/Timing.md).
        InvalidArgumentError, TypeError: as :func:`attention`.
    """
    from . import scores
    library = library or default_library()
    program, mask = scores.resolve(score, mask)
    if isinstance(program, str):
        program = Score(program)
    found = _attention.explain(q, k, v, backward=backward, mask=mask, window=window,
                               score=program, kernel=kernel, library=library, device=device)
    if found.error is not None:
        raise found.error
    if found.chosen is None:
        raise InvalidArgumentError("the call has nothing to compute, and takes no time")
    taken = library.kernels[found.chosen.kernel - 1]
    problem = dict(item.split("=", 1) for item in taken.problem.split(";")[1:])
    if not pathlib.Path(taken.package).exists():
        raise NotFoundError(
            f"the kernel was compiled and is in {taken.package} alone; have it kept "
            "(FOVEA_CACHE_DIR), or open a package that has it")
    views = [_arrays.view(array, name) for name, array in (("q", q), ("k", k), ("v", v))]
    sizes = {"head_dim": views[0].shape[3], "head_dim_v": views[2].shape[3]}
    if "head_dims" in problem or sizes["head_dim"] != sizes["head_dim_v"]:
        raise NotFoundError(
            f"the kernel takes head dimensions as arguments ({taken.problem}), and aot-time "
            "predicts those of exact ones; compile one for this head dimension")
    order = _arrays.order_of(views[0])[:3]
    if order not in _LAYOUTS:
        raise InvalidArgumentError(f"q lies in memory in the order {order}, and aot-time knows "
                                   f"{', '.join(map(str, _LAYOUTS))}")
    options = {
        "package": taken.package, "target": taken.target,
        "op": taken.problem.partition(";")[0], "dtype": problem["dtype"],
        "head-dim": problem["head_dim"], "mask": _window_option(mask, window),
        "schedule": taken.schedule, "layout": _LAYOUTS[order], "batch": views[0].shape[0],
        "heads": views[0].shape[1], "heads-k": views[1].shape[1],
        "seqlen-q": views[0].shape[2], "seqlen-k": views[1].shape[2], "samples": samples}
    if "score" in problem:
        options["score"] = problem["score"]
    arguments = [f"--{name}={value}" for name, value in options.items()]
    for number, given in enumerate(program.captures if program is not None else ()):
        value = _arrays.as_plain(given.value if isinstance(given, Capture) else given)
        if isinstance(value, (int, float)):
            number_of = int(value) if isinstance(value, bool) else value
            arguments += ["--set", f"capture{number}={number_of}"]
    if annotate:
        arguments.append("--annotate")
    with tempfile.TemporaryDirectory() as folder:
        figures = pathlib.Path(folder, "figures.json")
        done = _compile.command("aot-time", *arguments, f"--json={figures}")
        runs = json.loads(figures.read_text())["runs"] if figures.exists() else []
    # Of several groups of features, the one that the call takes.
    runs = [run for run in runs if run.get("name") == taken.problem] or runs[:1]
    if not runs or "error" in runs[0] or not runs[0].get("launches"):
        words = (runs[0].get("error") if runs else None) or done.stdout.strip()
        raise (HipError if done.returncode == 3 else NotFoundError)(f"aot-time: {words}")
    launches = runs[0]["launches"]
    return Prediction(
        runs[0]["seconds"],
        sum(launch["seconds"] / (1 + launch["time_error"]) for launch in launches),
        sum(launch["seconds"] * (1 + launch["time_error"]) for launch in launches),
        runs[0]["flops_credited"], taken, launches, re.sub(r"\n+\Z", "\n", done.stdout))
