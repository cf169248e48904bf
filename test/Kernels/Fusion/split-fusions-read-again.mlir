// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-split-fusions %s 2>/dev/null | FileCheck %s --implicit-check-not="fp8.fusion("

// What a kernel stores is read by the next one, rather than made again of what
// is longer.

#id = affine_map<(i, j) -> (i, j)>
!x = tensor<8192x14336xbf16>
!row = tensor<8192x1xf32>
!codes = tensor<8192x14336xf8E4M3FN>
!q = !fp8.scaled<8192x14336xf8E4M3FN, block = [1, *], scale = f32>

// Two tensors of three; each is quantized from its own bytes.

// CHECK-LABEL: func.func @two_of_three
// CHECK-SAME:  %[[A:.+]]: tensor<8192x14336xbf16>, %[[B:.+]]: tensor<8192x14336xbf16>, %[[C:.+]]: tensor<8192x14336xbf16>
// CHECK:       %[[R:.+]]:4 = fp8.fusion(%[[A]], %[[C]], %[[B]]) {
// CHECK-COUNT-2: linalg.generic
// CHECK:       fp8.fusion(%[[R]]#0) {
// CHECK-NOT:     linalg.generic
// CHECK:         fp8.quantize
// CHECK:       fp8.fusion(%[[R]]#2) {
// CHECK-NOT:     linalg.generic
// CHECK:         fp8.quantize
// The column's maxima, of parts.
// CHECK:       fp8.fusion(%[[R]]#1)
// CHECK:       fp8.fusion(%[[R]]#3)
func.func @two_of_three(%a: !x, %b: !x, %c: !x) -> (!x, tensor<1x14336xf32>, !codes, !row, !x, tensor<1x14336xf32>, !codes, !row) {
  %0:8 = fp8.fusion(%a, %b, %c) {
  ^bb0(%x: !x, %y: !x, %z: !x):
    %e = tensor.empty() : !x
    %p = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %z : !x, !x) outs(%e : !x) {
    ^bb1(%u: bf16, %v: bf16, %_: bf16):
      %w = arith.mulf %u, %v : bf16
      linalg.yield %w : bf16
    } -> !x
    %q = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%y, %z : !x, !x) outs(%e : !x) {
    ^bb1(%u: bf16, %v: bf16, %_: bf16):
      %w = arith.mulf %u, %v : bf16
      linalg.yield %w : bf16
    } -> !x
    %p_column = fp8.amax %p block = [*, 1] : !x
    %q_column = fp8.amax %q block = [*, 1] : !x
    %p_amax = fp8.amax %p block = [1, *] : !x
    %p_scale, %p_inv = fp8.compute_scale %p_amax format = f8E4M3FN scale_type = f32 : !row
    %p_q = fp8.quantize %p scale(%p_scale, %p_inv : !row, !row) : !x -> !q
    %p_codes, %p_factors = fp8.disassemble %p_q : !q
    %q_amax = fp8.amax %q block = [1, *] : !x
    %q_scale, %q_inv = fp8.compute_scale %q_amax format = f8E4M3FN scale_type = f32 : !row
    %q_q = fp8.quantize %q scale(%q_scale, %q_inv : !row, !row) : !x -> !q
    %q_codes, %q_factors = fp8.disassemble %q_q : !q
    fp8.yield %p, %p_column, %p_codes, %p_factors, %q, %q_column, %q_codes, %q_factors : !x, tensor<1x14336xf32>, !codes, !row, !x, tensor<1x14336xf32>, !codes, !row
  } : (!x, !x, !x) -> (!x, tensor<1x14336xf32>, !codes, !row, !x, tensor<1x14336xf32>, !codes, !row)
  return %0#0, %0#1, %0#2, %0#3, %0#4, %0#5, %0#6, %0#7 : !x, tensor<1x14336xf32>, !codes, !row, !x, tensor<1x14336xf32>, !codes, !row
}

// What it is made of is shorter than it: made again.

// CHECK-LABEL: func.func @shorter
// CHECK-SAME:  %[[A:.+]]: tensor<8192x14336xbf16>
// CHECK:       fp8.fusion(%[[A]]) {
// CHECK-NOT:     fp8.quantize
// CHECK:       fp8.fusion(%[[A]]) {
// CHECK:         fp8.quantize
// CHECK:       fp8.fusion(
!wide = tensor<8192x14336xf32>
func.func @shorter(%a: !x) -> (!wide, tensor<1x14336xf32>, !codes, !row) {
  %0:4 = fp8.fusion(%a) {
  ^bb0(%x: !x):
    %e = tensor.empty() : !wide
    %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !x) outs(%e : !wide) {
    ^bb1(%u: bf16, %_: f32):
      %v = arith.extf %u : bf16 to f32
      %w = arith.mulf %v, %v : f32
      linalg.yield %w : f32
    } -> !wide
    %column = fp8.amax %p block = [*, 1] : !wide
    %amax = fp8.amax %p block = [1, *] : !wide
    %scale, %inv = fp8.compute_scale %amax format = f8E4M3FN scale_type = f32 : !row
    %q = fp8.quantize %p scale(%scale, %inv : !row, !row) : !wide -> !q
    %codes, %factors = fp8.disassemble %q : !q
    fp8.yield %p, %column, %codes, %factors : !wide, tensor<1x14336xf32>, !codes, !row
  } : (!x) -> (!wide, tensor<1x14336xf32>, !codes, !row)
  return %0#0, %0#1, %0#2, %0#3 : !wide, tensor<1x14336xf32>, !codes, !row
}
