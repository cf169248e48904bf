// RUN: %python %S/Inputs/check.py %s --recipe=none --max-error=1e-5
// RUN: %python %S/Inputs/check.py %s --recipe=current --max-error=0.06

// TOSA as IREE's TFLite importer hands it over: a batch matmul with zero points,
// a broadcast bias, a clamp, and names on the arguments.

module {
  func.func @main(%arg0: tensor<1x8x32xf32> {iree.identifier = "input"}, %arg1: tensor<1x32x16xf32>, %arg2: tensor<1x1x16xf32>) -> (tensor<1x8x16xf32> {iree.identifier = "output"}) {
    %zp = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
    %0 = tosa.matmul %arg0, %arg1, %zp, %zp : (tensor<1x8x32xf32>, tensor<1x32x16xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x8x16xf32>
    %1 = tosa.add %0, %arg2 : (tensor<1x8x16xf32>, tensor<1x1x16xf32>) -> tensor<1x8x16xf32>
    %2 = tosa.clamp %1 {min_val = 0.0 : f32, max_val = 6.0 : f32} : (tensor<1x8x16xf32>) -> tensor<1x8x16xf32>
    return %2 : tensor<1x8x16xf32>
  }
}
