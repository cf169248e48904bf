// RUN: fp8-opt %s --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-group-matmuls | FileCheck %s

!x = !fp8.scaled<64x1024xf8E4M3FN, block = [*, *], scale = f32>
!w = !fp8.scaled<512x1024xf8E4M3FN, block = [*, *], scale = f32>
!v = !fp8.scaled<128x1024xf8E4M3FN, block = [*, *], scale = f32>
!e = !fp8.scaled<512x1024xf8E5M2, block = [*, *], scale = f32>
!y = tensor<64x512xbf16>
!z = tensor<64x128xbf16>

// The projections of an attention: the group has a config, its matmuls none.

// CHECK-LABEL: func.func @projections
// CHECK:       %[[R:.+]]:3 = fp8.sibling_matmuls {
// CHECK-NEXT:    %[[Q:.+]] = fp8.matmul %arg0, %arg1 {fp8.name = "q"}
// CHECK-NEXT:    %[[K:.+]] = fp8.matmul %arg0, %arg2 {fp8.name = "k"}
// CHECK-NEXT:    %[[V:.+]] = fp8.matmul %arg0, %arg3 {fp8.name = "v"}
// CHECK-NEXT:    fp8.yield %[[Q]], %[[K]], %[[V]]
// CHECK-NEXT:  } {fp8_gpu.config = #fp8_sm90.gemm<
// CHECK:       return %[[R]]#0, %[[R]]#1, %[[R]]#2
func.func @projections(%x: !x, %q: !w, %k: !v, %v: !v) -> (!y, !z, !z) {
  %0 = fp8.matmul %x, %q {fp8.name = "q"} : !x, !w -> !y
  %1 = fp8.matmul %x, %k {fp8.name = "k"} : !x, !v -> !z
  %2 = fp8.matmul %x, %v {fp8.name = "v"} : !x, !v -> !z
  return %0, %1, %2 : !y, !z, !z
}

// Gradients of two weights have the same B.

// CHECK-LABEL: func.func @wgrads
// CHECK:       fp8.sibling_matmuls
// CHECK-NEXT:    fp8.matmul %arg0, %arg2
// CHECK-NEXT:    fp8.matmul %arg1, %arg2
func.func @wgrads(%g: !x, %h: !v, %x: !w) -> (!y, tensor<128x512xbf16>) {
  %0 = fp8.matmul %g, %x : !x, !w -> !y
  %1 = fp8.matmul %h, %x : !v, !w -> tensor<128x512xbf16>
  return %0, %1 : !y, tensor<128x512xbf16>
}

// What needs the first comes after both.

// CHECK-LABEL: func.func @between
// CHECK:       %[[R:.+]]:2 = fp8.sibling_matmuls
// CHECK:       %[[N:.+]] = arith.negf %[[R]]#0
// CHECK:       %[[M:.+]] = arith.addf %[[N]], %[[N]]
// CHECK:       return %[[M]], %[[R]]#1
func.func @between(%x: !x, %q: !w, %k: !v) -> (!y, !z) {
  %0 = fp8.matmul %x, %q : !x, !w -> !y
  %1 = arith.negf %0 : !y
  %2 = arith.addf %1, %1 : !y
  %3 = fp8.matmul %x, %k : !x, !v -> !z
  return %2, %3 : !y, !z
}

// Equal epilogues of operands of their own, and constants from around them.

// CHECK-LABEL: func.func @biases
// CHECK:       fp8.sibling_matmuls
// CHECK:         fp8.matmul %arg0, %arg1 epilogue(%arg3
// CHECK:         fp8.matmul %arg0, %arg2 epilogue(%arg4
func.func @biases(%x: !x, %q: !w, %k: !v, %b: tensor<512xbf16>, %c: tensor<128xbf16>) -> (!y, !z) {
  %two = arith.constant 2.0 : f32
  %also_two = arith.constant 2.0 : f32
  %0 = fp8.matmul %x, %q epilogue(%b : tensor<512xbf16>) {
  ^bb0(%acc: f32, %e: bf16):
    %1 = arith.extf %e : bf16 to f32
    %2 = arith.addf %acc, %1 : f32
    %3 = arith.mulf %2, %two : f32
    %4 = arith.truncf %3 : f32 to bf16
    fp8.yield %4 : bf16
  } : !x, !w -> !y
  %1 = fp8.matmul %x, %k epilogue(%c : tensor<128xbf16>) {
  ^bb0(%acc: f32, %e: bf16):
    %2 = arith.extf %e : bf16 to f32
    %3 = arith.addf %acc, %2 : f32
    %4 = arith.mulf %3, %also_two : f32
    %5 = arith.truncf %4 : f32 to bf16
    fp8.yield %5 : bf16
  } : !x, !v -> !z
  return %0, %1 : !y, !z
}

