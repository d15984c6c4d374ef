"""Hugging Face diffusers: its attention dispatcher with Fovea as a backend.

    import fovea.diffusers
    transformer.set_attention_backend("fovea")    # or: with attention_backend("fovea"):

Importing it registers the backend, and changes no model that does not ask for it.
docs/Python.md is the manual, and says which models go past the dispatcher. What is not
served raises fovea.Error.
"""

from __future__ import annotations

from typing import Any, Optional

try:
    from torch import Tensor
    from diffusers.models import attention_dispatch as _dispatch
except ImportError as error:
    raise ImportError("fovea.diffusers needs PyTorch 2.10 or newer and diffusers, tried with "
                      f"0.42: {error}") from None

from . import _errors, torch as _torch
from ._features import Score
from ._torch_operators import as_bias

__all__ = ["NAME", "attention"]

#: What models call the backend by.
NAME = "fovea"


def attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Optional[Tensor] = None,
              dropout_p: float = 0.0, is_causal: bool = False, scale: Optional[float] = None,
              enable_gqa: bool = False, return_lse: bool = False,
              _parallel_config: Any = None) -> Any:
    """A backend of diffusers' dispatcher, with gradients.

    Args:
        query: (batch, queries, heads, head_dim) of float16, bfloat16 or float32.
        key, value: (batch, keys, heads_k, head_dim), (..., head_dim_v).
        attn_mask: booleans, true where a key is seen, or numbers that are added to scores:
            (batch, keys), or what expands to (batch, heads, queries, keys).
        dropout_p, is_causal, scale, enable_gqa: as of scaled_dot_product_attention.
        return_lse: the log-sum-exp is wanted, too.

    Returns:
        out, (batch, queries, heads, head_dim_v); with `return_lse` (out, lse), lse
        (batch, queries, heads), natural logarithm.

    Raises:
        fovea.Error, TypeError: as fovea.torch.attention.
    """
    if _parallel_config is not None:
        raise _errors.NotFoundError(
            "_parallel_config is given: the backend 'fovea' serves no context parallelism of "
            "diffusers; take another backend")
    if query.shape[2] != key.shape[2] and not enable_gqa:
        raise _errors.InvalidArgumentError(
            f"query has {query.shape[2]} heads and key {key.shape[2]}; heads that share keys "
            "take enable_gqa=True")
    q, k, v = (tensor.transpose(1, 2) for tensor in (query, key, value))
    score = None
    if attn_mask is not None:
        if attn_mask.dim() == 2 and attn_mask.shape == (q.shape[0], k.shape[2]):
            attn_mask = attn_mask[:, None, None]  # as native has it
        name, capture = as_bias(attn_mask, q, k)
        score = Score(name, [capture])
    out, lse = _torch.attention(
        q, k, v, scale=scale, mask="causal-top-left" if is_causal else "none", score=score,
        dropout_p=dropout_p, return_lse=True)
    out = out.transpose(1, 2)
    return (out, lse.transpose(1, 2)) if return_lse else out


def _register() -> None:
    """Under a name that is no member of the dispatcher's enumeration, which has none for
    libraries that it does not know: made as its own are."""
    names: Any = _dispatch.AttentionBackendName
    if NAME not in names._value2member_map_:
        member = str.__new__(names, NAME)
        member._name_, member._value_ = NAME.upper(), NAME
        member.__objclass__, member._sort_order_ = names, len(names._member_names_)
        names._member_names_.append(member._name_)
        names._member_map_[member._name_] = names._value2member_map_[NAME] = member
        type.__setattr__(names, member._name_, member)
    _dispatch._AttentionBackendRegistry.register(
        names(NAME), constraints=[_dispatch._check_device, _dispatch._check_shape])(attention)


_register()
