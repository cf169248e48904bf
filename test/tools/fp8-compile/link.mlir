// RUN: rm -rf %t && mkdir -p %t/empty %t/directory.so
// RUN: fp8-compile %s -o %t/lld.so --linker=ld.lld --rpath=/opt/somewhere
// RUN: llvm-readelf --dynamic %t/lld.so | FileCheck %s
// RUN: fp8-compile %s -o %t/bfd.so --linker=ld --rpath=/opt/somewhere
// RUN: llvm-readelf --dynamic %t/bfd.so | FileCheck %s

// What the program needs is found beside it, where it was, and where its user
// says.

// CHECK-DAG: (NEEDED) {{.*}}[libfp8rt.so]
// CHECK-DAG: (NEEDED) {{.*}}[libm.so.6]
// CHECK-DAG: (SONAME) {{.*}}[{{lld|bfd}}.so]
// CHECK-DAG: (RUNPATH) {{.*}}[$ORIGIN:{{.*}}/lib:/opt/somewhere]

// RUN: ldd %t/lld.so | FileCheck %s --check-prefix=FOUND
// FOUND-NOT: not found
// FOUND: libfp8rt.so => {{.*}}/lib/libfp8rt.so
// FOUND-NOT: not found

// RUN: not env PATH=%t/empty fp8-compile %s -o %t/x.so 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not fp8-compile %s -o %t/x.so --linker=%t/nowhere 2>&1 | FileCheck %s --check-prefix=NOWHERE
// RUN: not fp8-compile %s -o %t/nowhere/x.so 2>&1 | FileCheck %s --check-prefix=FOLDER
// RUN: not fp8-compile %s -o %t/directory.so 2>&1 | FileCheck %s --check-prefix=DIRECTORY
// RUN: not fp8-compile %s -o %t/x.so --header=%t/nowhere/x.h 2>&1 | FileCheck %s --check-prefix=FOLDER
// RUN: not fp8-compile %s --emit=obj -o %t/nowhere/x.o 2>&1 | FileCheck %s --check-prefix=FOLDER
// RUN: not fp8-compile %s --emit=llvm -o %t/nowhere/x.ll 2>&1 | FileCheck %s --check-prefix=FOLDER
// NONE: {{^}}fp8-compile: error: expected a linker (ld.lld or ld) in PATH, but got none; install lld or binutils, or name one with --linker=FILE{{$}}
// NOWHERE: {{^}}fp8-compile: error: expected a linker that can be run, but got '{{.*}}nowhere'{{$}}
// FOLDER: {{^}}fp8-compile: error: '{{.*}}nowhere/x.{{.*}}': No such file or directory{{$}}
// DIRECTORY: {{^}}fp8-compile: error: '{{.*}}directory.so': Is a directory{{$}}

// What was there stays, and nothing else is left, when the linker fails or the
// header cannot be written.

// RUN: echo old > %t/empty/x.so
// RUN: echo old > %t/empty/x.h
// RUN: not fp8-compile %s -o %t/empty/x.so --linker=false 2>&1 | FileCheck %s --check-prefix=FAILS
// RUN: ls %t/empty | count 2
// RUN: FileCheck %s --check-prefix=OLD --input-file=%t/empty/x.so
// RUN: FileCheck %s --check-prefix=OLD --input-file=%t/empty/x.h
// RUN: not fp8-compile %s -o %t/empty/x.so --header=/dev/full 2>&1 | FileCheck %s --check-prefix=FULL
// RUN: ls %t/empty | count 2
// RUN: FileCheck %s --check-prefix=OLD --input-file=%t/empty/x.so
// RUN: not fp8-compile %s -o %t/empty/x.so --header=%t/directory.so 2>&1 | FileCheck %s --check-prefix=DIRECTORY
// RUN: ls %t/empty | count 2
// RUN: FileCheck %s --check-prefix=OLD --input-file=%t/empty/x.so
// FULL: {{^}}fp8-compile: error: '/dev/full': No space left on device{{$}}
// FAILS: {{^}}fp8-compile: error: the linker {{.*}}false failed
// OLD: old

// What the linker calls itself and an error is left out: there is one error.

// RUN: printf '#!/bin/sh\necho "ld.lld: error: out of nuts"; exit 1\n' > %t/squirrel
// RUN: chmod +x %t/squirrel
// RUN: not fp8-compile %s -o %t/x.so --linker=%t/squirrel 2>&1 | FileCheck %s --check-prefix=NUTS
// NUTS: {{^}}fp8-compile: error: the linker {{.*}}squirrel failed: out of nuts{{$}}

// A link leads to the file that is written; a pipe is no file to replace; and
// a full disk is an error.

// RUN: echo old > %t/x.ll && ln -s x.ll %t/link.ll
// RUN: fp8-compile %s --emit=llvm -o %t/link.ll
// RUN: FileCheck %s --check-prefix=WRITTEN --input-file=%t/x.ll
// RUN: mkfifo %t/pipe
// RUN: bash -c 'fp8-compile %s --emit=llvm -o %t/pipe & FileCheck %s --check-prefix=WRITTEN < %t/pipe && wait $!'
// RUN: test -p %t/pipe
// RUN: bash -c 'fp8-compile %s --emit=llvm > /dev/full; test $? = 1' 2>&1 | FileCheck %s --check-prefix=DISK
// WRITTEN: define {{.*}} @{{.*}}_e(
// DISK: {{^}}fp8-compile: error: standard output: No space left on device{{$}}

func.func @e(%x: f32) -> f32 {
  %0 = math.exp %x : f32
  return %0 : f32
}
