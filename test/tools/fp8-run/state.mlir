// RUN: %python %S/Inputs/tensors.py make %t.all s=F32:3:2,1000,4 w=F32:16x1:0.5
// RUN: fp8-run %s --entry=main --recipe=delayed,amax_history_len=2 --inputs=%t.all --steps=3 --state-out=%t.state | FileCheck %s --check-prefix=STEPS
// RUN: fp8-state print %t.state --history | FileCheck %s --check-prefix=STATE --match-full-lines

// Step 0 has the scale of its own 2, and step 1 that again, under which 1000 saturates, and step 2
// that of 1000, under which 4 becomes 1.75 / 0.448.

// STEPS: {{^}}y: F32 [3, 1, 1] min 16 max 31.25 values 16 16 31.25{{$}}
// STATE:      {{.*}}.state: version 1, steps 3, slots 2
// STATE-NEXT: recipe: delayed,amax_history_len=2,amax_compute_algo=max,margin=0,reduce_amax=true,compat=te_fused,pow2=false,initial=auto
// STATE-NEXT: slot  format  role   operand     scale  last amax  recorded  non-finite  underflow  saturated
// STATE-NEXT: l.x   e4m3    fprop  activation  0.448          4         3           0          0          0
// STATE-NEXT: l.w   e4m3    fprop  weight        896        0.5         3           0          0          0
// STATE-NEXT: l.x: 4
// STATE-NEXT: l.w: 0.5

// In two processes it is the same, to the byte, and so it is when runs are
// measured. A run without --steps is one step.

// RUN: %python %S/Inputs/tensors.py make %t.first s=F32:2:2,1000 w=F32:16x1:0.5
// RUN: %python %S/Inputs/tensors.py make %t.second s=F32::4 w=F32:16x1:0.5
// RUN: fp8-run %s --entry=main --recipe=delayed,amax_history_len=2 --inputs=%t.first --steps=2 --state-out=%t.half
// RUN: fp8-run %s --entry=main --recipe=delayed,amax_history_len=2 --inputs=%t.second --state-in=%t.half --state-out=%t.resumed --time | FileCheck %s --check-prefix=RESUMED
// RUN: cmp %t.state %t.resumed
// RESUMED: {{^}}y: F32 [1, 1] min 31.25 max 31.25 values 31.25{{$}}

// Evaluation uses the scales and leaves the state alone.

// RUN: fp8-run %s --entry=main --recipe=delayed,amax_history_len=2 --inputs=%t.first --steps=2 --freeze --state-in=%t.half --state-out=%t.frozen | FileCheck %s --check-prefix=FROZEN
// RUN: cmp %t.half %t.frozen
// FROZEN: {{^}}y: F32 [2, 1, 1] min 15.625 max 8000 values 15.625 8000{{$}}

// Statistics are also those of the slots.

// RUN: fp8-run %s --entry=main --recipe=delayed,amax_history_len=2 --inputs=%t.all --steps=3 --stats | FileCheck %s --check-prefix=STATS
// STATS: {{^}}tensor {{ *}}amax
// STATS-NEXT: {{^}}l.x {{ *}}1000 {{ *}}0.000 {{ *}}33.333 {{ *}}
// STATS: {{^}}slot {{ *}}format
// STATS-NEXT: {{^}}l.x {{.*}} 16{{$}}
// STATS-NEXT: {{^}}l.w {{.*}} 0{{$}}

// A program that grew finds its slots by name, wherever they are.

