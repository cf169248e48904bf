// RUN: fp8-opt %s --fp8-infer-scales | FileCheck %s

// CHECK-LABEL: func.func @current
// CHECK-SAME: %[[X:[^:]*]]: tensor<32x64xbf16>
// CHECK-NEXT: %[[AMAX:.*]] = fp8.amax %[[X]] block = [*, *] : tensor<32x64xbf16>
// CHECK-NEXT: %[[S:[^,]*]], %[[SI:[^ ]*]] = fp8.compute_scale %[[AMAX]] format = f8E4M3FN scale_type = f32 : tensor<1x1xf32>
// CHECK-NEXT: %[[Q:.*]] = fp8.quantize %[[X]] scale(%[[S]], %[[SI]] : tensor<1x1xf32>, tensor<1x1xf32>)
// CHECK-NEXT: return %[[Q]]
func.func @current(%x: tensor<32x64xbf16>) -> !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32> {
  %0 = fp8.quantize %x recipe(#fp8.current) : tensor<32x64xbf16> -> !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
  return %0 : !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
}

// The keys of the recipe become the rule; torchao's amax propagates NaN.
// CHECK-LABEL: func.func @rule
// CHECK: fp8.amax %{{.*}} block = [1, *] propagate_nan : tensor<?x64xf32>
// CHECK: fp8.compute_scale %{{.*}} format = f8E5M2 scale_type = f32 rule(#fp8.scale_rule<pow2 = true, epsilon = 9.99999996E-13, style = torchao>) : tensor<?x1xf32>
func.func @rule(%x: tensor<?x64xf32>) -> !fp8.scaled<?x64xf8E5M2, block = [1, *], scale = f32> {
  %0 = fp8.quantize %x recipe(#fp8.rowwise<format = hybrid, amax_epsilon = 1.0e-12, style = torchao>) : tensor<?x64xf32> -> !fp8.scaled<?x64xf8E5M2, block = [1, *], scale = f32>
  return %0 : !fp8.scaled<?x64xf8E5M2, block = [1, *], scale = f32>
}

// An infinite scale becomes the largest value of the source's type.
// CHECK-LABEL: func.func @block
// CHECK: fp8.amax %{{.*}} block = [1, 128] : tensor<4x256xf16>
// CHECK: rule(#fp8.scale_rule<pow2 = true, overflow = 6.550400e+04>) : tensor<4x2xf32>
func.func @block(%x: tensor<4x256xf16>) -> !fp8.scaled<4x256xf8E4M3FN, block = [1, 128], scale = f32> {
  %0 = fp8.quantize %x recipe(#fp8.block) : tensor<4x256xf16> -> !fp8.scaled<4x256xf8E4M3FN, block = [1, 128], scale = f32>
  return %0 : !fp8.scaled<4x256xf8E4M3FN, block = [1, 128], scale = f32>
}

// CHECK-LABEL: func.func @mxfp8
// CHECK: fp8.amax %{{.*}} block = [1, 32] propagate_nan
// CHECK: fp8.compute_scale %{{.*}} format = f8E4M3FN scale_type = f8E8M0FNU rule(#fp8.scale_rule<mode = floor, nonfinite = nan>) : tensor<4x2xf32>
// CHECK: fp8.quantize %{{.*}} scale(%{{.*}} : tensor<4x2xf32>, tensor<4x2xf8E8M0FNU>)
func.func @mxfp8(%x: tensor<4x64xf32>) -> !fp8.scaled<4x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU> {
  %0 = fp8.quantize %x recipe(#fp8.mxfp8<mode = floor, nonfinite = nan>) : tensor<4x64xf32> -> !fp8.scaled<4x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
  return %0 : !fp8.scaled<4x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
}

// The tensor's amax is that of its elements, whatever the blocks are.
// CHECK-LABEL: func.func @nvfp4
// CHECK: %[[BLOCKS:.*]] = fp8.amax %{{.*}} block = [1, 16] : tensor<4x64xf32>
// CHECK-NEXT: %[[ALL:.*]] = fp8.amax %{{.*}} block = [*, *] : tensor<4x64xf32>
// CHECK-NEXT: %[[S:[^,]*]], %[[SI:[^,]*]], %[[TSI:[^ ]*]] = fp8.compute_scale %[[BLOCKS]] tensor_amax(%[[ALL]] : tensor<1x1xf32>) format = f4E2M1FN scale_type = f8E4M3FN
// CHECK-NEXT: fp8.quantize %{{.*}} scale(%[[S]], %[[SI]] : {{.*}}) tensor_scale_inv(%[[TSI]] : tensor<1x1xf32>)
func.func @nvfp4(%x: tensor<4x64xf32>) -> !fp8.scaled<4x64xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32> {
  %0 = fp8.quantize %x recipe(#fp8.nvfp4) : tensor<4x64xf32> -> !fp8.scaled<4x64xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
  return %0 : !fp8.scaled<4x64xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
}

// CHECK-LABEL: func.func @given
// CHECK-NOT: fp8.amax
func.func @given(%x: tensor<4x64xf32>, %s: tensor<1x1xf32>) -> !fp8.scaled<4x64xf8E4M3FN, block = [*, *], scale = f32> {
  %0 = fp8.quantize %x scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<4x64xf32> -> !fp8.scaled<4x64xf8E4M3FN, block = [*, *], scale = f32>
  return %0 : !fp8.scaled<4x64xf8E4M3FN, block = [*, *], scale = f32>
}
