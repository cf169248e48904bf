// RUN: fp8-opt %s --fp8-convert-gemms-to-runtime --split-input-file --verify-diagnostics

func.func @offset(%amaxes: memref<2xf32, strided<[1], offset: 3>>) {
  // expected-error @+1 {{expected amaxes that lie together, but got 'memref<2xf32, strided<[1], offset: 3>>'}}
  fp8.all_reduce_amax %amaxes group = "tp" : memref<2xf32, strided<[1], offset: 3>>
  return
}

// -----

func.func @stride(%amaxes: memref<4x2xf32, strided<[8, 1]>>) {
  // expected-error @+1 {{expected amaxes that lie together, but got 'memref<4x2xf32, strided<[8, 1]>>'}}
  fp8.all_reduce_amax %amaxes group = "tp" : memref<4x2xf32, strided<[8, 1]>>
  return
}
