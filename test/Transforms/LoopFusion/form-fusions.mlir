// RUN: fp8-opt %s --fp8-form-fusions --canonicalize | FileCheck %s --implicit-check-not="fp8.fusion("

// What reads one tensor element by element reads it once: a cast, its amax, and
// a copy in the other order. A factor for all is known outside.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
#first = affine_map<(i, j) -> (i, 0)>
!x = tensor<32x64xbf16>
!f = tensor<32x64xf32>
!one = tensor<1x1xf32>
!q = !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
!t = !fp8.scaled<64x32xf8E4M3FN, block = [*, *], scale = f32>

// CHECK-LABEL: func.func @delayed
// CHECK-SAME:  %[[X:.+]]: tensor<32x64xbf16>, %[[S:.+]]: tensor<1x1xf32>, %[[SI:.+]]: tensor<1x1xf32>
// CHECK-NEXT:  %[[R:.+]]:3 = fp8.fusion(%[[X]], %[[S]], %[[SI]]) {
// CHECK-NEXT:  ^bb0(%[[A:.+]]: tensor<32x64xbf16>, %[[B:.+]]: tensor<1x1xf32>, %[[C:.+]]: tensor<1x1xf32>):
// CHECK-NEXT:    %[[Q:.+]] = fp8.quantize %[[A]] scale(%[[B]], %[[C]] :
// CHECK-NEXT:    %[[AMAX:.+]] = fp8.amax %[[A]] block = [*, *]
// CHECK-NEXT:    %[[T:.+]] = fp8.transpose %[[Q]] permutation = [1, 0]
// CHECK-NEXT:    %[[CODES:.+]], %{{.+}} = fp8.disassemble %[[Q]]
// CHECK-NEXT:    %[[TURNED:.+]], %{{.+}} = fp8.disassemble %[[T]]
// CHECK-NEXT:    fp8.yield %[[CODES]], %[[AMAX]], %[[TURNED]]
// CHECK-NEXT:  } : (tensor<32x64xbf16>, tensor<1x1xf32>, tensor<1x1xf32>) -> (tensor<32x64xf8E4M3FN>, tensor<1x1xf32>, tensor<64x32xf8E4M3FN>)
// CHECK-DAG:   %[[RQ:.+]] = fp8.assemble %[[R]]#0, %[[SI]] :
// CHECK-DAG:   %[[RT:.+]] = fp8.assemble %[[R]]#2, %[[SI]] :
// CHECK:       return %[[RQ]], %[[R]]#1, %[[RT]]
func.func @delayed(%x: !x, %s: !one, %si: !one) -> (!q, !one, !t) {
  %q = fp8.quantize %x scale(%s, %si : !one, !one) : !x -> !q
  %amax = fp8.amax %x block = [*, *] : !x
  %t = fp8.transpose %q permutation = [1, 0] : !q
  return %q, %amax, %t : !q, !one, !t
}

// A tensor is scaled by its own amax only once that is known: two passes. The
// second computes the scale, in the kernel that quantizes with it.

// CHECK-LABEL: func.func @current
// CHECK-SAME:  %[[X:.+]]: tensor<32x64xbf16>
// CHECK-NEXT:  %[[AMAX:.+]] = fp8.fusion(%[[X]]) {
// CHECK-NEXT:  ^bb0(%[[A:.+]]: tensor<32x64xbf16>):
// CHECK-NEXT:    %[[M:.+]] = fp8.amax %[[A]] block = [*, *]
// CHECK-NEXT:    fp8.yield %[[M]]
// CHECK-NEXT:  }
// CHECK-NEXT:  %[[R:.+]]:2 = fp8.fusion(%[[AMAX]], %[[X]]) {
// CHECK-NEXT:  ^bb0(%[[M:.+]]: tensor<1x1xf32>, %[[A:.+]]: tensor<32x64xbf16>):
// CHECK-NEXT:    %[[S:.+]], %[[SI:.+]] = fp8.compute_scale %[[M]]
// CHECK-NEXT:    %[[Q:.+]] = fp8.quantize %[[A]] scale(%[[S]], %[[SI]] :
// CHECK-NEXT:    %[[CODES:.+]], %{{.+}} = fp8.disassemble %[[Q]]
// CHECK-NEXT:    fp8.yield %[[CODES]], %[[SI]]
// CHECK-NEXT:  }
// CHECK-NEXT:  %[[RQ:.+]] = fp8.assemble %[[R]]#0, %[[R]]#1
// CHECK-NEXT:  return %[[RQ]]
func.func @current(%x: !x) -> !q {
  %amax = fp8.amax %x block = [*, *] : !x
  %s, %si = fp8.compute_scale %amax format = f8E4M3FN scale_type = f32 : !one
  %q = fp8.quantize %x scale(%s, %si : !one, !one) : !x -> !q
  return %q : !q
}

