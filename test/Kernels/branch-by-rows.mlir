// RUN: fp8-opt --fp8-branch-by-rows=chip=sm_90a %s 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t
// RUN: fp8-opt --fp8-branch-by-rows=chip=sm_100a %s 2>&1 | FileCheck %s --check-prefix=BLACKWELL
// RUN: not fp8-opt --fp8-branch-by-rows=chip=sm_70 %s 2>&1 | FileCheck %s --check-prefix=CHIP
// RUN: fp8-opt --fp8-branch-by-rows=chip=sm_90a --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-group-matmuls --fp8-dispatch-by-rows %s 2>/dev/null | FileCheck %s --check-prefix=CONFIGS

// CHIP: error: expected chip to be one of sm_90a, sm_100a, sm_89, sm_120a, sm_121a, sm_80, but got 'sm_70'
// REMARK: remark: up to {{48|64}} rows are multiplied as '!fp8.scaled<?x4096xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>' and '!fp8.scaled<4096x4096xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>', each sum of 32 by its factors: in bf16 {{48|64}} are expected to take {{1[.][0-9]+}} times as long
// REMARK: remark: from [[LEAST:[0-9]+]] rows on a pass makes bf16 of '!fp8.scaled<4096x4096xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>': where kernels read the codes [[LEAST]] are expected to take {{1[.][0-9]+}} times as long
// BLACKWELL-NOT: scf.if

!a = !fp8.scaled<?x4096xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
!b = !fp8.scaled<4096x4096xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
!x = tensor<?x4096xbf16>
!w = tensor<4096x4096xbf16>

// What bf16 is made of in memory is made where it is read. Each branch has kernels for the rows that it is for.
// CHECK-LABEL: func.func @rows
// CHECK-SAME: %[[CODES:.*]]: tensor<?x4096xf8E4M3FN>, %{{.*}}: tensor<?x128xf8E8M0FNU>, %[[B:.*]]: !fp8.scaled
// CHECK: %[[A:.*]] = fp8.assemble %[[CODES]]
// CHECK-NOT: fp8.dequantize
// CHECK: %[[MOST:.*]] = arith.constant [[N:48|64]] : index
// CHECK: %[[ROWS:.*]] = tensor.dim %[[CODES]], %
// CHECK: %[[FEW:.*]] = arith.cmpi sle, %[[ROWS]], %[[MOST]] : index
// CHECK: scf.if %[[FEW]] -> (tensor<?x4096xbf16>) {
// CHECK-NEXT: fp8.matmul %[[A]], %[[B]] epilogue(%{{.*}} : tensor<4096xf32>)
// CHECK: } {fp8.name = "y", fp8_gpu.rows = array<i64: 0, [[N]]>} : !fp8.scaled
// CHECK: } else {
// CHECK: %[[LESS:.*]] = arith.constant [[L:[0-9]+]] : index
// CHECK: arith.cmpi sle, %[[ROWS]], %[[LESS]] : index
// CHECK: scf.if
// CHECK-DAG: %[[X:.*]] = fp8.dequantize %[[A]]
// CHECK-DAG: %[[W:.*]] = fp8.dequantize %[[B]] {fp8.folded}
// CHECK: fp8.matmul %[[X]], %[[W]] accumulate = fast epilogue
// CHECK: fp8_gpu.rows = array<i64: {{49|65}}, [[L]]>}
// CHECK: } else {
// CHECK-DAG: %[[X:.*]] = fp8.dequantize %[[A]]
// CHECK-DAG: %[[W:.*]] = fp8.dequantize %[[B]] : <4096x4096
// CHECK: fp8.matmul %[[X]], %[[W]] accumulate = fast epilogue
// CHECK: fp8_gpu.rows = array<i64: {{[0-9]+}}, 9223372036854775807>}
// CONFIGS-LABEL: func.func @rows
// CONFIGS: fp8_gpu.few_rows = [#fp8_gpu.few_rows<most = 16, {{.*}}<most = 32,
// CONFIGS-NOT: most = 128
// CONFIGS: } else {
// CONFIGS-NOT: most = 32,
// CONFIGS: fp8_gpu.few_rows = [{{.*}}most = 128
// CONFIGS: } else {
// CONFIGS-NOT: most = 512
// CONFIGS: fp8_gpu.rows = array<i64: {{[0-9]+}}, 9223372036854775807>
func.func @rows(%codes: tensor<?x4096xf8E4M3FN>, %factors: tensor<?x128xf8E8M0FNU>, %b: !b, %bias: tensor<4096xf32>) -> !x {
  %a = fp8.assemble %codes, %factors : tensor<?x4096xf8E4M3FN>, tensor<?x128xf8E8M0FNU> -> !a
  %x = fp8.dequantize %a : !a -> !x
  %w = fp8.dequantize %b {fp8.folded} : !b -> !w
  %0 = fp8.matmul %x, %w accumulate = fast epilogue(%bias : tensor<4096xf32>) {
  ^bb0(%sum: f32, %of: f32):
    %1 = arith.addf %sum, %of : f32
    %2 = arith.truncf %1 : f32 to bf16
    fp8.yield %2 : bf16
  } {fp8.name = "y"} : !x, !w -> !x
  return %0 : !x
}

