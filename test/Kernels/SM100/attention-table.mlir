// RUN: fp8-opt --fp8-set-target=chip=sm_100a --fp8-select-kernels --fp8-build-kernels %s -o %t.mlir
// RUN: fp8-translate --kernels-to-ptx %t.mlir -o %t.ptx
// RUN: %ptxas -v -arch=sm_100a %t.ptx -o %t.cubin > %t.log 2>&1
// RUN: %python %S/../Inputs/check_resources.py %t.log | FileCheck %s
// REQUIRES: ptxas

// What is chosen for attention becomes machine code without spills.

// CHECK: 35 kernels

func.func @f0(%q: tensor<2x?x16x64xbf16>, %v: tensor<2x?x16x64xbf16>) -> (tensor<2x?x16x64xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %v scale = 0.125
      : tensor<2x?x16x64xbf16>, tensor<2x?x16x64xbf16>, tensor<2x?x16x64xbf16> -> tensor<2x?x16x64xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x64xbf16>, tensor<2x16x?xf32>
}

func.func @f1(%q: tensor<2x?x16x64xf16>, %v: tensor<2x?x16x64xf16>) -> (tensor<2x?x16x64xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %v scale = 0.125 window = [*, 0]
      : tensor<2x?x16x64xf16>, tensor<2x?x16x64xf16>, tensor<2x?x16x64xf16> -> tensor<2x?x16x64xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x64xbf16>, tensor<2x16x?xf32>
}

func.func @f2(%q: !fp8.scaled<2x?x16x64xf8E4M3FN, block = [*, *, *, *], scale = f32>, %v: !fp8.scaled<2x?x16x64xf8E4M3FN, block = [*, *, *, *], scale = f32>) -> (tensor<2x?x16x64xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %v scale = 0.125 window = [*, 0]
      : !fp8.scaled<2x?x16x64xf8E4M3FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<2x?x16x64xf8E4M3FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<2x?x16x64xf8E4M3FN, block = [*, *, *, *], scale = f32> -> tensor<2x?x16x64xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x64xbf16>, tensor<2x16x?xf32>
}

func.func @f3(%q: !fp8.scaled<2x?x16x64xf8E5M2, block = [1, *, 1, *], scale = f32>, %v: !fp8.scaled<2x?x16x64xf8E5M2, block = [1, *, 1, *], scale = f32>) -> (tensor<2x?x16x64xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %v scale = 0.125
      : !fp8.scaled<2x?x16x64xf8E5M2, block = [1, *, 1, *], scale = f32>, !fp8.scaled<2x?x16x64xf8E5M2, block = [1, *, 1, *], scale = f32>, !fp8.scaled<2x?x16x64xf8E5M2, block = [1, *, 1, *], scale = f32> -> tensor<2x?x16x64xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x64xbf16>, tensor<2x16x?xf32>
}

func.func @f4(%q: tensor<2x?x16x64xbf16>, %v: tensor<2x?x16x64xbf16>) -> (tensor<2x?x16x64xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %v scale = 0.125 window = [1023, 0] bottom_right
      : tensor<2x?x16x64xbf16>, tensor<2x?x16x64xbf16>, tensor<2x?x16x64xbf16> -> tensor<2x?x16x64xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x64xbf16>, tensor<2x16x?xf32>
}

func.func @f5(%q: tensor<2x?x16x128xbf16>, %v: tensor<2x?x16x128xbf16>) -> (tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %v scale = 0.125
      : tensor<2x?x16x128xbf16>, tensor<2x?x16x128xbf16>, tensor<2x?x16x128xbf16> -> tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
}

func.func @f6(%q: tensor<2x?x16x128xf16>, %v: tensor<2x?x16x128xf16>) -> (tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %v scale = 0.125 window = [*, 0]
      : tensor<2x?x16x128xf16>, tensor<2x?x16x128xf16>, tensor<2x?x16x128xf16> -> tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
}

func.func @f7(%q: !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32>, %v: !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32>) -> (tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %v scale = 0.125 window = [*, 0]
      : !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32> -> tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
}

func.func @f8(%q: !fp8.scaled<2x?x16x128xf8E5M2, block = [1, *, 1, *], scale = f32>, %v: !fp8.scaled<2x?x16x128xf8E5M2, block = [1, *, 1, *], scale = f32>) -> (tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %v scale = 0.125
      : !fp8.scaled<2x?x16x128xf8E5M2, block = [1, *, 1, *], scale = f32>, !fp8.scaled<2x?x16x128xf8E5M2, block = [1, *, 1, *], scale = f32>, !fp8.scaled<2x?x16x128xf8E5M2, block = [1, *, 1, *], scale = f32> -> tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
}

