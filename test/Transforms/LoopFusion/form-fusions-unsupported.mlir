// RUN: fp8-opt %s --fp8-form-fusions --canonicalize | FileCheck %s --implicit-check-not="fp8.fusion("

// What does not stand in one pass: two, or none.

#id = affine_map<(i, j) -> (i, j)>
#t = affine_map<(i, j) -> (j, i)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
!x = tensor<32x32xbf16>
!f = tensor<32x32xf32>
!one = tensor<1x1xf32>
!q = !fp8.scaled<32x32xf8E4M3FN, block = [*, *], scale = f32>

//===----------------------------------------------------------------------===//
// Two passes
//===----------------------------------------------------------------------===//

// A value that is known after the pass, whatever is computed of it.

// CHECK-LABEL: func.func @needs_the_amax
// CHECK:       %[[AMAX:.+]] = fp8.fusion(
// CHECK-NEXT:  ^bb0
// CHECK-NEXT:    fp8.amax
// CHECK-NEXT:    fp8.yield
// CHECK:       tensor.extract %[[AMAX]]
// CHECK:       %[[S:.+]] = tensor.from_elements
// CHECK:       fp8.fusion({{.*}}%[[S]]
// CHECK-NEXT:  ^bb0
// CHECK-NEXT:    fp8.quantize
func.func @needs_the_amax(%x: !x) -> !q {
  %c0 = arith.constant 0 : index
  %two = arith.constant 2.0 : f32
  %amax = fp8.amax %x block = [*, *] : !x
  %a = tensor.extract %amax[%c0, %c0] : !one
  %b = arith.divf %two, %a : f32
  %s = tensor.from_elements %b : !one
  %q = fp8.quantize %x scale(%s, %s : !one, !one) : !x -> !q
  return %q : !q
}

// An elementwise function reads the amax as it would any row: not before it is
// known either.

// CHECK-LABEL: func.func @reads_the_amax
// CHECK:       %[[AMAX:.+]] = fp8.fusion(
// CHECK-NEXT:  ^bb0
// CHECK-NEXT:    fp8.amax
// CHECK-NEXT:    fp8.yield
// CHECK:       fp8.fusion({{.*}}%[[AMAX]]
// CHECK:         linalg.generic
func.func @reads_the_amax(%x: !x) -> !x {
  %amax = fp8.amax %x block = [*, *] : !x
  %e = tensor.empty() : !x
  %y = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (0, 0)>, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %amax : !x, !one) outs(%e : !x) {
  ^bb0(%a: bf16, %m: f32, %o: bf16):
    %0 = arith.truncf %m : f32 to bf16
    %1 = arith.divf %a, %0 : bf16
    linalg.yield %1 : bf16
  } -> !x
  return %y : !x
}

// What reads the same tensor, and what a matmul makes of the pass's codes.

// CHECK-LABEL: func.func @through_a_matmul
// CHECK:       fp8.fusion(
// CHECK-NEXT:  ^bb0
// CHECK-NEXT:    fp8.quantize
// CHECK-NEXT:    fp8.disassemble
// CHECK-NEXT:    fp8.yield
// CHECK:       %[[Y:.+]] = fp8.matmul
// CHECK:       fp8.fusion({{.*}}%[[Y]]
// CHECK:         linalg.generic
func.func @through_a_matmul(%x: !x, %w: !q, %s: !one) -> !x {
  %q = fp8.quantize %x scale(%s, %s : !one, !one) : !x -> !q
  %y = fp8.matmul %q, %w : !q, !q -> !x
  %e = tensor.empty() : !x
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %y : !x, !x) outs(%e : !x) {
  ^bb0(%a: bf16, %b: bf16, %o: bf16):
    %0 = arith.addf %a, %b : bf16
    linalg.yield %0 : bf16
  } -> !x
  return %z : !x
}

// Nor by way of another pass: the third reads the first's tensor, but needs the
// second, which needs the first.

