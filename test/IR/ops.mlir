// RUN: fp8-opt %s --allow-unregistered-dialect | fp8-opt --allow-unregistered-dialect | FileCheck %s
// RUN: fp8-opt %s --allow-unregistered-dialect --emit-bytecode | fp8-opt --allow-unregistered-dialect | FileCheck %s
// RUN: fp8-opt %s --allow-unregistered-dialect --mlir-print-op-generic | fp8-opt --allow-unregistered-dialect | FileCheck %s
// RUN: fp8-opt %s --allow-unregistered-dialect | not grep '[^ ]  '

// CHECK-LABEL: @amax
func.func @amax(%x: tensor<32x768xbf16>, %y: tensor<?x768xf32>) {
  // CHECK: fp8.amax %{{.*}} block = [*, *] : tensor<32x768xbf16>
  %0 = fp8.amax %x block = [*, *] : tensor<32x768xbf16>
  // CHECK: fp8.amax %{{.*}} block = [1, 128] propagate_nan : tensor<?x768xf32>
  %1 = fp8.amax %y block = [1, 128] propagate_nan : tensor<?x768xf32>
  // CHECK: "use"(%{{.*}}, %{{.*}}) : (tensor<1x1xf32>, tensor<?x6xf32>)
  "use"(%0, %1) : (tensor<1x1xf32>, tensor<?x6xf32>) -> ()
  return
}

