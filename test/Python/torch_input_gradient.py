# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Gradients of activations through quantized weights: beside the values of the weights, for every scheme and for
sizes that fit none; in graphs; and the values by themselves."""

import unittest

import torch
from torch import nn

import fp8
import fp8.torch
from fp8.torch import input_gradient
from fp8.torch.quantized_linear import QuantizedLinear

SCHEMES = [("rowwise", None), ("current", None), ("block", None), ("mxfp8", None), ("nvfp4", None),
           ("rowwise", "mxfp4")]


def make_layer(recipe="rowwise", weights=None, n=256, bias=True, calibration=None):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(128, n, bias))
    return fp8.torch.quantize_for_inference(model, recipe, calibration, weights=weights)[0]


def differentiate(layer, x, dy):
    x = x.clone().requires_grad_()
    layer(x).backward(dy)
    return x.grad


class Gradients(unittest.TestCase):
    def check(self, layer, dtype, tolerance, is_exact):
        x = torch.randn(3, 5, 128, dtype=dtype)
        dy = torch.randn(3, 5, layer.out_features, dtype=dtype)
        dx = differentiate(layer, x, dy)
        expected = dy.double() @ layer.dequantize().double()
        error = ((dx.double() - expected).norm() / expected.norm()).item()
        self.assertLess(error, tolerance)
        self.assertTrue(is_exact or error > 1e-2, error)  # dy is quantized.
        self.assertEqual((dx.dtype, dx.shape), (dtype, x.shape))

    def test_schemes(self):
        for recipe, weights in SCHEMES:
            for dtype in (torch.float32, torch.bfloat16):
                with self.subTest(recipe, weights=weights, dtype=dtype):
                    layer = make_layer(recipe, weights)
                    is_exact = recipe in ("mxfp8", "nvfp4")
                    self.assertEqual(input_gradient.find_way(layer.scheme, 256) == "values", is_exact)
                    tolerance = 0.04 if not is_exact else 1e-6 if dtype == torch.float32 else 6e-3
                    self.check(layer, dtype, tolerance, is_exact)

    def test_results_are_changed(self):
        """In place, as RoCBert's embeddings add to what a layer gives, of layers and of norms that any batch has the bits of."""
        def make(**options):
            model = nn.Sequential(nn.LayerNorm(128), nn.Linear(128, 128))
            return fp8.torch.convert_to_fp8_training(model, "rowwise", first_last_bf16=0, target="cpu", **options)
        for call in (make_layer(n=128), make()[1], make(invariant=True), make(invariant=True)[0]):
            for shape in ((128,), (5, 128), (3, 5, 128)):
                x = torch.randn(shape, requires_grad=True)
                y = call(x)
                expected, = torch.autograd.grad(3 * y.sum(), x)
                y = call(x)
                y += 1
                y.mul_(3)
                self.assertLess((torch.autograd.grad(y.sum(), x)[0] - expected).norm(), 1e-4 * expected.norm() + 1e-5)

    def test_activations_in_high_precision(self):
        """Gradients stay what they are, as activations do."""
        for recipe, weights in SCHEMES:
            torch.manual_seed(0)
            layer = fp8.torch.quantize_for_inference(nn.Sequential(nn.Linear(128, 256)), recipe, weights=weights,
                                                     activations="bf16")[0]
            self.check(layer, torch.float32, 1e-6, True)

    def test_sizes_that_do_not_fit(self):
        """K of this product is the layer's N."""
        for recipe, n, weights in (("rowwise", 40, None), ("block", 192, None), ("rowwise", 40, "mxfp4")):
            layer = make_layer(recipe, weights, n)
            self.assertEqual(input_gradient.find_way(layer.scheme, n), "values")
            self.check(layer, torch.float32, 1e-6, True)

    def test_scales_of_activations_do_not_matter(self):
        x, dy = torch.randn(4, 128), torch.randn(4, 256)
        self.assertTrue(torch.equal(differentiate(make_layer("current"), x, dy),
                                    differentiate(make_layer("current", calibration=[x * 9]), x, dy)))

    def test_wide_gradients(self):
        """Rows of any size, NaN of a row in that row alone, no rows."""
        layer, dy = make_layer(bias=False), torch.randn(4, 256) * torch.logspace(-6, 6, 4)[:, None]
        dx = differentiate(layer, torch.randn(4, 128), dy)
        expected = dy @ layer.dequantize()
        self.assertLess(((dx - expected).norm(dim=1) / expected.norm(dim=1)).max().item(), 0.05)
        dy[2, 7] = torch.nan
        spoiled = differentiate(layer, torch.randn(4, 128), dy)
        self.assertTrue(torch.equal(spoiled[[0, 1, 3]], dx[[0, 1, 3]]) and spoiled[2].isnan().all())
        self.assertEqual(differentiate(layer, torch.randn(0, 128), torch.randn(0, 256)).shape, (0, 128))

    def test_in_graphs(self):
        layer, x, dy = make_layer(), torch.randn(6, 128), torch.randn(6, 256)
        compiled = torch.compile(layer, backend="aot_eager", fullgraph=True)
        self.assertTrue(torch.equal(differentiate(compiled, x, dy), differentiate(layer, x, dy)))
        with torch.no_grad():
            self.assertTrue(torch.equal(compiled(x), layer(x)))

    def test_values(self):
        """Quantized again they are the same codes."""
        for recipe, weights in SCHEMES:
            layer = make_layer(recipe, weights)
            before = {name: value.clone() for name, value in layer.named_parameters()}
            layer.set_weight(layer.dequantize())
            for name, value in layer.named_parameters():
                self.assertTrue(torch.equal(value.view(torch.uint8), before[name].view(torch.uint8)), name)
        with self.assertRaisesRegex(fp8.ArgumentError, r"a weight of \(256, 128\), but got \(128, 256\)"):
            layer.set_weight(torch.zeros(128, 256))

    def test_refused(self):
        x = torch.randn(4, 128, requires_grad=True)
        y = make_layer()(x)
        with self.assertRaisesRegex(fp8.UnsupportedError, "without create_graph"):
            torch.autograd.grad(y.sum(), x, create_graph=True)
        self.assertIsInstance(make_layer(), QuantizedLinear)


if __name__ == "__main__":
    unittest.main()