// CHECK-LABEL: func.func @through_another_pass
// CHECK:       fp8.fusion(
// CHECK:         fp8.yield
// CHECK:       %[[Y:.+]] = fp8.matmul
// CHECK:       %[[A:.+]] = fp8.fusion(%[[Y]])
// CHECK:         fp8.amax
// CHECK:         fp8.yield
// CHECK:       %[[R:.+]] = fp8.fusion({{.*}}%[[A]]
// CHECK:         fp8.compute_scale
// CHECK:         fp8.quantize
func.func @through_another_pass(%x: !x, %w: !q, %s: !one) -> !q {
  %q = fp8.quantize %x scale(%s, %s : !one, !one) : !x -> !q
  %y = fp8.matmul %q, %w : !q, !q -> !x
  %amax = fp8.amax %y block = [*, *] : !x
  %t, %ti = fp8.compute_scale %amax format = f8E4M3FN scale_type = f32 : !one
  %r = fp8.quantize %x scale(%t, %ti : !one, !one) : !x -> !q
  return %r : !q
}

// Another tensor of the same extents, and the same elements in others.

// CHECK-LABEL: func.func @another_tensor
// CHECK:       fp8.fusion(%{{[^,]+}}) {
// CHECK:       fp8.fusion(%{{[^,]+}}) {
func.func @another_tensor(%x: !x, %y: !x) -> (!one, !one) {
  %0 = fp8.amax %x block = [*, *] : !x
  %1 = fp8.amax %y block = [*, *] : !x
  return %0, %1 : !one, !one
}

// CHECK-LABEL: func.func @another_domain
// CHECK:       fp8.fusion(
// CHECK:       tensor.collapse_shape
// CHECK:       fp8.fusion(
func.func @another_domain(%x: !x) -> (!one, tensor<1xf32>) {
  %0 = fp8.amax %x block = [*, *] : !x
  %y = tensor.collapse_shape %x [[0, 1]] : !x into tensor<1024xbf16>
  %1 = fp8.amax %y block = [*] : tensor<1024xbf16>
  return %0, %1 : !one, tensor<1xf32>
}

// A row is the domain of one, and of the other what each row reads.

// CHECK-LABEL: func.func @row_of_another
// CHECK:       fp8.fusion(
// CHECK:         fp8.amax
// CHECK:       fp8.fusion(
// CHECK:         linalg.generic
func.func @row_of_another(%r: tensor<32xbf16>, %x: !x) -> (tensor<1xf32>, !x) {
  %0 = fp8.amax %r block = [*] : tensor<32xbf16>
  %e = tensor.empty() : !x
  %z = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %r : !x, tensor<32xbf16>) outs(%e : !x) {
  ^bb0(%a: bf16, %b: bf16, %o: bf16):
    %1 = arith.addf %a, %b : bf16
    linalg.yield %1 : bf16
  } -> !x
  return %0, %z : tensor<1xf32>, !x
}

// A sum over blocks, of which each is in several threads; it is a pass over them.

// CHECK-LABEL: func.func @sum_of_blocks
// CHECK:       %[[A:.+]] = fp8.fusion(
// CHECK-NEXT:  ^bb0
// CHECK-NEXT:    fp8.amax
// CHECK-NEXT:    fp8.yield
// CHECK:       fp8.fusion(%[[A]]) {
// CHECK:         linalg.generic
func.func @sum_of_blocks(%x: !x) -> tensor<32xf32> {
  %zero = arith.constant 0.0 : f32
  %a = fp8.amax %x block = [1, 16] : !x
  %e = tensor.empty() : tensor<32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<32xf32>) -> tensor<32xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%a : tensor<32x2xf32>) outs(%z : tensor<32xf32>) {
  ^bb0(%b: f32, %s: f32):
    %1 = arith.addf %s, %b : f32
    linalg.yield %1 : f32
  } -> tensor<32xf32>
  return %0 : tensor<32xf32>
}

