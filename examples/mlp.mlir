// A two-layer perceptron in bf16, as a framework exports it:
//
//   hidden = gelu(x @ w1 + b1)      32x768 -> 32x3072
//   out    = hidden @ w2 + b2       32x3072 -> 32x768
//
// Nothing here speaks of FP8: a recipe does that from outside, e.g.
//
//   fp8-opt examples/mlp.mlir --fp8-pipeline="recipe=current target=cpu to=fusion"

#matrix = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d1)>

func.func @mlp(%x: tensor<32x768xbf16> {fp8.name = "x"},
               %w1: tensor<768x3072xbf16> {fp8.name = "w1", fp8.weight},
               %b1: tensor<3072xbf16> {fp8.name = "b1"},
               %w2: tensor<3072x768xbf16> {fp8.name = "w2", fp8.weight},
               %b2: tensor<768xbf16> {fp8.name = "b2"})
    -> (tensor<32x768xbf16> {fp8.name = "y"}) {
  %zero = arith.constant 0.0 : bf16

  %empty1 = tensor.empty() : tensor<32x3072xbf16>
  %zeros1 = linalg.fill ins(%zero : bf16) outs(%empty1 : tensor<32x3072xbf16>) -> tensor<32x3072xbf16>
  %up = linalg.matmul ins(%x, %w1 : tensor<32x768xbf16>, tensor<768x3072xbf16>)
                      outs(%zeros1 : tensor<32x3072xbf16>) -> tensor<32x3072xbf16> loc("mlp.up")
  // GELU, tanh form: 0.5 h (1 + tanh(sqrt(2 / pi) (h + 0.044715 h^3))), in f32.
  %hidden = linalg.generic {indexing_maps = [#matrix, #row, #matrix],
                            iterator_types = ["parallel", "parallel"]}
      ins(%up, %b1 : tensor<32x3072xbf16>, tensor<3072xbf16>)
      outs(%empty1 : tensor<32x3072xbf16>) {
  ^bb0(%acc: bf16, %bias: bf16, %out: bf16):
    %half = arith.constant 0.5 : f32
    %one = arith.constant 1.0 : f32
    %cubic = arith.constant 0.044715 : f32
    %sqrt2pi = arith.constant 0.7978845608 : f32
    %acc32 = arith.extf %acc : bf16 to f32
    %bias32 = arith.extf %bias : bf16 to f32
    %h = arith.addf %acc32, %bias32 : f32
    %h2 = arith.mulf %h, %h : f32
    %h3 = arith.mulf %h2, %h : f32
    %c3 = arith.mulf %cubic, %h3 : f32
    %sum = arith.addf %h, %c3 : f32
    %inner = arith.mulf %sqrt2pi, %sum : f32
    %tanh = math.tanh %inner : f32
    %gate = arith.addf %one, %tanh : f32
    %halfh = arith.mulf %half, %h : f32
    %gelu = arith.mulf %halfh, %gate : f32
    %result = arith.truncf %gelu : f32 to bf16
    linalg.yield %result : bf16
  } -> tensor<32x3072xbf16>

  %empty2 = tensor.empty() : tensor<32x768xbf16>
  %zeros2 = linalg.fill ins(%zero : bf16) outs(%empty2 : tensor<32x768xbf16>) -> tensor<32x768xbf16>
  %down = linalg.matmul ins(%hidden, %w2 : tensor<32x3072xbf16>, tensor<3072x768xbf16>)
                        outs(%zeros2 : tensor<32x768xbf16>) -> tensor<32x768xbf16> loc("mlp.down")
  %y = linalg.generic {indexing_maps = [#matrix, #row, #matrix],
                       iterator_types = ["parallel", "parallel"]}
      ins(%down, %b2 : tensor<32x768xbf16>, tensor<768xbf16>)
      outs(%empty2 : tensor<32x768xbf16>) {
  ^bb0(%acc: bf16, %bias: bf16, %out: bf16):
    %sum = arith.addf %acc, %bias : bf16
    linalg.yield %sum : bf16
  } -> tensor<32x768xbf16>
  return %y : tensor<32x768xbf16>
}