// CHECK-LABEL: func.func @other_epilogue
// CHECK-NOT:   fp8.sibling_matmuls
// CHECK:       return
func.func @other_epilogue(%x: !x, %q: !w, %k: !w) -> (!y, !y) {
  %0 = fp8.matmul %x, %q epilogue {
  ^bb0(%acc: f32):
    %1 = arith.negf %acc : f32
    %2 = arith.truncf %1 : f32 to bf16
    fp8.yield %2 : bf16
  } : !x, !w -> !y
  %1 = fp8.matmul %x, %k : !x, !w -> !y
  return %0, %1 : !y, !y
}

// A scalar from around them that is not the same.

// CHECK-LABEL: func.func @other_capture
// CHECK-NOT:   fp8.sibling_matmuls
// CHECK:       return
func.func @other_capture(%x: !x, %q: !w, %k: !w, %s: f32, %t: f32) -> (!y, !y) {
  %0 = fp8.matmul %x, %q epilogue {
  ^bb0(%acc: f32):
    %1 = arith.mulf %acc, %s : f32
    %2 = arith.truncf %1 : f32 to bf16
    fp8.yield %2 : bf16
  } : !x, !w -> !y
  %1 = fp8.matmul %x, %k epilogue {
  ^bb0(%acc: f32):
    %2 = arith.mulf %acc, %t : f32
    %3 = arith.truncf %2 : f32 to bf16
    fp8.yield %3 : bf16
  } : !x, !w -> !y
  return %0, %1 : !y, !y
}

// CHECK-LABEL: func.func @other_types
// CHECK-NOT:   fp8.sibling_matmuls
// CHECK:       return
func.func @other_types(%x: !x, %q: !w, %k: !e) -> (!y, !y) {
  %0 = fp8.matmul %x, %q : !x, !w -> !y
  %1 = fp8.matmul %x, %k : !x, !e -> !y
  return %0, %1 : !y, !y
}

// CHECK-LABEL: func.func @other_accumulation
// CHECK-NOT:   fp8.sibling_matmuls
// CHECK:       return
func.func @other_accumulation(%x: !x, %q: !w, %k: !w) -> (!y, !y) {
  %0 = fp8.matmul %x, %q accumulate = fast : !x, !w -> !y
  %1 = fp8.matmul %x, %k : !x, !w -> !y
  return %0, %1 : !y, !y
}

// CHECK-LABEL: func.func @chain
// CHECK-NOT:   fp8.sibling_matmuls
// CHECK:       return
func.func @chain(%x: tensor<64x64xbf16>, %w: tensor<64x64xbf16>) -> tensor<64x64xbf16> {
  %0 = fp8.matmul %x, %w accumulate = fast : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xbf16>
  %1 = arith.negf %0 : tensor<64x64xbf16>
  %2 = fp8.matmul %x, %1 accumulate = fast : tensor<64x64xbf16>, tensor<64x64xbf16> -> tensor<64x64xbf16>
  return %2 : tensor<64x64xbf16>
}

// Whatever happens to the first's result happens before the second.

// CHECK-LABEL: func.func @effect
// CHECK-NOT:   fp8.sibling_matmuls
// CHECK:       return
func.func private @log(!y)
func.func @effect(%x: !x, %q: !w, %k: !w) -> !y {
  %0 = fp8.matmul %x, %q : !x, !w -> !y
  call @log(%0) : (!y) -> ()
  %1 = fp8.matmul %x, %k : !x, !w -> !y
  return %1 : !y
}

// A config that somebody chose stays.

// CHECK-LABEL: func.func @pinned
// CHECK-NOT:   fp8.sibling_matmuls
// CHECK:       return
func.func @pinned(%x: !x, %q: !w, %k: !w) -> (!y, !y) {
  %0 = fp8.matmul %x, %q {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 64, stages = 3, consumers = 1>} : !x, !w -> !y
  %1 = fp8.matmul %x, %k : !x, !w -> !y
  return %0, %1 : !y, !y
}

