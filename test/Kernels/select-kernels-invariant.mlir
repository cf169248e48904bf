// RUN: split-file %s %t
// RUN: fp8-opt %t/program.mlir --fp8-set-target=chip=sm_90a --fp8-select-kernels 2>&1 | FileCheck %s
// RUN: fp8-opt %t/program.mlir --fp8-set-target=chip=sm_100a --fp8-select-kernels 2>/dev/null | FileCheck %s --check-prefix=BLACKWELL
// RUN: fp8-opt %t/program.mlir --fp8-set-target=chip=sm_90a --fp8-select-kernels --fp8-dispatch-by-rows 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: not fp8-opt %t/pinned.mlir --fp8-set-target=chip=sm_90a --fp8-select-kernels 2>&1 | FileCheck %s --check-prefix=PINNED
// RUN: not fp8-opt %t/sums.mlir --fp8-set-target=chip=sm_90a --fp8-select-kernels 2>&1 | FileCheck %s --check-prefix=SUMS

//--- program.mlir
!a = !fp8.scaled<16x16384xf8E4M3FN, block = [1, *], scale = f32>
!any = !fp8.scaled<?x16384xf8E4M3FN, block = [1, *], scale = f32>
!b = !fp8.scaled<512x16384xf8E4M3FN, block = [1, *], scale = f32>

// K is one part, and a remark says what that costs.
// CHECK: remark: invariant: K is added up in one part, expected to take {{[1-9][0-9]*\.[0-9]+}} of the time of #fp8_sm90.gemm<{{.*}}split_k
// CHECK-LABEL: func.func @free(
// CHECK: split_k
// CHECK-LABEL: func.func @invariant(
// CHECK-NOT: split_k
// CHECK: return
// BLACKWELL-LABEL: func.func @free(
// BLACKWELL: split_k
// BLACKWELL-LABEL: func.func @invariant(
// BLACKWELL-NOT: split_k
// BLACKWELL: return
func.func @free(%a: !a, %b: !b) -> tensor<16x512xbf16> {
  %d = fp8.matmul %a, %b : !a, !b -> tensor<16x512xbf16>
  return %d : tensor<16x512xbf16>
}
func.func @invariant(%a: !a, %b: !b) -> tensor<16x512xbf16> attributes {fp8.invariant} {
  %d = fp8.matmul %a, %b : !a, !b -> tensor<16x512xbf16>
  return %d : tensor<16x512xbf16>
}

// None of the kernels for a number of rows that shows at run time has parts, either.
// ROWS: remark: invariant: up to 16 rows: K is added up in one part, expected to take
// ROWS-LABEL: func.func @rows(
// ROWS-NOT: split_k
// ROWS: return
func.func @rows(%a: !any, %b: !b) -> tensor<?x512xbf16> {
  %d = fp8.matmul %a, %b {fp8.invariant} : !any, !b -> tensor<?x512xbf16>
  return %d : tensor<?x512xbf16>
}

// Rows are added up in one order, whatever else a kernel does and however many there are.
// CHECK-LABEL: func.func @norms(
// CHECK-COUNT-2: fp8_gpu.config = #fp8_fusion.config<rows = {{[12]}}, chunks = 2, lanes = 32, across = 8, {{.*}}>
func.func @norms(%x: tensor<3x4096xbf16>, %y: tensor<8192x4096xbf16>) -> (tensor<3xf32>, tensor<8192xf32>) attributes {fp8.invariant} {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<3x4096xbf16>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<3xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
    %s = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>], iterator_types = ["parallel", "reduction"]} ins(%a : tensor<3x4096xbf16>) outs(%z : tensor<3xf32>) {
    ^bb0(%i: bf16, %o: f32):
      %w = arith.extf %i : bf16 to f32
      %t = arith.addf %w, %o : f32
      linalg.yield %t : f32
    } -> tensor<3xf32>
    fp8.yield %s : tensor<3xf32>
  } : (tensor<3x4096xbf16>) -> tensor<3xf32>
  %1 = fp8.fusion(%y) {
  ^bb0(%a: tensor<8192x4096xbf16>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<8192xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8192xf32>) -> tensor<8192xf32>
    %s = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>], iterator_types = ["parallel", "reduction"]} ins(%a : tensor<8192x4096xbf16>) outs(%z : tensor<8192xf32>) {
    ^bb0(%i: bf16, %o: f32):
      %w = arith.extf %i : bf16 to f32
      %t = arith.addf %w, %o : f32
      linalg.yield %t : f32
    } -> tensor<8192xf32>
    fp8.yield %s : tensor<8192xf32>
  } : (tensor<8192x4096xbf16>) -> tensor<8192xf32>
  return %0, %1 : tensor<3xf32>, tensor<8192xf32>
}

//--- pinned.mlir
// PINNED: error: {{.*}}expected one part of K in an invariant matmul, whose rows are added up alike, but got 4
func.func @pinned(%a: !fp8.scaled<16x16384xf8E4M3FN, block = [1, *], scale = f32>, %b: !fp8.scaled<512x16384xf8E4M3FN, block = [1, *], scale = f32>) -> tensor<16x512xbf16> {
  %d = fp8.matmul %a, %b {fp8.invariant, fp8_gpu.config = #fp8_sm90.gemm<tile_m = 64, tile_n = 64, stages = 8, consumers = 1, split_k = 4>}
      : !fp8.scaled<16x16384xf8E4M3FN, block = [1, *], scale = f32>, !fp8.scaled<512x16384xf8E4M3FN, block = [1, *], scale = f32> -> tensor<16x512xbf16>
  return %d : tensor<16x512xbf16>
}

//--- sums.mlir
// SUMS: error: {{.*}}expected rows of 4096 to be added up as in every invariant program, by 2 chunks, 32 lanes, 8 across and a cluster of 1, but got #fp8_fusion.config<
func.func @sums(%x: tensor<3x4096xbf16>) -> tensor<3xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<3x4096xbf16>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<3xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
    %s = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m)>], iterator_types = ["parallel", "reduction"]} ins(%a : tensor<3x4096xbf16>) outs(%z : tensor<3xf32>) {
    ^bb0(%i: bf16, %o: f32):
      %w = arith.extf %i : bf16 to f32
      %t = arith.addf %w, %o : f32
      linalg.yield %t : f32
    } -> tensor<3xf32>
    fp8.yield %s : tensor<3xf32>
  } {fp8.invariant, fp8_gpu.config = #fp8_fusion.config<rows = 1, chunks = 4, lanes = 32, across = 4, down = 2, cluster = 1, resident = 1>} : (tensor<3x4096xbf16>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}
