// RUN: fp8-opt %s --fp8-set-target=chip=sm_100a --fp8-select-kernels --fp8-group-matmuls -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: fp8-opt %t.mlir --fp8-build-kernels -o %t.built.mlir
// RUN: fp8-translate --kernels-to-ptx %t.built.mlir | FileCheck %s --check-prefix=PTX

!x = !fp8.scaled<4096x1024xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
!w = !fp8.scaled<2048x1024xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
!x4 = !fp8.scaled<4096x1024xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
!w4 = !fp8.scaled<2048x1024xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
!y = tensor<4096x2048xbf16>

// A tile has half of its columns, and their factors, of each product: a lane takes
// a column's from one tensor or the other.

// CHECK-LABEL: func.func @micro
// CHECK:       fp8.sibling_matmuls {
// CHECK:       } {fp8_gpu.config = #fp8_sm100.gemm<

// PTX-LABEL:   .visible .entry fp8_matmul_sm100a_e4m3_e4m3_bf16_1x32_1x32_promote_dual_
// PTX:         tcgen05.mma.cta_group::1.kind::mxf8f6f4
// PTX:         selp.b64 %[[FROM:rd[0-9]+]],
// PTX-NEXT:    cp.async.ca.shared.global [%{{.+}}], [%[[FROM]]], 4,
func.func @micro(%x: !x, %w: !w, %v: !w) -> !y {
  %0 = fp8.matmul %x, %w : !x, !w -> !y
  %1 = fp8.matmul %x, %v epilogue(%0 : !y) {
  ^bb0(%acc: f32, %gate: bf16):
    %2 = arith.extf %gate : bf16 to f32
    %3 = arith.mulf %acc, %2 : f32
    %4 = arith.truncf %3 : f32 to bf16
    fp8.yield %4 : bf16
  } : !x, !w -> !y
  return %1 : !y
}

// The tensors' factors multiply the sums: A's by that of the B of each product.

// CHECK-LABEL: func.func @nvfp4
// CHECK:       fp8.sibling_matmuls {
// CHECK:       } {fp8_gpu.config = #fp8_sm100.gemm<

// PTX-LABEL:   .visible .entry fp8_matmul_sm100a_e2m1_e2m1_bf16_1x16_1x16_promote_dual_
// PTX:         tcgen05.mma.cta_group::1.kind::mxf4nvf4
func.func @nvfp4(%x: !x4, %w: !w4, %v: !w4) -> !y {
  %0 = fp8.matmul %x, %w : !x4, !w4 -> !y
  %1 = fp8.matmul %x, %v epilogue(%0 : !y) {
  ^bb0(%acc: f32, %gate: bf16):
    %2 = arith.extf %gate : bf16 to f32
    %3 = arith.mulf %acc, %2 : f32
    %4 = arith.truncf %3 : f32 to bf16
    fp8.yield %4 : bf16
  } : !x4, !w4 -> !y
  return %1 : !y
}
