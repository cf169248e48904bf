# RUN: %python %s
# RUN: env FP8_CUDA_DRIVER=emulator FP8_TEST_TARGET=sm_90a %python %s
"""Calls of a program's functions that go deeper than the stack are errors, and the process goes on."""

import os
import threading
import unittest

import numpy as np

import fp8

PROGRAM = """
func.func @f(%x: tensor<4xf32>, %n: i32) -> tensor<4xf32> {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %goes_on = arith.cmpi ne, %n, %zero : i32
  %r = scf.if %goes_on -> tensor<4xf32> {
    %m = arith.subi %n, %one : i32
    %y = arith.addf %x, %x : tensor<4xf32>
    %s = func.call @f(%y, %m) : (tensor<4xf32>, i32) -> tensor<4xf32>
    scf.yield %s : tensor<4xf32>
  } else {
    scf.yield %x : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
"""
X = np.ones(4, np.float32)


class DeepCalls(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        target = os.environ.get("FP8_TEST_TARGET", "cpu")
        cls.program = fp8.compile(PROGRAM, target=target, cache=False)

    def check(self):
        message = r"expected the calls of 'f' to end before the stack does, but it has \d+ KiB"
        for _ in range(2):
            self.assertEqual(self.program(X, 100).tolist(), [2.0**100] * 4)
            with self.assertRaisesRegex(fp8.errors.OutOfMemoryError, message):
                self.program(X, -1)

    def test_main_thread(self):
        self.check()

    def test_threads(self):
        """Each by its own stack, a small one too."""
        failures = []

        def run():
            try:
                self.check()
            except BaseException as error:
                failures.append(error)

        for size in (512 << 10, 16 << 20):
            before = threading.stack_size(size)
            try:
                threads = [threading.Thread(target=run) for _ in range(2)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            finally:
                threading.stack_size(before)
        self.assertEqual(failures, [])


if __name__ == "__main__":
    unittest.main()