// A scale of two tensors, of which the second is made of the first, is computed
// before both.

// CHECK-LABEL: func.func @shared_scale
// CHECK:       fp8.compute_scale
// CHECK:       fp8.fusion(
// CHECK:         fp8.quantize
// CHECK:       %[[Y:.+]] = fp8.matmul
// CHECK:       fp8.fusion(%[[Y]]
// CHECK:         fp8.quantize
func.func @shared_scale(%x: !x, %w: !q, %amax: !one) -> (!q, !q) {
  %s, %si = fp8.compute_scale %amax format = f8E4M3FN scale_type = f32 : !one
  %e = tensor.empty() : !x
  %z = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !x) outs(%e : !x) {
  ^bb0(%a: bf16, %o: bf16):
    %0 = arith.negf %a : bf16
    linalg.yield %0 : bf16
  } -> !x
  %q = fp8.quantize %z scale(%s, %si : !one, !one) : !x -> !q
  %y = fp8.matmul %q, %w : !q, !q -> !x
  %r = fp8.quantize %y scale(%s, %si : !one, !one) : !x -> !q
  return %q, %r : !q, !q
}

// What is read from the state after something was kept there: the order of
// effects stays, and the second cast is behind them. A scale is the same all
// through a step.

// CHECK-LABEL: func.func @order_of_effects
// CHECK:       %[[S:.+]], %{{.+}} = fp8.read_scale
// CHECK:       %[[R:.+]]:2 = fp8.fusion(
// CHECK:         fp8.amax
// CHECK:         fp8.quantize
// CHECK:       fp8.store_cached
// CHECK-NEXT:  fp8.record_amax
// CHECK-NEXT:  %[[P:.+]] = fp8.load_cached
// CHECK-NEXT:  %{{.+}}, %[[T:.+]] = fp8.disassemble %[[P]]
// CHECK-NEXT:  fp8.fusion(%{{.+}}, %[[T]])
// CHECK-NEXT:  ^bb0
// CHECK-NEXT:    fp8.quantize
func.func @order_of_effects(%x: !x, %state: !fp8.state, %slot: index) -> !q {
  %amax = fp8.amax %x block = [*, *] : !x
  %s, %si = fp8.read_scale %state[%slot] : !one
  %q = fp8.quantize %x scale(%s, %si : !one, !one) : !x -> !q
  fp8.store_cached %q, %state[%slot] : !q
  fp8.record_amax %amax, %state[%slot] : !one
  %p = fp8.load_cached %state[%slot] : !q
  %codes, %t = fp8.disassemble %p : !q
  %r = fp8.quantize %x scale(%t, %t : !one, !one) : !x -> !q
  return %r : !q
}

// A loop between two readers of a tensor, which needs the first.

// CHECK-LABEL: func.func @through_a_loop
// CHECK:       fp8.fusion(
// CHECK:         fp8.amax
// CHECK:         fp8.yield
// CHECK:       %[[S:.+]] = scf.for
// CHECK:       fp8.fusion({{.*}}%[[S]]
// CHECK:         fp8.quantize
func.func @through_a_loop(%x: !x, %n: index) -> !q {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %amax = fp8.amax %x block = [*, *] : !x
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%a = %amax) -> !one {
    %b = tensor.extract %amax[%c0, %c0] : !one
    %c = tensor.insert %b into %a[%c0, %c0] : !one
    scf.yield %c : !one
  }
  %q = fp8.quantize %x scale(%s, %s : !one, !one) : !x -> !q
  return %q : !q
}

// Codes are computed in the pass, but their factors in the other order are not:
// they come from elsewhere.

