// RUN: fp8-opt %s --fp8-set-target=chip=sm_90a --fp8-build-kernels --fp8-serialize-kernels=format=ptx | FileCheck %s
// RUN: fp8-opt %s --fp8-set-target=chip=sm_90a --fp8-serialize-kernels=format=ptx | FileCheck %s --check-prefix=NONE
// RUN: not fp8-opt %s --fp8-serialize-kernels=format=elf 2>&1 | FileCheck %s --check-prefix=FORMAT

// One binary is in the place of the module, and its table has what kernels are
// launched with.

// CHECK: gpu.binary @fp8_kernels [#gpu.object<#nvvm.target<O = 3, chip = "sm_90a">,
// CHECK-SAME: kernels = <[#gpu.kernel_metadata<"fp8_matmul_sm90a_{{[^"]*}}", {{.*}}metadata = {fp8_gpu.launch = #
// CHECK-SAME: assembly = "{{.*}}.version {{.*}}.target sm_90a{{.*}}wgmma.mma_async
// CHECK-NOT: gpu.module

// NONE-NOT: gpu.binary

// FORMAT: error: expected kernel-format to be auto, cubin or ptx, but got 'elf'

!a = !fp8.scaled<?x4096xf8E4M3FN, block = [*, *], scale = f32>
!b = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
func.func @matmul(%a: !a, %b: !b) -> tensor<?x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast
    {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 16, stages = 2, consumers = 1>}
    : !a, !b -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}
