!q = !fp8.scaled<?x64xf8E4M3FN, block = [*, *], scale = f32>
func.func @quantize(%x: tensor<?x64xf32> {fp8.name = "x"})
    -> (tensor<?x64xf8E4M3FN> {fp8.name = "codes"}, tensor<1x1xf32> {fp8.name = "scale_inv"}) {
  %q = fp8.quantize %x recipe(#acme.powers<headroom = 3>) : tensor<?x64xf32> -> !q
  %codes, %scale_inv = fp8.disassemble %q : !q
  return %codes, %scale_inv : tensor<?x64xf8E4M3FN>, tensor<1x1xf32>
}
