// What kernels transpose, of both widths that inputs have; tiles that are not
// full at either side, and extents that are only known at run time. The last one
// has rows that do not start at words: loops do that.
func.func @transposes(%words: tensor<?x?xf32> {fp8.name = "words"},
                      %batch: tensor<3x5x70xf32> {fp8.name = "batch"},
                      %halves: tensor<130x66xbf16> {fp8.name = "halves"},
                      %odd: tensor<?x?xbf16> {fp8.name = "odd"})
    -> (tensor<?x?xf32> {fp8.name = "words_t"}, tensor<3x70x5xf32> {fp8.name = "batch_t"},
        tensor<66x130xbf16> {fp8.name = "halves_t"}, tensor<?x?xbf16> {fp8.name = "odd_t"}) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %m = tensor.dim %words, %c0 : tensor<?x?xf32>
  %n = tensor.dim %words, %c1 : tensor<?x?xf32>
  %0 = tensor.empty(%n, %m) : tensor<?x?xf32>
  %words_t = linalg.transpose ins(%words : tensor<?x?xf32>) outs(%0 : tensor<?x?xf32>) permutation = [1, 0]
  %1 = tensor.empty() : tensor<3x70x5xf32>
  %batch_t = linalg.transpose ins(%batch : tensor<3x5x70xf32>) outs(%1 : tensor<3x70x5xf32>) permutation = [0, 2, 1]
  %2 = tensor.empty() : tensor<66x130xbf16>
  %halves_t = linalg.transpose ins(%halves : tensor<130x66xbf16>) outs(%2 : tensor<66x130xbf16>) permutation = [1, 0]
  %p = tensor.dim %odd, %c0 : tensor<?x?xbf16>
  %q = tensor.dim %odd, %c1 : tensor<?x?xbf16>
  %3 = tensor.empty(%q, %p) : tensor<?x?xbf16>
  %odd_t = linalg.transpose ins(%odd : tensor<?x?xbf16>) outs(%3 : tensor<?x?xbf16>) permutation = [1, 0]
  return %words_t, %batch_t, %halves_t, %odd_t : tensor<?x?xf32>, tensor<3x70x5xf32>, tensor<66x130xbf16>, tensor<?x?xbf16>
}
