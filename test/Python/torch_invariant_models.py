# REQUIRES: pytorch, python-pytorch, python-transformers
# RUN: %import_python %s
"""Whole models of transformers whose rows depend on nothing else: logits of a prompt have the bits of the same tokens decoded
one by one, in a batch, behind padding, in a static cache, and of training's forward."""

import copy
import io
import unittest
import warnings

import torch
import transformers
from torch import nn

import fp8
import fp8.torch
from fp8.torch import invariance, norm_programs
from fp8.torch.transformers_attention import _compute, register_attention

TOKENS, VOCABULARY = 16, 96
MODELS = {"llama": (transformers.LlamaConfig, transformers.LlamaForCausalLM, "rms"),
          "qwen": (transformers.Qwen3Config, transformers.Qwen3ForCausalLM, "rms"),
          "gemma": (transformers.Gemma2Config, transformers.Gemma2ForCausalLM, "rms_one")}


def make(name):
    make_config, make_model, _ = MODELS[name]
    torch.manual_seed(0)
    model = make_model(make_config(
        hidden_size=64, intermediate_size=128, vocab_size=VOCABULARY, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=16, max_position_embeddings=64, pad_token_id=0, eos_token_id=None))
    for value in model.parameters():
        value.data = (value + 0.1 * torch.randn_like(value) if value.ndim == 1 else 4 * value).detach().bfloat16()
    return model.eval()


def draw(batches):
    return torch.randint(3, VOCABULARY, (batches, TOKENS), generator=torch.Generator().manual_seed(batches))


def decode(model, tokens, cache):
    """Logits of tokens one by one."""
    return torch.cat([model(tokens[:, i:i + 1], past_key_values=cache, use_cache=True,
                            cache_position=torch.tensor([i])).logits for i in range(tokens.shape[1])], 1)


class Models(unittest.TestCase):
    def check(self, name):
        base, tokens = make(name), draw(1)
        model = fp8.torch.quantize_for_inference(copy.deepcopy(base), "rowwise", invariant=True)
        with torch.inference_mode():
            logits, plain = model(tokens).logits, base(tokens).logits
            self.assertLess((logits - plain).abs().max(), 0.3 * plain.abs().max())
            one_by_one = decode(model, tokens, transformers.DynamicCache(config=model.config))
            self.assertTrue(torch.equal(one_by_one, logits))
            # The log-probabilities are of the same bits, then.
            likelihoods = [x.float().log_softmax(-1) for x in (logits, one_by_one)]
            self.assertEqual((likelihoods[0] - likelihoods[1]).abs().max(), 0)
            batch = draw(5)
            batch[3] = tokens[0]
            self.assertTrue(torch.equal(model(batch).logits[3], logits[0]))
            self.check_padded(model, tokens, logits)
        return base, tokens, logits

    def check_padded(self, model, tokens, logits):
        for count, is_left in ((7, True), (5, False)):
            pad = torch.zeros(2, count, dtype=torch.long)
            both = torch.cat([tokens, draw(2)[:1]])
            padded = torch.cat([pad, both] if is_left else [both, pad], 1)
            mask = (padded != 0).long()
            padded[1, :count if is_left else 0] = mask[1] = 1  # Another sequence is longer.
            numbers = (mask.cumsum(-1) - 1).clamp(min=0)
            y = model(padded, attention_mask=mask, position_ids=numbers).logits[0]
            y = y[count:] if is_left else y[:TOKENS]
            self.assertTrue(torch.equal(y, logits[0]), is_left)

    def check_training(self, base, tokens, logits):
        trained = fp8.torch.convert_to_fp8_training(
            base, "rowwise", first_last_bf16=0, invariant=True, filter=lambda name, module: name != "lm_head"
            or base.lm_head.weight is not base.model.embed_tokens.weight).train()
        y = trained(tokens).logits
        self.assertTrue(torch.equal(y, logits))
        y.float().log_softmax(-1).mean().backward()
        for parameter in trained.parameters():
            self.assertGreater(parameter.grad.abs().max(), 0)

    def test_llama(self):
        self.check_training(*self.check("llama"))

    def test_qwen(self):
        """Norms of heads between the projections and attention."""
        self.check_training(*self.check("qwen"))

    def test_gemma(self):
        """Caps of scores, windows, and a head that is the embedding, in bf16."""
        self.check_training(*self.check("gemma"))

    def test_static_cache_and_generate(self):
        """A cache with room, padded prompts, and copies of a model."""
        model = fp8.torch.quantize_for_inference(make("llama"), "rowwise", invariant=True)
        tokens = draw(1)
        with torch.inference_mode():
            logits = model(tokens).logits
            static = transformers.StaticCache(config=model.config, max_cache_len=48)
            self.assertTrue(torch.equal(decode(model, tokens, static), logits))
            options = {"do_sample": False, "max_new_tokens": 4, "output_logits": True, "return_dict_in_generate": True}
            alone = model.generate(tokens, attention_mask=torch.ones_like(tokens), **options)
            padded = torch.cat([torch.cat([torch.zeros(1, 6, dtype=torch.long), tokens], 1), draw(2).repeat(1, 2)[:1, :TOKENS + 6]])
            mask = torch.ones_like(padded)
            mask[0, :6] = 0
            both = model.generate(padded, attention_mask=mask, **options)
            for one, other in zip(alone.logits, both.logits, strict=True):
                self.assertTrue(torch.equal(one[0], other[0]))
            stored = io.BytesIO()
            torch.save(model, stored)
            stored.seek(0)
            for other in (copy.deepcopy(model), torch.load(stored, weights_only=False)):
                self.assertTrue(torch.equal(other(tokens).logits, logits))


