# RUN: %python %s
"""fp8.formats against ml_dtypes, and against what programs take."""

import math
import unittest

import ml_dtypes
import numpy as np
from fp8 import _core, formats, tensors

THEIRS = {"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2,
          "e2m1": ml_dtypes.float4_e2m1fn, "e8m0": ml_dtypes.float8_e8m0fnu,
          "bf16": ml_dtypes.bfloat16, "f16": np.float16, "f32": np.float32}


class Formats(unittest.TestCase):
    def test_facts(self):
        for name, dtype in THEIRS.items():
            with self.subTest(name):
                ours = formats.FORMATS[name]
                info = np.finfo(dtype) if name in ("f16", "f32") else ml_dtypes.finfo(dtype)
                self.assertEqual(ours.name, name)
                self.assertEqual((ours.bits, ours.exponent_bits, ours.mantissa_bits),
                                 (info.bits, info.nexp, info.nmant))
                self.assertEqual((ours.max, ours.min_normal), (float(info.max), float(info.tiny)))
                if name == "e8m0":
                    self.assertIsNone(ours.min_subnormal)
                else:
                    self.assertEqual(ours.min_subnormal, float(info.smallest_subnormal))

    def test_dtypes(self):
        for name, dtype in formats.DTYPES.items():
            with self.subTest(name):
                stored = np.dtype(dtype.numpy)
                self.assertEqual(stored, tensors.DTYPES[name] if dtype.lanes == 1
                                 else ml_dtypes.float4_e2m1fn)
                if dtype.lanes == 1:
                    self.assertEqual(_core.inspect_array(np.zeros(1, stored)), (name, 1, False))

    def test_formats_are_constants(self):
        self.assertIs(formats.E4M3, formats.FORMATS["e4m3"])
        self.assertIn("E8M0", dir(formats))
        for name in ("e4m3", "E3M4"):
            with self.assertRaisesRegex(AttributeError, f"no attribute '{name}'"):
                getattr(formats, name)

    def test_every_code_of_up_to_16_bits(self):
        for name, dtype in THEIRS.items():
            ours = formats.FORMATS[name]
            if ours.bits > 16:
                continue
            codes = np.arange(2 ** ours.bits)
            theirs = codes.astype(np.uint8 if ours.bits <= 8 else np.uint16).view(dtype)
            with np.errstate(invalid="ignore"):  # Signalling NaNs.
                theirs = theirs.astype(np.float64)
            values = np.array([ours.decode(code) for code in codes.tolist()])
            numbers = ~np.isnan(theirs)
            np.testing.assert_array_equal(values, theirs)
            np.testing.assert_array_equal(np.signbit(values[numbers]), np.signbit(theirs[numbers]))

    def test_special_codes(self):
        self.assertEqual(formats.E4M3.special_codes, {"nan": (0x7F, 0xFF)})
        self.assertEqual(formats.E5M2.special_codes["inf"], (0x7C,))
        self.assertEqual(formats.E5M2.special_codes["-inf"], (0xFC,))
        self.assertEqual(len(formats.E5M2.special_codes["nan"]), 6)
        self.assertEqual(formats.E2M1.special_codes, {})
        self.assertEqual(formats.E8M0.special_codes, {"nan": (0xFF,)})

    def test_codes_and_formats_that_there_are_not(self):
        for code in (-1, 16):
            with self.assertRaisesRegex(ValueError, "a code of e2m1 from 0 to 15, but got"):
                formats.E2M1.decode(code)
        with self.assertRaisesRegex(ValueError, "up to 8 bits, but got bf16"):
            formats.BF16.values()
        self.assertTrue(math.isnan(formats.F32.decode(0x7F800001)))


if __name__ == "__main__":
    unittest.main()
