# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Programs that are compiled ahead of calls: none is compiled by calls that were expected, and others are warnings;
from the cache in another process."""

import importlib.util
import subprocess
import sys
import tempfile
import unittest
import warnings
from unittest import mock

import torch
from torch import nn

import fp8
import fp8.torch
from fp8.torch import (input_gradient, linear_programs, merged_linears, quantized_linear,
                       schemes)


def make_model(n=96):
    torch.manual_seed(0)
    return nn.Sequential(*(layer for _ in range(3) for layer in (nn.Linear(64, n), nn.ReLU(), nn.Linear(n, 64))))


class Prepare(unittest.TestCase):
    def setUp(self):
        quantized_linear._expected.clear()
        quantized_linear._prepared.clear()
        schemes.compile_linear.cache_clear()
        linear_programs._known.clear()
        self.addCleanup(mock.patch.stopall)

    def forbid(self):
        """From here on nothing may compile."""
        mock.patch("fp8.compile", side_effect=AssertionError("compiled")).start()

    def test_inference(self):
        model = fp8.torch.quantize_for_inference(make_model())
        prepared = fp8.torch.prepare(model)
        self.assertEqual((prepared.programs, prepared.left), (2, {}))  # Equal layers share them.
        self.forbid()
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("error")
            for rows in (1, 7, 512):
                model(torch.randn(rows, 64))

    def test_products_of_several_layers(self):
        """In graphs, layers of the same activations are one product."""
        class Gated(nn.Module):
            def __init__(self):
                super().__init__()
                self.gate, self.up = nn.Linear(64, 96), nn.Linear(64, 96)

            def forward(self, x):
                return self.gate(x) * self.up(x)

        model = fp8.torch.quantize_for_inference(Gated())
        self.assertEqual(fp8.torch.prepare(model).programs, 2)
        self.forbid()
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            layers = model.gate, model.up
            merged_linears.compute(torch.randn(3, 64), [tensor for layer in layers
                                                        for tensor in layer.get_tensors()],
                                   [layer.bias for layer in layers], 2, str(model.up.scheme))

    def test_adapters(self):
        """The gradient of activations, too, where something behind the layers is trained."""
        model = fp8.torch.quantize_for_inference(make_model(), filter=["[1-9]"])
        self.assertEqual(fp8.torch.prepare(model).programs, 4)
        before = input_gradient.compile_gradient.cache_info().misses
        self.forbid()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model(torch.randn(5, 64)).sum().backward()
        self.assertEqual(input_gradient.compile_gradient.cache_info().misses, before)
        self.assertTrue(model[0].weight.grad.isfinite().all())

    def test_another_type(self):
        model = fp8.torch.quantize_for_inference(make_model())
        fp8.torch.prepare(model)
        with torch.no_grad(), self.assertWarnsRegex(
                UserWarning, "64 inputs and 96 outputs for activations of bf16 on the target cpu, which"):
            model(torch.randn(3, 64).bfloat16())
        # Another model's layers are no concern of it.
        other = fp8.torch.quantize_for_inference(make_model(80))
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("error")
            other(torch.randn(3, 64))

    def test_training(self):
        model = fp8.torch.convert_to_fp8_training(make_model(), "current", first_last_bf16=0)
        prepared = fp8.torch.prepare(model, rows=[16, 32])
        self.assertEqual(prepared.programs, 4)
        patch = mock.patch("fp8.compile", side_effect=AssertionError("compiled"))
        with patch, warnings.catch_warnings():
            warnings.simplefilter("error")
            for rows in (16, 32):
                model(torch.randn(rows, 64)).sum().backward()
        with self.assertWarnsRegex(UserWarning, "64 inputs and 96 outputs with 48 rows of torch.float32 on cpu, which"):
            model(torch.randn(48, 64))

    @unittest.skipUnless(importlib.util.find_spec("transformers"), "takes transformers")
    def test_conv1d(self):
        from transformers.pytorch_utils import Conv1D
        torch.manual_seed(0)
        model = nn.Sequential(Conv1D(96, 64), nn.ReLU(), Conv1D(64, 96), nn.Linear(64, 64))
        fp8.torch.convert_to_fp8_training(model, "current", first_last_bf16=0)
        prepared = fp8.torch.prepare(model, rows=32)
        self.assertEqual((prepared.programs, prepared.left), (3, {}))
        self.forbid()
        model(torch.randn(32, 64)).sum().backward()
        self.assertTrue(model[0].weight.grad.isfinite().all())

    def test_what_is_left(self):
        model = fp8.torch.convert_to_fp8_training(make_model(), "current", first_last_bf16=0)
        with self.assertWarnsRegex(UserWarning, r"when they are called: 0 \(its rows are not known"):
            self.assertEqual(fp8.torch.prepare(model).programs, 0)

    def test_refused(self):
        for model, options, text in ((make_model(), {}, "layers in FP8, but got none"),
                                     ("model", {}, "a module, but got str"),
                                     (make_model(), {"rows": [0]}, "numbers above 0"),
                                     (make_model(), {"dtype": torch.float64}, "f32, bf16 or f16")):
            with self.assertRaisesRegex(fp8.ArgumentError, text):
                fp8.torch.prepare(model, **options)

    def test_cache(self):
        """Another process takes them from the disk."""
        script = ("import fp8, fp8.torch, torch\n"
                  "model = fp8.torch.quantize_for_inference(torch.nn.Sequential(torch.nn.Linear(64, 96)))\n"
                  "fp8.torch.prepare(model)\n"
                  "import sys\n"
                  "if len(sys.argv) > 1:\n"
                  "    assert compiled == [], compiled\n")
        spy = ("from fp8 import _core\ncompiled, run = [], _core.compile\n"
               "_core.compile = lambda text, *others: (compiled.append(text), run(text, *others))[1]\n")
        with tempfile.TemporaryDirectory() as folder:
            for arguments in ([], ["again"]):
                subprocess.run([sys.executable, "-c", spy + script, *arguments], check=True,
                               env={**__import__("os").environ, "XDG_CACHE_HOME": folder})


if __name__ == "__main__":
    unittest.main()
