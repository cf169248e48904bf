// RUN: %python %S/Inputs/check.py %s --recipe=none --max-error=1e-5
// RUN: %python %S/Inputs/check.py %s --recipe=current --max-error=0.06

// A layer that a loop of TOSA applies three times, and one that a branch skips where the input's largest value is small.

module {
  func.func @main(%x: tensor<1x8x32xf32>, %w: tensor<1x32x32xf32>) -> tensor<1x8x32xf32> {
    %zp = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
    %zero = "tosa.const"() <{values = dense<0> : tensor<i32>}> : () -> tensor<i32>
    %looped:2 = tosa.while_loop (%i = %zero, %value = %x) : (tensor<i32>, tensor<1x8x32xf32>) -> (tensor<i32>, tensor<1x8x32xf32>) {
      %three = "tosa.const"() <{values = dense<3> : tensor<i32>}> : () -> tensor<i32>
      %more = tosa.greater %three, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
      tosa.yield %more : tensor<i1>
    } do {
    ^bb0(%i: tensor<i32>, %value: tensor<1x8x32xf32>):
      %one = "tosa.const"() <{values = dense<1> : tensor<i32>}> : () -> tensor<i32>
      %next = tosa.add %i, %one : (tensor<i32>, tensor<i32>) -> tensor<i32>
      %product = tosa.matmul %value, %w, %zp, %zp : (tensor<1x8x32xf32>, tensor<1x32x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x8x32xf32>
      %new = tosa.tanh %product : (tensor<1x8x32xf32>) -> tensor<1x8x32xf32>
      tosa.yield %next, %new : tensor<i32>, tensor<1x8x32xf32>
    }
    %bound = "tosa.const"() <{values = dense<1.0e-3> : tensor<1x1x1xf32>}> : () -> tensor<1x1x1xf32>
    %rows = tosa.reduce_max %x {axis = 1 : i32} : (tensor<1x8x32xf32>) -> tensor<1x1x32xf32>
    %largest = tosa.reduce_max %rows {axis = 2 : i32} : (tensor<1x1x32xf32>) -> tensor<1x1x1xf32>
    %is_large = tosa.greater %largest, %bound : (tensor<1x1x1xf32>, tensor<1x1x1xf32>) -> tensor<1x1x1xi1>
    %shape = tosa.const_shape {values = dense<> : tensor<0xindex>} : () -> !tosa.shape<0>
    %condition = tosa.reshape %is_large, %shape : (tensor<1x1x1xi1>, !tosa.shape<0>) -> tensor<i1>
    %branched = tosa.cond_if %condition (%value = %x) : tensor<i1> (tensor<1x8x32xf32>) -> tensor<1x8x32xf32> {
    ^bb0(%value: tensor<1x8x32xf32>):
      %product = tosa.matmul %value, %w, %zp, %zp : (tensor<1x8x32xf32>, tensor<1x32x32xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<1x8x32xf32>
      tosa.yield %product : tensor<1x8x32xf32>
    } else {
    ^bb0(%value: tensor<1x8x32xf32>):
      tosa.yield %value : tensor<1x8x32xf32>
    }
    %sum = tosa.add %looped#1, %branched : (tensor<1x8x32xf32>, tensor<1x8x32xf32>) -> tensor<1x8x32xf32>
    return %sum : tensor<1x8x32xf32>
  }
}
