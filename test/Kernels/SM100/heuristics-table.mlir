// RUN: fp8-opt --fp8-set-target=chip=sm_100a --fp8-select-kernels="%every_candidate" --fp8-build-kernels %s --emit-bytecode -o %t.mlirbc
// RUN: fp8-translate --kernels-to-ptx %t.mlirbc -o %t.ptx
// RUN: %ptxas -v -arch=sm_100a %t.ptx -o %t.cubin > %t.log 2>&1
// RUN: %python %S/../Inputs/check_resources.py %t.log | FileCheck %s
// REQUIRES: ptxas

// Every config of the table becomes machine code without spills or warnings,
// and takes no more memory than there is.

// CHECK: {{[0-9][0-9]+}} kernels

!x = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
!r = !fp8.scaled<4096x4096xf8E4M3FN, block = [1, *], scale = f32>
!m = !fp8.scaled<4096x4096xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>

func.func @fast(%a: !x) -> tensor<4096x4096xbf16> {
  %0 = fp8.matmul %a, %a accumulate = fast : !x, !x -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

func.func @row(%a: !r) -> tensor<4096x4096xf32> {
  %0 = fp8.matmul %a, %a : !r, !r -> tensor<4096x4096xf32>
  return %0 : tensor<4096x4096xf32>
}

func.func @micro(%a: !m) -> tensor<4096x4096xbf16> {
  %0 = fp8.matmul %a, %a : !m, !m -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

!n = !fp8.scaled<4096x4096xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
func.func @nvfp4(%a: !n) -> tensor<4096x4096xbf16> {
  %0 = fp8.matmul %a, %a : !n, !n -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

!m4 = !fp8.scaled<4096x4096xf4E2M1FN, block = [1, 32], scale = f8E8M0FNU>
func.func @mxfp4(%a: !m4) -> tensor<4096x4096xbf16> {
  %0 = fp8.matmul %a, %a : !m4, !m4 -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

// Two products in a tile: the second one's epilogue reads the first.
func.func @gated_micro(%a: !m) -> tensor<4096x4096xbf16> {
  %0 = fp8.sibling_matmuls {
    %1 = fp8.matmul %a, %a : !m, !m -> tensor<4096x4096xbf16>
    %2 = fp8.matmul %a, %a epilogue(%1 : tensor<4096x4096xbf16>) {
    ^bb0(%acc: f32, %gate: bf16):
      %3 = arith.extf %gate : bf16 to f32
      %4 = arith.mulf %acc, %3 : f32
      %5 = arith.truncf %4 : f32 to bf16
      fp8.yield %5 : bf16
    } : !m, !m -> tensor<4096x4096xbf16>
    fp8.yield %2 : tensor<4096x4096xbf16>
  } : tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

func.func @gated_nvfp4(%a: !n) -> tensor<4096x4096xbf16> {
  %0 = fp8.sibling_matmuls {
    %1 = fp8.matmul %a, %a : !n, !n -> tensor<4096x4096xbf16>
    %2 = fp8.matmul %a, %a epilogue(%1 : tensor<4096x4096xbf16>) {
    ^bb0(%acc: f32, %gate: bf16):
      %3 = arith.extf %gate : bf16 to f32
      %4 = arith.mulf %acc, %3 : f32
      %5 = arith.truncf %4 : f32 to bf16
      fp8.yield %5 : bf16
    } : !n, !n -> tensor<4096x4096xbf16>
    fp8.yield %2 : tensor<4096x4096xbf16>
  } : tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

func.func @transposed(%a: !x) -> tensor<4096x4096xbf16> {
  %0 = fp8.matmul %a, %a transpose_a transpose_b : !x, !x -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

func.func @plain(%a: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %0 = fp8.matmul %a, %a transpose_a transpose_b accumulate = fast : tensor<4096x4096xbf16>, tensor<4096x4096xbf16> -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

func.func @gelu_quantize(%a: !x, %bias: tensor<4096xbf16>, %scale: f32) -> (tensor<4096x4096xf8E4M3FN>, tensor<1x1xf32>) {
  %0:2 = fp8.matmul %a, %a accumulate = fast epilogue(%bias : tensor<4096xbf16>) {
  ^bb0(%acc: f32, %b0: bf16):
    %root = arith.constant 0.70710678118 : f32
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %high = arith.constant 448.0 : f32
    %low = arith.constant -448.0 : f32
    %1 = arith.extf %b0 : bf16 to f32
    %2 = arith.addf %acc, %1 : f32
    %3 = arith.mulf %2, %root : f32
    %4 = math.erf %3 : f32
    %5 = arith.addf %4, %one : f32
    %6 = arith.mulf %2, %5 : f32
    %x = arith.mulf %6, %half : f32
    %s = arith.mulf %x, %scale : f32
    %above = arith.cmpf ogt, %s, %high : f32
    %s1 = arith.select %above, %high, %s : f32
    %below = arith.cmpf olt, %s1, %low : f32
    %s2 = arith.select %below, %low, %s1 : f32
    %q = arith.truncf %s2 : f32 to f8E4M3FN
    fp8.yield %q, %x : f8E4M3FN, f32
  } : !x, !x -> tensor<4096x4096xf8E4M3FN>, tensor<1x1xf32>
  return %0#0, %0#1 : tensor<4096x4096xf8E4M3FN>, tensor<1x1xf32>
}

// Roundings of the sums themselves, and functions, in the epilogue.

func.func @gated(%a: !x, %g: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %one = arith.constant 1.0 : f32
  %0 = fp8.matmul %a, %a accumulate = fast epilogue(%g : tensor<4096x4096xbf16>) {
  ^bb0(%acc: f32, %e: bf16):
    %1 = arith.truncf %acc : f32 to bf16
    %2 = arith.extf %1 : bf16 to f32
    %3 = arith.extf %e : bf16 to f32
    %4 = arith.negf %3 : f32
    %5 = math.exp %4 : f32
    %6 = arith.addf %5, %one : f32
    %7 = arith.divf %2, %6 : f32
    %8 = arith.truncf %7 : f32 to bf16
    fp8.yield %8 : bf16
  } : !x, !x -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

func.func @gated_plain(%a: tensor<4096x4096xbf16>, %g: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %one = arith.constant 1.0 : f32
  %0 = fp8.matmul %a, %a accumulate = fast epilogue(%g : tensor<4096x4096xbf16>) {
  ^bb0(%acc: f32, %e: bf16):
    %1 = arith.truncf %acc : f32 to bf16
    %2 = arith.extf %1 : bf16 to f32
    %3 = arith.extf %e : bf16 to f32
    %4 = arith.negf %3 : f32
    %5 = math.exp %4 : f32
    %6 = arith.addf %5, %one : f32
    %7 = arith.divf %2, %6 : f32
    %8 = arith.truncf %7 : f32 to bf16
    fp8.yield %8 : bf16
  } : tensor<4096x4096xbf16>, tensor<4096x4096xbf16> -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

// Sums of K blocks in registers, with factors of rows and of tiles, each way
// round, and what becomes of them.

!f = !fp8.scaled<4096x4096xf8E4M3FN, block = [1, 128], scale = f32>
!t = !fp8.scaled<4096x4096xf8E4M3FN, block = [128, 128], scale = f32>
func.func @block(%a: !f, %b: !t) -> tensor<4096x4096xbf16> {
  %0 = fp8.matmul %a, %b : !f, !t -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

func.func @block_rows(%a: !f) -> tensor<4096x4096xf32> {
  %0 = fp8.matmul %a, %a : !f, !f -> tensor<4096x4096xf32>
  return %0 : tensor<4096x4096xf32>
}

func.func @block_tiles(%a: !t, %b: !f) -> tensor<4096x4096xbf16> {
  %0 = fp8.matmul %a, %b : !t, !f -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

func.func @block_gelu_quantize(%a: !f, %b: !t, %bias: tensor<4096xbf16>, %scale: f32) -> (tensor<4096x4096xf8E4M3FN>, tensor<1x1xf32>) {
  %0:2 = fp8.matmul %a, %b epilogue(%bias : tensor<4096xbf16>) {
  ^bb0(%acc: f32, %b0: bf16):
    %root = arith.constant 0.70710678118 : f32
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %high = arith.constant 448.0 : f32
    %low = arith.constant -448.0 : f32
    %1 = arith.extf %b0 : bf16 to f32
    %2 = arith.addf %acc, %1 : f32
    %3 = arith.mulf %2, %root : f32
    %4 = math.erf %3 : f32
    %5 = arith.addf %4, %one : f32
    %6 = arith.mulf %2, %5 : f32
    %x = arith.mulf %6, %half : f32
    %s = arith.mulf %x, %scale : f32
    %above = arith.cmpf ogt, %s, %high : f32
    %s1 = arith.select %above, %high, %s : f32
    %below = arith.cmpf olt, %s1, %low : f32
    %s2 = arith.select %below, %low, %s1 : f32
    %q = arith.truncf %s2 : f32 to f8E4M3FN
    fp8.yield %q, %x : f8E4M3FN, f32
  } : !f, !t -> tensor<4096x4096xf8E4M3FN>, tensor<1x1xf32>
  return %0#0, %0#1 : tensor<4096x4096xf8E4M3FN>, tensor<1x1xf32>
}

func.func @block_rows_gelu_quantize(%a: !f, %b: !f, %bias: tensor<4096xbf16>, %scale: f32) -> (tensor<4096x4096xf8E4M3FN>, tensor<1x1xf32>) {
  %0:2 = fp8.matmul %a, %b epilogue(%bias : tensor<4096xbf16>) {
  ^bb0(%acc: f32, %b0: bf16):
    %root = arith.constant 0.70710678118 : f32
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %high = arith.constant 448.0 : f32
    %low = arith.constant -448.0 : f32
    %1 = arith.extf %b0 : bf16 to f32
    %2 = arith.addf %acc, %1 : f32
    %3 = arith.mulf %2, %root : f32
    %4 = math.erf %3 : f32
    %5 = arith.addf %4, %one : f32
    %6 = arith.mulf %2, %5 : f32
    %x = arith.mulf %6, %half : f32
    %s = arith.mulf %x, %scale : f32
    %above = arith.cmpf ogt, %s, %high : f32
    %s1 = arith.select %above, %high, %s : f32
    %below = arith.cmpf olt, %s1, %low : f32
    %s2 = arith.select %below, %low, %s1 : f32
    %q = arith.truncf %s2 : f32 to f8E4M3FN
    fp8.yield %q, %x : f8E4M3FN, f32
  } : !f, !f -> tensor<4096x4096xf8E4M3FN>, tensor<1x1xf32>
  return %0#0, %0#1 : tensor<4096x4096xf8E4M3FN>, tensor<1x1xf32>
}

func.func @block_gated(%a: !f, %b: !t, %g: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %one = arith.constant 1.0 : f32
  %0 = fp8.matmul %a, %b epilogue(%g : tensor<4096x4096xbf16>) {
  ^bb0(%acc: f32, %e: bf16):
    %1 = arith.truncf %acc : f32 to bf16
    %2 = arith.extf %1 : bf16 to f32
    %3 = arith.extf %e : bf16 to f32
    %4 = arith.negf %3 : f32
    %5 = math.exp %4 : f32
    %6 = arith.addf %5, %one : f32
    %7 = arith.divf %2, %6 : f32
    %8 = arith.truncf %7 : f32 to bf16
    fp8.yield %8 : bf16
  } : !f, !t -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

func.func @block_tiles_gated(%a: !t, %b: !f, %g: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %one = arith.constant 1.0 : f32
  %0 = fp8.matmul %a, %b epilogue(%g : tensor<4096x4096xbf16>) {
  ^bb0(%acc: f32, %e: bf16):
    %1 = arith.truncf %acc : f32 to bf16
    %2 = arith.extf %1 : bf16 to f32
    %3 = arith.extf %e : bf16 to f32
    %4 = arith.negf %3 : f32
    %5 = math.exp %4 : f32
    %6 = arith.addf %5, %one : f32
    %7 = arith.divf %2, %6 : f32
    %8 = arith.truncf %7 : f32 to bf16
    fp8.yield %8 : bf16
  } : !t, !f -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}
