// RUN: fp8-opt %s --fp8-apply-recipe=recipe=current | FileCheck %s
// RUN: fp8-opt %s --fp8-pipeline="recipe=current to=fusion" --fp8-remarks=text:- -o /dev/null | FileCheck %s --check-prefix=REMARK

// Codes that the program has are multiplied as they are, and said to be.
// CHECK-LABEL: func.func @given
// CHECK-NOT: fp8.quantize
// CHECK: linalg.contract {{.*}} {fp8.name = "given", fp8.role = #fp8.role<fprop>}
// REMARK: given: fp8; role fprop, shape M=16 N=8 K=64, recipe given, a f8E4M3FN[1x32]f8E8M0FNU, b f8E4M3FN[1x32]f8E8M0FNU
!a = !fp8.scaled<16x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
!b = !fp8.scaled<8x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
func.func @given(%a: !a, %b: !b, %c: tensor<16x8xf32>) -> tensor<16x8xf32> {
  %0 = fp8.dequantize %a : !a -> tensor<16x64xf32>
  %1 = fp8.dequantize %b : !b -> tensor<8x64xf32>
  %2 = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      {fp8.name = "given", fp8.role = #fp8.role<fprop>}
      ins(%0, %1 : tensor<16x64xf32>, tensor<8x64xf32>) outs(%c : tensor<16x8xf32>) -> tensor<16x8xf32>
  return %2 : tensor<16x8xf32>
}
