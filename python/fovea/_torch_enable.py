"""Fovea in the place of PyTorch's own attention, and how that is taken back."""

from __future__ import annotations

import collections
import functools
import logging
import warnings
from typing import Optional

import torch

from . import _errors, _torch_aten
from ._torch_aten import REFUSALS, NotServed, flex_backward, flex_forward

_log = logging.getLogger("fovea")
_enabled: Optional[torch.library.Library] = None
_fallback: Optional[bool] = None  # enable()'s, where it is on
_taken_back: list = []  # functions that do that to what a library of PyTorch's does not
_calls: collections.Counter = collections.Counter()
_told: set = set()


class _Enabled:
    """What :func:`enable` returns; leaving it as a context has what was before."""

    def __init__(self, before: Optional[bool]):
        self._before = before

    def __enter__(self) -> _Enabled:
        return self

    def __exit__(self, *_) -> None:
        disable()
        if self._before is not None:
            enable(self._before)

    def remove(self) -> None:
        disable()


def _tell(name: str, reason: BaseException) -> None:
    text = f"{name}: {reason}"
    if text not in _told:
        _told.add(text)
        _log.warning("%s; PyTorch's own kernel serves the call", text)


def _serve_or_fall_back(name, former, fallback, serve, arguments, options):
    """`serve` of the arguments; where it refuses, what was there before, called by
    `former` unless that is None."""
    try:
        result = serve(*arguments, **options)
    except REFUSALS as reason:
        if former is None or not fallback:
            if isinstance(reason, NotServed):
                raise _errors.NotFoundError(f"{name}: {reason}") from None
            raise
        _calls[name, "pytorch"] += 1
        _tell(name, reason)
        return former(*arguments, **options)
    _calls[name, "fovea"] += 1
    return result


def _override(name, serve, key, fallback):
    """Registers `serve`, and behind it what was there before."""
    former = None
    if torch._C._dispatch_has_kernel_for_dispatch_key(f"aten::{name}", key):
        former = torch.library.get_kernel(f"aten::{name}", key)

    def served(keys, *arguments, **options):
        before = None if former is None else functools.partial(former.call_boxed, keys)
        return _serve_or_fall_back(name, before, fallback, serve, arguments, options)

    with warnings.catch_warnings():  # that another kernel was there is the purpose
        warnings.filterwarnings("ignore", "Warning only once for all operators")
        _enabled.impl(name, served, key, with_keyset=True)


def _override_flex(hop, serve, key, fallback):
    """Has a higher-order operator served by `serve` for tensors of a device."""
    kernels, name = hop.py_kernels, hop.name()
    former = kernels.get(key, kernels.get(torch._C.DispatchKey.CompositeExplicitAutograd))

    def served(*arguments, **options):
        return _serve_or_fall_back(name, former, fallback, serve, arguments, options)

    before = kernels.get(key)
    kernels[key] = served
    hop._dispatch_cache.clear()

    def take_back():
        if before is None:
            kernels.pop(key, None)
        else:
            kernels[key] = before
        hop._dispatch_cache.clear()

    _taken_back.append(take_back)


def enable(fallback: bool = True) -> _Enabled:
    """Has Fovea serve PyTorch's operators of attention, and so
    scaled_dot_product_attention.

    Args:
        fallback: a call that Fovea does not serve goes to PyTorch's own kernel, where
            there is one, and the logger ``fovea`` says why, once for each reason.
            False: it raises.

    Returns:
        an object whose `remove()` is :func:`disable`; leaving it as a context has what was
        there before, an `enable()` further out or PyTorch's own.
    """
    global _enabled, _fallback
    before = _fallback
    disable()
    _fallback = fallback
    _enabled = torch.library.Library("aten", "IMPL")
    keys = ("CPU", "CUDA") if torch.version.hip else ("CPU",)
    for name, serve, devices in _torch_aten.OVERRIDES:
        for key in devices:
            if key in keys:
                _override(name, serve, key, fallback)
    from torch._higher_order_ops.flex_attention import (
        flex_attention as forward, flex_attention_backward as backward)
    for hop, serve in ((forward, flex_forward), (backward, flex_backward)):
        for key in keys:
            _override_flex(hop, serve, getattr(torch._C.DispatchKey, key), fallback)
    return _Enabled(before)


def disable() -> None:
    """Takes :func:`enable` back."""
    global _enabled, _fallback
    _fallback = None
    if _enabled is not None:
        _enabled._destroy()
        _enabled = None
    while _taken_back:
        _taken_back.pop()()


def calls() -> dict:
    """How many calls of each operator went which way since the process began:
    {(operator, "fovea" or "pytorch"): number}."""
    return dict(_calls)


try:  # from PyTorch 2.11 on
    from torch.nn.attention import register_flash_attention_impl
except ImportError:
    pass
else:  # torch.nn.attention.activate_flash_attention_impl("fovea") is enable()
    register_flash_attention_impl("fovea", register_fn=enable)
