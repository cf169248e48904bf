# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Layers that read the same activations, as q, k and v do, keep codes of these once: with the bits that they have alone."""

import contextlib
import gc
import os
import shutil
import sys
import unittest
from pathlib import Path

import torch
from torch import nn
from torch._functorch import config
from torch.utils.checkpoint import checkpoint

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import fp8.torch  # noqa: E402
from fp8.torch import linear_ops, shared_codes  # noqa: E402
from kept import alone, count_saved  # noqa: E402

ROWS, WIDTH = 128, 128
RECIPES = ("delayed", "current", "rowwise", "block", "mxfp8")


class Attention(nn.Module):
    """Three layers of one x, and one behind them."""

    def __init__(self, names=("q", "k", "v")):
        super().__init__()
        self.layers = nn.ModuleDict({name: nn.Linear(WIDTH, WIDTH, bias=name != "k") for name in names})
        self.out = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        y = None
        for layer in self.layers.values():
            y = layer(x) if y is None else y * layer(x).sigmoid()
        return self.out(y)


class Parameters(nn.Module):
    """The same by functions of PyTorch, whose products are found within the forward."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Parameter(torch.randn(WIDTH, WIDTH) / 16) for _ in range(3))

    def forward(self, x):
        return (x @ self.q) * (x @ self.k).sigmoid() * (x @ self.v)


def make_model(recipe, model=Attention, dtype=torch.bfloat16, **options):
    torch.manual_seed(0)
    return fp8.torch.convert_to_fp8_training(nn.Sequential(model(), model()).to(dtype), recipe, first_last_bf16=0,
                                             target="cpu", **options)


def make_input(seed=0, dtype=torch.bfloat16):
    return torch.randn(2, ROWS // 2, WIDTH, generator=torch.Generator().manual_seed(seed)).to(dtype)


def train(model, call=None, steps=3, dtype=torch.bfloat16):
    """Results and gradients of some steps."""
    values = []
    for step in range(steps):
        x = make_input(step, dtype).requires_grad_()
        y = (call or model)(x)
        y.float().square().mean().backward()
        values += [y.detach(), x.grad, *(each.grad.clone() for each in model.parameters())]
        model.zero_grad()
    return values


def train_one(layer, x):
    """The gradient of a layer's weight."""
    layer.zero_grad()
    layer(x).float().square().sum().backward()
    return layer.weight.grad.clone()


class Test(unittest.TestCase):
    def check(self, own, expected):
        self.assertEqual(len(own), len(expected))
        for mine, its in zip(own, expected):
            self.assertTrue(torch.equal(mine, its))


