# REQUIRES: pytorch, python-pytorch
# RUN: env FP8_CUDA_DRIVER=emulator FP8_OPT_LEVEL=3 %import_python %s
"""Activations [batch, length, width] beside the same as rows [tokens, width]: the backend makes
as many kernels of them, whose results have the same bits."""

import functools
import unittest
from unittest import mock

import torch
from torch import nn
from torch.nn import functional as F

import fp8
import fp8.torch
from fp8.torch import partitions


class MLP(nn.Module):
    def __init__(self, norm, activation, bias, width=64, wide=128):
        super().__init__()
        self.norm, self.activation = norm(width), activation
        self.gate, self.up = (nn.Linear(width, wide, bias=bias) for _ in range(2))
        self.down = nn.Linear(wide, width, bias=bias)

    def forward(self, x):
        y = self.norm(x)
        return x + self.down(self.activation(self.gate(y)) * self.up(y))


MODELS = {"rms": lambda: MLP(nn.RMSNorm, F.silu, bias=False),
          "layer": lambda: MLP(nn.LayerNorm, lambda x: F.gelu(x, approximate="tanh"), bias=True),
          "linear": lambda: nn.Linear(64, 128)}


def run(make_model, recipe, target, shape, dynamic=None, backend=None):
    """The result and all gradients, as rows, and the programs' texts."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model, x = make_model().bfloat16(), torch.randn(128, 64).bfloat16()
    texts = []

    def compile(text, *arguments, **options):
        texts.append(text)
        return compile_program(text, *arguments, **options)

    compile_program = fp8.compile
    x = x.reshape(*shape, 64).requires_grad_()
    # Without a recipe all would be Inductor's.
    takes_all = mock.patch.object(partitions, "takes_all", recipe is None)
    with takes_all, mock.patch.object(fp8, "compile", compile):
        backend = fp8.torch.Backend(recipe, target=target, rest="eager", cache=False, opt_level=0)
        y = torch.compile(model, backend=backend, dynamic=dynamic)(x)
        y.backward(torch.randn(y.numel()).bfloat16().view_as(y))
    values = {"y": y.detach(), "x": x.grad,
              **{name: value.grad for name, value in model.named_parameters()}}
    return {name: value.flatten(0, -2) if value.ndim > 2 else value
            for name, value in values.items()}, texts


@functools.cache
def count_kernels_of(text, recipe):
    """The launches of a program, of generated kernels and of others."""
    program = fp8.emit(text, "mlir", recipe, target="sm_90a", to="kernels").decode()
    return (program.count("fp8_gpu.launch @"), program.count("gpu.launch_func"),
            program.count("memref.copy"))


def count_kernels(texts, recipe):
    return [count_kernels_of(text, recipe) for text in texts]


class Rows(unittest.TestCase):
    def check(self, name, recipe, target, dynamic=None):
        expected, rows = run(MODELS[name], recipe, target, (128,), dynamic)
        values, batches = run(MODELS[name], recipe, target, (4, 32), dynamic)
        for key, value in values.items():
            self.assertTrue(torch.equal(value, expected[key]), key)
        self.assertGreaterEqual(len(batches), 2)
        self.assertEqual(count_kernels(batches, recipe), count_kernels(rows, recipe))

    def test_cpu(self):
        for name in MODELS:
            for recipe in (None, "delayed", "current", "rowwise", "block"):
                with self.subTest(name=name, recipe=recipe):
                    self.check(name, recipe, "cpu")

    def test_kernels(self):
        for name, recipe in (("rms", "delayed"), ("layer", "current"), ("rms", "rowwise"),
                             ("rms", None), ("linear", "delayed")):
            with self.subTest(name=name, recipe=recipe):
                self.check(name, recipe, "sm_90a")

    def test_sizes_that_change(self):
        for name, target in (("rms", "cpu"), ("layer", "cpu"), ("rms", "sm_90a")):
            with self.subTest(name=name, target=target):
                self.check(name, "delayed", target, dynamic=True)

    def test_one_batch(self):
        expected, rows = run(MODELS["rms"], "delayed", "cpu", (128,))
        for shape in ((1, 128), (128, 1)):
            values, batches = run(MODELS["rms"], "delayed", "cpu", shape)
            self.assertTrue(all(torch.equal(values[key], expected[key]) for key in values))
            self.assertEqual(count_kernels(batches, "delayed"), count_kernels(rows, "delayed"))

    def test_masks(self):
        """What relu lets through is bits, which a matmul's kernel reads."""
        def make_model():
            return nn.Sequential(nn.LayerNorm(64), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))

        for dynamic in (False, True):
            expected, _ = run(make_model, None, "cpu", (4, 32), dynamic)
            values, texts = run(make_model, None, "sm_90a", (4, 32), dynamic)
            self.assertGreaterEqual(len(texts), 2)
            for key, value in values.items():
                torch.testing.assert_close(value, expected[key], rtol=0.02, atol=0.02, msg=key)
            expected, _ = run(make_model, "delayed", "cpu", (4, 32), dynamic)
            values, _ = run(make_model, "delayed", "sm_90a", (4, 32), dynamic)
            # A sum in another order is the next code now and then.
            for key, value in values.items():
                error = (value - expected[key]).float().norm() / expected[key].float().norm()
                self.assertLess(error, 0.02, key)


if __name__ == "__main__":
    unittest.main()
