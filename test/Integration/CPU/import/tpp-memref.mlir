// RUN: %python %S/Inputs/check.py %s --recipe=none --max-error=1e-5
// RUN: %python %S/Inputs/check.py %s --recipe=current --max-error=1e-5

// tpp-mlir also works on buffers. Recipes are for tensors: what is bufferized
// already runs in the precision it has.

func.func @entry(%arg0: memref<8x32xf32>, %arg1: memref<32x16xf32>, %arg2: memref<8x16xf32>) {
  linalg.matmul ins(%arg0, %arg1 : memref<8x32xf32>, memref<32x16xf32>) outs(%arg2 : memref<8x16xf32>)
  return
}
