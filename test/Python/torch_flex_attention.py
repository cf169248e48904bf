# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""flex_attention by `fp8.attention`, beside PyTorch's own: functions over scores and masks, gradients, what becomes of them, and
reasons why others are refused."""

import math
import unittest
import warnings

import torch
from torch.nn.attention import flex_attention as peer

import fp8
import fp8.torch
from fp8.torch import flex

QUERIES, KEYS, HEADS = 37, 45, 4


def make(*sizes, seed=1, dtype=torch.float32):
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(seed)).to(dtype)


SLOPES = torch.tensor([0.5, 0.25, 0.125, 0.0625])
BIAS = make(HEADS, QUERIES + KEYS, seed=7)
DOCUMENTS = torch.tensor([0] * 11 + [1] * 20 + [2] * 14)
PADDING = torch.tensor([45, 13])


def causal(b, h, q, k):
    return q >= k


def window(b, h, q, k):
    return (q >= k) & (q - k <= 9)


def documents(b, h, q, k):
    return (DOCUMENTS[q] == DOCUMENTS[k]) & causal(b, h, q, k)


def prefix(b, h, q, k):
    return (k < 12) | (q >= k)


def padded(b, h, q, k):
    return (k < PADDING[b]) & (q >= k)


def gaps(b, h, q, k):
    return (q + k) % 3 != 0


def of_heads(b, h, q, k):
    return (q - k).abs() <= h + 1


def nothing(b, h, q, k):
    return k < 0


def alibi(score, b, h, q, k):
    return score + SLOPES[h] * (k - q)


def cap(score, b, h, q, k):
    return 0.7 * torch.tanh(score / 0.7)


def cap_and_alibi(score, b, h, q, k):
    return cap(score, b, h, q, k) - SLOPES[h] * (q - k)


def positions(score, b, h, q, k):
    return score + BIAS[h, q - k + KEYS - 1]


def near(score, b, h, q, k):
    return score - (q - k).abs() * 0.1


def scaled(score, b, h, q, k):
    return 2 * (score + 0.25 * k.float())


def hides(score, b, h, q, k):
    return torch.where(q >= k, score, -math.inf)


def hides_others(score, b, h, q, k):
    return torch.where(k > q + h, -math.inf, score + SLOPES[h] * k)


SCORES = [alibi, cap, cap_and_alibi, positions, near, scaled, hides, hides_others]
MASKS = [causal, window, documents, prefix, padded, gaps, of_heads, nothing]


def define(q, k, v, score_mod, mask_mod):
    """The meaning, of functions that broadcast."""
    scores = q @ k.repeat_interleave(2, 1).mT * q.shape[-1] ** -0.5
    places = [torch.arange(size).reshape([-1 if i == dim else 1 for i in range(4)]) for dim, size in enumerate(scores.shape)]
    scores = scores if score_mod is None else score_mod(scores, *places)
    if mask_mod is not None:
        scores = scores.masked_fill(~mask_mod(*places), -math.inf)
    hidden = scores.isneginf().all(-1, keepdim=True)
    return scores.masked_fill(hidden, 0).softmax(-1).masked_fill(hidden, 0) @ v.repeat_interleave(2, 1)


def make_block_mask(function):
    return None if function is None else peer.create_block_mask(
        function, 2, HEADS, QUERIES, KEYS, device="cpu", BLOCK_SIZE=16)


class Flex(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")

    def check(self, found, expected, tolerance):
        self.assertFalse(found.isnan().any())
        self.assertLessEqual((found - expected).norm().item(), tolerance * max(expected.norm().item(), 1e-3))

    def make(self):
        return [x.requires_grad_() for x in (make(2, HEADS, QUERIES, 16), make(2, 2, KEYS, 16, seed=2),
                                             make(2, 2, KEYS, 16, seed=3))]

    def compare(self, score_mod, mask_mod):
        q, k, v = self.make()
        mask = make_block_mask(mask_mod)
        with self.subTest(score=score_mod and score_mod.__name__, mask=mask_mod and mask_mod.__name__):
            with torch.no_grad():
                found, lse = fp8.torch.flex_attention(q, k, v, score_mod, mask, enable_gqa=True, return_lse=True)
                expected, sums = peer.flex_attention(q.detach(), k.detach(), v.detach(), score_mod, mask, enable_gqa=True, return_lse=True)
            self.check(found, expected, 1e-5)
            is_seen = sums.isfinite()
            self.assertTrue(torch.equal(lse.isfinite(), is_seen))
            self.check(lse[is_seen], sums[is_seen], 1e-5)
            grad = make(*found.shape, seed=4)
            mine, other = (torch.autograd.grad(y, (q, k, v), grad) for y in (
                fp8.torch.flex_attention(q, k, v, score_mod, mask, enable_gqa=True), define(q, k, v, score_mod, mask_mod)))
            for one, two in zip(mine, other):
                self.check(one, two, 1e-4)

    def test_scores(self):
        for score_mod in SCORES:
            self.compare(score_mod, None)

    def test_masks(self):
        for mask_mod in MASKS:
            self.compare(None, mask_mod)

    def test_both(self):
        for score_mod, mask_mod in ((alibi, causal), (alibi, padded), (cap, documents), (near, gaps), (hides, window),
                                    (positions, of_heads), (scaled, nothing)):
            self.compare(score_mod, mask_mod)

    def find(self, score_mod, mask_mod):
        q, k, _ = self.make()
        return flex.find_plan(q, k, score_mod, make_block_mask(mask_mod))

    def test_windows_and_ranges_are_found(self):
        for mask_mod, expected in ((causal, (None, 0)), (window, (9, 0))):
            plan = self.find(None, mask_mod)
            self.assertEqual((plan.window, plan.ranges, plan.mask), (expected, None, None), mask_mod.__name__)
        # Masks that are gone are no reason to take what was found with them.
        self.find(hides, window)
        self.assertEqual(self.find(hides, None).window, (None, 0))
        for mask_mod in documents, prefix, padded, nothing:
            plan = self.find(None, mask_mod)
            self.assertEqual(tuple(plan.ranges.shape), (2, QUERIES, 2), mask_mod.__name__)
            self.assertIsNone(plan.mask)
        self.assertEqual(self.find(None, gaps).mask.dtype, torch.bool)

    def test_what_is_added_has_few_dimensions(self):
        self.assertEqual(tuple(self.find(alibi, causal).mask.shape), (1, HEADS, 1, KEYS))
        self.assertEqual(tuple(self.find(near, None).mask.shape), (1, 1, QUERIES, KEYS))
        self.assertEqual(tuple(self.find(positions, None).mask.shape), (1, HEADS, QUERIES, KEYS))
        self.assertEqual(tuple(self.find(hides_others, None).mask.shape), (1, HEADS, QUERIES, KEYS))
        self.assertIsNone(self.find(cap, None).mask)

    def test_formats(self):
        q, k, v = (x.detach().bfloat16() for x in self.make())
        expected = peer.flex_attention(q.float(), k.float(), v.float(), cap_and_alibi, make_block_mask(documents), enable_gqa=True)
        for options, tolerance in (({}, 0.02), ({"format": "e4m3"}, 0.12)):
            found = fp8.torch.flex_attention(q, k, v, cap_and_alibi, make_block_mask(documents), enable_gqa=True, **options)
            self.check(found.float(), expected, tolerance)

    def test_blocks_without_a_function(self):
        q, k, v = self.make()
        counts = torch.tensor([[[1, 2, 1]]], dtype=torch.int32)
        columns = torch.tensor([[[[1, 0, 0], [0, 2, 0], [2, 0, 0]]]], dtype=torch.int32)
        mask = peer.BlockMask.from_kv_blocks(counts, columns, BLOCK_SIZE=16, mask_mod=causal, seq_lengths=(QUERIES, KEYS))
        expected = torch.zeros(QUERIES, KEYS, dtype=torch.bool)
        for row, column in ((0, 1), (1, 0), (1, 2), (2, 2)):
            expected[16 * row:16 * row + 16, 16 * column:16 * column + 16] = True
        expected &= torch.arange(QUERIES)[:, None] >= torch.arange(KEYS)
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, expected, enable_gqa=True).nan_to_num(0)
        self.check(fp8.torch.flex_attention(q, k, v, None, mask, enable_gqa=True), y, 1e-5)

    def test_plans_are_kept_until_something_changes(self):
        q, k, _ = self.make()
        slopes, factor = SLOPES.clone(), 1.0

        def bend(score, b, h, q, k):
            return score + factor * slopes[h] * k

        first = flex.find_plan(q, k, bend, None)
        self.assertIs(flex.find_plan(q, k, bend, None), first)
        slopes.mul_(2)
        second = flex.find_plan(q, k, bend, None)
        torch.testing.assert_close(second.mask, 2 * first.mask)
        factor = 3.0
        torch.testing.assert_close(flex.find_plan(q, k, bend, None).mask, 6 * first.mask)
        self.assertEqual(flex.find_plan(q[:, :, :5], k, bend, None).rows.shape, (2, HEADS, 5))

    def test_graphs(self):
        torch._dynamo.reset()
        q, k, v = self.make()
        mask = make_block_mask(documents)
        call = torch.compile(lambda *x: fp8.torch.flex_attention(*x, alibi, mask, enable_gqa=True), backend="aot_eager")
        self.check(call(q, k, v), define(q, k, v, alibi, documents), 1e-5)

    def test_others_are_refused(self):
        q, k, v = self.make()
        learned = SLOPES.clone().requires_grad_()
        for reason, score_mod in (
                ("positive", lambda s, b, h, q, k: -2.0 * s),
                ("one use", lambda s, b, h, q, k: s * s),
                ("the same for all", lambda s, b, h, q, k: s * SLOPES[h]),
                ("forgets", lambda s, b, h, q, k: SLOPES[h]),
                ("sigmoid", lambda s, b, h, q, k: s.sigmoid()),
                ("cap, but got it before", lambda s, b, h, q, k: torch.tanh(s + k)),
                ("-inf", lambda s, b, h, q, k: torch.where(q >= k, s, -1e4)),
                ("several", lambda s, b, h, q, k: torch.tanh(torch.tanh(s))),
                ("operations on numbers", lambda s, b, h, q, k: s if q > k else s + 1),
                ("gradient", lambda s, b, h, q, k: s + learned[h])):
            with self.subTest(reason), self.assertRaisesRegex(fp8.UnsupportedError, reason):
                fp8.torch.flex_attention(q, k, v, score_mod, enable_gqa=True)
        with self.assertRaisesRegex(fp8.UnsupportedError, "enable_gqa"):
            fp8.torch.flex_attention(q, k, v)
        with self.assertRaisesRegex(fp8.UnsupportedError, "logarithms"):
            fp8.torch.flex_attention(q, k, v, enable_gqa=True, return_lse=True)


if __name__ == "__main__":
    unittest.main()
