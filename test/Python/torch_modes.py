# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Modes and options of torch.compile with backend="fp8": what of them is Inductor's, and which graphs end early."""

import contextlib
import io
import unittest
from unittest import mock

import torch
from torch import nn
from torch._inductor import compile_fx

import fp8
import fp8.torch
from fp8.torch import backend


class Block(nn.Module):
    def __init__(self, breaks=False):
        super().__init__()
        self.a, self.b, self.breaks = nn.Linear(64, 64), nn.Linear(64, 64), breaks

    def forward(self, x):
        x = x + self.b(self.a(x).relu())
        if self.breaks:
            torch._dynamo.graph_break()
        return x + self.a(self.b(x).relu())


class Modes(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        torch.compiler.reset()
        self.enterContext(torch.inference_mode())
        self.x = torch.randn(3, 64).bfloat16()

    def make(self, **options):
        return fp8.torch.quantize_for_inference(Block(**options).bfloat16())

    def find_patches(self, **options):
        """What Inductor is told beside the graph."""
        torch.compiler.reset()
        found = []

        def compile(module, inputs, *arguments, config_patches=None, inner_compile=None, **others):
            found.append(config_patches)
            return module

        with mock.patch.object(compile_fx, "compile_fx", compile):
            torch.compile(self.make(), backend="fp8", **options)(self.x)
        return found

    def test_modes(self):
        for mode in "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs":
            expected = torch._inductor.list_mode_options(mode)
            self.assertEqual(self.find_patches(mode=mode), [expected])
            self.assertEqual(self.find_patches(options={"mode": mode}), [expected])
        self.assertEqual(self.find_patches(mode="default"), [None])
        self.assertEqual(self.find_patches(), [None])

    def test_options(self):
        graphs = {"triton.cudagraphs": True}
        self.assertEqual(self.find_patches(options=graphs), [graphs])
        # Those of one kind beside those of the other.
        options = {**graphs, "max_autotune": True, "mode": "max-autotune", "target": "cpu", "keep_peak": False}
        found, = self.find_patches(options=options)
        self.assertEqual(found, {**torch._inductor.list_mode_options("max-autotune"), **graphs, "max_autotune": True})
        self.assertTrue(backend.Backend(**graphs)._replays)
        self.assertTrue(backend.Backend(mode="reduce-overhead")._replays)
        self.assertFalse(backend.Backend()._replays)

    def test_what_is_refused(self):
        for options, text in (({"mode": "quick"}, "expected mode to be one of default, .*, but got 'quick'"),
                              ({"triton.cudagraph": True}, "triton.cudagraph"), ({"recipes": "block"}, "recipes")):
            with self.assertRaisesRegex(fp8.ArgumentError, text):
                fp8.torch.Backend(**options)

    def test_graph_breaks(self):
        made = fp8.torch.Backend(rest="eager")
        model = self.make(breaks=True)
        y = torch.compile(model, backend=made)(self.x)
        self.assertEqual(sum(made.breaks.values()), 1)
        self.assertEqual(len(made.fused), 2)
        self.assertLess((y - model(self.x)).float().norm(), 0.01 * y.float().norm())
        with contextlib.redirect_stdout(io.StringIO()) as out:
            made.explain()
        self.assertRegex(out.getvalue(), "(?m)^1 graph break: ")
        self.assertEqual(fp8.torch.Backend(rest="eager").breaks, {})

    def test_whole_graphs(self):
        made = fp8.torch.Backend(rest="eager")
        torch.compile(self.make(), backend=made, fullgraph=True, dynamic=True)(self.x)
        self.assertEqual((made.breaks, len(made.fused)), ({}, 1))


if __name__ == "__main__":
    unittest.main()
