# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""What linear layers keep between forward and backward: codes of x, and of the weight."""

import copy
import unittest

import torch
from torch import nn

import fp8
import fp8.torch
from fp8.torch import linear_programs

RECIPES = ("delayed", "current", "rowwise", "block", "mxfp8", "nvfp4")


def make_layer(recipe, inputs=128, outputs=256, **options):
    torch.manual_seed(2)
    return fp8.torch.Linear(inputs, outputs, dtype=torch.bfloat16, recipe=recipe, target="cpu",
                            **options)


def make_input(rows, inputs=128, seed=3):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, inputs, generator=generator).bfloat16().requires_grad_()


def run(layer, x, compiled=None):
    """The result and the gradients of x and parameters."""
    layer.zero_grad(set_to_none=True)
    x.grad = None
    y = (layer if compiled is None else compiled)(x)
    y.backward(torch.linspace(-1, 1, y.numel()).reshape(y.shape).to(y.dtype))
    return [y.detach(), x.grad.clone(), *(p.grad.clone() for p in layer.parameters())]


def count_saved(call):
    """Bytes of the tensors that autograd keeps, but for parameters."""
    sizes = {}

    def pack(tensor):
        if not isinstance(tensor, nn.Parameter):
            sizes[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        call()
    return sum(sizes.values())


class SavedCodes(unittest.TestCase):
    def check_equal(self, values, expected):
        for value, other in zip(values, expected, strict=True):
            self.assertTrue(torch.equal(value, other))

    def test_take_fewer_bytes(self):
        x = make_input(256)
        for recipe in RECIPES:
            saved = count_saved(lambda: make_layer(recipe)(x))
            wide = 2 * x.numel()
            # Codes of less than a byte are not kept.
            self.assertLess(saved, wide + 1 if recipe == "nvfp4" else 0.6 * wide, recipe)

    def test_give_the_same_bits(self):
        """As programs that quantize x again in the backward."""
        for recipe in ("current", "rowwise", "block", "mxfp8"):
            for rows in (256, 120):  # The latter are padded for a contraction.
                self.check_bits(recipe, rows)

    def check_bits(self, recipe, rows):
        x = make_input(rows).detach()
        layer = make_layer(recipe)
        shape = linear_programs.Shape(rows, 128, 256, torch.bfloat16, True)
        text = linear_programs.write(shape)
        plain = fp8.compile(text.replace(', fp8.saved = "x"', "")
                            .replace(', fp8.save = "x"', ""), recipe, target="cpu")
        self.assertIn("x", [info.name for info in plain.backward.arguments])
        y, *gradients = run(layer, x.requires_grad_())
        dy = torch.linspace(-1, 1, y.numel()).reshape(y.shape).to(y.dtype)
        with torch.no_grad():
            expected = plain.train(x, layer.weight, layer.bias)
            others = plain.backward(dy, x, layer.weight)
        self.check_equal([y, *gradients], [expected, *others])
        functions = {name: function for (name, *_), function
                     in layer.units[recipe]._functions.items()}
        self.assertIn("x.codes", functions["backward"].arguments)

    def test_nothing_is_kept_that_nobody_needs(self):
        x = make_input(64)
        layer = make_layer("current").requires_grad_(False)
        self.assertEqual(count_saved(lambda: layer(x)), 0)
        layer.requires_grad_()
        with torch.no_grad():
            layer(x)
        functions = layer.units["current"]._functions
        self.assertEqual({name for name, *_ in functions}, {"forward"})

    def test_compiled(self):
        for recipe in ("delayed", "rowwise", "block"):
            for dynamic in (False, True):
                torch._dynamo.reset()
                layer = make_layer(recipe)
                other = copy.deepcopy(layer)
                compiled = torch.compile(other, backend="aot_eager", fullgraph=True,
                                         dynamic=dynamic)
                for rows in (256, 128, 256):
                    x = make_input(rows)
                    self.check_equal(run(other, x, compiled)[:2], run(layer, x)[:2])

    def test_rows_that_do_not_suit_fp8(self):
        """A last batch of few rows has the layer's state, whichever comes first."""
        for sizes in ((256, 37, 256), (37, 256)):
            layer = make_layer("delayed")
            for rows in sizes:
                run(layer, make_input(rows))
            self.assertEqual(layer.units["delayed"].state.steps, len(sizes))


class CachedWeights(unittest.TestCase):
    def test_give_the_same_bits(self):
        for recipe in RECIPES:
            plain, cached = make_layer(recipe), make_layer(recipe, cache_weights=True)
            for seed in range(3):
                x = make_input(256, seed=seed)
                for value, other in zip(run(cached, x), run(plain, x), strict=True):
                    self.assertTrue(torch.equal(value, other), recipe)

    def count_quantizes(self, layer, recipe):
        unit = layer.units[recipe]
        function = next(value for (name, *_), value in unit._functions.items()
                        if name == "quantize_weight")
        calls = []
        original = type(function).__call__

        def call(self, *arguments):
            if self is function:
                calls.append(1)
            return original(self, *arguments)

        type(function).__call__ = call
        self.addCleanup(setattr, type(function), "__call__", original)
        return calls

    def test_once_in_a_step(self):
        for recipe in ("delayed", "current"):
            layer = make_layer(recipe, cache_weights=True)
            run(layer, make_input(64))
            calls = self.count_quantizes(layer, recipe)
            with fp8.torch.accumulated(layer):
                for seed in range(4):
                    run(layer, make_input(64, seed=seed))
            self.assertEqual(len(calls), 1)
            self.assertIsNone(layer.units[recipe]._weight)
            run(layer, make_input(64))
            self.assertEqual(len(calls), 2)

    def test_not_of_a_weight_that_has_changed(self):
        layer, plain = make_layer("current", cache_weights=True), make_layer("current")
        x = make_input(64)
        with fp8.torch.accumulated(layer):
            run(layer, x)
            for model in (layer, plain):
                with torch.no_grad():
                    model.weight.mul_(-2)
            for value, other in zip(run(layer, x), run(plain, x), strict=True):
                self.assertTrue(torch.equal(value, other))

    def test_states(self):
        layer = make_layer("delayed", cache_weights=True)
        run(layer, make_input(64))
        slots = layer.units["delayed"].state.slots
        self.assertEqual({name: (slot.role, slot.operand) for name, slot in slots.items()},
                         {"fprop.w": ("fprop", "weight"), "fprop.x": ("fprop", "activation"),
                          "dgrad.dy": ("dgrad", "gradient"), "wgrad.dy": ("wgrad", "gradient")})
        self.assertEqual(slots["fprop.w"].amax, layer.weight.abs().max().item())
        other = make_layer("delayed", cache_weights=True)
        other.load_state_dict(layer.state_dict())
        x = make_input(64, seed=8)
        for value, expected in zip(run(other, x), run(layer, x), strict=True):
            self.assertTrue(torch.equal(value, expected))

    def test_models(self):
        model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(3))).bfloat16()
        fp8.torch.convert_to_fp8_training(model, "current", target="cpu", first_last_bf16=0,
                                          cache_weights=True)
        model(make_input(32, 64)).sum().backward()
        self.assertTrue(all(layer.units["current"].caches_weight for layer in model))
        fp8.torch.convert_from_fp8(model)
        self.assertNotIn("_cache_weights", model[0].__dict__)


