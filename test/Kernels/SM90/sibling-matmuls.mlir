// RUN: fp8-opt %s --fp8-set-target=chip=sm_90a --fp8-build-kernels --fp8-launch-kernels --canonicalize | FileCheck %s
// RUN: fp8-opt %s --fp8-set-target=chip=sm_90a --fp8-build-kernels | fp8-translate --kernels-to-ptx | FileCheck %s --check-prefix=PTX

!x = !fp8.scaled<?x1024xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<512x1024xf8E4M3FN, block = [*, *], scale = f32>
!v = !fp8.scaled<?x1024xf8E4M3FN, block = [*, *], scale = f32>

// Tiles of both results, one after another.
// CHECK-DAG: #[[TILES:.+]] = affine_map<()[s0, s1, s2, s3] -> ((s0 ceildiv 64) * (s1 ceildiv 64) + (s0 ceildiv 64) * (s2 ceildiv 64))>
// CHECK-DAG: #[[FLOPS:.+]] = affine_map<()[s0, s1, s2, s3] -> (((s0 * s1 + s0 * s2) * s3) * 2)>
// CHECK-DAG: #[[PARTS:.+]] = affine_map<()[s0, s1, s2, s3] -> (((s0 ceildiv 16) * (s1 ceildiv 64) + (s0 ceildiv 16) * (s2 ceildiv 64)) * 8192)>

// A and its factor are arguments of both; B, D and what goes with them each has
// of its own.

// CHECK-DAG: #[[GROUP:.+]] = #fp8_gpu.launch<arguments = [#fp8_gpu.argument<name = "a", {{.+}}>, #fp8_gpu.argument<name = "scale_a", {{.+}}>, #fp8_gpu.argument<name = "b", {{.+}}>, #fp8_gpu.argument<name = "scale_b", {{.+}}>, #fp8_gpu.argument<name = "operand0", {{.+}}>, #fp8_gpu.argument<name = "b_1", {{.+}}>, #fp8_gpu.argument<name = "scale_b_1", {{.+}}>, #fp8_gpu.argument<name = "operand0_1", {{.+}}>, #fp8_gpu.argument<name = "d", {{.+}}>, #fp8_gpu.argument<name = "d_1", {{.+}}>], extents = [#fp8_gpu.extent<"m", 0, 0>, #fp8_gpu.extent<"n", 2, 0>, #fp8_gpu.extent<"n_1", 5, 0>, #fp8_gpu.extent<"k", 0, 1>], {{.*}}grid = #[[TILES]], {{.*}}flops = #[[FLOPS]]>

// CHECK-LABEL: func.func @of_a
// CHECK:       fp8_gpu.launch @fp8_kernels::@fp8_matmul_sm90a_e4m3_e4m3_bf16_tensor_tensor_fast_siblings2_64x64_s4c1_direct_g16 #[[GROUP]] ins(%{{[^,]+}}, %{{[^,]+}}, %{{[^,]+}}, %{{[^,]+}}, %arg3, %{{[^,]+}}, %{{[^,]+}}, %arg4 :
// CHECK-SAME:  outs(%{{.+}}, %{{.+}} : tensor<?x512xbf16>, tensor<?x?xbf16>)
func.func @of_a(%x: !x, %q: !w, %k: !v, %b: tensor<512xbf16>, %c: tensor<?xbf16>) -> (tensor<?x512xbf16>, tensor<?x?xbf16>) {
  %0:2 = fp8.sibling_matmuls {
    %1 = fp8.matmul %x, %q accumulate = fast epilogue(%b : tensor<512xbf16>) {
    ^bb0(%acc: f32, %e: bf16):
      %3 = arith.extf %e : bf16 to f32
      %4 = arith.addf %acc, %3 : f32
      %5 = arith.truncf %4 : f32 to bf16
      fp8.yield %5 : bf16
    } : !x, !w -> tensor<?x512xbf16>
    %2 = fp8.matmul %x, %k accumulate = fast epilogue(%c : tensor<?xbf16>) {
    ^bb0(%acc: f32, %e: bf16):
      %3 = arith.extf %e : bf16 to f32
      %4 = arith.addf %acc, %3 : f32
      %5 = arith.truncf %4 : f32 to bf16
      fp8.yield %5 : bf16
    } : !x, !v -> tensor<?x?xbf16>
    fp8.yield %1, %2 : tensor<?x512xbf16>, tensor<?x?xbf16>
  } {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 64, stages = 4, consumers = 1, store = direct>} : tensor<?x512xbf16>, tensor<?x?xbf16>
  return %0#0, %0#1 : tensor<?x512xbf16>, tensor<?x?xbf16>
}

// With parts of K the workspace has those of all tiles.

