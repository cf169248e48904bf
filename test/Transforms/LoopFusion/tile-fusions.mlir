// RUN: fp8-opt %s --split-input-file --fp8-form-fusions --fp8-tile-fusions="elements=256" | FileCheck %s
// RUN: fp8-opt %s --split-input-file --fp8-form-fusions --fp8-tile-fusions | FileCheck %s --check-prefix=LARGE
// RUN: not fp8-opt %s --split-input-file --fp8-tile-fusions="elements=0" 2>&1 | FileCheck %s --check-prefix=ZERO

// ZERO: error: expected elements to be 1 or more, but got 0

// CHECK-LABEL: func.func @flat
// CHECK: call @flat_fusion(
// Each tile has an amax of its own, and one of all follows. Rows are long.
// CHECK-LABEL: func.func private @flat_fusion
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<64x64xbf16>, %[[S:[a-z0-9]+]]: tensor<1x1xf32>, %{{[a-z0-9]+}}: tensor<1x1xf32>, %{{[a-z0-9]+}}: tensor<64x64xf8E4M3FN>, %[[AMAX:[a-z0-9]+]]: tensor<1x1xf32>
// CHECK-DAG: %[[CODES:.*]] = tensor.empty() : tensor<64x64xf8E4M3FN>
// CHECK-DAG: %[[AMAXES:.*]] = tensor.empty() : tensor<8x2xf32>
// CHECK: %[[R:.*]]:2 = scf.forall (%[[I:.*]], %[[J:.*]]) in (8, 2)
// CHECK-SAME: shared_outs(%[[O0:.*]] = %{{.*}}, %[[O1:.*]] = %{{.*}})
// CHECK-DAG: %[[ROW:.*]] = affine.apply #{{.*}}()[%[[I]]]
// CHECK-DAG: %[[COLUMN:.*]] = affine.apply #{{.*}}()[%[[J]]]
// CHECK: %[[TILE:.*]] = tensor.extract_slice %[[X]][%[[ROW]], %[[COLUMN]]] [8, 32] [1, 1]
// CHECK: fp8.quantize %{{.*}} scale(%[[S]]
// CHECK: fp8.amax %{{.*}} block = [*, *] : tensor<8x32xbf16>
// CHECK: scf.forall.in_parallel
// CHECK-DAG: tensor.parallel_insert_slice %{{.*}} into %{{.*}}[%[[ROW]], %[[COLUMN]]] [8, 32] [1, 1]
// CHECK-DAG: tensor.parallel_insert_slice %{{.*}} into %{{.*}}[%[[I]], %[[J]]] [1, 1] [1, 1] : tensor<1x1xf32>
// CHECK: } {fp8.tiles}
// CHECK: %[[ALL:.*]] = fp8.amax %[[R]]#{{[01]}} block = [*, *] : tensor<8x2xf32>
// Results are in the caller's memory.
// CHECK: bufferization.materialize_in_destination %[[ALL]] in %[[AMAX]]
// So small a tensor is one thread's.
// LARGE-LABEL: func.func @flat
// LARGE-NOT: scf.forall
func.func @flat(%x: tensor<64x64xbf16>, %s: tensor<1x1xf32>, %si: tensor<1x1xf32>)
    -> (!fp8.scaled<64x64xf8E4M3FN, block = [*, *], scale = f32>, tensor<1x1xf32>) {
  %q = fp8.quantize %x scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>)
      : tensor<64x64xbf16> -> <64x64xf8E4M3FN, block = [*, *], scale = f32>
  %amax = fp8.amax %x block = [*, *] : tensor<64x64xbf16>
  return %q, %amax : !fp8.scaled<64x64xf8E4M3FN, block = [*, *], scale = f32>, tensor<1x1xf32>
}

// -----