// CHECK-LABEL: func.func @given_factors
// CHECK:       %[[R:.+]] = fp8.fusion(
// CHECK:         fp8.quantize
// CHECK:         fp8.yield %{{.+}} : tensor<32x32xf8E4M3FN>
// CHECK:       %[[Q:.+]] = fp8.assemble %[[R]]
// CHECK:       fp8.transpose %[[Q]]
func.func @given_factors(%x: !x, %s: tensor<32x2xf32>) -> !fp8.scaled<32x32xf8E4M3FN, block = [16, 1], scale = f32> {
  %q = fp8.quantize %x scale(%s, %s : tensor<32x2xf32>, tensor<32x2xf32>) : !x -> !fp8.scaled<32x32xf8E4M3FN, block = [1, 16], scale = f32>
  %t = fp8.transpose %q permutation = [1, 0] : !fp8.scaled<32x32xf8E4M3FN, block = [1, 16], scale = f32>
  return %t : !fp8.scaled<32x32xf8E4M3FN, block = [16, 1], scale = f32>
}

// Eleven tensors.

// CHECK-LABEL: func.func @eleven
// CHECK:       fp8.fusion(
// CHECK-COUNT-1: linalg.generic
// CHECK:       fp8.fusion(
// CHECK-COUNT-1: linalg.generic
func.func @eleven(%a: !f, %b: !f, %c: !f, %d: !f, %e: !f, %f: !f, %g: !f, %h: !f, %i: !f, %j: !f) -> !f {
  %o = tensor.empty() : !f
  %0 = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%a, %b, %c, %d, %e, %f : !f, !f, !f, !f, !f, !f) outs(%o : !f) {
  ^bb0(%0: f32, %1: f32, %2: f32, %3: f32, %4: f32, %5: f32, %6: f32):
    %7 = arith.addf %0, %1 : f32
    %8 = arith.addf %7, %2 : f32
    %9 = arith.addf %8, %3 : f32
    %10 = arith.addf %9, %4 : f32
    %11 = arith.addf %10, %5 : f32
    linalg.yield %11 : f32
  } -> !f
  %1 = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%0, %g, %h, %i, %j : !f, !f, !f, !f, !f) outs(%o : !f) {
  ^bb0(%2: f32, %3: f32, %4: f32, %5: f32, %6: f32, %7: f32):
    %8 = arith.addf %2, %3 : f32
    %9 = arith.addf %8, %4 : f32
    %10 = arith.addf %9, %5 : f32
    %11 = arith.addf %10, %6 : f32
    linalg.yield %11 : f32
  } -> !f
  return %1 : !f
}

// What waits for the sum of a column of many rows begins another, which reads the
// tensor again.

// CHECK-LABEL: func.func @waits_for_columns
// CHECK-SAME:  %[[X:.+]]: tensor<128x32xf32>
// CHECK:       %[[SUM:.+]] = fp8.fusion(%[[X]]) {
// CHECK:         linalg.generic {{.+}} iterator_types = ["reduction", "parallel"]
// CHECK:         fp8.yield %{{.+}} : tensor<32xf32>
// CHECK:       fp8.fusion(%[[X]], %[[SUM]]) {
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel", "parallel"]
// CHECK:         fp8.yield %{{.+}} : tensor<128x32xf32>
func.func @waits_for_columns(%x: tensor<128x32xf32>) -> tensor<128x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<32xf32>) -> tensor<32xf32>
  %sum = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<128x32xf32>) outs(%z : tensor<32xf32>) {
  ^bb0(%a: f32, %s: f32):
    %0 = arith.addf %s, %a : f32
    linalg.yield %0 : f32
  } -> tensor<32xf32>
  %f = tensor.empty() : tensor<128x32xf32>
  %y = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %sum : tensor<128x32xf32>, tensor<32xf32>) outs(%f : tensor<128x32xf32>) {
  ^bb0(%a: f32, %s: f32, %o: f32):
    %0 = arith.subf %a, %s : f32
    linalg.yield %0 : f32
  } -> tensor<128x32xf32>
  return %y : tensor<128x32xf32>
}

// So does what is scaled by the amaxes of columns.

