# RUN: %python %s
"""Calls with arrays of NumPy: what goes in without a copy, what comes out, what is refused."""

import gc
import sys
import unittest
from pathlib import Path

import ml_dtypes
import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import fp8  # noqa: E402
import programs  # noqa: E402

DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16,
          "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2,
          "f8E8M0FNU": ml_dtypes.float8_e8m0fnu, "i64": np.int64, "i32": np.int32,
          "i16": np.int16, "i8": np.int8, "i1": np.bool_}


def compile(source, recipe=None):
    return fp8.compile(source, recipe, target="cpu", cache=False)


class Arrays(unittest.TestCase):
    def test_dtypes(self):
        for mlir, dtype in DTYPES.items():
            with self.subTest(mlir):
                x = np.arange(6).reshape(2, 3).astype(dtype)
                y = compile(programs.make_identity(mlir))(x)
                self.assertEqual((y.dtype, y.shape), (x.dtype, x.shape))
                self.assertEqual(y.tobytes(), x.tobytes())

    def test_codes_that_share_bytes(self):
        program = compile(programs.make_identity("f4E2M1FN", "2x6"))
        x = np.arange(6, dtype=np.uint8).reshape(2, 3) * 41
        y = program(x)
        self.assertEqual((y.dtype, y.tolist()), (np.uint8, x.tolist()))
        codes = fp8.tensors.unpack(x)
        self.assertEqual((codes.dtype, codes.shape), (ml_dtypes.float4_e2m1fn, (2, 6)))
        self.assertEqual(codes.view(np.uint8)[0].tolist(), [0, 0, 9, 2, 2, 5])
        self.assertEqual(fp8.tensors.pack(codes).tolist(), x.tolist())
        self.assertEqual(fp8.tensors.pack(codes.view(np.uint8)).tolist(), x.tolist())
        with self.assertRaisesRegex(fp8.ArgumentError, "float4_e2m1fn; fp8.tensors.pack makes"):
            program(codes)
        with self.assertRaisesRegex(fp8.ArgumentError, "to have size 3 in dimension 1"):
            program(codes.view(np.uint8))
        for message, wrong in (("an even size", codes[:, 1:]), ("but got int8", x.view(np.int8)),
                               ("codes below 16, but got 20", np.array([20, 1], np.uint8))):
            with self.subTest(message), self.assertRaisesRegex(ValueError, message):
                fp8.tensors.pack(wrong)

    def test_results_are_arrays_of_their_own(self):
        program = compile(programs.make_identity("f32"))
        x = np.ones((2, 3), np.float32)
        y = program(x)
        y += 1
        self.assertTrue((x == 1).all() and y.flags.writeable)
        view = y[1]
        del program, y
        gc.collect()
        self.assertEqual(view.tolist(), [2, 2, 2])

    def test_dynamic_sizes_and_none(self):
        negate = compile(programs.SEVERAL).negate
        for size in (1, 5, 0):
            self.assertEqual(negate(np.ones((size, 3), np.float32)).shape, (size, 3))

    def test_several_results_and_none(self):
        program = compile(programs.SEVERAL)
        y, t = program.both(np.arange(4, dtype=np.float32), np.float32(1.5))
        self.assertEqual((y.tolist(), t.shape, float(t)), ([0, 1, 2, 3], (), 3))
        self.assertIsNone(program.nothing())

    def test_scalars(self):
        both = compile(programs.SEVERAL).both
        x = np.zeros(4, np.float32)
        for value in (2, 2.0, True, np.float32(2), np.array(2, np.float32)):
            self.assertEqual(float(both(x, value)[1]), 2 * float(value))
        for value in (2j, "2", None, [2]):
            with self.subTest(value), self.assertRaises(fp8.ArgumentError):
                both(x, value)
        identity = compile("func.func @f(%x: i8) -> i8 {\n  return %x : i8\n}")
        self.assertEqual(int(identity(-128)), -128)
        for value in (128, 1.5, float("nan")):
            with self.subTest(value), self.assertRaisesRegex(fp8.ArgumentError,
                                                             "'arg0' of 'f' to be I8"):
                identity(value)

    def test_views_in_row_major_order(self):
        program = compile(programs.make_identity("f32"))
        x = np.arange(24, dtype=np.float32).reshape(4, 6)
        self.assertEqual(program(x.reshape(8, 3)[2:4]).tolist(), x.reshape(8, 3)[2:4].tolist())

    def test_results_are_in_row_major_order(self):
        program = compile("""
func.func @slice(%x: tensor<4x6x5xf32>) -> tensor<4x3x5xf32> {
  %y = tensor.extract_slice %x[0, 1, 0] [4, 3, 5] [1, 1, 1]
      : tensor<4x6x5xf32> to tensor<4x3x5xf32>
  return %y : tensor<4x3x5xf32>
}""")
        x = np.arange(120, dtype=np.float32).reshape(4, 6, 5)
        y = program(x)
        self.assertEqual(y.tolist(), x[:, 1:4].tolist())
        self.assertTrue(y.flags.c_contiguous)

    def test_objects_with_dlpack(self):
        class Wrapped:
            def __init__(self, array):
                self.array = array

            def __dlpack__(self, **options):
                return self.array.__dlpack__(**options)

            def __dlpack_device__(self):
                return self.array.__dlpack_device__()

            def __array_namespace__(self):
                return np
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        y = compile(programs.make_identity("f32"))(Wrapped(x))
        self.assertEqual(y.tolist(), x.tolist())