// In blocks of which only one is run they are no siblings.

// CHECK-LABEL: func.func @branches
// CHECK-NOT:   fp8.sibling_matmuls
// CHECK:       return
func.func @branches(%go: i1, %x: !x, %q: !w, %k: !w) -> !y {
  %0 = scf.if %go -> !y {
    %1 = fp8.matmul %x, %q : !x, !w -> !y
    scf.yield %1 : !y
  } else {
    %1 = fp8.matmul %x, %k : !x, !w -> !y
    scf.yield %1 : !y
  }
  return %0 : !y
}

// Tiles of Q and K fill their rounds; with V's there would be another one.

// CHECK-LABEL: func.func @full_round
// CHECK:       fp8.sibling_matmuls
// CHECK-NEXT:    fp8.matmul %arg0, %arg1
// CHECK-NEXT:    fp8.matmul %arg0, %arg2
// CHECK-NEXT:    fp8.yield
// CHECK:       fp8.matmul %arg0, %arg3
func.func @full_round(%x: !fp8.scaled<2048x4096xf8E4M3FN, block = [*, *], scale = f32>,
                      %q: !fp8.scaled<11264x4096xf8E4M3FN, block = [*, *], scale = f32>,
                      %k: !fp8.scaled<2048x4096xf8E4M3FN, block = [*, *], scale = f32>,
                      %v: !fp8.scaled<2048x4096xf8E4M3FN, block = [*, *], scale = f32>)
    -> (tensor<2048x11264xbf16>, tensor<2048x2048xbf16>, tensor<2048x2048xbf16>) {
  %0 = fp8.matmul %x, %q : !fp8.scaled<2048x4096xf8E4M3FN, block = [*, *], scale = f32>, !fp8.scaled<11264x4096xf8E4M3FN, block = [*, *], scale = f32> -> tensor<2048x11264xbf16>
  %1 = fp8.matmul %x, %k : !fp8.scaled<2048x4096xf8E4M3FN, block = [*, *], scale = f32>, !fp8.scaled<2048x4096xf8E4M3FN, block = [*, *], scale = f32> -> tensor<2048x2048xbf16>
  %2 = fp8.matmul %x, %v : !fp8.scaled<2048x4096xf8E4M3FN, block = [*, *], scale = f32>, !fp8.scaled<2048x4096xf8E4M3FN, block = [*, *], scale = f32> -> tensor<2048x2048xbf16>
  return %0, %1, %2 : tensor<2048x11264xbf16>, tensor<2048x2048xbf16>, tensor<2048x2048xbf16>
}

// Extents that are not known count as usual ones.

// CHECK-LABEL: func.func @dynamic
// CHECK:       fp8.sibling_matmuls
func.func @dynamic(%x: !fp8.scaled<?x1024xf8E4M3FN, block = [*, *], scale = f32>, %q: !w, %k: !v) -> (tensor<?x512xbf16>, tensor<?x128xbf16>) {
  %0 = fp8.matmul %x, %q : !fp8.scaled<?x1024xf8E4M3FN, block = [*, *], scale = f32>, !w -> tensor<?x512xbf16>
  %1 = fp8.matmul %x, %k : !fp8.scaled<?x1024xf8E4M3FN, block = [*, *], scale = f32>, !v -> tensor<?x128xbf16>
  return %0, %1 : tensor<?x512xbf16>, tensor<?x128xbf16>
}

// A group that no kernel computes is taken apart before its matmuls are launched.

// CHECK-LABEL: func.func @given
// CHECK-NOT:   fp8.sibling_matmuls
// CHECK:       %[[A:.+]] = fp8.matmul %arg0, %arg1 {fp8_gpu.config
// CHECK-NEXT:  %[[B:.+]] = fp8.matmul %arg0, %arg2 {fp8_gpu.config
// CHECK-NEXT:  return %[[A]], %[[B]]
func.func @given(%x: !x, %q: !w, %k: !e) -> (!y, !y) {
  %0:2 = fp8.sibling_matmuls {
    %1 = fp8.matmul %x, %q : !x, !w -> !y
    %2 = fp8.matmul %x, %k : !x, !e -> !y
    fp8.yield %1, %2 : !y, !y
  } : !y, !y
  return %0#0, %0#1 : !y, !y
}
