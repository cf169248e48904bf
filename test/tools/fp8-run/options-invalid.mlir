// RUN: fp8-run --help | FileCheck %s --check-prefix=HELP
// RUN: not fp8-run 2>&1 | FileCheck %s --check-prefix=NOFILE
// RUN: not fp8-run %s %s 2>&1 | FileCheck %s --check-prefix=TWOFILES
// RUN: not fp8-run %t.absent.mlir 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not fp8-run %s --input=x 2>&1 | FileCheck %s --check-prefix=MISSPELT
// RUN: not fp8-run %s --nonsense 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not fp8-run %s --inputs= 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not fp8-run %s --entry=main --compile-to=nowhere 2>&1 | FileCheck %s --check-prefix=PHASE
// RUN: not fp8-run %s --recipe=fancy 2>&1 | FileCheck %s --check-prefix=RECIPE
// RUN: not fp8-run %s --target=abacus 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not fp8-run %s --fp8-remarks=csv:-  2>&1 | FileCheck %s --check-prefix=REMARKS
// RUN: not fp8-run %s --max-padding=much 2>&1 | FileCheck %s --check-prefix=PADDING
// RUN: echo "func.func @f( {" > %t.syntax.mlir
// RUN: not fp8-run %t.syntax.mlir 2>&1 | FileCheck %s --check-prefix=SYNTAX

// HELP: USAGE: fp8-run FILE.mlir|FILE.so [options]
// NOFILE: {{^}}fp8-run: error: expected one input file, but got 0; see --help{{$}}
// TWOFILES: {{^}}fp8-run: error: expected one input file, but got 2; see --help{{$}}
// ABSENT: {{^}}fp8-run: error: cannot open input file '{{.*}}.absent.mlir': No such file or directory
// MISSPELT: {{^}}fp8-run: error: unknown option '--input=x'; did you mean '--inputs=x'?
// UNKNOWN: {{^}}fp8-run: error: unknown option '--nonsense'; see --help
// EMPTY: {{^}}fp8-run: error: expected a value after '--inputs='
// PHASE: error: {{.*}}nowhere
// RECIPE: error: {{.*}}fancy'
// RECIPE-NOT: {{.}}
// TARGET: error: {{.*}}abacus
// REMARKS: {{^}}fp8-run: error: expected remarks as json:FILE or text:FILE, but got 'csv:-'
// PADDING: {{^}}fp8-run: error: expected a number after '--max-padding=', but got 'much'
// SYNTAX: .syntax.mlir:1:14: error: expected

func.func @main() {
  return
}
