// RUN: fp8-opt %s --fp8-fuse-elementwise | FileCheck %s
// RUN: fp8-opt %s --fp8-pipeline=target=cpu | FileCheck %s --check-prefix=CPU

// Functions that upstream lowers for no target, or not for all, become
// arithmetic.

// CPU-NOT: math.

// CHECK-LABEL: func.func @isinf
// CHECK: %[[A:.*]] = math.absf %arg0 : bf16
// CHECK: arith.cmpf oeq, %[[A]], %{{.*}} : bf16
func.func @isinf(%x: bf16) -> i1 {
  %0 = math.isinf %x : bf16
  return %0 : i1
}

// CHECK-LABEL: func.func @isnormal
// CHECK-DAG: %[[LEAST:.*]] = arith.constant 1.17549435E-38 : f32
// CHECK: arith.cmpf olt
// CHECK: arith.cmpf oge, %{{.*}}, %[[LEAST]] : f32
// CHECK: arith.andi
func.func @isnormal(%x: f32) -> i1 {
  %0 = math.isnormal %x : f32
  return %0 : i1
}

// CHECK-LABEL: func.func @clampf
// CHECK: arith.minimumf
// CHECK: arith.maximumf
func.func @clampf(%x: f64, %low: f64, %high: f64) -> f64 {
  %0 = math.clampf %x to [%low, %high] : f64
  return %0 : f64
}

// CHECK-LABEL: func.func @sincos
// CHECK-DAG: math.sin
// CHECK-DAG: math.cos
func.func @sincos(%x: f32) -> (f32, f32) {
  %0, %1 = math.sincos %x : f32
  return %0, %1 : f32, f32
}

// CHECK-LABEL: func.func @carry
// CHECK: %[[SUM:.*]] = arith.addi %arg0, %arg1 : index
// CHECK: arith.cmpi ult, %[[SUM]], %arg0 : index
func.func @carry(%x: index, %y: index) -> (index, i1) {
  %0, %1 = arith.addui_extended %x, %y : index, i1
  return %0, %1 : index, i1
}

// CHECK-LABEL: func.func @ipowi
// CHECK-COUNT-7: arith.select
// CHECK-NOT: math.ipowi
// CHECK: return
func.func @ipowi(%x: i8, %n: i8) -> i8 {
  %0 = math.ipowi %x, %n : i8
  return %0 : i8
}
