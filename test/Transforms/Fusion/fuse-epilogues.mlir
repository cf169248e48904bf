// RUN: fp8-opt %s --fp8-fuse-epilogues --split-input-file | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>
#column = affine_map<(i, j) -> (i)>
#none = affine_map<(i, j) -> ()>
!a = !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
!b = !fp8.scaled<16x64xf8E4M3FN, block = [*, *], scale = f32>
!t = tensor<32x16xf32>

// Bias, then residual, then a cast: one epilogue, attributes kept.
// CHECK-LABEL: func.func @chain
// CHECK: fp8.matmul %{{.*}}, %{{.*}} accumulate = fast epilogue(%[[BIAS:.*]], %[[RESIDUAL:.*]] : tensor<16xbf16>, tensor<32x16xf32>) {
// CHECK-NEXT: ^bb0(%[[ACC:.*]]: f32, %[[B0:.*]]: bf16, %[[R0:.*]]: f32):
// CHECK-NEXT: %[[WIDE:.*]] = arith.extf %[[B0]]
// CHECK-NEXT: %[[S0:.*]] = arith.addf %[[ACC]], %[[WIDE]]
// CHECK-NEXT: %[[S1:.*]] = arith.addf %[[S0]], %[[R0]]
// CHECK-NEXT: %[[S2:.*]] = arith.truncf %[[S1]]
// CHECK-NEXT: fp8.yield %[[S2]] : bf16
// CHECK-NEXT: } {fp8.name = "fc"} : {{.*}} -> tensor<32x16xbf16>
// CHECK-NEXT: return
func.func @chain(%a: !a, %b: !b, %bias: tensor<16xbf16>, %residual: !t) -> tensor<32x16xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast {fp8.name = "fc"} : !a, !b -> !t
  %e = tensor.empty() : !t
  %1 = linalg.generic {indexing_maps = [#row, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%bias, %0 : tensor<16xbf16>, !t) outs(%e : !t) {
  ^bb0(%x: bf16, %y: f32, %o: f32):
    %w = arith.extf %x : bf16 to f32
    %z = arith.addf %y, %w : f32
    linalg.yield %z : f32
  } -> !t
  %f = tensor.empty() : tensor<32x16xbf16>
  %2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%1, %residual : !t, !t) outs(%f : tensor<32x16xbf16>) {
  ^bb0(%x: f32, %y: f32, %o: bf16):
    %z = arith.addf %x, %y : f32
    %n = arith.truncf %z : f32 to bf16
    linalg.yield %n : bf16
  } -> tensor<32x16xbf16>
  return %2 : tensor<32x16xbf16>
}

// What the matmul rounded stays rounded.
// CHECK-LABEL: func.func @rounded_between
// CHECK: ^bb0(%[[ACC:[^:]*]]: f32):
// CHECK-NEXT: %[[N:.*]] = arith.truncf %[[ACC]] : f32 to bf16
// CHECK-NEXT: arith.negf %[[N]] : bf16
func.func @rounded_between(%a: !a, %b: !b) -> tensor<32x16xbf16> {
  %0 = fp8.matmul %a, %b : !a, !b -> tensor<32x16xbf16>
  %e = tensor.empty() : tensor<32x16xbf16>
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<32x16xbf16>) outs(%e : tensor<32x16xbf16>) {
  ^bb0(%x: bf16, %o: bf16):
    %z = arith.negf %x : bf16
    linalg.yield %z : bf16
  } -> tensor<32x16xbf16>
  return %1 : tensor<32x16xbf16>
}

// A vector along the rows gets a unit dimension.
// CHECK-LABEL: func.func @column
// CHECK-SAME: %[[C:[^: ]*]]: tensor<32xf32>
// CHECK: %[[E:.*]] = tensor.expand_shape %[[C]] {{\[}}[0, 1]] output_shape [32, 1]
// CHECK: epilogue(%[[E]] : tensor<32x1xf32>)
func.func @column(%a: !a, %b: !b, %c: tensor<32xf32>) -> !t {
  %0 = fp8.matmul %a, %b : !a, !b -> !t
  %e = tensor.empty() : !t
  %1 = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0, %c : !t, tensor<32xf32>) outs(%e : !t) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %z = arith.mulf %x, %y : f32
    linalg.yield %z : f32
  } -> !t
  return %1 : !t
}

