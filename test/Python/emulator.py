# RUN: env FP8_CUDA_DRIVER=emulator %python %s
# RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_CHECK=unwritten %python %s
"""Programs for a GPU on the emulator, whose memory is the host's: arrays of the host go in."""

import sys
import unittest
from pathlib import Path

import ml_dtypes
import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "Inputs"))
import fp8  # noqa: E402
import programs  # noqa: E402

BF16 = ml_dtypes.bfloat16


def make_array(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(BF16)


class Call(unittest.TestCase):
    def compile(self, text, recipe, target="sm_90a"):
        return fp8.compile(text, recipe, target=target, cache=False)

    def test_arrays_of_the_host(self):
        x, w = make_array(32, 256), make_array(256, 64, seed=1)
        program = self.compile(programs.LINEAR, "current")
        self.assertTrue(program.linear.runs_on_gpu)
        y = program(x, w)
        self.assertIsInstance(y, np.ndarray)
        expected = self.compile(programs.LINEAR, "current", "cpu")(x, w)
        # The tensor core cuts its sums off.
        self.assertLess(np.abs(y - expected).max(), 1e-3 * np.abs(expected).max())
        # A result is an argument as any array is, and stays when others are made.
        kept = y.copy()
        for _ in range(3):
            self.assertTrue((program(x, w) == kept).all())
        self.assertTrue((y == kept).all())

    def test_state(self):
        x, w = make_array(32, 256), make_array(256, 64, seed=1)
        states = []
        for target in ("sm_90a", "cpu"):
            program = self.compile(programs.LINEAR, "delayed", target)
            state = fp8.State(program)
            for scale in (1, 4):
                program((x * BF16(scale)), w, state=state)
                state.end_step()
            states.append({name: (slot.amax, slot.scale)
                           for name, slot in state.slots.items()})
        self.assertEqual(*states)

    def test_any_number_of_rows(self):
        """By the kernels for few rows and for many, whichever there are."""
        text = """
          func.func @linear(%x: tensor<?x512xbf16>, %w: tensor<768x512xbf16> {fp8.weight})
              -> tensor<?x768xf32> {
            %zero = arith.constant 0.0 : f32
            %c0 = arith.constant 0 : index
            %rows = tensor.dim %x, %c0 : tensor<?x512xbf16>
            %e = tensor.empty(%rows) : tensor<?x768xf32>
            %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x768xf32>) -> tensor<?x768xf32>
            %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                                                affine_map<(m, n, k) -> (n, k)>,
                                                affine_map<(m, n, k) -> (m, n)>]
                ins(%x, %w : tensor<?x512xbf16>, tensor<768x512xbf16>)
                outs(%z : tensor<?x768xf32>) -> tensor<?x768xf32>
            return %y : tensor<?x768xf32>
          }"""
        w = make_array(768, 512, seed=1)
        for recipe in (None, "current", "rowwise", "block"):
            cpu, gpu = (self.compile(text, recipe, target) for target in ("cpu", "sm_90a"))
            for rows in (0, 1, 16, 17, 40, 65, 130):
                x = make_array(rows, 512, seed=rows)
                y, expected = gpu(x, w), cpu(x, w)
                error = np.abs(y - expected).max(initial=0)
                self.assertLessEqual(error, 2e-3 * np.abs(expected).max(initial=0), (recipe, rows))

    def test_sizes_and_scalars(self):
        program = self.compile(programs.SEVERAL, None)
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        np.testing.assert_array_equal(program.negate(x), -x)
        self.assertEqual(program.negate(np.zeros((0, 3), np.float32)).shape, (0, 3))
        y, doubled = program.both(np.ones(4, np.float32), 3.0)
        np.testing.assert_array_equal(y, np.ones(4, np.float32))
        self.assertEqual(doubled, 6)

    def test_what_does_not_fit(self):
        program = self.compile(programs.LINEAR, "current")
        x, w = make_array(32, 256), make_array(256, 64, seed=1)
        with self.assertRaisesRegex(fp8.ArgumentError, "row-major"):
            program(x, make_array(64, 256).T)
        with self.assertRaisesRegex(fp8.ArgumentError, "expected argument 'x' of 'linear'"):
            program(x[:, :128].copy(), w)
        read_only = x.copy()
        read_only.flags.writeable = False
        self.assertEqual(program(read_only, w).shape, (32, 64))


unittest.main()
