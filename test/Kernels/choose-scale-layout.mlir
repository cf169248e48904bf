// RUN: fp8-opt %s --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-choose-scale-layout | FileCheck %s
// RUN: fp8-opt %s --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-choose-scale-layout --fp8-build-kernels --fp8-launch-kernels --canonicalize | FileCheck %s --check-prefix=LAUNCH

#pow2 = #fp8.scale_rule<pow2 = true>

!x = tensor<256x512xbf16>
!codes = tensor<256x512xf8E4M3FN>
!rows = !fp8.scaled<256x512xf8E4M3FN, block = [1, 128], scale = f32>
!columns = !fp8.scaled<256x512xf8E4M3FN, block = [128, 1], scale = f32>
!turned = !fp8.scaled<512x256xf8E4M3FN, block = [1, 128], scale = f32>
!w = !fp8.scaled<384x512xf8E4M3FN, block = [128, 128], scale = f32>

// LAUNCH-DAG: #[[FOURS:.+]] = #fp8_gpu.launch<{{.+}}name = "scale_a", element = f32, rank = 2, access = read, alignment = 16>{{.+}}name = "scale_b", element = f32, rank = 2, access = read, alignment = 4>{{.+}}#fp8_gpu.stride<1, 1>, #fp8_gpu.stride<1, 0>, #fp8_gpu.pointer<3>, #fp8_gpu.stride<3, 0>, #fp8_gpu.stride<3, 1>,
// LAUNCH-DAG: #[[ONES:.+]] = #fp8_gpu.launch<{{.+}}name = "scale_a", element = f32, rank = 2, access = read, alignment = 4>{{.+}}#fp8_gpu.stride<1, 1>, #fp8_gpu.stride<1, 0>,

// The fusion stores what the matmul reads, and nobody transposes it.

// CHECK-LABEL: func.func @rows
// CHECK:       %[[S:.+]]:2 = fp8.fusion
// CHECK:         %[[SCALE:.+]], %[[INV:.+]] = fp8.compute_scale
// CHECK:         %[[T:.+]] = linalg.transpose ins(%[[INV]] : tensor<256x4xf32>) outs(%{{.+}} : tensor<4x256xf32>) permutation = [1, 0]
// CHECK:         fp8.yield %{{.+}}, %[[T]] : tensor<256x512xf8E4M3FN>, tensor<4x256xf32>
// CHECK:       %[[BACK:.+]] = linalg.transpose ins(%[[S]]#1 : tensor<4x256xf32>) outs(%{{.+}} : tensor<256x4xf32>) permutation = [1, 0]
// CHECK:       %[[A:.+]] = fp8.assemble %[[S]]#0, %[[BACK]]
// CHECK:       fp8.matmul %[[A]]

// LAUNCH-LABEL: func.func @rows
// LAUNCH-NOT:   linalg.transpose
// LAUNCH:       %[[S:.+]]:2 = fp8_gpu.launch
// LAUNCH-SAME:  -> tensor<256x512xf8E4M3FN>, tensor<4x256xf32>
// LAUNCH:       fp8_gpu.launch @fp8_kernels::@fp8_matmul{{.+}} #[[FOURS]] ins(%[[S]]#0, %[[S]]#1,
// LAUNCH-NOT:   linalg.transpose
// LAUNCH:       return
func.func @rows(%x: !x, %w: !w) -> tensor<256x384xbf16> {
  %codes, %factors = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %amax = fp8.amax %a block = [1, 128] : !x
    %s, %si = fp8.compute_scale %amax format = f8E4M3FN scale_type = f32 rule(#pow2) : tensor<256x4xf32>
    %q = fp8.quantize %a scale(%s, %si : tensor<256x4xf32>, tensor<256x4xf32>) : !x -> !rows
    %p, %f = fp8.disassemble %q : !rows
    fp8.yield %p, %si : !codes, tensor<256x4xf32>
  } : (!x) -> (!codes, tensor<256x4xf32>)
  %q = fp8.assemble %codes, %factors : !codes, tensor<256x4xf32> -> !rows
  %y = fp8.matmul %q, %w : !rows, !w -> tensor<256x384xbf16>
  return %y : tensor<256x384xbf16>
}

// Transposed codes have their factors stored as the codes have them.

