#!/usr/bin/env python3
"""Models of Hugging Face transformers with attn_implementation="fovea", on the simulated
device: logits, gradients and generated tokens held to those of eager attention.

Models are small, their weights random, in fp32; kernels are compiled on demand. Where
PyTorch or transformers is missing nothing is run.
"""

import copy
import sys
import unittest
from unittest import mock

try:
    import torch
    import transformers
    from transformers import masking_utils
except ImportError as error:
    print(f"not run: {error}")
    sys.exit(77)
transformers.logging.set_verbosity_error()

import fovea
import fovea.torch
import fovea.transformers as ft

SIZES = dict(hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=4,
             num_key_value_heads=2, head_dim=16, vocab_size=64, max_position_embeddings=128,
             pad_token_id=0, bos_token_id=1, eos_token_id=None, initializer_range=0.3)
NAMES = ("eager", "fovea")
BOUND = 2e-4  # fp32, of the largest number


def llama(**options):
    return transformers.LlamaConfig(**{**SIZES, **options})


def mistral(**options):
    return transformers.MistralConfig(**{**SIZES, "sliding_window": 8, **options})


def gemma2(**options):  # every second layer has a window
    return transformers.Gemma2Config(**{
        **SIZES, "sliding_window": 8, "attn_logit_softcapping": 2.0,
        "query_pre_attn_scalar": 16, **options})


def gpt_oss(**options):
    return transformers.GptOssConfig(**{
        **SIZES, "sliding_window": 8, "num_local_experts": 2, "num_experts_per_tok": 1,
        **options})


def models(config, kind=transformers.AutoModelForCausalLM):
    """The same weights with each attention."""
    torch.manual_seed(0)
    made = []
    for name in NAMES:
        given = copy.deepcopy(config)
        given._attn_implementation = name
        made.append((kind.from_config if hasattr(kind, "from_config") else kind)(given))
    made[1].load_state_dict(made[0].state_dict())
    for model in made:
        model.eval()
        for module in model.modules():  # drawn, where they begin as zeros
            if hasattr(module, "sinks"):
                module.sinks.data.copy_(torch.linspace(-1, 1, module.sinks.numel()))
    return made


def tokens(batch=2, length=20):
    return torch.randint(2, SIZES["vocab_size"], (batch, length))


def padding(*sides, length=20):
    """(batch, length): first and last token of each sequence."""
    at = torch.arange(length)
    return torch.stack([(at >= first) & (at < last) for first, last in sides]).long()


