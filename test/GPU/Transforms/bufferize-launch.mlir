// RUN: fp8-opt %s --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" --split-input-file | FileCheck %s

#launch = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 1, access = read, alignment = 4>,
               #fp8_gpu.argument<name = "y", element = f32, rank = 1, access = write, alignment = 4>],
  extents = [], params = [#fp8_gpu.capture<0 : f32>], grid = affine_map<() -> (1)>, block = 32>

// What is read is read where it is, and what is written where it is to be.
// Captures and other attributes go along.

// CHECK-LABEL: func.func @in_place(
// CHECK-SAME:    %[[X:.+]]: memref<8xf32>, %[[Y:.+]]: memref<8xf32>, %[[S:.+]]: f32
// CHECK-NOT:   memref.
// CHECK:       fp8_gpu.launch @kernels::@k #launch ins(%[[X]] : memref<8xf32>) captures(%[[S]] : f32) outs(%[[Y]] : memref<8xf32>)
// CHECK-NOT:   memref.
// CHECK:       return %[[Y]]
func.func @in_place(%x: tensor<8xf32>, %y: tensor<8xf32>, %s: f32) -> tensor<8xf32> {
  %0 = fp8_gpu.launch @kernels::@k #launch ins(%x : tensor<8xf32>) captures(%s : f32)
      outs(%y : tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// A destination that is needed later is not overwritten. What was in it is not
// read: nothing is copied.

// CHECK-LABEL: func.func @destination_is_needed(
// CHECK-SAME:    %[[X:.+]]: memref<8xf32>, %[[Y:.+]]: memref<8xf32>, %{{.+}}: f32
// CHECK:       %[[NEW:.+]] = memref.alloc() {{.*}} : memref<8xf32>
// CHECK-NOT:   memref.copy
// CHECK:       fp8_gpu.launch {{.*}} outs(%[[NEW]] : memref<8xf32>)
// CHECK:       return %[[NEW]], %[[Y]]
func.func @destination_is_needed(%x: tensor<8xf32>, %y: tensor<8xf32>, %s: f32) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = fp8_gpu.launch @kernels::@k #launch ins(%x : tensor<8xf32>) captures(%s : f32)
      outs(%y : tensor<8xf32>) -> tensor<8xf32>
  return %0, %y : tensor<8xf32>, tensor<8xf32>
}

// A kernel may not write what it reads.

// CHECK-LABEL: func.func @read_and_written(
// CHECK-SAME:    %[[X:.+]]: memref<8xf32>, %{{.+}}: f32
// CHECK:       %[[NEW:.+]] = memref.alloc() {{.*}} : memref<8xf32>
// CHECK:       fp8_gpu.launch {{.*}} ins(%[[X]] : memref<8xf32>) {{.*}} outs(%[[NEW]] : memref<8xf32>)
func.func @read_and_written(%x: tensor<8xf32>, %s: f32) -> tensor<8xf32> {
  %0 = fp8_gpu.launch @kernels::@k #launch ins(%x : tensor<8xf32>) captures(%s : f32)
      outs(%x : tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

#launch = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "y", element = f32, rank = 1, access = write, alignment = 4>,
               #fp8_gpu.argument<name = "sum", element = f32, rank = 0, access = update, alignment = 4>],
  extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>

// What is updated is read as well.

// CHECK-LABEL: func.func @update(
// CHECK-SAME:    %[[Y:.+]]: memref<8xf32>, %[[SUM:.+]]: memref<f32>
// CHECK:       %[[NEW:.+]] = memref.alloc() {{.*}} : memref<f32>
// CHECK:       memref.copy %[[SUM]], %[[NEW]]
// CHECK:       fp8_gpu.launch @kernels::@k #launch outs(%[[Y]], %[[NEW]] : memref<8xf32>, memref<f32>)
// CHECK:       return %[[Y]], %[[NEW]], %[[SUM]]
func.func @update(%y: tensor<8xf32>, %sum: tensor<f32>) -> (tensor<8xf32>, tensor<f32>, tensor<f32>) {
  %0:2 = fp8_gpu.launch @kernels::@k #launch outs(%y, %sum : tensor<8xf32>, tensor<f32>)
      -> tensor<8xf32>, tensor<f32>
  return %0#0, %0#1, %sum : tensor<8xf32>, tensor<f32>, tensor<f32>
}

// So is what is raised, if that may be by nothing.

#raise = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "amax", element = f32, rank = 2, access = raise, alignment = 4>],
  extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>

// CHECK-LABEL: func.func @raise(
// CHECK-SAME:    %[[AMAX:.+]]: memref<1x1xf32>
// CHECK:       %[[NEW:.+]] = memref.alloc() {{.*}} : memref<1x1xf32>
// CHECK:       memref.copy %[[AMAX]], %[[NEW]]
// CHECK:       fp8_gpu.launch @kernels::@k #launch{{[0-9]*}} outs(%[[NEW]] : memref<1x1xf32>)
// CHECK:       return %[[NEW]], %[[AMAX]]
func.func @raise(%amax: tensor<1x1xf32>) -> (tensor<1x1xf32>, tensor<1x1xf32>) {
  %0 = fp8_gpu.launch @kernels::@k #raise outs(%amax : tensor<1x1xf32>) -> tensor<1x1xf32>
  return %0, %amax : tensor<1x1xf32>, tensor<1x1xf32>
}

// An earlier value that nothing else needs is updated in place.

// CHECK-LABEL: func.func @update_in_place(
// CHECK:       linalg.fill
// CHECK-NOT:   memref.copy
// CHECK:       fp8_gpu.launch
func.func @update_in_place(%y: tensor<8xf32>, %zero: f32) -> tensor<f32> {
  %empty = tensor.empty() : tensor<f32>
  %sum = linalg.fill ins(%zero : f32) outs(%empty : tensor<f32>) -> tensor<f32>
  %0:2 = fp8_gpu.launch @kernels::@k #launch outs(%y, %sum : tensor<8xf32>, tensor<f32>)
      -> tensor<8xf32>, tensor<f32>
  return %0#1 : tensor<f32>
}

// -----

#launch = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 1, access = read, alignment = 4>,
               #fp8_gpu.argument<name = "y", element = f32, rank = 1, access = write, alignment = 4>],
  extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>

// On memrefs there is nothing to do: reads and writes keep their order.

// CHECK-LABEL: func.func @memrefs(
// CHECK-NEXT:  fp8_gpu.launch @kernels::@k #launch ins(%{{.*}} : memref<8xf32>) outs(%{{.*}} : memref<8xf32>)
// CHECK-NEXT:  return
func.func @memrefs(%x: memref<8xf32>, %y: memref<8xf32>) {
  fp8_gpu.launch @kernels::@k #launch ins(%x : memref<8xf32>) outs(%y : memref<8xf32>)
  return
}
