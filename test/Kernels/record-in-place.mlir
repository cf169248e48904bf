// RUN: fp8-opt %s --fp8-record-in-place | FileCheck %s
// RUN: fp8-opt %s --fp8-record-in-place --convert-fp8-to-linalg --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" --canonicalize | FileCheck %s --check-prefix=BUFFERS

#x = #fp8_gpu.argument<name = "x", element = bf16, rank = 2, access = read, alignment = 2>
#codes = #fp8_gpu.argument<name = "codes", element = f8E4M3FN, rank = 2, access = write, alignment = 1>
#amax = #fp8_gpu.argument<name = "amax", element = f32, rank = 2, access = raise, alignment = 4>
#other = #fp8_gpu.argument<name = "other", element = f32, rank = 2, access = raise, alignment = 4>
#updated = #fp8_gpu.argument<name = "amax", element = f32, rank = 2, access = update, alignment = 4>
#cast = #fp8_gpu.launch<arguments = [#x, #codes, #amax], extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>
#both = #fp8_gpu.launch<arguments = [#x, #amax, #other], extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>
#measure = #fp8_gpu.launch<arguments = [#x, #amax], extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>
#update = #fp8_gpu.launch<arguments = [#x, #updated], extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>

!x = tensor<8x8xbf16>
!codes = tensor<8x8xf8E4M3FN>
!one = tensor<1x1xf32>

//===----------------------------------------------------------------------===//
// In place
//===----------------------------------------------------------------------===//

// The kernel raises the slot's own amax; a constant slot is where it is needed.

// CHECK-LABEL: func.func @constant_slot
// CHECK-SAME:  %[[X:.+]]: tensor<8x8xbf16>, %[[STATE:.+]]: !fp8.state
// CHECK:       %[[SLOT:.+]] = arith.constant 3 : index
// CHECK-NEXT:  %[[SO_FAR:.+]] = fp8.read_amax %[[STATE]][%[[SLOT]]] : tensor<1x1xf32>
// CHECK-NEXT:  %[[R:.+]]:2 = fp8_gpu.launch @kernels::@cast #{{.+}} ins(%[[X]] : tensor<8x8xbf16>) outs(%{{.+}}, %[[SO_FAR]] :
// CHECK-NEXT:  fp8.record_amax %[[R]]#1, %[[STATE]][%[[SLOT]]] in_place : tensor<1x1xf32>
// CHECK-NOT:   fp8.record_amax
// CHECK:       return %[[R]]#0

// Which is all that is left of it.

// BUFFERS-LABEL: func.func @constant_slot
// BUFFERS:       %[[AMAXES:.+]] = llvm.getelementptr %{{.+}}[0, 2]
// BUFFERS:       %[[ROW:.+]] = llvm.load %[[AMAXES]]
// BUFFERS:       %[[PLACE:.+]] = llvm.getelementptr %[[ROW]][3] : (!llvm.ptr) -> !llvm.ptr, f32
// BUFFERS:       llvm.insertvalue %[[PLACE]],
// BUFFERS:       %[[AMAX:.+]] = builtin.unrealized_conversion_cast %{{.+}} to memref<1x1xf32>
// BUFFERS-NOT:   linalg.
// BUFFERS-NOT:   memref.copy
// BUFFERS:       fp8_gpu.launch {{.+}} outs(%{{.+}}, %[[AMAX]] :
// BUFFERS-NOT:   memref.copy
// BUFFERS-NOT:   linalg.
// BUFFERS:       return
func.func @constant_slot(%x: !x, %state: !fp8.state) -> !codes {
  %zero = arith.constant 0.0 : f32
  %d = tensor.empty() : !codes
  %e = tensor.empty() : !one
  %zeros = linalg.fill ins(%zero : f32) outs(%e : !one) -> !one
  %codes, %amax = fp8_gpu.launch @kernels::@cast #cast ins(%x : !x) outs(%d, %zeros : !codes, !one) -> !codes, !one
  %slot = arith.constant 3 : index
  fp8.record_amax %amax, %state[%slot] : !one
  return %codes : !codes
}

// One that is computed before the launch will do.

