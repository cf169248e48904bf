// RUN: split-file %s %t
// RUN: fp8-opt %t/stream.mlir --convert-fp8-to-linalg -o %t/stream.out
// RUN: fp8-opt %t/body.mlir --convert-fp8-to-linalg -o %t/body.out
// RUN: diff %t/stream.out %t/body.out
// RUN: FileCheck %s --input-file=%t/stream.out --implicit-check-not=fp8.

// A stream means what its body means, in place.

// CHECK-LABEL: func.func @cast
// CHECK:       linalg.generic
// CHECK:       return %{{.+}}, %{{.+}} : tensor<4x8xf8E4M3FN>, tensor<1x1xf32>

// Where several stand, and in blocks of their own.

// CHECK-LABEL: func.func @chain
// CHECK:       scf.if
// CHECK:         linalg.generic
// CHECK:         scf.yield
// CHECK:       math.exp

//--- stream.mlir
#id = affine_map<(i, j) -> (i, j)>
!x = tensor<4x8xf32>
!one = tensor<1x1xf32>
!q = !fp8.scaled<4x8xf8E4M3FN, block = [*, *], scale = f32>

func.func @cast(%x: !x, %s: !one, %si: !one) -> (tensor<4x8xf8E4M3FN>, !one) {
  %codes, %amax = fp8.fusion(%x, %s, %si) {
  ^bb0(%0: !x, %1: !one, %2: !one):
    %3 = fp8.quantize %0 scale(%1, %2 : !one, !one) : !x -> !q
    %payload, %scale_inv = fp8.disassemble %3 : !q
    %4 = fp8.amax %0 block = [*, *] : !x
    fp8.yield %payload, %4 : tensor<4x8xf8E4M3FN>, !one
  } : (!x, !one, !one) -> (tensor<4x8xf8E4M3FN>, !one)
  return %codes, %amax : tensor<4x8xf8E4M3FN>, !one
}

func.func @chain(%x: !x, %go: i1) -> !x {
  %amax = scf.if %go -> !one {
    %0 = fp8.fusion(%x) {
    ^bb0(%1: !x):
      %2 = fp8.amax %1 block = [*, *] : !x
      fp8.yield %2 : !one
    } : (!x) -> !one
    scf.yield %0 : !one
  } else {
    %zeros = arith.constant dense<0.0> : !one
    scf.yield %zeros : !one
  }
  %3 = fp8.fusion(%x, %amax) {
  ^bb0(%4: !x, %5: !one):
    %6 = tensor.empty() : !x
    %7 = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (0, 0)>, #id], iterator_types = ["parallel", "parallel"]} ins(%4, %5 : !x, !one) outs(%6 : !x) {
    ^bb0(%8: f32, %9: f32, %10: f32):
      %11 = math.exp %8 : f32
      %12 = arith.mulf %11, %9 : f32
      linalg.yield %12 : f32
    } -> !x
    fp8.yield %7 : !x
  } : (!x, !one) -> !x
  return %3 : !x
}

//--- body.mlir
#id = affine_map<(i, j) -> (i, j)>
!x = tensor<4x8xf32>
!one = tensor<1x1xf32>
!q = !fp8.scaled<4x8xf8E4M3FN, block = [*, *], scale = f32>

func.func @cast(%x: !x, %s: !one, %si: !one) -> (tensor<4x8xf8E4M3FN>, !one) {
  %3 = fp8.quantize %x scale(%s, %si : !one, !one) : !x -> !q
  %payload, %scale_inv = fp8.disassemble %3 : !q
  %4 = fp8.amax %x block = [*, *] : !x
  return %payload, %4 : tensor<4x8xf8E4M3FN>, !one
}

func.func @chain(%x: !x, %go: i1) -> !x {
  %amax = scf.if %go -> !one {
    %2 = fp8.amax %x block = [*, *] : !x
    scf.yield %2 : !one
  } else {
    %zeros = arith.constant dense<0.0> : !one
    scf.yield %zeros : !one
  }
  %6 = tensor.empty() : !x
  %7 = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (0, 0)>, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %amax : !x, !one) outs(%6 : !x) {
  ^bb0(%8: f32, %9: f32, %10: f32):
    %11 = math.exp %8 : f32
    %12 = arith.mulf %11, %9 : f32
    linalg.yield %12 : f32
  } -> !x
  return %7 : !x
}
