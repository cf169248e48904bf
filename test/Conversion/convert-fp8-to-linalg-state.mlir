// RUN: fp8-opt %s --convert-fp8-to-linalg | FileCheck %s

// A state is a pointer to the runtime's rows, whose elements are tensors.
// CHECK-LABEL: func.func @read_scale(
// CHECK-SAME: %[[STATE:.*]]: !llvm.ptr, %[[SLOT:.*]]: index)
// CHECK: %[[FIELD:.*]] = llvm.getelementptr %[[STATE]][0, 3] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(i64, i64, ptr, {{.*}}ptr)>
// CHECK: %[[ROW:.*]] = llvm.load %[[FIELD]] : !llvm.ptr -> !llvm.ptr
// CHECK: %[[INDEX:.*]] = arith.index_cast %[[SLOT]] : index to i64
// CHECK: %[[ADDRESS:.*]] = llvm.getelementptr %[[ROW]][%[[INDEX]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK: llvm.insertvalue %[[ADDRESS]], %{{.*}}[1]
// CHECK: %[[SCALES:.*]] = builtin.unrealized_conversion_cast %{{.*}} to memref<1x1xf32>
// CHECK: %[[SCALE:.*]] = bufferization.to_tensor %[[SCALES]] restrict : memref<1x1xf32> to tensor<1x1xf32>
// CHECK: llvm.getelementptr %[[STATE]][0, 4]
// CHECK: %[[SCALE_INV:.*]] = bufferization.to_tensor
// CHECK: return %[[SCALE]], %[[SCALE_INV]]
func.func @read_scale(%state: !fp8.state, %slot: index) -> (tensor<1x1xf32>, tensor<1x1xf32>) {
  %scale, %scale_inv = fp8.read_scale %state[%slot] : tensor<1x1xf32>
  return %scale, %scale_inv : tensor<1x1xf32>, tensor<1x1xf32>
}

// The larger magnitude, by its bits, where it is.
// CHECK-LABEL: func.func @record_amax(
// CHECK-SAME: %[[STATE:.*]]: !llvm.ptr, %{{.*}}: index, %[[AMAX:.*]]: tensor<1x1xf32>)
// CHECK: llvm.getelementptr %[[STATE]][0, 2]
// CHECK: %[[ROW:.*]] = builtin.unrealized_conversion_cast %{{.*}} to memref<1x1xi32>
// CHECK: %[[OLD:.*]] = bufferization.to_tensor %[[ROW]] restrict writable : memref<1x1xi32> to tensor<1x1xi32>
// CHECK: %[[NEW:.*]] = linalg.generic {{.*}} ins(%[[AMAX]] : tensor<1x1xf32>) outs(%[[OLD]] : tensor<1x1xi32>)
// CHECK-NEXT: ^bb0(%[[X:.*]]: f32, %[[BEFORE:.*]]: i32):
// CHECK-NEXT: %[[BITS:.*]] = arith.bitcast %[[X]] : f32 to i32
// CHECK-NEXT: %[[MAX:.*]] = arith.maxui %[[BEFORE]], %[[BITS]]
// CHECK-NEXT: linalg.yield %[[MAX]]
// CHECK: bufferization.materialize_in_destination %[[NEW]] in restrict writable %[[ROW]]
// CHECK-NOT: linalg.generic
func.func @record_amax(%state: !fp8.state, %slot: index, %amax: tensor<1x1xf32>) {
  fp8.record_amax %amax, %state[%slot] : tensor<1x1xf32>
  return
}

