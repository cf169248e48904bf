# REQUIRES: pytorch, python-pytorch, python-transformers
# RUN: %import_python %s
"""Models of transformers with attn_implementation="fp8" beside "sdpa" and "eager": logits and gradients, windows, masks,
caches; and what they say of calls that are PyTorch's."""

import copy
import unittest
from unittest import mock

import torch
import transformers

import fp8
import fp8.torch
from fp8.torch import attention_calls, attention_scales, key_ranges

SMALL = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 50, "max_position_embeddings": 64, "head_dim": 16}


def make(kind, seed=0, **options):
    torch.manual_seed(seed)
    config = getattr(transformers, f"{kind}Config")(**{**SMALL, "attn_implementation": "eager", **options})
    name = kind + {"Bert": "Model", "Whisper": "Model", "GPT2": "LMHeadModel"}.get(kind, "ForCausalLM")
    return getattr(transformers, name)(config).eval()


def copy_with(model, implementation):
    other = copy.deepcopy(model)
    other.set_attn_implementation(implementation)
    return other


def draw(batch, positions, seed=1):
    return torch.randint(1, 50, (batch, positions), generator=torch.Generator().manual_seed(seed))


class Converted(unittest.TestCase):
    def test_filter(self):
        """Models name all kinds of attention, and call none: attention that the filter leaves out is left."""
        tokens = draw(2, 9)
        for filter, count in ((["*.mlp.*"], 0), (lambda name, _: "layers.0." not in name, 1),
                              (lambda name, _: "self_attn" not in name, 0)):
            model = make("Llama", attn_implementation="sdpa")
            fp8.torch.convert_to_fp8_training(model, fp8.DelayedScaling(fp8_dpa=True), filter=filter)
            model(tokens, labels=tokens).loss.backward()
            found = [scales for name, scales in attention_scales.find_all(model).items()]
            self.assertEqual(len(found), count)
            self.assertTrue(all(scales.scales[""]["q"].recorded == 1 for scales in found))
            self.assertEqual(fp8.torch.summarize(model).count("attention in high precision"), 2 - count)


class Delayed(unittest.TestCase):
    """register_attention with scales of earlier steps, which the first call or make_states makes."""

    def setUp(self):
        fp8.torch.register_attention("fp8_delayed", recipe=fp8.DelayedScaling(amax_history_len=3, fp8_dpa=True))
        self.tokens = draw(2, 9)

    def make(self, **options):
        return make("Llama", attn_implementation="fp8_delayed", **options)

    def train(self, model, times=1):
        for _ in range(times):
            model.zero_grad()
            model(self.tokens, labels=self.tokens).loss.backward()
        return [parameter.grad.clone() for parameter in model.parameters()]

    def count(self, model):
        return [scales.scales[""]["q"].recorded for scales in attention_scales.find_all(model).values()]

    def test_accumulated(self):
        model = self.make()
        with fp8.torch.accumulated(model):
            for _ in range(3):
                self.train(model)
                self.assertEqual(self.count(model), [0, 0])
        self.assertEqual(self.count(model), [1, 1])
        self.train(model)
        self.assertEqual(self.count(model), [2, 2])

    def test_load(self):
        model, loaded = self.make(), self.make(seed=1)
        self.train(model, 2)
        fp8.torch.make_states(loaded)
        self.assertEqual(set(loaded.state_dict()), set(model.state_dict()))
        loaded.load_state_dict(model.state_dict())
        for x, y in zip(self.train(loaded), self.train(model)):
            self.assertTrue(torch.equal(x, y))
        self.assertEqual(self.count(loaded), [3, 3])

    def test_compiled(self):
        model = self.make(num_hidden_layers=1)
        with self.assertWarnsRegex(UserWarning, "attention that is compiled before its first call"):
            torch.compile(model, backend="eager")(self.tokens)
        torch._dynamo.reset()
        model = self.make(num_hidden_layers=1)
        fp8.torch.make_states(model)
        self.train(torch.compile(model, backend="eager"), 2)
        self.assertEqual(self.count(model), [2])