class MLP(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.RMSNorm(128), nn.Linear(128, 256), nn.Linear(256, 128)

    def forward(self, x):
        return x + self.down(nn.functional.silu(self.up(self.norm(x))))


class Backends(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()

    def train(self, recipe, cache_weights, calls=3):
        """A Backend, and the gradients of some calls, in one step each."""
        torch.manual_seed(0)
        model = MLP().bfloat16()
        backend = fp8.torch.Backend(recipe, target="cpu", cache=False, rest="eager",
                                    cache_weights=cache_weights)
        compiled = torch.compile(model, backend=backend, dynamic=False)
        for seed in range(calls):
            compiled(make_input(128, seed=seed)).float().square().sum().backward()
        return backend, compiled, [p.grad.clone() for p in model.parameters()]

    def test_give_the_same_bits(self):
        for recipe in RECIPES:
            with self.subTest(recipe):
                torch._dynamo.reset()
                _, _, expected = self.train(recipe, False)
                torch._dynamo.reset()
                backend, _, got = self.train(recipe, True)
                for value, other in zip(got, expected, strict=True):
                    self.assertTrue(torch.equal(value, other))
                names = [info.name for part in backend.parts if ".backward" in part.name
                         for info in part.program.main.arguments]
                in_bytes = recipe != "nvfp4"
                self.assertEqual("down.weight.codes" in names, in_bytes)
                self.assertEqual("down.weight" in names, not in_bytes)

    def test_once_in_a_step(self):
        for recipe in ("delayed", "rowwise"):
            torch._dynamo.reset()
            backend, compiled, _ = self.train(recipe, True, calls=1)
            part = backend.parts[0]
            self.assertIsNone(part._weights._key)
            with fp8.torch.accumulated(backend):
                compiled(make_input(128)).sum().backward()
                codes = part._weights._codes[0]
                compiled(make_input(128, seed=5)).sum().backward()
                self.assertIs(part._weights._codes[0], codes)
                with torch.no_grad():
                    part._weights._kept[0].mul_(2)
                compiled(make_input(128)).sum().backward()
                self.assertIsNot(part._weights._codes[0], codes)
            self.assertIsNone(part._weights._key)


if __name__ == "__main__":
    unittest.main()
