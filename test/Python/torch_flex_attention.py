# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""flex_attention by `fp8.attention`, beside PyTorch's own: functions over scores and masks, gradients, what becomes of them, and
reasons why others are refused."""

import functools
import math
import types
import unittest
import warnings
from unittest import mock

import numpy
import torch
from torch import where
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
SETTINGS, HELPERS = types.ModuleType("settings"), types.ModuleType("torchnotours")
SETTINGS.slope = HELPERS.slope = SLOPE = 1.0
exec("def add(k):\n    return slope * k", HELPERS.__dict__)


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

    def test_whatever_a_function_uses_is_looked_at(self):
        q, k, _ = self.make()
        made = HELPERS.add
        with torch.inference_mode():
            slopes = torch.ones(HEADS)

        def of_a_module(score, b, h, q, k):
            return score + SETTINGS.slope * k

        def of_a_helper(score, b, h, q, k):
            return score + made(k)

        def of_nested_code(score, b, h, q, k):
            def add(x):
                return (lambda: x + SLOPE * k)()
            return add(score)

        def of_a_keyword(score, b, h, q, k, *, slope=1.0):
            return score + slope * k

        def of_inference(score, b, h, q, k):
            return score + slopes[h] * k

        def of_globals(score, b, h, q, k):
            return score + globals()["SLOPE"] * k

        def change():
            global SLOPE
            SETTINGS.slope = HELPERS.slope = SLOPE = SLOPE * 2
            of_a_keyword.__kwdefaults__ = {"slope": SLOPE}
            with torch.inference_mode():
                slopes.fill_(SLOPE)

        for bend in of_a_module, of_a_helper, of_nested_code, of_a_keyword, of_inference, of_globals:
            with self.subTest(bend.__name__):
                first = flex.find_plan(q, k, bend, None)
                change()
                torch.testing.assert_close(flex.find_plan(q, k, bend, None).mask, 2 * first.mask)

    def test_methods_are_looked_at(self):
        class Layer(torch.nn.Module):
            def __init__(self, slope):
                super().__init__()
                self.register_buffer("slopes", SLOPES * slope)
                self.factor, self.settings = 1.0, SETTINGS

            @property
            def doubled(self):
                return 2 * self.factor

            def get_slope(self, h):
                return self.slopes[h]

            def bend(self, s, b, h, q, k):
                return s + self.factor * self.get_slope(h) * k

            def of_a_property(self, s, b, h, q, k):
                return s + self.doubled * k

            def of_an_object(self, s, b, h, q, k):
                return s + helper(self) * k

            def of_nested_code(self, s, b, h, q, k):
                return (lambda: s + self.factor * k)()

            def sees(self, b, h, q, k):
                return q - k < 9 * self.factor

        def helper(layer):
            return layer.factor

        q, k, _ = self.make()
        one, other = Layer(1.0), Layer(3.0)
        first = flex.find_plan(q, k, one.bend, None)
        self.assertIs(flex.find_plan(q, k, one.bend, None), first)
        torch.testing.assert_close(flex.find_plan(q, k, other.bend, None).mask, 3 * first.mask)
        self.assertIs(flex.find_plan(q, k, one.bend, None), first)
        one.slopes.mul_(2)
        torch.testing.assert_close(flex.find_plan(q, k, one.bend, None).mask, 2 * first.mask)
        one.factor = 2.0
        torch.testing.assert_close(flex.find_plan(q, k, one.bend, None).mask, 4 * first.mask)
        mask = make_block_mask(gaps)
        mask.mask_mod = one.sees
        before = flex.find_plan(q, k, None, mask)
        self.assertIs(flex.find_plan(q, k, None, mask), before)
        one.factor = 1.0
        self.assertNotEqual(flex.find_plan(q, k, None, mask).window, before.window)
        # Nobody knows what these use: they are read again.
        for bend in "of_a_property", "of_an_object", "of_nested_code":
            found = [flex.find_plan(q, k, getattr(one, bend), None) for _ in range(2)]
            self.assertIsNot(*found)
            one.factor *= 2
            torch.testing.assert_close(flex.find_plan(q, k, getattr(one, bend), None).mask, 2 * found[0].mask)

    def test_writes_without_a_version_are_seen(self):
        """Fused optimizers, `.data` and memory of NumPy change no version."""
        q, k, _ = self.make()
        bias, memory = torch.nn.Parameter(BIAS.clone()), numpy.zeros(KEYS, dtype=numpy.float32)
        numbers = torch.from_numpy(memory)

        def add(score, b, h, q, k):
            return score + bias[h, q - k + KEYS] + numbers[k]

        def change_data():
            bias.data.mul_(-2)

        def step():
            optimizer = torch.optim.Adam([bias], lr=0.5, fused=True)
            bias.grad = torch.ones_like(bias)
            optimizer.step()

        def fill():
            memory[:] = 3

        with torch.no_grad():
            for change in change_data, step, fill:
                before = flex.find_plan(q, k, add, None)
                self.assertIs(flex.find_plan(q, k, add, None), before)
                change()
                found = flex.find_plan(q, k, add, None)
                self.assertFalse(torch.equal(found.mask, before.mask), change)
                places = torch.arange(QUERIES)[:, None] - torch.arange(KEYS) + KEYS
                torch.testing.assert_close(found.mask[0], (bias[:, places] + numbers))

    def test_plans_of_several_masks_and_sizes_are_kept(self):
        q, k, _ = self.make()
        reach = [9]

        def near(reach, b, h, q, k):
            return where(q - k <= reach, True, False)

        def of_a_list(b, h, q, k):
            return q - k <= reach[0]

        masks = [make_block_mask(x) for x in (
            causal, peer.and_masks(causal, window), peer.or_masks(peer.and_masks(causal, of_a_list), prefix),
            functools.partial(near, 9))]
        calls = [(q[:, :, :size], None if size == 1 else mask) for mask in masks for size in (QUERIES, 1)]
        for bend in cap, None:
            plans = [flex.find_plan(q, k, bend, mask) for q, mask in calls]
            for (q, mask), plan in zip(calls, plans):
                if bend is not None or mask is not None:
                    self.assertIs(flex.find_plan(q, k, bend, mask), plan)
            # What is in a list, in a function of a function, is found too.
            before = flex.find_plan(calls[0][0], k, bend, masks[2])
            reach[0] += 1
            self.assertIsNot(flex.find_plan(calls[0][0], k, bend, masks[2]), before)

    def test_learned_biases_are_refused_after_a_call_without_gradients(self):
        q, k, v = self.make()
        learned = SLOPES.clone().requires_grad_()

        def bend(score, b, h, q, k):
            return score + learned.exp()[h] * k

        with torch.no_grad():
            fp8.torch.flex_attention(q, k, v, bend, enable_gqa=True)
        with self.assertRaisesRegex(fp8.UnsupportedError, "gradient"):
            fp8.torch.flex_attention(q, k, v, bend, enable_gqa=True)

    def test_queries_and_batches_of_which_all_is_hidden(self):
        of_queries = torch.where(torch.arange(QUERIES) % 4 < 3, 0.5, -math.inf)
        of_batches = torch.tensor([0.5, -math.inf])
        for bend, mask in ((lambda s, b, h, q, k: s + of_queries[q], None), (lambda s, b, h, q, k: s + of_batches[b], causal),
                           (lambda s, b, h, q, k: s + SLOPES[h] * (k - q) + of_queries[q] + of_batches[b], documents)):
            self.compare(bend, mask)

    def test_methods_and_defaults(self):
        class Layer(torch.nn.Module):
            def bend(self, s, b, h, q, k):
                return s + SLOPES[h] * k

            @staticmethod
            def __call__(s, b, h, q, k, slope=0.1):
                return s + slope * k

        def with_defaults(s, b, h, q, k, slope=0.1, *, other=0.2):
            return s + slope * k + other * (q - k)

        layer = Layer()
        q, k, v = self.make()
        for bend in layer.bend, with_defaults:
            found = fp8.torch.flex_attention(q, k, v, bend, enable_gqa=True)
            self.check(found, define(q, k, v, bend, None), 1e-5)
        for bend in layer, functools.partial(lambda slope, s, b, h, q, k: s + slope * k, 0.1):
            found = fp8.torch.flex_attention(q, k, v, bend, enable_gqa=True)
            self.check(found, define(q, k, v, lambda s, b, h, q, k: s + 0.1 * k, None), 1e-5)

    def test_masks_that_do_not_fit_are_refused(self):
        q, k, v = self.make()

        def of(batches, heads, queries, keys):
            return peer.create_block_mask(lambda b, h, q, k: q - k >= b + h, batches, heads, queries, keys, device="cpu", BLOCK_SIZE=16)

        for reason, mask in (("37 queries and 45 keys, but got one of 16 and 45", of(None, None, 16, KEYS)),
                             ("got one of 37 and 64", of(None, None, QUERIES, 64)),
                             ("1 or 2 batches, but got one of 3", of(3, None, QUERIES, KEYS)),
                             ("1 or 4 heads, but got one of 8", of(None, 8, QUERIES, KEYS)),
                             ("a BlockMask as block_mask, but got Tensor", torch.ones(QUERIES, KEYS, dtype=torch.bool))):
            with self.subTest(reason), self.assertRaisesRegex(fp8.ArgumentError, reason):
                fp8.torch.flex_attention(q, k, v, None, mask, enable_gqa=True)
        with self.assertRaisesRegex(fp8.ArgumentError, "a function as score_mod, but got int"):
            fp8.torch.flex_attention(q, k, v, 3, enable_gqa=True)

    def test_nothing_to_look_at(self):
        q, k, v = (x.detach() for x in self.make())
        for q, k, v in ((q[:0], k[:0], v[:0]), (q[:, :, :0], k, v), (q, k[:, :, :0], v[:, :, :0])):
            found = fp8.torch.flex_attention(q, k, v, positions, enable_gqa=True)
            self.assertTrue(torch.equal(found, torch.zeros_like(q)))

    def test_sums_of_16_bits_are_rounded_as_a_whole(self):
        for bend in (lambda s, b, h, q, k: s + ((q - k) * 1000 + 1).to(torch.bfloat16).float() * 0.0001,
                     lambda s, b, h, q, k: s + (q.bfloat16() * 100.5 - k.bfloat16() * 99).float() * 0.001,
                     lambda s, b, h, q, k: s + (q - k).float().view(torch.int32) * 1e-9,
                     lambda s, b, h, q, k: s.masked_fill(q < k, -math.inf)):
            self.compare(bend, None)

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
                ("another type", lambda s, b, h, q, k: s.bfloat16().float()),
                ("another type", lambda s, b, h, q, k: s.view(torch.int32)),
                ("-inf", lambda s, b, h, q, k: s.masked_fill(q < k, -1e4)),
                ("operations on numbers", lambda s, b, h, q, k: s if q > k else s + 1),
                ("gradient", lambda s, b, h, q, k: s + learned[h])):
            with self.subTest(reason), self.assertRaisesRegex(fp8.UnsupportedError, reason):
                fp8.torch.flex_attention(q, k, v, score_mod, enable_gqa=True)
        with self.assertRaisesRegex(fp8.UnsupportedError, "enable_gqa"):
            fp8.torch.flex_attention(q, k, v)
        with self.assertRaisesRegex(fp8.UnsupportedError, "logarithms"):
            fp8.torch.flex_attention(q, k, v, enable_gqa=True, return_lse=True)


class Captured(unittest.TestCase):
    """A plan in a CUDA graph would stay that of what was there."""

    def capture(self, *arguments, **options):
        with mock.patch.object(flex, "is_on_gpu", return_value=True), mock.patch.object(
                torch.cuda, "is_current_stream_capturing", return_value=True):
            return fp8.torch.flex_attention(*arguments, **options)

    def test_tensors(self):
        q, k, v = (make(1, HEADS, QUERIES, 32, seed=seed) for seed in range(3))

        def add(score, b, h, q, k):
            return score + SLOPES[h] * k

        mask = peer.create_block_mask(causal, None, None, QUERIES, QUERIES, device="cpu")
        for options in {"score_mod": add}, {"block_mask": mask}:
            fp8.torch.flex_attention(q, k, v, **options)
            with self.assertRaisesRegex(fp8.UnsupportedError, "CUDA graph around flex_attention with a block_mask, or"):
                self.capture(q, k, v, **options)

    def test_constants(self):
        q, k, v = (make(1, HEADS, QUERIES, 32, seed=seed) for seed in range(3))

        def bend(score, b, h, q, k):
            return 20 * torch.tanh(score / 20)

        with self.assertRaisesRegex(fp8.UnsupportedError, "called once with these functions and sizes before"):
            self.capture(q, k, v, bend)
        y = fp8.torch.flex_attention(q, k, v, bend)
        self.assertTrue(torch.equal(self.capture(q, k, v, bend), y))
        with self.assertRaisesRegex(fp8.UnsupportedError, "called once"):
            self.capture(q[:, :, :9], k, v, bend)


if __name__ == "__main__":
    unittest.main()