// CHECK-LABEL: func.func @scalars
// CHECK-SAME: %[[S:[^: ]*]]: f32, %[[T:[^: ]*]]: tensor<f32>
// CHECK: epilogue(%[[T]] : tensor<f32>)
// CHECK-NEXT: ^bb0(%[[ACC:.*]]: f32, %[[T0:.*]]: f32):
// CHECK-NEXT: %[[P:.*]] = arith.mulf %[[ACC]], %[[S]]
// CHECK-NEXT: arith.addf %[[P]], %[[T0]]
func.func @scalars(%a: !a, %b: !b, %s: f32, %t: tensor<f32>) -> !t {
  %0 = fp8.matmul %a, %b : !a, !b -> !t
  %e = tensor.empty() : !t
  %1 = linalg.generic {indexing_maps = [#id, #none, #none, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0, %s, %t : !t, f32, tensor<f32>) outs(%e : !t) {
  ^bb0(%x: f32, %y: f32, %w: f32, %o: f32):
    %z = arith.mulf %x, %y : f32
    %v = arith.addf %z, %w : f32
    linalg.yield %v : f32
  } -> !t
  return %1 : !t
}

// GELU-like: the result is read twice by one user.
// CHECK-LABEL: func.func @twice_in_one_user
// CHECK: fp8.matmul {{.*}} epilogue {
// CHECK-NEXT: ^bb0(%[[ACC:.*]]: f32):
// CHECK-NEXT: arith.mulf %[[ACC]], %[[ACC]]
func.func @twice_in_one_user(%a: !a, %b: !b) -> !t {
  %0 = fp8.matmul %a, %b : !a, !b -> !t
  %e = tensor.empty() : !t
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0, %0 : !t, !t) outs(%e : !t) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %z = arith.mulf %x, %y : f32
    linalg.yield %z : f32
  } -> !t
  return %1 : !t
}

// A product of two matmuls: one becomes an operand of the other's epilogue.
// CHECK-LABEL: func.func @gate
// CHECK: %[[FIRST:.*]] = fp8.matmul
// CHECK: fp8.matmul {{.*}} epilogue(%[[FIRST]] : tensor<32x16xf32>)
func.func @gate(%a: !a, %b: !b, %c: !b) -> !t {
  %0 = fp8.matmul %a, %b : !a, !b -> !t
  %1 = fp8.matmul %a, %c : !a, !b -> !t
  %e = tensor.empty() : !t
  %2 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0, %1 : !t, !t) outs(%e : !t) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %z = arith.mulf %x, %y : f32
    linalg.yield %z : f32
  } -> !t
  return %2 : !t
}

// A matmul in high precision keeps the layout of its operands.

// CHECK-LABEL: func.func @transposed
// CHECK: fp8.matmul %{{.*}}, %{{.*}} transpose_a accumulate = fast epilogue {
// CHECK: fp8.matmul %{{.*}}, %{{.*}} transpose_b accumulate = fast epilogue {
func.func @transposed(%a: tensor<64x32xbf16>, %b: tensor<16x64xbf16>, %c: tensor<32x64xbf16>, %d: tensor<64x16xbf16>) -> (!t, !t) {
  %0 = fp8.matmul %a, %b transpose_a accumulate = fast : tensor<64x32xbf16>, tensor<16x64xbf16> -> !t
  %e = tensor.empty() : !t
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0 : !t) outs(%e : !t) {
  ^bb0(%x: f32, %o: f32):
    %z = arith.negf %x : f32
    linalg.yield %z : f32
  } -> !t
  %2 = fp8.matmul %c, %d transpose_b accumulate = fast : tensor<32x64xbf16>, tensor<64x16xbf16> -> !t
  %f = tensor.empty() : !t
  %3 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%2 : !t) outs(%f : !t) {
  ^bb0(%x: f32, %o: f32):
    %z = arith.negf %x : f32
    linalg.yield %z : f32
  } -> !t
  return %1, %3 : !t, !t
}