// The amax of a block is known where the block is: one pass. Factors leave with
// their codes.

// CHECK-LABEL: func.func @blocks
// CHECK-SAME:  %[[X:.+]]: tensor<256x256xbf16>
// CHECK-NEXT:  %[[R:.+]]:2 = fp8.fusion(%[[X]]) {
// CHECK:         %[[AMAX:.+]] = fp8.amax %{{.+}} block = [1, 128]
// CHECK-NEXT:    %[[S:.+]], %[[SI:.+]] = fp8.compute_scale %[[AMAX]]
// CHECK-NEXT:    %[[Q:.+]] = fp8.quantize %{{.+}} scale(%[[S]], %[[SI]] :
// CHECK-NEXT:    %[[CODES:.+]], %{{.+}} = fp8.disassemble %[[Q]]
// CHECK-NEXT:    fp8.yield %[[CODES]], %[[SI]] : tensor<256x256xf8E4M3FN>, tensor<256x2xf32>
// CHECK:       fp8.assemble %[[R]]#0, %[[R]]#1
func.func @blocks(%x: tensor<256x256xbf16>) -> !fp8.scaled<256x256xf8E4M3FN, block = [1, 128], scale = f32> {
  %amax = fp8.amax %x block = [1, 128] : tensor<256x256xbf16>
  %s, %si = fp8.compute_scale %amax format = f8E4M3FN scale_type = f32 : tensor<256x2xf32>
  %q = fp8.quantize %x scale(%s, %si : tensor<256x2xf32>, tensor<256x2xf32>) : tensor<256x256xbf16> -> !fp8.scaled<256x256xf8E4M3FN, block = [1, 128], scale = f32>
  return %q : !fp8.scaled<256x256xf8E4M3FN, block = [1, 128], scale = f32>
}

// Blocks of rows and blocks of columns of one tensor; factors that are
// transposed come out of the body transposed.

// CHECK-LABEL: func.func @blocks_both_ways
// CHECK:       %[[R:.+]]:4 = fp8.fusion(%{{.+}}) {
// CHECK:         %[[RM:.+]] = fp8.amax %{{.+}} block = [1, 128]
// CHECK-NEXT:    %[[RS:.+]], %[[RSI:.+]] = fp8.compute_scale %[[RM]]
// CHECK-NEXT:    %[[RQ:.+]] = fp8.quantize
// CHECK-NEXT:    %[[CM:.+]] = fp8.amax %{{.+}} block = [128, 1]
// CHECK-NEXT:    %[[CS:.+]], %[[CSI:.+]] = fp8.compute_scale %[[CM]]
// CHECK-NEXT:    %[[CQ:.+]] = fp8.quantize
// CHECK-NEXT:    %[[T:.+]] = fp8.transpose %[[CQ]] permutation = [1, 0]
// CHECK-NEXT:    %[[CODES:.+]], %{{.+}} = fp8.disassemble %[[RQ]]
// CHECK-NEXT:    %[[TURNED:.+]], %[[FACTORS:.+]] = fp8.disassemble %[[T]]
// CHECK-NEXT:    fp8.yield %[[CODES]], %[[RSI]], %[[TURNED]], %[[FACTORS]] : tensor<256x256xf8E4M3FN>, tensor<256x2xf32>, tensor<256x256xf8E4M3FN>, tensor<256x2xf32>
func.func @blocks_both_ways(%x: tensor<256x256xbf16>) -> (!fp8.scaled<256x256xf8E4M3FN, block = [1, 128], scale = f32>, !fp8.scaled<256x256xf8E4M3FN, block = [1, 128], scale = f32>) {
  %amax = fp8.amax %x block = [1, 128] : tensor<256x256xbf16>
  %s, %si = fp8.compute_scale %amax format = f8E4M3FN scale_type = f32 : tensor<256x2xf32>
  %q = fp8.quantize %x scale(%s, %si : tensor<256x2xf32>, tensor<256x2xf32>) : tensor<256x256xbf16> -> !fp8.scaled<256x256xf8E4M3FN, block = [1, 128], scale = f32>
  %camax = fp8.amax %x block = [128, 1] : tensor<256x256xbf16>
  %cs, %csi = fp8.compute_scale %camax format = f8E4M3FN scale_type = f32 : tensor<2x256xf32>
  %cq = fp8.quantize %x scale(%cs, %csi : tensor<2x256xf32>, tensor<2x256xf32>) : tensor<256x256xbf16> -> !fp8.scaled<256x256xf8E4M3FN, block = [128, 1], scale = f32>
  %t = fp8.transpose %cq permutation = [1, 0] : !fp8.scaled<256x256xf8E4M3FN, block = [128, 1], scale = f32>
  return %q, %t : !fp8.scaled<256x256xf8E4M3FN, block = [1, 128], scale = f32>, !fp8.scaled<256x256xf8E4M3FN, block = [1, 128], scale = f32>
}

