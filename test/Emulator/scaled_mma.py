# RUN: env FP8_EMULATOR_ARCH=120 %python %s
# RUN: env FP8_EMULATOR_ARCH=121 %python %s

"""mma.sync with factors of blocks, on sm_120a and sm_121a: which lane's word and which byte of it is a row's factor, against
exact sums; what the instructions are not is refused."""

import itertools
import os
import unittest

import numpy as np

from emulator import Buffer, Device, DriverError, kernel

device = Device()
CHIP = f"sm_{os.environ['FP8_EMULATOR_ARCH']}a"
KINDS = {"mxf8f6f4": ("m16n8k32", "1X", "ue8m0"), "mxf4": ("m16n8k64", "2X", "ue8m0"),
         "mxf4nvf4": ("m16n8k64", "4X", "ue4m3"), "mxf4nvf4 of 32": ("m16n8k64", "2X", "ue8m0")}
E2M1 = np.array([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6])


def load(kind, byte=(0, 0), thread=(0, 0), types=None, target=CHIP, shape=None):
    own_shape, vector, scale = KINDS[kind]
    types = types or ("e2m1" if "f4" in kind and "f8" not in kind else "e4m3",) * 2
    # A lane's words: four of A, two of B, a factor of each; and four sums.
    text = kernel(f"""
        mul.lo.u32 %r0, %t, 32; cvt.u64.u32 %d0, %r0; add.s64 %d0, %a0, %d0; mul.lo.u32 %r1, %t, 16;
        cvt.u64.u32 %d1, %r1; add.s64 %d1, %a1, %d1;
        ld.global.v4.b32 {{%r2, %r3, %r4, %r5}}, [%d0]; ld.global.v4.b32 {{%r6, %r7, %r8, %r9}}, [%d0+16];
        ld.global.v4.b32 {{%r10, %r11, %r12, %r13}}, [%d1];
        mma.sync.aligned.{shape or own_shape}.row.col.kind::{kind.split()[0]}.block_scale.scale_vec::{vector}.f32.{types[0]}.{types[1]}.f32.{scale}
            {{%r14, %r15, %r16, %r17}}, {{%r2, %r3, %r4, %r5}}, {{%r6, %r7}}, {{%r10, %r11, %r12, %r13}},
            %r8, {{{byte[0]}, {thread[0]}}}, %r9, {{{byte[1]}, {thread[1]}}};
        st.global.v4.b32 [%d1], {{%r14, %r15, %r16, %r17}};""", params=2, registers=18)
    return device.load(text.replace("sm_90a", target).replace(".version 8.0", ".version 8.8"))


def decode(code, kind):
    """Numbers of codes, of E2M1 two a byte."""
    if "mxf8" in kind:  # E4M3
        field, mantissa = code >> 3 & 15, code & 7
        value = np.where(field > 0, (8 + mantissa) * 2. ** (field - 10.), mantissa * 2. ** -9)
        return np.where(code & 128, -value, value)
    return E2M1[np.stack([code & 15, code >> 4], -1).reshape(code.shape[0], -1)]


class Products(unittest.TestCase):
    def check(self, kind, byte, thread, rng):
        words = rng.integers(0, 1 << 32, (32, 8), dtype=np.uint32)
        if "mxf8" in kind:  # Numbers around 1, whose sums are exact.
            codes = rng.integers(0, 2, (32, 24), dtype=np.uint8) << 7 | 6 << 3 | rng.integers(0, 16, (32, 24), dtype=np.uint8)
            words[:, :6] = codes.view(np.uint32)
        bits = 8 if "mxf8" in kind else 4
        is_e8m0 = KINDS[kind][2] == "ue8m0"
        low = 126 if is_e8m0 else 0x34
        words[:, 6:] = rng.integers(low, low + 4, (32, 8), dtype=np.uint8).view(np.uint32)
        sums = rng.integers(-8, 8, (32, 4)).astype(np.float32)
        out = Buffer(device, sums.view(np.uint32).copy())
        device.launch(load(kind, byte, thread), [Buffer(device, words), out], grid=(1, 1, 1))
        got = out.array.view(np.float32)
        lanes, b = np.arange(32), words.view(np.uint8).reshape(32, 8, 4)
        a_rows, b_cols = np.zeros((16, 32), np.uint8), np.zeros((8, 32), np.uint8)
        for lane, half in itertools.product(lanes, range(2)):
            k = 16 * half + lane % 4 * 4
            a_rows[lane // 4, k:k + 4], a_rows[lane // 4 + 8, k:k + 4] = b[lane, 2 * half], b[lane, 2 * half + 1]
            b_cols[lane // 4, k:k + 4] = b[lane, 4 + half]
        count = int(KINDS[kind][1][0])
        factors = lambda lane, word, first: b[lane, word, first:first + count]
        scale = (lambda code: 2. ** (code.astype(float) - 127)) if is_e8m0 else (lambda code: decode(code, "mxf8"))
        sa = np.stack([scale(factors(m % 8 * 4 + 2 * thread[0] + m // 8, 6, byte[0])) for m in range(16)])
        sb = np.stack([scale(factors(4 * n + thread[1], 7, byte[1])) for n in range(8)])
        group = 256 // bits // count
        x = decode(a_rows, kind) * np.repeat(sa, group, 1)
        y = decode(b_cols, kind) * np.repeat(sb, group, 1)
        expected = x @ y.T
        for lane, i in itertools.product(lanes, range(4)):
            m, n = lane // 4 + i // 2 * 8, lane % 4 * 2 + i % 2
            self.assertAlmostEqual(got[lane, i], sums[lane, i] + expected[m, n], delta=1e-6 * np.abs(x[m] * y[n]).sum(),
                                   msg=(kind, byte, thread, m, n))

    def test_factors(self):
        rng = np.random.default_rng(0)
        for kind in KINDS:
            count = int(KINDS[kind][1][0])
            for byte, thread in itertools.product(itertools.product(range(0, 4, count), repeat=2),
                                                  itertools.product(range(2), range(4))):
                self.check(kind, byte, thread, rng)


class Refused(unittest.TestCase):
    def refuse(self, message, *args, **others):
        with self.assertRaisesRegex(DriverError, message):
            load(*args, **others)

    def test_modules(self):
        self.refuse("expected a module for sm_120a, but got one for sm_89", "mxf8f6f4", target="sm_89")

    def test_forms(self):
        self.refuse("expected a byte that factors begin with, but got 1", "mxf4", byte=(1, 0))
        self.refuse("expected a byte that factors begin with, but got 2", "mxf4nvf4", byte=(2, 0))
        self.refuse("expected a thread from 0 to 1, but got 2", "mxf8f6f4", thread=(2, 0))
        self.refuse("expected a thread from 0 to 3, but got 4", "mxf8f6f4", thread=(0, 4))
        self.refuse("expected a shape m16n8k64", "mxf4", shape="m16n8k32")
        self.refuse("expected e2m1, but got e4m3", "mxf4nvf4", types=("e2m1", "e4m3"))
        self.refuse("expected types of 8 bits", "mxf8f6f4", types=("e4m3", "bf16"))


if __name__ == "__main__":
    unittest.main()
