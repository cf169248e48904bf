# RUN: %python %s
# RUN: env FP8_EMULATOR_ARCH=89 %python %s
# RUN: env FP8_EMULATOR_ARCH=120 %python %s

"""mma.sync on three devices: words that an H200 gave, and the sums of Ada and of sm_120, as they are stated, once more in
fractions."""

import hashlib
import os
import unittest

import numpy as np

from emulator import Buffer, Device, DriverError, kernel
from fractions_of_sums import step

device = Device()
ARCH = os.environ.get("FP8_EMULATOR_ARCH", "90")
ROWS = COLUMNS = 512
FORMATS = {"e4m3": (4, 3, 7), "e5m2": (5, 2, 15), "bf16": (8, 7, 127), "f16": (5, 10, 15), "f32": (8, 23, 127)}
HOW = ["near", "wide", "large", "none", "finite", "any"]
# The first 16 digits of the SHA-256 of 512 x 512 words of single instructions on an H200, for each HOW; the number is
# the first one's seed.
H200 = {
    ("e4m3", "e4m3", 1): "7113615608f409f6 dc0aa7a7ad12d12f a0d4dc6271d55f3a 922b3ad5bc603201 519c6f322246e5fd 89319fd2191d4573",
    ("e4m3", "e5m2", 13): "af4b876c5a54ad4d c9b96b8f9d77b872 f769632a0388c573 a7c27740dc14141c 0086eebc5ae2dc20 774b8a9e904d8e36",
    ("e5m2", "e4m3", 25): "d9abc6fc96ad1f6a 55c94961f8d20fe1 df23e86229715c46 fd2d3b46c43e04a6 19f262898821d2c9 5347869bef85b91f",
    ("e5m2", "e5m2", 37): "58494f1174c7ec44 6ee25f552448480f 5ad133b6022b1d4e 468704490b7d053a edfbcee5f5f90db1 9f2c496eb5738b4e",
    ("bf16", "bf16", 49): "3e264aa8b586fb28 c282e3d2893cb75c aa58130ee81e374a 748766e16d94f098 a903a89171c1ed92 ffb95eddac4928fd",
    ("f16", "f16", 55): "37dcccaad9f9e6db 6687612a0b21136c 6a8f9fb8169b0324 47cc3e60b3b94422 8b1c8c79440af8df c20f1d6724392bc3",
}


def draw(rng, how, shape, name):
    """Codes: any; finite; or of exponents around 1."""
    ebits, mbits, bias = FORMATS[name]
    words = rng.integers(0, 1 << 1 + ebits + mbits, shape)
    if how == "any":
        return words
    top = (1 << ebits) - 1
    field = words >> mbits & top
    if how == "finite":
        field = np.where(field == top, top - 1, field)
    else:
        spread = 1 if how == "near" else 3 if ebits < 8 else 12
        field = np.clip(bias - 1 + rng.integers(-spread, spread + 1, shape), 0, top - 1)
    return words & ~(top << mbits) | field << mbits


def draw_operands(seed, how, type_a, type_b):
    """A and B with 32 bytes of K, and the sums that they are added to."""
    rng = np.random.Generator(np.random.Philox(seed))
    dtype = np.uint8 if FORMATS[type_a][1] < 4 else np.uint16
    k = 32 // np.dtype(dtype).itemsize
    of_codes = "wide" if how in ("none", "large") else how
    a = draw(rng, of_codes, (ROWS, k), type_a).astype(dtype)
    b = draw(rng, of_codes, (COLUMNS, k), type_b).astype(dtype)
    if how == "none":
        return a, b, np.zeros((ROWS, COLUMNS), np.uint32)
    c = draw(rng, {"finite": "wide"}.get(how, how), (ROWS, COLUMNS), "f32")
    return a, b, (c + (6 << 23 if how == "large" else 0)).astype(np.uint32)


