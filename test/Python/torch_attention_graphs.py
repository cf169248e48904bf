# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Attention of graphs by torch.compile's backend: results, gradients and strides beside PyTorch's, for each of PyTorch's
operations; choices, recipes with fp8_dpa, and what is left, with a reason."""

import contextlib
import io
import unittest
from unittest import mock

import torch
from torch import nn
from torch._subclasses import FakeTensorMode
from torch.nn import functional as F

import fp8
import fp8.torch
from fp8.torch import attention_calls, attention_graphs

aten = torch.ops.aten


def make(*sizes, seed=0, dtype=torch.float32):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed)).to(dtype)


def make_window():
    number = torch.arange(16)
    distance = number[:, None] - number
    return ((distance >= 0) & (distance <= 3))[None, None]


class Block(nn.Module):
    def __init__(self, width=64, heads=4, heads_of_k=2):
        super().__init__()
        torch.manual_seed(1)
        self.sizes = [heads * 16, heads_of_k * 16, heads_of_k * 16]
        self.qkv, self.out = nn.Linear(width, sum(self.sizes), bias=False), nn.Linear(heads * 16, width, bias=False)

    def forward(self, x, mask=None, dropout=0.0):
        q, k, v = (y.unflatten(-1, (-1, 16)).transpose(1, 2) for y in self.qkv(x).split(self.sizes, -1))
        y = F.scaled_dot_product_attention(q, k, v, mask, dropout, mask is None, enable_gqa=True)
        # A view that PyTorch's result allows.
        return self.out(y.transpose(1, 2).view(*x.shape[:2], -1))


class Graphs(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()

    def compile(self, model, recipe=None, **options):
        backend = fp8.torch.Backend(recipe, **{"rest": "eager", "attention": "fp8", **options})
        return torch.compile(model, backend=backend, fullgraph=True), backend

    def check(self, found, expected, tolerance=1e-5):
        self.assertEqual((found.dtype, found.shape), (expected.dtype, expected.shape))
        self.assertTrue(found.isfinite().all())
        self.assertLessEqual((found - expected).norm().item(), tolerance * expected.norm().item())

    def train(self, model, x, parameters, *others):
        y = model(x, *others)
        return [y.detach(), *torch.autograd.grad((y * make(*y.shape, seed=5)).sum(), parameters)]

    def compare(self, tolerance=1e-4, others=(), recipe=None, **options):
        model, x = Block(), make(2, 16, 64)
        compiled, backend = self.compile(model, recipe, **options)
        parameters = list(model.parameters())
        with mock.patch.object(attention_calls, "compute",
                               side_effect=attention_calls.compute) as called:
            found = self.train(compiled, x, parameters, *others)
        for y, z in zip(found, self.train(model, x, parameters, *others)):
            self.check(y, z, tolerance)
        # AOTAutograd calls it for shapes, and again.
        return backend, list(dict.fromkeys(call.kwargs["format"] for call in called.call_args_list))

    def test_a_block(self):
        backend, formats = self.compare()
        self.assertEqual(formats, [None])
        self.assertEqual(backend.attention.taken, ("4 heads over 2 of 16 columns, causal in f32",))
        self.assertFalse([line for line in backend.left if "attention" in line])
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            backend.explain()
        self.assertIn("attention of 4 heads over 2 of 16 columns, causal in f32: fp8.attention", said.getvalue())

    def test_masks(self):
        backend, formats = self.compare(others=(make(2, 1, 16, 16) > -1,))
        self.assertEqual((formats, backend.attention.taken), ([None], ("4 heads over 2 of 16 columns, mask in f32",)))

    def test_with_products_in_8_bits(self):
        backend, formats = self.compare(0.2, recipe=fp8.Float8CurrentScaling())
        self.assertEqual(formats, [None])
        self.assertEqual([remark.kind for remark in backend.remarks], ["fp8"] * 5)

    def test_choices(self):
        for options, formats in (
                ({"attention": None}, []), ({"attention": "torch"}, []), ({"attention": "auto"}, []),
                ({"attention": fp8.torch.Attention("e5m2")}, ["e5m2"]),
                ({"attention": None, "recipe": fp8.Float8CurrentScaling(fp8_dpa=True)}, ["e4m3"]),
                ({"attention": "torch", "recipe": fp8.Float8CurrentScaling(fp8_dpa=True)}, [])):
            with self.subTest(**options):
                torch._dynamo.reset()
                backend, found = self.compare(0.3, **options)
                self.assertEqual(found, formats)
                self.assertEqual(backend.attention is None, options["attention"] == "torch" or not formats and
                                 options["attention"] is None)
        with self.assertRaisesRegex(fp8.ArgumentError, "expected attention to be one of torch, fp8, auto, or an Attention, "
                                                       "but got 'cudnn'"):
            fp8.torch.Backend(attention="cudnn")

    def test_what_is_slow(self):
        """Without a word of attention, in graphs with products in FP8."""
        window = "4 heads over 2 of 16 columns, window (3, 0) in f32"
        whole = "4 heads over 2 of 16 columns, causal in f32"
        for has_window, in_memory, least, taken in (
                (True, False, 16, (window,)), (True, True, 17, ()), (False, True, 256, (whole,)), (False, True, 257, ()),
                (False, False, 16, ())):
            with self.subTest(has_window=has_window, in_memory=in_memory, least=least):
                torch._dynamo.reset()
                model, x = Block(), make(2, 16, 64)
                compiled, backend = self.compile(lambda x: model(x, make_window() if has_window else None),
                                                 fp8.Float8CurrentScaling(), attention=None)
                with mock.patch.multiple(attention_graphs, has_kernels=lambda device: True, _LEAST=least,
                                         _LEAST_SCORES=least, _is_in_memory=lambda bound: in_memory):
                    found = compiled(x)
                self.check(found, model(x, make_window() if has_window else None), 0.2)
                self.assertEqual(backend._usual.taken, taken)
                self.assertFalse([line for line in backend.left if "attention is Inductor's" in line])

    def test_what_is_slow_by_itself(self):
        """As PyTorch's function says within a Backend, of tensors of Dynamo without values."""
        def attend(x, w, dropout):
            y = (x @ w).view(2, 16, 4, 16).transpose(1, 2)
            return F.scaled_dot_product_attention(y, y, y, is_causal=True, dropout_p=dropout)

        x, w = make(32, 64), nn.Parameter(make(64, 64, seed=1))
        # A CPU's kernel has no dropout.
        for dropout, count in ((0.0, 0), (0.5, 1)):
            torch._dynamo.reset()
            compiled, backend = self.compile(lambda x: attend(x, w, dropout), fp8.Float8CurrentScaling(), attention=None)
            with mock.patch.multiple(attention_graphs, has_kernels=lambda device: True, _LEAST_SCORES=16):
                compiled(x)
            self.assertEqual(len(backend._usual.taken), count)

    def test_what_has_no_kernel(self):
        operands = {name: make(2, 4, 6, 16) for name in ("query", "key", "value")}
        find = attention_graphs._is_in_memory
        with FakeTensorMode() as mode:
            # As a Backend has them.
            without_values = {name: mode.from_tensor(value) for name, value in operands.items()}
        # A CPU's kernel has no dropout.
        for others, expected in (({"is_causal": True}, False), ({"is_causal": True, "dropout_p": 0.5}, True),
                                 ({"scale": 0.5, "attn_mask": None}, False)):
            for each in (operands, without_values):
                self.assertEqual(find({**each, **others}), expected)
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            self.assertFalse(find({**operands, "dropout_p": 0.5}))

    def test_one_head_of_keys(self):
        """Which PyTorch broadcasts without being told that heads share it."""
        q, k = make(2, 4, 6, 16), make(2, 1, 6, 16, seed=1)
        attend = lambda q, k: F.scaled_dot_product_attention(q, k, k, is_causal=True)
        compiled, backend = self.compile(attend)
        self.check(compiled(q, k), attend(q, k))
        self.assertEqual(backend.attention.taken, ("4 heads over 1 of 16 columns, causal in f32",))

    def test_any_number_of_positions(self):
        model = Block()
        compiled, backend = self.compile(lambda x: model(x))
        for positions in (7, 12, 21):
            x = make(2, positions, 64)
            torch._dynamo.mark_dynamic(x, 1)
            self.check(compiled(x), model(x), 1e-4)
        self.assertEqual(backend._graphs, 1)

    def test_reasons(self):
        q = make(2, 4, 6, 16)
        for reason, call in (
                ("a dropout of 1.0", lambda q: F.scaled_dot_product_attention(q, q, q, dropout_p=1.0)),
                ("operands of 3 dimensions", lambda q: F.scaled_dot_product_attention(q[0], q[0], q[0])),
                ("other results than the first are used", lambda q: aten._scaled_dot_product_flash_attention_for_cpu(
                    q, q, q)[1])):
            with self.subTest(reason=reason):
                torch._dynamo.reset()
                compiled, backend = self.compile(call)
                self.check(compiled(q), call(q))
                self.assertIn(f"graph0: attention is Inductor's: {reason}", backend.left)
                self.assertEqual(backend.attention.reasons, (reason,))

    def test_operations(self):
        """Those that PyTorch's function becomes, written by name, of which a CPU has but one."""
        q, k, mask = make(2, 4, 6, 16), make(2, 4, 6, 16, seed=1), make(6, 6)
        for call in (lambda: aten.scaled_dot_product_attention(q, k, k, is_causal=True, scale=0.3),
                     lambda: aten._scaled_dot_product_flash_attention_for_cpu(q, k, k, 0.0, True, scale=0.3)[0],
                     lambda: aten._scaled_dot_product_flash_attention_for_cpu(q, k, k, attn_mask=mask)[0]):
            torch._dynamo.reset()
            compiled, backend = self.compile(call)
            found, expected = compiled(), call()
            self.check(found, expected)
            self.assertEqual(found.stride(), expected.stride())
            self.assertEqual(len(backend.attention.taken), 1)

    def test_operations_of_a_gpu(self):
        """As graphs of a GPU have them, with fake tensors, under the names that their schemas have."""
        bias = {"attn_bias": None}
        for name, options in (("flash_attention", {"dropout_p": 0.0, "is_causal": True}),
                              ("efficient_attention", {**bias, "compute_log_sumexp": True, "is_causal": True}),
                              ("cudnn_attention", {**bias, "compute_log_sumexp": True, "is_causal": True}),
                              ("fused_attention_overrideable", {**bias, "is_causal": True})):
            for dropout in (0.0, 0.5, 1.0):
                with self.subTest(name=name, dropout=dropout), FakeTensorMode(), mock.patch.object(
                        attention_calls, "get_default_target", lambda: "sm_90a"):
                    x = torch.empty(1, 8, 4, 64, dtype=torch.bfloat16, device="cuda").transpose(1, 2)
                    graph = torch.fx.Graph()
                    q = graph.placeholder("q")
                    q.meta["val"] = x
                    target = getattr(aten, f"_scaled_dot_product_{name}").default
                    node = graph.call_function(target, (q, q, q), {**options, "dropout_p": dropout, "scale": 0.1})
                    node.meta["val"] = (x,)
                    graph.output(graph.call_function(attention_graphs.operator.getitem, (node, 0)))
                    module, settings = torch.fx.GraphModule({}, graph), fp8.torch.Attention()
                    reasons = attention_graphs.replace(module, settings, False)
                    made = [each for each in module.graph.nodes if each.op == "call_function"]
                    if dropout == 1.0:
                        self.assertEqual((reasons, len(made)), (["a dropout of 1.0"], 2))
                        continue
                    self.assertEqual((reasons, [each.target for each in made]), ([], [attention_graphs.compute]))
                    self.assertEqual(made[0].args[:2], (settings.number, True))
                    self.assertEqual({key: value for key, value in made[0].kwargs.items() if value is not None},
                                     {"is_causal": True, "dropout_p": dropout, "scale": 0.1, "enable_gqa": True})
                    # The shapes and strides of it.
                    y = module(x)
                    self.assertEqual((y.shape, y.stride(), y.dtype), (x.shape, x.stride(), x.dtype))

    def test_what_is_faster(self):
        def find(positions, format_=None, device="cuda"):
            with FakeTensorMode():
                x = torch.empty(1, 4, positions, 64, dtype=torch.bfloat16, device=device)
                return attention_graphs._find_slower(fp8.torch.Attention(format_), x, x)

        self.assertIsNone(find(2048))
        self.assertIn("fewer than 2048", find(2047))
        self.assertIn("a CPU", find(4096, device="cpu"))
        self.assertIn("8 bits", find(4096, "e4m3"))


if __name__ == "__main__":
    unittest.main()
