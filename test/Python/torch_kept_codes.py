# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""What graphs of a backend keep for a backward: codes where it only multiplies, with the same bits."""

import copy
import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import torch  # noqa: E402
from samples import sample  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import fp8  # noqa: E402
import fp8.torch  # noqa: E402

ROWS, WIDTH = 128, 128


def make_layer(inputs=WIDTH, outputs=WIDTH, bias=False):
    return nn.Linear(inputs, outputs, bias=bias)


class Attention(nn.Module):
    """Attention that is written out: its backward does not read its result."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (make_layer() for _ in range(3))
        self.out = make_layer(bias=True)

    def forward(self, x):
        def split(y):
            return y.view(2, ROWS // 2, 4, -1).transpose(1, 2)

        scores = torch.softmax(torch.tanh(split(self.q(x)) @ split(self.k(x)).transpose(-1, -2)), -1)
        y = (scores @ split(self.v(x))).transpose(1, 2).reshape(x.shape)
        return x + self.out(y)


class Gated(nn.Module):
    """Layers that read one sum, as OLMo's behind norms of results."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.gate, self.up = (make_layer() for _ in range(4))

    def forward(self, x):
        y = self.first(x) + self.second(x)
        return F.silu(self.gate(y)) * self.up(y)


class Dropped(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = make_layer(), make_layer()

    def forward(self, x):
        return self.second(F.dropout(self.first(x), 0.25, self.training))


class Adapted(nn.Module):
    """LoRA on a chain of layers that have no gradient of their own."""

    def __init__(self):
        super().__init__()
        self.base, self.a, self.b = make_layer(), make_layer(WIDTH, 32), make_layer(32, WIDTH)
        self.base.requires_grad_(False)

    def forward(self, x):
        return self.base(x) + self.b(self.a(x))


class Multiplied(nn.Module):
    """What is multiplied is also read by a gradient of its own."""

    def __init__(self):
        super().__init__()
        self.first, self.second = make_layer(), make_layer()

    def forward(self, x):
        y = self.first(x)
        return self.second(y) * y


class Turned(nn.Module):
    """Two products of one part read what is kept: as it is, and seen twice transposed."""

    def __init__(self):
        super().__init__()
        self.first, self.second = make_layer(), make_layer()

    def forward(self, x):
        y = self.first(x).flatten(0, 1)
        return y.t() @ self.second(y)


class Experts(nn.Module):
    """Products of groups that read what a layer gives."""

    def __init__(self):
        super().__init__()
        self.first = make_layer()
        self.gate, self.up = (nn.Parameter(torch.randn(4, WIDTH, WIDTH) / 12) for _ in range(2))
        self.register_buffer("ends", torch.tensor([32, 67, 67, ROWS], dtype=torch.int32))

    def forward(self, x):
        y = self.first(x).flatten(0, 1)
        gate, up = (torch._grouped_mm(y, w, offs=self.ends) for w in (self.gate, self.up))
        return F.silu(gate) * up


class Halves(Experts):
    """Groups of a part of what is kept."""

    def forward(self, x):
        y = self.first(x).flatten(0, 1)
        return torch._grouped_mm(y[:, :WIDTH // 2].contiguous(), self.gate[:, :WIDTH // 2].contiguous(), offs=self.ends)


class Checkpointed(Dropped):
    def forward(self, x):
        return checkpoint(super().forward, x, use_reentrant=False)


class Named(Dropped):
    """A parameter has a name such as codes have."""

    def __init__(self):
        super().__init__()
        self.kept0 = nn.Parameter(torch.randn(WIDTH, WIDTH) / 16)

    def forward(self, x):
        return super().forward(x) @ self.kept0


class Returned(Dropped):
    def forward(self, x):
        y = self.first(x)
        return y, self.second(y)


class Training:
    """Steps of a model by a Backend, and what they kept."""

    def __init__(self, model, recipe, keeps, **options):
        torch._dynamo.reset()
        self.model = copy.deepcopy(model)
        dynamic = options.pop("dynamic", None)
        options.setdefault("rest", "eager")
        self.backend = fp8.torch.Backend(recipe, target="cpu", keep_codes=keeps, **options)
        self.call = torch.compile(self.model, backend=self.backend, dynamic=dynamic)
        self.results, self.saved = [], 0

    def forward(self, rows=ROWS, needs_gradient=True):
        x = torch.randn(2, rows // 2, WIDTH).to(next(self.model.parameters()).dtype).requires_grad_(needs_gradient)
        memory = {}

        def pack(value):
            memory[value.untyped_storage().data_ptr()] = value.untyped_storage().nbytes()
            return value

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda value: value):
            result = self.call(x)
        self.saved = sum(memory.values())
        return x, result

    def backward(self, x, result):
        leaves = torch.utils._pytree.tree_leaves(result)
        sum(leaf.float().square().sum() for leaf in leaves).backward()
        self.results += [*(leaf.detach() for leaf in leaves), x.grad, *(value.grad for value in self.model.parameters())]
        self.model.zero_grad()

    def step(self, *arguments):
        self.backward(*self.forward(*arguments))


def accumulate(way):
    way.backend.accumulate()
    for _ in range(2):
        way.step()
    way.backend.end_step()


class KeptCodesTest(unittest.TestCase):
    def train(self, make, recipe, run=None, **options):
        """Both ways of training a model, with the same bits."""
        torch.manual_seed(0)
        model, ways = make().bfloat16(), []
        for keeps in (False, True):
            way = Training(model, recipe, keeps, **options)
            torch.manual_seed(1)
            for _ in range(3):
                (run or Training.step)(way)
            ways.append(way)
        for before, after in zip(*(way.results for way in ways), strict=True):
            self.assertTrue(before is after is None or torch.equal(before, after))
        self.assertEqual(ways[0].backend.kept, [])
        self.assertEqual(*(list(way.backend.state_dict()) for way in ways))
        return ways

    def check(self, layers, *arguments, **options):
        """Trains so, and expects codes for gradients of layers, by their names."""
        before, after = self.train(*arguments, **options)
        self.assertEqual([set(kept.layers) for kept in after.backend.kept],
                         [{f"{name}.wgrad" for name in names.split()} for names in layers])
        less = sum(kept.value_bytes - kept.code_bytes for kept in after.backend.kept)
        self.assertGreater(less, 0)
        self.assertEqual(before.saved - after.saved, less)
        return before, after

    def test_recipes(self):
        for recipe in sample("delayed", "block", "current", "rowwise", "mxfp8", count=2):
            with self.subTest(recipe):
                _, after = self.check(["q k v", "out"], Attention, recipe)
                size = ROWS * WIDTH
                for kept in after.backend.kept:
                    self.assertEqual(kept.value_bytes, 2 * size)
                    self.assertLessEqual(kept.code_bytes, size + size // 32)

    def test_no_bytes(self):
        # Codes of four bits have no form in which functions return them, and products of bf16 have none.
        for recipe in sample("nvfp4", "none"):
            before, after = self.train(Attention, recipe)
            self.assertEqual(after.backend.kept, [])
            self.assertEqual(before.saved, after.saved)

    def test_states(self):
        before, after = self.check(["first second", "gate up"], Gated, "delayed")
        states = [{(part.name, name): slot.scale for part in way.backend.parts for name, slot in part.state.slots.items()}
                  for way in (before, after)]
        self.assertEqual(*states)
        # Also of the other, whose amaxes the other half records.
        before.backend.load_state_dict(after.backend.state_dict())
        after.backend.load_state_dict(before.backend.state_dict())

    def test_chains(self):
        self.check(["first", "second"], Dropped, "current")
        self.check(["a", "b"], Adapted, "delayed")

    def test_two_views(self):
        before, after = self.train(Turned, "current")
        self.assertEqual([], [line for way in (before, after) for line in way.backend.left])
        self.assertEqual({remark.kind for remark in after.backend.remarks}, {"fp8"})
        self.assertTrue(after.backend.kept)

    def test_names(self):
        _, after = self.train(Named, "delayed")
        self.assertIn({"second.wgrad"}, [set(kept.layers) for kept in after.backend.kept])

    def test_needed_otherwise(self):
        # Keeps what is multiplied element by element, returned, or an argument without a gradient.
        self.check(["first"], Multiplied, "current")
        self.check(["first"], Returned, "rowwise")
        self.check(["second"], Dropped, "rowwise", lambda way: way.step(ROWS, False))
        _, after = self.train(Checkpointed, "current")
        self.assertLessEqual(len(after.backend.kept), 1)

    def test_two_forwards(self):
        def run(way):
            first, second = way.forward(), way.forward()
            way.backward(*second)
            way.backward(*first)

        self.check(["first", "second"], Dropped, "current", run)

    def test_accumulated(self):
        self.check(["q k v", "out"], Attention, "delayed", accumulate, cache_weights=True)

    def test_mixed_recipes(self):
        # A layer in four bits beside one in eight: the part takes what they read as it is, and codes of weights.
        with tempfile.TemporaryDirectory() as folder:
            rules = Path(folder) / "rules.json"
            rules.write_text(json.dumps({"version": 1, "rules": [{"match": f"gate{end}", "recipe": "nvfp4"} for end in ("", ".*")]}))
            _, after = self.train(Gated, "current", accumulate, cache_weights=True, recipe_file=rules)
        self.assertEqual([set(kept.layers) for kept in after.backend.kept], [{"first.wgrad", "second.wgrad"}])

    def test_sizes_that_change(self):
        rows = iter([128, 192, 256] * 2)
        before, after = self.train(Dropped, "delayed", lambda way: way.step(next(rows)), dynamic=True)
        self.assertEqual([kept.value_bytes for kept in after.backend.kept], [None, None])
        self.assertLess(after.saved, before.saved)

    def test_inductor(self):
        self.check(["q k v", "out"], Attention, "block", rest="inductor")
        self.check(["first", "gate up"], Experts, "delayed", rest="inductor")

    def test_experts(self):
        for recipe in sample("rowwise", "delayed", "current", "block"):
            with self.subTest(recipe):
                self.check(["first", "gate up"], Experts, recipe)
        self.check(["first", "gate up"], Experts, "delayed", accumulate, cache_weights=True)
        self.train(Halves, "current")


if __name__ == "__main__":
    unittest.main()
