// RUN: fp8-opt %s --fp8-raise-attention=chip=sm_90a --split-input-file | FileCheck %s

// Masks that programs compute.

// A number of a key is none below 0: nothing is hidden.

// CHECK-LABEL: @always
// CHECK: fp8.attention
// CHECK-NOT: window
// CHECK-NOT: mask(
// CHECK: return
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
#mask = affine_map<(b, m, n) -> (m, n)>
#two = affine_map<(m, n) -> (m, n)>
func.func @always(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>) -> tensor<4x32x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %me = tensor.empty() : tensor<32x48xi1>
  %mask = linalg.generic {indexing_maps = [#two], iterator_types = ["parallel", "parallel"]} outs(%me : tensor<32x48xi1>) {
  ^bb0(%unused: i1):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %first = arith.constant 0 : index
    %y = arith.cmpi sge, %j, %first : index
    linalg.yield %y : i1
  } -> tensor<32x48xi1>
  %masked = linalg.generic {indexing_maps = [#all, #mask, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %mask : tensor<4x32x48xf32>, tensor<32x48xi1>) outs(%e : tensor<4x32x48xf32>) {
  ^bb0(%score: f32, %of: i1, %unused: f32):
    %hidden = arith.constant 0xFF800000 : f32
    %x = arith.select %of, %score, %hidden : f32
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

// All keys are below their number, so what is left is causal.

// CHECK-LABEL: @always_and_causal
// CHECK: fp8.attention {{.*}} window = [*, 0]
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
#mask = affine_map<(b, m, n) -> (m, n)>
#two = affine_map<(m, n) -> (m, n)>
func.func @always_and_causal(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>) -> tensor<4x32x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %me = tensor.empty() : tensor<32x48xi1>
  %mask = linalg.generic {indexing_maps = [#two], iterator_types = ["parallel", "parallel"]} outs(%me : tensor<32x48xi1>) {
  ^bb0(%unused: i1):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %end = arith.constant 48 : index
    %d = arith.cmpi slt, %j, %end : index
    %c = arith.cmpi sle, %j, %i : index
    %y = arith.andi %d, %c : i1
    linalg.yield %y : i1
  } -> tensor<32x48xi1>
  %masked = linalg.generic {indexing_maps = [#all, #mask, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %mask : tensor<4x32x48xf32>, tensor<32x48xi1>) outs(%e : tensor<4x32x48xf32>) {
  ^bb0(%score: f32, %of: i1, %unused: f32):
    %hidden = arith.constant 0xFF800000 : f32
    %x = arith.select %of, %score, %hidden : f32
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

// An added mask, compared with 0.

// CHECK-LABEL: @chosen
// CHECK: fp8.attention {{.*}} window = [*, 0]
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
#mask = affine_map<(b, m, n) -> (m, n)>
#two = affine_map<(m, n) -> (m, n)>
func.func @chosen(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>) -> tensor<4x32x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %me = tensor.empty() : tensor<32x48xi1>
  %mask = linalg.generic {indexing_maps = [#two], iterator_types = ["parallel", "parallel"]} outs(%me : tensor<32x48xi1>) {
  ^bb0(%unused: i1):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %n = arith.constant 0.0 : f32
    %h = arith.constant 0xFF800000 : f32
    %c = arith.cmpi sle, %j, %i : index
    %a = arith.select %c, %n, %h : f32
    %y = arith.cmpf oeq, %a, %n : f32
    linalg.yield %y : i1
  } -> tensor<32x48xi1>
  %masked = linalg.generic {indexing_maps = [#all, #mask, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %mask : tensor<4x32x48xf32>, tensor<32x48xi1>) outs(%e : tensor<4x32x48xf32>) {
  ^bb0(%score: f32, %of: i1, %unused: f32):
    %hidden = arith.constant 0xFF800000 : f32
    %x = arith.select %of, %score, %hidden : f32
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

// One that is not what hides.

// CHECK-LABEL: @chosen_other
// CHECK: fp8.attention {{.*}} window = [*, 0]
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
#mask = affine_map<(b, m, n) -> (m, n)>
#two = affine_map<(m, n) -> (m, n)>
func.func @chosen_other(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>) -> tensor<4x32x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %me = tensor.empty() : tensor<32x48xi1>
  %mask = linalg.generic {indexing_maps = [#two], iterator_types = ["parallel", "parallel"]} outs(%me : tensor<32x48xi1>) {
  ^bb0(%unused: i1):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %n = arith.constant 0.0 : f32
    %h = arith.constant 0xFF800000 : f32
    %c = arith.cmpi sle, %j, %i : index
    %a = arith.select %c, %n, %h : f32
    %y = arith.cmpf une, %a, %h : f32
    linalg.yield %y : i1
  } -> tensor<32x48xi1>
  %masked = linalg.generic {indexing_maps = [#all, #mask, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %mask : tensor<4x32x48xf32>, tensor<32x48xi1>) outs(%e : tensor<4x32x48xf32>) {
  ^bb0(%score: f32, %of: i1, %unused: f32):
    %hidden = arith.constant 0xFF800000 : f32
    %x = arith.select %of, %score, %hidden : f32
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

// Numbers of a distance, as a bias has them, are a tensor.

// CHECK-LABEL: @computed
// CHECK: %[[MASK:.*]] = linalg.generic
// CHECK: fp8.attention {{.*}} mask({{.*}} : tensor<1x1x32x48xf32>) scale = 1.250000e-01
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
#mask = affine_map<(b, m, n) -> (m, n)>
#two = affine_map<(m, n) -> (m, n)>
func.func @computed(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>) -> tensor<4x32x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %me = tensor.empty() : tensor<32x48xf32>
  %mask = linalg.generic {indexing_maps = [#two], iterator_types = ["parallel", "parallel"]} outs(%me : tensor<32x48xf32>) {
  ^bb0(%unused: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %d = arith.subi %j, %i : index
    %w = arith.index_cast %d : index to i32
    %f = arith.sitofp %w : i32 to f32
    linalg.yield %f : f32
  } -> tensor<32x48xf32>
  %masked = linalg.generic {indexing_maps = [#all, #mask, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %mask : tensor<4x32x48xf32>, tensor<32x48xf32>) outs(%e : tensor<4x32x48xf32>) {
  ^bb0(%score: f32, %of: f32, %unused: f32):
    %x = arith.addf %score, %of : f32
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

// -10000 hides too little for a window, and is added as it is.

// CHECK-LABEL: @little_hidden
// CHECK: fp8.attention {{.*}} mask({{.*}} : tensor<1x1x32x48xf32>) scale = 1.250000e-01
// CHECK-NOT: window
// CHECK: return
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
#mask = affine_map<(b, m, n) -> (m, n)>
#two = affine_map<(m, n) -> (m, n)>
func.func @little_hidden(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>) -> tensor<4x32x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %me = tensor.empty() : tensor<32x48xf32>
  %mask = linalg.generic {indexing_maps = [#two], iterator_types = ["parallel", "parallel"]} outs(%me : tensor<32x48xf32>) {
  ^bb0(%unused: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %n = arith.constant 0.0 : f32
    %h = arith.constant -1.0e4 : f32
    %c = arith.cmpi sle, %j, %i : index
    %a = arith.select %c, %n, %h : f32
    linalg.yield %a : f32
  } -> tensor<32x48xf32>
  %masked = linalg.generic {indexing_maps = [#all, #mask, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %mask : tensor<4x32x48xf32>, tensor<32x48xf32>) outs(%e : tensor<4x32x48xf32>) {
  ^bb0(%score: f32, %of: f32, %unused: f32):
    %x = arith.addf %score, %of : f32
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

// No difference of two numbers of positions is more than 32 bits hold.

// CHECK-LABEL: @any_length
// CHECK: fp8.attention {{.*}}window = [127, 0]
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
func.func @any_length(%q: tensor<4x?x64xbf16>, %k: tensor<4x?x64xbf16>, %v: tensor<4x?x64xbf16>) -> tensor<4x?x64xbf16> {
  %c1 = arith.constant 1 : index
  %sq = tensor.dim %q, %c1 : tensor<4x?x64xbf16>
  %sk = tensor.dim %k, %c1 : tensor<4x?x64xbf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%sq, %sk) : tensor<4x?x?xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x?x64xbf16>, tensor<4x?x64xbf16>) outs(%init : tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %masked = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%product : tensor<4x?x?xf32>) outs(%e : tensor<4x?x?xf32>) {
  ^bb0(%score: f32, %unused: f32):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %ii = arith.index_cast %i : index to i32
    %jj = arith.index_cast %j : index to i32
    %c = arith.cmpi sle, %jj, %ii : i32
    %d = arith.subi %ii, %jj : i32
    %w = arith.constant 128 : i32
    %l = arith.cmpi slt, %d, %w : i32
    %y = arith.andi %c, %l : i1
    %f = arith.constant 0.125 : f32
    %z = arith.mulf %score, %f : f32
    %hidden = arith.constant 0xFF800000 : f32
    %x = arith.select %y, %z, %hidden : f32
    linalg.yield %x : f32
  } -> tensor<4x?x?xf32>
  %p = linalg.softmax dimension(2) ins(%masked : tensor<4x?x?xf32>) outs(%e : tensor<4x?x?xf32>) -> tensor<4x?x?xf32>
  %shares = arith.truncf %p : tensor<4x?x?xf32> to tensor<4x?x?xbf16>
  %oe = tensor.empty(%sq) : tensor<4x?x64xf32>
  %oinit = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x?x64xf32>) -> tensor<4x?x64xf32>
  %o = linalg.batch_matmul ins(%shares, %v : tensor<4x?x?xbf16>, tensor<4x?x64xbf16>) outs(%oinit : tensor<4x?x64xf32>) -> tensor<4x?x64xf32>
  %r = arith.truncf %o : tensor<4x?x64xf32> to tensor<4x?x64xbf16>
  return %r : tensor<4x?x64xbf16>
}