// CHECK-LABEL: func.func @computed_slot
// CHECK-SAME:  %{{.+}}: tensor<8x8xbf16>, %[[STATE:.+]]: !fp8.state, %[[I:.+]]: index
// CHECK:       %[[SLOT:.+]] = arith.addi %[[I]], %[[I]]
// CHECK-NEXT:  %[[SO_FAR:.+]] = fp8.read_amax %[[STATE]][%[[SLOT]]]
// CHECK-NEXT:  %[[AMAX:.+]] = fp8_gpu.launch {{.+}} outs(%[[SO_FAR]] :
// CHECK-NEXT:  fp8.record_amax %[[AMAX]], %[[STATE]][%[[SLOT]]] in_place
func.func @computed_slot(%x: !x, %state: !fp8.state, %i: index) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !one
  %zeros = linalg.fill ins(%zero : f32) outs(%e : !one) -> !one
  %slot = arith.addi %i, %i : index
  %amax = fp8_gpu.launch @kernels::@measure #measure ins(%x : !x) outs(%zeros : !one) -> !one
  fp8.record_amax %amax, %state[%slot] : !one
  return
}

// It is recorded right behind the launch, before others that have the slot too:
// each begins with what the one before it has left.

// CHECK-LABEL: func.func @one_after_the_other
// CHECK:       %[[A:.+]] = fp8.read_amax
// CHECK-NEXT:  %[[FIRST:.+]] = fp8_gpu.launch {{.+}} outs(%[[A]] :
// CHECK-NEXT:  fp8.record_amax %[[FIRST]], %{{.+}} in_place
// CHECK:       %[[B:.+]] = fp8.read_amax
// CHECK-NEXT:  %[[SECOND:.+]] = fp8_gpu.launch {{.+}} outs(%[[B]] :
// CHECK-NEXT:  fp8.record_amax %[[SECOND]], %{{.+}} in_place
// CHECK-NEXT:  call @use
func.func private @use()
func.func @one_after_the_other(%x: !x, %y: !x, %state: !fp8.state) {
  %zero = arith.constant 0.0 : f32
  %slot = arith.constant 0 : index
  %e = tensor.empty() : !one
  %zeros = linalg.fill ins(%zero : f32) outs(%e : !one) -> !one
  %first = fp8_gpu.launch @kernels::@measure #measure ins(%x : !x) outs(%zeros : !one) -> !one
  %second = fp8_gpu.launch @kernels::@measure #measure ins(%y : !x) outs(%zeros : !one) -> !one
  call @use() : () -> ()
  fp8.record_amax %second, %state[%slot] : !one
  fp8.record_amax %first, %state[%slot] : !one
  return
}

// Two slots are two places.

// CHECK-LABEL: func.func @two_slots
// CHECK-SAME:  %{{.+}}: tensor<8x8xbf16>, %[[STATE:.+]]: !fp8.state
// CHECK:       %[[R:.+]]:2 = fp8_gpu.launch {{.+}} outs(%[[A:.+]], %[[B:.+]] :
// CHECK-DAG:   fp8.record_amax %[[R]]#0, %[[STATE]][%{{.+}}] in_place
// CHECK-DAG:   fp8.record_amax %[[R]]#1, %[[STATE]][%{{.+}}] in_place
func.func @two_slots(%x: !x, %state: !fp8.state) {
  %zero = arith.constant 0.0 : f32
  %slot = arith.constant 0 : index
  %next = arith.constant 1 : index
  %e = tensor.empty() : !one
  %zeros = linalg.fill ins(%zero : f32) outs(%e : !one) -> !one
  %0:2 = fp8_gpu.launch @kernels::@both #both ins(%x : !x) outs(%zeros, %zeros : !one, !one) -> !one, !one
  fp8.record_amax %0#0, %state[%slot] : !one
  fp8.record_amax %0#1, %state[%next] : !one
  return
}

// So are those of two states.

// CHECK-LABEL: func.func @two_states
// CHECK-SAME:  %{{.+}}: tensor<8x8xbf16>, %[[S:.+]]: !fp8.state, %[[T:.+]]: !fp8.state, %[[SLOT:.+]]: index
// CHECK-DAG:   fp8.record_amax %{{.+}}#0, %[[S]][%[[SLOT]]] in_place
// CHECK-DAG:   fp8.record_amax %{{.+}}#1, %[[T]][%[[SLOT]]] in_place
func.func @two_states(%x: !x, %s: !fp8.state, %t: !fp8.state, %slot: index) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !one
  %zeros = linalg.fill ins(%zero : f32) outs(%e : !one) -> !one
  %0:2 = fp8_gpu.launch @kernels::@both #both ins(%x : !x) outs(%zeros, %zeros : !one, !one) -> !one, !one
  fp8.record_amax %0#0, %s[%slot] : !one
  fp8.record_amax %0#1, %t[%slot] : !one
  return
}

// In a loop, of which the state is from outside.

