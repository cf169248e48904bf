# REQUIRES: pytorch, python-pytorch
# RUN: env FP8_CUDA_DRIVER=emulator %import_python %s
"""Blocks of positions with factors of their own: errors beside f64 where some positions are large, gradients, graphs, what goes
before codes, and the kernels of a GPU on the emulator."""

import unittest
from unittest import mock

import torch
from torch.nn import functional as F

import fp8
import fp8.torch
from fp8.errors import ArgumentError
from fp8.torch import attention_calls, attention_programs

_get_function = attention_programs.get_function


def make(*sizes, seed=0):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed))


def get_error(x, expected):
    return ((x.double() - expected.double()).norm() / expected.double().norm()).item()


def make_data(positions=96, columns=32):
    """Some values are 100,000 times as small as others: E4M3 has numbers that are 2^-15 of the largest."""
    q, k, v = make(2, 4, positions, columns, seed=1), *(make(2, 2, positions, columns, seed=seed) for seed in (2, 3))
    v[:, :, 32:] /= 1e5
    k[:, :, :32] -= 8 * q[:, ::2].mean(2, keepdim=True)
    return [x.bfloat16().requires_grad_() for x in (q, k, v)]


def compute(q, k, v, **options):
    return F.scaled_dot_product_attention(*(x.double() for x in (q, k, v)), enable_gqa=True, **options)


