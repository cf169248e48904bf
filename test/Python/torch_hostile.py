# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Models and inputs that nobody expects, by layers and by the backend: the result is PyTorch's, or
there is a clear error."""

import math
import unittest
import warnings

import torch
from torch import nn
from torch.nn import functional as F

import fp8
import fp8.torch


def make_values(*sizes, seed=1, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*sizes, generator=generator).to(dtype)


class MLP(nn.Module):
    def __init__(self, width=64, wide=128):
        super().__init__()
        torch.manual_seed(2)
        self.up, self.down = nn.Linear(width, wide), nn.Linear(wide, width)

    def forward(self, x):
        return self.down(F.gelu(self.up(x)))


def use_layers(model):
    fp8.torch.convert_to_fp8_training(model, "current", first_last_bf16=0)
    return model


def use_backend(model):
    torch._dynamo.reset()
    backend = fp8.torch.Backend("current", target="cpu", rest="eager")
    return torch.compile(model, backend=backend)


def use_autocast(model):
    def call(*inputs):
        with fp8.torch.autocast("current"):
            return model(*inputs)
    return call


WAYS = {"layers": use_layers, "backend": use_backend, "autocast": use_autocast}


def run(model, call, *inputs, backward=True):
    """The results and all gradients, by name."""
    model.zero_grad(set_to_none=True)
    inputs = [value.detach().clone().requires_grad_() if value.is_floating_point() else value
              for value in inputs]
    # What a model writes to must be no leaf.
    results = call(*(value * 1 if value.requires_grad else value for value in inputs))
    results = results if isinstance(results, tuple) else (results,)
    if backward:
        sum((value * make_values(*value.shape, seed=7)).sum() for value in results).backward()
    found = {f"result {i}": value.detach() for i, value in enumerate(results)}
    found.update({f"input {i}": value.grad for i, value in enumerate(inputs)})
    found.update({name: value.grad for name, value in model.named_parameters()})
    return found


class Hostile(unittest.TestCase):
    def compare(self, found, expected, tolerance=0.12):
        self.assertEqual(found.keys(), expected.keys())
        for name, value in found.items():
            other = expected[name]
            self.assertEqual(value is None, other is None, name)
            if value is None:
                continue
            self.assertEqual((value.shape, value.dtype), (other.shape, other.dtype), name)
            self.assertTrue(torch.equal(value.isnan(), other.isnan()), name)
            value, other = value.nan_to_num(), other.nan_to_num()
            error = (value - other).norm()
            self.assertLessEqual(error.item(), tolerance * other.norm().item() + 1e-6, name)

    def check(self, make, *inputs, ways=WAYS, tolerance=0.12, backward=True):
        for way in ways:
            with self.subTest(way), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = make()
                expected = run(model, model, *inputs, backward=backward)
                call = WAYS[way](model)
                for _ in range(2):
                    self.compare(run(model, call, *inputs, backward=backward), expected, tolerance)

    def test_graph_breaks(self):
        class Broken(MLP):
            def forward(self, x):
                y = self.up(x)
                torch._dynamo.graph_break()
                if y.sum().item() > 1e9:  # Also of what a value is.
                    y = -y
                return self.down(F.gelu(y))

        self.check(Broken, make_values(32, 64))

    def test_hooks(self):
        def make():
            model = MLP()
            model.up.register_forward_hook(lambda module, arguments, y: y * 0.5)
            model.down.register_forward_pre_hook(lambda module, arguments: (arguments[0] + 1,))
            model.down.register_full_backward_hook(
                lambda module, gradients, outputs: (gradients[0] * 3,))
            model.up.weight.register_hook(lambda gradient: gradient * 2)
            return model

        self.check(make, make_values(32, 64))

    def test_inputs_are_written_to(self):
        class Writes(MLP):
            def forward(self, x):
                y = self.up(x)
                x.mul_(2)
                return self.down(F.gelu(y)) + x

        with torch.no_grad():  # Such a backward is an error in eager mode.
            self.check(Writes, make_values(32, 64), backward=False)

        class WritesBefore(MLP):
            def forward(self, x):
                x.mul_(2)
                return super().forward(x) + x

        self.check(WritesBefore, make_values(32, 64))

    def test_a_write_between_forward_and_backward(self):
        """The layer keeps codes or x: never what was written since."""
        for way in WAYS:
            model = MLP()
            call = WAYS[way](model)
            x = make_values(32, 64)
            expected = run(model, call, x)
            x = x.clone()
            model.zero_grad(set_to_none=True)
            y = call(x)
            x.fill_(1e6)
            try:
                (y * make_values(*y.shape, seed=7)).sum().backward()
            except RuntimeError as error:
                self.assertRegex(str(error), "modified by an inplace operation")
                continue
            for name, parameter in model.named_parameters():
                torch.testing.assert_close(parameter.grad, expected[name], msg=f"{way} {name}")

    def test_tied_weights(self):
        class Tied(nn.Module):
            def __init__(self):
                super().__init__()
                torch.manual_seed(2)
                self.a, self.b = nn.Linear(64, 64), nn.Linear(64, 64)
                self.b.weight = self.a.weight

            def forward(self, x):
                return self.b(F.gelu(self.a(x))) @ self.a.weight

        self.check(Tied, make_values(32, 64))

    def test_two_devices(self):
        for way in WAYS:
            model = MLP()
            model.down.to("meta")
            call = WAYS[way](model)
            with self.subTest(way), self.assertRaises(
                    (fp8.Error, RuntimeError, NotImplementedError)) as raised:
                call(make_values(32, 64))
            self.assertRegex(str(raised.exception), "meta|device")

    def test_frozen_parameters(self):
        def make():
            model = MLP()
            model.up.weight.requires_grad_(False)
            model.down.bias.requires_grad_(False)
            return model

        self.check(make, make_values(32, 64))

        def freeze_all():
            return MLP().requires_grad_(False)

        self.check(freeze_all, make_values(32, 64))

    def test_complex_numbers(self):
        class Mixed(MLP):
            def __init__(self):
                super().__init__()
                self.phase = nn.Parameter(torch.polar(torch.ones(64, 64) / 8, make_values(64, 64)))

            def forward(self, x):
                z = torch.complex(super().forward(x), x)
                return (z @ self.phase).abs()

        self.check(Mixed, make_values(32, 64))

        for way in ("layers", "autocast"):
            model = nn.Sequential(nn.Linear(64, 64, dtype=torch.complex64))
            x = torch.complex(make_values(32, 64), make_values(32, 64, seed=3))
            expected = model(x)
            call = WAYS[way](model)
            with self.subTest(way):
                try:
                    self.assertTrue(torch.equal(call(x), expected))
                except fp8.ArgumentError as error:
                    self.assertRegex(str(error), "but got torch.complex64")

    def test_integers(self):
        class Counts(MLP):
            def __init__(self):
                super().__init__()
                table = torch.randint(-9, 9, (64, 64), generator=torch.Generator().manual_seed(4))
                self.table = nn.Parameter(table, requires_grad=False)

            def forward(self, x):
                counts = (x * 4).to(torch.int64) @ self.table
                return super().forward(x) + 0.01 * counts

        self.check(Counts, make_values(32, 64))
        model = Counts()
        counts = (make_values(32, 64) * 4).to(torch.int64)
        with fp8.torch.autocast("current"):
            y = counts @ model.table
        self.assertTrue(torch.equal(y, counts @ model.table))

    def test_an_empty_batch(self):
        for sizes in ((0, 64), (4, 0, 64), (0, 3, 64)):
            self.check(MLP, make_values(*sizes))

    def test_one_row(self):
        self.check(MLP, make_values(64))
        self.check(MLP, make_values(1, 1, 64))

    def test_nan_in_a_mask(self):
        class Masked(nn.Module):
            def __init__(self):
                super().__init__()
                torch.manual_seed(2)
                self.qkv, self.out = nn.Linear(64, 192), nn.Linear(64, 64)

            def forward(self, x, mask):
                q, k, v = (part.unflatten(-1, (2, 32)).transpose(1, 2)
                           for part in self.qkv(x).chunk(3, -1))
                y = F.scaled_dot_product_attention(q, k, v, mask)
                return self.out(y.transpose(1, 2).flatten(2))

        mask = torch.zeros(2, 1, 16, 16)
        mask[1, 0, 3] = math.nan
        for way in WAYS:
            with self.subTest(way):
                model, x = Masked(), make_values(2, 16, 64)
                expected = model(x, mask)
                y = WAYS[way](model)(x, mask)
                # A whole row of it is NaN, as it is in PyTorch, or all that shares a scale is.
                self.assertTrue(y[expected.isnan()].isnan().all())
                finite = ~y.isnan()
                if finite.any():
                    error = (y[finite] - expected[finite]).norm() / expected[finite].norm()
                    self.assertLess(error.item(), 0.1)
        full = torch.zeros(2, 1, 16, 16)
        full[0, 0, 5] = -math.inf  # A row that sees nothing.
        for way in WAYS:
            model, x = Masked(), make_values(2, 16, 64)
            expected = model(x, full)
            y = WAYS[way](model)(x, full)
            self.assertTrue(y[expected.isnan()].isnan().all())
            finite = ~y.isnan()
            self.assertTrue(not finite.any() or (
                (y[finite] - expected[finite]).norm() < 0.1 * expected[finite].norm()))

    def test_results_are_no_views_of_inputs(self):
        for way in WAYS:
            model, x = MLP(), make_values(32, 64)
            with torch.no_grad():
                call = WAYS[way](model)
                first = call(x)
                kept = first.clone()
                call(make_values(32, 64, seed=9))
                self.assertTrue(torch.equal(first, kept), way)

    def test_a_model_that_fails_within_autocast(self):
        with self.assertRaises(ZeroDivisionError):
            with fp8.torch.autocast("current"):
                raise ZeroDivisionError
        self.assertIsNone(fp8.torch.autocast.current)
        model, x = MLP(), make_values(32, 64)
        expected = model.down(F.gelu(model.up(x)))
        self.assertTrue(torch.equal(model(x), expected))


if __name__ == "__main__":
    unittest.main()
