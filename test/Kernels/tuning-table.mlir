// RUN: split-file %s %t
// RUN: fp8-opt %t/program.mlir --fp8-set-target=chip=sm_90a --fp8-select-kernels="table=%t/table.json" --verify-diagnostics | FileCheck %s
// RUN: fp8-opt %t/former.mlir --fp8-set-target=chip=sm_90a --fp8-select-kernels="table=%t/former.json" 2>&1 | FileCheck %s --check-prefix=FORMER
// RUN: fp8-opt %t/program.mlir --fp8-set-target=chip=sm_90a --fp8-select-kernels="table=%t/elsewhere.json" 2>&1 | FileCheck %s --check-prefix=ELSEWHERE
// RUN: fp8-opt %t/program.mlir --fp8-set-target=chip=sm_90a --fp8-select-kernels="table=%t/unknown.json" 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// What a table has is taken; what it has not, or what does not fit, is chosen as
// without it.

// CHECK-LABEL: @known
// CHECK: fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 128, stages = 8, consumers = 1>
// CHECK-LABEL: @other_extents
// CHECK: fp8_gpu.config = #fp8_sm90.gemm<tile_m = {{8|16}}, {{.*}}swap_ab = true
// CHECK-LABEL: @other_accumulator
// CHECK: fp8_gpu.config = #fp8_sm90.gemm<tile_m = {{8|16}}, {{.*}}swap_ab = true
// CHECK-LABEL: @other_epilogue
// CHECK: fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 64, stages = 5, consumers = 1>
// CHECK-LABEL: @with_amax
// CHECK: fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 64, stages = 3, consumers = 1>
// CHECK-LABEL: @pinned
// CHECK: fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 64, stages = 4, consumers = 1>
// CHECK-LABEL: @stale
// CHECK: fp8_gpu.config = #fp8_sm90.gemm<tile_m = 8, {{.*}}swap_ab = true

// ELSEWHERE: remark: tuning table '{{.*}}elsewhere.json': ignored, for it is for sm_100a
// ELSEWHERE-LABEL: @known
// ELSEWHERE: fp8_gpu.config = #fp8_sm90.gemm<tile_m = {{8|16}}, {{.*}}swap_ab = true
// ELSEWHERE-LABEL: @other_extents

// UNKNOWN: remark: tuning table '{{.*}}unknown.json': kernel 0: ignored, for its config is not known: {{.*}}colour
// UNKNOWN: remark: tuning table '{{.*}}unknown.json': kernel 1: ignored, for its config is not known: expected the config of a kernel
// UNKNOWN-LABEL: @known
// UNKNOWN: fp8_gpu.config = #fp8_sm90.gemm<tile_m = {{8|16}}, {{.*}}swap_ab = true
// UNKNOWN-LABEL: @other_extents

// What an earlier version wrote is read with a warning. Neighbours along the tensor core's rows were
// `cluster`, which with swapped operands are those along N.
// FORMER: warning: tuning table '{{.*}}former.json': 3 of 4 kernels are spelled as an earlier version wrote them, which is read until 0.3; fp8-tune and 'tune' write them as they are spelled now
// FORMER-NOT: warning
// FORMER-LABEL: @cast
// FORMER: fp8_gpu.config = #fp8_fusion.config<rows = 2, chunks = 1, lanes = 16, across = 1, down = 2, cluster = 1, resident = 3>
// FORMER-LABEL: @plain
// FORMER: fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 128, stages = 5, consumers = 1, cluster_m = 2, cluster_n = 4>
// FORMER-LABEL: @swapped
// FORMER: fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 128, stages = 5, swap_ab = true, store = direct, cluster_m = 2, cluster_n = 4>

//--- former.mlir
func.func @cast(%x: tensor<32x768xbf16>, %s: tensor<1x1xf32>, %si: tensor<1x1xf32>) -> tensor<32x768xf8E4M3FN> {
  %codes = fp8.fusion(%x, %s, %si) {
  ^bb0(%0: tensor<32x768xbf16>, %1: tensor<1x1xf32>, %2: tensor<1x1xf32>):
    %3 = fp8.quantize %0 scale(%1, %2 : tensor<1x1xf32>, tensor<1x1xf32>)
        : tensor<32x768xbf16> -> !fp8.scaled<32x768xf8E4M3FN, block = [*, *], scale = f32>
    %payload, %scale_inv = fp8.disassemble %3 : !fp8.scaled<32x768xf8E4M3FN, block = [*, *], scale = f32>
    fp8.yield %payload : tensor<32x768xf8E4M3FN>
  } : (tensor<32x768xbf16>, tensor<1x1xf32>, tensor<1x1xf32>) -> tensor<32x768xf8E4M3FN>
  return %codes : tensor<32x768xf8E4M3FN>
}
!a = !fp8.scaled<512x512xf8E4M3FN, block = [*, *], scale = f32>
func.func @plain(%a: !a) -> tensor<512x512xbf16> {
  %0 = fp8.matmul %a, %a accumulate = fast : !a, !a -> tensor<512x512xbf16>
  return %0 : tensor<512x512xbf16>
}
func.func @swapped(%a: !a) -> tensor<512x512xf32> {
  %0 = fp8.matmul %a, %a accumulate = fast : !a, !a -> tensor<512x512xf32>
  return %0 : tensor<512x512xf32>
}
//--- former.json
{"version": 2, "target": "sm_90a", "device": "a GPU", "kernels": [
  {"kernel": "matmul e4m3_e4m3_bf16_tensor_tensor_fast 1x512x512x512", "microseconds": 3,
   "config": "#fp8_sm90.gemm<tile_m = 64, tile_n = 128, stages = 5, consumers = 1, cluster = 2, cluster_cols = 4>"},
  {"kernel": "matmul e4m3_e4m3_f32_tensor_tensor_fast 1x512x512x512", "microseconds": 3,
   "config": "#fp8_sm90.gemm<tile_m = 64, tile_n = 128, stages = 5, swap_ab = true, store = direct, cluster = 4, cluster_cols = 2>"},
  {"kernel": "stream 1x32x768 read bf16 write f8E4M3FN", "microseconds": 3,
   "config": "#fp8_stream.config<rows = 2, chunks = 1, lanes = 16, across = 1, down = 2, cluster = 1, resident = 3>"},
  {"kernel": "matmul e4m3_e4m3_bf16_tensor_tensor_fast 1x256x512x512", "microseconds": 3,
   "config": "#fp8_sm90.gemm<tile_m = 64, tile_n = 128, stages = 5, consumers = 1>"}]}