// CHECK-LABEL: func.func @turned
// CHECK:       fp8.fusion
// CHECK:         %[[Q:.+]] = fp8.quantize
// CHECK:         fp8.transpose %[[Q]]
// CHECK-NOT:     linalg.transpose
// CHECK:         %{{.+}}, %[[OWN:.+]] = fp8.disassemble %[[Q]]
// CHECK:         fp8.yield %{{.+}}, %[[OWN]] : tensor<512x256xf8E4M3FN>, tensor<2x512xf32>
func.func @turned(%x: !x) -> tensor<512x512xbf16> {
  %codes, %factors = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %amax = fp8.amax %a block = [128, 1] : !x
    %s, %si = fp8.compute_scale %amax format = f8E4M3FN scale_type = f32 rule(#pow2) : tensor<2x512xf32>
    %q = fp8.quantize %a scale(%s, %si : tensor<2x512xf32>, tensor<2x512xf32>) : !x -> !columns
    %t = fp8.transpose %q permutation = [1, 0] : !columns
    %p, %f = fp8.disassemble %t : !turned
    fp8.yield %p, %f : tensor<512x256xf8E4M3FN>, tensor<512x2xf32>
  } : (!x) -> (tensor<512x256xf8E4M3FN>, tensor<512x2xf32>)
  %q = fp8.assemble %codes, %factors : tensor<512x256xf8E4M3FN>, tensor<512x2xf32> -> !turned
  %y = fp8.matmul %q, %q : !turned, !turned -> tensor<512x512xbf16>
  return %y : tensor<512x512xbf16>
}

// Rows of an unknown number are copied one by one.

