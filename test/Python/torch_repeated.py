# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""What layers repeat between their products, compiled once: how often that is, the bits of graphs that share nothing,
caches that are written, and what is left as it is."""

import unittest
from unittest import mock

import torch
from torch import nn
from torch._inductor import compile_fx

import fp8.torch
from fp8.torch import backend, repeated

WIDTH, ROOM = 32, 8


class Layer(nn.Module):
    """Attends to a cache that has room behind the last key."""

    def __init__(self, share=None):
        super().__init__()
        self.norm, self.read = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, 3 * WIDTH)
        self.write = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("keys", torch.zeros(1, ROOM, WIDTH, dtype=torch.bfloat16))
        self.register_buffer("values", torch.zeros(1, ROOM, WIDTH, dtype=torch.bfloat16))
        self.register_buffer("length", torch.zeros(1, dtype=torch.int64))
        self.share = share

    def mix(self, query, keys, values):
        scores = query @ keys.transpose(1, 2)
        seen = torch.arange(ROOM) <= self.length
        return torch.where(seen, scores.float(), -1e9).softmax(-1).bfloat16() @ values

    def forward(self, x, angle):
        query, key, value = self.read(self.norm(x)).split(WIDTH, -1)
        turned = torch.cat([-query[..., WIDTH // 2:], query[..., :WIDTH // 2]], -1)
        query = query * angle.cos() + turned * angle.sin()
        self.keys.index_copy_(1, self.length, key)
        self.values.index_copy_(1, self.length, value)
        mixed = self.mix(query, self.keys, self.values if self.share is None else self.share.values)
        self.length.add_(1)
        return x + self.write(mixed)


class Model(nn.Module):
    def __init__(self, count, shares=False):
        super().__init__()
        self.layers = nn.ModuleList()
        for i in range(count):
            self.layers.append(Layer(self.layers[-1] if shares and i else None))

    def forward(self, x, angle):
        for layer in self.layers:
            x = layer(x, angle)
        return x.cumsum(-1)


class Dropping(Layer):
    def mix(self, query, keys, values):
        return nn.functional.dropout(super().mix(query, keys, values), 0.5, True)


def make(*arguments, **options):
    torch.manual_seed(1)
    model = Model(*arguments, **options)
    for value in model.parameters():
        value.data = value.data.bfloat16()
    return fp8.torch.quantize_for_inference(model.eval())


class Repeated(unittest.TestCase):
    def setUp(self):
        torch.compiler.reset()
        self.enterContext(torch.no_grad())
        self.compiled = []
        inner = backend._interpret

        def compile(module, inputs, **others):
            self.compiled.append(module)
            return inner(module, inputs, **others)

        self.enterContext(mock.patch.object(backend, "_interpret", compile))

    def run_both(self, *arguments, rows=1, **options):
        """Two steps with and without sharing. Returns how many graphs were compiled with it."""
        found = []
        for shares in (False, True):
            torch.compiler.reset()
            self.compiled.clear()
            model = make(*arguments, **options)
            call = torch.compile(model, backend=fp8.torch.Backend(rest="eager", share_layers=shares))
            torch.manual_seed(2)
            with torch.random.fork_rng():
                results = [call(torch.randn(1, rows, WIDTH).bfloat16(), torch.rand(1, 1, WIDTH).bfloat16())
                           for _ in range(2)]
            found.append([*results, *model.buffers()])
        for one, other in zip(*found, strict=True):
            self.assertTrue(torch.equal(one, other))
        return len(self.compiled)

    def count(self, module):
        return sum(node.target is torch.ops.fp8.repeated.default for node in module.graph.nodes)

    def test_depth(self):
        sizes = []
        for layers in (3, 6):
            self.assertEqual(self.run_both(layers), 2)
            shared, whole = self.compiled
            self.assertEqual((self.count(shared), self.count(whole)), (0, layers))
            sizes.append((len(shared.graph.nodes), len(whole.graph.nodes)))
        self.assertEqual(sizes[0][0], sizes[1][0])
        self.assertLess(sizes[1][1] - sizes[0][1], 3 * 24)  # 14 of them are arguments.

    def test_one_layer(self):
        self.assertEqual(self.run_both(1), 1)

    def test_read_by_others(self):
        """Values that the next layer reads, too, are written where they were."""
        self.run_both(3, shares=True)
        self.assertEqual(self.count(self.compiled[-1]), 0)

    def test_random(self):
        with mock.patch.dict(globals(), {"Layer": Dropping}):
            self.run_both(2)

    def test_no_gradient(self):
        model = fp8.torch.quantize_for_inference(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Softmax(0)).bfloat16())
        call = torch.compile(model, backend=fp8.torch.Backend(rest="eager", share_layers=True))
        with torch.enable_grad(), mock.patch.object(repeated, "share", side_effect=AssertionError):
            x = torch.randn(2, WIDTH, dtype=torch.bfloat16, requires_grad=True)
            call(x).float().cumsum(0).sum().backward()
        self.assertEqual(x.grad.shape, x.shape)

    def test_usual(self):
        """By default on a CPU with Inductor, which is told what changes."""
        seen = []

        def compile(module, inputs, **others):
            seen.append((module, others))
            return backend._interpret(module, inputs, **others)

        with mock.patch.object(compile_fx, "compile_fx_inner", compile):
            call = torch.compile(make(2), backend="fp8")
            call(torch.randn(1, 1, WIDTH).bfloat16(), torch.rand(1, 1, WIDTH).bfloat16())
        (shared, others), (whole, _) = seen
        self.assertFalse(others["cudagraphs"].value)
        nodes = [node for node in whole.graph.nodes if node.target is torch.ops.fp8.repeated.default]
        self.assertEqual([len(node.args[1]) for node in nodes], [3, 3])
        self.assertIn("(a", str(torch.ops.fp8.repeated.default._schema))

    def test_key(self):
        with self.assertRaisesRegex(fp8.ArgumentError, "is gone"):
            torch.ops.fp8.repeated("nothing", [], [torch.ones(1)], [])


if __name__ == "__main__":
    unittest.main()
