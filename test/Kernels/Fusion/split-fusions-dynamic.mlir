// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-split-fusions %s 2>/dev/null | FileCheck %s --implicit-check-not="fp8.fusion("
// RUN: fp8-opt --fp8-set-target=chip=sm_90a --fp8-split-fusions --fp8-select-kernels %s 2>/dev/null | FileCheck %s --check-prefix=KERNELS --implicit-check-not=fp8_gpu.config

#id = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (j)>
#all = affine_map<(b, i, j) -> (b, i, j)>
#each = affine_map<(b, i, j) -> (b, j)>
#batches = affine_map<(b, i, j) -> (j)>
!k = tensor<?x?x128xbf16>
!x = tensor<?x64xf32>

// The number of parts is computed outside; their sum, of an unknown number, is
// no kernel's.

// CHECK-LABEL: func.func @rows
// CHECK-SAME:  %[[X:.+]]: tensor<?x64xf32>
// CHECK-DAG:   %[[C0:.+]] = arith.constant 0 : index
// CHECK-DAG:   %[[ROWS:.+]] = tensor.dim %[[X]], %[[C0]]
// CHECK-DAG:   %[[C128:.+]] = arith.constant 128 : index
// CHECK:       %[[N:.+]] = arith.ceildivui %[[ROWS]], %[[C128]]
// CHECK-NEXT:  %[[P:.+]] = fp8.fusion(%[[N]], %[[X]]) {
// CHECK-NEXT:  ^bb0(%[[K:.+]]: index, %[[A:.+]]: tensor<?x64xf32>):
// CHECK:         tensor.empty(%[[K]]) : tensor<?x64xf32>
// CHECK:         linalg.generic {{.+}} iterator_types = ["reduction", "parallel"]} ins(%[[A]] : tensor<?x64xf32>)
// CHECK:         fp8.yield %{{.+}} : tensor<?x64xf32>
// CHECK:       %[[SUM:.+]] = fp8.fusion(%[[P]]) {
// CHECK:         fp8.yield %{{.+}} : tensor<64xf32>
// CHECK:       return %[[SUM]]

// KERNELS-LABEL: func.func @rows
// KERNELS:         fp8.yield %{{.+}} : tensor<?x64xf32>
// KERNELS-NEXT:  } {fp8_gpu.config = #fp8_fusion.config<
// KERNELS:         fp8.yield %{{.+}} : tensor<64xf32>
// KERNELS-NEXT:  } :
func.func @rows(%x: !x) -> tensor<64xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<64xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
    %1 = linalg.generic {indexing_maps = [#id, #column], iterator_types = ["reduction", "parallel"]} ins(%a : !x) outs(%z : tensor<64xf32>) {
    ^bb0(%v: f32, %o: f32):
      %2 = arith.addf %o, %v : f32
      linalg.yield %2 : f32
    } -> tensor<64xf32>
    fp8.yield %1 : tensor<64xf32>
  } : (!x) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}

// An amax sizes its own result.

// CHECK-LABEL: func.func @amax
// CHECK-SAME:  %[[X:.+]]: tensor<?x64xf32>
// CHECK-NEXT:  %[[P:.+]] = fp8.fusion(%[[X]]) {
// CHECK:         fp8.amax %{{.+}} block = [128, 1] : tensor<?x64xf32>
// CHECK:       fp8.fusion(%[[P]]) {
// CHECK:         fp8.amax %{{.+}} block = [*, 1] : tensor<?x64xf32>

// KERNELS-LABEL: func.func @amax
// KERNELS:         fp8.yield %{{.+}} : tensor<?x64xf32>
// KERNELS-NEXT:  } {fp8_gpu.config = #fp8_fusion.config<
// KERNELS:         fp8.yield %{{.+}} : tensor<1x64xf32>
// KERNELS-NEXT:  } :
func.func @amax(%x: !x) -> tensor<1x64xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: !x):
    %m = fp8.amax %a block = [*, 1] : !x
    fp8.yield %m : tensor<1x64xf32>
  } : (!x) -> tensor<1x64xf32>
  return %0 : tensor<1x64xf32>
}

// The number of columns is not needed for that of parts of rows.

// CHECK-LABEL: func.func @columns
// CHECK:       fp8.fusion(
// CHECK:         fp8.amax %{{.+}} block = [128, 1] : tensor<8192x?xf32>
// CHECK:       fp8.fusion(
// CHECK:         fp8.amax %{{.+}} block = [*, 1] : tensor<64x?xf32>

// KERNELS-LABEL:   func.func @columns
// KERNELS-COUNT-2: {fp8_gpu.config = #fp8_fusion.config<
func.func @columns(%x: tensor<8192x?xf32>) -> tensor<1x?xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<8192x?xf32>):
    %m = fp8.amax %a block = [*, 1] : tensor<8192x?xf32>
    fp8.yield %m : tensor<1x?xf32>
  } : (tensor<8192x?xf32>) -> tensor<1x?xf32>
  return %0 : tensor<1x?xf32>
}

// Codes keep the parts of an unknown number of rows with them.

// CHECK-LABEL: func.func @beside_codes
// CHECK:       %[[R:.+]]:2 = fp8.fusion(
// CHECK:         fp8.quantize
// CHECK:         fp8.amax %{{.+}} block = [128, 1]
// CHECK:         fp8.yield %{{.+}}, %{{.+}} : tensor<?x64xf8E4M3FN>, tensor<?x64xf32>
// CHECK:       %[[M:.+]] = fp8.fusion(%[[R]]#1) {
// CHECK:       return %[[R]]#0, %[[M]]

