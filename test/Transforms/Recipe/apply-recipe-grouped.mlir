// RUN: fp8-opt %s --fp8-annotate-gemms --fp8-apply-recipe=recipe=rowwise | FileCheck %s
// RUN: fp8-opt %s --fp8-annotate-gemms --fp8-apply-recipe=recipe=block -o /dev/null --fp8-remarks=text:- | FileCheck %s --check-prefix=REMARK
// RUN: fp8-opt %s --fp8-annotate-gemms --fp8-apply-recipe=recipe=block,w_dim=1,x_dim=2 -o /dev/null --fp8-remarks=text:- | FileCheck %s --check-prefix=BLOCKS

// CHECK-LABEL: func.func @forward
// CHECK:       %[[A:.+]] = fp8.quantize %arg0 recipe(#fp8.rowwise) : tensor<96x256xbf16> -> <96x256xf8E4M3FN, block = [1, *], scale = f32>
// CHECK:       %[[B:.+]] = fp8.quantize %arg1 recipe(#fp8.rowwise) : tensor<4x64x256xbf16> -> <4x64x256xf8E4M3FN, block = [1, 1, *], scale = f32>
// CHECK:       fp8.grouped_matmul %[[A]], %[[B]] offsets(%arg2 : tensor<5xi32>)
// CHECK-SAME:    fp8.name = "forward.w", fp8.operands = [#fp8.operand<activation>, #fp8.operand<weight>], fp8.recipe = #fp8.rowwise, fp8.role = #fp8.role<fprop>
// REMARK:      forward.w: fp8; role fprop, shape groups=4 M=96 N=64 K=256, recipe block, a f8E4M3FN[1x128]f32, b f8E4M3FN[128x128]f32
// BLOCKS:      forward.w: high precision; {{.*}}reason rows of different groups would share a factor, suggestion use x_dim=1 and grad_dim=1
func.func @forward(%x: tensor<96x256xbf16>, %w: tensor<4x64x256xbf16> {fp8.name = "w", fp8.weight},
                   %offsets: tensor<5xi32>) -> tensor<96x64xbf16> {
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<5xi32>) accumulate = fast
      : tensor<96x256xbf16>, tensor<4x64x256xbf16> -> tensor<96x64xbf16>
  return %0 : tensor<96x64xbf16>
}

// The weight is transposed before it is quantized: fp8-simplify-casts exchanges the two.

// CHECK-LABEL: func.func @dgrad
// CHECK:       %[[T:.+]] = linalg.transpose ins(%arg1 : tensor<4x128x256xbf16>) {{.*}} permutation = [0, 2, 1]
// CHECK:       %[[B:.+]] = fp8.quantize %[[T]] recipe(#fp8.rowwise) : tensor<4x256x128xbf16>
// CHECK:       fp8.grouped_matmul %{{.+}}, %[[B]] offsets(%arg2 : tensor<5xi32>) {
// CHECK-SAME:    fp8.operands = [#fp8.operand<gradient>, #fp8.operand<weight>], {{.*}}fp8.role = #fp8.role<dgrad>
// REMARK:      dgrad.w.dgrad: fp8; role dgrad
func.func @dgrad(%dy: tensor<96x128xbf16> {fp8.grad}, %w: tensor<4x128x256xbf16> {fp8.name = "w", fp8.weight},
                 %offsets: tensor<5xi32>) -> tensor<96x256xbf16> {
  %0 = fp8.grouped_matmul %dy, %w offsets(%offsets : tensor<5xi32>) transpose_b accumulate = fast
      : tensor<96x128xbf16>, tensor<4x128x256xbf16> -> tensor<96x256xbf16>
  return %0 : tensor<96x256xbf16>
}

// CHECK-LABEL: func.func @wgrad
// CHECK:       %[[DY:.+]] = linalg.transpose ins(%arg0
// CHECK:       %[[X:.+]] = linalg.transpose ins(%arg1
// CHECK:       fp8.quantize %[[DY]] recipe(#fp8.rowwise) : tensor<64x96xbf16>
// CHECK:       fp8.quantize %[[X]] recipe(#fp8.rowwise) : tensor<256x96xbf16>
// CHECK:       fp8.grouped_matmul {{.*}}fp8.role = #fp8.role<wgrad>
// REMARK:      wgrad.grouped_matmul_0: high precision; role wgrad, {{.*}}reason K=96 is not a multiple of 128
func.func @wgrad(%dy: tensor<96x64xbf16> {fp8.grad}, %x: tensor<96x256xbf16>, %offsets: tensor<5xi32>) -> tensor<4x64x256xf32> {
  %0 = fp8.grouped_matmul %dy, %x offsets(%offsets : tensor<5xi32>) transpose_a transpose_b accumulate = fast
      : tensor<96x64xbf16>, tensor<96x256xbf16> -> tensor<4x64x256xf32>
  return %0 : tensor<4x64x256xf32>
}

// Zeros at the end of K, which are tokens of no group where tokens are summed over.

