// RUN: fp8-opt %s --fp8-pipeline="recipe=delayed target=sm_90a to=buffers" 2>/dev/null | FileCheck %s --implicit-check-not=memref.copy --implicit-check-not=linalg. --implicit-check-not="fp8_gpu.launch @"

// A training step of a linear layer is its three matmuls, a pass over each of its
// tensors, which raises the amax in the state, and, for the gradient of the bias,
// one over the sums of 128 rows that such a pass has left. Nothing is copied.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (j)>

// CHECK-LABEL: func.func @linear
// CHECK-SAME:  %[[X:.+]]: memref<1024x4096xbf16> {fp8.name = "x"}, %[[W:.+]]: memref<2048x4096xbf16> {{.+}}, %[[DY:.+]]: memref<1024x2048xbf16> {{.+}}, %[[STATE:[a-z0-9]+]]: !llvm.ptr

// CHECK:       fp8_gpu.launch @fp8_kernels::@fp8_fusion_sm90a_{{.+}} ins(%[[X]], %{{.+}} outs(%{{.+}} : memref<1024x4096xf8E4M3FN>, {{(memref<1x1xf32>, memref<4096x1024xf8E4M3FN>|memref<4096x1024xf8E4M3FN>, memref<1x1xf32>)}})
// CHECK:       fp8_gpu.launch @fp8_kernels::@fp8_fusion_sm90a_{{.+}} ins(%[[W]], %{{.+}} outs(%{{.+}} : memref<2048x4096xf8E4M3FN>, {{(memref<1x1xf32>, memref<4096x2048xf8E4M3FN>|memref<4096x2048xf8E4M3FN>, memref<1x1xf32>)}})
// CHECK:       fp8_gpu.launch @fp8_kernels::@fp8_matmul_sm90a_e4m3_e4m3_bf16_tensor_tensor_
// CHECK:       fp8_gpu.launch @fp8_kernels::@fp8_fusion_sm90a_{{.+}} ins(%[[DY]], %{{.+}} outs(%{{.+}}memref<1024x2048xf8E5M2>{{.+}}memref<8x2048xf32>
// CHECK:       fp8_gpu.launch @fp8_kernels::@fp8_fusion_sm90a_{{.+}} ins(%{{.+}} : memref<8x2048xf32>) outs(%{{.+}} : memref<2048xf32>)
// CHECK:       fp8_gpu.launch @fp8_kernels::@fp8_matmul_sm90a_e5m2_e4m3_bf16_tensor_tensor_
// CHECK:       fp8_gpu.launch @fp8_kernels::@fp8_matmul_sm90a_e5m2_e4m3_f32_tensor_tensor_
// CHECK:       return
func.func @linear(%x: tensor<1024x4096xbf16> {fp8.name = "x"}, %w: tensor<2048x4096xbf16> {fp8.name = "w", fp8.weight}, %dy: tensor<1024x2048xbf16> {fp8.name = "dy", fp8.grad})
    -> (tensor<1024x2048xbf16>, tensor<1024x4096xbf16>, tensor<2048x4096xf32>, tensor<2048xf32>) {
  %zero = arith.constant 0.0 : f32
  %ye = tensor.empty() : tensor<1024x2048xf32>
  %yz = linalg.fill ins(%zero : f32) outs(%ye : tensor<1024x2048xf32>) -> tensor<1024x2048xf32>
  %y = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%x, %w : tensor<1024x4096xbf16>, tensor<2048x4096xbf16>) outs(%yz : tensor<1024x2048xf32>) -> tensor<1024x2048xf32>
  %yt = arith.truncf %y : tensor<1024x2048xf32> to tensor<1024x2048xbf16>
  %dxe = tensor.empty() : tensor<1024x4096xf32>
  %dxz = linalg.fill ins(%zero : f32) outs(%dxe : tensor<1024x4096xf32>) -> tensor<1024x4096xf32>
  %dx = linalg.matmul ins(%dy, %w : tensor<1024x2048xbf16>, tensor<2048x4096xbf16>) outs(%dxz : tensor<1024x4096xf32>) -> tensor<1024x4096xf32>
  %dxt = arith.truncf %dx : tensor<1024x4096xf32> to tensor<1024x4096xbf16>
  %dwe = tensor.empty() : tensor<2048x4096xf32>
  %dwz = linalg.fill ins(%zero : f32) outs(%dwe : tensor<2048x4096xf32>) -> tensor<2048x4096xf32>
  %dw = linalg.matmul indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>, affine_map<(m, n, k) -> (m, n)>]
      ins(%dy, %x : tensor<1024x2048xbf16>, tensor<1024x4096xbf16>) outs(%dwz : tensor<2048x4096xf32>) -> tensor<2048x4096xf32>
  %dbe = tensor.empty() : tensor<2048xf32>
  %dbz = linalg.fill ins(%zero : f32) outs(%dbe : tensor<2048xf32>) -> tensor<2048xf32>
  %db = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["reduction", "parallel"]} ins(%dy : tensor<1024x2048xbf16>) outs(%dbz : tensor<2048xf32>) {
  ^bb0(%a: bf16, %s: f32):
    %0 = arith.extf %a : bf16 to f32
    %1 = arith.addf %s, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<2048xf32>
  return %yt, %dxt, %dw, %db : tensor<1024x2048xbf16>, tensor<1024x4096xbf16>, tensor<2048x4096xf32>, tensor<2048xf32>
}