// So is that of a row: its factor is in a result of the shape of rows.

// CHECK-LABEL: func.func @row_wise
// CHECK:       %[[R:.+]]:2 = fp8.fusion(%{{.+}}) {
// CHECK:         fp8.amax %{{.+}} block = [1, *]
// CHECK:         fp8.compute_scale
// CHECK:         fp8.quantize
// CHECK:         fp8.yield %{{.+}}, %{{.+}} : tensor<32x64xf8E4M3FN>, tensor<32x1xf32>
func.func @row_wise(%x: tensor<32x64xbf16>) -> !fp8.scaled<32x64xf8E4M3FN, block = [1, *], scale = f32> {
  %amax = fp8.amax %x block = [1, *] : tensor<32x64xbf16>
  %s, %si = fp8.compute_scale %amax format = f8E4M3FN scale_type = f32 : tensor<32x1xf32>
  %q = fp8.quantize %x scale(%s, %si : tensor<32x1xf32>, tensor<32x1xf32>) : tensor<32x64xbf16> -> !fp8.scaled<32x64xf8E4M3FN, block = [1, *], scale = f32>
  return %q : !fp8.scaled<32x64xf8E4M3FN, block = [1, *], scale = f32>
}

// MXFP8: bytes are factors, too.

// CHECK-LABEL: func.func @exponents
// CHECK:       %[[R:.+]]:2 = fp8.fusion(%{{.+}}) {
// CHECK:         fp8.yield %{{.+}}, %{{.+}} : tensor<32x64xf8E4M3FN>, tensor<32x2xf8E8M0FNU>
func.func @exponents(%x: tensor<32x64xbf16>) -> !fp8.scaled<32x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU> {
  %amax = fp8.amax %x block = [1, 32] : tensor<32x64xbf16>
  %s, %si = fp8.compute_scale %amax format = f8E4M3FN scale_type = f8E8M0FNU : tensor<32x2xf32>
  %q = fp8.quantize %x scale(%s, %si : tensor<32x2xf32>, tensor<32x2xf8E8M0FNU>) : tensor<32x64xbf16> -> !fp8.scaled<32x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
  return %q : !fp8.scaled<32x64xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
}

// Who makes the tensor casts it, and a tensor that only the cast reads is never
// written. What holds results and what is constant is the body's own; scalars
// come in.

// CHECK-LABEL: func.func @producer
// CHECK-SAME:  %[[X:.+]]: tensor<32x64xbf16>, %[[U:.+]]: tensor<32x64xbf16>, %[[FACTOR:.+]]: bf16, %[[S:.+]]: tensor<1x1xf32>, %[[SI:.+]]: tensor<1x1xf32>
// CHECK-NEXT:  %[[R:.+]] = fp8.fusion(%[[X]], %[[U]], %[[FACTOR]], %[[S]], %[[SI]]) {
// CHECK-NEXT:  ^bb0(%[[A:.+]]: tensor<32x64xbf16>, %[[B:.+]]: tensor<32x64xbf16>, %[[F:.+]]: bf16,
// CHECK-DAG:     %[[TWO:.+]] = arith.constant 2.0
// CHECK-DAG:     %[[E:.+]] = tensor.empty()
// CHECK:         %[[H:.+]] = linalg.generic {{.+}} ins(%[[A]], %[[B]] : {{.+}}) outs(%[[E]] :
// CHECK:           arith.mulf %{{.+}}, %[[TWO]]
// CHECK:           arith.mulf %{{.+}}, %[[F]]
// CHECK:         fp8.quantize %[[H]]
// CHECK:         fp8.yield %{{.+}} : tensor<32x64xf8E4M3FN>
// CHECK:       fp8.assemble %[[R]], %[[SI]]
func.func @producer(%x: !x, %u: !x, %factor: bf16, %s: !one, %si: !one) -> !q {
  %two = arith.constant 2.0 : bf16
  %e = tensor.empty() : !x
  %h = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %u : !x, !x) outs(%e : !x) {
  ^bb0(%a: bf16, %b: bf16, %o: bf16):
    %0 = arith.mulf %a, %two : bf16
    %1 = arith.mulf %0, %factor : bf16
    %2 = arith.addf %1, %b : bf16
    linalg.yield %2 : bf16
  } -> !x
  %q = fp8.quantize %h scale(%s, %si : !one, !one) : !x -> !q
  return %q : !q
}

