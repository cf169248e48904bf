# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""Masks that a graph makes itself, as transformers does under torch.compile: found to be causal or windows, with the
results of PyTorch's; masks that are given, written into or of chance stay; and heads that a graph repeats."""

import unittest
from unittest import mock

import torch
from torch.nn import functional as F

import fp8
import fp8.torch
from fp8.torch import attention_masks

HEADS, SHARED, COLUMNS = 4, 2, 16


def make(*sizes, seed=0):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed))


def number(queries, keys, first=0):
    """Numbers of queries and keys that broadcast, as transformers makes them."""
    return (torch.arange(queries)[None, None, :, None] + first), torch.arange(keys)[None, None, None, :]


def repeat(x):
    """transformers' repeat_kv."""
    batches, heads, positions, columns = x.shape
    count = HEADS // heads
    return x[:, :, None, :, :].expand(batches, heads, count, positions, columns).reshape(
        batches, heads * count, positions, columns)


def attend(q, k, v, mask):
    return F.scaled_dot_product_attention(q, repeat(k), repeat(v), attn_mask=mask, dropout_p=0.0, is_causal=False)


def see_causally(q, k, v):
    rows, columns = number(q.shape[2], k.shape[2])
    return attend(q, k, v, (columns <= rows).expand(q.shape[0], -1, q.shape[2], k.shape[2]))


def see_causally_with_padding_of_none(q, k, v):
    rows, columns = number(q.shape[2], k.shape[2])
    seen = rows.new_ones((), dtype=torch.bool) & (columns <= rows)
    return attend(q, k, v, seen & torch.ones(q.shape[0], 1, 1, k.shape[2], dtype=torch.bool))


def add_lowest(q, k, v):
    rows, columns = number(q.shape[2], k.shape[2])
    lowest = torch.finfo(torch.float32).min
    return attend(q, k, v, torch.zeros(q.shape[2], k.shape[2]).masked_fill(columns[0, 0] > rows[0, 0], lowest))


def add_infinity(q, k, v):
    return attend(q, k, v, torch.full((q.shape[2], k.shape[2]), -torch.inf).triu(1))


def see_window(q, k, v):
    rows, columns = number(q.shape[2], k.shape[2])
    return attend(q, k, v, (columns <= rows) & (columns > rows - 5))


def see_from_the_last(q, k, v):
    rows, columns = number(q.shape[2], k.shape[2], k.shape[2] - q.shape[2])
    return attend(q, k, v, columns <= rows)


def see_all(q, k, v):
    return attend(q, k, v, torch.ones(q.shape[2], k.shape[2], dtype=torch.bool))


def see_prefix(q, k, v):
    rows, columns = number(q.shape[2], k.shape[2])
    return attend(q, k, v, (columns <= rows) | (columns < 3))


def see_written(q, k, v):
    mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool)
    mask[:, 2] = False
    return attend(q, k, v, mask)


def see_written_view(q, k, v):
    mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril()
    mask[1:].logical_and_(torch.ones(k.shape[2], dtype=torch.bool).roll(1))
    mask[3:].fill_(True)
    return attend(q, k, v, mask)


def write_into_the_result(q, k, v):
    y = see_causally(q, k, v)
    y[:, 1].mul_(2)
    y.view(-1)[:3] = 1
    return y


def see_nothing_at_first(q, k, v):
    rows, columns = number(q.shape[2], k.shape[2])
    return attend(q, k, v, torch.where(columns < rows, 0.0, -torch.inf)).nan_to_num(nan=7.0)


