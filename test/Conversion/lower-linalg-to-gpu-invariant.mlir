// RUN: fp8-opt %s --fp8-lower-linalg-to-gpu --canonicalize --cse | FileCheck %s

// So few rows have parts in different blocks, unless they must be added up as many are: by the lanes of a warp.

// CHECK-LABEL: func.func @free
// CHECK:       memref.alloc() : memref<{{[0-9]+}}x4xf32>
// CHECK:       gpu.launch {{.*}} function(@generic_1)
func.func @free(%x: memref<4x65536xf32>, %y: memref<4xf32>) {
  linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<4x65536xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %0 = arith.addf %a, %acc : f32
    linalg.yield %0 : f32
  }
  return
}

// CHECK-LABEL: func.func @rows
// CHECK-NOT:   memref.alloc
// CHECK:       arith.remui %{{.*}}, %c32
// CHECK:       gpu.shuffle xor %{{.*}}, %c16_i32
// CHECK-LABEL: func.func @vector
// CHECK-NOT:   memref.alloc
// CHECK:       arith.remui %{{.*}}, %c32
// CHECK:       gpu.shuffle xor %{{.*}}, %c16_i32
func.func @rows(%x: memref<4x65536xf32>, %y: memref<4xf32>) attributes {fp8.invariant} {
  linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<4x65536xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %0 = arith.addf %a, %acc : f32
    linalg.yield %0 : f32
  }
  return
}
func.func @vector(%x: memref<65536xf32>, %y: memref<f32>) attributes {fp8.invariant} {
  linalg.generic {indexing_maps = [affine_map<(k) -> (k)>, affine_map<(k) -> ()>], iterator_types = ["reduction"]}
      ins(%x : memref<65536xf32>) outs(%y : memref<f32>) {
  ^bb0(%a: f32, %acc: f32):
    %0 = arith.addf %a, %acc : f32
    linalg.yield %0 : f32
  }
  return
}

// A maximum has no order, and what is summed over all rows depends on them anyway.
// CHECK-LABEL: func.func @maximum
// CHECK:       memref.alloc() : memref<{{[0-9]+}}x4xf32>
// CHECK-LABEL: func.func @columns
// CHECK:       memref.alloc() : memref<{{[0-9]+}}x1024xf32>
func.func @maximum(%x: memref<4x65536xf32>, %y: memref<4xf32>) attributes {fp8.invariant} {
  linalg.generic {indexing_maps = [affine_map<(i, k) -> (i, k)>, affine_map<(i, k) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%x : memref<4x65536xf32>) outs(%y : memref<4xf32>) {
  ^bb0(%a: f32, %acc: f32):
    %0 = arith.maximumf %a, %acc : f32
    linalg.yield %0 : f32
  }
  return
}
func.func @columns(%x: memref<8192x1024xbf16>, %y: memref<1024xf32>) attributes {fp8.invariant} {
  linalg.generic {indexing_maps = [affine_map<(k, i) -> (k, i)>, affine_map<(k, i) -> (i)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : memref<8192x1024xbf16>) outs(%y : memref<1024xf32>) {
  ^bb0(%a: bf16, %acc: f32):
    %0 = arith.extf %a : bf16 to f32
    %1 = arith.addf %0, %acc : f32
    linalg.yield %1 : f32
  }
  return
}
