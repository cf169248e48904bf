// RUN: fp8-opt %s --fp8-set-target=chip=sm_90a --fp8-build-kernels --fp8-launch-kernels --canonicalize | FileCheck %s
// RUN: fp8-opt %s --fp8-set-target=chip=sm_90a --fp8-build-kernels | fp8-translate --kernels-to-ptx | FileCheck %s --check-prefix=PTX

!x = !fp8.scaled<?x1024xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<512x1024xf8E4M3FN, block = [*, *], scale = f32>
!r = !fp8.scaled<?x1024xf8E4M3FN, block = [1, 128], scale = f32>
!v = !fp8.scaled<512x1024xf8E4M3FN, block = [128, 128], scale = f32>
!y = tensor<?x512xbf16>

// A tile has 128 columns of the tensor core, 64 of the result.
// CHECK-DAG: #[[TILES:.+]] = affine_map<()[s0, s1, s2] -> ((s0 ceildiv 128) * (s1 ceildiv 64))>
// CHECK-DAG: #[[FLOPS:.+]] = affine_map<()[s0, s1, s2] -> (((s0 * s1) * s2) * 4)>

// Operands of the epilogues, the first one's at the front; of what is B's, two.
// CHECK-DAG: #[[PAIR:.+]] = #fp8_gpu.launch<arguments = [#fp8_gpu.argument<name = "a", {{.+}}>, #fp8_gpu.argument<name = "scale_a", {{.+}}>, #fp8_gpu.argument<name = "b", {{.+}}>, #fp8_gpu.argument<name = "scale_b", {{.+}}>, #fp8_gpu.argument<name = "operand0", {{.+}}>, #fp8_gpu.argument<name = "operand1", {{.+}}>, #fp8_gpu.argument<name = "b_1", {{.+}}>, #fp8_gpu.argument<name = "scale_b_1", {{.+}}>, #fp8_gpu.argument<name = "d", {{.+}}>], extents = [#fp8_gpu.extent<"m", 0, 0>, #fp8_gpu.extent<"n", 2, 0>, #fp8_gpu.extent<"k", 0, 1>], {{.*}}grid = #[[TILES]], {{.*}}flops = #[[FLOPS]]>

// A factor of each half in a stage.

// CHECK-LABEL: func.func @blocks
// CHECK:       fp8_gpu.launch {{.+}}_1x128_128x128_promote_dual_128x128_
// PTX:         .visible .entry {{.+}}_1x128_128x128_promote_dual_128x128_
// PTX:         ret;
func.func @blocks(%x: !r, %w: !v, %u: !v) -> !y {
  %0 = fp8.sibling_matmuls {
    %1 = fp8.matmul %x, %w : !r, !v -> !y
    %2 = fp8.matmul %x, %u epilogue(%1 : !y) {
    ^bb0(%acc: f32, %gate: bf16):
      %5 = arith.extf %gate : bf16 to f32
      %6 = arith.mulf %acc, %5 : f32
      %7 = arith.truncf %6 : f32 to bf16
      fp8.yield %7 : bf16
    } : !r, !v -> !y
    fp8.yield %2 : !y
  } {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4>} : !y
  return %0 : !y
}

// CHECK-LABEL: func.func @gated
// CHECK:       fp8_gpu.launch @fp8_kernels::@fp8_matmul_sm90a_e4m3_e4m3_bf16_tensor_tensor_fast_dual_128x128_s4c2_g16 #[[PAIR]] ins(%{{[^,]+}}, %{{[^,]+}}, %{{[^,]+}}, %{{[^,]+}}, %arg3, %arg4, %{{[^,]+}}, %{{[^,]+}} :
// CHECK-SAME:  outs(%{{[^,]+}} : tensor<?x512xbf16>)
// PTX:         .visible .entry {{.+}}_dual_128x128_
// PTX:         wgmma.mma_async.sync.aligned.m64n128
// PTX:         cp.async.bulk.tensor.2d{{.+}}[%[[SLOT:rd[0-9]+]]],
// PTX-NEXT:    cp.async.bulk.tensor.2d{{.+}}[%[[SLOT]]+65536], [%[[B:rd[0-9]+]],
// PTX-NOT:     [%[[B]],
// PTX-NEXT:    cp.async.bulk.tensor.2d{{.+}}[%[[SLOT]]+73728], [%rd
func.func @gated(%x: !x, %w: !w, %u: !w, %b: tensor<512xbf16>, %c: tensor<512xbf16>) -> !y {
  %0 = fp8.sibling_matmuls {
    %1 = fp8.matmul %x, %w accumulate = fast epilogue(%b : tensor<512xbf16>) {
    ^bb0(%acc: f32, %e: bf16):
      %3 = arith.extf %e : bf16 to f32
      %4 = arith.addf %acc, %3 : f32
      %5 = arith.truncf %4 : f32 to bf16
      fp8.yield %5 : bf16
    } : !x, !w -> !y
    %2 = fp8.matmul %x, %u accumulate = fast epilogue(%1, %c : !y, tensor<512xbf16>) {
    ^bb0(%acc: f32, %gate: bf16, %e: bf16):
      %3 = arith.extf %e : bf16 to f32
      %4 = arith.addf %acc, %3 : f32
      %5 = arith.extf %gate : bf16 to f32
      %6 = arith.mulf %4, %5 : f32
      %7 = arith.truncf %6 : f32 to bf16
      fp8.yield %7 : bf16
    } : !x, !w -> !y
    fp8.yield %2 : !y
  } {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 4>} : !y
  return %0 : !y
}
