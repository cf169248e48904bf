// RUN: fp8-opt %s --fp8-pipeline="recipe=none target=sm_90a to=host" -o /dev/null
// RUN: fp8-opt %s --fp8-form-fusions --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-build-kernels -o /dev/null
// RUN: fp8-opt %s --fp8-pipeline="recipe=none target=sm_90a to=buffers" | FileCheck %s --check-prefix=EMPTY

#id = affine_map<(i, j) -> (i, j)>

// A tensor of one value is an operand like others.

func.func @filled(%x: tensor<32x64xf32>) -> tensor<32x64xf32> {
  %two = arith.constant 2.0 : f32
  %e = tensor.empty() : tensor<32x64xf32>
  %z = linalg.fill ins(%two : f32) outs(%e : tensor<32x64xf32>) -> tensor<32x64xf32>
  %0 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %z : tensor<32x64xf32>, tensor<32x64xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %1 = arith.addf %a, %b : f32
    linalg.yield %1 : f32
  } -> tensor<32x64xf32>
  return %0 : tensor<32x64xf32>
}

// Rows without columns have results, which a kernel without blocks would not
// write.

// EMPTY-LABEL: func.func @rows_of_nothing
// EMPTY-NOT:   fp8_gpu.launch @
// EMPTY:       return
func.func @rows_of_nothing(%x: tensor<64x0xf32>) -> tensor<64x1xf32> {
  %0 = fp8.amax %x block = [1, *] : tensor<64x0xf32>
  return %0 : tensor<64x1xf32>
}
