// RUN: echo old > %t.so
// RUN: not bash -c 'ulimit -f 0; exec "$@"' - fp8-compile %s --emit=obj -o %t.so 2>&1 | FileCheck %s
// RUN: echo old > %t.mlir
// RUN: not bash -c 'ulimit -f 0; exec "$@"' - fp8-opt %s -o %t.mlir 2>&1 | FileCheck %s --check-prefix=STREAM
// RUN: FileCheck %s --input-file=%t.so --check-prefix=OLD
// RUN: FileCheck %s --input-file=%t.mlir --check-prefix=OLD

// A file that may not grow is an error, no signal, and what was there stays.

// CHECK: fp8-compile: error: {{.*}}File too large
// CHECK-NOT: {{.}}
// STREAM: fp8-opt: error: {{.*}}File too large
// STREAM-NOT: {{.}}
// OLD: old

func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