// CHECK-LABEL: func.func @padded
// CHECK-COUNT-2: tensor.pad
// CHECK:       fp8.grouped_matmul {{.*}} : !fp8.scaled<64x112xf8E4M3FN, block = [1, *], scale = f32>, !fp8.scaled<256x112xf8E4M3FN, block = [1, *], scale = f32> -> tensor<4x64x256xf32>
func.func @padded(%dy: tensor<100x64xbf16> {fp8.grad}, %x: tensor<100x256xbf16>, %offsets: tensor<5xi32>) -> tensor<4x64x256xf32> {
  %0 = fp8.grouped_matmul %dy, %x offsets(%offsets : tensor<5xi32>) transpose_a transpose_b accumulate = fast
      : tensor<100x64xbf16>, tensor<100x256xbf16> -> tensor<4x64x256xf32>
  return %0 : tensor<4x64x256xf32>
}

// One that says `none` stays.

// CHECK-LABEL: func.func @none
// CHECK:       fp8.grouped_matmul %arg0, %arg1
// REMARK:      none.grouped_matmul_0: high precision; {{.*}}reason its recipe is none
func.func @none(%x: tensor<96x256xbf16>, %w: tensor<4x64x256xbf16>, %offsets: tensor<5xi32>) -> tensor<96x64xbf16> {
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<5xi32>) accumulate = fast {fp8.recipe = #fp8.none}
      : tensor<96x256xbf16>, tensor<4x64x256xbf16> -> tensor<96x64xbf16>
  return %0 : tensor<96x64xbf16>
}

// Codes that a program has are multiplied as they are.

// CHECK-LABEL: func.func @codes
// CHECK-NEXT:  fp8.grouped_matmul %arg0, %arg1
!x = !fp8.scaled<96x256xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<4x64x256xf8E4M3FN, block = [*, *, *], scale = f32>
func.func @codes(%x: !x, %w: !w, %offsets: tensor<5xi32>) -> tensor<96x64xbf16> {
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<5xi32>) : !x, !w -> tensor<96x64xbf16>
  return %0 : tensor<96x64xbf16>
}

// Groups in rows of their own: a group's rows may share a factor, and K is one group's.

// CHECK-LABEL: func.func @counts
// CHECK:       %[[A:.+]] = fp8.quantize %arg0 recipe(#fp8.rowwise) : tensor<4x96x256xbf16> -> <4x96x256xf8E4M3FN, block = [1, 1, *], scale = f32>
// CHECK:       %[[B:.+]] = fp8.quantize %arg1 recipe(#fp8.rowwise) : tensor<4x64x256xbf16> -> <4x64x256xf8E4M3FN, block = [1, 1, *], scale = f32>
// CHECK:       fp8.grouped_matmul %[[A]], %[[B]] counts(%arg2 : tensor<4xi32>)
// CHECK-SAME:    {{.*}}fp8.role = #fp8.role<fprop>
// REMARK:      counts.w: fp8; role fprop, shape groups=4 M=96 N=64 K=256, recipe block, a f8E4M3FN[1x128]f32, b f8E4M3FN[128x128]f32
// BLOCKS:      counts.w: fp8; role fprop, {{.*}}a f8E4M3FN[128x128]f32, b f8E4M3FN[1x128]f32
func.func @counts(%x: tensor<4x96x256xbf16>, %w: tensor<4x64x256xbf16> {fp8.name = "w", fp8.weight},
                  %counts: tensor<4xi32>) -> tensor<4x96x64xbf16> {
  %0 = fp8.grouped_matmul %x, %w counts(%counts : tensor<4xi32>) accumulate = fast
      : tensor<4x96x256xbf16>, tensor<4x64x256xbf16> -> tensor<4x96x64xbf16>
  return %0 : tensor<4x96x64xbf16>
}

// CHECK-LABEL: func.func @counts_k
// CHECK:       %[[DY:.+]] = linalg.transpose ins(%arg0 : tensor<4x128x64xbf16>) {{.*}} permutation = [0, 2, 1]
// CHECK:       fp8.quantize %[[DY]] recipe(#fp8.rowwise) : tensor<4x64x128xbf16> -> <4x64x128xf8E4M3FN, block = [1, 1, *], scale = f32>
// CHECK:       fp8.grouped_matmul {{.*}} counts_k(%arg2 : tensor<4xi32>) {{.*}}fp8.role = #fp8.role<wgrad>
// REMARK:      counts_k.grouped_matmul_0: fp8; role wgrad, shape groups=4 M=64 N=256 K=128
func.func @counts_k(%dy: tensor<4x128x64xbf16> {fp8.grad}, %x: tensor<4x128x256xbf16>, %counts: tensor<4xi32>) -> tensor<4x64x256xf32> {
  %0 = fp8.grouped_matmul %dy, %x counts_k(%counts : tensor<4xi32>) transpose_a transpose_b accumulate = fast
      : tensor<4x128x64xbf16>, tensor<4x128x256xbf16> -> tensor<4x64x256xf32>
  return %0 : tensor<4x64x256xf32>
}
