# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Modules of PyTorch, forward and backward, through torch.compile's backend."""

import copy
import io
import unittest
import warnings
from unittest import mock

import torch
from torch import nn
from torch.nn import functional as F

import fp8
import fp8.torch
from fp8.torch import partitions


class MLP(nn.Module):
    def __init__(self, width=128, wide=256):
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.gate, self.up = (nn.Linear(width, wide, bias=False) for _ in range(2))
        self.down = nn.Linear(wide, width)

    def forward(self, x):
        y = self.norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Attention(nn.Module):
    def __init__(self, width=64, heads=4):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return x + self.out(y.transpose(1, 2).reshape(batch, length, width))


class LanguageModel(nn.Module):
    def __init__(self, vocabulary=256, width=64, depth=2):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(
            nn.Sequential(Attention(width), MLP(width, 3 * width)) for _ in range(depth))
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, tokens, targets):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return F.cross_entropy(self.head(x).flatten(0, 1).float(), targets.flatten())


def get_error(value, expected):
    return ((value - expected).float().norm() / expected.float().norm()).item()


def make_backend(recipe, **options):
    return fp8.torch.Backend(recipe, target="cpu", cache=False, **{"rest": "eager", **options})


# Without a recipe all would be Inductor's.
ours = mock.patch.object(partitions, "takes_all", True)


