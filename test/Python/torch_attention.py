# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""fp8.torch.scaled_dot_product_attention beside PyTorch's: types, groups of heads, windows, both
ways in which heads lie in memory, 8 bits; and what it refuses."""

import math
import unittest

import torch
from torch.nn import functional as F

import fp8
import fp8.torch


def make(batch, positions, heads, columns, seed, dtype=torch.bfloat16, heads_first=True):
    generator = torch.Generator().manual_seed(seed)
    if heads_first:
        return torch.randn(batch, heads, positions, columns, generator=generator).to(dtype)
    return torch.randn(batch, positions, heads, columns, generator=generator).to(dtype).transpose(1, 2)


class Attention(unittest.TestCase):
    def compare(self, q, k, v, tolerance, mask=None, **options):
        found = fp8.torch.scaled_dot_product_attention(q, k, v, **options)
        wide = (x.float() for x in (q, k, v))
        expected = F.scaled_dot_product_attention(*wide, attn_mask=mask, scale=options.get("scale"), enable_gqa=True,
                                                  is_causal=options.get("is_causal", False))
        self.assertEqual((found.dtype, found.shape), (q.dtype, expected.shape))
        self.assertLess(((found.float() - expected).norm() / expected.norm()).item(), tolerance)
        return found

    def test_types_and_layouts(self):
        for dtype, tolerance in ((torch.bfloat16, 5e-3), (torch.float16, 2e-3), (torch.float32, 1e-5)):
            for heads_first in (True, False):
                with self.subTest(dtype=dtype, heads_first=heads_first):
                    q, k, v = (make(2, 37, heads, 32, seed, dtype, heads_first)
                               for seed, heads in enumerate((4, 2, 2)))
                    found = self.compare(q, k, v, tolerance, is_causal=True, scale=0.3)
                    self.assertEqual(found.transpose(1, 2).is_contiguous(), not heads_first)

    def test_another_length_is_no_other_program(self):
        from fp8.torch.attention_programs import get_program
        q = make(1, 9, 2, 16, 1)
        self.compare(q, q, q, 5e-3)
        before = get_program.cache_info().misses
        q = make(3, 21, 2, 16, 2)
        self.compare(q, q, q, 5e-3)
        self.assertEqual(get_program.cache_info().misses, before)

    def test_8_bits(self):
        q, k, v = (make(2, 40, heads, 64, seed) for seed, heads in enumerate((4, 2, 2)))
        for options in ({"format": "e4m3"}, {"format": "e4m3", "accumulate": "fast"}, {"format": "e5m2"}):
            with self.subTest(**options):
                found = self.compare(q, k, v, 0.06 if options["format"] == "e4m3" else 0.12, is_causal=True, **options)
                self.assertTrue(found.isfinite().all())

    def test_windows(self):
        q, k = make(1, 20, 2, 16, 1), make(1, 30, 2, 16, 2)
        own, key = torch.arange(20)[:, None], torch.arange(30)[None]
        self.compare(q, k, k, 5e-3, mask=(key >= own - 3) & (key <= own + 2), window=(3, 2))
        found = fp8.torch.scaled_dot_product_attention(q, k, k, is_causal=True, bottom_right=True)
        expected = F.scaled_dot_product_attention(q.float(), k.float(), k.float(), attn_mask=key <= own + 10)
        self.assertLess((found.float() - expected).norm() / expected.norm(), 5e-3)

    def test_alibi_is_a_mask_of_keys(self):
        """A bias of slope * (key - query) is one of slope * key: each query's scores differ by the same, both ways."""
        heads, positions, slopes = 4, 80, 2.0 ** -torch.arange(1, 5)
        numbers = torch.arange(positions)
        far = (numbers - numbers[:, None]) * slopes[:, None, None]
        whole = far.masked_fill(numbers > numbers[:, None], -math.inf)[None]
        of_keys = (slopes[:, None, None] * (numbers - positions + 1))[None]
        for dtype, tolerance in ((torch.float32, 1e-5), (torch.bfloat16, 5e-3)):
            q, k, v = (make(2, positions, heads, 32, seed, dtype).requires_grad_() for seed in range(3))
            found = fp8.torch.scaled_dot_product_attention(q, k, v, of_keys, is_causal=True)
            wide = [x.detach().float().requires_grad_() for x in (q, k, v)]
            expected = F.scaled_dot_product_attention(*wide, attn_mask=whole)
            pairs = [(found, expected), *zip(torch.autograd.grad(found.float().square().sum(), (q, k, v)),
                                             torch.autograd.grad(expected.square().sum(), wide))]
            for name, (x, y) in zip(("result", "dq", "dk", "dv"), pairs):
                with self.subTest(name, dtype=dtype):
                    self.assertLess(((x.float() - y).norm() / y.norm()).item(), tolerance)

    def test_queries_that_see_no_key(self):
        q, k = make(1, 6, 1, 16, 1), make(1, 2, 1, 16, 2)
        found = fp8.torch.scaled_dot_product_attention(q, k, k, is_causal=True, bottom_right=True)
        self.assertTrue((found[:, :, :4] == 0).all())
        self.assertTrue(found.isfinite().all())

    def test_what_is_refused(self):
        q = make(1, 4, 2, 16, 1)
        call = fp8.torch.scaled_dot_product_attention
        for text, arguments, options in (
                ("query to be batches x heads x positions x columns, but got 3", (q[0], q, q), {}),
                ("key to be bf16, f16 or f32, as query is", (q, q.float(), q), {}),
                ("to agree in batches", (q, q[..., :8], q), {}),
                ("a multiple of those of key, but got 2 and 3", (q, *[make(1, 4, 3, 16, 1)] * 2), {}),
                ("expected format to be None or one of e4m3, e5m2, but got 'int8'", (q, q, q), {"format": "int8"}),
                ("expected scale to be finite and positive, but got 0.0", (q, q, q), {"scale": 0}),
                ("expected scale to be finite and positive, but got nan", (q, q, q), {"scale": math.nan}),
                ("on one device, but got cpu, meta and cpu", (q, q.to("meta"), q), {}),
                ("expected accumulate", (q, q, q), {"accumulate": "slow"}),
                ("is_causal or a window", (q, q, q), {"is_causal": True, "window": (1, 1)}),
                ("expected window", (q, q, q), {"window": (-1, 1)})):
            with self.subTest(text=text), self.assertRaisesRegex(fp8.ArgumentError, text):
                call(*arguments, **options)


if __name__ == "__main__":
    unittest.main()