// CHECK-LABEL: func.func @cast_by_columns
// CHECK-SAME:  %[[X:.+]]: tensor<128x32xbf16>
// CHECK:       %[[M:.+]] = fp8.fusion(%[[X]]) {
// CHECK-NEXT:  ^bb0
// CHECK-NEXT:    fp8.amax %{{.+}} block = [*, 1]
// CHECK-NEXT:    fp8.yield
// CHECK:       %[[S:.+]], %[[SI:.+]] = fp8.compute_scale %[[M]]
// CHECK:       fp8.fusion(%[[X]], %[[S]], %[[SI]]) {
// CHECK-NEXT:  ^bb0
// CHECK-NEXT:    fp8.quantize
func.func @cast_by_columns(%x: tensor<128x32xbf16>) -> !fp8.scaled<128x32xf8E4M3FN, block = [*, 1], scale = f32> {
  %m = fp8.amax %x block = [*, 1] : tensor<128x32xbf16>
  %s, %si = fp8.compute_scale %m format = f8E4M3FN scale_type = f32 : tensor<1x32xf32>
  %q = fp8.quantize %x scale(%s, %si : tensor<1x32xf32>, tensor<1x32xf32>) : tensor<128x32xbf16> -> !fp8.scaled<128x32xf8E4M3FN, block = [*, 1], scale = f32>
  return %q : !fp8.scaled<128x32xf8E4M3FN, block = [*, 1], scale = f32>
}

// What is computed of the sums of many rows alone stands in no pass over the tensor.

// CHECK-LABEL: func.func @mean_of_columns
// CHECK:       %[[SUM:.+]] = fp8.fusion(
// CHECK:         fp8.yield %{{.+}} : tensor<32xf32>
// CHECK:       fp8.fusion(%[[SUM]]) {
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel"]
func.func @mean_of_columns(%x: tensor<128x32xf32>) -> tensor<32xf32> {
  %zero = arith.constant 0.0 : f32
  %mean = arith.constant 7.8125e-3 : f32
  %e = tensor.empty() : tensor<32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<32xf32>) -> tensor<32xf32>
  %sum = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%x : tensor<128x32xf32>) outs(%z : tensor<32xf32>) {
  ^bb0(%a: f32, %s: f32):
    %0 = arith.addf %s, %a : f32
    linalg.yield %0 : f32
  } -> tensor<32xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(j) -> (j)>, affine_map<(j) -> (j)>], iterator_types = ["parallel"]} ins(%sum : tensor<32xf32>) outs(%e : tensor<32xf32>) {
  ^bb0(%s: f32, %o: f32):
    %0 = arith.mulf %s, %mean : f32
    linalg.yield %0 : f32
  } -> tensor<32xf32>
  return %y : tensor<32xf32>
}

//===----------------------------------------------------------------------===//
// No pass: reductions that it does not know while it passes
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @batches
func.func @batches(%x: tensor<4x8x32xf32>) -> tensor<8x32xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x32xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
  %0 = linalg.generic {indexing_maps = [affine_map<(b, i, j) -> (b, i, j)>, affine_map<(b, i, j) -> (i, j)>], iterator_types = ["reduction", "parallel", "parallel"]} ins(%x : tensor<4x8x32xf32>) outs(%z : tensor<8x32xf32>) {
  ^bb0(%a: f32, %s: f32):
    %1 = arith.addf %s, %a : f32
    linalg.yield %1 : f32
  } -> tensor<8x32xf32>
  return %0 : tensor<8x32xf32>
}

// CHECK-LABEL: func.func @amax_of_columns
func.func @amax_of_columns(%x: !x) -> tensor<1x1xf32> {
  %0 = fp8.amax %x block = [*, 32] : !x
  return %0 : tensor<1x1xf32>
}

