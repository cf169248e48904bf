// RUN: fp8-opt %s --fp8-raise-attention=chip=sm_90a --split-input-file 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

// Programs that are nearly attention, or written in odd ways: what is raised computes the same.

// CHECK-LABEL: func.func @factor_behind_hidden
// CHECK-NOT: fp8.attention
// REMARK: attention stays two products and a softmax: {{.*}}expected hidden scores of -30000 or less
func.func @factor_behind_hidden(%q: tensor<2x64x64xbf16>, %k: tensor<2x64x64xbf16>, %v: tensor<2x64x64xbf16>) -> tensor<2x64x64xbf16>  {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x64x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %s = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>] ins(%q, %k : tensor<2x64x64xbf16>, tensor<2x64x64xbf16>) outs(%i : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %bi = tensor.empty() : tensor<2x64x64xi1>
  %cond = linalg.generic {indexing_maps=[affine_map<(a,b,c)->(a,b,c)>], iterator_types=["parallel","parallel","parallel"]} outs(%bi : tensor<2x64x64xi1>) {
  ^bb0(%z: i1):
    %a = linalg.index 1 : index
    %b = linalg.index 2 : index
    %c = arith.cmpi sle, %b, %a : index
    linalg.yield %c : i1
  } -> tensor<2x64x64xi1>
  %m1 = arith.constant dense<-1.0> : tensor<2x64x64xf32>
  %m8 = arith.constant dense<-0.125> : tensor<2x64x64xf32>
  %hid = arith.constant dense<-1.0e9> : tensor<2x64x64xf32>
  %x0 = arith.mulf %s, %m8 : tensor<2x64x64xf32>
  %x1 = arith.select %cond, %x0, %hid : tensor<2x64x64xi1>, tensor<2x64x64xf32>
  %x = arith.mulf %x1, %m1 : tensor<2x64x64xf32>
  %p = linalg.softmax dimension(2) ins(%x : tensor<2x64x64xf32>) outs(%e : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %pb = arith.truncf %p : tensor<2x64x64xf32> to tensor<2x64x64xbf16>
  %oe = tensor.empty() : tensor<2x64x64xf32>
  %oi = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %o = linalg.batch_matmul ins(%pb, %v : tensor<2x64x64xbf16>, tensor<2x64x64xbf16>) outs(%oi : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %r = arith.truncf %o : tensor<2x64x64xf32> to tensor<2x64x64xbf16>
  return %r : tensor<2x64x64xbf16>
}

// -----

// CHECK-LABEL: func.func @zeros_for_others
// CHECK-NOT: fp8.attention
func.func @zeros_for_others(%q: tensor<2x64x64xbf16>, %k: tensor<2x64x64xbf16>, %v: tensor<2x64x64xbf16>, %other: tensor<2x64x64xf32>) -> tensor<2x64x64xbf16>  {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x64x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %s = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>] ins(%q, %k : tensor<2x64x64xbf16>, tensor<2x64x64xbf16>) outs(%i : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %sc = arith.constant dense<0.125> : tensor<2x64x64xf32>
  %x = arith.mulf %s, %sc : tensor<2x64x64xf32>
  %p = linalg.softmax dimension(2) ins(%x : tensor<2x64x64xf32>) outs(%e : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %tr = arith.constant dense<true> : tensor<2x64xi1>
  %all = linalg.generic {indexing_maps=[affine_map<(a,b,c)->(a,b,c)>,affine_map<(a,b,c)->(a,b)>], iterator_types=["parallel","parallel","reduction"]} ins(%other : tensor<2x64x64xf32>) outs(%tr : tensor<2x64xi1>) {
  ^bb0(%x0: f32, %z: i1):
    %ni = arith.constant 0xFF800000 : f32
    %c = arith.cmpf oeq, %x0, %ni : f32
    %w = arith.andi %c, %z : i1
    linalg.yield %w : i1
  } -> tensor<2x64xi1>
  %pz = linalg.generic {indexing_maps=[affine_map<(a,b,c)->(a,b)>,affine_map<(a,b,c)->(a,b,c)>,affine_map<(a,b,c)->(a,b,c)>], iterator_types=["parallel","parallel","parallel"]} ins(%all, %p : tensor<2x64xi1>, tensor<2x64x64xf32>) outs(%e : tensor<2x64x64xf32>) {
  ^bb0(%h: i1, %x0: f32, %z: f32):
    %zz = arith.constant 0.0 : f32
    %w = arith.select %h, %zz, %x0 : f32
    linalg.yield %w : f32
  } -> tensor<2x64x64xf32>
  %pb = arith.truncf %pz : tensor<2x64x64xf32> to tensor<2x64x64xbf16>
  %oe = tensor.empty() : tensor<2x64x64xf32>
  %oi = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %o = linalg.batch_matmul ins(%pb, %v : tensor<2x64x64xbf16>, tensor<2x64x64xbf16>) outs(%oi : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %r = arith.truncf %o : tensor<2x64x64xf32> to tensor<2x64x64xbf16>
  return %r : tensor<2x64x64xbf16>
}

// -----

// What is returned is another generic's, whose result the attention's memory becomes.
// CHECK-LABEL: func.func @result_that_is_written_over
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<2x64x64xf32>)
func.func @result_that_is_written_over(%q: tensor<2x64x64xbf16>, %k: tensor<2x64x64xbf16>, %v: tensor<2x64x64xbf16>, %other: tensor<2x64x64xf32>) -> tensor<2x64x64xbf16>  {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x64x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %s = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>] ins(%q, %k : tensor<2x64x64xbf16>, tensor<2x64x64xbf16>) outs(%i : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %sc = arith.constant dense<0.125> : tensor<2x64x64xf32>
  %x = arith.mulf %s, %sc : tensor<2x64x64xf32>
  %p = linalg.softmax dimension(2) ins(%x : tensor<2x64x64xf32>) outs(%e : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %pb = arith.truncf %p : tensor<2x64x64xf32> to tensor<2x64x64xbf16>
  %oe = tensor.empty() : tensor<2x64x64xf32>
  %oi = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %o = linalg.batch_matmul ins(%pb, %v : tensor<2x64x64xbf16>, tensor<2x64x64xbf16>) outs(%oi : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %r0 = arith.truncf %o : tensor<2x64x64xf32> to tensor<2x64x64xbf16>
  %r = linalg.generic {indexing_maps=[affine_map<(a,b,c)->(a,b,c)>,affine_map<(a,b,c)->(a,b,c)>], iterator_types=["parallel","parallel","parallel"]} ins(%other : tensor<2x64x64xf32>) outs(%r0 : tensor<2x64x64xbf16>) {
  ^bb0(%x0: f32, %z: bf16):
    %w = arith.truncf %x0 : f32 to bf16
    linalg.yield %w : bf16
  } -> tensor<2x64x64xbf16>
  return %r : tensor<2x64x64xbf16>
}

// -----

// CHECK-LABEL: func.func @no_batches
// CHECK-NOT: fp8.attention
// REMARK: attention stays two products and a softmax: {{.*}}expected static head dimensions and heads
func.func @no_batches(%q4: tensor<0x2x64x64xbf16>, %k4: tensor<0x2x64x64xbf16>, %v4: tensor<0x2x64x64xbf16>) -> tensor<0x64x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %q = tensor.collapse_shape %q4 [[0,1],[2],[3]] : tensor<0x2x64x64xbf16> into tensor<0x64x64xbf16>
  %k = tensor.collapse_shape %k4 [[0,1],[2],[3]] : tensor<0x2x64x64xbf16> into tensor<0x64x64xbf16>
  %v = tensor.collapse_shape %v4 [[0,1],[2],[3]] : tensor<0x2x64x64xbf16> into tensor<0x64x64xbf16>
  %e = tensor.empty() : tensor<0x64x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<0x64x64xf32>) -> tensor<0x64x64xf32>
  %s = linalg.batch_matmul ins(%q, %k : tensor<0x64x64xbf16>, tensor<0x64x64xbf16>) outs(%i : tensor<0x64x64xf32>) -> tensor<0x64x64xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<0x64x64xf32>) outs(%e : tensor<0x64x64xf32>) -> tensor<0x64x64xf32>
  %pb = arith.truncf %p : tensor<0x64x64xf32> to tensor<0x64x64xbf16>
  %o = linalg.batch_matmul ins(%pb, %v : tensor<0x64x64xbf16>, tensor<0x64x64xbf16>) outs(%i : tensor<0x64x64xf32>) -> tensor<0x64x64xf32>
  %r = arith.truncf %o : tensor<0x64x64xf32> to tensor<0x64x64xbf16>
  return %r : tensor<0x64x64xbf16>
}

// -----

// CHECK-LABEL: func.func @first_of_several
// CHECK: fp8.attention
func.func @first_of_several(%q: tensor<2x64x64xbf16>, %k: tensor<2x64x64xbf16>, %v: tensor<2x64x64xbf16>, %stack: tensor<3x2x64x64xbf16>) -> tensor<2x64x64xbf16>  {
  %zero = arith.constant 0.0 : f32
  %qe = tensor.empty() : tensor<2x64x64xbf16>
  %q0 = linalg.generic {indexing_maps=[affine_map<(a,b,c)->(0,a,b,c)>,affine_map<(a,b,c)->(a,b,c)>], iterator_types=["parallel","parallel","parallel"]} ins(%stack : tensor<3x2x64x64xbf16>) outs(%qe : tensor<2x64x64xbf16>) {
  ^bb0(%x0: bf16, %z: bf16):
    linalg.yield %x0 : bf16
  } -> tensor<2x64x64xbf16>
  %e = tensor.empty() : tensor<2x64x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %s = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>] ins(%q0, %k : tensor<2x64x64xbf16>, tensor<2x64x64xbf16>) outs(%i : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %sc = arith.constant dense<0.125> : tensor<2x64x64xf32>
  %x = arith.mulf %s, %sc : tensor<2x64x64xf32>
  %p = linalg.softmax dimension(2) ins(%x : tensor<2x64x64xf32>) outs(%e : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %pb = arith.truncf %p : tensor<2x64x64xf32> to tensor<2x64x64xbf16>
  %oe = tensor.empty() : tensor<2x64x64xf32>
  %oi = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %o = linalg.batch_matmul ins(%pb, %v : tensor<2x64x64xbf16>, tensor<2x64x64xbf16>) outs(%oi : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %r = arith.truncf %o : tensor<2x64x64xf32> to tensor<2x64x64xbf16>
  return %r : tensor<2x64x64xbf16>
}

// -----

// CHECK-LABEL: func.func @codes_as_operands
// CHECK: fp8.attention
func.func @codes_as_operands(%q8: tensor<2x64x64xf8E4M3FN>, %k8: tensor<2x64x64xf8E4M3FN>, %v8: tensor<2x64x64xf8E4M3FN>) -> tensor<2x64x64xbf16>  {
  %q = arith.extf %q8 : tensor<2x64x64xf8E4M3FN> to tensor<2x64x64xbf16>
  %k = arith.extf %k8 : tensor<2x64x64xf8E4M3FN> to tensor<2x64x64xbf16>
  %v = arith.extf %v8 : tensor<2x64x64xf8E4M3FN> to tensor<2x64x64xbf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x64x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %s = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>] ins(%q, %k : tensor<2x64x64xbf16>, tensor<2x64x64xbf16>) outs(%i : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %sc = arith.constant dense<0.125> : tensor<2x64x64xf32>
  %x = arith.mulf %s, %sc : tensor<2x64x64xf32>
  %p = linalg.softmax dimension(2) ins(%x : tensor<2x64x64xf32>) outs(%e : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %pb = arith.truncf %p : tensor<2x64x64xf32> to tensor<2x64x64xbf16>
  %oe = tensor.empty() : tensor<2x64x64xf32>
  %oi = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %o = linalg.batch_matmul ins(%pb, %v : tensor<2x64x64xbf16>, tensor<2x64x64xbf16>) outs(%oi : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %r = arith.truncf %o : tensor<2x64x64xf32> to tensor<2x64x64xbf16>
  return %r : tensor<2x64x64xbf16>
}

// -----

// CHECK-LABEL: func.func @scores_in_fp8
// CHECK-NOT: fp8.attention
// REMARK: attention stays two products and a softmax: {{.*}}rounded to fewer
func.func @scores_in_fp8(%q: tensor<2x64x64xbf16>, %k: tensor<2x64x64xbf16>, %v: tensor<2x64x64xbf16>) -> tensor<2x64x64xbf16>  {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x64x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %s = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>] ins(%q, %k : tensor<2x64x64xbf16>, tensor<2x64x64xbf16>) outs(%i : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %sc = arith.constant dense<0.125> : tensor<2x64x64xf32>
  %y = arith.mulf %s, %sc : tensor<2x64x64xf32>
  %y8 = arith.truncf %y : tensor<2x64x64xf32> to tensor<2x64x64xf8E4M3FN>
  %x = arith.extf %y8 : tensor<2x64x64xf8E4M3FN> to tensor<2x64x64xf32>
  %p = linalg.softmax dimension(2) ins(%x : tensor<2x64x64xf32>) outs(%e : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %pb = arith.truncf %p : tensor<2x64x64xf32> to tensor<2x64x64xbf16>
  %oe = tensor.empty() : tensor<2x64x64xf32>
  %oi = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %o = linalg.batch_matmul ins(%pb, %v : tensor<2x64x64xbf16>, tensor<2x64x64xbf16>) outs(%oi : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %r = arith.truncf %o : tensor<2x64x64xf32> to tensor<2x64x64xbf16>
  return %r : tensor<2x64x64xbf16>
}

// -----

// CHECK-LABEL: func.func @bits_of_a_row
// CHECK-NOT: fp8.attention
// REMARK: attention stays two products and a softmax: {{.*}}it is invariant
func.func @bits_of_a_row(%q: tensor<2x64x64xbf16>, %k: tensor<2x64x64xbf16>, %v: tensor<2x64x64xbf16>) -> tensor<2x64x64xbf16> attributes {fp8.invariant} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x64x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %s = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>] ins(%q, %k : tensor<2x64x64xbf16>, tensor<2x64x64xbf16>) outs(%i : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %sc = arith.constant dense<0.125> : tensor<2x64x64xf32>
  %x = arith.mulf %s, %sc : tensor<2x64x64xf32>
  %p = linalg.softmax dimension(2) ins(%x : tensor<2x64x64xf32>) outs(%e : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %pb = arith.truncf %p : tensor<2x64x64xf32> to tensor<2x64x64xbf16>
  %oe = tensor.empty() : tensor<2x64x64xf32>
  %oi = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %o = linalg.batch_matmul ins(%pb, %v : tensor<2x64x64xbf16>, tensor<2x64x64xbf16>) outs(%oi : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %r = arith.truncf %o : tensor<2x64x64xf32> to tensor<2x64x64xbf16>
  return %r : tensor<2x64x64xbf16>
}

// -----

// CHECK-LABEL: func.func @functions_of_a_cpu
// CHECK-NOT: fp8.attention
// REMARK: attention stays two products and a softmax: {{.*}}it is exact
func.func @functions_of_a_cpu(%q: tensor<2x64x64xbf16>, %k: tensor<2x64x64xbf16>, %v: tensor<2x64x64xbf16>) -> tensor<2x64x64xbf16> attributes {fp8.exact} {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x64x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %s = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>] ins(%q, %k : tensor<2x64x64xbf16>, tensor<2x64x64xbf16>) outs(%i : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %sc = arith.constant dense<0.125> : tensor<2x64x64xf32>
  %x = arith.mulf %s, %sc : tensor<2x64x64xf32>
  %p = linalg.softmax dimension(2) ins(%x : tensor<2x64x64xf32>) outs(%e : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %pb = arith.truncf %p : tensor<2x64x64xf32> to tensor<2x64x64xbf16>
  %oe = tensor.empty() : tensor<2x64x64xf32>
  %oi = linalg.fill ins(%zero : f32) outs(%oe : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %o = linalg.batch_matmul ins(%pb, %v : tensor<2x64x64xbf16>, tensor<2x64x64xbf16>) outs(%oi : tensor<2x64x64xf32>) -> tensor<2x64x64xf32>
  %r = arith.truncf %o : tensor<2x64x64xf32> to tensor<2x64x64xbf16>
  return %r : tensor<2x64x64xbf16>
}

// -----

// Shared parts have far more paths than operations.
// CHECK-LABEL: func.func @shared_parts
// CHECK-NOT: fp8.attention
func.func @shared_parts(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x64xf32>
  %i = linalg.fill ins(%zero : f32) outs(%e : tensor<64x64xf32>) -> tensor<64x64xf32>
  %x = linalg.generic {indexing_maps = [affine_map<(b, c) -> (b, c)>, affine_map<(b, c) -> (b, c)>], iterator_types = ["parallel", "parallel"]} ins(%a : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%y0: f32, %z: f32):
    %y1 = arith.mulf %y0, %y0 : f32
    %y2 = arith.mulf %y1, %y1 : f32
    %y3 = arith.mulf %y2, %y2 : f32
    %y4 = arith.mulf %y3, %y3 : f32
    %y5 = arith.mulf %y4, %y4 : f32
    %y6 = arith.mulf %y5, %y5 : f32
    %y7 = arith.mulf %y6, %y6 : f32
    %y8 = arith.mulf %y7, %y7 : f32
    %y9 = arith.mulf %y8, %y8 : f32
    %y10 = arith.mulf %y9, %y9 : f32
    %y11 = arith.mulf %y10, %y10 : f32
    %y12 = arith.mulf %y11, %y11 : f32
    %y13 = arith.mulf %y12, %y12 : f32
    %y14 = arith.mulf %y13, %y13 : f32
    %y15 = arith.mulf %y14, %y14 : f32
    %y16 = arith.mulf %y15, %y15 : f32
    %y17 = arith.mulf %y16, %y16 : f32
    %y18 = arith.mulf %y17, %y17 : f32
    %y19 = arith.mulf %y18, %y18 : f32
    %y20 = arith.mulf %y19, %y19 : f32
    %y21 = arith.mulf %y20, %y20 : f32
    %y22 = arith.mulf %y21, %y21 : f32
    %y23 = arith.mulf %y22, %y22 : f32
    %y24 = arith.mulf %y23, %y23 : f32
    %y25 = arith.mulf %y24, %y24 : f32
    %y26 = arith.mulf %y25, %y25 : f32
    %y27 = arith.mulf %y26, %y26 : f32
    %y28 = arith.mulf %y27, %y27 : f32
    %y29 = arith.mulf %y28, %y28 : f32
    %y30 = arith.mulf %y29, %y29 : f32
    %y31 = arith.mulf %y30, %y30 : f32
    %y32 = arith.mulf %y31, %y31 : f32
    %y33 = arith.mulf %y32, %y32 : f32
    %y34 = arith.mulf %y33, %y33 : f32
    %y35 = arith.mulf %y34, %y34 : f32
    %y36 = arith.mulf %y35, %y35 : f32
    %y37 = arith.mulf %y36, %y36 : f32
    %y38 = arith.mulf %y37, %y37 : f32
    %y39 = arith.mulf %y38, %y38 : f32
    %y40 = arith.mulf %y39, %y39 : f32
    %y41 = arith.mulf %y40, %y40 : f32
    %y42 = arith.mulf %y41, %y41 : f32
    %y43 = arith.mulf %y42, %y42 : f32
    %y44 = arith.mulf %y43, %y43 : f32
    %y45 = arith.mulf %y44, %y44 : f32
    %y46 = arith.mulf %y45, %y45 : f32
    %y47 = arith.mulf %y46, %y46 : f32
    %y48 = arith.mulf %y47, %y47 : f32
    %y49 = arith.mulf %y48, %y48 : f32
    %y50 = arith.mulf %y49, %y49 : f32
    %y51 = arith.mulf %y50, %y50 : f32
    %y52 = arith.mulf %y51, %y51 : f32
    %y53 = arith.mulf %y52, %y52 : f32
    %y54 = arith.mulf %y53, %y53 : f32
    %y55 = arith.mulf %y54, %y54 : f32
    %y56 = arith.mulf %y55, %y55 : f32
    %y57 = arith.mulf %y56, %y56 : f32
    %y58 = arith.mulf %y57, %y57 : f32
    %y59 = arith.mulf %y58, %y58 : f32
    %y60 = arith.mulf %y59, %y59 : f32
    %y61 = arith.mulf %y60, %y60 : f32
    %y62 = arith.mulf %y61, %y61 : f32
    %y63 = arith.mulf %y62, %y62 : f32
    %y64 = arith.mulf %y63, %y63 : f32
    linalg.yield %y64 : f32
  } -> tensor<64x64xf32>
  %p = linalg.matmul ins(%x, %b : tensor<64x64xf32>, tensor<64x64xf32>) outs(%i : tensor<64x64xf32>) -> tensor<64x64xf32>
  return %p : tensor<64x64xf32>
}
