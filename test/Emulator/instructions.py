# RUN: %python %s

import unittest

import numpy as np

from emulator import Buffer, Device, DriverError, HEADER, kernel

device = Device()


def one(body, inputs, dtype=np.uint32, **options):
    """What a warp writes to out[lane], of inputs[i][lane] in %r<i>, as results in %r10."""
    loads = "\n".join(f"add.s64 %d0, %a{i + 1}, %o; ld.global.b32 %r{i}, [%d0];" for i in range(len(inputs)))
    text = kernel(f"{loads}\n{body}\nadd.s64 %d0, %a0, %o; st.global.b32 [%d0], %r10;", params=len(inputs) + 1,
                  **options)
    out = Buffer(device, np.zeros(32, dtype))
    device.launch(device.load(text), [out, *(Buffer(device, x) for x in inputs)])
    return out.array


class Arithmetic(unittest.TestCase):
    def setUp(self):
        rng = np.random.default_rng(1)
        self.a, self.b = (rng.integers(0, 1 << 32, 32, dtype=np.uint32) for _ in range(2))
        self.x, self.y = (rng.standard_normal(32).astype(np.float32) for _ in range(2))

    def test_integers(self):
        a, b = self.a, self.b
        for text, expected in {
            "add.s32 %r10, %r0, %r1;": a + b,
            "sub.s32 %r10, %r0, %r1;": a - b,
            "mul.lo.s32 %r10, %r0, %r1;": a * b,
            "mul.hi.u32 %r10, %r0, %r1;": (a.astype(np.uint64) * b >> np.uint64(32)).astype(np.uint32),
            "mad.lo.s32 %r10, %r0, %r1, 7;": a * b + np.uint32(7),
            "div.u32 %r10, %r0, %r1;": a // b,
            "rem.u32 %r10, %r0, %r1;": a % b,
            "min.s32 %r10, %r0, %r1;": np.minimum(a.view(np.int32), b.view(np.int32)).view(np.uint32),
            "shl.b32 %r10, %r0, 33;": 0 * a,
            "shr.s32 %r10, %r0, 33;": (a.view(np.int32) >> 31).view(np.uint32),
            "bfe.u32 %r10, %r0, 5, 7;": a >> np.uint32(5) & np.uint32(127),
            "bfe.s32 %r10, %r0, 5, 7;": ((a << np.uint32(20)).view(np.int32) >> 25).view(np.uint32),
            "prmt.b32 %r10, %r0, %r1, 0x7531;": a >> 8 & 0xff | (a >> 24) << 8 | (b >> 8 & 0xff) << 16 | (b >> 24) << 24,
            "lop3.b32 %r10, %r0, %r1, 0, 0x3c;": a ^ b,
        }.items():
            with self.subTest(text):
                np.testing.assert_array_equal(one(text, [a, b]), expected.astype(np.uint32))

    def test_floats(self):
        x, y = self.x, self.y
        for text, expected in {
            "add.rn.f32 %r10, %r0, %r1;": x + y,
            "mul.f32 %r10, %r0, %r1;": x * y,
            "fma.rn.f32 %r10, %r0, %r1, 0f3F800000;": (x.astype(np.float64) * y + 1).astype(np.float32),
            "max.f32 %r10, %r0, 0f7FC00000;": x,
            "abs.f32 %r10, %r0;": np.abs(x),
            "copysign.f32 %r10, %r0, %r1;": np.copysign(y, x),
            "div.rn.f32 %r10, %r0, %r1;": x / y,
        }.items():
            with self.subTest(text):
                np.testing.assert_array_equal(one(text, [x, y], np.float32), expected)

    def test_pairs_of_integers(self):
        a, b = self.a, self.b

        def halves(function, dtype):
            return function(a.view(dtype), b.view(dtype)).astype(dtype).view(np.uint32)

        for text, expected in {
            "min.u16x2 %r10, %r0, %r1;": halves(np.minimum, np.uint16),
            "max.u16x2 %r10, %r0, %r1;": halves(np.maximum, np.uint16),
            "min.s16x2 %r10, %r0, %r1;": halves(np.minimum, np.int16),
            "max.s16x2 %r10, %r0, %r1;": halves(np.maximum, np.int16),
            "max.relu.s16x2 %r10, %r0, %r1;": halves(lambda x, y: np.maximum(np.maximum(x, y), 0), np.int16),
            "add.s16x2 %r10, %r0, %r1;": halves(np.add, np.int16),
            "min.relu.s32 %r10, %r0, %r1;": halves(lambda x, y: np.maximum(np.minimum(x, y), 0), np.int32),
            "sad.u32 %r10, %r0, %r1, 5;": np.where(a > b, a - b, b - a) + np.uint32(5),
        }.items():
            with self.subTest(text):
                np.testing.assert_array_equal(one(text, [a, b]), expected)

    def test_pairs_of_floats(self):
        rng = np.random.default_rng(2)
        x, y, z = (rng.standard_normal(64).astype(np.float16) for _ in range(3))
        x[:4], y[:4] = [np.nan, 1, -0.0, 0.0], [2, np.nan, 0.0, -0.0]
        packed = [values.view(np.uint32) for values in (x, y, z)]
        sign = np.where(np.signbit(x) != np.signbit(y), -1, 1).astype(np.float16)
        fma = (x.astype(np.float64) * y + z).astype(np.float16)
        for text, expected in {
            "max.f16x2 %r10, %r0, %r1;": np.fmax(x, y),
            "min.f16x2 %r10, %r0, %r1;": np.fmin(x, y),
            "max.NaN.f16x2 %r10, %r0, %r1;": np.maximum(x, y),
            "max.NaN.xorsign.abs.f16x2 %r10, %r0, %r1;": np.maximum(np.abs(x), np.abs(y)) * sign,
            "fma.rn.relu.f16x2 %r10, %r0, %r1, %r2;": np.where(fma < 0, np.float16(0), fma),
        }.items():
            with self.subTest(text):
                np.testing.assert_array_equal(one(text, packed).view(np.float16), expected)
        text = "setp.gt.f16x2 %p0|%p1, %r0, %r1; selp.u32 %r10, 1, 0, %p0; @%p1 add.u32 %r10, %r10, 2;"
        greater = (x > y).reshape(32, 2)
        np.testing.assert_array_equal(one(text, packed), greater[:, 0] + 2 * greater[:, 1])

    def test_doubles(self):
        x, y = (values.astype(np.float64) for values in (self.x, self.y))
        x[:2] = np.nan, np.inf
        for text, expected in {
            "min.f64 %d2, %d1, %d2;": np.fmin(x, y),
            "max.f64 %d2, %d1, %d2;": np.fmax(x, y),
            "abs.f64 %d1, %d1; sqrt.rn.f64 %d2, %d1;": np.sqrt(np.abs(x)),
            "rcp.rn.f64 %d2, %d1;": 1 / x,
            "testp.infinite.f64 %p0, %d1; selp.f64 %d2, 0d3FF0000000000000, 0d0000000000000000, %p0;":
                np.isinf(x).astype(np.float64),
        }.items():
            with self.subTest(text):
                body = ("shl.b64 %d3, %o, 1; add.s64 %d0, %a1, %d3; ld.global.b64 %d1, [%d0]; add.s64 %d0, %a2, %d3; "
                        f"ld.global.b64 %d2, [%d0]; {text} add.s64 %d0, %a0, %d3; st.global.b64 [%d0], %d2;")
                out = Buffer(device, np.zeros(32))
                device.launch(device.load(kernel(body, params=3)), [out, Buffer(device, x), Buffer(device, y)])
                np.testing.assert_array_equal(out.array, expected)

    def test_a_nan_that_arithmetic_makes_is_one(self):
        """0x7fffffff, whatever the processor's would be."""
        x = np.full(32, -2, np.float32)
        infinity = np.full(32, np.inf, np.float32)
        other = np.full(32, 0xffc00001, np.uint32).view(np.float32)
        for text in ("add.rn.f32 %r10, %r1, %r2;", "add.rn.f32 %r10, %r1, 0fFF800000;",
                     "sub.rn.f32 %r10, %r1, %r1;", "mul.rn.f32 %r10, %r1, 0f00000000;",
                     "fma.rn.f32 %r10, %r1, 0f00000000, %r0;", "div.rn.f32 %r10, %r1, %r1;",
                     "sqrt.rn.f32 %r10, %r0;", "sqrt.approx.ftz.f32 %r10, %r0;",
                     "rsqrt.approx.f32 %r10, %r0;", "rcp.rn.f32 %r10, %r2;",
                     "ex2.approx.ftz.f32 %r10, %r2;", "lg2.approx.f32 %r10, %r0;",
                     "sin.approx.f32 %r10, %r1;", "cos.approx.f32 %r10, %r1;",
                     "tanh.approx.f32 %r10, %r2;", "min.f32 %r10, %r2, %r2;",
                     "min.NaN.f32 %r10, %r0, %r2;"):
            with self.subTest(text):
                np.testing.assert_array_equal(one(text, [x, infinity, other]), np.uint32(0x7fffffff))

    def test_nans_are_canonical(self):
        nan = np.full(32, 0xFFC12345, np.uint32)
        self.assertEqual(set(one("add.f32 %r10, %r0, %r0;", [nan])), {0x7FFFFFFF})
        self.assertEqual(set(one("max.NaN.f32 %r10, %r0, 0f3F800000;", [nan])), {0x7FFFFFFF})

    def test_casts_to_8_bits(self):
        import ml_dtypes
        x = np.concatenate([self.x[:20] * 100, [0.0, 1e9, -1e9, np.inf, np.nan, 2.0**-10, 2.0**-9, 3 * 2.0**-10,
                                                448, 464, -465, 1e-30]]).astype(np.float32)
        for name, dtype, most in (("e4m3", ml_dtypes.float8_e4m3fn, 448), ("e5m2", ml_dtypes.float8_e5m2, 57344)):
            text = f"cvt.rn.satfinite.{name}x2.f32 %h0, 0f00000000, %r0; cvt.u32.u16 %r10, %h0;"
            expected = np.clip(x, -most, most).astype(dtype).view(np.uint8)
            expected = np.where(np.isnan(x), 0x7F, expected)
            np.testing.assert_array_equal(one(text, [x]), expected)

    def test_casts_of_16_bits_to_f64(self):
        import ml_dtypes
        x = np.concatenate([self.x[:28] * 100, [0.0, np.inf, -np.inf, 2.0**-24]]).astype(np.float32)
        for name, dtype in (("f16", np.float16), ("bf16", ml_dtypes.bfloat16)):
            text = f"cvt.u16.u32 %h0, %r0; cvt.f64.{name} %d0, %h0; cvt.rn.f32.f64 %r10, %d0;"
            rounded = x.astype(dtype)
            np.testing.assert_array_equal(one(text, [rounded.view(np.uint16).astype(np.uint32)], np.float32),
                                          rounded.astype(np.float32))

    def test_halves_round_to_integers(self):
        x = np.concatenate([self.x[:28] * 10, [0.5, -0.5, np.inf, 60000]]).astype(np.float16)
        for how, round_to in (("rni", np.rint), ("rzi", np.trunc), ("rmi", np.floor), ("rpi", np.ceil)):
            text = f"cvt.u16.u32 %h0, %r0; cvt.{how}.f16.f16 %h1, %h0; cvt.u32.u16 %r10, %h1;"
            np.testing.assert_array_equal(one(text, [x.view(np.uint16).astype(np.uint32)]),
                                          round_to(x).view(np.uint16))


