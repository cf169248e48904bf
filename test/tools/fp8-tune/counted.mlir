// UNSUPPORTED: sanitizers
// RUN: rm -f %t.counts
// RUN: env CUDA_HOME=%t-none FP8_CUDA_DRIVER=emulator FP8_EMULATOR_SMS=8 FP8_EMULATOR_COUNTS=%t.counts fp8-tune %s --recipe=current --target=sm_90a --rounds=1 -o %t.json
// RUN: FileCheck %s --input-file=%t.json
// RUN: FileCheck %s --check-prefix=COUNTS --input-file=%t.counts

// Groups have as many rows as are expected when a product is measured.

// CHECK: "kernel": "matmul e4m3_e4m3_bf16_tensor_tensor_promote 1x256x128x256 m/4 masked groups of 40 undef_padding"
// COUNTS: "kernel": "fp8_matmul_sm90a_e4m3_e4m3_bf16_tensor_tensor_promote_masked_undef_padding_{{.*}}"loaded": {{[1-9]}}

func.func @experts(%x: tensor<4x256x256xbf16>, %w: tensor<4x128x256xbf16>, %counts: tensor<4xi32>) -> tensor<4x256x128xbf16> {
  %y = fp8.grouped_matmul %x, %w counts(%counts : tensor<4xi32>) undef_padding accumulate = fast {expected_m = 40}
    : tensor<4x256x256xbf16>, tensor<4x128x256xbf16> -> tensor<4x256x128xbf16>
  return %y : tensor<4x256x128xbf16>
}