// CHECK-LABEL: func.func @counts(
// CHECK: bufferization.materialize_in_destination
// CHECK: %[[U:.*]] = arith.fptosi %{{.*}} : f64 to i64
// CHECK: llvm.getelementptr %{{.*}}[0, 5]
// CHECK: %[[ROW:.*]] = builtin.unrealized_conversion_cast %{{.*}} to memref<i64>
// CHECK: arith.addi %{{.*}}, %[[U]] : i64
// CHECK: bufferization.materialize_in_destination %{{.*}} in restrict writable %[[ROW]]
// CHECK: %[[S:.*]] = arith.fptosi %{{.*}} : f64 to i64
// CHECK: llvm.getelementptr %{{.*}}[0, 6]
// CHECK: arith.addi %{{.*}}, %[[S]] : i64
// CHECK: bufferization.materialize_in_destination
func.func @counts(%state: !fp8.state, %slot: index, %amax: tensor<1x1xf32>, %u: f64, %s: f64) {
  fp8.record_amax %amax, %state[%slot] counts(%u, %s) : tensor<1x1xf32>
  return
}

// A kernel raises the amax where it is: what is recorded of it is a copy to itself,
// which goes with the tensors.
// CHECK-LABEL: func.func @in_place(
// CHECK-SAME: %[[STATE:.*]]: !llvm.ptr, %[[SLOT:.*]]: index, %[[X:.*]]: tensor<8x8xbf16>)
// CHECK: %[[FIELD:.*]] = llvm.getelementptr %[[STATE]][0, 2] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(i64, i64, ptr, {{.*}}ptr)>
// CHECK: %[[ROW:.*]] = llvm.load %[[FIELD]] : !llvm.ptr -> !llvm.ptr
// CHECK: %[[INDEX:.*]] = arith.index_cast %[[SLOT]] : index to i64
// CHECK: %[[ADDRESS:.*]] = llvm.getelementptr %[[ROW]][%[[INDEX]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK: llvm.insertvalue %[[ADDRESS]], %{{.*}}[1]
// CHECK: %[[AMAXES:.*]] = builtin.unrealized_conversion_cast %{{.*}} to memref<1x1xf32>
// CHECK: %[[SO_FAR:.*]] = bufferization.to_tensor %[[AMAXES]] restrict writable : memref<1x1xf32> to tensor<1x1xf32>
// CHECK-NEXT: %[[AMAX:.*]] = fp8_gpu.launch {{.*}} outs(%[[SO_FAR]] : tensor<1x1xf32>)
// CHECK-NEXT: bufferization.materialize_in_destination %[[AMAX]] in restrict writable %[[AMAXES]]
// CHECK-NEXT: return
#raise = #fp8_gpu.launch<
  arguments = [#fp8_gpu.argument<name = "x", element = bf16, rank = 2, access = read, alignment = 2>,
               #fp8_gpu.argument<name = "amax", element = f32, rank = 2, access = raise, alignment = 4>],
  extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>
func.func @in_place(%state: !fp8.state, %slot: index, %x: tensor<8x8xbf16>) {
  %so_far = fp8.read_amax %state[%slot] : tensor<1x1xf32>
  %amax = fp8_gpu.launch @kernels::@k #raise ins(%x : tensor<8x8xbf16>) outs(%so_far : tensor<1x1xf32>) -> tensor<1x1xf32>
  fp8.record_amax %amax, %state[%slot] in_place : tensor<1x1xf32>
  return
}

// Across calls and control flow.
// CHECK-LABEL: func.func @call(
// CHECK-SAME: %[[STATE:.*]]: !llvm.ptr
// CHECK: call @callee(%[[STATE]]) : (!llvm.ptr) -> ()
func.func private @callee(%state: !fp8.state)
func.func @call(%state: !fp8.state) {
  call @callee(%state) : (!fp8.state) -> ()
  return
}

// Codes, then the factor, in the memory of the slot.
// CHECK-LABEL: func.func @cached(
// CHECK-SAME: %[[STATE:.*]]: !llvm.ptr, %{{.*}}: index, %[[PAYLOAD:.*]]: tensor<3x5xf8E4M3FN>, %[[FACTOR:.*]]: tensor<1x1xf32>)
// CHECK: llvm.getelementptr %[[STATE]][0, 7]
// CHECK: %[[CACHE:.*]] = llvm.load %{{.*}} : !llvm.ptr -> !llvm.ptr
// CHECK: %[[PAYLOADS:.*]] = builtin.unrealized_conversion_cast %{{.*}} : !llvm.struct<(ptr, ptr, i64, array<2 x i64>, array<2 x i64>)> to memref<3x5xf8E4M3FN>
// CHECK: llvm.mlir.constant(16 : i64)
// CHECK: %[[FACTORS:.*]] = builtin.unrealized_conversion_cast %{{.*}} to memref<1x1xf32>
// CHECK: bufferization.materialize_in_destination %[[PAYLOAD]] in restrict writable %[[PAYLOADS]]
// CHECK: bufferization.materialize_in_destination %[[FACTOR]] in restrict writable %[[FACTORS]]
// CHECK: bufferization.to_tensor %{{.*}} restrict : memref<3x5xf8E4M3FN> to tensor<3x5xf8E4M3FN>
// CHECK: bufferization.to_tensor %{{.*}} restrict : memref<1x1xf32> to tensor<1x1xf32>
func.func @cached(%state: !fp8.state, %slot: index, %q: !fp8.scaled<3x5xf8E4M3FN, block = [*, *], scale = f32>)
    -> !fp8.scaled<3x5xf8E4M3FN, block = [*, *], scale = f32> {
  fp8.store_cached %q, %state[%slot] : !fp8.scaled<3x5xf8E4M3FN, block = [*, *], scale = f32>
  %0 = fp8.load_cached %state[%slot] : !fp8.scaled<3x5xf8E4M3FN, block = [*, *], scale = f32>
  return %0 : !fp8.scaled<3x5xf8E4M3FN, block = [*, *], scale = f32>
}

// All slots, in any order; the words of a slot lie together, and one of the
// slots counts the step. Every access is to memory of the target, and none is
// checked at run time.
// CHECK-LABEL: func.func @update(
// CHECK-SAME: %[[STATE:.*]]: !llvm.ptr)
// CHECK: llvm.getelementptr %[[STATE]][0, 2]
// CHECK: %[[AMAXES:.*]] = llvm.load
// CHECK: llvm.getelementptr %[[STATE]][0, 10]
// CHECK: %[[WORDS:.*]] = llvm.load
// CHECK: llvm.getelementptr %[[STATE]][0, 14]
// CHECK: %[[STEPS:.*]] = llvm.load
// CHECK: scf.forall (%[[SLOT:.*]]) in (3) {
// CHECK: %[[INDEX:.*]] = arith.index_cast %[[SLOT]] : index to i64
// CHECK: %[[PLACE:.*]] = llvm.getelementptr %[[AMAXES]][%[[INDEX]]]
// CHECK: %[[BITS:.*]] = llvm.load %[[PLACE]] : !llvm.ptr -> i32
// CHECK: %[[AMAX:.*]] = arith.andi %[[BITS]], %{{.*}} : i32
// CHECK: %[[COUNT:.*]] = arith.constant 9 : i64
// CHECK: %[[FIRST:.*]] = arith.muli %[[INDEX]], %[[COUNT]] : i64
// CHECK: llvm.getelementptr %[[WORDS]][%[[FIRST]]]
// CHECK: scf.if %{{.*}} -> (i32) {
// CHECK:   scf.for {{.*}} -> (i32) : i32 {
// CHECK: llvm.store %[[SCALE:.*]], %{{.*}} : f32, !llvm.ptr
// CHECK: %[[INVERSE:.*]] = arith.divf %{{.*}}, %[[SCALE]] : f32
// CHECK: llvm.store %[[INVERSE]],
// CHECK: %[[IS_FIRST:.*]] = arith.cmpi eq, %[[SLOT]], %{{.*}} : index
// CHECK: scf.if %[[IS_FIRST]] {
// CHECK:   llvm.load %[[STEPS]]
// CHECK:   llvm.store %{{.*}}, %[[STEPS]]
func.func @update(%state: !fp8.state) {
  fp8.update_state %state table(<#fp8.delayed<amax_history_len = 8>, [
    #fp8.slot<"a" : f8E4M3FN, fprop activation>, #fp8.slot<"b" : f8E5M2, dgrad gradient>,
    #fp8.slot<"c" : f8E4M3FN, fprop weight>]>)
  return
}