// CHECK-LABEL: func.func @sum_of_all
func.func @sum_of_all(%x: !f) -> tensor<f32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<f32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<f32>) -> tensor<f32>
  %0 = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> ()>], iterator_types = ["reduction", "reduction"]} ins(%x : !f) outs(%z : tensor<f32>) {
  ^bb0(%a: f32, %s: f32):
    %1 = arith.addf %s, %a : f32
    linalg.yield %1 : f32
  } -> tensor<f32>
  return %0 : tensor<f32>
}

// Blocks: of several whole rows, of too few columns, of too many, of a number of
// them that lanes cannot have, of batches.

// CHECK-LABEL: func.func @blocks
func.func @blocks(%x: !x, %y: tensor<8x1024xf32>, %b: tensor<4x8x32xf32>) -> (tensor<16x1xf32>, tensor<32x8xf32>, tensor<8x4xf32>, tensor<8x22xf32>, tensor<2x8x1xf32>) {
  %0 = fp8.amax %x block = [2, *] : !x
  %1 = fp8.amax %x block = [1, 4] : !x
  %2 = fp8.amax %y block = [1, 256] : tensor<8x1024xf32>
  %3 = fp8.amax %y block = [1, 48] : tensor<8x1024xf32>
  %4 = fp8.amax %b block = [2, 1, 32] : tensor<4x8x32xf32>
  return %0, %1, %2, %3, %4 : tensor<16x1xf32>, tensor<32x8xf32>, tensor<8x4xf32>, tensor<8x22xf32>, tensor<2x8x1xf32>
}

// What is added to is not known to be the same for all threads.

// CHECK-LABEL: func.func @starts_with_a_tensor
func.func @starts_with_a_tensor(%x: !f, %z: tensor<32xf32>) -> tensor<32xf32> {
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : !f) outs(%z : tensor<32xf32>) {
  ^bb0(%a: f32, %s: f32):
    %1 = arith.addf %s, %a : f32
    linalg.yield %1 : f32
  } -> tensor<32xf32>
  return %0 : tensor<32xf32>
}

// CHECK-LABEL: func.func @starts_with_a_scalar
func.func @starts_with_a_scalar(%x: !f, %start: f32) -> tensor<32xf32> {
  %e = tensor.empty() : tensor<32xf32>
  %z = linalg.fill ins(%start : f32) outs(%e : tensor<32xf32>) -> tensor<32xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : !f) outs(%z : tensor<32xf32>) {
  ^bb0(%a: f32, %s: f32):
    %1 = arith.addf %s, %a : f32
    linalg.yield %1 : f32
  } -> tensor<32xf32>
  return %0 : tensor<32xf32>
}

// The order of the parts is free for sums and maxima in f32 alone.

// CHECK-LABEL: func.func @other_combiners
func.func @other_combiners(%x: !f, %y: !x) -> (tensor<32xf32>, tensor<32xbf16>, tensor<32xf32>) {
  %one = arith.constant 1.0 : f32
  %e = tensor.empty() : tensor<32xf32>
  %z = linalg.fill ins(%one : f32) outs(%e : tensor<32xf32>) -> tensor<32xf32>
  %0 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : !f) outs(%z : tensor<32xf32>) {
  ^bb0(%a: f32, %s: f32):
    %5 = arith.mulf %s, %a : f32
    linalg.yield %5 : f32
  } -> tensor<32xf32>
  %zero = arith.constant 0.0 : bf16
  %f = tensor.empty() : tensor<32xbf16>
  %v = linalg.fill ins(%zero : bf16) outs(%f : tensor<32xbf16>) -> tensor<32xbf16>
  %1 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%y : !x) outs(%v : tensor<32xbf16>) {
  ^bb0(%a: bf16, %s: bf16):
    %5 = arith.addf %s, %a : bf16
    linalg.yield %5 : bf16
  } -> tensor<32xbf16>
  %2 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : !f) outs(%z : tensor<32xf32>) {
  ^bb0(%a: f32, %s: f32):
    %5 = arith.mulf %s, %a : f32
    %6 = arith.addf %s, %5 : f32
    linalg.yield %6 : f32
  } -> tensor<32xf32>
  return %0, %1, %2 : tensor<32xf32>, tensor<32xbf16>, tensor<32xf32>
}

