// RUN: fp8-opt %s --fp8-form-fusions --canonicalize | FileCheck %s

// Rows that are read by their index.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
!table = tensor<1000x512xbf16>
!x = tensor<256x512xbf16>
!q = !fp8.scaled<256x512xf8E4M3FN, block = [*, *], scale = f32>

// An embedding, cast in the same pass.

// CHECK-LABEL: func.func @embedding(
// CHECK-SAME:  %[[T:.+]]: tensor<1000x512xbf16>, %[[I:.+]]: tensor<256xi64>, %[[S:.+]]: tensor<1x1xf32>)
// CHECK:       fp8.fusion(%[[I]], %[[T]], %[[S]]) {
// CHECK-NEXT:  ^bb0(%[[II:.+]]: tensor<256xi64>, %[[TI:.+]]: tensor<1000x512xbf16>, %{{.+}}: tensor<1x1xf32>):
// CHECK:         linalg.generic {{.+}} ins(%[[II]] :
// CHECK:           tensor.extract %[[TI]]
// CHECK:         fp8.amax
// CHECK-NEXT:    fp8.quantize
func.func @embedding(%t: !table, %ids: tensor<256xi64>, %s: tensor<1x1xf32>) -> (!q, tensor<1x1xf32>) {
  %e = tensor.empty() : !x
  %y = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<256xi64>) outs(%e : !x) {
  ^bb0(%i: i64, %o: bf16):
    %r = arith.index_cast %i : i64 to index
    %c = linalg.index 1 : index
    %v = tensor.extract %t[%r, %c] : !table
    linalg.yield %v : bf16
  } -> !x
  %a = fp8.amax %y block = [*, *] : !x
  %q = fp8.quantize %y scale(%s, %s : tensor<1x1xf32>, tensor<1x1xf32>) : !x -> !q
  return %q, %a : !q, tensor<1x1xf32>
}

// An index that is kept inside; with what the row is added to.

// CHECK-LABEL: func.func @kept_inside(
// CHECK:       fp8.fusion(
// CHECK:         tensor.extract
func.func @kept_inside(%t: !table, %ids: tensor<256xi32>, %x: !x) -> !x {
  %zero = arith.constant 0 : i32
  %most = arith.constant 999 : i32
  %e = tensor.empty() : !x
  %y = linalg.generic {indexing_maps = [#row, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%ids, %x : tensor<256xi32>, !x) outs(%e : !x) {
  ^bb0(%i: i32, %a: bf16, %o: bf16):
    %0 = arith.maxsi %i, %zero : i32
    %1 = arith.minsi %0, %most : i32
    %r = arith.index_cast %1 : i32 to index
    %c = linalg.index 1 : index
    %v = tensor.extract %t[%r, %c] : !table
    %2 = arith.addf %v, %a : bf16
    linalg.yield %2 : bf16
  } -> !x
  return %y : !x
}

// As tosa.gather becomes: a table for each batch.

// CHECK-LABEL: func.func @batches(
// CHECK:       fp8.fusion(
func.func @batches(%t: tensor<4x100x512xf32>, %ids: tensor<4x64xi32>) -> tensor<4x64x512xf32> {
  %e = tensor.empty() : tensor<4x64x512xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i)>, affine_map<(b, i, j) -> (b, i, j)>], iterator_types = ["parallel", "parallel", "parallel"]} ins(%ids : tensor<4x64xi32>) outs(%e : tensor<4x64x512xf32>) {
  ^bb0(%i: i32, %o: f32):
    %b = linalg.index 0 : index
    %r = arith.index_cast %i : i32 to index
    %c = linalg.index 2 : index
    %v = tensor.extract %t[%b, %r, %c] : tensor<4x100x512xf32>
    linalg.yield %v : f32
  } -> tensor<4x64x512xf32>
  return %y : tensor<4x64x512xf32>
}

//===----------------------------------------------------------------------===//
// No pass
//===----------------------------------------------------------------------===//

// Elements of a row that are not neighbours, columns by an index, an index for
// each element.

// CHECK-LABEL: func.func @turned(
// CHECK-NOT:   fp8.fusion
// CHECK-LABEL: func.func @by_column(
// CHECK-NOT:   fp8.fusion
// CHECK-LABEL: func.func @of_each(
// CHECK-NOT:   fp8.fusion
// CHECK-LABEL: func.func @shorter(
// CHECK-NOT:   fp8.fusion
// CHECK-LABEL: func.func @unknown_length(
// CHECK-NOT:   fp8.fusion
// CHECK-LABEL: func.func @elements(
// CHECK-NOT:   fp8.fusion
// CHECK-LABEL: func.func @divided(
// CHECK-NOT:   fp8.fusion
// CHECK-LABEL: func.func @of_what_is_computed(
func.func @turned(%t: tensor<512x1000xbf16>, %ids: tensor<256xi64>) -> !x {
  %e = tensor.empty() : !x
  %y = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<256xi64>) outs(%e : !x) {
  ^bb0(%i: i64, %o: bf16):
    %r = arith.index_cast %i : i64 to index
    %c = linalg.index 1 : index
    %v = tensor.extract %t[%c, %r] : tensor<512x1000xbf16>
    linalg.yield %v : bf16
  } -> !x
  return %y : !x
}

