# REQUIRES: pytorch, python-pytorch
# RUN: env FP8_CUDA_DRIVER=emulator %import_python %s
"""Quantized layers with what is between them by the kernels of a GPU, on the emulator, beside layers by themselves
on the CPU."""

import unittest

import torch
from torch import nn

import fp8.torch


class Block(nn.Module):
    def __init__(self, k, n):
        super().__init__()
        self.norm, self.next_norm = nn.RMSNorm(k), nn.LayerNorm(k)
        self.gate, self.up = nn.Linear(k, n), nn.Linear(k, n)
        self.down, self.out = nn.Linear(n, k), nn.Linear(k, n)

    def forward(self, x):
        y = self.norm(x)
        x = x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))
        return self.out(self.next_norm(x)), x


class Emulated(unittest.TestCase):
    def check(self, recipe, k, n, calibrates=False):
        torch.manual_seed(1)
        torch.compiler.reset()
        batches = [torch.randn(40, k).bfloat16() for _ in range(2)]
        model = fp8.torch.quantize_for_inference(Block(k, n).bfloat16().eval(), recipe,
                                                 batches if calibrates else None)
        backend = fp8.torch.Backend(rest="eager", target="sm_90a")
        compiled = torch.compile(model, backend=backend, dynamic=True)
        for x in batches[0], batches[1][:3]:
            for value, other in zip(compiled(x), model(x), strict=True):
                self.assertLess((value - other).float().norm() / other.float().norm(), 0.01)
        self.assertEqual(len(backend.fused), 1)

    @torch.no_grad()
    def test_rows(self):
        self.check("rowwise", 64, 128)

    @torch.no_grad()
    def test_static(self):
        self.check("current", 64, 128, True)

    @torch.no_grad()
    def test_blocks(self):
        self.check("block", 256, 128)


if __name__ == "__main__":
    unittest.main()
