// UNSUPPORTED: sanitizers
// RUN: env CUDA_HOME=%t-none FP8_CUDA_DRIVER=emulator FP8_EMULATOR_KERNELS=skip fp8-tune %s --recipe=current --rounds=1 -o %t.json 2>%t.err
// RUN: FileCheck %s --input-file=%t.json
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t.err
// RUN: sed -E 's/#fp8_sm90.gemm<[^>]*>/#fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 5, overlap = true>/' %t.json > %t.other.json
// RUN: fp8-opt %s --fp8-pipeline="target=sm_90a recipe=current kernel-table=%t.other.json to=buffers" | FileCheck %s --check-prefix=TUNED

// What kernels of a program compute as its recipe makes it, equal ones once;
// matmuls with what their epilogues do, and the casts of their operands.

// CHECK: "kernel": "fusion 1x256x64 read bf16 write{{.*}}"
// CHECK-NOT: "kernel"
// CHECK: "kernel": "fusion 1x256x64 read bf16 write f8E4M3FN^T{{.*}}"
// CHECK-NOT: "kernel"
// CHECK: "kernel": "fusion 1x32x256 read bf16 write{{.*}}"
// CHECK-NOT: "kernel"
// CHECK: "kernel": "fusion 1x32x256 read bf16 write f8E4M3FN{{.*}}"
// CHECK-NOT: "kernel"
// CHECK: "kernel": "matmul e4m3_e4m3_bf16_tensor_tensor_promote 1x32x64x256 n:bf16 extf addf truncf"
// CHECK-NOT: "kernel": "{{matmul|fusion}}
// REMARK: remark: not tuned, for not all of its extents are known

// What the table has, where the heuristic would have swapped operands.

// TUNED: llvm.func @fp8_matmul_sm90a_e4m3_e4m3_bf16_tensor_tensor_promote_128x128_s5c2_overlap_g16

func.func @same(%x: tensor<32x256xbf16>, %w: tensor<256x64xbf16>, %v: tensor<256x64xbf16>,
                %bias: tensor<64xbf16>) -> (tensor<32x64xbf16>, tensor<32x64xbf16>) {
  %y = func.call @linear(%x, %w, %bias) : (tensor<32x256xbf16>, tensor<256x64xbf16>, tensor<64xbf16>) -> tensor<32x64xbf16>
  %z = func.call @linear(%x, %v, %bias) : (tensor<32x256xbf16>, tensor<256x64xbf16>, tensor<64xbf16>) -> tensor<32x64xbf16>
  return %y, %z : tensor<32x64xbf16>, tensor<32x64xbf16>
}

func.func @linear(%x: tensor<32x256xbf16>, %w: tensor<256x64xbf16>, %bias: tensor<64xbf16>) -> tensor<32x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x64xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x64xf32>) -> tensor<32x64xf32>
  %product = linalg.matmul ins(%x, %w : tensor<32x256xbf16>, tensor<256x64xbf16>)
                           outs(%zeros : tensor<32x64xf32>) -> tensor<32x64xf32>
  %out = tensor.empty() : tensor<32x64xbf16>
  %y = linalg.generic {
      indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (n)>,
                       affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%product, %bias : tensor<32x64xf32>, tensor<64xbf16>) outs(%out : tensor<32x64xbf16>) {
  ^bb0(%p: f32, %b: bf16, %o: bf16):
    %b32 = arith.extf %b : bf16 to f32
    %sum = arith.addf %p, %b32 : f32
    %rounded = arith.truncf %sum : f32 to bf16
    linalg.yield %rounded : bf16
  } -> tensor<32x64xbf16>
  return %y : tensor<32x64xbf16>
}

func.func @dynamic(%x: tensor<?x256xbf16>, %w: tensor<256x64xbf16>) -> tensor<?x64xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x256xbf16>
  %empty = tensor.empty(%m) : tensor<?x64xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<?x64xf32>) -> tensor<?x64xf32>
  %y = linalg.matmul ins(%x, %w : tensor<?x256xbf16>, tensor<256x64xbf16>)
                     outs(%zeros : tensor<?x64xf32>) -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
