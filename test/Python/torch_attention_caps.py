# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Caps of scores in PyTorch: results and gradients beside what PyTorch's operations compute, caches, packed sequences, graphs
of torch.compile, and mistakes."""

import math
import unittest

import torch

import fp8
import fp8.torch

CAP = 0.6


def make(*sizes, seed=1, dtype=torch.float32):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed)).to(dtype).requires_grad_()


def define(q, k, v, mask=None, is_causal=False):
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, 1) for x in (k, v))
    scores = CAP * torch.tanh(q @ k.mT * q.shape[-1] ** -0.5 / CAP)
    if is_causal:
        scores = scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -math.inf)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    return scores.softmax(-1).nan_to_num(0) @ v


class Caps(unittest.TestCase):
    def check(self, found, expected, tolerance=1e-5):
        self.assertLessEqual((found - expected).norm().item(), tolerance * max(expected.norm().item(), 1e-3))

    def test_results_and_gradients(self):
        q, k, v = make(2, 4, 9, 16), make(2, 2, 9, 16, seed=2), make(2, 2, 9, 16, seed=3)
        hides = torch.rand(2, 1, 9, 9, generator=torch.Generator().manual_seed(4)) < 0.5
        hides[:, :, 3] = False
        for options in ({}, {"is_causal": True}, {"attn_mask": hides}, {"attn_mask": make(9, 9, seed=5).detach()}):
            with self.subTest(**{name: type(value) for name, value in options.items()}):
                expected = define(q, k, v, options.get("attn_mask"), options.get("is_causal", False))
                found = fp8.torch.scaled_dot_product_attention(q, k, v, cap=CAP, **options)
                self.check(found, expected)
                grad = make(*found.shape, seed=6).detach()
                for mine, other in zip(*(torch.autograd.grad(y, (q, k, v), grad) for y in (found, expected))):
                    self.check(mine, other.nan_to_num(0), 1e-4)

    def test_formats(self):
        q, k, v = (make(1, 2, 33, 32, seed=seed, dtype=torch.bfloat16) for seed in (1, 2, 3))
        expected = define(q.float(), k.float(), v.float())
        for format_ in "e4m3", "e5m2":
            y = fp8.torch.scaled_dot_product_attention(q, k, v, cap=CAP, format=format_)
            self.check(y.float(), expected, 0.15)

    def test_large_scores_end_at_the_cap(self):
        q = torch.full((1, 1, 1, 16), 1e4)
        k = torch.cat([torch.full((1, 1, 1, 16), 1e4), torch.full((1, 1, 1, 16), -1e4)], 2)
        v = torch.tensor([1.0, 0.0]).reshape(1, 1, 2, 1)
        share = 1 / (1 + math.exp(-2 * CAP))
        self.assertAlmostEqual(fp8.torch.scaled_dot_product_attention(q, k, v, cap=CAP).item(), share, 5)

    def test_caches(self):
        q, k, v = (x.detach() for x in (make(2, 4, 1, 16), make(2, 2, 8, 16, seed=2), make(2, 2, 8, 16, seed=3)))
        y = fp8.torch.attend_to_cache(q, k, v, torch.tensor([5, 8], dtype=torch.int32), cap=CAP)
        seen = torch.arange(8) < torch.tensor([5, 8])[:, None, None, None]
        self.check(y, define(q, k, v, seen))
        cache = fp8.torch.KeyValueCache(2, 2, 8, 16, k_scale=0.01, v_scale=0.01, dtype=torch.float32)
        cache.append(k[:, :, :6], v[:, :, :6])
        self.check(cache.attend(q, cap=CAP), define(q, k[:, :, :6], v[:, :, :6]), 0.1)

    def test_graphs(self):
        torch._dynamo.reset()
        q, k, v = make(1, 2, 7, 16), make(1, 2, 7, 16, seed=2), make(1, 2, 7, 16, seed=3)
        call = torch.compile(lambda *x: fp8.torch.scaled_dot_product_attention(*x, is_causal=True, cap=CAP),
                             backend="aot_eager", fullgraph=True)
        found, expected = call(q, k, v), define(q, k, v, is_causal=True)
        self.check(found, expected)
        for mine, other in zip(*(torch.autograd.grad(y.sum(), (q, k, v)) for y in (found, expected))):
            self.check(mine, other, 1e-4)

    def test_mistakes(self):
        q, lengths = make(1, 2, 5, 16).detach(), torch.tensor([5], dtype=torch.int32)
        ends = torch.tensor([0, 2], dtype=torch.int32)
        for cap in 0.0, -1.0, math.inf, math.nan:
            for call in (lambda: fp8.torch.scaled_dot_product_attention(q, q, q, cap=cap),
                         lambda: fp8.torch.attend_to_cache(q, q, q, lengths, cap=cap),
                         lambda: fp8.torch.packed_attention(q[0], q[0], q[0], ends, ends, cap=cap)):
                with self.subTest(cap=cap), self.assertRaisesRegex(fp8.ArgumentError, "expected cap to be finite and positive"):
                    call()


if __name__ == "__main__":
    unittest.main()