class Test(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()
        torch.manual_seed(0)

    def run_mlp(self, recipe, steps=1):
        """The backend, and errors of the result and of all gradients beside eager bf16."""
        model = MLP().bfloat16()
        eager, backend = copy.deepcopy(model), make_backend(recipe)
        compiled = torch.compile(model, backend=backend)
        x = torch.randn(4, 16, 128, dtype=torch.bfloat16, requires_grad=True)
        x_eager = x.detach().clone().requires_grad_()
        for _ in range(steps):
            for value in (x, x_eager, *model.parameters(), *eager.parameters()):
                value.grad = None
            y, expected = compiled(x), eager(x_eager)
            y.float().square().sum().backward()
            expected.float().square().sum().backward()
        errors = {"y": get_error(y, expected), "x": get_error(x.grad, x_eager.grad)}
        for (name, value), other in zip(model.named_parameters(), eager.parameters()):
            errors[name] = get_error(value.grad, other.grad)
        return backend, errors

    @ours
    def test_high_precision_is_that_of_eager(self):
        backend, errors = self.run_mlp(None)
        self.assertLess(max(errors.values()), 0.02, errors)
        self.assertEqual([part.name for part in backend.parts],
                         ["graph0.forward", "graph0.backward"])

    def test_recipes(self):
        for recipe, limit in (("current", 0.12), (fp8.DelayedScaling(), 0.12), ("rowwise", 0.12),
                              ("mxfp8", 0.12), ("nvfp4", 0.35)):
            with self.subTest(str(recipe)):
                backend, errors = self.run_mlp(recipe, steps=3)
                self.assertLess(max(errors.values()), limit, errors)
                self.assertGreater(max(errors.values()), 0.02, errors)
                self.assertEqual([part.name for part in backend.parts],
                                 ["graph0.forward", "graph0.backward"])

    def test_names_and_roles(self):
        backend, _ = self.run_mlp("current")
        layers = {remark.name: (remark.role, remark.kind) for remark in backend.remarks}
        expected = {f"{name}{suffix}": (role, "fp8") for name in ("gate", "up", "down")
                    for suffix, role in (("", "fprop"), (".dgrad", "dgrad"), (".wgrad", "wgrad"))}
        self.assertEqual(layers, expected)
        self.assertEqual(backend.left, [])

    def test_training_beside_eager(self):
        model = LanguageModel().bfloat16()
        eager, backend = copy.deepcopy(model), make_backend("delayed")
        compiled = torch.compile(model, backend=backend)
        losses = []
        optimizers = [torch.optim.AdamW(m.parameters(), lr=3e-3) for m in (model, eager)]
        data = torch.randint(0, 256, (4, 33))
        for _ in range(10):
            losses.append([])
            for m, optimizer in zip((compiled, eager), optimizers):
                optimizer.zero_grad()
                loss = m(data[:, :-1], data[:, 1:])
                loss.backward()
                optimizer.step()
                losses[-1].append(loss.item())
        self.assertLess(losses[-1][0], 0.6 * losses[0][0])
        for loss, expected in losses:
            self.assertAlmostEqual(loss / expected, 1, delta=0.02)
        # What is not supported stays PyTorch's, and is named; every product is in FP8.
        self.assertTrue(any("attention" in line for line in backend.left), backend.left)
        self.assertEqual({remark.role for remark in backend.remarks}, {"fprop", "dgrad", "wgrad"})
        for remark in backend.remarks:
            self.assertEqual(remark.kind, "fp8", remark)
            suffix = remark.name.rsplit(".", 1)[-1].split("_")[0]
            self.assertEqual(remark.role, suffix if suffix in ("dgrad", "wgrad") else "fprop")

    def test_parts_around_attention(self):
        """As early as they can be, without the views in which attention takes its tensors, and
        without sums over rows and what follows these: a norm's pass is Inductor's."""
        model = nn.Sequential(Attention(64), MLP(64, 128)).bfloat16()
        backend = make_backend("current")
        x = torch.randn(2, 16, 64, dtype=torch.bfloat16, requires_grad=True)
        torch.compile(model, backend=backend)(x).sum().backward()
        products = {part.name: {remark.name for remark in part.program.remarks}
                    for part in backend.parts}
        mlp = ("1.gate", "1.up", "1.down")
        self.assertEqual(products, {
            "graph0.forward.0": {"0.qkv"},
            "graph0.forward.1": {"0.out"},
            "graph0.forward.2": set(mlp),
            "graph0.backward.0": {f"{name}.{role}" for name in mlp for role in ("dgrad", "wgrad")},
            "graph0.backward.1": {"0.out.dgrad", "0.out.wgrad"},
            "graph0.backward.2": {"0.qkv.dgrad", "0.qkv.wgrad"}})
        self.assertEqual(sum("attention" in line for line in backend.left), 2, backend.left)
        results = backend.parts[0].program.functions["main"].results
        self.assertIn((32, 192), [info.shape for info in results])
        self.assertLess(max(len(info.shape) for info in results), 4)

    def test_batch_sizes_that_change(self):
        model = MLP().bfloat16()
        backend = make_backend("current")
        compiled = torch.compile(model, backend=backend)
        for batch in (4, 6, 8, 12):
            x = torch.randn(batch, 16, 128, dtype=torch.bfloat16)
            y = compiled(x)
            y.sum().backward()
            self.assertLess(get_error(y, model(x)), 0.02)
        self.assertEqual(len(backend.parts), 4)

    def test_several_sizes_that_change(self):
        model = MLP().bfloat16()
        backend = make_backend("current")
        compiled = torch.compile(model, backend=backend, dynamic=True)
        for batch, length in ((4, 16), (3, 100), (2, 7)):
            x = torch.randn(batch, length, 128, dtype=torch.bfloat16, requires_grad=True)
            y = compiled(x)
            y.sum().backward()
            self.assertLess(get_error(y, model(x)), 0.02)
            self.assertEqual(x.grad.shape, x.shape)
        self.assertEqual(len(backend.parts), 2)

    @ours
    def test_arguments_in_another_order(self):
        model = MLP().bfloat16()
        backend = make_backend(None)
        compiled = torch.compile(model, backend=backend)
        x = torch.randn(128, 16, 4, dtype=torch.bfloat16).transpose(0, 2)
        self.assertLess(get_error(compiled(x), model(x)), 0.01)
        self.assertEqual(len(backend.parts), 1)

    def test_inference(self):
        model = MLP().bfloat16()
        backend = make_backend("current")
        x = torch.randn(4, 16, 128, dtype=torch.bfloat16)
        with torch.no_grad():
            y = torch.compile(model, backend=backend)(x)
        self.assertLess(get_error(y, model(x)), 0.02)
        self.assertEqual([part.name for part in backend.parts], ["graph0.forward"])

    def test_steps(self):
        backend, _ = self.run_mlp("delayed", steps=3)
        self.assertEqual([part.state.steps for part in backend.parts], [3, 3])
        backend.accumulate()
        self.assertFalse(any(part.steps for part in backend.parts))
        part = backend.parts[0]
        dtypes = {"BF16": torch.bfloat16, "F32": torch.float32}
        arguments = [torch.zeros([size or 4 for size in info.shape], dtype=dtypes[info.dtype])
                     for info in part.program.main.arguments]
        part(*arguments)
        self.assertEqual(part.state.steps, 3)
        backend.end_step()
        self.assertEqual(part.state.steps, 4)

    def test_steps_of_parts_to_come(self):
        backend = make_backend("delayed")
        backend.accumulate()
        torch.compile(MLP().bfloat16(), backend=backend)(torch.randn(4, 128).bfloat16())
        self.assertEqual([part.state.steps for part in backend.parts], [0])

    @ours
    def test_powers(self):
        class Powers(nn.Module):
            def forward(self, x, i):
                return x ** 2 + x ** 3 + x ** 1, i ** 2, i ** 2.0
        x, i = torch.randn(8, 16), torch.arange(8)
        backend = make_backend(None)
        results = torch.compile(Powers(), backend=backend)(x, i)
        self.assertEqual(len(backend.parts), 1)
        for value, expected in zip(results, Powers()(x, i)):
            self.assertEqual(value.dtype, expected.dtype)
            self.assertTrue(torch.allclose(value, expected, rtol=1e-5))

    @ours
    def test_sums_are_of_f32(self):
        """As PyTorch's own are, of bf16 too: gradients of biases, means, softmax."""
        model = nn.Sequential(nn.Linear(64, 64), nn.LayerNorm(64), nn.Softmax(-1)).bfloat16()
        for rows in (1000, 4000):
            x = torch.randn(rows, 64, dtype=torch.bfloat16)
            dy = (1 + torch.rand(rows, 64)).bfloat16()
            gradients = []
            backend = make_backend(None)
            for function in (model, torch.compile(model, backend=backend)):
                model.zero_grad()
                function(x).backward(dy)
                gradients.append({name: p.grad.clone() for name, p in model.named_parameters()})
            self.assertGreaterEqual(len(backend.parts), 2)
            exact = copy.deepcopy(model).double()
            exact.zero_grad()
            exact(x.double()).backward(dy.double())
            for name, parameter in exact.named_parameters():
                ours, theirs = (get_error(g[name].double(), parameter.grad) for g in gradients[::-1])
                self.assertLess(ours, 2 * theirs + 0.004, (name, rows))

    @ours
    def test_pads_with_negative_amounts(self):
        linear = nn.Linear(8, 8)

        def shift(x):
            y = linear(x - F.pad(x, (0, 0, 1, -1)))
            return y + F.pad(y, (2, -2), value=1.0) * F.pad(y, (1, -1), mode="reflect")

        torch._dynamo.reset()
        x = torch.randn(2, 6, 8)
        backend = make_backend(None)
        y = torch.compile(shift, backend=backend)(x)
        self.assertGreater(len(backend.parts), 0)
        torch.testing.assert_close(y, shift(x))

    def test_state_dict(self):
        backend, _ = self.run_mlp("delayed", steps=3)
        saved = backend.state_dict()
        self.assertEqual(list(saved), ["graph0.forward", "graph0.backward"])
        file = io.BytesIO()
        torch.save(saved, file)
        file.seek(0)
        torch._dynamo.reset()
        other, _ = self.run_mlp("delayed")
        other.load_state_dict(torch.load(file))
        self.assertEqual([part.state.steps for part in other.parts], [3, 3])
        for part in other.parts:
            part.state.reset()
        other.load_state_dict({name: {key: value.numpy() for key, value in state.items()} for name, state in saved.items()})
        self.assertEqual([part.state.steps for part in other.parts], [3, 3])
        with self.assertRaisesRegex(fp8.ArgumentError, "expected states of graph0.forward"):
            other.load_state_dict({})

    def test_by_name(self):
        model = MLP().bfloat16()
        compiled = torch.compile(model, backend="fp8", options={
            "recipe": fp8.Float8CurrentScaling(), "target": "cpu", "cache": False})
        x = torch.randn(4, 16, 128, dtype=torch.bfloat16)
        self.assertLess(get_error(compiled(x), model(x)), 0.02)

    def test_without_recipe(self):
        """Training without a recipe is a warning, once; "none", evaluation, and layers in FP8 are not."""
        def count(recipe, model, trains=True):
            torch._dynamo.reset()
            with warnings.catch_warnings(record=True) as caught, torch.set_grad_enabled(trains):
                warnings.simplefilter("always")
                call = torch.compile(model, backend=make_backend(recipe))
                for rows in (32, 48):
                    y = call(torch.randn(rows, 64))
                    if trains:
                        y.sum().backward()
            return sum("has no recipe" in str(each.message) for each in caught)
        model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64))
        self.assertEqual([count(None, model), count("none", model), count(None, model, False)], [1, 0, 0])
        model[0] = fp8.torch.quantize_for_inference(model[0], "rowwise")
        self.assertEqual(count(None, model), 0)
        # First and last layers stay in high precision.
        model = nn.Sequential(*(nn.Linear(64, 64) for _ in range(3)))
        self.assertEqual(count(None, fp8.torch.convert_to_fp8_training(model, "rowwise", target="cpu")), 0)

    def test_results_that_are_changed(self):
        """In place, behind the end of a graph that has several, as WavLM masks what it has projected."""
        norm, linear, mask = nn.LayerNorm(32), nn.Linear(32, 64), torch.rand(2, 8) > 0.5

        def run(x):
            normalized = norm(x)
            y = linear(normalized)
            torch._dynamo.graph_break()
            y[mask] = 1.0
            return y.sum() + normalized.sum()

        x = torch.randn(2, 8, 32)
        found = torch.compile(run, backend=make_backend(None))(x)
        gradients = [torch.autograd.grad(y, linear.weight)[0] for y in (found, run(x))]
        self.assertTrue(torch.allclose(*gradients))

    def test_explain(self):
        backend = fp8.torch.explain(MLP().bfloat16(), torch.randn(4, 16, 128).bfloat16(),
                                    recipe="block", target="cpu", cache=False)
        reasons = [remark.reason for remark in backend.remarks if remark.kind != "fp8"]
        self.assertTrue(all("multiple of 128" in reason for reason in reasons), reasons)

    def test_a_graph_that_does_not_compile(self):
        backend = make_backend("block", require=True)
        x = torch.randn(2, 100).bfloat16()
        model = nn.Linear(100, 64).bfloat16()
        with self.assertWarnsRegex(UserWarning, "1 matrix products of graph0.forward"):
            y = torch.compile(model, backend=backend)(x)
        self.assertTrue(torch.equal(y, model(x)))
        self.assertIn("multiple of 128", backend.left[0])

    def test_unknown_recipes(self):
        with self.assertRaisesRegex(fp8.Error, "expected a recipe"):
            make_backend("fancy")
        with self.assertRaisesRegex(fp8.Error, "unknown option 'colour'"):
            make_backend("current", colour=3)


if __name__ == "__main__":
    unittest.main()
