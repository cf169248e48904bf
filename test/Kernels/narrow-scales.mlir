// RUN: fp8-opt --fp8-narrow-scales=chip=sm_100a %s | FileCheck %s
// RUN: fp8-opt --fp8-narrow-scales=chip=sm_90a %s | FileCheck %s --check-prefix=HOPPER
// RUN: not fp8-opt --fp8-narrow-scales=chip=sm_70 %s 2>&1 | FileCheck %s --check-prefix=CHIP

// CHIP: error: expected chip to be one of sm_90a, sm_100a, sm_89, sm_120a, sm_121a, sm_80, but got 'sm_70'
// HOPPER-NOT: linalg.generic

!x = !fp8.scaled<64x256xf8E4M3FN, block = [1, 128], scale = f32>
!w = !fp8.scaled<160x256xf8E4M3FN, block = [128, 128], scale = f32>
!wt = !fp8.scaled<256x160xf8E4M3FN, block = [128, 128], scale = f32>

// CHECK-DAG: #[[ROWS:.*]] = affine_map<(d0, d1) -> (d0, d1 floordiv 4)>
// CHECK-DAG: #[[TILES:.*]] = affine_map<(d0, d1) -> (d0 floordiv 128, d1 floordiv 4)>
// CHECK-DAG: #[[TILES32:.*]] = affine_map<(d0, d1) -> (d0 floordiv 32, d1)>
// CHECK-DAG: #[[TILES16:.*]] = affine_map<(d0, d1) -> (d0 floordiv 16, d1)>
// CHECK-DAG: #[[SAME:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[BATCHES:.*]] = affine_map<(d0, d1, d2) -> (d0, d1, d2 floordiv 4)>

