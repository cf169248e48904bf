// buddy-mlir: a matmul of loops and loads, without any linalg.
func.func @gemm(%a: memref<32x64xf32>, %b: memref<64x32xf32>, %c: memref<32x32xf32>) {
  affine.for %i = 0 to 32 {
    affine.for %j = 0 to 32 {
      affine.for %k = 0 to 64 {
        %0 = affine.load %a[%i, %k] : memref<32x64xf32>
        %1 = affine.load %b[%k, %j] : memref<64x32xf32>
        %2 = affine.load %c[%i, %j] : memref<32x32xf32>
        %3 = arith.mulf %0, %1 : f32
        %4 = arith.addf %2, %3 : f32
        affine.store %4, %c[%i, %j] : memref<32x32xf32>
      }
    }
  }
  return
}