// CHECK-LABEL: func.func @split
// CHECK:       fp8_gpu.launch {{.+}}_siblings2_{{.+}} outs(%{{.+}}, %{{.+}} : tensor<?x512xbf16>, tensor<?x?xbf16>)
func.func @split(%x: !x, %q: !w, %k: !v) -> (tensor<?x512xbf16>, tensor<?x?xbf16>) {
  %0:2 = fp8.sibling_matmuls {
    %1 = fp8.matmul %x, %q accumulate = fast : !x, !w -> tensor<?x512xbf16>
    %2 = fp8.matmul %x, %k accumulate = fast : !x, !v -> tensor<?x?xbf16>
    fp8.yield %1, %2 : tensor<?x512xbf16>, tensor<?x?xbf16>
  } {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 16, tile_n = 64, stages = 4, consumers = 1, split_k = 2, swap_ab = true, store = direct>} : tensor<?x512xbf16>, tensor<?x?xbf16>
  return %0#0, %0#1 : tensor<?x512xbf16>, tensor<?x?xbf16>
}

// Each result has an amax, raised after each of its tiles.

// CHECK-LABEL: func.func @amaxes
// CHECK:       fp8_gpu.launch {{.+}} outs(%{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} : tensor<64x512xbf16>, tensor<1x1xf32>, tensor<128x512xbf16>, tensor<1x1xf32>)
func.func @amaxes(%x: !fp8.scaled<64x1024xf8E4M3FN, block = [*, *], scale = f32>, %y: !fp8.scaled<128x1024xf8E4M3FN, block = [*, *], scale = f32>, %w: !w)
    -> (tensor<64x512xbf16>, tensor<1x1xf32>, tensor<128x512xbf16>, tensor<1x1xf32>) {
  %0:4 = fp8.sibling_matmuls {
    %1:2 = fp8.matmul %x, %w accumulate = fast epilogue {
    ^bb0(%acc: f32):
      %5 = arith.truncf %acc : f32 to bf16
      fp8.yield %5, %acc : bf16, f32
    } : !fp8.scaled<64x1024xf8E4M3FN, block = [*, *], scale = f32>, !w -> tensor<64x512xbf16>, tensor<1x1xf32>
    %2:2 = fp8.matmul %y, %w accumulate = fast epilogue {
    ^bb0(%acc: f32):
      %5 = arith.truncf %acc : f32 to bf16
      fp8.yield %5, %acc : bf16, f32
    } : !fp8.scaled<128x1024xf8E4M3FN, block = [*, *], scale = f32>, !w -> tensor<128x512xbf16>, tensor<1x1xf32>
    fp8.yield %1#0, %1#1, %2#0, %2#1 : tensor<64x512xbf16>, tensor<1x1xf32>, tensor<128x512xbf16>, tensor<1x1xf32>
  } {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 64, stages = 4, consumers = 1>} : tensor<64x512xbf16>, tensor<1x1xf32>, tensor<128x512xbf16>, tensor<1x1xf32>
  return %0#0, %0#1, %0#2, %0#3 : tensor<64x512xbf16>, tensor<1x1xf32>, tensor<128x512xbf16>, tensor<1x1xf32>
}

// Maps are chosen by their addresses, and stay where the launch put them.

// PTX-NOT:   .local
// PTX:       .visible .entry {{.+}}_siblings2_
// PTX:       cvta.param.u64 %[[ANY:rd[0-9]+]]
// PTX:       selp.b64
// PTX:       cp.async.bulk.tensor
// PTX-NOT:   .local
// PTX:       .visible .entry {{.+}}_siblings2_
// PTX-NOT:   .local

// One launch writes once what the group yields twice.

// CHECK-LABEL: func.func @repeated
// CHECK:       %[[R:.+]]:2 = fp8_gpu.launch {{.+}} outs(%{{.+}}, %{{.+}} : tensor<64x512xbf16>, tensor<128x512xbf16>)
// CHECK:       return %[[R]]#1, %[[R]]#0, %[[R]]#1
func.func @repeated(%x: !fp8.scaled<64x1024xf8E4M3FN, block = [*, *], scale = f32>, %y: !fp8.scaled<128x1024xf8E4M3FN, block = [*, *], scale = f32>, %w: !w)
    -> (tensor<128x512xbf16>, tensor<64x512xbf16>, tensor<128x512xbf16>) {
  %0:3 = fp8.sibling_matmuls {
    %1 = fp8.matmul %x, %w accumulate = fast : !fp8.scaled<64x1024xf8E4M3FN, block = [*, *], scale = f32>, !w -> tensor<64x512xbf16>
    %2 = fp8.matmul %y, %w accumulate = fast : !fp8.scaled<128x1024xf8E4M3FN, block = [*, *], scale = f32>, !w -> tensor<128x512xbf16>
    fp8.yield %2, %1, %2 : tensor<128x512xbf16>, tensor<64x512xbf16>, tensor<128x512xbf16>
  } {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 64, stages = 4, consumers = 1, store = direct>} : tensor<128x512xbf16>, tensor<64x512xbf16>, tensor<128x512xbf16>
  return %0#0, %0#1, %0#2 : tensor<128x512xbf16>, tensor<64x512xbf16>, tensor<128x512xbf16>
}
