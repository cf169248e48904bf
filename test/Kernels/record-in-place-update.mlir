// RUN: fp8-opt %s --fp8-record-in-place | FileCheck %s

#x = #fp8_gpu.argument<name = "x", element = bf16, rank = 2, access = read, alignment = 2>
#amax = #fp8_gpu.argument<name = "amax", element = f32, rank = 2, access = raise, alignment = 4>
#measure = #fp8_gpu.launch<arguments = [#x, #amax], extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>

// What is recorded after an update is the next step's: records change places with
// each other, not with an update, nor with a call that has the state.

// CHECK-LABEL: func.func @updated_in_between
// CHECK:       fp8.update_state
// CHECK-NEXT:  fp8.record_amax %{{.+}}, %{{[^ ]+}} : tensor<1x1xf32>
func.func @updated_in_between(%x: tensor<8x8xbf16>, %state: !fp8.state, %slot: index) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x1xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<1x1xf32>) -> tensor<1x1xf32>
  %amax = fp8_gpu.launch @kernels::@measure #measure ins(%x : tensor<8x8xbf16>) outs(%zeros : tensor<1x1xf32>) -> tensor<1x1xf32>
  fp8.update_state %state table(<#fp8.delayed<amax_history_len = 16>, [#fp8.slot<"x" : f8E4M3FN, fprop activation>]>)
  fp8.record_amax %amax, %state[%slot] : tensor<1x1xf32>
  return
}

// CHECK-LABEL: func.func @called_in_between
// CHECK:       call @update
// CHECK-NEXT:  fp8.record_amax %{{.+}}, %{{[^ ]+}} : tensor<1x1xf32>
func.func private @update(!fp8.state)
func.func @called_in_between(%x: tensor<8x8xbf16>, %state: !fp8.state, %slot: index) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x1xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%e : tensor<1x1xf32>) -> tensor<1x1xf32>
  %amax = fp8_gpu.launch @kernels::@measure #measure ins(%x : tensor<8x8xbf16>) outs(%zeros : tensor<1x1xf32>) -> tensor<1x1xf32>
  func.call @update(%state) : (!fp8.state) -> ()
  fp8.record_amax %amax, %state[%slot] : tensor<1x1xf32>
  return
}
