"""Prints recognize-sdpa-torch.mlir, or recognize-sdpa-dynamic.mlir with `dynamic`: what
torch-mlir makes of PyTorch's attention.

Needs what the tests do not: pip install torch==2.13.0 torch-mlir==20261001
"""

import sys

import torch
from torch.nn.functional import scaled_dot_product_attention
from torch_mlir import fx


class Attention(torch.nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.options = options

    def forward(self, q, k, v, mask=None):
        return scaled_dot_product_attention(q, k, v, attn_mask=mask, **self.options)


def print_text(name, dtype, q, k, mask=None, lengths=None, **options):
    tensors = [torch.zeros(shape, dtype=dtype) for shape in (q, k, k)]
    if mask:
        tensors.append(torch.zeros(mask, dtype=torch.bool))
    program = Attention(**options)
    if lengths:
        of_q, of_k = (torch.export.Dim(name, max=4096) for name in lengths)
        shapes = {"q": {2: of_q}, "k": {2: of_k}, "v": {2: of_k},
                  "mask": {2: of_q, 3: of_k} if mask else None}
        program = torch.export.export(program, tuple(tensors),
                                      dynamic_shapes=dict(list(shapes.items())[:len(tensors)]))
        tensors = []
    print(fx.export_and_import(program, *tensors, func_name=name,
                               output_type="linalg-on-tensors"))
    print("// -----")


ROWS = (2, 4, 64, 64)
if sys.argv[1:] == ["dynamic"]:
    print_text("self", torch.float16, ROWS, ROWS, is_causal=True, lengths=("n", "n"))
    print_text("cross", torch.bfloat16, ROWS, (2, 2, 96, 64), mask=(2, 1, 64, 96),
               lengths=("n", "m"), enable_gqa=True)
    sys.exit()
print_text("plain", torch.float16, ROWS, (2, 4, 96, 64))
print_text("causal", torch.bfloat16, ROWS, ROWS, is_causal=True)
print_text("groups", torch.float16, ROWS, (2, 2, 96, 64), enable_gqa=True, scale=0.3)
print_text("rank3", torch.float16, (8, 64, 64), (8, 96, 64))
print_text("mask", torch.float16, ROWS, ROWS, mask=(2, 1, 64, 64))
print_text("single", torch.float32, ROWS, ROWS)
