// RUN: fp8-opt %s --fp8-form-fusions | FileCheck %s

!x = tensor<32x32xbf16>
!one = tensor<1x1xf32>
!q = !fp8.scaled<32x32xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>

// Scales of blocks that are measured in the same pass; the tensor's leaves as the
// codes and the blocks' do.

// CHECK-LABEL: func.func @measured
// CHECK:       %[[R:.+]]:3 = fp8.fusion(
// CHECK:         fp8.amax
// CHECK-NEXT:    %[[S:.+]], %[[SI:.+]], %[[TSI:.+]] = fp8.compute_scale {{.+}} tensor_amax(
// CHECK-NEXT:    %[[Q:.+]] = fp8.quantize {{.+}} scale(%[[S]], %[[SI]] : {{.+}}) tensor_scale_inv(%[[TSI]]
// CHECK-NEXT:    %[[P:.+]], %{{.+}}, %{{.+}} = fp8.disassemble %[[Q]]
// CHECK-NEXT:    fp8.yield %[[P]], %[[SI]], %[[TSI]]
// CHECK:       %[[A:.+]] = fp8.assemble %[[R]]#0, %[[R]]#1, %[[R]]#2
// CHECK:       return %[[A]]
func.func @measured(%x: !x, %all: !one) -> !q {
  %amax = fp8.amax %x block = [1, 16] : !x
  %s, %si, %ts = fp8.compute_scale %amax tensor_amax(%all : !one) format = f4E2M1FN scale_type = f8E4M3FN : tensor<32x2xf32>
  %q = fp8.quantize %x scale(%s, %si : tensor<32x2xf32>, tensor<32x2xf8E4M3FN>) tensor_scale_inv(%ts : !one) : !x -> !q
  return %q : !q
}

// Factors that are given stay what they are.

// CHECK-LABEL: func.func @given
// CHECK:       %{{.+}}, %[[SI:.+]], %[[TSI:.+]] = fp8.compute_scale
// CHECK:       %[[C:.+]] = fp8.fusion(
// CHECK:         fp8.quantize
// CHECK:       fp8.assemble %[[C]], %[[SI]], %[[TSI]]
func.func @given(%x: !x, %amax: tensor<32x2xf32>, %all: !one) -> !q {
  %s, %si, %ts = fp8.compute_scale %amax tensor_amax(%all : !one) format = f4E2M1FN scale_type = f8E4M3FN : tensor<32x2xf32>
  %q = fp8.quantize %x scale(%s, %si : tensor<32x2xf32>, tensor<32x2xf8E4M3FN>) tensor_scale_inv(%ts : !one) : !x -> !q
  return %q : !q
}

// Random numbers go by a place that a tile does not know; a kernel does
// (form-fusions-position-dependent.mlir).

// CHECK-LABEL: func.func @seed
// CHECK-NOT:   fp8.quantize
// CHECK:       fp8.yield
// CHECK:       fp8.quantize %{{.+}} seed(
func.func @seed(%x: !x, %all: !one, %seed: tensor<4xi32>) -> !q {
  %amax = fp8.amax %x block = [1, 16] : !x
  %s, %si, %ts = fp8.compute_scale %amax tensor_amax(%all : !one) format = f4E2M1FN scale_type = f8E4M3FN : tensor<32x2xf32>
  %q = fp8.quantize %x scale(%s, %si : tensor<32x2xf32>, tensor<32x2xf8E4M3FN>) tensor_scale_inv(%ts : !one)
      seed(%seed : tensor<4xi32>) : !x -> !q
  return %q : !q
}

// Codes that share bytes have no kernel that transposes them: the pass that makes
// them does, with factors that it is given.

// CHECK-LABEL: func.func @given_turned
// CHECK:       %[[R:.+]]:2 = fp8.fusion(
// CHECK:         %[[Q:.+]] = fp8.quantize
// CHECK-NEXT:    %[[T:.+]] = fp8.transpose %[[Q]]
// CHECK-NEXT:    %[[P:.+]], %[[F:.+]], %{{.+}} = fp8.disassemble %[[T]]
// CHECK-NEXT:    fp8.yield %[[P]], %[[F]] : tensor<32x32xf4E2M1FN>, tensor<32x2xf8E4M3FN>
// CHECK:       fp8.assemble %[[R]]#0, %[[R]]#1
func.func @given_turned(%x: !x, %amax: tensor<2x32xf32>, %all: !one) -> !q {
  %s, %si, %ts = fp8.compute_scale %amax tensor_amax(%all : !one) format = f4E2M1FN scale_type = f8E4M3FN : tensor<2x32xf32>
  %q = fp8.quantize %x scale(%s, %si : tensor<2x32xf32>, tensor<2x32xf8E4M3FN>) tensor_scale_inv(%ts : !one)
      : !x -> !fp8.scaled<32x32xf4E2M1FN, block = [16, 1], scale = f8E4M3FN, tensor_scale = f32>
  %t = fp8.transpose %q permutation = [1, 0] : !fp8.scaled<32x32xf4E2M1FN, block = [16, 1], scale = f8E4M3FN, tensor_scale = f32>
  return %t : !q
}

// The tensor's amax is known when all of it has been read. The second pass
// measures the blocks, for codes by rows and by columns at once.