// Rows of one batch, and single rows of batches, as they are read through reshapes.
// CHECK-LABEL: func.func @batches
// CHECK-DAG: %[[X:.*]] = tensor.collapse_shape %arg2 {{\[}}[0, 1], [2]] : tensor<1x32x16xf32> into tensor<32x16xf32>
// CHECK-DAG: %[[Y:.*]] = tensor.collapse_shape %arg3 {{\[}}[0, 1], [2]] : tensor<32x1x16xf32> into tensor<32x16xf32>
// CHECK: fp8.matmul {{.*}} epilogue(%[[X]], %[[Y]] : tensor<32x16xf32>, tensor<32x16xf32>)
// CHECK-NOT: linalg.generic
func.func @batches(%a: !a, %b: !b, %x: tensor<1x32x16xf32>, %y: tensor<32x1x16xf32>) -> tensor<32x16xf32> {
  %0 = fp8.matmul %a, %b : !a, !b -> tensor<32x16xf32>
  %e = tensor.empty() : tensor<32x16xf32>
  %1 = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (0, m, n)>, affine_map<(m, n) -> (m, 0, n)>, affine_map<(m, n) -> (m, n)>],
                       iterator_types = ["parallel", "parallel"]}
      ins(%0, %x, %y : tensor<32x16xf32>, tensor<1x32x16xf32>, tensor<32x1x16xf32>) outs(%e : tensor<32x16xf32>) {
  ^bb0(%p: f32, %q: f32, %r: f32, %o: f32):
    %2 = arith.addf %p, %q : f32
    %3 = arith.addf %2, %r : f32
    linalg.yield %3 : f32
  } -> tensor<32x16xf32>
  return %1 : tensor<32x16xf32>
}

// -----

#id = affine_map<(i, j) -> (i, j)>
!a = !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
!b = !fp8.scaled<16x64xf8E4M3FN, block = [*, *], scale = f32>
!t = tensor<32x16xf32>
!n = tensor<32x16xbf16>

// The function of an activation is for another product, its derivative for this one: both begin at %x, of 16 bits, and what they
// share is not kept for both.
// CHECK-LABEL: func.func @recomputes
// CHECK-SAME: (%[[A:.*]]: !fp8{{.*}}, %[[B:.*]]: !fp8{{.*}}, %[[X:.*]]: tensor<32x16xbf16>)
// CHECK: fp8.matmul %[[A]], %[[B]] epilogue(%[[X]] : tensor<32x16xbf16>) {
// CHECK-NEXT: ^bb0(%[[ACC:.*]]: f32, %[[X0:.*]]: bf16):
// CHECK-NEXT: %[[WIDE:.*]] = arith.extf %[[X0]]
// CHECK-NEXT: %[[SQUARE:.*]] = arith.mulf %[[WIDE]], %[[WIDE]]
// CHECK-NEXT: %[[TANH:.*]] = math.tanh %[[SQUARE]]
// CHECK-NEXT: %[[SUM:.*]] = arith.addf %[[TANH]], %[[SQUARE]]
// CHECK-NEXT: %[[RESULT:.*]] = arith.mulf %[[ACC]], %[[SUM]]
// CHECK-NEXT: fp8.yield %[[RESULT]] : f32
func.func @recomputes(%a: !a, %b: !b, %x: !n) -> (!t, !t) {
  %e = tensor.empty() : !t
  %square = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !n) outs(%e : !t) {
  ^bb0(%in: bf16, %o: f32):
    %w = arith.extf %in : bf16 to f32
    %s = arith.mulf %w, %w : f32
    linalg.yield %s : f32
  } -> !t
  %tanh = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%square : !t) outs(%e : !t) {
  ^bb0(%in: f32, %o: f32):
    %s = math.tanh %in : f32
    linalg.yield %s : f32
  } -> !t
  %function = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%square, %tanh : !t, !t) outs(%e : !t) {
  ^bb0(%in: f32, %in1: f32, %o: f32):
    %s = arith.mulf %in, %in1 : f32
    linalg.yield %s : f32
  } -> !t
  %0 = fp8.matmul %a, %b : !a, !b -> !t
  %1 = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0, %tanh, %square : !t, !t, !t) outs(%e : !t) {
  ^bb0(%acc: f32, %in: f32, %in1: f32, %o: f32):
    %s = arith.addf %in, %in1 : f32
    %r = arith.mulf %acc, %s : f32
    linalg.yield %r : f32
  } -> !t
  return %function, %1 : !t, !t
}

