# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""What is in the parts of a Backend, and what is left to Inductor around them."""

import dataclasses
import unittest
from unittest import mock

import torch
from torch import nn

import fp8.torch


class Test(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(0)

    def train(self, model, *inputs, **options):
        """A Backend after a forward and a backward, whose results are near PyTorch's."""
        model = model.bfloat16()
        backend = fp8.torch.Backend("current", target="cpu", cache=False, rest="eager", **options)
        results = []
        for call in (torch.compile(model, backend=backend), model):
            model.zero_grad()
            y = call(*inputs)
            (y.float() * torch.linspace(-1, 1, y.numel()).view_as(y).sin()).sum().backward()
            results.append([y.detach(), *(p.grad.clone() for p in model.parameters())])
        for got, expected in zip(*results, strict=True):
            error = (got - expected).float().norm() / expected.float().norm()
            self.assertLess(error.item(), 0.4)
        return backend

    def get_infos(self, backend, name):
        part = next(part for part in backend.parts if part.name == name)
        function = part.program.main
        return ([(info.dtype, info.shape) for info in function.arguments],
                [(info.dtype, info.shape) for info in function.results])

    def test_a_norm_is_left(self):
        model = nn.Sequential(nn.Linear(64, 64, bias=False), nn.LayerNorm(64),
                              nn.Linear(64, 32, bias=False))
        backend = self.train(model, torch.randn(48, 64).bfloat16())
        forward = [part.name for part in backend.parts if "forward" in part.name]
        self.assertEqual(forward, ["graph0.forward.0", "graph0.forward.1"])
        arguments, results = self.get_infos(backend, "graph0.forward.0")
        self.assertEqual((len(arguments), results), (2, [("BF16", (48, 64))]))

    def test_a_gradient_is_taken_once(self):
        """By dgrad and by wgrad, which reads its transpose."""
        model = nn.Sequential(nn.Linear(64, 96, bias=False), nn.LayerNorm(96),
                              nn.Linear(96, 32, bias=False), nn.LayerNorm(32))
        backend = self.train(model, torch.randn(48, 64).bfloat16())
        arguments, _ = self.get_infos(backend, "graph0.backward.0")
        self.assertEqual(arguments.count(("BF16", (48, 32))), 1, arguments)

    def test_values_of_inductor_are_not_brought_to_memory(self):
        """A chain before a product of values that are not there is Inductor's as a whole."""
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.linear = nn.Linear(64, 32, bias=False)

            def forward(self, x, index):
                return self.linear(torch.relu(x * torch.cumsum(index, 1).to(x.dtype)) * 2)

        x = torch.randn(48, 64).bfloat16()
        backend = self.train(Model(), x, torch.randint(-1, 2, (48, 64)))
        arguments, _ = self.get_infos(backend, "graph0.forward")
        self.assertCountEqual(arguments, [("BF16", (48, 64)), ("BF16", (32, 64))])

    def test_activations_are_computed_again(self):
        """A forward keeps what goes into an activation, and not what comes of it."""
        model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 32))
        backend = self.train(model, torch.randn(48, 64).bfloat16())
        _, results = self.get_infos(backend, "graph0.forward")
        self.assertEqual(sorted(results), [("BF16", (48, 32)), ("BF16", (48, 256))])

    def test_a_bias_is_summed_with_the_cast(self):
        model = nn.Sequential(nn.Linear(64, 32), nn.Softmax(-1))
        backend = self.train(model, torch.randn(48, 64).bfloat16())
        _, results = self.get_infos(backend, "graph0.backward")
        self.assertIn(("BF16", (1, 32)), results)

    def test_constants_of_several_parts(self):
        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList(nn.Linear(64, 64) for _ in range(4))

            def forward(self, x):
                for layer in self.layers:
                    x = torch.where(x > 0, layer(x), torch.zeros((), dtype=x.dtype)).softmax(-1)
                return x

        backend = self.train(Model(), torch.randn(48, 64).bfloat16())
        for part in backend.parts:
            self.assertNotIn((), [info.shape for info in part.program.main.arguments])

    def test_copies_are_no_products(self):
        """Remarks about copies, which have their products' names, do not keep these from FP8."""
        def compile(*arguments, **options):
            program = fp8_compile(*arguments, **options)
            program.remarks = (*program.remarks, *(
                dataclasses.replace(remark, kind="copy") for remark in program.remarks))
            return program

        fp8_compile = fp8.compile
        with mock.patch.object(fp8, "compile", compile):
            backend = self.train(nn.Linear(64, 32), torch.randn(48, 64).bfloat16())
        self.assertEqual([remark.kind for remark in backend.remarks], ["fp8"] * 2)
        self.assertEqual(len(backend.parts), 2)


if __name__ == "__main__":
    unittest.main()
