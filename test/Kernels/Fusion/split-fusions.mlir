// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-split-fusions %s 2>/dev/null | FileCheck %s --implicit-check-not="fp8.fusion("
// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-split-fusions --fp8-select-kernels %s 2>%t | FileCheck %s --check-prefix=KERNELS
// RUN: not grep "no kernel" %t

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
#column = affine_map<(i, j) -> (j)>
!x = tensor<8192x4096xf32>
!one = tensor<1x1xf32>
!codes = tensor<8192x4096xf8E4M3FN>
!turned = tensor<4096x8192xf8E4M3FN>
!q = !fp8.scaled<8192x4096xf8E4M3FN, block = [*, *], scale = f32>
!t = !fp8.scaled<4096x8192xf8E4M3FN, block = [*, *], scale = f32>

// CHECK-DAG: #[[ID:.+]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[ROWS:.+]] = affine_map<(d0, d1) -> (d0 floordiv 128, d1)>
// CHECK-DAG: #[[FEW:.+]] = affine_map<(d0, d1) -> (d0 floordiv 32, d1)>
// CHECK-DAG: #[[COLUMNS:.+]] = affine_map<(d0, d1) -> (d0, d1 floordiv 128)>
// CHECK-DAG: #[[ROW:.+]] = affine_map<(d0, d1) -> (d0)>
// CHECK-DAG: #[[COLUMN:.+]] = affine_map<(d0, d1) -> (d1)>

// A tile has no 8192 rows, but a sum of its own 128 beside the codes.

// CHECK-LABEL: func.func @column_sum
// CHECK-SAME:  %[[X:.+]]: tensor<8192x4096xf32>, %[[S:.+]]: tensor<1x1xf32>
// CHECK-NEXT:  %[[R:.+]]:3 = fp8.fusion(%[[X]], %[[S]]) {
// CHECK:         fp8.quantize
// CHECK:         fp8.transpose
// CHECK:         %[[PZ:.+]] = linalg.fill ins(%{{.+}} : f32) outs(%{{.+}} : tensor<64x4096xf32>)
// CHECK:         %[[P:.+]] = linalg.generic {indexing_maps = [#[[ID]], #[[ROWS]]], iterator_types = ["reduction", "parallel"]} ins(%{{.+}} : tensor<8192x4096xf32>) outs(%[[PZ]] : tensor<64x4096xf32>)
// CHECK:         fp8.yield %{{.+}}, %{{.+}}, %[[P]] : tensor<8192x4096xf8E4M3FN>, tensor<4096x8192xf8E4M3FN>, tensor<64x4096xf32>
// CHECK:       %[[SUM:.+]] = fp8.fusion(%[[R]]#2) {
// CHECK:         linalg.generic {indexing_maps = [#[[ID]], #[[COLUMN]]], iterator_types = ["reduction", "parallel"]} ins(%{{.+}} : tensor<64x4096xf32>)
// CHECK:           arith.addf
// CHECK:         fp8.yield
// CHECK:       return %[[R]]#0, %[[R]]#1, %[[SUM]]

// KERNELS-LABEL:   func.func @column_sum
// KERNELS-COUNT-2: {fp8_gpu.config = #fp8_fusion.config<
func.func @column_sum(%x: !x, %s: !one) -> (!codes, !turned, tensor<4096xf32>) {
  %0:3 = fp8.fusion(%x, %s) {
  ^bb0(%a: !x, %b: !one):
    %q = fp8.quantize %a scale(%b, %b : !one, !one) : !x -> !q
    %t = fp8.transpose %q permutation = [1, 0] : !q
    %c, %cf = fp8.disassemble %q : !q
    %d, %df = fp8.disassemble %t : !t
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4096xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4096xf32>) -> tensor<4096xf32>
    %1 = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%a : !x) outs(%z : tensor<4096xf32>) {
    ^bb0(%v: f32, %o: f32):
      %2 = arith.addf %o, %v : f32
      linalg.yield %2 : f32
    } -> tensor<4096xf32>
    fp8.yield %c, %d, %1 : !codes, !turned, tensor<4096xf32>
  } : (!x, !one) -> (!codes, !turned, tensor<4096xf32>)
  return %0#0, %0#1, %0#2 : !codes, !turned, tensor<4096xf32>
}

