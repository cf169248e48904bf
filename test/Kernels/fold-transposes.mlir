// RUN: fp8-opt --fp8-fold-transposes=chip=sm_100a %s | FileCheck %s
// RUN: fp8-opt --fp8-fold-transposes=chip=sm_90a %s | FileCheck %s --check-prefix=HOPPER
// RUN: fp8-opt --fp8-fold-transposes="chip=sm_90a codes=kernel" %s | FileCheck %s --check-prefix=KERNEL
// RUN: fp8-opt --fp8-fold-transposes="chip=sm_90a codes=cost" %s 2>&1 | FileCheck %s --check-prefix=COST
// RUN: not fp8-opt --fp8-fold-transposes="chip=sm_90a codes=both" %s 2>&1 | FileCheck %s --check-prefix=WAY
// RUN: not fp8-opt --fp8-fold-transposes=chip=sm_70 %s 2>&1 | FileCheck %s --check-prefix=CHIP

// CHIP: error: expected chip to be one of sm_90a, sm_100a, sm_89, sm_120a, sm_121a, sm_80, but got 'sm_70'

// WAY: error: expected codes to be copy, kernel or cost, but got 'both'

// Hopper's kernels transpose 8 bits in registers where they are asked to: A or B,
// of a product by itself. Small ones take no longer than the copy.

// COST: remark: an operand in the other order is transposed in registers: registers are expected to take 0.{{[0-9]+}} of the time with a copy

!x = !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<128x32xf8E4M3FN, block = [*, *], scale = f32>
!wt = !fp8.scaled<32x128xf8E4M3FN, block = [*, *], scale = f32>

// CHECK-LABEL: func.func @b
// CHECK-SAME: %[[A:.*]]: !fp8.scaled<64x128{{.*}}>, %[[B:.*]]: !fp8.scaled<128x32
// CHECK-NOT: fp8.transpose
// CHECK: fp8.matmul %[[A]], %[[B]] transpose_b accumulate = fast : {{.*}}<64x128x{{.*}}<128x32x{{.*}} -> tensor<64x32xbf16>
// HOPPER-LABEL: func.func @b
// HOPPER: %[[COPY:.*]] = fp8.transpose
// HOPPER: fp8.matmul %{{.*}}, %[[COPY]] accumulate
// KERNEL-LABEL: func.func @b
// KERNEL-NOT: fp8.transpose
// KERNEL: fp8.matmul %{{.*}}, %{{.*}} transpose_b accumulate
func.func @b(%a: !x, %w: !w) -> tensor<64x32xbf16> {
  %t = fp8.transpose %w permutation = [1, 0] : !w
  %0 = fp8.matmul %a, %t accumulate = fast : !x, !wt -> tensor<64x32xbf16>
  return %0 : tensor<64x32xbf16>
}

// Factors of rows stay with them.

!r = !fp8.scaled<3x128x64xf8E5M2, block = [1, *, 1], scale = f32>
!rt = !fp8.scaled<3x64x128xf8E5M2, block = [1, 1, *], scale = f32>
!s = !fp8.scaled<3x32x128xf8E4M3FN, block = [1, 1, *], scale = f32>
// CHECK-LABEL: func.func @a_rows
// CHECK: fp8.matmul %{{.*}}, %{{.*}} transpose_a : !fp8.scaled<3x128x64xf8E5M2, block = [1, *, 1], scale = f32>
// KERNEL-LABEL: func.func @a_rows
// KERNEL: fp8.matmul %{{.*}}, %{{.*}} transpose_a : !fp8.scaled<3x128x64xf8E5M2, block = [1, *, 1], scale = f32>
func.func @a_rows(%a: !r, %b: !s) -> tensor<3x64x32xf32> {
  %t = fp8.transpose %a permutation = [0, 2, 1] : !r
  %0 = fp8.matmul %t, %b : !rt, !s -> tensor<3x64x32xf32>
  return %0 : tensor<3x64x32xf32>
}

// A copy that something else reads is still made.
// CHECK-LABEL: func.func @others
// CHECK: %[[COPY:.*]] = fp8.transpose
// CHECK: fp8.matmul %{{.*}}, %{{.*}} transpose_b
// CHECK: return %{{.*}}, %[[COPY]]
func.func @others(%a: !x, %w: !w) -> (tensor<64x32xbf16>, !wt) {
  %t = fp8.transpose %w permutation = [1, 0] : !w
  %0 = fp8.matmul %a, %t accumulate = fast : !x, !wt -> tensor<64x32xbf16>
  return %0, %t : tensor<64x32xbf16>, !wt
}

// Bulk copies want rows of a multiple of 16 bytes: of 40 codes there is a copy.

!n = !fp8.scaled<128x40xf8E4M3FN, block = [*, *], scale = f32>
!nt = !fp8.scaled<40x128xf8E4M3FN, block = [*, *], scale = f32>
// CHECK-LABEL: func.func @rows
// CHECK: %[[COPY:.*]] = fp8.transpose
// CHECK: fp8.matmul %{{.*}}, %[[COPY]] accumulate
func.func @rows(%a: !x, %w: !n) -> tensor<64x40xbf16> {
  %t = fp8.transpose %w permutation = [1, 0] : !n
  %0 = fp8.matmul %a, %t accumulate = fast : !x, !nt -> tensor<64x40xbf16>
  return %0 : tensor<64x40xbf16>
}

// Factors along K, which no kernel of this target takes, and other orders.

