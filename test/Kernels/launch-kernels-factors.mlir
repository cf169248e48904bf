// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-build-kernels --fp8-launch-kernels %s | FileCheck %s
// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-build-kernels --fp8-launch-kernels --canonicalize %s \
// RUN:   | FileCheck %s --check-prefix=LAST

// Factors of what a kernel transposes are read as the source has them: the launch
// says so as the kernel was built, which was before the transposition was one.

!a = !fp8.scaled<256x64xf8E4M3FN, block = [128, 1], scale = f32>
!at = !fp8.scaled<64x256xf8E4M3FN, block = [1, 128], scale = f32>
!b = !fp8.scaled<48x256xf8E4M3FN, block = [1, 128], scale = f32>

// CHECK: params = [{{.*}}#fp8_gpu.pointer<1>, #fp8_gpu.stride<1, 1>, #fp8_gpu.stride<1, 0>, #fp8_gpu.pointer<3>, #fp8_gpu.stride<3, 0>, #fp8_gpu.stride<3, 1>,
// CHECK-LABEL: func.func @transposed
// CHECK-COUNT-2: fp8.disassemble %arg0
// CHECK: %{{.+}}, %[[FACTORS:.+]] = fp8.disassemble %arg0
// CHECK: fp8_gpu.launch @{{.*}}fp8_matmul{{.*}} ins(%{{[^,]+}}, %[[FACTORS]], %{{.+}}, %{{.+}} : tensor<64x256xf8E4M3FN>, tensor<2x64xf32>, tensor<48x256xf8E4M3FN>, tensor<48x2xf32>)
func.func @transposed(%a: !a, %b: !b) -> tensor<64x48xf32> {
  %at = fp8.transpose %a permutation = [1, 0] : !a
  %y = fp8.matmul %at, %b : !at, !b -> tensor<64x48xf32>
  return %y : tensor<64x48xf32>
}

// Nor does anything remain of a transposition of factors that only a matmul reads,
// which takes them as they were before.

!r = !fp8.scaled<64x256xf8E4M3FN, block = [1, 128], scale = f32>

// LAST-LABEL: func.func @transposed_factors
// LAST-SAME: %[[STORED:[a-z0-9]+]]: tensor<2x64xf32>
// LAST-NOT: launch{{.*}}fp8_transpose
// LAST: fp8_gpu.launch @{{.*}}fp8_matmul{{.*}} ins(%{{[^,]+}}, %[[STORED]],
func.func @transposed_factors(%codes: tensor<64x256xf8E4M3FN>, %stored: tensor<2x64xf32>, %b: !b) -> tensor<64x48xf32> {
  %empty = tensor.empty() : tensor<64x2xf32>
  %factors = linalg.transpose ins(%stored : tensor<2x64xf32>) outs(%empty : tensor<64x2xf32>) permutation = [1, 0]
  %r = fp8.assemble %codes, %factors : tensor<64x256xf8E4M3FN>, tensor<64x2xf32> -> !r
  %y = fp8.matmul %r, %b : !r, !b -> tensor<64x48xf32>
  return %y : tensor<64x48xf32>
}
