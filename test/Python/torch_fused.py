# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Quantized layers become parts with what is between them: how many, of what, and the values of calls by
themselves."""

import copy
import re
import unittest
import warnings

import torch
from torch import nn
from torch.nn import functional as F

import fp8
import fp8.torch
from fp8.torch import fused_linears, fused_text


class Norm(nn.Module):
    """Llama's, with as many roundings."""

    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(size) + 0.5)
        self.eps = 1e-5

    def forward(self, x):
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * wide.to(x.dtype)


class Block(nn.Module):
    """An MLP with its residual, and what reads it."""

    def __init__(self, k=64, n=128, bias=False, norm=Norm, activation=F.silu):
        super().__init__()
        self.norm, self.next_norm, self.activation = norm(k), norm(k), activation
        self.gate, self.up = nn.Linear(k, n, bias=bias), nn.Linear(k, n, bias=bias)
        self.down, self.out = nn.Linear(n, k, bias=bias), nn.Linear(k, n, bias=bias)

    def forward(self, x):
        y = self.norm(x)
        x = x + self.down(self.activation(self.gate(y)) * self.up(y))
        return self.out(self.next_norm(x)), x


class Plain(nn.Module):
    """No norm, and nothing whose last bit could be another one."""

    def __init__(self, bias=True, k=64, n=128):
        super().__init__()
        self.a, self.b = nn.Linear(k, n, bias=bias), nn.Linear(n, k, bias=bias)

    def forward(self, x):
        return self.b(self.a(x).relu()) + x


