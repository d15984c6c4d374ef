"""Attention, with structures of parameters. A field that is not set is none."""
from typing import ClassVar, Optional

from .. import Stream, T0, T1, T2, T4, hipError_t
#if MINOR >= 11
from ..lazy_tensor import LT2, LT4
#endif

class attn_options:
    """How a call is to be served."""
    def __init__(self) -> None: ...
#if MINOR >= 11
    force_backend_index: int
    """-1: the library chooses."""
#endif
#if MINOR >= 12
    deterministic: bool
    """Gradients are the same in every run."""
#endif
#if MINOR >= 14

class VarlenMode:
    """How the sequences of one side lie in memory. ValueError for numbers that
    have no place in a field."""
    def __init__(self) -> None: ...
    stacked: int
    """VarlenStacked."""
    length: int
    """VarlenLength."""
    position: int
    """VarlenPosition."""
class VarlenBits:
    """How sequences of different lengths lie in memory."""
    def __init__(self) -> None: ...
    qmode: VarlenMode
    kmode: VarlenMode
    lse_layout: int
    """VarlenLseLayout."""
class VarlenStacked:
    BHSD: ClassVar[int]
    THD: ClassVar[int]
class VarlenLength:
    MAX: ClassVar[int]
    CUMULATIVE: ClassVar[int]
    INDIVIDUAL: ClassVar[int]
class VarlenPosition:
    IMPLIED: ClassVar[int]
    REUSE: ClassVar[int]
    ARRAY: ClassVar[int]
class VarlenLseLayout:
    HT: ClassVar[int]
    TH: ClassVar[int]

def varlen_to_wire(varlen_bits: VarlenBits) -> int:
    """The word that these bits are."""
#endif

class attn_fwd_params:
    """Parameters of a forward pass."""
    def __init__(self) -> None: ...
    kVersion: ClassVar[int]
    Q: T4
    """(batch, heads, seqlen_q, head_dim); stacked (1, heads, rows, head_dim)."""
    K: T4
    """(batch, heads_k, seqlen_k, head_dim)."""
    V: T4
    """As K, with a head_dim of its own."""
    B: T4
    """None, or added to the scores: (batch, heads, seqlen_q, seqlen_k)."""
    Sm_scale: float
    L: T2
    """The log-sum-exp, fp32: (batch * heads, seqlen_q); of stacked sequences
    docs/AOTriton.md."""
    Out: T4
    """As Q, with the head_dim of V."""
    Max_seqlen_q: int
    """The longest sequence. Not looked at where the tensors say it."""
    Max_seqlen_k: int
    dropout_p: float
    philox_seed_ptr: T0
    """On the device, kInt64 or kUInt64; not looked at without dropout."""
    philox_offset1: T0
    philox_offset2: int
    causal_type: int
    """0: none, 3: windowed."""
    window_left: int
    """Not looked at without a mask."""
    window_right: int
#if MINOR >= 14
    seqinfo_q0: T1
    """Lengths, int32."""
    seqinfo_k0: T1
    seqinfo_q1: T1
    """Positions, int32."""
    seqinfo_k1: T1
    varlen_bits: VarlenBits
#else
    cu_seqlens_q: T1
    """Sums of lengths, int32: one entry more than there are sequences."""
    cu_seqlens_k: T1
    varlen_type: int
    """0: none, 1: compact, 2: padded, 3: strided (from 0.12 on)."""
#endif
#if MINOR == 12
    seq_strides_q: T1
    """Where each sequence begins, in rows, int32; or no data."""
    seq_strides_k: T1
#endif
    philox_seed_output: T0
    """Receives the seed where there is dropout; or no data."""
    philox_offset_output: T0
    encoded_softmax: T4
    """Receives which weights are kept, (batch, heads, seqlen_q, seqlen_k); or no
    data."""
    persistent_atomic_counter: T0
    """Not needed."""

class attn_bwd_params:
    """Parameters of a backward pass."""
    def __init__(self) -> None: ...
    kVersion: ClassVar[int]
    Q: T4
    """(batch, heads, seqlen_q, head_dim); stacked (1, heads, rows, head_dim)."""
    K: T4
    """(batch, heads_k, seqlen_k, head_dim)."""
    V: T4
    """As K, with a head_dim of its own."""
    B: T4
    """None, or added to the scores: (batch, heads, seqlen_q, seqlen_k)."""
    Sm_scale: float
    L: T2
    """The log-sum-exp, fp32: (batch * heads, seqlen_q); of stacked sequences
    docs/AOTriton.md."""
    Out: T4
    """As Q, with the head_dim of V."""
    Max_seqlen_q: int
    """The longest sequence. Not looked at where the tensors say it."""
    Max_seqlen_k: int
    dropout_p: float
    philox_seed_ptr: T0
    """On the device, kInt64 or kUInt64; not looked at without dropout."""
    philox_offset1: T0
    philox_offset2: int
    causal_type: int
    """0: none, 3: windowed."""
    window_left: int
    """Not looked at without a mask."""
    window_right: int
#if MINOR >= 14
    seqinfo_q0: T1
    """Lengths, int32."""
    seqinfo_k0: T1
    seqinfo_q1: T1
    """Positions, int32."""
    seqinfo_k1: T1
    varlen_bits: VarlenBits
#else
    cu_seqlens_q: T1
    """Sums of lengths, int32: one entry more than there are sequences."""
    cu_seqlens_k: T1
    varlen_type: int
    """0: none, 1: compact, 2: padded, 3: strided (from 0.12 on)."""
#endif
#if MINOR == 12
    seq_strides_q: T1
    """Where each sequence begins, in rows, int32; or no data."""
    seq_strides_k: T1
#endif
    DO: T4
    """As Out."""
    DK: T4
    """As K."""
    DV: T4
    """As V."""
    DQ: T4
    """As Q."""
    DB: T4
    """No data, or receives the gradient of B, of its shape."""
#if MINOR >= 11
    D: Optional[LT2]
    """The workspace: of the shape of L."""
    DQ_ACC: Optional[LT4]
    """The other workspace."""
#else
    D: T2
    """The workspace: fp32, of the shape of L."""
#endif

def attn_fwd(
        params: attn_fwd_params, params_version: int,
        stream: Optional[Stream] = None,
        options: Optional[attn_options] = None) -> hipError_t:
    """Attention, forward. params_version is attn_fwd_params.kVersion."""
def attn_bwd(
        params: attn_bwd_params, params_version: int,
        stream: Optional[Stream] = None,
        options: Optional[attn_options] = None) -> hipError_t:
    """Attention, backward. params_version is attn_bwd_params.kVersion."""
#if MINOR == 11
def aiter_bwd(
        params: attn_bwd_params, params_version: int,
        stream: Optional[Stream] = None,
        options: Optional[attn_options] = None) -> hipError_t:
    """As attn_bwd: there are no kernels of AITER's."""
#endif