func.func @f9(%q: tensor<2x?x16x128xbf16>, %v: tensor<2x?x16x128xbf16>) -> (tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %v scale = 0.125 window = [1023, 0] bottom_right
      : tensor<2x?x16x128xbf16>, tensor<2x?x16x128xbf16>, tensor<2x?x16x128xbf16> -> tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
}

func.func @f10(%q: tensor<2x?x16x256xbf16>, %v: tensor<2x?x16x256xbf16>) -> (tensor<2x?x16x256xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %v scale = 0.125 window = [*, 0]
      : tensor<2x?x16x256xbf16>, tensor<2x?x16x256xbf16>, tensor<2x?x16x256xbf16> -> tensor<2x?x16x256xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x256xbf16>, tensor<2x16x?xf32>
}

func.func @f11(%q: !fp8.scaled<2x?x16x256xf8E4M3FN, block = [*, *, *, *], scale = f32>, %v: !fp8.scaled<2x?x16x256xf8E4M3FN, block = [*, *, *, *], scale = f32>) -> (tensor<2x?x16x256xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %v scale = 0.125
      : !fp8.scaled<2x?x16x256xf8E4M3FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<2x?x16x256xf8E4M3FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<2x?x16x256xf8E4M3FN, block = [*, *, *, *], scale = f32> -> tensor<2x?x16x256xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x256xbf16>, tensor<2x16x?xf32>
}

func.func @f12(%q: tensor<2x?x16x192xbf16>, %v: tensor<2x?x16x128xbf16>) -> (tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %v scale = 0.125 window = [*, 0]
      : tensor<2x?x16x192xbf16>, tensor<2x?x16x192xbf16>, tensor<2x?x16x128xbf16> -> tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
}

func.func @f13(%q: !fp8.scaled<2x?x16x192xf8E4M3FN, block = [*, *, *, *], scale = f32>, %v: !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32>) -> (tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %v scale = 0.125 window = [*, 0]
      : !fp8.scaled<2x?x16x192xf8E4M3FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<2x?x16x192xf8E4M3FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32> -> tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
}

func.func @f14(%q: tensor<2x?x16x16xbf16>, %v: tensor<2x?x16x16xbf16>) -> (tensor<2x?x16x16xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %v scale = 0.125
      : tensor<2x?x16x16xbf16>, tensor<2x?x16x16xbf16>, tensor<2x?x16x16xbf16> -> tensor<2x?x16x16xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x16xbf16>, tensor<2x16x?xf32>
}

func.func @f15(%q: tensor<2x?x16x96xbf16>, %v: tensor<2x?x16x96xbf16>) -> (tensor<2x?x16x96xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %v scale = 0.125 window = [*, 0]
      : tensor<2x?x16x96xbf16>, tensor<2x?x16x96xbf16>, tensor<2x?x16x96xbf16> -> tensor<2x?x16x96xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x96xbf16>, tensor<2x16x?xf32>
}

func.func @f16(%q: tensor<2x?x16x128xbf16>, %v: tensor<2x?x16x128xbf16>, %l: tensor<2xi32>, %s: tensor<2xi32>) -> (tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %v key_lengths(%l : tensor<2xi32>) key_starts(%s : tensor<2xi32>) scale = 0.125 window = [*, 0]
      : tensor<2x?x16x128xbf16>, tensor<2x?x16x128xbf16>, tensor<2x?x16x128xbf16> -> tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
}

func.func @f17(%q: !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32>, %v: !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32>, %l: tensor<2xi32>, %s: tensor<2xi32>) -> (tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %v key_lengths(%l : tensor<2xi32>) key_starts(%s : tensor<2xi32>) scale = 0.125 window = [100, 3]
      : !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32> -> tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
}

func.func @f18(%q: tensor<2x?x16x128xbf16>, %v: tensor<2x?x16x128xbf16>, %r: tensor<2x?x2xi32>) -> (tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %v key_ranges(%r : tensor<2x?x2xi32>) scale = 0.125 window = [*, 0]
      : tensor<2x?x16x128xbf16>, tensor<2x?x16x128xbf16>, tensor<2x?x16x128xbf16> -> tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
}

