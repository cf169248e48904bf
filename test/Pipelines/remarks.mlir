// RUN: fp8-opt %s --fp8-pipeline="recipe=mxfp8 to=recipe" --fp8-remarks=text:%t.txt -o /dev/null
// RUN: FileCheck %s --check-prefix=TEXT --implicit-check-not=: < %t.txt
// RUN: fp8-opt %s --fp8-pipeline="recipe=mxfp8 to=host" --fp8-remarks=json:%t.json -o /dev/null
// RUN: FileCheck %s --check-prefix=JSON < %t.json
// RUN: grep -c '"gemm"' %t.json | FileCheck %s --check-prefix=COUNT

// Exactly one remark for every contraction, with what was decided or why it
// stays and what would change that. A program may be compiled no further than
// the host where its integers stay as they are.

// COUNT: {{^}}12{{$}}

// JSON:      "remarks": [
// JSON-NEXT:   {
// JSON-NEXT:     "a": "f8E4M3FN[1x32]f8E8M0FNU",
// JSON-NEXT:     "a_granularity": "1-D block",
// JSON-NEXT:     "accumulate": "promote",
// JSON-NEXT:     "b": "f8E4M3FN[1x32]f8E8M0FNU",
// JSON-NEXT:     "b_granularity": "1-D block",
// JSON-NEXT:     "function": "f",
// JSON-NEXT:     "gemm": "quantized",
// JSON-NEXT:     "kind": "passed",
// JSON-NEXT:     "location": "{{.*}}remarks.mlir:[[#@LINE+24]]:8",
// JSON-NEXT:     "padding": "none",
// JSON-NEXT:     "recipe": "mxfp8",
// JSON-NEXT:     "role": "fprop",
// JSON-NEXT:     "shape": "M=32 N=16 K=64"
// JSON-NEXT:   },
// JSON:          "gemm": "padded",
// JSON-NEXT:     "kind": "passed",
// JSON:          "padding": "K from 60 to 64",
// JSON:          "gemm": "too_much_padding",
// JSON-NEXT:     "kind": "missed",
// JSON:          "reason": "K=3 is not a multiple of 32 and padding it to 32 would add more than 25%",
// JSON-NEXT:     "recipe": "mxfp8",
// JSON-NEXT:     "role": "fprop",
// JSON-NEXT:     "shape": "M=32 N=16 K=3",
// JSON-NEXT:     "suggestion": "make K a multiple of 32 or raise max-padding"
// JSON:        "version": 2

!a = tensor<32x64xbf16>
!b = tensor<64x16xbf16>
!c = tensor<32x16xf32>
func.func @f(%x: !a, %w: !b, %c: !c, %x60: tensor<32x60xbf16>, %w60: tensor<60x16xbf16>, %x3: tensor<32x3xbf16>, %w3: tensor<3x16xbf16>,
             %xd: tensor<?x?xbf16>, %wd: tensor<?x?xbf16>, %cd: tensor<?x?xf32>) -> (!c, !c, !c, tensor<?x?xf32>) {
  // TEXT: {{^}}quantized: fp8; role fprop, shape M=32 N=16 K=64, recipe mxfp8, a f8E4M3FN[1x32]f8E8M0FNU, b f8E4M3FN[1x32]f8E8M0FNU, a_granularity 1-D block, b_granularity 1-D block, accumulate promote, padding none{{$}}
  %0 = linalg.matmul {fp8.name = "quantized"} ins(%x, %w : !a, !b) outs(%c : !c) -> !c
  // TEXT: {{^}}padded: fp8; {{.*}} padding K from 60 to 64{{$}}
  %1 = linalg.matmul {fp8.name = "padded"} ins(%x60, %w60 : tensor<32x60xbf16>, tensor<60x16xbf16>) outs(%c : !c) -> !c
  // TEXT: {{^}}too_much_padding: high precision; role fprop, shape M=32 N=16 K=3, recipe mxfp8, reason K=3 is not a multiple of 32 and padding it to 32 would add more than 25%, suggestion make K a multiple of 32 or raise max-padding{{$}}
  %2 = linalg.matmul {fp8.name = "too_much_padding"} ins(%x3, %w3 : tensor<32x3xbf16>, tensor<3x16xbf16>) outs(%c : !c) -> !c
  // TEXT: {{^}}dynamic: fp8; role fprop, shape M=? N=? K=?, {{.*}} padding K to a multiple of 32 at run time{{$}}
  %3 = linalg.matmul {fp8.name = "dynamic"} ins(%xd, %wd : tensor<?x?xbf16>, tensor<?x?xbf16>) outs(%cd : tensor<?x?xf32>) -> tensor<?x?xf32>
  return %0, %1, %2, %3 : !c, !c, !c, tensor<?x?xf32>
}

