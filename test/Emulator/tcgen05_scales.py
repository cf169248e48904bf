# RUN: env FP8_EMULATOR_ARCH=100 FP8_EMULATOR_CHECK=all FP8_TEST_ASSEMBLE=1 %python %s

"""tcgen05.mma with factors of blocks, and the bits of its sums against the rule once more in fractions."""

import unittest
from fractions import Fraction

import ml_dtypes
import numpy as np

from blackwell import Tile, descriptor, execute, lay
from emulator import Device

device = Device()
rng = np.random.default_rng(0)
TYPES = {"e4m3": (4, 3, 0), "e5m2": (5, 2, 1), "e2m3": (2, 3, 3), "e3m2": (3, 2, 4), "e2m1": (2, 1, 5),
         "f16": (5, 10, 0), "bf16": (8, 7, 1)}


def atoms(factors):
    """128 rows by 4 factors are 512 bytes; those along K come first. (rows, factors) bytes, as many as fill atoms."""
    rows, count = factors.shape
    out = np.zeros((-(-rows // 128), -(-count // 4), 32, 4, 4), np.uint8)
    row, k = np.indices(factors.shape)
    out[row // 128, k // 4, row % 32, row // 32 % 4, k % 4] = factors
    return out.reshape(-1, 512)


def copies(register, offset, count, column):
    """To tensor memory, four columns an atom."""
    lines = ""
    for i in range(count):
        lines += descriptor(register, offset + 512 * i, 8 << 32 | 1 << 46)
        lines += f"add.s32 %r9, %r1, {column + 4 * i};\ntcgen05.cp.cta_group::GROUP.32x128b.warpx4 [%r9], {register};\n"
    return lines


class Scales(unittest.TestCase):
    def multiply(self, kind, vector, factor_type, a_type="e4m3", b_type="e4m3", m=128, n=128, steps=4, group=1):
        """Values and factors whose sums are exact; all factors of `steps` instructions are copied first."""
        four, stacked = kind != "mxf8f6f4", group == 2 and m == 128
        k, each = (64, {"2X": 2, "4X": 4}[vector]) if four else (32, 1)
        values = np.array([-3, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3])
        a, b = rng.choice(values, (m, k * steps)), rng.choice(values, (n, k * steps))

        def encode(x, name):
            dtype = {"e2m1": ml_dtypes.float4_e2m1fn, "e4m3": ml_dtypes.float8_e4m3fn,
                     "e5m2": ml_dtypes.float8_e5m2}[name]
            codes = x.astype(dtype).view(np.uint8)
            return codes[:, ::2] | codes[:, 1::2] << 4 if four else codes

        # Powers of two near 1; of ue4m3 other numbers, too.
        def factors(rows):
            if factor_type == "ue8m0":
                codes = rng.integers(125, 130, (rows, each * steps)).astype(np.uint8)
                return codes, 2.0 ** (codes.astype(np.float64) - 127)
            x = rng.choice(np.array([0.5, 0.75, 1, 1.25, 2]), (rows, each * steps)).astype(ml_dtypes.float8_e4m3fn)
            return x.view(np.uint8), x.astype(np.float64)

        (codes_a, fa), (codes_b, fb) = factors(m), factors(n)
        repeat = k // each
        expected = (a * np.repeat(fa, repeat, 1)) @ (b * np.repeat(fb, repeat, 1)).T
        images = []
        for block in range(group):
            rows = slice(block * m // group, (block + 1) * m // group)
            columns = slice(block * n // group, (block + 1) * n // group)
            tiles = [Tile(encode(a[rows], a_type), 128), Tile(encode(b[columns], b_type), 128)]
            # A block's rows of A, all columns of B.
            parts = [atoms(codes_a[rows]), atoms(codes_b)]
            # 64 rows of D have the columns' second half in the lower half of the lanes, and so are its factors.
            if stacked:
                halves = [atoms(half) for half in np.split(codes_b, 2)]
                parts[1] = np.stack(halves, 1).reshape(-1, 512)
            image, offsets = lay(tiles + parts)
            images.append(image)
        count_a, count_b = len(parts[0]), len(parts[1])
        along = -(-each * steps // 4)  # atoms along K
        base_a, base_b = 256, 256 + 4 * count_a
        # Atoms along K come first in memory, here those of 128 rows.
        work = copies("%d10", offsets[2], count_a, base_a) + copies("%d10", offsets[3], count_b, base_b)
        if count_b > along:  # two atoms of columns beside each other
            work = copies("%d10", offsets[2], count_a, base_a)
            for part in range(count_b // along):
                for i in range(along):
                    work += copies("%d10", offsets[3] + 512 * (part * along + i), 1,
                                   base_b + 4 * (i * (count_b // along) + part))
        block_columns = 4 * (count_b // along)
        if stacked:
            block_columns, work = 4, copies("%d10", offsets[2], count_a, base_a)
            for i in range(along):
                work += descriptor("%d10", offsets[3] + 1024 * i, 8 << 32 | 1 << 46)
                work += f"add.s32 %r9, %r1, {base_b + 4 * i};\n" \
                        "tcgen05.cp.cta_group::2.64x128b.warpx2::01_23 [%r9], %d10;\n"
        for step in range(steps):
            first = step * each
            id_, atom = first % 4, first // 4
            number = (1 if four else TYPES[a_type][2]) << 7 | (1 if four else TYPES[b_type][2]) << 10 | id_ << 4 | \
                id_ << 29 | (factor_type == "ue8m0") << 23 | n >> 3 << 17 | m >> 7 << 27
            work += tiles[0].descriptor("%d8", offsets[0], step) + tiles[1].descriptor("%d9", offsets[1], step)
            scale = {"1X": "", "2X": ".block32", "4X": ".block16"}[vector]
            work += f"add.s32 %r10, %r1, {base_a + 4 * atom};\nadd.s32 %r11, %r1, {base_b + block_columns * atom};\n" \
                    f"setp.ne.u32 %p4, {step}, 0;\n" \
                    f"tcgen05.mma.cta_group::GROUP.kind::{kind}.block_scale{scale} [%r1], %d8, %d9, {number}, " \
                    f"[%r10], [%r11], %p4;\n"
        got = execute(device, work.replace("GROUP", str(group)), images, np.zeros((group, 128, 512), np.uint32), group)
        for block in range(group):
            own = expected[block * m // group:(block + 1) * m // group]
            if group == 2 and m == 128:
                result = np.concatenate([got[block, :64, :n // 2], got[block, 64:, :n // 2]], 1)
            else:
                result = got[block, :, :n]
            np.testing.assert_array_equal(result.view(np.float32), own)

    def test_mxf8f6f4(self):
        self.multiply("mxf8f6f4", "1X", "ue8m0")
        self.multiply("mxf8f6f4", "1X", "ue8m0", "e5m2", "e4m3", n=256, steps=8)
        self.multiply("mxf8f6f4", "1X", "ue8m0", n=64)

    def test_mxf4(self):
        self.multiply("mxf4", "2X", "ue8m0", "e2m1", "e2m1")
        self.multiply("mxf4nvf4", "2X", "ue8m0", "e2m1", "e2m1", n=256)

    def test_mxf4nvf4(self):
        self.multiply("mxf4nvf4", "4X", "ue4m3", "e2m1", "e2m1")
        self.multiply("mxf4nvf4", "4X", "ue8m0", "e2m1", "e2m1", n=32, steps=2)

    def test_pairs(self):
        self.multiply("mxf8f6f4", "1X", "ue8m0", m=256, n=256, group=2)
        self.multiply("mxf4nvf4", "4X", "ue4m3", "e2m1", "e2m1", m=256, n=128, group=2)
        self.multiply("mxf8f6f4", "1X", "ue8m0", m=128, n=128, steps=8, group=2)
        self.multiply("mxf4nvf4", "4X", "ue4m3", "e2m1", "e2m1", m=128, n=256, group=2)


# ----------------------------------------------------------------------------------------------------------------------
# Bits
# ----------------------------------------------------------------------------------------------------------------------


def decode(code, ebits, mbits, top):
    """Significand and exponent, or a float if it is not finite. top: "ieee", "nan" or "": what the last codes are."""
    field, mantissa = code >> mbits & (1 << ebits) - 1, code & (1 << mbits) - 1
    sign = -1 if code >> ebits + mbits & 1 else 1
    if top and field == (1 << ebits) - 1 and (top == "ieee" or mantissa == (1 << mbits) - 1):
        return sign * float("inf") if top == "ieee" and mantissa == 0 else float("nan")
    bias = (1 << ebits - 1) - 1
    return sign * Fraction(mantissa + ((field > 0) << mbits), 1 << mbits), max(field, 1) - bias


def toward_zero(x):
    return x.numerator // x.denominator if x >= 0 else -(-x.numerator // x.denominator)


def finish(terms, infinite, fraction, lowest):
    """Terms are (significand, exponent, whether it counts for the largest)."""
    if infinite:
        total = np.float32(sum(infinite))
        return 0x7FFFFFFF if np.isnan(total) else int(total.view(np.uint32))
    reference = max([lowest] + [e for _, e, counts in terms if counts])
    total = sum(toward_zero(s * Fraction(2) ** (fraction + e - reference)) for s, e, _ in terms)
    value = total * Fraction(2) ** (reference - fraction)
    exponent = -126
    while abs(value) >= Fraction(2) ** (exponent + 1):
        exponent += 1
    if exponent > 127:
        return 0x7F800000 if value > 0 else 0xFF800000
    value = toward_zero(value / Fraction(2) ** (exponent - 23)) * Fraction(2) ** (exponent - 23)
    return int(np.float32(float(value)).view(np.uint32)) if value else 0


TOPS = {"e4m3": "nan", "e5m2": "ieee", "f16": "ieee", "bf16": "ieee"}


def plain(c, a, b, a_type, b_type, factors=()):
    terms, infinite = [], []
    shift = sum(f - 127 for f in factors)
    for x, y in zip(a, b):
        x, y = (decode(int(v), *TYPES[t][:2], TOPS.get(t, "")) for v, t in ((x, a_type), (y, b_type)))
        if isinstance(x, float) or isinstance(y, float):
            x, y = (float(v[0]) if not isinstance(v, float) else v for v in (x, y))
            infinite.append(x * y)
        else:
            terms.append((x[0] * y[0], x[1] + y[1] + shift, bool(x[0] * y[0])))
    c = decode(int(c), 8, 23, "ieee")
    infinite += [c] if isinstance(c, float) else []
    terms += [(*c, bool(c[0]))] if not isinstance(c, float) else []
    infinite += [float("nan")] if 255 in factors else []
    return finish(terms, infinite, 25, -133)


def fours(c, a, b, factors_a, factors_b, factor_type):
    terms, infinite = [], []
    for g in range(4):
        x, y = ([decode(int(v), 2, 1, "") for v in side[16 * g:16 * g + 16]] for side in (a, b))
        products = [p[0] * q[0] * Fraction(2) ** (p[1] + q[1]) for p, q in zip(x, y)]
        i = g * len(factors_a) // 4
        if factor_type == "ue8m0":
            scales = [float("nan") if f[i] == 255 else (Fraction(1), int(f[i]) - 127) for f in (factors_a, factors_b)]
        else:
            scales = [decode(int(f[i]) & 127, 4, 3, "nan") for f in (factors_a, factors_b)]
        if any(isinstance(s, float) for s in scales):
            infinite.append(float("nan"))
            continue
        (sa, ea), (sb, eb) = scales
        terms.append((sum(products) * sa * sb, ea + eb, any(products) and bool(sa * sb)))
    c = decode(int(c), 8, 23, "ieee")
    infinite += [c] if isinstance(c, float) else []
    terms += [(*c, bool(c[0]))] if not isinstance(c, float) else []
    return finish(terms, infinite, 35, -139)


class Bits(unittest.TestCase):
    N = 32

    def codes(self, shape, ebits, mbits, how):
        codes = rng.integers(0, 1 << 1 + ebits + mbits, shape)
        if how == "near":
            bias = (1 << ebits - 1) - 1
            field = np.clip(bias + rng.integers(-3, 4, shape), 0, 2 * bias)
            codes = codes & ~((1 << ebits) - 1 << mbits) | field << mbits
        return np.where(rng.random(shape) < 0.1, 0, codes)

    def compare(self, kind, a_type, b_type, how, factor_type=None, each=0):
        n, four, wide = self.N, kind.startswith("mxf4"), a_type in ("f16", "bf16")
        k = 64 if four else 16 if wide else 32
        a, b = (self.codes((rows, k), *TYPES[t][:2], how) for rows, t in ((128, a_type), (n, b_type)))
        c = self.codes((128, 64), 8, 23, how).astype(np.uint32)
        raw = [x.astype(np.uint16).view(np.uint8) if wide else
               (x[:, ::2] | x[:, 1::2] << 4).astype(np.uint8) if four else x.astype(np.uint8) for x in (a, b)]
        tiles = [Tile(raw[0], 32), Tile(raw[1], 32)]
        number = 1 << 4 | TYPES[a_type][2] << 7 | TYPES[b_type][2] << 10 | n >> 3 << 17 | 128 >> 4 << 24
        work, parts, suffix, operands = "", [], "", ""
        if factor_type:
            low, high = (110, 145) if factor_type == "ue8m0" and how == "near" else (0, 256)
            factors = [rng.integers(low, high, (rows, 4)).astype(np.uint8) for rows in (128, n)]
            parts = [atoms(x) for x in factors]
            number = (1 if four else TYPES[a_type][2]) << 7 | (1 if four else TYPES[b_type][2]) << 10 | n >> 3 << 17 | \
                (factor_type == "ue8m0") << 23 | 1 << 27
            suffix = ".block_scale" + ({2: ".block32", 4: ".block16"}[each] if four else "")
            operands = "[%r10], [%r11], "
        image, offsets = lay(tiles + parts)
        if factor_type:
            work = copies("%d10", offsets[2], 1, 32) + copies("%d10", offsets[3], 1, 36)
            work = work.replace("GROUP", "1") + "add.s32 %r10, %r1, 32;\nadd.s32 %r11, %r1, 36;\n"
        work += tiles[0].descriptor("%d8", offsets[0]) + tiles[1].descriptor("%d9", offsets[1])
        work += f"setp.ne.u32 %p4, 1, 0;\ntcgen05.mma.cta_group::1.kind::{kind}{suffix} [%r1], %d8, %d9, {number}, " \
                f"{operands}%p4;\n"
        got = execute(device, work, [image], c[None])[0]
        rows = range(3, 128, 9)
        for m in rows:
            for j in range(n):
                if four:
                    word = fours(c[m, j], a[m], b[j], factors[0][m, :each], factors[1][j, :each], factor_type)
                else:
                    word = plain(c[m, j], a[m], b[j], a_type, b_type,
                                 (int(factors[0][m, 0]), int(factors[1][j, 0])) if factor_type else ())
                self.assertEqual(int(got[m, j]), word, (kind, m, j))

    def test_plain(self):
        for kind, a, b in [("f8f6f4", "e4m3", "e5m2"), ("f8f6f4", "e5m2", "e5m2"), ("f16", "f16", "f16"),
                           ("f16", "bf16", "bf16")]:
            for how in ("any", "near"):
                with self.subTest(kind=kind, a=a, how=how):
                    self.compare(kind, a, b, how)

    def test_scaled(self):
        for how in ("any", "near"):
            self.compare("mxf8f6f4", "e4m3", "e5m2", how, "ue8m0")
            self.compare("mxf4", "e2m1", "e2m1", how, "ue8m0", 2)
            self.compare("mxf4nvf4", "e2m1", "e2m1", how, "ue4m3", 4)


if __name__ == "__main__":
    unittest.main()