func.func @f19(%q: tensor<2x?x16x128xbf16>, %v: tensor<2x?x16x128xbf16>, %r: tensor<2x?x2xi32>, %s: tensor<16xf32>) -> (tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %v key_ranges(%r : tensor<2x?x2xi32>) sinks(%s : tensor<16xf32>) scale = 0.125 window = [100, 3]
      : tensor<2x?x16x128xbf16>, tensor<2x?x16x128xbf16>, tensor<2x?x16x128xbf16> -> tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
}

func.func @f20(%q: tensor<2x?x16x128xbf16>, %v: tensor<2x?x16x128xbf16>) -> (tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %v scale = 0.125 cap = 30.0 window = [*, 0]
      : tensor<2x?x16x128xbf16>, tensor<2x?x16x128xbf16>, tensor<2x?x16x128xbf16> -> tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
}

func.func @f21(%q: !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32>, %v: !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32>) -> (tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %v scale = 0.125 cap = 30.0 window = [*, 0]
      : !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32> -> tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
}

func.func @f22(%q: tensor<2x?x16x128xbf16>, %v: tensor<2x?x16x128xbf16>, %m: tensor<2x16x?x?xbf16>) -> (tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %v mask(%m : tensor<2x16x?x?xbf16>) scale = 0.125 window = [*, 0]
      : tensor<2x?x16x128xbf16>, tensor<2x?x16x128xbf16>, tensor<2x?x16x128xbf16> -> tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
}

func.func @f23(%q: tensor<2x?x16x64xbf16>, %v: tensor<2x?x16x64xbf16>, %m: tensor<2x1x?x?xi1>) -> (tensor<2x?x16x64xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %v mask(%m : tensor<2x1x?x?xi1>) scale = 0.125 window = [*, 0]
      : tensor<2x?x16x64xbf16>, tensor<2x?x16x64xbf16>, tensor<2x?x16x64xbf16> -> tensor<2x?x16x64xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x64xbf16>, tensor<2x16x?xf32>
}

func.func @f24(%q: !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32>, %v: !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32>, %m: tensor<2x1x?x?xf32>) -> (tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %v mask(%m : tensor<2x1x?x?xf32>) scale = 0.125 cap = 20.0
      : !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32> -> tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
}

func.func @f25(%q: tensor<2x?x16x64xbf16>, %v: tensor<2x?x16x64xbf16>, %d: tensor<2xi64>) -> (tensor<2x?x16x64xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %v dropout(%d : tensor<2xi64>) rate = 0.1 scale = 0.125 window = [*, 0]
      : tensor<2x?x16x64xbf16>, tensor<2x?x16x64xbf16>, tensor<2x?x16x64xbf16> -> tensor<2x?x16x64xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x64xbf16>, tensor<2x16x?xf32>
}

func.func @f26(%q: tensor<2x?x16x128xbf16>, %v: tensor<2x?x16x128xbf16>, %d: tensor<2xi64>) -> (tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %v dropout(%d : tensor<2xi64>) rate = 0.1 scale = 0.125
      : tensor<2x?x16x128xbf16>, tensor<2x?x16x128xbf16>, tensor<2x?x16x128xbf16> -> tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
}

func.func @f27(%q: !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32>, %v: !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32>, %d: tensor<2xi64>) -> (tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %v dropout(%d : tensor<2xi64>) rate = 0.1 scale = 0.125 window = [*, 0]
      : !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32>, !fp8.scaled<2x?x16x128xf8E4M3FN, block = [*, *, *, *], scale = f32> -> tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x128xbf16>, tensor<2x16x?xf32>
}

func.func @f28(%q: tensor<2x?x16x256xbf16>, %v: tensor<2x?x16x256xbf16>, %d: tensor<2xi64>) -> (tensor<2x?x16x256xbf16>, tensor<2x16x?xf32>) {
  %0, %1 = fp8.attention %q, %q, %v dropout(%d : tensor<2xi64>) rate = 0.1 scale = 0.125 cap = 30.0
      : tensor<2x?x16x256xbf16>, tensor<2x?x16x256xbf16>, tensor<2x?x16x256xbf16> -> tensor<2x?x16x256xbf16>, tensor<2x16x?xf32>
  return %0, %1 : tensor<2x?x16x256xbf16>, tensor<2x16x?xf32>
}

func.func @f29(%q: tensor<4x1x32x64xbf16>, %k: tensor<4x?x8x64xbf16>) -> (tensor<4x1x32x64xbf16>, tensor<4x32x1xf32>) {
  %0, %1 = fp8.attention %q, %k, %k scale = 0.125
      : tensor<4x1x32x64xbf16>, tensor<4x?x8x64xbf16>, tensor<4x?x8x64xbf16> -> tensor<4x1x32x64xbf16>, tensor<4x32x1xf32>
  return %0, %1 : tensor<4x1x32x64xbf16>, tensor<4x32x1xf32>
}

