// RUN: fp8-opt --fp8-build-kernels --canonicalize --cse %s -o %t
// RUN: FileCheck %s --input-file %t
// RUN: fp8-translate --kernels-to-ptx %t | FileCheck %s --check-prefix=PTX

// The code of an epilogue is there once for all waves of a tile, in a loop that
// no one unrolls: the sums of the second wave take the place of the first one's.

!x = !fp8.scaled<?x4096xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
func.func @two_waves(%a: !x, %b: !w) -> tensor<?x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast epilogue {
  ^bb0(%acc: f32):
    %zero = arith.constant 0.0 : f32
    %1 = arith.maximumf %acc, %zero : f32
    %2 = arith.truncf %1 : f32 to bf16
    fp8.yield %2 : bf16
  } {fp8.gemm_config = #fp8.gemm_config<tile_m = 128, tile_n = 8, stages = 2, schedule = ping_pong>}
    : !x, !w -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}

// CHECK: #[[ROLLED:.*]] = #llvm.loop_unroll<disable = true>
// CHECK: #[[ANNOTATION:.*]] = #llvm.loop_annotation<unroll = #[[ROLLED]]>
// CHECK: wgmma.wait_group.sync.aligned 0
// CHECK-COUNT-4: llvm.extractvalue
// CHECK: %[[S0:.*]] = llvm.extractvalue %[[SUMS:.*]][4]
// CHECK: %[[S3:.*]] = llvm.extractvalue %[[SUMS]][7]
// CHECK: scf.for unsigned %[[WAVE:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[SUM:.*]] = %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) ->
// CHECK: %[[ROW:.*]] = arith.muli %[[WAVE]], %{{.*}} : i32
// CHECK: %[[M:.*]] = arith.addi %{{.*}}, %[[ROW]]
// CHECK: arith.mulf %[[SUM]],
// CHECK-COUNT-4: arith.maximumf
// One slab a wave: its buffer is that of the wave's number.
// CHECK: %[[PARITY:.*]] = arith.remui %[[WAVE]],
// CHECK: arith.muli %[[PARITY]],
// CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta %{{.*}}, %{{.*}}, box[%{{.*}}, %[[M]]]
// CHECK: scf.yield %[[S0]], %{{.*}}, %{{.*}}, %[[S3]] :
// CHECK-NEXT: } {loop_annotation = #[[ANNOTATION]]}
// CHECK-NOT: arith.maximumf

// PTX: .pragma "nounroll";
// PTX-COUNT-4: max.NaN.f32
// PTX-NOT: max.NaN.f32
