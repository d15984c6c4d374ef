"""Prints block.mlir: pip install torch==2.13.0 torch-mlir==20261001"""

import torch
from torch.nn.functional import scaled_dot_product_attention
from torch_mlir import fx


class Block(torch.nn.Module):
    """Causal self-attention of a small language model: 8 heads of 64."""

    def forward(self, q, k, v):  # [batch, length, heads * 64]
        heads = [x.unflatten(2, (8, 64)).transpose(1, 2) for x in (q, k, v)]
        out = scaled_dot_product_attention(*heads, is_causal=True)
        return out.transpose(1, 2).flatten(2)


rows = [torch.zeros(2, 96, 512, dtype=torch.bfloat16) for _ in range(3)]
print(fx.export_and_import(Block(), *rows, func_name="block",
                           output_type="linalg-on-tensors"))
