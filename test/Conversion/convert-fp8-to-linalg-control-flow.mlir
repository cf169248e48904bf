// RUN: fp8-opt %s --convert-fp8-to-linalg --split-input-file | FileCheck %s

// A scaled value is its payload and its factors, also where it is only handed
// on.

!q = !fp8.scaled<4x8xf8E4M3FN, block = [1, *], scale = f32>

// Attributes stay with the payload and with the arguments behind it.
// CHECK-LABEL: func.func @signature(
// CHECK-SAME: %{{[^:]*}}: tensor<4x8xf8E4M3FN> {fp8.name = "q"}, %{{[^:]*}}: tensor<4x1xf32>, %{{[^:]*}}: tensor<4xf32> {fp8.name = "x"})
// CHECK-SAME: -> (tensor<4xf32> {fp8.name = "y"}, tensor<4x8xf8E4M3FN> {fp8.name = "r"}, tensor<4x1xf32>)
func.func @signature(%q: !q {fp8.name = "q"}, %x: tensor<4xf32> {fp8.name = "x"})
    -> (tensor<4xf32> {fp8.name = "y"}, !q {fp8.name = "r"}) {
  return %x, %q : tensor<4xf32>, !q
}

// CHECK-LABEL: func.func private @declaration(tensor<4x8xf8E4M3FN> {fp8.name = "z"}, tensor<4x1xf32>) -> (tensor<4x8xf8E4M3FN>, tensor<4x1xf32>)
func.func private @declaration(!q {fp8.name = "z"}) -> !q

// CHECK-LABEL: func.func @call
// CHECK: %[[R:.*]]:2 = call @declaration(%arg0, %arg1)
// CHECK: return %[[R]]#0, %[[R]]#1
func.func @call(%q: !q) -> !q {
  %0 = call @declaration(%q) : (!q) -> !q
  return %0 : !q
}

// CHECK-LABEL: func.func @loop
// CHECK: scf.for {{.*}} iter_args(%[[P:.*]] = %arg0, %[[S:.*]] = %arg1) -> (tensor<4x8xf8E4M3FN>, tensor<4x1xf32>)
// CHECK: scf.yield %arg2, %arg3
func.func @loop(%q: !q, %p: !q, %n: index) -> !q {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %q) -> !q {
    scf.yield %p : !q
  }
  return %0 : !q
}

// CHECK-LABEL: func.func @while_loop
// CHECK: scf.while (%{{.*}} = %arg0, %{{.*}} = %arg1) : (tensor<4x8xf8E4M3FN>, tensor<4x1xf32>)
// CHECK: scf.condition(%{{.*}}) %[[P:.*]], %[[S:[^ ]*]] : tensor<4x8xf8E4M3FN>, tensor<4x1xf32>
func.func @while_loop(%q: !q, %go: i1) -> !q {
  %0 = scf.while (%a = %q) : (!q) -> !q {
    scf.condition(%go) %a : !q
  } do {
  ^bb0(%a: !q):
    scf.yield %a : !q
  }
  return %0 : !q
}

// CHECK-LABEL: func.func @branch_region
// CHECK: scf.if %arg4 -> (tensor<4x8xf8E4M3FN>, tensor<4x1xf32>)
// CHECK: scf.yield %arg0, %arg1
// CHECK: scf.yield %arg2, %arg3
func.func @branch_region(%q: !q, %p: !q, %go: i1) -> !q {
  %0 = scf.if %go -> !q {
    scf.yield %q : !q
  } else {
    scf.yield %p : !q
  }
  return %0 : !q
}

// CHECK-LABEL: func.func @branch
// CHECK: cf.cond_br %arg4, ^bb1(%arg0, %arg1 : {{.*}}), ^bb1(%arg2, %arg3 : {{.*}})
// CHECK: ^bb1(%[[P:.*]]: tensor<4x8xf8E4M3FN>, %[[S:.*]]: tensor<4x1xf32>)
// CHECK: return %[[P]], %[[S]]
func.func @branch(%q: !q, %p: !q, %go: i1) -> !q {
  cf.cond_br %go, ^bb1(%q : !q), ^bb1(%p : !q)
^bb1(%r: !q):
  return %r : !q
}

// CHECK-LABEL: func.func @select
// CHECK: %[[P:.*]] = arith.select %arg4, %arg0, %arg2
// CHECK: %[[S:.*]] = arith.select %arg4, %arg1, %arg3
// CHECK: return %[[P]], %[[S]]
func.func @select(%q: !q, %p: !q, %go: i1) -> !q {
  %0 = arith.select %go, %q, %p : !q
  return %0 : !q
}

// -----

// The three parts of NVFP4; codes of E2M1 are kept in bytes.
!n = !fp8.scaled<4x16xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
// CHECK-LABEL: func.func @nvfp4
// CHECK-SAME: (%{{[^:]*}}: tensor<4x8xi8>, %{{[^:]*}}: tensor<4x1xf8E4M3FN>, %{{[^:]*}}: tensor<1x1xf32>) -> (tensor<4x8xi8>, tensor<4x1xf8E4M3FN>, tensor<1x1xf32>)
func.func @nvfp4(%q: !n) -> !n {
  return %q : !n
}
