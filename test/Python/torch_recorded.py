# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Layers are operations to whoever records operations, counts them or keeps their results: nothing that a program computed
is a constant of a graph, and nothing is missing."""

import copy
import functools
import unittest
import warnings

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import checkpoint
from torch.utils.flop_counter import FlopCounterMode

import fp8
import fp8.torch


def make():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(64, 128), nn.GELU(), nn.Linear(128, 64))


def convert(model, recipe="rowwise", **options):
    return fp8.torch.convert_to_fp8_training(model, recipe, first_last_bf16=0, target="cpu", **options)


class Matrices(nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.w = nn.Parameter(torch.randn(64, 128) / 8)
        self.experts = nn.Parameter(torch.randn(2, 128, 64) / 8)

    def forward(self, x):
        y = x @ self.w
        return y @ self.experts[0] + nn.functional.linear(y, self.experts[1].T)


WAYS = {"training": lambda: convert(make()), "parameters": lambda: convert(make(), "current", parameters="fp8"), "inference": lambda: fp8.torch.quantize_for_inference(make(), "rowwise"),
        "autocast": make}


class Recorded(unittest.TestCase):
    def setUp(self):
        self.x = torch.randn(32, 64)

    def check(self, record):
        """A graph of one input has the results of another one, also where the layers have been called before."""
        for name, make_model in WAYS.items():
            for is_called in (False, True):
                with self.subTest(name, called=is_called), torch.no_grad(), fp8.torch.autocast("rowwise"), warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # torch.jit is old.
                    model = make_model()
                    if is_called:
                        model(self.x)
                    graph = record(model)
                    self.assertTrue(torch.equal(graph(2 * self.x), model(2 * self.x)))

    def test_jit_trace(self):
        self.check(lambda model: torch.jit.trace(model, (self.x,)))

    def test_jit_trace_of_training(self):
        """With gradients; what checks a graph runs it without."""
        for name in "training", "autocast":
            with self.subTest(name), fp8.torch.autocast("rowwise"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = WAYS[name]()
                graph = torch.jit.trace(model, (self.x,))
                for found, expected in zip(*(torch.autograd.grad(each(2 * self.x).square().sum(), list(model.parameters()))
                                             for each in (graph, model))):
                    self.assertTrue(torch.equal(found, expected))

    def test_second_derivatives(self):
        """Under a mode they are refused as without."""
        for name, model in ("training", convert(make())), ("inference", WAYS["inference"]()):
            with self.subTest(name), FlopCounterMode(display=False):
                x = self.x.clone().requires_grad_()
                with self.assertRaisesRegex(fp8.UnsupportedError, "no second derivative"):
                    torch.autograd.grad(model(x).square().sum(), x, create_graph=True)

    def test_make_fx(self):
        self.check(lambda model: make_fx(model)(self.x))

    def test_export(self):
        """Scales of layers that were never called outlive torch.export, which puts back what dictionaries of modules held."""
        for recipe in ("rowwise", "delayed"):
            model = convert(make(), recipe)
            graph = torch.export.export(model, (self.x,)).module()
            self.assertTrue(torch.equal(graph(self.x), model(self.x)))

    def test_export_autocast(self):
        """What torch.export traces are fake parameters, which stand for those that a Product belongs to."""
        for name in ("autocast", "matrices", "attention"):
            for strict in (False, True):
                model = {**WAYS, "matrices": Matrices, "attention": lambda: nn.TransformerEncoderLayer(64, 4, 128, dropout=0).eval()}[name]()
                plain = model(self.x)
                with self.subTest(name, strict=strict), torch.no_grad(), fp8.torch.autocast("rowwise"):
                    program = torch.export.export(model, (self.x,), strict=strict)
                    self.assertTrue(torch.equal(program.module()(self.x), model(self.x)))
                    self.assertFalse(torch.equal(program.module()(self.x), plain))
                    self.assertTrue(any("fp8" in str(node.target) for node in program.graph.nodes))
        model = convert(Matrices())
        with torch.no_grad():
            program = torch.export.export(model, (self.x,))
            self.assertTrue(torch.equal(program.module()(self.x), model(self.x)))
            with self.assertRaisesRegex(Exception, "strict=False"):
                torch.export.export(model, (self.x,), strict=True)

    def test_any_rows(self):
        """A graph for any number of rows keeps codes for its backward, of 7 rows, too, whose own program keeps x."""
        for recipe in ("current", "delayed"):
            for record in (lambda model: torch.compile(model, backend="aot_eager", dynamic=True),
                           lambda model: torch.export.export(model, (self.x,), dynamic_shapes=({0: torch.export.Dim("n")},)).module()):
                model = convert(make(), recipe)
                graph = record(model)
                for rows in (32, 7, 9, 16):
                    x = self.x[:rows].clone().requires_grad_()
                    with self.subTest(recipe, rows=rows):
                        y = graph(x)
                        y.square().sum().backward()
                        self.assertTrue(torch.isfinite(x.grad).all())
                        if recipe != "delayed":  # Whose scales come from the steps before.
                            other = x.detach().clone().requires_grad_()
                            z = copy.deepcopy(model)(other)
                            z.square().sum().backward()
                            self.assertTrue(torch.equal(y, z))
                            self.assertLess((x.grad - other.grad).norm(), 0.1 * other.grad.norm())

    def test_fake(self):
        """Shapes of a model without values, and no graph of it."""
        with FakeTensorMode():
            model, x = make(), torch.randn(16, 64)
            with fp8.torch.autocast("rowwise"):
                self.assertEqual(model(x).shape, (16, 64))
                with self.assertRaisesRegex(fp8.UnsupportedError, "parameters with values"):
                    torch.export.export(model, (x,))

    def test_flops(self):
        def count(model, has_backward):
            with FlopCounterMode(display=False) as counter:
                y = model(self.x)
                if has_backward:
                    y.sum().backward()
            return counter.get_total_flops()
        for name in ("training", "parameters"):
            self.assertEqual(count(WAYS[name](), True), count(make(), True))
        self.assertEqual(count(WAYS["inference"](), False), 2 * 32 * 2 * 64 * 128)
        x, model = self.x, WAYS["inference"]()
        self.x = x.clone().requires_grad_()
        self.assertEqual(count(model, True), 2 * 2 * 32 * 2 * 64 * 128)

    def test_flops_of_attention(self):
        """Those of PyTorch's function, forward and backward, and of sequences in one row; hidden keys count there, too."""
        def make(heads, positions, columns):
            return torch.randn(2, heads, positions, columns).requires_grad_()

        def count(call, *tensors):
            with FlopCounterMode(display=False) as counter:
                call(*tensors).sum().backward()
            return counter.get_total_flops()

        attend = functools.partial(torch.nn.functional.scaled_dot_product_attention, is_causal=True)
        for columns in (32, 32), (32, 16):
            tensors = make(4, 24, columns[0]), make(4, 40, columns[0]), make(4, 40, columns[1])
            expected = 2 * 2 * 4 * 24 * 40 * (4 * columns[0] + 3 * columns[1])
            with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION):
                if columns[0] == columns[1]:
                    # PyTorch 2.11 counts none on a CPU.
                    self.assertIn(count(attend, *tensors), (0, expected))
            for format_ in None, "e4m3":
                with fp8.torch.use_attention(format=format_):
                    for _ in range(2):
                        self.assertEqual(count(attend, *tensors), expected)
                turned = [x.detach().transpose(1, 2).contiguous().transpose(1, 2).requires_grad_() for x in tensors]
                self.assertEqual(count(functools.partial(fp8.torch.scaled_dot_product_attention, format=format_), *turned),
                                 expected)
        ends = torch.tensor([0, 9, 24], dtype=torch.int32)
        q, k, v = (torch.randn(24, 4, 32).requires_grad_() for _ in range(3))
        self.assertEqual(count(lambda *x: fp8.torch.packed_attention(*x, ends, ends, is_causal=True), q, k, v),
                         2 * 4 * 24 * 24 * 7 * 32)
        lengths = torch.tensor([7, 9], dtype=torch.int32)
        with torch.no_grad(), FlopCounterMode(display=False) as counter:
            fp8.torch.attend_to_cache(torch.randn(2, 4, 3, 32), *(torch.randn(2, 2, 9, 32) for _ in range(2)), lengths)
        self.assertEqual(counter.get_total_flops(), 2 * 2 * 4 * 3 * 9 * 64)

    def test_flops_of_groups(self):
        x, weight = (torch.randn(*sizes).requires_grad_() for sizes in ((24, 64), (3, 64, 32)))
        ends = torch.tensor([8, 8, 24], dtype=torch.int32)

        def count():
            with FlopCounterMode(display=False) as counter:
                torch._grouped_mm(x, weight, offs=ends).sum().backward()
            return counter.get_total_flops()

        module = nn.Module()
        module.weight = nn.Parameter(weight.detach())
        with fp8.torch.autocast("current"):
            weight = module.weight
            self.assertEqual(count(), 3 * 2 * 24 * 64 * 32)

    def test_bits(self):
        """Gradients under a mode are those without; checkpointing may keep results of layers."""
        def choose(context, operation, *args, **kwargs):
            return (checkpoint.CheckpointPolicy.MUST_SAVE if "fp8" in str(operation) else
                    checkpoint.CheckpointPolicy.PREFER_RECOMPUTE)
        contexts = functools.partial(checkpoint.create_selective_checkpoint_contexts, choose)

        def count(model, x):
            with FlopCounterMode(display=False):
                return model(x)
        model = convert(make(), "current")
        for call in (count, functools.partial(checkpoint.checkpoint, use_reentrant=False, context_fn=contexts)):
            one, other = copy.deepcopy(model), copy.deepcopy(model)
            one(self.x).square().sum().backward()
            call(other, self.x).square().sum().backward()
            for a, b in zip(one.parameters(), other.parameters()):
                self.assertTrue(torch.equal(a.grad, b.grad))


if __name__ == "__main__":
    unittest.main()
