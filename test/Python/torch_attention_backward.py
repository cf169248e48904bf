# REQUIRES: pytorch, python-pytorch
# RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_CHECK=all %import_python %s
# RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_CHECK=all FP8_EMULATOR_ARCH=89 %import_python %s
"""Attention's gradient by our kernels, and the sums of the gradient times the result by theirs, on the emulator: beside the
formula, in both layouts, with the same bits again."""

import unittest

import torch

from fp8.torch import attention_backward


def define(q, k, v, rule):
    """The result and the logarithms of sums, rounded as a forward has them."""
    k, v = (x.float().repeat_interleave(q.shape[1] // k.shape[1], 1) for x in (k, v))
    scores = attention_backward._hide(q.float() @ k.mT * rule.scale, 0, 0, rule, q.shape[2], k.shape[2])
    return (scores.softmax(-1) @ v).to(q.dtype), scores.logsumexp(-1)


class Gradients(unittest.TestCase):
    def compare(self, columns, rule, heads_first):
        generator = torch.Generator().manual_seed(columns)

        def make(heads, positions):
            x = torch.randn(1, positions, heads, columns, generator=generator).bfloat16().transpose(1, 2)
            return x.contiguous() if heads_first else x

        q, k, v, dy = make(2, 70), make(1, 150), make(1, 150), make(2, 70)
        y, lse = define(q, k, v, rule)
        found = attention_backward._run_ours(dy, q, k, v, y, lse, rule)
        again = attention_backward._run_ours(dy, q, k, v, y, lse, rule)
        expected = attention_backward.compute(dy, q, k, v, y, lse, None, None, rule)
        for x, same, wanted in zip(found, again, expected):
            self.assertTrue(torch.equal(x, same))
            self.assertLessEqual(((x.float() - wanted).norm() / wanted.norm()).item(), 6e-3)

    def test_heads_first(self):
        self.compare(64, attention_backward.Rule(0.125, None, 0), True)

    def test_any_order(self):
        """Two blocks have keys: sums of two do not depend on their order."""
        self.compare(64, attention_backward.Rule(0.125), False)

    def test_positions_first(self):
        self.compare(128, attention_backward.Rule(0.1, 40, 0, True), False)


if __name__ == "__main__":
    unittest.main()
