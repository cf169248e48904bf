# REQUIRES: pytorch, python-pytorch
# RUN: env FP8_CUDA_DRIVER=emulator %import_python %s
"""Gradients of attention in E4M3 where scores are large, on the emulator: a tensor core's sums of codes have 13 bits, and so have the
logarithms of the forward. The gradient has to have the same scores, or logarithms of its own."""

import unittest

import torch

from fp8.torch import attention_backward, attention_ops, attention_programs

TARGET = "sm_90a"


def make(heads, positions, dim, seed):
    """Some channels are large, as projections of models have them: scores are of some hundreds or thousands."""
    x = torch.randn(1, heads, positions, dim, generator=torch.Generator().manual_seed(seed))
    x[..., 3::16] *= 40
    return x.bfloat16()


def get_error(found, expected):
    return ((found.double() - expected).norm() / expected.norm()).item()


class Sums(unittest.TestCase):
    def setUp(self):
        self.q, self.k, self.v = make(2, 70, 64, 1), make(1, 150, 64, 2), make(1, 150, 64, 3)
        self.grad = torch.randn(1, 2, 70, 64, generator=torch.Generator().manual_seed(4)).bfloat16()
        self.rule = attention_backward.Rule(0.125, None, 0)

    def run_forward(self, sinks=None):
        """The result, logarithms, codes and factors of a GPU's forward."""
        shape = attention_programs.Shape("bf16", 2, 1, 64, 64, True, *self.rule[:3], format="e4m3", saves=True,
                                         sinks=sinks is not None)
        given = [self.q, self.k, self.v] + ([] if sinks is None else [sinks])
        output, lse, *saved = attention_programs.get_function(shape, TARGET)(*given)
        return output, lse, saved[::2], saved[1::2]

    def define(self, codes, factors, sinks=None):
        """The gradients of what codes stand for, in f64."""
        leaves = [(x.double() * factor.double()).requires_grad_() for x, factor in zip(codes, factors)]
        q, (k, v) = leaves[0], (x.repeat_interleave(2, 1) for x in leaves[1:])
        hidden = torch.ones(70, 150, dtype=torch.bool).triu(1)
        scores = (q @ k.mT * self.rule.scale).masked_fill(hidden, -torch.inf)
        self.assertGreater(scores[scores.isfinite()].abs().max(), 300)
        if sinks is not None:
            scores = torch.cat([scores, sinks.double().view(1, 2, 1, 1).expand(1, 2, 70, 1)], -1)
        return torch.autograd.grad(scores.softmax(-1)[..., :150] @ v, leaves, self.grad.double())

    def check(self, found, expected, *most):
        """Most shares are 0 or 1, so that gradients of Q and K are what rounding leaves of their sums."""
        for name, x, y, limit in zip(("dq", "dk", "dv"), found, expected, most):
            self.assertLess(get_error(x, y), limit, name)

    def test_kernel_of_codes(self):
        output, lse, codes, factors = self.run_forward()
        expected = self.define(codes, factors)
        numbers = attention_ops.widen(*codes, factors, torch.bfloat16)
        # What is mended: scores of numbers do not have the sums of the forward.
        wrong = attention_backward._run_ours(self.grad, *numbers, output, lse, self.rule)
        self.assertGreater(get_error(wrong[2], expected[2]), 1)
        for heads_first in True, False:
            given = [x if heads_first else x.transpose(1, 2).contiguous().transpose(1, 2)
                     for x in (self.grad, *codes, output)]
            found = attention_backward._run_ours(*given, lse, self.rule, factors=factors)
            self.assertEqual([(x.shape, x.dtype) for x in found], [(x.shape, torch.bfloat16) for x in codes])
            self.check(found, expected, 0.2, 0.2, 0.01)

    def test_sums_again(self):
        """Kernels of numbers: by a forward of these, or in the formula, with sinks, which count as scores."""
        for sinks in None, torch.tensor([200.0, -3.0]):
            output, lse, codes, factors = self.run_forward(sinks)
            expected = self.define(codes, factors, sinks)
            numbers = attention_ops.widen(*codes, factors, torch.bfloat16)
            renewed = attention_backward.find_sums(*numbers, self.rule, None, sinks)
            found = attention_backward._run_ours(self.grad, *numbers, output, renewed, self.rule)
            wide = [x.float() * factor for x, factor in zip(codes, factors)]
            formula = attention_backward.compute(self.grad, *wide, output, None, None, None, self.rule, sinks=sinks)
            self.check(found, expected, 0.5, 0.5, 0.05)
            self.check(formula, expected, 0.2, 0.2, 1e-4)


if __name__ == "__main__":
    unittest.main()