// -----

#id = affine_map<(i, j) -> (i, j)>
!a = !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
!b = !fp8.scaled<16x64xf8E4M3FN, block = [*, *], scale = f32>
!t = tensor<32x16xf32>
!n = tensor<32x16xbf16>

// 16 bits that come from 64 are read.
// CHECK-LABEL: func.func @reads_narrow
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<32x16xf32>, tensor<32x16xf32>)
// CHECK: fp8.matmul %{{.*}}, %{{.*}} epilogue(%[[SUM]] : tensor<32x16xbf16>) {
// CHECK: %[[TWICE:.*]] = arith.addf
// CHECK: math.tanh %[[TWICE]]
func.func @reads_narrow(%a: !a, %b: !b, %x: !t, %y: !t) -> (!t, !n, !t) {
  %e = tensor.empty() : !t
  %n = tensor.empty() : !n
  %sum = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : !t, !t) outs(%n : !n) {
  ^bb0(%in: f32, %in1: f32, %o: bf16):
    %s = arith.addf %in, %in1 : f32
    %r = arith.truncf %s : f32 to bf16
    linalg.yield %r : bf16
  } -> !n
  %twice = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%sum : !n) outs(%e : !t) {
  ^bb0(%in: bf16, %o: f32):
    %w = arith.extf %in : bf16 to f32
    %s = arith.addf %w, %w : f32
    linalg.yield %s : f32
  } -> !t
  %0 = fp8.matmul %a, %b : !a, !b -> !t
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0, %twice : !t, !t) outs(%e : !t) {
  ^bb0(%acc: f32, %in: f32, %o: f32):
    %s = math.tanh %in : f32
    %r = arith.mulf %acc, %s : f32
    linalg.yield %r : f32
  } -> !t
  return %1, %sum, %twice : !t, !n, !t
}

// -----

#id = affine_map<(i, j) -> (i, j)>
!a = !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
!b = !fp8.scaled<16x64xf8E4M3FN, block = [*, *], scale = f32>
!t = tensor<32x16xf32>

// A product whose result two others read would have no epilogue.
// CHECK-LABEL: func.func @leaves_epilogues
// CHECK: %[[GATE:.*]] = fp8.matmul %{{.*}}, %{{.*}} epilogue {
// CHECK: fp8.matmul %{{.*}}, %{{.*}} epilogue(%[[GATE]] : tensor<32x16xf32>) {
func.func @leaves_epilogues(%a: !a, %b: !b) -> (!t, !t) {
  %e = tensor.empty() : !t
  %gate = fp8.matmul %a, %b : !a, !b -> !t
  %tanh = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%gate : !t) outs(%e : !t) {
  ^bb0(%in: f32, %o: f32):
    %s = math.tanh %in : f32
    linalg.yield %s : f32
  } -> !t
  %0 = fp8.matmul %a, %b : !a, !b -> !t
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0, %tanh : !t, !t) outs(%e : !t) {
  ^bb0(%acc: f32, %in: f32, %o: f32):
    %r = arith.mulf %acc, %in : f32
    linalg.yield %r : f32
  } -> !t
  return %1, %tanh : !t, !t
}

// -----

#id = affine_map<(i, j) -> (i, j)>
!a = !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
!b = !fp8.scaled<16x64xf8E4M3FN, block = [*, *], scale = f32>
!n = tensor<32x16xbf16>