// What the sum begins with is added once; parts begin with nothing. The term is
// the first pass's, the other adds what that has found.

// CHECK-LABEL: func.func @begun
// CHECK:       fp8.fusion(
// CHECK:         %[[ZERO:.+]] = arith.constant 0.0
// CHECK:         linalg.fill ins(%[[ZERO]] : f32)
// CHECK:         ^bb0(%[[V:.+]]: f32, %[[O:.+]]: f32):
// CHECK:           %[[SQUARE:.+]] = arith.mulf %[[V]], %[[V]]
// CHECK:           arith.addf %[[SQUARE]], %[[O]]
// CHECK:         fp8.yield
// CHECK:       fp8.fusion(
// CHECK:         %[[START:.+]] = arith.constant 5.0
// CHECK:         linalg.fill ins(%[[START]] : f32)
// CHECK-NOT:     arith.mulf
// CHECK:       return

// KERNELS-LABEL:   func.func @begun
// KERNELS-COUNT-2: {fp8_gpu.config = #fp8_fusion.config<
func.func @begun(%x: !x) -> tensor<4096xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %five = arith.constant 5.0 : f32
    %e = tensor.empty() : tensor<4096xf32>
    %z = linalg.fill ins(%five : f32) outs(%e : tensor<4096xf32>) -> tensor<4096xf32>
    %1 = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%a : !x) outs(%z : tensor<4096xf32>) {
    ^bb0(%v: f32, %o: f32):
      %2 = arith.mulf %v, %v : f32
      %3 = arith.addf %2, %o : f32
      linalg.yield %3 : f32
    } -> tensor<4096xf32>
    fp8.yield %1 : tensor<4096xf32>
  } : (!x) -> tensor<4096xf32>
  return %0 : tensor<4096xf32>
}

// The last part of 8193 rows is one row's.

// CHECK-LABEL: func.func @odd
// CHECK:       fp8.fusion(
// CHECK:         fp8.yield %{{.+}} : tensor<65x77xf32>
// CHECK:       fp8.fusion(
// CHECK:         fp8.yield %{{.+}} : tensor<1x77xf32>

// KERNELS-LABEL:   func.func @odd
// KERNELS-COUNT-2: {fp8_gpu.config = #fp8_fusion.config<
func.func @odd(%x: tensor<8193x77xf32>) -> tensor<1x77xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<8193x77xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<1x77xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<1x77xf32>) -> tensor<1x77xf32>
    %1 = linalg.generic {indexing_maps = [#id, affine_map<(i, j) -> (0, j)>], iterator_types = ["reduction", "parallel"]} ins(%a : tensor<8193x77xf32>) outs(%z : tensor<1x77xf32>) {
    ^bb0(%v: f32, %o: f32):
      %2 = arith.addf %o, %v : f32
      linalg.yield %2 : f32
    } -> tensor<1x77xf32>
    fp8.yield %1 : tensor<1x77xf32>
  } : (tensor<8193x77xf32>) -> tensor<1x77xf32>
  return %0 : tensor<1x77xf32>
}

// A sum of parts may have too many of them.

// CHECK-LABEL: func.func @parts_of_parts
// CHECK:       fp8.fusion(
// CHECK:         fp8.yield %{{.+}} : tensor<7813x16xf32>
// CHECK:       fp8.fusion(
// CHECK:         fp8.yield %{{.+}} : tensor<62x16xf32>
// CHECK:       fp8.fusion(
// CHECK:         fp8.yield %{{.+}} : tensor<16xf32>

