// RUN: fp8-opt %s --fp8-form-plain-matmul | FileCheck %s
// RUN: fp8-opt %s --fp8-form-plain-matmul=tf32 --canonicalize | FileCheck %s --check-prefix=TF32

// [in, out] is how a program has weights: K is outermost, and stays so.

// CHECK-LABEL: func.func @matmul
// CHECK-SAME:    %[[A:.+]]: tensor<32x64xbf16>, %[[B:.+]]: tensor<64x48xbf16>
// CHECK-NOT:   linalg.transpose
// CHECK:       %[[D:.+]] = fp8.matmul %[[A]], %[[B]] transpose_b accumulate = fast {fp8.name = "mm", fp8.role = #fp8.role<fprop>} : tensor<32x64xbf16>, tensor<64x48xbf16> -> tensor<32x48xf32>
// CHECK-NEXT:  return %[[D]]
func.func @matmul(%a: tensor<32x64xbf16>, %b: tensor<64x48xbf16>) -> tensor<32x48xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x48xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x48xf32>) -> tensor<32x48xf32>
  %0 = linalg.matmul {fp8.name = "mm", fp8.role = #fp8.role<fprop>}
       ins(%a, %b : tensor<32x64xbf16>, tensor<64x48xbf16>) outs(%zeros : tensor<32x48xf32>) -> tensor<32x48xf32>
  return %0 : tensor<32x48xf32>
}

// Both operands, of a batch.

#km = affine_map<(b, m, n, k) -> (b, k, m)>
#nk = affine_map<(b, m, n, k) -> (b, n, k)>
#mn = affine_map<(b, m, n, k) -> (b, m, n)>

// CHECK-LABEL: func.func @batch
// CHECK:       fp8.matmul %{{.*}}, %{{.*}} transpose_a accumulate = fast : tensor<2x64x32xf16>, tensor<2x48x64xf16> -> tensor<2x32x48xf32>
func.func @batch(%a: tensor<2x64x32xf16>, %b: tensor<2x48x64xf16>) -> tensor<2x32x48xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<2x32x48xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<2x32x48xf32>) -> tensor<2x32x48xf32>
  %0 = linalg.contract indexing_maps = [#km, #nk, #mn]
       ins(%a, %b : tensor<2x64x32xf16>, tensor<2x48x64xf16>) outs(%zeros : tensor<2x32x48xf32>) -> tensor<2x32x48xf32>
  return %0 : tensor<2x32x48xf32>
}

// A result that lies as N x M is the product of B and A.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#nm = affine_map<(m, n, k) -> (n, m)>

// CHECK-LABEL: func.func @transposed_result
// CHECK-SAME:    %[[A:.+]]: tensor<32x64xbf16>, %[[B:.+]]: tensor<48x64xbf16>
// CHECK-NOT:   linalg.transpose
// CHECK:       %[[D:.+]] = fp8.matmul %[[B]], %[[A]] accumulate = fast : tensor<48x64xbf16>, tensor<32x64xbf16> -> tensor<48x32xf32>
// CHECK-NEXT:  return %[[D]]
func.func @transposed_result(%a: tensor<32x64xbf16>, %b: tensor<48x64xbf16>) -> tensor<48x32xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<48x32xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<48x32xf32>) -> tensor<48x32xf32>
  %0 = linalg.contract indexing_maps = [#a, #b, #nm]
       ins(%a, %b : tensor<32x64xbf16>, tensor<48x64xbf16>) outs(%zeros : tensor<48x32xf32>) -> tensor<48x32xf32>
  return %0 : tensor<48x32xf32>
}

// What was widened on the way counts as what it was.

#id = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: func.func @widened
// CHECK-SAME:    %[[A:.+]]: tensor<?x64xbf16>, %[[B:.+]]: tensor<64x48xbf16>
// CHECK:       fp8.matmul %[[A]], %[[B]] transpose_b accumulate = fast : tensor<?x64xbf16>, tensor<64x48xbf16> -> tensor<?x48xf32>
func.func @widened(%a: tensor<?x64xbf16>, %b: tensor<64x48xbf16>, %empty: tensor<?x64xf32>, %out: tensor<?x48xf32>) -> tensor<?x48xf32> {
  %zero = arith.constant 0.0 : f32
  %emptyB = tensor.empty() : tensor<64x48xf32>
  %wide = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<?x64xbf16>) outs(%empty : tensor<?x64xf32>) {
  ^bb0(%x: bf16, %y: f32):
    %w = arith.extf %x : bf16 to f32
    linalg.yield %w : f32
  } -> tensor<?x64xf32>
  %wideB = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%b : tensor<64x48xbf16>) outs(%emptyB : tensor<64x48xf32>) {
  ^bb0(%x: bf16, %y: f32):
    %w = arith.extf %x : bf16 to f32
    linalg.yield %w : f32
  } -> tensor<64x48xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%out : tensor<?x48xf32>) -> tensor<?x48xf32>
  %0 = linalg.matmul ins(%wide, %wideB : tensor<?x64xf32>, tensor<64x48xf32>) outs(%zeros : tensor<?x48xf32>) -> tensor<?x48xf32>
  return %0 : tensor<?x48xf32>
}