// RUN: %python %S/Inputs/tensors.py make %t.both s=F32::4 v=F32:16x1:0.25 w=F32:16x1:0.5
// RUN: fp8-run %s --entry=grown --recipe=delayed,amax_history_len=3 --inputs=%t.both --state-in=%t.half --state-out=%t.grown 2> %t.err | FileCheck %s --check-prefix=GROWN
// RUN: FileCheck %s --check-prefix=WARN --match-full-lines --input-file=%t.err
// RUN: not fp8-state compare %t.resumed %t.grown | FileCheck %s --check-prefix=COMPARE --match-full-lines
// GROWN: {{^}}y: F32 [1, 1] min 31.25 max 31.25 values 31.25{{$}}
// WARN:      fp8-run: warning: {{.*}}.half: amax_history_len: expected 3, but got 2
// WARN-NEXT: fp8-run: warning: {{.*}}.half: slot 'k.x' is missing
// WARN-NEXT: fp8-run: warning: {{.*}}.half: slot 'k.w' is missing
// WARN-NOT:  {{.}}
// COMPARE:      state: amax_history_len 2 and 3
// COMPARE-NEXT: slot 'k.x': only in {{.*}}.grown
// COMPARE-NEXT: slot 'k.w': only in {{.*}}.grown
// COMPARE-NOT:  {{.}}

// RUN: fp8-run %s --entry=main --recipe=delayed,amax_history_len=3 --inputs=%t.second --state-in=%t.grown 2>&1 | FileCheck %s --check-prefix=SHRUNK
// SHRUNK: {{^}}fp8-run: warning: {{.*}}.grown: slot 'k.x' is extra{{$}}
// SHRUNK-NEXT: {{^}}fp8-run: warning: {{.*}}.grown: slot 'k.w' is extra{{$}}
// SHRUNK-NOT: warning

// What a pass has made of a program runs as well.

// RUN: fp8-opt %s --fp8-pipeline="recipe=delayed,amax_history_len=2 to=scaling" -o %t.scaled.mlir
// RUN: fp8-run %t.scaled.mlir --entry=main --inputs=%t.second --state-in=%t.half --state-out=%t.scaled 2>&1 | FileCheck %s --check-prefix=SCALED
// RUN: fp8-state compare %t.state %t.scaled --slot=l.*
// SCALED: {{^}}y: F32 [1, 1] min 31.25

func.func @main(%s: f32 {fp8.name = "s"}, %w: tensor<16x1xf32> {fp8.name = "w", fp8.weight})
    -> (tensor<1x1xf32> {fp8.name = "y"}) {
  %empty = tensor.empty() : tensor<1x16xf32>
  %x = linalg.fill ins(%s : f32) outs(%empty : tensor<1x16xf32>) -> tensor<1x16xf32>
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %y = linalg.matmul {fp8.name = "l"} ins(%x, %w : tensor<1x16xf32>, tensor<16x1xf32>)
                     outs(%zero : tensor<1x1xf32>) -> tensor<1x1xf32>
  return %y : tensor<1x1xf32>
}

func.func @grown(%s: f32 {fp8.name = "s"}, %v: tensor<16x1xf32> {fp8.name = "v", fp8.weight},
                 %w: tensor<16x1xf32> {fp8.name = "w", fp8.weight})
    -> (tensor<1x1xf32> {fp8.name = "z"}, tensor<1x1xf32> {fp8.name = "y"}) {
  %empty = tensor.empty() : tensor<1x16xf32>
  %x = linalg.fill ins(%s : f32) outs(%empty : tensor<1x16xf32>) -> tensor<1x16xf32>
  %negative = arith.negf %x : tensor<1x16xf32>
  %zero = arith.constant dense<0.0> : tensor<1x1xf32>
  %z = linalg.matmul {fp8.name = "k"} ins(%negative, %v : tensor<1x16xf32>, tensor<16x1xf32>)
                     outs(%zero : tensor<1x1xf32>) -> tensor<1x1xf32>
  %y = linalg.matmul {fp8.name = "l"} ins(%x, %w : tensor<1x16xf32>, tensor<16x1xf32>)
                     outs(%zero : tensor<1x1xf32>) -> tensor<1x1xf32>
  return %z, %y : tensor<1x1xf32>, tensor<1x1xf32>
}