// KERNELS-LABEL:   func.func @parts_of_parts
// KERNELS-COUNT-3: {fp8_gpu.config = #fp8_fusion.config<
func.func @parts_of_parts(%x: tensor<1000000x16xf32>) -> tensor<16xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<1000000x16xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<16xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
    %1 = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%a : tensor<1000000x16xf32>) outs(%z : tensor<16xf32>) {
    ^bb0(%v: f32, %o: f32):
      %2 = arith.addf %o, %v : f32
      linalg.yield %2 : f32
    } -> tensor<16xf32>
    fp8.yield %1 : tensor<16xf32>
  } : (tensor<1000000x16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// A maximum begins below all numbers, not at zero.

// CHECK-LABEL: func.func @column_maximum
// CHECK:       fp8.fusion(
// CHECK:         %[[LOWEST:.+]] = arith.constant 0xFF800000 : f32
// CHECK:         linalg.fill ins(%[[LOWEST]] : f32)
// CHECK:           arith.maximumf
// CHECK:         fp8.yield %{{.+}} : tensor<64x4096xf32>
// CHECK:       fp8.fusion(
// CHECK:         %[[START:.+]] = arith.constant 0.0
// CHECK:         linalg.fill ins(%[[START]] : f32)
// CHECK:           arith.maximumf
// CHECK:         fp8.yield %{{.+}} : tensor<4096xf32>

// KERNELS-LABEL:   func.func @column_maximum
// KERNELS-COUNT-2: {fp8_gpu.config = #fp8_fusion.config<
func.func @column_maximum(%x: !x) -> tensor<4096xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4096xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4096xf32>) -> tensor<4096xf32>
    %1 = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%a : !x) outs(%z : tensor<4096xf32>) {
    ^bb0(%v: f32, %o: f32):
      %2 = arith.maximumf %v, %o : f32
      linalg.yield %2 : f32
    } -> tensor<4096xf32>
    fp8.yield %1 : tensor<4096xf32>
  } : (!x) -> tensor<4096xf32>
  return %0 : tensor<4096xf32>
}

// CHECK-LABEL: func.func @column_amax
// CHECK-SAME:  %[[X:.+]]: tensor<8192x4096xf32>
// CHECK-NEXT:  %[[P:.+]] = fp8.fusion(%[[X]]) {
// CHECK:         fp8.amax %{{.+}} block = [128, 1] propagate_nan : tensor<8192x4096xf32>
// CHECK:         fp8.yield %{{.+}} : tensor<64x4096xf32>
// CHECK:       %[[M:.+]] = fp8.fusion(%[[P]]) {
// CHECK:         fp8.amax %{{.+}} block = [*, 1] propagate_nan : tensor<64x4096xf32>
// CHECK:         fp8.yield %{{.+}} : tensor<1x4096xf32>
// CHECK:       return %[[M]]

// KERNELS-LABEL:   func.func @column_amax
// KERNELS-COUNT-2: {fp8_gpu.config = #fp8_fusion.config<
func.func @column_amax(%x: !x) -> tensor<1x4096xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %m = fp8.amax %a block = [*, 1] propagate_nan : !x
    fp8.yield %m : tensor<1x4096xf32>
  } : (!x) -> tensor<1x4096xf32>
  return %0 : tensor<1x4096xf32>
}

// Parts of two sums and of an amax are measured in one pass; the tensor is read
// once.

// CHECK-LABEL: func.func @several
// CHECK-SAME:  %[[X:.+]]: tensor<8192x4096xf32>
// CHECK:       %[[R:.+]]:3 = fp8.fusion(%[[X]]) {
// CHECK:         fp8.yield %{{.+}}, %{{.+}}, %{{.+}} : tensor<64x4096xf32>, tensor<64x4096xf32>, tensor<64x4096xf32>
// CHECK:       %[[A:.+]] = fp8.fusion(%[[R]]#0) {
// CHECK:         arith.addf
// CHECK:       %[[B:.+]] = fp8.fusion(%[[R]]#1) {
// CHECK:         arith.addf
// CHECK:       %[[C:.+]] = fp8.fusion(%[[R]]#2) {
// CHECK:         fp8.amax
// CHECK:       return %[[A]], %[[B]], %[[C]]

