"""Attention, an argument for each value.

q and out are (batch, heads, seqlen_q, head_dim), k and v (batch, heads_k,
seqlen_k, head_dim), v and out with a head_dim of their own; b without data or
(batch, heads, seqlen_q, seqlen_k); softmax_lse and delta fp32 (batch * heads,
seqlen_q). Of compact sequences batch is 1 and rows are those of all, cu_seqlens_*
int32 with one entry more than there are sequences; softmax_lse is (heads, rows of
q), up to 0.11 (sequences * heads, max_seqlen_q). is_causal counts from the top
left.
"""
from typing import Optional

#if MINOR < 13
from . import CppTune
#endif
from .. import Stream, T0, T1, T2, T4, hipError_t

def check_gpu(stream: Optional[Stream]) -> hipError_t:
    """hipSuccess when there are kernels of both passes for the device."""
def debug_simulate_encoded_softmax(
        r: T4, dropout_p: float, philox_seed_ptr: T0, philox_offset1: T0,
        philox_offset2: int, stream: Optional[Stream] = None) -> hipError_t:
    """Writes which weights dropout keeps, 0.5 and -0.5, of every place of `r`,
    (batch, heads, seqlen_q, seqlen_k)."""
#if MINOR < 13

class FwdExtraArguments(CppTune):
    """Empty: nothing is tuned here."""
    def __init__(self) -> None: ...
class BwdExtraArguments:
    """Empty: nothing is tuned here."""
    def __init__(self) -> None: ...
class FusedBwdExtraArguments(CppTune):
    """Empty: nothing is tuned here."""
    def __init__(self) -> None: ...

def attn_fwd(
        q: T4, k: T4, v: T4, b: T4, sm_scale: float, softmax_lse: T2, out: T4,
        dropout_p: float, philox_seed: T0, philox_offset1: T0,
        philox_offset2: int, philox_seed_output: T0, philox_offset_output: T0,
        encoded_softmax: T4, is_causal: bool, atomic_for_causal: T0,
        stream: Optional[Stream] = None,
        extargs: Optional[FwdExtraArguments] = None) -> hipError_t:
    """Attention, forward. atomic_for_causal is not needed."""
def attn_fwd_compact_varlen(
        q: T4, k: T4, v: T4, b: T4, cu_seqlens_q: T1, cu_seqlens_k: T1,
        max_seqlen_q: int, max_seqlen_k: int, sm_scale: float, softmax_lse: T2,
        out: T4, dropout_p: float, philox_seed: T0, philox_offset1: T0,
        philox_offset2: int, philox_seed_output: T0, philox_offset_output: T0,
        encoded_softmax: T4, is_causal: bool, atomic_for_causal: T0,
        stream: Optional[Stream] = None,
        extargs: Optional[FwdExtraArguments] = None) -> hipError_t:
    """Attention of sequences one behind the other, forward."""
def attn_bwd(
        q: T4, k: T4, v: T4, b: T4, sm_scale: float, out: T4, dout: T4, dq: T4,
        dk: T4, dv: T4, db: T4, softmax_lse: T2, delta: T2, dropout_p: float,
        philox_seed: T0, philox_offset1: T0, philox_offset2: int,
        is_causal: bool, stream: Optional[Stream] = None,
        extargs: Optional[BwdExtraArguments] = None) -> hipError_t:
    """Attention, backward; `delta` is the workspace."""
def attn_bwd_fused(
        q: T4, k: T4, v: T4, b: T4, sm_scale: float, out: T4, dout: T4, dq: T4,
        dk: T4, dv: T4, db: T4, softmax_lse: T2, dropout_p: float,
        philox_seed: T0, philox_offset1: T0, philox_offset2: int,
        is_causal: bool, stream: Optional[Stream] = None,
        extargs: Optional[FusedBwdExtraArguments] = None) -> hipError_t:
    """Attention, backward, without a workspace: hipErrorNotSupported unless
    FOVEA_AOTRITON_WORKSPACE is allocate."""
def attn_bwd_compact_varlen(
        q: T4, k: T4, v: T4, cu_seqlens_q: T1, cu_seqlens_k: T1,
        max_seqlen_q: int, max_seqlen_k: int, b: T4, sm_scale: float, out: T4,
        dout: T4, dq: T4, dk: T4, dv: T4, db: T4, softmax_lse: T2, delta: T2,
        dropout_p: float, philox_seed: T0, philox_offset1: T0,
        philox_offset2: int, is_causal: bool, stream: Optional[Stream] = None,
        extargs: Optional[BwdExtraArguments] = None) -> hipError_t:
    """Attention of sequences one behind the other, backward."""
#endif
