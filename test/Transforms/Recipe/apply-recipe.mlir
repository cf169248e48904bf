// RUN: fp8-opt %s --fp8-apply-recipe --split-input-file | FileCheck %s --check-prefixes=CHECK,DEFAULT
// RUN: fp8-opt %s --fp8-apply-recipe=recipe=rowwise --split-input-file | FileCheck %s --check-prefixes=CHECK,OPTION

// The innermost attribute wins, then the pass option.

!t = tensor<32x64xf32>

// CHECK-LABEL: func.func @pass_option
func.func @pass_option(%x: !t, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
  // DEFAULT: linalg.contract
  // DEFAULT-NOT: fp8.
  // OPTION: fp8.quantize %{{.*}} recipe(#fp8.rowwise)
  // OPTION: return
  %0 = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %x : !t, !t) outs(%c : tensor<32x32xf32>) -> tensor<32x32xf32>
  return %0 : tensor<32x32xf32>
}

// -----

// CHECK-LABEL: module attributes
module attributes {fp8.recipe = #fp8.mxfp8} {
  // CHECK-LABEL: func.func @module_attribute
  func.func @module_attribute(%x: tensor<32x64xf32>, %c: tensor<32x32xf32>) -> tensor<32x32xf32> {
    // CHECK: fp8.quantize %{{.*}} recipe(#fp8.mxfp8)
    %0 = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
        ins(%x, %x : tensor<32x64xf32>, tensor<32x64xf32>) outs(%c : tensor<32x32xf32>) -> tensor<32x32xf32>
    return %0 : tensor<32x32xf32>
  }

  // CHECK-LABEL: func.func @function_attribute
  func.func @function_attribute(%x: tensor<32x64xf32>, %c: tensor<32x32xf32>) -> (tensor<32x32xf32>, tensor<32x32xf32>) attributes {fp8.recipe = #fp8.nvfp4} {
    // CHECK: fp8.quantize %{{.*}} recipe(#fp8.nvfp4)
    %0 = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
        ins(%x, %x : tensor<32x64xf32>, tensor<32x64xf32>) outs(%c : tensor<32x32xf32>) -> tensor<32x32xf32>
    // CHECK: return
    return %0, %0 : tensor<32x32xf32>, tensor<32x32xf32>
  }

  // CHECK-LABEL: func.func @op_attribute
  func.func @op_attribute(%x: tensor<32x64xf32>, %c: tensor<32x32xf32>) -> (tensor<32x32xf32>, tensor<32x32xf32>) attributes {fp8.recipe = #fp8.nvfp4} {
    // CHECK: fp8.quantize %{{.*}} recipe(#fp8.current<pow2 = true>)
    %0 = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
        {fp8.recipe = #fp8.current<pow2 = true>}
        ins(%x, %x : tensor<32x64xf32>, tensor<32x64xf32>) outs(%c : tensor<32x32xf32>) -> tensor<32x32xf32>
    // CHECK: linalg.contract {{.*}} #fp8.current<pow2 = true>
    // CHECK: linalg.contract {{.*}} {fp8.recipe = #fp8.none} ins(%arg0, %arg0
    %1 = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
        {fp8.recipe = #fp8.none}
        ins(%x, %x : tensor<32x64xf32>, tensor<32x64xf32>) outs(%c : tensor<32x32xf32>) -> tensor<32x32xf32>
    return %0, %1 : tensor<32x32xf32>, tensor<32x32xf32>
  }
}