//===----------------------------------------------------------------------===//
// No pass: casts
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @unresolved
func.func @unresolved(%x: !x) -> !q {
  %q = fp8.quantize %x recipe(#fp8.current) : !x -> !q
  return %q : !q
}

// CHECK-LABEL: func.func @four_dimensions
func.func @four_dimensions(%x: tensor<2x3x4x8xf32>) -> tensor<1x1x1x1xf32> {
  %0 = fp8.amax %x block = [*, *, *, *] : tensor<2x3x4x8xf32>
  return %0 : tensor<1x1x1x1xf32>
}

// A transpose of what was there already is no work of its own.

// CHECK-LABEL: func.func @transpose_alone
func.func @transpose_alone(%q: !q) -> !q {
  %0 = fp8.transpose %q permutation = [1, 0] : !q
  return %0 : !q
}

//===----------------------------------------------------------------------===//
// No pass: bodies
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @double
func.func @double(%x: !f) -> !f {
  %e = tensor.empty() : !f
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !f) outs(%e : !f) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.extf %a : f32 to f64
    %1 = math.exp %0 : f64
    %2 = arith.truncf %1 : f64 to f32
    linalg.yield %2 : f32
  } -> !f
  return %y : !f
}

// CHECK-LABEL: func.func @codes
func.func @codes(%x: tensor<32x32xf8E4M3FN>) -> !f {
  %e = tensor.empty() : !f
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<32x32xf8E4M3FN>) outs(%e : !f) {
  ^bb0(%a: f8E4M3FN, %o: f32):
    %0 = arith.extf %a : f8E4M3FN to f32
    linalg.yield %0 : f32
  } -> !f
  return %y : !f
}

// Functions that kernels do not have: loops do.

// CHECK-LABEL: func.func @powf
func.func @powf(%x: !f) -> !f {
  %e = tensor.empty() : !f
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !f) outs(%e : !f) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.powf %a, %a : f32
    linalg.yield %0 : f32
  } -> !f
  return %y : !f
}

// CHECK-LABEL: func.func @tan
func.func @tan(%x: !f) -> !f {
  %e = tensor.empty() : !f
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !f) outs(%e : !f) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.tan %a : f32
    linalg.yield %0 : f32
  } -> !f
  return %y : !f
}

// CHECK-LABEL: func.func @sinh
func.func @sinh(%x: !f) -> !f {
  %e = tensor.empty() : !f
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !f) outs(%e : !f) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.sinh %a : f32
    linalg.yield %0 : f32
  } -> !f
  return %y : !f
}

// CHECK-LABEL: func.func @asinh
func.func @asinh(%x: !f) -> !f {
  %e = tensor.empty() : !f
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !f) outs(%e : !f) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.asinh %a : f32
    linalg.yield %0 : f32
  } -> !f
  return %y : !f
}

// Where an element is, is not known to the body.

// CHECK-LABEL: func.func @index
func.func @index(%x: !f) -> !f {
  %e = tensor.empty() : !f
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !f) outs(%e : !f) {
  ^bb0(%a: f32, %o: f32):
    %0 = linalg.index 1 : index
    %1 = arith.index_cast %0 : index to i32
    %2 = arith.sitofp %1 : i32 to f32
    %3 = arith.addf %a, %2 : f32
    linalg.yield %3 : f32
  } -> !f
  return %y : !f
}

// CHECK-LABEL: func.func @branch
func.func @branch(%x: !f) -> !f {
  %e = tensor.empty() : !f
  %zero = arith.constant 0.0 : f32
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !f) outs(%e : !f) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.cmpf ogt, %a, %zero : f32
    %1 = scf.if %0 -> f32 {
      %2 = math.exp %a : f32
      scf.yield %2 : f32
    } else {
      scf.yield %zero : f32
    }
    linalg.yield %1 : f32
  } -> !f
  return %y : !f
}

