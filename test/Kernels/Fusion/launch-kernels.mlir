// RUN: fp8-opt %s --fp8-launch-kernels --canonicalize --split-input-file | FileCheck %s

gpu.module @fp8_kernels {
  llvm.func @cast() attributes {fp8_gpu.launch = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "in0", element = bf16, rank = 2, access = read, alignment = 16>,
                 #fp8_gpu.argument<name = "in1", element = f32, rank = 2, access = read, alignment = 4>,
                 #fp8_gpu.argument<name = "out0", element = f8E4M3FN, rank = 2, access = write, alignment = 8>,
                 #fp8_gpu.argument<name = "out1", element = f32, rank = 2, access = raise, alignment = 4>],
    extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>}
}

// Results are written to what is given; an amax is raised from 0.

// CHECK-LABEL: func.func @cast
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<32x64xbf16>, %[[S:[a-z0-9]+]]: tensor<1x1xf32>
// CHECK-DAG:   %[[ZERO:.+]] = arith.constant 0.0{{.*}} : f32
// CHECK-DAG:   %[[CODES:.+]] = tensor.empty() : tensor<32x64xf8E4M3FN>
// CHECK-DAG:   %[[AMAX:.+]] = tensor.empty() : tensor<1x1xf32>
// CHECK:       %[[START:.+]] = linalg.fill ins(%[[ZERO]] : f32) outs(%[[AMAX]] : tensor<1x1xf32>)
// CHECK:       %[[R:.+]]:2 = fp8_gpu.launch @fp8_kernels::@cast {{.*}} ins(%[[X]], %[[S]] : {{.*}}) outs(%[[CODES]], %[[START]] : {{.*}})
// CHECK-NOT:   fp8.
// CHECK:       return %[[R]]#0, %[[R]]#1
func.func @cast(%x: tensor<32x64xbf16>, %s: tensor<1x1xf32>) -> (tensor<32x64xf8E4M3FN>, tensor<1x1xf32>) {
  %0:2 = fp8.fusion(%x, %s) {
  ^bb0(%a: tensor<32x64xbf16>, %b: tensor<1x1xf32>):
    %q = fp8.quantize %a scale(%b, %b : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<32x64xbf16> -> !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
    %codes, %f = fp8.disassemble %q : !fp8.scaled<32x64xf8E4M3FN, block = [*, *], scale = f32>
    %amax = fp8.amax %a block = [*, *] : tensor<32x64xbf16>
    fp8.yield %codes, %amax : tensor<32x64xf8E4M3FN>, tensor<1x1xf32>
  } {fp8_gpu.kernel = @fp8_kernels::@cast} : (tensor<32x64xbf16>, tensor<1x1xf32>) -> (tensor<32x64xf8E4M3FN>, tensor<1x1xf32>)
  return %0#0, %0#1 : tensor<32x64xf8E4M3FN>, tensor<1x1xf32>
}

// -----

gpu.module @fp8_kernels {
  llvm.func @blocks() attributes {fp8_gpu.launch = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "in0", element = bf16, rank = 2, access = read, alignment = 16>,
                 #fp8_gpu.argument<name = "out0", element = f8E4M3FN, rank = 2, access = write, alignment = 1>,
                 #fp8_gpu.argument<name = "out1", element = f32, rank = 2, access = write, alignment = 4>],
    extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>}
}

// Extents of results follow from those of the tensor: in the other order, and in
// blocks, of which the last may be smaller. The factors are all written: they
// start as nothing.

// CHECK-LABEL: func.func @unknown_rows
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<?x512xbf16>
// CHECK-DAG:   %[[C0:.+]] = arith.constant 0 : index
// CHECK-DAG:   %[[C128:.+]] = arith.constant 128 : index
// CHECK:       %[[M:.+]] = tensor.dim %[[X]], %[[C0]]
// CHECK:       %[[CODES:.+]] = tensor.empty(%[[M]]) : tensor<512x?xf8E4M3FN>
// CHECK:       %[[BLOCKS:.+]] = arith.ceildivui %{{.+}}, %[[C128]]
// CHECK:       %[[FACTORS:.+]] = tensor.empty(%[[BLOCKS]]) : tensor<512x?xf32>
// CHECK-NOT:   linalg.fill
// CHECK:       fp8_gpu.launch @fp8_kernels::@blocks {{.*}} ins(%[[X]] : {{.*}}) outs(%[[CODES]], %[[FACTORS]] : {{.*}})
func.func @unknown_rows(%x: tensor<?x512xbf16>) -> (tensor<512x?xf8E4M3FN>, tensor<512x?xf32>) {
  %0:2 = fp8.fusion(%x) {
  ^bb0(%a: tensor<?x512xbf16>):
    %amax = fp8.amax %a block = [128, 1] : tensor<?x512xbf16>
    %s, %si = fp8.compute_scale %amax format = f8E4M3FN scale_type = f32 : tensor<?x512xf32>
    %q = fp8.quantize %a scale(%s, %si : tensor<?x512xf32>, tensor<?x512xf32>) : tensor<?x512xbf16> -> !fp8.scaled<?x512xf8E4M3FN, block = [128, 1], scale = f32>
    %t = fp8.transpose %q permutation = [1, 0] : !fp8.scaled<?x512xf8E4M3FN, block = [128, 1], scale = f32>
    %codes, %f = fp8.disassemble %t : !fp8.scaled<512x?xf8E4M3FN, block = [1, 128], scale = f32>
    fp8.yield %codes, %f : tensor<512x?xf8E4M3FN>, tensor<512x?xf32>
  } {fp8_gpu.kernel = @fp8_kernels::@blocks} : (tensor<?x512xbf16>) -> (tensor<512x?xf8E4M3FN>, tensor<512x?xf32>)
  return %0#0, %0#1 : tensor<512x?xf8E4M3FN>, tensor<512x?xf32>
}

// -----

gpu.module @fp8_kernels {
  llvm.func @scaled() attributes {fp8_gpu.launch = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "in0", element = f32, rank = 1, access = read, alignment = 4>,
                 #fp8_gpu.argument<name = "in1", element = f32, rank = 2, access = read, alignment = 4>,
                 #fp8_gpu.argument<name = "out0", element = f32, rank = 2, access = write, alignment = 4>],
    extents = [], params = [#fp8_gpu.capture<0 : f32>], grid = affine_map<() -> (1)>, block = 32>}
}

// Scalars are captures; extents that size results inside are not needed. The
// extent is that of the tensor, and not of the row that comes first.

// CHECK-LABEL: func.func @captures
// CHECK-SAME:    %[[X:[a-z0-9]+]]: tensor<?x?xf32>, %[[R:[a-z0-9]+]]: tensor<?xf32>, %[[FACTOR:[a-z0-9]+]]: f32
// CHECK-DAG:   %[[M:.+]] = tensor.dim %[[X]], %c0
// CHECK-DAG:   %[[N:.+]] = tensor.dim %[[X]], %c1
// CHECK:       %[[OUT:.+]] = tensor.empty(%[[M]], %[[N]])
// CHECK:       fp8_gpu.launch @fp8_kernels::@scaled {{.*}} ins(%[[R]], %[[X]] : {{.*}}) captures(%[[FACTOR]] : f32) outs(%[[OUT]] : {{.*}})
func.func @captures(%x: tensor<?x?xf32>, %r: tensor<?xf32>, %factor: f32, %m: index, %n: index) -> tensor<?x?xf32> {
  %0 = fp8.fusion(%r, %x, %factor, %m, %n) {
  ^bb0(%b: tensor<?xf32>, %a: tensor<?x?xf32>, %f: f32, %i: index, %j: index):
    %e = tensor.empty(%i, %j) : tensor<?x?xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%b, %a : tensor<?xf32>, tensor<?x?xf32>) outs(%e : tensor<?x?xf32>) {
    ^bb0(%c: f32, %d: f32, %o: f32):
      %2 = arith.mulf %d, %f : f32
      %3 = arith.addf %2, %c : f32
      linalg.yield %3 : f32
    } -> tensor<?x?xf32>
    fp8.yield %1 : tensor<?x?xf32>
  } {fp8_gpu.kernel = @fp8_kernels::@scaled} : (tensor<?xf32>, tensor<?x?xf32>, f32, index, index) -> tensor<?x?xf32>
  return %0 : tensor<?x?xf32>
}

// -----

// A fusion without a kernel stays, to be taken apart.

// CHECK-LABEL: func.func @none
// CHECK:       fp8.fusion
func.func @none(%x: tensor<32x64xbf16>) -> tensor<1x1xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<32x64xbf16>):
    %1 = fp8.amax %a block = [*, *] : tensor<32x64xbf16>
    fp8.yield %1 : tensor<1x1xf32>
  } : (tensor<32x64xbf16>) -> tensor<1x1xf32>
  return %0 : tensor<1x1xf32>
}

