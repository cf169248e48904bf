// RUN: fp8-opt %s --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-report-copies --fp8-remarks=text:%t -o /dev/null 2>/dev/null
// RUN: FileCheck %s --implicit-check-not=copy < %t
// RUN: fp8-opt %s --fp8-set-target=chip=sm_90a --fp8-select-kernels -o %t.before.mlir 2>/dev/null
// RUN: fp8-opt %t.before.mlir --fp8-report-copies -o %t.after.mlir
// RUN: diff %t.before.mlir %t.after.mlir

// Whatever is transposed on the way to a kernel that takes it in one order only
// has a remark; the program does not change.

!s = tensor<1x1xf32>
!xq = !fp8.scaled<128x256xf8E4M3FN, block = [*, *], scale = f32>
!wq = !fp8.scaled<512x256xf8E4M3FN, block = [*, *], scale = f32>
!tq = !fp8.scaled<256x512xf8E4M3FN, block = [*, *], scale = f32>
!y = tensor<128x512xbf16>

// As kernels want it.
func.func @none(%x: !xq, %w: !wq) -> !y {
  %y = fp8.matmul %x, %w accumulate = fast {fp8.name = "none"} : !xq, !wq -> !y
  return %y : !y
}

// CHECK: {{^}}codes: copy; operand b, type 512x256xf8E4M3FN, bytes 131072, reason expected K to be the innermost dimension of B, which the tensor core transposes only of 16-bit elements, but they are f8E4M3FN, suggestion pass w with the K of this product innermost{{$}}
func.func @codes(%x: !xq, %w: tensor<256x512xbf16> {fp8.name = "w"}, %s: !s) -> !y {
  %q = fp8.quantize %w scale(%s, %s : !s, !s) : tensor<256x512xbf16> -> !tq
  %t = fp8.transpose %q permutation = [1, 0] : !tq
  %y = fp8.matmul %x, %t accumulate = fast {fp8.name = "codes"} : !xq, !wq -> !y
  return %y : !y
}

// Blocks that do not move with the data: the source is transposed.
// CHECK: {{^}}source: copy; operand a, type 128x256xbf16, bytes 65536, {{.*}} of A, {{.*}}pass arg0 with
func.func @source(%x: tensor<256x128xbf16>, %w: !wq, %s: !s) -> !y {
  %e = tensor.empty() : tensor<128x256xbf16>
  %t = linalg.transpose ins(%x : tensor<256x128xbf16>) outs(%e : tensor<128x256xbf16>) permutation = [1, 0]
  %q = fp8.quantize %t scale(%s, %s : !s, !s) : tensor<128x256xbf16> -> !xq
  %y = fp8.matmul %q, %w accumulate = fast {fp8.name = "source"} : !xq, !wq -> !y
  return %y : !y
}

// Padded and collapsed between.
// CHECK: {{^}}reshaped: copy; operand b, type 16x32x250xbf16, bytes 256000, {{.*}}pass arg1 with
func.func @reshaped(%x: !xq, %w: tensor<16x250x32xbf16>, %s: !s) -> !y {
  %zero = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<16x32x250xbf16>
  %t = linalg.transpose ins(%w : tensor<16x250x32xbf16>) outs(%e : tensor<16x32x250xbf16>) permutation = [0, 2, 1]
  %c = tensor.collapse_shape %t [[0, 1], [2]] : tensor<16x32x250xbf16> into tensor<512x250xbf16>
  %p = tensor.pad %c low[0, 0] high[0, 6] {
  ^bb0(%i: index, %j: index):
    tensor.yield %zero : bf16
  } : tensor<512x250xbf16> to tensor<512x256xbf16>
  %q = fp8.quantize %p scale(%s, %s : !s, !s) : tensor<512x256xbf16> -> !wq
  %payload, %scale_inv = fp8.disassemble %q : !wq
  %a = fp8.assemble %payload, %scale_inv : tensor<512x256xf8E4M3FN>, !s -> !wq
  %y = fp8.matmul %x, %a accumulate = fast {fp8.name = "reshaped"} : !xq, !wq -> !y
  return %y : !y
}

// K is innermost, but not after all of the rows.
// CHECK: {{^}}order: copy; operand b, {{.*}}reason expected the dimensions of B in the order of batches, rows and K, suggestion
func.func @order(%x: !xq, %w: tensor<32x16x256xbf16>, %s: !s) -> !y {
  %e = tensor.empty() : tensor<16x32x256xbf16>
  %t = linalg.transpose ins(%w : tensor<32x16x256xbf16>) outs(%e : tensor<16x32x256xbf16>) permutation = [1, 0, 2]
  %c = tensor.collapse_shape %t [[0, 1], [2]] : tensor<16x32x256xbf16> into tensor<512x256xbf16>
  %q = fp8.quantize %c scale(%s, %s : !s, !s) : tensor<512x256xbf16> -> !wq
  %y = fp8.matmul %x, %q accumulate = fast {fp8.name = "order"} : !xq, !wq -> !y
  return %y : !y
}