// CHECK-LABEL: func.func @loop
// CHECK:       scf.for %[[I:.+]] =
// CHECK:         %[[SO_FAR:.+]] = fp8.read_amax %{{.+}}[%[[I]]]
// CHECK-NEXT:    %[[AMAX:.+]] = fp8_gpu.launch {{.+}} outs(%[[SO_FAR]] :
// CHECK-NEXT:    fp8.record_amax %[[AMAX]], %{{.+}}[%[[I]]] in_place
func.func @loop(%x: !x, %state: !fp8.state, %n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !one
  %zeros = linalg.fill ins(%zero : f32) outs(%e : !one) -> !one
  scf.for %i = %c0 to %n step %c1 {
    %amax = fp8_gpu.launch @kernels::@measure #measure ins(%x : !x) outs(%zeros : !one) -> !one
    fp8.record_amax %amax, %state[%i] : !one
  }
  return
}

//===----------------------------------------------------------------------===//
// Not in place
//===----------------------------------------------------------------------===//

// Two amaxes of a launch are raised at once, not one after the other: the second
// of a slot is recorded as ever.

// CHECK-LABEL: func.func @same_slot
// CHECK:       %[[SO_FAR:.+]] = fp8.read_amax
// CHECK-NOT:   fp8.read_amax
// CHECK:       %[[R:.+]]:2 = fp8_gpu.launch {{.+}} outs(%[[SO_FAR]], %[[ZEROS:.+]] :
// CHECK-NEXT:  fp8.record_amax %[[R]]#0, %{{.+}} in_place
// CHECK-NEXT:  fp8.record_amax %[[R]]#1, %{{[^ ]+}} : tensor<1x1xf32>
func.func @same_slot(%x: !x, %state: !fp8.state) {
  %zero = arith.constant 0.0 : f32
  %slot = arith.constant 0 : index
  %again = arith.constant 0 : index
  %e = tensor.empty() : !one
  %zeros = linalg.fill ins(%zero : f32) outs(%e : !one) -> !one
  %0:2 = fp8_gpu.launch @kernels::@both #both ins(%x : !x) outs(%zeros, %zeros : !one, !one) -> !one, !one
  fp8.record_amax %0#0, %state[%slot] : !one
  fp8.record_amax %0#1, %state[%again] : !one
  return
}

// Nobody knows whether slots that are computed are one.

// CHECK-LABEL: func.func @computed_slots
// CHECK-COUNT-1: fp8.read_amax
// CHECK-NOT:   fp8.read_amax
// CHECK:       %[[R:.+]]:2 = fp8_gpu.launch
// CHECK-NEXT:  fp8.record_amax %[[R]]#0, %{{.+}} in_place
// CHECK-NEXT:  fp8.record_amax %[[R]]#1, %{{[^ ]+}} : tensor<1x1xf32>
func.func @computed_slots(%x: !x, %state: !fp8.state, %slot: index, %next: index) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !one
  %zeros = linalg.fill ins(%zero : f32) outs(%e : !one) -> !one
  %0:2 = fp8_gpu.launch @kernels::@both #both ins(%x : !x) outs(%zeros, %zeros : !one, !one) -> !one, !one
  fp8.record_amax %0#0, %state[%slot] : !one
  fp8.record_amax %0#1, %state[%next] : !one
  return
}

// An amax that someone else reads is that of this tensor alone.

// CHECK-LABEL: func.func @read_by_others
// CHECK-NOT:   fp8.read_amax
// CHECK:       fp8.record_amax %{{.+}}, %{{[^ ]+}} : tensor<1x1xf32>
func.func @read_by_others(%x: !x, %state: !fp8.state, %slot: index) -> !one {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !one
  %zeros = linalg.fill ins(%zero : f32) outs(%e : !one) -> !one
  %amax = fp8_gpu.launch @kernels::@measure #measure ins(%x : !x) outs(%zeros : !one) -> !one
  fp8.record_amax %amax, %state[%slot] : !one
  return %amax : !one
}

// CHECK-LABEL: func.func @recorded_twice
// CHECK-NOT:   fp8.read_amax
// CHECK:       fp8.record_amax %{{.+}}, %{{[^ ]+}} : tensor<1x1xf32>
// CHECK:       fp8.record_amax %{{.+}}, %{{[^ ]+}} : tensor<1x1xf32>
func.func @recorded_twice(%x: !x, %state: !fp8.state, %slot: index, %next: index) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !one
  %zeros = linalg.fill ins(%zero : f32) outs(%e : !one) -> !one
  %amax = fp8_gpu.launch @kernels::@measure #measure ins(%x : !x) outs(%zeros : !one) -> !one
  fp8.record_amax %amax, %state[%slot] : !one
  fp8.record_amax %amax, %state[%next] : !one
  return
}