// -----

gpu.module @fp8_kernels {
  llvm.func @scaled() attributes {fp8_gpu.launch = #fp8_gpu.launch<
    arguments = [#fp8_gpu.argument<name = "in0", element = f32, rank = 2, access = read, alignment = 16>,
                 #fp8_gpu.argument<name = "in1", element = bf16, rank = 2, access = read, alignment = 16>,
                 #fp8_gpu.argument<name = "out0", element = bf16, rank = 2, access = write, alignment = 16>],
    extents = [], params = [], grid = affine_map<() -> (1)>, block = 32>}
}

// A kernel's arguments are in the order in which the body reads them, which
// what is dead there has a say in.

// CHECK-LABEL: func.func @dead_in_the_body
// CHECK-SAME:  %[[X:[a-z0-9]+]]: tensor<32x64xbf16>, %[[Y:[a-z0-9]+]]: tensor<32x64xf32>
// CHECK:       fp8_gpu.launch {{.*}} ins(%[[Y]], %[[X]] :
func.func @dead_in_the_body(%x: tensor<32x64xbf16>, %y: tensor<32x64xf32>) -> tensor<32x64xbf16> {
  %0 = fp8.fusion(%x, %y) {
  ^bb0(%a: tensor<32x64xbf16>, %b: tensor<32x64xf32>):
    %e = tensor.empty() : tensor<32x64xbf16>
    %dead = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%b : tensor<32x64xf32>) outs(%e : tensor<32x64xbf16>) {
    ^bb0(%v: f32, %o: bf16):
      %1 = arith.truncf %v : f32 to bf16
      linalg.yield %1 : bf16
    } -> tensor<32x64xbf16>
    %product = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%a, %b : tensor<32x64xbf16>, tensor<32x64xf32>) outs(%e : tensor<32x64xbf16>) {
    ^bb0(%v: bf16, %w: f32, %o: bf16):
      %1 = arith.extf %v : bf16 to f32
      %2 = arith.mulf %1, %w : f32
      %3 = arith.truncf %2 : f32 to bf16
      linalg.yield %3 : bf16
    } -> tensor<32x64xbf16>
    fp8.yield %product : tensor<32x64xbf16>
  } {fp8_gpu.kernel = @fp8_kernels::@scaled} : (tensor<32x64xbf16>, tensor<32x64xf32>) -> tensor<32x64xbf16>
  return %0 : tensor<32x64xbf16>
}