class Refused(unittest.TestCase):
    def setUp(self):
        self.program = compile(programs.LINEAR, "current")
        self.inputs = programs.make_inputs()
        self.expected = self.program(*self.inputs).tobytes()

    def tearDown(self):
        self.assertEqual(self.program(*self.inputs).tobytes(), self.expected)

    def refuse(self, message, *arguments, **options):
        with self.assertRaisesRegex(fp8.ArgumentError, message) as caught:
            self.program(*arguments, **options)
        self.assertIsInstance(caught.exception, ValueError)

    def test_numbers_of_arguments(self):
        x, w = self.inputs
        self.refuse("expected 2 arguments for 'linear', but got 1", x)
        self.refuse("expected 2 arguments for 'linear', but got 3", x, w, w)

    def test_shapes(self):
        x, w = self.inputs
        self.refuse("'x' of 'linear' to have size 32 in dimension 0, but got 31", x[1:], w)
        self.refuse("'w' of 'linear' to have rank 2, but got 1", x, w.reshape(-1))

    def test_dtypes(self):
        x, w = self.inputs
        self.refuse("'x' of 'linear' to be BF16, but got F32", x.astype(np.float32), w)
        for dtype in (np.complex64, "M8[s]", "S2", np.dtype([("a", "i4")]), ">f4"):
            self.refuse("'x' of 'linear' of a dtype that programs have",
                        np.zeros((32, 256), dtype), w)

    def test_orders(self):
        x, w = self.inputs
        self.refuse("'x' of 'linear' to be in row-major order", np.asfortranarray(x), w)
        self.refuse("'w' of 'linear' to be in row-major order", x, np.repeat(w, 2, 1)[:, ::2])
        self.refuse("'w' of 'linear' to be in row-major order", x, w[:, ::-1])

    def test_what_is_no_array(self):
        x, w = self.inputs
        for value, kind in (([1], "list"), (None, "NoneType"), ("x", "str"), (1.0, "float")):
            self.refuse(f"'w' of 'linear' to be an array, but got {kind}", x, value)

    def test_alignment(self):
        x, w = self.inputs
        memory = np.zeros(x.nbytes + 1, np.uint8)
        self.refuse("align", memory[1:].view(x.dtype).reshape(x.shape), w)

    def test_arrays_that_fail(self):
        class Failing:
            def __dlpack_device__(self):
                return (1, 0)

            def __dlpack__(self, **options):
                raise BufferError("no such thing\nand more")
        self.refuse("'x' of 'linear' to be an array that DLPack can hand out, but got: no such "
                    "thing$", Failing(), self.inputs[1])

    def test_a_gpu_that_there_is_not(self):
        class OnGPU:
            def __dlpack_device__(self):
                return (2, 0)

            def __dlpack__(self, **options):
                raise BufferError(f"with {options}")
        self.refuse("with {'stream': 1}", OnGPU(), self.inputs[1])


if __name__ == "__main__":
    unittest.main()
