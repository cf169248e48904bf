# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s Gradients Steps
# RUN: env FP8_CUDA_DRIVER=emulator %import_python %s Emulated
"""The first step under delayed scaling: its gradients are those of present scales, in layers and in parts."""

import copy
import io
import unittest

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import fp8
import fp8.torch


class Block(nn.Module):
    """With a residual, a norm, and what begins at zero, as many a network's last layer does."""

    def __init__(self, width, wide, starts_at_zero):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up, self.down = nn.Linear(width, wide), nn.Linear(wide, width)
        if starts_at_zero:
            nn.init.zeros_(self.down.weight)

    def forward(self, x):
        return x + self.down(F.gelu(self.up(self.norm(x))))


def make_model(depth=3, width=64, starts_at_zero=False):
    torch.manual_seed(5)
    return nn.Sequential(*(Block(width, 2 * width, starts_at_zero) for _ in range(depth)),
                         nn.Linear(width, 32)).bfloat16()


def convert(model, recipe="delayed", **options):
    options = {"first_last_bf16": 0, "target": "cpu", **options}
    return fp8.torch.convert_to_fp8_training(copy.deepcopy(model), recipe, **options)


def make_batch(rows=96, seed=6, width=64):
    generator = torch.Generator().manual_seed(seed)
    return (torch.randn(rows, width, generator=generator).bfloat16(),
            torch.randint(32, (rows,), generator=generator))


def backward(model, call=None, rows=96, seed=6):
    """The gradients of one step, by the names of parameters. The mean over rows makes them small."""
    x, target = make_batch(rows, seed)
    model.zero_grad(set_to_none=True)
    F.cross_entropy((call or model)(x).float(), target).backward()
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def get_norm(gradients):
    return torch.cat([gradient.flatten().double() for gradient in gradients.values()]).norm().item()


class Gradients(unittest.TestCase):
    def check(self, gradients, expected, limit=0.05):
        self.assertEqual(gradients.keys(), expected.keys())
        self.assertLess(abs(get_norm(gradients) / get_norm(expected) - 1), limit)
        for name, gradient in gradients.items():
            norm = expected[name].double().norm()
            self.assertLess(abs(gradient.double().norm() - norm), limit * norm, name)

    def test_layers(self):
        model = make_model()
        expected = backward(model)
        self.check(backward(convert(model)), expected)
        # More rows make them smaller still.
        self.check(backward(convert(model), rows=2048), backward(model, rows=2048))
        one = backward(convert(model, fp8.DelayedScaling(initial="one")))
        with self.assertRaises(AssertionError):
            self.check(one, expected)

    def test_bits_are_those_of_current(self):
        model = make_model()
        delayed, current = backward(convert(model)), backward(convert(model, "current"))
        for name, gradient in current.items():
            self.assertTrue(torch.equal(delayed[name], gradient), name)

    def test_backend(self):
        model = make_model()
        for recipe in ("delayed", "current"):
            torch._dynamo.reset()
            backend = fp8.torch.Backend(recipe, target="cpu", cache=False)
            compiled = torch.compile(copy.deepcopy(model), backend=backend)
            gradients = backward(compiled._orig_mod, compiled)
            self.assertTrue(backend.parts)
            self.check(gradients, backward(model))
            if recipe == "delayed":
                delayed = gradients
        for name, gradient in gradients.items():
            self.assertTrue(torch.equal(delayed[name], gradient), name)

    def test_gradients_that_begin_at_zero(self):
        model = make_model(starts_at_zero=True)
        layers = convert(model)
        rate = 0.1
        for step in range(3):
            expected, gradients = backward(model, seed=step), backward(layers, seed=step)
            for name, gradient in gradients.items():
                norm = expected[name].double().norm()
                # `up` has zeros in the first step, and no history of it is made of that.
                self.assertLessEqual(abs(gradient.double().norm() - norm), 0.08 * norm, (step, name))
            for module, values in ((model, expected), (layers, expected)):
                with torch.no_grad():
                    for name, parameter in module.named_parameters():
                        parameter -= rate * values[name]


