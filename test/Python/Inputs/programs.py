"""Programs that the tests of the package share, and arrays for them."""

import ml_dtypes
import numpy as np

LINEAR = """
func.func @linear(%x: tensor<32x256xbf16> {fp8.name = "x"},
                  %w: tensor<256x64xbf16> {fp8.name = "w", fp8.weight})
    -> (tensor<32x64xf32> {fp8.name = "y"}) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %y = linalg.matmul ins(%x, %w : tensor<32x256xbf16>, tensor<256x64xbf16>)
                     outs(%init : tensor<32x64xf32>) -> tensor<32x64xf32> loc("layer.linear")
  return %y : tensor<32x64xf32>
}
"""

# K = 24 is too small for the blocks of mxfp8.
SMALL = LINEAR.replace("256", "24")

SEVERAL = """
func.func @negate(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
  %y = arith.negf %x : tensor<?x3xf32>
  return %y : tensor<?x3xf32>
}
func.func @both(%x: tensor<4xf32>, %s: f32) -> (tensor<4xf32>, f32) {
  %t = arith.addf %s, %s : f32
  return %x, %t : tensor<4xf32>, f32
}
func.func @nothing() {
  return
}
"""


def make_identity(mlir, shape="2x3"):
    """A program that returns a copy of its argument."""
    return (f"func.func @identity(%x: tensor<{shape}x{mlir}>) -> tensor<{shape}x{mlir}> {{\n"
            f"  return %x : tensor<{shape}x{mlir}>\n}}\n")


def make_inputs(seed=0):
    random = np.random.default_rng(seed)
    return (random.standard_normal((32, 256)).astype(ml_dtypes.bfloat16),
            random.standard_normal((256, 64)).astype(ml_dtypes.bfloat16))
