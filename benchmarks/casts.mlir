// Quantize and dequantize with one given scale, in buffers of the caller's.

func.func @f32_to_f8E4M3FN(%in: memref<1x?xf32>, %out: memref<1x?xf8E4M3FN>, %factor: f32)
    attributes {llvm.emit_c_interface} {
  %x = bufferization.to_tensor %in restrict : memref<1x?xf32> to tensor<1x?xf32>
  %scale = tensor.from_elements %factor : tensor<1x1xf32>
  %q = fp8.quantize %x scale(%scale, %scale : tensor<1x1xf32>, tensor<1x1xf32>)
      : tensor<1x?xf32> -> !fp8.scaled<1x?xf8E4M3FN, block = [*, *], scale = f32>
  %codes, %scale_inv = fp8.disassemble %q
      : !fp8.scaled<1x?xf8E4M3FN, block = [*, *], scale = f32>
  bufferization.materialize_in_destination %codes in restrict writable %out
      : (tensor<1x?xf8E4M3FN>, memref<1x?xf8E4M3FN>) -> ()
  return
}

func.func @f32_to_f8E5M2(%in: memref<1x?xf32>, %out: memref<1x?xf8E5M2>, %factor: f32)
    attributes {llvm.emit_c_interface} {
  %x = bufferization.to_tensor %in restrict : memref<1x?xf32> to tensor<1x?xf32>
  %scale = tensor.from_elements %factor : tensor<1x1xf32>
  %q = fp8.quantize %x scale(%scale, %scale : tensor<1x1xf32>, tensor<1x1xf32>)
      : tensor<1x?xf32> -> !fp8.scaled<1x?xf8E5M2, block = [*, *], scale = f32>
  %codes, %scale_inv = fp8.disassemble %q
      : !fp8.scaled<1x?xf8E5M2, block = [*, *], scale = f32>
  bufferization.materialize_in_destination %codes in restrict writable %out
      : (tensor<1x?xf8E5M2>, memref<1x?xf8E5M2>) -> ()
  return
}

func.func @f8E4M3FN_to_f32(%in: memref<1x?xf8E4M3FN>, %out: memref<1x?xf32>, %factor: f32)
    attributes {llvm.emit_c_interface} {
  %codes = bufferization.to_tensor %in restrict
      : memref<1x?xf8E4M3FN> to tensor<1x?xf8E4M3FN>
  %scale_inv = tensor.from_elements %factor : tensor<1x1xf32>
  %q = fp8.assemble %codes, %scale_inv : tensor<1x?xf8E4M3FN>, tensor<1x1xf32>
      -> !fp8.scaled<1x?xf8E4M3FN, block = [*, *], scale = f32>
  %x = fp8.dequantize %q
      : !fp8.scaled<1x?xf8E4M3FN, block = [*, *], scale = f32> -> tensor<1x?xf32>
  bufferization.materialize_in_destination %x in restrict writable %out
      : (tensor<1x?xf32>, memref<1x?xf32>) -> ()
  return
}

func.func @f8E5M2_to_f32(%in: memref<1x?xf8E5M2>, %out: memref<1x?xf32>, %factor: f32)
    attributes {llvm.emit_c_interface} {
  %codes = bufferization.to_tensor %in restrict
      : memref<1x?xf8E5M2> to tensor<1x?xf8E5M2>
  %scale_inv = tensor.from_elements %factor : tensor<1x1xf32>
  %q = fp8.assemble %codes, %scale_inv : tensor<1x?xf8E5M2>, tensor<1x1xf32>
      -> !fp8.scaled<1x?xf8E5M2, block = [*, *], scale = f32>
  %x = fp8.dequantize %q
      : !fp8.scaled<1x?xf8E5M2, block = [*, *], scale = f32> -> tensor<1x?xf32>
  bufferization.materialize_in_destination %x in restrict writable %out
      : (tensor<1x?xf32>, memref<1x?xf32>) -> ()
  return
}