func.func @recipes(%x: !a, %w: !b, %c: !c, %bx: tensor<4x32x64xbf16>, %bw: tensor<4x64x16xbf16>, %bc: tensor<4x32x16xf32>) -> (!c, !c, !c, tensor<4x32x16xf32>) {
  // TEXT: {{^}}tensor: fp8; {{.*}}recipe current, {{.*}} a_granularity tensor, b_granularity tensor, accumulate fast
  %0 = linalg.matmul {fp8.name = "tensor", fp8.recipe = #fp8.current<accumulate = fast>} ins(%x, %w : !a, !b) outs(%c : !c) -> !c
  // TEXT: {{^}}row: fp8; {{.*}}recipe rowwise, {{.*}} a_granularity row, b_granularity row,
  %1 = linalg.matmul {fp8.name = "row", fp8.recipe = #fp8.rowwise} ins(%x, %w : !a, !b) outs(%c : !c) -> !c
  // TEXT: {{^}}none: high precision; role fprop, shape M=32 N=16 K=64, recipe none, reason its recipe is none, suggestion give it another recipe{{$}}
  %2 = linalg.matmul {fp8.name = "none", fp8.recipe = #fp8.none} ins(%x, %w : !a, !b) outs(%c : !c) -> !c
  // TEXT: {{^}}batch: fp8; role fprop, shape batch=4 M=32 N=16 K=64, {{.*}}a f4E2M1FN[1x16]f8E4M3FN+f32
  %3 = linalg.batch_matmul {fp8.name = "batch", fp8.recipe = #fp8.nvfp4} ins(%bx, %bw : tensor<4x32x64xbf16>, tensor<4x64x16xbf16>) outs(%bc : tensor<4x32x16xf32>) -> tensor<4x32x16xf32>
  return %0, %1, %2, %3 : !c, !c, !c, tensor<4x32x16xf32>
}

func.func @unsupported(%d: tensor<16x16xf64>, %i: tensor<16x16xi8>, %j: tensor<16x16xi32>, %x: tensor<16x16xf32> {fp8.grad}) -> (tensor<16x16xf64>, tensor<16x16xi32>, tensor<16xf32>, tensor<16x16xf32>) {
  // TEXT: {{^}}double: high precision; role fprop, recipe mxfp8, reason the contraction has operands of type f64, not f32, bf16 or f16, suggestion convert its operands to f32, bf16 or f16{{$}}
  %0 = linalg.matmul {fp8.name = "double"} ins(%d, %d : tensor<16x16xf64>, tensor<16x16xf64>) outs(%d : tensor<16x16xf64>) -> tensor<16x16xf64>
  // TEXT: {{^}}integer: high precision; {{.*}}reason the contraction has operands of type i8
  %1 = linalg.matmul {fp8.name = "integer"} ins(%i, %i : tensor<16x16xi8>, tensor<16x16xi8>) outs(%j : tensor<16x16xi32>) -> tensor<16x16xi32>
  // TEXT: {{^}}diagonal: high precision; {{.*}}reason the contraction indexes an operand by an expression or twice by one loop, as a convolution does, suggestion express it as a matrix product, e.g. after im2col{{$}}
  %e = tensor.empty() : tensor<16xf32>
  %2 = linalg.generic {indexing_maps = [affine_map<(m, k) -> (m, m)>, affine_map<(m, k) -> (m, k)>, affine_map<(m, k) -> (m)>], iterator_types = ["parallel", "reduction"]}
      ins(%x, %x : tensor<16x16xf32>, tensor<16x16xf32>) outs(%e : tensor<16xf32>) attrs = {fp8.name = "diagonal"} {
  ^bb0(%a: f32, %b: f32, %s: f32):
    %p = arith.mulf %a, %b : f32
    %n = arith.addf %p, %s : f32
    linalg.yield %n : f32
  } -> tensor<16xf32>
  // Said of two operands of E5M2 only.
  // TEXT: {{^}}gradients: fp8; {{.*}}a f8E5M2[*x*]f32, b f8E5M2[*x*]f32, {{.*}} accumulate promote, precision 2 mantissa bits in both operands, which rounds an element by up to 2^-3 of it where E4M3 rounds by 2^-4, padding none{{$}}
  %3 = linalg.matmul {fp8.name = "gradients", fp8.recipe = #fp8.current} ins(%x, %x : tensor<16x16xf32>, tensor<16x16xf32>) outs(%x : tensor<16x16xf32>) -> tensor<16x16xf32>
  return %0, %1, %2, %3 : tensor<16x16xf64>, tensor<16x16xi32>, tensor<16xf32>, tensor<16x16xf32>
}