// KERNELS-LABEL: func.func @beside_codes
// KERNELS:         fp8.yield %{{.+}}, %{{.+}} : tensor<?x64xf8E4M3FN>, tensor<?x64xf32>
// KERNELS-NEXT:  } {fp8_gpu.config = #fp8_fusion.config<
func.func @beside_codes(%x: !x, %s: tensor<1x1xf32>) -> (tensor<?x64xf8E4M3FN>, tensor<1x64xf32>) {
  %0:2 = fp8.fusion(%x, %s) {
  ^bb0(%a: !x, %b: tensor<1x1xf32>):
    %q = fp8.quantize %a scale(%b, %b : tensor<1x1xf32>, tensor<1x1xf32>) : !x -> !fp8.scaled<?x64xf8E4M3FN, block = [*, *], scale = f32>
    %c, %f = fp8.disassemble %q : !fp8.scaled<?x64xf8E4M3FN, block = [*, *], scale = f32>
    %m = fp8.amax %a block = [*, 1] : !x
    fp8.yield %c, %m : tensor<?x64xf8E4M3FN>, tensor<1x64xf32>
  } : (!x, tensor<1x1xf32>) -> (tensor<?x64xf8E4M3FN>, tensor<1x64xf32>)
  return %0#0, %0#1 : tensor<?x64xf8E4M3FN>, tensor<1x64xf32>
}

// Nothing but the columns is known: the number of batches is an input, too.

// CHECK-LABEL: func.func @batches
// CHECK-SAME:  %[[K:.+]]: tensor<?x?x128xbf16>, %[[B:.+]]: index
// CHECK-DAG:   %[[C0:.+]] = arith.constant 0 : index
// CHECK-DAG:   %[[C1:.+]] = arith.constant 1 : index
// CHECK-DAG:   %[[C128:.+]] = arith.constant 128 : index
// CHECK-DAG:   %[[BATCHES:.+]] = tensor.dim %[[K]], %[[C0]]
// CHECK-DAG:   %[[ROWS:.+]] = tensor.dim %[[K]], %[[C1]]
// CHECK:       %[[N:.+]] = arith.ceildivui %[[ROWS]], %[[C128]]
// CHECK-NEXT:  %[[P:.+]] = fp8.fusion(%[[BATCHES]], %[[N]], %[[K]]) {
// CHECK-NEXT:  ^bb0(%[[D:.+]]: index, %[[M:.+]]: index, %[[A:.+]]: tensor<?x?x128xbf16>):
// CHECK:         tensor.empty(%[[D]], %[[M]]) : tensor<?x?x128xf32>
// CHECK:         iterator_types = ["parallel", "reduction", "parallel"]} ins(%[[A]] : tensor<?x?x128xbf16>)
// CHECK:       fp8.fusion(%[[B]], %[[P]]) {
// CHECK:         fp8.yield %{{.+}} : tensor<?x128xf32>

// KERNELS-LABEL: func.func @batches
// KERNELS:         fp8.yield %{{.+}} : tensor<?x?x128xf32>
// KERNELS-NEXT:  } {fp8_gpu.config = #fp8_fusion.config<
// KERNELS:         fp8.yield %{{.+}} : tensor<?x128xf32>
// KERNELS-NEXT:  } :
func.func @batches(%k: !k, %n: index) -> tensor<?x128xf32> {
  %0 = fp8.fusion(%k, %n) {
  ^bb0(%a: !k, %b: index):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty(%b) : tensor<?x128xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<?x128xf32>) -> tensor<?x128xf32>
    %1 = linalg.generic {indexing_maps = [#all, #each], iterator_types = ["parallel", "reduction", "parallel"]} ins(%a : !k) outs(%z : tensor<?x128xf32>) {
    ^bb0(%v: bf16, %o: f32):
      %2 = arith.extf %v : bf16 to f32
      %3 = arith.addf %o, %2 : f32
      linalg.yield %3 : f32
    } -> tensor<?x128xf32>
    fp8.yield %1 : tensor<?x128xf32>
  } : (!k, index) -> tensor<?x128xf32>
  return %0 : tensor<?x128xf32>
}

// So it is of a sum over all batches: of each first, and then of an unknown
// number of these.

// CHECK-LABEL:   func.func @over_batches
// CHECK:         fp8.fusion(
// CHECK:           fp8.yield %{{.+}} : tensor<?x16x128xf32>
// CHECK:         fp8.fusion(
// CHECK:           fp8.yield %{{.+}} : tensor<?x128xf32>
// CHECK:         fp8.fusion(
// CHECK:           fp8.yield %{{.+}} : tensor<?x128xf32>
// CHECK:         fp8.fusion(
// CHECK:           fp8.yield %{{.+}} : tensor<128xf32>

// KERNELS-LABEL:   func.func @over_batches
// KERNELS-COUNT-3: {fp8_gpu.config = #fp8_fusion.config<
func.func @over_batches(%x: tensor<?x2048x128xf32>) -> tensor<128xf32> {
  %0 = fp8.fusion(%x) {
  ^bb0(%a: tensor<?x2048x128xf32>):
    %zero = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<128xf32>
    %z = linalg.fill ins(%zero : f32) outs(%e : tensor<128xf32>) -> tensor<128xf32>
    %1 = linalg.generic {indexing_maps = [#all, #batches], iterator_types = ["reduction", "reduction", "parallel"]} ins(%a : tensor<?x2048x128xf32>) outs(%z : tensor<128xf32>) {
    ^bb0(%v: f32, %o: f32):
      %2 = arith.addf %o, %v : f32
      linalg.yield %2 : f32
    } -> tensor<128xf32>
    fp8.yield %1 : tensor<128xf32>
  } : (tensor<?x2048x128xf32>) -> tensor<128xf32>
  return %0 : tensor<128xf32>
}