// Some rows, so that pieces of the transposed codes are not too short.
// CHECK-LABEL: func.func private @transposed_fusion
// CHECK: scf.forall (%[[I:.*]], %[[J:.*]]) in (8, 2)
// CHECK-DAG: %[[ROW:.*]] = affine.apply #{{.*}}()[%[[I]]]
// CHECK-DAG: %[[COLUMN:.*]] = affine.apply #{{.*}}()[%[[J]]]
// CHECK: fp8.transpose %{{.*}} permutation = [1, 0] : <8x128xf8E4M3FN
// CHECK: scf.forall.in_parallel
// CHECK-DAG: tensor.parallel_insert_slice %{{.*}} into %{{.*}}[%[[ROW]], %[[COLUMN]]] [8, 128] [1, 1]
// CHECK-DAG: tensor.parallel_insert_slice %{{.*}} into %{{.*}}[%[[COLUMN]], %[[ROW]]] [128, 8] [1, 1]
func.func @transposed(%x: tensor<64x256xbf16>, %s: tensor<1x1xf32>, %si: tensor<1x1xf32>)
    -> (!fp8.scaled<64x256xf8E4M3FN, block = [*, *], scale = f32>,
        !fp8.scaled<256x64xf8E4M3FN, block = [*, *], scale = f32>) {
  %q = fp8.quantize %x scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>)
      : tensor<64x256xbf16> -> <64x256xf8E4M3FN, block = [*, *], scale = f32>
  %t = fp8.transpose %q permutation = [1, 0] : <64x256xf8E4M3FN, block = [*, *], scale = f32>
  return %q, %t : !fp8.scaled<64x256xf8E4M3FN, block = [*, *], scale = f32>,
      !fp8.scaled<256x64xf8E4M3FN, block = [*, *], scale = f32>
}

// -----

// Tiles are whole blocks, and the last of them what is left.
// CHECK-LABEL: func.func private @blocks_fusion
// CHECK: scf.forall (%[[I:.*]], %[[J:.*]]) in (32, 2)
// CHECK: %[[SIZE:.*]] = affine.min #{{.*}}()[%[[J]]]
// CHECK: %[[TILE:.*]] = tensor.extract_slice %{{.*}} [2, %[[SIZE]]] [1, 1]
// CHECK: fp8.amax %[[TILE]] block = [1, 128] : tensor<2x?xbf16>
// CHECK: fp8.compute_scale %{{.*}} : tensor<2x?xf32>
// CHECK: fp8.quantize %[[TILE]] scale(%{{.*}} : tensor<2x?xf32>, tensor<2x?xf32>)
func.func @blocks(%x: tensor<64x200xbf16>)
    -> !fp8.scaled<64x200xf8E4M3FN, block = [1, 128], scale = f32> {
  %amax = fp8.amax %x block = [1, 128] : tensor<64x200xbf16>
  %s, %si = fp8.compute_scale %amax format = f8E4M3FN scale_type = f32 : tensor<64x2xf32>
  %q = fp8.quantize %x scale(%s, %si : tensor<64x2xf32>, tensor<64x2xf32>)
      : tensor<64x200xbf16> -> <64x200xf8E4M3FN, block = [1, 128], scale = f32>
  return %q : !fp8.scaled<64x200xf8E4M3FN, block = [1, 128], scale = f32>
}

// -----

#full = affine_map<(i, j) -> (i, j)>
#rows = affine_map<(i, j) -> (i)>

