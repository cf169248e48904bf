// RUN: fp8-opt %s --fp8-apply-recipe=recipe=mxfp8 | FileCheck %s
// RUN: fp8-opt %s --fp8-apply-recipe="recipe=mxfp8 max-padding=0" | FileCheck %s --check-prefix=ZERO
// RUN: fp8-opt %s --fp8-apply-recipe="recipe=mxfp8 max-padding=1" | FileCheck %s --check-prefix=ONE

// K is padded with zeros to a multiple of 32 if that adds at most a quarter.

// CHECK-LABEL: func.func @padded
// CHECK: tensor.pad %{{.*}} low[0, 0] high[0, 4]
// CHECK: tensor.yield %cst{{.*}} : bf16
// CHECK: fp8.quantize %{{.*}} : tensor<32x64xbf16>
// CHECK: tensor.pad %{{.*}} low[0, 0] high[0, 4]
// CHECK: fp8.quantize %{{.*}} : tensor<16x64xbf16>
// ZERO-LABEL: func.func @padded
// ZERO-NOT: tensor.pad
// ZERO: linalg.matmul
func.func @padded(%x: tensor<32x60xbf16>, %w: tensor<60x16xbf16>, %c: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = linalg.matmul ins(%x, %w : tensor<32x60xbf16>, tensor<60x16xbf16>) outs(%c : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}

// CHECK-LABEL: func.func @too_much
// CHECK-NOT: fp8.quantize
// CHECK: linalg.matmul
// ONE-LABEL: func.func @too_much
// ONE-NOT: fp8.quantize
// ONE: linalg.matmul
func.func @too_much(%x: tensor<32x15xbf16>, %w: tensor<15x16xbf16>, %c: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = linalg.matmul ins(%x, %w : tensor<32x15xbf16>, tensor<15x16xbf16>) outs(%c : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}

// CHECK-LABEL: func.func @at_the_limit
// CHECK-NOT: fp8.quantize
// CHECK: linalg.matmul
// ONE-LABEL: func.func @at_the_limit
// ONE: fp8.quantize %{{.*}} : tensor<32x32xbf16>
func.func @at_the_limit(%x: tensor<32x16xbf16>, %w: tensor<16x16xbf16>, %c: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = linalg.matmul ins(%x, %w : tensor<32x16xbf16>, tensor<16x16xbf16>) outs(%c : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}

// The amount shows at run time. Only who forbids all padding forbids this.
// ZERO-LABEL: func.func @dynamic_k
// ZERO-NOT: fp8.quantize
// ZERO: linalg.matmul
// CHECK-LABEL: func.func @dynamic_k
// CHECK: %[[K:.*]] = tensor.dim
// CHECK: %[[HIGH:.*]] = affine.apply {{.*}}%[[K]]
// CHECK: tensor.pad %{{.*}} low[0, 0] high[0, %[[HIGH]]]
// CHECK: fp8.quantize %{{.*}} : tensor<32x?xbf16>
func.func @dynamic_k(%x: tensor<32x?xbf16>, %w: tensor<16x?xbf16>, %c: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %0 = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %w : tensor<32x?xbf16>, tensor<16x?xbf16>) outs(%c : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}

// Other dimensions are never padded.
// CHECK-LABEL: func.func @odd_m_n
// CHECK-NOT: tensor.pad
// CHECK: -> <3x64xf8E4M3FN
// CHECK: -> <5x64xf8E4M3FN
func.func @odd_m_n(%x: tensor<3x64xbf16>, %w: tensor<64x5xbf16>, %c: tensor<3x5xf32>) -> tensor<3x5xf32> {
  %0 = linalg.matmul ins(%x, %w : tensor<3x64xbf16>, tensor<64x5xbf16>) outs(%c : tensor<3x5xf32>) -> tensor<3x5xf32>
  return %0 : tensor<3x5xf32>
}
