# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Weights of MXFP4 that are lifted to E4M3, beside ml_dtypes' formats and layers of E4M3."""

import copy
import tempfile
import unittest

import ml_dtypes
import numpy as np
import safetensors.torch
import torch
from torch import nn

import fp8
import fp8.torch
from fp8.torch import packed, schemes
from fp8.torch.quantized_linear import QuantizedLinear

N, K = 48, 288


def draw(low, high, n=N, k=K):
    """Codes, E8M0 from 2^low to 2^high, and the values in f64 that ml_dtypes gives them."""
    generator = torch.Generator().manual_seed(0)
    codes = torch.randint(0, 256, (n, k // 2), dtype=torch.uint8, generator=generator)
    scales = torch.randint(low + 127, high + 128, (n, k // 32), generator=generator).to(torch.uint8)
    halves = np.stack([codes.numpy() & 15, codes.numpy() >> 4], -1).reshape(n, k)
    powers = scales.numpy().view(ml_dtypes.float8_e8m0fnu).astype(np.float64)
    values = halves.view(ml_dtypes.float4_e2m1fn).astype(np.float64) * np.repeat(powers, 32, 1)
    return codes, scales, values


def round_rows(values, factors):
    """Multiples of rows' factors, rounded to E4M3."""
    return (values / factors).astype(ml_dtypes.float8_e4m3fn).astype(np.float64) * factors


class Lift(unittest.TestCase):
    def check_restored(self, lifted, codes, scales):
        for found, expected in zip(packed.restore(lifted), (codes, scales)):
            self.assertTrue(torch.equal(found, expected))

    def test_restored(self):
        """All sizes and spans, zeros and a single word of exponents among them."""
        generator = torch.Generator().manual_seed(0)
        for seed in range(40):
            n, groups = (int(torch.randint(1, size, (), generator=generator)) for size in (20, 12))
            low, high = sorted(torch.randint(-127, 128, (2,), generator=generator).tolist())
            codes, scales, _ = draw(low, min(high, low + seed), n, 32 * groups)
            codes[torch.rand(codes.shape, generator=generator) < 0.3] = 0
            codes.view(n, -1, 16)[torch.rand(n, groups, generator=generator) < 0.3] = 0x80
            self.check_restored(packed.lift(codes, scales), codes, scales)

    def test_exact(self):
        for low, high in ((-7, 7), (0, 0), (-120, -106), (107, 121)):
            codes, scales, values = draw(low, high)
            lifted = packed.lift(codes, scales)
            self.assertEqual(str(lifted.exactness), "lifted exactly")
            self.assertEqual(lifted.exactness.by_tensor, 0)
            self.assertTrue(torch.equal(lifted.packed, codes))
            np.testing.assert_array_equal(packed.unlift(lifted, torch.float64).numpy(), values)
            factors = lifted.factors.double().numpy()
            np.testing.assert_array_equal(round_rows(values, factors), values)
            # 4.25 bits a weight, and a factor and whole words for each row.
            self.assertEqual(sum(t.nbytes for t in lifted.get_tensors().values()),
                             N * (K // 2 + 12 + 4))
            self.check_restored(lifted, codes, scales)

    def test_rounded(self):
        for low, high in ((-8, 7), (-20, 20), (-127, 127)):
            codes, scales, values = draw(low, high)
            lifted = packed.lift(codes, scales)
            found = packed.unlift(lifted, torch.float64).numpy()
            np.testing.assert_array_equal(
                found, round_rows(values, lifted.factors.double().numpy()))
            changed = found != values
            self.check_restored(lifted, codes, scales)
            exactness = lifted.exactness
            self.assertEqual(exactness.elements, changed.sum())
            self.assertEqual(exactness.rounded, changed.reshape(N, -1, 32).any(-1).sum())
            largest = np.abs(values).max(1, keepdims=True)
            self.assertEqual(exactness.error, (np.abs(found - values) / largest).max())
            self.assertLessEqual(exactness.error, 2**-15)
            self.assertLessEqual(exactness.by_word, exactness.by_tensor)
            self.assertIn(f"{exactness.rounded} of {N * K // 32} groups of 32 rounded",
                          str(exactness))

    def test_rows_and_words_suffice(self):
        codes, scales, values = draw(0, 0)
        scales += torch.arange(N, dtype=torch.uint8)[:, None]  # 47 binades from row to row.
        exactness = packed.lift(codes, scales).exactness
        self.assertEqual(exactness.rounded, 0)
        self.assertGreater(exactness.by_tensor, 0)
        codes, scales, _ = draw(0, 0)
        scales += (torch.arange(K // 32) // 4 * 20).to(torch.uint8)
        exactness = packed.lift(codes, scales).exactness
        self.assertGreater(exactness.rounded, 0)
        self.assertEqual(exactness.by_word, 0)

    def test_zeros(self):
        codes, scales, values = draw(-5, 5)
        codes[0], scales[0] = 0, torch.arange(K // 32) * 30
        codes[1, :16], scales[1, 0] = 0x80, 254  # Zeros of either sign count for nothing.
        values[0] = values[1, :32] = 0
        lifted = packed.lift(codes, scales)
        self.assertEqual(lifted.exactness.rounded, 0)
        np.testing.assert_array_equal(packed.unlift(lifted, torch.float64).numpy(), values)

    def test_blocks(self):
        """As gpt-oss has experts."""
        codes, scales, values = draw(-4, 4, n=3 * N)
        found = packed.read_blocks(codes.view(3, N, K // 32, 16), scales.view(3, N, K // 32))
        self.assertEqual(len(found), 3)
        joined = torch.cat([packed.unlift(one, torch.float64) for one in found])
        np.testing.assert_array_equal(joined.numpy(), values)

    def test_errors(self):
        codes, scales, _ = draw(0, 0)
        for arguments, message in (
                ((codes, scales[:, :-1]), r"N x K/2 bytes of codes and N x K/32 scales, but got \(48, 144\)"),
                ((codes[:, :-8], scales), "N x K/32 scales"), ((codes[0], scales), "N x K/32 scales")):
            with self.assertRaisesRegex(fp8.ArgumentError, message):
                packed.lift(*arguments)
        scales[3, 2] = 255
        with self.assertRaisesRegex(fp8.ArgumentError, "scales that are numbers, but got NaN"):
            packed.lift(codes, scales)
        with self.assertRaisesRegex(fp8.ArgumentError, "expected blocks of"):
            packed.read_blocks(codes, scales)


class Layers(unittest.TestCase):
    def test_bits(self):
        """A layer has the bits of one with the same weights in E4M3."""
        for dtype, recipe in ((torch.bfloat16, "rowwise"), (torch.float32, "current")):
            torch.manual_seed(0)
            dense = nn.Linear(K, N).to(dtype)
            layer = fp8.torch.quantize_for_inference(nn.Sequential(dense), recipe, weights="mxfp4")[0]
            scheme = layer.scheme
            self.assertEqual(layer.weight_packed.shape, (N, K // 2))
            lifted = packed.Lifted(*layer.get_tensors(), None)
            codes = (packed.unlift(lifted, torch.float64) / lifted.factors).float()
            other = QuantizedLinear(K, N, schemes.Scheme((1, None), scheme.input_block, rule=scheme.rule), {
                "weight": codes.to(torch.float8_e4m3fn), "weight_scale": lifted.factors}, dense.bias)
            x = torch.randn(3, 5, K, dtype=dtype)
            with torch.inference_mode():
                self.assertTrue(torch.equal(layer(x), other(x)))
                error = (layer(x) - dense(x)).norm() / dense(x).norm()
            self.assertLess(error, 0.2)

    def test_report(self):
        model = nn.Sequential(nn.Linear(K, N), nn.Linear(N, 16))
        with torch.no_grad():
            model[0].weight[:, 32:64] *= 2.0**-20
        fp8.torch.quantize_for_inference(model, weights="mxfp4")
        first, second = fp8.torch.report(model)
        self.assertRegex(first.reason, "weights mxfp4 with scales in f32 1x.*, lifted with 48 of 432 groups of 32 rounded")
        self.assertEqual((second.kind, second.reason), ("high precision", "K=48 is not a multiple of 32"))

    def test_errors(self):
        model = nn.Sequential(nn.Linear(K, N))
        for recipe in ("block", "mxfp8", "nvfp4"):
            with self.assertRaisesRegex(fp8.ArgumentError, "expected current or rowwise with weights of mxfp4"):
                fp8.torch.quantize_for_inference(model, recipe, weights="mxfp4")
        with self.assertRaisesRegex(fp8.ArgumentError, "expected weights to be mxfp4, mxfp8, nvfp4, current, rowwise, "
                                                       "block or None, but got 'int4'"):
            fp8.torch.quantize_for_inference(model, weights="int4")
        for options, message in (
                ({"weights": "mxfp8"}, "expected the recipe mxfp8, or activations in bf16"),
                ({"weights": "block"}, "expected the recipe block, or activations in bf16"),
                ({"activations": "int8"}, "expected activations to be fp8, bf16 or None, but got 'int8'"),
                ({"recipe": "current", "activations": "bf16", "calibration": [torch.ones(1, K)]},
                 "expected no calibration")):
            with self.assertRaisesRegex(fp8.ArgumentError, message):
                fp8.torch.quantize_for_inference(model, **options)
        for options in ({"weights": "nvfp4"}, {"recipe": "nvfp4"}):
            with self.assertRaisesRegex(fp8.UnsupportedError, "no product has them with activations in fp8"):
                fp8.torch.quantize_for_inference(model, activations="fp8", **options)

    def test_saved(self):
        """With what was lost by rounding, and a word of exponents in a row."""
        for k, factor in ((K, 2.0**-20), (64, 1.0)):
            model = nn.Sequential(nn.Linear(k, N))
            with torch.no_grad():
                model[0].weight[:, 32:64] *= factor
                model[0].weight[3] = 0
            expected = fp8.quantize(model[0].weight.detach(), "e2m1", (1, 32), "e8m0")
            fp8.torch.quantize_for_inference(model, "current", weights="mxfp4")
            x = torch.randn(4, k)
            with tempfile.TemporaryDirectory() as folder, torch.no_grad():
                fp8.torch.save_quantized(model, folder)
                tensors = safetensors.torch.load_file(f"{folder}/model.safetensors")
                self.assertTrue(torch.equal(tensors["0.weight_packed"], expected.codes.view(torch.uint8)))
                self.assertTrue(torch.equal(tensors["0.weight_scale"], expected.scale_inv.view(torch.uint8)))
                other = fp8.torch.load_quantized(nn.Sequential(nn.Linear(k, N)), folder)
                self.assertEqual(other[0].scheme, model[0].scheme)
                self.assertTrue(torch.equal(other(x), model(x)))

    def test_replaced(self):
        """What was lost of a weight is not put into another one."""
        torch.manual_seed(0)
        dense = nn.Linear(K, N)
        with torch.no_grad():
            dense.weight[:, 32:64] *= 2.0**-20
        plain = nn.Linear(K, N)
        state = fp8.torch.quantize_for_inference(nn.Sequential(copy.deepcopy(plain)), weights="mxfp4").state_dict()
        for replace in (lambda layer: layer.set_weight(plain.weight),
                        lambda layer: layer.load_state_dict({name[2:]: value for name, value in state.items()})):
            with tempfile.TemporaryDirectory() as folder:
                model = fp8.torch.quantize_for_inference(nn.Sequential(copy.deepcopy(dense)), weights="mxfp4")
                self.assertTrue(len(model[0].lost.groups))
                fp8.torch.save_quantized(model, folder)
                model = fp8.torch.load_quantized(nn.Sequential(nn.Linear(K, N)), folder)
                fp8.torch.save_quantized(model, folder, "original")
                replace(model[0])
                with self.assertRaisesRegex(fp8.ArgumentError, "expected a model of load_quantized"):
                    fp8.torch.save_quantized(model, folder, "original")
                fp8.torch.save_quantized(model, folder)
                found = safetensors.torch.load_file(f"{folder}/model.safetensors")
                expected = fp8.quantize(plain.weight.detach(), "e2m1", (1, 32), "e8m0")
                self.assertTrue(torch.equal(found["0.weight_packed"], expected.codes.view(torch.uint8)))
                self.assertTrue(torch.equal(found["0.weight_scale"], expected.scale_inv.view(torch.uint8)))

    def test_high_precision(self):
        """Weights of all kinds with activations as they are: the product in f32 with what they are."""
        torch.manual_seed(0)
        for weights, limit in (("mxfp4", 0.2), ("mxfp8", 0.05), ("nvfp4", 0.15), (None, 0.05)):
            dense = nn.Linear(K, N)
            model = nn.Sequential(copy.deepcopy(dense))
            layer = fp8.torch.quantize_for_inference(model, weights=weights, activations="bf16")[0]
            self.assertIsNone(layer.scheme.input_block)
            x = torch.randn(5, K)
            with torch.no_grad():
                values = layer(torch.eye(K)) - dense.bias
                self.assertLess((layer(x) - (x @ values + dense.bias)).abs().max(), 1e-5)
                self.assertLess((values.T - dense.weight).norm() / dense.weight.norm(), limit)

    def test_wide_exponents(self):
        """Beside activations in high precision MXFP4 is what it is, whatever its exponents span: nothing is lifted, and files
        are written back bit by bit."""
        n, k = 48, 192
        codes, scales, values = draw(-60, 60, n, k)
        with tempfile.TemporaryDirectory() as folder, torch.no_grad():
            model = fp8.torch.quantize_for_inference(nn.Sequential(nn.Linear(k, n)), weights="mxfp4", activations="bf16")
            fp8.torch.save_quantized(model, folder)
            tensors = safetensors.torch.load_file(f"{folder}/model.safetensors")
            tensors.update({"0.weight_packed": codes, "0.weight_scale": scales})
            safetensors.torch.save_file(tensors, f"{folder}/model.safetensors")
            for arranged in (False, True):
                loaded = fp8.torch.load_quantized(nn.Sequential(nn.Linear(k, n)), folder, activations="bf16")
                self.assertEqual(loaded[0].scheme, model[0].scheme)
                if arranged:
                    self.assertEqual(fp8.torch.arrange(loaded), {"0": "arranged"})
                self.assertTrue(np.array_equal(loaded[0].dequantize(torch.float64).numpy(), values))
                self.assertTrue(torch.equal(loaded(torch.eye(k)), torch.tensor(values.T).float() + loaded[0].bias))
                for layout in ("compressed-tensors", "original"):
                    with self.subTest(arranged=arranged, layout=layout), tempfile.TemporaryDirectory() as other:
                        fp8.torch.save_quantized(loaded, other, layout)
                        written = safetensors.torch.load_file(f"{other}/model.safetensors")
                        self.assertEqual(written.keys(), tensors.keys())
                        self.assertTrue(all(torch.equal(written[name], value) for name, value in tensors.items()))

    def test_sums(self):
        """Sums of E4M3 beside bf16 are multiplied with the scale of a row, or of all: no weight is rounded."""
        torch.manual_seed(0)
        for recipe in ("rowwise", "current"):
            for n, k, is_read in ((48, 192, True), (47, 192, False), (48, 80, False)):
                dense = nn.Linear(k, n).bfloat16()
                layer = fp8.torch.quantize_for_inference(nn.Sequential(dense), recipe, activations="bf16")[0]
                self.assertEqual("128, 128" in schemes.write_linear(layer.scheme, n, k, "bf16", "bf16"), is_read)
                if not is_read:
                    continue
                x = torch.randn(5, k).bfloat16()
                with torch.no_grad():
                    exact = x.double() @ layer.dequantize(torch.float64).T + layer.bias.double()
                    error = (layer(x).double() - exact).abs()
                    self.assertTrue(bool((error <= 2.0**-8 * exact.abs() + 1e-6).all()))


if __name__ == "__main__":
    unittest.main()
