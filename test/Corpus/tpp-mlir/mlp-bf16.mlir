// tpp-mlir: a layer of an MLP, matmul, bias by a broadcast, relu, all in bf16.
#map = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>
func.func @entry(%x: tensor<128x256xbf16>, %w: tensor<256x512xbf16>, %bias: tensor<512xbf16>) -> tensor<128x512xbf16> {
  %zero = arith.constant 0.0 : bf16
  %empty = tensor.empty() : tensor<128x512xbf16>
  %init = linalg.fill ins(%zero : bf16) outs(%empty : tensor<128x512xbf16>) -> tensor<128x512xbf16>
  %0 = linalg.matmul ins(%x, %w : tensor<128x256xbf16>, tensor<256x512xbf16>) outs(%init : tensor<128x512xbf16>) -> tensor<128x512xbf16>
  %1 = linalg.generic {indexing_maps = [#row, #map], iterator_types = ["parallel", "parallel"]}
      ins(%bias : tensor<512xbf16>) outs(%0 : tensor<128x512xbf16>) {
  ^bb0(%b: bf16, %acc: bf16):
    %s = arith.addf %b, %acc : bf16
    linalg.yield %s : bf16
  } -> tensor<128x512xbf16>
  %2 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel"]} outs(%1 : tensor<128x512xbf16>) {
  ^bb0(%v: bf16):
    %m = arith.maximumf %v, %zero : bf16
    linalg.yield %m : bf16
  } -> tensor<128x512xbf16>
  return %2 : tensor<128x512xbf16>
}
