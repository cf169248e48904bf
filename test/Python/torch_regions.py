# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Norms and MLPs that are compiled by themselves: values within roundings, how often something is compiled, and what
stays as it was."""

import copy
import itertools
import unittest
from unittest import mock

import torch
from torch import nn
from torch._dynamo.utils import counters

import fp8
import fp8.torch
from fp8.torch import regions


class Norm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(size) + 0.5)

    def forward(self, x):
        wide = x.float()
        return self.weight * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype)


class MLP(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(k, n), nn.Linear(k, n), nn.Linear(n, k)
        self.activation = nn.SiLU()

    def forward(self, x):
        return self.down(self.activation(self.gate(x)) * self.up(x))


class Layer(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.norm, self.mlp, self.mix = Norm(k), MLP(k, n), nn.Linear(k, k)

    def forward(self, x):
        return x + self.mlp(self.norm(x + self.mix(x).cumsum(1)))


COMPILE, BACKENDS = torch.compile, []


def make(layers=3, k=64, n=128):
    torch.manual_seed(0)
    return nn.Sequential(*(Layer(k, n) for _ in range(layers)), Norm(k)).bfloat16().eval()


def compile(function, backend):
    """As torch.compile, with what is Inductor's run operation by operation."""
    if backend == "fp8":
        BACKENDS.append(fp8.torch.Backend(rest="eager"))
    return COMPILE(function, backend=BACKENDS[-1] if backend == "fp8" else "aot_eager")


def count():
    return counters["stats"]["unique_graphs"]


class Regions(unittest.TestCase):
    def setUp(self):
        torch.compiler.reset()
        counters.clear()
        BACKENDS.clear()
        self.enterContext(mock.patch.object(regions.torch, "compile", compile))

    @torch.inference_mode()
    def test_values(self):
        """A program of ours and two graphs of norms for all layers and lengths, and one of each for one sequence."""
        for quantizes in (True, False):
            torch.compiler.reset()
            counters.clear()
            model = make()
            if quantizes:
                fp8.torch.quantize_for_inference(model, filter="*.mlp.*")
            plain = copy.deepcopy(model)
            self.assertIs(fp8.torch.compile_regions(model, least_rows=16), model)
            for batch, length in itertools.product((1, 3), (16, 17, 40, 100, 333)):
                x = torch.randn(batch, length, 64).bfloat16()
                expected, got = plain(x).float(), model(x).float()
                self.assertLess(((got - expected).norm() / expected.norm()).item(), 0.01)
                if length == 16:
                    first = count()
                self.assertEqual(count(), first, (batch, length))
            self.assertLessEqual(count(), 4)
        backend, = BACKENDS
        self.assertEqual(len(backend.fused), 2)

    @torch.inference_mode()
    def test_few_rows(self):
        model = fp8.torch.quantize_for_inference(make())
        plain = copy.deepcopy(model)
        fp8.torch.compile_regions(model)
        x = torch.randn(2, 63, 64).bfloat16()
        self.assertTrue(torch.equal(model(x), plain(x)))
        self.assertEqual(count(), 0)

    @torch.inference_mode()
    def test_widths(self):
        """Norms of other widths, as those of queries and keys, do not make a width dynamic."""
        model = nn.ModuleList(nn.Sequential(Norm(k), MLP(k, n)) for k, n in ((64, 128), (32, 64), (128, 64))).bfloat16()
        fp8.torch.compile_regions(fp8.torch.quantize_for_inference(model, filter="*.1.*"), least_rows=1)
        for length, part in itertools.product((20, 30, 40), model):
            x = torch.randn(1, length, part[0].weight.numel()).bfloat16()
            part(x)
        self.assertEqual(count(), 6)

    def test_which(self):
        model = fp8.torch.quantize_for_inference(make(1), filter="*.mlp.*")
        model.add_module("plain", MLP(64, 64))
        model.add_module("layer_norm", nn.LayerNorm(64))
        model.add_module("batch_norm", nn.BatchNorm1d(64))
        found = {name: regions._find_backend(module) for name, module in model.named_modules()}
        self.assertEqual({name: backend for name, backend in found.items() if backend}, {
            "0.norm": "inductor", "0.mlp": "fp8", "1": "inductor", "plain": "inductor", "layer_norm": "inductor"})

    def test_gradients(self):
        model = make(1).float()
        plain = copy.deepcopy(model)
        fp8.torch.compile_regions(model, least_rows=16)
        x = torch.randn(2, 20, 64)
        for each in (model, plain):
            each(x).sum().backward()
        for one, other in zip(model.parameters(), plain.parameters()):
            torch.testing.assert_close(one.grad, other.grad)
        self.assertEqual(count(), 2)

    @torch.inference_mode()
    def test_hooks_of_children(self):
        """They run, also if they come after the region was compiled."""
        model, seen = regions.compile_regions(make(1)), []
        x = torch.randn(1, 256, 64).bfloat16()
        with torch.no_grad():
            model(x)
            model[0].mlp.down.register_forward_hook(lambda module, arguments, result: seen.append(result))
            model(x)
        self.assertEqual(len(seen), 1)

    def test_attention_is_none(self):
        class Attention(MLP):
            pass

        self.assertIsNone(regions._find_backend(Attention(64, 64)))
        self.assertEqual(regions._find_backend(MLP(64, 64)), "inductor")

    def test_hooks_and_keywords(self):
        model = make(1)
        fp8.torch.compile_regions(model, least_rows=1)
        seen = []
        model[0].mlp.register_forward_hook(lambda module, arguments, result: seen.append(result))
        x = torch.randn(2, 20, 64).bfloat16()
        model(x)
        self.assertEqual(len(seen), 1)
        before = count()
        model[1](x=x)
        self.assertEqual(count(), before)

    @torch.inference_mode()
    def test_within_another_graph(self):
        model = fp8.torch.compile_regions(fp8.torch.quantize_for_inference(make(), filter="*.mlp.*"), least_rows=1)
        backend = fp8.torch.Backend(rest="eager")
        compiled = COMPILE(model, backend=backend, fullgraph=True)
        x = torch.randn(2, 20, 64).bfloat16()
        expected = copy.deepcopy(model)(x).float()
        self.assertLess((compiled(x).float() - expected).norm() / expected.norm(), 0.01)
        self.assertEqual(count(), 1)
        self.assertTrue(backend.fused)

    def test_mistakes(self):
        for model in (nn.Linear(4, 4), nn.Sequential(nn.ReLU()), "model"):
            with self.assertRaises(fp8.ArgumentError):
                fp8.torch.compile_regions(model)
        for rows in (0, -1, 1.5, True, None):
            with self.assertRaisesRegex(fp8.ArgumentError, "least_rows"):
                fp8.torch.compile_regions(make(1), least_rows=rows)


if __name__ == "__main__":
    unittest.main()
