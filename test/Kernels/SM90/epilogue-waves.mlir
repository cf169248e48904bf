// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-build-kernels --canonicalize --cse --split-input-file %s | FileCheck %s
// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-build-kernels --split-input-file %s -o %t
// RUN: sed '/^\/\/ -----/,$d' %t | fp8-translate --kernels-to-ptx | FileCheck %s --check-prefix=PTX

// If the config says so, the code of an epilogue is there once for all subtiles of a
// tile, in a loop that no one unrolls: the sums of the second subtile take the place of the first
// one's.

!x = !fp8.scaled<?x4096xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
func.func @long(%a: !x, %b: !w) -> tensor<?x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast epilogue {
  ^bb0(%acc: f32):
    %1 = math.erf %acc : f32
    %2 = math.erf %1 : f32
    %3 = arith.truncf %2 : f32 to bf16
    fp8.yield %3 : bf16
  } {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 128, stages = 2, schedule = ping_pong, epilogue = looped>}
    : !x, !w -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}

// CHECK-DAG: #[[ROLLED:.*]] = #llvm.loop_unroll<disable = true>
// CHECK-DAG: #[[ANNOTATION:.*]] = #llvm.loop_annotation<unroll = #[[ROLLED]]>
// CHECK: wgmma.wait_group.sync.aligned 0
// CHECK: scf.for unsigned %[[WAVE:.*]] = %{{.*}} to %{{.*}} step %{{.*}} iter_args(%[[SUM:[a-z0-9]+]] = %{{.*}}) ->
// CHECK: %[[ROW:.*]] = arith.muli %[[WAVE]], %{{.*}} : i32
// CHECK: %[[M:.*]] = arith.addi %{{.*}}, %[[ROW]]
// CHECK: arith.mulf %[[SUM]],
// CHECK-COUNT-128: math.erf
// CHECK-NOT: math.erf
// Two slabs a subtile: each has its buffer.
// CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta %{{.*}}, %{{.*}}, box[%{{.*}}, %[[M]]]
// CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta %{{.*}}, %{{.*}}, box[%{{.*}}, %[[M]]]
// CHECK: scf.yield
// CHECK-NEXT: } {loop_annotation = #[[ANNOTATION]]}

// PTX: .pragma "nounroll";

// -----

// Otherwise it is there for each subtile.

!x = !fp8.scaled<?x4096xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
func.func @short(%a: !x, %b: !w) -> tensor<?x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast epilogue {
  ^bb0(%acc: f32):
    %zero = arith.constant 0.0 : f32
    %1 = arith.maximumf %acc, %zero : f32
    %2 = arith.truncf %1 : f32 to bf16
    fp8.yield %2 : bf16
  } {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 128, tile_n = 8, stages = 2, schedule = ping_pong>}
    : !x, !w -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}

// CHECK-NOT: loop_annotation
// CHECK-COUNT-8: arith.maximumf
// CHECK-NOT: loop_annotation
