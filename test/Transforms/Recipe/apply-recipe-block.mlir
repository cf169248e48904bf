// RUN: fp8-opt %s --fp8-apply-recipe=recipe=block | FileCheck %s
// RUN: fp8-opt %s --fp8-apply-recipe=recipe=block,w_dim=1,x_dim=2 | FileCheck %s --check-prefix=XDIM
// RUN: fp8-opt %s --fp8-apply-recipe=recipe=block,w_dim=1,x_dim=2 --fp8-remarks=text:- -o /dev/null | FileCheck %s --check-prefix=REMARK
// RUN: fp8-opt %s --fp8-apply-recipe=recipe=block,w_dim=1,grad_dim=2 | FileCheck %s --check-prefix=GDIM

// 1x128 for activations and gradients, 128x128 for weights.

// CHECK-LABEL: func.func @fprop
// CHECK: -> <32x256xf8E4M3FN, block = [1, 128], scale = f32>
// CHECK: -> <64x256xf8E4M3FN, block = [128, 128], scale = f32>
// XDIM-LABEL: func.func @fprop
// XDIM: -> <32x256xf8E4M3FN, block = [128, 128], scale = f32>
// XDIM: -> <64x256xf8E4M3FN, block = [1, 128], scale = f32>
func.func @fprop(%x: tensor<32x256xbf16>, %w: tensor<256x64xbf16>, %c: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %0 = linalg.matmul ins(%x, %w : tensor<32x256xbf16>, tensor<256x64xbf16>) outs(%c : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %0 : tensor<32x64xf32>
}

// The weight is A here.
// CHECK-LABEL: func.func @weight_first
// CHECK: -> <32x256xf8E4M3FN, block = [128, 128], scale = f32>
// CHECK: -> <64x256xf8E4M3FN, block = [1, 128], scale = f32>
func.func @weight_first(%w: tensor<32x256xbf16> {fp8.weight}, %x: tensor<256x64xbf16>, %c: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %0 = linalg.matmul ins(%w, %x : tensor<32x256xbf16>, tensor<256x64xbf16>) outs(%c : tensor<32x64xf32>) -> tensor<32x64xf32>
  return %0 : tensor<32x64xf32>
}

// No weight in wgrad.
// CHECK-LABEL: func.func @wgrad
// CHECK: -> <64x128xf8E4M3FN, block = [1, 128], scale = f32>
// CHECK: -> <16x128xf8E4M3FN, block = [1, 128], scale = f32>
// GDIM-LABEL: func.func @wgrad
// GDIM: -> <64x128xf8E4M3FN, block = [128, 128], scale = f32>
// GDIM: -> <16x128xf8E4M3FN, block = [1, 128], scale = f32>
func.func @wgrad(%dy: tensor<64x128xbf16>, %x: tensor<128x16xbf16>, %dw: tensor<64x16xf32>) -> tensor<64x16xf32> {
  %0 = linalg.matmul {fp8.role = #fp8.role<wgrad>} ins(%dy, %x : tensor<64x128xbf16>, tensor<128x16xbf16>) outs(%dw : tensor<64x16xf32>) -> tensor<64x16xf32>
  return %0 : tensor<64x16xf32>
}

// Attention multiplies activations.
// CHECK-LABEL: func.func @batched
// CHECK: -> <4x32x128xf8E4M3FN, block = [1, 1, 128], scale = f32>
// CHECK: -> <4x64x128xf8E4M3FN, block = [1, 1, 128], scale = f32>
func.func @batched(%q: tensor<4x32x128xbf16>, %k: tensor<4x64x128xbf16>, %c: tensor<4x32x64xf32>) -> tensor<4x32x64xf32> {
  %0 = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%q, %k : tensor<4x32x128xbf16>, tensor<4x64x128xbf16>) outs(%c : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  return %0 : tensor<4x32x64xf32>
}

// Two activations with 2-D blocks: no tensor core multiplies these.
// XDIM-LABEL: func.func @batched_2d
// XDIM-NOT: fp8.quantize
func.func @batched_2d(%q: tensor<4x32x128xbf16>, %k: tensor<4x128x64xbf16>, %c: tensor<4x32x64xf32>) -> tensor<4x32x64xf32> {
  %0 = linalg.batch_matmul ins(%q, %k : tensor<4x32x128xbf16>, tensor<4x128x64xbf16>) outs(%c : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  return %0 : tensor<4x32x64xf32>
}
// REMARK: high precision; {{.*}} K=128, recipe block, reason both operands would have 2-D blocks