class Steps(unittest.TestCase):
    def get_scales(self, model):
        return {(name, slot.name): slot.scale for name, layer in fp8.torch.modules.get_layers(model).items()
                for unit in layer.units.values() for slot in unit.state.slots.values()}

    def test_the_second_step_has_the_history(self):
        model = convert(make_model())
        first = backward(model)
        scales = self.get_scales(model)
        # The same batch again has the same scales, now from the history.
        second = backward(model)
        self.assertEqual(self.get_scales(model), scales)
        for name, gradient in second.items():
            self.assertTrue(torch.equal(first[name], gradient), name)
        other = backward(model, seed=7)
        self.assertTrue(any(not torch.equal(first[name], gradient) for name, gradient in other.items()))

    def test_microbatches(self):
        model = make_model(depth=1)
        layers, current = convert(model), convert(model, "current")
        scales = []
        with fp8.torch.accumulated(layers):
            for seed in (1, 2):
                gradients = backward(layers, seed=seed)
                scales.append(self.get_scales(layers))
                for name, gradient in backward(current, seed=seed).items():
                    self.assertTrue(torch.equal(gradients[name], gradient), name)
        self.assertNotEqual(*scales)
        # The step's amaxes are those of both.
        joined = self.get_scales(layers)
        for key, scale in joined.items():
            self.assertEqual(scale, min(scales[0][key], scales[1][key]), key)

    def test_a_layer_that_is_called_several_times(self):
        layer = fp8.torch.Linear(64, 64, recipe="delayed", target="cpu", dtype=torch.bfloat16)
        current = fp8.torch.Linear(64, 64, recipe="current", target="cpu", dtype=torch.bfloat16)
        current.load_state_dict({"weight": layer.weight, "bias": layer.bias})
        x, _ = make_batch()
        for _ in range(3):
            y = layer(x)
            self.assertTrue(torch.equal(y, current(x)))
            x = (8 * y).detach()

    def test_recomputation(self):
        x, target = make_batch()
        results = []
        for again in (False, True):
            model = convert(make_model())
            y = checkpoint(model, x, use_reentrant=False) if again else model(x)
            F.cross_entropy(y.float(), target).backward()
            results.append({name: p.grad for name, p in model.named_parameters()})
        for name, gradient in results[0].items():
            self.assertTrue(torch.equal(results[1][name], gradient), name)

    def test_cached_weights(self):
        model = make_model()
        plain, cached = backward(convert(model)), backward(convert(model, cache_weights=True))
        for name, gradient in plain.items():
            self.assertTrue(torch.equal(cached[name], gradient), name)

    def test_evaluation_before_the_first_step(self):
        model = make_model()
        x, _ = make_batch()
        with torch.no_grad():
            expected, got = convert(model, "current")(x), convert(model)(x)
        self.assertTrue(torch.equal(got, expected))

    def test_a_frozen_state_learns_nothing(self):
        layer = convert(make_model()).get_submodule("0.up")
        x, other = make_batch()[0], 8 * make_batch(seed=9)[0]
        with torch.no_grad():
            layer(x)
            unit, = layer.units.values()
            unit.state.reset()
            with unit.state.frozen():
                first, second = layer(x), layer(other)
            self.assertEqual({slot.scale for slot in unit.state.slots.values()}, {1.0})
            for value, result in ((x, first), (other, second)):
                current = fp8.torch.Linear(64, 128, recipe="current", target="cpu", dtype=torch.bfloat16)
                current.load_state_dict({"weight": layer.weight, "bias": layer.bias})
                self.assertTrue(torch.equal(current(value), result))

    def test_saved_states(self):
        model = make_model()
        layers = convert(model)
        # Saved before the first step: the resumed run begins with it.
        empty = copy.deepcopy(layers.state_dict())
        first = backward(layers)
        buffer = io.BytesIO()
        torch.save(layers.state_dict(), buffer)
        second = backward(layers, seed=7)
        for state, expected, seed in ((empty, first, 6),
                                      (torch.load(io.BytesIO(buffer.getvalue())), second, 7)):
            resumed = convert(model)
            resumed.load_state_dict(state)
            for name, gradient in backward(resumed, seed=seed).items():
                self.assertTrue(torch.equal(gradient, expected[name]), name)

    def test_states_of_another_beginning(self):
        layers = convert(make_model(), fp8.DelayedScaling(initial="one"))
        backward(layers)
        saved = copy.deepcopy(layers.state_dict())
        resumed = convert(make_model())
        resumed.load_state_dict(saved)
        expected = backward(layers, seed=7)
        for name, gradient in backward(resumed, seed=7).items():
            self.assertTrue(torch.equal(gradient, expected[name]), name)


class Emulated(unittest.TestCase):
    def test_layers_of_a_gpu(self):
        model = make_model(depth=1)
        delayed, current = convert(model, target="sm_90a"), convert(model, "current", target="sm_90a")
        first = backward(delayed, rows=64)
        for name, gradient in backward(current, rows=64).items():
            self.assertTrue(torch.equal(first[name], gradient), name)
        second = backward(delayed, rows=64)
        for name, gradient in second.items():
            self.assertTrue(torch.equal(first[name], gradient), name)


if __name__ == "__main__":
    unittest.main()
