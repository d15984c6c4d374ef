"""What tests of fovea.torch share: tensors, comparisons, PyTorch's attention in fp64.

Kernels are compiled on demand. Where PyTorch is missing nothing is run.
"""

import math
import sys
import unittest

try:
    import torch
except ImportError:
    print("not run: PyTorch is not installed")
    sys.exit(77)


def numbers(*shape, dtype=torch.float16):
    return torch.randn(*shape, dtype=dtype).requires_grad_()


def exact(q, k, v, mask="none", bias=None):
    """out and lse in fp64."""
    q, k, v = (tensor.double() for tensor in (q, k, v))
    k, v = (tensor.repeat_interleave(q.shape[1] // k.shape[1], 1) for tensor in (k, v))
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    if bias is not None:
        scores = scores + bias.double()
    if mask == "causal-top-left":
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, -math.inf)
    return scores.softmax(-1) @ v, scores.logsumexp(-1)


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def close(self, got, expected, bound=4e-3):
        for one, other in zip(got, expected, strict=True):
            self.assertEqual(one.shape, other.shape)
            error = (one.double() - other.double()).abs().max().item()
            self.assertLess(error, bound * max(1, other.abs().max().item()))

    def gradients(self, results, inputs):
        loss = sum((result * result).sum() for result in results)
        return torch.autograd.grad(loss, inputs)