// KERNELS-LABEL:   func.func @several
// KERNELS-COUNT-4: {fp8_gpu.config = #fp8_fusion.config<
func.func @several(%x: !x) -> (tensor<4096xf32>, tensor<4096xf32>, tensor<1x4096xf32>) {
  %0:3 = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4096xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4096xf32>) -> tensor<4096xf32>
    %1 = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%a : !x) outs(%z : tensor<4096xf32>) {
    ^bb0(%v: f32, %o: f32):
      %3 = arith.addf %o, %v : f32
      linalg.yield %3 : f32
    } -> tensor<4096xf32>
    %2 = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%a : !x) outs(%z : tensor<4096xf32>) {
    ^bb0(%v: f32, %o: f32):
      %3 = arith.mulf %v, %v : f32
      %4 = arith.addf %o, %3 : f32
      linalg.yield %4 : f32
    } -> tensor<4096xf32>
    %m = fp8.amax %a block = [*, 1] : !x
    fp8.yield %1, %2, %m : tensor<4096xf32>, tensor<4096xf32>, tensor<1x4096xf32>
  } : (!x) -> (tensor<4096xf32>, tensor<4096xf32>, tensor<1x4096xf32>)
  return %0#0, %0#1, %0#2 : tensor<4096xf32>, tensor<4096xf32>, tensor<1x4096xf32>
}

// What waits for a sum of columns reads the tensor again.

// CHECK-LABEL: func.func @centered
// CHECK-SAME:  %[[X:.+]]: tensor<8192x64xf32>
// CHECK-NEXT:  %[[P:.+]] = fp8.fusion(%[[X]]) {
// CHECK:         fp8.yield %{{.+}} : tensor<64x64xf32>
// CHECK:       %[[SUM:.+]] = fp8.fusion(%[[P]]) {
// CHECK:         fp8.yield %{{.+}} : tensor<64xf32>
// CHECK:       %[[Y:.+]] = fp8.fusion(%[[X]], %[[SUM]]) {
// CHECK:         arith.subf
// CHECK:         fp8.yield %{{.+}} : tensor<8192x64xf32>
// CHECK:       return %[[SUM]], %[[Y]]

// KERNELS-LABEL:   func.func @centered
// KERNELS-COUNT-3: {fp8_gpu.config = #fp8_fusion.config<
func.func @centered(%x: tensor<8192x64xf32>) -> (tensor<64xf32>, tensor<8192x64xf32>) {
  %0:2 = fp8.fusion(%x) {
  ^bb0(%a: tensor<8192x64xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<64xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
    %1 = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%a : tensor<8192x64xf32>) outs(%z : tensor<64xf32>) {
    ^bb0(%v: f32, %o: f32):
      %3 = arith.addf %o, %v : f32
      linalg.yield %3 : f32
    } -> tensor<64xf32>
    %f = tensor.empty() : tensor<8192x64xf32>
    %2 = linalg.generic {indexing_maps = [#id, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %1 : tensor<8192x64xf32>, tensor<64xf32>) outs(%f : tensor<8192x64xf32>) {
    ^bb0(%v: f32, %w: f32, %o: f32):
      %3 = arith.subf %v, %w : f32
      linalg.yield %3 : f32
    } -> tensor<8192x64xf32>
    fp8.yield %1, %2 : tensor<64xf32>, tensor<8192x64xf32>
  } : (tensor<8192x64xf32>) -> (tensor<64xf32>, tensor<8192x64xf32>)
  return %0#0, %0#1 : tensor<64xf32>, tensor<8192x64xf32>
}

// A row that no cluster has registers for.

// CHECK-LABEL: func.func @row_sum
// CHECK:       fp8.fusion(
// CHECK:         linalg.generic {indexing_maps = [#[[ID]], #[[COLUMNS]]], iterator_types = ["parallel", "reduction"]}
// CHECK:         fp8.yield %{{.+}} : tensor<16x8192xf32>
// CHECK:       fp8.fusion(
// CHECK:         linalg.generic {indexing_maps = [#[[ID]], #[[ROW]]], iterator_types = ["parallel", "reduction"]} ins(%{{.+}} : tensor<16x8192xf32>)
// CHECK:         fp8.yield %{{.+}} : tensor<16xf32>

// KERNELS-LABEL:   func.func @row_sum
// KERNELS-COUNT-2: {fp8_gpu.config = #fp8_fusion.config<
func.func @row_sum(%x: tensor<16x1048576xf32>) -> tensor<16xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<16x1048576xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<16xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
    %1 = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%a : tensor<16x1048576xf32>) outs(%z : tensor<16xf32>) {
    ^bb0(%v: f32, %o: f32):
      %2 = arith.addf %o, %v : f32
      linalg.yield %2 : f32
    } -> tensor<16xf32>
    fp8.yield %1 : tensor<16xf32>
  } : (tensor<16x1048576xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}

