# REQUIRES: pytorch, python-pytorch, python-transformers
# RUN: %import_python %s
"""How many parts quantized layers of transformers' models become with what is between them, and that they compute
what the layers do by themselves."""

import contextlib
import io
import unittest
import warnings
from unittest import mock

import torch
import transformers

import fp8.torch
from fp8.torch import attention_graphs

SIZES = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4,
         "vocab_size": 128, "max_position_embeddings": 64}
GROUPS = {**SIZES, "num_key_value_heads": 2}
# Models, how many parts there are in a graph, and how many products in these.
MODELS = {"Llama": ("LlamaForCausalLM", "LlamaConfig", GROUPS, 3, 8),
          "Gemma 2, norms behind products, too": ("Gemma2ForCausalLM", "Gemma2Config", {**GROUPS, "head_dim": 16}, 3, 8),
          "Qwen 3, norms of heads": ("Qwen3ForCausalLM", "Qwen3Config", {**GROUPS, "head_dim": 16}, 3, 8),
          # The last one has the first layer of the head.
          "BERT": ("BertForMaskedLM", "BertConfig", SIZES, 3, 9),
          # Q, K and V and the MLP read the same, and are of two modules.
          "Falcon, attention beside the MLP": (
              "FalconForCausalLM", "FalconConfig",
              {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 128}, 2, 7),
          "Phi, attention beside the MLP": ("PhiForCausalLM", "PhiConfig", SIZES, 2, 7),
          "GPT-2, weights the other way round": (
              "GPT2LMHeadModel", "GPT2Config",
              {"n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 128, "n_positions": 64}, 3, 8),
          # Gate and up are one layer, and so are Q, K and V.
          "Phi 3": ("Phi3ForCausalLM", "Phi3Config", {**GROUPS, "pad_token_id": 0}, 3, 8)}


class Transformers(unittest.TestCase):
    def setUp(self):
        torch.compiler.reset()
        torch.manual_seed(1)

    def make(self, model, config, sizes):
        made = getattr(transformers, model)(getattr(transformers, config)(**sizes)).bfloat16().eval()
        return fp8.torch.quantize_for_inference(made, filter=["*", "!lm_head"])

    def test_models(self):
        for name, (model, config, sizes, parts, products) in MODELS.items():
            with self.subTest(name), torch.inference_mode(), warnings.catch_warnings():
                warnings.simplefilter("error", UserWarning)
                self.setUp()
                made, tokens = self.make(model, config, sizes), torch.randint(3, 100, (2, 12))
                expected = made(tokens).logits
                backend = fp8.torch.Backend(rest="eager")
                got = torch.compile(made, backend=backend)(tokens).logits
                self.assertLess((got - expected).float().norm() / expected.float().norm(), 0.01)
                self.assertEqual(len(backend.fused), parts)
                self.assertEqual(sum(part.text.count("fp8.matmul") for part in backend.fused), products)
                # What leads to the last product is attention alone.
                alone = [line for line in backend.left if "by itself" in line]
                self.assertEqual(len(alone), "beside" in name, alone)

    def test_generate(self):
        model = self.make("LlamaForCausalLM", "LlamaConfig", {**GROUPS, "eos_token_id": None, "pad_token_id": 0})
        tokens = torch.randint(3, 100, (2, 12))
        options = {"attention_mask": torch.ones_like(tokens), "do_sample": False, "max_new_tokens": 6}
        expected = model.generate(tokens, **options)
        made = []

        def compile(module, inputs, **others):
            made.append(fp8.torch.Backend(rest="eager"))
            return made[-1](module, inputs)

        config = transformers.CompileConfig(backend=compile, mode="default")
        config._compile_all_devices = True
        got = model.generate(tokens, cache_implementation="static", compile_config=config, **options)
        self.assertTrue(torch.equal(got, expected))
        self.assertEqual([len(backend.fused) for backend in made], [3])

    def test_attention_by_default(self):
        """In decoding attention is ours if nothing is said, where a GPU has the kernel: of padded batches with a static cache, and
        one of windows. With attention="torch" all of it is Inductor's."""
        ends = {"eos_token_id": None, "pad_token_id": 0}
        windows = {**GROUPS, **ends, "head_dim": 16, "query_pre_attn_scalar": 16, "sliding_window": 8,
                   "layer_types": ["sliding_attention", "full_attention"]}
        models = {"Llama": ("LlamaForCausalLM", "LlamaConfig", {**GROUPS, **ends}),
                  "Gemma 3": ("Gemma3ForCausalLM", "Gemma3TextConfig", windows)}
        tokens = torch.randint(3, 100, (2, 12), generator=torch.Generator().manual_seed(1))
        mask = torch.ones_like(tokens)
        mask[1, :5] = 0
        # Tokens are given, since those of nearly equal logits may be others.
        options = {"attention_mask": mask, "do_sample": False, "max_new_tokens": 4, "output_logits": True,
                   "return_dict_in_generate": True, "prefix_allowed_tokens_fn": lambda _, ids: [3 + len(ids)]}
        for name, (kind, config, sizes) in models.items():
            self.setUp()
            model = self.make(kind, config, sizes)
            expected = torch.stack(model.generate(tokens, **options).logits)
            for attention in (None, "torch") if kind.startswith("Llama") else (None,):
                with self.subTest(name, attention=attention), mock.patch.object(
                        attention_graphs, "has_kernels", lambda device: True):
                    torch.compiler.reset()
                    backend = fp8.torch.Backend(rest="eager", attention=attention)
                    asked = transformers.CompileConfig(backend=backend, mode="default")
                    asked._compile_all_devices = True
                    got = torch.stack(model.generate(tokens, cache_implementation="static", compile_config=asked,
                                                     **options).logits)
                    self.assertLess((got - expected).norm() / expected.norm(), 0.05)
                    said = io.StringIO()
                    with contextlib.redirect_stdout(said):
                        backend.explain()
                    self.assertEqual("attention of 4 heads over 2 of 16 columns, mask" in said.getvalue(), attention is None,
                                     said.getvalue())


if __name__ == "__main__":
    unittest.main()
