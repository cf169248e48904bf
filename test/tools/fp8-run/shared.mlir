// RUN: rm -rf %t && split-file %s %t
// RUN: %python %t/inputs.py %t
// UNSUPPORTED: sanitizers

// What was compiled before gives the same bytes.

// RUN: fp8-run %t/linear.mlir --recipe=mxfp8 --inputs=%t/linear.st --outputs=%t/expected.st
// RUN: fp8-compile %t/linear.mlir --recipe=mxfp8 -o %t/linear.so
// RUN: fp8-run %t/linear.so --inputs=%t/linear.st --outputs=%t/actual.st
// RUN: cmp %t/expected.st %t/actual.st
// RUN: fp8-run %t/linear.so --inputs=%t/linear.st --time | FileCheck %s --check-prefix=TIME
// TIME: {{^}}y: BF16 [4, 16]
// TIME-NEXT: {{^}}load: {{[0-9.]+}} ms
// TIME-NEXT: {{^}}run: min

// Which function, and what it takes.

// RUN: fp8-compile %t/several.mlir -o %t/several.so
// RUN: fp8-run %t/several.so --entry=scalars --inputs=%t/scalars.st | FileCheck %s --check-prefix=SCALARS
// RUN: fp8-run %t/several.so --entry=change --inputs=%t/change.st | FileCheck %s --check-prefix=CHANGE
// RUN: not fp8-run %t/several.so 2>&1 | FileCheck %s --check-prefix=WHICH
// RUN: not fp8-run %t/several.so --entry=none 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not fp8-run %t/several.so --entry=change 2>&1 | FileCheck %s --check-prefix=INPUTS
// RUN: not fp8-run %t/several.so --entry=join --inputs=%t/join.st 2>&1 | FileCheck %s --check-prefix=ABORT
// SCALARS: {{^}}half: BF16 [] min 0.75 max 0.75 values 0.75
// SCALARS-NEXT: {{^}}codes: F4 [2] min 0.5 max 6 values 0.5 6
// CHANGE: {{^}}m: F32 [2, 2] min -4 max -1 values -1 -2 -3 -4
// WHICH: {{^}}fp8-run: error: expected --entry=NAME, but the program has 'scalars', 'change', 'join'
// UNKNOWN: {{^}}fp8-run: error: expected a function 'none', but the program has 'scalars', 'change', 'join'
// INPUTS: {{^}}fp8-run: error: expected --inputs=FILE.safetensors with m: F32 [?, 2]
// ABORT: {{^}}fp8-run: error: expected the tensors of one pass over memory to have the same extents, but dimension #0 of operand #1 differs

// States are as they are for a program in MLIR.

// RUN: fp8-compile %t/state.mlir --recipe=delayed,amax_history_len=2 -o %t/state.so
// RUN: fp8-run %t/state.mlir --recipe=delayed,amax_history_len=2 --inputs=%t/state.st --steps=3 --state-out=%t/expected.state
// RUN: fp8-run %t/state.so --inputs=%t/state.st --steps=3 --state-out=%t/actual.state | FileCheck %s --check-prefix=STEPS
// RUN: cmp %t/expected.state %t/actual.state
// RUN: fp8-run %t/state.so --inputs=%t/state.st --steps=3 --state-in=%t/actual.state --freeze --state-out=%t/frozen.state
// RUN: cmp %t/expected.state %t/frozen.state
// RUN: not fp8-run %t/linear.so --inputs=%t/linear.st --state-out=%t/x.state 2>&1 | FileCheck %s --check-prefix=STATELESS
// STEPS: {{^}}y: F32 [3, 1, 1] min 16 max 31.25 values 16 16 31.25{{$}}
// STATELESS: error: expected a program with scaling state for '--state-out'

// On a GPU.

// RUN: fp8-compile %t/same.mlir --target=sm_90a -o %t/same.so
// RUN: env FP8_CUDA_DRIVER=emulator fp8-run %t/same.so --inputs=%t/same.st | FileCheck %s --check-prefix=GPU
// RUN: not env FP8_CUDA_DRIVER=%t-nothing fp8-run %t/same.so --inputs=%t/same.st 2>&1 | FileCheck %s --check-prefix=NOGPU
// GPU: {{^}}y: F32 [2] min 1 max 2 values 1 2
// NOGPU: {{^}}fp8-run: error: expected a CUDA driver, but got none

// What was decided when the program was compiled cannot be decided again.

