// RUN: fp8-opt --fp8-build-kernels --canonicalize %s | FileCheck %s

!x = !fp8.scaled<?x4096xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>

// CHECK-LABEL: func.func @equal_matmuls_share_a_kernel
// CHECK: fp8.kernel = @fp8_kernels::@[[PLAIN:fp8_matmul_sm90a_e4m3_e4m3_bf16_tensor_tensor_fast_64x16_s2c1_g16]]}
// CHECK: fp8.kernel = @fp8_kernels::@[[PLAIN]]}
func.func @equal_matmuls_share_a_kernel(%a: !x, %b: !w, %c: !w) -> (tensor<?x4096xbf16>, tensor<?x4096xbf16>) {
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8.gemm_config = #fp8.gemm_config<tile_m = 64, tile_n = 16, stages = 2, consumers = 1>}
    : !x, !w -> tensor<?x4096xbf16>
  %1 = fp8.matmul %a, %c accumulate = fast
    {fp8.gemm_config = #fp8.gemm_config<tile_m = 64, tile_n = 16, stages = 2, consumers = 1>}
    : !x, !w -> tensor<?x4096xbf16>
  return %0, %1 : tensor<?x4096xbf16>, tensor<?x4096xbf16>
}

// CHECK-LABEL: func.func @another_epilogue_another_kernel
// CHECK: fp8.kernel = @fp8_kernels::@[[PLAIN]]_1}
func.func @another_epilogue_another_kernel(%a: !x, %b: !w) -> tensor<?x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast epilogue {
  ^bb0(%acc: f32):
    %1 = arith.addf %acc, %acc : f32
    %2 = arith.truncf %1 : f32 to bf16
    fp8.yield %2 : bf16
  } {fp8.gemm_config = #fp8.gemm_config<tile_m = 64, tile_n = 16, stages = 2, consumers = 1>}
    : !x, !w -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}

// CHECK-LABEL: func.func @no_config_no_kernel
// CHECK-NOT: fp8.kernel =
func.func @no_config_no_kernel(%a: !x, %b: !w) -> tensor<?x4096xbf16> {
  // CHECK: return
  %0 = fp8.matmul %a, %b : !x, !w -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}

// CHECK: gpu.module @fp8_kernels
// CHECK: llvm.mlir.global external @fp8_shared() {addr_space = 3 : i32, alignment = 1024 : i64}
// CHECK: llvm.func @[[PLAIN]](
// CHECK-SAME: llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant
// CHECK-SAME: fp8.launch = {box_m = 64 : i64, box_n = 16 : i64, cluster = 1 : i64, cluster_m = 64 : i64, cluster_n = 16 : i64, config = #fp8.gemm_config<tile_m = 64, tile_n = 16, stages = 2, consumers = 1>
// CHECK-SAME: params = ["a.map", "b.map", "d.map", "scale_a.ptr"
// CHECK-SAME: "m", "n", "k"], shared_bytes = 36912 : i64, split_k = 1 : i64, store_bytes = 32 : i64, threads = 256 : i64
// CHECK-SAME: nvvm.kernel, nvvm.minctasm = 1 : i32, nvvm.reqntid = array<i32: 256, 1, 1>
// CHECK: llvm.func @[[PLAIN]]_1(
// CHECK-NOT: llvm.func
