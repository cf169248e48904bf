// RUN: fp8-opt --fp8-set-target=chip=sm_100a --fp8-select-kernels="%every_candidate" --fp8-build-kernels %s --emit-bytecode -o %t.mlirbc
// RUN: fp8-translate --kernels-to-ptx %t.mlirbc -o %t.ptx
// RUN: %ptxas -v -arch=sm_100a %t.ptx -o %t.cubin > %t.log 2>&1
// RUN: %python %S/../Inputs/check_resources.py %t.log | FileCheck %s
// REQUIRES: ptxas

// Every config of the table for groups of rows: beside a matmul's there is a
// table of groups, and a store for tiles that end where a group does.

// CHECK: {{[0-9][0-9]+}} kernels

!x = !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
!r = !fp8.scaled<4096x4096xf8E4M3FN, block = [1, *], scale = f32>
!m = !fp8.scaled<4096x4096xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
!n = !fp8.scaled<4096x4096xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
!f = !fp8.scaled<4096x4096xf8E4M3FN, block = [1, 128], scale = f32>

!w = !fp8.scaled<8x4096x4096xf8E4M3FN, block = [*, *, *], scale = f32>
func.func @grouped(%x: !x, %w: !w, %offsets: tensor<9xi32>) -> tensor<4096x4096xbf16> {
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<9xi32>) accumulate = fast : !x, !w -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

func.func @grouped_plain(%x: tensor<4096x4096xbf16>, %w: tensor<8x4096x4096xbf16>, %offsets: tensor<9xi32>) -> tensor<4096x4096xf32> {
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<9xi32>) transpose_b accumulate = fast
      : tensor<4096x4096xbf16>, tensor<8x4096x4096xbf16> -> tensor<4096x4096xf32>
  return %0 : tensor<4096x4096xf32>
}

!wr = !fp8.scaled<8x4096x4096xf8E4M3FN, block = [1, 1, *], scale = f32>
func.func @grouped_rows(%x: !r, %w: !wr, %offsets: tensor<9xi32>, %g: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %one = arith.constant 1.0 : f32
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<9xi32>) accumulate = fast epilogue(%g : tensor<4096x4096xbf16>) {
  ^bb0(%acc: f32, %e: bf16):
    %1 = arith.extf %e : bf16 to f32
    %2 = arith.negf %1 : f32
    %3 = math.exp %2 : f32
    %4 = arith.addf %3, %one : f32
    %5 = arith.divf %acc, %4 : f32
    %6 = arith.truncf %5 : f32 to bf16
    fp8.yield %6 : bf16
  } : !r, !wr -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

!wm = !fp8.scaled<8x4096x4096xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU>
func.func @grouped_micro(%x: !m, %w: !wm, %offsets: tensor<9xi32>) -> tensor<4096x4096xbf16> {
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<9xi32>) : !m, !wm -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

!wn = !fp8.scaled<8x4096x4096xf4E2M1FN, block = [1, 1, 16], scale = f8E4M3FN, tensor_scale = f32>
func.func @grouped_nvfp4(%x: !n, %w: !wn, %offsets: tensor<9xi32>) -> tensor<4096x4096xbf16> {
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<9xi32>) : !n, !wn -> tensor<4096x4096xbf16>
  return %0 : tensor<4096x4096xbf16>
}

!wt = !fp8.scaled<8x4096x4096xf8E4M3FN, block = [1, 128, 128], scale = f32>
func.func @grouped_promoted(%x: !f, %w: !wt, %offsets: tensor<9xi32>, %g: tensor<4096x4096xbf16>) -> (tensor<4096x4096xbf16>, tensor<4096x4096xf32>) {
  %0 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<9xi32>) : !f, !wt -> tensor<4096x4096xbf16>
  %one = arith.constant 1.0 : f32
  %1 = fp8.grouped_matmul %x, %w offsets(%offsets : tensor<9xi32>) epilogue(%g : tensor<4096x4096xbf16>) {
  ^bb0(%acc: f32, %e: bf16):
    %2 = arith.extf %e : bf16 to f32
    %3 = arith.negf %2 : f32
    %4 = math.exp %3 : f32
    %5 = arith.addf %4, %one : f32
    %6 = arith.divf %acc, %5 : f32
    fp8.yield %6 : f32
  } : !f, !wt -> tensor<4096x4096xf32>
  return %0, %1 : tensor<4096x4096xbf16>, tensor<4096x4096xf32>
}

// Groups that are counted.

!cf = !fp8.scaled<8x4096x4096xf8E4M3FN, block = [1, 1, 128], scale = f32>
func.func @counted(%x: !w, %y: !cf, %w: !wt, %counts: tensor<8xi32>) -> (tensor<8x4096x4096xbf16>, tensor<8x4096x4096xbf16>) {
  %0 = fp8.grouped_matmul %x, %x counts(%counts : tensor<8xi32>) accumulate = fast : !w, !w -> tensor<8x4096x4096xbf16>
  %1 = fp8.grouped_matmul %y, %w counts(%counts : tensor<8xi32>) undef_padding : !cf, !wt -> tensor<8x4096x4096xbf16>
  return %0, %1 : tensor<8x4096x4096xbf16>, tensor<8x4096x4096xbf16>
}
