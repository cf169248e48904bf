// RUN: %python %S/Inputs/tensors.py make %t.large arg0=I64::1099511627776
// RUN: not fp8-run %s --inputs=%t.large 2>&1 | FileCheck %s --check-prefix=LARGE
// RUN: %python %S/Inputs/tensors.py make %t.wraps arg0=I64::288230376151711744
// RUN: not fp8-run %s --inputs=%t.wraps 2>&1 | FileCheck %s --check-prefix=WRAPS
// RUN: %python %S/Inputs/tensors.py make %t.negative arg0=I64::-1
// RUN: not fp8-run %s --inputs=%t.negative 2>&1 | FileCheck %s --check-prefix=WRAPS
// RUN: %python %S/Inputs/tensors.py make %t.limited arg0=I64::1073741824
// RUN: not bash -c 'ulimit -v 4000000; exec "$@"' - fp8-run %s --inputs=%t.limited 2>&1 | FileCheck %s --check-prefix=LIMITED
// UNSUPPORTED: sanitizers

// Memory that there is not, or whose bytes cannot be counted, is an error of the
// call, also where it would be written to at once.

// LARGE: fp8-run: error: cannot allocate 70368744177664 bytes
// LARGE-NOT: {{.}}
// WRAPS: fp8-run: error: cannot allocate tensor<?x16xf32>: expected extents of fewer than 2^63 bytes
// WRAPS-NOT: {{.}}
// LIMITED: fp8-run: error: cannot allocate 68719476736 bytes
// LIMITED-NOT: {{.}}

func.func @f(%n: i64) -> tensor<?x16xf32> {
  %c = arith.index_cast %n : i64 to index
  %e = tensor.empty(%c) : tensor<?x16xf32>
  %z = arith.constant 0.0 : f32
  %f = linalg.fill ins(%z : f32) outs(%e : tensor<?x16xf32>) -> tensor<?x16xf32>
  return %f : tensor<?x16xf32>
}
