// RUN: fp8-opt %s | fp8-opt | FileCheck %s

!x = !fp8.scaled<32x128xf8E4M3FN, block = [1, *], scale = f32>
!w = !fp8.scaled<4x64x128xf8E4M3FN, block = [1, 1, *], scale = f32>
!dy = !fp8.scaled<64x32xf8E5M2, block = [*, *], scale = f32>
!xt = !fp8.scaled<128x32xf8E4M3FN, block = [*, *], scale = f32>

// CHECK-LABEL: func.func @rows
// CHECK:       fp8.grouped_matmul %arg0, %arg1 offsets(%arg2 : tensor<5xi32>) accumulate = fast
// CHECK-SAME:    : !fp8.scaled<32x128xf8E4M3FN, block = [1, *], scale = f32>, !fp8.scaled<4x64x128xf8E4M3FN, block = [1, 1, *], scale = f32> -> tensor<32x64xbf16>
func.func @rows(%x: !x, %w: !w, %offsets: tensor<5xi32>) -> tensor<32x64xbf16> {
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<5xi32>) accumulate = fast : !x, !w -> tensor<32x64xbf16>
  return %0 : tensor<32x64xbf16>
}

// CHECK-LABEL: func.func @k
// CHECK:       fp8.grouped_matmul %arg0, %arg1 offsets(%arg2 : tensor<5xi32>) :
// CHECK-SAME:    -> tensor<4x64x128xf32>
func.func @k(%dy: !dy, %x: !xt, %offsets: tensor<5xi32>) -> tensor<4x64x128xf32> {
  %0 = fp8.grouped_matmul %dy, %x offsets(%offsets : tensor<5xi32>) : !dy, !xt -> tensor<4x64x128xf32>
  return %0 : tensor<4x64x128xf32>
}

// CHECK-LABEL: func.func @plain
// CHECK:       fp8.grouped_matmul %arg0, %arg1 offsets(%arg2 : tensor<?xi32>) transpose_b accumulate = fast : tensor<?x128xbf16>, tensor<?x128x64xbf16> -> tensor<?x64xbf16>
func.func @plain(%x: tensor<?x128xbf16>, %w: tensor<?x128x64xbf16>, %offsets: tensor<?xi32>) -> tensor<?x64xbf16> {
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<?xi32>) transpose_b accumulate = fast
      : tensor<?x128xbf16>, tensor<?x128x64xbf16> -> tensor<?x64xbf16>
  return %0 : tensor<?x64xbf16>
}

// CHECK-LABEL: func.func @plain_k
// CHECK:       fp8.grouped_matmul %arg0, %arg1 offsets(%arg2 : tensor<5xi32>) transpose_a transpose_b accumulate = fast
func.func @plain_k(%dy: tensor<?x64xbf16>, %x: tensor<?x128xbf16>, %offsets: tensor<5xi32>) -> tensor<4x64x128xf32> {
  %0 = fp8.grouped_matmul %dy, %x offsets(%offsets : tensor<5xi32>) transpose_a transpose_b accumulate = fast
      : tensor<?x64xbf16>, tensor<?x128xbf16> -> tensor<4x64x128xf32>
  return %0 : tensor<4x64x128xf32>
}

// CHECK-LABEL: func.func @epilogue
// CHECK:       fp8.grouped_matmul %arg0, %arg1 offsets(%arg2 : tensor<5xi32>) epilogue(%arg3 : tensor<64xf32>) {
// CHECK:         fp8.yield %{{.+}} : bf16
func.func @epilogue(%x: !x, %w: !w, %offsets: tensor<5xi32>, %bias: tensor<64xf32>) -> tensor<32x64xbf16> {
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<5xi32>) epilogue(%bias : tensor<64xf32>) {
  ^bb0(%acc: f32, %b: f32):
    %1 = arith.addf %acc, %b : f32
    %2 = arith.truncf %1 : f32 to bf16
    fp8.yield %2 : bf16
  } : !x, !w -> tensor<32x64xbf16>
  return %0 : tensor<32x64xbf16>
}

!xs = !fp8.scaled<4x32x128xf8E4M3FN, block = [1, 1, *], scale = f32>
!dys = !fp8.scaled<4x64x32xf8E5M2, block = [*, *, *], scale = f32>
!xts = !fp8.scaled<4x128x32xf8E4M3FN, block = [*, *, *], scale = f32>

// CHECK-LABEL: func.func @counts
// CHECK:       fp8.grouped_matmul %arg0, %arg1 counts(%arg2 : tensor<4xi32>) undef_padding accumulate = fast {expected_m = 8 : i64}
// CHECK-SAME:    : !fp8.scaled<4x32x128xf8E4M3FN, block = [1, 1, *], scale = f32>, !fp8.scaled<4x64x128xf8E4M3FN, block = [1, 1, *], scale = f32> -> tensor<4x32x64xbf16>
func.func @counts(%x: !xs, %w: !w, %counts: tensor<4xi32>) -> tensor<4x32x64xbf16> {
  %0 = fp8.grouped_matmul %x, %w counts(%counts : tensor<4xi32>) undef_padding accumulate = fast {expected_m = 8 : i64} : !xs, !w -> tensor<4x32x64xbf16>
  return %0 : tensor<4x32x64xbf16>
}

// CHECK-LABEL: func.func @counts_k
// CHECK:       fp8.grouped_matmul %arg0, %arg1 counts_k(%arg2 : tensor<4xi32>) :
// CHECK-SAME:    -> tensor<4x64x128xf32>
func.func @counts_k(%dy: !dys, %x: !xts, %counts: tensor<4xi32>) -> tensor<4x64x128xf32> {
  %0 = fp8.grouped_matmul %dy, %x counts_k(%counts : tensor<4xi32>) : !dys, !xts -> tensor<4x64x128xf32>
  return %0 : tensor<4x64x128xf32>
}

// CHECK-LABEL: func.func @plain_counts
// CHECK:       fp8.grouped_matmul %arg0, %arg1 counts(%arg2 : tensor<?xi32>) transpose_b accumulate = fast : tensor<?x?x128xbf16>, tensor<?x128x64xbf16> -> tensor<?x?x64xbf16>
func.func @plain_counts(%x: tensor<?x?x128xbf16>, %w: tensor<?x128x64xbf16>, %counts: tensor<?xi32>) -> tensor<?x?x64xbf16> {
  %0 = fp8.grouped_matmul %x, %w counts(%counts : tensor<?xi32>) transpose_b accumulate = fast
      : tensor<?x?x128xbf16>, tensor<?x128x64xbf16> -> tensor<?x?x64xbf16>
  return %0 : tensor<?x?x64xbf16>
}
