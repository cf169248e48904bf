// RUN: fp8-opt %s --fp8-fold-globals | FileCheck %s

// What nothing uses any more goes, if nobody else can see it.
// CHECK-NOT: @weight
// CHECK: ml_program.global public @shared
// CHECK-NOT: @weight
ml_program.global private @weight(dense<[1.0, 2.0]> : tensor<2xbf16>) : tensor<2xbf16>
ml_program.global public @shared(dense<[3.0, 4.0]> : tensor<2xbf16>) : tensor<2xbf16>
ml_program.global private mutable @state(dense<0.0> : tensor<2xbf16>) : tensor<2xbf16>

// CHECK-LABEL: @constant
func.func @constant() -> (tensor<2xbf16>, tensor<2xbf16>) {
  // CHECK-NOT: ml_program.global_load
  // CHECK: arith.constant dense<[1.000000e+00, 2.000000e+00]> : tensor<2xbf16>
  %0 = ml_program.global_load_const @weight : tensor<2xbf16>
  %1 = ml_program.global_load @weight : tensor<2xbf16>
  return %0, %1 : tensor<2xbf16>, tensor<2xbf16>
}

// CHECK-LABEL: @public
func.func @public() -> tensor<2xbf16> {
  // CHECK: arith.constant dense<[3.000000e+00, 4.000000e+00]> : tensor<2xbf16>
  %0 = ml_program.global_load_const @shared : tensor<2xbf16>
  return %0 : tensor<2xbf16>
}

// CHECK-LABEL: @mutable
func.func @mutable() -> tensor<2xbf16> {
  // CHECK: ml_program.global_load @state
  %0 = ml_program.global_load @state : tensor<2xbf16>
  return %0 : tensor<2xbf16>
}