// As many bytes are read, and those of the function are not written if only a cast reads it.
// CHECK-LABEL: func.func @spares_writing
// CHECK-SAME: (%{{.*}}, %{{.*}}, %[[X:.*]]: tensor<32x16xbf16>
// CHECK: fp8.matmul %{{.*}}, %{{.*}} epilogue(%[[X]] : tensor<32x16xbf16>) {
// CHECK-LABEL: func.func @reads_what_is_kept
// CHECK: %[[RELU:.*]] = linalg.generic
// CHECK: fp8.matmul %{{.*}}, %{{.*}} epilogue(%[[RELU]] : tensor<32x16xbf16>) {
func.func @spares_writing(%a: !a, %b: !b, %x: !n, %scale: tensor<1x1xf32>) -> (!n, tensor<32x16xf8E4M3FN>) {
  %zero = arith.constant 0.0 : bf16
  %e = tensor.empty() : !n
  %relu = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !n) outs(%e : !n) {
  ^bb0(%in: bf16, %o: bf16):
    %s = arith.maximumf %in, %zero : bf16
    linalg.yield %s : bf16
  } -> !n
  %q = fp8.quantize %relu scale(%scale, %scale : tensor<1x1xf32>, tensor<1x1xf32>) : !n -> !fp8.scaled<32x16xf8E4M3FN, block = [*, *], scale = f32>
  %codes, %factor = fp8.disassemble %q : !fp8.scaled<32x16xf8E4M3FN, block = [*, *], scale = f32>
  %0 = fp8.matmul %a, %b : !a, !b -> !n
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0, %relu : !n, !n) outs(%e : !n) {
  ^bb0(%acc: bf16, %in: bf16, %o: bf16):
    %c = arith.cmpf ogt, %in, %zero : bf16
    %r = arith.select %c, %acc, %zero : bf16
    linalg.yield %r : bf16
  } -> !n
  return %1, %codes : !n, tensor<32x16xf8E4M3FN>
}

func.func @reads_what_is_kept(%a: !a, %b: !b, %x: !n) -> (!n, !n) {
  %zero = arith.constant 0.0 : bf16
  %e = tensor.empty() : !n
  %relu = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !n) outs(%e : !n) {
  ^bb0(%in: bf16, %o: bf16):
    %s = arith.maximumf %in, %zero : bf16
    linalg.yield %s : bf16
  } -> !n
  %0 = fp8.matmul %a, %b : !a, !b -> !n
  %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0, %relu : !n, !n) outs(%e : !n) {
  ^bb0(%acc: bf16, %in: bf16, %o: bf16):
    %c = arith.cmpf ogt, %in, %zero : bf16
    %r = arith.select %c, %acc, %zero : bf16
    linalg.yield %r : bf16
  } -> !n
  return %1, %relu : !n, !n
}

// -----

#id = affine_map<(i, j) -> (i, j)>
!a = !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
!b = !fp8.scaled<16x64xf8E4M3FN, block = [*, *], scale = f32>
!t = tensor<32x16xf32>
!c = tensor<32x16xcomplex<f32>>

// Complex numbers, and indices, have a size, too.
// CHECK-LABEL: func.func @measures_all_types
// CHECK: fp8.matmul
func.func @measures_all_types(%a: !a, %b: !b, %x: !c, %y: tensor<32x16xindex>) -> !t {
  %e = tensor.empty() : !t
  %0 = fp8.matmul %a, %b : !a, !b -> !t
  %1 = linalg.generic {indexing_maps = [#id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0, %x, %y : !t, !c, tensor<32x16xindex>) outs(%e : !t) {
  ^bb0(%acc: f32, %in: complex<f32>, %n: index, %o: f32):
    %re = complex.re %in : complex<f32>
    %i = arith.index_cast %n : index to i32
    %f = arith.sitofp %i : i32 to f32
    %s = arith.mulf %f, %re : f32
    %r = arith.mulf %acc, %s : f32
    linalg.yield %r : f32
  } -> !t
  return %1 : !t
}