class Blocks(unittest.TestCase):
    def test_errors(self):
        q, k, v = make_data()
        expected = compute(q, k, v)
        found = [get_error(fp8.torch.scaled_dot_product_attention(q, k, v, format="e4m3", block=block), expected)
                 for block in (None, 32)]
        self.assertLess(found[1], 0.06)
        # What is hidden from large keys has small values alone.
        masked = torch.arange(96) >= 32
        expected = compute(q, k, v, attn_mask=masked[None, None, None])
        found = [get_error(fp8.torch.scaled_dot_product_attention(q, k, v, masked, format="e4m3", block=block), expected)
                 for block in (None, 32)]
        self.assertLess(found[1], 0.06)
        self.assertGreater(found[0], 2 * found[1])

    def test_gradients(self):
        for options in ({"is_causal": True}, {"smooth_k": True}, {"hadamard": True}, {"smooth_k": True, "hadamard": True},
                        {"accumulate": "fast"}):
            for heads_first in True, False:
                q, k, v = (make(2, heads, 70, 32, seed=heads + n).bfloat16() if heads_first else
                           make(2, 70, heads, 32, seed=heads + n).bfloat16().transpose(1, 2)
                           for n, heads in enumerate((4, 2, 2)))
                q, k, v = (x.detach().requires_grad_() for x in (q, k, v))
                y = fp8.torch.scaled_dot_product_attention(q, k, v, format="e4m3", block=32, **options)
                dy = make(*y.shape, seed=9).bfloat16()
                found = torch.autograd.grad(y, (q, k, v), dy)
                wide = [x.detach().double().requires_grad_() for x in (q, k, v)]
                expected = F.scaled_dot_product_attention(*wide, is_causal=options.get("is_causal", False), enable_gqa=True)
                self.assertLess(get_error(y, expected), 0.06, options)
                for ours, theirs in zip(found, torch.autograd.grad(expected, wide, dy.double())):
                    self.assertLess(get_error(ours, theirs), 0.1, options)

    def test_gradients_of_one_position(self):
        # Heads are of different sizes, and so are their factors.
        sizes = 2.0 ** torch.arange(-6, 2, 2)
        for queries, keys in (1, 70), (70, 1):
            tensors = [(make(2, 4, positions, 32, seed=n) * sizes[:, None, None]).bfloat16().requires_grad_()
                       for n, positions in enumerate((queries, keys, keys))]
            y = fp8.torch.scaled_dot_product_attention(*tensors, format="e4m3", block=32)
            dy = make(*y.shape, seed=9).bfloat16()
            wide = [x.detach().double().requires_grad_() for x in tensors]
            expected = F.scaled_dot_product_attention(*wide)
            for ours, theirs in zip(torch.autograd.grad(y, tensors, dy), torch.autograd.grad(expected, wide, dy.double())):
                for mine, other in zip(ours.unbind(1), theirs.unbind(1)):
                    # With one key there is nothing that scores change.
                    self.assertLessEqual((mine.double() - other).norm(), 0.15 * other.norm() + (keys == 1))

    def test_graphs(self):
        q, k, v = make_data()
        call = lambda *tensors: fp8.torch.scaled_dot_product_attention(*tensors, format="e4m3", block=64)
        y = torch.compile(call, backend="aot_eager", fullgraph=True)(q, k, v)
        self.assertTrue(torch.equal(y, call(q, k, v)))
        for ours, theirs in zip(torch.autograd.grad(y.sum(), (q, k, v)), torch.autograd.grad(call(q, k, v).sum(), (q, k, v))):
            self.assertTrue(torch.equal(ours, theirs))

    def test_calls_of_pytorch(self):
        q, k, v = (x.detach() for x in make_data())
        with fp8.torch.use_attention("e4m3", block=32) as used:
            y = F.scaled_dot_product_attention(q, k, v, enable_gqa=True)
        self.assertTrue(torch.equal(y, fp8.torch.scaled_dot_product_attention(q, k, v, format="e4m3", block=32)))
        self.assertIn("e4m3, block=32", used.taken[0])

    def test_recipes(self):
        recipe = fp8.Float8CurrentScaling(fp8_dpa=True, dpa_smooth_k=True, dpa_block=64)
        self.assertEqual(attention_calls.describe(recipe), ("e4m3,smooth_k,block=64", None, None))
        with self.assertRaisesRegex(ArgumentError, "expected dpa_block of a recipe whose attention has present scales, but got 'delayed"):
            attention_calls.describe(fp8.DelayedScaling(fp8_dpa=True, dpa_block=64))
        q, k, v = (x.detach() for x in make_data())
        call = lambda *tensors: F.scaled_dot_product_attention(*tensors, enable_gqa=True)
        with fp8.torch.autocast(recipe=recipe):
            y = call(q, k, v)
        expected = fp8.torch.scaled_dot_product_attention(q, k, v, format="e4m3", block=64, smooth_k=True)
        self.assertTrue(torch.equal(y, expected))

    def test_nothing(self):
        q, k, v = make(1, 2, 5, 32), *(make(1, 2, 0, 32) for _ in range(2))
        y = fp8.torch.scaled_dot_product_attention(*(x.bfloat16() for x in (q, k, v)), format="e4m3", block=32)
        self.assertTrue((y == 0).all())

    def test_mistakes(self):
        q, k, v = make_data()
        for block in 48 - 1, 0, -32, 33, 64.0:
            with self.assertRaisesRegex(ArgumentError, f"expected block to be a positive multiple of 32 positions, but got {block}"):
                fp8.torch.scaled_dot_product_attention(q, k, v, format="e4m3", block=block)
        with self.assertRaisesRegex(ArgumentError, "expected a format with block, which is for codes, but got None"):
            fp8.torch.scaled_dot_product_attention(q, k, v, block=32)

    def test_kernels(self):
        for options, queries in ({"smooth_k": True, "hadamard": True}, 130), ({"accumulate": "fast"}, 130), ({}, 1):
            q, k, v = make(2, 4, queries, 64, seed=1), *(make(2, 2, 150, 64, seed=seed) for seed in (2, 3))
            call = lambda: fp8.torch.scaled_dot_product_attention(
                *(x.bfloat16() for x in (q, k, v)), format="e4m3", block=64, **options)  # noqa: B023
            expected = call()
            with mock.patch.object(attention_programs, "get_function", lambda shape, target: _get_function(shape, "sm_90a")):
                self.assertLess(get_error(call(), expected), 0.02, options)


if __name__ == "__main__":
    unittest.main()
