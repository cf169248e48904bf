# REQUIRES: pytorch, python-pytorch
# RUN: env FP8_CUDA_DRIVER=emulator %import_python %s
"""Calls of layers on a GPU that are like earlier ones, which Python does not look at again: they
have the same results, and what is not like them is found out."""

import copy
import io
import unittest
from unittest import mock

import torch
from torch import nn

import fp8
import fp8.torch
from fp8.torch import linear_ops, quantized_linear, schemes

_compile = schemes.compile_linear


def compile_for_gpu(*arguments):
    return _compile(*arguments[:-1], "sm_90a")


def make_values(*sizes, dtype=torch.bfloat16, seed=1):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed)).to(dtype)


class Inference(unittest.TestCase):
    def setUp(self):
        patch = mock.patch.object(schemes, "compile_linear", compile_for_gpu)
        patch.start()
        self.addCleanup(patch.stop)
        torch.manual_seed(2)
        self.layer = fp8.torch.quantize_for_inference(nn.Linear(64, 32).bfloat16(), "rowwise")
        self.x = make_values(3, 5, 64)
        self.enterContext(torch.no_grad())
        self.expected = self.layer(self.x)

    def compute(self, layer, x):
        return quantized_linear.compute(x, layer.get_tensors(), layer.bias, str(layer.scheme))

    def check_prepared(self, x, layer=None):
        """That nothing of Python computes it."""
        layer = layer or self.layer
        expected = self.compute(layer, x)
        with mock.patch.object(type(layer), "_compute", side_effect=AssertionError):
            y = layer(x)
        self.assertEqual((y.shape, y.stride(), y.dtype), (expected.shape, expected.stride(),
                                                          expected.dtype))
        self.assertTrue(torch.equal(y, expected))

    def check_general(self, x, layer=None):
        layer = layer or self.layer
        with mock.patch.object(type(layer), "_compute", return_value=None) as general:
            layer(x)
        self.assertEqual(general.call_count, 1)
        expected = self.compute(layer, x if x.dtype in schemes.ELEMENTS else x.bfloat16())
        self.assertTrue(torch.equal(layer(x), expected))

    def test_sizes(self):
        for x in (self.x, self.x[0], self.x[0, 0], make_values(1, 1, 64), make_values(2, 1, 3, 64),
                  make_values(130, 64)):
            self.check_prepared(x)
        with torch.inference_mode():
            self.check_prepared(make_values(7, 64))

    def test_other_layouts(self):
        self.check_general(make_values(64, 5).T)
        self.check_general(self.x.transpose(0, 1))
        self.check_general(self.x.expand(2, 3, 5, 64).transpose(0, 1))

    def test_no_rows(self):
        with self.assertRaises(fp8.ArgumentError):  # As before.
            self.compute(self.layer, self.x[:0].float().double())
        self.assertEqual(self.layer(self.x[:0]).shape, (0, 5, 32))

    def test_what_is_refused(self):
        with self.assertRaisesRegex(fp8.ArgumentError, "64 features"):
            self.layer(make_values(3, 32))
        with self.assertRaisesRegex(fp8.ArgumentError, "f32, bf16 or f16"):
            self.layer(torch.ones(3, 64, dtype=torch.int32))
        with self.assertRaisesRegex(fp8.ArgumentError, "to be a tensor"):
            self.layer([1.0] * 64)
        with self.assertRaisesRegex(fp8.ArgumentError, "torch.func"):
            torch.func.vmap(self.layer)(self.x)
        with torch.enable_grad():
            x = self.x.clone().requires_grad_()
            y = self.layer(x)  # Not by what is prepared.
            self.assertTrue(y.requires_grad and torch.equal(y, self.layer(self.x)))
            self.check_prepared(self.x)
        self.check_prepared(x)  # No gradient is computed.

    def test_no_memory(self):
        self.assertEqual(self.layer(torch.empty(2, 64, device="meta", dtype=torch.bfloat16)).device,
                         torch.device("meta"))

    def test_dtypes(self):
        for dtype in (torch.float16, torch.float32):
            self.check_general(self.x.to(dtype))
            self.check_prepared(self.x.to(dtype))
        self.check_general(self.x)
        self.check_prepared(self.x)

    def test_negative_bits(self):
        x = torch.complex(make_values(4, 64, dtype=torch.float32),
                          make_values(4, 64, dtype=torch.float32, seed=2)).conj()
        self.layer(x.real.contiguous())
        y = self.layer(x.imag)
        self.assertTrue(torch.equal(y, self.compute(self.layer, x.imag.resolve_neg().contiguous())))

    def test_autocast(self):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            self.check_prepared(self.x)
            y = self.layer(self.x.float())
        self.assertTrue(torch.equal(y, self.expected))
        with torch.autocast("cpu", dtype=torch.float16):
            self.assertEqual(self.layer(self.x).dtype, torch.float16)

    def test_parameters_change(self):
        with self.subTest("in place"):
            self.layer.bias.add_(1)
            self.check_prepared(self.x)
        with self.subTest("data"):
            self.layer.bias.data = self.layer.bias.detach() + 1
            self.check_general(self.x)
            self.check_prepared(self.x)
        with self.subTest("another parameter"):
            self.layer.weight_scale = nn.Parameter(2 * self.layer.weight_scale,
                                                   requires_grad=False)
            self.check_general(self.x)
            self.check_prepared(self.x)
        with self.subTest("a dtype"):
            self.layer.float()
            self.check_general(self.x)
            self.check_prepared(self.x)
        with self.subTest("memory"):
            for change in (lambda: self.layer.half(),
                           lambda: self.layer.load_state_dict(copy.deepcopy(
                               self.layer.state_dict()), assign=True)):
                self.layer(self.x)
                self.assertIsNotNone(self.layer._ready)
                change()
                self.assertIsNone(self.layer._ready)
            self.check_general(self.x)
        with self.subTest("functional_call"):
            bias = torch.zeros(32)
            y = torch.func.functional_call(self.layer, {"bias": bias}, (self.x,))
            self.assertFalse(torch.equal(y, self.layer(self.x)))
            self.assertTrue(torch.equal(self.layer(self.x), self.compute(self.layer, self.x)))
        with self.subTest("assign"):
            other = fp8.torch.quantize_for_inference(nn.Linear(64, 32), "rowwise")
            self.layer.load_state_dict(other.state_dict(), assign=True)
            self.assertTrue(torch.equal(self.layer(self.x), self.compute(other, self.x)))

    def test_copies(self):
        buffer = io.BytesIO()
        torch.save(self.layer, buffer)
        buffer.seek(0)
        for layer in (copy.deepcopy(self.layer), torch.load(buffer, weights_only=False)):
            self.assertTrue(torch.equal(layer(self.x), self.expected))
            self.check_prepared(self.x, layer)
            layer.bias.zero_()
            self.check_prepared(self.x, layer)
        self.check_prepared(self.x)

    def test_hooks(self):
        self.layer.register_forward_hook(lambda module, arguments, y: y + 1)
        self.layer.register_forward_pre_hook(lambda module, arguments: (arguments[0] * 2,))
        self.assertTrue(torch.equal(self.layer(self.x), self.compute(self.layer, self.x * 2) + 1))

    def test_recipes(self):
        for recipe in ("current", "block", "mxfp8", "nvfp4"):
            with self.subTest(recipe):
                layer = fp8.torch.quantize_for_inference(nn.Linear(128, 32, bias=False).bfloat16(),
                                                         recipe)
                x = make_values(4, 128)
                layer(x)
                self.check_prepared(x, layer)
        layer = fp8.torch.quantize_for_inference(nn.Linear(64, 32).bfloat16(), "current", [self.x])
        layer(self.x)
        self.check_prepared(self.x, layer)