// CHECK-LABEL: func.func @dynamic
// CHECK:       fp8.yield %{{.+}}, %{{.+}} : tensor<?x512xf8E4M3FN>, tensor<4x?xf32>
// LAUNCH-LABEL: func.func @dynamic
// LAUNCH-NOT:   linalg.transpose
// LAUNCH:       fp8_gpu.launch @fp8_kernels::@fp8_matmul{{.+}} #[[ONES]] ins(
func.func @dynamic(%x: tensor<?x512xbf16>, %w: !w) -> tensor<?x384xbf16> {
  %codes, %factors = fp8.fusion(%x) {
  ^bb0(%a: tensor<?x512xbf16>):
    %amax = fp8.amax %a block = [1, 128] : tensor<?x512xbf16>
    %s, %si = fp8.compute_scale %amax format = f8E4M3FN scale_type = f32 rule(#pow2) : tensor<?x4xf32>
    %q = fp8.quantize %a scale(%s, %si : tensor<?x4xf32>, tensor<?x4xf32>) : tensor<?x512xbf16> -> !fp8.scaled<?x512xf8E4M3FN, block = [1, 128], scale = f32>
    %p, %f = fp8.disassemble %q : !fp8.scaled<?x512xf8E4M3FN, block = [1, 128], scale = f32>
    fp8.yield %p, %si : tensor<?x512xf8E4M3FN>, tensor<?x4xf32>
  } : (tensor<?x512xbf16>) -> (tensor<?x512xf8E4M3FN>, tensor<?x4xf32>)
  %q = fp8.assemble %codes, %factors : tensor<?x512xf8E4M3FN>, tensor<?x4xf32> -> !fp8.scaled<?x512xf8E4M3FN, block = [1, 128], scale = f32>
  %y = fp8.matmul %q, %w : !fp8.scaled<?x512xf8E4M3FN, block = [1, 128], scale = f32>, !w -> tensor<?x384xbf16>
  return %y : tensor<?x384xbf16>
}

//===----------------------------------------------------------------------===//
// Not for matmuls alone
//===----------------------------------------------------------------------===//

// CHECK-LABEL: func.func @returned
// CHECK-NOT:   linalg.transpose
// CHECK:       return
func.func @returned(%x: !x, %w: !w) -> (tensor<256x384xbf16>, tensor<256x4xf32>) {
  %codes, %factors = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %amax = fp8.amax %a block = [1, 128] : !x
    %s, %si = fp8.compute_scale %amax format = f8E4M3FN scale_type = f32 rule(#pow2) : tensor<256x4xf32>
    %q = fp8.quantize %a scale(%s, %si : tensor<256x4xf32>, tensor<256x4xf32>) : !x -> !rows
    %p, %f = fp8.disassemble %q : !rows
    fp8.yield %p, %si : !codes, tensor<256x4xf32>
  } : (!x) -> (!codes, tensor<256x4xf32>)
  %q = fp8.assemble %codes, %factors : !codes, tensor<256x4xf32> -> !rows
  %y = fp8.matmul %q, %w : !rows, !w -> tensor<256x384xbf16>
  return %y, %factors : tensor<256x384xbf16>, tensor<256x4xf32>
}

// A scaled value that leaves the function.

// CHECK-LABEL: func.func @dequantized
// CHECK-NOT:   linalg.transpose
// CHECK:       return
func.func @dequantized(%x: !x, %w: !w) -> (tensor<256x384xbf16>, !x) {
  %codes, %factors = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %amax = fp8.amax %a block = [1, 128] : !x
    %s, %si = fp8.compute_scale %amax format = f8E4M3FN scale_type = f32 rule(#pow2) : tensor<256x4xf32>
    %q = fp8.quantize %a scale(%s, %si : tensor<256x4xf32>, tensor<256x4xf32>) : !x -> !rows
    %p, %f = fp8.disassemble %q : !rows
    fp8.yield %p, %si : !codes, tensor<256x4xf32>
  } : (!x) -> (!codes, tensor<256x4xf32>)
  %q = fp8.assemble %codes, %factors : !codes, tensor<256x4xf32> -> !rows
  %d = fp8.dequantize %q : !rows -> !x
  %y = fp8.matmul %q, %w : !rows, !w -> tensor<256x384xbf16>
  return %y, %d : tensor<256x384xbf16>, !x
}

// Factors of whole rows have one order.

// CHECK-LABEL: func.func @whole_rows
// CHECK-NOT:   linalg.transpose
// CHECK:       return
func.func @whole_rows(%x: !x, %w: !fp8.scaled<384x512xf8E4M3FN, block = [1, *], scale = f32>) -> tensor<256x384xbf16> {
  %codes, %factors = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %amax = fp8.amax %a block = [1, *] : !x
    %s, %si = fp8.compute_scale %amax format = f8E4M3FN scale_type = f32 rule(#pow2) : tensor<256x1xf32>
    %q = fp8.quantize %a scale(%s, %si : tensor<256x1xf32>, tensor<256x1xf32>) : !x -> !fp8.scaled<256x512xf8E4M3FN, block = [1, *], scale = f32>
    %p, %f = fp8.disassemble %q : !fp8.scaled<256x512xf8E4M3FN, block = [1, *], scale = f32>
    fp8.yield %p, %si : !codes, tensor<256x1xf32>
  } : (!x) -> (!codes, tensor<256x1xf32>)
  %q = fp8.assemble %codes, %factors : !codes, tensor<256x1xf32> -> !fp8.scaled<256x512xf8E4M3FN, block = [1, *], scale = f32>
  %y = fp8.matmul %q, %w : !fp8.scaled<256x512xf8E4M3FN, block = [1, *], scale = f32>, !fp8.scaled<384x512xf8E4M3FN, block = [1, *], scale = f32> -> tensor<256x384xbf16>
  return %y : tensor<256x384xbf16>
}

// Nor of a matmul that no kernel computes.

// CHECK-LABEL: func.func @no_kernel
// CHECK-NOT:   linalg.transpose
// CHECK:       return
func.func @no_kernel(%x: tensor<256x200xbf16>, %w: !fp8.scaled<384x200xf8E4M3FN, block = [128, 128], scale = f32>) -> tensor<256x384xbf16> {
  %codes, %factors = fp8.fusion(%x) {
  ^bb0(%a: tensor<256x200xbf16>):
    %amax = fp8.amax %a block = [1, 128] : tensor<256x200xbf16>
    %s, %si = fp8.compute_scale %amax format = f8E4M3FN scale_type = f32 rule(#pow2) : tensor<256x2xf32>
    %q = fp8.quantize %a scale(%s, %si : tensor<256x2xf32>, tensor<256x2xf32>) : tensor<256x200xbf16> -> !fp8.scaled<256x200xf8E4M3FN, block = [1, 128], scale = f32>
    %p, %f = fp8.disassemble %q : !fp8.scaled<256x200xf8E4M3FN, block = [1, 128], scale = f32>
    fp8.yield %p, %si : tensor<256x200xf8E4M3FN>, tensor<256x2xf32>
  } : (tensor<256x200xbf16>) -> (tensor<256x200xf8E4M3FN>, tensor<256x2xf32>)
  %q = fp8.assemble %codes, %factors : tensor<256x200xf8E4M3FN>, tensor<256x2xf32> -> !fp8.scaled<256x200xf8E4M3FN, block = [1, 128], scale = f32>
  %y = fp8.matmul %q, %w : !fp8.scaled<256x200xf8E4M3FN, block = [1, 128], scale = f32>, !fp8.scaled<384x200xf8E4M3FN, block = [128, 128], scale = f32> -> tensor<256x384xbf16>
  return %y : tensor<256x384xbf16>
}
