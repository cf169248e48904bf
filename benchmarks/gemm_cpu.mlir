// A matrix product in FP8 with one scale per tensor, rounded to bf16, and the
// same product of f32 matrices for comparison. B is N x K in both.

!scaled = !fp8.scaled<?x?xf8E4M3FN, block = [*, *], scale = f32>

func.func @fp8_matmul(%a: memref<?x?xf8E4M3FN>, %b: memref<?x?xf8E4M3FN>,
                      %factor: f32, %out: memref<?x?xbf16>)
    attributes {llvm.emit_c_interface} {
  %codes_a = bufferization.to_tensor %a restrict
      : memref<?x?xf8E4M3FN> to tensor<?x?xf8E4M3FN>
  %codes_b = bufferization.to_tensor %b restrict
      : memref<?x?xf8E4M3FN> to tensor<?x?xf8E4M3FN>
  %scale_inv = tensor.from_elements %factor : tensor<1x1xf32>
  %scaled_a = fp8.assemble %codes_a, %scale_inv
      : tensor<?x?xf8E4M3FN>, tensor<1x1xf32> -> !scaled
  %scaled_b = fp8.assemble %codes_b, %scale_inv
      : tensor<?x?xf8E4M3FN>, tensor<1x1xf32> -> !scaled
  %product = fp8.matmul %scaled_a, %scaled_b
      : !scaled, !scaled -> tensor<?x?xbf16>
  bufferization.materialize_in_destination %product in restrict writable %out
      : (tensor<?x?xbf16>, memref<?x?xbf16>) -> ()
  return
}

// In a buffer, so that this is oneDNN's sgemm and nothing else.
func.func @f32_matmul(%a: memref<?x?xf32>, %b: memref<?x?xf32>,
                      %out: memref<?x?xf32>)
    attributes {llvm.emit_c_interface} {
  linalg.contract
      indexing_maps = [affine_map<(m, n, k) -> (m, k)>,
                       affine_map<(m, n, k) -> (n, k)>,
                       affine_map<(m, n, k) -> (m, n)>]
      ins(%a, %b : memref<?x?xf32>, memref<?x?xf32>)
      outs(%out : memref<?x?xf32>)
  return
}
