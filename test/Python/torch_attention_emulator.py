# REQUIRES: pytorch, python-pytorch
# RUN: env FP8_CUDA_DRIVER=emulator %import_python %s
"""Attention by the kernels of a GPU, on the emulator, of what is told of keys in memory that begins anywhere, as views
and buffers of Inductor do."""

import unittest
from unittest import mock

import torch
from torch.nn.attention.flex_attention import create_block_mask

import fp8.torch
from fp8.torch import attention_programs

_get_function = attention_programs.get_function


def make(*sizes, seed):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed)).bfloat16()


def move(x):
    """The same one element further on."""
    moved = torch.zeros(x.numel() + 1, dtype=x.dtype)[1:].view(x.shape).copy_(x)
    assert moved.data_ptr() % 16
    return moved


class Emulated(unittest.TestCase):
    def compare(self, call, *told):
        expected = call(*told)
        with mock.patch.object(attention_programs, "get_function", lambda shape, target: _get_function(shape, "sm_90a")):
            for some in told, [move(x) for x in told]:
                found = call(*some).float()
                self.assertLess((found - expected.float()).norm() / expected.float().norm(), 0.01)

    def test_caches(self):
        for batches in 1, 2:
            q, k, v = make(batches, 4, 1, 16, seed=1), *(make(batches, 2, 40, 16, seed=seed) for seed in (2, 3))
            lengths, starts = (torch.tensor(x[:batches], dtype=torch.int32) for x in ([33, 7], [4, 0]))
            self.compare(lambda lengths, starts: fp8.torch.attend_to_cache(q, k, v, lengths, starts=starts), lengths, starts)

    def test_masks(self):
        """Whatever their gaps are, of any number of keys, and in whatever memory."""
        for batches, heads, queries, keys in (1, 4, 1, 40), (2, 4, 1, 333), (3, 2, 1, 7), (2, 6, 3, 65), (1, 4, 1, 1):
            q, k, v = make(batches, heads, queries, 16, seed=1), *(make(batches, 2, keys, 16, seed=seed) for seed in (2, 3))
            mask = torch.rand(batches, 1, queries, keys, generator=torch.Generator().manual_seed(4)) < 0.5
            mask[0, 0, 0] = torch.arange(keys) % 5 == 0
            lengths = torch.full([batches], keys, dtype=torch.int32)
            for sinks in None, make(heads, seed=5):
                self.compare(lambda lengths, mask: fp8.torch.attend_to_cache(q, k, v, lengths, mask=mask, sinks=sinks),
                             lengths, mask)

    def test_masked_codes(self):
        q, k = make(2, 4, 1, 32, seed=1), make(2, 2, 70, 32, seed=2).to(torch.float8_e4m3fn)
        mask = torch.rand(2, 1, 1, 70, generator=torch.Generator().manual_seed(4)) < 0.5
        lengths, starts = (torch.tensor(x, dtype=torch.int32) for x in ([70, 33], [0, 12]))
        self.compare(lambda *told: fp8.torch.attend_to_cache(q, k, k, told[0], starts=told[1], mask=told[2]),
                     lengths, starts, mask)

    def test_no_keys(self):
        """What begins at the null pointer is not read."""
        q, k = make(2, 4, 1, 16, seed=1), make(2, 2, 0, 16, seed=2)
        lengths, mask = torch.zeros(2, dtype=torch.int32), torch.zeros(2, 1, 1, 0, dtype=torch.bool)
        with mock.patch.object(attention_programs, "get_function", lambda shape, target: _get_function(shape, "sm_90a")):
            self.assertTrue((fp8.torch.attend_to_cache(q, k, k, lengths, mask=mask) == 0).all())

    def test_ranges(self):
        q, k, v = make(1, 4, 3, 16, seed=1), *(make(1, 2, 40, 16, seed=seed) for seed in (2, 3))
        ranges = torch.tensor([[[0, 12], [5, 40], [7, 8]]], dtype=torch.int32)
        self.compare(lambda ranges: fp8.torch.scaled_dot_product_attention(q, k, v, key_ranges=ranges), ranges)

    def test_odd_numbers(self):
        """Ranges far outside of all keys, and masks that are added, with rows of nothing but the least number."""
        q, k, v = make(1, 4, 80, 16, seed=1), *(make(1, 2, 40, 16, seed=seed) for seed in (2, 3))
        ranges = torch.tensor([-2 ** 31, 2 ** 31 - 1], dtype=torch.int32).repeat(1, 80, 1)
        ranges[:, 1] = -2 ** 31
        self.compare(lambda ranges: fp8.torch.scaled_dot_product_attention(q, k, v, key_ranges=ranges), ranges)
        for dtype in torch.bfloat16, torch.float32:
            mask = torch.full((1, 1, 80, 40), torch.finfo(dtype).min, dtype=dtype)
            mask[:, :, :50, :20], mask[:, :, 60:70] = 0, -torch.inf
            for queries in 80, 2:
                some, rows = q[:, :, -queries:].contiguous(), mask[:, :, -queries:].contiguous()
                self.compare(lambda rows: fp8.torch.scaled_dot_product_attention(some, k, v, rows), rows)  # noqa: B023

    def test_functions_over_scores(self):
        """As flex_attention takes them: what is added by keys beside ranges and a cap, and a mask with gaps."""
        torch.manual_seed(5)
        slopes, documents = 2.0 ** -torch.arange(1, 5), torch.tensor([0] * 21 + [1] * 30 + [2] * 14)
        q, k, v = make(2, 4, 65, 16, seed=1), *(make(2, 2, 65, 16, seed=seed) for seed in (2, 3))

        def bend(score, b, h, q, k):
            return 2 * torch.tanh(score / 2) + slopes[h] * (k - q)

        for seen in (lambda b, h, q, k: (documents[q] == documents[k]) & (q >= k), lambda b, h, q, k: (q + k) % 3 != 0):
            mask = create_block_mask(seen, None, None, 65, 65, device="cpu", BLOCK_SIZE=16)
            for score_mod in None, bend:
                with self.subTest(bends=score_mod is not None):
                    call = lambda: fp8.torch.flex_attention(q, k, v, score_mod, mask, enable_gqa=True)
                    expected = call()
                    with mock.patch.object(attention_programs, "get_function",
                                           lambda shape, target: _get_function(shape, "sm_90a")):
                        found = call().float()
                    self.assertLess((found - expected.float()).norm() / expected.float().norm(), 0.01)


if __name__ == "__main__":
    unittest.main()
