# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Stochastic rounding of gradients in layers and compiled modules of PyTorch."""

import unittest

import torch
from torch import nn

import fp8
import fp8.torch

torch.set_num_threads(1)

RECIPE = fp8.NVFP4BlockScaling(enable_stochastic_rounding=True)
ROTATED = fp8.NVFP4BlockScaling(enable_stochastic_rounding=True, enable_rht=True)


def make_layer(recipe=RECIPE):
    layer = fp8.torch.Linear(64, 48, bias=False, dtype=torch.bfloat16, recipe=recipe)
    with torch.no_grad():
        layer.weight.copy_(torch.eye(48, 64))
    return layer


def make_values(seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(32, size, generator=generator).to(torch.bfloat16) for size in (64, 48)]


def get_gradients(layer, x, dy):
    """Gradients of the input and of the weight, of a layer or a compiled one."""
    x = x.clone().requires_grad_()
    weight, = layer.parameters()
    weight.grad = None
    layer(x).backward(dy)
    return x.grad, weight.grad.clone()


class Seeds(unittest.TestCase):
    def test_layers_and_steps_differ(self):
        x, dy = make_values()
        layers = [make_layer(), make_layer()]
        seen = [get_gradients(layer, x, dy)[0].float().numpy().tobytes()
                for layer in layers for _ in range(3)]
        self.assertEqual(len(set(seen)), len(seen))

    def test_saved(self):
        x, dy = make_values()
        first, second = make_layer(ROTATED), make_layer(ROTATED)
        get_gradients(first, x, dy)
        second.load_state_dict(first.state_dict())
        for _ in range(2):
            for a, b in zip(get_gradients(first, x, dy), get_gradients(second, x, dy)):
                self.assertTrue(torch.equal(a, b))

    def test_mean(self):
        """Over steps the gradient of an input comes near to the exact one, which the weight,
        of ones and zeros, leaves alone; and that of the weight as near as x's codes allow."""
        for recipe in (RECIPE, ROTATED):
            layer, (x, dy) = make_layer(recipe), make_values()
            total, count = 0, 100
            for _ in range(count):
                dx, dw = get_gradients(layer, x, dy)
                total = total + dx.double() / count
            exact = dy.double() @ layer.weight.double()
            self.assertLess((total - exact).norm() / exact.norm(), 0.03)
            self.assertGreater((dx.double() - exact).norm() / exact.norm(), 0.1)
            exact = dy.double().T @ x.double()
            self.assertLess((dw.double() - exact).norm() / exact.norm(), 0.3)

    def test_forward_is_to_nearest(self):
        x, _ = make_values()
        layer = make_layer()
        results = [layer(x) for _ in range(2)]
        self.assertTrue(torch.equal(*results))
        self.assertTrue(torch.equal(results[0], make_layer(fp8.NVFP4BlockScaling())(x)))

    def test_compiled(self):
        x, dy = make_values()
        linear = nn.Linear(64, 48, bias=False, dtype=torch.bfloat16)
        compiled = torch.compile(linear, backend="fp8", options={"recipe": ROTATED, "rest": "eager"})
        seen = [get_gradients(compiled, x, dy)[1] for _ in range(3)]
        self.assertEqual(len({gradient.float().numpy().tobytes() for gradient in seen}), 3)
        exact = dy.double().T @ x.double()
        self.assertLess((seen[0].double() - exact).norm() / exact.norm(), 0.3)


if __name__ == "__main__":
    unittest.main()
