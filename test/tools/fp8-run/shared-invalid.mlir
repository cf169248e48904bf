// RUN: rm -rf %t && mkdir %t
// RUN: fp8-compile %s -o %t/good.so
// RUN: fp8-run %t/good.so | FileCheck %s
// UNSUPPORTED: sanitizers
// CHECK: result0: F32 [] min 1 max 1 values 1

// Files that are no whole program for this machine and library.

// RUN: not fp8-run %t/absent.so 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not fp8-run %t 2>&1 | FileCheck %s --check-prefix=DIRECTORY
// RUN: echo "not a program" > %t/text.so
// RUN: not fp8-run %t/text.so 2>&1 | FileCheck %s --check-prefix=TEXT
// RUN: %python %S/Inputs/damage.py %t/good.so %t
// RUN: not fp8-run %t/empty.so 2>&1 | FileCheck %s --check-prefix=TEXT
// RUN: not fp8-run %t/header.so 2>&1 | FileCheck %s --check-prefix=CUT
// RUN: not fp8-run %t/half.so 2>&1 | FileCheck %s --check-prefix=CUT
// RUN: not fp8-run %t/most.so 2>&1 | FileCheck %s --check-prefix=CUT
// RUN: not fp8-run %t/machine.so 2>&1 | FileCheck %s --check-prefix=MACHINE
// RUN: not fp8-run %t/older.so 2>&1 | FileCheck %s --check-prefix=VERSION
// RUN: not fp8-run %t/newer.so 2>&1 | FileCheck %s --check-prefix=VERSION
// RUN: not fp8-run %t/magic.so 2>&1 | FileCheck %s --check-prefix=PROGRAM
// RUN: not fp8-run %t/json.so 2>&1 | FileCheck %s --check-prefix=JSON
// RUN: not fp8-run %t/type.so 2>&1 | FileCheck %s --check-prefix=TYPE
// RUN: not fp8-run %fp8_build/lib/libfp8rt.so 2>&1 | FileCheck %s --check-prefix=PROGRAM
// RUN: fp8-compile %s --cpu=bdver4 -o %t/processor.so
// RUN: not fp8-run %t/processor.so 2>&1 | FileCheck %s --check-prefix=PROCESSOR
// ABSENT: {{^}}fp8-run: error: {{.*}}absent.so: cannot open: No such file or directory{{$}}
// DIRECTORY: fp8-run: error: {{.*}}Is a directory
// TEXT: {{^}}fp8-run: error: {{.*}}.so: expected a 64-bit ELF shared object{{$}}
// CUT: {{^}}fp8-run: error: {{.*}}.so: expected a whole file, but got one of {{[0-9]+}} bytes that was cut off{{$}}
// MACHINE: {{^}}fp8-run: error: {{.*}}.so: expected a program for this machine (ELF machine {{[0-9]+}}), but got one for 8{{$}}
// VERSION: {{^}}fp8-run: error: {{.*}}.so: expected a program for libfp8rt {{[0-9]+\.[0-9]+}} or an earlier minor version, but got one for {{.*}}; compile it again{{$}}
// PROGRAM: {{^}}fp8-run: error: {{.*}}.so: expected a program made by fp8-compile, but the file has no fp8rt_program{{$}}
// JSON: {{^}}fp8-run: error: {{.}}
// TYPE: {{^}}fp8-run: error: expected arguments and results in the program's manifest to have a name and a type{{$}}
// PROCESSOR: {{^}}fp8-run: error: expected a processor like bdver4, for which the program was compiled, but this one lacks {{.*}}fma4

func.func @one() -> f32 {
  %0 = arith.constant 1.0 : f32
  return %0 : f32
}