class Case(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        self.calls = []
        real = fovea.torch.attention

        def attention(*arguments, **options):
            self.calls.append(options)
            return real(*arguments, **options)

        patch = mock.patch.object(fovea.torch, "attention", attention)
        patch.start()
        self.addCleanup(patch.stop)

    def close(self, one, other):
        self.assertEqual(one.shape, other.shape)
        self.assertLess((one - other).abs().max().item(),
                        BOUND * max(1, other.abs().max().item()))

    def both(self, config, valid=None, kind=transformers.AutoModelForCausalLM, **inputs):
        """Logits and all gradients, of tokens that are not padding."""
        results = []
        for model in models(config, kind):
            logits = model(**inputs)[0]
            weights = torch.linspace(-1, 1, logits[0].numel()).view_as(logits[0])
            if valid is not None:
                logits = logits * valid[..., None]
            (logits * weights).sum().backward()
            results.append([logits.detach(), *(
                parameter.grad for parameter in model.parameters()
                if parameter.grad is not None)])
        self.assertEqual(*map(len, results))
        self.assertTrue(self.calls)
        for expected, got in zip(*results):
            self.close(got, expected)

    def program(self):
        """What calls had for programs."""
        return {None if call["score"] is None else call["score"].program
                for call in self.calls}


class Logits(Case):
    def test_llama(self):
        self.both(llama(), input_ids=tokens())
        self.assertEqual(self.program(), {None})

    def test_padding(self):
        for sides in ((0, 20), (7, 20)), ((0, 20), (0, 11)), ((3, 20), (2, 11)):
            with self.subTest(sides):
                mask = padding(*sides)
                self.both(llama(), mask, input_ids=tokens(), attention_mask=mask)
                # By lengths and starts, past which nothing is computed.
                self.assertEqual(self.program(), {None})
                self.assertIsNotNone(self.calls[-1]["varlen"])

    def test_holes_in_the_mask(self):
        mask = padding((0, 20), (0, 20))
        mask[1, 5:9] = 0
        self.both(llama(), mask, input_ids=tokens(), attention_mask=mask)
        self.assertEqual(self.program(), {"bias_bool"})

    def test_packed(self):
        positions = torch.cat([torch.arange(n) for n in (3, 9, 8)])[None].expand(2, -1)
        for config in llama(), mistral(sliding_window=4):
            self.both(config, input_ids=tokens(), position_ids=positions, use_cache=False)
            self.assertIsNotNone(self.calls[-1]["varlen"])

    def test_lengths_of_packed_sequences(self):
        """As the collator for flash_attention_2 hands them on."""
        ids = tokens(1)
        positions = torch.cat([torch.arange(n) for n in (3, 9, 8)])[None]
        sums = torch.tensor([0, 3, 12, 20], dtype=torch.int32)
        plain, model = models(llama())
        got = model(ids, position_ids=positions, use_cache=False, cu_seq_lens_q=sums,
                    cu_seq_lens_k=sums, max_length_q=9, max_length_k=9).logits
        self.close(got, plain(ids, position_ids=positions, use_cache=False).logits)
        self.assertIs(self.calls[-1]["varlen"].q.cumulative, sums)
        with self.assertRaisesRegex(fovea.InvalidArgumentError, "max_length_q"):
            model(ids, use_cache=False, cu_seq_lens_q=sums, cu_seq_lens_k=sums)

    def test_sliding_window(self):
        self.both(mistral(), input_ids=tokens())
        self.assertEqual(self.calls[-1]["window"], fovea.Window(7, 0))
        mask = padding((0, 20), (7, 20))
        self.both(mistral(), mask, input_ids=tokens(), attention_mask=mask)
        self.assertEqual(self.program(), {None})

    def test_softcap(self):
        self.both(gemma2(), input_ids=tokens())
        self.assertEqual(self.program(), {"softcap"})
        self.assertEqual({call["window"] for call in self.calls},
                         {fovea.Window(None, 0), fovea.Window(7, 0)})

    def test_sinks(self):
        mask = padding((0, 20), (0, 20))
        self.both(gpt_oss(), mask, input_ids=tokens(), attention_mask=mask)
        self.assertIsNotNone(self.calls[-1]["sinks"])

    def test_mask_of_four_dimensions(self):
        """Numbers that are added, of a program of one's own."""
        whole = torch.zeros(2, 1, 20, 20).masked_fill_(
            torch.rand(2, 1, 20, 20) < 0.3, torch.finfo(torch.float32).min)
        whole[..., 0] = 0
        self.both(llama(), input_ids=tokens(), attention_mask=whole, use_cache=False)
        self.assertEqual(self.program(), {"bias"})

    def test_encoder(self):
        config = transformers.BertConfig(**{**SIZES, "hidden_size": 64})
        mask = padding((0, 20), (0, 11))
        self.both(config, mask, transformers.BertForMaskedLM, input_ids=tokens(),
                  attention_mask=mask)
        self.assertEqual(self.program(), {None})

    def test_half(self):
        """bf16, as models run."""
        plain, model = (model.bfloat16() for model in models(llama()))
        ids = tokens()
        exact = models(llama())[0](ids).logits
        errors = [(one(ids).logits.float() - exact).abs().max() for one in (plain, model)]
        self.assertLess(errors[1], 1.5 * errors[0])

    def test_dropout(self):
        _, model = models(llama(attention_dropout=0.5))
        ids = tokens()
        still = model(ids).logits
        model.train()
        torch.manual_seed(3)
        first = model(ids).logits
        torch.manual_seed(3)
        self.assertTrue(torch.equal(first, model(ids).logits))
        self.assertFalse(torch.equal(first, still))
        self.assertEqual([call["dropout_p"] for call in self.calls], [0.0] * 2 + [0.5] * 4)


class Generated(Case):
    def generated(self, config, **options):
        ids = tokens(2, 10)
        mask = padding((0, 10), (4, 10), length=10)
        results = [model.generate(
            ids, attention_mask=mask, max_new_tokens=8, do_sample=False,
            return_dict_in_generate=True, output_logits=True, **options)
            for model in models(config)]
        self.assertTrue(torch.equal(*(result.sequences for result in results)))
        self.close(*(torch.stack(result.logits) for result in reversed(results)))

    def test_dynamic(self):
        for config in llama(), mistral(), gpt_oss():
            with self.subTest(config.model_type):
                self.generated(config)
                self.assertEqual(self.program(), {None})

    def test_static(self):
        for config in llama(), gemma2():
            with self.subTest(config.model_type):
                self.generated(config, cache_implementation="static")

    def test_steps_of_several_tokens(self):
        """A prompt in pieces, with a cache: masks stand at the corner of the keys."""
        ids = tokens()
        for config in llama(), mistral():
            plain, model = models(config)
            first = model(ids[:, :9])
            second = model(ids[:, 9:], cache=first.past_key_values)
            self.close(torch.cat([first.logits, second.logits], 1), plain(ids).logits)


class Masks(unittest.TestCase):
    """Which form a mask gets, and that it says the same as that of sdpa."""

    def form(self, function, length=12, queries=12, offset=0, mask=None, start=0):
        given = dict(batch_size=2, q_length=queries, kv_length=length, q_offset=offset,
                     kv_offset=start, mask_function=function, attention_mask=mask,
                     allow_is_causal_skip=False)
        return ft.mask(**given), masking_utils.sdpa_mask(**given)

    def shown(self, mask, queries):
        """What a window, padding and keys show, as booleans (batch, queries, keys)."""
        seen = getattr(mask, ft._ATTRIBUTE)
        rows = torch.zeros(2, queries, seen.keys, dtype=torch.bool)
        of_q = seen.varlen.q if seen.varlen else fovea.Sequences()
        of_k = seen.varlen.k if seen.varlen else fovea.Sequences()
        for z in range(2):
            (q0, m), (k0, n) = (
                (0, most) if side.starts is None else
                (int(side.starts[z]), int(side.lengths[z]))
                for side, most in ((of_q, queries), (of_k, seen.keys)))
            i, j = torch.arange(m)[:, None] + n - m, torch.arange(n)
            ok = torch.ones(m, n, dtype=torch.bool)
            if seen.window is not None:
                if seen.window.left is not None:
                    ok &= j >= i - seen.window.left
                if seen.window.right is not None:
                    ok &= j <= i + seen.window.right
            rows[z, q0:q0 + m, k0:k0 + n] = ok
        return rows

    def test_forms(self):
        causal = masking_utils.causal_mask_function
        window = masking_utils.sliding_window_causal_mask_function(5)
        both = masking_utils.sliding_window_bidirectional_mask_function(3)
        everything = masking_utils.bidirectional_mask_function
        left = padding((0, 12), (4, 12), length=12).bool()
        right = padding((1, 9), (0, 12), length=12).bool()
        for function in causal, window, both, everything:
            for mask in None, left, right:
                for queries, offset in (12, 0), (3, 9), (1, 11):
                    if mask is right and offset:
                        continue  # a query that is padding: in full, below
                    with self.subTest((function, mask, queries)):
                        got, whole = self.form(function, 12, queries, offset, mask)
                        if got is None:
                            self.assertIn(function, (causal, everything))
                            self.assertTrue(queries == 12 or whole.all())
                            continue
                        self.assertEqual(got.dim(), 2)
                        shown = self.shown(got, queries)
                        wanted = whole[:, 0, :, :shown.shape[2]].clone()
                        self.assertFalse(whole[..., shown.shape[2]:].any())
                        if function is not everything and mask is not None:
                            wanted &= mask[:, offset:offset + queries, None]
                        self.assertTrue(torch.equal(shown, wanted))

    def test_cache_of_a_window(self):
        """Keys begin at a position; those before it are gone."""
        window = masking_utils.sliding_window_causal_mask_function(5)
        left = padding((0, 12), (4, 12), length=12).bool()
        got, whole = self.form(window, 5, 1, 11, left, start=7)
        self.assertTrue(torch.equal(self.shown(got, 1), whole[:, 0]))

    def test_in_full(self):
        """What has no form of arguments is booleans, as sdpa's."""
        causal = masking_utils.causal_mask_function
        right = padding((0, 8), (0, 12), length=12).bool()
        for function, mask, queries, offset in (
                (lambda b, h, i, j: j <= i + 1, None, 12, 0),
                (masking_utils.chunked_causal_mask_function(4, torch.zeros(2).int()), None, 12, 0),
                (masking_utils.or_masks(causal, causal), None, 12, 0),
                (causal, right, 3, 9)):
            got, whole = self.form(function, 12, queries, offset, mask)
            self.assertTrue(torch.equal(got, whole))

    def test_static_cache(self):
        got, whole = self.form(masking_utils.causal_mask_function, 32, 4, torch.tensor(6))
        self.assertEqual(getattr(got, ft._ATTRIBUTE).keys, 10)
        self.assertTrue(torch.equal(self.shown(got, 4), whole[:, 0, :, :10]))


class Refused(Case):
    def call(self, mask=None, **options):
        q = torch.randn(2, 4, 12, 16)
        return ft.attention(torch.nn.Module(), q, q, q, mask, **options)

    def test_refused(self):
        for options, message in (
                ({"head_mask": torch.ones(4)}, "head_mask is given"),
                ({"block_table": torch.ones(4)}, "block_table is given: pages"),
                ({"mask": torch.ones(2, 12)}, "shape \\(2, 12\\), neither.*several devices")):
            with self.assertRaisesRegex(fovea.Error, message):
                self.call(**options)

    def test_a_mask_for_other_keys(self):
        mask = ft.mask(2, 12, 24, mask_function=masking_utils.bidirectional_mask_function,
                       attention_mask=padding((0, 24), (5, 24), length=24).bool())
        with self.assertRaisesRegex(fovea.Error, "key 12, and the mask is for 12 and 24"):
            self.call(mask)
        with self.assertRaisesRegex(fovea.Error, "query has 12 rows.*the mask is for 3 and 12"):
            self.call(ft.mask(2, 3, 12, 9))

    def test_weights(self):
        ft._told.clear()
        with self.assertLogs("fovea", "WARNING") as log:
            self.assertIsNone(self.call(output_attentions=True)[1])
            self.call(output_attentions=True)
        self.assertEqual(len(log.records), 1)

    def test_a_bias(self):
        """Its rows are those of the batch, also where padding surrounds sequences."""
        mask = padding((0, 12), (5, 12), length=12).bool()
        given = ft.mask(2, 12, 12, attention_mask=mask)
        q = torch.randn(2, 4, 12, 16, requires_grad=True)
        bias = torch.randn(1, 4, 12, 12, requires_grad=True)
        out = ft.attention(torch.nn.Module(), q, q, q, given, position_bias=bias)[0]
        scores = (q @ q.mT / 4 + bias).masked_fill(
            ~masking_utils.sdpa_mask(2, 12, 12, attention_mask=mask), -1e9)
        wanted = (scores.softmax(-1) @ q).transpose(1, 2)
        self.close(out[mask], wanted[mask])
        for got, expected in zip(*(torch.autograd.grad(one[mask].square().sum(), (bias, q))
                                   for one in (out, wanted))):
            self.close(got, expected)


class Compiled(Case):
    def test_compile(self):
        plain, model = models(llama())
        ids, mask = tokens(), padding((0, 20), (7, 20))
        compiled = torch.compile(model, backend="aot_eager")
        got = compiled(ids, attention_mask=mask, use_cache=False).logits
        wanted = plain(ids, attention_mask=mask, use_cache=False).logits
        self.close(got[mask.bool()], wanted[mask.bool()])


if __name__ == "__main__":
    unittest.main()
