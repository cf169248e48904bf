# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Parts of a Backend that take the codes of weights which an optimizer writes: the bits of those that quantize themselves."""

import copy
import unittest

import torch
from torch import nn
from torch.nn import functional as F

import fp8
import fp8.torch

ROWS, WIDTH, WIDE = 128, 128, 256


class Model(nn.Module):
    """Weights of different sizes, a square one, one that is used transposed, and one that is no product's."""

    def __init__(self):
        super().__init__()
        self.up, self.down, self.square = nn.Linear(WIDTH, WIDE), nn.Linear(WIDE, WIDTH), nn.Linear(WIDTH, WIDTH, bias=False)
        self.turned = nn.Parameter(torch.randn(WIDTH, WIDTH) / 12)
        self.table = nn.Embedding(16, WIDTH)

    def forward(self, x, places):
        y = x + self.table(places)
        y = self.down(F.gelu(self.up(y))) + x
        return torch.tanh(self.square(y)) @ self.turned


class Training:
    def __init__(self, model, recipe, writes, options=(), **keywords):
        torch._dynamo.reset()
        self.model = copy.deepcopy(model)
        self.backend = fp8.torch.Backend(recipe, target="cpu", **{"rest": "eager", **keywords})
        self.optimizer = torch.optim.AdamW(self.model.parameters(), 1e-2, fused=True)
        fp8.torch.fuse_optimizer(self.model, self.optimizer, **({"backend": self.backend} if writes else {}), **dict(options))
        self.call = torch.compile(self.model, backend=self.backend, dynamic=False)
        self.calls, self.results = 0, []

    def run(self):
        generator = torch.Generator().manual_seed(self.calls)
        self.calls += 1
        x, scale = torch.randn(ROWS, WIDTH, generator=generator).bfloat16().requires_grad_(), 1 + self.calls
        return self.call(scale * x, torch.arange(ROWS) % 16)

    def step(self, times=1):
        for _ in range(times):
            y = self.run()
            y.float().square().mean().backward()
            self.results += [y.detach(), *(value.grad for value in self.model.parameters() if value.grad is not None)]
            self.optimizer.step()
            self.optimizer.zero_grad()

    @property
    def written(self):
        return self.backend._written


class WrittenWeightsTest(unittest.TestCase):
    def assert_same(self, ways):
        for before, after in zip(*(way.results for way in ways), strict=True):
            self.assertTrue(torch.equal(before, after))
        for before, after in zip(*(way.model.parameters() for way in ways)):
            self.assertTrue(torch.equal(before, after))

    def train(self, recipe, run=None, **options):
        torch.manual_seed(0)
        model, ways = Model().bfloat16(), []
        for writes in (False, True):
            way = Training(model, recipe, writes, **options)
            (run or (lambda way: way.step(3)))(way)
            ways.append(way)
        self.assert_same(ways)
        return ways[1]

    def check_taken(self, way, names=("up.weight", "down.weight", "square.weight", "turned")):
        self.assertEqual(sorted(way.written._layers), sorted(names))
        self.assertEqual(way.written.left, {})
        parts = [part for part in way.backend.parts if part._weights is not None]
        self.assertTrue(parts)
        # None has quantized a weight.
        self.assertTrue(all(part._weights._was_written and part._weights._key is None for part in parts))

    def test_recipes(self):
        for recipe in ("delayed", "current", "block", "rowwise"):
            with self.subTest(recipe):
                self.check_taken(self.train(recipe))

    def test_options(self):
        self.check_taken(self.train("delayed", rest="inductor", options={"moments": "fp8", "masters": "stochastic"}))
        self.check_taken(self.train("current", transposed_codes="kernel"))

    def test_other_changes(self):
        def run(way):
            way.step()
            state = {name: 2 * value for name, value in way.model.state_dict().items()}
            way.model.load_state_dict(state)
            way.step(2)
            with torch.no_grad():
                way.model.up.weight.add_(1.0)
                way.results.append(way.run())

        for recipe in ("current", "block"):
            self.check_taken(self.train(recipe, run))

    def test_accumulated(self):
        def run(way):
            for _ in range(3):
                with fp8.torch.accumulated(way.backend):
                    for _ in range(2):
                        way.run().float().square().mean().backward()
                way.optimizer.step()
                way.results += [value.grad for value in way.model.parameters()]
                way.optimizer.zero_grad()

        self.check_taken(self.train("delayed", run))

    def test_checkpoints(self):
        torch.manual_seed(0)
        model, ways = Model().bfloat16(), []
        for stops in (False, True):
            way = Training(model, "delayed", True)
            way.step(2)
            if stops:
                saved = copy.deepcopy((way.model.state_dict(), way.optimizer.state_dict(), way.backend.state_dict()))
                self.assertIn("written.square.weight", saved[2])
                other = Training(model, "delayed", True)
                other.step()
                for each, state in zip((other.model, other.optimizer, other.backend), saved):
                    each.load_state_dict(state)
                other.calls, other.results, way = way.calls, way.results, other
            way.step(3)
            ways.append(way)
        self.assert_same(ways)

    def test_within_backward(self):
        ways = [self.train("delayed", options={"in_backward": is_in}) for is_in in (False, True)]
        for before, after in zip(*(way.model.parameters() for way in ways)):
            self.assertTrue(torch.equal(before, after))

    def test_what_is_not_written(self):
        torch.manual_seed(0)
        model = Model().bfloat16()
        model.up.weight.requires_grad_(False)
        way = Training(model, "current", True)
        # Parts with a weight that the optimizer does not have quantize their own.
        way.optimizer.param_groups[0]["params"] = [each for each in way.optimizer.param_groups[0]["params"] if each.requires_grad]
        other = Training(model, "current", False)
        for each in (way, other):
            each.step(2)
        self.assert_same([other, way])

    def test_errors(self):
        model = Model().bfloat16()
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        for recipe in (None, "none", "mxfp8", "nvfp4"):
            with self.assertRaisesRegex(fp8.ArgumentError, "expected a Backend with one recipe"):
                fp8.torch.fuse_optimizer(model, optimizer, backend=fp8.torch.Backend(recipe, target="cpu"))
        self.assertIs(type(optimizer), torch.optim.AdamW)
        way = Training(model, "current", False)
        way.step()
        with self.assertRaisesRegex(fp8.ArgumentError, "before the first call"):
            fp8.torch.fuse_optimizer(way.model, way.optimizer, backend=way.backend)


if __name__ == "__main__":
    unittest.main()
