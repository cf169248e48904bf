# RUN: env FP8_EMULATOR_ARCH=100 FP8_EMULATOR_CHECK=all FP8_TEST_ASSEMBLE=1 %python %s

"""tcgen05.mma of every kind, with operands in every layout, against plain products of small integers."""

import unittest

import ml_dtypes
import numpy as np

from blackwell import Tile, execute, lay
from emulator import Device

device = Device()
rng = np.random.default_rng(0)
# The number of a type in the instruction descriptor, by kind; bytes.
TYPES = {
    "f16": (np.float16, 0), "bf16": (ml_dtypes.bfloat16, 1), "tf32": (np.float32, 2),
    "e4m3": (ml_dtypes.float8_e4m3fn, 0), "e5m2": (ml_dtypes.float8_e5m2, 1), "e2m3": (ml_dtypes.float6_e2m3fn, 3),
    "e3m2": (ml_dtypes.float6_e3m2fn, 4), "e2m1": (ml_dtypes.float4_e2m1fn, 5),
}


def draw(shape, name, side=False):
    """Numbers that every type has, and their bytes: of FP4 and FP6 16 elements, along K or beside each other, in 16."""
    values = rng.choice(np.array([-4, -3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3, 4]), shape)
    codes = values.astype(TYPES[name][0])
    assert (codes.astype(np.float64) == values).all()
    raw = codes.view(np.uint8).reshape(shape[0], -1)
    bits = {"e2m1": 4, "e2m3": 6, "e3m2": 6}.get(name, 8)
    return values, pad(raw.T, bits).T if side else pad(raw, bits)


def pad(codes, bits):
    if bits == 8:
        return codes
    units = codes.reshape(codes.shape[0], -1, 16)
    all_bits = (units[..., None] >> np.arange(bits) & 1).reshape(*units.shape[:2], 16 * bits)
    packed = np.packbits(all_bits, axis=-1, bitorder="little")
    return np.concatenate([packed, np.zeros((*packed.shape[:2], 16 - 2 * bits), np.uint8)], -1).reshape(codes.shape)


def word(kind, a, b, m, n, sides=(0, 0), half=False, signs=0):
    """The instruction descriptor."""
    return (0 if half else 1 << 4) | TYPES[a][1] << 7 | TYPES[b][1] << 10 | signs << 13 | sides[0] << 15 | \
        sides[1] << 16 | n >> 3 << 17 | m >> 4 << 24


