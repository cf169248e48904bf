// RUN: fp8-opt --fp8-form-fusions --fp8-set-target=chip=sm_90a --fp8-select-kernels %s | FileCheck %s

// Who decides how many rows and blocks has measured them; here is what must hold.

#id = affine_map<(i, j) -> (i, j)>
!x = tensor<8192x4096xbf16>
!one = tensor<1x1xf32>
!q = !fp8.scaled<8192x4096xf8E4M3FN, block = [*, *], scale = f32>
!t = !fp8.scaled<4096x8192xf8E4M3FN, block = [*, *], scale = f32>

// A warp reads 512 neighbouring bytes of a row.

// CHECK-LABEL: func.func @flat
// CHECK: fp8_gpu.config = #fp8_fusion.config<rows = {{.+}}, chunks = {{.+}}, lanes = 32, across = 1, down = {{.+}}, cluster = 1, resident = {{.+}}>
func.func @flat(%x: !x, %s: !one, %si: !one) -> (!q, !one) {
  %q = fp8.quantize %x scale(%s, %si : !one, !one) : !x -> !q
  %amax = fp8.amax %x block = [*, *] : !x
  return %q, %amax : !q, !one
}

// A tile for another order has 128 columns: 16 lanes, squares of 4 by 4 or more
// of a thread, and at least 16 rows.

// CHECK-LABEL: func.func @transposed
// CHECK: fp8_gpu.config = #fp8_fusion.config<rows = {{4|8|16}}, chunks = 1, lanes = 16, across = 1, down = {{4|8|16|32}}, cluster = 1, resident = {{.+}}>
func.func @transposed(%x: !x, %s: !one, %si: !one) -> (!q, !t) {
  %q = fp8.quantize %x scale(%s, %si : !one, !one) : !x -> !q
  %t = fp8.transpose %q permutation = [1, 0] : !q
  return %q, %t : !q, !t
}

// Blocks of columns lie in a warp, blocks of rows in a tile.

// CHECK-LABEL: func.func @blocks_of_columns
// CHECK: fp8_gpu.config = #fp8_fusion.config<rows = {{.+}}, chunks = 1, lanes = 32, across = 1,
func.func @blocks_of_columns(%x: !x) -> tensor<8192x32xf32> {
  %0 = fp8.amax %x block = [1, 128] : !x
  return %0 : tensor<8192x32xf32>
}

// CHECK-LABEL: func.func @blocks_of_rows
// CHECK: fp8_gpu.config = #fp8_fusion.config<rows = {{4|8|16}}, chunks = 1, lanes = 16, across = 1, down = {{8|16|32}}, cluster = 1,
func.func @blocks_of_rows(%x: !x) -> tensor<64x4096xf32> {
  %0 = fp8.amax %x block = [128, 1] : !x
  return %0 : tensor<64x4096xf32>
}

// CHECK-LABEL: func.func @blocks_of_both
// CHECK: fp8_gpu.config = #fp8_fusion.config<rows = {{4|8|16}}, chunks = 1, lanes = 16, across = 1, down = {{8|16|32}}, cluster = 1,
func.func @blocks_of_both(%x: !x) -> tensor<64x32xf32> {
  %0 = fp8.amax %x block = [128, 128] : !x
  return %0 : tensor<64x32xf32>
}

// Sums of 128 rows or columns are blocks as amaxes of them are; the last may have
// fewer.

// CHECK-LABEL: func.func @parts_of_columns
// CHECK: fp8_gpu.config = #fp8_fusion.config<rows = {{4|8|16}}, chunks = 1, lanes = 16, across = 1, down = {{8|16|32}}, cluster = 1,
func.func @parts_of_columns(%x: tensor<1000x77xf32>) -> tensor<8x77xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<1000x77xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<8x77xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8x77xf32>) -> tensor<8x77xf32>
    %1 = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (i floordiv 128, j)>], iterator_types = ["reduction", "parallel"]} ins(%a : tensor<1000x77xf32>) outs(%z : tensor<8x77xf32>) {
    ^bb0(%v: f32, %o: f32):
      %2 = arith.addf %o, %v : f32
      linalg.yield %2 : f32
    } -> tensor<8x77xf32>
    fp8.yield %1 : tensor<8x77xf32>
  } : (tensor<1000x77xf32>) -> tensor<8x77xf32>
  return %0 : tensor<8x77xf32>
}

