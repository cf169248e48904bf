# REQUIRES: pytorch, python-pytorch
# RUN: env FP8_CUDA_DRIVER=emulator %import_python %s
"""What adds positions to a KeyValueCache on a GPU, beside PyTorch's casts, bit by bit: on a CPU and on the emulator."""

import unittest

import torch

import fp8.torch
from fp8.torch import append_programs
from fp8.torch.attention_programs import CODES, ELEMENTS

LARGEST = {"e4m3": 448.0, "e5m2": 57344.0}
BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32}


def make(*shape, seed=1, dtype=torch.bfloat16, most=1.0):
    return (torch.randn(*shape, generator=torch.Generator().manual_seed(seed)) * most).to(dtype)


def expect(cache, numbers, factor, lengths, format_):
    """The cache with the numbers behind each batch's."""
    cache = cache.clone()
    if format_:
        most = LARGEST[format_]
        numbers = (numbers.float() * factor).clamp(-most, most).to(CODES[format_])
    for batch, length in enumerate(lengths):
        cache[batch, :, length:length + numbers.shape[2]] = numbers[batch]
    return cache


class Append(unittest.TestCase):
    def compare(self, found, expected):
        """A NaN is one, whatever its sign is."""
        found, expected = found.clone(), expected.clone()
        nan = expected.float().isnan()
        self.assertTrue(torch.equal(found.float().isnan(), nan))
        kind = BITS[found.element_size()]
        self.assertTrue(torch.equal(found.view(kind)[~nan], expected.view(kind)[~nan]))

    def check(self, target, dtype, format_, columns, lengths, count):
        key, value = (make(len(lengths), 3, count, size, seed=size, dtype=dtype, most=100.0) for size in columns)
        if key.numel():
            key[0, 0, 0, :5] = torch.tensor([torch.nan, torch.inf, -torch.inf, 0.0, -0.0]).to(dtype)
        stored = CODES[format_] if format_ else dtype
        caches = [make(len(lengths), 3, 16, size, seed=5).to(stored) for size in columns]
        factors = [torch.full((1, 1), factor) for factor in (10.0, 0.3)]
        expected = [expect(*given, lengths, format_) for given in zip(caches, (key, value), (10.0, 0.3))]
        now = torch.tensor(lengths, dtype=torch.int32)
        run = append_programs.get_append(ELEMENTS[dtype], 3, columns, format_, target)
        self.assertIsNone(run(key, value, *(factors if format_ else ()), now, *caches))
        self.assertEqual(now.tolist(), [length + count for length in lengths])
        for found, wanted in zip(caches, expected):
            self.compare(found, wanted)

    def test_types(self):
        for target in ("cpu", "sm_90a"):
            for dtype in ELEMENTS:
                for format_ in (*LARGEST, None):
                    with self.subTest(target=target, dtype=dtype, format=format_):
                        self.check(target, dtype, format_, (32, 32), [4, 0], 5)

    def test_extents(self):
        for target in ("cpu", "sm_90a"):
            for columns, lengths, count in (((32, 16), [0, 11, 2], 5), ((16, 16), [16], 0), ((48, 48), [], 2),
                                            ((128, 128), [15, 0], 1), ((16, 80), [0], 16)):
                with self.subTest(target=target, columns=columns, lengths=lengths):
                    self.check(target, torch.bfloat16, "e4m3", columns, lengths, count)

    def test_no_room(self):
        """The last position is one of those that there is no room for; others are as they were."""
        for target in ("cpu", "sm_90a"):
            key = make(1, 1, 3, 16)
            caches, lengths = [torch.zeros(1, 1, 4, 16, dtype=torch.bfloat16) for _ in range(2)], torch.tensor(
                [2], dtype=torch.int32)
            append_programs.get_append("bf16", 1, (16, 16), None, target)(key, key, lengths, *caches)
            self.assertEqual(lengths.tolist(), [4])
            for cache in caches:
                self.assertTrue((cache[0, 0, :2] == 0).all() and torch.equal(cache[0, 0, 2], key[0, 0, 0]))
                self.assertTrue(((cache[0, 0, 3] == key[0, 0, 1]) | (cache[0, 0, 3] == key[0, 0, 2])).all())

    def test_kernels(self):
        """One for keys and values, if these are as wide, and one for the lengths."""
        for columns, count in (((64, 64), 2), ((64, 32), 3)):
            self.assertEqual(append_programs.write("bf16", 2, columns, "e4m3").count("scf.forall"), count)

    def test_as_the_cache_of_a_cpu(self):
        key, value = make(2, 2, 5, 32, seed=2), make(2, 2, 5, 16, seed=3)
        cache = fp8.torch.KeyValueCache(2, 2, 9, 32, columns_of_values=16, k_scale=0.02, v_scale=0.03)
        cache.append(key[:, :, :2].contiguous(), value[:, :, :2].contiguous())
        caches, lengths = [x.clone() for x in (cache.keys, cache.values)], cache.lengths.clone()
        cache.append(key, value)
        run = append_programs.get_append("bf16", 2, (32, 16), "e4m3", "sm_90a")
        run(key, value, *cache._inverses, lengths, *caches)
        self.assertTrue(torch.equal(lengths, cache.lengths))
        for found, wanted in zip(caches, (cache.keys, cache.values)):
            self.compare(found, wanted)


if __name__ == "__main__":
    unittest.main()
