// RUN: fp8-opt %s --split-input-file --verify-diagnostics

// launch_matmul_c1
func.func @mixed(%a: tensor<32x128xf8E4M3FN>, %inv: tensor<1x1xf32>,
                 %b: tensor<64x128xf8E4M3FN>, %d: memref<32x64xbf16>) {
  // expected-error @+1 {{expected all operands to be tensors, but got 'memref<32x64xbf16>'}}
  fp8.launch_matmul @k::@m a(%a, %inv : tensor<32x128xf8E4M3FN>, tensor<1x1xf32>)
      b(%b, %inv : tensor<64x128xf8E4M3FN>, tensor<1x1xf32>)
      outs(%d : memref<32x64xbf16>)
  return
}

// -----

// launch_matmul_c1
func.func @no_result(%a: tensor<32x128xf8E4M3FN>, %inv: tensor<1x1xf32>,
                     %b: tensor<64x128xf8E4M3FN>, %d: tensor<32x64xbf16>) {
  // expected-error @+1 {{expected results of the types of outs that are tensors, but got ()}}
  fp8.launch_matmul @k::@m a(%a, %inv : tensor<32x128xf8E4M3FN>, tensor<1x1xf32>)
      b(%b, %inv : tensor<64x128xf8E4M3FN>, tensor<1x1xf32>)
      outs(%d : tensor<32x64xbf16>)
  return
}

// -----

// launch_matmul_c2
func.func @rank(%a: memref<2x32x128xf8E4M3FN>, %inv: memref<1x1xf32>,
                %b: memref<64x128xf8E4M3FN>, %d: memref<32x64xbf16>) {
  // expected-error @+1 {{expected a, b and the result to have the same rank, but got 3 and 2}}
  fp8.launch_matmul @k::@m a(%a, %inv : memref<2x32x128xf8E4M3FN>, memref<1x1xf32>)
      b(%b, %inv : memref<64x128xf8E4M3FN>, memref<1x1xf32>)
      outs(%d : memref<32x64xbf16>)
  return
}

// -----

// launch_matmul_c3
func.func @outs(%a: memref<32x128xf8E4M3FN>, %inv: memref<1x1xf32>,
                %b: memref<64x128xf8E4M3FN>, %d: memref<32x64xbf16>) {
  // expected-error @+1 {{expected one or two outs, but got 3}}
  fp8.launch_matmul @k::@m a(%a, %inv : memref<32x128xf8E4M3FN>, memref<1x1xf32>)
      b(%b, %inv : memref<64x128xf8E4M3FN>, memref<1x1xf32>)
      outs(%d, %d, %d : memref<32x64xbf16>, memref<32x64xbf16>, memref<32x64xbf16>)
  return
}