// CHECK-LABEL: func.func @parts_of_rows
// CHECK: fp8_gpu.config = #fp8_fusion.config<rows = {{.+}}, chunks = 1, lanes = 32, across = 1,
func.func @parts_of_rows(%x: tensor<33x1000xf32>) -> tensor<33x8xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<33x1000xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<33x8xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<33x8xf32>) -> tensor<33x8xf32>
    %1 = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (i, j floordiv 128)>], iterator_types = ["parallel", "reduction"]} ins(%a : tensor<33x1000xf32>) outs(%z : tensor<33x8xf32>) {
    ^bb0(%v: f32, %o: f32):
      %2 = arith.addf %o, %v : f32
      linalg.yield %2 : f32
    } -> tensor<33x8xf32>
    fp8.yield %1 : tensor<33x8xf32>
  } : (tensor<33x1000xf32>) -> tensor<33x8xf32>
  return %0 : tensor<33x8xf32>
}

// Whole columns are those of a tile as high as they are: 200 rows have one of 256.

// CHECK-LABEL: func.func @columns
// CHECK: fp8_gpu.config = #fp8_fusion.config<rows = 8, chunks = 1, lanes = {{8|16}}, across = 1, down = {{8|16}}, cluster = 1,
func.func @columns(%x: tensor<200x64xbf16>) -> tensor<1x64xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<200x64xbf16>):
    %1 = fp8.amax %a block = [*, 1] : tensor<200x64xbf16>
    fp8.yield %1 : tensor<1x64xf32>
  } : (tensor<200x64xbf16>) -> tensor<1x64xf32>
  return %0 : tensor<1x64xf32>
}

// Low blocks need no high tile.

// CHECK-LABEL: func.func @low_blocks
// CHECK: fp8_gpu.config = #fp8_fusion.config<rows = {{1|2}}, chunks = 1, lanes = 16,
func.func @low_blocks(%x: !x) -> tensor<4096x4096xf32> {
  %0 = fp8.amax %x block = [2, 1] : !x
  return %0 : tensor<4096x4096xf32>
}

// Nor may a thread have rows of two blocks, measured or given.

// CHECK-LABEL: func.func @given_factors
// CHECK: fp8_gpu.config = #fp8_fusion.config<rows = {{1|2}}, chunks = 1,
func.func @given_factors(%x: !x, %s: tensor<4096x4096xf32>) -> !fp8.scaled<8192x4096xf8E4M3FN, block = [2, 1], scale = f32> {
  %q = fp8.quantize %x scale(%s, %s : tensor<4096x4096xf32>, tensor<4096x4096xf32>) : !x -> !fp8.scaled<8192x4096xf8E4M3FN, block = [2, 1], scale = f32>
  return %q : !fp8.scaled<8192x4096xf8E4M3FN, block = [2, 1], scale = f32>
}

// Warps beside each other have a row: 2 chunks of 8, 32 lanes, 8 warps.

// CHECK-LABEL: func.func @rows
// CHECK: fp8_gpu.config = #fp8_fusion.config<rows = 1, chunks = 2, lanes = 32, across = 8, down = 1, cluster = 1,
func.func @rows(%x: !x) -> tensor<8192x1xf32> {
  %0 = fp8.amax %x block = [1, *] : !x
  return %0 : tensor<8192x1xf32>
}

// A short row is a warp's, or some lanes'; the others have other rows.

// CHECK-LABEL: func.func @short_rows
// CHECK: fp8_gpu.config = #fp8_fusion.config<rows = 1, chunks = 1, lanes = 8, across = 1, down = 8, cluster = 1,
func.func @short_rows(%x: tensor<8192x64xbf16>) -> tensor<8192x1xf32> {
  %0 = fp8.amax %x block = [1, *] : tensor<8192x64xbf16>
  return %0 : tensor<8192x1xf32>
}

