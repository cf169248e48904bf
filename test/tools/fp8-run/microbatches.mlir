// RUN: %python %S/Inputs/tensors.py make %t.in x=F32:6x1x1:1,2,3,40,60,50 w=F32:6x1x1:2,1000,1000,4,1000,1000 first=BOOL:6:1,0,0,1,0,0
// RUN: fp8-run %s --recipe=delayed --max-padding=15 --steps=6 --microbatches=3 --inputs=%t.in --state-out=%t.state | FileCheck %s --check-prefix=RESULT
// RUN: fp8-state print %t.state | FileCheck %s
// RUN: not fp8-run %s --recipe=delayed --max-padding=15 --steps=4 --microbatches=3 --inputs=%t.in 2>&1 | FileCheck %s --check-prefix=MULTIPLE
// RUN: not fp8-run %s --recipe=delayed --max-padding=15 --steps=4 --microbatches=0 --inputs=%t.in 2>&1 | FileCheck %s --check-prefix=POSITIVE

// Two steps; what is beyond 3 and 2, the amaxes of the first, saturates in the
// second. The amax of the last is that of its three micro-batches, and of the
// weight the first one's: what the others pass is not looked at.
// RESULT: y: F32 [6, 1, 1] min 2 max 6 values 2 4 6 6
// CHECK: steps 2, slots 2
// CHECK: l0.x {{.*}} 60 {{ *}}2
// CHECK: l0.w {{.*}} 4 {{ *}}2
// MULTIPLE: fp8-run: error: expected --steps to be a multiple of --microbatches=3, but got 4
// POSITIVE: fp8-run: error: expected an integer of at least 1 after '--microbatches=', but got '0'

func.func @main(%x: tensor<1x1xf32> {fp8.name = "x"}, %w: tensor<1x1xf32> {fp8.name = "w", fp8.weight},
                %first: i1 {fp8.name = "first", fp8.first_microbatch}) -> (tensor<1x1xf32> {fp8.name = "y"}) {
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %y = linalg.matmul {fp8.name = "l0"} ins(%x, %w : tensor<1x1xf32>, tensor<1x1xf32>) outs(%zero : tensor<1x1xf32>) -> tensor<1x1xf32>
  return %y : tensor<1x1xf32>
}
