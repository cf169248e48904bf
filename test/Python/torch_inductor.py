# REQUIRES: pytorch, python-pytorch, cxx
# RUN: %import_python %s
"""What is not ours is compiled by Inductor."""

import copy
import unittest

import torch
from torch import nn
from torch.nn import functional as F

import fp8.torch


class Layer(nn.Module):
    """Grouped queries, with what a part makes of them between products and attention."""

    def __init__(self, width=64, heads=4, groups=2):
        super().__init__()
        self.heads, self.groups, size = heads, groups, width // heads
        self.norm = nn.LayerNorm(width)
        self.q, self.out = (nn.Linear(width, width) for _ in range(2))
        self.kv = nn.Linear(width, 2 * groups * size)

    def forward(self, x):
        batch, length, width = x.shape
        y = self.norm(x)
        q = self.q(y).view(batch, length, self.heads, -1).transpose(1, 2) * 1.5
        k, v = (z.reshape(batch, length, self.groups, -1).transpose(1, 2)
                for z in self.kv(y).chunk(2, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        y = F.gelu(self.out(y.transpose(1, 2).reshape(batch, length, width)))
        return torch.cumsum(x + y, 1)


def train(model, call):
    torch.manual_seed(2)
    x = torch.randn(2, 16, 64, dtype=torch.bfloat16, requires_grad=True)
    y = call(x)
    y.backward(torch.randn_like(y))
    values = [y.detach(), x.grad, *(parameter.grad for parameter in model.parameters())]
    model.zero_grad()
    return values


def get_error(value, expected):
    return ((value - expected).float().norm() / expected.float().norm()).item()


class Inductor(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(1)
        self.model = Layer().bfloat16()

    def compile(self, recipe, **options):
        backend = fp8.torch.Backend(recipe, target="cpu", cache=False, **options)
        return backend, torch.compile(copy.deepcopy(self.model), backend=backend)

    def test_without_fp8_the_bits_are_inductors(self):
        backend, ours = self.compile(None)
        got = train(ours, ours)
        self.assertEqual(backend.parts, [])
        torch._dynamo.reset()
        theirs = torch.compile(copy.deepcopy(self.model))
        for value, other in zip(got, train(theirs, theirs)):
            self.assertTrue(torch.equal(value, other))

    def test_parts_around_attention(self):
        backend, ours = self.compile("current")
        got, expected = train(ours, ours), train(self.model, self.model)
        for value, other in zip(got, expected):
            self.assertLess(get_error(value, other), 0.15)
        self.assertEqual(sorted({remark.role for remark in backend.remarks}),
                         ["dgrad", "fprop", "wgrad"])
        self.assertTrue(all(remark.kind == "fp8" for remark in backend.remarks), backend.remarks)
        self.assertTrue(any("cumsum" in line for line in backend.left), backend.left)


if __name__ == "__main__":
    unittest.main()
