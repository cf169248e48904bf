// RUN: fp8-opt %s --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-group-matmuls | FileCheck %s

!x = !fp8.scaled<4096x1024xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<2048x1024xf8E4M3FN, block = [*, *], scale = f32>
!e = !fp8.scaled<2048x1024xf8E5M2, block = [*, *], scale = f32>
!y = tensor<4096x2048xbf16>

// What only the second one's epilogue reads is not stored.

// CHECK-LABEL: func.func @gated
// CHECK-SAME:    %[[X:.+]]: !fp8.scaled<4096x{{.+}}, %[[W:.+]]: !fp8.scaled<{{.+}}, %[[V:.+]]: !fp8
// CHECK:       %[[R:.+]] = fp8.sibling_matmuls {
// CHECK-NEXT:    %[[G:.+]] = fp8.matmul %[[X]], %[[W]] {fp8.name = "gate"}
// CHECK-NEXT:    %[[U:.+]] = fp8.matmul %[[X]], %[[V]] epilogue(%[[G]]
// CHECK:         fp8.yield %[[U]]
// CHECK-NEXT:  } {fp8_gpu.config = #fp8_sm90.gemm<
// CHECK:       return %[[R]]
func.func @gated(%x: !x, %w: !w, %v: !w) -> !y {
  %0 = fp8.matmul %x, %w {fp8.name = "gate"} : !x, !w -> !y
  %1 = fp8.matmul %x, %v epilogue(%0 : !y) {
  ^bb0(%acc: f32, %gate: bf16):
    %2 = arith.extf %gate : bf16 to f32
    %3 = arith.mulf %acc, %2 : f32
    %4 = arith.truncf %3 : f32 to bf16
    fp8.yield %4 : bf16
  } {fp8.name = "up"} : !x, !w -> !y
  return %1 : !y
}

// Epilogues of their own, with operands, and an amax of the second one.

// CHECK-LABEL: func.func @biases
// CHECK:       %{{.+}}:2 = fp8.sibling_matmuls {
// CHECK-NEXT:    fp8.matmul %{{.+}}, %{{.+}} epilogue(%arg3
// CHECK:         fp8.matmul %{{.+}}, %{{.+}} epilogue(%arg4, %{{[^,]+}}, %arg5
// CHECK:       } {fp8_gpu.config
func.func @biases(%x: !x, %w: !w, %v: !w, %b: tensor<2048xbf16>, %c: tensor<2048xbf16>, %s: tensor<1x1xf32>)
    -> (tensor<4096x2048xf8E4M3FN>, tensor<1x1xf32>) {
  %most = arith.constant 448.0 : f32
  %least = arith.constant -448.0 : f32
  %0 = fp8.matmul %x, %w epilogue(%b : tensor<2048xbf16>) {
  ^bb0(%acc: f32, %e: bf16):
    %2 = arith.extf %e : bf16 to f32
    %3 = arith.addf %acc, %2 : f32
    %4 = arith.truncf %3 : f32 to bf16
    fp8.yield %4 : bf16
  } : !x, !w -> !y
  %1:2 = fp8.matmul %x, %v epilogue(%c, %0, %s : tensor<2048xbf16>, !y, tensor<1x1xf32>) {
  ^bb0(%acc: f32, %e: bf16, %gate: bf16, %scale: f32):
    %2 = arith.extf %e : bf16 to f32
    %3 = arith.addf %acc, %2 : f32
    %4 = arith.extf %gate : bf16 to f32
    %5 = arith.mulf %3, %4 : f32
    %6 = arith.mulf %5, %scale : f32
    %7 = arith.cmpf ogt, %6, %most : f32
    %8 = arith.select %7, %most, %6 : f32
    %9 = arith.cmpf olt, %8, %least : f32
    %10 = arith.select %9, %least, %8 : f32
    %11 = arith.truncf %10 : f32 to f8E4M3FN
    fp8.yield %11, %5 : f8E4M3FN, f32
  } : !x, !w -> tensor<4096x2048xf8E4M3FN>, tensor<1x1xf32>
  return %1#0, %1#1 : tensor<4096x2048xf8E4M3FN>, tensor<1x1xf32>
}

// In high precision, with weights whose rows are innermost.

// CHECK-LABEL: func.func @plain
// CHECK:       fp8.sibling_matmuls {
func.func @plain(%x: tensor<4096x1024xbf16>, %w: tensor<1024x2048xbf16>, %v: tensor<1024x2048xbf16>) -> !y {
  %0 = fp8.matmul %x, %w transpose_b accumulate = fast : tensor<4096x1024xbf16>, tensor<1024x2048xbf16> -> !y
  %1 = fp8.matmul %x, %v transpose_b accumulate = fast epilogue(%0 : !y) {
  ^bb0(%acc: f32, %gate: bf16):
    %2 = arith.extf %gate : bf16 to f32
    %3 = arith.mulf %acc, %2 : f32
    %4 = arith.truncf %3 : f32 to bf16
    fp8.yield %4 : bf16
  } : tensor<4096x1024xbf16>, tensor<1024x2048xbf16> -> !y
  return %1 : !y
}

// A backward needs the first result as well.