// What someone else reads too is a result: it is there anyway.

// CHECK-LABEL: func.func @used_outside
// CHECK:       %[[R:.+]]:2 = fp8.fusion(
// CHECK:         %[[H:.+]] = linalg.generic
// CHECK:         fp8.quantize %[[H]]
// CHECK:         fp8.yield %[[H]], %{{.+}} : tensor<32x64xbf16>, tensor<32x64xf8E4M3FN>
// CHECK:       call @use(%[[R]]#0)
// CHECK:       call @use(%[[R]]#0)
func.func @used_outside(%x: !x, %s: !one, %si: !one) -> !q {
  %e = tensor.empty() : !x
  %h = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !x) outs(%e : !x) {
  ^bb0(%a: bf16, %o: bf16):
    %0 = arith.negf %a : bf16
    linalg.yield %0 : bf16
  } -> !x
  %q = fp8.quantize %h scale(%s, %si : !one, !one) : !x -> !q
  func.call @use(%h) : (!x) -> ()
  func.call @use(%h) : (!x) -> ()
  return %q : !q
}
func.func private @use(!x)

// So are sums and maxima of rows, and what is computed of them: a softmax is one
// pass, in which the row is held.

// CHECK-LABEL: func.func @softmax
// CHECK:       %[[R:.+]] = fp8.fusion(%{{[^,]+}}) {
// CHECK:         linalg.fill
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel", "reduction"]
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel", "parallel"]
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel", "reduction"]
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel", "parallel"]
// CHECK:         fp8.yield %{{.+}} : tensor<32x64xbf16>
// CHECK:       return %[[R]]
func.func @softmax(%x: !x) -> !x {
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %re = tensor.empty() : tensor<32xf32>
  %lows = linalg.fill ins(%low : f32) outs(%re : tensor<32xf32>) -> tensor<32xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%re : tensor<32xf32>) -> tensor<32xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : !x) outs(%lows : tensor<32xf32>) {
  ^bb0(%a: bf16, %m: f32):
    %0 = arith.extf %a : bf16 to f32
    %1 = arith.maximumf %0, %m : f32
    linalg.yield %1 : f32
  } -> tensor<32xf32>
  %e = tensor.empty() : !f
  %exp = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %max : !x, tensor<32xf32>) outs(%e : !f) {
  ^bb0(%a: bf16, %m: f32, %o: f32):
    %0 = arith.extf %a : bf16 to f32
    %1 = arith.subf %0, %m : f32
    %2 = math.exp %1 : f32
    linalg.yield %2 : f32
  } -> !f
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%exp : !f) outs(%zeros : tensor<32xf32>) {
  ^bb0(%a: f32, %s: f32):
    %0 = arith.addf %s, %a : f32
    linalg.yield %0 : f32
  } -> tensor<32xf32>
  %h = tensor.empty() : !x
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%exp, %sum : !f, tensor<32xf32>) outs(%h : !x) {
  ^bb0(%a: f32, %s: f32, %o: bf16):
    %0 = arith.divf %a, %s : f32
    %1 = arith.truncf %0 : f32 to bf16
    linalg.yield %1 : bf16
  } -> !x
  return %y : !x
}

// What is computed of a row's sum alone, with the sum, before the row reads it.

