// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-build-kernels %s -o %t
// RUN: fp8-translate --kernels-to-ptx %t | FileCheck %s
// RUN: fp8-translate --kernels-to-json %t | FileCheck --check-prefix=JSON %s
// RUN: fp8-opt --fp8-set-target=chip=sm_90a %s | not fp8-translate --kernels-to-ptx 2>&1 | FileCheck --check-prefix=NONE %s

// NONE: error: expected one gpu.module, but got none

!a = !fp8.scaled<?x4096xf8E4M3FN, block = [*, *], scale = f32>
!b = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
func.func @matmul(%a: !a, %b: !b) -> tensor<?x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast epilogue {
  ^bb0(%acc: f32):
    %1 = math.tanh %acc fastmath<afn> : f32
    %2 = arith.truncf %1 : f32 to bf16
    fp8.yield %2 : bf16
  } {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 16, stages = 2, consumers = 1>}
    : !a, !b -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}

// CHECK: .version 9.0
// CHECK: .target sm_90a
// CHECK: .visible .entry fp8_matmul_sm90a_e4m3_e4m3_bf16_tensor_tensor_fast_64x16_s2c1_g16(
// CHECK: .param .align 64 .b8
// CHECK: .reqntid 256
// CHECK: .minnctapersm 1
// CHECK: setmaxnreg.inc.sync.aligned.u32 232
// CHECK: wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e4m3
// CHECK: tanh.approx.f32
// CHECK: cvt.rn.bf16x2.f32
// CHECK: stmatrix.sync.aligned.m8n8.x4.shared.b16
// CHECK: cp.async.bulk.tensor.2d.global.shared::cta
// CHECK: cp.async.bulk.tensor.2d.shared::cta.global

// JSON: "fp8_matmul_sm90a_e4m3_e4m3_bf16_tensor_tensor_fast_64x16_s2c1_g16": {
// JSON-NEXT: "config": "#fp8_sm90.gemm<tile_m = 64, tile_n = 16, stages = 2, consumers = 1>",
// JSON-NEXT: "launch": {"version":2,"arguments":[{"name":"a","type":"u8","rank":2,"access":"read","alignment":16},
// JSON-SAME: "params":[{"tensor_map":0,"box":[128,64],"swizzle":128,"l2":128},
// JSON-SAME: "block":256,"cluster":1,"shared_bytes":36912,"resident":1,"overlap":true,"flops":"m n * k * 2 *"}
