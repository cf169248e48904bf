// RUN: fp8-opt %s --allow-unregistered-dialect | fp8-opt --allow-unregistered-dialect | FileCheck %s
// RUN: fp8-opt %s --allow-unregistered-dialect --emit-bytecode | fp8-opt --allow-unregistered-dialect | FileCheck %s
// RUN: fp8-opt %s --allow-unregistered-dialect --mlir-print-op-generic | fp8-opt --allow-unregistered-dialect | FileCheck %s
// RUN: fp8-opt %s --allow-unregistered-dialect | not grep '[^ ]  '
// RUN: fp8-opt %s --allow-unregistered-dialect --canonicalize --cse | FileCheck %s --check-prefix=PURE

// CHECK-LABEL: @cast
// CHECK-SAME:  %[[X:.+]]: tensor<32x768xbf16>, %[[S:.+]]: tensor<1x1xf32>, %[[SI:.+]]: tensor<1x1xf32>
func.func @cast(%x: tensor<32x768xbf16>, %s: tensor<1x1xf32>, %si: tensor<1x1xf32>)
    -> (tensor<32x768xf8E4M3FN>, tensor<1x1xf32>) {
  // CHECK:      %[[R:.+]]:2 = fp8.fusion(%[[X]], %[[S]], %[[SI]]) {
  // CHECK-NEXT: ^bb0(%[[A:.+]]: tensor<32x768xbf16>, %[[B:.+]]: tensor<1x1xf32>, %[[C:.+]]: tensor<1x1xf32>):
  // CHECK-NEXT:   %[[Q:.+]] = fp8.quantize %[[A]] scale(%[[B]], %[[C]] :
  // CHECK-NEXT:   %[[P:.+]], %{{.+}} = fp8.disassemble %[[Q]]
  // CHECK-NEXT:   %[[AMAX:.+]] = fp8.amax %[[A]] block = [*, *]
  // CHECK-NEXT:   fp8.yield %[[P]], %[[AMAX]] : tensor<32x768xf8E4M3FN>, tensor<1x1xf32>
  // CHECK-NEXT: } : (tensor<32x768xbf16>, tensor<1x1xf32>, tensor<1x1xf32>) -> (tensor<32x768xf8E4M3FN>, tensor<1x1xf32>)
  // CHECK-NEXT: return %[[R]]#0, %[[R]]#1
  %codes, %amax = fp8.fusion(%x, %s, %si) {
  ^bb0(%0: tensor<32x768xbf16>, %1: tensor<1x1xf32>, %2: tensor<1x1xf32>):
    %3 = fp8.quantize %0 scale(%1, %2 : tensor<1x1xf32>, tensor<1x1xf32>)
        : tensor<32x768xbf16> -> !fp8.scaled<32x768xf8E4M3FN, block = [*, *], scale = f32>
    %payload, %scale_inv = fp8.disassemble %3 : !fp8.scaled<32x768xf8E4M3FN, block = [*, *], scale = f32>
    %4 = fp8.amax %0 block = [*, *] : tensor<32x768xbf16>
    fp8.yield %payload, %4 : tensor<32x768xf8E4M3FN>, tensor<1x1xf32>
  } : (tensor<32x768xbf16>, tensor<1x1xf32>, tensor<1x1xf32>) -> (tensor<32x768xf8E4M3FN>, tensor<1x1xf32>)
  return %codes, %amax : tensor<32x768xf8E4M3FN>, tensor<1x1xf32>
}

// Extents and scalars are inputs like tensors.

// CHECK-LABEL: @scalars
func.func @scalars(%x: tensor<?x768xf32>, %factor: f32, %n: index) -> tensor<?x768xf32> {
  // CHECK: fp8.fusion(%{{.+}}, %{{.+}}, %{{.+}}) {
  // CHECK-NEXT: ^bb0(%{{.+}}: tensor<?x768xf32>, %[[FACTOR:.+]]: f32, %[[N:.+]]: index):
  // CHECK-NEXT: tensor.empty(%[[N]])
  // CHECK: arith.mulf %{{.+}}, %[[FACTOR]]
  // CHECK: } {test.kept} : (tensor<?x768xf32>, f32, index) -> tensor<?x768xf32>
  %0 = fp8.fusion(%x, %factor, %n) {
  ^bb0(%a: tensor<?x768xf32>, %f: f32, %size: index):
    %e = tensor.empty(%size) : tensor<?x768xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
        ins(%a : tensor<?x768xf32>) outs(%e : tensor<?x768xf32>) {
    ^bb0(%in: f32, %out: f32):
      %2 = arith.mulf %in, %f : f32
      linalg.yield %2 : f32
    } -> tensor<?x768xf32>
    fp8.yield %1 : tensor<?x768xf32>
  } {test.kept} : (tensor<?x768xf32>, f32, index) -> tensor<?x768xf32>
  return %0 : tensor<?x768xf32>
}

// Two that compute the same are one; what nobody uses goes.

// PURE-LABEL: @pure
// PURE-COUNT-1: fp8.fusion
// PURE-NOT: fp8.fusion
// CHECK-LABEL: @pure
func.func @pure(%x: tensor<4x8xf32>) -> (tensor<1x1xf32>, tensor<1x1xf32>) {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<4x8xf32>):
    %3 = fp8.amax %a block = [*, *] : tensor<4x8xf32>
    fp8.yield %3 : tensor<1x1xf32>
  } : (tensor<4x8xf32>) -> tensor<1x1xf32>
  %1 = fp8.fusion(%x) {
  ^bb0(%a: tensor<4x8xf32>):
    %3 = fp8.amax %a block = [*, *] : tensor<4x8xf32>
    fp8.yield %3 : tensor<1x1xf32>
  } : (tensor<4x8xf32>) -> tensor<1x1xf32>
  %2 = fp8.fusion(%x) {
  ^bb0(%a: tensor<4x8xf32>):
    %3 = fp8.amax %a block = [1, *] : tensor<4x8xf32>
    fp8.yield %3 : tensor<4x1xf32>
  } : (tensor<4x8xf32>) -> tensor<4x1xf32>
  return %0, %1 : tensor<1x1xf32>, tensor<1x1xf32>
}
