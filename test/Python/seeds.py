# RUN: env FP8_CUDA_DRIVER=emulator %python %s
"""Seeds of stochastic rounding in a State."""

import tempfile
import unittest
from pathlib import Path

import ml_dtypes
import numpy as np

import fp8

RECIPE = fp8.NVFP4BlockScaling(enable_stochastic_rounding=True, enable_rht=True)
# The gradient of an input and that of a weight.
BACKWARD = """
func.func @backward(%dy: tensor<32x64xbf16> {fp8.grad}, %x: tensor<32x48xbf16>,
                    %w: tensor<64x48xbf16> {fp8.weight})
    -> (tensor<32x48xf32>, tensor<64x48xf32>) {
  %zx = arith.constant dense<0.0> : tensor<32x48xf32>
  %zw = arith.constant dense<0.0> : tensor<64x48xf32>
  %dx = linalg.matmul {fp8.name = "l.dgrad", fp8.role = #fp8.role<dgrad>}
      ins(%dy, %w : tensor<32x64xbf16>, tensor<64x48xbf16>) outs(%zx : tensor<32x48xf32>)
      -> tensor<32x48xf32>
  %dw = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>,
      affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      {fp8.name = "l.wgrad", fp8.role = #fp8.role<wgrad>}
      ins(%dy, %x : tensor<32x64xbf16>, tensor<32x48xbf16>) outs(%zw : tensor<64x48xf32>)
      -> tensor<64x48xf32>
  return %dx, %dw : tensor<32x48xf32>, tensor<64x48xf32>
}
"""


def make_arguments():
    random = np.random.default_rng(0)
    return [random.standard_normal(shape).astype(ml_dtypes.bfloat16)
            for shape in ((32, 64), (32, 48), (64, 48))]


def compile_backward(recipe=RECIPE, target="cpu"):
    return fp8.compile(BACKWARD, recipe, target=target, cache=False)


class Seeds(unittest.TestCase):
    def setUp(self):
        self.program = compile_backward()
        self.state = fp8.State(self.program)
        self.arguments = make_arguments()

    def run_step(self, state=None):
        state = state or self.state
        results = self.program(*self.arguments, state=state)
        state.end_step()
        return [result.tobytes() for result in results]

    def test_slots(self):
        self.assertEqual(list(self.state.slots), ["l.dgrad.dy", "l.wgrad.dy"])
        slot = self.state.slots["l.dgrad.dy"]
        self.assertEqual((slot.format, slot.role, slot.operand), ("e2m1", "dgrad", "gradient"))
        self.assertEqual(self.state.recipe, "nvfp4,stochastic_rounding=true")

    def test_steps_differ_and_repeat(self):
        steps = [self.run_step() for _ in range(4)]
        for results in zip(*steps):
            self.assertEqual(len(set(results)), 4)
        again = fp8.State(self.program)
        self.assertEqual([self.run_step(again) for _ in range(4)], steps)
        self.state.reset()
        self.assertEqual(self.run_step(), steps[0])

    def test_seeds(self):
        seen = set()
        for seed in (0, 1, 2 ** 31, 2 ** 32, 2 ** 64 - 1):
            self.state.reset()
            self.state.set_seed(seed)
            first = tuple(self.run_step())
            other = fp8.State(self.program)
            other.set_seed(seed)
            self.assertEqual(tuple(self.run_step(other)), first)
            seen.add(first)
        self.assertEqual(len(seen), 5)

    def test_a_seed_keeps_the_steps(self):
        self.run_step()
        before = self.run_step()
        self.state.reset()
        self.run_step()
        self.state.set_seed(0)
        self.assertEqual(self.run_step(), before)

    def test_saved(self):
        self.state.set_seed(7)
        self.run_step()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "state.safetensors"
            self.state.save(path)
            other = fp8.State(self.program)
            self.assertEqual(other.load(path, strict=True), "")
        restored = fp8.State(self.program)
        restored.load_state_dict(self.state.state_dict())
        following = self.run_step()
        self.assertEqual(self.run_step(other), following)
        self.assertEqual(self.run_step(restored), following)

    def test_frozen(self):
        first = self.program(*self.arguments, state=self.state)
        with self.state.frozen():
            self.run_step()
        again = self.program(*self.arguments, state=self.state)
        self.assertEqual([a.tobytes() for a in first], [a.tobytes() for a in again])

    def test_mean_of_steps(self):
        """Gradients come nearer to the exact ones with the steps that are averaged; rounded to
        nearest they do not."""
        dy, x, w = (array.astype(np.float64) for array in self.arguments)
        # Only gradients are rounded stochastically: of the others the codes' own values.
        w = np.eye(64, 48)
        self.arguments[2] = w.astype(ml_dtypes.bfloat16)
        count = 256
        total = sum(self.program(*self.arguments, state=self.step_state())[0].astype(np.float64)
                    for _ in range(count)) / count
        one = self.program(*self.arguments, state=self.state)[0]
        nearest = compile_backward(fp8.NVFP4BlockScaling())(*self.arguments)[0]
        exact = dy @ w
        mean, single, rounded = (np.linalg.norm(value - exact) / np.linalg.norm(exact)
                                 for value in (total, one, nearest))
        # 1 / 16 of one step's, and what is left of the factors' rounding.
        self.assertLess(mean, single / 10)
        self.assertLess(mean, rounded / 5)

    def step_state(self):
        self.state.end_step()
        return self.state

    def test_on_a_gpu(self):
        expected = [self.run_step() for _ in range(2)]
        program = compile_backward(target="sm_90a")
        state = fp8.State(program)
        for step in range(2):
            for result, bytes_ in zip(program(*self.arguments, state=state), expected[step]):
                theirs = np.frombuffer(bytes_, np.float32).reshape(result.shape)
                self.assertLess(np.abs(result - theirs).max(), 1e-5 * np.abs(theirs).max())
            state.end_step()
        self.run_step()
        self.state.set_seed(11)
        program(*self.arguments, state=state)
        state.end_step()
        state.set_seed(11)
        expected = np.frombuffer(self.run_step()[0], np.float32)
        result = program(*self.arguments, state=state)[0]
        self.assertLess(np.abs(result.reshape(-1) - expected).max(), 1e-5 * np.abs(expected).max())

    def test_errors(self):
        for seed in (-1, 2 ** 64, 1.0, "1", True):
            with self.assertRaisesRegex(fp8.ArgumentError, "a seed of 0 to 2\\^64 - 1, but got"):
                self.state.set_seed(seed)
        delayed = fp8.State(compile_backward(fp8.DelayedScaling()))
        with self.assertRaisesRegex(fp8.ArgumentError, "a state with stochastic rounding, but got"):
            delayed.set_seed(1)
        with self.assertRaises(fp8.ArgumentError):
            fp8.State(compile_backward(fp8.NVFP4BlockScaling(enable_rht=True)))


if __name__ == "__main__":
    unittest.main()
