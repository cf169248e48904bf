// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-build-kernels --canonicalize --split-input-file %s | FileCheck %s

// A cast, the same in the other order, and the amax of the tensor. Rows of the
// argument start at 16 bytes, of the codes at 8, of the transposed codes at 16;
// the amax is raised. The scale is one element for all, so that it has no
// strides.

// CHECK-DAG:  #[[COLUMNS:.+]] = affine_map<()[s0, s1] -> (s0)>
// CHECK-DAG:  #[[ROWS:.+]] = affine_map<()[s0, s1] -> (s1)>
// CHECK-DAG:  #[[GRID:.+]] = affine_map<()[s0, s1] -> ((s0 ceildiv 128) * (s1 ceildiv 128))>
// CHECK:      #fp8_gpu.launch<arguments = [
// CHECK-SAME: #fp8_gpu.argument<name = "in0", element = bf16, rank = 2, access = read, alignment = 16>,
// CHECK-SAME: #fp8_gpu.argument<name = "in1", element = f32, rank = 2, access = read, alignment = 4>,
// CHECK-SAME: #fp8_gpu.argument<name = "out0", element = f8E4M3FN, rank = 2, access = write, alignment = 8>,
// CHECK-SAME: #fp8_gpu.argument<name = "out1", element = f8E4M3FN, rank = 2, access = write, alignment = 16>,
// CHECK-SAME: #fp8_gpu.argument<name = "out2", element = f32, rank = 2, access = raise, alignment = 4>],
// CHECK-SAME: extents = [#fp8_gpu.extent<"columns", 0, 1>, #fp8_gpu.extent<"rows", 0, 0>],
// CHECK-SAME: params = [#fp8_gpu.pointer<0>, #fp8_gpu.stride<0, 0>, #fp8_gpu.pointer<1>, #fp8_gpu.pointer<2>, #fp8_gpu.stride<2, 0>, #fp8_gpu.pointer<3>, #fp8_gpu.stride<3, 0>, #fp8_gpu.pointer<4>, #fp8_gpu.value<#[[ROWS]] : i32>, #fp8_gpu.value<#[[COLUMNS]] : i32>],
// CHECK-SAME: grid = #[[GRID]], block = 256, shared_bytes = 16512, overlap = true>

// CHECK-LABEL: func.func @both
// CHECK:       fp8_gpu.kernel = @fp8_kernels::@fp8_fusion_sm90a_both_8x1_l16_w8x1_b2}
// CHECK-LABEL: llvm.func @fp8_fusion_sm90a_both_8x1_l16_w8x1_b2(
// CHECK-SAME:  fp8_gpu.config = #fp8_fusion.config<
// CHECK-SAME:  fp8_gpu.math = #fp8_gpu.math<exact>
// CHECK-SAME:  nvvm.minctasm = 2 : i32, nvvm.reqntid = array<i32: 256, 1, 1>

// All loads are under way before anything is computed: 8 rows of 8 elements.

// CHECK:       nvvm.griddepcontrol wait
// CHECK-COUNT-8: ld.global.nc
// CHECK-NOT:   ld.global.nc{{.*}}v4
// CHECK-COUNT-4: nvvm.convert.f32x2.to.f8x2
// CHECK:       llvm.store %{{.+}}, %{{.+}} : vector<2xi32>, !llvm.ptr<1>

// Squares of 4 x 4 codes are turned in registers, and 16 rows of a column stored
// at once.

// CHECK-COUNT-32: nvvm.prmt
// CHECK:       llvm.store %{{.+}}, %{{.+}} : vector<2xi32>, !llvm.ptr<3>
// CHECK:       nvvm.barrier
// CHECK:       llvm.load %{{.+}} : !llvm.ptr<3> -> vector<4xi32>
// CHECK:       llvm.store %{{.+}}, %{{.+}} : vector<4xi32>, !llvm.ptr<1>

// One atomic maximum for a block.

