// RUN: fp8-opt %s --fp8-save-quantized=one-order --split-input-file --verify-diagnostics | FileCheck %s

// The source has codes of its own for a product. A reader of their transpose takes
// these, and transposes them itself.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME: -> (tensor<32x64xf32>, tensor<32x64xf8E4M3FN> {fp8.name = "x.codes"}, tensor<1x1xf32> {fp8.name = "x.scale_inv"})
// CHECK: %[[Q:.*]] = fp8.quantize
// CHECK-NOT: fp8.transpose
// CHECK: %[[CODES:.*]], %[[SCALE:.*]] = fp8.disassemble %[[Q]]
func.func @forward(%x: tensor<32x64xbf16> {fp8.save = "x"}) -> tensor<32x64xf32> {
  %q = fp8.quantize %x recipe(#fp8.current) : tensor<32x64xbf16> -> !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
  %d = fp8.dequantize %q : !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32> -> tensor<32x64xf32>
  return %d : tensor<32x64xf32>
}
// CHECK-LABEL: func.func @backward(
// CHECK-SAME: %[[CODES:.*]]: tensor<32x64xf8E4M3FN> {fp8.name = "x.codes"}, %[[SCALE:.*]]: tensor<1x1xf32> {fp8.name = "x.scale_inv"})
// CHECK: %[[Q:.*]] = fp8.assemble %[[CODES]], %[[SCALE]]
// CHECK: %[[T:.*]] = fp8.transpose %[[Q]]
// CHECK: fp8.dequantize %[[T]]
// expected-remark @below {{saved in one order: x: its codes are transposed where they are read}}
func.func @backward(%x: tensor<32x64xbf16> {fp8.saved = "x"}) -> tensor<64x32xf32> {
  %q = fp8.quantize %x recipe(#fp8.current) : tensor<32x64xbf16> -> !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
  %t = fp8.transpose %q permutation = [1, 0] : !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
  %d = fp8.dequantize %t : !fp8.scaled<64x32xf8E4M3FN, block = [*, *], scale = f32> -> tensor<64x32xf32>
  return %d : tensor<64x32xf32>
}

// -----

// Two readers share one copy of a weight. What only one takes, of factors that run
// along K of its product, is saved as it takes it.
// CHECK-LABEL: func.func @quantize_weight(
// CHECK-SAME: -> (tensor<256x128xf8E4M3FN> {fp8.name = "w.codes"}, tensor<2x1xf32> {fp8.name = "w.scale_inv"}, tensor<128x256xf8E5M2> {fp8.name = "w.codes_1"}, tensor<128x1xf32> {fp8.name = "w.scale_inv_1"})
func.func @quantize_weight(%w: tensor<256x128xbf16> {fp8.weight, fp8.save = "w"}) {
  return
}
func.func @first(%w: tensor<256x128xbf16> {fp8.saved = "w"}) -> tensor<256x128xf32> {
  %q = fp8.quantize %w recipe(#fp8.block) : tensor<256x128xbf16> -> !fp8.scaled<256x128xf8E4M3FN, block = [128, 128], scale = f32>
  %d = fp8.dequantize %q : !fp8.scaled<256x128xf8E4M3FN, block = [128, 128], scale = f32> -> tensor<256x128xf32>
  return %d : tensor<256x128xf32>
}
// CHECK-LABEL: func.func @second(
// CHECK-SAME: tensor<256x128xf8E4M3FN> {fp8.name = "w.codes"}, %{{.*}}: tensor<2x1xf32> {fp8.name = "w.scale_inv"}, %{{.*}}: tensor<128x256xf8E5M2> {fp8.name = "w.codes_1"}
// CHECK: fp8.transpose %{{.*}} : <256x128xf8E4M3FN
// CHECK-NOT: fp8.transpose
// expected-remark @below {{saved in one order: w}}
func.func @second(%w: tensor<256x128xbf16> {fp8.saved = "w"}) -> (tensor<128x256xf32>, tensor<128x256xf32>) {
  %q = fp8.quantize %w recipe(#fp8.block) : tensor<256x128xbf16> -> !fp8.scaled<256x128xf8E4M3FN, block = [128, 128], scale = f32>
  %t = fp8.transpose %q permutation = [1, 0] : !fp8.scaled<256x128xf8E4M3FN, block = [128, 128], scale = f32>
  %d = fp8.dequantize %t : !fp8.scaled<128x256xf8E4M3FN, block = [128, 128], scale = f32> -> tensor<128x256xf32>
  %r = fp8.quantize %w recipe(#fp8.rowwise) : tensor<256x128xbf16> -> !fp8.scaled<256x128xf8E5M2, block = [*, 1], scale = f32>
  %u = fp8.transpose %r permutation = [1, 0] : !fp8.scaled<256x128xf8E5M2, block = [*, 1], scale = f32>
  %e = fp8.dequantize %u : !fp8.scaled<128x256xf8E5M2, block = [1, *], scale = f32> -> tensor<128x256xf32>
  return %d, %e : tensor<128x256xf32>, tensor<128x256xf32>
}

// -----

// A transpose that is moved on, here by a view, goes along as without the option.
// CHECK-LABEL: func.func @source(
// CHECK-SAME: -> (tensor<32x64xf8E4M3FN> {fp8.name = "x.codes"}, tensor<1x1xf32> {fp8.name = "x.scale_inv"}, tensor<64x32xf8E4M3FN> {fp8.name = "x.codes_1"}
func.func @source(%x: tensor<32x64xbf16> {fp8.weight, fp8.save = "x"}) {
  return
}
func.func @reader(%x: tensor<32x64xbf16> {fp8.saved = "x"}) -> tensor<32x64xf32> {
  %q = fp8.quantize %x recipe(#fp8.current) : tensor<32x64xbf16> -> !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
  %d = fp8.dequantize %q : !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32> -> tensor<32x64xf32>
  return %d : tensor<32x64xf32>
}
func.func @twice(%x: tensor<32x64xbf16> {fp8.saved = "x"}) -> tensor<64x32xf32> {
  %t = fp8.quantize %x recipe(#fp8.current) : tensor<32x64xbf16> -> !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
  %u = fp8.transpose %t permutation = [1, 0] : !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
  %c, %s = fp8.disassemble %u : !fp8.scaled<64x32xf8E4M3FN, block = [*, *], scale = f32>
  %zero = arith.constant 0.0 : f8E4M3FN
  %p = tensor.pad %c low[0, 0] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f8E4M3FN
  } : tensor<64x32xf8E4M3FN> to tensor<64x32xf8E4M3FN>
  %a = fp8.assemble %p, %s : tensor<64x32xf8E4M3FN>, tensor<1x1xf32> -> !fp8.scaled<64x32xf8E4M3FN, block = [*, *], scale = f32>
  %d = fp8.dequantize %a : !fp8.scaled<64x32xf8E4M3FN, block = [*, *], scale = f32> -> tensor<64x32xf32>
  return %d : tensor<64x32xf32>
}