!k = !fp8.scaled<256x128xf8E4M3FN, block = [128, 1], scale = f32>
!kt = !fp8.scaled<128x256xf8E4M3FN, block = [1, 128], scale = f32>
!kb = !fp8.scaled<128x256xf8E4M3FN, block = [128, 128], scale = f32>
// KERNEL-LABEL: func.func @along_k
// KERNEL: fp8.transpose
// CHECK-LABEL: func.func @along_k
// CHECK: %[[COPY:.*]] = fp8.transpose
// CHECK: fp8.matmul %[[COPY]], %{{.*}} :
func.func @along_k(%a: !k, %b: !kb) -> tensor<128x128xf32> {
  %t = fp8.transpose %a permutation = [1, 0] : !k
  %0 = fp8.matmul %t, %b : !kt, !kb -> tensor<128x128xf32>
  return %0 : tensor<128x128xf32>
}

!o = !fp8.scaled<32x4x128xf8E4M3FN, block = [*, *, *], scale = f32>
!ot = !fp8.scaled<4x32x128xf8E4M3FN, block = [*, *, *], scale = f32>
// CHECK-LABEL: func.func @batches
// CHECK: %[[COPY:.*]] = fp8.transpose
// CHECK: fp8.matmul %[[COPY]], %[[COPY]] accumulate
func.func @batches(%a: !o) -> tensor<4x32x32xf32> {
  %t = fp8.transpose %a permutation = [1, 0, 2] : !o
  %0 = fp8.matmul %t, %t accumulate = fast : !ot, !ot -> tensor<4x32x32xf32>
  return %0 : tensor<4x32x32xf32>
}

// A grouped product reads its matrices in either order, and rows of groups, which
// begin anywhere, with K innermost alone.

!e = !fp8.scaled<3x128x32xf8E4M3FN, block = [*, *, *], scale = f32>
!et = !fp8.scaled<3x32x128xf8E4M3FN, block = [*, *, *], scale = f32>
!xt = !fp8.scaled<128x64xf8E4M3FN, block = [*, *], scale = f32>
// CHECK-LABEL: func.func @grouped
// CHECK-SAME: %{{.*}}: !fp8.scaled<128x64{{.*}}>, %[[B:.*]]: !fp8.scaled<3x128x32
// CHECK: %[[COPY:.*]] = fp8.transpose
// CHECK-NOT: fp8.transpose
// CHECK: fp8.grouped_matmul %[[COPY]], %[[B]] offsets(%{{.*}}) transpose_b accumulate
// HOPPER-LABEL: func.func @grouped
// HOPPER-COUNT-2: fp8.transpose
// KERNEL-LABEL: func.func @grouped
// KERNEL-COUNT-2: fp8.transpose
func.func @grouped(%x: !xt, %w: !e, %offsets: tensor<4xi32>) -> tensor<64x32xbf16> {
  %a = fp8.transpose %x permutation = [1, 0] : !xt
  %t = fp8.transpose %w permutation = [0, 2, 1] : !e
  %0 = fp8.grouped_matmul %a, %t offsets(%offsets : tensor<4xi32>) accumulate = fast : !x, !et -> tensor<64x32xbf16>
  return %0 : tensor<64x32xbf16>
}

// A group reads an operand that all share as it is by all, or by none.

!at = !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32>
!b = !fp8.scaled<32x128xf8E4M3FN, block = [*, *], scale = f32>
// CHECK-LABEL: func.func @group
// CHECK: %[[COPY:.*]] = fp8.transpose
// CHECK: fp8.matmul %[[COPY]], %{{.*}} accumulate
// CHECK: fp8.matmul %[[COPY]], %{{.*}} transpose_b accumulate
func.func @group(%a: !xt, %b: !b, %c: !n) -> (tensor<64x32xbf16>, tensor<64x40xbf16>) {
  %t = fp8.transpose %a permutation = [1, 0] : !xt
  %0:2 = fp8.sibling_matmuls {
    %1 = fp8.matmul %t, %b accumulate = fast : !at, !b -> tensor<64x32xbf16>
    %2 = fp8.matmul %t, %c transpose_b accumulate = fast : !at, !n -> tensor<64x40xbf16>
    fp8.yield %1, %2 : tensor<64x32xbf16>, tensor<64x40xbf16>
  } : tensor<64x32xbf16>, tensor<64x40xbf16>
  return %0#0, %0#1 : tensor<64x32xbf16>, tensor<64x40xbf16>
}

// One operand has registers.

!a2 = !fp8.scaled<128x64xf8E4M3FN, block = [*, *], scale = f32>
!a2t = !fp8.scaled<64x128xf8E4M3FN, block = [*, *], scale = f32>
// CHECK-LABEL: func.func @both
// CHECK: fp8.matmul %{{.*}}, %{{.*}} transpose_a transpose_b
// KERNEL-LABEL: func.func @both
// KERNEL: %[[COPY:.*]] = fp8.transpose
// KERNEL: fp8.matmul %{{.*}}, %[[COPY]] transpose_a accumulate
func.func @both(%a: !a2, %b: !w) -> tensor<64x32xbf16> {
  %s = fp8.transpose %a permutation = [1, 0] : !a2
  %t = fp8.transpose %b permutation = [1, 0] : !w
  %0 = fp8.matmul %s, %t accumulate = fast : !a2t, !wt -> tensor<64x32xbf16>
  return %0 : tensor<64x32xbf16>
}

// The copy stays for the other operand: none is saved.

// COST-LABEL: func.func @gram
// COST: %[[A:.+]] = fp8.transpose
// COST: fp8.matmul %[[A]], %[[A]]
func.func @gram(%x: !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>) -> tensor<4096x4096xbf16> {
  %a = fp8.transpose %x permutation = [1, 0] : !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>
  %y = fp8.matmul %a, %a accumulate = fast : !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32>, !fp8.scaled<4096x4096xf8E4M3FN, block = [*, *], scale = f32> -> tensor<4096x4096xbf16>
  return %y : tensor<4096x4096xbf16>
}
