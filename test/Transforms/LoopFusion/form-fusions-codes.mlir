// RUN: fp8-opt %s --fp8-form-fusions --canonicalize | FileCheck %s

// Codes that are read: a fusion is given them and their factors, and has both
// as one value inside.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
!x = tensor<256x512xbf16>
!one = tensor<1x1xf32>
!q = !fp8.scaled<256x512xf8E4M3FN, block = [*, *], scale = f32>
!blocks = !fp8.scaled<256x512xf8E4M3FN, block = [1, 128], scale = f32>
!mx = !fp8.scaled<256x512xf8E5M2, block = [1, 32], scale = f8E8M0FNU>

// CHECK-LABEL: func.func @alone(
// CHECK-SAME:  %[[Q:.+]]: !fp8.scaled
// CHECK:       %[[P:.+]], %[[F:.+]] = fp8.disassemble %[[Q]]
// CHECK:       %[[R:.+]] = fp8.fusion(%[[P]], %[[F]]) {
// CHECK-NEXT:  ^bb0(%[[CODES:.+]]: tensor<256x512xf8E5M2>, %[[FACTORS:.+]]: tensor<256x16xf8E8M0FNU>):
// CHECK-NEXT:    %[[A:.+]] = fp8.assemble %[[CODES]], %[[FACTORS]]
// CHECK-NEXT:    %[[D:.+]] = fp8.dequantize %[[A]]
// CHECK-NEXT:    fp8.yield %[[D]]
// CHECK:       return %[[R]]
func.func @alone(%q: !mx) -> !x {
  %x = fp8.dequantize %q : !mx -> !x
  return %x : !x
}

// In other blocks, and in the other order: read once, written once.

// CHECK-LABEL: func.func @requantize(
// CHECK:       %[[R:.+]]:2 = fp8.fusion(
// CHECK-NEXT:  ^bb0(%{{.+}}: tensor<256x512xf8E4M3FN>, %{{.+}}: tensor<256x4xf32>):
// CHECK:         fp8.dequantize
// CHECK-NEXT:    fp8.amax %{{.+}} block = [128, 1]
// CHECK-NEXT:    fp8.compute_scale
// CHECK-NEXT:    fp8.quantize
// CHECK-NEXT:    fp8.transpose
// CHECK:         fp8.yield %{{.+}}, %{{.+}} : tensor<512x256xf8E4M3FN>, tensor<512x2xf32>
// CHECK:       fp8.assemble %[[R]]#0, %[[R]]#1
// CHECK-NOT:   fp8.transpose
func.func @requantize(%q: !blocks) -> !fp8.scaled<512x256xf8E4M3FN, block = [1, 128], scale = f32> {
  %x = fp8.dequantize %q : !blocks -> tensor<256x512xf32>
  %a = fp8.amax %x block = [128, 1] : tensor<256x512xf32>
  %s, %si = fp8.compute_scale %a format = f8E4M3FN scale_type = f32 : tensor<2x512xf32>
  %c = fp8.quantize %x scale(%s, %si : tensor<2x512xf32>, tensor<2x512xf32>) : tensor<256x512xf32> -> !fp8.scaled<256x512xf8E4M3FN, block = [128, 1], scale = f32>
  %t = fp8.transpose %c permutation = [1, 0] : !fp8.scaled<256x512xf8E4M3FN, block = [128, 1], scale = f32>
  return %t : !fp8.scaled<512x256xf8E4M3FN, block = [1, 128], scale = f32>
}

// What another pass has made, without a detour over the scaled value, and by who
// reads the numbers: codes are less to read.

