// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-split-fusions --fp8-select-kernels %s 2>%t | FileCheck %s
// RUN: not grep "no kernel" %t
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
!x = tensor<4096x8192xf32>
!q = !fp8.scaled<4096x8192xf8E4M3FN, block = [1, 128], scale = f32>
!c = !fp8.scaled<4096x8192xf8E4M3FN, block = [128, 1], scale = f32>
!ct = !fp8.scaled<8192x4096xf8E4M3FN, block = [1, 128], scale = f32>

// What is computed of a row's sum alone (form-fusions.mlir, @root_mean_square), and
// saved for the backward: the first pass has it, or the second reads it.

// CHECK-LABEL: func.func @norm
// CHECK-COUNT-2: {fp8_gpu.config = #fp8_fusion.config<
func.func @norm(%x: !x) -> (tensor<4096xf32>, tensor<4096x8192xf8E4M3FN>, tensor<8192x4096xf8E4M3FN>) {
  %0:3 = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4096xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4096xf32>) -> tensor<4096xf32>
    %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%a : !x) outs(%z : tensor<4096xf32>) {
    ^bb0(%v: f32, %o: f32):
      %1 = arith.mulf %v, %v : f32
      %2 = arith.addf %o, %1 : f32
      linalg.yield %2 : f32
    } -> tensor<4096xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%sum : tensor<4096xf32>) outs(%e : tensor<4096xf32>) {
    ^bb0(%v: f32, %o: f32):
      %1 = math.rsqrt %v : f32
      linalg.yield %1 : f32
    } -> tensor<4096xf32>
    %f = tensor.empty() : !x
    %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %r : !x, tensor<4096xf32>) outs(%f : !x) {
    ^bb0(%v: f32, %s: f32, %o: f32):
      %1 = arith.mulf %v, %s : f32
      linalg.yield %1 : f32
    } -> !x
    %m = fp8.amax %y block = [1, 128] : !x
    %s, %si = fp8.compute_scale %m format = f8E4M3FN scale_type = f32 : tensor<4096x64xf32>
    %q = fp8.quantize %y scale(%s, %si : tensor<4096x64xf32>, tensor<4096x64xf32>) : !x -> !q
    %cm = fp8.amax %y block = [128, 1] : !x
    %cs, %csi = fp8.compute_scale %cm format = f8E4M3FN scale_type = f32 : tensor<32x8192xf32>
    %cq = fp8.quantize %y scale(%cs, %csi : tensor<32x8192xf32>, tensor<32x8192xf32>) : !x -> !c
    %t = fp8.transpose %cq permutation = [1, 0] : !c
    %co, %cf = fp8.disassemble %q : !q
    %d, %df = fp8.disassemble %t : !ct
    fp8.yield %r, %co, %d : tensor<4096xf32>, tensor<4096x8192xf8E4M3FN>, tensor<8192x4096xf8E4M3FN>
  } : (!x) -> (tensor<4096xf32>, tensor<4096x8192xf8E4M3FN>, tensor<8192x4096xf8E4M3FN>)
  return %0#0, %0#1, %0#2 : tensor<4096xf32>, tensor<4096x8192xf8E4M3FN>, tensor<8192x4096xf8E4M3FN>
}
