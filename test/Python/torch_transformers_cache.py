# REQUIRES: pytorch, python-pytorch, python-transformers
# RUN: %import_python %s
"""transformers' generate with keys and values in 8 bits, fp8.torch.make_cache, beside its own cache: prompts that are
padded, windows, sinks, beams; and what it refuses."""

import copy
import unittest

import torch
import transformers

import fp8
import fp8.torch

SMALL = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 50, "max_position_embeddings": 64, "head_dim": 32}


def make(kind, implementation="fp8", **options):
    torch.manual_seed(0)
    config = getattr(transformers, f"{kind}Config")(**{**SMALL, "attn_implementation": "eager", **options})
    model = getattr(transformers, f"{kind}ForCausalLM")(config).eval()
    model.set_attn_implementation(implementation)
    return model


def draw(batch, positions):
    return torch.randint(1, 50, (batch, positions), generator=torch.Generator().manual_seed(1))


class Caches(unittest.TestCase):
    def setUp(self):
        self.settings = fp8.torch.register_attention()

    def walk(self, model, cache, ids, padding=None):
        """Logits of a prompt of 7 and then of each token."""
        found = []
        for first, end in ((0, 7), *((i, i + 1) for i in range(7, ids.shape[1]))):
            mask = {} if padding is None else {"attention_mask": padding[:, :end]}
            found.append(model(input_ids=ids[:, first:end], past_key_values=cache, use_cache=True, **mask).logits)
        return torch.cat(found, 1)

    def compare(self, model, tolerance, padding=None, **options):
        ids = draw(2, 11)
        with torch.no_grad():
            found = self.walk(model, fp8.torch.make_cache(model, 16, **options), ids, padding)
            other = copy.deepcopy(model)
            other.set_attn_implementation("eager")
            expected = self.walk(other, transformers.DynamicCache(), ids, padding)
        if padding is not None:
            found, expected = (x[padding.bool()] for x in (found, expected))
        self.assertLessEqual((found - expected).norm().item(), tolerance * expected.norm().item())
        self.assertEqual(self.settings.reasons, ())

    def test_models(self):
        sizes = {"format": "e4m3", "k_scale": 0.01, "v_scale": [0.01, 0.02]}
        for options, tolerance in (({"format": None}, 1e-5), (sizes, 0.05)):
            for model in (make("Llama"), make("Mistral", sliding_window=5),
                          make("GptOss", num_local_experts=2, num_experts_per_tok=2, sliding_window=5)):
                with self.subTest(model=type(model).__name__, **options):
                    self.compare(model, tolerance, **options)

    def test_padding(self):
        padding = torch.ones(2, 11, dtype=torch.long)
        padding[1, :4] = 0
        self.compare(make("Llama"), 1e-5, padding, format=None)
        self.compare(make("Mistral", sliding_window=5), 1e-5, padding, format=None)
        # A mask of one query is not looked at.
        self.assertEqual(self.settings.taken, ("4 heads over 2 of 32 columns, ranges of keys, a cache in f32",
                                               "4 heads over 2 of 32 columns, mask, a cache in f32"))

    def test_gaps(self):
        """A prompt that is padded on the right, and positions that nobody sees later."""
        padding = torch.ones(2, 11, dtype=torch.long)
        padding[1, 5:7] = padding[0, 8] = 0
        for model in (make("Llama"), make("Mistral", sliding_window=5)):
            self.compare(model, 1e-5, padding, format=None)

    def test_generate(self):
        model = make("Llama")
        for options in ({}, {"num_beams": 3}):
            results = []
            for cache in (fp8.torch.make_cache(model, 20, format=None), transformers.DynamicCache()):
                results.append(model.generate(draw(2, 7), past_key_values=cache, max_new_tokens=6, do_sample=False,
                                              **options))
            self.assertTrue(torch.equal(*results))

    def test_again(self):
        model, ids = make("Llama"), draw(2, 9)
        cache = fp8.torch.make_cache(model, 16)
        with torch.no_grad():
            first = self.walk(model, cache, ids)
            self.assertEqual((cache.get_seq_length(), cache.layers[0].keys.dtype), (9, torch.float8_e4m3fn))
            cache.reset()
            self.assertTrue(torch.equal(self.walk(model, cache, ids), first))

    def test_what_is_left_to_pytorch(self):
        """Has the numbers that codes stand for."""
        model = make("Llama")
        padding = torch.ones(2, 11, dtype=torch.long)
        padding[0, 3] = 0
        with torch.no_grad():
            found = self.walk(model, fp8.torch.make_cache(model, 16, format=None), draw(2, 11), padding)
            expected = self.walk(model, transformers.DynamicCache(), draw(2, 11), padding)
        torch.testing.assert_close(found[padding.bool()], expected[padding.bool()])
        self.assertIn("a mask with gaps for a cache", self.settings.reasons)

    def test_refuses(self):
        model = make("Llama")
        with self.assertRaisesRegex(fp8.ArgumentError, "expected up to 5 positions in the cache, but got 7"):
            model(input_ids=draw(1, 7), past_key_values=fp8.torch.make_cache(model, 5))
        with self.assertRaisesRegex(fp8.ArgumentError, "expected k_scale of 2 layers, but got 3"):
            fp8.torch.make_cache(model, 5, k_scale=[1.0] * 3)


if __name__ == "__main__":
    unittest.main()
