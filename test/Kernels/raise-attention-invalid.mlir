// RUN: fp8-opt %s --fp8-raise-attention=chip=sm_90a --split-input-file 2> %t.remarks | FileCheck %s --check-prefix=KEPT
// RUN: FileCheck %s --check-prefix=REMARK --implicit-check-not=remark: < %t.remarks
// RUN: fp8-opt %s --fp8-raise-attention --split-input-file 2> %t.others | FileCheck %s --check-prefix=ALL
// RUN: fp8-opt %S/raise-attention.mlir --fp8-apply-recipe=attention-recipe=current --fp8-raise-attention=chip=sm_90a --split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=RECIPE
// RUN: sed 's/linalg.batch_matmul ins/linalg.batch_matmul {fp8.recipe = #fp8.current} ins/' %S/raise-attention.mlir | fp8-opt --fp8-raise-attention=chip=sm_90a --split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=OWN

// OWN: remark: attention stays two products and a softmax: its products have a recipe of their own
// RECIPE-COUNT-3: remark: attention stays two products and a softmax: its products are quantized by a recipe

// What is nearly attention, and why it stays.

// REMARK-NOT: remark:

// Scores that a backward keeps would be computed twice.

// REMARK: remark: attention stays two products and a softmax: its scores are needed by func.return too
// KEPT-LABEL: @elsewhere
// KEPT-NOT: fp8.attention
// KEPT: linalg.softmax
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
func.func @elsewhere(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>) -> (tensor<4x32x64xbf16>, tensor<4x32x48xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %shares = arith.truncf %p : tensor<4x32x48xf32> to tensor<4x32x48xbf16>
  %oe = tensor.empty() : tensor<4x32x64xf32>
  %oinit = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %o = linalg.batch_matmul ins(%shares, %v : tensor<4x32x48xbf16>, tensor<4x48x64xbf16>) outs(%oinit : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %r = arith.truncf %o : tensor<4x32x64xf32> to tensor<4x32x64xbf16>
  return %r, %p : tensor<4x32x64xbf16>, tensor<4x32x48xf32>
}

// -----

// Shares and the result are f32: the kernel would round them.

// REMARK: remark: attention stays two products and a softmax: expected a result that is rounded to 16 bits where shares are not, but got f32 of values of bf16
// KEPT-LABEL: @precise
// KEPT-NOT: fp8.attention
// KEPT: linalg.softmax
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
func.func @precise(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>) -> (tensor<4x32x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %wide = arith.extf %v : tensor<4x48x64xbf16> to tensor<4x48x64xf32>
  %oe = tensor.empty() : tensor<4x32x64xf32>
  %oinit = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %o = linalg.batch_matmul ins(%p, %wide : tensor<4x32x48xf32>, tensor<4x48x64xf32>) outs(%oinit : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  return %o : tensor<4x32x64xf32>
}

// -----

// No kernel multiplies f32.

// REMARK: remark: attention stays two products and a softmax: expected queries of 8 or 16 bits, but got f32
// ALL: fp8.attention {{.*}} scale = 1.250000e-01 {{.*}} tensor<1x4x32x64xf32>
// KEPT-LABEL: @wide
// KEPT-NOT: fp8.attention
// KEPT: linalg.softmax
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
func.func @wide(%q: tensor<4x32x64xf32>, %k: tensor<4x48x64xf32>, %v: tensor<4x48x64xf32>) -> (tensor<4x32x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xf32>, tensor<4x48x64xf32>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %oe = tensor.empty() : tensor<4x32x64xf32>
  %oinit = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<4x32x48xf32>, tensor<4x48x64xf32>) outs(%oinit : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  return %o : tensor<4x32x64xf32>
}

// -----

// No kernel writes f32.

// REMARK: remark: attention stays two products and a softmax: expected a result of bf16 or f16, but got f32
// KEPT-LABEL: @result_of_f32
// KEPT-NOT: fp8.attention
// KEPT: linalg.softmax
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
func.func @result_of_f32(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>) -> (tensor<4x32x64xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %shares = arith.truncf %p : tensor<4x32x48xf32> to tensor<4x32x48xbf16>
  %oe = tensor.empty() : tensor<4x32x64xf32>
  %oinit = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %o = linalg.batch_matmul ins(%shares, %v : tensor<4x32x48xbf16>, tensor<4x48x64xbf16>) outs(%oinit : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  return %o : tensor<4x32x64xf32>
}

// -----

// Operands of two types.

// REMARK: remark: attention stays two products and a softmax: expected Q, K and V of one type, but got bf16, bf16 and f16
// KEPT-LABEL: @types
// KEPT-NOT: fp8.attention
// KEPT: linalg.softmax
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
func.func @types(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xf16>) -> (tensor<4x32x64xbf16>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %shares = arith.truncf %p : tensor<4x32x48xf32> to tensor<4x32x48xf16>
  %oe = tensor.empty() : tensor<4x32x64xf32>
  %oinit = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %o = linalg.batch_matmul ins(%shares, %v : tensor<4x32x48xf16>, tensor<4x48x64xf16>) outs(%oinit : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %r = arith.truncf %o : tensor<4x32x64xf32> to tensor<4x32x64xbf16>
  return %r : tensor<4x32x64xbf16>
}

// -----

// Scores that have a cap.

// REMARK: remark: attention stays two products and a softmax: expected scores that are scaled and masked, but got arith.mulf of them
// KEPT-LABEL: @capped
// KEPT-NOT: fp8.attention
// KEPT: linalg.softmax
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
func.func @capped(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>) -> (tensor<4x32x64xbf16>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %masked = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) {
  ^bb0(%score: f32, %unused: f32):
    %bend = math.tanh %score : f32
    %cap = arith.constant 30.0 : f32
    %capped = arith.mulf %bend, %cap : f32
    %one = arith.mulf %capped, %score : f32
    linalg.yield %one : f32
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

// What is hidden before there is a cap has a share.

// REMARK: remark: attention stays two products and a softmax: expected a mask of scores with their cap, but got one before
// KEPT-LABEL: @hidden_below_cap
// KEPT-NOT: fp8.attention
// KEPT: linalg.softmax
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
func.func @hidden_below_cap(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>) -> (tensor<4x32x64xbf16>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %masked = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) {
  ^bb0(%score: f32, %unused: f32):
    %query = linalg.index 1 : index
    %key = linalg.index 2 : index
    %seen = arith.cmpi sle, %key, %query : index
    %hidden = arith.constant 0xFF800000 : f32
    %chosen = arith.select %seen, %score, %hidden : f32
    %bend = math.tanh %chosen : f32
    %cap = arith.constant 30.0 : f32
    %capped = arith.mulf %bend, %cap : f32
    linalg.yield %capped : f32
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

// A cap that turns scores around.

// REMARK: remark: attention stays two products and a softmax: expected a positive cap of scores, but got -30.00
// KEPT-LABEL: @negative_cap
// KEPT-NOT: fp8.attention
// KEPT: linalg.softmax
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
func.func @negative_cap(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>) -> (tensor<4x32x64xbf16>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %masked = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) {
  ^bb0(%score: f32, %unused: f32):
    %bend = math.tanh %score : f32
    %cap = arith.constant -30.0 : f32
    %capped = arith.mulf %bend, %cap : f32
    linalg.yield %capped : f32
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

// Twice.

// REMARK: remark: attention stays two products and a softmax: expected one cap of scores, but got several
// KEPT-LABEL: @two_caps
// KEPT-NOT: fp8.attention
// KEPT: linalg.softmax
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
func.func @two_caps(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>) -> (tensor<4x32x64xbf16>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %masked = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) {
  ^bb0(%score: f32, %unused: f32):
    %first = math.tanh %score : f32
    %bend = math.tanh %first : f32
    %cap = arith.constant 30.0 : f32
    %capped = arith.mulf %bend, %cap : f32
    linalg.yield %capped : f32
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

// Queries from the fifth on see no key: a finite score gives them the mean of all values.

// REMARK: remark: attention stays two products and a softmax: expected a mask to hide by -inf, but got {{.*}}: a query that sees no key would have the mean of all values
// KEPT-LABEL: @all_hidden
// KEPT-NOT: fp8.attention
// KEPT: linalg.softmax
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
func.func @all_hidden(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>) -> (tensor<4x32x64xbf16>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %masked = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) {
  ^bb0(%score: f32, %unused: f32):
    %query = linalg.index 1 : index
    %key = linalg.index 2 : index
    %hidden = arith.constant -1.0e9 : f32
    %far = arith.constant 44 : index
    %from = arith.addi %query, %far : index
    %seen = arith.cmpi sge, %key, %from : index
    %chosen = arith.select %seen, %score, %hidden : f32
    linalg.yield %chosen : f32
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

// Scores may be as low as what hides here.

// REMARK: remark: attention stays two products and a softmax: expected hidden scores of -30000 or less, but got others
// KEPT-LABEL: @high
// KEPT-NOT: fp8.attention
// KEPT: linalg.softmax
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
func.func @high(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>) -> (tensor<4x32x64xbf16>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %masked = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) {
  ^bb0(%score: f32, %unused: f32):
    %query = linalg.index 1 : index
    %key = linalg.index 2 : index
    %hidden = arith.constant -100.0 : f32
    %seen = arith.cmpi sle, %key, %query : index
    %chosen = arith.select %seen, %score, %hidden : f32
    linalg.yield %chosen : f32
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

// Keys that are hidden by something else than their distance.

// REMARK: remark: attention stays two products and a softmax: expected keys hidden by a window, or by a tensor of i1 that is 0 there, but got something else
// KEPT-LABEL: @other_condition
// KEPT-NOT: fp8.attention
// KEPT: linalg.softmax
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
func.func @other_condition(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>) -> (tensor<4x32x64xbf16>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %masked = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) {
  ^bb0(%score: f32, %unused: f32):
    %query = linalg.index 1 : index
    %key = linalg.index 2 : index
    %hidden = arith.constant 0xFF800000 : f32
    %sum = arith.addi %query, %key : index
    %far = arith.constant 44 : index
    %seen = arith.cmpi sle, %sum, %far : index
    %chosen = arith.select %seen, %score, %hidden : f32
    linalg.yield %chosen : f32
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

// Products that are added to something.

// REMARK: remark: attention stays two products and a softmax: expected scores that start from zero, but got a sum onto others
// KEPT-LABEL: @added_scores
// KEPT-NOT: fp8.attention
// KEPT: linalg.softmax
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
func.func @added_scores(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>, %more: tensor<4x32x48xf32>) -> (tensor<4x32x64xbf16>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%more : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %shares = arith.truncf %p : tensor<4x32x48xf32> to tensor<4x32x48xbf16>
  %oe = tensor.empty() : tensor<4x32x64xf32>
  %oinit = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %o = linalg.batch_matmul ins(%shares, %v : tensor<4x32x48xbf16>, tensor<4x48x64xbf16>) outs(%oinit : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %r = arith.truncf %o : tensor<4x32x64xf32> to tensor<4x32x64xbf16>
  return %r : tensor<4x32x64xbf16>
}

// -----

// Keys turned around.

// REMARK: remark: attention stays two products and a softmax: expected a positive factor of scores, but got -0.12
// KEPT-LABEL: @negative
// KEPT-NOT: fp8.attention
// KEPT: linalg.softmax
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
func.func @negative(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>) -> (tensor<4x32x64xbf16>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %minus = arith.constant dense<-1.0> : tensor<4x32x48xf32>
  %masked = arith.mulf %s, %minus : tensor<4x32x48xf32>
  %p = linalg.softmax dimension(2) ins(%masked : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %shares = arith.truncf %p : tensor<4x32x48xf32> to tensor<4x32x48xbf16>
  %oe = tensor.empty() : tensor<4x32x64xf32>
  %oinit = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %o = linalg.batch_matmul ins(%shares, %v : tensor<4x32x48xbf16>, tensor<4x48x64xbf16>) outs(%oinit : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %r = arith.truncf %o : tensor<4x32x64xf32> to tensor<4x32x64xbf16>
  return %r : tensor<4x32x64xbf16>
}

// -----

// A mask that is multiplied, too.

// REMARK: remark: attention stays two products and a softmax: expected a mask to be added to scaled scores, but got a factor of 0.50 after it
// KEPT-LABEL: @scaled_mask
// KEPT-NOT: fp8.attention
// KEPT: linalg.softmax
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
func.func @scaled_mask(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>, %mask: tensor<4x32x48xf32>) -> (tensor<4x32x64xbf16>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %sum = arith.addf %s, %mask : tensor<4x32x48xf32>
  %half = arith.constant dense<0.5> : tensor<4x32x48xf32>
  %masked = arith.mulf %sum, %half : tensor<4x32x48xf32>
  %p = linalg.softmax dimension(2) ins(%masked : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %shares = arith.truncf %p : tensor<4x32x48xf32> to tensor<4x32x48xbf16>
  %oe = tensor.empty() : tensor<4x32x64xf32>
  %oinit = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %o = linalg.batch_matmul ins(%shares, %v : tensor<4x32x48xbf16>, tensor<4x48x64xbf16>) outs(%oinit : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %r = arith.truncf %o : tensor<4x32x64xf32> to tensor<4x32x64xbf16>
  return %r : tensor<4x32x64xbf16>
}

// -----

// Dropout that a program draws itself: fp8.attention would leave out others.

// REMARK: remark: attention stays two products and a softmax: something is done to its shares between the softmax and the second product, as dropout by a mask does
// KEPT-LABEL: @dropped
// KEPT-NOT: fp8.attention
// KEPT: linalg.softmax
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
func.func @dropped(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>, %keep: tensor<4x32x48xi1>) -> tensor<4x32x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %s = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %rate = arith.constant dense<0.9> : tensor<4x32x48xf32>
  %zeros = arith.constant dense<0.0> : tensor<4x32x48xf32>
  %grown = arith.divf %p, %rate : tensor<4x32x48xf32>
  %kept = arith.select %keep, %grown, %zeros : tensor<4x32x48xi1>, tensor<4x32x48xf32>
  %shares = arith.truncf %kept : tensor<4x32x48xf32> to tensor<4x32x48xbf16>
  %oe = tensor.empty() : tensor<4x32x64xf32>
  %oinit = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %o = linalg.batch_matmul ins(%shares, %v : tensor<4x32x48xbf16>, tensor<4x48x64xbf16>) outs(%oinit : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %r = arith.truncf %o : tensor<4x32x64xf32> to tensor<4x32x64xbf16>
  return %r : tensor<4x32x64xbf16>
}
