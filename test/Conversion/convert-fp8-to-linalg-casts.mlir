// RUN: fp8-opt %s --convert-fp8-to-linalg --split-input-file | FileCheck %s

!q = !fp8.scaled<4x8xf8E4M3FN, block = [1, *], scale = f32>

// One product in f32, saturation, one rounding; the factors go along.
// CHECK-DAG: #[[ID:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[ROW:.*]] = affine_map<(d0, d1) -> (d0, 0)>
// CHECK-LABEL: func.func @quantize
// CHECK: %[[P:.*]] = linalg.generic {indexing_maps = [#[[ID]], #[[ROW]], #[[ID]]]{{.*}} ins(%arg0, %arg1 :
// CHECK-NEXT: ^bb0(%[[X:.*]]: bf16, %[[S:.*]]: f32, %{{.*}}: f8E4M3FN):
// CHECK-NEXT: %[[W:.*]] = arith.extf %[[X]] : bf16 to f32
// CHECK-NEXT: %[[Y:.*]] = arith.mulf %[[W]], %[[S]] : f32
// CHECK-DAG: %[[MAX:.*]] = arith.constant 4.480000e+02 : f32
// CHECK-DAG: %[[MIN:.*]] = arith.constant -4.480000e+02 : f32
// CHECK: %[[GT:.*]] = arith.cmpf ogt, %[[Y]], %[[MAX]]
// CHECK: %[[Z:.*]] = arith.select %[[GT]], %[[MAX]], %[[Y]]
// CHECK: %[[LT:.*]] = arith.cmpf olt, %[[Z]], %[[MIN]]
// CHECK: %[[C:.*]] = arith.select %[[LT]], %[[MIN]], %[[Z]]
// CHECK: %[[Q:.*]] = arith.truncf %[[C]] : f32 to f8E4M3FN
// CHECK: linalg.yield %[[Q]]
// CHECK: return %[[P]], %arg2
func.func @quantize(%x: tensor<4x8xbf16>, %s: tensor<4x1xf32>, %si: tensor<4x1xf32>) -> !q {
  %0 = fp8.quantize %x scale(%s, %si : tensor<4x1xf32>, tensor<4x1xf32>) : tensor<4x8xbf16> -> !q
  return %0 : !q
}

// -----

// The last block of 48 is half empty: padded on the way in, cut on the way out.
// CHECK-LABEL: func.func @partial_block
// CHECK: tensor.pad %arg0 low[0, 0] high[0, 16]
// CHECK: tensor.expand_shape {{.*}} output_shape [4, 2, 32]
// CHECK: arith.truncf %{{.*}} : f32 to f8E5M2
// CHECK: tensor.collapse_shape {{.*}} into tensor<4x64xf8E5M2>
// CHECK: tensor.extract_slice {{.*}} to tensor<4x48xf8E5M2>
!mx = !fp8.scaled<4x48xf8E5M2, block = [1, 32], scale = f8E8M0FNU>
func.func @partial_block(%x: tensor<4x48xf32>, %s: tensor<4x2xf32>, %si: tensor<4x2xf8E8M0FNU>) -> !mx {
  %0 = fp8.quantize %x scale(%s, %si : tensor<4x2xf32>, tensor<4x2xf8E8M0FNU>) : tensor<4x48xf32> -> !mx
  return %0 : !mx
}

// -----