// CHECK-LABEL: func.func @row_amax
// CHECK:       fp8.fusion(
// CHECK:         fp8.amax %{{.+}} block = [1, 128] : tensor<16x1048576xf32>
// CHECK:       fp8.fusion(
// CHECK:         fp8.amax %{{.+}} block = [1, *] : tensor<16x8192xf32>

// KERNELS-LABEL:   func.func @row_amax
// KERNELS-COUNT-2: {fp8_gpu.config = #fp8_fusion.config<
func.func @row_amax(%x: tensor<16x1048576xf32>) -> tensor<16x1xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<16x1048576xf32>):
    %m = fp8.amax %a block = [1, *] : tensor<16x1048576xf32>
    fp8.yield %m : tensor<16x1xf32>
  } : (tensor<16x1048576xf32>) -> tensor<16x1xf32>
  return %0 : tensor<16x1xf32>
}

// A norm of rows and blocks of 128 rows do not fit into one tile: rows are
// measured first, and their elements read again by what is cast in both orders.

// CHECK-LABEL: func.func @norm
// CHECK-SAME:  %[[X:.+]]: tensor<8192x4096xf32>, %[[G:.+]]: tensor<4096xf32>
// CHECK-NEXT:  %[[SUM:.+]] = fp8.fusion(%[[X]]) {
// CHECK:         linalg.generic {indexing_maps = [#[[ID]], #[[ROW]]], iterator_types = ["parallel", "reduction"]}
// CHECK-NOT:     linalg.generic
// CHECK:         fp8.yield %{{.+}} : tensor<8192xf32>
// CHECK:       %[[R:.+]]:4 = fp8.fusion(%[[X]], %[[SUM]], %[[G]]) {
// CHECK:           math.rsqrt
// CHECK:         fp8.amax %[[Y:.+]] block = [1, 128]
// CHECK:         fp8.amax %[[Y]] block = [128, 1]
// CHECK:         fp8.transpose
// CHECK:         fp8.yield %{{.+}}, %{{.+}}, %{{.+}}, %{{.+}} : tensor<8192x4096xf8E4M3FN>, tensor<8192x32xf32>, tensor<4096x8192xf8E4M3FN>, tensor<4096x64xf32>
// CHECK:       return %[[R]]#0, %[[R]]#1, %[[R]]#2, %[[R]]#3

