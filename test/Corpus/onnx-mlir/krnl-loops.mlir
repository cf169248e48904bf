// ONNX-MLIR: a product as affine loops over memrefs with an accumulator of its own.
func.func @main_graph(%a: memref<16x64xf32>, %b: memref<64x32xf32>) -> memref<16x32xf32> {
  %zero = arith.constant 0.0 : f32
  %y = memref.alloc() {alignment = 16 : i64} : memref<16x32xf32>
  affine.for %i = 0 to 16 {
    affine.for %j = 0 to 32 {
      %sum = affine.for %k = 0 to 64 iter_args(%acc = %zero) -> (f32) {
        %p = affine.load %a[%i, %k] : memref<16x64xf32>
        %q = affine.load %b[%k, %j] : memref<64x32xf32>
        %t = arith.mulf %p, %q : f32
        %s = arith.addf %acc, %t : f32
        affine.yield %s : f32
      }
      affine.store %sum, %y[%i, %j] : memref<16x32xf32>
    }
  }
  return %y : memref<16x32xf32>
}