// CHECK-LABEL: @compute_scale
func.func @compute_scale(%amax: tensor<4x6xf32>, %all: tensor<1x1xf32>) {
  // CHECK: fp8.compute_scale %{{.*}} format = f8E4M3FN scale_type = f32 : tensor<4x6xf32>
  %s, %si = fp8.compute_scale %amax format = f8E4M3FN scale_type = f32 : tensor<4x6xf32>
  // CHECK: fp8.compute_scale %{{.*}} format = f8E5M2 scale_type = f8E8M0FNU rule(#fp8.scale_rule<mode = floor, nonfinite = nan>) : tensor<4x6xf32>
  %t, %ti = fp8.compute_scale %amax format = f8E5M2 scale_type = f8E8M0FNU
      rule(#fp8.scale_rule<mode = floor, nonfinite = nan>) : tensor<4x6xf32>
  // CHECK: fp8.compute_scale %{{.*}} tensor_amax(%{{.*}} : tensor<1x1xf32>) format = f4E2M1FN scale_type = f8E4M3FN : tensor<4x6xf32>
  %u, %ui, %tensor = fp8.compute_scale %amax tensor_amax(%all : tensor<1x1xf32>)
      format = f4E2M1FN scale_type = f8E4M3FN : tensor<4x6xf32>
  // CHECK: (tensor<4x6xf8E8M0FNU>, tensor<4x6xf8E4M3FN>, tensor<1x1xf32>)
  "use"(%ti, %ui, %tensor) : (tensor<4x6xf8E8M0FNU>, tensor<4x6xf8E4M3FN>, tensor<1x1xf32>) -> ()
  return
}

// CHECK-LABEL: @hadamard
func.func @hadamard(%x: tensor<?x32xbf16>) -> tensor<?x32xbf16> {
  // CHECK: fp8.hadamard %{{.*}} signs = 55272 : tensor<?x32xbf16>
  %0 = fp8.hadamard %x signs = 0xd7e8 : tensor<?x32xbf16>
  return %0 : tensor<?x32xbf16>
}

// CHECK-LABEL: @stochastic
func.func @stochastic(%x: tensor<8x32xbf16>, %s: tensor<1x1xf32>, %seed: tensor<4xi32>) {
  // CHECK: fp8.quantize %{{.*}} recipe(#fp8.nvfp4<stochastic_rounding = true>) seed(%{{.*}} : tensor<4xi32>) : tensor<8x32xbf16> ->
  %0 = fp8.quantize %x recipe(#fp8.nvfp4<stochastic_rounding = true>) seed(%seed : tensor<4xi32>)
      : tensor<8x32xbf16> -> !fp8.scaled<8x32xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
  // CHECK: fp8.quantize %{{.*}} scale(%{{.*}}, %{{.*}} : tensor<1x1xf32>, tensor<1x1xf32>) seed(%{{.*}} : tensor<4xi32>) : tensor<8x32xbf16> ->
  %1 = fp8.quantize %x scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) seed(%seed : tensor<4xi32>)
      : tensor<8x32xbf16> -> !fp8.scaled<8x32xf4E2M1FN, block = [*, *], scale = f32>
  return
}

// CHECK-LABEL: @quantize
func.func @quantize(%x: tensor<32x768xbf16>, %s: tensor<1x1xf32>,
                    %f: tensor<32x48xf32>, %fi: tensor<32x48xf8E4M3FN>) {
  // CHECK: fp8.quantize %{{.*}} recipe(#fp8.current<pow2 = true>) : tensor<32x768xbf16> -> <32x768xf8E4M3FN, block = [*, *], scale = f32>
  %0 = fp8.quantize %x recipe(#fp8.current<pow2 = true>) : tensor<32x768xbf16>
      -> !fp8.scaled<32x768xf8E4M3FN, block = [*, *], scale = f32>
  // CHECK: fp8.quantize %{{.*}} scale(%{{.*}}, %{{.*}} : tensor<1x1xf32>, tensor<1x1xf32>) :
  %1 = fp8.quantize %x scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<32x768xbf16>
      -> !fp8.scaled<32x768xf8E5M2, block = [*, *], scale = f32>
  // CHECK: tensor_scale_inv(%{{.*}} : tensor<1x1xf32>)
  // CHECK-SAME: <32x768xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
  %2 = fp8.quantize %x scale(%f, %fi : tensor<32x48xf32>, tensor<32x48xf8E4M3FN>)
      tensor_scale_inv(%s : tensor<1x1xf32>) : tensor<32x768xbf16>
      -> !fp8.scaled<32x768xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
  return
}

// CHECK-LABEL: @dequantize_dynamic
func.func @dequantize_dynamic(%q: !fp8.scaled<?x768xf8E4M3FN, block = [1, *], scale = f32>)
    -> tensor<?x768xbf16> {
  // CHECK: fp8.dequantize %{{.*}} : <?x768xf8E4M3FN, block = [1, *], scale = f32> -> tensor<?x768xbf16>
  %0 = fp8.dequantize %q : !fp8.scaled<?x768xf8E4M3FN, block = [1, *], scale = f32> -> tensor<?x768xbf16>
  return %0 : tensor<?x768xbf16>
}

// CHECK-LABEL: @measure
func.func @measure(%x: tensor<32x64xf32>, %q: !fp8.scaled<32x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>) -> f64 {
  // CHECK: fp8.measure %{{.*}}, %{{.*}} : tensor<32x64xf32>, <32x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
  %amax, %underflow, %saturated, %signal, %noise = fp8.measure %x, %q
      : tensor<32x64xf32>, !fp8.scaled<32x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
  return %noise : f64
}

// CHECK-LABEL: @transpose
// CHECK-SAME: -> !fp8.scaled<768x32xf8E4M3FN, block = [128, 1], scale = f32>
func.func @transpose(%q: !fp8.scaled<32x768xf8E4M3FN, block = [1, 128], scale = f32>)
    -> !fp8.scaled<768x32xf8E4M3FN, block = [128, 1], scale = f32> {
  // CHECK: fp8.transpose %{{.*}} permutation = [1, 0] :
  %0 = fp8.transpose %q permutation = [1, 0] : !fp8.scaled<32x768xf8E4M3FN, block = [1, 128], scale = f32>
  return %0 : !fp8.scaled<768x32xf8E4M3FN, block = [128, 1], scale = f32>
}

// CHECK-LABEL: @parts
func.func @parts(%p: tensor<32x64xf4E2M1FN>, %s: tensor<32x4xf8E4M3FN>, %t: tensor<1x1xf32>) -> tensor<32x64xf4E2M1FN> {
  // CHECK: fp8.assemble %{{.*}}, %{{.*}}, %{{.*}} : tensor<32x64xf4E2M1FN>, tensor<32x4xf8E4M3FN>, tensor<1x1xf32> ->
  %0 = fp8.assemble %p, %s, %t : tensor<32x64xf4E2M1FN>, tensor<32x4xf8E4M3FN>, tensor<1x1xf32>
      -> !fp8.scaled<32x64xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
  // CHECK: fp8.disassemble %{{.*}} : <32x64xf4E2M1FN
  %1:3 = fp8.disassemble %0 : !fp8.scaled<32x64xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
  return %1#0 : tensor<32x64xf4E2M1FN>
}

// CHECK-LABEL: @matmul
func.func @matmul(%a: !fp8.scaled<32x128xf8E5M2, block = [*, *], scale = f32>,
                  %b: !fp8.scaled<64x128xf8E5M2, block = [*, *], scale = f32>) -> tensor<32x64xbf16> {
  // CHECK: fp8.matmul %{{.*}}, %{{.*}} accumulate = fast : !fp8.scaled<32x128xf8E5M2, block = [*, *], scale = f32>, !fp8.scaled<64x128xf8E5M2, block = [*, *], scale = f32> -> tensor<32x64xbf16>
  %0 = fp8.matmul %a, %b accumulate = fast : !fp8.scaled<32x128xf8E5M2, block = [*, *], scale = f32>,
      !fp8.scaled<64x128xf8E5M2, block = [*, *], scale = f32> -> tensor<32x64xbf16>
  return %0 : tensor<32x64xbf16>
}

// Operands in high precision, either dimension innermost.

// CHECK-LABEL: @matmul_plain
func.func @matmul_plain(%a: tensor<?x128xbf16>, %b: tensor<64x128xbf16>) -> tensor<?x64xf32> {
  // CHECK: fp8.matmul %{{.*}}, %{{.*}} accumulate = fast : tensor<?x128xbf16>, tensor<64x128xbf16> -> tensor<?x64xf32>
  %0 = fp8.matmul %a, %b accumulate = fast : tensor<?x128xbf16>, tensor<64x128xbf16> -> tensor<?x64xf32>
  return %0 : tensor<?x64xf32>
}

// CHECK-LABEL: @matmul_transposed
func.func @matmul_transposed(%a: tensor<4x128x32xf16>, %b: tensor<4x128x64xf16>, %c: tensor<4x64x128xf16>)
    -> (tensor<4x32x64xf16>, tensor<4x32x64xf16>, tensor<4x128x128xf16>) {
  // CHECK: fp8.matmul %{{.*}}, %{{.*}} transpose_a transpose_b accumulate = fast : tensor<4x128x32xf16>, tensor<4x128x64xf16> -> tensor<4x32x64xf16>
  %0 = fp8.matmul %a, %b transpose_a transpose_b accumulate = fast : tensor<4x128x32xf16>, tensor<4x128x64xf16> -> tensor<4x32x64xf16>
  // CHECK: fp8.matmul %{{.*}}, %{{.*}} transpose_a accumulate = fast : tensor<4x128x32xf16>, tensor<4x64x128xf16> -> tensor<4x32x64xf16>
  %1 = fp8.matmul %a, %c transpose_a accumulate = fast : tensor<4x128x32xf16>, tensor<4x64x128xf16> -> tensor<4x32x64xf16>
  // CHECK: fp8.matmul %{{.*}}, %{{.*}} transpose_b accumulate = fast : tensor<4x128x64xf16>, tensor<4x64x128xf16> -> tensor<4x128x128xf16>
  %2 = fp8.matmul %b, %c transpose_b accumulate = fast : tensor<4x128x64xf16>, tensor<4x64x128xf16> -> tensor<4x128x128xf16>
  return %0, %1, %2 : tensor<4x32x64xf16>, tensor<4x32x64xf16>, tensor<4x128x128xf16>
}

// CHECK-LABEL: @matmul_plain_epilogue
func.func @matmul_plain_epilogue(%a: tensor<128x32xf32>, %b: tensor<64x128xf32>, %bias: tensor<64xf32>) -> (tensor<32x64xf8E5M2>, tensor<1x1xf32>) {
  // CHECK: fp8.matmul %{{.*}}, %{{.*}} transpose_a accumulate = fast epilogue(%{{.*}} : tensor<64xf32>) {
  %0:2 = fp8.matmul %a, %b transpose_a accumulate = fast epilogue(%bias : tensor<64xf32>) {
  ^bb0(%acc: f32, %b0: f32):
    %1 = arith.addf %acc, %b0 : f32
    %2 = arith.truncf %1 : f32 to f8E5M2
    fp8.yield %2, %1 : f8E5M2, f32
  } : tensor<128x32xf32>, tensor<64x128xf32> -> tensor<32x64xf8E5M2>, tensor<1x1xf32>
  return %0#0, %0#1 : tensor<32x64xf8E5M2>, tensor<1x1xf32>
}

// CHECK-LABEL: @matmul_quantized
func.func @matmul_quantized(%a: !fp8.scaled<32x128xf8E4M3FN, block = [*, *], scale = f32>, %scale: f32) -> (tensor<32x32xf8E4M3FN>, tensor<1x1xf32>) {
  // CHECK: fp8.yield %{{.*}}, %{{.*}} : f8E4M3FN, f32
  // CHECK: -> tensor<32x32xf8E4M3FN>, tensor<1x1xf32>
  %0:2 = fp8.matmul %a, %a epilogue {
  ^bb0(%acc: f32):
    %1 = arith.mulf %acc, %scale : f32
    %2 = arith.truncf %1 : f32 to f8E4M3FN
    fp8.yield %2, %acc : f8E4M3FN, f32
  } : !fp8.scaled<32x128xf8E4M3FN, block = [*, *], scale = f32>,
      !fp8.scaled<32x128xf8E4M3FN, block = [*, *], scale = f32> -> tensor<32x32xf8E4M3FN>, tensor<1x1xf32>
  return %0#0, %0#1 : tensor<32x32xf8E4M3FN>, tensor<1x1xf32>
}

// CHECK-LABEL: @matmul_epilogue_batched
func.func @matmul_epilogue_batched(%a: !fp8.scaled<4x?x128xf8E4M3FN, block = [1, 1, 128], scale = f32>,
                                   %b: !fp8.scaled<4x64x128xf8E4M3FN, block = [1, 128, 128], scale = f32>,
                                   %bias: tensor<64xbf16>, %c: tensor<4x?x64xf32>) -> tensor<4x?x64xf32> {
  // CHECK: fp8.matmul %{{.*}}, %{{.*}} epilogue(%{{.*}}, %{{.*}} : tensor<64xbf16>, tensor<4x?x64xf32>) {
  // CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: bf16, %{{.*}}: f32):
  // CHECK: fp8.yield %{{.*}} : f32
  %0 = fp8.matmul %a, %b epilogue(%bias, %c : tensor<64xbf16>, tensor<4x?x64xf32>) {
  ^bb0(%acc: f32, %b0: bf16, %c0: f32):
    %1 = arith.extf %b0 : bf16 to f32
    %2 = arith.addf %acc, %1 : f32
    %3 = arith.addf %2, %c0 : f32
    fp8.yield %3 : f32
  } : !fp8.scaled<4x?x128xf8E4M3FN, block = [1, 1, 128], scale = f32>,
      !fp8.scaled<4x64x128xf8E4M3FN, block = [1, 128, 128], scale = f32> -> tensor<4x?x64xf32>
  return %0 : tensor<4x?x64xf32>
}

// CHECK-LABEL: @lift
func.func @lift(%p: tensor<64x288xf4E2M1FN>, %e: tensor<3x64xi32>, %d: tensor<5x?x?xf4E2M1FN>, %f: tensor<5x?x?xi32>) {
  // CHECK: fp8.lift %{{.*}}, %{{.*}} : tensor<64x288xf4E2M1FN>, tensor<3x64xi32> -> tensor<64x288xf8E4M3FN>
  %0 = fp8.lift %p, %e : tensor<64x288xf4E2M1FN>, tensor<3x64xi32> -> tensor<64x288xf8E4M3FN>
  // CHECK: fp8.lift %{{.*}}, %{{.*}} folded : tensor<5x?x?xf4E2M1FN>, tensor<5x?x?xi32> -> tensor<5x?x?xf8E4M3FN>
  %1 = fp8.lift %d, %f folded : tensor<5x?x?xf4E2M1FN>, tensor<5x?x?xi32> -> tensor<5x?x?xf8E4M3FN>
  "use"(%0, %1) : (tensor<64x288xf8E4M3FN>, tensor<5x?x?xf8E4M3FN>) -> ()
  return
}
