// RUN: fp8-opt %s --fp8-share-launches | FileCheck %s

#double = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "x", element = f32, rank = 1, access = read, alignment = 4>,
               #fp8_gpu.argument<name = "y", element = f32, rank = 1, access = write, alignment = 4>],
  extents = [], params = [#fp8_gpu.capture<0 : f32>], grid = affine_map<() -> (1)>, block = 32>

module attributes {gpu.container_module} {
gpu.module @kernels {
  llvm.func @double(f32) attributes {fp8_gpu.launch = #double}
  gpu.func @fill(%x: memref<8xf32>) kernel {
    gpu.return
  }
}

// Launches that differ in their values alone are one function's, across
// functions. Constants belong to what is launched.

// CHECK-LABEL: func.func @equal
// CHECK-SAME:    %[[A:[a-z0-9]+]]: memref<8xf32>, %[[B:[a-z0-9]+]]: memref<8xf32>, %[[S:[a-z0-9]+]]: f32, %[[CONTEXT:[a-z0-9]+]]: !llvm.ptr
// CHECK:         call @[[DOUBLE:launch.*]](%[[A]], %[[S]], %[[B]], %[[CONTEXT]])
// CHECK-NEXT:    call @[[DOUBLE]](%[[B]], %[[S]], %[[A]], %[[CONTEXT]])
// CHECK-NEXT:    call @[[FILL:launch.*]](%[[A]], %[[CONTEXT]])
func.func @equal(%a: memref<8xf32>, %b: memref<8xf32>, %s: f32, %context: !llvm.ptr) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  fp8_gpu.launch @kernels::@double #double ins(%a : memref<8xf32>) captures(%s : f32) outs(%b : memref<8xf32>)
  fp8_gpu.launch @kernels::@double #double ins(%b : memref<8xf32>) captures(%s : f32) outs(%a : memref<8xf32>)
  gpu.launch_func @kernels::@fill blocks in (%c1, %c1, %c1) threads in (%c2, %c1, %c1) args(%a : memref<8xf32>)
  return
}

// CHECK-LABEL: func.func @other
// CHECK-SAME:    %[[A:[a-z0-9]+]]: memref<8xf32>, %[[CONTEXT:[a-z0-9]+]]: !llvm.ptr
// CHECK:         call @[[FILL]](%[[A]], %[[CONTEXT]])
func.func @other(%a: memref<8xf32>, %context: !llvm.ptr) {
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  gpu.launch_func @kernels::@fill blocks in (%c1, %c1, %c1) threads in (%c2, %c1, %c1) args(%a : memref<8xf32>)
  return
}

// One that has no equal stays: of another size, with another constant.

// CHECK-LABEL: func.func @unequal
// CHECK:         gpu.launch_func @kernels::@fill
// CHECK:         fp8_gpu.launch @kernels::@double
// CHECK:         fp8_gpu.launch @kernels::@double
func.func @unequal(%a: memref<8xf32>, %b: memref<9xf32>, %s: f32, %context: !llvm.ptr) {
  %c1 = arith.constant 1 : index
  %two = arith.constant 2.0 : f32
  gpu.launch_func @kernels::@fill blocks in (%c1, %c1, %c1) threads in (%c1, %c1, %c1) args(%a : memref<8xf32>)
  fp8_gpu.launch @kernels::@double #double ins(%b : memref<9xf32>) captures(%s : f32) outs(%b : memref<9xf32>)
  fp8_gpu.launch @kernels::@double #double ins(%b : memref<9xf32>) captures(%two : f32) outs(%b : memref<9xf32>)
  return
}

// What is one value in the first of them may be two in another.

// CHECK-LABEL: func.func @twice
// CHECK-SAME:    %[[A:[a-z0-9]+]]: memref<16xf32>, %[[B:[a-z0-9]+]]: memref<16xf32>, %[[S:[a-z0-9]+]]: f32, %[[CONTEXT:[a-z0-9]+]]: !llvm.ptr
// CHECK:         call @[[TWICE:launch.*]](%[[A]], %[[S]], %[[A]], %[[CONTEXT]])
// CHECK-NEXT:    call @[[TWICE]](%[[A]], %[[S]], %[[B]], %[[CONTEXT]])
func.func @twice(%a: memref<16xf32>, %b: memref<16xf32>, %s: f32, %context: !llvm.ptr) {
  fp8_gpu.launch @kernels::@double #double ins(%a : memref<16xf32>) captures(%s : f32) outs(%a : memref<16xf32>)
  fp8_gpu.launch @kernels::@double #double ins(%a : memref<16xf32>) captures(%s : f32) outs(%b : memref<16xf32>)
  return
}

// What is not known of memory comes with it.

// CHECK-LABEL: func.func @dynamic
// CHECK-SAME:    %[[A:[a-z0-9]+]]: memref<?xf32>
// CHECK-COUNT-2: call @[[DYNAMIC:launch.*]](%[[A]], %{{.*}}, %[[A]], %{{.*}}) : (memref<?xf32>, f32, memref<?xf32>, !llvm.ptr)
func.func @dynamic(%a: memref<?xf32>, %s: f32, %context: !llvm.ptr) {
  fp8_gpu.launch @kernels::@double #double ins(%a : memref<?xf32>) captures(%s : f32) outs(%a : memref<?xf32>)
  fp8_gpu.launch @kernels::@double #double ins(%a : memref<?xf32>) captures(%s : f32) outs(%a : memref<?xf32>)
  return
}
}

// CHECK:       func.func private @[[DOUBLE]](%[[X:.+]]: memref<8xf32>, %[[S:.+]]: f32, %[[Y:.+]]: memref<8xf32>, %{{.+}}: !llvm.ptr)
// CHECK-SAME:    llvm.bareptr
// CHECK-SAME:    noinline
// CHECK-NEXT:    fp8_gpu.launch @kernels::@double {{.*}} ins(%[[X]] : {{.*}}) captures(%[[S]] : f32) outs(%[[Y]] :
// CHECK-NEXT:    return
// CHECK:       func.func private @[[FILL]](%[[X:.+]]: memref<8xf32>, %{{.+}}: !llvm.ptr)
// CHECK:         gpu.launch_func {{.*}} threads in (%c2{{[_0-9]*}}, %c1{{[_0-9]*}}, %c1{{[_0-9]*}}) args(%[[X]] :
// CHECK:       func.func private @[[TWICE]](%[[X:.+]]: memref<16xf32>, %[[S:.+]]: f32, %[[Y:.+]]: memref<16xf32>, %{{.+}}: !llvm.ptr)
// CHECK:         fp8_gpu.launch @kernels::@double {{.*}} ins(%[[X]] : {{.*}}) captures(%[[S]] : f32) outs(%[[Y]] :
// CHECK:       func.func private @[[DYNAMIC]](%[[X:.+]]: memref<?xf32>, %[[S:.+]]: f32, %[[Y:.+]]: memref<?xf32>, %{{.+}}: !llvm.ptr)
// CHECK-NOT:     llvm.bareptr
// CHECK:         fp8_gpu.launch {{.*}} ins(%[[X]] : {{.*}}) captures(%[[S]] : f32) outs(%[[Y]] :