// CHECK-LABEL: func.func @after_another_pass(
// CHECK:       %[[R:.+]]:2 = fp8.fusion(
// CHECK:         fp8.yield
// CHECK:       %[[Y:.+]] = fp8.matmul
// CHECK-NEXT:  fp8.fusion(%[[R]]#0, %{{[^ ]+}}, %[[Y]]) {
// CHECK:         fp8.dequantize
func.func @after_another_pass(%x: !x, %w: !fp8.scaled<512x512xf8E4M3FN, block = [*, *], scale = f32>, %s: !one) -> (!x, !one) {
  %q = fp8.quantize %x scale(%s, %s : !one, !one) : !x -> !q
  %a = fp8.amax %x block = [*, *] : !x
  %y = fp8.matmul %q, %w : !q, !fp8.scaled<512x512xf8E4M3FN, block = [*, *], scale = f32> -> !x
  %d = fp8.dequantize %q : !q -> !x
  %e = tensor.empty() : !x
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%y, %d : !x, !x) outs(%e : !x) {
  ^bb0(%u: bf16, %v: bf16, %o: bf16):
    %0 = arith.addf %u, %v : bf16
    linalg.yield %0 : bf16
  } -> !x
  return %z, %a : !x, !one
}

// Each of two passes that read the numbers makes them.

// CHECK-LABEL: func.func @twice(
// CHECK:       %[[P:.+]], %[[F:.+]] = fp8.disassemble %arg0
// CHECK:       %[[A:.+]] = fp8.fusion(%[[P]], %[[F]]) {
// CHECK:         fp8.dequantize
// CHECK-NEXT:    fp8.amax
// CHECK-NEXT:    fp8.yield
// CHECK:       fp8.fusion(%[[A]], %[[P]], %[[F]]) {
// CHECK:         fp8.dequantize
// CHECK:         fp8.quantize
func.func @twice(%q: !blocks) -> !q {
  %d = fp8.dequantize %q : !blocks -> !x
  %a = fp8.amax %d block = [*, *] : !x
  %s, %si = fp8.compute_scale %a format = f8E4M3FN scale_type = f32 : !one
  %r = fp8.quantize %d scale(%s, %si : !one, !one) : !x -> !q
  return %r : !q
}

// The scale of the only block: it is measured first, as the tensor's would be, and
// numbers that are read then are made again.

// CHECK-LABEL: func.func @one_block(
// CHECK:       %[[P:.+]], %[[F:.+]] = fp8.disassemble
// CHECK:       %[[A:.+]] = fp8.fusion(%[[P]], %[[F]]) {
// CHECK:         fp8.amax
// CHECK-NEXT:    fp8.yield %{{.+}} : tensor<1x1xf32>
// CHECK:       %[[S:.+]], %[[SI:.+]] = fp8.compute_scale %[[A]]
// CHECK:       fp8.fusion(%[[P]], %[[F]], %[[S]], %[[SI]]) {
// CHECK:         fp8.dequantize
// CHECK-NEXT:    fp8.quantize
// CHECK-NEXT:    fp8.transpose
func.func @one_block(%q: !fp8.scaled<64x1xf8E4M3FN, block = [1, 128], scale = f32>) -> !fp8.scaled<1x64xf8E4M3FN, block = [1, 128], scale = f32> {
  %x = fp8.dequantize %q : !fp8.scaled<64x1xf8E4M3FN, block = [1, 128], scale = f32> -> tensor<64x1xf32>
  %a = fp8.amax %x block = [128, 1] : tensor<64x1xf32>
  %s, %si = fp8.compute_scale %a format = f8E4M3FN scale_type = f32 : !one
  %c = fp8.quantize %x scale(%s, %si : !one, !one) : tensor<64x1xf32> -> !fp8.scaled<64x1xf8E4M3FN, block = [128, 1], scale = f32>
  %t = fp8.transpose %c permutation = [1, 0] : !fp8.scaled<64x1xf8E4M3FN, block = [128, 1], scale = f32>
  return %t : !fp8.scaled<1x64xf8E4M3FN, block = [1, 128], scale = f32>
}

// What a pass quantizes it can dequantize: the rounding of a cast, as it is
// simulated.

