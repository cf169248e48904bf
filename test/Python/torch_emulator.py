# REQUIRES: pytorch, python-pytorch
# RUN: env FP8_CUDA_DRIVER=emulator %import_python %s
"""Training steps of PyTorch with the kernels of a GPU, on the emulator."""

import unittest

import torch
from torch import nn

import fp8
import fp8.torch


class Block(nn.Module):
    def __init__(self, width, wide):
        super().__init__()
        self.norm = nn.RMSNorm(width)
        self.gate, self.up = nn.Linear(width, wide, bias=False), nn.Linear(width, wide, bias=False)
        self.down = nn.Linear(wide, width, bias=False)

    def forward(self, x):
        y = self.norm(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))


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
        (losses, parameters), (expected, others) = run("sm_90a"), run("cpu")
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


unittest.main()
