// RUN: fp8-opt %s --convert-fp8-to-linalg | FileCheck %s

// Ten rounds of Philox for an element, by its place in the tensor: row and column of a tensor of rank 3.
// CHECK-LABEL: func.func @stochastic(
// CHECK-SAME: %[[X:.*]]: tensor<2x3x32xf32>, %{{.*}}: tensor<2x3x2xf32>, %{{.*}}: tensor<2x3x2xf8E4M3FN>, %{{.*}}: tensor<1x1x1xf32>, %[[SEED:.*]]: tensor<4xi32>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}}, %[[SEED]], %[[SEED]], %[[SEED]], %[[SEED]] :
// CHECK-NEXT: ^bb0(%{{.*}}: f32, %{{.*}}: f32, %[[K0:[a-z0-9_]+]]: i32, %[[K1:[a-z0-9_]+]]: i32, %[[C2:[a-z0-9_]+]]: i32, %[[C3:[a-z0-9_]+]]: i32, %{{.*}}: i8):
// CHECK-DAG: %[[BATCH:.*]] = linalg.index 0
// CHECK-DAG: %[[ROW:.*]] = linalg.index 1
// CHECK-DAG: %[[GRID:.*]] = linalg.index 2
// CHECK-DAG: %[[WITHIN:.*]] = linalg.index 3
// CHECK-COUNT-20: arith.mului_extended
// CHECK-NOT: arith.mului_extended
// CHECK: arith.uitofp
// CHECK: arith.truncf %{{.*}} : f32 to f4E2M1FN
func.func @stochastic(%x: tensor<2x3x32xf32>, %s: tensor<2x3x2xf32>, %si: tensor<2x3x2xf8E4M3FN>, %t: tensor<1x1x1xf32>,
                      %seed: tensor<4xi32>) -> !fp8.scaled<2x3x32xf4E2M1FN, block = [1, 1, 16], scale = f8E4M3FN, tensor_scale = f32> {
  %q = fp8.quantize %x scale(%s, %si : tensor<2x3x2xf32>, tensor<2x3x2xf8E4M3FN>) tensor_scale_inv(%t : tensor<1x1x1xf32>)
      seed(%seed : tensor<4xi32>) : tensor<2x3x32xf32> -> !fp8.scaled<2x3x32xf4E2M1FN, block = [1, 1, 16], scale = f8E4M3FN, tensor_scale = f32>
  return %q : !fp8.scaled<2x3x32xf4E2M1FN, block = [1, 1, 16], scale = f8E4M3FN, tensor_scale = f32>
}

// The slot's words, and its index in the last.
// CHECK-LABEL: func.func @read_seed(
// CHECK-SAME: %[[STATE:.*]]: !llvm.ptr, %[[SLOT:.*]]: index)
// CHECK: %[[FIRST:.*]] = arith.muli %[[SLOT]], %c4
// CHECK: llvm.getelementptr %[[STATE]][0, 10]
// CHECK: %[[INDEX:.*]] = arith.index_cast %[[FIRST]] : index to i64
// CHECK: llvm.getelementptr %{{.*}}[%[[INDEX]]] : (!llvm.ptr, i64) -> !llvm.ptr, i32
// CHECK: %[[WORDS:.*]] = bufferization.to_tensor %{{.*}} restrict : memref<4xi32> to tensor<4xi32>
// CHECK: %[[NUMBER:.*]] = arith.index_cast %[[SLOT]] : index to i32
// CHECK: linalg.generic {{.*}} ins(%[[WORDS]] : tensor<4xi32>)
// CHECK: %[[SUM:.*]] = arith.addi %{{.*}}, %[[NUMBER]]
// CHECK: arith.select %{{.*}}, %[[SUM]]
func.func @read_seed(%state: !fp8.state, %slot: index) -> tensor<4xi32> {
  %seed = fp8.read_seed %state[%slot] : tensor<4xi32>
  return %seed : tensor<4xi32>
}

// 15 additions for each element, one rounding.
// CHECK-LABEL: func.func @hadamard(
// CHECK: %[[BLOCKS:.*]] = tensor.expand_shape %{{.*}} {{.*}} : tensor<4x32xbf16> into tensor<4x2x16xbf16>
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "parallel", "parallel"]} ins(%[[BLOCKS]], %[[BLOCKS]], %[[BLOCKS]], %[[BLOCKS]], %[[BLOCKS]], %[[BLOCKS]], %[[BLOCKS]], %[[BLOCKS]], %[[BLOCKS]], %[[BLOCKS]], %[[BLOCKS]], %[[BLOCKS]], %[[BLOCKS]], %[[BLOCKS]], %[[BLOCKS]], %[[BLOCKS]] :
// CHECK-COUNT-2: arith.negf
// CHECK-NOT: arith.negf
// CHECK-COUNT-15: arith.addf
// CHECK-NOT: arith.addf
// CHECK: arith.mulf
// CHECK-NEXT: arith.truncf %{{.*}} : f32 to bf16
func.func @hadamard(%x: tensor<4x32xbf16>) -> tensor<4x32xbf16> {
  %y = fp8.hadamard %x signs = 3 : tensor<4x32xbf16>
  return %y : tensor<4x32xbf16>
}
