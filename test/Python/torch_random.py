# REQUIRES: pytorch, python-pytorch
# RUN: env FP8_CUDA_DRIVER=emulator %import_python %s
"""Transformer layers of random sizes by the backend: the kernels of a GPU, on the emulator, and
the CPU's code compute the same, but for what sums in another order change. More of them:
torch_random.py FIRST COUNT."""

import random
import sys
import unittest
import warnings
from pathlib import Path
from unittest import mock

import torch
from torch import nn

import fp8.torch
from fp8.torch import partitions

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "examples"))
from train_transformer import MLP, Attention  # noqa: E402

RECIPES = ["none", "delayed", "current", "rowwise", "block", "mxfp8", "nvfp4"]
FIRST, COUNT = map(int, sys.argv[1:3]) if len(sys.argv) > 2 else (0, 5)


class Layer(nn.Module):
    def __init__(self, width, heads, wide, activation, norm):
        super().__init__()
        self.before, self.between = norm(width), norm(width)
        self.attention = Attention(width, heads)
        self.mlp = MLP(width, wide) if activation is None else nn.Sequential(
            nn.Linear(width, wide), activation, nn.Linear(wide, width))

    def forward(self, x):
        x = x + self.attention(self.before(x))
        return x + self.mlp(self.between(x))


class Case:
    def __init__(self, number):
        choose = random.Random(number).choice
        self.recipe = RECIPES[number % len(RECIPES)]
        self.width, self.wide = choose([64, 96, 128, 192, 256]), choose([96, 128, 200, 256, 384])
        self.heads, self.batch = choose([1, 2, 4]), choose([1, 2, 3, 4])
        self.length = choose([16, 33, 64, 100, 128])
        self.activation = choose([None, nn.GELU(approximate="tanh"), nn.ReLU()])
        self.norm = choose([nn.RMSNorm, nn.LayerNorm])
        self.autocast, self.dynamic = choose([False, True]), choose([None, None, True])

    def run(self, recipe, target):
        """The result and all gradients."""
        torch._dynamo.reset()
        torch.manual_seed(1)
        layer = Layer(self.width, self.heads, self.wide, self.activation, self.norm)
        x = torch.randn(self.batch, self.length, self.width)
        dy = torch.randn(self.batch, self.length, self.width)
        if not self.autocast:
            layer, x, dy = layer.bfloat16(), x.bfloat16(), dy.bfloat16()
        x.requires_grad_()
        backend = fp8.torch.Backend(recipe, target=target, rest="eager", cache=False)
        # Without a recipe all would be Inductor's.
        takes_all = mock.patch.object(partitions, "takes_all", recipe == "none")
        with takes_all, torch.autocast("cpu", torch.bfloat16, enabled=self.autocast):
            y = torch.compile(layer, backend=backend, dynamic=self.dynamic)(x)
        y.backward(dy)
        return {"y": y.detach(), "x": x.grad,
                **{name: value.grad for name, value in layer.named_parameters()}}


def get_error(value, expected):
    return ((value.float() - expected.float()).norm() / expected.float().norm()).item()


class Layers(unittest.TestCase):
    def test_kernels_beside_the_cpu(self):
        warnings.simplefilter("ignore")  # Products that are too small for a recipe.
        for number in range(FIRST, FIRST + COUNT):
            case = Case(number)
            with self.subTest(number=number, **vars(case)):
                exact = case.run("none", "cpu")
                expected = case.run(case.recipe, "cpu")
                for name, value in case.run(case.recipe, "sm_90a").items():
                    # A last bit decides for another code here and there, which is as far off
                    # as a rounding.
                    limit = 0.01 + get_error(expected[name], exact[name])
                    self.assertLess(get_error(value, expected[name]), limit, name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
