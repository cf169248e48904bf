// One training step of an MLP with two layers, without its optimizer:
// y = relu(x @ w0) @ w1, and from dy, the gradient of y, those of w0 and w1.
// The contractions are called as their layer, so that a saved scaling state fits
// a program that grew.

#row = affine_map<(m, n) -> (m, n)>

func.func @train(%x: tensor<64x128xbf16> {fp8.name = "x"},
                 %w0: tensor<128x256xbf16> {fp8.name = "w0", fp8.weight},
                 %w1: tensor<256x64xbf16> {fp8.name = "w1", fp8.weight},
                 %dy: tensor<64x64xbf16> {fp8.name = "dy", fp8.grad})
    -> (tensor<64x64xbf16> {fp8.name = "y"}, tensor<128x256xf32> {fp8.name = "dw0"},
        tensor<256x64xf32> {fp8.name = "dw1"}) {
  %zero = arith.constant 0.0 : f32
  %zero_bf16 = arith.constant 0.0 : bf16

  // Forward.
  %e0 = tensor.empty() : tensor<64x256xf32>
  %z0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<64x256xf32>) -> tensor<64x256xf32>
  %a = linalg.matmul {fp8.name = "l0"} ins(%x, %w0 : tensor<64x128xbf16>, tensor<128x256xbf16>)
                     outs(%z0 : tensor<64x256xf32>) -> tensor<64x256xf32>
  %e1 = tensor.empty() : tensor<64x256xbf16>
  %h = linalg.generic {indexing_maps = [#row, #row], iterator_types = ["parallel", "parallel"]}
      ins(%a : tensor<64x256xf32>) outs(%e1 : tensor<64x256xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %positive = arith.maximumf %in, %zero : f32
    %rounded = arith.truncf %positive : f32 to bf16
    linalg.yield %rounded : bf16
  } -> tensor<64x256xbf16>
  %e2 = tensor.empty() : tensor<64x64xf32>
  %z2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<64x64xf32>) -> tensor<64x64xf32>
  %b = linalg.matmul {fp8.name = "l1"} ins(%h, %w1 : tensor<64x256xbf16>, tensor<256x64xbf16>)
                     outs(%z2 : tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = arith.truncf %b : tensor<64x64xf32> to tensor<64x64xbf16>

  // Backward: dh = dy @ transpose(w1), zero where relu was.
  %dh32 = linalg.matmul
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>, affine_map<(m, n, k) -> (n, k)>,
                       affine_map<(m, n, k) -> (m, n)>]
      {fp8.name = "l1.dgrad"}
      ins(%dy, %w1 : tensor<64x64xbf16>, tensor<256x64xbf16>)
      outs(%z0 : tensor<64x256xf32>) -> tensor<64x256xf32>
  %dh = linalg.generic {indexing_maps = [#row, #row, #row],
                        iterator_types = ["parallel", "parallel"]}
      ins(%dh32, %h : tensor<64x256xf32>, tensor<64x256xbf16>) outs(%e1 : tensor<64x256xbf16>) {
  ^bb0(%in: f32, %activation: bf16, %out: bf16):
    %rounded = arith.truncf %in : f32 to bf16
    %passes = arith.cmpf ogt, %activation, %zero_bf16 : bf16
    %gradient = arith.select %passes, %rounded, %zero_bf16 : bf16
    linalg.yield %gradient : bf16
  } -> tensor<64x256xbf16>

  // dw0 = transpose(x) @ dh, dw1 = transpose(h) @ dy.
  %e3 = tensor.empty() : tensor<128x256xf32>
  %z3 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<128x256xf32>) -> tensor<128x256xf32>
  %dw0 = linalg.matmul
      indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                       affine_map<(m, n, k) -> (m, n)>]
      {fp8.name = "l0.wgrad"}
      ins(%x, %dh : tensor<64x128xbf16>, tensor<64x256xbf16>)
      outs(%z3 : tensor<128x256xf32>) -> tensor<128x256xf32>
  %e4 = tensor.empty() : tensor<256x64xf32>
  %z4 = linalg.fill ins(%zero : f32) outs(%e4 : tensor<256x64xf32>) -> tensor<256x64xf32>
  %dw1 = linalg.matmul
      indexing_maps = [affine_map<(m, n, k) -> (k, m)>, affine_map<(m, n, k) -> (k, n)>,
                       affine_map<(m, n, k) -> (m, n)>]
      {fp8.name = "l1.wgrad"}
      ins(%h, %dy : tensor<64x256xbf16>, tensor<64x64xbf16>)
      outs(%z4 : tensor<256x64xf32>) -> tensor<256x64xf32>
  return %y, %dw0, %dw1 : tensor<64x64xbf16>, tensor<128x256xf32>, tensor<256x64xf32>
}
