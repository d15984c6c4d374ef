#!/usr/bin/env python3
"""Models of Hugging Face diffusers on the simulated device: outputs and gradients held to
those of their default attention.

Models are small, their weights random, in fp32; kernels are compiled on demand. Where
PyTorch or diffusers is missing nothing is run.
"""

import sys
import unittest
from unittest import mock

try:
    import torch
    import diffusers
    from diffusers.models import attention_dispatch as dispatch
except ImportError as error:
    print(f"not run: {error}")
    sys.exit(77)
diffusers.logging.set_verbosity_error()

import fovea
import fovea.diffusers as fd
import fovea.torch

BOUND = 2e-4  # fp32, of the largest number


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def close(self, one, other):
        self.assertEqual(one.shape, other.shape)
        self.assertLess((one - other).abs().max().item(),
                        BOUND * max(1, other.abs().max().item()))

    def results(self, model, **inputs):
        """Output and all gradients."""
        model.zero_grad()
        out = model(**inputs, return_dict=False)[0]
        (out * torch.linspace(-1, 1, out.numel()).view_as(out)).sum().backward()
        return [out.detach(), *(parameter.grad for parameter in model.parameters()
                                if parameter.grad is not None)]

    def same(self, results, wanted):
        self.assertEqual(len(results), len(wanted))
        for got, expected in zip(results, wanted):
            self.close(got, expected)


class Dispatcher(Case):
    def numbers(self, *shape):
        return torch.randn(*shape, requires_grad=True)

    def test_calls(self):
        """Against the backend native, gradients too."""
        seen = torch.rand(2, 12) < 0.7
        seen[:, 0] = True
        for head_dim, options in (
                (40, {}), (80, {"is_causal": True}), (160, {"scale": 0.3}),
                (64, {"attn_mask": seen}), (64, {"attn_mask": torch.randn(2, 1, 9, 12)}),
                (64, {"attn_mask": torch.randn(9, 12)}), (64, {"enable_gqa": True})):
            with self.subTest((head_dim, options.keys())):
                heads = 2 if "enable_gqa" in options else 4
                q = self.numbers(2, 9, 4, head_dim)
                k, v = (self.numbers(2, 12, heads, head_dim) for _ in range(2))
                results = []
                for name in "native", fd.NAME:
                    with dispatch.attention_backend(name):
                        out = dispatch.dispatch_attention_fn(q, k, v, **options)
                    results.append((out, *torch.autograd.grad(out.square().sum(), (q, k, v))))
                self.same(*reversed(results))

    def test_log_sum_exp(self):
        q, k, v = (torch.randn(1, 9, 2, 32) for _ in range(3))
        _, lse = dispatch.dispatch_attention_fn(
            q, k, v, backend=fd.NAME, attention_kwargs={"return_lse": True})
        scores = q.transpose(1, 2) @ k.transpose(1, 2).mT * 32 ** -0.5
        self.close(lse, scores.logsumexp(-1).transpose(1, 2))

    def test_refused(self):
        q, k = torch.randn(1, 9, 4, 32), torch.randn(1, 9, 2, 32)
        with self.assertRaisesRegex(fovea.Error, "heads that share keys"):
            fd.attention(q, k, k)
        with self.assertRaisesRegex(fovea.Error, "no context parallelism of diffusers"):
            fd.attention(q, q, q, _parallel_config=object())
        self.assertNotIn(fd.NAME, dispatch._AttentionBackendRegistry._supports_context_parallel)

    def test_name(self):
        """It is a member as the others are."""
        names = dispatch.AttentionBackendName
        self.assertIs(names(fd.NAME), names.FOVEA)
        self.assertIs(names["FOVEA"], names.FOVEA)
        self.assertIn(names.FOVEA, list(names))
        self.assertEqual((names.FOVEA.value, names.FOVEA.name), ("fovea", "FOVEA"))

    def test_transformer(self):
        """A model that dispatches, by its own function: Flux, text beside the image."""
        model = diffusers.FluxTransformer2DModel(
            patch_size=1, in_channels=4, num_layers=1, num_single_layers=1,
            attention_head_dim=16, num_attention_heads=2, joint_attention_dim=32,
            pooled_projection_dim=32, axes_dims_rope=[4, 4, 8])
        inputs = dict(hidden_states=torch.randn(1, 16, 4), timestep=torch.ones(1),
                      encoder_hidden_states=torch.randn(1, 7, 32),
                      pooled_projections=torch.randn(1, 32), txt_ids=torch.zeros(7, 3),
                      img_ids=torch.zeros(16, 3))
        wanted = self.results(model, **inputs)
        calls = []
        real = fovea.torch.attention
        try:
            model.set_attention_backend(fd.NAME)
            with mock.patch.object(
                    fovea.torch, "attention",
                    lambda *a, **o: (calls.append(a[0].shape), real(*a, **o))[1]):
                results = self.results(model, **inputs)
        finally:
            model.reset_attention_backend()
            dispatch._AttentionBackendRegistry.set_active_backend(
                dispatch.AttentionBackendName.NATIVE)
        self.same(results, wanted)
        self.assertEqual(calls, [(1, 2, 23, 16)] * 2)


class UNet(Case):
    """Its layers call scaled_dot_product_attention, past the dispatcher."""

    def test_unet(self):
        """Head dimensions 40, 80 and 160 of Stable Diffusion 1.5, cross-attention too."""
        model = diffusers.UNet2DConditionModel(
            sample_size=8, layers_per_block=1, block_out_channels=(40, 80, 160),
            attention_head_dim=1, norm_num_groups=8, cross_attention_dim=32,
            down_block_types=("CrossAttnDownBlock2D",) * 3,
            up_block_types=("CrossAttnUpBlock2D",) * 3)
        inputs = dict(sample=torch.randn(1, 4, 8, 8), timestep=torch.tensor(5),
                      encoder_hidden_states=torch.randn(1, 7, 32))
        wanted = self.results(model, **inputs)
        before = fovea.torch.calls()
        with fovea.torch.enable(fallback=False):
            results = self.results(model, **inputs)
        self.same(results, wanted)
        calls = {key: number - before.get(key, 0)
                 for key, number in fovea.torch.calls().items()}
        self.assertEqual(sum(number for (name, kind), number in calls.items()
                             if kind == "fovea"), 2 * 2 * 10)
        self.assertFalse(sum(number for (_, kind), number in calls.items()
                             if kind == "pytorch"))


if __name__ == "__main__":
    unittest.main()
