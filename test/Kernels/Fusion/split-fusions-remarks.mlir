// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-split-fusions --verify-diagnostics %s | FileCheck %s

#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
!x = tensor<32x64xbf16>
!one = tensor<1x1xf32>

// Why one kernel was not enough, at what was taken apart.

func.func @columns(%x: tensor<8192x64xf32>) -> tensor<1x64xf32> {
  // expected-remark @below {{several kernels: expected columns of at most 512 rows, of which something is measured}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<8192x64xf32>):
    %m = fp8.amax %a block = [*, 1] : tensor<8192x64xf32>
    fp8.yield %m : tensor<1x64xf32>
  } : (tensor<8192x64xf32>) -> tensor<1x64xf32>
  return %0 : tensor<1x64xf32>
}

// 512 rows have a tile.

func.func @tile(%x: tensor<512x16xf32>, %y: tensor<1024x128xf32>) -> (tensor<1x16xf32>, tensor<1x128xf32>) {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<512x16xf32>):
    %m = fp8.amax %a block = [*, 1] : tensor<512x16xf32>
    fp8.yield %m : tensor<1x16xf32>
  } : (tensor<512x16xf32>) -> tensor<1x16xf32>
  // expected-remark @below {{several kernels: expected columns of at most 512 rows, of which something is measured}}
  %1 = fp8.fusion(%y) {
  ^bb0(%a: tensor<1024x128xf32>):
    %m = fp8.amax %a block = [*, 1] : tensor<1024x128xf32>
    fp8.yield %m : tensor<1x128xf32>
  } : (tensor<1024x128xf32>) -> tensor<1x128xf32>
  return %0, %1 : tensor<1x16xf32>, tensor<1x128xf32>
}

func.func @rows(%x: tensor<16x1048576xf32>) -> tensor<16x1xf32> {
  // expected-remark @below {{several kernels: expected rows that the registers of a cluster hold, but got 1048576 columns}}
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<16x1048576xf32>):
    %m = fp8.amax %a block = [1, *] : tensor<16x1048576xf32>
    fp8.yield %m : tensor<16x1xf32>
  } : (tensor<16x1048576xf32>) -> tensor<16x1xf32>
  return %0 : tensor<16x1xf32>
}

func.func @unsupported(%x: !x) -> (tensor<64x32xbf16>, !one) {
  // expected-remark @below {{several kernels: expected a transposed result to be codes, but got tensor<64x32xbf16>}}
  %0:2 = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %e = tensor.empty() : tensor<64x32xbf16>
    %1 = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (j, i)>], iterator_types = ["parallel", "parallel"]} ins(%a : !x) outs(%e : tensor<64x32xbf16>) {
    ^bb0(%v: bf16, %o: bf16):
      %3 = arith.negf %v : bf16
      linalg.yield %3 : bf16
    } -> tensor<64x32xbf16>
    %2 = fp8.amax %a block = [*, *] : !x
    fp8.yield %1, %2 : tensor<64x32xbf16>, !one
  } : (!x) -> (tensor<64x32xbf16>, !one)
  return %0#0, %0#1 : tensor<64x32xbf16>, !one
}

// What stays as it is has no remark here: who selects kernels says that it has
// none.

func.func @stays(%x: !x) -> (tensor<2048xbf16>, !x) {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %1 = tensor.collapse_shape %a [[0, 1]] : !x into tensor<2048xbf16>
    fp8.yield %1 : tensor<2048xbf16>
  } : (!x) -> tensor<2048xbf16>
  %2 = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %e = tensor.empty() : !x
    %3 = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%a : !x) outs(%e : !x) {
    ^bb0(%v: bf16, %o: bf16):
      %4 = arith.negf %v : bf16
      linalg.yield %4 : bf16
    } -> !x
    fp8.yield %3 : !x
  } : (!x) -> !x
  return %0, %2 : tensor<2048xbf16>, !x
}

// A config that is there stays, and with it what it is for.

// CHECK-LABEL: func.func @pinned
// CHECK:       fp8.fusion(
// CHECK:         fp8.amax %{{.+}} block = [*, 1] : tensor<8192x64xf32>
// CHECK:       } {fp8_gpu.config = #fp8_fusion.config<rows = 8, chunks = 1, lanes = 16, across = 1, down = 8, cluster = 1, resident = 2>}
// CHECK-NOT:   fp8.fusion(
func.func @pinned(%x: tensor<8192x64xf32>) -> tensor<1x64xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<8192x64xf32>):
    %m = fp8.amax %a block = [*, 1] : tensor<8192x64xf32>
    fp8.yield %m : tensor<1x64xf32>
  } {fp8_gpu.config = #fp8_fusion.config<rows = 8, chunks = 1, lanes = 16, across = 1, down = 8, cluster = 1, resident = 2>} : (tensor<8192x64xf32>) -> tensor<1x64xf32>
  return %0 : tensor<1x64xf32>
}