func.func @f30(%q: tensor<4x1x32x128xbf16>, %k: tensor<4x?x8x128xbf16>, %l: tensor<4xi32>, %s: tensor<32xf32>) -> (tensor<4x1x32x128xbf16>, tensor<4x32x1xf32>) {
  %0, %1 = fp8.attention %q, %k, %k key_lengths(%l : tensor<4xi32>) sinks(%s : tensor<32xf32>) scale = 0.125
      : tensor<4x1x32x128xbf16>, tensor<4x?x8x128xbf16>, tensor<4x?x8x128xbf16> -> tensor<4x1x32x128xbf16>, tensor<4x32x1xf32>
  return %0, %1 : tensor<4x1x32x128xbf16>, tensor<4x32x1xf32>
}

func.func @f31(%q: !fp8.scaled<4x1x64x128xf8E4M3FN, block = [1, *, 1, *], scale = f32>, %k: !fp8.scaled<4x?x8x128xf8E4M3FN, block = [1, *, 1, *], scale = f32>, %l: tensor<4xi32>) -> (tensor<4x1x64x128xbf16>, tensor<4x64x1xf32>) {
  %0, %1 = fp8.attention %q, %k, %k key_lengths(%l : tensor<4xi32>) scale = 0.125
      : !fp8.scaled<4x1x64x128xf8E4M3FN, block = [1, *, 1, *], scale = f32>, !fp8.scaled<4x?x8x128xf8E4M3FN, block = [1, *, 1, *], scale = f32>, !fp8.scaled<4x?x8x128xf8E4M3FN, block = [1, *, 1, *], scale = f32> -> tensor<4x1x64x128xbf16>, tensor<4x64x1xf32>
  return %0, %1 : tensor<4x1x64x128xbf16>, tensor<4x64x1xf32>
}

func.func @f32(%q: tensor<2x4x16x256xbf16>, %k: tensor<2x?x2x256xbf16>) -> (tensor<2x4x16x256xbf16>, tensor<2x16x4xf32>) {
  %0, %1 = fp8.attention %q, %k, %k scale = 0.125 window = [1023, 0] bottom_right
      : tensor<2x4x16x256xbf16>, tensor<2x?x2x256xbf16>, tensor<2x?x2x256xbf16> -> tensor<2x4x16x256xbf16>, tensor<2x16x4xf32>
  return %0, %1 : tensor<2x4x16x256xbf16>, tensor<2x16x4xf32>
}

func.func @f33(%q: tensor<2x1x16x128xbf16>, %k: tensor<2x?x2x128xbf16>, %m: tensor<2x1x1x?xbf16>, %r: tensor<2x1x2xi32>) -> (tensor<2x1x16x128xbf16>, tensor<2x16x1xf32>) {
  %0, %1 = fp8.attention %q, %k, %k mask(%m : tensor<2x1x1x?xbf16>) key_ranges(%r : tensor<2x1x2xi32>) scale = 0.125 cap = 30.0
      : tensor<2x1x16x128xbf16>, tensor<2x?x2x128xbf16>, tensor<2x?x2x128xbf16> -> tensor<2x1x16x128xbf16>, tensor<2x16x1xf32>
  return %0, %1 : tensor<2x1x16x128xbf16>, tensor<2x16x1xf32>
}

func.func @f34(%q: !fp8.scaled<2x1x16x256xf8E4M3FN, block = [1, *, 1, *], scale = f32>, %k: !fp8.scaled<2x?x2x256xf8E4M3FN, block = [1, *, 1, *], scale = f32>, %m: tensor<2x1x1x?xi1>) -> (tensor<2x1x16x256xbf16>, tensor<2x16x1xf32>) {
  %0, %1 = fp8.attention %q, %k, %k mask(%m : tensor<2x1x1x?xi1>) scale = 0.125 cap = 30.0
      : !fp8.scaled<2x1x16x256xf8E4M3FN, block = [1, *, 1, *], scale = f32>, !fp8.scaled<2x?x2x256xf8E4M3FN, block = [1, *, 1, *], scale = f32>, !fp8.scaled<2x?x2x256xf8E4M3FN, block = [1, *, 1, *], scale = f32> -> tensor<2x1x16x256xbf16>, tensor<2x16x1xf32>
  return %0, %1 : tensor<2x1x16x256xbf16>, tensor<2x16x1xf32>
}
