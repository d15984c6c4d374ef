#if MINOR >= 11
"""Tensors of fp32 that are allocated when a call needs them."""
from typing import Optional

from . import T2, T4

class LT4:
    """A lazy tensor of four dimensions."""
class LT2:
    """A lazy tensor of two dimensions."""

def dq_acc(like_tensor: T4, device_index: Optional[int]) -> LT4:
    """Zeros of the sizes of `like_tensor`, contiguous, on that device; None: the
    current one. ValueError when no memory has so many bytes. What HIP gives to
    an allocation that fails, the call returns."""
def delta(like_tensor: T2, device_index: Optional[int]) -> LT2:
    """The same of two dimensions, without values: of the shape of L."""
#if MINOR >= 12
def eager_delta(tensor_view: T2) -> LT2:
    """A tensor that is there already."""
def eager_null_dq_acc(tensor_view: T4) -> LT4:
    """A tensor that is there already, or one without data."""
#endif
#endif
