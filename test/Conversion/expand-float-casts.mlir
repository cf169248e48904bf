// RUN: fp8-opt %s --fp8-expand-float-casts | FileCheck %s
// RUN: fp8-opt %s --fp8-expand-float-casts --convert-to-llvm \
// RUN:   | FileCheck %s --check-prefix=LLVM

// The arithmetic itself is tested by Integration/CPU/exactness_casts.py; here,
// what each format makes of its ends, and in which lanes.

// CHECK-LABEL: @f32_to_e4m3
// CHECK-SAME:    (%[[X:.*]]: f32)
// CHECK:         %[[BITS:.*]] = arith.bitcast %[[X]] : f32 to i32
// CHECK:         %[[MAGNITUDE:.*]] = arith.andi %[[BITS]], %c2147483647_i32
// CHECK:         %[[ABS:.*]] = arith.bitcast %[[MAGNITUDE]] : i32 to f32
// CHECK:         %[[SUM:.*]] = arith.addf %[[ABS]]
// The f32 464 is half a step past 448.
// CHECK:         %[[IS_NAN:.*]] = arith.cmpi ugt, %[[MAGNITUDE]], %c1139277824_i32
// CHECK:         %[[SIGNED:.*]] = arith.ori
// CHECK:         %[[RESULT:.*]] = arith.select %[[IS_NAN]], %c127_i32{{.*}}, %[[SIGNED]]
// CHECK:         %[[BYTE:.*]] = arith.trunci %[[RESULT]] : i32 to i8
// CHECK:         arith.bitcast %[[BYTE]] : i8 to f8E4M3FN
// LLVM-LABEL:  llvm.func @f32_to_e4m3(%{{.*}}: f32) -> i8
func.func @f32_to_e4m3(%x: f32) -> f8E4M3FN {
  %q = arith.truncf %x : f32 to f8E4M3FN
  return %q : f8E4M3FN
}

// Beyond 2^16, the value that would have Inf's code, all is the same.
// CHECK-LABEL: @f32_to_e5m2_overflows_to_inf
// CHECK:         %[[MAGNITUDE:.*]] = arith.andi %{{.*}}, %c2147483647_i32
// CHECK:         arith.minui %[[MAGNITUDE]], %c1199570944_i32
// CHECK:         %[[IS_NAN:.*]] = arith.cmpi ugt, %[[MAGNITUDE]], %c2139095040_i32
// CHECK:         %[[SIGNED:.*]] = arith.ori
// CHECK:         arith.select %[[IS_NAN]], %c127_i32{{.*}}, %[[SIGNED]]
func.func @f32_to_e5m2_overflows_to_inf(%x: f32) -> f8E5M2 {
  %q = arith.truncf %x : f32 to f8E5M2
  return %q : f8E5M2
}

// A clamp to the largest value, which NaN passes, is part of the cast.
// CHECK-LABEL: @clamped_f32_to_e5m2_saturates
// CHECK-SAME:    (%[[X:.*]]: f32)
// CHECK:         %[[BITS:.*]] = arith.bitcast %[[X]] : f32 to i32
// CHECK:         %[[MAGNITUDE:.*]] = arith.andi %[[BITS]], %c2147483647_i32
// The f32 57344.
// CHECK:         arith.minui %[[MAGNITUDE]], %c1197473792_i32
// CHECK:         arith.cmpi ugt, %[[MAGNITUDE]], %c2139095040_i32
func.func @clamped_f32_to_e5m2_saturates(%x: f32) -> f8E5M2 {
  %high = arith.constant 57344.0 : f32
  %low = arith.constant -57344.0 : f32
  %above = arith.cmpf ogt, %x, %high : f32
  %below_high = arith.select %above, %high, %x : f32
  %below = arith.cmpf olt, %below_high, %low : f32
  %clamped = arith.select %below, %low, %below_high : f32
  %q = arith.truncf %clamped : f32 to f8E5M2
  return %q : f8E5M2
}

// The bound is not the largest value.
// CHECK-LABEL: @clamped_further
// CHECK:         %[[CLAMPED:.*]] = arith.select
// CHECK:         %[[CLAMPED2:.*]] = arith.select
// CHECK:         arith.bitcast %[[CLAMPED2]] : f32 to i32
func.func @clamped_further(%x: f32) -> f8E4M3FN {
  %high = arith.constant 240.0 : f32
  %low = arith.constant -240.0 : f32
  %above = arith.cmpf ogt, %x, %high : f32
  %below_high = arith.select %above, %high, %x : f32
  %below = arith.cmpf olt, %below_high, %low : f32
  %clamped = arith.select %below, %low, %below_high : f32
  %q = arith.truncf %clamped : f32 to f8E4M3FN
  return %q : f8E4M3FN
}

