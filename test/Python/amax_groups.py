# RUN: %python %s
# RUN: env FP8_CUDA_DRIVER=emulator %python %s
"""Programs whose amaxes are those of all ranks of a group: what is called for it, what comes of it, and what fails."""

import os
import signal
import sys
import unittest
from pathlib import Path

import ml_dtypes
import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import fp8  # noqa: E402
import programs  # noqa: E402

os.environ["FP8_NCCL"] = "libno-such-nccl.so"
BF16 = ml_dtypes.bfloat16
TARGET = "sm_90a" if os.environ.get("FP8_CUDA_DRIVER") == "emulator" else "cpu"
LINEAR = programs.LINEAR.replace('"y"}) {', '"y"}) attributes {fp8.amax_group = "tp"} {')
REDUCE = """
func.func @reduce(%x: tensor<3x2xf32>, %row: tensor<?xf32>) -> (tensor<3x2xf32>, tensor<3x2xf32>, tensor<?xf32>) {
  %all = fp8.all_reduce_amax %x group = "tp" : tensor<3x2xf32>
  %two = fp8.all_reduce_amax %row group = "other" size = 2 : tensor<?xf32>
  return %x, %all, %two : tensor<3x2xf32>, tensor<3x2xf32>, tensor<?xf32>
}
"""


def make_array(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(BF16)


def compile(text, recipe=None):
    return fp8.compile(text, recipe, target=TARGET, cache=False)


class Groups(unittest.TestCase):
    def setUp(self):
        self.called = []

    def tearDown(self):
        for name in ("tp", "other"):
            fp8.set_group(name, None)

    def reduce_to(self, largest):
        """Another rank's amaxes are all the same."""
        def reduce(amaxes):
            self.called.append(amaxes.copy())
            np.maximum(amaxes.view(np.int32), np.float32(largest).view(np.int32), out=amaxes.view(np.int32))
        return reduce

    def test_an_operation(self):
        """What goes in stays; groups are told apart; NaN is the largest, and there may be none."""
        program = compile(REDUCE)
        fp8.set_group("tp", self.reduce_to(2.5))
        fp8.set_group("other", self.reduce_to(1))
        x = np.array([[1, 2], [3, 4], [0, float("nan")]], np.float32)
        same, reduced, row = program(x, np.array([0.5, 7], np.float32))
        np.testing.assert_array_equal(same, x)
        np.testing.assert_array_equal(reduced, [[2.5, 2.5], [3, 4], [2.5, float("nan")]])
        np.testing.assert_array_equal(row, [1, 7])
        self.assertEqual([each.size for each in self.called], [6, 2])
        self.assertEqual(program(x, np.zeros(0, np.float32))[2].size, 0)

    def test_current(self):
        """Each tensor once, also where it is quantized twice; scales are of the largest."""
        x, w = make_array(32, 256), make_array(256, 64, seed=1)
        fp8.set_group("tp", self.reduce_to(64))
        y = compile(LINEAR, "current")(x, w)
        self.assertEqual([each.tolist() for each in self.called],
                         [[np.abs(each).max().astype(np.float32)] for each in (x, w)])
        # In one process a row of x and a column of w have what another rank does.
        wide, tall = np.zeros((33, 256), BF16), np.zeros((256, 80), BF16)
        wide[:32], tall[:, :64], wide[32, 0], tall[1, 64] = x, w, 64, 64
        text = programs.LINEAR.replace("32x2", "33x2").replace("32x6", "33x6").replace("x64x", "x80x")
        expected = compile(text, "current")(wide, tall)
        np.testing.assert_array_equal(y, np.asarray(expected)[:32, :64])

    def test_delayed(self):
        """One reduction for all slots of a step, and one for each time that a first call is made."""
        x, w = make_array(32, 256), make_array(256, 64, seed=1)
        fp8.set_group("tp", self.reduce_to(64))
        program = compile(LINEAR, "delayed")
        state = fp8.State(program)
        for step in range(3):
            program(x, w, state=state)
            first, self.called = self.called, []
            state.end_step()
            self.assertEqual([each.size for each in self.called], [2])
            self.called = []
            self.assertEqual([each.size for each in first], [2, 2] if step == 0 else [])
            self.assertEqual({slot.scale for slot in state.slots.values()}, {448 / 64})

    def test_recipes_without_whole_tensors(self):
        x, w = make_array(32, 256), make_array(256, 64, seed=1)
        for recipe in ("rowwise", "block", "mxfp8"):
            with self.subTest(recipe):
                np.testing.assert_array_equal(compile(LINEAR, recipe)(x, w), compile(programs.LINEAR, recipe)(x, w))

    def test_constants_are_not_reduced_by_the_compiler(self):
        """Each rank may have another weight in its program."""
        text = """
          func.func @f(%x: tensor<32x32xf32>) -> tensor<32x32xf32> attributes {fp8.amax_group = "tp"} {
            %w = arith.constant dense<1.0> : tensor<32x32xf32>
            %zero = arith.constant dense<0.0> : tensor<32x32xf32>
            %y = linalg.matmul ins(%x, %w : tensor<32x32xf32>, tensor<32x32xf32>)
                outs(%zero : tensor<32x32xf32>) -> tensor<32x32xf32>
            return %y : tensor<32x32xf32>
          }"""
        fp8.set_group("tp", self.reduce_to(3))
        program = compile(text, "current")
        self.assertEqual(self.called, [])
        program(np.ones((32, 32), np.float32))
        self.assertEqual(len(self.called), 2)

    def test_what_fails(self):
        x, w = make_array(32, 256), make_array(256, 64, seed=1)
        program = compile(LINEAR, "current")
        with self.assertRaisesRegex(fp8.NotFoundError, "reduces over the group 'tp', but got nothing: set it before a call"):
            program(x, w)

        def fail(amaxes):
            raise ValueError("a rank is gone")
        fp8.set_group("tp", fail)
        with self.assertRaisesRegex(fp8.DeviceError, "cannot reduce over the group 'tp': ValueError: a rank is gone"):
            program(x, w)

        def interrupt(amaxes):
            raise KeyboardInterrupt
        # Python sets no handler in a process that a shell has put behind others.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        fp8.set_group("tp", interrupt)
        with self.assertRaises(KeyboardInterrupt):
            program(x, w)
        # Other calls go on.
        fp8.set_group("tp", self.reduce_to(0))
        np.testing.assert_array_equal(program(x, w), compile(programs.LINEAR, "current")(x, w))
        for name in ("", 3, "a\0b"):
            with self.assertRaisesRegex(fp8.ArgumentError, "^expected the name of a group, but got"):
                fp8.set_group(name, fail)
        with self.assertRaisesRegex(fp8.ArgumentError, "^expected something to call, or None, but got int"):
            fp8.set_group("tp", 3)

    def test_nccl_that_is_not_there(self):
        with self.assertRaisesRegex(fp8.NotFoundError, "^expected NCCL, but got none: .*; FP8_NCCL may name its library$"):
            fp8.create_nccl_id()


if __name__ == "__main__":
    unittest.main()
