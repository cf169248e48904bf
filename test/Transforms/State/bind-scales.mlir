// RUN: rm -rf %t && split-file %s %t
// RUN: %python %S/Inputs/make_state.py %t/state.safetensors l0.x:e4m3:4.0 l0.w:e4m3:0.5 layers.0.call.q:e4m3:8.0 layers.1.call.q:e4m3:16.0 unused:e5m2:1.0
// RUN: cd %t && fp8-opt linear.mlir --fp8-pipeline="recipe=static,state=state.safetensors to=scaling" | FileCheck %t/linear.mlir
// RUN: cd %t && fp8-opt loop.mlir --fp8-pipeline="recipe=none to=scaling" | FileCheck %t/loop.mlir

//--- linear.mlir
// Scales are constants, and no state is left.
// CHECK-NOT: fp8.state
// CHECK-LABEL: func.func @linear(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<32x64xbf16>, %[[W:[a-z0-9]+]]: tensor<64x16xbf16>) ->
// CHECK-DAG: %[[SX:.*]] = arith.constant dense<4.000000e+00> : tensor<1x1xf32>
// CHECK-DAG: %[[IX:.*]] = arith.constant dense<2.500000e-01> : tensor<1x1xf32>
// CHECK-DAG: fp8.quantize %[[X]] scale(%[[SX]], %[[IX]] :
// CHECK-DAG: %[[SW:.*]] = arith.constant dense<5.000000e-01> : tensor<1x1xf32>
// CHECK-DAG: %[[IW:.*]] = arith.constant dense<2.000000e+00> : tensor<1x1xf32>
// CHECK-DAG: fp8.quantize %[[W]] scale(%[[SW]], %[[IW]] :
// CHECK-NOT: fp8.amax
func.func @linear(%x: tensor<32x64xbf16>, %w: tensor<64x16xbf16>) -> tensor<32x16xf32> {
  %zero = arith.constant dense<0.0> : tensor<32x16xf32>
  %y = linalg.matmul {fp8.name = "l0"} ins(%x, %w : tensor<32x64xbf16>, tensor<64x16xbf16>) outs(%zero : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %y : tensor<32x16xf32>
}

//--- loop.mlir
// Where the slot follows from the iteration the scale is an element.
// CHECK: func.func private @quantize(%{{[a-z0-9]+}}: tensor<8x16xbf16>, %[[SLOT:[a-z0-9]+]]: index)
// CHECK: %[[ROW:.*]] = arith.constant dense<[8.000000e+00, 1.600000e+01]> : tensor<2xf32>
// CHECK: tensor.extract %[[ROW]][%{{.*}}]
// CHECK: %[[INVERSE:.*]] = arith.constant dense<[1.250000e-01, 6.250000e-02]> : tensor<2xf32>
// CHECK: func.func @loop(%{{[a-z0-9]+}}: tensor<8x16xbf16>)
// CHECK: call @quantize(%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}) {{.*}}: (tensor<8x16xbf16>, index) -> ()
!q = !fp8.scaled<8x16xf8E4M3FN, block = [*, *], scale = f32>
func.func private @use(!q)
func.func private @quantize(%x: tensor<8x16xbf16>) {
  %0 = fp8.quantize %x recipe(#fp8.static<state = "state.safetensors">) {fp8.name = "q"} : tensor<8x16xbf16> -> !q
  call @use(%0) : (!q) -> ()
  return
}
func.func @loop(%x: tensor<8x16xbf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.for %i = %c0 to %c2 step %c1 {
    func.call @quantize(%x) {fp8.name = "call"} : (tensor<8x16xbf16>) -> ()
  } {fp8.slots = "separate", fp8.name = "layers"}
  return
}