// What it is added onto is added once, in f32.

// CHECK-LABEL: func.func @accumulated
// CHECK-SAME:    %[[C:[a-z0-9]+]]: tensor<32x48xf32>)
// CHECK:       %[[D:.+]] = fp8.matmul {{.*}} -> tensor<32x48xf32>
// CHECK:       linalg.generic {{.*}} ins(%[[D]], %[[C]] : tensor<32x48xf32>, tensor<32x48xf32>)
// CHECK:         arith.addf
func.func @accumulated(%a: tensor<32x64xbf16>, %b: tensor<64x48xbf16>, %c: tensor<32x48xf32>) -> tensor<32x48xf32> {
  %0 = linalg.matmul ins(%a, %b : tensor<32x64xbf16>, tensor<64x48xbf16>) outs(%c : tensor<32x48xf32>) -> tensor<32x48xf32>
  return %0 : tensor<32x48xf32>
}

// A result in bf16 is rounded once, after the sum in f32.

// CHECK-LABEL: func.func @rounded
// CHECK:       %[[D:.+]] = fp8.matmul {{.*}} -> tensor<32x48xf32>
// CHECK:       linalg.generic {{.*}} ins(%[[D]] : tensor<32x48xf32>)
// CHECK:         arith.truncf
func.func @rounded(%a: tensor<32x64xbf16>, %b: tensor<64x48xbf16>) -> tensor<32x48xbf16> {
  %zero = arith.constant 0.0 : bf16
  %empty = tensor.empty() : tensor<32x48xbf16>
  %zeros = linalg.fill ins(%zero : bf16) outs(%empty : tensor<32x48xbf16>) -> tensor<32x48xbf16>
  %0 = linalg.matmul ins(%a, %b : tensor<32x64xbf16>, tensor<64x48xbf16>) outs(%zeros : tensor<32x48xbf16>) -> tensor<32x48xbf16>
  return %0 : tensor<32x48xbf16>
}

// f32 loses bits on tensor cores: only who asks for it gets that. They need K
// innermost.

// CHECK-LABEL: func.func @f32
// CHECK-NOT:   fp8.matmul
// CHECK:       linalg.matmul

// TF32-LABEL: func.func @f32
// TF32-SAME:    %[[A:.+]]: tensor<32x64xf32>, %[[B:.+]]: tensor<64x48xf32>
// TF32:       %[[B_T:.+]] = linalg.transpose ins(%[[B]] :
// TF32:       fp8.matmul %[[A]], %[[B_T]] accumulate = fast : tensor<32x64xf32>, tensor<48x64xf32> -> tensor<32x48xf32>
func.func @f32(%a: tensor<32x64xf32>, %b: tensor<64x48xf32>) -> tensor<32x48xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x48xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x48xf32>) -> tensor<32x48xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<32x64xf32>, tensor<64x48xf32>) outs(%zeros : tensor<32x48xf32>) -> tensor<32x48xf32>
  return %0 : tensor<32x48xf32>
}

// Nor is a narrow operand a reason not to, where the other one is f32.

// TF32-LABEL: func.func @mixed
// TF32:       %[[WIDE:.+]] = linalg.generic
// TF32:       fp8.matmul %[[WIDE]], %{{.*}} accumulate = fast : tensor<32x64xf32>, tensor<48x64xf32> -> tensor<32x48xf32>
func.func @mixed(%a: tensor<32x64xbf16>, %b: tensor<64x48xf32>, %c: tensor<32x48xf32>) -> tensor<32x48xf32> {
  %empty = tensor.empty() : tensor<32x64xf32>
  %wide = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<32x64xbf16>) outs(%empty : tensor<32x64xf32>) {
  ^bb0(%x: bf16, %y: f32):
    %w = arith.extf %x : bf16 to f32
    linalg.yield %w : f32
  } -> tensor<32x64xf32>
  %0 = linalg.matmul ins(%wide, %b : tensor<32x64xf32>, tensor<64x48xf32>) outs(%c : tensor<32x48xf32>) -> tensor<32x48xf32>
  return %0 : tensor<32x48xf32>
}

// A weight that a framework transposes for the product is read as it lies.