class Models(unittest.TestCase):
    def setUp(self):
        self.settings = fp8.torch.register_attention()

    def compare(self, model, other="sdpa", tolerance=1e-4, train=True, **inputs):
        models = [copy_with(model, name) for name in ("fp8", other)]
        results = [each(**inputs)[0] for each in models]
        self.check(*results, tolerance)
        if train:
            for each, y in zip(models, results):
                (y * torch.linspace(-1, 1, y.shape[-1])).sum().backward()
            for (name, x), y in zip(models[0].named_parameters(), models[1].parameters()):
                if y.grad is not None:
                    self.check(x.grad, y.grad, 10 * tolerance, name)
        return results[0]

    def check(self, found, expected, tolerance, name=None):
        self.assertTrue(found.isfinite().all(), name)
        self.assertLessEqual((found - expected).norm().item(), tolerance * expected.norm().item() + 1e-5, name)

    def test_layers_that_stay(self):
        model = make("Llama", num_hidden_layers=3)
        tokens = draw(2, 12)
        for count, formats in (0, {"e4m3"}), (1, {"e4m3", "f32"}), (2, {"f32"}):
            settings = fp8.torch.register_attention(recipe=fp8.Float8CurrentScaling(fp8_dpa=True), first_last_bf16=count)
            y = copy_with(model, "fp8")(tokens)[0]
            self.assertEqual({text.rsplit(" in ")[1] for text in settings.taken}, formats)
            self.assertEqual(settings.reasons, ())
        self.check(y, copy_with(model, "sdpa")(tokens)[0], 1e-4)
        with self.assertRaisesRegex(fp8.ArgumentError, "expected first_last_bf16 to be 0 or more, but got -1"):
            fp8.torch.register_attention(first_last_bf16=-1)

    def test_scales_of_earlier_steps(self):
        """A layer's first call gives it an AttentionScales, and converting a model does. What a filter leaves out stays."""
        recipe = fp8.DelayedScaling(amax_history_len=2, fp8_dpa=True)
        model, tokens = make("Llama"), draw(2, 12)
        settings = fp8.torch.register_attention(recipe=recipe)
        for made in (copy_with(model, "fp8"), copy_with(model, "sdpa")):
            if made.config._attn_implementation == "sdpa":
                fp8.torch.convert_to_fp8_training(made, recipe, filter=["model.layers.1.*"], first_last_bf16=0)
                made.set_attn_implementation("fp8")
            for _ in range(2):
                made(tokens)[0].sum().backward()
            slots = [layer.self_attn.fp8_attention.scales[""]["k"] for layer in made.model.layers
                     if hasattr(layer.self_attn, "fp8_attention")]
            self.assertEqual([slot.recorded for slot in slots], [2] * len(slots))
            self.assertIn("model.layers.1.self_attn.fp8_attention.fp8_state", made.state_dict())
        self.assertEqual(len(slots), 1)
        self.assertEqual({text.rsplit(" in ")[1] for text in settings.taken}, {"e4m3, delayed scales", "f32"})
        self.assertEqual(settings.reasons, ())
        with self.assertRaisesRegex(fp8.ArgumentError, "expected a format or a recipe, but got both"):
            fp8.torch.register_attention(format="e4m3", recipe=recipe)

    def test_llama(self):
        model = make("Llama")
        for other in ("sdpa", "eager"):
            self.compare(model, other, input_ids=draw(2, 13))
        self.assertEqual(self.settings.taken, ("4 heads over 2 of 16 columns, causal in f32",))
        self.assertEqual(self.settings.reasons, ())

    def test_padding(self):
        padding = torch.ones(2, 11, dtype=torch.long)
        padding[1, :4] = 0
        model = make("Llama")
        found, expected = (copy_with(model, name)(input_ids=draw(2, 11), attention_mask=padding).logits
                           for name in ("fp8", "sdpa"))
        self.check(found[padding.bool()], expected[padding.bool()], 1e-4)
        self.assertIn("mask", self.settings.taken[0])
        self.compare(model, input_ids=draw(2, 11), attention_mask=torch.ones_like(padding))
        self.assertIn("causal", self.settings.taken[1])

    def test_padding_of_a_gpu(self):
        """Whose kernel takes ranges of keys in place of a mask, if it has no gaps."""
        def find(query, key, value, mask):
            return key_ranges.find(mask, query)

        padding = torch.ones(3, 11, dtype=torch.long)
        padding[1, :4] = padding[2, 8:] = 0
        bert = make("Bert", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
        with torch.no_grad(), mock.patch.object(attention_calls, "_find_ranges", find):
            for model in (make("Llama"), make("Mistral", sliding_window=5), bert):
                found, expected = (copy_with(model, name)(input_ids=draw(3, 11), attention_mask=padding)[0]
                                   for name in ("fp8", "sdpa"))
                self.check(found[padding.bool()], expected[padding.bool()], 1e-4)
            self.assertEqual(self.settings.taken, ("4 heads over 2 of 16 columns, ranges of keys in f32",
                                                   "4 heads over 4 of 8 columns, ranges of keys in f32"))
            # A prompt on the left, and what is generated.
            found, expected = (copy_with(make("Llama"), name).generate(
                draw(3, 11), attention_mask=padding.flip(1), max_new_tokens=5, do_sample=False) for name in ("fp8", "sdpa"))
            self.assertTrue(torch.equal(found[:2], expected[:2]))
            padding[0, 5] = 0
            self.compare(make("Llama"), input_ids=draw(3, 11), attention_mask=padding, train=False)
            self.assertIn("mask", self.settings.taken[-1])

    def test_packed_sequences_of_a_gpu(self):
        positions = torch.cat([torch.arange(count) for count in (5, 2, 6)])[None]
        with torch.no_grad(), mock.patch.object(attention_calls, "_find_ranges", lambda q, k, v, mask: key_ranges.find(
                mask, q)):
            self.compare(make("Llama"), input_ids=draw(1, 13), position_ids=positions, use_cache=False, train=False)
        self.assertEqual(self.settings.taken, ("4 heads over 2 of 16 columns, ranges of keys in f32",))

    def test_sliding_windows(self):
        model = make("Mistral", sliding_window=5)
        for other in ("sdpa", "eager"):
            self.compare(model, other, input_ids=draw(2, 17))
        self.assertEqual(self.settings.taken, ("4 heads over 2 of 16 columns, window (4, 0) in f32",))
        padding = torch.ones(1, 17, dtype=torch.long)
        padding[0, 12:] = 0
        self.compare(model, train=False, input_ids=draw(1, 17), attention_mask=padding)
        self.assertIn("mask", self.settings.taken[1])

    def test_chunks_are_no_windows(self):
        from transformers.masking_utils import create_chunked_causal_mask
        config = transformers.Llama4TextConfig(**{**SMALL, "attention_chunk_size": 4, "attn_implementation": "fp8"})
        config.sliding_window = 4
        made = create_chunked_causal_mask(config, torch.zeros(1, 9, 32), None, past_key_values=None)
        self.assertFalse(hasattr(made, "_fp8_window"))
        self.assertFalse(made[0, 0, 4, 3])

    def test_generation(self):
        for model in (make("Llama"), make("Mistral", sliding_window=5)):
            found, expected = (copy_with(model, name).generate(draw(1, 7), max_new_tokens=6, do_sample=False)
                               for name in ("fp8", "sdpa"))
            self.assertTrue(torch.equal(found, expected))

    def test_more_tokens_on_a_cache(self):
        for model in (make("Llama"), make("Mistral", sliding_window=16)):
            ids, results = draw(1, 12), []
            for name in ("fp8", "sdpa"):
                each = copy_with(model, name)
                before = each(input_ids=ids[:, :7], use_cache=True)
                results.append(each(input_ids=ids[:, 7:], past_key_values=before.past_key_values).logits)
            self.check(*results, 1e-4)
        self.assertIn("4 heads over 2 of 16 columns, window (None, 0) in f32", self.settings.taken)

    def test_bert(self):
        model = make("Bert", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
        padding = torch.ones(2, 9, dtype=torch.long)
        padding[0, 6:] = 0
        self.compare(model, input_ids=draw(2, 9))
        self.compare(model, input_ids=draw(2, 9), attention_mask=padding)
        self.assertEqual(len(self.settings.taken), 2)

    def test_whisper(self):
        model = make("Whisper", d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
                     decoder_attention_heads=2, encoder_ffn_dim=48, decoder_ffn_dim=48, num_mel_bins=8,
                     max_source_positions=16, max_target_positions=20, pad_token_id=0, bos_token_id=1, eos_token_id=2,
                     decoder_start_token_id=1)
        features = torch.randn(2, 8, 32, generator=torch.Generator().manual_seed(3))
        self.compare(model, input_features=features, decoder_input_ids=draw(2, 7))
        self.assertEqual(len(self.settings.taken), 2)  # With and without a causal window.
        self.assertEqual(self.settings.reasons, ())

    def test_caps(self):
        options = {"query_pre_attn_scalar": 16, "sliding_window": 5, "attn_logit_softcapping": 0.5}
        self.compare(make("Gemma2", **options), "eager", input_ids=draw(2, 11))
        self.assertEqual(self.settings.reasons, ())
        self.assertEqual(set(self.settings.taken), {f"4 heads over 2 of 16 columns, {each}, cap 0.5 in f32"
                                                    for each in ("window (4, 0)", "causal")})

    def test_dropout(self):
        """In training, of the same shares by the same seed, with caps, too."""
        for kind, options in (("Gemma2", {"query_pre_attn_scalar": 16, "attn_logit_softcapping": 0.5}), ("Llama", {})):
            self.settings = fp8.torch.register_attention()
            model = copy_with(make(kind, attention_dropout=0.1, **options), "fp8").train()
            results = []
            for seed in (3, 3, 4):
                torch.manual_seed(seed)
                model.zero_grad()
                logits = model(input_ids=draw(2, 9)).logits
                logits.square().sum().backward()
                results.append((logits, next(model.parameters()).grad.clone()))
            for first, second, other in zip(*results):
                self.assertTrue(torch.equal(first, second))
                self.assertFalse(torch.equal(first, other))
            self.assertEqual(self.settings.reasons, ())
            self.assertTrue(all("dropout 0.1" in each for each in self.settings.taken), self.settings.taken)

    def test_without_a_cap(self):
        model = make("Gemma2", query_pre_attn_scalar=16, sliding_window=5, attn_logit_softcapping=None)
        self.compare(model, "eager", input_ids=draw(2, 11))
        self.assertEqual(len(self.settings.taken), 2)  # Layers with a window and without.

    def test_sinks(self):
        model = make("GptOss", num_local_experts=2, num_experts_per_tok=2, sliding_window=5)
        for name, parameter in model.named_parameters():
            if name.endswith("sinks"):
                torch.nn.init.normal_(parameter)
        self.compare(model, "eager", input_ids=draw(2, 9))
        self.assertEqual(set(self.settings.taken), {f"4 heads over 2 of 16 columns, {each}, sinks in f32"
                                                    for each in ("window (4, 0)", "causal")})
        self.assertEqual(self.settings.reasons, ())

    def test_8_bits(self):
        self.settings = fp8.torch.register_attention(format="e4m3", accumulate="fast")
        self.compare(make("Llama").bfloat16(), tolerance=0.06, input_ids=draw(2, 13), train=False)
        self.assertEqual(self.settings.taken, ("4 heads over 2 of 16 columns, causal in e4m3",))

    def test_compiled(self):
        model = copy_with(make("Mistral", sliding_window=5), "fp8")
        ids = draw(2, 17)
        expected = model(input_ids=ids).logits
        compiled = torch.compile(model, backend="aot_eager", fullgraph=True)
        self.check(compiled(input_ids=ids).logits, expected, 1e-5)
        self.assertEqual(self.settings.taken, ("4 heads over 2 of 16 columns, window (4, 0) in f32",))

    def generate(self, model, implementation, padding, **options):
        """The scores of some tokens, with a static cache if nothing else is said."""
        torch.compiler.reset()
        found = copy_with(model, implementation).generate(
            draw(3, 9), attention_mask=padding, do_sample=False, max_new_tokens=4, output_scores=True,
            return_dict_in_generate=True, pad_token_id=0, eos_token_id=None,
            **{"cache_implementation": "static", **options})
        return torch.stack(found.scores, 1)

    def test_static_caches(self):
        """Room behind the last key is not looked at, and no mask is."""
        graphs = []

        def compile(module, inputs, **others):
            graphs.append(str(module.graph))
            return module

        config = transformers.CompileConfig(backend=compile, mode="default")
        config._compile_all_devices = True
        whole = torch.ones(3, 9, dtype=torch.long)
        left = whole.clone()
        left[0, :4] = left[2, :1] = 0
        gaps = whole.clone()
        gaps[1, 6:] = gaps[2, 2:4] = 0
        for kind, options in (("Llama", {}), ("Mistral", {"sliding_window": 5}),
                              ("GptOss", {"num_local_experts": 2, "num_experts_per_tok": 2, "sliding_window": 5})):
            for padding in whole, left, gaps:
                with self.subTest(kind, padding=int(padding.sum())):
                    model = make(kind, **options)
                    expected = self.generate(model, "eager", padding, disable_compile=True)
                    self.settings, graphs[:] = fp8.torch.register_attention(), []
                    self.check(self.generate(model, "fp8", padding, disable_compile=True), expected, 1e-4)
                    self.check(self.generate(model, "fp8", padding, compile_config=config), expected, 1e-4)
                    self.assertEqual(self.settings.reasons, ())
                    self.assertTrue(graphs)
                    for graph in graphs:
                        self.assertIn("cached_attention", graph)
                        self.assertNotIn("scaled_dot_product_attention", graph)

    def test_masks_of_one_query_are_not_looked_at(self):
        """The host would wait for a GPU at each token: with gaps or without, in static and in dynamic caches."""
        looked, find = [], key_ranges.find

        def look(mask, query):
            looked.append(tuple(mask.shape))
            return find(mask, query)

        gap = torch.ones(3, 9, dtype=torch.long)
        gap[0, 5:] = gap[2, 3] = 0
        left = torch.ones(3, 9, dtype=torch.long)
        left[1, :4] = 0
        for kind, options in (("Llama", {}), ("Mistral", {"sliding_window": 5}), ("Qwen2", {}), ("GPT2", {})):
            model = make(kind, **options)
            for padding in gap, left:
                for cache in "static", "dynamic":
                    with self.subTest(kind, cache=cache, gaps=padding is gap):
                        given = {"cache_implementation": cache, "disable_compile": True}
                        expected = self.generate(model, "eager", padding, **given)
                        self.settings, looked[:] = fp8.torch.register_attention(), []
                        with mock.patch.object(key_ranges, "find", look):
                            self.check(self.generate(model, "fp8", padding, **given), expected, 1e-4)
                        self.assertFalse([shape for shape in looked if shape[2] == 1])
                        self.assertIn("mask", self.settings.taken[-1])

    def test_other_names(self):
        first, second = (fp8.torch.register_attention(name) for name in ("fp8-first", "fp8-second"))
        copy_with(make("Llama"), "fp8-second")(input_ids=draw(1, 5))
        self.assertEqual((len(first.taken), len(second.taken)), (0, 1))
        with self.assertRaisesRegex(fp8.ArgumentError, "expected format"):
            fp8.torch.register_attention(format="e3m4")


if __name__ == "__main__":
    unittest.main()
