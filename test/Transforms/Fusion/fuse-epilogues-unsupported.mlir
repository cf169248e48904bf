// RUN: fp8-opt %s --fp8-fuse-epilogues | FileCheck %s

// CHECK-NOT: epilogue

#id = affine_map<(i, j) -> (i, j)>
!a = !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
!t = tensor<32x32xf32>

// The accumulator would have to be stored anyway.
func.func @two_users(%a: !a, %b: !a) -> (!t, !t) {
  %0 = fp8.matmul %a, %b : !a, !a -> !t
  %e = tensor.empty() : !t
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0 : !t) outs(%e : !t) {
  ^bb0(%x: f32, %o: f32):
    %z = math.exp %x : f32
    linalg.yield %z : f32
  } -> !t
  return %0, %1 : !t, !t
}

// The matmul would run once for every iteration.
func.func @loop(%a: !a, %b: !a, %t: !t, %n: index) -> !t {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = fp8.matmul %a, %b : !a, !a -> !t
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %t) -> !t {
    %e = tensor.empty() : !t
    %1 = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%0, %s : !t, !t) outs(%e : !t) {
    ^bb0(%x: f32, %y: f32, %o: f32):
      %z = arith.addf %x, %y : f32
      linalg.yield %z : f32
    } -> !t
    scf.yield %1 : !t
  }
  return %r : !t
}

// One column for all is not a broadcast of the whole operand.
func.func @picks_a_column(%a: !a, %b: !a, %t: !t) -> !t {
  %0 = fp8.matmul %a, %b : !a, !a -> !t
  %e = tensor.empty() : !t
  %1 = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (i, 0)>, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0, %t : !t, !t) outs(%e : !t) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %z = arith.addf %x, %y : f32
    linalg.yield %z : f32
  } -> !t
  return %1 : !t
}

func.func @permuted_operand(%a: !a, %b: !a, %t: !t) -> !t {
  %0 = fp8.matmul %a, %b : !a, !a -> !t
  %e = tensor.empty() : !t
  %1 = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (j, i)>, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0, %t : !t, !t) outs(%e : !t) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %z = arith.addf %x, %y : f32
    linalg.yield %z : f32
  } -> !t
  return %1 : !t
}

// The epilogue does not know where it is.
func.func @index(%a: !a, %b: !a) -> !t {
  %0 = fp8.matmul %a, %b : !a, !a -> !t
  %e = tensor.empty() : !t
  %1 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%0 : !t) outs(%e : !t) {
  ^bb0(%x: f32, %o: f32):
    %i = linalg.index 0 : index
    %j = arith.index_cast %i : index to i32
    %k = arith.sitofp %j : i32 to f32
    %z = arith.addf %x, %k : f32
    linalg.yield %z : f32
  } -> !t
  return %1 : !t
}

func.func @reduction(%a: !a, %b: !a, %c: tensor<32xf32>) -> tensor<32xf32> {
  %0 = fp8.matmul %a, %b : !a, !a -> !t
  %1 = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]}
      ins(%0 : !t) outs(%c : tensor<32xf32>) {
  ^bb0(%x: f32, %s: f32):
    %z = arith.addf %x, %s : f32
    linalg.yield %z : f32
  } -> tensor<32xf32>
  return %1 : tensor<32xf32>
}