// CHECK-LABEL: func.func @root_mean_square
// CHECK:       fp8.fusion(%{{.+}}, %{{.+}}) {
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel", "reduction"]
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel"]
// CHECK:           math.rsqrt
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel", "parallel"]
// CHECK:         fp8.yield %{{.+}} : tensor<32x64xbf16>
func.func @root_mean_square(%x: !x, %w: tensor<64xbf16>) -> !x {
  %zero = arith.constant 0.0 : f32
  %re = tensor.empty() : tensor<32xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%re : tensor<32xf32>) -> tensor<32xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : !x) outs(%zeros : tensor<32xf32>) {
  ^bb0(%a: bf16, %s: f32):
    %0 = arith.extf %a : bf16 to f32
    %1 = arith.mulf %0, %0 : f32
    %2 = arith.addf %s, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<32xf32>
  %root = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]} ins(%sum : tensor<32xf32>) outs(%re : tensor<32xf32>) {
  ^bb0(%s: f32, %o: f32):
    %0 = math.rsqrt %s : f32
    linalg.yield %0 : f32
  } -> tensor<32xf32>
  %e = tensor.empty() : !x
  %y = linalg.generic {indexing_maps = [#id, #row, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %root, %w : !x, tensor<32xf32>, tensor<64xbf16>) outs(%e : !x) {
  ^bb0(%a: bf16, %r: f32, %g: bf16, %o: bf16):
    %0 = arith.truncf %r : f32 to bf16
    %1 = arith.mulf %a, %0 : bf16
    %2 = arith.mulf %1, %g : bf16
    linalg.yield %2 : bf16
  } -> !x
  return %y : !x
}

// Functions of the same tensors that do not need each other: both gradients of a
// gate read it once, and each is cast.

// CHECK-LABEL: func.func @siblings
// CHECK:       %[[R:.+]]:2 = fp8.fusion(
// CHECK-COUNT-2: linalg.generic
// CHECK:         fp8.yield %{{.+}}, %{{.+}} : tensor<32x64xf8E4M3FN>, tensor<32x64xf8E4M3FN>
func.func @siblings(%d: !x, %g: !x, %u: !x, %s: !one, %si: !one, %v: !one, %vi: !one) -> (!q, !q) {
  %e = tensor.empty() : !x
  %dg = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%d, %u : !x, !x) outs(%e : !x) {
  ^bb0(%a: bf16, %b: bf16, %o: bf16):
    %0 = arith.mulf %a, %b : bf16
    linalg.yield %0 : bf16
  } -> !x
  %du = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%d, %g : !x, !x) outs(%e : !x) {
  ^bb0(%a: bf16, %b: bf16, %o: bf16):
    %0 = arith.mulf %a, %b : bf16
    linalg.yield %0 : bf16
  } -> !x
  %p = fp8.quantize %dg scale(%s, %si : !one, !one) : !x -> !q
  %q = fp8.quantize %du scale(%v, %vi : !one, !one) : !x -> !q
  return %p, %q : !q, !q
}

// A tensor that is written in the other order, and one of a single value for
// each row.

// CHECK-LABEL: func.func @written_transposed
// CHECK:       fp8.fusion(%{{.+}}, %{{.+}}) {
// CHECK:         fp8.yield %{{.+}} : tensor<64x32xbf16>
func.func @written_transposed(%x: !x, %r: tensor<32x1xf32>) -> tensor<64x32xbf16> {
  %e = tensor.empty() : tensor<64x32xbf16>
  %y = linalg.generic {indexing_maps = [#id, #first, affine_map<(i, j) -> (j, i)>], iterator_types = ["parallel", "parallel"]} ins(%x, %r : !x, tensor<32x1xf32>) outs(%e : tensor<64x32xbf16>) {
  ^bb0(%a: bf16, %b: f32, %o: bf16):
    %0 = arith.truncf %b : f32 to bf16
    %1 = arith.mulf %a, %0 : bf16
    linalg.yield %1 : bf16
  } -> tensor<64x32xbf16>
  return %y : tensor<64x32xbf16>
}

// A cast may stand behind others of other tensors, and what it needs after the
// first of its pass: what stands between moves before all of them.

// CHECK-LABEL: func.func @scale_comes_later
// CHECK:       %[[LATER:.+]] = tensor.from_elements
// CHECK:       %[[R:.+]]:2 = fp8.fusion(
// CHECK:         fp8.amax
// CHECK:         fp8.quantize
func.func @scale_comes_later(%x: !x, %a: f32) -> (!one, !q) {
  %amax = fp8.amax %x block = [*, *] : !x
  %s = tensor.from_elements %a : !one
  %q = fp8.quantize %x scale(%s, %s : !one, !one) : !x -> !q
  return %amax, %q : !one, !q
}

// What uses a result moves behind the pass.

// CHECK-LABEL: func.func @user_between
// CHECK:       %[[R:.+]]:2 = fp8.fusion(
// CHECK:       %[[A:.+]] = tensor.extract %[[R]]#{{[01]}}
// CHECK:       return %[[A]]
func.func @user_between(%x: !x, %s: !one) -> (f32, !q) {
  %c0 = arith.constant 0 : index
  %amax = fp8.amax %x block = [*, *] : !x
  %a = tensor.extract %amax[%c0, %c0] : !one
  %q = fp8.quantize %x scale(%s, %s : !one, !one) : !x -> !q
  return %a, %q : f32, !q
}

// A destination that is not read is none of the tensors.

// CHECK-LABEL: func.func @destination
// CHECK:       fp8.fusion(
// CHECK:         linalg.generic
func.func @destination(%x: !x, %out: !x) -> !x {
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !x) outs(%out : !x) {
  ^bb0(%a: bf16, %o: bf16):
    %0 = arith.negf %a : bf16
    linalg.yield %0 : bf16
  } -> !x
  return %y : !x
}

