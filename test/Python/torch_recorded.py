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

    def test_make_fx(self):
        self.check(lambda model: make_fx(model)(self.x))

    def test_export(self):
        """Scales of layers that were never called outlive torch.export, which puts back what dictionaries of modules held."""
        for recipe in ("rowwise", "delayed"):
            model = convert(make(), recipe)
            graph = torch.export.export(model, (self.x,)).module()
            self.assertTrue(torch.equal(graph(self.x), model(self.x)))

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