// Elements by another rule than one for each.

// CHECK-LABEL: func.func @every_other
func.func @every_other(%x: tensor<32x64xf32>) -> !f {
  %e = tensor.empty() : !f
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j * 2)>, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<32x64xf32>) outs(%e : !f) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  } -> !f
  return %y : !f
}

// Elements that another thread has.

// CHECK-LABEL: func.func @permuted
// CHECK:       linalg.generic
func.func @permuted(%x: !x) -> !x {
  %e = tensor.empty() : !x
  %z = linalg.generic {indexing_maps = [#t, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !x) outs(%e : !x) {
  ^bb0(%a: bf16, %o: bf16):
    %0 = arith.negf %a : bf16
    linalg.yield %0 : bf16
  } -> !x
  return %z : !x
}

// CHECK-LABEL: func.func @permuted_and_not
// CHECK:       %[[Y:.+]] = fp8.fusion(
// CHECK:         fp8.yield
// CHECK:       linalg.generic {{.+}} ins(%[[Y]], %[[Y]] :
func.func @permuted_and_not(%x: !x) -> !x {
  %e = tensor.empty() : !x
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !x) outs(%e : !x) {
  ^bb0(%a: bf16, %o: bf16):
    %0 = arith.negf %a : bf16
    linalg.yield %0 : bf16
  } -> !x
  %z = linalg.generic {indexing_maps = [#id, #t, #id], iterator_types = ["parallel", "parallel"]} ins(%y, %y : !x, !x) outs(%e : !x) {
  ^bb0(%a: bf16, %b: bf16, %o: bf16):
    %0 = arith.addf %a, %b : bf16
    linalg.yield %0 : bf16
  } -> !x
  return %z : !x
}

// A domain that no tensor has all elements of: products, and broadcasts.

// CHECK-LABEL: func.func @contraction
func.func @contraction(%x: !x, %y: !x) -> !f {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !f
  %z = linalg.fill ins(%zero : f32) outs(%e : !f) -> !f
  %0 = linalg.generic {indexing_maps = [affine_map<(i, j, k) -> (i, k)>, affine_map<(i, j, k) -> (j, k)>, affine_map<(i, j, k) -> (i, j)>], iterator_types = ["parallel", "parallel", "reduction"]} ins(%x, %y : !x, !x) outs(%z : !f) {
  ^bb0(%a: bf16, %b: bf16, %s: f32):
    %1 = arith.extf %a : bf16 to f32
    %2 = arith.extf %b : bf16 to f32
    %3 = arith.mulf %1, %2 : f32
    %4 = arith.addf %s, %3 : f32
    linalg.yield %4 : f32
  } -> !f
  return %0 : !f
}

// CHECK-LABEL: func.func @outer_sum
func.func @outer_sum(%r: tensor<32xf32>, %c: tensor<32xf32>) -> !f {
  %e = tensor.empty() : !f
  %z = linalg.generic {indexing_maps = [#row, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%r, %c : tensor<32xf32>, tensor<32xf32>) outs(%e : !f) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.addf %a, %b : f32
    linalg.yield %0 : f32
  } -> !f
  return %z : !f
}

// What is there is read.

// CHECK-LABEL: func.func @in_place
func.func @in_place(%x: !f, %y: !f) -> !f {
  %z = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !f) outs(%y : !f) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.addf %a, %o : f32
    linalg.yield %0 : f32
  } -> !f
  return %z : !f
}

// CHECK-LABEL: func.func @memory
func.func @memory(%x: memref<32x32xf32>, %y: memref<32x32xf32>) {
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : memref<32x32xf32>) outs(%y : memref<32x32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = arith.negf %a : f32
    linalg.yield %0 : f32
  }
  return
}
