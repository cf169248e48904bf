# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Parts of a Backend that take the codes of weights which an optimizer writes: the bits of those that quantize themselves."""

import copy
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import torch  # noqa: E402
from samples import sample  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

import fp8  # noqa: E402
import fp8.torch  # noqa: E402

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


class Twice(nn.Module):
    """What is no matrix, sizes that are no multiples of 16, a weight that is used twice, and one that is written."""

    def __init__(self):
        super().__init__()
        self.narrow, self.wide = nn.Linear(WIDTH, 100, bias=False), nn.Linear(100, WIDTH)
        self.both, self.last = nn.Linear(WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH)
        self.same = self.both
        self.table = nn.Embedding(16, WIDTH)
        self.batches = nn.Parameter(torch.randn(2, WIDTH, WIDTH) / 12)

    def forward(self, x, places):
        y = F.layer_norm(self.wide(self.narrow(x + self.table(places))), [WIDTH])
        y = F.layer_norm(self.same(torch.tanh(self.both(y))), [WIDTH])
        y = torch.bmm(y.reshape(2, ROWS // 2, WIDTH), self.batches).reshape(ROWS, WIDTH)
        return self.last(F.layer_norm(y, [WIDTH]))


class Training:
    def __init__(self, model, recipe, writes, options=(), **keywords):
        torch._dynamo.reset()
        self.model = copy.deepcopy(model)
        self.backend = fp8.torch.Backend(recipe, target="cpu", **{"rest": "eager", **keywords})
        self.options = {**({"backend": self.backend} if writes else {}), **dict(options)}
        self.optimizer = self.fuse(self.model.parameters())
        self.call = torch.compile(self.model, backend=self.backend, dynamic=False)
        self.calls, self.results = 0, []

    def fuse(self, parameters):
        """An optimizer of these, that is fused."""
        return fp8.torch.fuse_optimizer(self.model, torch.optim.AdamW(parameters, 1e-2, fused=True), **self.options)

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

    def train(self, recipe, run=None, model=Model, **options):
        torch.manual_seed(0)
        model, ways = model().bfloat16(), []
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
        for recipe in sample("delayed", "rowwise", "current", "block", count=2):
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

        for recipe in sample("block", "current"):
            self.check_taken(self.train(recipe, run))

    def test_averages(self):
        """As they are swapped in for an evaluation, through what PyTorch does not count."""
        def run(way):
            way.step(2)
            kept = [value.detach().clone() for value in way.model.parameters()]
            way.model.eval()
            for value in way.model.parameters():
                value.data.mul_(0.5)
            with torch.no_grad():
                way.results.append(way.run())
            for value, before in zip(way.model.parameters(), kept):
                value.data.copy_(before)
            way.model.train()
            way.step()

        for recipe in sample("current", "rowwise"):
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

    def test_weights_of_others(self):
        way = self.train("current", model=Twice)
        self.assertNotIn("both.weight", way.written._layers)
        reasons = {"narrow.weight": "its sizes 128 and 100 are no multiples of 16", "batches": "it has 3 dimensions"}
        for name, reason in reasons.items():
            if name in way.written.left:
                self.assertEqual(way.written.left[name], reason)
                self.assertIn(f"{name}: no step writes its codes: {reason}", way.backend.left)
        self.assertIn("batches", way.written.left)

    def test_shared_memory(self):
        # A step of the one would leave codes of the other as they were.
        torch.manual_seed(0)
        model, ways = Model().bfloat16(), []
        for writes in (False, True):
            way = Training(model, "current", False)
            way.model.turned = nn.Parameter(way.model.square.weight.data)
            if writes:
                way.options["backend"] = way.backend
            others = [each for each in way.model.parameters() if each is not way.model.turned]
            way.optimizer = way.fuse([{"params": others}, {"params": [way.model.turned]}])
            way.step(3)
            ways.append(way)
        self.assert_same(ways)
        self.assertEqual(ways[1].written.left["square.weight"], "it shares its memory with turned")

    def test_without_readers(self):
        # A part quantizes all of its weights, and so none of them is written.
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(WIDTH, 100, bias=False), nn.Linear(100, WIDTH, bias=False)).bfloat16()
        backend = fp8.torch.Backend("current", target="cpu", rest="eager")
        fp8.torch.fuse_optimizer(model, torch.optim.AdamW(model.parameters(), fused=True), backend=backend)
        torch._dynamo.reset()
        torch.compile(model, backend=backend)(torch.randn(ROWS, WIDTH).bfloat16())
        self.assertEqual(backend._written._layers, {})

    def test_replaced_parameters(self):
        def run(way):
            way.step()
            way.model.up.weight = nn.Parameter(-2 * way.model.up.weight.detach())
            way.optimizer = way.fuse(way.model.parameters())
            way.step(2)
            way.model.load_state_dict({name: -value for name, value in way.model.state_dict().items()}, assign=True)
            way.optimizer = way.fuse(way.model.parameters())
            way.step(2)

        for recipe in sample("current", "block"):
            self.check_taken(self.train(recipe, run))

    def test_tensors_for_parameters(self):
        def run(way):
            way.step()
            x, places = torch.ones(ROWS, WIDTH).bfloat16(), torch.arange(ROWS) % 16
            for make in (lambda value: 2 * value, lambda value: nn.Parameter(2 * value)):
                values = {f"_orig_mod.{name}": make(value.detach()) for name, value in way.model.named_parameters()}
                with torch.no_grad():
                    way.results.append(torch.func.functional_call(way.call, values, (x, places)))
            way.step()

        self.train("current", run)

    def test_several_optimizers(self):
        def run(way):
            own = list(way.model.up.parameters())
            others = [each for each in way.model.parameters() if all(each is not mine for mine in own)]
            optimizers = [way.fuse(own), way.fuse(others)]
            for _ in range(3):
                way.results.append(way.run())
                way.results[-1].float().square().mean().backward()
                for optimizer in optimizers:
                    optimizer.step()
                    optimizer.zero_grad()

        for recipe in sample("delayed", "current"):
            self.check_taken(self.train(recipe, run))

    def test_added_groups(self):
        def run(way):
            group = way.optimizer.param_groups[0]
            late, group["params"] = [group["params"][i] for i in (0, 2)], [each for i, each in enumerate(group["params"]) if i not in (0, 2)]
            way.step(2)
            way.optimizer.add_param_group({"params": late})
            way.step(2)

        way = self.train("current", run)
        self.assertEqual(way.written.left, {})
        self.check_taken(way)

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
        with self.assertRaisesRegex(fp8.ArgumentError, "expected backend to be a Backend, but got 'fp8'"):
            fp8.torch.fuse_optimizer(model, optimizer, backend="fp8")
        way = Training(model, "current", True)
        with self.assertRaisesRegex(fp8.ArgumentError, "expected the model that fuse_optimizer was given with this Backend before"):
            fp8.torch.fuse_optimizer(model, optimizer, backend=way.backend)
        # A Backend without an optimizer quantizes all.
        backend = fp8.torch.Backend("current", target="cpu", rest="eager")
        optimizer = torch.optim.AdamW(model.parameters(), fused=True)
        optimizer.step = lambda: None
        with self.assertRaisesRegex(fp8.ArgumentError, "something has replaced"):
            fp8.torch.fuse_optimizer(model, optimizer, backend=backend)
        torch.compile(model, backend=backend)(torch.randn(ROWS, WIDTH).bfloat16(), torch.arange(ROWS) % 16)
        self.assertEqual(backend._written._layers, {})


if __name__ == "__main__":
    unittest.main()
