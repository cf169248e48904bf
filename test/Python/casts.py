# RUN: %python %s
"""fp8.quantize and fp8.dequantize against NumPy and ml_dtypes, bit by bit."""

import itertools
import unittest

import ml_dtypes
import numpy as np

import fp8


CODES = {"e4m3": (ml_dtypes.float8_e4m3fn, 448), "e5m2": (ml_dtypes.float8_e5m2, 57344)}
F32_MAX = np.finfo(np.float32).max


def each_block(shape, block):
    for corner in itertools.product(*(range(0, n, b or n) for n, b in zip(shape, block))):
        yield (tuple(slice(c, c + (b or n)) for c, n, b in zip(corner, shape, block)),
               tuple(c // (b or n) for c, n, b in zip(corner, shape, block)))


def quantize(x, format, block):
    """What docs/Recipes/Current.md says, a block after the other."""
    dtype, largest = CODES[format]
    x = x.astype(np.float32)
    grid = tuple(1 if b is None else -(-n // b) for n, b in zip(x.shape, block))
    codes, factors = np.empty(x.shape, dtype), np.empty(grid, np.float32)
    for elements, position in each_block(x.shape, block):
        amax = np.abs(x[elements]).max(initial=0)
        with np.errstate(over="ignore", divide="ignore"):
            scale = np.float32(largest) / amax if 0 < amax < np.inf else np.float32(1)
            scale = min(scale, F32_MAX)
            factors[position] = np.float32(1) / scale
            codes[elements] = np.clip(x[elements] * scale, -largest, largest).astype(dtype)
    return codes, factors


def make_input(shape, dtype, seed=0):
    random = np.random.default_rng(seed)
    x = random.standard_normal(shape) * np.exp2(random.integers(-12, 12, shape))
    return x.astype(dtype)


class Casts(unittest.TestCase):
    def test_every_granularity(self):
        for format, block, dtype in itertools.product(
                CODES, [(None, None), (1, None), (None, 1), (1, 16), (3, 7)],
                [np.float32, ml_dtypes.bfloat16]):
            with self.subTest(f"{format} {block} {dtype}"):
                x = make_input((13, 40), dtype)
                x[3:6, 4:9] = 0
                result = fp8.quantize(x, format, block)
                codes, factors = quantize(x, format, block)
                self.assertEqual(result.codes.dtype, codes.dtype)
                np.testing.assert_array_equal(result.codes.view(np.uint8), codes.view(np.uint8))
                np.testing.assert_array_equal(result.scale_inv, factors)
                self.assertIsNone(result.tensor_scale_inv)
                wide = factors
                for axis, size in enumerate(block):
                    wide = np.repeat(wide, size or x.shape[axis], axis)
                expected = codes.astype(np.float32) * wide[:x.shape[0], :x.shape[1]]
                np.testing.assert_array_equal(fp8.dequantize(result), expected)

    def test_dtypes_of_values(self):
        x = make_input((5, 40), np.float16)
        result = fp8.quantize(x, "e5m2")
        self.assertEqual(result.codes.view(np.uint8).tobytes(),
                         quantize(x, "e5m2", (None, None))[0].tobytes())
        wide = fp8.dequantize(result)
        for name, dtype in (("bf16", ml_dtypes.bfloat16), ("f16", np.float16)):
            np.testing.assert_array_equal(fp8.dequantize(result, name), wide.astype(dtype))

    def test_ranks(self):
        for shape in ((7,), (2, 3, 8), (2, 1, 2, 1, 2, 1, 2, 3)):
            x = make_input(shape, np.float32)
            result = fp8.quantize(x)
            codes, factors = quantize(x, "e4m3", (None,) * len(shape))
            np.testing.assert_array_equal(result.codes.view(np.uint8), codes.view(np.uint8))
            self.assertEqual(result.scale_inv.shape, (1,) * len(shape))
            np.testing.assert_array_equal(result.scale_inv, factors)

    def test_every_f32_binade(self):
        x = np.concatenate([np.exp2(np.arange(-149, 128.0)), -np.exp2(np.arange(-149, 128.0))])
        x = x.astype(np.float32).reshape(-1, 1)
        for format in CODES:
            codes, factors = quantize(x, format, (1, None))
            result = fp8.quantize(x, format, (1, None))
            np.testing.assert_array_equal(result.codes.view(np.uint8), codes.view(np.uint8))
            np.testing.assert_array_equal(result.scale_inv, factors)

    def test_values_that_are_none(self):
        x = np.array([[np.inf, 1, -np.inf], [np.nan, 2, -2]], np.float32)
        result = fp8.quantize(x, block=(1, None))
        self.assertEqual(result.codes.view(np.uint8)[0].tolist(), [0x7E, 0x38, 0xFE])
        self.assertEqual(result.codes.view(np.uint8)[1].tolist(), [0x7F, 0x7E, 0xFE])
        self.assertEqual(result.scale_inv[0, 0], 1)

    def test_mx(self):
        x = make_input((4, 70), np.float32)
        result = fp8.quantize(x, "e4m3", (1, 32), "e8m0", mode="floor")
        self.assertEqual((result.scale_inv.dtype, result.scale_inv.shape),
                         (ml_dtypes.float8_e8m0fnu, (4, 3)))
        for elements, position in each_block(x.shape, (1, 32)):
            exponent = np.frexp(np.abs(x[elements]).max())[1] - 1 - 8
            self.assertEqual(float(result.scale_inv[position]), 2.0 ** exponent)
            codes = np.clip(np.ldexp(x[elements], -exponent), -448, 448)
            np.testing.assert_array_equal(result.codes[elements].astype(np.float32),
                                          codes.astype(ml_dtypes.float8_e4m3fn).astype(np.float32))

    def test_nvfp4(self):
        x = make_input((4, 40), np.float32)
        result = fp8.quantize(x, "e2m1", (1, 16), "e4m3")
        self.assertEqual((result.codes.dtype, result.scale_inv.dtype),
                         (np.uint8, ml_dtypes.float8_e4m3fn))
        tensor_scale = np.abs(x).max() / np.float32(448 * 6)
        self.assertEqual(result.tensor_scale_inv.item(), tensor_scale)
        self.assertEqual(result.codes.shape, (4, 20))
        codes = fp8.tensors.unpack(result.codes)
        values = np.array(fp8.formats.E2M1.values(), np.float32)[codes.view(np.uint8)]
        np.testing.assert_array_equal(values, codes.astype(np.float32))
        factors = result.scale_inv.astype(np.float32) * tensor_scale
        expected = values * np.repeat(factors, 16, 1)[:, :40]
        np.testing.assert_array_equal(fp8.dequantize(result), expected)

    def test_rules(self):
        x = make_input((4, 40), np.float32)
        scales = 1 / fp8.quantize(x, block=(1, None), pow2=True).scale_inv
        np.testing.assert_array_equal(np.exp2(np.round(np.log2(scales))), scales)
        result = fp8.quantize(x * 0, amax_epsilon=1.0)
        self.assertEqual(result.scale_inv.item(), np.float32(1) / np.float32(448))
        nan = fp8.quantize(np.array([1, np.nan], np.float32), style="torchao")
        self.assertTrue(np.isnan(nan.scale_inv).all())


class Refused(unittest.TestCase):
    def test_arguments(self):
        x = np.ones((4, 8), np.float32)
        for message, arguments, options in [
                ("the format to be e4m3, e5m2, e2m1, but got 'e3m4'", (x, "e3m4"), {}),
                ("the format to be .*, but got 'hybrid'", (x, fp8.Format.HYBRID), {}),
                ("the scale to be e4m3, e8m0, f32, but got 'f64'", (x, "e4m3", None, "f64"), {}),
                ("a block with 2 sizes above 0, or None, but got", (x, "e4m3", (1,)), {}),
                ("a block with 2 sizes above 0, or None, but got", (x, "e4m3", (0, 1)), {}),
                ("a block with 2 sizes above 0, or None, but got", (x, "e4m3", (1, "8")), {}),
                ("F32, BF16 or F16 with 1 to 8 dimensions, but got F64", (x.astype(float),), {}),
                ("with 1 to 8 dimensions, but got F32 with 0", (x[0, 0],), {}),
                ("scales in e4m3 to go with codes of e2m1", (x, "e4m3", None, "e4m3"), {}),
                ("expected no 'mode' for scales in f32", (x,), {"mode": "floor"}),
                ("last dimension of an even size, of which two codes of e2m1 share a byte, but "
                 "got 7", (x[:, 1:], "e2m1"), {}),
                ("to be an array, but got list", ([1.0],), {})]:
            with self.subTest(message), self.assertRaisesRegex(fp8.ArgumentError, message):
                fp8.quantize(*arguments, **options)
        with self.assertRaisesRegex(fp8.CompileError, "mode"):
            fp8.quantize(x, scale="e8m0", mode="up")
        with self.assertRaisesRegex(fp8.ArgumentError, "the dtype to be bf16, f16, f32"):
            fp8.dequantize(fp8.quantize(x), "f64")


if __name__ == "__main__":
    unittest.main()
