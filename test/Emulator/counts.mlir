// UNSUPPORTED: sanitizers
// RUN: rm -f %t.counts && %python %S/../Integration/CUDA/Inputs/tensors.py %t.in arg0=f32:1x1
// RUN: env FP8_CUDA_DRIVER=%emulator_library FP8_EMULATOR_ARCH=100 FP8_EMULATOR_COUNTS=%t.counts fp8-run %s --target=sm_100a --inputs=%t.in
// RUN: FileCheck %s --input-file=%t.counts

// What a launch did: of 4 tiles of 128x128, each with K of 256, both operands
// are loaded (4 * 2 * 128 * 256), their sums taken from tensor memory in f32,
// and stored in bf16; an instruction multiplies 32 of K.

// CHECK: {"kernel": "fp8_matmul_sm100a_e4m3_e4m3_bf16_tensor_tensor_promote_128x128_s4_g16",
// CHECK-SAME: "products": {"f8f6f4 128x128": 32},
// CHECK-SAME: "loaded": 262144, "stored": 131072, "copied": 0, "fills": 0, "taken": 262144,
// CHECK-SAME: "instructions": [{{([0-9]+, ){7}[0-9]+}}]}

!x = !fp8.scaled<256x256xf8E4M3FN, block = [*, *], scale = f32>

func.func @main(%s: tensor<1x1xf32>) -> tensor<256x256xbf16> {
  %a = arith.constant dense<1.0> : tensor<256x256xf8E4M3FN>
  %b = arith.constant dense<2.0> : tensor<256x256xf8E4M3FN>
  %x = fp8.assemble %a, %s : tensor<256x256xf8E4M3FN>, tensor<1x1xf32> -> !x
  %y = fp8.assemble %b, %s : tensor<256x256xf8E4M3FN>, tensor<1x1xf32> -> !x
  %0 = fp8.matmul %x, %y {fp8_gpu.config = #fp8_sm100.gemm<tile_m = 128, tile_n = 128, stages = 4>}
    : !x, !x -> tensor<256x256xbf16>
  return %0 : tensor<256x256xbf16>
}