// CHECK-LABEL: func.func @block
// CHECK:       %[[X:.*]] = fp8.quantize
// CHECK-NEXT:  %[[CODES:.*]], %[[FACTORS:.*]] = fp8.disassemble %[[X]]
// CHECK:       %[[BYTES:.*]] = linalg.generic {indexing_maps = [#[[ROWS]], #[[SAME]]]{{.*}} ins(%[[FACTORS]] : tensor<64x2xf32>) outs(%{{.*}} : tensor<64x8xf8E8M0FNU>)
// CHECK:         %[[BITS:.*]] = arith.bitcast %{{.*}} : f32 to i32
// CHECK:        %[[EXPONENT:.*]] = arith.shrui %[[BITS]], %c23_i32
// CHECK-NEXT:    %[[BYTE:.*]] = arith.trunci %[[EXPONENT]] : i32 to i8
// CHECK-NEXT:    arith.bitcast %[[BYTE]] : i8 to f8E8M0FNU
// CHECK:       %[[A:.*]] = fp8.assemble %[[CODES]], %[[BYTES]]
// CHECK:       %[[W:.*]] = fp8.quantize
// CHECK:       linalg.generic {indexing_maps = [#[[TILES]], #[[SAME]]]{{.*}} ins(%{{.*}} : tensor<2x2xf32>) outs(%{{.*}} : tensor<160x8xf8E8M0FNU>)
// CHECK:       %[[B:.*]] = fp8.assemble
// CHECK:       fp8.matmul %[[A]], %[[B]] : !fp8.scaled<64x256xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>, !fp8.scaled<160x256xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
func.func @block(%x: tensor<64x256xbf16>, %x_amax: tensor<64x2xf32>, %w: tensor<160x256xbf16>, %w_amax: tensor<2x2xf32>) -> tensor<64x160xbf16> {
  %s, %si = fp8.compute_scale %x_amax format = f8E4M3FN scale_type = f32 rule(#fp8.scale_rule<pow2 = true>) : tensor<64x2xf32>
  %a = fp8.quantize %x scale(%s, %si : tensor<64x2xf32>, tensor<64x2xf32>) : tensor<64x256xbf16> -> !x
  %t, %ti = fp8.compute_scale %w_amax format = f8E4M3FN scale_type = f32 rule(#fp8.scale_rule<pow2 = true>) : tensor<2x2xf32>
  %b = fp8.quantize %w scale(%t, %ti : tensor<2x2xf32>, tensor<2x2xf32>) : tensor<160x256xbf16> -> !w
  %0 = fp8.matmul %a, %b : !x, !w -> tensor<64x160xbf16>
  return %0 : tensor<64x160xbf16>
}

// Constants, and codes in another order than their factors were made for. What
// two read is fitted once.

// CHECK-LABEL: func.func @constants
// CHECK-COUNT-2: linalg.generic
// CHECK-NOT:   linalg.generic
// CHECK:       fp8.matmul %[[A:.*]], %[[B:.*]] : {{.*}}f8E8M0FNU>, {{.*}}f8E8M0FNU>
// CHECK:       fp8.matmul %[[A]], %[[B]] : {{.*}}f8E8M0FNU>, {{.*}}f8E8M0FNU>
func.func @constants(%x: tensor<64x256xf8E4M3FN>, %w: tensor<256x160xf8E4M3FN>) -> (tensor<64x160xbf16>, tensor<64x160xf32>) {
  %si = arith.constant dense<0.5> : tensor<64x2xf32>
  %ti = arith.constant dense<[[1.0, 4.0], [5.877471754111437e-39, 1.7014118346046923e38]]> : tensor<2x2xf32>
  %a = fp8.assemble %x, %si : tensor<64x256xf8E4M3FN>, tensor<64x2xf32> -> !x
  %t = fp8.assemble %w, %ti : tensor<256x160xf8E4M3FN>, tensor<2x2xf32> -> !wt
  %b = fp8.transpose %t permutation = [1, 0] : !wt
  %0 = fp8.matmul %a, %b : !x, !w -> tensor<64x160xbf16>
  %1 = fp8.matmul %a, %b : !x, !w -> tensor<64x160xf32>
  return %0, %1 : tensor<64x160xbf16>, tensor<64x160xf32>
}

// Batches, M that shows at run time, and 1x128 on both sides.

!y = !fp8.scaled<3x?x256xf8E4M3FN, block = [1, 1, 128], scale = f32>
!z = !fp8.scaled<3x48x256xf8E5M2, block = [1, 1, 128], scale = f32>
// CHECK-LABEL: func.func @batches
// CHECK:       linalg.generic {indexing_maps = [#[[BATCHES]], {{.*}} outs(%{{.*}} : tensor<3x?x8xf8E8M0FNU>)
// CHECK:       fp8.matmul {{.*}} : !fp8.scaled<3x?x256xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU>, !fp8.scaled<3x48x256xf8E5M2, block = [1, 1, 32], scale = f8E8M0FNU>
func.func @batches(%x: tensor<3x?x256xbf16>, %x_amax: tensor<3x?x2xf32>, %w: tensor<3x48x256xf8E5M2>) -> tensor<3x?x48xf32> {
  %s, %si = fp8.compute_scale %x_amax format = f8E4M3FN scale_type = f32 rule(#fp8.scale_rule<pow2 = true>) : tensor<3x?x2xf32>
  %a = fp8.quantize %x scale(%s, %si : tensor<3x?x2xf32>, tensor<3x?x2xf32>) : tensor<3x?x256xbf16> -> !y
  %ti = arith.constant dense<2.0> : tensor<3x48x2xf32>
  %b = fp8.assemble %w, %ti : tensor<3x48x256xf8E5M2>, tensor<3x48x2xf32> -> !z
  %0 = fp8.matmul %a, %b : !y, !z -> tensor<3x?x48xf32>
  return %0 : tensor<3x?x48xf32>
}

// Tiles of 32x32 and of 16x16, whose factors each row has; with them goes that
// of the tensor.

!m = !fp8.scaled<64x256xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
!m2 = !fp8.scaled<80x256xf8E4M3FN, block = [32, 32], scale = f8E8M0FNU>
// CHECK-LABEL: func.func @mx_tiles
// CHECK-SAME:  %[[A:.*]]: !fp8.scaled<64x256
// CHECK-SAME:  %[[W:.*]]: !fp8.scaled<80x256
// CHECK:       %[[CODES:.*]], %[[FACTORS:.*]] = fp8.disassemble %[[W]]
// CHECK:       %[[BYTES:.*]] = linalg.generic {indexing_maps = [#[[TILES32]], #[[SAME]]]{{.*}} ins(%[[FACTORS]] : tensor<3x8xf8E8M0FNU>) outs(%{{.*}} : tensor<80x8xf8E8M0FNU>)
// CHECK-NEXT:  ^bb0(%[[FACTOR:.*]]: f8E8M0FNU, %{{.*}}: f8E8M0FNU):
// CHECK-NEXT:    linalg.yield %[[FACTOR]]
// CHECK:       %[[B:.*]] = fp8.assemble %[[CODES]], %[[BYTES]]
// CHECK:       fp8.matmul %[[A]], %[[B]]
func.func @mx_tiles(%a: !m, %b: !m2) -> tensor<64x80xbf16> {
  %0 = fp8.matmul %a, %b : !m, !m2 -> tensor<64x80xbf16>
  return %0 : tensor<64x80xbf16>
}

!n = !fp8.scaled<64x256xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
!n2 = !fp8.scaled<80x256xf4E2M1FN, block = [16, 16], scale = f8E4M3FN, tensor_scale = f32>
// CHECK-LABEL: func.func @nv_tiles
// CHECK:       %[[CODES:.*]], %[[FACTORS:.*]], %[[TENSOR:.*]] = fp8.disassemble
// CHECK:       %[[BYTES:.*]] = linalg.generic {indexing_maps = [#[[TILES16]], #[[SAME]]]{{.*}} ins(%[[FACTORS]] : tensor<5x16xf8E4M3FN>) outs(%{{.*}} : tensor<80x16xf8E4M3FN>)
// CHECK:       fp8.assemble %[[CODES]], %[[BYTES]], %[[TENSOR]]
// CHECK:       fp8.matmul {{.*}}<64x256xf4E2M1FN, block = [1, 16], {{.*}}<80x256xf4E2M1FN, block = [1, 16], scale = f8E4M3FN, tensor_scale = f32>
func.func @nv_tiles(%a: !n, %b: !n2) -> tensor<64x80xbf16> {
  %0 = fp8.matmul %a, %b : !n, !n2 -> tensor<64x80xbf16>
  return %0 : tensor<64x80xbf16>
}

// No kernel multiplies a K of 96 with factors of 32.

!k = !fp8.scaled<64x96xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>
!k2 = !fp8.scaled<80x96xf8E4M3FN, block = [32, 32], scale = f8E8M0FNU>
// CHECK-LABEL: func.func @odd
// CHECK-NEXT:  fp8.matmul
func.func @odd(%a: !k, %b: !k2) -> tensor<64x80xbf16> {
  %0 = fp8.matmul %a, %b : !k, !k2 -> tensor<64x80xbf16>
  return %0 : tensor<64x80xbf16>
}

// Those of groups of rows, of which each has a matrix of its own.

!we = !fp8.scaled<3x160x256xf8E4M3FN, block = [1, 128, 128], scale = f32>
// CHECK-LABEL: func.func @grouped
// CHECK:       linalg.generic {indexing_maps = [#[[ROWS]], #[[SAME]]]{{.*}} outs(%{{.*}} : tensor<64x8xf8E8M0FNU>)
// CHECK:       linalg.generic {{.*}} ins(%{{.*}} : tensor<3x2x2xf32>) outs(%{{.*}} : tensor<3x160x8xf8E8M0FNU>)
// CHECK:       fp8.grouped_matmul {{.*}} : !fp8.scaled<64x256xf8E4M3FN, block = [1, 32], scale = f8E8M0FNU>, !fp8.scaled<3x160x256xf8E4M3FN, block = [1, 1, 32], scale = f8E8M0FNU>
func.func @grouped(%x: tensor<64x256xf8E4M3FN>, %w: tensor<3x160x256xf8E4M3FN>, %offsets: tensor<4xi32>) -> tensor<64x160xbf16> {
  %two = arith.constant dense<2.0> : tensor<64x2xf32>
  %four = arith.constant dense<4.0> : tensor<3x2x2xf32>
  %a = fp8.assemble %x, %two : tensor<64x256xf8E4M3FN>, tensor<64x2xf32> -> !x
  %b = fp8.assemble %w, %four : tensor<3x160x256xf8E4M3FN>, tensor<3x2x2xf32> -> !we
  %0 = fp8.grouped_matmul %a, %b offsets(%offsets : tensor<4xi32>) : !x, !we -> tensor<64x160xbf16>
  return %0 : tensor<64x160xbf16>
}

// What is not known to be a power of two, or not to be one of E8M0: what is
// given, scales that are not rounded, torchao's, which may be 0 or NaN, 3, and
// 2^-128.

// CHECK-LABEL: func.func @given
// CHECK-NOT:   linalg.generic
// CHECK:       return
func.func @given(%x: !x, %w: tensor<160x256xf8E4M3FN>) -> tensor<64x160xbf16> {
  %ti = arith.constant dense<2.0> : tensor<2x2xf32>
  %b = fp8.assemble %w, %ti : tensor<160x256xf8E4M3FN>, tensor<2x2xf32> -> !w
  %0 = fp8.matmul %x, %b : !x, !w -> tensor<64x160xbf16>
  return %0 : tensor<64x160xbf16>
}

// CHECK-LABEL: func.func @others
// CHECK-NOT:   linalg.generic
// CHECK:       return
func.func @others(%x: tensor<64x256xbf16>, %x_amax: tensor<64x2xf32>, %w: tensor<160x256xf8E4M3FN>) -> tensor<64x160xbf16> {
  %two = arith.constant dense<2.0> : tensor<2x2xf32>
  %three = arith.constant dense<3.0> : tensor<2x2xf32>
  %tiny = arith.constant dense<2.938735877055719e-39> : tensor<2x2xf32>
  %b = fp8.assemble %w, %two : tensor<160x256xf8E4M3FN>, tensor<2x2xf32> -> !w
  %c = fp8.assemble %w, %three : tensor<160x256xf8E4M3FN>, tensor<2x2xf32> -> !w
  %d = fp8.assemble %w, %tiny : tensor<160x256xf8E4M3FN>, tensor<2x2xf32> -> !w
  %s, %si = fp8.compute_scale %x_amax format = f8E4M3FN scale_type = f32 rule(#fp8.scale_rule<pow2 = true>) : tensor<64x2xf32>
  %a = fp8.quantize %x scale(%s, %si : tensor<64x2xf32>, tensor<64x2xf32>) : tensor<64x256xbf16> -> !x
  %t, %ti = fp8.compute_scale %x_amax format = f8E4M3FN scale_type = f32 : tensor<64x2xf32>
  %e = fp8.quantize %x scale(%t, %ti : tensor<64x2xf32>, tensor<64x2xf32>) : tensor<64x256xbf16> -> !x
  %u, %ui = fp8.compute_scale %x_amax format = f8E4M3FN scale_type = f32 rule(#fp8.scale_rule<pow2 = true, style = torchao>) : tensor<64x2xf32>
  %f = fp8.quantize %x scale(%u, %ui : tensor<64x2xf32>, tensor<64x2xf32>) : tensor<64x256xbf16> -> !x
  %0 = fp8.matmul %a, %c : !x, !w -> tensor<64x160xf32>
  %1 = fp8.matmul %a, %d : !x, !w -> tensor<64x160xf32>
  %2 = fp8.matmul %e, %b : !x, !w -> tensor<64x160xf32>
  %3 = fp8.matmul %f, %b : !x, !w -> tensor<64x160xf32>
  %4 = arith.addf %0, %1 : tensor<64x160xf32>
  %5 = arith.addf %2, %3 : tensor<64x160xf32>
  %6 = arith.addf %4, %5 : tensor<64x160xf32>
  %7 = arith.truncf %6 : tensor<64x160xf32> to tensor<64x160xbf16>
  return %7 : tensor<64x160xbf16>
}
