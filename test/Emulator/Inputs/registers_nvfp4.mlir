// The same of NVFP4, whose factors are E4M3 of 16, and an odd number of K blocks. The factor of the tensor multiplies the sum.
func.func @main(%x: tensor<40x704xbf16> {fp8.name = "x"}, %w: tensor<256x704xbf16> {fp8.name = "w"})
    -> (tensor<40x256xf32> {fp8.name = "y"}) {
  %0 = fp8.amax %w block = [1, 16] : tensor<256x704xbf16>
  %1 = fp8.amax %0 block = [*, *] : tensor<256x44xf32>
  %s, %i, %t = fp8.compute_scale %0 tensor_amax(%1 : tensor<1x1xf32>) format = f4E2M1FN scale_type = f8E4M3FN : tensor<256x44xf32>
  %q = fp8.quantize %w scale(%s, %i : tensor<256x44xf32>, tensor<256x44xf8E4M3FN>) tensor_scale_inv(%t : tensor<1x1xf32>) : tensor<256x704xbf16> -> <256x704xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
  %c, %f, %g = fp8.disassemble %q : !fp8.scaled<256x704xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %r = fp8.assemble %c, %f, %one : tensor<256x704xf4E2M1FN>, tensor<256x44xf8E4M3FN>, tensor<1x1xf32> -> !fp8.scaled<256x704xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
  %b = fp8.dequantize %r {fp8.folded} : !fp8.scaled<256x704xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32> -> tensor<256x704xbf16>
  %y = fp8.matmul %x, %b accumulate = fast epilogue(%g : tensor<1x1xf32>) {
    ^bb0(%acc: f32, %scale: f32):
      %d = arith.mulf %acc, %scale : f32
      fp8.yield %d : f32
    } {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 16, tile_n = 128, stages = 4, swap_ab = true, store = direct, group = 1, lifters = 0>}
    : tensor<40x704xbf16>, tensor<256x704xbf16> -> tensor<40x256xf32>
  return %y : tensor<40x256xf32>
}
