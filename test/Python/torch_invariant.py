# REQUIRES: pytorch, python-pytorch, python-transformers
# RUN: %import_python %s
"""Training's forward and a served model have the same bits under `rowwise`, for any number of rows."""

import copy
import unittest

import torch
import transformers

import fp8.torch
from fp8.errors import ArgumentError, CompileError, UnsupportedError

SIZES = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 1, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 96, "max_position_embeddings": 64, "tie_word_embeddings": False,
         "attn_implementation": "eager"}


def make_llama():
    torch.manual_seed(1)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**SIZES)).bfloat16()


def train(model):
    return fp8.torch.convert_to_fp8_training(copy.deepcopy(model), "rowwise", first_last_bf16=0, invariant=True)


def serve(model, recipe="rowwise", **options):
    return fp8.torch.quantize_for_inference(copy.deepcopy(model), recipe, invariant=True, **options).eval()


def draw(*shape):
    return torch.randn(shape) * torch.exp2(torch.randint(-3, 3, shape))


class Invariant(unittest.TestCase):
    def test_training_and_serving(self):
        """Log-probabilities differ by exactly 0, for several batches and lengths."""
        model = make_llama()
        trained, served = train(model), serve(model)
        self.assertTrue(all(layer.kind == "fp8" for layer in fp8.torch.report(served)))
        for batch, length in ((1, 1), (5, 3)):
            tokens = torch.randint(0, SIZES["vocab_size"], (batch, length))
            ours = torch.log_softmax(trained(tokens).logits.float(), -1)
            with torch.inference_mode():
                theirs = torch.log_softmax(served(tokens).logits.float(), -1)
            self.assertEqual((ours - theirs).abs().max().item(), 0)

    def test_layers_of_any_number_of_rows(self):
        """Alone and among others, in training, for inference, and under torch.compile."""
        layer = torch.nn.Linear(512, 96).bfloat16()
        trained, served = train(layer), serve(layer)
        compiled = torch.compile(train(torch.nn.Sequential(layer)), backend="aot_eager")
        for rows in (1, 65):
            x = draw(rows, 512).bfloat16()
            with torch.no_grad():
                y = trained(x)
                alone = torch.cat([served(row[None]) for row in x[:8]])
                self.assertTrue(torch.equal(y, served(x)))
                self.assertTrue(torch.equal(y, compiled(x)))
            self.assertTrue(torch.equal(y[:8], alone))

    def test_other_recipes(self):
        layer = torch.nn.Linear(256, 96).bfloat16()
        x = draw(9, 256).bfloat16()
        for recipe, options in (("block", {}), ("mxfp8", {}), ("rowwise", {"activations": "bf16"}),
                                ("rowwise", {"weights": "mxfp4"}), ("current", {"calibration": [x]})):
            served = serve(layer, recipe, **options)
            with self.subTest(recipe=recipe, **options), torch.inference_mode():
                self.assertTrue(torch.equal(served(x), torch.cat([served(row[None]) for row in x])))

    def test_gradients_of_activations(self):
        layer = torch.nn.Linear(256, 96).bfloat16()
        x, dy = draw(9, 256).bfloat16(), draw(9, 96).bfloat16()
        for made in (train(layer), serve(layer)):
            rows = []
            for some in (slice(None), *(slice(i, i + 1) for i in range(9))):
                given = x[some].clone().requires_grad_()
                made(given).backward(dy[some])
                rows.append(given.grad)
            self.assertTrue(torch.equal(rows[0], torch.cat(rows[1:])))

    def test_what_depends_on_other_rows_is_refused(self):
        model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.Linear(64, 64))
        for recipe in ("current", "nvfp4"):
            with self.assertRaisesRegex(UnsupportedError, "scales of activations that depend on one row"):
                serve(model, recipe)
        for recipe in ("current", "delayed", "nvfp4"):
            with self.assertRaisesRegex(CompileError, "scales that depend on one row in an invariant program"):
                fp8.torch.convert_to_fp8_training(copy.deepcopy(model), recipe, first_last_bf16=0, invariant=True)
        with self.assertRaisesRegex(ArgumentError, "expected no only_faster with invariant"):
            fp8.torch.convert_to_fp8_training(copy.deepcopy(model), "rowwise", only_faster=True, invariant=True)
        with self.assertRaisesRegex(ArgumentError, "expected no only_faster with invariant"):
            fp8.torch.Backend("rowwise", only_faster=True, invariant=True)

    def test_the_report_says_so(self):
        served = serve(torch.nn.Linear(64, 64))
        self.assertIn("activations 1x* dynamic, invariant", str(fp8.torch.report(served)))


if __name__ == "__main__":
    unittest.main(warnings="ignore")
