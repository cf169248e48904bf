// RUN: fp8-opt %s --fp8-report-copies --split-input-file --verify-diagnostics

!q = !fp8.scaled<128x128xf8E4M3FN, block = [*, *], scale = f32>

// expected-error @+1 {{expected a module with the attribute 'fp8_gpu.target', which fp8-set-target gives it}}
module {
  func.func @no_target(%x: !q) -> tensor<128x128xbf16> {
    %y = fp8.matmul %x, %x accumulate = fast
        {fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 64, stages = 3, consumers = 1>}
        : !q, !q -> tensor<128x128xbf16>
    return %y : tensor<128x128xbf16>
  }
}

// -----

!q = !fp8.scaled<128x128xf8E4M3FN, block = [*, *], scale = f32>

// Nothing has a kernel: nobody asks what it is for.
func.func @no_config(%x: !q) -> tensor<128x128xbf16> {
  %t = fp8.transpose %x permutation = [1, 0] : !q
  %y = fp8.matmul %t, %x accumulate = fast : !q, !q -> tensor<128x128xbf16>
  return %y : tensor<128x128xbf16>
}