// KERNELS-LABEL:   func.func @norm
// KERNELS-COUNT-2: {fp8_gpu.config = #fp8_fusion.config<
!row = !fp8.scaled<8192x4096xf8E4M3FN, block = [1, 128], scale = f32>
!column = !fp8.scaled<8192x4096xf8E4M3FN, block = [128, 1], scale = f32>
!tile = !fp8.scaled<4096x8192xf8E4M3FN, block = [1, 128], scale = f32>
func.func @norm(%x: !x, %g: tensor<4096xf32>) -> (!codes, tensor<8192x32xf32>, !turned, tensor<4096x64xf32>) {
  %0:4 = fp8.fusion(%x, %g) {
  ^bb0(%a: !x, %b: tensor<4096xf32>):
    %zero = arith.constant 0.0 : f32
    %mean = arith.constant 2.44140625e-4 : f32
    %e = tensor.empty() : tensor<8192xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8192xf32>) -> tensor<8192xf32>
    %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%a : !x) outs(%z : tensor<8192xf32>) {
    ^bb0(%v: f32, %o: f32):
      %1 = arith.mulf %v, %v : f32
      %2 = arith.addf %o, %1 : f32
      linalg.yield %2 : f32
    } -> tensor<8192xf32>
    %f = tensor.empty() : !x
    %y = linalg.generic {indexing_maps = [#id, #row, #column, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %sum, %b : !x, tensor<8192xf32>, tensor<4096xf32>) outs(%f : !x) {
    ^bb0(%v: f32, %s: f32, %w: f32, %o: f32):
      %1 = arith.mulf %s, %mean : f32
      %2 = math.rsqrt %1 : f32
      %3 = arith.mulf %v, %2 : f32
      %4 = arith.mulf %3, %w : f32
      linalg.yield %4 : f32
    } -> !x
    %rm = fp8.amax %y block = [1, 128] : !x
    %rs, %rsi = fp8.compute_scale %rm format = f8E4M3FN scale_type = f32 : tensor<8192x32xf32>
    %rq = fp8.quantize %y scale(%rs, %rsi : tensor<8192x32xf32>, tensor<8192x32xf32>) : !x -> !row
    %cm = fp8.amax %y block = [128, 1] : !x
    %cs, %csi = fp8.compute_scale %cm format = f8E4M3FN scale_type = f32 : tensor<64x4096xf32>
    %cq = fp8.quantize %y scale(%cs, %csi : tensor<64x4096xf32>, tensor<64x4096xf32>) : !x -> !column
    %t = fp8.transpose %cq permutation = [1, 0] : !column
    %c, %cf = fp8.disassemble %rq : !row
    %d, %df = fp8.disassemble %t : !tile
    fp8.yield %c, %rsi, %d, %df : !codes, tensor<8192x32xf32>, !turned, tensor<4096x64xf32>
  } : (!x, tensor<4096xf32>) -> (!codes, tensor<8192x32xf32>, !turned, tensor<4096x64xf32>)
  return %0#0, %0#1, %0#2, %0#3 : !codes, tensor<8192x32xf32>, !turned, tensor<4096x64xf32>
}

// Rows too long for any: the maxima, then the sums that wait for them, both in
// parts, then the quotients. Exponentials are computed in two of the passes.

// CHECK-LABEL: func.func @softmax
// CHECK-SAME:  %[[X:.+]]: tensor<16x1048576xf32>
// CHECK:       %[[MP:.+]] = fp8.fusion(%[[X]]) {
// CHECK:           arith.maximumf
// CHECK:         fp8.yield %{{.+}} : tensor<16x8192xf32>
// CHECK:       %[[M:.+]] = fp8.fusion(%[[MP]]) {
// CHECK:           arith.maximumf
// CHECK:         fp8.yield %{{.+}} : tensor<16xf32>
// CHECK:       %[[SP:.+]] = fp8.fusion(%[[X]], %[[M]]) {
// CHECK:           math.exp
// CHECK:           arith.addf
// CHECK:         fp8.yield %{{.+}} : tensor<16x8192xf32>
// CHECK:       %[[S:.+]] = fp8.fusion(%[[SP]]) {
// CHECK:           arith.addf
// CHECK:         fp8.yield %{{.+}} : tensor<16xf32>
// CHECK:       %[[Y:.+]] = fp8.fusion(%[[X]], %[[M]], %[[S]]) {
// CHECK:           math.exp
// CHECK:           arith.divf
// CHECK:         fp8.yield %{{.+}} : tensor<16x1048576xf32>
// CHECK:       return %[[Y]]

