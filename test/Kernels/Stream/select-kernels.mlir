// RUN: fp8-opt --fp8-form-streams --fp8-set-target=chip=sm_90a --fp8-select-kernels %s | FileCheck %s

// Who decides how many rows and blocks has measured them; here is what must hold.

#id = affine_map<(i, j) -> (i, j)>
!x = tensor<8192x4096xbf16>
!one = tensor<1x1xf32>
!q = !fp8.scaled<8192x4096xf8E4M3FN, block = [*, *], scale = f32>
!t = !fp8.scaled<4096x8192xf8E4M3FN, block = [*, *], scale = f32>

// A warp reads 512 neighbouring bytes of a row.

// CHECK-LABEL: func.func @flat
// CHECK: fp8_gpu.config = #fp8_stream.config<rows = {{.+}}, chunks = {{.+}}, lanes = 32, across = 1, down = {{.+}}, cluster = 1, resident = {{.+}}>
func.func @flat(%x: !x, %s: !one, %si: !one) -> (!q, !one) {
  %q = fp8.quantize %x scale(%s, %si : !one, !one) : !x -> !q
  %amax = fp8.amax %x block = [*, *] : !x
  return %q, %amax : !q, !one
}

// A tile for another order has 128 columns: 16 lanes, squares of 4 by 4 or more
// of a thread, and at least 16 rows.

// CHECK-LABEL: func.func @transposed
// CHECK: fp8_gpu.config = #fp8_stream.config<rows = {{4|8|16}}, chunks = 1, lanes = 16, across = 1, down = {{4|8|16|32}}, cluster = 1, resident = {{.+}}>
func.func @transposed(%x: !x, %s: !one, %si: !one) -> (!q, !t) {
  %q = fp8.quantize %x scale(%s, %si : !one, !one) : !x -> !q
  %t = fp8.transpose %q permutation = [1, 0] : !q
  return %q, %t : !q, !t
}

// Blocks of columns lie in a warp, blocks of rows in a tile.

// CHECK-LABEL: func.func @blocks_of_columns
// CHECK: fp8_gpu.config = #fp8_stream.config<rows = {{.+}}, chunks = 1, lanes = 32, across = 1,
func.func @blocks_of_columns(%x: !x) -> tensor<8192x32xf32> {
  %0 = fp8.amax %x block = [1, 128] : !x
  return %0 : tensor<8192x32xf32>
}

// CHECK-LABEL: func.func @blocks_of_rows
// CHECK: fp8_gpu.config = #fp8_stream.config<rows = {{4|8|16}}, chunks = 1, lanes = 16, across = 1, down = {{8|16|32}}, cluster = 1,
func.func @blocks_of_rows(%x: !x) -> tensor<64x4096xf32> {
  %0 = fp8.amax %x block = [128, 1] : !x
  return %0 : tensor<64x4096xf32>
}

// CHECK-LABEL: func.func @blocks_of_both
// CHECK: fp8_gpu.config = #fp8_stream.config<rows = {{4|8|16}}, chunks = 1, lanes = 16, across = 1, down = {{8|16|32}}, cluster = 1,
func.func @blocks_of_both(%x: !x) -> tensor<64x32xf32> {
  %0 = fp8.amax %x block = [128, 128] : !x
  return %0 : tensor<64x32xf32>
}

// Low blocks need no high tile.

// CHECK-LABEL: func.func @low_blocks
// CHECK: fp8_gpu.config = #fp8_stream.config<rows = {{1|2}}, chunks = 1, lanes = 16,
func.func @low_blocks(%x: !x) -> tensor<4096x4096xf32> {
  %0 = fp8.amax %x block = [2, 1] : !x
  return %0 : tensor<4096x4096xf32>
}

// Warps beside each other have a row: 2 chunks of 8, 32 lanes, 8 warps.

// CHECK-LABEL: func.func @rows
// CHECK: fp8_gpu.config = #fp8_stream.config<rows = 1, chunks = 2, lanes = 32, across = 8, down = 1, cluster = 1,
func.func @rows(%x: !x) -> tensor<8192x1xf32> {
  %0 = fp8.amax %x block = [1, *] : !x
  return %0 : tensor<8192x1xf32>
}

// A short row is a warp's, or some lanes'; the others have other rows.

// CHECK-LABEL: func.func @short_rows
// CHECK: fp8_gpu.config = #fp8_stream.config<rows = 1, chunks = 1, lanes = 8, across = 1, down = 8, cluster = 1,
func.func @short_rows(%x: tensor<8192x64xbf16>) -> tensor<8192x1xf32> {
  %0 = fp8.amax %x block = [1, *] : tensor<8192x64xbf16>
  return %0 : tensor<8192x1xf32>
}

// A row that a block has no registers for is a cluster's.