// What is quantized here is written as both, by one pass. How many rows there are is asked of what is in memory.
// CHECK-LABEL: func.func @quantized
// CHECK-SAME: %[[IN:.*]]: tensor<?x4096xbf16>, %[[SCALE:.*]]: tensor<?x128xf32>
// CHECK: %[[Q:.*]] = fp8.quantize
// CHECK: %[[X:.*]] = fp8.dequantize %[[Q]]
// CHECK: tensor.dim %[[IN]]
// CHECK: scf.if
// CHECK: fp8.matmul %[[Q]],
// CHECK: } else {
// CHECK: scf.if
// CHECK: fp8.matmul %[[X]],
// CHECK: } else {
// CHECK: fp8.dequantize %arg3 : <4096x4096
// CHECK-NOT: fp8.dequantize
// CHECK: fp8.matmul %[[X]],
func.func @quantized(%in: !x, %scale: tensor<?x128xf32>, %inv: tensor<?x128xf8E8M0FNU>, %b: !b) -> !x {
  %a = fp8.quantize %in scale(%scale, %inv : tensor<?x128xf32>, tensor<?x128xf8E8M0FNU>) : !x -> !a
  %x = fp8.dequantize %a : !a -> !x
  %w = fp8.dequantize %b {fp8.folded} : !b -> !w
  %0 = fp8.matmul %x, %w accumulate = fast : !x, !w -> !x
  return %0 : !x
}

// Those of one A have one branch, though one reads the other's result.
// CHECK-LABEL: func.func @two
// CHECK: %{{.*}}:2 = scf.if
// CHECK: %[[FIRST:.*]] = fp8.matmul
// CHECK: fp8.matmul {{.*}} epilogue(%[[FIRST]]
// CHECK: } else {
// CHECK: %{{.*}}:2 = scf.if
// CHECK: %[[FIRST:.*]] = fp8.matmul
// CHECK: fp8.matmul {{.*}} epilogue(%[[FIRST]]
// CHECK: } else {
// CHECK: %[[FIRST:.*]] = fp8.matmul
// CHECK: fp8.matmul {{.*}} epilogue(%[[FIRST]]
// CHECK-NOT: scf.if
// CHECK: return
func.func @two(%a: !a, %b: !b, %c: !b) -> !x {
  %x = fp8.dequantize %a : !a -> !x
  %w = fp8.dequantize %b {fp8.folded} : !b -> !w
  %0 = fp8.matmul %x, %w accumulate = fast : !x, !w -> !x
  %v = fp8.dequantize %c {fp8.folded} : !b -> !w
  %1 = fp8.matmul %x, %v accumulate = fast epilogue(%0 : !x) {
  ^bb0(%sum: f32, %of: bf16):
    %2 = arith.extf %of : bf16 to f32
    %3 = arith.mulf %sum, %2 : f32
    %4 = arith.truncf %3 : f32 to bf16
    fp8.yield %4 : bf16
  } : !x, !w -> !x
  return %1 : !x
}

// Few rows are no group: their kernels depend on how many there are.
// CONFIGS-LABEL: func.func @siblings
// CONFIGS: scf.if
// CONFIGS-NOT: fp8.sibling_matmuls
// CONFIGS: } else {
// CONFIGS: fp8.sibling_matmuls
func.func @siblings(%a: !a, %b: !b, %c: !b) -> (!x, !x) {
  %x = fp8.dequantize %a : !a -> !x
  %w = fp8.dequantize %b {fp8.folded} : !b -> !w
  %v = fp8.dequantize %c {fp8.folded} : !b -> !w
  %0 = fp8.matmul %x, %w accumulate = fast : !x, !w -> !x
  %1 = fp8.matmul %x, %v accumulate = fast : !x, !w -> !x
  return %0, %1 : !x, !x
}

// But for one that needs what is computed from the other's result.
// CHECK-LABEL: func.func @behind
// CHECK-NOT: dequantize
// CHECK: scf.if
// CHECK: } else {
// CHECK: scf.if
// CHECK: fp8.dequantize %{{.*}} : <?x4096
// CHECK: arith.negf
// CHECK-NOT: dequantize
// CHECK: scf.if
// CHECK: } else {
// CHECK: scf.if
// CHECK: fp8.dequantize %{{.*}} : <?x4096
func.func @behind(%a: !a, %b: !b) -> !x {
  %x = fp8.dequantize %a : !a -> !x
  %w = fp8.dequantize %b {fp8.folded} : !b -> !w
  %0 = fp8.matmul %x, %w accumulate = fast : !x, !w -> !x
  %n = arith.negf %0 : !x
  %1 = fp8.matmul %x, %w accumulate = fast epilogue(%n : !x) {
  ^bb0(%sum: f32, %of: bf16):
    %2 = arith.extf %of : bf16 to f32
    %3 = arith.mulf %sum, %2 : f32
    %4 = arith.truncf %3 : f32 to bf16
    fp8.yield %4 : bf16
  } : !x, !w -> !x
  return %1 : !x
}

