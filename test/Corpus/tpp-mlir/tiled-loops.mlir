// tpp-mlir: a matmul tiled by scf.forall over slices.
func.func @entry(%x: tensor<128x128xf32>, %w: tensor<128x128xf32>, %y: tensor<128x128xf32>) -> tensor<128x128xf32> {
  %0 = scf.forall (%i, %j) = (0, 0) to (128, 128) step (32, 32) shared_outs(%out = %y) -> (tensor<128x128xf32>) {
    %a = tensor.extract_slice %x[%i, 0] [32, 128] [1, 1] : tensor<128x128xf32> to tensor<32x128xf32>
    %b = tensor.extract_slice %w[0, %j] [128, 32] [1, 1] : tensor<128x128xf32> to tensor<128x32xf32>
    %c = tensor.extract_slice %out[%i, %j] [32, 32] [1, 1] : tensor<128x128xf32> to tensor<32x32xf32>
    %1 = linalg.matmul ins(%a, %b : tensor<32x128xf32>, tensor<128x32xf32>) outs(%c : tensor<32x32xf32>) -> tensor<32x32xf32>
    scf.forall.in_parallel {
      tensor.parallel_insert_slice %1 into %out[%i, %j] [32, 32] [1, 1] : tensor<32x32xf32> into tensor<128x128xf32>
    }
  }
  return %0 : tensor<128x128xf32>
}
