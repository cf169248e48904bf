// RUN: fp8-opt %s --fp8-save-quantized --split-input-file --verify-diagnostics | FileCheck %s

// What both quantize is quantized once; the reader's transpose goes along.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME: %[[X:.*]]: tensor<32x64xbf16>
// CHECK-SAME: -> (tensor<32x64xf32>, tensor<64x32xf8E4M3FN> {fp8.name = "x.codes"}, tensor<1x1xf32> {fp8.name = "x.scale_inv"})
// CHECK: %[[Q:.*]] = fp8.quantize %[[X]] recipe(#fp8.current) :
// CHECK: %[[D:.*]] = fp8.dequantize %[[Q]]
// CHECK-NOT: fp8.quantize
// CHECK: %[[T:.*]] = fp8.transpose %[[Q]] permutation = [1, 0]
// CHECK: %[[CODES:.*]], %[[SCALE:.*]] = fp8.disassemble %[[T]]
// CHECK: return %[[D]], %[[CODES]], %[[SCALE]]
func.func @forward(%x: tensor<32x64xbf16> {fp8.save = "x"}) -> tensor<32x64xf32> {
  %q = fp8.quantize %x recipe(#fp8.current) : tensor<32x64xbf16> -> !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
  %d = fp8.dequantize %q : !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32> -> tensor<32x64xf32>
  return %d : tensor<32x64xf32>
}
// CHECK-LABEL: func.func @backward(
// CHECK-SAME: %[[DY:.*]]: tensor<4xf32>, %[[CODES:.*]]: tensor<64x32xf8E4M3FN> {fp8.name = "x.codes"}, %[[SCALE:.*]]: tensor<1x1xf32> {fp8.name = "x.scale_inv"}, %[[LAST:.*]]: f32
// CHECK: %[[Q:.*]] = fp8.assemble %[[CODES]], %[[SCALE]]
// CHECK-NOT: fp8.quantize
// CHECK: fp8.dequantize %[[Q]]
func.func @backward(%dy: tensor<4xf32>, %x: tensor<32x64xbf16> {fp8.saved = "x"}, %last: f32) -> tensor<64x32xf32> {
  %q = fp8.quantize %x recipe(#fp8.current) : tensor<32x64xbf16> -> !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
  %t = fp8.transpose %q permutation = [1, 0] : !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
  %d = fp8.dequantize %t : !fp8.scaled<64x32xf8E4M3FN, block = [*, *], scale = f32> -> tensor<64x32xf32>
  return %d : tensor<64x32xf32>
}

// -----

// Codes take the place of a result.
// CHECK-LABEL: func.func @result(
// CHECK-SAME: -> (tensor<f32>, tensor<32x64xf8E4M3FN> {fp8.name = "h.codes"}, tensor<32x1xf32> {fp8.name = "h.scale_inv"}, f32 {fp8.name = "z"})
// CHECK: %[[H:.*]] = arith.negf
// CHECK: %[[Q:.*]] = fp8.quantize %[[H]] recipe(#fp8.rowwise)
// CHECK: %[[CODES:.*]], %[[SCALE:.*]] = fp8.disassemble %[[Q]]
// CHECK: return %{{.*}}, %[[CODES]], %[[SCALE]], %{{.*}} : tensor<f32>, tensor<32x64xf8E4M3FN>, tensor<32x1xf32>, f32
func.func @result(%x: tensor<32x64xbf16>, %y: tensor<f32>, %z: f32) -> (tensor<f32>, tensor<32x64xbf16> {fp8.save = "h"}, f32 {fp8.name = "z"}) {
  %h = arith.negf %x : tensor<32x64xbf16>
  return %y, %h, %z : tensor<f32>, tensor<32x64xbf16>, f32
}
func.func @reader(%h: tensor<32x64xbf16> {fp8.saved = "h"}) -> tensor<32x64xf32> {
  %q = fp8.quantize %h recipe(#fp8.rowwise) : tensor<32x64xbf16> -> !fp8.scaled<32x64xf8E4M3FN, block = [1, *], scale = f32>
  %d = fp8.dequantize %q : !fp8.scaled<32x64xf8E4M3FN, block = [1, *], scale = f32> -> tensor<32x64xf32>
  return %d : tensor<32x64xf32>
}

// -----

// A weight's codes are kept even if they take as much memory as it does; each
// reader has those that it reads. One that reads none has none.
// CHECK-LABEL: func.func @quantize_weight(
// CHECK-SAME: -> (tensor<16x8xf8E4M3FN> {fp8.name = "w.codes"}, tensor<1x1xf32> {fp8.name = "w.scale_inv"}, tensor<8x16xf8E4M3FN> {fp8.name = "w.codes_1"}, tensor<1x1xf32> {fp8.name = "w.scale_inv_1"}, tensor<16x8xf8E5M2> {fp8.name = "w.codes_2"}, tensor<1x1xf32> {fp8.name = "w.scale_inv_2"})
// CHECK-COUNT-2: fp8.quantize
// CHECK-NOT: fp8.quantize
func.func @quantize_weight(%w: tensor<16x8xbf16> {fp8.weight, fp8.save = "w"}) {
  return
}
// CHECK-LABEL: func.func @first(
// CHECK-SAME: tensor<16x8xf8E4M3FN> {fp8.name = "w.codes"}, %{{.*}}: tensor<1x1xf32> {fp8.name = "w.scale_inv"})
func.func @first(%w: tensor<16x8xbf16> {fp8.saved = "w"}) -> tensor<16x8xf32> {
  %q = fp8.quantize %w recipe(#fp8.current) : tensor<16x8xbf16> -> !fp8.scaled<16x8xf8E4M3FN, block = [*, *], scale = f32>
  %d = fp8.dequantize %q : !fp8.scaled<16x8xf8E4M3FN, block = [*, *], scale = f32> -> tensor<16x8xf32>
  return %d : tensor<16x8xf32>
}
// CHECK-LABEL: func.func @second(
// CHECK-SAME: tensor<8x16xf8E4M3FN> {fp8.name = "w.codes_1"}, %{{.*}}: tensor<1x1xf32> {fp8.name = "w.scale_inv_1"}, %{{.*}}: tensor<16x8xf8E5M2> {fp8.name = "w.codes_2"}
func.func @second(%w: tensor<16x8xbf16> {fp8.saved = "w"}) -> (tensor<8x16xf32>, tensor<16x8xf32>) {
  %q = fp8.quantize %w recipe(#fp8.current) : tensor<16x8xbf16> -> !fp8.scaled<16x8xf8E4M3FN, block = [*, *], scale = f32>
  %t = fp8.transpose %q permutation = [1, 0] : !fp8.scaled<16x8xf8E4M3FN, block = [*, *], scale = f32>
  %d = fp8.dequantize %t : !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32> -> tensor<8x16xf32>
  %q2 = fp8.quantize %w recipe(#fp8.current) : tensor<16x8xbf16> -> !fp8.scaled<16x8xf8E5M2, block = [*, *], scale = f32>
  %d2 = fp8.dequantize %q2 : !fp8.scaled<16x8xf8E5M2, block = [*, *], scale = f32> -> tensor<16x8xf32>
  return %d, %d2 : tensor<8x16xf32>, tensor<16x8xf32>
}
// CHECK-LABEL: func.func @third() {
func.func @third(%w: tensor<16x8xbf16> {fp8.saved = "w"}) {
  return
}

// -----

// Extents are read of codes, whose dimensions may be in another order.
// CHECK-LABEL: func.func @dynamic(
// CHECK-SAME: tensor<64x?xf8E4M3FN> {fp8.name = "x.codes"}
func.func @dynamic(%x: tensor<?x64xbf16> {fp8.save = "x"}) {
  return
}
// CHECK-LABEL: func.func @reads_extent(
// CHECK-SAME: %[[CODES:.*]]: tensor<64x?xf8E4M3FN>
// CHECK: %[[C1:.*]] = arith.constant 1 : index
// CHECK: %[[ROWS:.*]] = tensor.dim %[[CODES]], %[[C1]]
// CHECK: return %{{.*}}, %[[ROWS]]
func.func @reads_extent(%x: tensor<?x64xbf16> {fp8.saved = "x"}) -> (tensor<64x?xf32>, index) {
  %c0 = arith.constant 0 : index
  %rows = tensor.dim %x, %c0 : tensor<?x64xbf16>
  %q = fp8.quantize %x recipe(#fp8.current) : tensor<?x64xbf16> -> !fp8.scaled<?x64xf8E4M3FN, block = [*, *], scale = f32>
  %t = fp8.transpose %q permutation = [1, 0] : !fp8.scaled<?x64xf8E4M3FN, block = [*, *], scale = f32>
  %d = fp8.dequantize %t : !fp8.scaled<64x?xf8E4M3FN, block = [*, *], scale = f32> -> tensor<64x?xf32>
  return %d, %rows : tensor<64x?xf32>, index
}

// -----

// Views in front of a quantize, and zeros around it, go along.
// CHECK-LABEL: func.func @views(
// CHECK: %[[ROWS:.*]] = tensor.collapse_shape
// CHECK: %[[PADDED:.*]] = tensor.pad %[[ROWS]]
// CHECK: fp8.quantize %[[PADDED]]
func.func @views(%x: tensor<3x7x64xbf16> {fp8.save = "x"}) {
  return
}
func.func @reads_rows(%x: tensor<3x7x64xbf16> {fp8.saved = "x"}) -> tensor<32x64xf32> {
  %zero = arith.constant 0.0 : bf16
  %rows = tensor.collapse_shape %x [[0, 1], [2]] : tensor<3x7x64xbf16> into tensor<21x64xbf16>
  %padded = tensor.pad %rows low[0, 0] high[11, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : bf16
  } : tensor<21x64xbf16> to tensor<32x64xbf16>
  %q = fp8.quantize %padded recipe(#fp8.rowwise) : tensor<32x64xbf16> -> !fp8.scaled<32x64xf8E4M3FN, block = [32, 1], scale = f32>
  %d = fp8.dequantize %q : !fp8.scaled<32x64xf8E4M3FN, block = [32, 1], scale = f32> -> tensor<32x64xf32>
  return %d : tensor<32x64xf32>
}

// -----

// Codes are padded where they are made.
// CHECK-LABEL: func.func @padded_codes(
// CHECK-SAME: tensor<64x32xf8E4M3FN> {fp8.name = "x.codes"}, tensor<64x1xf32> {fp8.name = "x.scale_inv"}
// CHECK: %[[Q:.*]] = fp8.quantize
// CHECK: %[[T:.*]] = fp8.transpose %[[Q]]
// CHECK: %[[CODES:.*]], %[[SCALE:.*]] = fp8.disassemble %[[T]]
// CHECK: %[[PADDED:.*]] = tensor.pad %[[CODES]]
// CHECK: fp8.assemble %[[PADDED]], %[[SCALE]]
// CHECK-NOT: tensor.pad
func.func @padded_codes(%x: tensor<21x64xbf16> {fp8.save = "x"}) {
  return
}
// CHECK-LABEL: func.func @reads_padded_codes(
// CHECK-SAME: tensor<64x32xf8E4M3FN> {fp8.name = "x.codes"}
// CHECK-NOT: tensor.pad
// CHECK: return
func.func @reads_padded_codes(%x: tensor<21x64xbf16> {fp8.saved = "x"}) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f8E4M3FN
  %q = fp8.quantize %x recipe(#fp8.rowwise) : tensor<21x64xbf16> -> !fp8.scaled<21x64xf8E4M3FN, block = [32, 1], scale = f32>
  %t = fp8.transpose %q permutation = [1, 0] : !fp8.scaled<21x64xf8E4M3FN, block = [32, 1], scale = f32>
  %codes, %scale = fp8.disassemble %t : !fp8.scaled<64x21xf8E4M3FN, block = [1, 32], scale = f32>
  %padded = tensor.pad %codes low[0, 0] high[0, 11] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f8E4M3FN
  } : tensor<64x21xf8E4M3FN> to tensor<64x32xf8E4M3FN>
  %p = fp8.assemble %padded, %scale : tensor<64x32xf8E4M3FN>, tensor<64x1xf32> -> !fp8.scaled<64x32xf8E4M3FN, block = [1, 32], scale = f32>
  %d = fp8.dequantize %p : !fp8.scaled<64x32xf8E4M3FN, block = [1, 32], scale = f32> -> tensor<64x32xf32>
  return %d : tensor<64x32xf32>
}

// CHECK-LABEL: func.func @reads_them_too(
// CHECK-SAME: tensor<64x32xf8E4M3FN> {fp8.name = "x.codes"}
// CHECK-NOT: tensor.pad
// CHECK: return
func.func @reads_them_too(%x: tensor<21x64xbf16> {fp8.saved = "x"}) -> tensor<64x32xf32> {
  %zero = arith.constant 0.0 : f8E4M3FN
  %q = fp8.quantize %x recipe(#fp8.rowwise) : tensor<21x64xbf16> -> !fp8.scaled<21x64xf8E4M3FN, block = [32, 1], scale = f32>
  %t = fp8.transpose %q permutation = [1, 0] : !fp8.scaled<21x64xf8E4M3FN, block = [32, 1], scale = f32>
  %codes, %scale = fp8.disassemble %t : !fp8.scaled<64x21xf8E4M3FN, block = [1, 32], scale = f32>
  %padded = tensor.pad %codes low[0, 0] high[0, 11] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : f8E4M3FN
  } : tensor<64x21xf8E4M3FN> to tensor<64x32xf8E4M3FN>
  %p = fp8.assemble %padded, %scale : tensor<64x32xf8E4M3FN>, tensor<64x1xf32> -> !fp8.scaled<64x32xf8E4M3FN, block = [1, 32], scale = f32>
  %d = fp8.dequantize %p : !fp8.scaled<64x32xf8E4M3FN, block = [1, 32], scale = f32> -> tensor<64x32xf32>
  return %d : tensor<64x32xf32>
}

// -----

// A name of its own, where no contraction is there to name it.
// CHECK-LABEL: func.func @source(
// CHECK: fp8.quantize %{{.*}} recipe(#fp8.delayed) {fp8.name = "l0.x"}
func.func @source(%x: tensor<32x64xbf16> {fp8.save = "x"}) {
  return
}
func.func @named(%x: tensor<32x64xbf16> {fp8.saved = "x"}) -> tensor<32x64xf32> {
  %q = fp8.quantize %x recipe(#fp8.delayed) {fp8.name = "l0.x"} : tensor<32x64xbf16> -> !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
  %d = fp8.dequantize %q : !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32> -> tensor<32x64xf32>
  return %d : tensor<32x64xf32>
}

// -----

// What a reader quantizes twice, for two products, is one value of two names.
// CHECK-LABEL: func.func @keep(
// CHECK-SAME: -> (tensor<64x32xf8E4M3FN> {fp8.name = "x.codes"}, tensor<1x1xf32> {fp8.name = "x.scale_inv"})
// CHECK-COUNT-1: fp8.quantize
// CHECK-NOT: fp8.quantize
func.func @keep(%x: tensor<32x64xbf16> {fp8.save = "x"}) {
  return
}
// CHECK-LABEL: func.func @two_products(
// CHECK-SAME: %[[CODES:[^:]*]]: tensor<64x32xf8E4M3FN> {fp8.name = "x.codes"}, %[[SCALE:[^:]*]]: tensor<1x1xf32> {fp8.name = "x.scale_inv"}) ->
// CHECK: %[[A:.*]] = fp8.assemble %[[CODES]], %[[SCALE]]
// CHECK: %[[B:.*]] = fp8.assemble %[[CODES]], %[[SCALE]]
// CHECK-DAG: fp8.dequantize %[[A]]
// CHECK-DAG: fp8.dequantize %[[B]]
func.func @two_products(%x: tensor<32x64xbf16> {fp8.saved = "x"}) -> (tensor<64x32xf32>, tensor<64x32xf32>) {
  %q = fp8.quantize %x recipe(#fp8.current) : tensor<32x64xbf16> -> !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
  %t = fp8.transpose %q permutation = [1, 0] : !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
  %q2 = fp8.quantize %x recipe(#fp8.current) : tensor<32x64xbf16> -> !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
  %t2 = fp8.transpose %q2 permutation = [1, 0] : !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
  %d = fp8.dequantize %t : !fp8.scaled<64x32xf8E4M3FN, block = [*, *], scale = f32> -> tensor<64x32xf32>
  %d2 = fp8.dequantize %t2 : !fp8.scaled<64x32xf8E4M3FN, block = [*, *], scale = f32> -> tensor<64x32xf32>
  return %d, %d2 : tensor<64x32xf32>, tensor<64x32xf32>
}
