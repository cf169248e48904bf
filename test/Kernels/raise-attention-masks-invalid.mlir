// RUN: fp8-opt %s --fp8-raise-attention=chip=sm_90a --split-input-file 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --implicit-check-not=remark: < %t.remarks

// Masks that look like those of raise-attention-masks.mlir, and why they stay.

// One key less than there are: the last is hidden.

// REMARK: remark: attention stays two products and a softmax: expected keys hidden by a window, or by a tensor of i1 that is 0 there, but got something else
// CHECK-LABEL: @not_always
// CHECK-NOT: fp8.attention
// CHECK: linalg.softmax
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
#mask = affine_map<(b, m, n) -> (m, n)>
#two = affine_map<(m, n) -> (m, n)>
func.func @not_always(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>) -> tensor<4x32x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %masked = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) {
  ^bb0(%score: f32, %unused: f32):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %end = arith.constant 47 : index
    %y = arith.cmpi slt, %j, %end : index
    %hidden = arith.constant 0xFF800000 : f32
    %x = arith.select %y, %score, %hidden : f32
    linalg.yield %x : f32
  } -> tensor<4x32x48xf32>
  %p = linalg.softmax dimension(2) ins(%masked : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %shares = arith.truncf %p : tensor<4x32x48xf32> to tensor<4x32x48xbf16>
  %oe = tensor.empty() : tensor<4x32x64xf32>
  %oinit = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %o = linalg.batch_matmul ins(%shares, %v : tensor<4x32x48xbf16>, tensor<4x48x64xbf16>) outs(%oinit : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %r = arith.truncf %o : tensor<4x32x64xf32> to tensor<4x32x64xbf16>
  return %r : tensor<4x32x64xbf16>
}

// -----

// Numbers of 6 bits wrap to some below 0.

// REMARK: remark: attention stays two products and a softmax: expected keys hidden by a window, or by a tensor of i1 that is 0 there, but got something else
// CHECK-LABEL: @few_bits
// CHECK-NOT: fp8.attention
// CHECK: linalg.softmax
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
#mask = affine_map<(b, m, n) -> (m, n)>
#two = affine_map<(m, n) -> (m, n)>
func.func @few_bits(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>) -> tensor<4x32x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %masked = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) {
  ^bb0(%score: f32, %unused: f32):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %w = arith.index_cast %j : index to i6
    %first = arith.constant 0 : i6
    %y = arith.cmpi sge, %w, %first : i6
    %hidden = arith.constant 0xFF800000 : f32
    %x = arith.select %y, %score, %hidden : f32
    linalg.yield %x : f32
  } -> tensor<4x32x48xf32>
  %p = linalg.softmax dimension(2) ins(%masked : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %shares = arith.truncf %p : tensor<4x32x48xf32> to tensor<4x32x48xbf16>
  %oe = tensor.empty() : tensor<4x32x64xf32>
  %oinit = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %o = linalg.batch_matmul ins(%shares, %v : tensor<4x32x48xbf16>, tensor<4x48x64xbf16>) outs(%oinit : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %r = arith.truncf %o : tensor<4x32x64xf32> to tensor<4x32x64xbf16>
  return %r : tensor<4x32x64xbf16>
}

// -----

// What is chosen becomes -inf only as it is rounded: it is not all that differs from that.

// REMARK: remark: attention stays two products and a softmax: expected keys hidden by a window, or by a tensor of i1 that is 0 there, but got something else
// CHECK-LABEL: @rounded
// CHECK-NOT: fp8.attention
// CHECK: linalg.softmax
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
#mask = affine_map<(b, m, n) -> (m, n)>
#two = affine_map<(m, n) -> (m, n)>
func.func @rounded(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>) -> tensor<4x32x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %masked = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) {
  ^bb0(%score: f32, %unused: f32):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %n = arith.constant 0.0 : f32
    %h = arith.constant -1.0e30 : f32
    %c = arith.cmpi sle, %j, %i : index
    %a = arith.select %c, %n, %h : f32
    %b = arith.truncf %a : f32 to f16
    %m = arith.constant 0xFC00 : f16
    %y = arith.cmpf une, %b, %m : f16
    %hidden = arith.constant 0xFF800000 : f32
    %x = arith.select %y, %score, %hidden : f32
    linalg.yield %x : f32
  } -> tensor<4x32x48xf32>
  %p = linalg.softmax dimension(2) ins(%masked : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %shares = arith.truncf %p : tensor<4x32x48xf32> to tensor<4x32x48xbf16>
  %oe = tensor.empty() : tensor<4x32x64xf32>
  %oinit = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %o = linalg.batch_matmul ins(%shares, %v : tensor<4x32x48xbf16>, tensor<4x48x64xbf16>) outs(%oinit : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %r = arith.truncf %o : tensor<4x32x64xf32> to tensor<4x32x64xbf16>
  return %r : tensor<4x32x64xbf16>
}

// -----

// No order is known of what is no number.

// REMARK: remark: attention stays two products and a softmax: expected keys hidden by a window, or by a tensor of i1 that is 0 there, but got something else
// CHECK-LABEL: @not_a_number
// CHECK-NOT: fp8.attention
// CHECK: linalg.softmax
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
#mask = affine_map<(b, m, n) -> (m, n)>
#two = affine_map<(m, n) -> (m, n)>
func.func @not_a_number(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>) -> tensor<4x32x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %masked = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) {
  ^bb0(%score: f32, %unused: f32):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %n = arith.constant 0.0 : f32
    %h = arith.constant 0xFF800000 : f32
    %c = arith.cmpi sle, %j, %i : index
    %a = arith.select %c, %n, %h : f32
    %m = arith.constant 0x7FC00000 : f32
    %y = arith.cmpf ueq, %a, %m : f32
    %hidden = arith.constant 0xFF800000 : f32
    %x = arith.select %y, %score, %hidden : f32
    linalg.yield %x : f32
  } -> tensor<4x32x48xf32>
  %p = linalg.softmax dimension(2) ins(%masked : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %shares = arith.truncf %p : tensor<4x32x48xf32> to tensor<4x32x48xbf16>
  %oe = tensor.empty() : tensor<4x32x64xf32>
  %oinit = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %o = linalg.batch_matmul ins(%shares, %v : tensor<4x32x48xbf16>, tensor<4x48x64xbf16>) outs(%oinit : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %r = arith.truncf %o : tensor<4x32x64xf32> to tensor<4x32x64xbf16>
  return %r : tensor<4x32x64xbf16>
}

// -----

// Only what is equal to a number, or not, is read.

// REMARK: remark: attention stays two products and a softmax: expected keys hidden by a window, or by a tensor of i1 that is 0 there, but got something else
// CHECK-LABEL: @ordered
// CHECK-NOT: fp8.attention
// CHECK: linalg.softmax
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
#mask = affine_map<(b, m, n) -> (m, n)>
#two = affine_map<(m, n) -> (m, n)>
func.func @ordered(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>) -> tensor<4x32x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %masked = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) {
  ^bb0(%score: f32, %unused: f32):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %n = arith.constant 0.0 : f32
    %h = arith.constant 0xFF800000 : f32
    %c = arith.cmpi sle, %j, %i : index
    %a = arith.select %c, %n, %h : f32
    %m = arith.constant -1.0 : f32
    %y = arith.cmpf ogt, %a, %m : f32
    %hidden = arith.constant 0xFF800000 : f32
    %x = arith.select %y, %score, %hidden : f32
    linalg.yield %x : f32
  } -> tensor<4x32x48xf32>
  %p = linalg.softmax dimension(2) ins(%masked : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %shares = arith.truncf %p : tensor<4x32x48xf32> to tensor<4x32x48xbf16>
  %oe = tensor.empty() : tensor<4x32x64xf32>
  %oinit = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %o = linalg.batch_matmul ins(%shares, %v : tensor<4x32x48xbf16>, tensor<4x48x64xbf16>) outs(%oinit : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %r = arith.truncf %o : tensor<4x32x64xf32> to tensor<4x32x64xbf16>
  return %r : tensor<4x32x64xbf16>
}

// -----

// No tensor has the numbers that are added.

// REMARK: remark: attention stays two products and a softmax: expected a mask that is a tensor, but got one computed by arith.sitofp
// CHECK-LABEL: @with_scores
// CHECK-NOT: fp8.attention
// CHECK: linalg.softmax
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
#mask = affine_map<(b, m, n) -> (m, n)>
#two = affine_map<(m, n) -> (m, n)>
func.func @with_scores(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>) -> tensor<4x32x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %masked = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) {
  ^bb0(%score: f32, %unused: f32):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %d = arith.subi %j, %i : index
    %w = arith.index_cast %d : index to i32
    %f = arith.sitofp %w : i32 to f32
    %x = arith.addf %score, %f : f32
    linalg.yield %x : f32
  } -> tensor<4x32x48xf32>
  %p = linalg.softmax dimension(2) ins(%masked : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %shares = arith.truncf %p : tensor<4x32x48xf32> to tensor<4x32x48xbf16>
  %oe = tensor.empty() : tensor<4x32x64xf32>
  %oinit = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %o = linalg.batch_matmul ins(%shares, %v : tensor<4x32x48xbf16>, tensor<4x48x64xbf16>) outs(%oinit : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %r = arith.truncf %o : tensor<4x32x64xf32> to tensor<4x32x64xbf16>
  return %r : tensor<4x32x64xbf16>
}
