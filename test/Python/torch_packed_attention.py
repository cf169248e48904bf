# REQUIRES: pytorch, python-pytorch
# RUN: %import_python %s
"""fp8.torch.packed_attention beside attention of each sequence, forward and backward; ranges of keys that masks mean; and
what they refuse."""

import unittest
from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch._subclasses import FakeTensorMode

import fp8
import fp8.torch
from fp8.torch import attention_backward, attention_ops, key_ranges, packed_sequences

attend = fp8.torch.packed_attention


def make(*shape, seed=1, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def count_up(lengths):
    return torch.tensor([sum(lengths[:i]) for i in range(len(lengths) + 1)], dtype=torch.int32)


def attend_to_each(q, k, v, lengths_q, lengths_k, **options):
    """Sequence by sequence; queries behind the last have 0."""
    results, queries, keys = [], 0, 0
    for of_q, of_k in zip(lengths_q, lengths_k):
        sequence = (x[first:first + count].transpose(0, 1)[None] for x, first, count in (
            (q, queries, of_q), (k, keys, of_k), (v, keys, of_k)))
        results.append(fp8.torch.scaled_dot_product_attention(*sequence, bottom_right=True, **options)[0].transpose(0, 1))
        queries, keys = queries + of_q, keys + of_k
    return torch.cat([*results, q.new_zeros(q.shape[0] - queries, q.shape[1], v.shape[2])])


class Packed(unittest.TestCase):
    def compare(self, lengths_q, lengths_k, tolerance=1e-5, more=0, dtype=torch.float32, format=None, sinks=None,
                **options):
        sizes = (lengths_q, 4, 32), (lengths_k, 2, 32), (lengths_k, 2, 64)
        tensors = [make(sum(lengths) + more, heads, columns, seed=seed, dtype=dtype).requires_grad_()
                   for seed, (lengths, heads, columns) in enumerate(sizes)]
        if sinks is not None:
            tensors.append(sinks.clone().requires_grad_())
            options["sinks"] = tensors[-1]
        found = attend(*tensors[:3], count_up(lengths_q), count_up(lengths_k), format=format, **options)
        expected = attend_to_each(*tensors[:3], lengths_q, lengths_k, **options)
        self.assertEqual((found.shape, found.dtype), (expected.shape, dtype))
        grad = make(*found.shape, seed=9, dtype=dtype)
        pairs = [(found, expected), *zip(torch.autograd.grad(found, tensors, grad), torch.autograd.grad(
            expected, tensors, grad))]
        for x, y in pairs:
            self.assertTrue(x.isfinite().all())
            self.assertLessEqual((x - y).norm().item(), tolerance * y.norm().item() + 1e-6)

    def test_lengths(self):
        for lengths_q, lengths_k in (([7, 1, 12], [7, 1, 12]), ([3, 5, 0, 2], [9, 5, 4, 0]), ([0, 0], [1, 2]), ([6], [2])):
            for options in ({}, {"is_causal": True}, {"window": (3, 0)}, {"window": (2, 1)}, {"window": (None, 2)}):
                with self.subTest(queries=lengths_q, keys=lengths_k, **options):
                    self.compare(lengths_q, lengths_k, **options)
        self.compare([4, 3], [4, 3], more=5, is_causal=True)

    def test_types(self):
        for dtype, tolerance in ((torch.bfloat16, 1e-2), (torch.float16, 3e-3)):
            self.compare([7, 9], [7, 9], tolerance, dtype=dtype, is_causal=True)
        self.compare([33, 20], [33, 20], 0.12, dtype=torch.bfloat16, is_causal=True, format="e4m3")

    def test_sinks(self):
        self.compare([7, 9], [7, 9], sinks=make(4), is_causal=True)

    def test_in_a_compiled_function(self):
        q, lengths = make(11, 4, 16).requires_grad_(), count_up([4, 7])
        call = torch.compile(lambda q: attend(q * 2, q, q, lengths, lengths, is_causal=True), backend="aot_eager")
        expected = attend(q * 2, q, q, lengths, lengths, is_causal=True)
        found = call(q)
        torch.testing.assert_close(found, expected)
        torch.testing.assert_close(*(torch.autograd.grad(y.square().sum(), q)[0] for y in (found, expected)))

    def test_flash(self):
        """PyTorch's operation takes what it is given, as far as a fake tensor knows."""
        called = []

        class Watch(torch.utils._python_dispatch.TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None):
                called.append((func.name(), args, kwargs))
                return func(*args, **(kwargs or {}))

        available = mock.patch.object(torch.backends.cuda, "is_flash_attention_available", lambda: True)
        with FakeTensorMode(), Watch(), available:
            q, y = (torch.empty(1, 64, 4, 32, dtype=torch.bfloat16, device="cuda") for _ in range(2))
            k = torch.empty(1, 80, 2, 32, dtype=torch.bfloat16, device="cuda")
            lse, lengths = torch.empty(1, 4, 64, device="cuda"), torch.empty(3, dtype=torch.int32, device="cuda")
            options = attention_ops.Options(False, 0.2)
            found = packed_sequences._run_backward((lengths, lengths, 40, 50, 7, 0), y, q, k, k, [], y, lse, None, None, None, None,
                                                   *options)
        calls = [(args, others) for name, args, others in called if name == "aten::_flash_attention_backward"]
        self.assertEqual(len(calls), 1)
        args, others = calls[0]
        self.assertEqual(args[8:12], (40, 50, 0.0, False))
        self.assertEqual((others["window_size_left"], others["window_size_right"]), (7, 0))
        self.assertEqual([x.shape for x in found], [x.shape for x in (q, k, k)])

    def test_codes(self):
        """Our kernel is taken, which has the forward's scores, or FlashAttention's with sums of its own."""
        for target, expected in ("sm_90a", ["ours"]), ("sm_100a", ["widen", "sums", "flash"]):
            called = []

            def note(name, results):
                return lambda *given: called.append(name) or results  # noqa: B023

            with FakeTensorMode():
                q = torch.empty(1, 40, 4, 64, dtype=torch.bfloat16, device="cuda")
                codes, lse = q.to(torch.float8_e4m3fn), torch.empty(1, 4, 40, device="cuda")
                lengths, factors = torch.empty(3, dtype=torch.int32, device="cuda"), [torch.ones(1, 1, device="cuda")] * 3
                with mock.patch.multiple(attention_ops, run_backward=note("ours", (q, q, q)), widen=note("widen", (q, q, q))), (
                        mock.patch.multiple(attention_backward, get_default_target=lambda: target, find_sums=note("sums", lse),  # noqa: B023
                                            run_packed_flash=note("flash", (q, q, q)))), (
                        mock.patch.object(torch.backends.cuda, "is_flash_attention_available", lambda: True)):
                    packed_sequences._run_backward(
                        (lengths, lengths, 40, 40, None, 0), q, codes, codes, codes, factors, q, lse, None, None, None, None,
                        *attention_ops.Options(False, 0.2, format="e4m3"))
            self.assertEqual(called, expected)

    def test_refuses(self):
        q, lengths = make(6, 2, 16), count_up([2, 4])
        for message, arguments, options in (
                ("expected query to be positions x heads x columns", (q[None], q, q, lengths, lengths), {}),
                ("expected key to be bf16, f16 or f32 on cpu", (q, q.half(), q, lengths, lengths), {}),
                ("agree in positions and columns", (q, q, q[:5], lengths, lengths), {}),
                ("expected the heads of query to be a multiple", (q[:, :1], q, q, lengths, lengths), {}),
                ("expected cu_seqlens_k to be int32", (q, q, q, lengths, lengths.long()), {}),
                ("expected cu_seqlens_k to be int32", (q, q, q, lengths, lengths[:2]), {}),
                ("expected is_causal or a window", (q, q, q, lengths, lengths), {"is_causal": True, "window": (1, 0)}),
                ("expected scale to be finite", (q, q, q, lengths, lengths), {"scale": 0.0}),
                ("expected sinks to be", (q, q, q, lengths, lengths), {"sinks": make(3)}),
                ("expected format", (q, q, q, lengths, lengths), {"format": "int8"})):
            with self.subTest(message=message), self.assertRaisesRegex(fp8.ArgumentError, message):
                attend(*arguments, **options)


class Masks(unittest.TestCase):
    def see(self, ranges, keys):
        key = torch.arange(keys)
        return ((key >= ranges[..., :1]) & (key < ranges[..., 1:])).unsqueeze(1)

    def test_ranges(self):
        generator = torch.Generator().manual_seed(2)
        for batches, queries, keys in ((2, 5, 7), (1, 1, 9), (3, 4, 1)):
            query = torch.empty(batches, 2, queries, 16)
            first = torch.randint(0, keys + 1, (batches, queries), generator=generator)
            ranges = torch.stack([first, first + torch.randint(0, keys, (batches, queries), generator=generator)], -1)
            mask = self.see(ranges, keys)
            found = key_ranges.find(mask, query)
            self.assertEqual((found.dtype, found.shape), (torch.int32, (batches, queries, 2)))
            self.assertTrue(torch.equal(self.see(found, keys), mask))
            self.assertIs(key_ranges.find(mask, query).data_ptr() == found.data_ptr(), True)

    def test_repeated(self):
        query = torch.empty(3, 2, 4, 16)
        mask = torch.tensor([False, True, True, False])[None, None, None]
        for given in (mask, mask.expand(3, 2, 4, 4), mask.expand(3, 1, 1, 4)):
            found = key_ranges.find(given, query)
            self.assertTrue(found.is_contiguous() and torch.equal(found, torch.tensor([1, 3]).int().expand(3, 4, 2)))

    def test_none(self):
        query = torch.empty(2, 2, 3, 16)
        mask = torch.ones(2, 1, 3, 5, dtype=torch.bool)
        self.assertIsNotNone(key_ranges.find(mask, query))
        mask[1, 0, 2, 1] = False
        self.assertIsNone(key_ranges.find(mask, query))
        mask[1, 0, 2, 0] = False
        self.assertIsNotNone(key_ranges.find(mask, query))
        self.assertIsNone(key_ranges.find(torch.ones(2, 2, 3, 5, dtype=torch.bool), query))
        self.assertIsNone(key_ranges.find(torch.zeros(2, 1, 3, 5), query))
        # A backend that traces has shapes and no more.
        with FakeTensorMode():
            self.assertIsNone(key_ranges.find(torch.ones(2, 1, 3, 5, dtype=torch.bool), query))
        # What was found in inference mode can be saved for a gradient.
        mask = torch.ones(2, 1, 3, 5, dtype=torch.bool)
        with torch.inference_mode():
            key_ranges.find(mask, query)
        self.assertFalse(key_ranges.find(mask, query).is_inference())
        with torch.inference_mode():
            mask = torch.ones(2, 1, 3, 5, dtype=torch.bool)
            self.assertIsNotNone(key_ranges.find(mask, query))
            mask[0, 0, 0, 2] = False
            self.assertIsNone(key_ranges.find(mask, query))
            mask._fp8_is_constant = True
            self.assertIsNone(key_ranges.find(mask, query))
            with mock.patch.object(key_ranges, "_find", None):
                self.assertIsNone(key_ranges.find(mask, query))

    def test_without_keys(self):
        query = torch.empty(2, 2, 3, 16)
        self.assertTrue((key_ranges.find(torch.ones(2, 1, 3, 0, dtype=torch.bool), query) == 0).all())


if __name__ == "__main__":
    unittest.main()
