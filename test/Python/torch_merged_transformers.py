# REQUIRES: pytorch, python-pytorch, python-transformers
# RUN: %import_python %s
"""Which layers of transformers' models become one product in graphs, with the bits of calls by themselves."""

import unittest

import torch
import transformers
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.aot_autograd import make_boxed_func

import fp8.torch
from fp8.torch import merged_linears

SIZES = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 4,
         "vocab_size": 128, "max_position_embeddings": 64}
GROUPS = {**SIZES, "num_key_value_heads": 2}
T5 = {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 1, "num_heads": 4, "vocab_size": 128}
OPT = {"hidden_size": 64, "ffn_dim": 128, "num_hidden_layers": 1, "num_attention_heads": 4, "vocab_size": 128,
       "max_position_embeddings": 64, "word_embed_proj_dim": 64, "pad_token_id": 1}
# Models, and how many products of one layer there are in a graph, and of several.
MODELS = {"Llama": ("LlamaForCausalLM", "LlamaConfig", GROUPS, 2, 2),
          "Qwen 2, with biases": ("Qwen2ForCausalLM", "Qwen2Config", GROUPS, 2, 2),
          "Gemma 2": ("Gemma2ForCausalLM", "Gemma2Config", {**GROUPS, "head_dim": 16}, 2, 2),
          "BERT": ("BertForMaskedLM", "BertConfig", SIZES, 4, 1),
          # It has K, V and Q in this order, and calls Q first.
          "OPT": ("OPTForCausalLM", "OPTConfig", OPT, 3, 1),
          # Has what is one product already.
          "GPT-NeoX": ("GPTNeoXForCausalLM", "GPTNeoXConfig", SIZES, 4, 0),
          # K and V of the decoder read the encoder; wo stays in f32.
          "T5": ("T5ForConditionalGeneration", "T5Config", T5, 6, 3)}
graphs = []


def merge(module, inputs):
    merged_linears.merge(module.graph)
    module.graph.lint()
    module.recompile()
    graphs.append(module.graph)
    return make_boxed_func(module.forward)


def count(name):
    return sum(str(node.target).startswith(f"fp8.{name}.") for graph in graphs for node in graph.nodes)


class Transformers(unittest.TestCase):
    def test_models(self):
        for name, (model, config, sizes, single, merged) in MODELS.items():
            with self.subTest(name):
                torch.compiler.reset()
                torch.manual_seed(1)
                graphs.clear()
                made = getattr(transformers, model)(getattr(transformers, config)(**sizes)).bfloat16().eval()
                fp8.torch.quantize_for_inference(made, filter=["*", "!lm_head"])
                tokens = torch.randint(3, 100, (2, 12))
                inputs = {"input_ids": tokens, **({"decoder_input_ids": tokens} if name == "T5" else {})}
                with torch.inference_mode():
                    expected = made(**inputs).logits
                    got = torch.compile(made, backend=aot_autograd(fw_compiler=merge))(**inputs).logits
                self.assertTrue(torch.equal(got, expected))
                self.assertEqual((count("quantized_linear"), count("merged_linears")), (single, merged))


if __name__ == "__main__":
    unittest.main()
