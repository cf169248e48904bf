# REQUIRES: pytorch, python-pytorch
# RUN: env FP8_CUDA_DRIVER=emulator %import_python %s
# RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_ARCH=89 %import_python %s
# RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_ARCH=121 %import_python %s
"""Training steps of PyTorch with the kernels of a GPU, on the emulator."""

import os
import unittest

import torch
from torch import nn

import fp8
import fp8.torch

TARGET = {"89": "sm_89", "121": "sm_121a"}.get(os.environ.get("FP8_EMULATOR_ARCH"), "sm_90a")


class Block(nn.Module):
    def __init__(self, width, wide):
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.gate, self.up = nn.Linear(width, wide, bias=False), nn.Linear(width, wide, bias=False)
        self.down = nn.Linear(wide, width, bias=False)

    def forward(self, x):
        y = self.norm(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))


class Vision(nn.Module):
    """What DINOv2 has around a layer: a token of its own before those of each image, positions,
    and factors of what a layer adds."""

    def __init__(self, width, tokens):
        super().__init__()
        self.patches = nn.Linear(16, width)
        self.cls = nn.Parameter(torch.randn(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, tokens + 1, width))
        self.norm, self.qkv = nn.LayerNorm(width), nn.Linear(width, 3 * width)
        self.out, self.scale = nn.Linear(width, width), nn.Parameter(torch.ones(width))
        self.head = nn.Linear(2 * width, 16)

    def forward(self, x):
        x = self.patches(x)
        x = torch.cat([self.cls.expand(x.shape[0], -1, -1), x], 1) + self.positions
        q, k, v = (y.unflatten(-1, (2, -1)).transpose(1, 2)
                   for y in self.qkv(self.norm(x)).chunk(3, -1))
        y = nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        x = x + self.out(y) * self.scale
        return self.head(torch.cat([x[:, 0], x[:, 1:].mean(1)], 1))


def train(model, call, steps=2):
    """The losses, and the parameters at the end."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
    generator = torch.Generator().manual_seed(4)
    x = torch.randn(64, 64, generator=generator).bfloat16()
    target = torch.randn(64, 64, generator=generator).bfloat16()
    losses = []
    for _ in range(steps):
        loss = (call(x) - target).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    return losses, torch.cat([value.detach().flatten().float() for value in model.parameters()])


def make_model():
    torch.manual_seed(3)
    return Block(64, 128).bfloat16()


class Step(unittest.TestCase):
    def check(self, run):
        (losses, parameters), (expected, others) = run(TARGET), run("cpu")
        for loss, other in zip(losses, expected):
            self.assertAlmostEqual(loss, other, delta=2e-3 * other)
        self.assertLess(((parameters - others).norm() / others.norm()).item(), 2e-3)
        self.assertLess(losses[-1], losses[0])

    def test_layers(self):
        states = []

        def run(target):
            model = make_model()
            fp8.torch.convert_to_fp8_training(model, fp8.DelayedScaling(amax_history_len=4),
                                              first_last_bf16=0, target=target, cache=False)
            result = train(model, model)
            states.append(next(iter(model.gate.units.values())).state)
            return result

        self.check(run)
        slots, others = (state.slots for state in states)
        self.assertEqual(slots.keys(), others.keys())
        for name, slot in slots.items():
            self.assertEqual(slot.recorded, others[name].recorded)
            self.assertAlmostEqual(slot.amax, others[name].amax, delta=2e-2 * slot.amax)

    def test_backend(self):
        def run(target):
            torch._dynamo.reset()
            model = make_model()
            backend = fp8.torch.Backend("current", target=target, rest="eager", cache=False)
            result = train(model, torch.compile(model, backend=backend))
            self.assertEqual(len(backend.remarks), 9)
            self.assertTrue(all(remark.kind == "fp8" for remark in backend.remarks))
            return result

        self.check(run)

    def test_a_token_of_its_own(self):
        def differentiate(target):
            torch._dynamo.reset()
            torch.manual_seed(5)
            model = Vision(32, 5).bfloat16()
            backend = fp8.torch.Backend("delayed", target=target, cache=False)
            x = torch.randn(3, 5, 16).bfloat16()
            torch.compile(model, backend=backend)(x).float().square().mean().backward()
            return {name: value.grad.float() for name, value in model.named_parameters()}

        gradients, others = differentiate(TARGET), differentiate("cpu")
        for name, value in gradients.items():
            with self.subTest(name):
                difference = (value - others[name]).norm() / others[name].norm()
                self.assertLess(difference.item(), 0.1)  # Not of NaN.


unittest.main()