class Masks(unittest.TestCase):
    def setUp(self):
        torch._dynamo.reset()

    def run_graph(self, call, *inputs):
        """What a graph returns, and its Backend."""
        backend = fp8.torch.Backend(None, rest="eager", attention="fp8")
        return torch.compile(call, backend=backend, fullgraph=True)(*inputs), backend

    def check(self, call, taken, queries=9, keys=9, others=()):
        q, k, v = make(2, HEADS, queries, COLUMNS), *(make(2, SHARED, keys, COLUMNS, seed=seed) for seed in (1, 2))
        y, backend = self.run_graph(call, q, k, v, *others)
        expected = call(q, k, v, *others)
        self.assertLessEqual((y - expected).norm().item(), 1e-5 * expected.norm().item())
        self.assertEqual(backend.attention.taken, (taken,))

    def test_causal(self):
        for call in (see_causally, see_causally_with_padding_of_none, add_lowest, add_infinity, write_into_the_result):
            with self.subTest(call.__name__):
                torch._dynamo.reset()
                self.check(call, "4 heads over 2 of 16 columns, causal in f32")

    def test_windows(self):
        self.check(see_window, "4 heads over 2 of 16 columns, window (4, 0) in f32")
        self.check(see_from_the_last, "4 heads over 2 of 16 columns, window (None, 0) in f32", queries=4)

    def test_no_mask(self):
        self.check(see_all, "4 heads over 2 of 16 columns in f32")

    def test_masks_that_stay(self):
        for call in (see_prefix, see_written, see_written_view):
            with self.subTest(call.__name__):
                torch._dynamo.reset()
                self.check(call, "4 heads over 2 of 16 columns, mask in f32")

    def test_rows_that_see_nothing(self):
        torch._dynamo.reset()
        q, k, v = make(2, HEADS, 9, COLUMNS), *(make(2, SHARED, 9, COLUMNS, seed=seed) for seed in (1, 2))
        _, backend = self.run_graph(see_nothing_at_first, q, k, v)
        self.assertEqual(backend.attention.taken, ("4 heads over 2 of 16 columns, mask in f32",))

    def test_a_mask_that_is_given(self):
        self.check(attend, "4 heads over 2 of 16 columns, mask in f32",
                   others=(torch.ones(9, 9, dtype=torch.bool).tril(),))

    def test_sizes_that_change(self):
        compiled = torch.compile(see_causally, backend=fp8.torch.Backend(None, rest="eager", attention="fp8"), dynamic=True)
        for positions in (7, 12):
            q, k, v = make(2, HEADS, positions, COLUMNS), *(make(2, SHARED, positions, COLUMNS, seed=s) for s in (1, 2))
            torch.testing.assert_close(compiled(q, k, v), see_causally(q, k, v))

    def test_heads_repeated_otherwise(self):
        def interleave(q, k, v):
            return F.scaled_dot_product_attention(q, k.repeat_interleave(2, 1), v.repeat_interleave(2, dim=1),
                                                  is_causal=True)

        def repeat_in_turn(q, k, v):
            return F.scaled_dot_product_attention(q, k.repeat(1, 2, 1, 1), v.repeat(1, 2, 1, 1), is_causal=True)

        def write_into_keys(q, k, v):
            k = k.clone()
            repeated = k.repeat_interleave(2, 1)
            k.zero_()
            return F.scaled_dot_product_attention(q, repeated, v.repeat_interleave(2, 1), is_causal=True)

        for call, heads in ((interleave, 2), (repeat_in_turn, 4), (write_into_keys, 4)):
            with self.subTest(call.__name__):
                torch._dynamo.reset()
                self.check(call, f"4 heads over {heads} of 16 columns, causal in f32")

    def test_what_stays_pytorchs_is_causal(self):
        """With products in FP8, and only then."""
        weight = make(COLUMNS, COLUMNS, seed=3)

        def call(q, k, v):
            return see_causally(q, k, v) @ weight

        q, k, v = make(2, HEADS, 32, COLUMNS), *(make(2, SHARED, 32, COLUMNS, seed=seed) for seed in (1, 2))
        for recipe, causal in ((fp8.Float8CurrentScaling(), [True]), (None, [False])):
            torch._dynamo.reset()
            backend, found = fp8.torch.Backend(recipe, rest="eager"), []

            def keep(module, inputs):
                made = backend(module, inputs)
                found.extend(node.kwargs.get("is_causal") for node in module.graph.nodes
                             if node.target is F.scaled_dot_product_attention)
                return made

            y = torch.compile(call, backend=keep, fullgraph=True)(q, k, v)
            self.assertEqual(found, causal)
            expected = call(q, k, v)
            self.assertLessEqual((y - expected).norm().item(), 0.1 * expected.norm().item())

    def test_bands_of_many_pieces(self):
        with mock.patch.object(attention_masks, "_ELEMENTS", 20):
            self.test_bands()

    def test_masks_without_room(self):
        with mock.patch.object(attention_masks, "find_band", side_effect=torch.OutOfMemoryError):
            self.check(see_causally, "4 heads over 2 of 16 columns, mask in f32")

    def test_bands(self):
        rows, columns = torch.arange(6)[:, None], torch.arange(8)
        for band in ((None, None), (None, 0), (None, 2), (-2, None), (-2, 0), (-1, 3), (0, 0), (1, 4), (2, 2)):
            lowest, highest = band
            mask = torch.ones(6, 8, dtype=torch.bool)
            mask &= columns - rows >= lowest if lowest is not None else mask
            mask &= columns - rows <= highest if highest is not None else mask
            found = attention_masks.find_band(mask.expand(2, 3, 6, 8))
            # Bands that reach all keys say so.
            expected = torch.ones(6, 8, dtype=torch.bool)
            if found.lowest is not None:
                expected &= columns - rows >= found.lowest
            if found.highest is not None:
                expected &= columns - rows <= found.highest
            self.assertTrue(torch.equal(expected, mask))
            window = found.get_window(6, 8)
            if window is None:
                self.assertGreater(lowest, 0)
                continue
            self.assertTrue(torch.equal(attention_masks.make_mask(*window, 6, 8, "cpu"), mask))
        for mask in (torch.ones(6), torch.zeros(6, 8, dtype=torch.bool), torch.ones(0, 8, dtype=torch.bool),
                     torch.ones(6, 8), torch.stack([mask, mask.logical_not()])):
            self.assertIsNone(attention_masks.find_band(mask))


if __name__ == "__main__":
    unittest.main()