def load(type_a, type_b, target="sm_89"):
    k = 16 if FORMATS[type_a][1] > 4 else 32
    # A lane's row and column of 16 by 8, its place in rows of 32 bytes, and its first sum's place.
    text = kernel(f"""
        mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ctaid.y; shr.u32 %r2, %t, 2; and.b32 %r3, %t, 3;
        mad.lo.u32 %r4, %r0, 16, %r2; mul.lo.u32 %r5, %r4, 32; mad.lo.u32 %r5, %r3, 4, %r5;
        cvt.u64.u32 %d0, %r5; add.s64 %d0, %a0, %d0;
        ld.global.b32 %r10, [%d0]; ld.global.b32 %r11, [%d0+256]; ld.global.b32 %r12, [%d0+16]; ld.global.b32 %r13, [%d0+272];
        mad.lo.u32 %r5, %r1, 8, %r2; mul.lo.u32 %r5, %r5, 32; mad.lo.u32 %r5, %r3, 4, %r5;
        cvt.u64.u32 %d0, %r5; add.s64 %d0, %a1, %d0; ld.global.b32 %r14, [%d0]; ld.global.b32 %r15, [%d0+16];
        mul.lo.u32 %r5, %r4, {4 * COLUMNS}; mad.lo.u32 %r5, %r1, 32, %r5; mad.lo.u32 %r5, %r3, 8, %r5;
        cvt.u64.u32 %d0, %r5; add.s64 %d1, %a2, %d0; add.s64 %d2, %a3, %d0;
        ld.global.v2.b32 {{%r16, %r17}}, [%d1]; ld.global.v2.b32 {{%r18, %r19}}, [%d1+{32 * COLUMNS}];
        mma.sync.aligned.m16n8k{k}.row.col.f32.{type_a}.{type_b}.f32
            {{%r20, %r21, %r22, %r23}}, {{%r10, %r11, %r12, %r13}}, {{%r14, %r15}}, {{%r16, %r17, %r18, %r19}};
        st.global.v2.b32 [%d2], {{%r20, %r21}}; st.global.v2.b32 [%d2+{32 * COLUMNS}], {{%r22, %r23}};""",
                  params=4, registers=24)
    return device.load(text.replace("sm_90a", target))


def multiply(a, b, c, type_a, type_b):
    out = Buffer(device, np.zeros_like(c))
    device.launch(load(type_a, type_b), [Buffer(device, x) for x in (a, b, c)] + [out],
                  grid=(ROWS // 16, COLUMNS // 8, 1))
    return out.array


class Words(unittest.TestCase):
    @unittest.skipUnless(ARCH == "90", "Hopper's words")
    def test_of_an_h200(self):
        for (type_a, type_b, seed), hashes in H200.items():
            for i, expected in enumerate(hashes.split()):
                with self.subTest(a=type_a, b=type_b, how=HOW[i]):
                    a, b, c = draw_operands(seed + i, HOW[i], type_a, type_b)
                    got = hashlib.sha256(multiply(a, b, c, type_a, type_b).tobytes()).hexdigest()
                    self.assertEqual(got[:16], expected)

    @unittest.skipIf(ARCH == "90", "others' sums")
    def test_as_stated(self):
        """Ada adds 16 products at a time of 8-bit types, and sm_120 all with 25 bits; of others both add all, as an H200
        does, whose words are compared above."""
        for (type_a, type_b, seed) in H200:
            for i, how in enumerate(HOW):
                with self.subTest(a=type_a, b=type_b, how=how):
                    a, b, c = draw_operands(seed + i, how, type_a, type_b)
                    got = multiply(a, b, c, type_a, type_b)
                    for m, n in zip(range(0, ROWS, 37), range(5, COLUMNS, 29)):
                        word = int(c[m, n])
                        count = 16 if ARCH == "89" else 32
                        for k in range(0, a.shape[1], count):
                            word = step(word, a[m, k:k + count], b[n, k:k + count], type_a, type_b, wide=ARCH == "120")
                        self.assertEqual(int(got[m, n]), word, (m, n))


class Refused(unittest.TestCase):
    def test_chips(self):
        with self.assertRaisesRegex(DriverError, "expected a module for sm_89 or later, but got one for sm_80"):
            load("e4m3", "e4m3", "sm_80")
        load("bf16", "bf16", "sm_80")

    def test_types(self):
        with self.assertRaisesRegex(DriverError, "expected types that go together"):
            load("e4m3", "bf16")


if __name__ == "__main__":
    unittest.main()
