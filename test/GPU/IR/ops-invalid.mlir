// RUN: fp8-opt %s --split-input-file --verify-diagnostics

#l = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 1, access = read, alignment = 4>,
               #fp8_gpu.argument<name = "y", element = f32, rank = 1, access = write, alignment = 4>],
  extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>
func.func @launch_c1_mixed(%x: tensor<8xf32>, %y: memref<8xf32>) {
  // expected-error @+1 {{expected ins and outs to be memrefs, but got 'tensor<8xf32>'}}
  fp8_gpu.launch @k #l ins(%x : tensor<8xf32>) outs(%y : memref<8xf32>)
  return
}

// -----

#l = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "y", element = f32, rank = 1, access = write, alignment = 4>],
  extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>
func.func @launch_c1_no_result(%y: tensor<8xf32>) {
  // expected-error @+1 {{expected results of the types of outs that are tensors, but got ()}}
  fp8_gpu.launch @k #l outs(%y : tensor<8xf32>)
  return
}

// -----

#l = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "y", element = f32, rank = 1, access = write, alignment = 4>],
  extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>
func.func @launch_c1_result_type(%y: tensor<8xf32>) {
  // expected-error @+1 {{expected results of the types of outs that are tensors, but got ('tensor<?xf32>')}}
  %0 = fp8_gpu.launch @k #l outs(%y : tensor<8xf32>) -> tensor<?xf32>
  return
}

// -----

#l = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "y", element = f32, rank = 1, access = write, alignment = 4>],
  extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>
func.func @launch_c1_result_of_memref(%y: memref<8xf32>) {
  // expected-error @+1 {{expected results of the types of outs that are tensors, but got ('tensor<8xf32>')}}
  %0 = fp8_gpu.launch @k #l outs(%y : memref<8xf32>) -> tensor<8xf32>
  return
}

// -----

#l = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 1, access = read, alignment = 4>,
               #fp8_gpu.argument<name = "y", element = f32, rank = 1, access = write, alignment = 4>],
  extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>
func.func @launch_c2_number(%x: memref<8xf32>, %y: memref<8xf32>) {
  // expected-error @+1 {{expected 1 ins and 1 outs, but got 2 and 1}}
  fp8_gpu.launch @k #l ins(%x, %x : memref<8xf32>, memref<8xf32>) outs(%y : memref<8xf32>)
  return
}

// -----

#l = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 1, access = read, alignment = 4>,
               #fp8_gpu.argument<name = "y", element = f32, rank = 1, access = write, alignment = 4>],
  extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>
func.func @launch_c2_read_is_out(%x: memref<8xf32>, %y: memref<8xf32>) {
  // expected-error @+1 {{expected 1 ins and 1 outs, but got 0 and 2}}
  fp8_gpu.launch @k #l outs(%x, %y : memref<8xf32>, memref<8xf32>)
  return
}

// -----

#l = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "y", element = f32, rank = 1, access = write, alignment = 4>],
  extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>
func.func @launch_c2_rank(%y: memref<8x8xf32>) {
  // expected-error @+1 {{expected argument 'y' of rank 1 with elements of 'f32', but got 'memref<8x8xf32>'}}
  fp8_gpu.launch @k #l outs(%y : memref<8x8xf32>)
  return
}

// -----

#l = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "x", element = f8E5M2, rank = 1, access = read, alignment = 16>,
               #fp8_gpu.argument<name = "y", element = f32, rank = 1, access = write, alignment = 4>],
  extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>
func.func @launch_c2_element(%x: tensor<8xf8E4M3FN>, %y: tensor<8xf32>) {
  // expected-error @+1 {{expected argument 'x' of rank 1 with elements of 'f8E5M2', but got 'tensor<8xf8E4M3FN>'}}
  %0 = fp8_gpu.launch @k #l ins(%x : tensor<8xf8E4M3FN>) outs(%y : tensor<8xf32>) -> tensor<8xf32>
  return
}

// -----

#l = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "y", element = f32, rank = 1, access = write, alignment = 4>],
  extents = [], params = [#fp8_gpu.capture<0 : f32>, #fp8_gpu.capture<1 : i32>],
  grid = affine_map<() -> (1)>, block = 32>
func.func @launch_c3(%a: f32, %y: memref<8xf32>) {
  // expected-error @+1 {{expected captures of ('f32', 'i32'), but got ('f32')}}
  fp8_gpu.launch @k #l captures(%a : f32) outs(%y : memref<8xf32>)
  return
}

// -----

#l = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "y", element = f32, rank = 1, access = write, alignment = 4>],
  extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>
#other = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "y", element = f32, rank = 1, access = write, alignment = 4>],
  extents = [], params = [], grid = affine_map<() -> (1)>, block = 64>
gpu.module @kernels {
  llvm.func @k(!llvm.ptr) attributes {fp8_gpu.launch = #other}
}
func.func @launch_c4(%y: memref<8xf32>) {
  // expected-error @+1 {{expected the launch of @kernels::@k, but got another}}
  fp8_gpu.launch @kernels::@k #l outs(%y : memref<8xf32>)
  return
}

// -----

#l = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "y", element = f32, rank = 1, access = write, alignment = 4>],
  extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>
func.func @scalar(%y: vector<8xf32>) {
  // expected-error @+1 {{operand #0 must be variadic of a tensor or a strided memref, but got 'vector<8xf32>'}}
  fp8_gpu.launch @k #l outs(%y : vector<8xf32>)
  return
}

// -----

func.func @no_launch(%y: memref<8xf32>) {
  // expected-error @+1 {{expected '<'}}
  fp8_gpu.launch @k {} outs(%y : memref<8xf32>)
  return
}