// CHECK-LABEL: func.func @rounded(
// CHECK:       fp8.fusion(
// CHECK:         fp8.quantize
// CHECK-NEXT:    fp8.dequantize
// CHECK-NEXT:    fp8.yield
func.func @rounded(%x: !x, %s: !one) -> !x {
  %q = fp8.quantize %x scale(%s, %s : !one, !one) : !x -> !q
  %d = fp8.dequantize %q : !q -> !x
  return %d : !x
}

// The norm of what is kept in 8 bits.

// CHECK-LABEL: func.func @norm(
// CHECK:       fp8.fusion(
// CHECK:         fp8.dequantize
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel", "reduction"]
// CHECK:         linalg.generic {{.+}} iterator_types = ["parallel", "parallel"]
// CHECK:         fp8.yield %{{.+}} : tensor<256x512xbf16>
func.func @norm(%q: !blocks) -> !x {
  %zero = arith.constant 0.0 : f32
  %x = fp8.dequantize %q : !blocks -> !x
  %e = tensor.empty() : tensor<256xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %ss = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : !x) outs(%z : tensor<256xf32>) {
  ^bb0(%a: bf16, %s: f32):
    %0 = arith.extf %a : bf16 to f32
    %1 = arith.mulf %0, %0 : f32
    %2 = arith.addf %s, %1 : f32
    linalg.yield %2 : f32
  } -> tensor<256xf32>
  %f = tensor.empty() : !x
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %ss : !x, tensor<256xf32>) outs(%f : !x) {
  ^bb0(%a: bf16, %s: f32, %o: bf16):
    %0 = arith.extf %a : bf16 to f32
    %1 = math.rsqrt %s : f32
    %2 = arith.mulf %0, %1 : f32
    %3 = arith.truncf %2 : f32 to bf16
    linalg.yield %3 : bf16
  } -> !x
  return %y : !x
}

// Codes are copied in the other order by who reads them anyway, before or after;
// their factors with them, but a single one.

// CHECK-LABEL: func.func @copied_before(
// CHECK:       %[[P:.+]], %[[F:.+]] = fp8.disassemble
// CHECK:       %[[R:.+]]:3 = fp8.fusion(%[[P]], %[[F]]) {
// CHECK:         %[[T:.+]] = fp8.transpose %[[A:.+]] permutation = [1, 0]
// CHECK-NEXT:    fp8.dequantize %[[A]]
// CHECK-NEXT:    fp8.disassemble %[[T]]
// CHECK:       fp8.assemble %[[R]]#0, %[[R]]#1
// CHECK-NOT:   fp8.transpose
func.func @copied_before(%q: !blocks) -> (!fp8.scaled<512x256xf8E4M3FN, block = [128, 1], scale = f32>, !x) {
  %t = fp8.transpose %q permutation = [1, 0] : !blocks
  %x = fp8.dequantize %q : !blocks -> !x
  return %t, %x : !fp8.scaled<512x256xf8E4M3FN, block = [128, 1], scale = f32>, !x
}

// CHECK-LABEL: func.func @copied_after(
// CHECK:       %[[P:.+]], %[[F:.+]] = fp8.disassemble
// CHECK:       %[[R:.+]]:2 = fp8.fusion(%[[P]], %[[F]]) {
// CHECK:         fp8.dequantize %[[A:.+]] :
// CHECK:         fp8.transpose %[[A]]
// CHECK:       fp8.assemble %[[R]]#{{[01]}}, %[[F]]
func.func @copied_after(%q: !q) -> (!fp8.scaled<512x256xf8E4M3FN, block = [*, *], scale = f32>, !x) {
  %x = fp8.dequantize %q : !q -> !x
  %t = fp8.transpose %q permutation = [1, 0] : !q
  return %t, %x : !fp8.scaled<512x256xf8E4M3FN, block = [*, *], scale = f32>, !x
}

//===----------------------------------------------------------------------===//
// Not together
//===----------------------------------------------------------------------===//

// Lone copies have kernels of their own, however many there are.

