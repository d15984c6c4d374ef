"""What is built for each chip, and the problems that each build runs."""

from dataclasses import dataclass

# Chips that Triton and the simulated device know. Those that are the same to a
# compiler as an earlier one run only the cases marked `everywhere`.
CHIPS = ("gfx908", "gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1151", "gfx1201")
SIBLINGS = ("gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1152", "gfx1153", "gfx1200")

# Triton's name of each chip's fp8 with 4 bits of exponent.
FP8 = {"gfx942": "fp8e4b8", "gfx950": "fp8e4nv", "gfx1200": "fp8e4nv",
       "gfx1201": "fp8e4nv"}


@dataclass
class Attention:
    """Shapes of one problem. `layout` is the order of batch, head and sequence in
    memory; `padding` elements lie behind each row."""
    batch: int = 1
    heads: int = 2
    heads_k: int = 2
    seqlen_q: int = 256
    seqlen_k: int = 256
    layout: str = "bhs"
    padding: int = 0
    magnitude: float = 1.0


@dataclass
class AttentionCase:
    """One way to build the forward (or the backward's three) kernels, and its
    problems. `tuned` builds as a framework launches: multiples of 16 and 32-bit
    offsets promised; otherwise nothing is known of the arguments."""
    name: str
    kind: str
    dim: int
    causal: bool
    block: tuple
    options: dict
    problems: tuple
    tuned: bool = False
    backward: bool = False
    everywhere: bool = False

    @property
    def padded(self):
        return 1 << (self.dim - 1).bit_length()


ODD = Attention(heads=4, heads_k=2, seqlen_q=131, seqlen_k=197, layout="bsh",
                padding=8)
EMPTY_ROWS = Attention(batch=2, seqlen_q=150, seqlen_k=70, layout="sbh")
ONE = Attention(seqlen_q=1, seqlen_k=77)
LARGE = Attention(seqlen_q=64, seqlen_k=128, magnitude=30.0)

ATTENTION = (
    AttentionCase("tuned d128", "bf16", 128, True, (128, 64),
                  dict(num_warps=4, num_stages=1, waves_per_eu=2),
                  (Attention(), Attention(batch=2, heads=4, heads_k=1, seqlen_k=512)),
                  tuned=True),
    AttentionCase("pipelined d64", "fp16", 64, False, (128, 32),
                  dict(num_warps=4, num_stages=2),
                  (Attention(), Attention(seqlen_q=272, seqlen_k=208)), tuned=True),
    AttentionCase("unaligned d80", "fp16", 80, True, (64, 32),
                  dict(num_warps=4, num_stages=1), (ODD, EMPTY_ROWS, ONE),
                  everywhere=True),
    AttentionCase("one wave d32", "bf16", 32, False, (32, 32),
                  dict(num_warps=1, num_stages=1), (ODD, ONE, LARGE)),
    AttentionCase("eight waves d128", "fp16", 128, True, (128, 64),
                  dict(num_warps=8, num_stages=2), (Attention(), LARGE), tuned=True),
    AttentionCase("tuned d64", "bf16", 64, True, (64, 64),
                  dict(num_warps=4, num_stages=1),
                  (Attention(), Attention(heads=4, heads_k=2, seqlen_q=128)),
                  tuned=True, backward=True, everywhere=True),
    AttentionCase("unaligned d48", "fp16", 48, True, (32, 32),
                  dict(num_warps=4, num_stages=1), (ODD, EMPTY_ROWS, ONE),
                  backward=True),
    AttentionCase("full d128", "fp16", 128, False, (32, 64),
                  dict(num_warps=4, num_stages=2), (Attention(),), tuned=True,
                  backward=True),
)


@dataclass
class MatmulCase:
    """One way to build the product, and its (m, n, k). `transposed` B has its k
    contiguous."""
    name: str
    kind: str
    block: tuple
    options: dict
    problems: tuple
    out: str = "fp32"
    tuned: bool = False
    transposed: bool = False
    precision: str = "ieee"
    everywhere: bool = False
    only: tuple = ()


EVEN, TAILS = (256, 128, 192), (133, 71, 100)

MATMUL = (
    MatmulCase("2 stages", "fp16", (128, 128, 32),
               dict(num_warps=4, num_stages=2), (EVEN,), tuned=True, out="fp16"),
    MatmulCase("3 stages", "bf16", (64, 64, 64),
               dict(num_warps=4, num_stages=3), (EVEN,), tuned=True,
               transposed=True, everywhere=True),
    MatmulCase("tails", "fp16", (64, 32, 32), dict(num_warps=2, num_stages=1),
               (TAILS, EVEN)),
    MatmulCase("16-wide", "bf16", (64, 64, 32),
               dict(num_warps=4, num_stages=2, matrix_instr_nonkdim=16),
               (EVEN,), tuned=True, transposed=True),
    MatmulCase("32-wide", "fp16", (128, 64, 32),
               dict(num_warps=8, num_stages=2, matrix_instr_nonkdim=32),
               (EVEN,), tuned=True),
    MatmulCase("integers", "int8", (64, 64, 64), dict(num_warps=4, num_stages=2),
               (EVEN, TAILS), out="int32", transposed=True),
    MatmulCase("fp32", "fp32", (64, 64, 16), dict(num_warps=4, num_stages=2),
               (EVEN, TAILS)),
    MatmulCase("xf32", "fp32", (64, 64, 32), dict(num_warps=4, num_stages=2),
               (EVEN,), tuned=True, precision="tf32", only=("gfx942",)),
    MatmulCase("fp8", "fp8", (64, 64, 64), dict(num_warps=4, num_stages=1),
               (EVEN,), tuned=True, transposed=True, only=tuple(FP8)),
)
