// RUN: fp8-opt %s --fp8-save-quantized --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @source(%{{.*}}: tensor<32x64xbf16> {fp8.save = "x"}) {
// CHECK-NEXT: return
func.func @source(%x: tensor<32x64xbf16> {fp8.save = "x"}) {
  return
}
// CHECK-LABEL: func.func @needs_floats(%{{.*}}: tensor<32x64xbf16> {fp8.saved = "x"})
// expected-remark @below {{saved in high precision: x: 'arith.negf' reads it}}
func.func @needs_floats(%x: tensor<32x64xbf16> {fp8.saved = "x"}) -> (tensor<32x64xf32>, tensor<32x64xbf16>) {
  %q = fp8.quantize %x recipe(#fp8.current) : tensor<32x64xbf16> -> !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
  %d = fp8.dequantize %q : !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32> -> tensor<32x64xf32>
  %n = arith.negf %x : tensor<32x64xbf16>
  return %d, %n : tensor<32x64xf32>, tensor<32x64xbf16>
}

// -----

// CHECK-LABEL: func.func @source(
// CHECK-NEXT: return
func.func @source(%x: tensor<32x64xbf16> {fp8.save = "x"}) {
  return
}
// expected-remark @below {{saved in high precision: x: 'fp8.quantize' reads it}}
func.func @codes_of_half_a_byte(%x: tensor<32x64xbf16> {fp8.saved = "x"}) -> tensor<32x64xf32> {
  %q = fp8.quantize %x recipe(#fp8.nvfp4) : tensor<32x64xbf16> -> !fp8.scaled<32x64xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
  %d = fp8.dequantize %q : !fp8.scaled<32x64xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32> -> tensor<32x64xf32>
  return %d : tensor<32x64xf32>
}

// -----

// CHECK-LABEL: func.func @source(
// CHECK-NEXT: return
// expected-remark @below {{saved in high precision: x: its codes take more memory}}
func.func @source(%x: tensor<32x64xbf16> {fp8.save = "x"}) {
  return
}
func.func @three_formats(%x: tensor<32x64xbf16> {fp8.saved = "x"}) -> (tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>) {
  %q0 = fp8.quantize %x recipe(#fp8.current) : tensor<32x64xbf16> -> !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
  %q1 = fp8.quantize %x recipe(#fp8.rowwise) : tensor<32x64xbf16> -> !fp8.scaled<32x64xf8E4M3FN, block = [1, *], scale = f32>
  %q2 = fp8.quantize %x recipe(#fp8.rowwise) : tensor<32x64xbf16> -> !fp8.scaled<32x64xf8E4M3FN, block = [*, 1], scale = f32>
  %d0 = fp8.dequantize %q0 : !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32> -> tensor<32x64xf32>
  %d1 = fp8.dequantize %q1 : !fp8.scaled<32x64xf8E4M3FN, block = [1, *], scale = f32> -> tensor<32x64xf32>
  %d2 = fp8.dequantize %q2 : !fp8.scaled<32x64xf8E4M3FN, block = [*, 1], scale = f32> -> tensor<32x64xf32>
  return %d0, %d1, %d2 : tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>
}

// -----

func.func @source(%x: tensor<2x?x64xbf16> {fp8.save = "x"}) {
  return
}
// expected-remark @below {{saved in high precision: x: its extents are read}}
func.func @extents_of_views(%x: tensor<2x?x64xbf16> {fp8.saved = "x"}) -> (tensor<?x64xf32>, index) {
  %c1 = arith.constant 1 : index
  %length = tensor.dim %x, %c1 : tensor<2x?x64xbf16>
  %rows = tensor.collapse_shape %x [[0, 1], [2]] : tensor<2x?x64xbf16> into tensor<?x64xbf16>
  %q = fp8.quantize %rows recipe(#fp8.current) : tensor<?x64xbf16> -> !fp8.scaled<?x64xf8E4M3FN, block = [*, *], scale = f32>
  %d = fp8.dequantize %q : !fp8.scaled<?x64xf8E4M3FN, block = [*, *], scale = f32> -> tensor<?x64xf32>
  return %d, %length : tensor<?x64xf32>, index
}

// -----

func.func @source(%x: tensor<32x64xbf16> {fp8.save = "x"}) {
  return
}
// expected-remark @below {{saved in high precision: x: expected a function of one block that is not called in the module}}
func.func @called(%x: tensor<32x64xbf16> {fp8.saved = "x"}) -> tensor<32x64xf32> {
  %q = fp8.quantize %x recipe(#fp8.current) : tensor<32x64xbf16> -> !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
  %d = fp8.dequantize %q : !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32> -> tensor<32x64xf32>
  return %d : tensor<32x64xf32>
}
func.func @caller(%x: tensor<32x64xbf16>) -> tensor<32x64xf32> {
  %d = call @called(%x) : (tensor<32x64xbf16>) -> tensor<32x64xf32>
  return %d : tensor<32x64xf32>
}

// -----

// Nobody reads it.
// CHECK-LABEL: func.func @kept() -> (tensor<4xf32> {fp8.save = "x"})
func.func @kept() -> (tensor<4xf32> {fp8.save = "x"}) {
  %x = arith.constant dense<1.0> : tensor<4xf32>
  return %x : tensor<4xf32>
}

// -----

func.func @source(%x: tensor<32x64xbf16> {fp8.save = "x"}) {
  return
}
// expected-remark @below {{saved in high precision: x: expected a function of one block}}
func.func private @declared(tensor<32x64xbf16> {fp8.saved = "x"}) -> tensor<32x64xf32>

// -----

func.func @source(%x: tensor<32x64xbf16> {fp8.save = "x"}) {
  return
}
// expected-remark @below {{saved in high precision: x: 'fp8.quantize' reads it}}
func.func @in_a_branch(%x: tensor<32x64xbf16> {fp8.saved = "x"}, %c: i1) {
  scf.if %c {
    %q = fp8.quantize %x recipe(#fp8.current) : tensor<32x64xbf16> -> !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
    %codes, %scale = fp8.disassemble %q : !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
  }
  return
}