//--- program.mlir
!a = !fp8.scaled<16x512xf8E4M3FN, block = [*, *], scale = f32>
!b = !fp8.scaled<256x512xf8E4M3FN, block = [*, *], scale = f32>
!c = !fp8.scaled<8x512xf8E4M3FN, block = [*, *], scale = f32>
!d = !fp8.scaled<128x512xf8E4M3FN, block = [*, *], scale = f32>

func.func @known(%a: !a, %b: !b) -> tensor<16x256xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast : !a, !b -> tensor<16x256xbf16>
  return %0 : tensor<16x256xbf16>
}

func.func @other_extents(%a: !a, %b: !d) -> tensor<16x128xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast : !a, !d -> tensor<16x128xbf16>
  return %0 : tensor<16x128xbf16>
}

func.func @other_accumulator(%a: !a, %b: !b) -> tensor<16x256xbf16> {
  %0 = fp8.matmul %a, %b : !a, !b -> tensor<16x256xbf16>
  return %0 : tensor<16x256xbf16>
}

func.func @other_epilogue(%a: !a, %b: !b, %bias: tensor<256xbf16>) -> tensor<16x256xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast epilogue(%bias : tensor<256xbf16>) {
  ^bb0(%acc: f32, %x: bf16):
    %1 = arith.extf %x : bf16 to f32
    %2 = arith.addf %acc, %1 : f32
    %3 = arith.truncf %2 : f32 to bf16
    fp8.yield %3 : bf16
  } : !a, !b -> tensor<16x256xbf16>
  return %0 : tensor<16x256xbf16>
}

func.func @with_amax(%a: !a, %b: !b) -> (tensor<16x256xf32>, tensor<1x1xf32>) {
  %0, %amax = fp8.matmul %a, %b accumulate = fast epilogue {
  ^bb0(%acc: f32):
    fp8.yield %acc, %acc : f32, f32
  } : !a, !b -> tensor<16x256xf32>, tensor<1x1xf32>
  return %0, %amax : tensor<16x256xf32>, tensor<1x1xf32>
}

func.func @pinned(%a: !a, %b: !b) -> tensor<16x256xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 64, stages = 4, consumers = 1>}
    : !a, !b -> tensor<16x256xbf16>
  return %0 : tensor<16x256xbf16>
}

func.func @stale(%a: !c, %b: !b) -> tensor<8x256xbf16> {
  // expected-remark @+1 {{its config is ignored: expected}}
  %0 = fp8.matmul %a, %b accumulate = fast : !c, !b -> tensor<8x256xbf16>
  return %0 : tensor<8x256xbf16>
}

//--- table.json
{"version": 2, "target": "sm_90a", "device": "a GPU", "kernels": [
  {"kernel": "matmul e4m3_e4m3_bf16_tensor_tensor_fast 1x16x256x512", "microseconds": 3,
   "config": "#fp8_sm90.gemm<tile_m = 64, tile_n = 128, stages = 8, consumers = 1>"},
  {"kernel": "matmul e4m3_e4m3_bf16_tensor_tensor_fast 1x16x256x512 n:bf16 extf addf truncf",
   "microseconds": 4.5, "config": "#fp8_sm90.gemm<tile_m = 64, tile_n = 64, stages = 5, consumers = 1>"},
  {"kernel": "matmul e4m3_e4m3_f32_tensor_tensor_fast 1x16x256x512 amax", "microseconds": 5,
   "config": "#fp8_sm90.gemm<tile_m = 64, tile_n = 64, stages = 3, consumers = 1>"},
  {"kernel": "matmul e4m3_e4m3_bf16_tensor_tensor_fast 1x8x256x512", "microseconds": 3,
   "config": "#fp8_sm90.gemm<tile_m = 128, tile_n = 256, stages = 16>"}]}
//--- elsewhere.json
{"version": 2, "target": "sm_100a", "device": "another GPU", "kernels": [
  {"kernel": "matmul e4m3_e4m3_bf16_tensor_tensor_fast 1x16x256x512", "microseconds": 3,
   "config": "#fp8_sm90.gemm<tile_m = 64, tile_n = 128, stages = 8, consumers = 1>"}]}
//--- unknown.json
{"version": 2, "target": "sm_90a", "device": "a GPU", "kernels": [
  {"kernel": "matmul e4m3_e4m3_bf16_tensor_tensor_fast 1x16x256x512", "microseconds": 3,
   "config": "#fp8_sm90.gemm<colour = red>"},
  {"kernel": "matmul e4m3_e4m3_bf16_tensor_tensor_fast 1x16x256x512", "microseconds": 3,
   "config": "f32"}]}
