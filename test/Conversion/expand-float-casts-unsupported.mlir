// RUN: fp8-opt %s --fp8-expand-float-casts | FileCheck %s

// CHECK-LABEL: @llvm_has_this_cast
// CHECK-NEXT:    arith.truncf %{{.*}} : f32 to f16
// CHECK-NEXT:    arith.extf %{{.*}} : f16 to f64
func.func @llvm_has_this_cast(%x: f32) -> f64 {
  %half = arith.truncf %x : f32 to f16
  %double = arith.extf %half : f16 to f64
  return %double : f64
}

// CHECK-LABEL: @other_rounding_mode
// CHECK-NEXT:    arith.truncf %{{.*}} toward_zero : f32 to f8E4M3FN
func.func @other_rounding_mode(%x: f32) -> f8E4M3FN {
  %q = arith.truncf %x toward_zero : f32 to f8E4M3FN
  return %q : f8E4M3FN
}

// CHECK-LABEL: @tensor
// CHECK-NEXT:    arith.truncf %{{.*}} : tensor<4xf32> to tensor<4xf8E4M3FN>
func.func @tensor(%x: tensor<4xf32>) -> tensor<4xf8E4M3FN> {
  %q = arith.truncf %x : tensor<4xf32> to tensor<4xf8E4M3FN>
  return %q : tensor<4xf8E4M3FN>
}

// The IEEE-style format is another one, with Inf and a largest value of 240.
// CHECK-LABEL: @other_format
// CHECK-NEXT:    arith.truncf %{{.*}} : f32 to f8E4M3
func.func @other_format(%x: f32) -> f8E4M3 {
  %q = arith.truncf %x : f32 to f8E4M3
  return %q : f8E4M3
}