// CHECK-LABEL: func.func @saved
// CHECK-NOT:   fp8.sibling_matmuls
// CHECK:       return
func.func @saved(%x: !x, %w: !w, %v: !w) -> (!y, !y) {
  %0 = fp8.matmul %x, %w : !x, !w -> !y
  %1 = fp8.matmul %x, %v epilogue(%0 : !y) {
  ^bb0(%acc: f32, %gate: bf16):
    %2 = arith.extf %gate : bf16 to f32
    %3 = arith.mulf %acc, %2 : f32
    %4 = arith.truncf %3 : f32 to bf16
    fp8.yield %4 : bf16
  } : !x, !w -> !y
  return %0, %1 : !y, !y
}

// CHECK-LABEL: func.func @other_a
// CHECK-NOT:   fp8.sibling_matmuls
// CHECK:       return
func.func @other_a(%x: !x, %z: !x, %w: !w, %v: !w) -> !y {
  %0 = fp8.matmul %x, %w : !x, !w -> !y
  %1 = fp8.matmul %z, %v epilogue(%0 : !y) {
  ^bb0(%acc: f32, %gate: bf16):
    fp8.yield %gate : bf16
  } : !x, !w -> !y
  return %1 : !y
}

// CHECK-LABEL: func.func @other_types
// CHECK-NOT:   fp8.sibling_matmuls
// CHECK:       return
func.func @other_types(%x: !x, %w: !w, %v: !e) -> !y {
  %0 = fp8.matmul %x, %w : !x, !w -> !y
  %1 = fp8.matmul %x, %v epilogue(%0 : !y) {
  ^bb0(%acc: f32, %gate: bf16):
    fp8.yield %gate : bf16
  } : !x, !e -> !y
  return %1 : !y
}

// CHECK-LABEL: func.func @other_accumulation
// CHECK-NOT:   fp8.sibling_matmuls
// CHECK:       return
func.func @other_accumulation(%x: !x, %w: !w, %v: !w) -> !y {
  %0 = fp8.matmul %x, %w accumulate = fast : !x, !w -> !y
  %1 = fp8.matmul %x, %v epilogue(%0 : !y) {
  ^bb0(%acc: f32, %gate: bf16):
    fp8.yield %gate : bf16
  } : !x, !w -> !y
  return %1 : !y
}

// The amax of the first result is of what is stored.

// CHECK-LABEL: func.func @measured
// CHECK-NOT:   fp8.sibling_matmuls
// CHECK:       return
func.func @measured(%x: !x, %w: !w, %v: !w) -> (!y, tensor<1x1xf32>) {
  %0:2 = fp8.matmul %x, %w epilogue {
  ^bb0(%acc: f32):
    %2 = arith.truncf %acc : f32 to bf16
    fp8.yield %2, %acc : bf16, f32
  } : !x, !w -> !y, tensor<1x1xf32>
  %1 = fp8.matmul %x, %v epilogue(%0#0 : !y) {
  ^bb0(%acc: f32, %gate: bf16):
    fp8.yield %gate : bf16
  } : !x, !w -> !y
  return %1, %0#1 : !y, tensor<1x1xf32>
}

// Up to 32 rows the weights are the rows of tiles, and no tile has both.

// CHECK-LABEL: func.func @few_rows
// CHECK-NOT:   fp8.sibling_matmuls
// CHECK:       return
func.func @few_rows(%x: !fp8.scaled<16x1024xf8E4M3FN, block = [*, *], scale = f32>, %w: !w, %v: !w) -> tensor<16x2048xbf16> {
  %0 = fp8.matmul %x, %w : !fp8.scaled<16x1024xf8E4M3FN, block = [*, *], scale = f32>, !w -> tensor<16x2048xbf16>
  %1 = fp8.matmul %x, %v epilogue(%0 : tensor<16x2048xbf16>) {
  ^bb0(%acc: f32, %gate: bf16):
    fp8.yield %gate : bf16
  } : !fp8.scaled<16x1024xf8E4M3FN, block = [*, *], scale = f32>, !w -> tensor<16x2048xbf16>
  return %1 : tensor<16x2048xbf16>
}

// Rows of a result that bulk copies cannot store.

// CHECK-LABEL: func.func @odd_rows
// CHECK-NOT:   fp8.sibling_matmuls
// CHECK:       return
func.func @odd_rows(%x: !x, %w: !fp8.scaled<2047x1024xf8E4M3FN, block = [*, *], scale = f32>,
                    %v: !fp8.scaled<2047x1024xf8E4M3FN, block = [*, *], scale = f32>) -> tensor<4096x2047xbf16> {
  %0 = fp8.matmul %x, %w : !x, !fp8.scaled<2047x1024xf8E4M3FN, block = [*, *], scale = f32> -> tensor<4096x2047xbf16>
  %1 = fp8.matmul %x, %v epilogue(%0 : tensor<4096x2047xbf16>) {
  ^bb0(%acc: f32, %gate: bf16):
    fp8.yield %gate : bf16
  } : !x, !fp8.scaled<2047x1024xf8E4M3FN, block = [*, *], scale = f32> -> tensor<4096x2047xbf16>
  return %1 : tensor<4096x2047xbf16>
}
