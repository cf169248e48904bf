// RUN: fp8-opt %s --fp8-sink-producers | FileCheck %s

// An amax of an exponential in f32 has 512 KB in memory, and leaves 4 bytes.

!q = !fp8.scaled<256x256xf8E4M3FN, block = [*, *], scale = f32>
!t = tensor<256x256xbf16>
!big = tensor<512x256xf32>
!s = tensor<1x1xf32>

// The cast of the weight waits, with its scale, what puts it together, and the
// record of its amax.
// CHECK-LABEL: func.func @weight
// CHECK: linalg.exp
// CHECK: fp8.amax %{{.*}} : tensor<512x256xf32>
// CHECK: fp8.fusion(%arg0
// CHECK: fp8.record_amax
// CHECK: fp8.assemble
// CHECK: fp8.dequantize
func.func @weight(%w: !t, %x: !big, %state: !fp8.state) -> (!s, !t) {
  %slot = arith.constant 0 : index
  %s, %si = fp8.read_scale %state[%slot] : !s
  %codes, %amax = fp8.fusion(%w, %s, %si) {
  ^bb0(%0: !t, %1: !s, %2: !s):
    %3 = fp8.quantize %0 scale(%1, %2 : !s, !s) : !t -> !q
    %payload, %scale_inv = fp8.disassemble %3 : !q
    %4 = fp8.amax %0 block = [*, *] : !t
    fp8.yield %payload, %4 : tensor<256x256xf8E4M3FN>, !s
  } : (!t, !s, !s) -> (tensor<256x256xf8E4M3FN>, !s)
  fp8.record_amax %amax, %state[%slot] : !s
  %q = fp8.assemble %codes, %si : tensor<256x256xf8E4M3FN>, !s -> !q
  %e = tensor.empty() : !big
  %exp = linalg.exp ins(%x : !big) outs(%e : !big) -> !big
  %all = fp8.amax %exp block = [*, *] : !big
  %d = fp8.dequantize %q : !q -> !t
  return %all, %d : !s, !t
}

// What happens in between may look at the amax.
// CHECK-LABEL: func.func @effect_between
// CHECK: fp8.fusion(%arg0
// CHECK: call @look
// CHECK: linalg.exp
func.func private @look()
func.func @effect_between(%w: !t, %x: !big, %s: !s, %si: !s, %state: !fp8.state) -> (!s, !t) {
  %slot = arith.constant 0 : index
  %codes, %amax = fp8.fusion(%w, %s, %si) {
  ^bb0(%0: !t, %1: !s, %2: !s):
    %3 = fp8.quantize %0 scale(%1, %2 : !s, !s) : !t -> !q
    %payload, %scale_inv = fp8.disassemble %3 : !q
    %4 = fp8.amax %0 block = [*, *] : !t
    fp8.yield %payload, %4 : tensor<256x256xf8E4M3FN>, !s
  } : (!t, !s, !s) -> (tensor<256x256xf8E4M3FN>, !s)
  fp8.record_amax %amax, %state[%slot] : !s
  call @look() : () -> ()
  %q = fp8.assemble %codes, %si : tensor<256x256xf8E4M3FN>, !s -> !q
  %e = tensor.empty() : !big
  %exp = linalg.exp ins(%x : !big) outs(%e : !big) -> !big
  %all = fp8.amax %exp block = [*, *] : !big
  %d = fp8.dequantize %q : !q -> !t
  return %all, %d : !s, !t
}

// There is most in memory when it is needed.
// CHECK-LABEL: func.func @user_has_most
// CHECK: fp8.quantize
// CHECK: linalg.exp
// CHECK: fp8.amax
func.func @user_has_most(%w: !t, %x: !t, %s: !s, %si: !s) -> (!s, !t) {
  %q = fp8.quantize %w scale(%s, %si : !s, !s) : !t -> !q
  %e = tensor.empty() : !t
  %exp = linalg.exp ins(%x : !t) outs(%e : !t) -> !t
  %all = fp8.amax %exp block = [*, *] : !t
  %d = fp8.dequantize %q : !q -> !t
  return %all, %d : !s, !t
}

// A tensor of f32 becomes one of bf16, and is not needed any more.
// CHECK-LABEL: func.func @frees_more
// CHECK: arith.truncf
// CHECK: linalg.exp ins(%arg1
func.func @frees_more(%w: tensor<256x256xf32>, %x: !big) -> (!s, !s) {
  %e = tensor.empty() : tensor<256x256xf32>
  %0 = linalg.exp ins(%w : tensor<256x256xf32>) outs(%e : tensor<256x256xf32>) -> tensor<256x256xf32>
  %1 = arith.truncf %0 : tensor<256x256xf32> to !t
  %eb = tensor.empty() : !big
  %exp = linalg.exp ins(%x : !big) outs(%eb : !big) -> !big
  %all = fp8.amax %exp block = [*, *] : !big
  %a = fp8.amax %1 block = [*, *] : !t
  return %all, %a : !s, !s
}

// It makes more than it frees, but what it frees would be in memory beside what
// the user has, which is one number.
// CHECK-LABEL: func.func @user_makes_less
// CHECK: arith.extf
// CHECK: linalg.exp ins(%arg1
func.func @user_makes_less(%w: !t, %x: !big) -> (!s, !s) {
  %e = tensor.empty() : !t
  %0 = linalg.exp ins(%w : !t) outs(%e : !t) -> !t
  %1 = arith.extf %0 : !t to tensor<256x256xf32>
  %eb = tensor.empty() : !big
  %exp = linalg.exp ins(%x : !big) outs(%eb : !big) -> !big
  %all = fp8.amax %exp block = [*, *] : !big
  %a = fp8.amax %1 block = [*, *] : tensor<256x256xf32>
  return %all, %a : !s, !s
}

// In front of a loop, not into it.
// CHECK-LABEL: func.func @not_into_a_loop
// CHECK: linalg.exp ins(%arg1
// CHECK: linalg.exp ins(%arg0
// CHECK: scf.for
// CHECK-NOT: linalg.exp
func.func @not_into_a_loop(%w: !t, %x: !big, %a: !t, %n: index) -> (!s, !t) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %e = tensor.empty() : !t
  %0 = linalg.exp ins(%w : !t) outs(%e : !t) -> !t
  %eb = tensor.empty() : !big
  %exp = linalg.exp ins(%x : !big) outs(%eb : !big) -> !big
  %all = fp8.amax %exp block = [*, *] : !big
  %2 = scf.for %i = %c0 to %n step %c1 iter_args(%v = %a) -> !t {
    %3 = arith.addf %v, %0 : !t
    scf.yield %3 : !t
  }
  return %all, %2 : !s, !t
}

// Extents that are not known are not compared.
// CHECK-LABEL: func.func @dynamic
// CHECK: linalg.exp ins(%arg0
// CHECK: linalg.exp ins(%arg1
func.func @dynamic(%w: !t, %x: tensor<?x256xf32>, %n: index) -> (!s, !s) {
  %e = tensor.empty() : !t
  %0 = linalg.exp ins(%w : !t) outs(%e : !t) -> !t
  %eb = tensor.empty(%n) : tensor<?x256xf32>
  %exp = linalg.exp ins(%x : tensor<?x256xf32>) outs(%eb : tensor<?x256xf32>) -> tensor<?x256xf32>
  %all = fp8.amax %exp block = [*, *] : tensor<?x256xf32>
  %a = fp8.amax %0 block = [*, *] : !t
  return %all, %a : !s, !s
}
