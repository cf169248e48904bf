# RUN: %python %s
# RUN: env FP8_CUDA_DRIVER=emulator FP8_TEST_TARGET=sm_90a %python %s
"""Programs with hundreds of arguments and results, which are passed in memory: each value is
where it belongs, whatever comes between."""

import ctypes
import os
import tempfile
import unittest
from pathlib import Path

import numpy as np

import fp8

TARGET = os.environ.get("FP8_TEST_TARGET", "cpu")
COUNT = 150
TENSOR, VECTOR = "tensor<2x3xf32>", "tensor<?xf32>"


def make_program():
    """Sums of neighbours, in the first block, under a condition and in a loop; arguments and
    results that are scalars, dynamic, used often, returned as they came, twice and not at all."""
    arguments = "".join(f", %x{i}: {TENSOR}, %v{i}: {VECTOR}, %s{i}: f32" for i in range(COUNT))
    lines = [f"func.func @f(%c: i1{arguments}) -> (", "", ") {",
             "  %zero = arith.constant 0 : index", "  %one = arith.constant 1 : index",
             "  %three = arith.constant 3 : index"]
    results = []
    for i in range(COUNT):
        j = (i + 1) % COUNT
        lines += [f"  %t{i} = arith.addf %x{i}, %x{j} : {TENSOR}",
                  f"  %p{i} = arith.mulf %s{i}, %s{j} : f32"]
        results += [(f"%t{i}", TENSOR), (f"%p{i}", "f32")]
        if i % 10 == 0:
            lines += [f"  %b{i} = scf.if %c -> {TENSOR} {{",
                      f"    %n{i} = arith.negf %x{i} : {TENSOR}", f"    scf.yield %n{i} : {TENSOR}",
                      "  } else {", f"    scf.yield %x{j} : {TENSOR}", "  }"]
            results += [(f"%b{i}", TENSOR), (f"%v{i}", VECTOR), (f"%x{i}", TENSOR)]
        if i % 25 == 0:
            lines += [f"  %l{i} = scf.for %k{i} = %zero to %three step %one "
                      f"iter_args(%a{i} = %x{i}) -> {TENSOR} {{",
                      f"    %m{i} = arith.addf %a{i}, %x{j} : {TENSOR}",
                      f"    scf.yield %m{i} : {TENSOR}", "  }"]
            results += [(f"%l{i}", TENSOR), (f"%t{i}", TENSOR), (f"%s{i}", "f32")]
    lines[1] = ", ".join(type_ for _, type_ in results)
    return "\n".join([*lines, f"  return {', '.join(name for name, _ in results)} : {lines[1]}",
                      "}", ""])


def make_arguments(condition):
    random = np.random.default_rng(0)
    values = [condition]
    for i in range(COUNT):
        values += [random.standard_normal((2, 3)).astype(np.float32),
                   random.standard_normal(i % 5 + 1).astype(np.float32),
                   np.float32(random.standard_normal())]
    return values


def compute(condition, *values):
    x, v, s = (values[k::3] for k in range(3))
    results = []
    for i in range(COUNT):
        j = (i + 1) % COUNT
        results += [x[i] + x[j], s[i] * s[j]]
        if i % 10 == 0:
            results += [-x[i] if condition else x[j], v[i], x[i]]
        if i % 25 == 0:
            results += [x[i] + x[j] + x[j] + x[j], x[i] + x[j], s[i]]
    return results


class ManyValues(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.program = fp8.compile(make_program(), target=TARGET, cache=False)

    def test_calls(self):
        for condition in (True, False):
            arguments = make_arguments(condition)
            for got, expected in zip(self.program(*arguments), compute(*arguments), strict=True):
                np.testing.assert_array_equal(got, expected)

    @unittest.skipIf(TARGET != "cpu", "tensors of the host")
    def test_function_of_the_header(self):
        """The same through C's own calling convention, beside scalars by value."""
        tensors = [np.full((2, 3), i, np.float32) for i in range(300)]
        arguments = "".join(f", %x{i}: {TENSOR}" for i in range(300))
        text = (f"func.func @f(%s: f32{arguments}, %n: i32) -> ({TENSOR}, i32) {{\n"
                f"  %y = arith.addf %x7, %x299 : {TENSOR}\n  return %y, %n : {TENSOR}, i32\n}}\n")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "many.so")
            fp8.compile(text, target="cpu", cache=False, name="many").save(path)
            function = ctypes.CDLL(str(path)).many_f
            place = ctypes.c_int32()
            words = [(ctypes.c_int64 * 7)(t.ctypes.data, t.ctypes.data, 0, 2, 3, 3, 1)
                     for t in tensors]
            result = (ctypes.c_int64 * 7)()
            status = function(ctypes.c_float(1), *map(ctypes.byref, words), ctypes.c_int32(-5),
                              ctypes.byref(result), ctypes.byref(place))
            self.assertEqual((status, place.value), (0, -5))
            y = np.ctypeslib.as_array(ctypes.cast(result[1], ctypes.POINTER(ctypes.c_float)), (6,))
            self.assertEqual(y.tolist(), [306] * 6)

    def test_reads(self):
        """Reads an argument and a result, which also a loop reads."""
        type_ = "tensor<16x16xf32>"
        lines = [f"func.func @f(%x: {type_}, %w: {type_}) -> {type_} {{",
                 "  %zero = arith.constant 0 : index", "  %one = arith.constant 1 : index",
                 "  %two = arith.constant 2 : index", "  %z = arith.constant 0.0 : f32",
                 f"  %y = arith.mulf %x, %w : {type_}", f"  %s0 = math.absf %y : {type_}"]
        for i in range(40):
            operand = "%x" if i % 2 else "%y"
            lines += [f"  %e{i} = tensor.empty() : {type_}",
                      f"  %f{i} = linalg.fill ins(%z : f32) outs(%e{i} : {type_}) -> {type_}",
                      f"  %p{i} = linalg.matmul ins({operand}, %w : {type_}, {type_}) "
                      f"outs(%f{i} : {type_}) -> {type_}",
                      f"  %s{i + 1} = arith.addf %s{i}, %p{i} : {type_}"]
        lines += [f"  %r = scf.for %i = %zero to %two step %one iter_args(%a = %s40) -> {type_} {{",
                  f"    %b = arith.subf %a, %y : {type_}", f"    scf.yield %b : {type_}", "  }",
                  f"  return %r : {type_}", "}", ""]
        random = np.random.default_rng(0)
        x, w = (random.integers(-2, 3, (16, 16)).astype(np.float32) for _ in range(2))
        y = x * w
        got = fp8.compile("\n".join(lines), target=TARGET, cache=False)(x, w)
        np.testing.assert_array_equal(got, np.abs(y) + 20 * (x @ w + y @ w) - 2 * y)


if __name__ == "__main__":
    unittest.main()
