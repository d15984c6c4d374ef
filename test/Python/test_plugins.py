#!/usr/bin/env python3
"""How others load Fovea, on the simulated device: a kernel of the Hugging Face hub's layout,
by `kernels` and by transformers where these are installed; and vLLM's plug-in.

vLLM itself is not here: the plug-in is held to a stub of its interface as 0.33.0 has it,
which is written below and is no more than that. Where PyTorch is missing nothing is run.
"""

import abc
import enum
import importlib.util
import pathlib
import re
import subprocess
import sys
import tempfile
import types
import unittest
from unittest import mock

try:
    import torch
except ImportError as error:
    print(f"not run: {error}")
    sys.exit(77)

import fovea
import fovea.vllm
from fovea import flash_attn

ROOT = pathlib.Path(__file__).resolve().parents[2]
REPOSITORY = "fovea/flash-attn"


def exact(q, k, v, left=None, right=None, sinks=None):
    """(heads, rows, head_dim), in fp64."""
    q, k, v = (tensor.double() for tensor in (q, k, v))
    k, v = (tensor.repeat_interleave(q.shape[0] // k.shape[0], 0) for tensor in (k, v))
    scores = q @ k.mT * q.shape[-1] ** -0.5
    i, j = torch.arange(q.shape[1])[:, None] + k.shape[1] - q.shape[1], torch.arange(k.shape[1])
    if left is not None:
        scores = scores.masked_fill(j < i - left, -torch.inf)
    if right is not None:
        scores = scores.masked_fill(j > i + right, -torch.inf)
    if sinks is not None:
        scores = torch.cat([scores, sinks.double()[:, None, None].expand(*scores.shape[:2], 1)], -1)
    return scores.softmax(-1)[..., :k.shape[1]] @ v


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(0)

    def close(self, got, wanted, bound=1e-4):
        self.assertEqual(got.shape, wanted.shape)
        self.assertLess((got - wanted).abs().max().item(),
                        bound * max(1, wanted.abs().max().item()))


class Hub(Case):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        subprocess.run([sys.executable, ROOT / "scripts" / "hub-kernel.py", self.folder],
                       check=True, capture_output=True)

    def kernel(self):
        """As a hub's repository that lies here."""
        if importlib.util.find_spec("kernels") is None:
            self.skipTest("the package kernels is not installed")
        import kernels
        from kernels import load
        load._parse_local_kernel_overrides.cache_clear()
        with mock.patch.dict("os.environ", LOCAL_KERNELS=f"{REPOSITORY}={self.folder}"):
            # Unasked it looks for the kernel of the GPUs that PyTorch was built for: CUDA's.
            backend = "rocm" if torch.version.hip else "cpu"
            return kernels.get_kernel(REPOSITORY, version=1, backend=backend)

    def test_loaded(self):
        kernel = self.kernel()
        self.assertIs(kernel.flash_attn_func, flash_attn.flash_attn_func)
        self.assertIs(kernel.flash_attn_varlen_func, flash_attn.flash_attn_varlen_func)

    def test_transformers(self):
        """A model takes it as it takes those of the hub, with padding unpacked by it. What
        looks for kernels is asked by transformers only in the versions that it knows, so it is
        handed what they find."""
        if importlib.util.find_spec("transformers") is None:
            self.skipTest("the package transformers is not installed")
        import transformers
        from transformers.integrations import hub_kernels
        transformers.logging.set_verbosity_error()
        kernel = self.kernel()
        sizes = dict(hidden_size=32, intermediate_size=32, num_hidden_layers=1, head_dim=16,
                     num_attention_heads=4, num_key_value_heads=2, vocab_size=64,
                     sliding_window=8, num_local_experts=2, num_experts_per_tok=1)
        ids = torch.randint(1, 64, (2, 20))
        mask = torch.ones_like(ids)
        mask[1, :7] = 0
        with mock.patch.object(hub_kernels, "get_kernel", lambda *_, **__: kernel), \
                mock.patch.object(hub_kernels, "is_kernels_available", lambda: True):
            for kind in transformers.MistralConfig, transformers.GptOssConfig:
                results = []
                for name in "eager", REPOSITORY:
                    torch.manual_seed(0)
                    config = kind(**sizes, attn_implementation=name)
                    model = transformers.AutoModelForCausalLM.from_config(config).eval()
                    results.append(model(ids, attention_mask=mask).logits[mask.bool()])
                self.close(results[1], results[0])

    def test_without_fovea(self):
        """What it says where nothing of it is installed."""
        said = subprocess.run(
            [sys.executable, "-I", "-c", f"import runpy; runpy.run_path("
             f"{str(self.folder / 'build' / 'torch-rocm' / '__init__.py')!r})"],
            capture_output=True, text=True, check=False)
        self.assertIn("this kernel needs the package fovea", said.stderr)


class Cache(Case):
    """flash_attn_with_kvcache, of which hub kernels have one too."""

    def test_cache(self):
        for seqlens in torch.tensor([9, 14], dtype=torch.int32), 9:
            with self.subTest(seqlens):
                q, new_k, new_v = (torch.randn(2, 3, n, 32) for n in (4, 2, 2))
                k, v = (torch.randn(2, 24, 2, 32) for _ in range(2))
                pad = torch.tensor([0, 5], dtype=torch.int32)
                lengths = [9, 14] if isinstance(seqlens, torch.Tensor) else [9, 9]
                out, lse = flash_attn.flash_attn_with_kvcache(
                    q, k, v, new_k, new_v, cache_seqlens=seqlens, cache_leftpad=pad,
                    causal=True, return_softmax_lse=True)
                self.assertEqual(lse.shape, (2, 4, 3))
                for z, n in enumerate(lengths):
                    self.assertTrue(torch.equal(k[z, n:n + 3], new_k[z]))
                    self.assertTrue(torch.equal(v[z, n:n + 3], new_v[z]))
                    seen = slice(int(pad[z]), n + 3)
                    self.close(out[z].transpose(0, 1), exact(
                        q[z].transpose(0, 1), k[z, seen].transpose(0, 1),
                        v[z, seen].transpose(0, 1), right=0))

    def test_refused(self):
        q = torch.randn(1, 1, 2, 32)
        for options, message in (
                ({"block_table": q}, "pages of a cache"), ({"rotary_cos": q}, "rotate q and k"),
                ({"cache_batch_idx": q}, "index the cache"), ({"k": q}, "given together"),
                ({"k": q, "v": q}, "without cache_seqlens")):
            with self.assertRaisesRegex(fovea.Error, message):
                flash_attn.flash_attn_with_kvcache(q, q, q, **options)


def stub():
    """What of vLLM 0.33.0 the plug-in touches: modules by their names."""
    backend = types.ModuleType("vllm.v1.attention.backend")

    class AttentionType(str, enum.Enum):
        DECODER, ENCODER = "decoder", "encoder"
        ENCODER_ONLY, ENCODER_DECODER = "encoder_only", "encoder_decoder"

    class AttentionBackend(abc.ABC):
        get_name = get_impl_cls = get_builder_cls = (
            staticmethod(abc.abstractmethod(lambda *_: None)))
        # What a backend does not say that it serves it is not asked for.
        supports_sink = supports_sliding_window = supports_non_causal = (
            classmethod(lambda _: False))

    class AttentionMetadata:
        pass

    class AttentionMetadataBuilder(abc.ABC):
        @abc.abstractmethod
        def __init__(self, kv_cache_spec, layer_names, vllm_config, device):
            self.layer_names, self.device = layer_names, device

        build = abc.abstractmethod(lambda *_: None)

    class AttentionImpl(abc.ABC):
        __init__ = abc.abstractmethod(lambda *_: None)
        forward = abc.abstractmethod(lambda *_: None)

    for kind in (AttentionType, AttentionBackend, AttentionMetadata, AttentionMetadataBuilder,
                 AttentionImpl):
        setattr(backend, kind.__name__, kind)

    registry = types.ModuleType("vllm.v1.attention.backends.registry")
    registered = {}

    class AttentionBackendEnum(enum.Enum):
        FLASH_ATTN = "flash"
        CUSTOM = None

        def is_overridden(self):
            return self in registered

        def get_path(self):
            return registered[self]

    registry.AttentionBackendEnum = AttentionBackendEnum
    registry.register_backend = registered.__setitem__
    modules = {name: types.ModuleType(name) for name in (
        "vllm", "vllm.v1", "vllm.v1.attention", "vllm.v1.attention.backends")}
    return {**modules, backend.__name__: backend, registry.__name__: registry}, registered


class VllmStub(Case):
    def setUp(self):
        super().setUp()
        modules, self.registered = stub()
        patch = mock.patch.dict(sys.modules, modules)
        patch.start()
        self.addCleanup(patch.stop)
        self.backend = modules["vllm.v1.attention.backend"]
        self.custom = modules["vllm.v1.attention.backends.registry"].AttentionBackendEnum.CUSTOM

    def taken(self):
        """The class, as vLLM finds it."""
        fovea.vllm.register()
        module, _, name = self.registered[self.custom].rpartition(".")
        sys.modules.pop(module, None)
        return getattr(importlib.import_module(module), name)

    def test_entry_point(self):
        text = (ROOT / "pyproject.toml").read_text()
        value = re.search(r'"vllm\.general_plugins"\]\nfovea = "(.*):(.*)"', text)
        self.assertEqual(value.groups(), ("fovea.vllm", "register"))
        for _ in range(2):  # in each of its processes, also twice
            fovea.vllm.register()
        self.assertEqual(self.registered, {self.custom: "fovea._vllm.FoveaAttentionBackend"})

    def test_another_has_the_name(self):
        self.registered[self.custom] = "other.Backend"
        with self.assertLogs("fovea", "WARNING") as log:
            fovea.vllm.register()
        self.assertIn("other.Backend already", log.output[0])
        self.assertEqual(self.registered[self.custom], "other.Backend")

    def test_what_is_asked(self):
        backend = self.taken()
        kinds = self.backend.AttentionType
        self.assertEqual([backend.supports_attn_type(kind) for kind in kinds],
                         [False, True, True, False])
        self.assertEqual([backend.supports_head_size(size) for size in (0, 72, 512, 513)],
                         [False, True, True, False])
        self.assertEqual([backend.supports_sink(), backend.supports_sliding_window(),
                          backend.supports_non_causal()], [True, True, False])
        self.assertEqual(backend.get_name(), self.custom.name)
        with self.assertRaisesRegex(fovea.NotFoundError, "without a cache alone.*pages"):
            backend.get_kv_cache_shape(1, 16, 2, 64)
        with self.assertRaisesRegex(fovea.NotFoundError, "attn_type is.*pages.*take another"):
            backend.get_impl_cls()(4, 32, 0.2, attn_type=kinds.DECODER)

    def test_forward(self):
        """Sequences of a batch, with rows behind them, and what layers ask."""
        backend = self.taken()
        starts = torch.tensor([0, 5, 18], dtype=torch.int32)
        common = types.SimpleNamespace(
            query_start_loc=starts, max_query_len=13, num_actual_tokens=18, causal=False)
        metadata = backend.get_builder_cls()(None, ["layer"], None, "cpu").build(0, common)
        q, k, v = (torch.randn(20, heads, 32) for heads in (4, 2, 2))
        sinks = torch.randn(4)
        for options, expected in (
                ({}, {}), ({"sliding_window": 4}, {"left": 3, "right": 3}),
                ({"sinks": sinks}, {"sinks": sinks})):
            layer = backend.get_impl_cls()(4, 32, 32 ** -0.5, 2,
                                           attn_type=self.backend.AttentionType.ENCODER_ONLY,
                                           **options)
            output = torch.full((20, 4, 32), 7.0)
            self.assertIs(layer.forward(None, q, k, v, torch.empty(0), metadata, output), output)
            self.assertTrue((output[18:] == 7).all())
            for a, b in ((0, 5), (5, 18)):
                self.close(output[a:b].transpose(0, 1),
                           exact(*(t[a:b].transpose(0, 1) for t in (q, k, v)), **expected))
        self.assertFalse(layer.forward(None, q, k, v, None, None, output).any())

        # A layer's sinks are there before their values.
        late = torch.zeros(4, dtype=torch.bfloat16)
        layer = backend.get_impl_cls()(4, 32, 32 ** -0.5, 2, sinks=late,
                                       attn_type=self.backend.AttentionType.ENCODER_ONLY)
        late.copy_(sinks)
        layer.forward(None, q, k, v, torch.empty(0), metadata, output)
        self.close(output[:5].transpose(0, 1),
                   exact(*(t[:5].transpose(0, 1) for t in (q, k, v)), sinks=late))
        with self.assertRaisesRegex(fovea.NotFoundError, "output_scale"):
            layer.forward(None, q, k, v, None, metadata, output, output_scale=sinks)

    def test_builder(self):
        builder = self.taken().get_builder_cls()(None, [], None, "cpu")
        common = types.SimpleNamespace(causal=torch.ones(2))
        with self.assertRaisesRegex(fovea.NotFoundError, "common_prefix_len is 16"):
            builder.build(16, common)
        with self.assertRaisesRegex(fovea.NotFoundError, "causal is a tensor"):
            builder.build(0, common)


if __name__ == "__main__":
    unittest.main()