func.func @by_column(%t: !table, %ids: tensor<512xi64>) -> !x {
  %e = tensor.empty() : !x
  %y = linalg.generic {indexing_maps = [#column, #id], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<512xi64>) outs(%e : !x) {
  ^bb0(%i: i64, %o: bf16):
    %r = arith.index_cast %i : i64 to index
    %c = linalg.index 1 : index
    %v = tensor.extract %t[%r, %c] : !table
    linalg.yield %v : bf16
  } -> !x
  return %y : !x
}

func.func @of_each(%t: !table, %ids: tensor<256x512xi64>) -> !x {
  %e = tensor.empty() : !x
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<256x512xi64>) outs(%e : !x) {
  ^bb0(%i: i64, %o: bf16):
    %r = arith.index_cast %i : i64 to index
    %c = linalg.index 1 : index
    %v = tensor.extract %t[%r, %c] : !table
    linalg.yield %v : bf16
  } -> !x
  return %y : !x
}

// Not all columns of the table are those of the domain.

func.func @shorter(%t: tensor<1000x520xbf16>, %ids: tensor<256xi64>) -> !x {
  %e = tensor.empty() : !x
  %y = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<256xi64>) outs(%e : !x) {
  ^bb0(%i: i64, %o: bf16):
    %r = arith.index_cast %i : i64 to index
    %c = linalg.index 1 : index
    %v = tensor.extract %t[%r, %c] : tensor<1000x520xbf16>
    linalg.yield %v : bf16
  } -> !x
  return %y : !x
}

func.func @unknown_length(%t: tensor<1000x?xbf16>, %ids: tensor<256xi64>, %n: index) -> tensor<256x?xbf16> {
  %e = tensor.empty(%n) : tensor<256x?xbf16>
  %y = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<256xi64>) outs(%e : tensor<256x?xbf16>) {
  ^bb0(%i: i64, %o: bf16):
    %r = arith.index_cast %i : i64 to index
    %c = linalg.index 1 : index
    %v = tensor.extract %t[%r, %c] : tensor<1000x?xbf16>
    linalg.yield %v : bf16
  } -> tensor<256x?xbf16>
  return %y : tensor<256x?xbf16>
}

func.func @elements(%t: tensor<1000xbf16>, %ids: tensor<256xi64>) -> !x {
  %e = tensor.empty() : !x
  %y = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<256xi64>) outs(%e : !x) {
  ^bb0(%i: i64, %o: bf16):
    %r = arith.index_cast %i : i64 to index
    %v = tensor.extract %t[%r] : tensor<1000xbf16>
    linalg.yield %v : bf16
  } -> !x
  return %y : !x
}

func.func @divided(%t: !table, %ids: tensor<256xi64>) -> !x {
  %two = arith.constant 2 : i64
  %e = tensor.empty() : !x
  %y = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<256xi64>) outs(%e : !x) {
  ^bb0(%i: i64, %o: bf16):
    %0 = arith.divsi %i, %two : i64
    %r = arith.index_cast %0 : i64 to index
    %c = linalg.index 1 : index
    %v = tensor.extract %t[%r, %c] : !table
    linalg.yield %v : bf16
  } -> !x
  return %y : !x
}

// A table that another pass has made is read by one that comes after it.

// CHECK:       %[[T:.+]] = fp8.fusion(
// CHECK-NOT:     tensor.extract
// CHECK:         fp8.yield
// CHECK:       fp8.fusion({{.*}}%[[T]]
// CHECK:         tensor.extract
func.func @of_what_is_computed(%t: !x, %ids: tensor<256xi64>) -> !x {
  %e = tensor.empty() : !x
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%t : !x) outs(%e : !x) {
  ^bb0(%a: bf16, %o: bf16):
    %0 = arith.negf %a : bf16
    linalg.yield %0 : bf16
  } -> !x
  %y = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]} ins(%ids : tensor<256xi64>) outs(%e : !x) {
  ^bb0(%i: i64, %o: bf16):
    %r = arith.index_cast %i : i64 to index
    %c = linalg.index 1 : index
    %v = tensor.extract %n[%r, %c] : !x
    linalg.yield %v : bf16
  } -> !x
  return %y : !x
}
