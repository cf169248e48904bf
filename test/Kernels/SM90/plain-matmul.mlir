// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-select-kernels --split-input-file %s | FileCheck %s

// Configs of operands in high precision follow the extents. A large product takes
// wide tiles in turns, and clusters.

// CHECK-LABEL: @large
// CHECK: #fp8_sm90.gemm<tile_m = 128, tile_n = {{1[2-9][0-9]|20[0-9]}}, stages = {{[4-9]}}, schedule = ping_pong, {{.*}}cluster_m = 2
func.func @large(%a: tensor<8192x4096xbf16>, %b: tensor<8192x4096xbf16>) -> tensor<8192x8192xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast : tensor<8192x4096xbf16>, tensor<8192x4096xbf16> -> tensor<8192x8192xbf16>
  return %0 : tensor<8192x8192xbf16>
}

// -----

// A few rows take the side of the tensor core that comes in 8s.

// CHECK-LABEL: @few_rows
// CHECK: #fp8_sm90.gemm<tile_m = 8, {{.*}}swap_ab = true, store = direct
func.func @few_rows(%a: tensor<3x4096xf16>, %b: tensor<4096x4096xf16>) -> tensor<3x4096xf16> {
  %0 = fp8.matmul %a, %b accumulate = fast : tensor<3x4096xf16>, tensor<4096x4096xf16> -> tensor<3x4096xf16>
  return %0 : tensor<3x4096xf16>
}

// -----

// Widths cut the extent evenly: 272 rows into two tiles of 136, or 4 of 72.

// CHECK-LABEL: @even
// CHECK: #fp8_sm90.gemm<tile_m = {{136|96|72|56}}, {{.*}}swap_ab = true
func.func @even(%a: tensor<272x4800xbf16>, %b: tensor<4096x4800xbf16>) -> tensor<272x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast : tensor<272x4800xbf16>, tensor<4096x4800xbf16> -> tensor<272x4096xbf16>
  return %0 : tensor<272x4096xbf16>
}

// -----

// Few tiles of a long K are cut along it.

// CHECK-LABEL: @long_k
// CHECK: #fp8_sm90.gemm<{{.*}}split_k = {{[2-8]}}
func.func @long_k(%a: tensor<128x32768xbf16>, %b: tensor<512x32768xbf16>) -> tensor<128x512xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast : tensor<128x32768xbf16>, tensor<512x32768xbf16> -> tensor<128x512xbf16>
  return %0 : tensor<128x512xbf16>
}

// -----

// Rows of the result that no bulk copy takes are stored one by one.

// CHECK-LABEL: @odd
// CHECK: #fp8_sm90.gemm<{{.*}}store = direct
func.func @odd(%a: tensor<2048x1024xbf16>, %b: tensor<2047x1024xbf16>) -> tensor<2048x2047xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast : tensor<2048x1024xbf16>, tensor<2047x1024xbf16> -> tensor<2048x2047xbf16>
  return %0 : tensor<2048x2047xbf16>
}

// -----

// Unknown extents count as large ones.

// CHECK-LABEL: @unknown
// CHECK: #fp8_sm90.gemm<tile_m = 128, {{.*}}schedule = ping_pong
func.func @unknown(%a: tensor<?x?xbf16>, %b: tensor<4096x?xbf16>) -> tensor<?x4096xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast : tensor<?x?xbf16>, tensor<4096x?xbf16> -> tensor<?x4096xbf16>
  return %0 : tensor<?x4096xbf16>
}

// -----

// Where the dimension that comes in 8s is innermost, widths are multiples of 32: of
// narrower lines there would be too many copies.

// CHECK-LABEL: @innermost
// CHECK: #fp8_sm90.gemm<tile_m = {{32|64|96|128|160|192|224|256}}, {{.*}}swap_ab = true
func.func @innermost(%a: tensor<4800x88xbf16>, %b: tensor<12288x4800xbf16>) -> tensor<88x12288xbf16> {
  %0 = fp8.matmul %a, %b transpose_a accumulate = fast : tensor<4800x88xbf16>, tensor<12288x4800xbf16> -> tensor<88x12288xbf16>
  return %0 : tensor<88x12288xbf16>
}

// -----

// Many blocks that read the same few columns, whose lines do not start at cache
// lines, wait for one another: clusters read them once.

// CHECK-LABEL: @l2_contention
// CHECK: #fp8_sm90.gemm<tile_m = 32, {{.*}}swap_ab = true, {{.*}}cluster_n = 4
func.func @l2_contention(%a: tensor<2208x24xbf16>, %b: tensor<2816x2208xbf16>) -> tensor<24x2816xbf16> {
  %0 = fp8.matmul %a, %b transpose_a accumulate = fast : tensor<2208x24xbf16>, tensor<2816x2208xbf16> -> tensor<24x2816xbf16>
  return %0 : tensor<24x2816xbf16>
}

// -----

// Extents of nothing, or of very much, have a config as any others.

// CHECK-LABEL: @extremes
// CHECK: #fp8_sm90.gemm<
func.func @extremes(%a: tensor<0x64xbf16>, %b: tensor<2000000000x64xbf16>) -> tensor<0x2000000000xbf16> {
  %0 = fp8.matmul %a, %b accumulate = fast : tensor<0x64xbf16>, tensor<2000000000x64xbf16> -> tensor<0x2000000000xbf16>
  return %0 : tensor<0x2000000000xbf16>
}
