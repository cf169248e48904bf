// What a step of a transformer does between its attention and its norms, at the
// extents of Llama 3 8B and 8192 tokens: the MLP's forward pass,
//
//   y = (silu(x @ transpose(w_gate)) * (x @ transpose(w_up))) @ transpose(w_down)
//
// and a linear layer's forward and backward. Weights are stored as PyTorch's
// nn.Linear has them, a row for each output.

#row = affine_map<(m, n) -> (m, n)>
#a = affine_map<(m, n, k) -> (m, k)>
#a_columns = affine_map<(m, n, k) -> (k, m)>
#b = affine_map<(m, n, k) -> (k, n)>
#b_columns = affine_map<(m, n, k) -> (n, k)>
#d = affine_map<(m, n, k) -> (m, n)>

func.func @mlp(%x: tensor<8192x4096xbf16> {fp8.name = "x"},
               %w_gate: tensor<14336x4096xbf16> {fp8.name = "w_gate", fp8.weight},
               %w_up: tensor<14336x4096xbf16> {fp8.name = "w_up", fp8.weight},
               %w_down: tensor<4096x14336xbf16> {fp8.name = "w_down", fp8.weight})
    -> (tensor<8192x4096xbf16> {fp8.name = "y"}) {
  %zero = arith.constant 0.0 : f32
  %wide = tensor.empty() : tensor<8192x14336xf32>
  %wide_zeros = linalg.fill ins(%zero : f32) outs(%wide : tensor<8192x14336xf32>)
      -> tensor<8192x14336xf32>
  %gate32 = linalg.matmul indexing_maps = [#a, #b_columns, #d] {fp8.name = "gate"}
      ins(%x, %w_gate : tensor<8192x4096xbf16>, tensor<14336x4096xbf16>)
      outs(%wide_zeros : tensor<8192x14336xf32>) -> tensor<8192x14336xf32>
  %gate = arith.truncf %gate32 : tensor<8192x14336xf32> to tensor<8192x14336xbf16>
  %up32 = linalg.matmul indexing_maps = [#a, #b_columns, #d] {fp8.name = "up"}
      ins(%x, %w_up : tensor<8192x4096xbf16>, tensor<14336x4096xbf16>)
      outs(%wide_zeros : tensor<8192x14336xf32>) -> tensor<8192x14336xf32>
  %hidden_empty = tensor.empty() : tensor<8192x14336xbf16>
  %hidden = linalg.generic {indexing_maps = [#row, #row, #row],
                            iterator_types = ["parallel", "parallel"]}
      ins(%gate, %up32 : tensor<8192x14336xbf16>, tensor<8192x14336xf32>)
      outs(%hidden_empty : tensor<8192x14336xbf16>) {
  ^bb0(%g: bf16, %u: f32, %out: bf16):
    %one = arith.constant 1.0 : f32
    %g32 = arith.extf %g : bf16 to f32
    %negative = arith.negf %g32 : f32
    %exp = math.exp %negative : f32
    %divisor = arith.addf %exp, %one : f32
    %silu = arith.divf %g32, %divisor : f32
    %product = arith.mulf %silu, %u : f32
    %rounded = arith.truncf %product : f32 to bf16
    linalg.yield %rounded : bf16
  } -> tensor<8192x14336xbf16>
  %narrow = tensor.empty() : tensor<8192x4096xf32>
  %narrow_zeros = linalg.fill ins(%zero : f32) outs(%narrow : tensor<8192x4096xf32>)
      -> tensor<8192x4096xf32>
  %y32 = linalg.matmul indexing_maps = [#a, #b_columns, #d] {fp8.name = "down"}
      ins(%hidden, %w_down : tensor<8192x14336xbf16>, tensor<4096x14336xbf16>)
      outs(%narrow_zeros : tensor<8192x4096xf32>) -> tensor<8192x4096xf32>
  %y = arith.truncf %y32 : tensor<8192x4096xf32> to tensor<8192x4096xbf16>
  return %y : tensor<8192x4096xbf16>
}

// y = x @ transpose(w), dx = dy @ w and dw = transpose(dy) @ x.
func.func @linear(%x: tensor<8192x4096xbf16> {fp8.name = "x"},
                  %w: tensor<4096x4096xbf16> {fp8.name = "w", fp8.weight},
                  %dy: tensor<8192x4096xbf16> {fp8.name = "dy", fp8.grad})
    -> (tensor<8192x4096xbf16> {fp8.name = "y"}, tensor<8192x4096xbf16> {fp8.name = "dx"},
        tensor<4096x4096xbf16> {fp8.name = "dw"}) {
  %zero = arith.constant 0.0 : f32
  %tall = tensor.empty() : tensor<8192x4096xf32>
  %tall_zeros = linalg.fill ins(%zero : f32) outs(%tall : tensor<8192x4096xf32>)
      -> tensor<8192x4096xf32>
  %y32 = linalg.matmul indexing_maps = [#a, #b_columns, #d] {fp8.name = "linear"}
      ins(%x, %w : tensor<8192x4096xbf16>, tensor<4096x4096xbf16>)
      outs(%tall_zeros : tensor<8192x4096xf32>) -> tensor<8192x4096xf32>
  %y = arith.truncf %y32 : tensor<8192x4096xf32> to tensor<8192x4096xbf16>
  %dx32 = linalg.matmul {fp8.name = "linear.dgrad"}
      ins(%dy, %w : tensor<8192x4096xbf16>, tensor<4096x4096xbf16>)
      outs(%tall_zeros : tensor<8192x4096xf32>) -> tensor<8192x4096xf32>
  %dx = arith.truncf %dx32 : tensor<8192x4096xf32> to tensor<8192x4096xbf16>
  %square = tensor.empty() : tensor<4096x4096xf32>
  %square_zeros = linalg.fill ins(%zero : f32) outs(%square : tensor<4096x4096xf32>)
      -> tensor<4096x4096xf32>
  %dw32 = linalg.matmul indexing_maps = [#a_columns, #b, #d] {fp8.name = "linear.wgrad"}
      ins(%dy, %x : tensor<8192x4096xbf16>, tensor<8192x4096xbf16>)
      outs(%square_zeros : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %dw = arith.truncf %dw32 : tensor<4096x4096xf32> to tensor<4096x4096xbf16>
  return %y, %dx, %dw : tensor<8192x4096xbf16>, tensor<8192x4096xbf16>, tensor<4096x4096xbf16>
}
