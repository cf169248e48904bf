// RUN: fp8-opt %s 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=WARNING < %t.err
// RUN: fp8-opt %s 2>/dev/null | fp8-opt 2>&1 | FileCheck %s

// What an earlier version wrote is read, with a warning, and written in the words
// of today.

// WARNING: former-names.mlir:[[#@LINE+7]]:80: warning: 'rest' of a tensor map is called 'tail' now
// WARNING-NOT: warning
// CHECK-NOT:   warning
// CHECK: #fp8_gpu.tensor_map<0, box = [128, 64], swizzle = 128, l2 = 128, tail = 1>
#launch = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "a", element = f8E4M3FN, rank = 2, access = update, alignment = 16>],
    extents = [],
    params = [#fp8_gpu.tensor_map<0, box = [128, 64], swizzle = 128, l2 = 128, rest = 1>],
    grid = affine_map<() -> (1)>, block = 32>
gpu.module @kernels {
  llvm.func @copy(!llvm.ptr) attributes {fp8_gpu.launch = #launch}
}