// KERNELS-LABEL:   func.func @softmax
// KERNELS-COUNT-5: {fp8_gpu.config = #fp8_fusion.config<
!long = tensor<16x1048576xf32>
func.func @softmax(%x: !long) -> !long {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: !long):
    %lowest = arith.constant 0xFF800000 : f32
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<16xf32>
    %f = tensor.empty() : !long
    %l = linalg.fill ins(%lowest : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
    %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%a : !long) outs(%l : tensor<16xf32>) {
    ^bb0(%v: f32, %o: f32):
      %1 = arith.maximumf %v, %o : f32
      linalg.yield %1 : f32
    } -> tensor<16xf32>
    %exp = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%a, %max : !long, tensor<16xf32>) outs(%f : !long) {
    ^bb0(%v: f32, %m: f32, %o: f32):
      %1 = arith.subf %v, %m : f32
      %2 = math.exp %1 : f32
      linalg.yield %2 : f32
    } -> !long
    %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%exp : !long) outs(%z : tensor<16xf32>) {
    ^bb0(%v: f32, %o: f32):
      %1 = arith.addf %v, %o : f32
      linalg.yield %1 : f32
    } -> tensor<16xf32>
    %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%exp, %sum : !long, tensor<16xf32>) outs(%f : !long) {
    ^bb0(%v: f32, %s: f32, %o: f32):
      %1 = arith.divf %v, %s : f32
      linalg.yield %1 : f32
    } -> !long
    fp8.yield %y : !long
  } : (!long) -> !long
  return %0 : !long
}

// A tile of whole rows has 32 of them, of which it sums the columns, too.

// CHECK-LABEL: func.func @beside_rows
// CHECK-SAME:  %[[X:.+]]: tensor<8192x4096xf32>
// CHECK-NEXT:  %[[R:.+]]:3 = fp8.fusion(%[[X]]) {
// CHECK:         fp8.amax %{{.+}} block = [1, *]
// CHECK:         fp8.quantize
// CHECK:         linalg.generic {indexing_maps = [#[[ID]], #[[FEW]]], iterator_types = ["reduction", "parallel"]}
// CHECK:         fp8.yield %{{.+}}, %{{.+}}, %{{.+}} : tensor<8192x4096xf8E4M3FN>, tensor<256x4096xf32>, tensor<8192x1xf32>
// CHECK:       %[[SUM:.+]] = fp8.fusion(%[[R]]#1) {
// CHECK:       return %[[R]]#0, %[[SUM]], %[[R]]#2

// KERNELS-LABEL:   func.func @beside_rows
// KERNELS-COUNT-2: {fp8_gpu.config = #fp8_fusion.config<
!by_row = !fp8.scaled<8192x4096xf8E4M3FN, block = [1, *], scale = f32>
func.func @beside_rows(%x: !x) -> (!codes, tensor<4096xf32>, tensor<8192x1xf32>) {
  %0:3 = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %m = fp8.amax %a block = [1, *] : !x
    %s, %si = fp8.compute_scale %m format = f8E4M3FN scale_type = f32 : tensor<8192x1xf32>
    %q = fp8.quantize %a scale(%s, %si : tensor<8192x1xf32>, tensor<8192x1xf32>) : !x -> !by_row
    %c, %f = fp8.disassemble %q : !by_row
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<4096xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4096xf32>) -> tensor<4096xf32>
    %1 = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%a : !x) outs(%z : tensor<4096xf32>) {
    ^bb0(%v: f32, %o: f32):
      %2 = arith.addf %o, %v : f32
      linalg.yield %2 : f32
    } -> tensor<4096xf32>
    fp8.yield %c, %1, %si : !codes, tensor<4096xf32>, tensor<8192x1xf32>
  } : (!x) -> (!codes, tensor<4096xf32>, tensor<8192x1xf32>)
  return %0#0, %0#1, %0#2 : !codes, tensor<4096xf32>, tensor<8192x1xf32>
}