class Lanes(unittest.TestCase):
    def test_branches_meet_again(self):
        body = """
        setp.lt.u32 %p0, %t, 11; mov.u32 %r10, 5;
        @%p0 bra SMALL;
        add.s32 %r10, %r10, 100; bra MEET;
        SMALL: add.s32 %r10, %r10, 1000;
        MEET: shfl.sync.bfly.b32 %r10, %r10, 31, 31, -1;"""
        np.testing.assert_array_equal(one(body, []), [1005 if 31 - i < 11 else 105 for i in range(32)])

    def test_loops_of_different_lengths(self):
        body = """mov.u32 %r10, 0; mov.u32 %r1, 0;
        LOOP: setp.ge.u32 %p0, %r1, %t; @%p0 bra END; add.s32 %r10, %r10, %r1; add.s32 %r1, %r1, 1; bra LOOP;
        END: """
        np.testing.assert_array_equal(one(body, []), [sum(range(i)) for i in range(32)])

    def test_scopes_have_labels_and_registers_of_their_own(self):
        body = "mov.u32 %r10, 0;" + """
        { .reg .pred q; setp.eq.u32 q, %t, 3; @q bra DONE; add.s32 %r10, %r10, 1; DONE: }""" * 2
        np.testing.assert_array_equal(one(body, []), [0 if i == 3 else 2 for i in range(32)])

    def test_reductions(self):
        np.testing.assert_array_equal(one("redux.sync.add.u32 %r10, %t, -1;", []), [496] * 32)
        np.testing.assert_array_equal(
            one("setp.gt.u32 %p0, %t, 29; vote.sync.ballot.b32 %r10, %p0, -1;", []), [0xC0000000] * 32)

    def test_one_is_elected(self):
        chosen = one("elect.sync %r1|%p0, -1; selp.u32 %r10, 1, 0, %p0;", [])
        self.assertEqual(chosen.sum(), 1)

    def test_shared_memory_and_barriers(self):
        text = kernel("""
            mov.u32 %r0, smem; shl.b32 %r1, %t, 2; add.s32 %r0, %r0, %r1; st.shared.u32 [%r0], %t;
            bar.sync 0;
            sub.s32 %r2, 127, %t; shl.b32 %r2, %r2, 2; mov.u32 %r3, smem; add.s32 %r3, %r3, %r2;
            ld.shared.u32 %r4, [%r3]; add.s64 %d0, %a0, %o; st.global.u32 [%d0], %r4;""", shared=512)
        out = Buffer(device, np.zeros(128, np.uint32))
        device.launch(device.load(text), [out], block=(128, 1, 1))
        np.testing.assert_array_equal(out.array, np.arange(127, -1, -1))

    def test_distributed_shared_memory(self):
        text = kernel("""
            mov.u32 %r0, smem; mov.u32 %r1, %cluster_ctarank; xor.b32 %r2, %r1, 1;
            mapa.shared::cluster.u32 %r3, %r0, %r2; st.shared::cluster.u32 [%r3], %r1;
            barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
            ld.shared.u32 %r4, [%r0]; mul.wide.u32 %d1, %r1, 4; add.s64 %d0, %a0, %d1; st.global.u32 [%d0], %r4;""",
                      shared=16)
        out = Buffer(device, np.zeros(2, np.uint32))
        device.launch(device.load(text), [out], grid=(2, 1, 1), cluster=(2, 1, 1))
        np.testing.assert_array_equal(out.array, [1, 0])