// A clamp that turns NaN into a bound is another thing.
// CHECK-LABEL: @clamped_with_nan
// CHECK:         %[[CLAMPED:.*]] = arith.select
// CHECK:         %[[CLAMPED2:.*]] = arith.select
// CHECK:         arith.bitcast %[[CLAMPED2]] : f32 to i32
func.func @clamped_with_nan(%x: f32) -> f8E4M3FN {
  %high = arith.constant 448.0 : f32
  %low = arith.constant -448.0 : f32
  %above = arith.cmpf ugt, %x, %high : f32
  %below_high = arith.select %above, %high, %x : f32
  %below = arith.cmpf olt, %below_high, %low : f32
  %clamped = arith.select %below, %low, %below_high : f32
  %q = arith.truncf %clamped : f32 to f8E4M3FN
  return %q : f8E4M3FN
}

// CHECK-LABEL: @f32_to_e2m1_by_way_of_bytes
// CHECK:         arith.minui %{{.*}}, %c1086324736_i32
// CHECK:         arith.select %{{.*}}, %c7_i32
// CHECK:         %[[BYTE:.*]] = arith.trunci %{{.*}} : i32 to i8
// CHECK:         %[[NIBBLE:.*]] = arith.trunci %[[BYTE]] : i8 to i4
// CHECK:         arith.bitcast %[[NIBBLE]] : i4 to f4E2M1FN
// LLVM-LABEL:  llvm.func @f32_to_e2m1_by_way_of_bytes
func.func @f32_to_e2m1_by_way_of_bytes(%x: f32) -> i8 {
  %q = arith.truncf %x : f32 to f4E2M1FN
  %code = arith.bitcast %q : f4E2M1FN to i4
  %byte = arith.extui %code : i4 to i8
  return %byte : i8
}

// CHECK-LABEL: @f32_to_e8m0
// CHECK:         arith.select %{{.*}}, %c0_i32
// CHECK:         arith.minui %{{.*}}, %c255_i32
// CHECK:         arith.bitcast %{{.*}} : i8 to f8E8M0FNU
func.func @f32_to_e8m0(%x: f32) -> f8E8M0FNU {
  %q = arith.truncf %x : f32 to f8E8M0FNU
  return %q : f8E8M0FNU
}

// CHECK-LABEL: @f32_to_bf16
// CHECK-SAME:    (%[[X:.*]]: f32)
// CHECK:         %[[HALF:.*]] = arith.trunci %{{.*}} : i32 to i16
// CHECK:         %[[IS_NAN:.*]] = arith.cmpf uno, %[[X]], %[[X]]
// CHECK:         %[[CODE:.*]] = arith.select %[[IS_NAN]], %c32704_i16, %[[HALF]]
// CHECK:         arith.bitcast %[[CODE]] : i16 to bf16
func.func @f32_to_bf16(%x: f32) -> bf16 {
  %q = arith.truncf %x : f32 to bf16
  return %q : bf16
}

// One rounding: the f32 in between is rounded to odd.
// CHECK-LABEL: @f64_to_e5m2
// CHECK-SAME:    (%[[X:.*]]: f64)
// CHECK:         %[[F32:.*]] = arith.truncf %[[X]] : f64 to f32
// CHECK:         %[[BACK:.*]] = arith.extf %[[F32]] : f32 to f64
// CHECK:         arith.cmpf one, %[[BACK]], %[[X]]
// CHECK:         arith.bitcast %{{.*}} : i8 to f8E5M2
func.func @f64_to_e5m2(%x: f64) -> f8E5M2 {
  %q = arith.truncf %x : f64 to f8E5M2
  return %q : f8E5M2
}

// CHECK-LABEL: @bf16_to_e4m3
// CHECK-SAME:    (%[[X:.*]]: bf16)
// CHECK:         %[[BITS:.*]] = arith.bitcast %[[X]] : bf16 to i16
// CHECK:         %[[WIDE:.*]] = arith.extui %[[BITS]] : i16 to i32
// CHECK:         arith.shli %[[WIDE]], %c16_i32
// CHECK-NOT:     bf16
// CHECK:         arith.bitcast %{{.*}} : i8 to f8E4M3FN
func.func @bf16_to_e4m3(%x: bf16) -> f8E4M3FN {
  %q = arith.truncf %x : bf16 to f8E4M3FN
  return %q : f8E4M3FN
}

