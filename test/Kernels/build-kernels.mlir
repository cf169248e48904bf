// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-build-kernels --canonicalize %s | FileCheck %s

// What the kernels take and how they are launched: both the same.

// CHECK: #[[M:.*]] = affine_map<()[s0, s1, s2] -> (s0)>
// CHECK-NEXT: #[[N:.*]] = affine_map<()[s0, s1, s2] -> (s1)>
// CHECK-NEXT: #[[K:.*]] = affine_map<()[s0, s1, s2] -> (s2)>
// CHECK-NEXT: #[[GRID:.*]] = affine_map<()[s0, s1, s2] -> ((s0 ceildiv 64) * (s1 ceildiv 16))>
// CHECK-NEXT: #[[FLOPS:.*]] = affine_map<()[s0, s1, s2] -> (((s0 * s1) * s2) * 2)>
// CHECK: #launch = #fp8_gpu.launch<arguments = [
// CHECK-SAME: #fp8_gpu.argument<name = "a", element = f8E4M3FN, rank = 2, access = read, alignment = 16>,
// CHECK-SAME: #fp8_gpu.argument<name = "scale_a", element = f32, rank = 2, access = read, alignment = 4>,
// CHECK-SAME: #fp8_gpu.argument<name = "b", element = f8E4M3FN, rank = 2, access = read, alignment = 16>,
// CHECK-SAME: #fp8_gpu.argument<name = "scale_b", element = f32, rank = 2, access = read, alignment = 4>,
// CHECK-SAME: #fp8_gpu.argument<name = "d", element = bf16, rank = 2, access = write, alignment = 16>],
// CHECK-SAME: extents = [#fp8_gpu.extent<"m", 0, 0>, #fp8_gpu.extent<"n", 2, 0>, #fp8_gpu.extent<"k", 0, 1>],
// CHECK-SAME: params = [#fp8_gpu.tensor_map<0, box = [128, 64], swizzle = 128, l2 = 128>, #fp8_gpu.tensor_map<2, box = [128, 16], swizzle = 128, l2 = 128>, #fp8_gpu.tensor_map<4, box = [16, 64], swizzle = 32, l2 = 128>, #fp8_gpu.pointer<1>, #fp8_gpu.pointer<3>, #fp8_gpu.value<#[[M]] : i32>, #fp8_gpu.value<#[[N]] : i32>, #fp8_gpu.value<#[[K]] : i32>, #fp8_gpu.tensor_map<0, box = [128, 64], swizzle = 128, l2 = 128, tail = 1>, #fp8_gpu.tensor_map<2, box = [128, 16], swizzle = 128, l2 = 128, tail = 1>],
// CHECK-SAME: grid = #[[GRID]], block = 256, shared_bytes = 36912, resident = 1, overlap = true, flops = #[[FLOPS]]>

!x = !fp8.scaled<?x4096xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>

// CHECK-LABEL: func.func @equal_matmuls_share_a_kernel
// CHECK: fp8_gpu.kernel = @fp8_kernels::@[[PLAIN:fp8_matmul_sm90a_e4m3_e4m3_bf16_tensor_tensor_fast_64x16_s2c1_g16]]}
// CHECK: fp8_gpu.kernel = @fp8_kernels::@[[PLAIN]]}
func.func @equal_matmuls_share_a_kernel(%a: !x, %b: !w, %c: !w) -> (tensor<?x4096xbf16>, tensor<?x4096xbf16>) {
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 16, stages = 2, consumers = 1>}
    : !x, !w -> tensor<?x4096xbf16>
  %1 = fp8.matmul %a, %c accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 16, stages = 2, consumers = 1>}
    : !x, !w -> tensor<?x4096xbf16>
  return %0, %1 : tensor<?x4096xbf16>, tensor<?x4096xbf16>
}

// CHECK-LABEL: func.func @another_epilogue_another_kernel
// CHECK: fp8_gpu.kernel = @fp8_kernels::@[[PLAIN]]_1}
func.func @another_epilogue_another_kernel(%a: !x, %b: !w) -> tensor<?x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast epilogue {
  ^bb0(%acc: f32):
    %1 = arith.addf %acc, %acc : f32
    %2 = arith.truncf %1 : f32 to bf16
    fp8.yield %2 : bf16
  } {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 16, stages = 2, consumers = 1>}
    : !x, !w -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}

// CHECK-LABEL: func.func @no_config_no_kernel
// CHECK-NOT: fp8_gpu.kernel =
func.func @no_config_no_kernel(%a: !x, %b: !w) -> tensor<?x4096xbf16> {
  // CHECK: return
  %0 = fp8.matmul %a, %b : !x, !w -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}

// CHECK: gpu.module @fp8_kernels
// CHECK: llvm.mlir.global external @fp8_shared() {addr_space = 3 : i32, alignment = 1024 : i64}
// CHECK: llvm.func @[[PLAIN]](
// CHECK-SAME: llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant
// CHECK-SAME: {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 16, stages = 2, consumers = 1>, fp8_gpu.launch = #launch, fp8_gpu.math = #fp8_gpu.math<approximate>, nvvm.kernel, nvvm.minctasm = 1 : i32, nvvm.reqntid = array<i32: 256, 1, 1>}
// CHECK: llvm.func @[[PLAIN]]_1(
// CHECK-NOT: llvm.func