// Known rows, bits that may not depend on them, weights that are quantized here, and those whose bf16 takes too much memory.
// CHECK-LABEL: func.func @others
// CHECK-NOT: scf.if
!known = !fp8.scaled<16x4096xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
!large = !fp8.scaled<40960x4096xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
!wide = tensor<?x40960xbf16>
func.func @others(%a: !a, %k: !known, %b: !b, %f: !large, %dense: !x, %in: !w, %scale: tensor<4096x128xf32>, %inv: tensor<4096x128xf8E8M0FNU>)
    -> (tensor<16x4096xbf16>, !x, !wide, !x) {
  %x = fp8.dequantize %a : !a -> !x
  %y = fp8.dequantize %k : !known -> tensor<16x4096xbf16>
  %w = fp8.dequantize %b {fp8.folded} : !b -> !w
  %v = fp8.dequantize %f {fp8.folded} : !large -> tensor<40960x4096xbf16>
  %q = fp8.quantize %in scale(%scale, %inv : tensor<4096x128xf32>, tensor<4096x128xf8E8M0FNU>) : !w -> !b
  %u = fp8.dequantize %q : !b -> !w
  %0 = fp8.matmul %y, %w accumulate = fast : tensor<16x4096xbf16>, !w -> tensor<16x4096xbf16>
  %1 = fp8.matmul %x, %w accumulate = fast {fp8.invariant} : !x, !w -> !x
  %2 = fp8.matmul %dense, %v accumulate = fast : !x, tensor<40960x4096xbf16> -> !wide
  %3 = fp8.matmul %x, %u accumulate = fast : !x, !w -> !x
  return %0, %1, %2, %3 : tensor<16x4096xbf16>, !x, !wide, !x
}

// Weights beside activations in bf16, and those in NVFP4, have one for many rows alone.
// CHECK-LABEL: func.func @weights
// CHECK-SAME: %[[X:.*]]: tensor<?x4096xbf16>, %[[B:.*]]: !fp8.scaled<4096x4096xf4E2M1FN
// CHECK: tensor.dim %[[X]]
// CHECK: scf.if
// CHECK: %[[W:.*]] = fp8.dequantize %[[B]] {fp8.folded}
// CHECK: fp8.matmul %[[X]], %[[W]] accumulate = fast {fp8_gpu.rows = array<i64: 0, [[L:[0-9]+]]>}
// CHECK: } else {
// CHECK: %[[W:.*]] = fp8.dequantize %[[B]] : <4096x4096
// CHECK: fp8.matmul %[[X]], %[[W]] accumulate = fast {fp8_gpu.rows
// CHECK-NOT: scf.if
// CHECK: return
!four = !fp8.scaled<4096x4096xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
func.func @weights(%x: !x, %b: !four) -> !x {
  %w = fp8.dequantize %b {fp8.folded} : !four -> !w
  %0 = fp8.matmul %x, %w accumulate = fast : !x, !w -> !x
  return %0 : !x
}

// Nobody multiplies arranged codes as they are.
// CHECK-LABEL: func.func @arranged
// CHECK-NOT: scf.if
func.func @arranged(%a: !fp8.scaled<?x256xf4E2M1FN, block = [1, 32], scale = f8E8M0FNU>, %w: tensor<512x256xf4E2M1FN> {fp8.arranged = 1}, %f: tensor<512x8xf8E8M0FNU>) -> tensor<?x512xbf16> {
  %s = fp8.assemble %w, %f : tensor<512x256xf4E2M1FN>, tensor<512x8xf8E8M0FNU> -> !fp8.scaled<512x256xf4E2M1FN, block = [1, 32], scale = f8E8M0FNU>
  %x = fp8.dequantize %a : !fp8.scaled<?x256xf4E2M1FN, block = [1, 32], scale = f8E8M0FNU> -> tensor<?x256xbf16>
  %d = fp8.dequantize %s : !fp8.scaled<512x256xf4E2M1FN, block = [1, 32], scale = f8E8M0FNU> -> tensor<512x256xbf16>
  %0 = fp8.matmul %x, %d accumulate = fast : tensor<?x256xbf16>, tensor<512x256xbf16> -> tensor<?x512xbf16>
  return %0 : tensor<?x512xbf16>
}