// Longer rows leave it fewer: casts by row keep their pass, and 128 rows of the
// sum are another tile's.

// CHECK-LABEL: func.func @beside_long_rows
// CHECK-SAME:  %[[X:.+]]: tensor<4096x8192xf32>
// CHECK-NEXT:  %[[P:.+]] = fp8.fusion(%[[X]]) {
// CHECK-NOT:     fp8.amax
// CHECK:         fp8.yield %{{.+}} : tensor<32x8192xf32>
// CHECK:       %[[R:.+]]:2 = fp8.fusion(%[[X]]) {
// CHECK:         fp8.amax %{{.+}} block = [1, *]
// CHECK:         fp8.quantize
// CHECK-NOT:     linalg.generic
// CHECK:         fp8.yield %{{.+}}, %{{.+}} : tensor<4096x8192xf8E4M3FN>, tensor<4096x1xf32>
// CHECK:       %[[SUM:.+]] = fp8.fusion(%[[P]]) {
// CHECK:       return %[[R]]#0, %[[SUM]], %[[R]]#1

// KERNELS-LABEL:   func.func @beside_long_rows
// KERNELS-COUNT-3: {fp8_gpu.config = #fp8_fusion.config<
!wide = tensor<4096x8192xf32>
!wide_codes = tensor<4096x8192xf8E4M3FN>
!by_long_row = !fp8.scaled<4096x8192xf8E4M3FN, block = [1, *], scale = f32>
func.func @beside_long_rows(%x: !wide) -> (!wide_codes, tensor<8192xf32>, tensor<4096x1xf32>) {
  %0:3 = fp8.fusion(%x) {
  ^bb0(%a: !wide):
    %m = fp8.amax %a block = [1, *] : !wide
    %s, %si = fp8.compute_scale %m format = f8E4M3FN scale_type = f32 : tensor<4096x1xf32>
    %q = fp8.quantize %a scale(%s, %si : tensor<4096x1xf32>, tensor<4096x1xf32>) : !wide -> !by_long_row
    %c, %f = fp8.disassemble %q : !by_long_row
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<8192xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<8192xf32>) -> tensor<8192xf32>
    %1 = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%a : !wide) outs(%z : tensor<8192xf32>) {
    ^bb0(%v: f32, %o: f32):
      %2 = arith.addf %o, %v : f32
      linalg.yield %2 : f32
    } -> tensor<8192xf32>
    fp8.yield %c, %1, %si : !wide_codes, tensor<8192xf32>, tensor<4096x1xf32>
  } : (!wide) -> (!wide_codes, tensor<8192xf32>, tensor<4096x1xf32>)
  return %0#0, %0#1, %0#2 : !wide_codes, tensor<8192xf32>, tensor<4096x1xf32>
}

// A body has fusions, too.

// CHECK-LABEL: func.func @loop
// CHECK:       scf.for
// CHECK:         fp8.fusion(
// CHECK:         fp8.yield %{{.+}} : tensor<64x4096xf32>
// CHECK:         %[[M:.+]] = fp8.fusion(
// CHECK:         scf.yield %[[M]]

// KERNELS-LABEL:   func.func @loop
// KERNELS-COUNT-2: {fp8_gpu.config = #fp8_fusion.config<
func.func @loop(%x: !x, %m: tensor<1x4096xf32>, %n: index) -> tensor<1x4096xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%last = %m) -> tensor<1x4096xf32> {
    %1 = fp8.fusion(%x) {
    ^bb0(%a: !x):
      %2 = fp8.amax %a block = [*, 1] : !x
      fp8.yield %2 : tensor<1x4096xf32>
    } : (!x) -> tensor<1x4096xf32>
    scf.yield %1 : tensor<1x4096xf32>
  }
  return %0 : tensor<1x4096xf32>
}
