# REQUIRES: pytorch, python-pytorch, cxx
# RUN: %import_python %s
"""Attention in graphs that Inductor compiles around it: a training step of a block, of any number of positions, in all
ways in which it may be asked for."""

import unittest

import torch
from torch import nn
from torch.nn import functional as F

import fp8
import fp8.torch


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.norm, self.qkv, self.out = nn.LayerNorm(64), nn.Linear(64, 192, bias=False), nn.Linear(64, 64, bias=False)

    def forward(self, x):
        q, k, v = (y.reshape(*x.shape[:2], 4, 16).transpose(1, 2) for y in self.qkv(self.norm(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q * 0.5, k, v, is_causal=True)
        return x + self.out(F.gelu(y.transpose(1, 2).flatten(2)))


class Compiled(unittest.TestCase):
    def train(self, model, x, parameters):
        y = model(x)
        return [y.detach(), *torch.autograd.grad(y.square().sum(), parameters)]

    def compare(self, make, tolerance, dynamic=None):
        torch._dynamo.reset()
        model = Block()
        parameters = list(model.parameters())
        compiled = make(model, dynamic)
        for positions in (16, 24):
            x = torch.randn(2, positions, 64, generator=torch.Generator().manual_seed(positions))
            for found, expected in zip(self.train(compiled, x, parameters), self.train(model, x, parameters)):
                self.assertTrue(found.isfinite().all())
                self.assertLess(((found - expected).norm() / expected.norm()).item(), tolerance)

    def test_the_backend(self):
        for recipe, attention, dynamic, tolerance in (
                (None, "fp8", True, 1e-4), (fp8.Float8CurrentScaling(), "fp8", False, 0.15),
                (fp8.Float8CurrentScaling(fp8_dpa=True), None, True, 0.2)):
            with self.subTest(recipe=str(recipe), dynamic=dynamic):
                backend = fp8.torch.Backend(recipe, attention=attention)
                self.compare(lambda model, dynamic: torch.compile(model, backend=backend, dynamic=dynamic), tolerance,
                             dynamic)
                self.assertEqual(len(backend.attention.taken), 1)
                self.assertEqual(backend.attention.reasons, ())

    def test_a_mode_around_it(self):
        with fp8.torch.use_attention(format="e4m3") as used:
            compiled = []
            self.compare(lambda model, dynamic: compiled.append(torch.compile(model)) or compiled[0], 0.1)
        self.assertEqual(used.taken, ("4 heads over 4 of 16 columns, causal in e4m3",))


if __name__ == "__main__":
    unittest.main()
