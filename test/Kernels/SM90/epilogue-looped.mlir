// RUN: fp8-opt %s --fp8-set-target=chip=sm_90a --fp8-select-kernels=every-candidate --split-input-file | FileCheck %s

// Functions of tiles whose rows are stored at once are there once for all subtiles,
// however short they are: ptxas would compute those of two subtiles together.

!a = !fp8.scaled<4096x2048xf8E4M3FN, block = [*, *], scale = f32>
func.func @at_once(%a: !a, %b: !a) -> tensor<4096x4096xf8E4M3FN> {
  %0 = fp8.matmul %a, %b accumulate = fast epilogue {
  ^bb0(%acc: f32):
    %one = arith.constant 1.0 : f32
    %1 = math.tanh %acc : f32
    %2 = arith.addf %1, %one : f32
    %3 = arith.mulf %2, %acc : f32
    %4 = arith.truncf %3 : f32 to f8E4M3FN
    fp8.yield %4 : f8E4M3FN
  } : !a, !a -> tensor<4096x4096xf8E4M3FN>
  return %0 : tensor<4096x4096xf8E4M3FN>
}

// CHECK-LABEL: func.func @at_once
// CHECK:       tile_m = 128, tile_n = 128, stages = 6, schedule = ping_pong, {{[^>]*}}epilogue = looped>

// -----

// Between slabs of a row there are waits, which keep them apart.

!a = !fp8.scaled<4096x2048xf8E4M3FN, block = [*, *], scale = f32>
func.func @in_slabs(%a: !a, %b: !a) -> tensor<4096x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast epilogue {
  ^bb0(%acc: f32):
    %one = arith.constant 1.0 : f32
    %1 = math.tanh %acc : f32
    %2 = arith.addf %1, %one : f32
    %3 = arith.mulf %2, %acc : f32
    %4 = arith.truncf %3 : f32 to bf16
    fp8.yield %4 : bf16
  } : !a, !a -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

// CHECK-LABEL: func.func @in_slabs
// CHECK-NOT:   looped
// CHECK:       tile_m = 128, tile_n = 128, stages = {{[0-9]+}}, schedule = ping_pong
// CHECK-NOT:   looped