// Counts are added by who records them.

// CHECK-LABEL: func.func @counts
// CHECK-NOT:   fp8.read_amax
// CHECK:       fp8.record_amax %{{.+}}, %{{.+}} counts(%{{.+}}, %{{.+}}) : tensor<1x1xf32>
func.func @counts(%x: !x, %state: !fp8.state, %slot: index, %n: f64) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !one
  %zeros = linalg.fill ins(%zero : f32) outs(%e : !one) -> !one
  %amax = fp8_gpu.launch @kernels::@measure #measure ins(%x : !x) outs(%zeros : !one) -> !one
  fp8.record_amax %amax, %state[%slot] counts(%n, %n) : !one
  return
}

// What it begins with, if that is not zero, is part of the amax.

// CHECK-LABEL: func.func @begun
// CHECK-NOT:   fp8.read_amax
// CHECK:       fp8.record_amax %{{.+}}, %{{[^ ]+}} : tensor<1x1xf32>
func.func @begun(%x: !x, %state: !fp8.state, %slot: index) {
  %epsilon = arith.constant 1.0e-12 : f32
  %e = tensor.empty() : !one
  %begun = linalg.fill ins(%epsilon : f32) outs(%e : !one) -> !one
  %amax = fp8_gpu.launch @kernels::@measure #measure ins(%x : !x) outs(%begun : !one) -> !one
  fp8.record_amax %amax, %state[%slot] : !one
  return
}

// CHECK-LABEL: func.func @given
// CHECK-NOT:   fp8.read_amax
// CHECK:       fp8.record_amax %{{.+}}, %{{[^ ]+}} : tensor<1x1xf32>
func.func @given(%x: !x, %before: !one, %state: !fp8.state, %slot: index) {
  %amax = fp8_gpu.launch @kernels::@measure #measure ins(%x : !x) outs(%before : !one) -> !one
  fp8.record_amax %amax, %state[%slot] : !one
  return
}

// What is updated may be anything.

// CHECK-LABEL: func.func @updated
// CHECK-NOT:   fp8.read_amax
// CHECK:       fp8.record_amax %{{.+}}, %{{[^ ]+}} : tensor<1x1xf32>
func.func @updated(%x: !x, %state: !fp8.state, %slot: index) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !one
  %zeros = linalg.fill ins(%zero : f32) outs(%e : !one) -> !one
  %sum = fp8_gpu.launch @kernels::@update #update ins(%x : !x) outs(%zeros : !one) -> !one
  fp8.record_amax %sum, %state[%slot] : !one
  return
}

// What no kernel computes is recorded when it is there.

// CHECK-LABEL: func.func @no_launch
// CHECK-NOT:   fp8.read_amax
// CHECK:       fp8.record_amax %{{.+}}, %{{[^ ]+}} : tensor<1x1xf32>
func.func @no_launch(%x: !x, %state: !fp8.state, %slot: index) {
  %amax = fp8.amax %x block = [*, *] : !x
  fp8.record_amax %amax, %state[%slot] : !one
  return
}

// Not every launch is followed by a record.

// CHECK-LABEL: func.func @other_block
// CHECK-NOT:   fp8.read_amax
// CHECK:       scf.if
// CHECK-NEXT:    fp8.record_amax %{{.+}}, %{{[^ ]+}} : tensor<1x1xf32>
func.func @other_block(%x: !x, %state: !fp8.state, %slot: index, %is: i1) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !one
  %zeros = linalg.fill ins(%zero : f32) outs(%e : !one) -> !one
  %amax = fp8_gpu.launch @kernels::@measure #measure ins(%x : !x) outs(%zeros : !one) -> !one
  scf.if %is {
    fp8.record_amax %amax, %state[%slot] : !one
  }
  return
}

// A slot that is found out after the launch.

// CHECK-LABEL: func.func @later_slot
// CHECK-NOT:   fp8.read_amax
// CHECK:       fp8.record_amax %{{.+}}, %{{[^ ]+}} : tensor<1x1xf32>
func.func @later_slot(%x: !x, %state: !fp8.state, %i: index) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !one
  %zeros = linalg.fill ins(%zero : f32) outs(%e : !one) -> !one
  %amax = fp8_gpu.launch @kernels::@measure #measure ins(%x : !x) outs(%zeros : !one) -> !one
  %slot = arith.addi %i, %i : index
  fp8.record_amax %amax, %state[%slot] : !one
  return
}