// What nobody asked for is not computed.

// CHECK-LABEL: func.func @unused
// CHECK-NEXT:  return
func.func @unused(%x: !x) {
  %amax = fp8.amax %x block = [*, *] : !x
  return
}

// Each block of a program by itself; a loop's passes read what comes from around
// it.

// CHECK-LABEL: func.func @loop
// CHECK:       scf.for {{.+}} iter_args(%[[SUM:.+]] =
// CHECK-NEXT:    %[[R:.+]] = fp8.fusion(%[[SUM]], %{{.+}}) {
// CHECK:         scf.yield %[[R]]
func.func @loop(%x: !x, %n: index) -> !x {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : !x
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %x) -> !x {
    %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%sum, %x : !x, !x) outs(%e : !x) {
    ^bb0(%a: bf16, %b: bf16, %o: bf16):
      %0 = arith.addf %a, %b : bf16
      linalg.yield %0 : bf16
    } -> !x
    scf.yield %y : !x
  }
  return %r : !x
}

// CHECK-LABEL: func.func @branch
// CHECK:       scf.if
// CHECK:         %[[Q:.+]] = fp8.fusion(
// CHECK:           fp8.quantize
// CHECK:         fp8.assemble %[[Q]]
// CHECK:       } else {
func.func @branch(%x: !x, %q: !q, %go: i1, %s: !one) -> !q {
  %r = scf.if %go -> !q {
    %new = fp8.quantize %x scale(%s, %s : !one, !one) : !x -> !q
    scf.yield %new : !q
  } else {
    scf.yield %q : !q
  }
  return %r : !q
}

// Extents that are only known at run time come in, as what sizes results.

// CHECK-LABEL: func.func @dynamic
// CHECK-SAME:  %[[X:.+]]: tensor<?x64xbf16>
// CHECK:       %[[M:.+]] = tensor.dim %[[X]]
// CHECK:       fp8.fusion(%[[X]], %[[M]], %{{.+}}, %{{.+}}) {
// CHECK-NEXT:  ^bb0(%{{.+}}: tensor<?x64xbf16>, %[[N:.+]]: index,
// CHECK:         tensor.empty(%[[N]])
// CHECK:         fp8.yield %{{.+}} : tensor<?x64xf8E4M3FN>
func.func @dynamic(%x: tensor<?x64xbf16>, %s: !one, %si: !one) -> !fp8.scaled<?x64xf8E4M3FN, block = [*, *], scale = f32> {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?x64xbf16>
  %e = tensor.empty(%m) : tensor<?x64xbf16>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : tensor<?x64xbf16>) outs(%e : tensor<?x64xbf16>) {
  ^bb0(%a: bf16, %o: bf16):
    %0 = arith.negf %a : bf16
    linalg.yield %0 : bf16
  } -> tensor<?x64xbf16>
  %q = fp8.quantize %y scale(%s, %si : !one, !one) : tensor<?x64xbf16> -> !fp8.scaled<?x64xf8E4M3FN, block = [*, *], scale = f32>
  return %q : !fp8.scaled<?x64xf8E4M3FN, block = [*, *], scale = f32>
}

// Vectors and batches of matrices are domains, too.

// CHECK-LABEL: func.func @vector
// CHECK:       fp8.fusion(
func.func @vector(%x: tensor<64xf32>) -> tensor<1xf32> {
  %amax = fp8.amax %x block = [*] : tensor<64xf32>
  return %amax : tensor<1xf32>
}

