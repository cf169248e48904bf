// RUN: %python %S/Inputs/tensors.py make %t.in s=F32::2 w=F32:16x1:0.5
// RUN: fp8-run %s --entry=main --recipe=delayed,amax_history_len=4 --inputs=%t.in --state-out=%t.state | FileCheck %s --check-prefix=MADE
// MADE: y: F32 [1, 1]

// Options that need a state, in a program that has none.

// RUN: not fp8-run %s --entry=main --recipe=current --inputs=%t.in --state-in=%t.state 2>&1 | FileCheck %s --check-prefix=STATELESS
// RUN: not fp8-run %s --entry=main --inputs=%t.in --state-out=%t.none 2>&1 | FileCheck %s --check-prefix=STATELESS
// RUN: not fp8-run %s --entry=main --inputs=%t.in --freeze 2>&1 | FileCheck %s --check-prefix=STATELESS
// RUN: not test -e %t.none
// STATELESS: {{^}}fp8-run: error: expected a program with scaling state for '--{{state-in|state-out|freeze}}', but no tensor is quantized under a recipe with state, such as delayed{{$}}
// RUN: not fp8-run %s --entry=main --recipe=delayed --inputs=%t.in --state-strict 2>&1 | FileCheck %s --check-prefix=STRICTLY
// STRICTLY: {{^}}fp8-run: error: expected --state-in=FILE with --state-strict{{$}}
// RUN: not fp8-run %s --entry=main --recipe=delayed --inputs=%t.in --state-in= 2>&1 | FileCheck %s --check-prefix=EMPTY
// EMPTY: {{^}}fp8-run: error: expected a value after '--state-in='{{$}}

// Files that are no state of this program.

// RUN: not fp8-run %s --entry=main --recipe=delayed,amax_history_len=4 --inputs=%t.in --state-in=%t.absent 2>&1 | FileCheck %s --check-prefix=ABSENT
// ABSENT: {{^}}fp8-run: error: {{.*}}.absent: cannot open: No such file or directory{{$}}
// RUN: not fp8-run %s --entry=main --recipe=delayed,amax_history_len=4 --inputs=%t.in --state-in=%t.in 2>&1 | FileCheck %s --check-prefix=TENSORS
// TENSORS: {{^}}fp8-run: error: {{.*}}.in: expected a scaling state, but the metadata has no fp8.scaling_state.version{{$}}
// RUN: head -c 600 %t.state > %t.cut
// RUN: not fp8-run %s --entry=main --recipe=delayed,amax_history_len=4 --inputs=%t.in --state-in=%t.cut 2>&1 | FileCheck %s --check-prefix=CUT
// CUT: {{^}}fp8-run: error: {{.*}}.cut: {{.+}}
// RUN: %python %S/../fp8-state/Inputs/state.py %t.version version=3
// RUN: not fp8-run %s --entry=main --recipe=delayed,amax_history_len=4 --inputs=%t.in --state-in=%t.version 2>&1 | FileCheck %s --check-prefix=VERSION
// VERSION: .version: expected version 1 or 2 of a scaling state, but got '3'{{$}}
// RUN: %python %S/../fp8-state/Inputs/state.py %t.other
// RUN: not fp8-run %s --entry=main --recipe=delayed,amax_history_len=4 --inputs=%t.in --state-in=%t.other 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: .other: expected the state of this program, but no slot has a name in common{{$}}
// RUN: %python %S/../fp8-state/Inputs/state.py %t.nan slots=l.x,l.w scale.1=nan
// RUN: not fp8-run %s --entry=main --recipe=delayed,amax_history_len=4 --inputs=%t.in --state-in=%t.nan 2>&1 | FileCheck %s --check-prefix=NAN
// NAN: .nan: slot 'l.w': expected a scale of at least 0, but got nan{{$}}
// RUN: not fp8-run %s --entry=main --recipe=delayed,amax_history_len=4,margin=1 --inputs=%t.in --state-in=%t.state 2>&1 | FileCheck %s --check-prefix=RECIPE
// RECIPE: .state: expected margin to be 1, but got 0{{$}}
// RUN: not fp8-run %s --entry=main --recipe=delayed,amax_history_len=5 --inputs=%t.in --state-in=%t.state --state-strict 2>&1 | FileCheck %s --check-prefix=STRICT
// STRICT: {{^}}fp8-run: error: {{.*}}.state: expected no difference, but amax_history_len: expected 5, but got 4{{$}}

// A run that fails, in the last step or because a file cannot be written, leaves
// the state as it was.

// RUN: cp %t.state %t.before
// RUN: %python %S/Inputs/tensors.py make %t.steps s=F32:3:1,1,-1 w=F32:16x1:0.5
// RUN: not fp8-run %s --entry=asserts --recipe=delayed,amax_history_len=4 --inputs=%t.steps --steps=3 --state-in=%t.state --state-out=%t.state 2>&1 | FileCheck %s --check-prefix=ABORT
// ABORT: fp8-run: error: expected s to be positive
// RUN: not fp8-run %s --entry=main --recipe=delayed,amax_history_len=4 --inputs=%t.in --state-in=%t.state --state-out=%t.state --outputs=%t.none/out 2>&1 | FileCheck %s --check-prefix=OUTPUTS
// OUTPUTS: .none/out: cannot open its directory
// RUN: cmp %t.before %t.state
// RUN: not fp8-run %s --entry=main --recipe=delayed,amax_history_len=4 --inputs=%t.in --state-out=%t.none/state 2>&1 | FileCheck %s --check-prefix=DIRECTORY
// DIRECTORY: {{^}}fp8-run: error: {{.*}}.none/state: cannot open its directory: No such file or directory{{$}}

// A state that is an argument as it is written needs the table that describes it.

// RUN: not fp8-run %s --entry=opaque 2>&1 | FileCheck %s --check-prefix=TABLE
// TABLE: {{^}}fp8-run: error: expected a module with the attribute 'fp8.state', since 'opaque' takes a state{{$}}

func.func @main(%s: f32 {fp8.name = "s"}, %w: tensor<16x1xf32> {fp8.name = "w", fp8.weight})
    -> (tensor<1x1xf32> {fp8.name = "y"}) {
  %empty = tensor.empty() : tensor<1x16xf32>
  %x = linalg.fill ins(%s : f32) outs(%empty : tensor<1x16xf32>) -> tensor<1x16xf32>
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %y = linalg.matmul {fp8.name = "l"} ins(%x, %w : tensor<1x16xf32>, tensor<16x1xf32>)
                     outs(%zero : tensor<1x1xf32>) -> tensor<1x1xf32>
  return %y : tensor<1x1xf32>
}

func.func @asserts(%s: f32 {fp8.name = "s"}, %w: tensor<16x1xf32> {fp8.name = "w", fp8.weight})
    -> (tensor<1x1xf32> {fp8.name = "y"}) {
  %y = func.call @main(%s, %w) : (f32, tensor<16x1xf32>) -> tensor<1x1xf32>
  %zero = arith.constant 0.0 : f32
  %positive = arith.cmpf ogt, %s, %zero : f32
  cf.assert %positive, "expected s to be positive"
  return %y : tensor<1x1xf32>
}

func.func @opaque(%state: !fp8.state) {
  return
}
