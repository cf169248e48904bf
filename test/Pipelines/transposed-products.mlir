// RUN: fp8-opt %s --fp8-pipeline="recipe=current target=sm_90a to=fusion" | FileCheck %s
// RUN: fp8-opt %s --fp8-pipeline="recipe=none target=sm_90a to=fusion" | FileCheck %s --check-prefix=PLAIN

// The gradient of a weight as JAX's conversion has it: a copy of dy in the other order, the product, and a copy of it in the
// other order. Codes are written in both orders by who quantizes, and the product has its operands exchanged.

#same = affine_map<(d0, d1) -> (d0, d1)>
#turned = affine_map<(d0, d1) -> (d1, d0)>

// CHECK-LABEL: func.func @wgrad
// CHECK: %[[RESULT:.*]] = fp8.matmul {{.*}}
// CHECK: } {fp8.name = "up.wgrad", {{.*}} -> tensor<128x256xbf16>
// CHECK-NEXT: return %[[RESULT]]

// PLAIN-LABEL: func.func @wgrad
// PLAIN-NEXT: %[[RESULT:.*]] = fp8.matmul %arg1, %arg0 transpose_a transpose_b
// PLAIN: } {fp8.name = "up.wgrad", {{.*}} -> tensor<128x256xbf16>
// PLAIN-NEXT: return %[[RESULT]]
func.func @wgrad(%dy: tensor<512x256xbf16> {fp8.name = "dy", fp8.grad}, %x: tensor<512x128xbf16> {fp8.name = "x"}) -> tensor<128x256xbf16> {
  %c0 = arith.constant 0.0 : bf16
  %e = tensor.empty() : tensor<256x512xbf16>
  %0 = linalg.generic {indexing_maps = [#turned, #same], iterator_types = ["parallel", "parallel"]}
      ins(%dy : tensor<512x256xbf16>) outs(%e : tensor<256x512xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    linalg.yield %in : bf16
  } -> tensor<256x512xbf16>
  %f = tensor.empty() : tensor<256x128xbf16>
  %zero = linalg.fill ins(%c0 : bf16) outs(%f : tensor<256x128xbf16>) -> tensor<256x128xbf16>
  %1 = linalg.matmul {fp8.name = "up.wgrad", fp8.role = #fp8.role<wgrad>} ins(%0, %x : tensor<256x512xbf16>, tensor<512x128xbf16>)
      outs(%zero : tensor<256x128xbf16>) -> tensor<256x128xbf16>
  %g = tensor.empty() : tensor<128x256xbf16>
  %2 = linalg.generic {indexing_maps = [#turned, #same], iterator_types = ["parallel", "parallel"]}
      ins(%1 : tensor<256x128xbf16>) outs(%g : tensor<128x256xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    linalg.yield %in : bf16
  } -> tensor<128x256xbf16>
  return %2 : tensor<128x256xbf16>
}
