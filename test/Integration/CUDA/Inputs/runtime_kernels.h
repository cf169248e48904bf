//===- runtime_kernels.h - Kernels for runtime.c ------------------*- C -*-===//
//
// Part of the fp8 project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FP8_TEST_INTEGRATION_CUDA_RUNTIME_KERNELS_H
#define FP8_TEST_INTEGRATION_CUDA_RUNTIME_KERNELS_H

/// scale(x, a, n): x[i] *= a.
/// tma_copy(map, out, column, row): one box of 64 x 64 bytes through the TMA,
/// as PTX ISA's example of cp.async.bulk.tensor does it.
/// store(address): writes there, whatever is there.
static const char kernels[] =
    ".version 8.0\n"
    ".target sm_90\n"
    ".address_size 64\n"
    ".visible .entry scale(.param .u64 x, .param .f32 a, .param .u32 n) {\n"
    "  .reg .pred %p; .reg .u32 %r<6>; .reg .u64 %rd<4>; .reg .f32 %f<3>;\n"
    "  mov.u32 %r0, %ctaid.x; mov.u32 %r1, %ntid.x; mov.u32 %r2, %tid.x;\n"
    "  mad.lo.u32 %r3, %r0, %r1, %r2;\n"
    "  ld.param.u32 %r4, [n];\n"
    "  setp.ge.u32 %p, %r3, %r4;\n"
    "  @%p ret;\n"
    "  ld.param.u64 %rd0, [x]; cvta.to.global.u64 %rd1, %rd0;\n"
    "  mad.wide.u32 %rd2, %r3, 4, %rd1;\n"
    "  ld.param.f32 %f0, [a]; ld.global.f32 %f1, [%rd2];\n"
    "  mul.f32 %f2, %f0, %f1;\n"
    "  st.global.f32 [%rd2], %f2;\n"
    "  ret;\n"
    "}\n"
    ".visible .entry tma_copy(.param .align 64 .b8 map[128], .param .u64 out,\n"
    "                         .param .u32 column, .param .u32 row) {\n"
    "  .shared .align 128 .b8 box[4096]; .shared .align 8 .b64 full;\n"
    "  .reg .pred %p<3>; .reg .u32 %r<9>; .reg .u64 %rd<7>;\n"
    "  mov.u32 %r0, %tid.x; mov.u32 %r1, box; mov.u32 %r2, full;\n"
    "  setp.ne.u32 %p0, %r0, 0;\n"
    "  @%p0 bra initialized;\n"
    "  mbarrier.init.shared.b64 [%r2], 1;\n"
    "  fence.mbarrier_init.release.cluster;\n"
    "  fence.proxy.async;\n"
    "initialized:\n"
    "  bar.sync 0;\n"
    "  @%p0 bra issued;\n"
    "  mbarrier.arrive.expect_tx.shared.b64 %rd0, [%r2], 4096;\n"
    "  mov.b64 %rd1, map; cvta.param.u64 %rd2, %rd1;\n"
    "  ld.param.u32 %r3, [column]; ld.param.u32 %r4, [row];\n"
    "  cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx"
    "::bytes [%r1], [%rd2, {%r3, %r4}], [%r2];\n"
    "issued:\n"
    "  mbarrier.try_wait.parity.shared.b64 %p1, [%r2], 0;\n"
    "  @!%p1 bra issued;\n"
    "  ld.param.u64 %rd3, [out]; cvta.to.global.u64 %rd4, %rd3;\n"
    "copy:\n"
    "  add.u32 %r5, %r1, %r0; ld.shared.u8 %r6, [%r5];\n"
    "  cvt.u64.u32 %rd5, %r0; add.u64 %rd6, %rd4, %rd5;\n"
    "  st.global.u8 [%rd6], %r6;\n"
    "  mov.u32 %r7, %ntid.x; add.u32 %r0, %r0, %r7;\n"
    "  setp.lt.u32 %p2, %r0, 4096;\n"
    "  @%p2 bra copy;\n"
    "  ret;\n"
    "}\n"
    ".visible .entry store(.param .u64 address) {\n"
    "  .reg .u64 %rd<2>; .reg .u32 %r0;\n"
    "  ld.param.u64 %rd0, [address]; mov.u32 %r0, 0;\n"
    "  cvta.to.global.u64 %rd1, %rd0; st.global.u32 [%rd1], %r0;\n"
    "  ret;\n"
    "}\n";

#endif // FP8_TEST_INTEGRATION_CUDA_RUNTIME_KERNELS_H