// CHECK-LABEL: func.func @copies_alone(
// CHECK-NOT:   fp8.fusion
// CHECK:       return
func.func @copies_alone(%q: !fp8.scaled<4x256x512xf8E4M3FN, block = [*, *, *], scale = f32>)
    -> (!fp8.scaled<4x512x256xf8E4M3FN, block = [*, *, *], scale = f32>, !fp8.scaled<256x4x512xf8E4M3FN, block = [*, *, *], scale = f32>) {
  %0 = fp8.transpose %q permutation = [0, 2, 1] : !fp8.scaled<4x256x512xf8E4M3FN, block = [*, *, *], scale = f32>
  %1 = fp8.transpose %q permutation = [1, 0, 2] : !fp8.scaled<4x256x512xf8E4M3FN, block = [*, *, *], scale = f32>
  return %0, %1 : !fp8.scaled<4x512x256xf8E4M3FN, block = [*, *, *], scale = f32>, !fp8.scaled<256x4x512xf8E4M3FN, block = [*, *, *], scale = f32>
}

// Numbers in the other order: the copy is one pass, what reads it another.

// CHECK-LABEL: func.func @of_a_copy(
// CHECK:       %[[T:.+]] = fp8.transpose
// CHECK:       fp8.disassemble %[[T]]
// CHECK:       fp8.fusion(
// CHECK-NOT:     fp8.transpose
// CHECK:         fp8.dequantize
func.func @of_a_copy(%q: !q) -> tensor<512x256xbf16> {
  %t = fp8.transpose %q permutation = [1, 0] : !q
  %x = fp8.dequantize %t : !fp8.scaled<512x256xf8E4M3FN, block = [*, *], scale = f32> -> tensor<512x256xbf16>
  return %x : tensor<512x256xbf16>
}

// The copy is needed for what is dequantized with.

// CHECK-LABEL: func.func @needs_the_copy(
// CHECK:       fp8.transpose
// CHECK:       fp8.matmul
// CHECK:       fp8.fusion(
// CHECK-NOT:     fp8.transpose
// CHECK:         fp8.dequantize
func.func @needs_the_copy(%q: !fp8.scaled<256x256xf8E4M3FN, block = [*, *], scale = f32>, %w: !fp8.scaled<256x256xf8E4M3FN, block = [*, *], scale = f32>) -> tensor<256x256xbf16> {
  %t = fp8.transpose %q permutation = [1, 0] : !fp8.scaled<256x256xf8E4M3FN, block = [*, *], scale = f32>
  %y = fp8.matmul %w, %t : !fp8.scaled<256x256xf8E4M3FN, block = [*, *], scale = f32>, !fp8.scaled<256x256xf8E4M3FN, block = [*, *], scale = f32> -> tensor<256x256xbf16>
  %e = tensor.empty() : tensor<256x256xbf16>
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%y : tensor<256x256xbf16>) outs(%e : tensor<256x256xbf16>) {
  ^bb0(%a: bf16, %o: bf16):
    %0 = arith.negf %a : bf16
    linalg.yield %0 : bf16
  } -> tensor<256x256xbf16>
  %x = fp8.dequantize %q : !fp8.scaled<256x256xf8E4M3FN, block = [*, *], scale = f32> -> tensor<256x256xbf16>
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%n, %x : tensor<256x256xbf16>, tensor<256x256xbf16>) outs(%e : tensor<256x256xbf16>) {
  ^bb0(%a: bf16, %b: bf16, %o: bf16):
    %0 = arith.addf %a, %b : bf16
    linalg.yield %0 : bf16
  } -> tensor<256x256xbf16>
  return %z : tensor<256x256xbf16>
}

// Codes of two tensors have nothing in common, though they are as large.

// CHECK-LABEL: func.func @two_tensors(
// CHECK:       fp8.fusion(
// CHECK:       fp8.fusion(
func.func @two_tensors(%p: !q, %q: !q) -> (!x, !x) {
  %0 = fp8.dequantize %p : !q -> !x
  %1 = fp8.dequantize %q : !q -> !x
  return %0, %1 : !x, !x
}