class Eager(Test):
    def test_bits(self):
        for recipe in RECIPES:
            for model in (Attention, Parameters):
                with self.subTest(recipe=recipe, model=model.__name__):
                    own = make_model(recipe, model)
                    with alone():
                        other = make_model(recipe, model)
                        expected = train(other)
                        whole, _ = count_saved(lambda: other(make_input()))
                    self.check(train(own), expected)
                    saved, _ = count_saved(lambda: own(make_input()))
                    # Two of three readers, in two modules: codes, and their factors.
                    self.assertGreaterEqual(whole - saved, 4 * ROWS * WIDTH)
                    self.assertLess(whole - saved, 4 * ROWS * WIDTH * 1.05 + 64)

    def test_states(self):
        """Histories of all readers are what they are without: each measures x."""
        own = make_model("delayed")
        train(own)
        with alone():
            other = make_model("delayed")
            train(other)
        for name, value in own.state_dict().items():
            self.assertTrue(torch.equal(value, other.state_dict()[name]), name)

    def test_other_scales(self):
        """Where histories differ, codes that are shared have the scale that they were made with."""
        model = make_model("delayed")
        q, k = (model[0].layers[name] for name in "qk")
        k(make_input() * 64).sum().backward()
        x, dy = make_input(7), make_input(8)
        for _ in range(3):
            k.zero_grad()
            q(x)
            k(x).backward(dy)
            q(x).backward(dy)
        expected = dy.flatten(0, 1).float().t() @ x.flatten(0, 1).float()
        self.assertLess((k.weight.grad.float() - expected).norm(), 0.06 * expected.norm())

    def test_autocast(self):
        """Roundings to the type of autocast are one tensor's."""
        for recipe in ("delayed", "block"):
            own = make_model(recipe, dtype=torch.float32)
            with torch.autocast("cpu", torch.bfloat16):
                with alone():
                    other = make_model(recipe, dtype=torch.float32)
                    expected = train(other, dtype=torch.float32)
                    whole, _ = count_saved(lambda: other(make_input(dtype=torch.float32)))
                self.check(train(own, dtype=torch.float32), expected)
                self.assertGreaterEqual(whole - count_saved(lambda: own(make_input(dtype=torch.float32)))[0], 4 * ROWS * WIDTH)
            with fp8.torch.autocast(recipe):
                model = fp8.torch.convert_to_fp8_training(nn.Sequential(Attention()).bfloat16(), None, first_last_bf16=0, target="cpu")
                saved, y = count_saved(lambda: model(make_input()))
                with alone():
                    self.assertGreaterEqual(count_saved(lambda: model(make_input()))[0] - saved, 2 * ROWS * WIDTH)
                y.sum().backward()

    def test_changes(self):
        """What is written between two readers is seen, through x as through a view of it, and parts are other tensors."""
        q, k, _ = make_model("current")[0].layers.values()
        for write in (lambda x: x.mul_(2), lambda x: x[0].zero_(), lambda x: x.view(-1)[:9].fill_(3)):
            x = make_input()
            q(x)
            with torch.no_grad():
                write(x)
            own = train_one(k, x)
            self.assertTrue(torch.equal(own, train_one(k, x.clone())))
        for view in (lambda x: x[:1], lambda x: x[1:], lambda x: x.transpose(0, 1), lambda x: x.flatten(0, 1)[::2],
                     lambda x: x.neg().view_as(x), lambda x: x.float()[..., :0].sum() + x):
            x = make_input()
            q(x)
            own = train_one(k, view(x))
            self.assertTrue(torch.equal(own, train_one(k, view(x).clone())))
        # Rows in another order of sizes are the same codes.
        x = make_input()
        self.assertEqual(count_saved(lambda: (q(x), k(x.flatten(0, 1))))[0], count_saved(lambda: q(x))[0])

    def test_again(self):
        """A layer that reads a tensor again quantizes it again: something may have written to it that nobody counts."""
        q, k, _ = make_model("current")[0].layers.values()
        x = make_input()
        numbers = x.view(torch.int16).numpy()
        for layer in (q, k, q, k):
            own = train_one(layer, x)
            self.assertTrue(torch.equal(own, train_one(layer, x.clone())))
            if layer is k:
                numbers[:] = make_input(5).view(torch.int16).numpy()

    def test_checkpointing(self):
        for recipe in ("delayed", "block"):
            with alone():
                expected = train(make_model(recipe))
            for reentrant in (False, True):
                model = make_model(recipe)
                self.check(train(model, lambda x: checkpoint(model, x, use_reentrant=reentrant)), expected)

    def test_hooks(self):
        """Codes that hooks take elsewhere are not shared; backwards that are repeated, and in any order, have them."""
        for recipe in ("delayed", "block"):
            with alone():
                expected = train(make_model(recipe))
            model = make_model(recipe)
            with torch.autograd.graph.save_on_cpu():
                self.check(train(model), expected)
        q, k, _ = make_model("current")[0].layers.values()
        x = make_input()
        first, second = q(x), k(x)
        first.sum().backward(retain_graph=True)
        first.sum().backward()
        second.float().square().sum().backward()
        self.assertTrue(torch.equal(k.weight.grad, train_one(k, x.clone())))

    def test_nothing_stays(self):
        """Codes live as long as a backward needs them."""
        q, k, _ = make_model("current")[0].layers.values()
        x = make_input()
        first, second = q(x), k(x)
        codes = list(shared_codes._local.read._codes)
        self.assertTrue(all(each() is not None for each in codes))
        del first, x
        gc.collect()
        self.assertTrue(all(each() is not None for each in codes))
        del second
        gc.collect()
        self.assertTrue(all(each() is None for each in codes))

    def test_frozen(self):
        """Layers without a gradient keep nothing, and are no readers."""
        model = make_model("current")
        model[0].layers["q"].requires_grad_(False)
        x = make_input().requires_grad_()
        q, k, v = model[0].layers.values()
        saved = count_saved(lambda: (q(x), k(x), v(x)))[0]
        self.assertLess(saved, 1.1 * ROWS * WIDTH)

    def test_sizes(self):
        """Layers whose backward takes x itself, since their sizes do not suit FP8, keep that."""
        torch.manual_seed(0)
        model = nn.ModuleList([nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, 24), nn.Linear(WIDTH, 64)]).bfloat16()
        fp8.torch.convert_to_fp8_training(model, "current", first_last_bf16=0, target="cpu")
        for order in ((0, 1, 2), (1, 0, 2), (2, 1, 0)):
            x = make_input()
            results = [model[i](x) for i in order]
            for i, y in zip(order, results):
                model[i].zero_grad()
                y.float().square().sum().backward()
                self.assertTrue(torch.equal(model[i].weight.grad, train_one(model[i], x.clone())))


@unittest.skipUnless(shutil.which(os.environ.get("CXX", "g++")), "Inductor has no compiler")
class Graphs(Test):
    def test_inductor(self):
        """In graphs, also where each layer rounds x to the type of autocast by itself."""
        runs = []
        for context in (alone(), contextlib.nullcontext()):
            torch._dynamo.reset()
            # What was compiled without sharing is not for it.
            with context, config.patch(enable_autograd_cache=False), torch.autocast("cpu", torch.bfloat16):
                model = make_model("block", dtype=torch.float32)
                compiled = torch.compile(model, fullgraph=True)
                runs.append((train(model, compiled, 2, torch.float32),
                             count_saved(lambda: compiled(make_input(dtype=torch.float32)))[0]))
        (expected, whole), (own, saved) = runs
        self.check(own, expected)
        self.assertGreaterEqual(whole - saved, 4 * ROWS * WIDTH)

    def test_numbers(self):
        """Graphs that PyTorch keeps between processes have other numbers for other recipes, whose results have other sizes."""
        def number(recipe, **options):
            layer = fp8.torch.Linear(WIDTH, WIDTH, recipe=recipe, target="cpu", **options)
            return layer._get_unit(recipe).number >> linear_ops._COUNTED

        self.assertEqual(number("current"), number("current"))
        self.assertEqual(len({number("current"), number("block"), number("block", max_padding=1.0)}), 3)


if __name__ == "__main__":
    unittest.main()
