// RUN: fp8-opt --fp8-set-target=chip=sm_100a --fp8-build-kernels --fp8-launch-kernels %s | FileCheck %s

// Codes of 4 bits are launched with as bytes of two, beside their factors and
// the tensors' own, which is A's for both results of a group.

!n = !fp8.scaled<512x256xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>

// CHECK: #fp8_gpu.argument<name = "a", element = i8, rank = 2, access = read, alignment = 16>, #fp8_gpu.argument<name = "scale_a", element = f8E4M3FN, rank = 2, access = read, alignment = 4>, #fp8_gpu.argument<name = "tensor_scale_a", element = f32, rank = 2, access = read, alignment = 4>
// CHECK-SAME: params = [#fp8_gpu.tensor_map<0, box = [128, 128], swizzle = 128, l2 = 128>

// CHECK-LABEL: func.func @nvfp4
// CHECK:       %[[A:.*]], %[[FA:.*]], %[[TA:.*]] = fp8.disassemble
// CHECK:       %[[BYTES_A:.*]] = builtin.unrealized_conversion_cast %[[A]] : tensor<512x256xf4E2M1FN> to tensor<512x128xi8>
// CHECK:       %[[B:.*]], %[[FB:.*]], %[[TB:.*]] = fp8.disassemble
// CHECK:       %[[BYTES_B:.*]] = builtin.unrealized_conversion_cast %[[B]] : tensor<512x256xf4E2M1FN> to tensor<512x128xi8>
// CHECK:       fp8_gpu.launch @fp8_kernels::@fp8_matmul_sm100a_e2m1_e2m1_bf16_1x16_1x16_promote_{{.*}} ins(%[[BYTES_A]], %[[FA]], %[[TA]], %[[BYTES_B]], %[[FB]], %[[TB]] : tensor<512x128xi8>, tensor<512x16xf8E4M3FN>, tensor<1x1xf32>, tensor<512x128xi8>, tensor<512x16xf8E4M3FN>, tensor<1x1xf32>)
func.func @nvfp4(%a: !n, %b: !n) -> tensor<512x512xbf16> {
  %0 = fp8.matmul %a, %b
    {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 128, tile_n = 64, stages = 3>}
    : !n, !n -> tensor<512x512xbf16>
  return %0 : tensor<512x512xbf16>
}

// CHECK-LABEL: func.func @group
// CHECK:       fp8_gpu.launch {{.*}} ins({{.*}} : tensor<512x128xi8>, tensor<512x16xf8E4M3FN>, tensor<1x1xf32>, tensor<512x128xi8>, tensor<512x16xf8E4M3FN>, tensor<1x1xf32>, tensor<512x128xi8>, tensor<512x16xf8E4M3FN>, tensor<1x1xf32>)
func.func @group(%a: !n, %b: !n, %c: !n) -> (tensor<512x512xbf16>, tensor<512x512xbf16>) {
  %0:2 = fp8.sibling_matmuls {
    %1 = fp8.matmul %a, %b : !n, !n -> tensor<512x512xbf16>
    %2 = fp8.matmul %a, %c : !n, !n -> tensor<512x512xbf16>
    fp8.yield %1, %2 : tensor<512x512xbf16>, tensor<512x512xbf16>
  } {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 128, tile_n = 64, stages = 3>} : tensor<512x512xbf16>, tensor<512x512xbf16>
  return %0#0, %0#1 : tensor<512x512xbf16>, tensor<512x512xbf16>
}