// One order or the other is a copy: fprop and dgrad of a linear. What is not an
// argument has no better order either.
// CHECK: {{^}}both.fprop: copy; operand b, {{.*}}suggestion give it the recipe none, for kernels read bf16 and f16 in either order{{$}}
// CHECK-NEXT: {{^}}computed: copy; operand b, {{.*}}suggestion give it the recipe none
func.func @both(%x: !xq, %dy: !fp8.scaled<128x512xf8E4M3FN, block = [*, *], scale = f32>, %w: tensor<256x512xbf16>, %s: !s) -> (!y, tensor<128x256xbf16>, !y) {
  %q = fp8.quantize %w scale(%s, %s : !s, !s) : tensor<256x512xbf16> -> !tq
  %t = fp8.transpose %q permutation = [1, 0] : !tq
  %y = fp8.matmul %x, %t accumulate = fast {fp8.name = "both.fprop"} : !xq, !wq -> !y
  %dx = fp8.matmul %dy, %q accumulate = fast {fp8.name = "both.dgrad"} : !fp8.scaled<128x512xf8E4M3FN, block = [*, *], scale = f32>, !tq -> tensor<128x256xbf16>
  %e = math.exp %w : tensor<256x512xbf16>
  %eq = fp8.quantize %e scale(%s, %s : !s, !s) : tensor<256x512xbf16> -> !tq
  %et = fp8.transpose %eq permutation = [1, 0] : !tq
  %z = fp8.matmul %x, %et accumulate = fast {fp8.name = "computed"} : !xq, !wq -> !y
  return %y, %dx, %z : !y, tensor<128x256xbf16>, !y
}

// CHECK: {{^}}shared.0: copy; {{.*}}bytes 131072, shared_with shared.1 shared.2, reason
// CHECK-NEXT: {{^}}shared.1: copy; {{.*}}shared_with shared.0 shared.2, reason
// CHECK-NEXT: {{^}}shared.2: copy; {{.*}}shared_with shared.0 shared.1, reason
func.func @shared(%x: !xq, %w: !tq) -> (!y, !y, !y) {
  %t = fp8.transpose %w permutation = [1, 0] : !tq
  %0 = fp8.matmul %x, %t accumulate = fast {fp8.name = "shared.0"} : !xq, !wq -> !y
  %1 = fp8.matmul %x, %t accumulate = fast {fp8.name = "shared.1"} : !xq, !wq -> !y
  %2 = fp8.matmul %x, %t accumulate = fast {fp8.name = "shared.2"} : !xq, !wq -> !y
  return %0, %1, %2 : !y, !y, !y
}

// Nobody knows how many bytes.
// CHECK: {{^}}dynamic: copy; operand a, type ?x256xf8E4M3FN, reason
func.func @dynamic(%x: !fp8.scaled<256x?xf8E4M3FN, block = [*, *], scale = f32>, %w: !wq) -> tensor<?x512xbf16> {
  %t = fp8.transpose %x permutation = [1, 0] : !fp8.scaled<256x?xf8E4M3FN, block = [*, *], scale = f32>
  %y = fp8.matmul %t, %w accumulate = fast {fp8.name = "dynamic"} : !fp8.scaled<?x256xf8E4M3FN, block = [*, *], scale = f32>, !wq -> tensor<?x512xbf16>
  return %y : tensor<?x512xbf16>
}

// TF32 as well.
// CHECK: {{^}}tf32.0: copy; operand b, type 512x256xf32, bytes 524288, reason {{.*}} but they are f32, suggestion pass arg1 with
// CHECK-NEXT: {{^}}tf32.1: copy; {{.*}}suggestion compute it in bf16 or f16, for kernels read bf16 and f16 in either order{{$}}
func.func @tf32(%x: tensor<128x256xf32>, %w: tensor<256x512xf32>) -> (tensor<128x512xf32>, tensor<128x512xf32>) {
  %e = tensor.empty() : tensor<512x256xf32>
  %t = linalg.transpose ins(%w : tensor<256x512xf32>) outs(%e : tensor<512x256xf32>) permutation = [1, 0]
  %y = fp8.matmul %x, %t accumulate = fast {fp8.name = "tf32.0"} : tensor<128x256xf32>, tensor<512x256xf32> -> tensor<128x512xf32>
  %v = math.exp %w : tensor<256x512xf32>
  %vt = linalg.transpose ins(%v : tensor<256x512xf32>) outs(%e : tensor<512x256xf32>) permutation = [1, 0]
  %z = fp8.matmul %x, %vt accumulate = fast {fp8.name = "tf32.1"} : tensor<128x256xf32>, tensor<512x256xf32> -> tensor<128x512xf32>
  return %y, %z : tensor<128x512xf32>, tensor<128x512xf32>
}

// The tensor core reads 16-bit elements in either order.
func.func @either(%x: tensor<128x256xbf16>, %w: tensor<256x512xbf16>) -> (!y, !y) {
  %e = tensor.empty() : tensor<512x256xbf16>
  %t = linalg.transpose ins(%w : tensor<256x512xbf16>) outs(%e : tensor<512x256xbf16>) permutation = [1, 0]
  %0 = fp8.matmul %x, %t accumulate = fast {fp8.name = "either.0"} : tensor<128x256xbf16>, tensor<512x256xbf16> -> !y
  %1 = fp8.matmul %x, %w transpose_b accumulate = fast {fp8.name = "either.1"} : tensor<128x256xbf16>, tensor<256x512xbf16> -> !y
  return %0, %1 : !y, !y
}

// Without a kernel there is no order that it wants.
!mq = !fp8.scaled<128x256xf8E4M3FN, block = [1, 64], scale = f32>
!mt = !fp8.scaled<256x128xf8E4M3FN, block = [64, 1], scale = f32>
func.func @no_kernel(%x: !mt) -> tensor<128x128xbf16> {
  %t = fp8.transpose %x permutation = [1, 0] : !mt
  %y = fp8.matmul %t, %t {fp8.name = "no_kernel"} : !mq, !mq -> tensor<128x128xbf16>
  return %y : tensor<128x128xbf16>
}
