// RUN: not fp8-run %s --entry=f 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not fp8-run %s --entry=f --inputs=%t.absent 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not fp8-run %s --entry=f --inputs=%S 2>&1 | FileCheck %s --check-prefix=DIRECTORY
// RUN: %python %S/Inputs/tensors.py make %t.names x=F32:3x2:0 v=F32::0 u=F32::0
// RUN: not fp8-run %s --entry=f --inputs=%t.names 2>&1 | FileCheck %s --check-prefix=NAMES
// RUN: %python %S/Inputs/tensors.py make %t.missing x=F32:3x2:0
// RUN: not fp8-run %s --entry=f --inputs=%t.missing 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: %python %S/Inputs/tensors.py make %t.extra x=F32:3x2:0 w=I32::0 z=F32::0
// RUN: not fp8-run %s --entry=f --inputs=%t.extra 2>&1 | FileCheck %s --check-prefix=EXTRA
// RUN: not fp8-run %s --entry=noargs --inputs=%t.missing 2>&1 | FileCheck %s --check-prefix=NOARGS
// RUN: %python %S/Inputs/tensors.py make %t.dtype x=BF16:3x2:0 w=I32::0
// RUN: not fp8-run %s --entry=f --inputs=%t.dtype 2>&1 | FileCheck %s --check-prefix=DTYPE
// RUN: %python %S/Inputs/tensors.py make %t.rank x=F32:6:0 w=I32::0
// RUN: not fp8-run %s --entry=f --inputs=%t.rank 2>&1 | FileCheck %s --check-prefix=RANK
// RUN: %python %S/Inputs/tensors.py make %t.shape x=F32:3x4:0 w=I32::0
// RUN: not fp8-run %s --entry=f --inputs=%t.shape 2>&1 | FileCheck %s --check-prefix=SHAPE
// RUN: %python %S/Inputs/tensors.py make %t.scalar x=F32:3x2:0 w=I32:1:0
// RUN: not fp8-run %s --entry=f --inputs=%t.scalar 2>&1 | FileCheck %s --check-prefix=SCALAR
// RUN: %python %S/Inputs/tensors.py raw %t.lie '{"x":{"dtype":"F32","shape":[3,2],"data_offsets":[0,20]}}' 20
// RUN: not fp8-run %s --entry=f --inputs=%t.lie 2>&1 | FileCheck %s --check-prefix=LIE
// RUN: %python %S/Inputs/tensors.py raw %t.long '{}' 0 1000000000000
// RUN: not fp8-run %s --entry=f --inputs=%t.long 2>&1 | FileCheck %s --check-prefix=LONG
// RUN: %python %S/Inputs/tensors.py raw %t.bool '{"arg0":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}}'
// RUN: printf '\001\002' >> %t.bool
// RUN: not fp8-run %s --entry=bools --inputs=%t.bool 2>&1 | FileCheck %s --check-prefix=BOOL
// RUN: %python %S/Inputs/tensors.py make %t.codes arg0=U8:3x4:15
// RUN: not fp8-run %s --entry=codes --inputs=%t.codes 2>&1 | FileCheck %s --check-prefix=CODE
// RUN: %python %S/Inputs/tensors.py make %t.wide arg0=F4:3x2:1
// RUN: not fp8-run %s --entry=codes --inputs=%t.wide 2>&1 | FileCheck %s --check-prefix=WIDE
// RUN: %python %S/Inputs/tensors.py raw %t.odd '{"arg0":{"dtype":"F4","shape":[2,3],"data_offsets":[0,3]}}' 3
// RUN: not fp8-run %s --entry=codes --inputs=%t.odd 2>&1 | FileCheck %s --check-prefix=ODD
// RUN: not fp8-run %s --entry=odd --inputs=%t.codes 2>&1 | FileCheck %s --check-prefix=PORT

// NONE: {{^}}fp8-run: error: expected --inputs=FILE.safetensors with x: F32 [?, 2], w: I32 []{{$}}
// ABSENT: {{^}}fp8-run: error: {{.*}}.absent: cannot open: No such file or directory
// DIRECTORY: {{^}}fp8-run: error: {{.*}}fp8-run: expected a regular file
// NAMES: {{^}}fp8-run: error: {{.*}}.names: expected one tensor for each argument, but got none for 'w' and found no argument for 'u', 'v'{{$}}
// MISSING: {{^}}fp8-run: error: {{.*}}.missing: expected one tensor for each argument, but got none for 'w'{{$}}
// EXTRA: {{^}}fp8-run: error: {{.*}}.extra: expected one tensor for each argument, but found no argument for 'z'{{$}}
// NOARGS: {{^}}fp8-run: error: {{.*}}.missing: expected one tensor for each argument, but found no argument for 'x'{{$}}
// DTYPE: {{^}}fp8-run: error: {{.*}}.dtype: expected tensor 'x' to be F32 [?, 2], but got BF16 [3, 2]
// RANK: {{^}}fp8-run: error: {{.*}}.rank: expected tensor 'x' to be F32 [?, 2], but got F32 [6]
// SHAPE: {{^}}fp8-run: error: {{.*}}.shape: expected tensor 'x' to be F32 [?, 2], but got F32 [3, 4]
// SCALAR: {{^}}fp8-run: error: {{.*}}.scalar: expected tensor 'w' to be I32 [], but got I32 [1]
// LIE: {{^}}fp8-run: error: {{.*}}.lie: tensor 'x': expected data_offsets to span 24 bytes ([3, 2] of F32), but got 20
// LONG: {{^}}fp8-run: error: {{.*}}.long: expected a header of at most 100000000 bytes, but its length field says 1000000000000
// BOOL: {{^}}fp8-run: error: {{.*}}.bool: expected tensor 'arg0' to hold codes below 2, but element 1 is 2
// CODE: {{^}}fp8-run: error: {{.*}}.codes: expected tensor 'arg0' to be F4 [3, 4], but got U8 [3, 4]
// WIDE: {{^}}fp8-run: error: {{.*}}.wide: expected tensor 'arg0' to be F4 [3, 4], but got F4 [3, 2]
// ODD: {{^}}fp8-run: error: {{.*}}.odd: tensor 'arg0': expected a last dimension that is a multiple of 2, as elements share bytes, but got [2, 3] of F4
// PORT: error: expected argument 'arg0' to have a last dimension of an even size, of which two codes of f4E2M1FN share a byte, but got 'tensor<2x3xf4E2M1FN>'

func.func @f(%x: tensor<?x2xf32> {fp8.name = "x"}, %w: i32 {fp8.name = "w"})
    -> tensor<?x2xf32> {
  return %x : tensor<?x2xf32>
}

func.func @noargs() {
  return
}

func.func @bools(%x: tensor<2xi1>) -> tensor<2xi1> {
  return %x : tensor<2xi1>
}

func.func @codes(%x: tensor<3x4xf4E2M1FN>) -> tensor<3x4xf4E2M1FN> {
  return %x : tensor<3x4xf4E2M1FN>
}

func.func @odd(%x: tensor<2x3xf4E2M1FN>) {
  return
}
