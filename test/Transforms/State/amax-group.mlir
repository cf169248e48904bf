// RUN: fp8-opt %s --fp8-infer-scales --split-input-file | FileCheck %s --check-prefix=INFER
// RUN: fp8-opt %s --fp8-build-state-update --split-input-file | FileCheck %s --check-prefix=UPDATE
// RUN: fp8-opt %s --fp8-functionalize-state --split-input-file | FileCheck %s --check-prefix=TENSORS

// Each tensor once: the copy in E5M2 has the amax of the one in E4M3.
// INFER-LABEL: func.func @current
// INFER: %[[AMAX:.*]] = fp8.amax %{{.*}} block = [*, *] : tensor<4x64xbf16>
// INFER-NEXT: %[[ALL:.*]] = fp8.all_reduce_amax %[[AMAX]] group = "tp" : tensor<1x1xf32>
// INFER-NEXT: fp8.compute_scale %[[ALL]] format = f8E4M3FN
// INFER-NOT: fp8.amax
// INFER: fp8.compute_scale %[[ALL]] format = f8E5M2
func.func @current(%x: tensor<4x64xbf16>) -> (!fp8.scaled<4x64xf8E4M3FN, block = [*, *], scale = f32>, !fp8.scaled<4x64xf8E5M2, block = [*, *], scale = f32>) attributes {fp8.amax_group = "tp"} {
  %0 = fp8.quantize %x recipe(#fp8.current) : tensor<4x64xbf16> -> !fp8.scaled<4x64xf8E4M3FN, block = [*, *], scale = f32>
  %1 = fp8.quantize %x recipe(#fp8.current) : tensor<4x64xbf16> -> !fp8.scaled<4x64xf8E5M2, block = [*, *], scale = f32>
  return %0, %1 : !fp8.scaled<4x64xf8E4M3FN, block = [*, *], scale = f32>, !fp8.scaled<4x64xf8E5M2, block = [*, *], scale = f32>
}

// -----

// The innermost wins; blocks are nobody else's.
// INFER-LABEL: func.func @inner
// INFER: fp8.all_reduce_amax %{{.*}} group = "inner" : tensor<1x1xf32>
// INFER-LABEL: func.func @outer
// INFER: fp8.amax %{{.*}} block = [1, 16]
// INFER-NOT: fp8.all_reduce_amax
// INFER: fp8.amax %{{.*}} block = [*, *]
// INFER-NEXT: fp8.all_reduce_amax %{{.*}} group = "outer" : tensor<1x1xf32>
module attributes {fp8.amax_group = "outer"} {
  func.func @inner(%x: tensor<4x64xbf16>) -> !fp8.scaled<4x64xf8E4M3FN, block = [*, *], scale = f32> attributes {fp8.amax_group = "inner"} {
    %0 = fp8.quantize %x recipe(#fp8.current) : tensor<4x64xbf16> -> !fp8.scaled<4x64xf8E4M3FN, block = [*, *], scale = f32>
    return %0 : !fp8.scaled<4x64xf8E4M3FN, block = [*, *], scale = f32>
  }
  func.func @outer(%x: tensor<4x64xf32>) -> !fp8.scaled<4x64xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32> {
    %0 = fp8.quantize %x recipe(#fp8.nvfp4) : tensor<4x64xf32> -> !fp8.scaled<4x64xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
    return %0 : !fp8.scaled<4x64xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
  }
}

// -----

#table = #fp8.state_table<#fp8.delayed<initial = one>, [#fp8.slot<"x" : f8E4M3FN, fprop activation>]>

// UPDATE-LABEL: func.func @step
// UPDATE: fp8.record_amax
// UPDATE-NEXT: fp8.all_reduce_state %{{.*}} group = "dp" first_call
// UPDATE-NEXT: return
// UPDATE: func.func @fp8_update_state(%[[STATE:.*]]: !fp8.state)
// UPDATE-NEXT: fp8.all_reduce_state %[[STATE]] group = "dp"{{$}}
// UPDATE-NEXT: fp8.update_state %[[STATE]]

// TENSORS-LABEL: func.func @step
// TENSORS: %[[AMAX:.*]] = tensor.insert
// TENSORS-NEXT: %[[ALL:.*]] = fp8.all_reduce_amax %[[AMAX]] group = "dp" : tensor<1xf32>
// TENSORS-NEXT: fp8.update_scales %{{.*}}, %[[ALL]]
module attributes {fp8.state = #table, fp8.amax_group = "dp"} {
  func.func @step(%amax: tensor<1x1xf32>, %state: !fp8.state) {
    %slot = arith.constant 0 : index
    fp8.record_amax %amax, %state[%slot] : tensor<1x1xf32>
    return
  }
}