// A row is summed in its order, by one thread.
// CHECK-LABEL: func.func private @row_sums_fusion
// CHECK: scf.forall (%[[I:.*]], %{{.*}}) in (8, 1)
// CHECK: %[[TILE:.*]] = tensor.extract_slice %{{.*}}[%{{.*}}, 0] [8, 32] [1, 1]
// CHECK: linalg.fill {{.*}} -> tensor<8xf32>
// CHECK: linalg.generic {{.*}} ["parallel", "reduction"]
func.func @row_sums(%x: tensor<64x32xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  %sums = linalg.generic {indexing_maps = [#full, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<64x32xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%a: f32, %s: f32):
    %0 = arith.addf %s, %a : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  return %sums : tensor<64xf32>
}

// -----

#full = affine_map<(i, j) -> (i, j)>
#columns = affine_map<(i, j) -> (j)>

// And a column in its own.
// CHECK-LABEL: func.func private @column_sums_fusion
// CHECK: scf.forall (%{{.*}}, %[[J:.*]]) in (1, 2)
// CHECK: tensor.extract_slice %{{.*}}[0, %{{.*}}] [64, 32] [1, 1]
func.func @column_sums(%x: tensor<64x64xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  %sums = linalg.generic {indexing_maps = [#full, #columns], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<64x64xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%a: f32, %s: f32):
    %0 = arith.addf %s, %a : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  return %sums : tensor<64xf32>
}

// -----

#full = affine_map<(i, j) -> (i, j)>
#rows = affine_map<(i, j) -> (i)>
#columns = affine_map<(i, j) -> (j)>

// Sums in both directions leave nothing to cut.
// CHECK-LABEL: func.func @both_sums
// CHECK-NOT: scf.forall
func.func @both_sums(%x: tensor<64x64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  %r = linalg.generic {indexing_maps = [#full, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<64x64xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%a: f32, %s: f32):
    %0 = arith.addf %s, %a : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %c = linalg.generic {indexing_maps = [#full, #columns], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<64x64xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%a: f32, %s: f32):
    %0 = arith.addf %s, %a : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  return %r, %c : tensor<64xf32>, tensor<64xf32>
}

// -----

// A scale of the whole tensor is computed once; it is no tile's.
// CHECK-LABEL: func.func private @given_amax_fusion
// CHECK: %[[S:.*]], %[[SI:.*]] = fp8.compute_scale
// CHECK: scf.forall
// CHECK-NOT: fp8.compute_scale
// CHECK: fp8.quantize %{{.*}} scale(%[[S]], %[[SI]]
func.func @given_amax(%x: tensor<64x64xbf16>, %amax: tensor<1x1xf32>)
    -> !fp8.scaled<64x64xf8E4M3FN, block = [*, *], scale = f32> {
  %s, %si = fp8.compute_scale %amax format = f8E4M3FN scale_type = f32 : tensor<1x1xf32>
  %q = fp8.quantize %x scale(%s, %si : tensor<1x1xf32>, tensor<1x1xf32>)
      : tensor<64x64xbf16> -> <64x64xf8E4M3FN, block = [*, *], scale = f32>
  return %q : !fp8.scaled<64x64xf8E4M3FN, block = [*, *], scale = f32>
}

// -----

#full = affine_map<(i, j) -> (i, j)>

// What only fits when the program runs is checked before it is cut.
// CHECK-LABEL: func.func private @dynamic_fusion
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<?x?xf32>, %[[Y:[a-z0-9]+]]: tensor<?x?xf32>
// CHECK: cf.assert %{{.*}}, "expected the tensors of one pass over memory to have the same extents, but dimension #0 of operand #1 differs\0ALocation: loc({{.*}})"
// CHECK: cf.assert %{{.*}}, "{{.*}} dimension #1 of operand #1 differs\0ALocation: loc({{.*}})"
// CHECK: cf.assert %{{.*}}, "{{.*}} dimension #0 of a result of linalg.generic differs\0ALocation: loc({{.*}})"
// CHECK: cf.assert %{{.*}}, "{{.*}} dimension #1 of a result of linalg.generic differs\0ALocation: loc({{.*}})"
// CHECK: scf.forall
// LARGE-LABEL: func.func private @dynamic_fusion
// LARGE: scf.forall
func.func @dynamic(%x: tensor<?x?xf32>, %y: tensor<?x?xf32>, %m: index, %n: index) -> tensor<?x?xf32> {
  %empty = tensor.empty(%m, %n) : tensor<?x?xf32>
  %sum = linalg.generic {indexing_maps = [#full, #full, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %y : tensor<?x?xf32>, tensor<?x?xf32>) outs(%empty : tensor<?x?xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<?x?xf32>
  return %sum : tensor<?x?xf32>
}

// -----

// Blocks of any size: tiles are so many of them as make about as much.
// CHECK-LABEL: func.func private @odd_blocks_fusion
// CHECK: scf.forall (%[[I:.*]], %[[J:.*]]) in (32, 3)
// CHECK: affine.apply #{{.*}}()[%[[J]]]
// CHECK: tensor.extract_slice %{{.*}} [2, 96] [1, 1]
// CHECK: tensor.extract_slice %{{.*}}[%{{.*}}, %{{.*}}] [2, 1] [1, 1] : tensor<64x3xf32>
func.func @odd_blocks(%x: tensor<64x288xbf16>, %s: tensor<64x3xf32>, %si: tensor<64x3xf32>)
    -> !fp8.scaled<64x288xf8E4M3FN, block = [1, 96], scale = f32> {
  %q = fp8.quantize %x scale(%s, %si : tensor<64x3xf32>, tensor<64x3xf32>)
      : tensor<64x288xbf16> -> <64x288xf8E4M3FN, block = [1, 96], scale = f32>
  return %q : !fp8.scaled<64x288xf8E4M3FN, block = [1, 96], scale = f32>
}

// -----

#full = affine_map<(i, j) -> (i, j)>
#rows = affine_map<(i, j) -> (i)>

// A row of another tensor, which is read by its index, is none of the tile's.
// CHECK-LABEL: func.func private @gather_fusion
// CHECK-SAME: %[[TABLE:[a-z0-9]+]]: tensor<1000x64xf32>
// CHECK: scf.forall
// CHECK: %[[FIRST:.*]] = affine.apply
// CHECK: linalg.generic
// CHECK: %[[LOCAL:.*]] = linalg.index 1
// CHECK: %[[COLUMN:.*]] = arith.addi %[[LOCAL]], %{{.*}} : index
// CHECK: tensor.extract %[[TABLE]][%{{.*}}, %[[COLUMN]]]
func.func @gather(%table: tensor<1000x64xf32>, %x: tensor<64x64xf32>, %ids: tensor<64xi64>)
    -> tensor<64x64xf32> {
  %empty = tensor.empty() : tensor<64x64xf32>
  %sum = linalg.generic {indexing_maps = [#full, #rows, #full], iterator_types = ["parallel", "parallel"]}
      ins(%x, %ids : tensor<64x64xf32>, tensor<64xi64>) outs(%empty : tensor<64x64xf32>) {
  ^bb0(%a: f32, %id: i64, %o: f32):
    %row = arith.index_cast %id : i64 to index
    %column = linalg.index 1 : index
    %b = tensor.extract %table[%row, %column] : tensor<1000x64xf32>
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<64x64xf32>
  return %sum : tensor<64x64xf32>
}

// -----

#full = affine_map<(i, j) -> (i, j)>
#rows = affine_map<(i, j) -> (i)>

// Each result starts in its own output: equal ones would merge, and one of the
// two would start where the other has been.
// CHECK-LABEL: func.func private @same_start_fusion
// CHECK: scf.forall {{.*}} shared_outs(%[[O0:.*]] = %{{.*}}, %[[O1:.*]] = %{{.*}})
// CHECK: %[[S0:.*]] = tensor.extract_slice %[[O0]]
// CHECK: linalg.fill {{.*}} outs(%[[S0]]
// CHECK: %[[S1:.*]] = tensor.extract_slice %[[O1]]
// CHECK: linalg.fill {{.*}} outs(%[[S1]]
func.func @same_start(%x: tensor<64x64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<64xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<64xf32>) -> tensor<64xf32>
  %sum = linalg.generic {indexing_maps = [#full, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<64x64xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%a: f32, %s: f32):
    %0 = arith.addf %s, %a : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  %max = linalg.generic {indexing_maps = [#full, #rows], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<64x64xf32>) outs(%init : tensor<64xf32>) {
  ^bb0(%a: f32, %s: f32):
    %0 = arith.maximumf %s, %a : f32
    linalg.yield %0 : f32
  } -> tensor<64xf32>
  return %sum, %max : tensor<64xf32>, tensor<64xf32>
}

// -----

#id = affine_map<(i) -> (i)>

// Equal fusions share a function; another scalar in the body makes another one.
// CHECK-LABEL: func.func @layers
// CHECK: %[[A:.*]] = call @[[SHARED:layers_fusion[_0-9]*]](%arg0, %{{.*}})
// CHECK: %[[B:.*]] = call @[[SHARED]](%arg1, %{{.*}})
// CHECK: %[[C:.*]] = call @[[OTHER:layers_fusion[_0-9]*]](%arg2, %{{.*}})
// CHECK: return %[[A]], %[[B]], %[[C]]
// CHECK-DAG: func.func private @[[SHARED]](
// CHECK-DAG: func.func private @[[OTHER]](
func.func @layers(%x: tensor<1024xf32>, %y: tensor<1024xf32>, %z: tensor<1024xf32>)
    -> (tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>) {
  %two = arith.constant 2.0 : f32
  %three = arith.constant 3.0 : f32
  %empty = tensor.empty() : tensor<1024xf32>
  %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<1024xf32>) outs(%empty : tensor<1024xf32>) {
  ^bb0(%v: f32, %o: f32):
    %0 = arith.mulf %v, %two : f32
    linalg.yield %0 : f32
  } -> tensor<1024xf32>
  %b = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%y : tensor<1024xf32>) outs(%empty : tensor<1024xf32>) {
  ^bb0(%v: f32, %o: f32):
    %0 = arith.mulf %v, %two : f32
    linalg.yield %0 : f32
  } -> tensor<1024xf32>
  %c = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%z : tensor<1024xf32>) outs(%empty : tensor<1024xf32>) {
  ^bb0(%v: f32, %o: f32):
    %0 = arith.mulf %v, %three : f32
    linalg.yield %0 : f32
  } -> tensor<1024xf32>
  return %a, %b, %c : tensor<1024xf32>, tensor<1024xf32>, tensor<1024xf32>
}