// CHECK-LABEL: func.func @batches
// CHECK:       fp8.fusion(
// CHECK:         fp8.amax %{{.+}} block = [1, 1, 32]
// CHECK:         fp8.amax %{{.+}} block = [*, *, *]
func.func @batches(%x: tensor<2x32x64xf32>) -> (tensor<2x32x2xf32>, tensor<1x1x1xf32>) {
  %0 = fp8.amax %x block = [1, 1, 32] : tensor<2x32x64xf32>
  %1 = fp8.amax %x block = [*, *, *] : tensor<2x32x64xf32>
  return %0, %1 : tensor<2x32x2xf32>, tensor<1x1x1xf32>
}

// What is a fusion stays one.

// CHECK-LABEL: func.func @twice
// CHECK:       fp8.fusion(
// CHECK-NEXT:  ^bb0
// CHECK-NEXT:    fp8.amax
// CHECK-NEXT:    fp8.yield
func.func @twice(%x: !x) -> !one {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %1 = fp8.amax %a block = [*, *] : !x
    fp8.yield %1 : !one
  } : (!x) -> !one
  return %0 : !one
}

// Ten tensors are what a pass has room for; what holds results is none.

// CHECK-LABEL: func.func @ten
// CHECK:       fp8.fusion(%{{[^,]+}}, %{{[^,]+}}, %{{[^,]+}}, %{{[^,]+}}, %{{[^,]+}}, %{{[^,]+}}, %{{[^,]+}}, %{{[^,]+}}, %{{[^,]+}}) {
// CHECK-COUNT-2: linalg.generic
func.func @ten(%a: !f, %b: !f, %c: !f, %d: !f, %e: !f, %f: !f, %g: !f, %h: !f, %i: !f) -> !f {
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
  %1 = linalg.generic {indexing_maps = [#id, #id, #id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%0, %g, %h, %i : !f, !f, !f, !f) outs(%o : !f) {
  ^bb0(%2: f32, %3: f32, %4: f32, %5: f32, %6: f32):
    %7 = arith.addf %2, %3 : f32
    %8 = arith.addf %7, %4 : f32
    %9 = arith.addf %8, %5 : f32
    linalg.yield %9 : f32
  } -> !f
  return %1 : !f
}

// A sum of columns is known after the pass that reads them: it joins whoever
// reads them, before it or behind it.

// CHECK-LABEL: func.func @column_sum
// CHECK:       %[[R:.+]]:3 = fp8.fusion(
// CHECK:         fp8.quantize
// CHECK:         linalg.generic {{.+}} iterator_types = ["reduction", "parallel"]
// CHECK:         fp8.transpose
// CHECK:         fp8.yield %{{.+}}, %{{.+}}, %{{.+}} : tensor<32x64xf8E4M3FN>, tensor<64xf32>, tensor<64x32xf8E4M3FN>
func.func @column_sum(%x: !x, %s: !one, %si: !one) -> (!q, tensor<64xf32>, !t) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %q = fp8.quantize %x scale(%s, %si : !one, !one) : !x -> !q
  %sum = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%x : !x) outs(%zeros : tensor<64xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %0 = arith.extf %a : bf16 to f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<64xf32>
  %t = fp8.transpose %q permutation = [1, 0] : !q
  return %q, %sum, %t : !q, tensor<64xf32>, !t
}

// Sums of what a pass computes, too, and several of them: the gradient of a
// bias, and that of a norm's weight.

