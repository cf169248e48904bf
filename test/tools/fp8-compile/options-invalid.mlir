// RUN: fp8-compile --help | FileCheck %s --check-prefix=HELP
// RUN: not fp8-compile 2>&1 | FileCheck %s --check-prefix=NOFILE
// RUN: not fp8-compile %s 2>&1 | FileCheck %s --check-prefix=NOOUTPUT
// RUN: not fp8-compile %t.absent.mlir -o %t.so 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not fp8-compile %s -o 2>&1 | FileCheck %s --check-prefix=NOVALUE
// RUN: not fp8-compile %s -o - 2>&1 | FileCheck %s --check-prefix=STDOUT
// RUN: not fp8-compile %s --emits=so 2>&1 | FileCheck %s --check-prefix=MISSPELT
// RUN: not fp8-compile %s --emit=asm 2>&1 | FileCheck %s --check-prefix=EMIT
// RUN: not fp8-compile %s --emit=ptx 2>&1 | FileCheck %s --check-prefix=CPU
// RUN: not fp8-compile %s --cpu=abacus -o %t.so 2>&1 | FileCheck %s --check-prefix=PROCESSOR
// RUN: not fp8-compile %s --opt-level=4 -o %t.so 2>&1 | FileCheck %s --check-prefix=LEVEL
// RUN: not fp8-compile %s --target=abacus -o %t.so 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not fp8-compile %s --target=sm_70 -o %t.so 2>&1 | FileCheck %s --check-prefix=ARCH
// RUN: not fp8-compile %s --recipe=fancy -o %t.so 2>&1 | FileCheck %s --check-prefix=RECIPE
// RUN: not fp8-compile %s --target=sm_90a --kernel-format=fatbin -o %t.so 2>&1 | FileCheck %s --check-prefix=FORMAT
// RUN: not fp8-compile %s --compile-to=import -o %t.so 2>&1 | FileCheck %s --check-prefix=USE
// RUN: not fp8-compile %s --target=sm_90a --emit=ptx --kernel-cache=off 2>&1 | FileCheck %s --check-prefix=CACHE
// RUN: not fp8-compile %s --emit=mlir --compile-to=nowhere 2>&1 | FileCheck %s --check-prefix=PHASE
// RUN: not fp8-compile %s -o %t.h 2>&1 | FileCheck %s --check-prefix=SAME
// RUN: not fp8-compile %s --name=a/b -o %t.so 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not fp8-compile %s --name=int -o %t.so 2>&1 | FileCheck %s --check-prefix=KEYWORD
// RUN: not fp8-compile %s --kernel-table=%t.absent.json -o %t.so 2>&1 | FileCheck %s --check-prefix=TABLE
// RUN: not fp8-compile %s --kernel-table=%S -o %t.so 2>&1 | FileCheck %s --check-prefix=DIRECTORY

// HELP: USAGE: fp8-compile FILE.mlir -o FILE [options]
// NOFILE: {{^}}fp8-compile: error: expected one input file, but got 0; see --help{{$}}
// NOOUTPUT: {{^}}fp8-compile: error: expected -o FILE; see --help{{$}}
// ABSENT: {{^}}fp8-compile: error: cannot open input file '{{.*}}.absent.mlir': No such file or directory
// NOVALUE: {{^}}fp8-compile: error: expected a value after '-o'
// STDOUT: {{^}}fp8-compile: error: expected -o FILE with --emit=so, but got the standard output
// MISSPELT: {{^}}fp8-compile: error: unknown option '--emits=so'; did you mean '--emit=so'?
// EMIT: {{^}}fp8-compile: error: expected so, obj, llvm, ptx, cubin or mlir after '--emit=', but got 'asm'
// CPU: {{^}}fp8-compile: error: expected --target=sm_90a or sm_100a or sm_89 or sm_120a or sm_121a or sm_80 with --emit=ptx or cubin
// NAME: {{^}}fp8-compile: error: expected an identifier of C after '--name=', but got 'a/b'
// KEYWORD: {{^}}fp8-compile: error: expected an identifier of C after '--name=', but got 'int'
// TABLE: error: tuning table '{{.*}}.absent.json': No such file or directory
// DIRECTORY: error: tuning table '{{.*}}fp8-compile': Is a directory
// PROCESSOR: {{^}}fp8-compile: error: expected native or a processor that LLVM knows, such as x86-64-v3, but got 'abacus'
// LEVEL: {{^}}fp8-compile: error: expected option 'opt-level' to be 0, 1, 2 or 3, but got '4'
// TARGET: error: expected target to be one of cpu, sm_90a, sm_100a, sm_89, sm_120a, sm_121a, sm_80, but got 'abacus'
// ARCH: error: expected target to be one of cpu, sm_90a, sm_100a, sm_89, sm_120a, sm_121a, sm_80, but got 'sm_70'
// RECIPE: error: expected a recipe ({{.*}}), but got 'fancy'
// FORMAT: error: expected kernel-format to be auto, cubin or ptx, but got 'fatbin'
// USE: {{^}}fp8-compile: error: expected --emit=mlir with '--compile-to=import'
// CACHE: {{^}}fp8-compile: error: expected --emit=so, obj, llvm, cubin or mlir with '--kernel-cache=off'
// PHASE: error: expected a phase ({{.*}}), but got 'nowhere'
// SAME: {{^}}fp8-compile: error: expected another name than '{{.*}}.h' for the header, with --header=FILE

func.func @twice(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = arith.addf %x, %x : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}