class Layouts(unittest.TestCase):
    def multiply(self, kind, a_type, b_type, m=128, n=64, steps=2, swizzles=(128, 128), sides=(0, 0), group=1,
                 half=False, signs=0, fresh=True, scale="", skip=None):
        bytes_ = np.dtype(TYPES[a_type][0]).itemsize
        k = 32 // bytes_ * steps
        (a, raw_a), (b, raw_b) = draw((m, k), a_type, sides[0]), draw((n, k), b_type, sides[1])
        images, tiles = [], None
        for block in range(group):
            rows = slice(block * m // group, (block + 1) * m // group)
            columns = slice(block * n // group, (block + 1) * n // group)
            tiles = [Tile(raw_a[rows], swizzles[0], sides[0] * bytes_), Tile(raw_b[columns], swizzles[1],
                                                                            sides[1] * bytes_)]
            image, offsets = lay(tiles)
            images.append(image)
        number = word(kind, a_type, b_type, m, n, sides, half, signs)
        lanes, work = "", ""
        if skip is not None:
            registers = [f"%v{i}" for i in range(len(skip))]
            lanes = f"{{{', '.join(registers)}}}, "
            work = "".join(f"mov.b32 {register}, {lane};\n" for register, lane in zip(registers, skip))
        for step in range(steps):
            work += tiles[0].descriptor("%d8", offsets[0], step) + tiles[1].descriptor("%d9", offsets[1], step)
            work += f"setp.ne.u32 %p4, {0 if fresh and step == 0 else 1}, 0;\n"
            work += f"tcgen05.mma.cta_group::{group}.kind::{kind} [%r1], %d8, %d9, {number}, {lanes}%p4{scale};\n"
        columns = max(32, 1 << (n - 1).bit_length())
        before = rng.integers(-8, 8, (group, 128, columns)).astype(np.float32)
        words = before.astype(np.float16).view(np.uint16).astype(np.uint32) if half else before.view(np.uint32)
        got = execute(device, work, images, words, group)
        expected = (a @ b.T) * (-1 if signs in (1, 2) else 1)
        for block in range(group):
            at = [(block, *self.place(m, n, row, group)) for row in range(m // group)]
            for row, (_, lane, split) in enumerate(at):
                for half_, (first, end) in enumerate(split):
                    there = lane + 64 * half_
                    result = got[block, there, :end - first]
                    result = result.astype(np.uint16).view(np.float16) if half else result.view(np.float32)
                    old = before[block, there, :end - first]
                    wanted = expected[block * m // group + row, first:end]
                    if skip is not None and skip[4 * block + there // 32] >> there % 32 & 1:
                        wanted = old
                    elif not fresh:
                        wanted = wanted + (old * 0.25 if scale else old)
                    np.testing.assert_array_equal(result.astype(np.float64), wanted)
        return got, words

    def place(self, m, n, row, group):
        """A row's lane in its block, and the columns that are there and, 64 lanes below, if any."""
        if group == 2 and m == 128:
            return row, [(0, n // 2), (n // 2, n)]
        return (row if m // group == 128 else row % 16 + row // 16 * 32), [(0, n)]

    def test_kinds(self):
        for kind, a, b in [("f16", "f16", "f16"), ("f16", "bf16", "bf16"), ("tf32", "tf32", "tf32"),
                           ("f8f6f4", "e4m3", "e4m3"), ("f8f6f4", "e5m2", "e4m3"), ("f8f6f4", "e4m3", "e5m2"),
                           ("f8f6f4", "e2m1", "e4m3"), ("f8f6f4", "e3m2", "e2m3"), ("f8f6f4", "e2m1", "e2m1")]:
            with self.subTest(kind=kind, a=a, b=b):
                self.multiply(kind, a, b)

    def test_shapes(self):
        for m, n in [(64, 8), (64, 256), (128, 16), (128, 8), (128, 208), (128, 256)]:
            with self.subTest(m=m, n=n):
                self.multiply("f8f6f4", "e4m3", "e4m3", m=m, n=n)

    def test_pairs(self):
        for m, n in [(128, 32), (128, 256), (256, 16), (256, 256)]:
            for kind, type_ in [("f8f6f4", "e4m3"), ("f16", "bf16")]:
                with self.subTest(m=m, n=n, kind=kind):
                    self.multiply(kind, type_, type_, m=m, n=n, group=2)

    def test_swizzles_along_k(self):
        for kind, type_ in [("f8f6f4", "e4m3"), ("f16", "f16"), ("tf32", "tf32")]:
            for a in (0, 32, 64, 128):
                for b in (0, 32, 64, 128):
                    with self.subTest(kind=kind, a=a, b=b):
                        self.multiply(kind, type_, type_, swizzles=(a, b), n=32, steps=5)

    def test_rows_side_by_side(self):
        for kind, type_ in [("f8f6f4", "e4m3"), ("f16", "bf16")]:
            for sides in [(1, 0), (0, 1), (1, 1)]:
                for swizzle in (0, 32, 64, 128):
                    with self.subTest(kind=kind, sides=sides, swizzle=swizzle):
                        self.multiply(kind, type_, type_, sides=sides, swizzles=(swizzle, swizzle), n=128, steps=3)
        self.multiply("f8f6f4", "e2m1", "e4m3", sides=(1, 1))
        self.multiply("f8f6f4", "e4m3", "e4m3", m=256, n=64, group=2, sides=(1, 1))

    def test_accumulators(self):
        self.multiply("f16", "f16", "f16", fresh=False)
        self.multiply("f16", "f16", "f16", half=True, fresh=False, steps=1)
        self.multiply("f8f6f4", "e5m2", "e5m2", half=True)
        self.multiply("f16", "bf16", "bf16", fresh=False, scale=", 2", steps=1)

    def test_descriptors_with_an_offset(self):
        """A register and a number, as LLVM writes it."""
        (a, raw_a), (b, raw_b) = draw((128, 64), "e4m3"), draw((32, 64), "e4m3")
        tiles = [Tile(raw_a, 64), Tile(raw_b, 64)]
        image, offsets = lay(tiles)
        work = tiles[0].descriptor("%d8", offsets[0]) + tiles[1].descriptor("%d9", offsets[1])
        for step in range(2):
            work += f"setp.ne.u32 %p4, {step}, 0;\ntcgen05.mma.cta_group::1.kind::f8f6f4 [%r1], %d8+{2 * step}, " \
                    f"%d9+{2 * step}, {word('f8f6f4', 'e4m3', 'e4m3', 128, 32)}, %p4;\n"
        got = execute(device, work, [image], np.zeros((1, 128, 32), np.uint32))
        np.testing.assert_array_equal(got[0].view(np.float32), a @ b.T)

    def test_signs(self):
        for signs in (1, 2, 3):
            self.multiply("f8f6f4", "e4m3", "e4m3", signs=signs)

    def test_lanes_that_stay(self):
        self.multiply("f8f6f4", "e4m3", "e4m3", skip=[0xffffffff, 0, 0x12345678, 1], steps=1)
        self.multiply("f8f6f4", "e4m3", "e4m3", skip=[0, 1, 2, 3, 4, 5, 6, 7], m=256, group=2, steps=1)

    def test_integers(self):
        for m, n, group in [(64, 8, 1), (128, 24, 1), (128, 256, 1), (128, 32, 2), (256, 64, 2)]:
            for signed in range(4):
                with self.subTest(m=m, n=n, signed=signed):
                    self.add_integers(m, n, group, [signed & 1, signed >> 1])

    def test_integers_at_their_limits(self):
        for saturate in (False, True):
            for signed in ([1, 1], [0, 1], [0, 0]):
                self.add_integers(128, 32, 1, signed, saturate, largest=True)

    def add_integers(self, m, n, group, signed, saturate=False, largest=False):
        """Two instructions along K onto what was there; where `largest`, products and sums of the largest size."""
        types = [np.int8 if each else np.uint8 for each in signed]
        if largest:
            a, b = (rng.choice([np.iinfo(type_).min, np.iinfo(type_).max], size).astype(type_)
                    for type_, size in zip(types, [(m, 64), (n, 64)]))
            a[:], b[:] = a[:, :1], b[:, :1]
        else:
            a, b = (rng.integers(np.iinfo(type_).min, np.iinfo(type_).max, size, type_, True)
                    for type_, size in zip(types, [(m, 64), (n, 64)]))
        columns = max(32, 1 << (n - 1).bit_length())
        limits = [-1 << 31, (1 << 31) - 1, 0] if largest else [1000, -1000]
        before = rng.choice(np.array(limits, np.int32), (group, 128, columns))
        images, tiles = [], None
        for block in range(group):
            tiles = [Tile(each.view(np.uint8)[block * each.shape[0] // group:(block + 1) * each.shape[0] // group], 64)
                     for each in (a, b)]
            image, offsets = lay(tiles)
            images.append(image)
        number = saturate << 3 | 2 << 4 | signed[0] << 7 | signed[1] << 10 | n >> 3 << 17 | m >> 4 << 24
        work = "setp.ne.u32 %p4, 1, 0;\n"
        for step in range(2):
            work += tiles[0].descriptor("%d8", offsets[0], step) + tiles[1].descriptor("%d9", offsets[1], step)
            work += f"tcgen05.mma.cta_group::{group}.kind::i8 [%r1], %d8, %d9, {number}, %p4;\n"
        got = execute(device, work, images, before.view(np.uint32), group)
        for block in range(group):
            for row in range(m // group):
                lane, split = self.place(m, n, row, group)
                for half, (first, end) in enumerate(split):
                    at = block, lane + 64 * half, slice(end - first)
                    sums = before[at].astype(np.int64)
                    for step in (slice(32), slice(32, 64)):
                        sums += a[block * m // group + row, step].astype(np.int64) @ b[first:end, step].T.astype(np.int64)
                        if saturate:
                            sums = np.clip(sums, -1 << 31, (1 << 31) - 1)
                    np.testing.assert_array_equal(got[at], sums.astype(np.uint64).astype(np.uint32))

    def test_a_in_tensor_memory(self):
        n, k = 32, 64
        for m in (64, 128):
            (a, raw_a), (b, raw_b) = draw((m, k), "e4m3"), draw((n, k), "e4m3")
            tile = Tile(raw_b, 128)
            image, (offset,) = lay([tile])
            words = np.zeros((1, 128, 64), np.uint32)
            lane = np.array([self.place(m, n, row, 1)[0] for row in range(m)])
            words[0, lane, 32:48] = raw_a.view(np.uint32)
            work = "add.s32 %r9, %r1, 32;\nadd.s32 %r10, %r1, 40;\n"
            for step in range(2):
                work += tile.descriptor("%d9", offset, step) + f"setp.ne.u32 %p4, {step}, 0;\n"
                work += f"tcgen05.mma.cta_group::1.kind::f8f6f4 [%r1], [%r{9 + step}], %d9, " \
                        f"{word('f8f6f4', 'e4m3', 'e4m3', m, n)}, %p4;\n"
            got = execute(device, work, [image], words)
            np.testing.assert_array_equal(got[0, lane, :n].view(np.float32), a @ b.T)

    def test_lanes_from_16_on(self):
        (a, raw_a), (b, raw_b) = draw((64, 32), "e4m3"), draw((32, 32), "e4m3")
        tiles = [Tile(raw_a, 32), Tile(raw_b, 32)]
        image, offsets = lay(tiles)
        work = "add.s32 %r9, %r1, 1048576;\nsetp.ne.u32 %p4, 0, 0;\n" + tiles[0].descriptor("%d8", offsets[0]) + \
            tiles[1].descriptor("%d9", offsets[1]) + \
            f"tcgen05.mma.cta_group::1.kind::f8f6f4 [%r9], %d8, %d9, {word('f8f6f4', 'e4m3', 'e4m3', 64, 32)}, %p4;\n"
        got = execute(device, work, [image], np.zeros((1, 128, 32), np.uint32))
        lanes = [16 + row % 16 + row // 16 * 32 for row in range(64)]
        np.testing.assert_array_equal(got[0, lanes].view(np.float32), a @ b.T)


if __name__ == "__main__":
    unittest.main()
