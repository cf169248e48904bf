# RUN: env FP8_CUDA_DRIVER=emulator FP8_EMULATOR_ARCH=100 %python %s
"""What Python takes for the target of a Blackwell GPU, and what it runs there."""

import unittest

import numpy as np

import fp8

SOURCE = """
func.func @main(%x: tensor<32x256xf32> {fp8.name = "x"}, %w: tensor<256x64xf32> {fp8.name = "w"})
    -> (tensor<32x64xf32> {fp8.name = "y"}) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %y = linalg.matmul ins(%x, %w : tensor<32x256xf32>, tensor<256x64xf32>) outs(%zeros : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %y : tensor<32x64xf32>
}
"""


class Target(unittest.TestCase):
    def test_of_the_first_gpu(self):
        rng = np.random.default_rng(0)
        x, w = (rng.standard_normal(shape).astype(np.float32) for shape in ((32, 256), (256, 64)))
        results = []
        for target in ("auto", "cpu"):
            program = fp8.compile(SOURCE, "mxfp8", target=target, cache=False)
            results.append(np.asarray(program(x, w)))
            self.assertEqual(program.target, "sm_100a" if target == "auto" else "cpu")
        np.testing.assert_allclose(*results, rtol=1e-5, atol=1e-4)


if __name__ == "__main__":
    unittest.main()