// The factor is a product in f32; a byte holds two codes, the first in its lower
// half, so that there is one more loop.
// CHECK-LABEL: func.func @dequantize_nvfp4
// CHECK-SAME: %{{.*}}: tensor<4x8xi8>
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<4x1x8xi8>, {{.*}} outs(%{{.*}} : tensor<4x1x8x2xbf16>)
// CHECK: ^bb0(%[[BYTE:.*]]: i8, %[[BLOCK:.*]]: f8E4M3FN, %[[ALL:.*]]: f32, %{{.*}}: bf16):
// CHECK: %[[HALF:.*]] = linalg.index 3 : index
// CHECK: %[[PLACE:.*]] = arith.index_castui %[[HALF]] : index to i8
// CHECK: %[[SHIFT:.*]] = arith.muli %[[PLACE]], %{{.*}} : i8
// CHECK: %[[SHIFTED:.*]] = arith.shrui %[[BYTE]], %[[SHIFT]] : i8
// CHECK: %[[LOW:.*]] = arith.andi %[[SHIFTED]], %{{.*}} : i8
// CHECK: %[[NIBBLE:.*]] = arith.trunci %[[LOW]] : i8 to i4
// CHECK: %[[CODE:.*]] = arith.bitcast %[[NIBBLE]] : i4 to f4E2M1FN
// CHECK: %[[V:.*]] = arith.extf %[[CODE]] : f4E2M1FN to f32
// CHECK: %[[F:.*]] = arith.extf %[[BLOCK]] : f8E4M3FN to f32
// CHECK: %[[P:.*]] = arith.mulf %[[F]], %[[ALL]] : f32
// CHECK: %[[R:.*]] = arith.mulf %[[V]], %[[P]] : f32
// CHECK: arith.truncf %[[R]] : f32 to bf16
!nv = !fp8.scaled<4x16xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
func.func @dequantize_nvfp4(%q: !nv) -> tensor<4x16xbf16> {
  %0 = fp8.dequantize %q : !nv -> tensor<4x16xbf16>
  return %0 : tensor<4x16xbf16>
}

// -----

// NaN is skipped by default, and the largest bits when asked for.
// CHECK-LABEL: func.func @amax
// CHECK: linalg.generic {{.*}}iterator_types = ["reduction", "reduction"]
// CHECK: %[[MAG:.*]] = arith.andi
// CHECK: %[[NUMBER:.*]] = arith.cmpi ule, %[[MAG]]
// CHECK: %[[X:.*]] = arith.select %[[NUMBER]], %[[MAG]]
// CHECK: arith.maxui %{{.*}}, %[[X]]
func.func @amax(%x: tensor<4x48xf32>) -> tensor<1x1xf32> {
  %0 = fp8.amax %x block = [*, *] : tensor<4x48xf32>
  return %0 : tensor<1x1xf32>
}

// CHECK-LABEL: func.func @amax_nan
// CHECK: %[[MAG:.*]] = arith.andi
// CHECK-NEXT: arith.maxui %{{.*}}, %[[MAG]]
func.func @amax_nan(%x: tensor<4x48xf32>) -> tensor<1x1xf32> {
  %0 = fp8.amax %x block = [*, *] propagate_nan : tensor<4x48xf32>
  return %0 : tensor<1x1xf32>
}

// -----

// Payload and factors are permuted together.
// CHECK-LABEL: func.func @transpose
// CHECK: linalg.transpose ins(%arg0 : tensor<4x8xf8E4M3FN>) outs(%{{.*}} : tensor<8x4xf8E4M3FN>) permutation = [1, 0]
// CHECK: linalg.transpose ins(%arg1 : tensor<4x1xf32>) outs(%{{.*}} : tensor<1x4xf32>) permutation = [1, 0]
!q = !fp8.scaled<4x8xf8E4M3FN, block = [1, *], scale = f32>
func.func @transpose(%q: !q) -> !fp8.scaled<8x4xf8E4M3FN, block = [*, 1], scale = f32> {
  %0 = fp8.transpose %q permutation = [1, 0] : !q
  return %0 : !fp8.scaled<8x4xf8E4M3FN, block = [*, 1], scale = f32>
}

// CHECK-LABEL: func.func @parts
// CHECK-NEXT: return %arg1, %arg0
func.func @parts(%p: tensor<4x8xf8E4M3FN>, %s: tensor<4x1xf32>) -> (tensor<4x1xf32>, tensor<4x8xf8E4M3FN>) {
  %0 = fp8.assemble %p, %s : tensor<4x8xf8E4M3FN>, tensor<4x1xf32> -> !fp8.scaled<4x8xf8E4M3FN, block = [1, *], scale = f32>
  %1:2 = fp8.disassemble %0 : !fp8.scaled<4x8xf8E4M3FN, block = [1, *], scale = f32>
  return %1#1, %1#0 : tensor<4x1xf32>, tensor<4x8xf8E4M3FN>
}