// CHECK-LABEL: func.func @long_rows
// CHECK: fp8_gpu.config = #fp8_stream.config<rows = 1, chunks = {{.+}}, lanes = 32, across = 32, down = 1, cluster = {{2|4|8}}, resident = 1>
func.func @long_rows(%x: tensor<64x262144xbf16>) -> tensor<64x1xf32> {
  %0 = fp8.amax %x block = [1, *] : tensor<64x262144xbf16>
  return %0 : tensor<64x1xf32>
}

// Where whole rows are written in the other order as well, the blocks of a
// cluster share them, so that a tile has at least 16.

// CHECK-LABEL: func.func @rows_transposed
// CHECK: fp8_gpu.config = #fp8_stream.config<rows = {{4|8|16}}, chunks = 1, lanes = 32, across = {{.+}}, down = {{.+}}, cluster = {{2|4|8}},
func.func @rows_transposed(%x: !x) -> (!fp8.scaled<8192x4096xf8E4M3FN, block = [1, *], scale = f32>, !fp8.scaled<4096x8192xf8E4M3FN, block = [*, 1], scale = f32>) {
  %a = fp8.amax %x block = [1, *] : !x
  %s, %si = fp8.compute_scale %a format = f8E4M3FN scale_type = f32 : tensor<8192x1xf32>
  %q = fp8.quantize %x scale(%s, %si : tensor<8192x1xf32>, tensor<8192x1xf32>) : !x -> !fp8.scaled<8192x4096xf8E4M3FN, block = [1, *], scale = f32>
  %t = fp8.transpose %q permutation = [1, 0] : !fp8.scaled<8192x4096xf8E4M3FN, block = [1, *], scale = f32>
  return %q, %t : !fp8.scaled<8192x4096xf8E4M3FN, block = [1, *], scale = f32>, !fp8.scaled<4096x8192xf8E4M3FN, block = [*, 1], scale = f32>
}

// Few rows have few warps below each other: what a block lacks in rows it has
// in columns.

// CHECK-LABEL: func.func @one_row
// CHECK: fp8_gpu.config = #fp8_stream.config<rows = 1, chunks = {{2|4|8}}, lanes = 32, across = {{8|16}}, down = 1,
func.func @one_row(%x: tensor<1048576xf32>) -> tensor<1xf32> {
  %0 = fp8.amax %x block = [*] : tensor<1048576xf32>
  return %0 : tensor<1xf32>
}

// CHECK-LABEL: func.func @tiny
// CHECK: fp8_gpu.config = #fp8_stream.config<rows = 1, chunks = 1, lanes = 1, across = 1, down = 1,
func.func @tiny(%x: tensor<2x3xf32>) -> !one {
  %0 = fp8.amax %x block = [*, *] : tensor<2x3xf32>
  return %0 : !one
}

// CHECK-LABEL: func.func @nothing
// CHECK: fp8_gpu.config = #fp8_stream.config<
func.func @nothing(%x: tensor<0x64xf32>) -> !one {
  %0 = fp8.amax %x block = [*, *] : tensor<0x64xf32>
  return %0 : !one
}

// Extents that are not known are taken for large ones.

// CHECK-LABEL: func.func @unknown
// CHECK: fp8_gpu.config = #fp8_stream.config<rows = {{.+}}, chunks = {{.+}}, lanes = 32, across = 1,
// CHECK: fp8_gpu.config = #fp8_stream.config<rows = 1, chunks = 2, lanes = 32, across = 1,
func.func @unknown(%x: tensor<?x?xbf16>, %y: tensor<?x512xbf16>) -> (!one, tensor<?x1xf32>) {
  %0 = fp8.amax %x block = [*, *] : tensor<?x?xbf16>
  %1 = fp8.amax %y block = [1, *] : tensor<?x512xbf16>
  return %0, %1 : !one, tensor<?x1xf32>
}

// What a result would be written to says nothing of how inputs are read.

// CHECK-LABEL: func.func @destination
// CHECK: fp8_gpu.config = #fp8_stream.config<
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
// CHECK: fp8_gpu.config = #fp8_stream.config<rows = 16, chunks = 1, lanes = 16, across = 1, down = 4, cluster = 1, resident = 2>
// CHECK-NOT: fp8_gpu.config
func.func @pinned(%x: !x, %s: !one) -> tensor<4096x8192xf8E4M3FN> {
  %0 = fp8.stream(%x, %s) {
  ^bb0(%a: !x, %b: !one):
    %q = fp8.quantize %a scale(%b, %b : !one, !one) : !x -> !q
    %t = fp8.transpose %q permutation = [1, 0] : !q
    %codes, %factor = fp8.disassemble %t : !t
    fp8.yield %codes : tensor<4096x8192xf8E4M3FN>
  } {fp8_gpu.config = #fp8_stream.config<rows = 16, chunks = 1, lanes = 16, across = 1, down = 4, cluster = 1, resident = 2>} : (!x, !one) -> tensor<4096x8192xf8E4M3FN>
  return %0 : tensor<4096x8192xf8E4M3FN>
}
