"""vLLM's attention interface (vllm.v1.attention.backend, held to that of 0.33.0) over
fovea.attention.

Of its kinds of attention those without a cache: every key is in the call. A cache in
pages has no kernel, and vLLM is told so before it chooses this backend.
"""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar, List, Optional, Tuple

import torch
from torch import Tensor
from vllm.v1.attention.backend import (AttentionBackend, AttentionImpl, AttentionMetadata,
                                       AttentionMetadataBuilder, AttentionType)

from . import _attention, _errors
from ._features import Score, Varlen, Window

_WITHOUT_CACHE = (AttentionType.ENCODER_ONLY, AttentionType.ENCODER)
_MOST_HEAD_DIM = 512


def _no_pages(what: str) -> _errors.NotFoundError:
    return _errors.NotFoundError(
        f"{what}: Fovea's backend serves attention without a cache alone (encoders), and no "
        "kernel reads keys in pages; take another --attention-backend")


class FoveaAttentionBackend(AttentionBackend):
    """What vLLM asks before it takes the backend."""

    supported_dtypes: ClassVar[List[torch.dtype]] = [torch.float16, torch.bfloat16,
                                                     torch.float32]

    @staticmethod
    def get_name() -> str:
        return "CUSTOM"  # the member's that it is registered as

    @staticmethod
    def get_impl_cls() -> type:
        return FoveaAttentionImpl

    @staticmethod
    def get_builder_cls() -> type:
        return FoveaMetadataBuilder

    @staticmethod
    def get_kv_cache_shape(num_blocks: int, block_size: int, num_kv_heads: int,
                           head_size: int, cache_dtype_str: str = "auto") -> Tuple[int, ...]:
        # Versions before 0.33 ask a backend, which ones from it on no longer do.
        raise _no_pages(f"a cache of {num_blocks} blocks is asked for")

    @classmethod
    def supports_head_size(cls, head_size: int) -> bool:
        return 1 <= head_size <= _MOST_HEAD_DIM

    @classmethod
    def supports_attn_type(cls, attn_type: str) -> bool:
        return attn_type in _WITHOUT_CACHE

    @classmethod
    def supports_sink(cls) -> bool:
        return True

    @classmethod
    def supports_sliding_window(cls) -> bool:
        return True

    # supports_non_causal is of queries that see behind them in a cache, and stays False.


@dataclasses.dataclass
class FoveaMetadata(AttentionMetadata):
    """A batch: sequences that lie one after another.

    Args:
        starts: int32 (sequences + 1), the row with which each begins, and where the last ends.
        longest: rows of the longest.
        tokens: rows of all; tensors may have more.
        causal: queries see no keys behind them.
    """

    starts: Tensor
    longest: int
    tokens: int
    causal: bool


class FoveaMetadataBuilder(AttentionMetadataBuilder):
    def __init__(self, kv_cache_spec: Any, layer_names: List[str], vllm_config: Any,
                 device: torch.device) -> None:
        super().__init__(kv_cache_spec, layer_names, vllm_config, device)

    def build(self, common_prefix_len: int, common_attn_metadata: Any,
              fast_build: bool = False) -> FoveaMetadata:
        if common_prefix_len:
            raise _no_pages(f"common_prefix_len is {common_prefix_len}, of keys in a cache")
        causal = common_attn_metadata.causal
        if not isinstance(causal, bool):
            raise _errors.NotFoundError(
                "causal is a tensor: sequences of which some are causal are not served in one "
                "batch")
        return FoveaMetadata(common_attn_metadata.query_start_loc,
                             common_attn_metadata.max_query_len,
                             common_attn_metadata.num_actual_tokens, causal)


class FoveaAttentionImpl(AttentionImpl):
    """One layer's attention."""

    def __init__(self, num_heads: int, head_size: int, scale: float,
                 num_kv_heads: Optional[int] = None,
                 alibi_slopes: Optional[List[float]] = None,
                 sliding_window: Optional[int] = None, kv_cache_dtype: str = "auto",
                 logits_soft_cap: Optional[float] = None,
                 attn_type: str = AttentionType.DECODER,
                 kv_sharing_target_layer_name: Optional[str] = None,
                 sinks: Optional[Tensor] = None) -> None:
        if attn_type not in _WITHOUT_CACHE:
            raise _no_pages(f"attn_type is {attn_type!r}")
        if kv_sharing_target_layer_name is not None:
            raise _no_pages(f"keys are those of {kv_sharing_target_layer_name!r}")
        self.num_heads, self.head_size, self.scale = num_heads, head_size, float(scale)
        self.num_kv_heads = num_heads if num_kv_heads is None else num_kv_heads
        self.kv_cache_dtype = kv_cache_dtype
        self.sliding_window = sliding_window
        self.sinks = sinks  # a parameter of the layer's, whose values are loaded later
        self.alibi_slopes = alibi_slopes
        self.logits_soft_cap = logits_soft_cap or 0.0

    def _score(self, batch: int, device: torch.device) -> Optional[Score]:
        names: List[str] = []
        captures: List[Any] = []
        if self.logits_soft_cap > 0:
            names.append("softcap")
            captures.append(float(self.logits_soft_cap))
        if self.alibi_slopes is not None:
            names.append("alibi")
            captures.append(torch.tensor(self.alibi_slopes, dtype=torch.float32, device=device)
                            .expand(batch, self.num_heads))
        return Score(",".join(names), captures) if names else None

    def forward(self, layer: Any, query: Tensor, key: Tensor, value: Tensor,
                kv_cache: Tensor, attn_metadata: Optional[FoveaMetadata], output: Tensor,
                output_scale: Optional[Tensor] = None,
                output_block_scale: Optional[Tensor] = None) -> Tensor:
        """Attention of (tokens, heads, head_size), written to `output`, of which rows behind
        the batch's stay as they are."""
        if output_scale is not None or output_block_scale is not None:
            raise _errors.NotFoundError("output_scale is given: results are not quantised; "
                                        "leave out fusion of attention and quantisation")
        if attn_metadata is None:  # vLLM measures the rest of the model
            return output.zero_()
        tokens = attn_metadata.tokens
        shaped = (tokens, -1, self.head_size)
        q, k, v, out = (tensor[:tokens].view(shaped).transpose(0, 1)
                        for tensor in (query, key, value, output))
        left = None if self.sliding_window is None else self.sliding_window - 1
        right = 0 if attn_metadata.causal else left  # both ways, as vLLM's encoders have it
        starts, longest = attn_metadata.starts, attn_metadata.longest
        _attention.attention(
            q, k, v, scale=self.scale,
            window=None if left is None and right is None else Window(left, right),
            score=self._score(starts.shape[0] - 1, query.device),
            sinks=None if self.sinks is None else self.sinks.float(),
            varlen=Varlen.packed(starts, starts, longest, longest), out=out)
        return output