#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: @transposed_by_the_program
// CHECK-SAME: %[[X:[^:]*]]: {{[^%]*}}%[[W:[^:]*]]: {{[^%]*}}%[[V:[^:]*]]:
// CHECK: fp8.matmul %[[X]], %[[W]] accumulate = fast :
// CHECK: fp8.matmul %[[X]], %[[V]] transpose_b accumulate = fast :
func.func @transposed_by_the_program(%x: tensor<32x64xbf16>, %w: tensor<16x64xbf16>, %v: tensor<64x16xbf16>) -> (tensor<32x16xf32>, tensor<32x16xf32>) {
  %zero = arith.constant dense<0.0> : tensor<32x16xf32>
  %e = tensor.empty() : tensor<64x16xbf16>
  %wt = linalg.transpose ins(%w : tensor<16x64xbf16>) outs(%e : tensor<64x16xbf16>) permutation = [1, 0]
  %0 = linalg.matmul ins(%x, %wt : tensor<32x64xbf16>, tensor<64x16xbf16>) outs(%zero : tensor<32x16xf32>) -> tensor<32x16xf32>
  %f = tensor.empty() : tensor<16x64xbf16>
  %vt = linalg.transpose ins(%v : tensor<64x16xbf16>) outs(%f : tensor<16x64xbf16>) permutation = [1, 0]
  %1 = linalg.contract indexing_maps = [#a, #b, #c] ins(%x, %vt : tensor<32x64xbf16>, tensor<16x64xbf16>) outs(%zero : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %0, %1 : tensor<32x16xf32>, tensor<32x16xf32>
}

// Another permutation is a copy.
// CHECK-LABEL: @batches
// CHECK: %[[T:.*]] = linalg.transpose {{.*}} permutation = [1, 0, 2]
// CHECK: fp8.matmul %[[T]], %{{.*}} transpose_b accumulate = fast :
func.func @batches(%x: tensor<32x4x64xbf16>, %w: tensor<4x64x16xbf16>) -> tensor<4x32x16xf32> {
  %zero = arith.constant dense<0.0> : tensor<4x32x16xf32>
  %e = tensor.empty() : tensor<4x32x64xbf16>
  %t = linalg.transpose ins(%x : tensor<32x4x64xbf16>) outs(%e : tensor<4x32x64xbf16>) permutation = [1, 0, 2]
  %0 = linalg.batch_matmul ins(%t, %w : tensor<4x32x64xbf16>, tensor<4x64x16xbf16>) outs(%zero : tensor<4x32x16xf32>) -> tensor<4x32x16xf32>
  return %0 : tensor<4x32x16xf32>
}

// Twice transposed is not transposed.

// TF32-LABEL: func.func @f32_transposed_by_the_program
// TF32-SAME:    %[[A:.+]]: tensor<32x64xf32>, %[[B:.+]]: tensor<16x64xf32>
// TF32:       fp8.matmul %[[A]], %[[B]] accumulate = fast :
func.func @f32_transposed_by_the_program(%a: tensor<32x64xf32>, %b: tensor<16x64xf32>, %c: tensor<32x16xf32>) -> tensor<32x16xf32> {
  %e = tensor.empty() : tensor<64x16xf32>
  %t = linalg.transpose ins(%b : tensor<16x64xf32>) outs(%e : tensor<64x16xf32>) permutation = [1, 0]
  %0 = linalg.matmul ins(%a, %t : tensor<32x64xf32>, tensor<64x16xf32>) outs(%c : tensor<32x16xf32>) -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>
}

// Bulk copies read rows of whole 16 bytes: K is filled up with zeros, innermost
// or not.

// CHECK-LABEL: func.func @odd_k
// CHECK-SAME:    %[[A:.+]]: tensor<32x77xbf16>, %[[B:.+]]: tensor<77x48xbf16>
// CHECK-DAG:   %[[PADDED_A:.+]] = tensor.pad %[[A]] low[0, 0] high[0, 3]
// CHECK-DAG:   %[[PADDED_B:.+]] = tensor.pad %[[B]] low[0, 0] high[3, 0]
// CHECK:       fp8.matmul %[[PADDED_A]], %[[PADDED_B]] transpose_b accumulate = fast : tensor<32x80xbf16>, tensor<80x48xbf16> -> tensor<32x48xf32>
func.func @odd_k(%a: tensor<32x77xbf16>, %b: tensor<77x48xbf16>) -> tensor<32x48xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x48xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x48xf32>) -> tensor<32x48xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<32x77xbf16>, tensor<77x48xbf16>) outs(%zeros : tensor<32x48xf32>) -> tensor<32x48xf32>
  return %0 : tensor<32x48xf32>
}

// Columns that make no such rows are no reason to be read as rows.

// CHECK-LABEL: func.func @odd_n
// CHECK-SAME:    %[[A:.+]]: tensor<32x64xbf16>, %[[B:.+]]: tensor<64x49xbf16>
// CHECK:       %[[TURNED:.+]] = linalg.transpose ins(%[[B]] : tensor<64x49xbf16>)
// CHECK:       fp8.matmul %[[A]], %[[TURNED]] accumulate = fast : tensor<32x64xbf16>, tensor<49x64xbf16> -> tensor<32x49xf32>
func.func @odd_n(%a: tensor<32x64xbf16>, %b: tensor<64x49xbf16>) -> tensor<32x49xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<32x49xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<32x49xf32>) -> tensor<32x49xf32>
  %0 = linalg.matmul ins(%a, %b : tensor<32x64xbf16>, tensor<64x49xbf16>) outs(%zeros : tensor<32x49xf32>) -> tensor<32x49xf32>
  return %0 : tensor<32x49xf32>
}
