// RUN: fp8-opt %s --eliminate-empty-tensors --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" --canonicalize --split-input-file --verify-diagnostics | FileCheck %s

#launch = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "a", element = f8E4M3FN, rank = 2, access = read, alignment = 16>,
               #fp8_gpu.argument<name = "d", element = bf16, rank = 2, access = write, alignment = 16>],
  extents = [],
  params = [#fp8_gpu.tensor_map<0, box = [128, 32], swizzle = 128, l2 = 0>,
            #fp8_gpu.tensor_map<1, box = [64, 32], swizzle = 128, l2 = 0>],
  grid = affine_map<() -> (1)>, block = 32>

// Any of some layers, and columns that begin at a multiple of 16 bytes, are read
// where they are.

// CHECK-LABEL: func.func @aligned(
// CHECK:       %[[A:.+]] = memref.subview
// CHECK-NOT:   memref.copy
// CHECK:       fp8_gpu.launch @kernels::@k #launch ins(%[[A]] :
func.func @aligned(%layers: tensor<3x32x256xf8E4M3FN>, %i: index) -> tensor<32x64xbf16> {
  %a = tensor.extract_slice %layers[%i, 0, 16] [1, 32, 128] [1, 1, 1]
      : tensor<3x32x256xf8E4M3FN> to tensor<32x128xf8E4M3FN>
  %d = tensor.empty() : tensor<32x64xbf16>
  %0 = fp8_gpu.launch @kernels::@k #launch ins(%a : tensor<32x128xf8E4M3FN>)
      outs(%d : tensor<32x64xbf16>) -> tensor<32x64xbf16>
  return %0 : tensor<32x64xbf16>
}

// -----

#launch = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "a", element = f8E4M3FN, rank = 2, access = read, alignment = 16>,
               #fp8_gpu.argument<name = "d", element = bf16, rank = 2, access = write, alignment = 16>],
  extents = [],
  params = [#fp8_gpu.tensor_map<0, box = [128, 32], swizzle = 128, l2 = 0>,
            #fp8_gpu.tensor_map<1, box = [64, 32], swizzle = 128, l2 = 0>],
  grid = affine_map<() -> (1)>, block = 32>

// Others are copied, and the compiler says so.

// CHECK-LABEL: func.func @start(
// CHECK:       %[[A:.+]] = memref.subview
// CHECK:       %[[COPY:.+]] = memref.alloc() {{.*}} : memref<32x128xf8E4M3FN>
// CHECK:       memref.copy %[[A]], %[[COPY]]
// CHECK:       fp8_gpu.launch @kernels::@k #launch ins(%[[COPY]] :
func.func @start(%all: tensor<32x256xf8E4M3FN>) -> tensor<32x64xbf16> {
  %a = tensor.extract_slice %all[0, 8] [32, 128] [1, 1]
      : tensor<32x256xf8E4M3FN> to tensor<32x128xf8E4M3FN>
  %d = tensor.empty() : tensor<32x64xbf16>
  // expected-remark @+1 {{argument 'a' is copied: the kernel wants rows whose elements lie together, at multiples of 16 bytes, but got 'memref<32x128xf8E4M3FN, strided<[256, 1], offset: 8>>'}}
  %0 = fp8_gpu.launch @kernels::@k #launch ins(%a : tensor<32x128xf8E4M3FN>)
      outs(%d : tensor<32x64xbf16>) -> tensor<32x64xbf16>
  return %0 : tensor<32x64xbf16>
}

// -----

#launch = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "a", element = f8E4M3FN, rank = 2, access = read, alignment = 16>,
               #fp8_gpu.argument<name = "d", element = bf16, rank = 2, access = write, alignment = 16>],
  extents = [],
  params = [#fp8_gpu.tensor_map<0, box = [128, 32], swizzle = 128, l2 = 0>,
            #fp8_gpu.tensor_map<1, box = [64, 32], swizzle = 128, l2 = 0>],
  grid = affine_map<() -> (1)>, block = 32>

// CHECK-LABEL: func.func @unknown_start(
// CHECK:       memref.copy
// CHECK:       fp8_gpu.launch
func.func @unknown_start(%all: tensor<32x256xf8E4M3FN>, %i: index) -> tensor<32x64xbf16> {
  %a = tensor.extract_slice %all[0, %i] [32, 128] [1, 1]
      : tensor<32x256xf8E4M3FN> to tensor<32x128xf8E4M3FN>
  %d = tensor.empty() : tensor<32x64xbf16>
  // expected-remark @+1 {{argument 'a' is copied}}
  %0 = fp8_gpu.launch @kernels::@k #launch ins(%a : tensor<32x128xf8E4M3FN>)
      outs(%d : tensor<32x64xbf16>) -> tensor<32x64xbf16>
  return %0 : tensor<32x64xbf16>
}

// -----

#launch = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "a", element = f8E4M3FN, rank = 2, access = read, alignment = 16>,
               #fp8_gpu.argument<name = "d", element = bf16, rank = 2, access = write, alignment = 16>],
  extents = [],
  params = [#fp8_gpu.tensor_map<0, box = [128, 32], swizzle = 128, l2 = 0>,
            #fp8_gpu.tensor_map<1, box = [64, 32], swizzle = 128, l2 = 0>],
  grid = affine_map<() -> (1)>, block = 32>

// The copy of a tensor of unknown extents has them.

// CHECK-LABEL: func.func @stride(
// CHECK-SAME:    %[[M:[a-z0-9]+]]: index
// CHECK:       %[[COPY:.+]] = memref.alloc(%[[M]]) {{.*}} : memref<?x128xf8E4M3FN>
// CHECK:       memref.copy %{{.*}}, %[[COPY]]
// CHECK:       fp8_gpu.launch @kernels::@k #launch ins(%[[COPY]] :
func.func @stride(%all: tensor<?x136xf8E4M3FN>, %m: index) -> tensor<32x64xbf16> {
  %a = tensor.extract_slice %all[0, 0] [%m, 128] [1, 1]
      : tensor<?x136xf8E4M3FN> to tensor<?x128xf8E4M3FN>
  %d = tensor.empty() : tensor<32x64xbf16>
  // expected-remark @+1 {{argument 'a' is copied}}
  %0 = fp8_gpu.launch @kernels::@k #launch ins(%a : tensor<?x128xf8E4M3FN>)
      outs(%d : tensor<32x64xbf16>) -> tensor<32x64xbf16>
  return %0 : tensor<32x64xbf16>
}

// -----

#launch = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "a", element = f8E4M3FN, rank = 2, access = read, alignment = 16>,
               #fp8_gpu.argument<name = "d", element = bf16, rank = 2, access = write, alignment = 16>],
  extents = [],
  params = [#fp8_gpu.tensor_map<0, box = [128, 32], swizzle = 128, l2 = 0>,
            #fp8_gpu.tensor_map<1, box = [64, 32], swizzle = 128, l2 = 0>],
  grid = affine_map<() -> (1)>, block = 32>

// A result within a larger tensor is written beside it first; there is nothing
// to copy from there.

// CHECK-LABEL: func.func @result(
// CHECK:       %[[PART:.+]] = memref.subview {{.*}} to memref<32x64xbf16, strided<[100, 1], offset: 3>>
// CHECK:       %[[TEMPORARY:.+]] = memref.alloc() {{.*}} : memref<32x64xbf16>
// CHECK-NOT:   memref.copy %[[PART]]
// CHECK:       fp8_gpu.launch {{.*}} outs(%[[TEMPORARY]] : memref<32x64xbf16>)
// CHECK:       memref.copy %[[TEMPORARY]], %[[PART]]
func.func @result(%a: tensor<32x128xf8E4M3FN>, %all: tensor<32x100xbf16>) -> tensor<32x100xbf16> {
  %d = tensor.empty() : tensor<32x64xbf16>
  // expected-remark @+1 {{argument 'd' is copied}}
  %0 = fp8_gpu.launch @kernels::@k #launch ins(%a : tensor<32x128xf8E4M3FN>)
      outs(%d : tensor<32x64xbf16>) -> tensor<32x64xbf16>
  %1 = tensor.insert_slice %0 into %all[0, 3] [32, 64] [1, 1] : tensor<32x64xbf16> into tensor<32x100xbf16>
  return %1 : tensor<32x100xbf16>
}

// -----

#launch = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "d", element = bf16, rank = 2, access = update, alignment = 16>],
  extents = [], params = [#fp8_gpu.pointer<0>, #fp8_gpu.stride<0, 0>], grid = affine_map<() -> (1)>, block = 32>

// What is updated goes there and back.

// CHECK-LABEL: func.func @update(
// CHECK:       %[[PART:.+]] = memref.subview
// CHECK:       %[[TEMPORARY:.+]] = memref.alloc() {{.*}} : memref<32x64xbf16>
// CHECK:       memref.copy %[[PART]], %[[TEMPORARY]]
// CHECK:       fp8_gpu.launch {{.*}} outs(%[[TEMPORARY]] : memref<32x64xbf16>)
// CHECK:       memref.copy %[[TEMPORARY]], %[[PART]]
func.func @update(%all: tensor<32x100xbf16>) -> tensor<32x100xbf16> {
  %d = tensor.extract_slice %all[0, 3] [32, 64] [1, 1] : tensor<32x100xbf16> to tensor<32x64xbf16>
  // expected-remark @+1 {{argument 'd' is copied}}
  %0 = fp8_gpu.launch @kernels::@k #launch outs(%d : tensor<32x64xbf16>) -> tensor<32x64xbf16>
  %1 = tensor.insert_slice %0 into %all[0, 3] [32, 64] [1, 1] : tensor<32x64xbf16> into tensor<32x100xbf16>
  return %1 : tensor<32x100xbf16>
}

// -----

#launch = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "scale", element = f32, rank = 2, access = read, alignment = 8>,
               #fp8_gpu.argument<name = "bias", element = bf16, rank = 1, access = read, alignment = 8>,
               #fp8_gpu.argument<name = "d", element = bf16, rank = 2, access = write, alignment = 2>],
  extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>

// A single element is read alone, wherever it is; a bias in pairs.

// CHECK-LABEL: func.func @pairs(
// CHECK:       %[[INV:.+]] = memref.subview {{.*}} to memref<1x1xf32
// CHECK:       %[[BIAS:.+]] = memref.alloc() {{.*}} : memref<64xbf16>
// CHECK:       fp8_gpu.launch @kernels::@k #launch ins(%[[INV]], %[[BIAS]] :
func.func @pairs(%invs: tensor<5x1x1xf32>, %biases: tensor<65xbf16>, %i: index) -> tensor<32x64xbf16> {
  %inv = tensor.extract_slice %invs[%i, 0, 0] [1, 1, 1] [1, 1, 1] : tensor<5x1x1xf32> to tensor<1x1xf32>
  %bias = tensor.extract_slice %biases[1] [64] [1] : tensor<65xbf16> to tensor<64xbf16>
  %d = tensor.empty() : tensor<32x64xbf16>
  // expected-remark @+1 {{argument 'bias' is copied: the kernel wants rows whose elements lie together, at multiples of 8 bytes, but got 'memref<64xbf16, strided<[1], offset: 1>>'}}
  %0 = fp8_gpu.launch @kernels::@k #launch ins(%inv, %bias : tensor<1x1xf32>, tensor<64xbf16>)
      outs(%d : tensor<32x64xbf16>) -> tensor<32x64xbf16>
  return %0 : tensor<32x64xbf16>
}

// -----

#launch = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 2, access = read, alignment = 4>,
               #fp8_gpu.argument<name = "d", element = f32, rank = 2, access = write, alignment = 4>],
  extents = [], params = [#fp8_gpu.stride<0, 1>, #fp8_gpu.stride<0, 0>], grid = affine_map<() -> (1)>, block = 32>

// A kernel that reads element by element takes any strides, of columns too.

// CHECK-LABEL: func.func @elements(
// CHECK-NOT:   memref.copy
// CHECK:       fp8_gpu.launch @kernels::@k #launch ins(%{{.*}} : memref<4x8xf32, strided<[66, 2], offset: 3>>)
func.func @elements(%all: tensor<4x66xf32>) -> tensor<4x8xf32> {
  %x = tensor.extract_slice %all[0, 3] [4, 8] [1, 2] : tensor<4x66xf32> to tensor<4x8xf32>
  %d = tensor.empty() : tensor<4x8xf32>
  %0 = fp8_gpu.launch @kernels::@k #launch ins(%x : tensor<4x8xf32>)
      outs(%d : tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

#launch = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 3, access = read, alignment = 4>,
               #fp8_gpu.argument<name = "d", element = f32, rank = 1, access = write, alignment = 4>],
  extents = [], params = [#fp8_gpu.pointer<0>, #fp8_gpu.stride<0, 0>, #fp8_gpu.pointer<1>],
  grid = affine_map<() -> (1)>, block = 32>

// One that is not told the strides of all dimensions takes dense ones where it is
// not: here of a matrix, but any of several.

// CHECK-LABEL: func.func @dense(
// CHECK-NOT:   memref.copy
// CHECK:       fp8_gpu.launch @kernels::@k #launch ins(%{{.*}} : memref<4x8x6xf32, strided<[96, 6, 1]>>)
// CHECK:       %[[COPY:.+]] = memref.alloc() {{.*}} : memref<4x8x6xf32>
// CHECK:       memref.copy
// CHECK:       fp8_gpu.launch @kernels::@k #launch ins(%[[COPY]] :
// CHECK:       memref.copy
// CHECK:       fp8_gpu.launch
func.func @dense(%all: tensor<4x16x6xf32>, %other: tensor<4x8x12xf32>, %n: index) -> (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) {
  %x = tensor.extract_slice %all[0, 0, 0] [4, 8, 6] [1, 1, 1] : tensor<4x16x6xf32> to tensor<4x8x6xf32>
  %d = tensor.empty() : tensor<1xf32>
  %0 = fp8_gpu.launch @kernels::@k #launch ins(%x : tensor<4x8x6xf32>) outs(%d : tensor<1xf32>) -> tensor<1xf32>
  %y = tensor.extract_slice %other[0, 0, 0] [4, 8, 6] [1, 1, 1] : tensor<4x8x12xf32> to tensor<4x8x6xf32>
  %e = tensor.empty() : tensor<1xf32>
  // expected-remark @+1 {{argument 'x' is copied: the kernel wants elements that lie together, but got 'memref<4x8x6xf32, strided<[96, 12, 1]>>'}}
  %1 = fp8_gpu.launch @kernels::@k #launch ins(%y : tensor<4x8x6xf32>) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  // Nothing is known of an unknown extent.
  %z = tensor.extract_slice %other[0, 0, 0] [4, 8, %n] [1, 1, 1] : tensor<4x8x12xf32> to tensor<4x8x?xf32>
  %f = tensor.empty() : tensor<1xf32>
  // expected-remark @+1 {{argument 'x' is copied}}
  %2 = fp8_gpu.launch @kernels::@k #launch ins(%z : tensor<4x8x?xf32>) outs(%f : tensor<1xf32>) -> tensor<1xf32>
  return %0, %1, %2 : tensor<1xf32>, tensor<1xf32>, tensor<1xf32>
}

// -----

#launch = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 3, access = read, alignment = 4>,
               #fp8_gpu.argument<name = "d", element = f32, rank = 1, access = write, alignment = 4>],
  extents = [], params = [#fp8_gpu.pointer<0>, #fp8_gpu.stride<0, 1>, #fp8_gpu.pointer<1>],
  grid = affine_map<() -> (1)>, block = 32>

// Where a kernel counts on from rows in their batches, one row of each batch may lie
// as the batches do; two may not.

// CHECK-LABEL: func.func @one_row(
// CHECK-NOT:   memref.copy
// CHECK:       fp8_gpu.launch @kernels::@k #launch ins(%{{.*}} : memref<4x1x6xf32, strided<[12, 12, 1]>>)
// CHECK:       memref.copy
// CHECK:       fp8_gpu.launch
func.func @one_row(%one: tensor<4x1x12xf32>, %more: tensor<4x3x12xf32>) -> (tensor<1xf32>, tensor<1xf32>) {
  %x = tensor.extract_slice %one[0, 0, 0] [4, 1, 6] [1, 1, 1] : tensor<4x1x12xf32> to tensor<4x1x6xf32>
  %d = tensor.empty() : tensor<1xf32>
  %0 = fp8_gpu.launch @kernels::@k #launch ins(%x : tensor<4x1x6xf32>) outs(%d : tensor<1xf32>) -> tensor<1xf32>
  %y = tensor.extract_slice %more[0, 0, 0] [4, 2, 6] [1, 1, 1] : tensor<4x3x12xf32> to tensor<4x2x6xf32>
  %e = tensor.empty() : tensor<1xf32>
  // expected-remark @+1 {{argument 'x' is copied: the kernel wants elements that lie together, but got 'memref<4x2x6xf32, strided<[36, 12, 1]>>'}}
  %1 = fp8_gpu.launch @kernels::@k #launch ins(%y : tensor<4x2x6xf32>) outs(%e : tensor<1xf32>) -> tensor<1xf32>
  return %0, %1 : tensor<1xf32>, tensor<1xf32>
}

// -----

#launch = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "a", element = f8E8M0FNU, rank = 2, access = read, alignment = 4>,
               #fp8_gpu.argument<name = "d", element = bf16, rank = 2, access = write, alignment = 16>],
  extents = [],
  params = [#fp8_gpu.pointer<0>,
            #fp8_gpu.tensor_map<1, box = [64, 32], swizzle = 128, l2 = 0>],
  grid = affine_map<() -> (1)>, block = 32>

// Words of a dense tensor are read wherever rows of 6 bytes begin, if the first
// begins with a word.

// CHECK-LABEL: func.func @words(
// CHECK:       %[[A:.+]] = memref.subview
// CHECK-NOT:   memref.copy
// CHECK:       fp8_gpu.launch @kernels::@k #launch{{.*}} ins(%[[A]] :
func.func @words(%layers: tensor<3x32x6xf8E8M0FNU>, %i: index) -> tensor<32x64xbf16> {
  %a = tensor.extract_slice %layers[%i, 0, 0] [1, 32, 6] [1, 1, 1]
      : tensor<3x32x6xf8E8M0FNU> to tensor<32x6xf8E8M0FNU>
  %d = tensor.empty() : tensor<32x64xbf16>
  %0 = fp8_gpu.launch @kernels::@k #launch ins(%a : tensor<32x6xf8E8M0FNU>)
      outs(%d : tensor<32x64xbf16>) -> tensor<32x64xbf16>
  return %0 : tensor<32x64xbf16>
}
