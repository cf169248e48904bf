// RUN: fp8-opt %s --fp8-allocate-state | FileCheck %s

// What hosts call has its own; others have that of their callers.
// CHECK: func.func @main
// CHECK-SAME: fp8.amax_group = "tp"
func.func @main(%x: tensor<4x64xbf16>) attributes {fp8.amax_group = "tp"} {
  call @outer(%x) : (tensor<4x64xbf16>) -> ()
  call @own(%x) : (tensor<4x64xbf16>) -> ()
  call @called(%x) : (tensor<4x64xbf16>) -> ()
  return
}

// CHECK: func.func private @inner
// CHECK-SAME: fp8.amax_group = "tp"
func.func private @inner(%x: tensor<4x64xbf16>) {
  %0 = fp8.quantize %x recipe(#fp8.current) : tensor<4x64xbf16> -> !fp8.scaled<4x64xf8E4M3FN, block = [*, *], scale = f32>
  return
}

// CHECK: func.func private @outer
// CHECK-SAME: fp8.amax_group = "tp"
func.func private @outer(%x: tensor<4x64xbf16>) {
  call @inner(%x) : (tensor<4x64xbf16>) -> ()
  return
}

// CHECK: func.func private @own
// CHECK-SAME: fp8.amax_group = "own"
func.func private @own(%x: tensor<4x64xbf16>) attributes {fp8.amax_group = "own"} {
  return
}

// CHECK: func.func @called(%{{.*}}: tensor<4x64xbf16>) {
func.func @called(%x: tensor<4x64xbf16>) {
  call @nothing(%x) : (tensor<4x64xbf16>) -> ()
  return
}

// Nothing is quantized in it, and so it may be called from everywhere.
func.func @also(%x: tensor<4x64xbf16>) attributes {fp8.amax_group = "dp"} {
  call @nothing(%x) : (tensor<4x64xbf16>) -> ()
  return
}
func.func private @nothing(%x: tensor<4x64xbf16>) {
  return
}