class Training(unittest.TestCase):
    def train(self, recipe, prepares=True, steps=5, dtype=torch.bfloat16, **options):
        """The results of all steps."""
        torch.manual_seed(3)
        model = nn.Sequential(nn.Linear(64, 48), nn.Linear(48, 32, bias=False)).to(dtype)
        fp8.torch.convert_to_fp8_training(model, recipe, first_last_bf16=0, target="sm_90a",
                                          only_faster=False, **options)
        found, general = [], linear_ops.Unit._forward
        prepare = linear_ops.Unit._prepare if prepares else lambda *arguments: None
        with mock.patch.object(linear_ops.Unit, "_prepare", prepare), mock.patch.object(
                linear_ops.Unit, "_forward", autospec=True, side_effect=general) as calls:
            for step in range(steps):
                x = make_values(32 if step != 3 else 16, 64, dtype=dtype, seed=step)
                x.requires_grad_(step % 2 == 0)
                y = model(x)
                y.backward(make_values(*y.shape, dtype=dtype, seed=9))
                found += [y.detach(), x.grad]
                found += [value.grad.clone() for value in model.parameters()]
                with torch.no_grad():
                    found.append(model(x))
                    for value in model.parameters():
                        value -= 0.01 * value.grad
        return found, calls.call_count, model

    def check(self, recipe, **options):
        found, count, model = self.train(recipe, **options)
        expected, all, other = self.train(recipe, False, **options)
        for value, correct in zip(found, expected):
            self.assertTrue(value is correct or torch.equal(value, correct))
        self.assertEqual(model.state_dict().keys(), other.state_dict().keys())
        for key, value in model.state_dict().items():
            self.assertTrue(torch.equal(value, other.state_dict()[key]), key)
        return count, all

    def test_steps(self):
        for recipe in ("delayed,initial=one", "current", "rowwise"):
            with self.subTest(recipe):
                count, all = self.check(recipe)
                self.assertEqual(all, 20)
                # With and without a backward, and once more for other rows; a state is made first.
                self.assertLessEqual(count, 10)

    def test_first_scales(self):
        self.check("delayed")

    def test_dtypes(self):
        self.check("delayed,initial=one", dtype=torch.float16)

    def test_codes_of_weights(self):
        count, all = self.check("delayed,initial=one", cache_weights=True)
        self.assertEqual(count, all)

    def test_microbatches(self):
        def run(prepares):
            _, _, model = self.train("delayed,initial=one", prepares, steps=2)
            found, prepare = [], linear_ops.Unit._prepare
            with mock.patch.object(linear_ops.Unit, "_prepare",
                                   prepare if prepares else lambda *arguments: None):
                for _ in range(2):
                    with fp8.torch.accumulated(model):
                        for seed in range(2):
                            y = model(make_values(32, 64, seed=seed))
                            y.backward(y.detach())
                            found.append(y.detach())
            return found, model.state_dict()

        (found, state), (expected, other) = run(True), run(False)
        self.assertTrue(all(map(torch.equal, found, expected)))
        self.assertTrue(all(torch.equal(state[key], other[key]) for key in state))

    def test_a_state_that_is_loaded(self):
        _, _, model = self.train("delayed,initial=one")
        saved, x = copy.deepcopy(model.state_dict()), make_values(32, 64)
        expected = model(x).detach()
        for _ in range(3):
            model(x * 8).sum().backward()
        self.assertFalse(torch.equal(model(x), expected))
        model.load_state_dict(saved)
        for _ in range(2):
            self.assertTrue(torch.equal(model(x), expected))


if __name__ == "__main__":
    unittest.main()
