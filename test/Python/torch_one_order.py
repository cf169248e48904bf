# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Layers that keep codes in one order alone (transposed_codes): the bits of those that keep both."""

import copy
import io
import unittest
from unittest import mock

import torch
from functorch.compile import default_partition, make_boxed_func
from torch import nn
from torch._functorch.aot_autograd import aot_module_simplified

import fp8
import fp8.torch
from fp8.torch import linear_ops, shared_codes

RECIPES = ("delayed", "current", "rowwise", "block", "mxfp8", "nvfp4")
# Whose weights have the same factors in both directions, and whose x.
ONE_WEIGHT, ONE_X = ("delayed", "current", "block"), ("delayed", "current")


def make_model(dtype=torch.bfloat16):
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(128, 256), nn.GELU(), nn.Linear(256, 128, bias=False)).to(dtype)


def convert(recipe, way, model=None, **options):
    return fp8.torch.convert_to_fp8_training(model or make_model(), recipe, first_last_bf16=0, target="cpu",
                                             transposed_codes=way, **options)


def make_input(rows=128, dtype=torch.bfloat16):
    return torch.randn(rows, 128, generator=torch.Generator().manual_seed(3)).to(dtype).requires_grad_()


def run(model, x=None, call=None):
    """The result and all gradients."""
    x = make_input() if x is None else x
    model.zero_grad(set_to_none=True)
    x.grad = None
    y = (model if call is None else call)(x)
    y.backward(torch.linspace(-1, 1, y.numel()).reshape(y.shape).to(y.dtype))
    return [y.detach().clone(), x.grad.clone(), *(p.grad.clone() for p in model.parameters())]


def list_names(model, function="backward"):
    """The arguments of a function of a model's first layer."""
    unit, = model[0].units.values()
    return {info.name for program in unit.used.values() for info in program.functions[function].arguments}


def train(model, optimizer, steps=3, call=None):
    losses = []
    for step in range(steps):
        loss = (model if call is None else call)(make_input(dtype=next(model.parameters()).dtype).detach() * (1 + step)).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    return [*losses, *(p.detach().clone() for p in model.parameters())]


def make_optimizer(model, **options):
    return fp8.torch.fuse_optimizer(model, torch.optim.AdamW(model.parameters(), 1e-2, fused=True), **options)