// CHECK:       nvvm.redux.sync
// CHECK:       nvvm.redux.sync
// CHECK-COUNT-1: llvm.atomicrmw umax
// CHECK-NOT:   llvm.atomicrmw
func.func @both(%x: tensor<256x512xbf16>, %s: tensor<1x1xf32>) -> (tensor<256x512xf8E4M3FN>, tensor<512x256xf8E4M3FN>, tensor<1x1xf32>) {
  %0:3 = fp8.fusion(%x, %s) {
  ^bb0(%a: tensor<256x512xbf16>, %b: tensor<1x1xf32>):
    %q = fp8.quantize %a scale(%b, %b : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<256x512xbf16> -> !fp8.scaled<256x512xf8E4M3FN, block = [*, *], scale = f32>
    %codes, %f = fp8.disassemble %q : !fp8.scaled<256x512xf8E4M3FN, block = [*, *], scale = f32>
    %t = fp8.transpose %q permutation = [1, 0] : !fp8.scaled<256x512xf8E4M3FN, block = [*, *], scale = f32>
    %tcodes, %tf = fp8.disassemble %t : !fp8.scaled<512x256xf8E4M3FN, block = [*, *], scale = f32>
    %amax = fp8.amax %a block = [*, *] : tensor<256x512xbf16>
    fp8.yield %codes, %tcodes, %amax : tensor<256x512xf8E4M3FN>, tensor<512x256xf8E4M3FN>, tensor<1x1xf32>
  } {fp8_gpu.config = #fp8_fusion.config<rows = 8, chunks = 1, lanes = 16, across = 1, down = 8, cluster = 1, resident = 2>} : (tensor<256x512xbf16>, tensor<1x1xf32>) -> (tensor<256x512xf8E4M3FN>, tensor<512x256xf8E4M3FN>, tensor<1x1xf32>)
  return %0#0, %0#1, %0#2 : tensor<256x512xf8E4M3FN>, tensor<512x256xf8E4M3FN>, tensor<1x1xf32>
}

// -----

// Rows that start anywhere, of which the last tile has a part: accesses of a pair
// of elements, none of which is outside.

// CHECK:      #fp8_gpu.argument<name = "in0", element = bf16, rank = 2, access = read, alignment = 4>,
// CHECK-SAME: #fp8_gpu.argument<name = "out0", element = f8E4M3FN, rank = 2, access = write, alignment = 2>
// CHECK-LABEL: llvm.func @fp8_fusion_sm90a_rows_4x1_l32_w4x1_b2(
// CHECK-COUNT-16: ld.global.nc
// CHECK:       arith.cmpi
// CHECK:       scf.if
// CHECK-NEXT:    llvm.store %{{.+}}, %{{.+}} : i16, !llvm.ptr<1>
// CHECK-NOT:   vector<2xi32>, !llvm.ptr<1>
func.func @odd(%x: tensor<77x130xbf16>, %s: tensor<1x1xf32>) -> tensor<77x130xf8E4M3FN> {
  %0 = fp8.fusion(%x, %s) {
  ^bb0(%a: tensor<77x130xbf16>, %b: tensor<1x1xf32>):
    %q = fp8.quantize %a scale(%b, %b : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<77x130xbf16> -> !fp8.scaled<77x130xf8E4M3FN, block = [*, *], scale = f32>
    %codes, %f = fp8.disassemble %q : !fp8.scaled<77x130xf8E4M3FN, block = [*, *], scale = f32>
    fp8.yield %codes : tensor<77x130xf8E4M3FN>
  } {fp8_gpu.config = #fp8_fusion.config<rows = 4, chunks = 1, lanes = 32, across = 1, down = 4, cluster = 1, resident = 2>} : (tensor<77x130xbf16>, tensor<1x1xf32>) -> tensor<77x130xf8E4M3FN>
  return %0 : tensor<77x130xf8E4M3FN>
}

// -----

// Rows whose number is known at the launch: rows of the codes in the other order
// start anywhere, and are stored in pieces where they turn out to allow it.

// CHECK:      #fp8_gpu.argument<name = "in0", element = bf16, rank = 2, access = read, alignment = 16>,
// CHECK-SAME: #fp8_gpu.argument<name = "out0", element = f8E4M3FN, rank = 2, access = write, alignment = 1>
// CHECK-LABEL: llvm.func @fp8_fusion_sm90a_both_8x1_l16_w8x1_b2(
// CHECK:       scf.if
// CHECK:         llvm.store %{{.+}}, %{{.+}} : vector<4xi32>, !llvm.ptr<1>
// CHECK:       } else {
// CHECK:         llvm.store %{{.+}}, %{{.+}} : i8, !llvm.ptr<1>
func.func @unknown_rows(%x: tensor<?x512xbf16>, %s: tensor<1x1xf32>) -> tensor<512x?xf8E4M3FN> {
  %0 = fp8.fusion(%x, %s) {
  ^bb0(%a: tensor<?x512xbf16>, %b: tensor<1x1xf32>):
    %q = fp8.quantize %a scale(%b, %b : tensor<1x1xf32>, tensor<1x1xf32>) : tensor<?x512xbf16> -> !fp8.scaled<?x512xf8E4M3FN, block = [*, *], scale = f32>
    %t = fp8.transpose %q permutation = [1, 0] : !fp8.scaled<?x512xf8E4M3FN, block = [*, *], scale = f32>
    %codes, %f = fp8.disassemble %t : !fp8.scaled<512x?xf8E4M3FN, block = [*, *], scale = f32>
    fp8.yield %codes : tensor<512x?xf8E4M3FN>
  } {fp8_gpu.config = #fp8_fusion.config<rows = 8, chunks = 1, lanes = 16, across = 1, down = 8, cluster = 1, resident = 2>} : (tensor<?x512xbf16>, tensor<1x1xf32>) -> tensor<512x?xf8E4M3FN>
  return %0 : tensor<512x?xf8E4M3FN>
}

// -----

// Rows of all batches are one batch's where nothing tells them apart.

// CHECK-DAG:  #[[ROWS:.+]] = affine_map<()[s0, s1, s2] -> (s1 * s2)>
// CHECK-DAG:  #[[GRID:.+]] = affine_map<()[s0, s1, s2] -> ((s0 ceildiv 256) * ((s1 * s2) ceildiv 16))>
// CHECK:      extents = [#fp8_gpu.extent<"columns", 0, 2>, #fp8_gpu.extent<"rows", 0, 1>, #fp8_gpu.extent<"batch", 0, 0>],
// CHECK-SAME: params = [#fp8_gpu.pointer<0>, #fp8_gpu.stride<0, 1>, #fp8_gpu.pointer<1>, #fp8_gpu.value<#[[ROWS]] : i32>,
// CHECK-SAME: grid = #[[GRID]]
// CHECK-LABEL: func.func @merged_batches
func.func @merged_batches(%x: tensor<3x32x512xbf16>) -> tensor<1x1x1xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<3x32x512xbf16>):
    %amax = fp8.amax %a block = [*, *, *] : tensor<3x32x512xbf16>
    fp8.yield %amax : tensor<1x1x1xf32>
  } {fp8_gpu.config = #fp8_fusion.config<rows = 4, chunks = 1, lanes = 32, across = 1, down = 4, cluster = 1, resident = 2>} : (tensor<3x32x512xbf16>) -> tensor<1x1x1xf32>
  return %0 : tensor<1x1x1xf32>
}

// -----

// Matrices that are transposed each have tiles of their own.

// CHECK-DAG:  #[[ROWS:.+]] = affine_map<()[s0, s1, s2] -> (s1)>
// CHECK-DAG:  #[[GRID:.+]] = affine_map<()[s0, s1, s2] -> (((s0 ceildiv 128) * (s1 ceildiv 128)) * s2)>
// CHECK:      params = [#fp8_gpu.pointer<0>, #fp8_gpu.stride<0, 0>, #fp8_gpu.stride<0, 1>, #fp8_gpu.pointer<1>, #fp8_gpu.pointer<2>, #fp8_gpu.stride<2, 0>, #fp8_gpu.stride<2, 1>, #fp8_gpu.value<#[[ROWS]] : i32>,
// CHECK-SAME: grid = #[[GRID]]
// CHECK-LABEL: func.func @batches_apart
func.func @batches_apart(%x: tensor<3x32x512xbf16>, %s: tensor<1x1x1xf32>) -> tensor<3x512x32xf8E4M3FN> {
  %0 = fp8.fusion(%x, %s) {
  ^bb0(%a: tensor<3x32x512xbf16>, %b: tensor<1x1x1xf32>):
    %q = fp8.quantize %a scale(%b, %b : tensor<1x1x1xf32>, tensor<1x1x1xf32>) : tensor<3x32x512xbf16> -> !fp8.scaled<3x32x512xf8E4M3FN, block = [*, *, *], scale = f32>
    %t = fp8.transpose %q permutation = [0, 2, 1] : !fp8.scaled<3x32x512xf8E4M3FN, block = [*, *, *], scale = f32>
    %codes, %f = fp8.disassemble %t : !fp8.scaled<3x512x32xf8E4M3FN, block = [*, *, *], scale = f32>
    fp8.yield %codes : tensor<3x512x32xf8E4M3FN>
  } {fp8_gpu.config = #fp8_fusion.config<rows = 8, chunks = 1, lanes = 16, across = 1, down = 8, cluster = 1, resident = 2>} : (tensor<3x32x512xbf16>, tensor<1x1x1xf32>) -> tensor<3x512x32xf8E4M3FN>
  return %0 : tensor<3x512x32xf8E4M3FN>
}

// -----

// A function of each element, with a scalar and a row: the scalar is a parameter,
// the row's elements are read where they are used. Functions that no instruction
// has exactly are approximated.

// CHECK:      #fp8_gpu.argument<name = "in0", element = bf16, rank = 2, access = read, alignment = 16>, #fp8_gpu.argument<name = "in1", element = bf16, rank = 1, access = read, alignment = 16>
// CHECK-SAME: #fp8_gpu.capture<0 : f32>
// CHECK-LABEL: llvm.func @fp8_fusion_sm90a_rows_4x1_l32_w4x1_b2(
// CHECK-SAME:  %[[FACTOR:[a-z0-9]+]]: f32)
// CHECK-SAME:  fp8_gpu.math = #fp8_gpu.math<approximate>
// CHECK:       math.exp
// CHECK:       arith.mulf %{{.+}}, %[[FACTOR]]
// CHECK:       llvm.store %{{.+}}, %{{.+}} : vector<4xi32>, !llvm.ptr<1>
func.func @elementwise(%x: tensor<256x512xbf16>, %r: tensor<512xbf16>, %factor: f32) -> tensor<256x512xbf16> {
  %0 = fp8.fusion(%x, %r, %factor) {
  ^bb0(%a: tensor<256x512xbf16>, %b: tensor<512xbf16>, %f: f32):
    %e = tensor.empty() : tensor<256x512xbf16>
    %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]} ins(%a, %b : tensor<256x512xbf16>, tensor<512xbf16>) outs(%e : tensor<256x512xbf16>) {
    ^bb0(%c: bf16, %d: bf16, %o: bf16):
      %2 = arith.extf %c : bf16 to f32
      %3 = math.exp %2 : f32
      %4 = arith.mulf %3, %f : f32
      %5 = arith.extf %d : bf16 to f32
      %6 = arith.addf %4, %5 : f32
      %7 = arith.truncf %6 : f32 to bf16
      linalg.yield %7 : bf16
    } -> tensor<256x512xbf16>
    fp8.yield %1 : tensor<256x512xbf16>
  } {fp8_gpu.config = #fp8_fusion.config<rows = 4, chunks = 1, lanes = 32, across = 1, down = 4, cluster = 1, resident = 2>} : (tensor<256x512xbf16>, tensor<512xbf16>, f32) -> tensor<256x512xbf16>
  return %0 : tensor<256x512xbf16>
}

// -----

// The amax of a block of 32 columns is that of four lanes, which need no shared
// memory; bytes are its factors.

// CHECK:      #fp8_gpu.argument<name = "out1", element = f8E8M0FNU, rank = 2, access = write, alignment = 1>
// CHECK-LABEL: llvm.func @fp8_fusion_sm90a_rows_1x32_4x1_l32_w4x1_b2(
// CHECK-NOT:   nvvm.barrier
// CHECK:       nvvm.shfl.sync bfly
// CHECK-NOT:   nvvm.barrier
// CHECK:       llvm.store %{{.+}}, %{{.+}} : i8, !llvm.ptr<1>
func.func @blocks(%x: tensor<256x512xbf16>) -> (tensor<256x512xf8E4M3FN>, tensor<256x16xf8E8M0FNU>) {
  %0:2 = fp8.fusion(%x) {
  ^bb0(%a: tensor<256x512xbf16>):
    %amax = fp8.amax %a block = [1, 32] : tensor<256x512xbf16>
    %s, %si = fp8.compute_scale %amax format = f8E4M3FN scale_type = f8E8M0FNU : tensor<256x16xf32>
    %q = fp8.quantize %a scale(%s, %si : tensor<256x16xf32>, tensor<256x16xf8E8M0FNU>) : tensor<256x512xbf16> -> !fp8.scaled<256x512xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
    %codes, %f = fp8.disassemble %q : !fp8.scaled<256x512xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
    fp8.yield %codes, %si : tensor<256x512xf8E4M3FN>, tensor<256x16xf8E8M0FNU>
  } {fp8_gpu.config = #fp8_fusion.config<rows = 4, chunks = 1, lanes = 32, across = 1, down = 4, cluster = 1, resident = 2>} : (tensor<256x512xbf16>) -> (tensor<256x512xf8E4M3FN>, tensor<256x16xf8E8M0FNU>)
  return %0#0, %0#1 : tensor<256x512xf8E4M3FN>, tensor<256x16xf8E8M0FNU>
}

// -----

// The sum of a row: of a thread's elements, of lanes, and through shared memory
// of warps.

// CHECK:      grid = #{{.+}}, block = 256, shared_bytes = {{[1-9][0-9]*}}, overlap = true
// CHECK-LABEL: llvm.func @fp8_fusion_sm90a_rows_whole_1x1_l32_w1x8_b2(
// CHECK-COUNT-7: arith.addf
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK-NOT:   nvvm.shfl.sync
// CHECK:       nvvm.barrier
func.func @rows(%x: tensor<256x2048xf32>) -> tensor<256xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<256x2048xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<256xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
    %1 = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>], iterator_types = ["parallel", "reduction"]} ins(%a : tensor<256x2048xf32>) outs(%z : tensor<256xf32>) {
    ^bb0(%b: f32, %s: f32):
      %2 = arith.addf %s, %b : f32
      linalg.yield %2 : f32
    } -> tensor<256xf32>
    fp8.yield %1 : tensor<256xf32>
  } {fp8_gpu.config = #fp8_fusion.config<rows = 1, chunks = 1, lanes = 32, across = 8, down = 1, cluster = 1, resident = 2>} : (tensor<256x2048xf32>) -> tensor<256xf32>
  return %0 : tensor<256xf32>
}

// -----

// A cluster has a row: its grid counts blocks, and they read each other's shared
// memory.

// CHECK:      grid = #{{.+}}, block = 256, cluster = 2, shared_bytes = {{[1-9][0-9]*}}, overlap = true
// CHECK-LABEL: llvm.func @fp8_fusion_sm90a_rows_whole_1x1_l32_w1x8_b2_c2(
// CHECK-SAME:  nvvm.cluster_dim = array<i32: 2, 1, 1>
// CHECK:       nvvm.cluster.arrive
// CHECK:       nvvm.cluster.wait
func.func @cluster(%x: tensor<256x4096xbf16>) -> tensor<256x1xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<256x4096xbf16>):
    %1 = fp8.amax %a block = [1, *] : tensor<256x4096xbf16>
    fp8.yield %1 : tensor<256x1xf32>
  } {fp8_gpu.config = #fp8_fusion.config<rows = 1, chunks = 1, lanes = 32, across = 8, down = 1, cluster = 2, resident = 2>} : (tensor<256x4096xbf16>) -> tensor<256x1xf32>
  return %0 : tensor<256x1xf32>
}