// RUN: not fp8-run %t/same.so --recipe=current 2>&1 | FileCheck %s --check-prefix=COMPILED -DOPTION=--recipe=current
// RUN: not fp8-run %t/same.so --target=cpu 2>&1 | FileCheck %s --check-prefix=COMPILED -DOPTION=--target=cpu
// RUN: not fp8-run %t/same.so --compare=cpu 2>&1 | FileCheck %s --check-prefix=COMPILED -DOPTION=--compare=cpu
// RUN: not fp8-run %t/same.so --compile-to=host 2>&1 | FileCheck %s --check-prefix=COMPILED -DOPTION=--compile-to=host
// RUN: not fp8-run %t/same.so --stats 2>&1 | FileCheck %s --check-prefix=COMPILED -DOPTION=--stats
// RUN: not fp8-run %t/same.so --fp8-remarks=text:- 2>&1 | FileCheck %s --check-prefix=COMPILED -DOPTION=--fp8-remarks=text:-
// COMPILED: {{^}}fp8-run: error: expected a program in MLIR with '[[OPTION]]', but '{{.*}}same.so' is compiled already{{$}}

//--- linear.mlir
func.func @linear(%x: tensor<4x64xbf16> {fp8.name = "x"}, %w: tensor<64x16xbf16> {fp8.name = "w"})
    -> (tensor<4x16xbf16> {fp8.name = "y"}) {
  %zero = arith.constant dense<0.0> : tensor<4x16xf32>
  %0 = linalg.matmul ins(%x, %w : tensor<4x64xbf16>, tensor<64x16xbf16>)
                     outs(%zero : tensor<4x16xf32>) -> tensor<4x16xf32>
  %1 = arith.truncf %0 : tensor<4x16xf32> to tensor<4x16xbf16>
  return %1 : tensor<4x16xbf16>
}
//--- several.mlir
func.func @scalars(%s: bf16 {fp8.name = "s"}, %n: index {fp8.name = "n"}, %c: tensor<2xf4E2M1FN> {fp8.name = "c"})
    -> (bf16 {fp8.name = "half"}, tensor<2xf4E2M1FN> {fp8.name = "codes"}) {
  %half = arith.constant 0.5 : bf16
  %0 = arith.mulf %s, %half : bf16
  return %0, %c : bf16, tensor<2xf4E2M1FN>
}
func.func @change(%m: memref<?x2xf32> {fp8.name = "m"}) {
  linalg.map { arith.negf } ins(%m : memref<?x2xf32>) outs(%m : memref<?x2xf32>)
  return
}
func.func @join(%x: tensor<?xf32> {fp8.name = "x"}, %y: tensor<?xf32> {fp8.name = "y"}) -> tensor<?xf32> {
  %0 = linalg.add ins(%x, %y : tensor<?xf32>, tensor<?xf32>) outs(%x : tensor<?xf32>) -> tensor<?xf32>
  return %0 : tensor<?xf32>
}
//--- state.mlir
func.func @main(%s: f32 {fp8.name = "s"}, %w: tensor<16x1xf32> {fp8.name = "w", fp8.weight})
    -> (tensor<1x1xf32> {fp8.name = "y"}) {
  %empty = tensor.empty() : tensor<1x16xf32>
  %x = linalg.fill ins(%s : f32) outs(%empty : tensor<1x16xf32>) -> tensor<1x16xf32>
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %y = linalg.matmul {fp8.name = "l"} ins(%x, %w : tensor<1x16xf32>, tensor<16x1xf32>)
                     outs(%zero : tensor<1x1xf32>) -> tensor<1x1xf32>
  return %y : tensor<1x1xf32>
}
//--- same.mlir
func.func @same(%x: tensor<2xf32> {fp8.name = "x"}) -> (tensor<2xf32> {fp8.name = "y"}) {
  return %x : tensor<2xf32>
}
//--- inputs.py
import sys

import ml_dtypes
import numpy as np
from fp8 import tensors


def save(name, **arrays):
    tensors.save(f"{sys.argv[1]}/{name}.st", arrays)


rng = np.random.default_rng(0)
save("linear", x=rng.standard_normal((4, 64)).astype(ml_dtypes.bfloat16),
     w=rng.standard_normal((64, 16)).astype(ml_dtypes.bfloat16))
save("scalars", s=np.array(1.5, ml_dtypes.bfloat16), n=np.array(3), c=np.array([0.5, 6], ml_dtypes.float4_e2m1fn))
save("change", m=np.arange(1, 5, dtype=np.float32).reshape(2, 2))
save("join", x=np.ones(2, np.float32), y=np.ones(3, np.float32))
save("state", s=np.array([2, 1000, 4], np.float32), w=np.full((16, 1), 0.5, np.float32))
save("same", x=np.array([1, 2], np.float32))
