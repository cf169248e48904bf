# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""fp8.torch.attend_to_cache and KeyValueCache beside a formula in f64: types, groups of heads, batches with numbers of
keys of their own, windows, both layouts, pages, chunks of a prompt; and what they refuse."""

import math
import unittest

import torch
from torch.fx.experimental.proxy_tensor import make_fx

import fp8
import fp8.torch
from fp8.torch import key_ranges

E4M3 = torch.float8_e4m3fn


def make(*shape, seed=1, dtype=torch.bfloat16):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def expect(query, keys, values, lengths, window=None, starts=None, sinks=None, mask=None):
    """What comes of batches x heads x positions x columns, in f64."""
    results = []
    starts = [0] * len(lengths) if starts is None else starts.tolist()
    masks = [None] * len(lengths) if mask is None else mask[:, 0]
    for q, k, v, length, start, mask in zip(query.double(), keys.double(), values.double(), lengths.tolist(), starts, masks):
        group = q.shape[0] // k.shape[0]
        k, v = (x[:, :length].repeat_interleave(group, 0) for x in (k, v))
        own = torch.arange(q.shape[1])[:, None] + length - q.shape[1]
        key = torch.arange(length)[None]
        hidden = (key > own) | (key < start)
        if window is not None:
            hidden |= key < own - window
        if mask is not None:
            hidden |= ~mask[:, :length]
        scores = (q @ k.transpose(1, 2) * q.shape[2] ** -0.5).masked_fill(hidden, -math.inf)
        if sinks is not None:
            scores = torch.cat([scores, sinks.double()[:, None, None].expand(-1, q.shape[1], 1)], -1)
            v = torch.cat([v, v.new_zeros(v.shape[0], 1, v.shape[2])], 1)
        results.append(scores.softmax(-1).nan_to_num(0) @ v)
    return torch.stack(results)


class Attend(unittest.TestCase):
    def compare(self, found, expected, tolerance):
        self.assertEqual(found.shape, expected.shape)
        self.assertTrue(found.isfinite().all())
        self.assertLess(((found - expected).norm() / expected.norm()).item(), tolerance)

    def test_types(self):
        lengths = torch.tensor([7, 40, 23], dtype=torch.int32)
        for dtype, tolerance in ((torch.bfloat16, 6e-3), (torch.float16, 2e-3), (torch.float32, 1e-5)):
            with self.subTest(dtype=dtype):
                q = make(3, 4, 2, 32, dtype=dtype)
                k, v = (make(3, 2, 40, 32, seed=seed, dtype=dtype) for seed in (2, 3))
                found = fp8.torch.attend_to_cache(q, k, v, lengths)
                self.assertEqual(found.dtype, dtype)
                self.compare(found, expect(q, k, v, lengths), tolerance)

    def test_what_lies_beyond_does_not_matter(self):
        lengths = torch.tensor([0, 3], dtype=torch.int32)
        q, k = make(2, 2, 1, 16), make(2, 2, 9, 16, seed=2)
        k[0], k[1, :, 3:] = math.nan, math.inf
        found = fp8.torch.attend_to_cache(q, k, k, lengths)
        self.assertTrue((found[0] == 0).all())
        self.compare(found, expect(q, k, k, lengths), 6e-3)

    def test_starts_and_sinks(self):
        lengths, starts = (torch.tensor(x, dtype=torch.int32) for x in ([9, 6, 4], [3, 0, 4]))
        for codes in (False, True):
            for sinks in (None, make(4, seed=5)):
                with self.subTest(codes=codes, sinks=sinks is not None):
                    q, k = make(3, 4, 2, 32), make(3, 2, 9, 32, seed=2)
                    k = k.to(E4M3) if codes else k
                    k.view(torch.uint8 if codes else torch.int16)[0, :, :3] = 0x7F if codes else 0x7FFF
                    found = fp8.torch.attend_to_cache(q, k, k, lengths, starts=starts, sinks=sinks)
                    wide = k.double().nan_to_num(0)
                    self.compare(found, expect(q, wide, wide, lengths, None, starts, sinks), 0.06 if codes else 8e-3)
                    self.assertTrue((found[2] == 0).all())

    def test_masks(self):
        """With gaps anywhere, and of rows that see no key."""
        lengths, starts = (torch.tensor(x, dtype=torch.int32) for x in ([40, 21, 9], [5, 0, 0]))
        for queries in (1, 3):
            mask = torch.rand(3, 1, queries, 40, generator=torch.Generator().manual_seed(7)) < 0.6
            mask[2] = False
            q, k, v = make(3, 4, queries, 32), *(make(3, 2, 40, 32, seed=seed) for seed in (2, 3))
            found = fp8.torch.attend_to_cache(q, k, v, lengths, starts=starts, mask=mask)
            self.compare(found, expect(q, k, v, lengths, starts=starts, mask=mask), 6e-3)
            self.assertTrue((found[2] == 0).all())

    def test_ends_of_any_number_of_keys(self):
        """A graph for any number looks for no ends: all keys are given, and the mask says the rest."""
        mask = torch.zeros(2, 1, 1, 40, dtype=torch.bool)
        mask[0, ..., 3:9] = mask[1, ..., 5] = True
        found = [ends.tolist() for ends in key_ranges.find_ends(mask)]
        self.assertEqual(found, [[3, 5], [9, 6]])
        graph = make_fx(key_ranges.find_ends, tracing_mode="symbolic")(mask)
        self.assertNotIn("amax", graph.code)
        self.assertEqual([ends.tolist() for ends in graph(mask)], [[0, 0], [40, 40]])
        self.assertEqual([ends.dtype for ends in graph(mask)], [torch.int32] * 2)

    def test_codes_and_windows(self):
        lengths = torch.tensor([64, 31], dtype=torch.int32)
        q = make(2, 8, 3, 64)
        k, v = (make(2, 2, 64, 64, seed=seed) for seed in (2, 3))
        codes = (k / 0.01).to(E4M3), (v / 0.02).to(E4M3)
        wide = codes[0].double() * 0.01, codes[1].double() * 0.02
        for window in (None, 0, 9):
            for accumulate in ("promote", "fast"):
                with self.subTest(window=window, accumulate=accumulate):
                    found = fp8.torch.attend_to_cache(
                        q, *codes, lengths, k_scale=0.01, v_scale=torch.tensor(0.02), window=window,
                        accumulate=accumulate)
                    self.compare(found, expect(q, *wide, lengths, window), 0.06)

    def test_layouts_and_pages(self):
        lengths = torch.tensor([33, 48], dtype=torch.int32)
        q = make(2, 4, 1, 32)
        k, v = (make(2, 2, 48, 32, seed=seed) for seed in (2, 3))
        expected = expect(q, k, v, lengths)
        swapped = [x.transpose(1, 2).contiguous() for x in (k, v)]
        self.compare(fp8.torch.attend_to_cache(q, *swapped, lengths, layout="bshd"), expected, 6e-3)
        table = torch.tensor([[5, 0, 3], [1, 6, 2]], dtype=torch.int32)
        pages = [torch.zeros(8, 16, 2, 32, dtype=torch.bfloat16) for _ in range(2)]
        for stored, numbers in zip(pages, swapped):
            stored[table.long()] = numbers.reshape(2, 3, 16, 2, 32)
        self.compare(fp8.torch.attend_to_cache(q, *pages, lengths, page_table=table, layout="bshd"), expected, 6e-3)
        pages = [x.transpose(1, 2).contiguous() for x in pages]
        self.compare(fp8.torch.attend_to_cache(q, *pages, lengths, page_table=table), expected, 6e-3)

    def test_in_a_compiled_function(self):
        lengths = torch.tensor([5, 8], dtype=torch.int32)
        q, k = make(2, 2, 1, 16), make(2, 2, 8, 16, seed=2)

        @torch.compile(backend="aot_eager", fullgraph=True)
        def attend(q):
            return fp8.torch.attend_to_cache(q * 2, k, k, lengths) + 1

        self.compare(attend(q) - 1, expect(q * 2, k, k, lengths), 2e-2)

    def test_refuses(self):
        lengths = torch.tensor([5, 8], dtype=torch.int32)
        q, k = make(2, 2, 1, 16), make(2, 2, 8, 16)
        for message, arguments, options in (
                ("expected lengths to be int32", (q, k, k, lengths.long()), {}),
                ("expected the heads of query to be a multiple", (make(2, 3, 1, 16), k, k, lengths), {}),
                ("expected query, keys and values to agree", (q, k, make(2, 2, 9, 16), lengths), {}),
                ("expected keys and values of torch.bfloat16", (q, k.float(), k.float(), lengths), {}),
                ("expected k_scale to be finite and positive", (q, k.to(E4M3), k.to(E4M3), lengths), {"k_scale": 0}),
                ("expected layout to be one of", (q, k, k, lengths), {"layout": "sbhd"}),
                ("expected window not to be negative", (q, k, k, lengths), {"window": -1}),
                ("expected page_table to be int32", (q, k, k, lengths), {"page_table": lengths}),
                ("expected starts to be int32", (q, k, k, lengths), {"starts": lengths[:1]}),
                ("expected sinks to be bf16", (q, k, k, lengths), {"sinks": make(3)}),
                ("expected accumulate to be None", (q, k, k, lengths), {"accumulate": "slow"}),
                ("expected query without a gradient", (q.clone().requires_grad_(), k, k, lengths), {})):
            with self.subTest(message=message), self.assertRaisesRegex(fp8.ArgumentError, message):
                fp8.torch.attend_to_cache(*arguments, **options)


class Cache(unittest.TestCase):
    def test_decodes_as_the_whole(self):
        for format_, tolerance in ((None, 6e-3), ("e4m3", 0.06), ("e5m2", 0.12)):
            with self.subTest(format=format_):
                cache = fp8.torch.KeyValueCache(2, 2, 40, 32, columns_of_values=16, format=format_, k_scale=0.02,
                                                v_scale=0.03)
                q, k, v = make(2, 4, 30, 32), make(2, 2, 30, 32, seed=2), make(2, 2, 30, 16, seed=3)
                found, at = [], 0
                for count in (17, 1, 1, 11):
                    new = slice(at, at + count)
                    cache.append(k[:, :, new], v[:, :, new])
                    found.append(cache.attend(q[:, :, new]))
                    at += count
                lengths = torch.tensor([30, 30])
                self.assertEqual(cache.lengths.tolist(), [30, 30])
                found, expected = torch.cat(found, 2), expect(q, k, v, lengths)
                self.assertLess(((found - expected).norm() / expected.norm()).item(), tolerance)
                cache.reset()
                self.assertEqual(cache.lengths.tolist(), [0, 0])

    def test_batches_grow_on_their_own(self):
        cache = fp8.torch.KeyValueCache(2, 1, 6, 16, format=None)
        cache.lengths.copy_(torch.tensor([4, 1]))
        k = make(2, 1, 2, 16)
        cache.append(k, k)
        self.assertEqual(cache.lengths.tolist(), [6, 3])
        self.assertTrue(torch.equal(cache.keys[0, :, 4:6], k[0]))
        self.assertTrue(torch.equal(cache.values[1, :, 1:3], k[1]))
        with self.assertRaisesRegex(fp8.ArgumentError, "expected room for 2 new positions, but got 6 positions, of which 6"):
            cache.append(k, k)
        self.assertEqual(cache.lengths.tolist(), [6, 3])

    def test_saturates(self):
        cache = fp8.torch.KeyValueCache(1, 1, 2, 16, k_scale=0.5)
        k = torch.full((1, 1, 1, 16), 1e4, dtype=torch.bfloat16)
        cache.append(k, -k)
        self.assertTrue((cache.keys[0, 0, 0].float() == 448).all())
        self.assertTrue((cache.values[0, 0, 0].float() == -448).all())

    def test_refuses(self):
        cache = fp8.torch.KeyValueCache(2, 1, 6, 16)
        k = make(2, 1, 2, 16)
        for message, key, value in (("expected value to be", k, make(2, 1, 3, 16)), ("expected key to be", k.half(), k),
                                    ("expected up to 6 new positions", make(2, 1, 7, 16), make(2, 1, 7, 16))):
            with self.subTest(message=message), self.assertRaisesRegex(fp8.ArgumentError, message):
                cache.append(key, value)
        with self.assertRaisesRegex(fp8.ArgumentError, "expected format to be None or one of e4m3, e5m2"):
            fp8.torch.KeyValueCache(2, 1, 6, 16, format="int8")


if __name__ == "__main__":
    unittest.main()
