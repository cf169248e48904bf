// buddy-mlir: a dot product in vectors of 16, scf.for with a carried vector.
func.func @dot(%a: memref<256xf32>, %b: memref<256xf32>) -> f32 {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant 0.0 : f32
  %init = arith.constant dense<0.0> : vector<16xf32>
  %v = scf.for %i = %c0 to %c256 step %c16 iter_args(%acc = %init) -> (vector<16xf32>) {
    %x = vector.load %a[%i] : memref<256xf32>, vector<16xf32>
    %y = vector.load %b[%i] : memref<256xf32>, vector<16xf32>
    %s = vector.fma %x, %y, %acc : vector<16xf32>
    scf.yield %s : vector<16xf32>
  }
  %r = vector.reduction <add>, %v, %zero : vector<16xf32> into f32
  return %r : f32
}