// A row that a block has no registers for is a cluster's.

// CHECK-LABEL: func.func @long_rows
// CHECK: fp8_gpu.config = #fp8_fusion.config<rows = 1, chunks = 8, lanes = 32, across = 16, down = 1, cluster = 8, resident = 2>
func.func @long_rows(%x: tensor<64x262144xbf16>) -> tensor<64x1xf32> {
  %0 = fp8.amax %x block = [1, *] : tensor<64x262144xbf16>
  return %0 : tensor<64x1xf32>
}

// A row of 14336 columns has so many warps that of seven chunks none is idle.

// CHECK-LABEL: func.func @rows_of_56_warps
// CHECK: fp8_gpu.config = #fp8_fusion.config<rows = 1, chunks = 7, lanes = 32, across = 8, down = 1, cluster = 1,
func.func @rows_of_56_warps(%x: tensor<8192x14336xbf16>) -> tensor<8192x1xf32> {
  %0 = fp8.amax %x block = [1, *] : tensor<8192x14336xbf16>
  return %0 : tensor<8192x1xf32>
}

// CHECK-LABEL: func.func @rows_of_20_warps
// CHECK: fp8_gpu.config = #fp8_fusion.config<rows = 1, chunks = 2, lanes = 32, across = 10, down = 1, cluster = 1,
func.func @rows_of_20_warps(%x: tensor<8192x5120xbf16>) -> tensor<8192x1xf32> {
  %0 = fp8.amax %x block = [1, *] : tensor<8192x5120xbf16>
  return %0 : tensor<8192x1xf32>
}

// Where whole rows are written in the other order as well, a tile has 64 of
// them; where it has no room for so many there is no kernel.

// CHECK-LABEL: func.func @rows_transposed
// CHECK: fp8_gpu.config = #fp8_fusion.config<rows = 8, chunks = 1, lanes = 32, across = 2, down = 8, cluster = 1,
func.func @rows_transposed(%x: tensor<8192x512xbf16>) -> (!fp8.scaled<8192x512xf8E4M3FN, block = [1, *], scale = f32>, !fp8.scaled<512x8192xf8E4M3FN, block = [*, 1], scale = f32>) {
  %a = fp8.amax %x block = [1, *] : tensor<8192x512xbf16>
  %s, %si = fp8.compute_scale %a format = f8E4M3FN scale_type = f32 : tensor<8192x1xf32>
  %q = fp8.quantize %x scale(%s, %si : tensor<8192x1xf32>, tensor<8192x1xf32>) : tensor<8192x512xbf16> -> !fp8.scaled<8192x512xf8E4M3FN, block = [1, *], scale = f32>
  %t = fp8.transpose %q permutation = [1, 0] : !fp8.scaled<8192x512xf8E4M3FN, block = [1, *], scale = f32>
  return %q, %t : !fp8.scaled<8192x512xf8E4M3FN, block = [1, *], scale = f32>, !fp8.scaled<512x8192xf8E4M3FN, block = [*, 1], scale = f32>
}

// CHECK-LABEL: func.func @long_rows_transposed
// CHECK-NOT: fp8_fusion.config
// CHECK: return
func.func @long_rows_transposed(%x: !x) -> (!fp8.scaled<8192x4096xf8E4M3FN, block = [1, *], scale = f32>, !fp8.scaled<4096x8192xf8E4M3FN, block = [*, 1], scale = f32>) {
  %a = fp8.amax %x block = [1, *] : !x
  %s, %si = fp8.compute_scale %a format = f8E4M3FN scale_type = f32 : tensor<8192x1xf32>
  %q = fp8.quantize %x scale(%s, %si : tensor<8192x1xf32>, tensor<8192x1xf32>) : !x -> !fp8.scaled<8192x4096xf8E4M3FN, block = [1, *], scale = f32>
  %t = fp8.transpose %q permutation = [1, 0] : !fp8.scaled<8192x4096xf8E4M3FN, block = [1, *], scale = f32>
  return %q, %t : !fp8.scaled<8192x4096xf8E4M3FN, block = [1, *], scale = f32>, !fp8.scaled<4096x8192xf8E4M3FN, block = [*, 1], scale = f32>
}

