# REQUIRES: pytorch, python-pytorch, python-transformers
# RUN: %import_python %s
"""Bytes that models of transformers keep for a backward, where layers that read the same keep codes of it once."""

import sys
import unittest
from pathlib import Path

import torch
import transformers

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import fp8.torch  # noqa: E402
from kept import alone, count_saved  # noqa: E402

LENGTH, WIDTH = 128, 128
SIZES = {"hidden_size": WIDTH, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4,
         "vocab_size": 64, "max_position_embeddings": LENGTH}
GROUPS = {**SIZES, "num_key_value_heads": 2, "head_dim": 32}
# How often a model's layers read what another one has read: q, k and v, gate and up, and k and v of what an encoder made.
MODELS = {
    "Llama": (lambda: transformers.LlamaModel(transformers.LlamaConfig(**GROUPS)), 2 * 3),
    "Qwen3": (lambda: transformers.Qwen3Model(transformers.Qwen3Config(**GROUPS)), 2 * 3),
    "Gemma": (lambda: transformers.GemmaModel(transformers.GemmaConfig(**GROUPS)), 2 * 3),
    "BERT": (lambda: transformers.BertModel(transformers.BertConfig(**SIZES), add_pooling_layer=False), 2 * 2),
    "T5": (lambda: transformers.T5Model(transformers.T5Config(
        vocab_size=64, d_model=WIDTH, d_kv=32, d_ff=256, num_layers=2, num_heads=4, dropout_rate=0.0)), 2 * 2 + 2 * 2 + 2),
}


def run(make, recipe):
    """Bytes that are kept, and results and gradients of two steps."""
    torch.manual_seed(0)
    model = make().bfloat16().eval()
    fp8.torch.convert_to_fp8_training(model, recipe, first_last_bf16=0, target="cpu")
    tokens = torch.randint(0, 64, (1, LENGTH), generator=torch.Generator().manual_seed(1))
    others = {"decoder_input_ids": tokens.flip(1)} if isinstance(model, transformers.T5Model) else {"use_cache": False}
    values = []
    for _ in range(2):
        saved, y = count_saved(lambda: model(tokens, **others).last_hidden_state)
        y.float().square().mean().backward()
        values += [y.detach(), *(each.grad.clone() for each in model.parameters() if each.grad is not None)]
        model.zero_grad()
    return saved, values


class Models(unittest.TestCase):
    def test_saved_bytes(self):
        for (name, (make, readers)), recipe in zip(MODELS.items(), ("delayed", "block", "delayed", "current", "delayed")):
            with self.subTest(model=name):
                saved, values = run(make, recipe)
                with alone():
                    whole, expected = run(make, recipe)
                print(f"{name}, {recipe}: {whole} bytes, {saved} with shared codes")
                self.assertEqual((whole - saved) // (LENGTH * WIDTH), readers)
                for mine, its in zip(values, expected, strict=True):
                    self.assertTrue(torch.equal(mine, its))


if __name__ == "__main__":
    unittest.main()
