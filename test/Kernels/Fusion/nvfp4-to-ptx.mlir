// RUN: fp8-opt --fp8-form-fusions --fp8-set-target=chip=sm_90a --fp8-split-fusions --fp8-select-kernels --fp8-build-kernels %s -o %t
// RUN: fp8-translate --kernels-to-ptx %t | FileCheck %s
// RUN: fp8-opt --fp8-launch-kernels --convert-fp8-to-linalg %t | FileCheck %s --check-prefix=LAUNCH

!x = tensor<1024x2048xbf16>
!one = tensor<1x1xf32>
!q = !fp8.scaled<1024x2048xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>

// Two lanes share a block of 16. Its factor is an E4M3, which the codes are made
// with as it is rounded; two codes are a byte, and 8 of them a word that is stored
// at once.

// CHECK-LABEL: .visible .entry fp8_fusion_sm90a_rows_1x16_
// CHECK-NOT:   .local
// CHECK:       shfl.sync.bfly
// CHECK:       cvt.rn.satfinite.e4m3x2.f32
// CHECK:       cvt.rn.f16x2.e4m3x2
// CHECK:       rcp.rn.f32
// CHECK:       add.rn.f32 %{{.+}}, 0f4A800000
// CHECK:       prmt.b32 %[[WORD:r[0-9]+]], {{.+}}, {{.+}}, 0x6420U;
// CHECK:       st.global.b32 [%{{.+}}], %[[WORD]];
// CHECK:       ret;

// LAUNCH-LABEL: func.func @given
// LAUNCH:       %[[S:.+]]:3 = fp8_gpu.launch @fp8_kernels::@fp8_fusion_sm90a_rows_1x16_
// LAUNCH-SAME:  outs({{.+}} : tensor<1024x1024xi8>, tensor<1024x128xf8E4M3FN>, tensor<1x1xf32>)
// LAUNCH-NOT:   unrealized_conversion_cast
// LAUNCH:       return %[[S]]#0, %[[S]]#1, %[[S]]#2 : tensor<1024x1024xi8>, tensor<1024x128xf8E4M3FN>, tensor<1x1xf32>
func.func @given(%x: !x, %amax: !one) -> !q {
  %a = fp8.amax %x block = [1, 16] : !x
  %s, %i, %t = fp8.compute_scale %a tensor_amax(%amax : !one) format = f4E2M1FN scale_type = f8E4M3FN : tensor<1024x128xf32>
  %q = fp8.quantize %x scale(%s, %i : tensor<1024x128xf32>, tensor<1024x128xf8E4M3FN>) tensor_scale_inv(%t : !one) : !x -> !q
  return %q : !q
}

// The amax of the tensor is known when all of it has been read: the second pass
// measures blocks and computes their scales, which need it.

// LAUNCH-LABEL: func.func @measured
// LAUNCH:       %[[AMAX:[0-9]+]] = fp8_gpu.launch {{.+}} ins(%[[X:[a-z0-9]+]] : {{.+}} -> tensor<1x1xf32>
// LAUNCH:       fp8_gpu.launch {{.+}}_1x16_{{.+}} ins(%[[X]], %[[AMAX]] : {{.+}} -> tensor<1024x1024xi8>, tensor<1024x128xf8E4M3FN>, tensor<1x1xf32>
// LAUNCH-NEXT:  return
func.func @measured(%x: !x) -> !q {
  %amax = fp8.amax %x block = [*, *] : !x
  %a = fp8.amax %x block = [1, 16] : !x
  %s, %i, %t = fp8.compute_scale %a tensor_amax(%amax : !one) format = f4E2M1FN scale_type = f8E4M3FN : tensor<1024x128xf32>
  %q = fp8.quantize %x scale(%s, %i : tensor<1024x128xf32>, tensor<1024x128xf8E4M3FN>) tensor_scale_inv(%t : !one) : !x -> !q
  return %q : !q
}

// Codes become E4M3's, of 2^-6 of the value, for which there is an instruction.

// CHECK-LABEL: .visible .entry fp8_fusion_sm90a_rows_
// CHECK:       and.b32 %{{.+}}, %{{.+}}, 471604252;
// CHECK:       cvt.rn.f16x2.e4m3x2
// CHECK:       ret;

// LAUNCH-LABEL: func.func @dequantize
// LAUNCH:       fp8_gpu.launch {{.+}} ins(%arg0, %arg1, %arg2 : tensor<1024x1024xi8>, tensor<1024x128xf8E4M3FN>, tensor<1x1xf32>)
func.func @dequantize(%q: !q) -> !x {
  %x = fp8.dequantize %q : !q -> !x
  return %x : !x
}
