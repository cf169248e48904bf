# REQUIRES: pytorch, python-pytorch
# RUN: env FP8_CUDA_DRIVER=emulator %import_python %s
"""Calls of parts that are like earlier ones, which Python does not look at again: they have the same results, and
what is not like them is found out."""

import unittest
from unittest import mock

import torch
from torch import nn

import fp8
import fp8.torch
from fp8.torch import fused_linears, part_ops


class Block(nn.Module):
    """Two layers that are one product, with biases, and results of several kinds."""

    def __init__(self):
        super().__init__()
        self.norm = nn.RMSNorm(64)
        self.gate, self.up, self.down = nn.Linear(64, 32), nn.Linear(64, 32), nn.Linear(32, 64)

    def forward(self, x):
        y = self.norm(x)
        y = x + self.down(self.gate(y).relu() * self.up(y))
        return y, y.float().square().mean(-1, keepdim=True)


class Calls(unittest.TestCase):
    def setUp(self):
        torch.manual_seed(1)
        torch.compiler.reset()
        self.enterContext(torch.inference_mode())
        self.model = fp8.torch.quantize_for_inference(Block().bfloat16().eval())
        self.backend = fp8.torch.Backend(rest="eager", target="sm_90a")
        self.compiled = torch.compile(self.model, backend=self.backend, dynamic=True)
        self.x = torch.randn(2, 3, 64).bfloat16()
        self.expected = self.compiled(self.x)
        self.compute = fused_linears.FusedPart.__call__

    def check(self, x, general, expected=None):
        """That a call is of C, or a general one, with what a general one gives."""
        with mock.patch.object(fused_linears.FusedPart, "__call__", autospec=True, side_effect=self.compute) as called:
            results = self.compiled(x)
        self.assertEqual(called.call_count, int(general))
        if expected is None:
            with mock.patch.object(part_ops.Call, "run", lambda call, tensors, sizes: list(
                    call._run(*call._merge(tensors, sizes)))):
                expected = self.compiled(x)
        for value, other in zip(results, expected, strict=True):
            self.assertEqual((value.shape, value.stride(), value.dtype), (other.shape, other.stride(), other.dtype))
            self.assertTrue(torch.equal(value, other))

    def test_calls(self):
        self.check(self.x, False, self.expected)
        self.check(torch.randn(5, 2, 64).bfloat16(), False)
        self.check(self.x, False, self.expected)

    def test_weights_elsewhere(self):
        for layer in self.model.gate, self.model.up, self.model.down:
            layer.set_weight(torch.randn(layer.out_features, layer.in_features))
        self.check(self.x, True)
        self.check(self.x, False)
        self.assertFalse(torch.equal(self.compiled(self.x)[0], self.expected[0]))

    def test_weights_in_place(self):
        self.model.down.weight.view(torch.uint8).zero_()
        self.check(self.x, False)
        self.assertFalse(torch.equal(self.compiled(self.x)[0], self.expected[0]))

    def test_what_is_refused(self):
        part, = self.backend.fused
        function = part._function
        x = torch.ones(3, 64, dtype=torch.bfloat16)
        for arguments in [], [(0, "full")] * 99, [(7, "full")] * len(function.arguments):
            self.assertIsNone(function.make_part_call([x], arguments, [(0, [])] * len(function.results)))
        self.assertIsNone(function.make_part_call([], [], []))


if __name__ == "__main__":
    unittest.main()
