// RUN: fp8-opt %s --fp8-pipeline="recipe=current to=fusion" | FileCheck %s --check-prefixes=CHECK,CONSTANT
// RUN: fp8-opt %s --fp8-pipeline="recipe=current to=fusion evaluate-constants=false" | FileCheck %s --check-prefixes=CHECK,CALL
// RUN: fp8-run %s --compile-to=fusion --recipe=current | FileCheck %s --check-prefixes=CHECK,CONSTANT
// RUN: fp8-run %s --compile-to=fusion --recipe=current --no-evaluate-constants | FileCheck %s --check-prefixes=CHECK,CALL
// RUN: fp8-opt %s --fp8-pipeline="recipe=current to=fusion stats" | FileCheck %s --check-prefix=STATS
// RUN: fp8-opt %s --fp8-pipeline="recipe=current to=host" | FileCheck %s --check-prefixes=HOST,HOST8
// RUN: fp8-opt %s --fp8-pipeline="recipe=nvfp4 to=host" | FileCheck %s --check-prefixes=HOST,HOST4

// A weight is a constant of the program, or a private global: either is
// quantized once, by the compiler, unless it is told not to.

// CHECK-NOT: ml_program.global

// Slots are named as ever, and report what the compiler measured.
// STATS: fp8.stats_slots = ["fc.w", "fc.x", "out.x", "out.w"]

// Codes reach the object as bytes, of 4 bits two in each; the weight does not.
// HOST-NOT: x bf16>
// HOST8: llvm.mlir.global private constant @{{.*}}(dense<{{.*}}> : tensor<2x16xf8E4M3FN>) {{.*}} : !llvm.array<2 x array<16 x i8>>
// HOST4: llvm.mlir.global private constant @{{.*}}(dense<{{.*}}> : tensor<2x8xi8>) {{.*}} : !llvm.array<2 x array<8 x i8>>
// HOST-NOT: x bf16>
// HOST: llvm.func @main
ml_program.global private @out(dense<3.0> : tensor<16x16xbf16>) : tensor<16x16xbf16>

func.func @main(%x: tensor<16x16xbf16>) -> tensor<2x16xbf16> {
  // CHECK-LABEL: func.func @main
  // CONSTANT-NOT: arith.constant {{.*}}x16xbf16>
  // CONSTANT: arith.constant dense<{{\[\[}}4.480000e+02, 2.240000e+02, {{.*}}> : tensor<2x16xf8E4M3FN>
  // CONSTANT: arith.constant dense<4.480000e+02> : tensor<16x16xf8E4M3FN>
  // CONSTANT-NOT: arith.constant {{.*}}x16xbf16>
  // CALL-COUNT-4: fp8.quantize

  // STATS-LABEL: func.func @main
  // STATS-NOT: arith.constant {{.*}}x16xbf16>
  // STATS: %[[AMAX:.*]] = arith.constant 7.000000e+00 : f64
  // STATS: %[[SLOT:.*]] = arith.constant 0 : i64
  // STATS: call @fp8rt_stats_record(%[[SLOT]], %[[AMAX]],
  %w = arith.constant dense<[
    [7.0, 3.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0, 0.0, 7.0]]> : tensor<2x16xbf16>
  %v = ml_program.global_load_const @out : tensor<16x16xbf16>
  %zero = arith.constant 0.0 : bf16
  %empty = tensor.empty() : tensor<2x16xbf16>
  %zeros = linalg.fill ins(%zero : bf16) outs(%empty : tensor<2x16xbf16>) -> tensor<2x16xbf16>
  %y = linalg.matmul ins(%w, %x : tensor<2x16xbf16>, tensor<16x16xbf16>) outs(%zeros : tensor<2x16xbf16>) -> tensor<2x16xbf16> loc("fc")
  %z = linalg.matmul ins(%y, %v : tensor<2x16xbf16>, tensor<16x16xbf16>) outs(%zeros : tensor<2x16xbf16>) -> tensor<2x16xbf16> loc("out")
  return %z : tensor<2x16xbf16>
}