// CHECK-LABEL: func.func @column_sums
// CHECK:       %[[R:.+]]:4 = fp8.fusion(
// CHECK-COUNT-2: linalg.generic {{.+}} iterator_types = ["reduction", "parallel"]
// CHECK:         fp8.amax %{{.+}} block = [*, 1]
// CHECK:         fp8.yield
func.func @column_sums(%x: !x, %y: !x) -> (!x, tensor<64xf32>, tensor<64xf32>, tensor<1x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %f = tensor.empty() : !x
  %e = tensor.empty() : tensor<64xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %d = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %y : !x, !x) outs(%f : !x) {
  ^bb0(%a: bf16, %b: bf16, %o: bf16):
    %0 = arith.mulf %a, %b : bf16
    linalg.yield %0 : bf16
  } -> !x
  %bias = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%d : !x) outs(%zeros : tensor<64xf32>) {
  ^bb0(%a: bf16, %o: f32):
    %0 = arith.extf %a : bf16 to f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<64xf32>
  %weight = linalg.generic {indexing_maps = [#id, #id, #column], iterator_types = ["reduction", "parallel"]} ins(%d, %y : !x, !x) outs(%zeros : tensor<64xf32>) {
  ^bb0(%a: bf16, %b: bf16, %o: f32):
    %0 = arith.extf %a : bf16 to f32
    %1 = arith.extf %b : bf16 to f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.addf %o, %2 : f32
    linalg.yield %3 : f32
  } -> tensor<64xf32>
  %m = fp8.amax %d block = [*, 1] : !x
  return %d, %bias, %weight, %m : !x, tensor<64xf32>, tensor<64xf32>, tensor<1x64xf32>
}

// Factors of columns are those of rows of the transposed codes, in the same
// order: the copy is written where the codes are.

!qc = !fp8.scaled<32x64xf8E4M3FN, block = [*, 1], scale = f32>
!tc = !fp8.scaled<64x32xf8E4M3FN, block = [1, *], scale = f32>

// CHECK-LABEL: func.func @columns
// CHECK-SAME:  %[[X:.+]]: tensor<32x64xbf16>, %[[S:.+]]: tensor<1x64xf32>, %[[SI:.+]]: tensor<1x64xf32>
// CHECK-NEXT:  %[[R:.+]] = fp8.fusion(%[[X]], %[[S]], %[[SI]]) {
// CHECK:         fp8.transpose
// CHECK:         fp8.yield %{{[^,]+}} : tensor<64x32xf8E4M3FN>
// CHECK:       %[[FLAT:.+]] = tensor.collapse_shape %[[SI]]
// CHECK-NEXT:  %[[TURNED:.+]] = tensor.expand_shape %[[FLAT]] {{.*}} into tensor<64x1xf32>
// CHECK-NEXT:  %[[RT:.+]] = fp8.assemble %[[R]], %[[TURNED]]
// CHECK-NEXT:  return %[[RT]]
func.func @columns(%x: !x, %s: tensor<1x64xf32>, %si: tensor<1x64xf32>) -> !tc {
  %q = fp8.quantize %x scale(%s, %si : tensor<1x64xf32>, tensor<1x64xf32>) : !x -> !qc
  %t = fp8.transpose %q permutation = [1, 0] : !qc
  return %t : !tc
}

// Columns of few rows are known when the pass has read them.

// CHECK-LABEL: func.func @few_rows(
// CHECK:       fp8.fusion(
// CHECK:         fp8.amax %{{.+}} block = [*, 1]
// CHECK-NEXT:    fp8.compute_scale
// CHECK-NEXT:    fp8.quantize
// CHECK-NOT:   fp8.fusion(
// CHECK:       return
func.func @few_rows(%x: tensor<64x32xbf16>) -> !fp8.scaled<64x32xf8E4M3FN, block = [*, 1], scale = f32> {
  %m = fp8.amax %x block = [*, 1] : tensor<64x32xbf16>
  %s, %si = fp8.compute_scale %m format = f8E4M3FN scale_type = f32 : tensor<1x32xf32>
  %q = fp8.quantize %x scale(%s, %si : tensor<1x32xf32>, tensor<1x32xf32>) : tensor<64x32xbf16>
      -> !fp8.scaled<64x32xf8E4M3FN, block = [*, 1], scale = f32>
  return %q : !fp8.scaled<64x32xf8E4M3FN, block = [*, 1], scale = f32>
}

// Sums of the columns of few rows are rounded where they are made, also beside
// an amax of the tensor, which nothing in the pass waits for.

// CHECK-LABEL: func.func @sums
// CHECK:       fp8.fusion
// CHECK:         fp8.quantize
// CHECK:         fp8.amax
// CHECK:         arith.addf
// CHECK:         arith.truncf
// CHECK:         fp8.yield
// CHECK:       return
func.func @sums(%x: !x, %s: !one, %si: !one) -> (!q, !one, tensor<64xbf16>) {
  %zero = arith.constant 0.0 : f32
  %q = fp8.quantize %x scale(%s, %si : !one, !one) : !x -> !q
  %amax = fp8.amax %x block = [*, *] : !x
  %e = tensor.empty() : tensor<64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %sums = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]}
      ins(%x : !x) outs(%z : tensor<64xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %wide = arith.extf %in : bf16 to f32
    %sum = arith.addf %wide, %out : f32
    linalg.yield %sum : f32
  } -> tensor<64xf32>
  %n = tensor.empty() : tensor<64xbf16>
  %r = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%sums : tensor<64xf32>) outs(%n : tensor<64xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %narrow = arith.truncf %in : f32 to bf16
    linalg.yield %narrow : bf16
  } -> tensor<64xbf16>
  return %q, %amax, %r : !q, !one, tensor<64xbf16>
}
