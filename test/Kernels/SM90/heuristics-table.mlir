// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-select-kernels="%every_candidate" --fp8-build-kernels %s --emit-bytecode -o %t.mlirbc
// RUN: fp8-translate --kernels-to-ptx %t.mlirbc -o %t.ptx
// RUN: %ptxas -v -arch=sm_90a %t.ptx -o %t.cubin > %t.log 2>&1
// RUN: %python %S/../Inputs/check_resources.py %t.log | FileCheck %s
// REQUIRES: ptxas

// What large and small products may take becomes machine code without spills,
// without wgmma that is serialized, without setmaxnreg that is ignored.

// CHECK: {{[0-9][0-9]+}} kernels

!x = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
!r = !fp8.scaled<4096x4096xf8E4M3FN, block = [1, *], scale = f32>
!b = !fp8.scaled<4096x4096xf8E4M3FN, block = [1, 128], scale = f32>
!w = !fp8.scaled<4096x4096xf8E4M3FN, block = [128, 128], scale = f32>

func.func @fast(%a: !x) -> tensor<4096x4096xbf16> {
  %0 = fp8.matmul %a, %a accumulate = fast : !x, !x -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

func.func @row(%a: !r) -> tensor<4096x4096xf32> {
  %0 = fp8.matmul %a, %a : !r, !r -> tensor<4096x4096xf32>
  return %0 : tensor<4096x4096xf32>
}

func.func @block(%a: !b, %b: !w) -> tensor<4096x4096xbf16> {
  %0 = fp8.matmul %a, %b : !b, !w -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

func.func @block_both(%a: !b) -> tensor<4096x4096xbf16> {
  %0 = fp8.matmul %a, %a : !b, !b -> tensor<4096x4096xbf16>
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

// Few rows, few tiles of a long K, and lines that do not start at cache lines.

!f = !fp8.scaled<24x4176xf8E4M3FN, block = [*, *], scale = f32>
!g = !fp8.scaled<4176x4176xf8E4M3FN, block = [*, *], scale = f32>
!h = !fp8.scaled<152x13040xf8E4M3FN, block = [1, *], scale = f32>
!i = !fp8.scaled<1536x13040xf8E4M3FN, block = [1, *], scale = f32>
!j = !fp8.scaled<152x13824xf8E4M3FN, block = [1, 128], scale = f32>
!k = !fp8.scaled<1536x13824xf8E4M3FN, block = [128, 128], scale = f32>
!l = !fp8.scaled<1536x13824xf8E4M3FN, block = [1, 128], scale = f32>

func.func @few_rows(%a: !f, %b: !g) -> tensor<24x4176xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast : !f, !g -> tensor<24x4176xbf16>
  return %0 : tensor<24x4176xbf16>
}

func.func @few_rows_promoted(%a: !f, %b: !g) -> tensor<24x4176xf32> {
  %0 = fp8.matmul %a, %b : !f, !g -> tensor<24x4176xf32>
  return %0 : tensor<24x4176xf32>
}

func.func @long_row(%a: !h, %b: !i) -> tensor<152x1536xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast : !h, !i -> tensor<152x1536xbf16>
  return %0 : tensor<152x1536xbf16>
}

func.func @long_row_promoted(%a: !h, %b: !i) -> tensor<152x1536xbf16> {
  %0 = fp8.matmul %a, %b : !h, !i -> tensor<152x1536xbf16>
  return %0 : tensor<152x1536xbf16>
}

func.func @long_block(%a: !j, %b: !k) -> tensor<152x1536xbf16> {
  %0 = fp8.matmul %a, %b : !j, !k -> tensor<152x1536xbf16>
  return %0 : tensor<152x1536xbf16>
}

func.func @long_block_both(%a: !j, %b: !l) -> tensor<152x1536xbf16> {
  %0 = fp8.matmul %a, %b : !j, !l -> tensor<152x1536xbf16>
  return %0 : tensor<152x1536xbf16>
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
