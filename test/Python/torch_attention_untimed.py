# REQUIRES: pytorch, python-pytorch
# RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_ARCH=100 %import_python %s sm_100a
# RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_ARCH=89 %import_python %s sm_89
"""Attention of modules with `untimed=True` on GPUs where nobody timed our kernels, forward and backward: programs of the package on
the emulator, kernels without a remark, and what has none, with its reason."""

import sys
import unittest
import warnings
from unittest import mock

import torch
from torch.nn import functional as F

import fp8
import fp8.torch
from fp8.torch import attention_backward, attention_calls, attention_programs

TARGET = sys.argv.pop(1)
COLUMNS = 64


def make(*sizes, seed):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed)).bfloat16()


class Untimed(unittest.TestCase):
    def setUp(self):
        self.q, self.k, self.v = make(1, 4, 70, COLUMNS, seed=1), *(make(1, 2, 70, COLUMNS, seed=seed) for seed in (2, 3))
        self.dy = make(1, 4, 70, COLUMNS, seed=4)

    def compile(self, text):
        """A program whose remarks say nothing of what has no kernel."""
        program = fp8.compile(text, target=TARGET, cache=False)
        self.assertEqual([remark.text for remark in program.remarks if "no kernel" in remark.text], [])
        return program

    def define(self, **options):
        wide = [x.double().requires_grad_() for x in (self.q, self.k, self.v)]
        y = F.scaled_dot_product_attention(*wide, is_causal=True, enable_gqa=True)
        return y, torch.autograd.grad(y, wide, self.dy.double())

    def check(self, found, expected, most):
        self.assertLess(((found.double() - expected).norm() / expected.norm()).item(), most)

    def test_both_directions(self):
        expected, gradients = self.define()
        for format_, most in ((None, 0.01), ("e4m3", 0.06)):
            shape = attention_programs.Shape("bf16", 4, 2, COLUMNS, COLUMNS, True, COLUMNS ** -0.5, None, 0, format=format_)
            function = self.compile(attention_programs.write(shape)).functions["attention"]
            y, lse = function(self.q, self.k, self.v)
            self.check(y, expected, most)
            if format_ is None:
                backward = self.compile(attention_programs.write_backward(shape, "deterministic")).functions["gradients"]
                for x, wanted in zip(backward(self.dy, self.q, self.k, self.v, y, lse), gradients):
                    self.check(x, wanted, 0.02)

    def test_in_a_file(self):
        shape = attention_programs.Shape("bf16", 4, 2, COLUMNS, COLUMNS, True, COLUMNS ** -0.5, None, 0)
        made = self.compile(attention_programs.write_backward(shape, "deterministic"))
        self.assertEqual(made.target, TARGET)

    def test_calls(self):
        get_function, get_backward = attention_programs.get_function, attention_programs.get_backward
        expected, gradients = self.define()
        leaves = [x.clone().requires_grad_() for x in (self.q, self.k, self.v)]
        with mock.patch.multiple(attention_programs, get_function=lambda shape, target: get_function(shape, TARGET),
                                 get_backward=lambda shape, order, target: get_backward(shape, order, TARGET)):
            with fp8.torch.use_attention(untimed=True) as used:
                y = F.scaled_dot_product_attention(*leaves, is_causal=True, enable_gqa=True)
            self.check(y.detach(), expected, 0.01)
            self.assertEqual(used.reasons, ())
            rule = attention_backward.Rule(COLUMNS ** -0.5, None, 0)
            lse = torch.logsumexp((self.q.float() @ self.k.float().repeat_interleave(2, 1).mT * rule.scale).masked_fill(
                torch.ones(70, 70, dtype=torch.bool).triu(1), -torch.inf), -1)
            for x, wanted in zip(attention_backward._run_ours(self.dy, *(x.detach() for x in leaves), y.detach(), lse, rule), gradients):
                self.check(x, wanted, 0.02)

    def test_reasons(self):
        with mock.patch.object(attention_calls, "get_default_target", lambda: TARGET), (
                mock.patch.object(attention_backward, "get_default_target", lambda: TARGET)):
            find = lambda columns, dropout=False: attention_backward.find_missing(
                *(torch.empty(1, 1, 1, columns, device="meta") for _ in range(2)), dropout)
            self.assertIsNone(find(64))
            if TARGET == "sm_100a":
                self.assertEqual(find(64, True), "a kernel of sm_100a has no dropout")
                self.assertIn("64 or 128 columns, as many of value, but there are 96 and 96", find(96))
            else:
                self.assertIsNone(find(64, True))
                self.assertIn("multiples of 16 columns up to 256, but there are 72 and 72", find(72))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    unittest.main()
