# REQUIRES: pytorch, python-pytorch, python-transformers
# RUN: %import_python %s
"""Quantized layers that are cut between ranks wherever: their codes and values are those of the whole, bit by bit, and so are
results of rows; of columns they sum up to those of the whole within roundings. Whole models over gloo."""

import copy
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import ranks  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from torch import nn  # noqa: E402

import fp8  # noqa: E402
import fp8.torch  # noqa: E402
from fp8.torch import cut_linears  # noqa: E402

KINDS = {"block": {"recipe": "block"}, "rowwise": {"recipe": "rowwise"}, "current": {"recipe": "current"},
         "mxfp8": {"recipe": "mxfp8"}, "mxfp4": {"recipe": "rowwise", "weights": "mxfp4"}, "nvfp4": {"recipe": "nvfp4"},
         "bf16": {"recipe": "block", "activations": "bf16"}}
# What a rank has; some are cut within blocks of 128.
WIDTHS = 8, 64, 192, 576
DEGREE = 3


def make_layer(n, k, kind, bias=True):
    torch.manual_seed(n + k)
    layer = nn.Linear(k, n, bias)
    with torch.no_grad():
        layer.weight *= torch.logspace(-2, 2, n)[torch.randperm(n)][:, None]
    return fp8.torch.quantize_for_inference(layer, **KINDS[kind])


def draw(*sizes):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(1))


class Layers(unittest.TestCase):
    def test_rows(self):
        for kind in KINDS:
            for width in WIDTHS:
                with self.subTest(kind, width=width), torch.no_grad():
                    whole = make_layer(width * DEGREE, 256, kind)
                    parts = [cut_linears.cut(whole, "colwise", rank, DEGREE) for rank in range(DEGREE)]
                    self.assertEqual([part.out_features for part in parts], [width] * DEGREE)
                    x = draw(5, 256)
                    self.assertTrue(torch.equal(torch.cat([part.dequantize() for part in parts]), whole.dequantize()))
                    self.assertTrue(torch.equal(torch.cat([part(x) for part in parts], 1), whole(x)))

    def test_parts_that_cannot_be_arranged(self):
        """Codes of a part are arranged where kernels read that many rows and columns so."""
        for recipe, n, k, style, stays in (("mxfp8", 66, 192, "colwise", False), ("rowwise", 66, 192, "colwise", False),
                                           ("mxfp8", 128, 192, "colwise", True), ("mxfp8", 33, 128, "rowwise", False)):
            with self.subTest(recipe, n=n, style=style), torch.no_grad():
                whole = fp8.torch.quantize_for_inference(nn.Sequential(nn.Linear(k, n).bfloat16()), recipe, activations="bf16")
                self.assertEqual(fp8.torch.arrange(whole), {"0": "arranged"})
                parts = [cut_linears.cut(whole[0], style, rank, 2) for rank in range(2)]
                layers = [part.layer if style == "rowwise" else part for part in parts]
                self.assertEqual([layer.scheme.arranged for layer in layers], [stays] * 2)
                values = torch.cat([layer.dequantize() for layer in layers], int(style == "rowwise"))
                self.assertTrue(torch.equal(values, whole[0].dequantize()))

    def test_arranged_columns(self):
        """A cut within what shares a factor, where one of 64 arranged columns begins."""
        for degree in (2, 4):
            k = 192 * degree
            with self.subTest(degree=degree), torch.no_grad():
                whole = fp8.torch.quantize_for_inference(nn.Sequential(nn.Linear(k, 128).bfloat16()), "block", activations="bf16")
                whole[0].set_weight(draw(128, k) * torch.logspace(-3, 0, k))
                fp8.torch.arrange(whole)
                parts = [cut_linears.cut(whole[0], "rowwise", rank, degree) for rank in range(degree)]
                values = []
                for part in parts:
                    self.assertTrue(part.layer.scheme.arranged)
                    before, behind = part.padding
                    value = part.layer.dequantize()
                    values.append(value[:, before:value.shape[1] - behind])
                self.assertTrue(torch.equal(torch.cat(values, 1), whole[0].dequantize()))

    def test_columns(self):
        for kind in KINDS:
            for width in WIDTHS:
                # K of a whole layer is a multiple of what its scales need.
                degree = 16 if width == 8 else 2 if kind == "block" or kind == "bf16" else DEGREE
                with self.subTest(kind, width=width), torch.no_grad():
                    whole = make_layer(48, width * degree, kind)
                    parts = [cut_linears.cut(whole, "rowwise", rank, degree) for rank in range(degree)]
                    x = draw(5, width * degree)
                    values, y = [], 0
                    for part, own in zip(parts, x.split(width, 1)):
                        before, behind = part.padding
                        value = part.layer.dequantize()
                        values.append(value[:, before:value.shape[1] - behind])
                        # A rank's results are those of its own values alone.
                        found, expected = part(own) - part.bias, own.double() @ values[-1].double().t()
                        self.assertLess((found - expected).norm() / expected.norm(), 0.2 if kind == "nvfp4" else 0.05)
                        y = y + found
                    self.assertTrue(torch.equal(torch.cat(values, 1), whole.dequantize()))
                    y = y + whole.bias
                    self.assertLess((y - whole(x)).norm() / whole(x).norm(), 0.2 if kind == "nvfp4" else 0.05)

    def test_columns_are_exact(self):
        """Activations that are codes: nothing is rounded, wherever a block of 128 is cut."""
        for width in WIDTHS:
            degree = 16 if width == 8 else 2
            with self.subTest(width), torch.no_grad():
                torch.manual_seed(0)
                layer = nn.Linear(width * degree, 48, False)
                layer.weight.copy_(torch.randint(-4, 5, layer.weight.shape))
                layer.weight *= 2.0 ** torch.randint(-2, 3, (1, width * degree // 16)).repeat_interleave(16, 1)
                whole = fp8.torch.quantize_for_inference(copy.deepcopy(layer), "block")
                x = torch.randint(-4, 5, (5, width * degree)).float()
                x[:, ::8] = 4  # All parts of a block have its largest magnitude.
                y = sum(cut_linears.cut(whole, "rowwise", rank, degree)(own)
                        for rank, own in enumerate(x.split(width, 1)))
                self.assertTrue(torch.equal(y, x @ layer.weight.t()))
                self.assertTrue(torch.equal(y, whole(x)))

    def test_another_ranks_nan(self):
        whole = make_layer(48, 256, "block", False)
        with torch.no_grad():
            whole.weight.view(torch.uint8)[:, :64] = 0x7F
            parts = [cut_linears.cut(whole, "rowwise", rank, 4) for rank in range(4)]
            are_finite = [bool(part(draw(5, 64)).isfinite().all()) for part in parts]
        self.assertEqual(are_finite, [False, True, True, True])

    def test_refused(self):
        with self.assertRaisesRegex(fp8.ArgumentError, "expected a part for each of 9 ranks, but 8 are too few"):
            cut_linears.cut(nn.Linear(16, 8), "colwise", 8, 9)
        for layer in (nn.Linear(16, 8), make_layer(16, 16, "rowwise")):
            for rank, degree in ((2, 2), (-1, 2), (0, 0)):
                with self.assertRaisesRegex(fp8.ArgumentError, f"expected a rank of {degree}, from 0 on, but got {rank}"):
                    cut_linears.cut(layer, "rowwise", rank, degree)


LLAMA = {"hidden_size": 256, "intermediate_size": 384, "num_hidden_layers": 2, "num_attention_heads": 8,
         "num_key_value_heads": 4, "vocab_size": 96, "max_position_embeddings": 64, "head_dim": 32}
IDS = torch.arange(32).reshape(2, 16) * 7 % 96


def make_model(**options):
    torch.manual_seed(0)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**LLAMA, **options})).eval()


