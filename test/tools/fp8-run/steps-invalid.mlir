// RUN: not fp8-run %s --steps=0 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not fp8-run %s --steps=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not fp8-run %s --steps=many 2>&1 | FileCheck %s --check-prefix=WORD
// RUN: not fp8-run %s --steps=99999999999999999999 2>&1 | FileCheck %s --check-prefix=LARGE
// ZERO: {{^}}fp8-run: error: expected an integer of at least 1 after '--steps=', but got '0'{{$}}
// NEGATIVE: error: expected an integer of at least 1 after '--steps=', but got '-1'{{$}}
// WORD: error: expected an integer of at least 1 after '--steps=', but got 'many'{{$}}
// LARGE: error: expected an integer of at least 1 after '--steps=', but got '99999999999999999999'{{$}}

// RUN: %python %S/Inputs/tensors.py make %t.number x=F32:4x2:0 n=I64::1
// RUN: not fp8-run %s --inputs=%t.number --steps=3 2>&1 | FileCheck %s --check-prefix=NUMBER
// NUMBER: {{^}}fp8-run: error: {{.*}}.number: expected tensor 'x' to be F32 [2], or F32 [3, 2] for 3 steps, but got F32 [4, 2]{{$}}
// RUN: %python %S/Inputs/tensors.py make %t.slice x=F32:3x4:0 n=I64::1
// RUN: not fp8-run %s --inputs=%t.slice --steps=3 2>&1 | FileCheck %s --check-prefix=SLICE
// SLICE: expected tensor 'x' to be F32 [2], or F32 [3, 2] for 3 steps, but got F32 [3, 4]{{$}}
// RUN: %python %S/Inputs/tensors.py make %t.dtype x=BF16:3x2:0 n=I64::1
// RUN: not fp8-run %s --inputs=%t.dtype --steps=3 2>&1 | FileCheck %s --check-prefix=DTYPE
// DTYPE: expected tensor 'x' to be F32 [2], or F32 [3, 2] for 3 steps, but got BF16 [3, 2]{{$}}
// RUN: not fp8-run %s --steps=3 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: expected --inputs=FILE.safetensors with x: F32 [2], n: I64 []{{$}}
// RUN: %python %S/Inputs/tensors.py make %t.without x=F32:3x2:0 n=I64::1
// RUN: not fp8-run %s --inputs=%t.without 2>&1 | FileCheck %s --check-prefix=WITHOUT
// WITHOUT: expected tensor 'x' to be F32 [2], but got F32 [3, 2]{{$}}

// Nothing is written when the extents change on the way.

// RUN: %python %S/Inputs/tensors.py make %t.extent x=F32:2:1 n=I64:4:3,3,4,3
// RUN: rm -f %t.out
// RUN: not fp8-run %s --inputs=%t.extent --steps=4 --outputs=%t.out 2>&1 | FileCheck %s --check-prefix=EXTENT
// RUN: not test -e %t.out
// EXTENT: {{^}}fp8-run: error: expected result 'y' to have the same shape in every step, but got F32 [3] in step 0 and F32 [4] in step 2{{$}}

// RUN: %python %S/Inputs/tensors.py make %t.memory x=F32:2:1 n=I64::1000
// RUN: not fp8-run %s --inputs=%t.memory --steps=9000000000000000000 2>&1 | FileCheck %s --check-prefix=MEMORY
// MEMORY: {{^}}fp8-run: error: cannot allocate F32 [9000000000000000000, 1000] for result 'y'{{$}}

func.func @main(%x: tensor<2xf32> {fp8.name = "x"}, %n: index {fp8.name = "n"})
    -> (tensor<?xf32> {fp8.name = "y"}) {
  %zero = arith.constant 0 : index
  %first = tensor.extract %x[%zero] : tensor<2xf32>
  %empty = tensor.empty(%n) : tensor<?xf32>
  %y = linalg.fill ins(%first : f32) outs(%empty : tensor<?xf32>) -> tensor<?xf32>
  return %y : tensor<?xf32>
}