class Fused(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        torch.compiler.reset()
        self.enterContext(torch.inference_mode())
        self.enterContext(warnings.catch_warnings())
        warnings.simplefilter("error", UserWarning)

    def quantize(self, model, recipe="rowwise", dtype=torch.bfloat16, **others):
        return fp8.torch.quantize_for_inference(model.to(dtype).eval(), recipe, **others)

    def call(self, model, *inputs, dynamic=None, **options):
        """What a compiled model gives, and its Backend."""
        backend = fp8.torch.Backend(rest="eager", **options)
        return torch.compile(model, backend=backend, dynamic=dynamic)(*inputs), backend

    def check(self, model, x, parts, products, exact=False, **options):
        expected = model(x)
        got, backend = self.call(model, x, **options)
        got, expected = ([value] if isinstance(value, torch.Tensor) else value
                         for value in (got, expected))
        for value, other in zip(got, expected, strict=True):
            self.assertEqual((value.shape, value.dtype), (other.shape, other.dtype))
            if exact:
                self.assertTrue(torch.equal(value, other))
            else:
                # A sum of another order may round to a neighbour, and that to another code.
                error = (value.float() - other.float()).norm() / other.float().norm()
                self.assertLess(error, 0.01)
        self.assertEqual([len(backend.fused), sum(part.text.count("fp8.matmul") for part in backend.fused)],
                         [parts, products])
        return backend

    def test_mlp(self):
        model = self.quantize(Block())
        for rows in (2, 3), (1, 1), (5,):
            with self.subTest(rows=rows):
                torch.compiler.reset()
                # Gate and up are one product.
                self.check(model, torch.randn(*rows, 64, dtype=torch.bfloat16), 1, 3)

    def test_recipes(self):
        x = torch.randn(4, 256, dtype=torch.bfloat16)
        for recipe, others, products in (("block", {}, 3), ("current", {}, 4),
                                         ("current", {"calibration": [x]}, 4)):
            with self.subTest(recipe=recipe):
                torch.compiler.reset()
                model = self.quantize(Block(256, 512), recipe, **others)
                self.check(model, x, 1, products)

    def test_bits(self):
        for bias in False, True:
            for dtype in torch.bfloat16, torch.float16, torch.float32:
                with self.subTest(bias=bias, dtype=dtype):
                    torch.compiler.reset()
                    model = self.quantize(Plain(bias), dtype=dtype)
                    self.check(model, torch.randn(2, 3, 64, dtype=dtype), 1, 2, exact=True)

    def test_invariant(self):
        model = self.quantize(Block(), invariant=True)
        x = torch.randn(5, 64, dtype=torch.bfloat16)
        (y, _), backend = self.call(model, x, dynamic=True)
        self.assertTrue(all(part.source[1] for part in backend.fused))
        for row in range(len(x)):
            self.assertEqual(torch.compile(model, backend=fp8.torch.Backend(rest="eager"))(x[row:row + 1])[0].tolist(),
                             y[row:row + 1].tolist())

    def test_layer_norm(self):
        for activation in F.gelu, torch.sigmoid, torch.tanh:
            with self.subTest(activation=activation):
                torch.compiler.reset()
                model = self.quantize(Block(bias=True, norm=nn.LayerNorm, activation=activation))
                self.check(model, torch.randn(3, 64, dtype=torch.bfloat16), 1, 3)

    def test_any_rows(self):
        model = self.quantize(Block())
        backend = fp8.torch.Backend(rest="eager")
        compiled = torch.compile(model, backend=backend, dynamic=True)
        for rows in (2, 7), (3, 5), (9, 2):
            x = torch.randn(*rows, 64, dtype=torch.bfloat16)
            for value, other in zip(compiled(x), model(x)):
                self.assertLess((value - other).float().norm() / other.float().norm(), 0.01)
        self.assertEqual(len(backend.fused), 1)
        self.assertEqual(re.findall(r"x: tensor<\d", backend.fused[0].text), [])

    def test_equal_layers_are_compiled_once(self):
        model = self.quantize(nn.Sequential(*(Plain() for _ in range(3))))
        known = len(fused_linears._programs)
        backend = self.check(model, torch.randn(2, 64, dtype=torch.bfloat16), 1, 6, exact=True)
        self.assertLessEqual(len(fused_linears._programs), known + 1)
        self.assertIn("fused0: 0.a, 0.b, 1.a", "\n".join(backend.left))

    def test_layer_used_twice(self):
        class Twice(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(64, 64)

            def forward(self, x):
                return self.a(self.a(x).relu())

        self.check(self.quantize(Twice()), torch.randn(2, 64, dtype=torch.bfloat16), 1, 2, exact=True)

    def test_left_out(self):
        model = Plain()
        model.c = nn.Linear(64, 64)
        model = self.quantize(nn.Sequential(model, nn.ReLU(), nn.Linear(64, 32)), filter=["0.*"])
        self.check(model, torch.randn(2, 64, dtype=torch.bfloat16), 1, 2, exact=True)

    def test_autocast(self):
        model = fp8.torch.quantize_for_inference(Plain())
        x = torch.randn(2, 3, 64)
        with torch.autocast("cpu", torch.bfloat16):
            self.check(model, x, 1, 2, exact=True)

    def test_reasons(self):
        x = torch.randn(4, 64, dtype=torch.bfloat16)
        for recipe, others, reason in (
                ("mxfp8", {}, "its scales are in e8m0"), ("rowwise", {"weights": "mxfp4"}, "its weight is packed"),
                ("rowwise", {"activations": "bf16"}, "its activations stay in high precision")):
            with self.subTest(reason=reason):
                torch.compiler.reset()
                model = self.quantize(Plain(), recipe, **others)
                expected = model(x)
                got, backend = self.call(model, x)
                self.assertTrue(torch.equal(got, expected))
                self.assertEqual(backend.fused, [])
                self.assertIn(f"graph0.forward: a is by itself: {reason}", backend.left)

    def test_alone(self):
        class Sum(nn.Module):
            def forward(self, x):
                return x.cumsum(-1)

        model = self.quantize(nn.Sequential(Sum(), nn.Linear(64, 64)))
        _, backend = self.call(model, torch.randn(4, 64, dtype=torch.bfloat16))
        self.assertEqual(backend.fused, [])
        self.assertRegex(backend.left[0], "1 is by itself: nothing beside it is computed by rows, its "
                         "activations by aten.cumsum")

    def test_weights_that_moved(self):
        model = self.quantize(Block())
        x = torch.randn(3, 64, dtype=torch.bfloat16)
        backend = fp8.torch.Backend(rest="eager")
        compiled = torch.compile(model, backend=backend)
        compiled(x)
        model.up.set_weight(torch.randn(128, 64))
        expected, got = model(x), compiled(x)
        self.assertLess((got[0] - expected[0]).float().norm() / expected[0].float().norm(), 0.01)
        # A layer that is copied by itself lies apart.
        torch.compiler.reset()
        other = copy.deepcopy(model)
        other.up = copy.deepcopy(other.up)
        with self.assertWarnsRegex(UserWarning, "by themselves, which is slow"):
            got = self.call(other, x)[0]
        self.assertLess((got[0] - expected[0]).float().norm() / expected[0].float().norm(), 0.01)

    def test_gradient_of_activations(self):
        with torch.inference_mode(False), torch.enable_grad():
            model = self.quantize(Plain())
            x = torch.randn(3, 64, dtype=torch.bfloat16, requires_grad=True)

            def run(call):
                y = call(x)
                return y.detach(), *torch.autograd.grad(y.float().square().sum(), x)

            expected = run(model)
            got = run(torch.compile(model, backend=fp8.torch.Backend(rest="eager")))
        for value, other in zip(got, expected, strict=True):
            torch.testing.assert_close(value, other)

    def test_norms_of_a_gradient(self):
        """A backward takes what the forward has of each row."""
        with torch.inference_mode(False), torch.enable_grad():
            for norm in Norm, nn.LayerNorm:
                with self.subTest(norm=norm):
                    torch.compiler.reset()
                    model = self.quantize(Block(norm=norm)).requires_grad_(False)
                    x = torch.randn(2, 3, 64, dtype=torch.bfloat16, requires_grad=True)
                    backend = fp8.torch.Backend(rest="eager")

                    def run(call):
                        return torch.autograd.grad(call(x)[0].float().square().sum(), x)[0].float()

                    expected, got = run(model), run(torch.compile(model, backend=backend))
                    self.assertLess((got - expected).norm() / expected.norm(), 0.02)
                    self.assertGreaterEqual(len(backend.fused), 1)
                    self.assertFalse(any("by itself" in line for line in backend.left), backend.left)

    def test_shared_constants(self):
        class Shared(nn.Module):
            def __init__(self):
                super().__init__()
                self.weight = nn.Parameter(torch.rand(64))
                self.a, self.b = nn.Linear(64, 64), nn.Linear(64, 64)

            def forward(self, x):
                factor = 1 + self.weight.float()
                y = self.a((x.float() * factor).to(x.dtype)).cumsum(-1)
                return self.b((y.float() * factor).to(x.dtype))

        self.check(self.quantize(Shared()), torch.randn(3, 64, dtype=torch.bfloat16), 2, 2, exact=True)

    def test_beside_a_recipe(self):
        model = self.quantize(nn.Sequential(Plain(), nn.ReLU(), nn.Linear(64, 64)), filter=["0.*"])
        x = torch.randn(16, 64, dtype=torch.bfloat16)
        got, backend = self.call(model, x, recipe="rowwise")
        self.assertEqual((len(backend.fused), len(backend.parts)), (1, 1))
        self.assertLess((got - model(x)).float().norm() / got.float().norm(), 0.1)

    def test_kernels(self):
        """What a GPU would be asked to do: a pass for each cast, with all before it, and a product."""
        model = self.quantize(Block(256, 512))
        _, backend = self.call(model, torch.randn(4, 256, dtype=torch.bfloat16))
        text = fp8.emit(backend.fused[0].text, "mlir", None, target="sm_90a", to="fusion")
        text = text.decode() if isinstance(text, bytes) else text
        self.assertEqual((text.count("fp8.matmul"), len(re.findall(r"= fp8\.fusion", text))), (3, 3))
        self.assertNotIn("linalg.generic", re.sub(r"(?s)fp8\.fusion.*?\n    }", "", text))


class Widths(unittest.TestCase):
    @torch.inference_mode()
    def test_unknown(self):
        """With dynamic=True the width of a graph's first activations is known when it runs."""
        torch.manual_seed(1)
        torch.compiler.reset()
        model = fp8.torch.quantize_for_inference(nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 16)).bfloat16())
        x = torch.randn(2, 5, 64).bfloat16()
        compiled = torch.compile(model, backend=fp8.torch.Backend(rest="eager"), dynamic=True)
        self.assertTrue(torch.equal(compiled(x), model(x)))


class Slices(unittest.TestCase):
    def test_bounds(self):
        graph = torch.fx.Graph()
        x = graph.placeholder("x")
        x.meta["val"] = torch.empty(2, 8)
        for arguments, expected in (((1, 0, 4), (0, 4)), ((-1, -3, 2 ** 62), (5, 8)), ((1, 2), (2, 8)),
                                    ((0, 0, 1), None), ((1, 0, 8, 2), None)):
            node = graph.call_function(torch.ops.aten.slice.Tensor, (x, *arguments))
            piece = fused_text.read_slice(node)
            self.assertEqual(piece and piece[1:], expected)


if __name__ == "__main__":
    unittest.main()