class Readers(nn.Module):
    """Three layers that read the same."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(128, 128) for _ in range(3))

    def forward(self, x):
        return self.q(x) * self.k(x) + self.v(x)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(128, 384), nn.Linear(128, 128)

    def forward(self, x):
        q, k, v = (each.view(1, x.shape[0], 4, 32).transpose(1, 2) for each in self.qkv(x).chunk(3, -1))
        z = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(z.transpose(1, 2).reshape(x.shape))


class OneOrder(unittest.TestCase):
    def check_equal(self, values, expected):
        for value, other in zip(values, expected, strict=True):
            self.assertTrue(torch.equal(value, other))

    def test_has_the_same_bits(self):
        for recipe in RECIPES:
            for rows in (128, 120) if recipe == "current" else (128,):  # The latter are padded for a contraction.
                models = [convert(recipe, way) for way in ("copy", "cost")]
                for _ in range(3):
                    first, *others = [run(model, make_input(rows)) for model in models]
                    for other in others:
                        self.check_equal(other, first)

    def test_has_one_argument(self):
        """Codes of x are those that the forward makes for itself, and the gradient of x takes the forward's weight."""
        for recipe in RECIPES[:4]:
            model = convert(recipe, "cost", cache_weights=True)
            run(model)
            unit, = model[0].units.values()
            sizes = {tuple(info.shape) for program in unit.used.values()
                     for info in program.functions["train"].results if info.name == "x.codes"}
            self.assertEqual(sizes, {(128, 128)})

    def test_codes_serve_all_readers(self):
        """Under `current` the first reader's codes are what others multiply with, in graphs, too."""
        for options in ({}, {"parameters": "fp8"}):
            calls, reuse = [], linear_ops.Unit.reuse
            with mock.patch.object(linear_ops.Unit, "reuse", lambda *arguments: calls.append(1) or reuse(*arguments)):
                results = []
                for way, compiles in (("copy", False), ("cost", False), ("cost", True)):
                    torch.manual_seed(1)
                    model = convert("current", way, Readers().bfloat16(), **options)
                    call = torch.compile(model, backend=self.compile_joint) if compiles else model
                    results.append([value for _ in range(2) for value in run(model, call=call)])
                    # Two of three readers; copies go the same way, and compute their own.
                    self.assertEqual(len(calls), 4)
                    calls.clear()
            self.check_equal(results[1], results[0])
            self.check_equal(results[2], results[0])

    def test_codes_of_what_is_kept_anyway(self):
        """Attention keeps its result for its gradient: a graph quantizes that again, and keeps no codes of it."""
        calls, encode = [], linear_ops.Unit.encode
        with mock.patch.object(linear_ops.Unit, "encode", lambda *arguments: calls.append(1) or encode(*arguments)):
            for options in ({}, {"parameters": "fp8"}):
                results, counts = [], []
                for way, compiles in (("copy", True), ("cost", False), ("cost", True)):
                    torch.manual_seed(1)
                    model = convert("current", way, Attention().bfloat16(), **options)
                    call = torch.compile(model, backend=self.compile_joint) if compiles else model
                    results.append([value for _ in range(2) for value in run(model, call=call)])
                    counts.append(len(calls))
                    calls.clear()
                self.assertEqual(counts, [0, 0, 2])
                self.check_equal(results[1], results[2])
                self.check_equal(results[0], results[2])

    @staticmethod
    def compile_joint(module, inputs):
        """What Inductor does to a joint graph, run by PyTorch."""
        def partition(joint, joint_inputs, **keywords):
            shared_codes.share(joint.graph)
            joint.recompile()
            return default_partition(joint, joint_inputs, **keywords)

        return aot_module_simplified(module, inputs, fw_compiler=lambda graph, _: make_boxed_func(graph.forward), partition_fn=partition)

    def test_refuses_other_ways(self):
        with self.assertRaisesRegex(fp8.Error, "expected transposed-codes to be copy, kernel or cost, but got 'both'"):
            convert("current", "both")

    def test_weights_are_quantized_once(self):
        for recipe in (*RECIPES[:4], "mxfp8,weight_2d=true"):
            expected = run(convert(recipe, "copy"))
            model = convert(recipe, "kernel", cache_weights=True)
            self.check_equal(run(model), expected)
            self.assertEqual("weight.codes_1" in list_names(model), recipe == "rowwise", recipe)

    def test_an_optimizer_writes_one_order(self):
        for recipe in RECIPES[:4]:
            for dtype in (torch.bfloat16, torch.float32) if recipe == "delayed" else (torch.bfloat16,):
                models = [convert(recipe, way, make_model(dtype)) for way in ("copy", "cost")]
                both, one = [train(model, make_optimizer(model)) for model in models]
                self.check_equal(one, both)
                held = next(iter(models[1][0].units.values())).held
                self.assertEqual("weight.codes_1" in held.values, recipe not in ONE_WEIGHT)

    def test_square_weights(self):
        """Codes of as many rows as columns have one shape in both orders: gradients are near those of bf16 in either."""
        def make_square():
            torch.manual_seed(1)
            return nn.Sequential(nn.Linear(128, 128), nn.GELU(), nn.Linear(128, 128, bias=False)).bfloat16()
        expected = run(make_square())
        for recipe, options in (("delayed", {}), ("current", {"parameters": "fp8"}), ("block", {"parameters": "fp8"})):
            models = [convert(recipe, way, make_square(), **options) for way in ("copy", "cost")]
            optimizers = [make_optimizer(model) for model in models]
            for model, optimizer in zip(models, optimizers):
                run(model)
                optimizer.param_groups[0]["lr"] = 0.0
                optimizer.step()  # Writes codes of the same weights.
            both, one = map(run, models)
            self.check_equal(one, both)
            for value, other in zip(one, expected, strict=True):
                self.assertLess((value - other).float().norm(), 0.12 * other.float().norm())

    def test_parameters_in_fp8(self):
        for recipe in ("current", "block"):
            for options in ({}, {"moments": "fp8"}, {"masters": "split"}) if recipe == "block" else ({},):
                models = [convert(recipe, way, parameters="fp8") for way in ("copy", "cost")]
                both, one = [train(model, make_optimizer(model, **options)) for model in models]
                self.check_equal(one, both)
                self.assertEqual(models[1][0].weight.content.list_names(), ["codes", "factors"])

    def test_compiled(self):
        for recipe in ("current", "delayed"):
            for options in ({}, {"parameters": "fp8"} if recipe == "current" else {"cache_weights": True}):
                models = [convert(recipe, way, **options) for way in ("copy", "cost")]
                compiled = [torch.compile(model, backend="aot_eager") for model in models]
                for _ in range(2):
                    both, one = [run(model, call=call) for model, call in zip(models, compiled)]
                    self.check_equal(one, both)

    def test_states_load_either_way(self):
        """Values and codes, into models of either order, and copies of models."""
        for saves_codes in (False, True):
            source = convert("current", "cost", parameters="fp8")
            for layer in fp8.torch.modules.get_layers(source).values():
                layer.saves_codes = saves_codes
            train(source, make_optimizer(source))
            expected = run(source)
            file = io.BytesIO()
            torch.save(source.state_dict(), file)
            for way in ("copy", "cost"):
                file.seek(0)
                model = convert("current", way, parameters="fp8")
                model.load_state_dict(torch.load(file))
                if saves_codes:
                    self.check_equal(run(model), expected)
                self.check_equal(run(copy.deepcopy(source)), expected)
                other = convert("current", way, parameters="fp8")
                with torch.no_grad():
                    for mine, its in zip(other.parameters(), source.parameters()):
                        mine.copy_(its)
                self.check_equal(run(other), expected)
                self.assertEqual(other[0].weight.content.turned is None, way == "cost")

    def test_the_option_may_change(self):
        """Codes stay what they are, with and without an optimizer that has made steps."""
        for options in ({}, {"parameters": "fp8"}):
            models = [convert("current", "copy", **options) for _ in range(2)]
            optimizers = [make_optimizer(model) for model in models]
            for model, optimizer in zip(models, optimizers):
                train(model, optimizer)
            convert("current", "cost", models[1], **options)
            fp8.torch.fuse_optimizer(models[1], optimizers[1])
            self.check_equal(*[train(model, optimizer) for model, optimizer in zip(models, optimizers)])
            self.check_equal(*map(run, models))

    def test_microbatches_and_checkpointing(self):
        from torch.utils.checkpoint import checkpoint
        for recipe in ("delayed", "current"):
            results = []
            for way in ("copy", "cost"):
                model = convert(recipe, way, cache_weights=True)
                run(model)
                with fp8.torch.accumulated(model):
                    for scale in (1, 2):
                        x = make_input().detach().requires_grad_()
                        checkpoint(model, x * scale, use_reentrant=False).float().square().mean().backward()
                results.append([p.grad.clone() for p in model.parameters()])
            self.check_equal(*results)


if __name__ == "__main__":
    unittest.main()
