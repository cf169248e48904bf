// RUN: %python %S/Inputs/check.py %s --recipe=none --max-error=1e-5
// RUN: %python %S/Inputs/check.py %s --recipe=current --max-error=0.06

// A matmul after IREE's data tiling: packed with padding, multiplied as tiles,
// unpacked.

func.func @main(%a: tensor<12x20xf32>, %b: tensor<20x30xf32>) -> tensor<12x30xf32> {
  %zero = arith.constant 0.0 : f32
  %0 = tensor.empty() : tensor<2x3x8x8xf32>
  %pa = linalg.pack %a padding_value(%zero : f32) inner_dims_pos = [0, 1] inner_tiles = [8, 8] into %0
      : tensor<12x20xf32> -> tensor<2x3x8x8xf32>
  %1 = tensor.empty() : tensor<4x3x8x8xf32>
  %pb = linalg.pack %b padding_value(%zero : f32) outer_dims_perm = [1, 0] inner_dims_pos = [1, 0] inner_tiles = [8, 8] into %1
      : tensor<20x30xf32> -> tensor<4x3x8x8xf32>
  %2 = tensor.empty() : tensor<2x4x8x8xf32>
  %3 = linalg.fill ins(%zero : f32) outs(%2 : tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %4 = linalg.mmt4d ins(%pa, %pb : tensor<2x3x8x8xf32>, tensor<4x3x8x8xf32>) outs(%3 : tensor<2x4x8x8xf32>) -> tensor<2x4x8x8xf32>
  %5 = tensor.empty() : tensor<12x30xf32>
  %6 = linalg.unpack %4 inner_dims_pos = [0, 1] inner_tiles = [8, 8] into %5
      : tensor<2x4x8x8xf32> -> tensor<12x30xf32>
  return %6 : tensor<12x30xf32>
}
