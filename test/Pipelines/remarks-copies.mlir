// RUN: fp8-opt %s --fp8-pipeline="recipe=current target=sm_90a to=buffers" --fp8-remarks=json:%t.json -o /dev/null
// RUN: FileCheck %s < %t.json
// RUN: fp8-opt %s --fp8-pipeline="recipe=current target=sm_90a to=buffers" --fp8-remarks=text:- -o /dev/null | FileCheck %s --check-prefix=TEXT
// RUN: fp8-opt %s --fp8-pipeline="recipe=current target=sm_90a to=fusion" --fp8-remarks=json:- -o /dev/null | FileCheck %s --check-prefix=NONE
// RUN: fp8-opt %s --fp8-pipeline="recipe=current target=cpu to=buffers" --fp8-remarks=json:- -o /dev/null | FileCheck %s --check-prefix=NONE

// What is copied for a kernel is said beside what was decided about the
// contractions, which have one remark each as ever. Targets that read operands
// in any order copy none; before kernels are selected nobody knows. A weight that
// is cast in the program is written in the other order where it is cast, which
// is no copy.

// CHECK:      {
// CHECK-NEXT:   "copies": [
// CHECK-NEXT:     {
// CHECK-NEXT:       "bytes": 131072,
// CHECK-NEXT:       "function": "linear",
// CHECK-NEXT:       "gemm": "fc",
// CHECK-NEXT:       "location": "{{.*}}remarks-copies.mlir:[[#@LINE+27]]:8",
// CHECK-NEXT:       "operand": "b",
// CHECK-NEXT:       "reason": "expected K to be the innermost dimension of B, which the tensor core transposes only of 16-bit elements, but they are f8E4M3FN",
// CHECK-NEXT:       "suggestion": "pass w with the K of this product innermost",
// CHECK-NEXT:       "type": "512x256xf8E4M3FN"
// CHECK-NEXT:     }
// CHECK-NEXT:   ],
// CHECK-NEXT:   "remarks": [
// CHECK-COUNT-1: "gemm": "fc"
// CHECK-COUNT-1: "gemm": "cast"
// CHECK-NOT:     "gemm"
// CHECK:        "version": 2

// TEXT:      {{^}}fc: fp8; role fprop,
// TEXT-NEXT: {{^}}cast: fp8; role fprop,
// TEXT-NEXT: {{^}}fc: copy; operand b, type 512x256xf8E4M3FN, bytes 131072, reason {{.*$}}
// TEXT-NOT: {{.}}

// NONE: "copies": [],

!w = !fp8.scaled<256x512xf8E4M3FN, block = [*, *], scale = f32>

func.func @linear(%x: tensor<128x256xbf16>, %w: !w {fp8.name = "w", fp8.weight}) -> tensor<128x512xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<128x512xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<128x512xf32>) -> tensor<128x512xf32>
  %v = fp8.dequantize %w : !w -> tensor<256x512xbf16>
  %y = linalg.matmul {fp8.name = "fc"} ins(%x, %v : tensor<128x256xbf16>, tensor<256x512xbf16>) outs(%zeros : tensor<128x512xf32>) -> tensor<128x512xf32>
  return %y : tensor<128x512xf32>
}

func.func @cast(%x: tensor<128x256xbf16>, %w: tensor<256x512xbf16> {fp8.name = "w", fp8.weight}) -> tensor<128x512xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<128x512xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%empty : tensor<128x512xf32>) -> tensor<128x512xf32>
  %y = linalg.matmul {fp8.name = "cast"} ins(%x, %w : tensor<128x256xbf16>, tensor<256x512xbf16>) outs(%zeros : tensor<128x512xf32>) -> tensor<128x512xf32>
  return %y : tensor<128x512xf32>
}
