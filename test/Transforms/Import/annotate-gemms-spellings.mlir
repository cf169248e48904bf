// RUN: fp8-opt %s --fp8-annotate-gemms | FileCheck %s

// Whatever multiplies and adds gets a name.
// CHECK-LABEL: func.func @named
func.func @named(%x: tensor<8xf16>, %m: tensor<4x8xf16>, %t: tensor<8x4xf16>, %bm: tensor<2x4x8xf16>,
                 %bt: tensor<2x8x4xf16>, %bx: tensor<2x8xf16>, %y: tensor<4xf32>, %by: tensor<2x4xf16>,
                 %s: tensor<f16>, %c: tensor<4x4xf16>, %bc: tensor<2x4x4xf16>) {
  // CHECK: linalg.matvec {fp8.name = "named.matvec_0"
  %0 = linalg.matvec ins(%m, %x : tensor<4x8xf16>, tensor<8xf16>) outs(%y : tensor<4xf32>) -> tensor<4xf32>
  // CHECK: linalg.vecmat {fp8.name = "named.vecmat_1"
  %1 = linalg.vecmat ins(%x, %t : tensor<8xf16>, tensor<8x4xf16>) outs(%y : tensor<4xf32>) -> tensor<4xf32>
  // CHECK: linalg.dot {fp8.name = "named.dot_2"
  %2 = linalg.dot ins(%x, %x : tensor<8xf16>, tensor<8xf16>) outs(%s : tensor<f16>) -> tensor<f16>
  // CHECK: linalg.batch_matvec {fp8.name = "named.batch_matvec_3"
  %3 = linalg.batch_matvec ins(%bm, %bx : tensor<2x4x8xf16>, tensor<2x8xf16>) outs(%by : tensor<2x4xf16>) -> tensor<2x4xf16>
  // CHECK: linalg.batch_matmul {fp8.name = "named.batch_matmul_4"
  %4 = linalg.batch_matmul ins(%bm, %bt : tensor<2x4x8xf16>, tensor<2x8x4xf16>) outs(%bc : tensor<2x4x4xf16>) -> tensor<2x4x4xf16>
  // CHECK: linalg.batch_reduce_matmul {fp8.name = "named.batch_reduce_matmul_5"
  %5 = linalg.batch_reduce_matmul ins(%bm, %bt : tensor<2x4x8xf16>, tensor<2x8x4xf16>) outs(%c : tensor<4x4xf16>) -> tensor<4x4xf16>
  // CHECK: linalg.contract {{.*}} {fp8.name = "named.contract_6"
  %6 = linalg.contract indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%m, %m : tensor<4x8xf16>, tensor<4x8xf16>) outs(%c : tensor<4x4xf16>) -> tensor<4x4xf16>
  return
}

// CHECK-LABEL: func.func @packed
func.func @packed(%a: tensor<2x3x4x8xf32>, %b: tensor<5x3x4x8xf32>, %c: tensor<2x5x4x4xf32>) -> tensor<2x5x4x4xf32> {
  // CHECK: linalg.mmt4d {fp8.name = "packed.mmt4d_0"
  %0 = linalg.mmt4d ins(%a, %b : tensor<2x3x4x8xf32>, tensor<5x3x4x8xf32>) outs(%c : tensor<2x5x4x4xf32>) -> tensor<2x5x4x4xf32>
  return %0 : tensor<2x5x4x4xf32>
}

// Operands and sum in any order, through casts.
// CHECK-LABEL: func.func @generic
// CHECK: attrs = {{.*}}fp8.name = "generic.generic_0"
func.func @generic(%x: tensor<4x8xbf16>, %w: tensor<4x8xf16>, %c: tensor<4x4xbf16>) -> tensor<4x4xbf16> {
  %0 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x8xbf16>, tensor<4x8xf16>) outs(%c : tensor<4x4xbf16>) {
  ^bb0(%a: bf16, %b: f16, %sum: bf16):
    %wide = arith.extf %a : bf16 to f32
    %other = arith.extf %b : f16 to f32
    %product = arith.mulf %other, %wide : f32
    %acc = arith.extf %sum : bf16 to f32
    %next = arith.addf %product, %acc : f32
    %narrow = arith.truncf %next : f32 to bf16
    linalg.yield %narrow : bf16
  } -> tensor<4x4xbf16>
  return %0 : tensor<4x4xbf16>
}

