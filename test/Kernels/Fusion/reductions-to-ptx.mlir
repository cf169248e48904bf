// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-build-kernels %s -o %t
// RUN: fp8-translate --kernels-to-ptx %t -o %t.ptx
// RUN: FileCheck %s --input-file=%t.ptx

// Sums of parts and of whole columns of sizes that are multiples of nothing: what
// is outside adds nothing, and is not written. Between lanes below each other by
// shuffles, then between warps through shared memory; then each sum has a thread
// that writes it. Nothing spills.

#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>

// Two rows of lanes, eight warps: one shuffle for each of a thread's 8 columns.

// CHECK-LABEL: .visible .entry fp8_fusion_sm90a_rows_128x1_8x1_l16_w8x1_b2(
// CHECK-NOT:   .local
// CHECK:       ld.global.nc
// CHECK:       selp.f32
// CHECK:       add.rn.f32
// CHECK-COUNT-8: shfl.sync.bfly.b32
// CHECK-NOT:   shfl.sync
// CHECK:       st.shared
// CHECK:       bar{{(rier)?}}.sync
// CHECK:       ld.shared
// CHECK:       @{{.*}}bra
// CHECK:       st.global.b32
// CHECK:       ret;
func.func @parts(%x: tensor<1000x77xf32>) -> tensor<8x77xf32> {
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
  } {fp8_gpu.config = #fp8_fusion.config<rows = 8, chunks = 1, lanes = 16, across = 1, down = 8, cluster = 1, resident = 2>} : (tensor<1000x77xf32>) -> tensor<8x77xf32>
  return %0 : tensor<8x77xf32>
}

// Parts of rows are those of a warp's lanes: no shared memory. Each of a thread's
// two rows is shuffled four times.

// CHECK-LABEL: .visible .entry fp8_fusion_sm90a_rows_1x128_2x1_l16_w8x1_b4(
// CHECK-NOT:   .local
// CHECK-NOT:   bar{{(rier)?}}.sync
// CHECK:       selp.f32
// CHECK-COUNT-8: shfl.sync.bfly.b32
// CHECK-NOT:   shfl.sync
// CHECK-NOT:   bar{{(rier)?}}.sync
// CHECK:       st.global.b32
// CHECK-NOT:   bar{{(rier)?}}.sync
// CHECK:       ret;
func.func @row_parts(%x: tensor<33x1001xf32>) -> tensor<33x8xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<33x1001xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<33x8xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<33x8xf32>) -> tensor<33x8xf32>
    %1 = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (i, j floordiv 128)>], iterator_types = ["parallel", "reduction"]} ins(%a : tensor<33x1001xf32>) outs(%z : tensor<33x8xf32>) {
    ^bb0(%v: f32, %o: f32):
      %2 = arith.addf %o, %v : f32
      linalg.yield %2 : f32
    } -> tensor<33x8xf32>
    fp8.yield %1 : tensor<33x8xf32>
  } {fp8_gpu.config = #fp8_fusion.config<rows = 2, chunks = 1, lanes = 16, across = 1, down = 8, cluster = 1, resident = 4>} : (tensor<33x1001xf32>) -> tensor<33x8xf32>
  return %0 : tensor<33x8xf32>
}

// A tile has the whole columns of 61 rows, and the last of its lanes one of 77
// columns.

// CHECK-LABEL: .visible .entry fp8_fusion_sm90a_rows_64x1_4x1_l16_w8x1_b2(
// CHECK-NOT:   .local
// CHECK:       selp.f32
// CHECK-COUNT-8: shfl.sync.bfly.b32
// CHECK:       st.shared
// CHECK:       bar{{(rier)?}}.sync
// CHECK:       st.global.b32
// CHECK:       ret;
func.func @held_columns(%x: tensor<61x77xf32>) -> tensor<77xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<61x77xf32>):
    %five = arith.constant 5.0 : f32
    %e = tensor.empty() : tensor<77xf32>
    %z = linalg.fill ins(%five : f32) outs(%e : tensor<77xf32>) -> tensor<77xf32>
    %1 = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%a : tensor<61x77xf32>) outs(%z : tensor<77xf32>) {
    ^bb0(%v: f32, %o: f32):
      %2 = arith.addf %o, %v : f32
      linalg.yield %2 : f32
    } -> tensor<77xf32>
    fp8.yield %1 : tensor<77xf32>
  } {fp8_gpu.config = #fp8_fusion.config<rows = 4, chunks = 1, lanes = 16, across = 1, down = 8, cluster = 1, resident = 2>} : (tensor<61x77xf32>) -> tensor<77xf32>
  return %0 : tensor<77xf32>
}
