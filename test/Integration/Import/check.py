# RUN: %python %s
"""A program that computes something else than its framework is refused, before it is written."""

import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import numpy as np
from fp8 import import_check, imports

PROGRAM = """
func.func @f(%x: tensor<4xf32> {{fp8.name = "x"}}, %i: tensor<4xi32> {{fp8.name = "i"}})
    -> (tensor<4xf32> {{fp8.name = "y"}}, tensor<4xi32>) {{
  return %{0}, %i : tensor<4xf32>, tensor<4xi32>
}}
"""
X, I = np.arange(4, dtype=np.float32), np.arange(4, dtype=np.int32)


def check(y=X, i=I, **others):
    import_check.check(PROGRAM.format("x"), "f", {"x": X, "i": I},
                       {"y": y, "result1": i, **others})


class Check(unittest.TestCase):
    def test_same(self):
        check()
        check(X * (1 + 1e-6))

    def test_other_results(self):
        for message, results in [
                ("of 'y' the error is 1 of its norm", {"y": -X * 1e9}),
                ("of 'y' the error is 1.2 of its norm", {"y": X[::-1]}),
                ("of 'y' the shape is .4. for .3.", {"y": X[:3]}),
                ("of 'y' elements that are not finite", {"y": np.array([0, 1, np.inf, 3], np.float32)}),
                ("of 'result1' 1 of 4 elements differ", {"i": np.array([0, 1, 2, 4], np.int32)})]:
            with self.subTest(message), self.assertRaisesRegex(imports.UnsupportedProgram, message):
                check(**results)

    def test_one_row_of_many(self):
        x = np.ones((2048, 16), np.float32)
        wrong = x.copy()
        wrong[7] = 0
        self.assertIsNone(import_check._compare(x, x, 3e-2))
        self.assertIn("the error is", import_check._compare(wrong, x, 3e-2))

    def test_what_cannot_be_compared(self):
        with self.assertRaisesRegex(import_check.Unchecked, "and the framework y, result1, z"):
            check(z=X)
        with self.assertRaisesRegex(import_check.Unchecked, "."):
            import_check.check("func.func @f() {", "f", {}, {})

    def test_command_line(self):
        with tempfile.TemporaryDirectory() as folder:
            model, out = Path(folder, "model.py"), Path(folder, "out.mlir")
            model.write_text("def model():\n    return ()\n")

            def run(*arguments, result=X):
                with mock.patch.object(sys, "argv", ["tool", f"{model}:model", "-o", str(out),
                                                     "--name=f", *arguments]):
                    imports.run_importer(lambda name, gradients: (PROGRAM.format("x"), {"i": I}),
                                         "Test", lambda: ({"x": X}, {"y": result, "result1": I}))

            with self.assertRaises(SystemExit) as error, mock.patch("sys.stderr"):
                run(result=X + 1)
            self.assertEqual((error.exception.code, out.exists()), (1, False))
            run("--no-check", result=X + 1)
            self.assertTrue(out.exists())
            out.unlink()
            run()
            self.assertTrue(out.exists())


unittest.main()