// CHECK-LABEL: @f16_to_e4m3
// CHECK:         arith.extf %{{.*}} : f16 to f32
// CHECK:         arith.bitcast %{{.*}} : i8 to f8E4M3FN
func.func @f16_to_e4m3(%x: f16) -> f8E4M3FN {
  %q = arith.truncf %x : f16 to f8E4M3FN
  return %q : f8E4M3FN
}

// CHECK-LABEL: @e4m3_to_f32
// CHECK:         %[[IS_NAN:.*]] = arith.cmpi eq, %{{.*}}, %c127_i8
// CHECK:         %[[HALF:.*]] = arith.select %[[IS_NAN]], %c32256_i16
// CHECK:         %[[F16:.*]] = arith.bitcast %[[HALF]] : i16 to f16
// CHECK:         %[[F32:.*]] = arith.extf %[[F16]] : f16 to f32
// CHECK:         arith.constant 2.560000e+02 : f32
// CHECK:         arith.mulf %[[F32]]
// LLVM-LABEL:  llvm.func @e4m3_to_f32(%{{.*}}: i8) -> f32
func.func @e4m3_to_f32(%x: f8E4M3FN) -> f32 {
  %y = arith.extf %x : f8E4M3FN to f32
  return %y : f32
}

// CHECK-LABEL: @e5m2_is_half_an_f16
// CHECK:         %[[HALF:.*]] = arith.shli %{{.*}}, %c8_i16
// CHECK:         %[[F16:.*]] = arith.bitcast %[[HALF]] : i16 to f16
// CHECK:         %[[F32:.*]] = arith.extf %[[F16]] : f16 to f32
// CHECK-NEXT:    return %[[F32]]
func.func @e5m2_is_half_an_f16(%x: f8E5M2) -> f32 {
  %y = arith.extf %x : f8E5M2 to f32
  return %y : f32
}

// CHECK-LABEL: @e2m1_to_f32
// CHECK:         arith.extsi %{{.*}} : i4 to i16
// CHECK-NOT:     arith.select
// CHECK:         arith.constant 1.638400e+04 : f32
// CHECK:         arith.mulf
func.func @e2m1_to_f32(%x: f4E2M1FN) -> f32 {
  %y = arith.extf %x : f4E2M1FN to f32
  return %y : f32
}

// CHECK-LABEL: @e8m0_to_f32
// CHECK:         %[[IS_END:.*]] = arith.cmpi ule, %{{.*}}, %c1_i8
// CHECK:         %[[SHIFTED:.*]] = arith.shli %{{.*}}, %c23_i32
// CHECK:         %[[WITH_TOP:.*]] = arith.ori %[[SHIFTED]], %c4194304_i32
// CHECK:         arith.select %[[IS_END]], %[[WITH_TOP]], %[[SHIFTED]]
func.func @e8m0_to_f32(%x: f8E8M0FNU) -> f32 {
  %y = arith.extf %x : f8E8M0FNU to f32
  return %y : f32
}

// An extension to bf16 is exact and rounds nothing.
// CHECK-LABEL: @e4m3_to_bf16
// CHECK:         %[[BITS:.*]] = arith.bitcast %{{.*}} : f32 to i32
// CHECK:         %[[UPPER:.*]] = arith.shrui %[[BITS]], %c16_i32
// CHECK-NEXT:    arith.trunci %[[UPPER]] : i32 to i16
func.func @e4m3_to_bf16(%x: f8E4M3FN) -> bf16 {
  %y = arith.extf %x : f8E4M3FN to bf16
  return %y : bf16
}

// CHECK-LABEL: @vectors
// CHECK:         arith.constant dense<2147483647> : vector<2x[4]xi32>
// CHECK:         arith.trunci %{{.*}} : vector<2x[4]xi32> to vector<2x[4]xi8>
// CHECK:         arith.bitcast %{{.*}} : vector<2x[4]xi8> to vector<2x[4]xf8E4M3FN>
func.func @vectors(%x: vector<2x[4]xf32>) -> vector<2x[4]xf8E4M3FN> {
  %q = arith.truncf %x : vector<2x[4]xf32> to vector<2x[4]xf8E4M3FN>
  return %q : vector<2x[4]xf8E4M3FN>
}

// LLVM-LABEL: llvm.func @vector_of_rank_0
// LLVM-NOT:   arith.
func.func @vector_of_rank_0(%x: vector<f32>) -> vector<f8E8M0FNU> {
  %q = arith.truncf %x : vector<f32> to vector<f8E8M0FNU>
  return %q : vector<f8E8M0FNU>
}