// -----

// Equal bodies share a kernel, whatever the number of tiles; another function is
// another kernel.

// CHECK-LABEL: func.func @share
// CHECK: fp8_gpu.kernel = @fp8_kernels::@[[KERNEL:fp8_fusion_sm90a_rows_4x1_l32_w4x1_b2]]}
// CHECK: fp8_gpu.kernel = @fp8_kernels::@[[KERNEL]]}
// CHECK: fp8_gpu.kernel = @fp8_kernels::@[[KERNEL]]_1}
func.func @share(%x: tensor<256x512xbf16>, %y: tensor<32x256xbf16>) -> (tensor<1x1xf32>, tensor<1x1xf32>, tensor<1x1xf32>) {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<256x512xbf16>):
    %1 = fp8.amax %a block = [*, *] : tensor<256x512xbf16>
    fp8.yield %1 : tensor<1x1xf32>
  } {fp8_gpu.config = #fp8_fusion.config<rows = 4, chunks = 1, lanes = 32, across = 1, down = 4, cluster = 1, resident = 2>} : (tensor<256x512xbf16>) -> tensor<1x1xf32>
  %2 = fp8.fusion(%y) {
  ^bb0(%a: tensor<32x256xbf16>):
    %1 = fp8.amax %a block = [*, *] : tensor<32x256xbf16>
    fp8.yield %1 : tensor<1x1xf32>
  } {fp8_gpu.config = #fp8_fusion.config<rows = 4, chunks = 1, lanes = 32, across = 1, down = 4, cluster = 1, resident = 2>} : (tensor<32x256xbf16>) -> tensor<1x1xf32>
  %3 = fp8.fusion(%x) {
  ^bb0(%a: tensor<256x512xbf16>):
    %1 = fp8.amax %a block = [*, *] propagate_nan : tensor<256x512xbf16>
    fp8.yield %1 : tensor<1x1xf32>
  } {fp8_gpu.config = #fp8_fusion.config<rows = 4, chunks = 1, lanes = 32, across = 1, down = 4, cluster = 1, resident = 2>} : (tensor<256x512xbf16>) -> tensor<1x1xf32>
  return %0, %2, %3 : tensor<1x1xf32>, tensor<1x1xf32>, tensor<1x1xf32>
}