// Few rows have few warps below each other: what a block lacks in rows it has
// in columns.

// CHECK-LABEL: func.func @one_row
// CHECK: fp8_gpu.config = #fp8_fusion.config<rows = 1, chunks = {{2|4|8}}, lanes = 32, across = {{8|16}}, down = 1,
func.func @one_row(%x: tensor<1048576xf32>) -> tensor<1xf32> {
  %0 = fp8.amax %x block = [*] : tensor<1048576xf32>
  return %0 : tensor<1xf32>
}

// CHECK-LABEL: func.func @tiny
// CHECK: fp8_gpu.config = #fp8_fusion.config<rows = 1, chunks = 1, lanes = 1, across = 1, down = 1,
func.func @tiny(%x: tensor<2x3xf32>) -> !one {
  %0 = fp8.amax %x block = [*, *] : tensor<2x3xf32>
  return %0 : !one
}

// CHECK-LABEL: func.func @nothing
// CHECK: fp8_gpu.config = #fp8_fusion.config<
func.func @nothing(%x: tensor<0x64xf32>) -> !one {
  %0 = fp8.amax %x block = [*, *] : tensor<0x64xf32>
  return %0 : !one
}

// Extents that are not known are taken for large ones.

// CHECK-LABEL: func.func @unknown
// CHECK: fp8_gpu.config = #fp8_fusion.config<rows = {{.+}}, chunks = {{.+}}, lanes = 32, across = 1,
// CHECK: fp8_gpu.config = #fp8_fusion.config<rows = 1, chunks = 1, lanes = 32, across = 2,
func.func @unknown(%x: tensor<?x?xbf16>, %y: tensor<?x512xbf16>) -> (!one, tensor<?x1xf32>) {
  %0 = fp8.amax %x block = [*, *] : tensor<?x?xbf16>
  %1 = fp8.amax %y block = [1, *] : tensor<?x512xbf16>
  return %0, %1 : !one, tensor<?x1xf32>
}

// What a result would be written to says nothing of how inputs are read.

// CHECK-LABEL: func.func @destination
// CHECK: fp8_gpu.config = #fp8_fusion.config<
func.func @destination(%x: !x, %out: !x) -> !x {
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%x : !x) outs(%out : !x) {
  ^bb0(%a: bf16, %o: bf16):
    %0 = arith.negf %a : bf16
    linalg.yield %0 : bf16
  } -> !x
  return %y : !x
}

// A config that is there stays, and nothing inside gets one.

// CHECK-LABEL: func.func @pinned
// CHECK: fp8.transpose %{{.+}} permutation = [1, 0] :
// CHECK: fp8_gpu.config = #fp8_fusion.config<rows = 16, chunks = 1, lanes = 16, across = 1, down = 4, cluster = 1, resident = 2>
// CHECK-NOT: fp8_gpu.config
func.func @pinned(%x: !x, %s: !one) -> tensor<4096x8192xf8E4M3FN> {
  %0 = fp8.fusion(%x, %s) {
  ^bb0(%a: !x, %b: !one):
    %q = fp8.quantize %a scale(%b, %b : !one, !one) : !x -> !q
    %t = fp8.transpose %q permutation = [1, 0] : !q
    %codes, %factor = fp8.disassemble %t : !t
    fp8.yield %codes : tensor<4096x8192xf8E4M3FN>
  } {fp8_gpu.config = #fp8_fusion.config<rows = 16, chunks = 1, lanes = 16, across = 1, down = 4, cluster = 1, resident = 2>} : (!x, !one) -> tensor<4096x8192xf8E4M3FN>
  return %0 : tensor<4096x8192xf8E4M3FN>
}