func.func @bf16_to_f8E4M3FN(%in: memref<1x?xbf16>, %out: memref<1x?xf8E4M3FN>, %factor: f32)
    attributes {llvm.emit_c_interface} {
  %x = bufferization.to_tensor %in restrict : memref<1x?xbf16> to tensor<1x?xbf16>
  %scale = tensor.from_elements %factor : tensor<1x1xf32>
  %q = fp8.quantize %x scale(%scale, %scale : tensor<1x1xf32>, tensor<1x1xf32>)
      : tensor<1x?xbf16> -> !fp8.scaled<1x?xf8E4M3FN, block = [*, *], scale = f32>
  %codes, %scale_inv = fp8.disassemble %q
      : !fp8.scaled<1x?xf8E4M3FN, block = [*, *], scale = f32>
  bufferization.materialize_in_destination %codes in restrict writable %out
      : (tensor<1x?xf8E4M3FN>, memref<1x?xf8E4M3FN>) -> ()
  return
}

func.func @bf16_to_f8E5M2(%in: memref<1x?xbf16>, %out: memref<1x?xf8E5M2>, %factor: f32)
    attributes {llvm.emit_c_interface} {
  %x = bufferization.to_tensor %in restrict : memref<1x?xbf16> to tensor<1x?xbf16>
  %scale = tensor.from_elements %factor : tensor<1x1xf32>
  %q = fp8.quantize %x scale(%scale, %scale : tensor<1x1xf32>, tensor<1x1xf32>)
      : tensor<1x?xbf16> -> !fp8.scaled<1x?xf8E5M2, block = [*, *], scale = f32>
  %codes, %scale_inv = fp8.disassemble %q
      : !fp8.scaled<1x?xf8E5M2, block = [*, *], scale = f32>
  bufferization.materialize_in_destination %codes in restrict writable %out
      : (tensor<1x?xf8E5M2>, memref<1x?xf8E5M2>) -> ()
  return
}

func.func @f8E4M3FN_to_bf16(%in: memref<1x?xf8E4M3FN>, %out: memref<1x?xbf16>, %factor: f32)
    attributes {llvm.emit_c_interface} {
  %codes = bufferization.to_tensor %in restrict
      : memref<1x?xf8E4M3FN> to tensor<1x?xf8E4M3FN>
  %scale_inv = tensor.from_elements %factor : tensor<1x1xf32>
  %q = fp8.assemble %codes, %scale_inv : tensor<1x?xf8E4M3FN>, tensor<1x1xf32>
      -> !fp8.scaled<1x?xf8E4M3FN, block = [*, *], scale = f32>
  %x = fp8.dequantize %q
      : !fp8.scaled<1x?xf8E4M3FN, block = [*, *], scale = f32> -> tensor<1x?xbf16>
  bufferization.materialize_in_destination %x in restrict writable %out
      : (tensor<1x?xbf16>, memref<1x?xbf16>) -> ()
  return
}

func.func @f8E5M2_to_bf16(%in: memref<1x?xf8E5M2>, %out: memref<1x?xbf16>, %factor: f32)
    attributes {llvm.emit_c_interface} {
  %codes = bufferization.to_tensor %in restrict
      : memref<1x?xf8E5M2> to tensor<1x?xf8E5M2>
  %scale_inv = tensor.from_elements %factor : tensor<1x1xf32>
  %q = fp8.assemble %codes, %scale_inv : tensor<1x?xf8E5M2>, tensor<1x1xf32>
      -> !fp8.scaled<1x?xf8E5M2, block = [*, *], scale = f32>
  %x = fp8.dequantize %q
      : !fp8.scaled<1x?xf8E5M2, block = [*, *], scale = f32> -> tensor<1x?xbf16>
  bufferization.materialize_in_destination %x in restrict writable %out
      : (tensor<1x?xbf16>, memref<1x?xbf16>) -> ()
  return
}