class Modules(unittest.TestCase):
    def fails(self, text, message, code=218):
        with self.assertRaises(DriverError) as raised:
            device.load(text)
        self.assertEqual(raised.exception.code, code)
        self.assertIn(message, raised.exception.log)

    def test_errors_name_the_line(self):
        self.fails(HEADER + ".visible .entry kernel()\n{\nfoo.bar %r1;\n}", "line 6: unknown instruction 'foo.bar'")
        self.fails(HEADER + ".entry kernel()\n{\n.reg .b32 %r<2>;\nadd.s32.odd %r0, %r0, %r1;\n}",
                   "line 7: unknown instruction 'add.s32.odd': its '.odd' is not known")
        self.fails(HEADER + ".entry kernel()\n{\n.reg .b32 %r<2>; .reg .b64 %d;\nadd.s32 %r0, %r0, %d;\n}",
                   "line 7: expected '%d' to have 32 bits, but got 64 in 'add.s32'")
        self.fails(HEADER + ".entry kernel()\n{\nbra NOWHERE;\n}", "line 6: unknown label 'NOWHERE'")
        self.fails(HEADER + ".entry kernel()\n{\nret\n}", "line 7: expected an operand, but got '}'")
        self.fails(HEADER + ".entry kernel()\n{\nmov.u32 %x, %tid.x;\n}", "expected a register as result")
        self.fails("hello", "line 1: expected '.version'")
        self.fails(HEADER.replace("sm_90a", "sm_100a"), "expected code for sm_90, but got sm_100a")

    def test_cubins_are_for_chips(self):
        self.fails("\x7fELF", "", 209)

    def test_launches_beyond_limits(self):
        function = device.load(kernel("", directives=".reqntid 64, 1, 1"))
        out = Buffer(device, np.zeros(1, np.uint32))
        for options in ({"block": (32, 1, 1)}, {"block": (64, 1, 1), "grid": (0, 1, 1)},
                        {"block": (64, 1, 1), "grid": (3, 1, 1), "cluster": (2, 1, 1)},
                        {"block": (64, 1, 1), "smem": 300 << 10}):
            with self.assertRaises(DriverError) as raised:
                device.launch(function, [out], **options)
            self.assertEqual(raised.exception.code, 1)


if __name__ == "__main__":
    unittest.main()