def run_model(folder, recipe):
    """What a rank has of a model whose checkpoint is read at a degree of its own."""
    model = fp8.torch.load_quantized(make_model(), folder)
    fp8.torch.cut_for_inference(model)
    own = {name: list(module.layer.weight.shape if hasattr(module, "layer") else module.weight.shape)
           for name, module in model.named_modules() if name.endswith(("q_proj", "down_proj"))}
    with torch.no_grad():
        return own, model(IDS).logits, model.generate(IDS, max_new_tokens=4, do_sample=False)


def refuse(kind):
    model = make_model(num_key_value_heads=1) if kind == "heads" else make_model()
    if kind == "none":
        model = nn.Linear(64, 64)
    plans = {"style": {"model.layers.*.q_proj": "packed_colwise"}, "name": {"*.nothing": "colwise"},
             "parameter": {"model.norm.weight": "colwise"}, "other": {"model.norm": "colwise"}}
    before = {name: id(module) for name, module in model.named_modules()}
    try:
        fp8.torch.cut_for_inference(model, plans.get(kind))
    except fp8.Error as error:
        assert before == {name: id(module) for name, module in model.named_modules()}
        return str(error)


def save(folder):
    model = fp8.torch.quantize_for_inference(make_model(), filter=["*", "!lm_head"])
    fp8.torch.cut_for_inference(model)
    try:
        fp8.torch.save_quantized(model, folder)
    except fp8.Error as error:
        return str(error)


class Models(unittest.TestCase):
    def test_checkpoints(self):
        for recipe in ("block", "rowwise"):
            with tempfile.TemporaryDirectory() as folder, torch.no_grad():
                whole = fp8.torch.quantize_for_inference(make_model(), recipe, filter=["*", "!lm_head"])
                fp8.torch.save_quantized(whole, folder)
                logits = whole(IDS).logits
                for degree in (2, 4):
                    with self.subTest(recipe, degree=degree):
                        found = ranks.run(degree, run_model, folder, recipe)
                        for own, y, tokens in found:
                            self.assertEqual(own["model.layers.0.self_attn.q_proj"], [256 // degree, 256])
                            self.assertTrue(torch.equal(y, found[0][1]))
                            self.assertTrue(torch.equal(tokens, found[0][2]))
                            self.assertLess((y - logits).norm() / logits.norm(), 0.05)

    def test_refused(self):
        for kind, message in {"heads": "expected num_key_value_heads to be a multiple of the ranks, but got 1 of 2",
                              "none": "expected a plan for a Linear, which brings none",
                              "style": "q_proj', a Linear that is packed_colwise",
                              "name": r"expected layers that a plan names, but got none for \*.nothing",
                              "parameter": "expected layers in a plan, but got 'model.norm.weight', a parameter",
                              "other": "'model.norm', a LlamaRMSNorm that is colwise"}.items():
            with self.subTest(kind):
                for error in ranks.run(2, refuse, kind):
                    self.assertRegex(error, message)

    def test_save(self):
        with tempfile.TemporaryDirectory() as folder:
            for rank, error in enumerate(ranks.run(2, save, folder)):
                self.assertIn(f"expected a whole model, but got the part of rank {rank} of 2", error)


if __name__ == "__main__":
    unittest.main()
