// RUN: %python %S/Inputs/tensors.py make %t.in f64=F64:2:1.5,-2 f32=F32:2:1.5,-2 f16=F16:2:1.5,-2 bf16=BF16:2:1.5,-2 e4m3=F8_E4M3:2:448,-2 e5m2=F8_E5M2:2:57344,-2 e8m0=F8_E8M0:2:0.5,4 e2m1=F4:2:-6,0.5 i64=I64:2:-5000000000,1 i32=I32:2:-70000,1 i16=I16:2:-300,1 i8=I8:2:-100,1 u8=U8:2:200,1 i1=BOOL:2:1,0 index=I64:2:3,4
// RUN: fp8-run %s --entry=main --inputs=%t.in --outputs=%t.out
// RUN: %python %S/Inputs/tensors.py show %t.out | FileCheck %s
// RUN: fp8-run %s --entry=main --inputs=%t.in | FileCheck %s --check-prefix=SUMMARY
// RUN: %python %S/Inputs/tensors.py make %t.bytes codes=U8:2x2:31,15,16,0
// RUN: fp8-run %s --entry=bytes --inputs=%t.bytes | FileCheck %s --check-prefix=BYTES

// Every element type has its dtype, in both directions; two codes of FP4
// share a byte.

// CHECK: bf16: BF16 [2]: 1.5 -2.0
// CHECK: e2m1: F4 [2]: -6.0 0.5
// CHECK: e4m3: F8_E4M3 [2]: 448.0 -2.0
// CHECK: e5m2: F8_E5M2 [2]: 57344.0 -2.0
// CHECK: e8m0: F8_E8M0 [2]: 0.5 4.0
// CHECK: f16: F16 [2]: 1.5 -2.0
// CHECK: f32: F32 [2]: 1.5 -2.0
// CHECK: f64: F64 [2]: 1.5 -2.0
// CHECK: i1: BOOL [2]: True False
// CHECK: i16: I16 [2]: -300 1
// CHECK: i32: I32 [2]: -70000 1
// CHECK: i64: I64 [2]: -5000000000 1
// CHECK: i8: I8 [2]: -100 1
// CHECK: index: I64 [2]: 3 4
// CHECK: u8: U8 [2]: 200 1

// SUMMARY: bf16: BF16 [2] min -2 max 1.5
// SUMMARY: e4m3: F8_E4M3 [2] min -2 max 448
// SUMMARY: e8m0: F8_E8M0 [2] min 0.5 max 4
// SUMMARY: e2m1: F4 [2] min -6 max 0.5 values -6 0.5
// SUMMARY: i8: I8 [2] min -100 max 1
// SUMMARY: u8: U8 [2] min 1 max 200
// SUMMARY: i1: BOOL [2] min 0 max 1

// Other checkpoints have pairs of codes as bytes.

// BYTES: values: F32 [2, 4] min -6 max 0.5 values -6 0.5 -6 0 ...
func.func @bytes(%codes: tensor<2x4xf4E2M1FN> {fp8.name = "codes"}) -> (tensor<2x4xf32> {fp8.name = "values"}) {
  %one = arith.constant dense<1.0> : tensor<1x1xf32>
  %q = fp8.assemble %codes, %one : tensor<2x4xf4E2M1FN>, tensor<1x1xf32> -> <2x4xf4E2M1FN, block = [*, *], scale = f32>
  %x = fp8.dequantize %q : <2x4xf4E2M1FN, block = [*, *], scale = f32> -> tensor<2x4xf32>
  return %x : tensor<2x4xf32>
}

func.func @main(
    %f64: tensor<2xf64> {fp8.name = "f64"},
    %f32: tensor<2xf32> {fp8.name = "f32"},
    %f16: tensor<2xf16> {fp8.name = "f16"},
    %bf16: tensor<2xbf16> {fp8.name = "bf16"},
    %e4m3: tensor<2xf8E4M3FN> {fp8.name = "e4m3"},
    %e5m2: tensor<2xf8E5M2> {fp8.name = "e5m2"},
    %e8m0: tensor<2xf8E8M0FNU> {fp8.name = "e8m0"},
    %e2m1: tensor<2xf4E2M1FN> {fp8.name = "e2m1"},
    %i64: tensor<2xi64> {fp8.name = "i64"},
    %i32: tensor<2xi32> {fp8.name = "i32"},
    %i16: tensor<2xi16> {fp8.name = "i16"},
    %i8: tensor<2xi8> {fp8.name = "i8"},
    %u8: tensor<2xui8> {fp8.name = "u8"},
    %i1: tensor<2xi1> {fp8.name = "i1"},
    %index: tensor<2xindex> {fp8.name = "index"})
    -> (tensor<2xf64> {fp8.name = "f64"},
        tensor<2xf32> {fp8.name = "f32"},
        tensor<2xf16> {fp8.name = "f16"},
        tensor<2xbf16> {fp8.name = "bf16"},
        tensor<2xf8E4M3FN> {fp8.name = "e4m3"},
        tensor<2xf8E5M2> {fp8.name = "e5m2"},
        tensor<2xf8E8M0FNU> {fp8.name = "e8m0"},
        tensor<2xf4E2M1FN> {fp8.name = "e2m1"},
        tensor<2xi64> {fp8.name = "i64"},
        tensor<2xi32> {fp8.name = "i32"},
        tensor<2xi16> {fp8.name = "i16"},
        tensor<2xi8> {fp8.name = "i8"},
        tensor<2xui8> {fp8.name = "u8"},
        tensor<2xi1> {fp8.name = "i1"},
        tensor<2xindex> {fp8.name = "index"}) {
  return %f64, %f32, %f16, %bf16, %e4m3, %e5m2, %e8m0, %e2m1, %i64, %i32, %i16,
      %i8, %u8, %i1, %index
      : tensor<2xf64>, tensor<2xf32>, tensor<2xf16>, tensor<2xbf16>,
        tensor<2xf8E4M3FN>, tensor<2xf8E5M2>, tensor<2xf8E8M0FNU>,
        tensor<2xf4E2M1FN>, tensor<2xi64>, tensor<2xi32>, tensor<2xi16>,
        tensor<2xi8>, tensor<2xui8>, tensor<2xi1>, tensor<2xindex>
}