class Norms(unittest.TestCase):
    def test_formulas_are_found(self):
        class Llama(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight, self.eps = nn.Parameter(torch.ones(64, dtype=torch.bfloat16)), 1e-5

        class LlamaNorm(Llama):
            def forward(self, x):
                wide = x.float()
                return self.weight * (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)).to(x.dtype)

        class OtherNorm(Llama):
            def forward(self, x):
                return self.weight * x / x.abs().amax(-1, keepdim=True)

        bf16 = {"dtype": torch.bfloat16}
        found = [invariance._find_kind(module) for module in (
            LlamaNorm(), OtherNorm(), nn.RMSNorm(64, 1e-5, **bf16), nn.LayerNorm(64, **bf16), nn.LayerNorm(64, bias=False, **bf16))]
        self.assertEqual(found, ["rms", None, "rms_wide", "layer", "layer"])

    def test_values_and_gradients(self):
        torch.manual_seed(1)
        for kind in norm_programs.KINDS:
            for dtype, of_weight, has_bias in ((torch.bfloat16, torch.bfloat16, kind == "layer"),
                                               (torch.float32, torch.float32, False)):
                x = torch.randn(3, 5, 96, dtype=dtype, requires_grad=True)
                weight = torch.randn(96, dtype=of_weight, requires_grad=True)
                bias = torch.randn(96, dtype=of_weight, requires_grad=True) if has_bias else None
                y = invariance._Norm.apply(x, weight, bias, kind, 1e-5)
                expected = norm_programs.compute(kind, x, weight, bias, 1e-5)
                torch.testing.assert_close(y, expected, rtol=2 ** -7 if dtype == torch.bfloat16 else 1e-5, atol=1e-6)
                grad = torch.randn_like(y)
                given = [value for value in (x, weight, bias) if value is not None]
                for one, other in zip(torch.autograd.grad(y, given, grad), torch.autograd.grad(expected, given, grad)):
                    torch.testing.assert_close(one, other)

    def test_other_types_than_the_weight(self):
        """Weights in f32, as under torch.autocast: results have the type that PyTorch's have."""
        x = torch.randn(6, 64).bfloat16()
        for module in (transformers.models.llama.modeling_llama.LlamaRMSNorm(64), nn.LayerNorm(64),
                       transformers.models.gemma2.modeling_gemma2.Gemma2RMSNorm(64)):
            with torch.autocast("cpu", torch.bfloat16):
                expected = module(x)
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    invariance.make_invariant(nn.Sequential(module))
                y = module(x)
            self.assertEqual(y.dtype, expected.dtype)
            torch.testing.assert_close(y, expected, rtol=2 ** -7, atol=1e-5)

    def test_what_is_not_known_is_a_warning(self):
        class OddNorm(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight, self.eps = nn.Parameter(torch.ones(64)), 1e-5

            def forward(self, x):
                return x * self.weight / x.norm(dim=-1, keepdim=True)

        model = nn.Sequential(nn.Linear(64, 64), OddNorm())
        with self.assertWarnsRegex(UserWarning, "bits of rows may depend on others behind 1"):
            fp8.torch.quantize_for_inference(model, "rowwise", invariant=True)

    def test_layers_that_stay(self):
        """Those that the filter leaves out are computed invariantly, in high precision; convert_from_fp8 gives them back."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = fp8.torch.convert_to_fp8_training(
                nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.Linear(64, 64)).bfloat16(), "rowwise",
                first_last_bf16=0, filter="0", invariant=True)
        x = torch.randn(9, 64).bfloat16()
        self.assertTrue(torch.equal(model(x)[4:5], model(x[4:5])))
        self.assertIn("forward", vars(model[2]))
        fp8.torch.convert_from_fp8(model)
        self.assertNotIn("forward", vars(model[1]))
        self.assertNotIn("forward", vars(model[2]))

    def test_layers_that_are_converted_again(self):
        """What stayed the first time, and what follows without `invariant`: no forward of the first conversion is left."""
        x, options = torch.randn(4, 64).bfloat16(), {"target": "cpu", "first_last_bf16": 0}
        model = nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.Linear(64, 64)).bfloat16()
        fp8.torch.convert_to_fp8_training(model, "rowwise", filter="0", invariant=True, **options)
        self.assertIn("forward", vars(model[2]))
        fp8.torch.convert_to_fp8_training(model, "rowwise", filter="2", invariant=True, **options)
        self.assertNotIn("forward", vars(model[2]))
        model(x)
        self.assertEqual(list(model[2].units), ["rowwise"])
        fp8.torch.convert_to_fp8_training(model, "current", **options)
        self.assertFalse(any("forward" in vars(module) for module in model))
        fp8.torch.convert_to_fp8_training(model, "rowwise", filter="0", invariant=True, **options)
        fp8.torch.quantize_for_inference(model, "rowwise")
        self.assertFalse(any("forward" in vars(module) for module in model))

    def test_arguments_by_name(self):
        model = invariance.make_invariant(nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64)))
        x = torch.randn(3, 64)
        for module in model:
            self.assertIn("forward", vars(module))
            self.assertTrue(torch.equal(module(input=x), module(x)))
            with self.assertRaises(TypeError):
                module()

    def test_autocast(self):
        layer, x = nn.Linear(64, 64), torch.randn(3, 64)
        with torch.autocast("cpu", torch.bfloat16):
            expected = layer(x)
            y = invariance.make_invariant(layer)(x)
        self.assertEqual(y.dtype, torch.bfloat16)
        torch.testing.assert_close(y, expected, rtol=2 ** -7, atol=1e-3)
        y.float().sum().backward()
        self.assertEqual(layer.weight.grad.dtype, torch.float32)

    def test_no_second_derivative(self):
        x = torch.randn(3, 64, requires_grad=True)
        y = invariance.make_invariant(nn.Sequential(nn.LayerNorm(64)))(x)
        grad, = torch.autograd.grad(y.pow(3).sum(), x, create_graph=True)
        with self.assertRaises(RuntimeError):
            torch.autograd.grad(grad.pow(2).sum(), x)


class What(unittest.TestCase):
    """What is ours, what is a warning, and what is neither."""

    def find(self, *modules):
        """Whether modules are ours, and those of the warning."""
        model = nn.Sequential(*modules)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            invariance.make_invariant(model)
        names = "".join(str(each.message) for each in caught).partition("behind ")[2].partition(", whose")[0]
        return ["forward" in vars(module) for module in model], names

    def test_norms_along_other_dimensions(self):
        batch_norm = nn.BatchNorm1d(64)
        self.assertEqual(self.find(nn.GroupNorm(1, 64), nn.InstanceNorm1d(64, affine=True), batch_norm, batch_norm.eval()),
                         ([False] * 4, "0, 1"))

    def test_norms_without_weights_or_epsilon(self):
        modules = (nn.LayerNorm(64, elementwise_affine=False), nn.RMSNorm(64, 1e-5, elementwise_affine=False), nn.RMSNorm(64),
                   nn.RMSNorm(64, dtype=torch.bfloat16))
        x = torch.randn(3, 64)
        expected = [module(x.to(torch.bfloat16 if i == 3 else x.dtype)) for i, module in enumerate(modules)]
        self.assertEqual(self.find(*modules), ([True] * 4, ""))
        for module, other in zip(modules, expected):
            torch.testing.assert_close(module(x.to(other.dtype)), other)

    def test_forwards_of_others(self):
        class GatedNorm(nn.LayerNorm):
            def forward(self, x, gate=None):
                return super().forward(x if gate is None else x * gate)

        class StrictNorm(nn.LayerNorm):
            def forward(self, x):
                raise ValueError("not such rows")

        self.assertEqual(self.find(GatedNorm(64), StrictNorm(64), nn.LayerNorm(64)), ([False, False, True], "0, 1"))

    def test_parameters(self):
        class Projection(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.randn(64, 64))

            def forward(self, x):
                return x @ self.weight

        self.assertEqual(self.find(Projection(), nn.Embedding(8, 64), nn.Conv1d(4, 4, 3), nn.GELU(), nn.LSTM(8, 8)),
                         ([False] * 5, "0, 4"))

    def test_router(self):
        config = transformers.MixtralConfig(hidden_size=1024, num_local_experts=8)
        router, x = transformers.models.mixtral.modeling_mixtral.MixtralTopKRouter(config), torch.randn(40, 1024)
        nn.init.normal_(router.weight)
        expected = router(x)[0]
        self.assertEqual(self.find(router), ([True], ""))
        y = router(x)[0]
        torch.testing.assert_close(y, expected, rtol=1e-4, atol=1e-3)
        self.assertTrue(all(torch.equal(router(x[i:i + 1])[0][0], y[i]) for i in range(4)))


class Attention(unittest.TestCase):
    """Models that are not converted: values are those of PyTorch's, but for products in TF32."""

    def check(self, model, tolerance=5e-3, **inputs):
        for value in model.parameters():
            value.data = 4 * value.detach() if value.ndim > 1 else value.detach()
        register_attention("fp8_invariant", invariant=True)
        with torch.no_grad():
            expected = model.eval()(**inputs).last_hidden_state
            model.set_attn_implementation("fp8_invariant")
            y = model(**inputs).last_hidden_state
        seen = inputs.get("attention_mask", torch.ones(y.shape[:2])).bool()
        torch.testing.assert_close(y[seen], expected[seen], rtol=tolerance, atol=tolerance)
        return y

    def test_encoder(self):
        model = transformers.BertModel(transformers.BertConfig(
            hidden_size=64, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4, vocab_size=VOCABULARY))
        tokens, mask = draw(2), torch.ones(2, TOKENS, dtype=torch.long)
        mask[1, 11:] = 0
        self.check(copy.deepcopy(model), input_ids=tokens)
        y = self.check(copy.deepcopy(model), input_ids=tokens, attention_mask=mask)
        alone = self.check(copy.deepcopy(model), input_ids=tokens[1:, :11])
        torch.testing.assert_close(y[1:, :11], alone)

    def test_cross_attention(self):
        sizes = {f"{part}_{name}": size for part in ("encoder", "decoder")
                 for name, size in (("layers", 1), ("attention_heads", 4), ("ffn_dim", 64))}
        model = transformers.BartModel(transformers.BartConfig(d_model=64, vocab_size=VOCABULARY, max_position_embeddings=64,
                                                               **sizes))
        for count in (1, 5, 20):
            self.check(copy.deepcopy(model), input_ids=draw(2), decoder_input_ids=draw(2).repeat(1, 2)[:, :count])

    def test_masks_of_a_prefix(self):
        """A decoder whose mask lets a prefix see itself."""
        query, key, value = (torch.randn(2, 4, 9, 16) for _ in range(3))
        mask = torch.ones(9, 9, dtype=torch.bool).tril()
        mask[:, :4] = True
        settings = register_attention("fp8_invariant", invariant=True)
        module = nn.Module()
        y, _ = _compute(settings, module, query, key, value, mask.expand(2, 1, 9, 9))
        expected = nn.functional.scaled_dot_product_attention(query, key, value, mask)
        torch.testing.assert_close(y, expected.transpose(1, 2), rtol=5e-3, atol=5e-3)

    def test_cache_of_a_window_behind_padding(self):
        """It drops its first keys, and numbers of padding are of all."""
        model = transformers.MistralModel(transformers.MistralConfig(
            hidden_size=64, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4, num_key_value_heads=2,
            vocab_size=VOCABULARY, sliding_window=6)).eval()
        register_attention("fp8_invariant", invariant=True)
        tokens, mask, found = draw(2), torch.ones(2, TOKENS, dtype=torch.long), []
        mask[0, :8] = 0
        for name in ("sdpa", "fp8_invariant"):
            model.set_attn_implementation(name)
            cache, states = transformers.DynamicCache(config=model.config), []
            with torch.no_grad():
                for first, end in ((0, 12), *((i, i + 1) for i in range(12, TOKENS))):
                    states.append(model(tokens[:, first:end], attention_mask=mask[:, :end], past_key_values=cache,
                                        position_ids=(mask.cumsum(-1) - 1).clamp(min=0)[:, first:end]).last_hidden_state)
            found.append(torch.cat(states, 1)[:, 8:])
        torch.testing.assert_close(found[1], found[0], rtol=5e-3, atol=5e-3)

    def test_it_comes_and_goes_with_its_model(self):
        model = transformers.LlamaModel(transformers.LlamaConfig(
            hidden_size=64, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4, vocab_size=VOCABULARY))
        invariance.make_invariant(model)
        stored = io.BytesIO()
        torch.save(model, stored)
        stored.seek(0)
        transformers.AttentionInterface._global_mapping.pop(invariance.ATTENTION)  # As in a new process.
        loaded = torch.load(stored, weights_only=False)
        with torch.no_grad():
            loaded(draw(1))
        self.assertEqual(loaded.config._attn_implementation, invariance.ATTENTION)
        for each in (loaded, model):
            invariance.undo(each)
            self.assertEqual(each.config._attn_implementation, "sdpa")


if __name__ == "__main__":
    unittest.main()
