// RUN: fp8-opt %s --fp8-simplify-casts --cse | FileCheck %s

// Casts through what copies, converts, repeats, pads and puts together.

!q = !fp8.scaled<4x64xf8E4M3FN, block = [*, *], scale = f32>
!mx = !fp8.scaled<4x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>

//===----------------------------------------------------------------------===//
// Attention heads
//===----------------------------------------------------------------------===//

// Each row of a head is of whole blocks, so that the projection's blocks are the
// heads'.
// CHECK-LABEL: func.func @quantize_of_heads
// CHECK: %[[Q:.*]] = fp8.quantize %arg0 {{.*}} -> <8x256xf8E4M3FN, block = [1, 32]
// CHECK: %[[P:[^,]*]], %[[S:[^ ]*]] = fp8.disassemble %[[Q]]
// CHECK-DAG: tensor.expand_shape %[[P]] {{.*}} into tensor<8x4x64xf8E4M3FN>
// CHECK-DAG: tensor.expand_shape %[[S]] {{.*}} : tensor<8x8xf8E8M0FNU> into tensor<8x4x2xf8E8M0FNU>
// CHECK: fp8.transpose
func.func @quantize_of_heads(%x: tensor<8x256xf32>) -> !fp8.scaled<4x8x64xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU> {
  %h = tensor.expand_shape %x [[0], [1, 2]] output_shape [8, 4, 64] : tensor<8x256xf32> into tensor<8x4x64xf32>
  %e = tensor.empty() : tensor<4x8x64xf32>
  %t = linalg.transpose ins(%h : tensor<8x4x64xf32>) outs(%e : tensor<4x8x64xf32>) permutation = [1, 0, 2]
  %0 = fp8.quantize %t recipe(#fp8.mxfp8) : tensor<4x8x64xf32> -> !fp8.scaled<4x8x64xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU>
  return %0 : !fp8.scaled<4x8x64xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU>
}

// CHECK-LABEL: func.func @dequantize_of_heads
// CHECK: tensor.collapse_shape %{{.*}} : tensor<8x4x2xf8E8M0FNU> into tensor<8x8xf8E8M0FNU>
// CHECK: fp8.dequantize %{{.*}} : <8x256xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
func.func @dequantize_of_heads(%q: !fp8.scaled<8x4x64xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU>) -> tensor<8x256xf32> {
  %0 = fp8.dequantize %q : !fp8.scaled<8x4x64xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU> -> tensor<8x4x64xf32>
  %1 = tensor.collapse_shape %0 [[0], [1, 2]] : tensor<8x4x64xf32> into tensor<8x256xf32>
  return %1 : tensor<8x256xf32>
}

// A row's factor is of all heads, a head's of its own.
// CHECK-LABEL: func.func @quantize_of_heads_rowwise
// CHECK: %[[H:.*]] = tensor.expand_shape
// CHECK: fp8.quantize %[[H]]
func.func @quantize_of_heads_rowwise(%x: tensor<8x256xf32>) -> !fp8.scaled<8x4x64xf8E4M3FN, block = [1, 1, *], scale = f32> {
  %h = tensor.expand_shape %x [[0], [1, 2]] output_shape [8, 4, 64] : tensor<8x256xf32> into tensor<8x4x64xf32>
  %0 = fp8.quantize %h recipe(#fp8.rowwise) : tensor<8x4x64xf32> -> !fp8.scaled<8x4x64xf8E4M3FN, block = [1, 1, *], scale = f32>
  return %0 : !fp8.scaled<8x4x64xf8E4M3FN, block = [1, 1, *], scale = f32>
}

// A block of 32 would begin in one head, of 48, and end in the next.
// CHECK-LABEL: func.func @quantize_of_heads_of_48
// CHECK: %[[H:.*]] = tensor.expand_shape
// CHECK: fp8.quantize %[[H]]
func.func @quantize_of_heads_of_48(%x: tensor<8x192xf32>) -> !fp8.scaled<8x4x48xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU> {
  %h = tensor.expand_shape %x [[0], [1, 2]] output_shape [8, 4, 48] : tensor<8x192xf32> into tensor<8x4x48xf32>
  %0 = fp8.quantize %h recipe(#fp8.mxfp8) : tensor<8x4x48xf32> -> !fp8.scaled<8x4x48xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU>
  return %0 : !fp8.scaled<8x4x48xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU>
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @copy
// CHECK-NEXT: fp8.quantize %arg0
// CHECK-NEXT: return
func.func @copy(%x: tensor<4x64xf32>) -> !q {
  %e = tensor.empty() : tensor<4x64xf32>
  %c = linalg.copy ins(%x : tensor<4x64xf32>) outs(%e : tensor<4x64xf32>) -> tensor<4x64xf32>
  %0 = fp8.quantize %c recipe(#fp8.current) : tensor<4x64xf32> -> !q
  return %0 : !q
}

// CHECK-LABEL: func.func @copy_that_rounds
// CHECK: %[[C:.*]] = linalg.copy
// CHECK: fp8.quantize %[[C]]
func.func @copy_that_rounds(%x: tensor<4x64xf32>) -> !q {
  %e = tensor.empty() : tensor<4x64xbf16>
  %c = linalg.copy ins(%x : tensor<4x64xf32>) outs(%e : tensor<4x64xbf16>) -> tensor<4x64xbf16>
  %0 = fp8.quantize %c recipe(#fp8.current) : tensor<4x64xbf16> -> !q
  return %0 : !q
}

// CHECK-LABEL: func.func @cast
// CHECK: %[[Q:.*]] = fp8.quantize %arg0 {{.*}} -> <?x64xf8E4M3FN, block = [1, 32]
// CHECK: %[[P:[^,]*]], %[[S:[^ ]*]] = fp8.disassemble %[[Q]]
// CHECK-DAG: tensor.cast %[[P]] : tensor<?x64xf8E4M3FN> to tensor<4x64xf8E4M3FN>
// CHECK-DAG: tensor.cast %[[S]] : tensor<?x2xf8E8M0FNU> to tensor<4x2xf8E8M0FNU>
func.func @cast(%x: tensor<?x64xf32>) -> !mx {
  %c = tensor.cast %x : tensor<?x64xf32> to tensor<4x64xf32>
  %0 = fp8.quantize %c recipe(#fp8.mxfp8) : tensor<4x64xf32> -> !mx
  return %0 : !mx
}

// CHECK-LABEL: func.func @dequantize_of_cast
// CHECK: tensor.cast %{{.*}} : tensor<4x64xf8E4M3FN> to tensor<?x64xf8E4M3FN>
// CHECK: fp8.dequantize %{{.*}} : <?x64xf8E4M3FN, block = [*, *], scale = f32>
func.func @dequantize_of_cast(%q: !q) -> tensor<?x64xf32> {
  %0 = fp8.dequantize %q : !q -> tensor<4x64xf32>
  %c = tensor.cast %0 : tensor<4x64xf32> to tensor<?x64xf32>
  return %c : tensor<?x64xf32>
}

//===----------------------------------------------------------------------===//
// Repeated elements
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @broadcast
// CHECK: %[[Q:.*]] = fp8.quantize %arg0 {{.*}} -> <4x64xf8E4M3FN, block = [*, *]
// CHECK: %[[P:[^,]*]], %[[S:[^ ]*]] = fp8.disassemble %[[Q]]
// CHECK: linalg.broadcast ins(%[[P]] : tensor<4x64xf8E4M3FN>)
// CHECK: linalg.broadcast ins(%[[S]] : tensor<1x1xf32>) outs(%{{.*}} : tensor<1x1x1xf32>)
func.func @broadcast(%x: tensor<4x64xf32>) -> !fp8.scaled<4x8x64xf8E4M3FN, block = [*, *, *], scale = f32> {
  %e = tensor.empty() : tensor<4x8x64xf32>
  %b = linalg.broadcast ins(%x : tensor<4x64xf32>) outs(%e : tensor<4x8x64xf32>) dimensions = [1]
  %0 = fp8.quantize %b recipe(#fp8.current) : tensor<4x8x64xf32> -> !fp8.scaled<4x8x64xf8E4M3FN, block = [*, *, *], scale = f32>
  return %0 : !fp8.scaled<4x8x64xf8E4M3FN, block = [*, *, *], scale = f32>
}

// CHECK-LABEL: func.func @broadcast_mxfp8
// CHECK: fp8.quantize %arg0 {{.*}} -> <4x64xf8E4M3FN, block = [1, 32]
// CHECK: linalg.broadcast ins(%{{.*}} : tensor<4x2xf8E8M0FNU>) outs(%{{.*}} : tensor<4x8x2xf8E8M0FNU>)
func.func @broadcast_mxfp8(%x: tensor<4x64xf32>) -> !fp8.scaled<4x8x64xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU> {
  %e = tensor.empty() : tensor<4x8x64xf32>
  %b = linalg.broadcast ins(%x : tensor<4x64xf32>) outs(%e : tensor<4x8x64xf32>) dimensions = [1]
  %0 = fp8.quantize %b recipe(#fp8.mxfp8) : tensor<4x8x64xf32> -> !fp8.scaled<4x8x64xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU>
  return %0 : !fp8.scaled<4x8x64xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU>
}

// The amax of no elements is none of those that there were.
// CHECK-LABEL: func.func @broadcast_to_nothing
// CHECK: %[[B:.*]] = linalg.broadcast
// CHECK: fp8.quantize %[[B]]
func.func @broadcast_to_nothing(%x: tensor<4xf32>) -> !fp8.scaled<0x4xf8E4M3FN, block = [*, *], scale = f32> {
  %e = tensor.empty() : tensor<0x4xf32>
  %b = linalg.broadcast ins(%x : tensor<4xf32>) outs(%e : tensor<0x4xf32>) dimensions = [0]
  %0 = fp8.quantize %b recipe(#fp8.current) : tensor<0x4xf32> -> !fp8.scaled<0x4xf8E4M3FN, block = [*, *], scale = f32>
  return %0 : !fp8.scaled<0x4xf8E4M3FN, block = [*, *], scale = f32>
}

// Keys of which several heads have one: the product takes the codes.
// CHECK-LABEL: func.func @dequantize_of_broadcast
// CHECK: linalg.broadcast ins(%{{.*}} : tensor<4x64xf8E4M3FN>)
// CHECK: %[[D:.*]] = fp8.dequantize
// CHECK: linalg.batch_matmul ins(%arg1, %[[D]]
func.func @dequantize_of_broadcast(%q: !q, %a: tensor<8x2x4xf32>, %c: tensor<8x2x64xf32>) -> tensor<8x2x64xf32> {
  %0 = fp8.dequantize %q : !q -> tensor<4x64xf32>
  %e = tensor.empty() : tensor<8x4x64xf32>
  %b = linalg.broadcast ins(%0 : tensor<4x64xf32>) outs(%e : tensor<8x4x64xf32>) dimensions = [0]
  %1 = linalg.batch_matmul ins(%a, %b : tensor<8x2x4xf32>, tensor<8x4x64xf32>) outs(%c : tensor<8x2x64xf32>) -> tensor<8x2x64xf32>
  return %1 : tensor<8x2x64xf32>
}

// Nothing takes codes: fewer are dequantized before.
// CHECK-LABEL: func.func @dequantize_of_broadcast_returned
// CHECK: %[[D:.*]] = fp8.dequantize %arg0
// CHECK: linalg.broadcast ins(%[[D]]
func.func @dequantize_of_broadcast_returned(%q: !q) -> tensor<8x4x64xf32> {
  %0 = fp8.dequantize %q : !q -> tensor<4x64xf32>
  %e = tensor.empty() : tensor<8x4x64xf32>
  %b = linalg.broadcast ins(%0 : tensor<4x64xf32>) outs(%e : tensor<8x4x64xf32>) dimensions = [0]
  return %b : tensor<8x4x64xf32>
}

//===----------------------------------------------------------------------===//
// Padding
//===----------------------------------------------------------------------===//

// Zeros change no amax, and are zeros in codes; the unpadded tensor shares it.
// CHECK-LABEL: func.func @pad
// CHECK: %[[Q:.*]] = fp8.quantize %arg0 {{.*}} -> <4x60xf8E4M3FN, block = [*, *]
// CHECK-NOT: fp8.quantize
// CHECK: %[[P:[^,]*]], %[[S:[^ ]*]] = fp8.disassemble %[[Q]]
// CHECK: tensor.pad %[[P]] low[0, 0] high[0, 4]
// CHECK: fp8.assemble %{{.*}}, %[[S]]
func.func @pad(%x: tensor<4x60xf32>) -> (!q, !fp8.scaled<4x60xf8E4M3FN, block = [*, *], scale = f32>) {
  %z = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0] high[0, 4] {
  ^bb0(%i: index, %j: index):
    tensor.yield %z : f32
  } : tensor<4x60xf32> to tensor<4x64xf32>
  %0 = fp8.quantize %p recipe(#fp8.current) : tensor<4x64xf32> -> !q
  %1 = fp8.quantize %x recipe(#fp8.current) : tensor<4x60xf32> -> !fp8.scaled<4x60xf8E4M3FN, block = [*, *], scale = f32>
  return %0, %1 : !q, !fp8.scaled<4x60xf8E4M3FN, block = [*, *], scale = f32>
}

// The last block is filled.
// CHECK-LABEL: func.func @pad_within_block
// CHECK: fp8.quantize %arg0 {{.*}} -> <4x60xf8E4M3FN, block = [1, 32]
// CHECK: tensor.pad %{{.*}} low[0, 0] high[0, 4]
func.func @pad_within_block(%x: tensor<4x60xf32>) -> !mx {
  %z = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0] high[0, 4] {
  ^bb0(%i: index, %j: index):
    tensor.yield %z : f32
  } : tensor<4x60xf32> to tensor<4x64xf32>
  %0 = fp8.quantize %p recipe(#fp8.mxfp8) : tensor<4x64xf32> -> !mx
  return %0 : !mx
}

// A block of zeros has a factor of its own.
// CHECK-LABEL: func.func @pad_with_a_block
// CHECK: %[[P:.*]] = tensor.pad %arg0
// CHECK: fp8.quantize %[[P]]
func.func @pad_with_a_block(%x: tensor<4x32xf32>) -> !mx {
  %z = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0] high[0, 32] {
  ^bb0(%i: index, %j: index):
    tensor.yield %z : f32
  } : tensor<4x32xf32> to tensor<4x64xf32>
  %0 = fp8.quantize %p recipe(#fp8.mxfp8) : tensor<4x64xf32> -> !mx
  return %0 : !mx
}

// CHECK-LABEL: func.func @pad_in_front
// CHECK: %[[P:.*]] = tensor.pad %arg0
// CHECK: fp8.quantize %[[P]]
func.func @pad_in_front(%x: tensor<4x60xf32>) -> !mx {
  %z = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 4] high[0, 0] {
  ^bb0(%i: index, %j: index):
    tensor.yield %z : f32
  } : tensor<4x60xf32> to tensor<4x64xf32>
  %0 = fp8.quantize %p recipe(#fp8.mxfp8) : tensor<4x64xf32> -> !mx
  return %0 : !mx
}

// CHECK-LABEL: func.func @pad_with_one
// CHECK: %[[P:.*]] = tensor.pad %arg0
// CHECK: fp8.quantize %[[P]]
func.func @pad_with_one(%x: tensor<4x60xf32>) -> !q {
  %z = arith.constant 1.0 : f32
  %p = tensor.pad %x low[0, 0] high[0, 4] {
  ^bb0(%i: index, %j: index):
    tensor.yield %z : f32
  } : tensor<4x60xf32> to tensor<4x64xf32>
  %0 = fp8.quantize %p recipe(#fp8.current) : tensor<4x64xf32> -> !q
  return %0 : !q
}

// It would be padded twice.
// CHECK-LABEL: func.func @pad_needed_wide
// CHECK: %[[P:.*]] = tensor.pad %arg0
// CHECK: fp8.quantize %[[P]]
func.func @pad_needed_wide(%x: tensor<4x60xf32>) -> (!q, tensor<4x64xf32>) {
  %z = arith.constant 0.0 : f32
  %p = tensor.pad %x low[0, 0] high[0, 4] {
  ^bb0(%i: index, %j: index):
    tensor.yield %z : f32
  } : tensor<4x60xf32> to tensor<4x64xf32>
  %0 = fp8.quantize %p recipe(#fp8.current) : tensor<4x64xf32> -> !q
  return %0, %p : !q, tensor<4x64xf32>
}

// A caller's factor may be infinite, and a zero times that is none.
// CHECK-LABEL: func.func @pad_of_dequantize
// CHECK: %[[D:.*]] = fp8.dequantize
// CHECK: tensor.pad %[[D]]
func.func @pad_of_dequantize(%q: !q) -> tensor<4x65xf32> {
  %z = arith.constant 0.0 : f32
  %0 = fp8.dequantize %q : !q -> tensor<4x64xf32>
  %p = tensor.pad %0 low[0, 0] high[0, 1] {
  ^bb0(%i: index, %j: index):
    tensor.yield %z : f32
  } : tensor<4x64xf32> to tensor<4x65xf32>
  return %p : tensor<4x65xf32>
}

//===----------------------------------------------------------------------===//
// Tensors put together
//===----------------------------------------------------------------------===//

// Whatever the order in which they are written.
// CHECK-LABEL: func.func @concat
// CHECK-DAG: %[[B:.*]] = fp8.quantize %arg1 {{.*}} -> <4x32xf8E4M3FN, block = [1, 32]
// CHECK-DAG: %[[A:.*]] = fp8.quantize %arg0 {{.*}} -> <4x32xf8E4M3FN, block = [1, 32]
// CHECK-DAG: %[[PA:[^,]*]], %[[SA:[^ ]*]] = fp8.disassemble %[[A]]
// CHECK-DAG: %[[PB:[^,]*]], %[[SB:[^ ]*]] = fp8.disassemble %[[B]]
// CHECK: tensor.insert_slice %[[PA]] into %{{.*}}[0, 0] [4, 32]
// CHECK: tensor.insert_slice %[[PB]] into %{{.*}}[0, 32] [4, 32]
// CHECK: tensor.insert_slice %[[SA]] into %{{.*}}[0, 0] [4, 1]
// CHECK: tensor.insert_slice %[[SB]] into %{{.*}}[0, 1] [4, 1]
// CHECK: fp8.assemble
func.func @concat(%a: tensor<4x32xf32>, %b: tensor<4x32xf32>) -> !mx {
  %e = tensor.empty() : tensor<4x64xf32>
  %0 = tensor.insert_slice %b into %e[0, 32] [4, 32] [1, 1] : tensor<4x32xf32> into tensor<4x64xf32>
  %1 = tensor.insert_slice %a into %0[0, 0] [4, 32] [1, 1] : tensor<4x32xf32> into tensor<4x64xf32>
  %q = fp8.quantize %1 recipe(#fp8.mxfp8) : tensor<4x64xf32> -> !mx
  return %q : !mx
}

// The amax is of both.
// CHECK-LABEL: func.func @concat_per_tensor
// CHECK: %[[C:.*]] = tensor.insert_slice %arg1
// CHECK: fp8.quantize %[[C]]
func.func @concat_per_tensor(%a: tensor<4x32xf32>, %b: tensor<4x32xf32>) -> !q {
  %e = tensor.empty() : tensor<4x64xf32>
  %0 = tensor.insert_slice %a into %e[0, 0] [4, 32] [1, 1] : tensor<4x32xf32> into tensor<4x64xf32>
  %1 = tensor.insert_slice %b into %0[0, 32] [4, 32] [1, 1] : tensor<4x32xf32> into tensor<4x64xf32>
  %q = fp8.quantize %1 recipe(#fp8.current) : tensor<4x64xf32> -> !q
  return %q : !q
}

// The second block begins in the first tensor.
// CHECK-LABEL: func.func @concat_within_block
// CHECK: %[[C:.*]] = tensor.insert_slice %arg1
// CHECK: fp8.quantize %[[C]]
func.func @concat_within_block(%a: tensor<4x48xf32>, %b: tensor<4x16xf32>) -> !mx {
  %e = tensor.empty() : tensor<4x64xf32>
  %0 = tensor.insert_slice %a into %e[0, 0] [4, 48] [1, 1] : tensor<4x48xf32> into tensor<4x64xf32>
  %1 = tensor.insert_slice %b into %0[0, 48] [4, 16] [1, 1] : tensor<4x16xf32> into tensor<4x64xf32>
  %q = fp8.quantize %1 recipe(#fp8.mxfp8) : tensor<4x64xf32> -> !mx
  return %q : !mx
}

// A gap has whatever was there.
// CHECK-LABEL: func.func @concat_with_gap
// CHECK: %[[C:.*]] = tensor.insert_slice %arg1
// CHECK: fp8.quantize %[[C]]
func.func @concat_with_gap(%a: tensor<4x32xf32>, %b: tensor<4x32xf32>) -> !fp8.scaled<4x96xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU> {
  %e = tensor.empty() : tensor<4x96xf32>
  %0 = tensor.insert_slice %a into %e[0, 0] [4, 32] [1, 1] : tensor<4x32xf32> into tensor<4x96xf32>
  %1 = tensor.insert_slice %b into %0[0, 64] [4, 32] [1, 1] : tensor<4x32xf32> into tensor<4x96xf32>
  %q = fp8.quantize %1 recipe(#fp8.mxfp8) : tensor<4x96xf32> -> !fp8.scaled<4x96xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
  return %q : !fp8.scaled<4x96xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
}

// Keys that are kept, and new ones.
// CHECK-LABEL: func.func @dequantize_of_concat
// CHECK: tensor.insert_slice %{{.*}} into %{{.*}}[4, 0] [4, 64] [1, 1] : tensor<4x64xf8E4M3FN> into tensor<8x64xf8E4M3FN>
// CHECK: fp8.dequantize %{{.*}} : <8x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
func.func @dequantize_of_concat(%a: !mx, %b: !mx) -> tensor<8x64xf32> {
  %da = fp8.dequantize %a : !mx -> tensor<4x64xf32>
  %db = fp8.dequantize %b : !mx -> tensor<4x64xf32>
  %e = tensor.empty() : tensor<8x64xf32>
  %0 = tensor.insert_slice %da into %e[0, 0] [4, 64] [1, 1] : tensor<4x64xf32> into tensor<8x64xf32>
  %1 = tensor.insert_slice %db into %0[4, 0] [4, 64] [1, 1] : tensor<4x64xf32> into tensor<8x64xf32>
  return %1 : tensor<8x64xf32>
}

// Each has a factor of its own.
// CHECK-LABEL: func.func @dequantize_of_concat_per_tensor
// CHECK-COUNT-2: fp8.dequantize
// CHECK: tensor.insert_slice
func.func @dequantize_of_concat_per_tensor(%a: !q, %b: !q) -> tensor<8x64xf32> {
  %da = fp8.dequantize %a : !q -> tensor<4x64xf32>
  %db = fp8.dequantize %b : !q -> tensor<4x64xf32>
  %e = tensor.empty() : tensor<8x64xf32>
  %0 = tensor.insert_slice %da into %e[0, 0] [4, 64] [1, 1] : tensor<4x64xf32> into tensor<8x64xf32>
  %1 = tensor.insert_slice %db into %0[4, 0] [4, 64] [1, 1] : tensor<4x64xf32> into tensor<8x64xf32>
  return %1 : tensor<8x64xf32>
}

//===----------------------------------------------------------------------===//
// Seeds
//===----------------------------------------------------------------------===//

!sto = !fp8.scaled<32x64xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>

// What is named by a recipe alone gets its numbers later, wherever it stands then; with a seed they go by place.
// CHECK-LABEL: func.func @quantize_with_seed
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<64x32xbf16>
// CHECK: %[[T:.*]] = linalg.transpose
// CHECK: fp8.quantize %[[X]] recipe(#fp8.nvfp4<stochastic_rounding = true>) :
// CHECK: fp8.transpose
// CHECK: fp8.quantize %[[T]] recipe(#fp8.nvfp4<stochastic_rounding = true>) seed(
func.func @quantize_with_seed(%x: tensor<64x32xbf16>, %seed: tensor<4xi32>) -> (!sto, !sto) {
  %e = tensor.empty() : tensor<32x64xbf16>
  %t = linalg.transpose ins(%x : tensor<64x32xbf16>) outs(%e : tensor<32x64xbf16>) permutation = [1, 0]
  %0 = fp8.quantize %t recipe(#fp8.nvfp4<stochastic_rounding = true>) : tensor<32x64xbf16> -> !sto
  %1 = fp8.quantize %t recipe(#fp8.nvfp4<stochastic_rounding = true>) seed(%seed : tensor<4xi32>) : tensor<32x64xbf16> -> !sto
  return %0, %1 : !sto, !sto
}

// CHECK-LABEL: func.func @concatenation_with_seed
// CHECK: %[[X:.*]] = tensor.insert_slice
// CHECK: %[[Y:.*]] = tensor.insert_slice %{{.*}} into %[[X]]
// CHECK: fp8.quantize %[[Y]] recipe(
func.func @concatenation_with_seed(%a: tensor<16x64xbf16>, %b: tensor<16x64xbf16>, %seed: tensor<4xi32>)
    -> !fp8.scaled<32x64xf4E2M1FN, block = [1, 16], scale = f32> {
  %e = tensor.empty() : tensor<32x64xbf16>
  %x = tensor.insert_slice %a into %e[0, 0] [16, 64] [1, 1] : tensor<16x64xbf16> into tensor<32x64xbf16>
  %y = tensor.insert_slice %b into %x[16, 0] [16, 64] [1, 1] : tensor<16x64xbf16> into tensor<32x64xbf16>
  %0 = fp8.quantize %y recipe(#fp8.rowwise) seed(%seed : tensor<4xi32>) : tensor<32x64xbf16> -> !fp8.scaled<32x64xf4E2M1FN, block = [1, 16], scale = f32>
  return %0 : !fp8.scaled<32x64xf4E2M1FN, block = [1, 16], scale = f32>
}

//===----------------------------------------------------------------------===//
// Half bytes
//===----------------------------------------------------------------------===//

// An unknown number of codes in a row, here three times one, may be odd: they
// are not taken out of their value.
// CHECK-LABEL: func.func @unknown_row
// CHECK: %[[C:.*]] = tensor.collapse_shape %arg0
// CHECK: %[[Q:.*]] = fp8.quantize %[[C]]
// CHECK: fp8.transpose %[[Q]]
// CHECK-NOT: fp8.disassemble
func.func @unknown_row(%x: tensor<16x?x3xf32>, %n: index) -> !fp8.scaled<?x16xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32> {
  %c = tensor.collapse_shape %x [[0], [1, 2]] : tensor<16x?x3xf32> into tensor<16x?xf32>
  %e = tensor.empty(%n) : tensor<?x16xf32>
  %t = linalg.transpose ins(%c : tensor<16x?xf32>) outs(%e : tensor<?x16xf32>) permutation = [1, 0]
  %0 = fp8.quantize %t recipe(#fp8.nvfp4) : tensor<?x16xf32> -> !fp8.scaled<?x16xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
  return %0 : !fp8.scaled<?x16xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
}

// CHECK-LABEL: func.func @known_row
// CHECK: fp8.quantize %arg0
// CHECK: tensor.collapse_shape {{.*}} : tensor<16x8x3xf4E2M1FN> into tensor<16x24xf4E2M1FN>
func.func @known_row(%x: tensor<16x8x3xf32>) -> !fp8.scaled<24x16xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32> {
  %c = tensor.collapse_shape %x [[0], [1, 2]] : tensor<16x8x3xf32> into tensor<16x24xf32>
  %e = tensor.empty() : tensor<24x16xf32>
  %t = linalg.transpose ins(%c : tensor<16x24xf32>) outs(%e : tensor<24x16xf32>) permutation = [1, 0]
  %0 = fp8.quantize %t recipe(#fp8.nvfp4) : tensor<24x16xf32> -> !fp8.scaled<24x16xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
  return %0 : !fp8.scaled<24x16xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
}

// Nor may they be cast to one, which the codes do not show.
// CHECK-LABEL: func.func @forgotten_row
// CHECK: %[[C:.*]] = tensor.cast %arg0
// CHECK: fp8.quantize %[[C]]
func.func @forgotten_row(%x: tensor<16x17xf32>) -> !fp8.scaled<?x?xf4E2M1FN, block = [*, *], scale = f32> {
  %c = tensor.cast %x : tensor<16x17xf32> to tensor<?x?xf32>
  %0 = fp8.quantize %c recipe(#fp8.current) : tensor<?x?xf32> -> !fp8.scaled<?x?xf4E2M1FN, block = [*, *], scale = f32>
  return %0 : !fp8.scaled<?x?xf4E2M1FN, block = [*, *], scale = f32>
}

// Passes are over three dimensions at most, and attention's result has four: rows of it are quantized.
// CHECK-LABEL: func.func @attended
// CHECK: %[[O:.*]] = fp8.attention
// CHECK: %[[ROWS:.*]] = tensor.collapse_shape %[[O]] {{\[\[}}0, 1], [2, 3]]
// CHECK: fp8.quantize %[[ROWS]]
!attended = tensor<1x32x2x64xbf16>
func.func @attended(%q: !attended) -> !fp8.scaled<32x128xf8E4M3FN, block = [*, *], scale = f32> {
  %o = fp8.attention %q, %q, %q scale = 0.125 : !attended, !attended, !attended -> !attended
  %c = tensor.collapse_shape %o [[0, 1], [2, 3]] : !attended into tensor<32x128xbf16>
  %0 = fp8.quantize %c recipe(#fp8.current) : tensor<32x128xbf16> -> !fp8.scaled<32x128xf8E4M3FN, block = [*, *], scale = f32>
  return %0 : !fp8.scaled<32x128xf8E4M3FN, block = [*, *], scale = f32>
}
