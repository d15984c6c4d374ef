"""Hugging Face transformers: models on Fovea's kernels by attn_implementation="fovea".

    import fovea.transformers
    model = AutoModelForCausalLM.from_pretrained(path, attn_implementation="fovea")

Importing it registers the name with transformers' AttentionInterface and
AttentionMaskInterface, and changes no model that does not ask for it. docs/Python.md is
the manual. What is not served raises fovea.Error.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import logging
from typing import Any, Callable, Optional, Tuple

try:
    import torch
    from torch import Tensor
    from transformers import AttentionInterface, AttentionMaskInterface, masking_utils
    from transformers.utils.import_utils import is_tracing
    if "q_length" not in inspect.signature(masking_utils.sdpa_mask).parameters:
        raise ImportError("the installed version's masks are made of positions, not lengths")
except ImportError as error:
    raise ImportError("fovea.transformers needs PyTorch 2.10 or newer and transformers "
                      f"whose mask functions take q_length, as 5.24's: {error}") from None

from . import _errors, torch as _torch
from ._features import Score, Sequences, Varlen, Window
from ._torch_operators import as_bias

__all__ = ["NAME", "attention", "mask"]

#: What models call it by: ``attn_implementation=fovea.transformers.NAME``.
NAME = "fovea"

_log = logging.getLogger("fovea")
_told: set = set()


@dataclasses.dataclass(frozen=True)
class _Pattern:
    """What a mask function of transformers says: who sees whom, in positions."""

    right: Optional[int]  # 0: causal; None: no bound
    left: Optional[int] = None
    sequences: Optional[Tensor] = None  # (batch, length): numbers of packed sequences

    def and_(self, other: _Pattern) -> _Pattern:
        def nearer(one, two):
            return one if two is None else two if one is None else min(one, two)

        return _Pattern(nearer(self.right, other.right), nearer(self.left, other.left),
                        self.sequences if other.sequences is None else other.sequences)


_ALL = _Pattern(None)
# The functions that functions of masking_utils return, by where they are defined and what
# they close over. A function of any other kind has no row, and its mask is made in full.
_CLOSURES: dict = {
    "sliding_window_overlay":
        lambda sliding_window: _Pattern(None, sliding_window - 1),
    "sliding_window_bidirectional_overlay":
        lambda sliding_window: _Pattern(sliding_window, sliding_window),
    # Within a sequence positions are as far apart as rows.
    "remap_positions_for_packed_sequence":
        lambda mask_function, position_ids: _pattern_of(mask_function),
    "packed_sequence_mask_function":
        lambda packed_sequence_mask: _Pattern(None, None, packed_sequence_mask),
    "and_masks": lambda mask_functions: _all_of(mask_functions),
}


def _all_of(functions) -> Optional[_Pattern]:
    whole = _ALL
    for function in functions:
        pattern = _pattern_of(function)
        if pattern is None:
            return None
        whole = whole.and_(pattern)
    return whole


def _pattern_of(function: Any) -> Optional[_Pattern]:
    """None: it is no function that is known."""
    if function is masking_utils.causal_mask_function:
        return _Pattern(0)
    if function is masking_utils.bidirectional_mask_function:
        return _ALL
    if getattr(function, "__module__", None) != masking_utils.__name__:
        return None
    known = _CLOSURES.get(function.__qualname__.partition(".<locals>.")[0])
    if known is None or not function.__closure__:
        return None
    held = dict(zip(function.__code__.co_freevars,
                    (cell.cell_contents for cell in function.__closure__)))
    return known(**held) if held.keys() == inspect.signature(known).parameters.keys() else None


@dataclasses.dataclass(frozen=True)
class _Seen:
    """What a mask is to kernels. It goes through the model as an attribute of a tensor.

    Args:
        window: bounds, from the bottom-right corner of the keys that are used.
        keys: how many keys are used, the first ones.
        varlen: padding, by each sequence's first row and length; or, with `packed`,
            sequences in the rows of all batches, one after another.
        whole: makes the same as booleans (batch, 1, queries, keys).
        queries: how many there are, where it matters.
    """

    window: Optional[Window]
    keys: int
    varlen: Optional[Varlen] = None
    packed: bool = False
    whole: Optional[Callable[[], Tensor]] = None
    queries: Optional[int] = None


_ATTRIBUTE = "_fovea_seen"


def _as_mask(seen: _Seen, padding: Optional[Tensor], batch: int, length: int, device):
    """A tensor (batch, length) that says of each position whether it is none of padding,
    as models hand it on, and `seen` with it."""
    tensor = (torch.ones((batch, length), dtype=torch.bool, device=device)
              if padding is None else padding.clone())
    setattr(tensor, _ATTRIBUTE, seen)
    return tensor


def _packed(sequences: Tensor, window, keys: int) -> _Seen:
    """Of sequence numbers (batch, length): a new one begins where the number changes and
    with each batch."""
    begins = torch.ones_like(sequences, dtype=torch.bool)
    begins[:, 1:] = sequences[:, 1:] != sequences[:, :-1]
    sums = torch.cat([begins.flatten().nonzero().flatten(),
                      torch.tensor([begins.numel()], device=begins.device)]).int()
    most = int(sums.diff().max())
    return _Seen(window, keys, Varlen.packed(sums, sums, most, most), packed=True,
                 queries=keys)


def _padded(valid: Tensor, pattern: _Pattern, q_length: int, first: int) -> Optional[Varlen]:
    """Rows of sequences that padding surrounds; None: there are other kinds of padding.

    Args:
        valid: (batch, keys).
        first: the key that stands where the first query does.
    """
    starts = valid.int().argmax(-1)
    lengths = valid.sum(-1)
    begins = (valid[:, 1:] & ~valid[:, :-1]).sum(-1) + valid[:, 0]
    whole = bool((begins == 1).all())  # one stretch each
    k = Sequences(lengths=lengths.int(), starts=starts.int())
    if pattern.right is None and pattern.left is None:
        return Varlen(k=k) if whole else None
    # Queries stand among the keys, and those of padding take no part.
    begin = (starts - first).clamp(min=0)
    end = (starts + lengths - first).clamp(max=q_length)
    if not whole or not bool((end > begin).all()):
        return None
    return Varlen(Sequences(lengths=(end - begin).int(), starts=begin.int()), k)


def mask(batch_size: int, q_length: int, kv_length: int, q_offset: Any = 0,
         kv_offset: int = 0, mask_function: Callable = masking_utils.causal_mask_function,
         attention_mask: Optional[Tensor] = None, device: Any = "cpu",
         **options: Any) -> Optional[Tensor]:
    """transformers' mask function (AttentionMaskInterface) for :func:`attention`.

    Args:
        batch_size, q_length, kv_length, q_offset, kv_offset, mask_function,
        attention_mask, device, options: as of transformers.masking_utils.sdpa_mask.

    Returns:
        None: all keys are seen, or causal ones. Or a tensor (batch, length) of booleans
        that carries window, padding and packed sequences, as kernels take them as
        arguments. Or, of patterns that have no such form and under torch.compile,
        booleans (batch, 1, q_length, kv_length).
    """
    given = dict(options, batch_size=batch_size, q_length=q_length, kv_length=kv_length,
                 q_offset=q_offset, kv_offset=kv_offset, mask_function=mask_function,
                 attention_mask=attention_mask, device=device)
    pattern = _pattern_of(mask_function)
    inputs = [one for one in (attention_mask, q_offset) if isinstance(one, Tensor)]
    if pattern is not None and not torch.compiler.is_compiling() and (
            not any(map(is_tracing, inputs))):
        found = _seen(pattern, batch_size, q_length, kv_length, int(q_offset), kv_offset,
                      attention_mask)
        if found is not None:
            seen, plain = found
            if plain:
                return None
            length = (int(q_offset) + q_length if attention_mask is None
                      else attention_mask.shape[-1])
            given.update(allow_is_causal_skip=False, allow_is_bidirectional_skip=False)
            seen = dataclasses.replace(seen, whole=functools.cache(
                functools.partial(masking_utils.sdpa_mask, **given)))
            return _as_mask(seen, attention_mask, batch_size, length, device)
    return masking_utils.sdpa_mask(**given)


def _seen(pattern: _Pattern, batch: int, q_length: int, kv_length: int, q_offset: int,
          kv_offset: int, attention_mask: Optional[Tensor]) -> Optional[Tuple[_Seen, bool]]:
    """The mask as kernels take it, and whether no mask says the same; None: there is no
    such form."""
    # Keys behind the last query are those of a static cache that are not written yet.
    first = q_offset - kv_offset
    keys = first + q_length if pattern.right == 0 else kv_length
    if not 0 < keys <= kv_length:
        return None
    stands = pattern.right is None and pattern.left is None  # nobody asks where
    if not stands and keys != first + q_length:
        return None
    window = None if stands else Window(pattern.left, pattern.right)
    if pattern.sequences is not None:
        if q_offset or kv_offset or not q_length == keys == pattern.sequences.shape[1]:
            return None
        return _packed(pattern.sequences.expand(batch, -1), window, keys), False
    varlen = None
    if attention_mask is not None:
        valid = attention_mask[:, kv_offset:kv_offset + keys]
        valid = torch.nn.functional.pad(valid, (0, keys - valid.shape[-1])).bool()
        if not bool(valid.all()):
            varlen = _padded(valid, pattern, q_length, first)
            if varlen is None:
                return None
    plain = varlen is None and pattern.left is None and (
        stands or q_length == keys or (q_length == 1 and keys == kv_length))
    return _Seen(window, keys, varlen, queries=None if stands else q_length), plain


# What models pass along that changes results and no kernel has, and what to do.
_REFUSED = {
    "head_mask": "heads are not masked",
    "block_table": "pages of a cache are not served",
    "k_cache": "pages of a cache are not served",
    "indices": "lists of keys for each query are not served",
    "block_indices": "lists of keys for each query are not served",
}


def _refuse(options: dict) -> None:
    for name, reason in _REFUSED.items():
        if options.get(name) is not None:
            raise _errors.NotFoundError(
                f"{name} is given: {reason}; give the model attn_implementation='sdpa' or "
                "'eager'")
    if options.get("output_attentions") and "output_attentions" not in _told:
        _told.add("output_attentions")
        _log.warning("output_attentions is true, and kernels never have the weights: None is "
                     "returned; attn_implementation='eager' gives them")


def _score(softcap, position_bias, whole, q: Tensor, k: Tensor) -> Optional[Score]:
    """Cap, what is added to scores, and what hides them, in this order."""
    names, captures = [], []
    if softcap is not None:
        names.append("softcap")
        captures.append(float(softcap))
    for given in (position_bias, whole):
        if given is None:
            continue
        name, capture = as_bias(given[..., :k.shape[2]], q, k)
        names.append(name)
        captures.append(capture)
    return Score(",".join(names), captures) if names else None


def _rows(tensor: Tensor) -> Tensor:
    """(batch, heads, rows, ...) with the rows of all batches one after another; heads of a
    row lie side by side, so that nothing is copied."""
    return tensor.transpose(1, 2).flatten(0, 1).transpose(0, 1)


def attention(module: Any, query: Tensor, key: Tensor, value: Tensor,
              attention_mask: Optional[Tensor], dropout: float = 0.0,
              scaling: Optional[float] = None, softcap: Optional[float] = None,
              is_causal: Optional[bool] = None, s_aux: Optional[Tensor] = None,
              position_bias: Optional[Tensor] = None,
              cu_seq_lens_q: Optional[Tensor] = None,
              cu_seq_lens_k: Optional[Tensor] = None, max_length_q: Optional[int] = None,
              max_length_k: Optional[int] = None, deterministic: Optional[bool] = None,
              **options: Any) -> Tuple[Tensor, None]:
    """transformers' attention function (AttentionInterface), with gradients.

    Args:
        module: the attention layer; its `is_causal` counts where `is_causal` is None.
        query: (batch, heads, queries, head_dim) of float16, bfloat16 or float32.
        key, value: (batch, heads_k, keys, head_dim), (..., head_dim_v).
        attention_mask: what :func:`mask` returned; or (batch or 1, heads or 1, queries,
            keys) of booleans, true where a key is seen, or of numbers, which are added to
            scores. Sliding windows are in it.
        dropout: probability that a weight is dropped.
        scaling: multiplies the products; None: 1/sqrt(head_dim).
        softcap: scores are softcap * tanh(score / softcap), as of Gemma 2.
        s_aux: (heads), sinks, as of gpt-oss.
        position_bias: is added to scores, behind the cap.
        cu_seq_lens_q, cu_seq_lens_k, max_length_q, max_length_k: packed sequences, as
            flash_attention_2 has them.
        deterministic: as of fovea.torch.attention.
        options: what else models pass along.

    Returns:
        out, (batch, queries, heads, head_dim_v), and None for weights. Rows of padding
        are 0.

    Raises:
        fovea.Error, TypeError: as fovea.torch.attention; and where an option is given that
            no kernel has.
    """
    _refuse(options)
    seen = getattr(attention_mask, _ATTRIBUTE, None)
    whole = None
    if seen is None and attention_mask is not None:
        if not isinstance(attention_mask, Tensor) or attention_mask.dim() != 4:
            raise _errors.InvalidArgumentError(
                f"attention_mask is {type(attention_mask).__name__} of shape "
                f"{tuple(attention_mask.shape)}, neither (batch, heads, queries, keys) nor a "
                "mask of fovea.transformers.mask itself, which copies of it are not: where a "
                "model's layers are on several devices padding, windows and packed sequences "
                "are not served; give it attn_implementation='sdpa'")
        whole = attention_mask
    queries = query.shape[2]
    if is_causal is None:
        is_causal = getattr(module, "is_causal", True)
    if seen is None:
        is_causal = bool(is_causal) and whole is None and queries > 1
        # As of sdpa: with an empty static cache keys behind the queries are not written yet.
        keys = queries if is_causal and queries < key.shape[2] else key.shape[2]
        seen = _Seen(Window(None, 0) if is_causal else None, keys)
    elif position_bias is not None and seen.varlen is not None:
        # Its rows are those of the batch, and not of what padding surrounds.
        whole, seen = seen.whole(), _Seen(None, key.shape[2])
    varlen, packed = seen.varlen, seen.packed
    if whole is None and cu_seq_lens_q is not None and cu_seq_lens_k is not None:
        if max_length_q is None or max_length_k is None:
            raise _errors.InvalidArgumentError(
                "cu_seq_lens_q and cu_seq_lens_k are given without max_length_q and "
                "max_length_k; give them, too")
        packed = True
        varlen = Varlen.packed(cu_seq_lens_q.int(), cu_seq_lens_k.int(), int(max_length_q),
                               int(max_length_k))
    if key.shape[2] < seen.keys or seen.queries not in (None, queries):
        raise _errors.InvalidArgumentError(
            f"query has {queries} rows and key {key.shape[2]}, and the mask is for "
            f"{queries if seen.queries is None else seen.queries} and {seen.keys}")
    if not packed:
        key, value = key[:, :, :seen.keys], value[:, :, :seen.keys]
    out = _torch.attention(
        *(map(_rows, (query, key, value)) if packed else (query, key, value)), scale=scaling,
        window=seen.window, score=_score(softcap, position_bias, whole, query, key),
        sinks=None if s_aux is None else s_aux.float(), dropout_p=dropout, varlen=varlen,
        deterministic=deterministic)
    if packed:
        out = out.transpose(0, 1).unflatten(0, (query.shape[0], queries))
        return out, None
    return out.transpose(1, 2), None


AttentionInterface.register(NAME, attention)
AttentionMaskInterface.register(NAME, mask)