// CHECK-LABEL: func.func @measured_before
// CHECK:       %[[ALL:.+]] = fp8.fusion(%[[X:.+]]) {
// CHECK-NEXT:  ^bb0(%[[IN:.+]]: tensor<32x32xbf16>):
// CHECK-NEXT:    %[[A:.+]] = fp8.amax %[[IN]] block = [*, *]
// CHECK-NEXT:    fp8.yield %[[A]] : tensor<1x1xf32>
// CHECK-NOT:   fp8.amax
// CHECK:       %[[R:.+]]:{{.+}} = fp8.fusion(%[[X]], %[[ALL]]) {
// CHECK:         fp8.amax {{.+}} block = [1, 16]
// CHECK:         fp8.compute_scale
// CHECK:         fp8.quantize
// CHECK:         fp8.amax {{.+}} block = [16, 1]
// CHECK:         fp8.compute_scale
// CHECK:         fp8.quantize
// CHECK-NOT:   fp8.compute_scale
func.func @measured_before(%x: !x) -> (!q, !fp8.scaled<32x32xf4E2M1FN, block = [16, 1], scale = f8E4M3FN, tensor_scale = f32>) {
  %all = fp8.amax %x block = [*, *] : !x
  %a = fp8.amax %x block = [1, 16] : !x
  %s, %si, %ts = fp8.compute_scale %a tensor_amax(%all : !one) format = f4E2M1FN scale_type = f8E4M3FN : tensor<32x2xf32>
  %q = fp8.quantize %x scale(%s, %si : tensor<32x2xf32>, tensor<32x2xf8E4M3FN>) tensor_scale_inv(%ts : !one) : !x -> !q
  %b = fp8.amax %x block = [16, 1] : !x
  %u, %ui, %tu = fp8.compute_scale %b tensor_amax(%all : !one) format = f4E2M1FN scale_type = f8E4M3FN : tensor<2x32xf32>
  %r = fp8.quantize %x scale(%u, %ui : tensor<2x32xf32>, tensor<2x32xf8E4M3FN>) tensor_scale_inv(%tu : !one)
      : !x -> !fp8.scaled<32x32xf4E2M1FN, block = [16, 1], scale = f8E4M3FN, tensor_scale = f32>
  return %q, %r : !q, !fp8.scaled<32x32xf4E2M1FN, block = [16, 1], scale = f8E4M3FN, tensor_scale = f32>
}

// Amaxes of blocks that others need, too, stay what they are: scales are read.

// CHECK-LABEL: func.func @needed
// CHECK:       fp8.fusion
// CHECK:         fp8.yield
// CHECK:       fp8.compute_scale
// CHECK:       fp8.fusion
// CHECK:         fp8.quantize
func.func @needed(%x: !x) -> (!q, tensor<32x2xf32>) {
  %all = fp8.amax %x block = [*, *] : !x
  %a = fp8.amax %x block = [1, 16] : !x
  %s, %si, %ts = fp8.compute_scale %a tensor_amax(%all : !one) format = f4E2M1FN scale_type = f8E4M3FN : tensor<32x2xf32>
  %q = fp8.quantize %x scale(%s, %si : tensor<32x2xf32>, tensor<32x2xf8E4M3FN>) tensor_scale_inv(%ts : !one) : !x -> !q
  return %q, %a : !q, tensor<32x2xf32>
}

// A block that happens to have all elements: what its scale is made of stands in
// the pass once.

// CHECK-LABEL: func.func @one_block
// CHECK-COUNT-1: fp8.compute_scale
// CHECK-NOT:   fp8.compute_scale
func.func @one_block(%x: tensor<1x2xf32>, %all: !one) -> !fp8.scaled<1x2xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32> {
  %a = fp8.amax %x block = [1, 16] : tensor<1x2xf32>
  %s, %si, %ts = fp8.compute_scale %a tensor_amax(%all : !one) format = f4E2M1FN scale_type = f8E4M3FN : !one
  %q = fp8.quantize %x scale(%s, %si : !one, tensor<1x1xf8E4M3FN>) tensor_scale_inv(%ts : !one)
      : tensor<1x2xf32> -> !fp8.scaled<1x2xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
  return %q : !fp8.scaled<1x2xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
}

// A tensor that may be empty has a scale nevertheless, which no block of its pass
// would write.

// CHECK-LABEL: func.func @may_be_empty
// CHECK:       fp8.fusion
// CHECK:       fp8.compute_scale
// CHECK:       fp8.fusion
// CHECK-NOT:     fp8.compute_scale
// CHECK:         fp8.quantize
func.func @may_be_empty(%x: tensor<?x32xbf16>) -> !fp8.scaled<?x32xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32> {
  %all = fp8.amax %x block = [*, *] : tensor<?x32xbf16>
  %a = fp8.amax %x block = [1, 16] : tensor<?x32xbf16>
  %s, %si, %ts = fp8.compute_scale %a tensor_amax(%all : !one) format = f4E2M1FN scale_type = f8E4M3FN : tensor<?x2xf32>
  %q = fp8.quantize %x scale(%s, %si : tensor<?x2xf32>, tensor<?x2xf8E4M3FN>) tensor_scale_inv(%ts : !one)
      : tensor<?x32xbf16> -> !fp8.scaled<?x32xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
  return %q : !fp8.scaled<?x32xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
}