// CHECK-LABEL: func.func @integers
// CHECK: linalg.matmul {fp8.name = "integers.matmul_0"
func.func @integers(%x: tensor<4x8xi8>, %w: tensor<8x4xi8>, %c: tensor<4x4xi32>) -> tensor<4x4xi32> {
  %0 = linalg.matmul ins(%x, %w : tensor<4x8xi8>, tensor<8x4xi8>) outs(%c : tensor<4x4xi32>) -> tensor<4x4xi32>
  return %0 : tensor<4x4xi32>
}

// Another computation in the loop of a contraction.
// Zero points are subtracted on the way.
// CHECK-LABEL: func.func @zero_points
// CHECK: linalg.quantized_matmul {fp8.name = "zero_points.quantized_matmul_0", fp8.role = #fp8.role<fprop>}
func.func @zero_points(%x: tensor<4x8xi8>, %w: tensor<8x4xi8>, %zx: i32, %zw: i32, %c: tensor<4x4xi32>) -> tensor<4x4xi32> {
  %0 = linalg.quantized_matmul ins(%x, %w, %zx, %zw : tensor<4x8xi8>, tensor<8x4xi8>, i32, i32) outs(%c : tensor<4x4xi32>) -> tensor<4x4xi32>
  return %0 : tensor<4x4xi32>
}

// Windows of an image too.
// CHECK-LABEL: func.func @convolved_zero_points
// CHECK: linalg.conv_2d_nhwc_hwcf_q {{.*}}fp8.name
func.func @convolved_zero_points(%x: tensor<1x4x4x2xi8>, %w: tensor<3x3x2x8xi8>, %zx: i32, %zw: i32, %c: tensor<1x2x2x8xi32>) -> tensor<1x2x2x8xi32> {
  %0 = linalg.conv_2d_nhwc_hwcf_q ins(%x, %w, %zx, %zw : tensor<1x4x4x2xi8>, tensor<3x3x2x8xi8>, i32, i32) outs(%c : tensor<1x2x2x8xi32>) -> tensor<1x2x2x8xi32>
  return %0 : tensor<1x2x2x8xi32>
}

// A sum of products of three tensors over their rows multiplies no matrices.
// CHECK-LABEL: func.func @sum_of_rows
// CHECK-NOT: fp8.name
func.func @sum_of_rows(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %g: tensor<8xf32>, %c: tensor<4xf32>) -> tensor<4xf32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (k)>, affine_map<(m, k) -> (m)>],
                       iterator_types = ["parallel", "reduction"]}
      ins(%x, %y, %g : tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>) outs(%c : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %f: f32, %o: f32):
    %1 = arith.mulf %a, %b : f32
    %2 = arith.mulf %1, %f : f32
    %3 = arith.addf %o, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// A matrix of what is computed of an operand, within the contraction.
// CHECK-LABEL: func.func @computed
// CHECK: fp8.name = "computed.generic_0"
func.func @computed(%x: tensor<4x8xf32>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %x : tensor<4x8xf32>, tensor<4x8xf32>) outs(%c : tensor<4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %e = math.exp %a : f32
    %product = arith.mulf %e, %b : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @not_a_contraction
// CHECK-NOT: fp8.name
func.func @not_a_contraction(%x: tensor<4x8xf32>, %c: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = linalg.generic {indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %x : tensor<4x8xf32>, tensor<4x8xf32>) outs(%c : tensor<4x4xf32>) {
  ^bb0(%a: f32, %b: f32, %sum: f32):
    %d = arith.subf %a, %b : f32
    %product = arith.mulf %d, %d : f32
    %next = arith.addf %sum, %product : f32
    linalg.yield %next : f32
  } -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// CHECK-LABEL: func.func @tosa
func.func @tosa(%a: tensor<2x4x8xf32>, %b: tensor<2x8x?xf32>) -> tensor<2x4x?xf32> {
  // CHECK: %[[ZERO:.*]] = linalg.fill
  // CHECK: linalg.batch_matmul {fp8.name = "tosa.batch_matmul_0", {{.*}}} {{.*}} outs(%[[ZERO]]
  %z = "tosa.const"() <{values = dense<0.0> : tensor<1xf32>}> : () -> tensor<1xf32>
  %0 = tosa.matmul %a, %b, %z, %z : (tensor<2x4x8xf32>, tensor<2x8x?xf32>, tensor<1xf32>, tensor<1xf32>) -> tensor<2x4x?xf32>
  return %0 : tensor<2x4x?xf32>
}
