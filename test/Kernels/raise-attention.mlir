// RUN: fp8-opt %s --fp8-raise-attention=chip=sm_90a --split-input-file 2> %t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=QUIET --allow-empty < %t.remarks
// RUN: fp8-opt %s --fp8-pipeline="target=sm_90a to=fusion" --split-input-file | FileCheck %s --check-prefix=PIPELINE
// RUN: fp8-opt %s --fp8-pipeline="target=sm_90a recipe=current to=fusion" --split-input-file | FileCheck %s --check-prefixes=PIPELINE,NUMBERS
// RUN: fp8-opt %s --fp8-pipeline="target=sm_90a attention-recipe=current to=fusion" --split-input-file | FileCheck %s --check-prefix=CODES
// RUN: fp8-opt %s --fp8-pipeline="target=sm_90a to=fusion raise-attention=false" --split-input-file | FileCheck %s --check-prefix=OFF
// RUN: fp8-opt %s --fp8-pipeline="target=sm_90a to=fusion invariant" --split-input-file | FileCheck %s --check-prefix=OFF
// RUN: fp8-opt %s --fp8-pipeline="target=cpu to=fusion" --split-input-file | FileCheck %s --check-prefix=OFF

// QUIET-NOT: {{.}}
// PIPELINE-COUNT-8: fp8.attention
// A recipe of linear layers leaves it in numbers, one of attention gives it codes.
// NUMBERS-NOT: fp8.quantize
// CODES-COUNT-8: fp8.attention {{.*}}f8E4M3FN
// OFF-NOT: fp8.attention

// Heads of batches that are one dimension from the start are heads.

// CHECK-LABEL: @named_softmax
// CHECK: %[[O:.*]] = fp8.attention {{.*}} scale = 1.250000e-01 layout = bhsd : tensor<1x4x32x64xbf16>, tensor<1x4x48x64xbf16>, tensor<1x4x48x64xbf16> -> tensor<1x4x32x64xbf16>
// CHECK-NOT: linalg.batch_matmul
func.func @named_softmax(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>) -> tensor<4x32x64xbf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %s = linalg.batch_matmul indexing_maps = [affine_map<(b, m, n, k) -> (b, m, k)>, affine_map<(b, m, n, k) -> (b, n, k)>, affine_map<(b, m, n, k) -> (b, m, n)>]
      ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %c = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %scaled = arith.mulf %s, %c : tensor<4x32x48xf32>
  %p = linalg.softmax dimension(2) ins(%scaled : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %rounded = arith.truncf %p : tensor<4x32x48xf32> to tensor<4x32x48xbf16>
  %oe = tensor.empty() : tensor<4x32x64xf32>
  %oinit = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %o = linalg.batch_matmul ins(%rounded, %v : tensor<4x32x48xbf16>, tensor<4x48x64xbf16>) outs(%oinit : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %r = arith.truncf %o : tensor<4x32x64xf32> to tensor<4x32x64xbf16>
  return %r : tensor<4x32x64xbf16>
}

// -----

// torch-mlir: scaled_dot_product_attention with is_causal and enable_gqa, in f32 of bf16, with factors of Q and K, a
// mask that is added, and zeros where all is hidden.

// CHECK-LABEL: @torch_grouped
// CHECK-NEXT: %[[O:.*]] = fp8.attention %arg0, %arg1, %arg2 scale = 1.250000e-01 window = [*, 0] layout = bhsd : tensor<2x4x64x64xbf16>, tensor<2x2x64x64xbf16>, tensor<2x2x64x64xbf16> -> tensor<2x4x64x64xbf16>
// CHECK-NEXT: return %[[O]]
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0) -> (d0)>
#map2 = affine_map<(d0, d1) -> (0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, 0)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
#map5 = affine_map<(d0, d1) -> ()>
#map6 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>
#map7 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map9 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map10 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
func.func @torch_grouped(%arg0: tensor<2x4x64x64xbf16>, %arg1: tensor<2x2x64x64xbf16>, %arg2: tensor<2x2x64x64xbf16>) -> tensor<2x4x64x64xbf16> {
  %c0_i64 = arith.constant 0 : i64
  %cst = arith.constant 0.000000e+00 : f32
  %cst_0 = arith.constant 0xFF800000 : f32
  %true = arith.constant true
  %cst_1 = arith.constant dense<0.000000e+00> : tensor<2x4x64x64xf32>
  %cst_2 = arith.constant dense<0.000000e+00> : tensor<f32>
  %cst_3 = arith.constant dense<0xFF800000> : tensor<f32>
  %cst_4 = arith.constant dense<true> : tensor<64x64xi1>
  %cst_5 = arith.constant 0xFFF0000000000000 : f64
  %cst_6 = arith.constant 0.35355339059327379 : f64
  %0 = tensor.empty() : tensor<2x4x64x64xf32>
  %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<2x4x64x64xbf16>) outs(%0 : tensor<2x4x64x64xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %43 = arith.extf %in : bf16 to f32
    linalg.yield %43 : f32
  } -> tensor<2x4x64x64xf32>
  %2 = tensor.empty() : tensor<2x2x64x64xf32>
  %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x2x64x64xbf16>) outs(%2 : tensor<2x2x64x64xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %43 = arith.extf %in : bf16 to f32
    linalg.yield %43 : f32
  } -> tensor<2x2x64x64xf32>
  %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x2x64x64xbf16>) outs(%2 : tensor<2x2x64x64xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %43 = arith.extf %in : bf16 to f32
    linalg.yield %43 : f32
  } -> tensor<2x2x64x64xf32>
  %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%1 : tensor<2x4x64x64xf32>) outs(%0 : tensor<2x4x64x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %43 = arith.truncf %cst_6 : f64 to f32
    %44 = arith.mulf %in, %43 : f32
    linalg.yield %44 : f32
  } -> tensor<2x4x64x64xf32>
  %6 = tensor.empty() : tensor<64xi64>
  %7 = linalg.generic {indexing_maps = [#map1], iterator_types = ["parallel"]} outs(%6 : tensor<64xi64>) {
  ^bb0(%out: i64):
    %43 = linalg.index 0 : index
    %44 = arith.index_cast %43 : index to i64
    linalg.yield %44 : i64
  } -> tensor<64xi64>
  %expanded = tensor.expand_shape %7 [[0, 1]] output_shape [1, 64] : tensor<64xi64> into tensor<1x64xi64>
  %expanded_7 = tensor.expand_shape %7 [[0, 1]] output_shape [64, 1] : tensor<64xi64> into tensor<64x1xi64>
  %8 = tensor.empty() : tensor<64x64xi64>
  %9 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel"]} ins(%expanded, %expanded_7 : tensor<1x64xi64>, tensor<64x1xi64>) outs(%8 : tensor<64x64xi64>) {
  ^bb0(%in: i64, %in_15: i64, %out: i64):
    %43 = arith.subi %in, %in_15 : i64
    linalg.yield %43 : i64
  } -> tensor<64x64xi64>
  %10 = tensor.empty() : tensor<64x64xi1>
  %11 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%9 : tensor<64x64xi64>) outs(%10 : tensor<64x64xi1>) {
  ^bb0(%in: i64, %out: i1):
    %43 = arith.cmpi sle, %in, %c0_i64 : i64
    linalg.yield %43 : i1
  } -> tensor<64x64xi1>
  %12 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%11, %cst_4 : tensor<64x64xi1>, tensor<64x64xi1>) outs(%10 : tensor<64x64xi1>) {
  ^bb0(%in: i1, %in_15: i1, %out: i1):
    %43 = arith.andi %in, %in_15 : i1
    linalg.yield %43 : i1
  } -> tensor<64x64xi1>
  %13 = tensor.empty() : tensor<64x64xf32>
  %14 = linalg.generic {indexing_maps = [#map4, #map5, #map5, #map4], iterator_types = ["parallel", "parallel"]} ins(%12, %cst_2, %cst_3 : tensor<64x64xi1>, tensor<f32>, tensor<f32>) outs(%13 : tensor<64x64xf32>) {
  ^bb0(%in: i1, %in_15: f32, %in_16: f32, %out: f32):
    %43 = arith.select %in, %in_15, %in_16 : f32
    linalg.yield %43 : f32
  } -> tensor<64x64xf32>
  %15 = tensor.empty() : tensor<2x2x2x64x64xf32>
  %16 = linalg.generic {indexing_maps = [#map6, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%3 : tensor<2x2x64x64xf32>) outs(%15 : tensor<2x2x2x64x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2x2x2x64x64xf32>
  %collapsed = tensor.collapse_shape %16 [[0], [1, 2], [3], [4]] : tensor<2x2x2x64x64xf32> into tensor<2x4x64x64xf32>
  %17 = linalg.generic {indexing_maps = [#map6, #map7], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%4 : tensor<2x2x64x64xf32>) outs(%15 : tensor<2x2x2x64x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2x2x2x64x64xf32>
  %transposed = linalg.transpose ins(%collapsed : tensor<2x4x64x64xf32>) outs(%0 : tensor<2x4x64x64xf32>) permutation = [0, 1, 3, 2] 
  %18 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed : tensor<2x4x64x64xf32>) outs(%0 : tensor<2x4x64x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %43 = arith.truncf %cst_6 : f64 to f32
    %44 = arith.mulf %in, %43 : f32
    linalg.yield %44 : f32
  } -> tensor<2x4x64x64xf32>
  %collapsed_8 = tensor.collapse_shape %5 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
  %collapsed_9 = tensor.collapse_shape %18 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
  %19 = tensor.empty() : tensor<8x64x64xf32>
  %20 = linalg.fill ins(%cst : f32) outs(%19 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
  %21 = linalg.batch_matmul ins(%collapsed_8, %collapsed_9 : tensor<8x64x64xf32>, tensor<8x64x64xf32>) outs(%20 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
  %expanded_10 = tensor.expand_shape %21 [[0, 1], [2], [3]] output_shape [2, 4, 64, 64] : tensor<8x64x64xf32> into tensor<2x4x64x64xf32>
  %22 = linalg.generic {indexing_maps = [#map, #map8, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_10, %14 : tensor<2x4x64x64xf32>, tensor<64x64xf32>) outs(%0 : tensor<2x4x64x64xf32>) {
  ^bb0(%in: f32, %in_15: f32, %out: f32):
    %43 = arith.addf %in, %in_15 : f32
    linalg.yield %43 : f32
  } -> tensor<2x4x64x64xf32>
  %23 = tensor.empty() : tensor<2x4x64xi64>
  %24 = linalg.fill ins(%c0_i64 : i64) outs(%23 : tensor<2x4x64xi64>) -> tensor<2x4x64xi64>
  %25 = tensor.empty() : tensor<2x4x64xf32>
  %26 = linalg.fill ins(%cst_0 : f32) outs(%25 : tensor<2x4x64xf32>) -> tensor<2x4x64xf32>
  %27:2 = linalg.generic {indexing_maps = [#map, #map9, #map9], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%22 : tensor<2x4x64x64xf32>) outs(%26, %24 : tensor<2x4x64xf32>, tensor<2x4x64xi64>) {
  ^bb0(%in: f32, %out: f32, %out_15: i64):
    %43 = linalg.index 3 : index
    %44 = arith.index_cast %43 : index to i64
    %45 = arith.maximumf %in, %out : f32
    %46 = arith.cmpf ogt, %in, %out : f32
    %47 = arith.select %46, %44, %out_15 : i64
    linalg.yield %45, %47 : f32, i64
  } -> (tensor<2x4x64xf32>, tensor<2x4x64xi64>)
  %expanded_11 = tensor.expand_shape %27#0 [[0], [1], [2, 3]] output_shape [2, 4, 64, 1] : tensor<2x4x64xf32> into tensor<2x4x64x1xf32>
  %28 = linalg.generic {indexing_maps = [#map, #map10, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%22, %expanded_11 : tensor<2x4x64x64xf32>, tensor<2x4x64x1xf32>) outs(%0 : tensor<2x4x64x64xf32>) {
  ^bb0(%in: f32, %in_15: f32, %out: f32):
    %43 = arith.subf %in, %in_15 : f32
    linalg.yield %43 : f32
  } -> tensor<2x4x64x64xf32>
  %29 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%28 : tensor<2x4x64x64xf32>) outs(%0 : tensor<2x4x64x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %43 = math.exp %in : f32
    linalg.yield %43 : f32
  } -> tensor<2x4x64x64xf32>
  %30 = tensor.empty() : tensor<2x4x64x1xf32>
  %31 = linalg.fill ins(%cst : f32) outs(%30 : tensor<2x4x64x1xf32>) -> tensor<2x4x64x1xf32>
  %32 = linalg.generic {indexing_maps = [#map, #map10], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%29 : tensor<2x4x64x64xf32>) outs(%31 : tensor<2x4x64x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %43 = arith.addf %in, %out : f32
    linalg.yield %43 : f32
  } -> tensor<2x4x64x1xf32>
  %33 = linalg.generic {indexing_maps = [#map, #map10, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%29, %32 : tensor<2x4x64x64xf32>, tensor<2x4x64x1xf32>) outs(%0 : tensor<2x4x64x64xf32>) {
  ^bb0(%in: f32, %in_15: f32, %out: f32):
    %43 = arith.divf %in, %in_15 : f32
    linalg.yield %43 : f32
  } -> tensor<2x4x64x64xf32>
  %34 = tensor.empty() : tensor<2x4x64x64xi1>
  %35 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%22 : tensor<2x4x64x64xf32>) outs(%34 : tensor<2x4x64x64xi1>) {
  ^bb0(%in: f32, %out: i1):
    %43 = arith.extf %in : f32 to f64
    %44 = arith.cmpf oeq, %43, %cst_5 : f64
    linalg.yield %44 : i1
  } -> tensor<2x4x64x64xi1>
  %36 = tensor.empty() : tensor<2x4x64x1xi1>
  %37 = linalg.fill ins(%true : i1) outs(%36 : tensor<2x4x64x1xi1>) -> tensor<2x4x64x1xi1>
  %38 = linalg.generic {indexing_maps = [#map, #map10], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%35 : tensor<2x4x64x64xi1>) outs(%37 : tensor<2x4x64x1xi1>) {
  ^bb0(%in: i1, %out: i1):
    %43 = arith.andi %in, %out : i1
    linalg.yield %43 : i1
  } -> tensor<2x4x64x1xi1>
  %39 = linalg.generic {indexing_maps = [#map10, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%38, %cst_1, %33 : tensor<2x4x64x1xi1>, tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) outs(%0 : tensor<2x4x64x64xf32>) {
  ^bb0(%in: i1, %in_15: f32, %in_16: f32, %out: f32):
    %43 = arith.select %in, %in_15, %in_16 : f32
    linalg.yield %43 : f32
  } -> tensor<2x4x64x64xf32>
  %collapsed_12 = tensor.collapse_shape %39 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
  %collapsed_13 = tensor.collapse_shape %17 [[0, 1, 2], [3], [4]] : tensor<2x2x2x64x64xf32> into tensor<8x64x64xf32>
  %40 = linalg.batch_matmul ins(%collapsed_12, %collapsed_13 : tensor<8x64x64xf32>, tensor<8x64x64xf32>) outs(%20 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
  %expanded_14 = tensor.expand_shape %40 [[0, 1], [2], [3]] output_shape [2, 4, 64, 64] : tensor<8x64x64xf32> into tensor<2x4x64x64xf32>
  %41 = tensor.empty() : tensor<2x4x64x64xbf16>
  %42 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_14 : tensor<2x4x64x64xf32>) outs(%41 : tensor<2x4x64x64xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %43 = arith.truncf %in : f32 to bf16
    linalg.yield %43 : bf16
  } -> tensor<2x4x64x64xbf16>
  return %42 : tensor<2x4x64x64xbf16>
}

// -----

// torch-mlir: heads that are repeated, scores in bf16, a mask of the lowest bf16 above the diagonal, a softmax in f32
// between bf16.

// CHECK-LABEL: @torch_repeated
// CHECK-NEXT: %[[O:.*]] = fp8.attention %arg0, %arg1, %arg2 scale = 1.250000e-01 window = [*, 0] layout = bhsd : {{.*}}tensor<2x2x64x64xbf16> -> tensor<2x4x64x64xbf16>
// CHECK-NEXT: return %[[O]]
#map = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>
#map1 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map4 = affine_map<(d0) -> (d0)>
#map5 = affine_map<(d0, d1) -> (0, d1)>
#map6 = affine_map<(d0, d1) -> (d0, 0)>
#map7 = affine_map<(d0, d1) -> (d0, d1)>
#map8 = affine_map<(d0, d1) -> ()>
#map9 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map10 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map11 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
func.func @torch_repeated(%arg0: tensor<2x4x64x64xbf16>, %arg1: tensor<2x2x64x64xbf16>, %arg2: tensor<2x2x64x64xbf16>) -> tensor<2x4x64x64xbf16> {
  %c1_i64 = arith.constant 1 : i64
  %c0_i64 = arith.constant 0 : i64
  %cst = arith.constant 0.000000e+00 : f32
  %cst_0 = arith.constant 0xFF800000 : f32
  %cst_1 = arith.constant dense<0.000000e+00> : tensor<bf16>
  %cst_2 = arith.constant dense<-3.389530e+38> : tensor<64x64xbf16>
  %cst_3 = arith.constant 1.250000e-01 : bf16
  %0 = tensor.empty() : tensor<2x2x2x64x64xbf16>
  %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x2x64x64xbf16>) outs(%0 : tensor<2x2x2x64x64xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    linalg.yield %in : bf16
  } -> tensor<2x2x2x64x64xbf16>
  %collapsed = tensor.collapse_shape %1 [[0], [1, 2], [3], [4]] : tensor<2x2x2x64x64xbf16> into tensor<2x4x64x64xbf16>
  %2 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x2x64x64xbf16>) outs(%0 : tensor<2x2x2x64x64xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    linalg.yield %in : bf16
  } -> tensor<2x2x2x64x64xbf16>
  %3 = tensor.empty() : tensor<2x4x64x64xbf16>
  %transposed = linalg.transpose ins(%collapsed : tensor<2x4x64x64xbf16>) outs(%3 : tensor<2x4x64x64xbf16>) permutation = [0, 1, 3, 2] 
  %collapsed_4 = tensor.collapse_shape %arg0 [[0, 1], [2], [3]] : tensor<2x4x64x64xbf16> into tensor<8x64x64xbf16>
  %collapsed_5 = tensor.collapse_shape %transposed [[0, 1], [2], [3]] : tensor<2x4x64x64xbf16> into tensor<8x64x64xbf16>
  %4 = tensor.empty() : tensor<8x64x64xf32>
  %5 = linalg.fill ins(%cst : f32) outs(%4 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
  %6 = linalg.batch_matmul ins(%collapsed_4, %collapsed_5 : tensor<8x64x64xbf16>, tensor<8x64x64xbf16>) outs(%5 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
  %7 = tensor.empty() : tensor<8x64x64xbf16>
  %8 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6 : tensor<8x64x64xf32>) outs(%7 : tensor<8x64x64xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %35 = arith.truncf %in : f32 to bf16
    linalg.yield %35 : bf16
  } -> tensor<8x64x64xbf16>
  %expanded = tensor.expand_shape %8 [[0, 1], [2], [3]] output_shape [2, 4, 64, 64] : tensor<8x64x64xbf16> into tensor<2x4x64x64xbf16>
  %9 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<2x4x64x64xbf16>) outs(%3 : tensor<2x4x64x64xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    %35 = arith.mulf %in, %cst_3 : bf16
    linalg.yield %35 : bf16
  } -> tensor<2x4x64x64xbf16>
  %10 = tensor.empty() : tensor<64xi64>
  %11 = linalg.generic {indexing_maps = [#map4], iterator_types = ["parallel"]} outs(%10 : tensor<64xi64>) {
  ^bb0(%out: i64):
    %35 = linalg.index 0 : index
    %36 = arith.index_cast %35 : index to i64
    linalg.yield %36 : i64
  } -> tensor<64xi64>
  %expanded_6 = tensor.expand_shape %11 [[0, 1]] output_shape [1, 64] : tensor<64xi64> into tensor<1x64xi64>
  %expanded_7 = tensor.expand_shape %11 [[0, 1]] output_shape [64, 1] : tensor<64xi64> into tensor<64x1xi64>
  %12 = tensor.empty() : tensor<64x64xi64>
  %13 = linalg.generic {indexing_maps = [#map5, #map6, #map7], iterator_types = ["parallel", "parallel"]} ins(%expanded_6, %expanded_7 : tensor<1x64xi64>, tensor<64x1xi64>) outs(%12 : tensor<64x64xi64>) {
  ^bb0(%in: i64, %in_12: i64, %out: i64):
    %35 = arith.subi %in, %in_12 : i64
    linalg.yield %35 : i64
  } -> tensor<64x64xi64>
  %14 = tensor.empty() : tensor<64x64xi1>
  %15 = linalg.generic {indexing_maps = [#map7, #map7], iterator_types = ["parallel", "parallel"]} ins(%13 : tensor<64x64xi64>) outs(%14 : tensor<64x64xi1>) {
  ^bb0(%in: i64, %out: i1):
    %35 = arith.cmpi sge, %in, %c1_i64 : i64
    linalg.yield %35 : i1
  } -> tensor<64x64xi1>
  %16 = tensor.empty() : tensor<64x64xbf16>
  %17 = linalg.generic {indexing_maps = [#map7, #map7, #map8, #map7], iterator_types = ["parallel", "parallel"]} ins(%15, %cst_2, %cst_1 : tensor<64x64xi1>, tensor<64x64xbf16>, tensor<bf16>) outs(%16 : tensor<64x64xbf16>) {
  ^bb0(%in: i1, %in_12: bf16, %in_13: bf16, %out: bf16):
    %35 = arith.select %in, %in_12, %in_13 : bf16
    linalg.yield %35 : bf16
  } -> tensor<64x64xbf16>
  %18 = linalg.generic {indexing_maps = [#map3, #map9, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%9, %17 : tensor<2x4x64x64xbf16>, tensor<64x64xbf16>) outs(%3 : tensor<2x4x64x64xbf16>) {
  ^bb0(%in: bf16, %in_12: bf16, %out: bf16):
    %35 = arith.addf %in, %in_12 : bf16
    linalg.yield %35 : bf16
  } -> tensor<2x4x64x64xbf16>
  %19 = tensor.empty() : tensor<2x4x64x64xf32>
  %20 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%18 : tensor<2x4x64x64xbf16>) outs(%19 : tensor<2x4x64x64xf32>) {
  ^bb0(%in: bf16, %out: f32):
    %35 = arith.extf %in : bf16 to f32
    linalg.yield %35 : f32
  } -> tensor<2x4x64x64xf32>
  %21 = tensor.empty() : tensor<2x4x64xi64>
  %22 = linalg.fill ins(%c0_i64 : i64) outs(%21 : tensor<2x4x64xi64>) -> tensor<2x4x64xi64>
  %23 = tensor.empty() : tensor<2x4x64xf32>
  %24 = linalg.fill ins(%cst_0 : f32) outs(%23 : tensor<2x4x64xf32>) -> tensor<2x4x64xf32>
  %25:2 = linalg.generic {indexing_maps = [#map3, #map10, #map10], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%20 : tensor<2x4x64x64xf32>) outs(%24, %22 : tensor<2x4x64xf32>, tensor<2x4x64xi64>) {
  ^bb0(%in: f32, %out: f32, %out_12: i64):
    %35 = linalg.index 3 : index
    %36 = arith.index_cast %35 : index to i64
    %37 = arith.maximumf %in, %out : f32
    %38 = arith.cmpf ogt, %in, %out : f32
    %39 = arith.select %38, %36, %out_12 : i64
    linalg.yield %37, %39 : f32, i64
  } -> (tensor<2x4x64xf32>, tensor<2x4x64xi64>)
  %expanded_8 = tensor.expand_shape %25#0 [[0], [1], [2, 3]] output_shape [2, 4, 64, 1] : tensor<2x4x64xf32> into tensor<2x4x64x1xf32>
  %26 = linalg.generic {indexing_maps = [#map3, #map11, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%20, %expanded_8 : tensor<2x4x64x64xf32>, tensor<2x4x64x1xf32>) outs(%19 : tensor<2x4x64x64xf32>) {
  ^bb0(%in: f32, %in_12: f32, %out: f32):
    %35 = arith.subf %in, %in_12 : f32
    linalg.yield %35 : f32
  } -> tensor<2x4x64x64xf32>
  %27 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%26 : tensor<2x4x64x64xf32>) outs(%19 : tensor<2x4x64x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %35 = math.exp %in : f32
    linalg.yield %35 : f32
  } -> tensor<2x4x64x64xf32>
  %28 = tensor.empty() : tensor<2x4x64x1xf32>
  %29 = linalg.fill ins(%cst : f32) outs(%28 : tensor<2x4x64x1xf32>) -> tensor<2x4x64x1xf32>
  %30 = linalg.generic {indexing_maps = [#map3, #map11], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%27 : tensor<2x4x64x64xf32>) outs(%29 : tensor<2x4x64x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %35 = arith.addf %in, %out : f32
    linalg.yield %35 : f32
  } -> tensor<2x4x64x1xf32>
  %31 = linalg.generic {indexing_maps = [#map3, #map11, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%27, %30 : tensor<2x4x64x64xf32>, tensor<2x4x64x1xf32>) outs(%19 : tensor<2x4x64x64xf32>) {
  ^bb0(%in: f32, %in_12: f32, %out: f32):
    %35 = arith.divf %in, %in_12 : f32
    linalg.yield %35 : f32
  } -> tensor<2x4x64x64xf32>
  %32 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%31 : tensor<2x4x64x64xf32>) outs(%3 : tensor<2x4x64x64xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %35 = arith.truncf %in : f32 to bf16
    linalg.yield %35 : bf16
  } -> tensor<2x4x64x64xbf16>
  %collapsed_9 = tensor.collapse_shape %32 [[0, 1], [2], [3]] : tensor<2x4x64x64xbf16> into tensor<8x64x64xbf16>
  %collapsed_10 = tensor.collapse_shape %2 [[0, 1, 2], [3], [4]] : tensor<2x2x2x64x64xbf16> into tensor<8x64x64xbf16>
  %33 = linalg.batch_matmul ins(%collapsed_9, %collapsed_10 : tensor<8x64x64xbf16>, tensor<8x64x64xbf16>) outs(%5 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
  %34 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel", "parallel"]} ins(%33 : tensor<8x64x64xf32>) outs(%7 : tensor<8x64x64xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %35 = arith.truncf %in : f32 to bf16
    linalg.yield %35 : bf16
  } -> tensor<8x64x64xbf16>
  %expanded_11 = tensor.expand_shape %34 [[0, 1], [2], [3]] output_shape [2, 4, 64, 64] : tensor<8x64x64xbf16> into tensor<2x4x64x64xbf16>
  return %expanded_11 : tensor<2x4x64x64xbf16>
}

// -----

// JAX: dot_product_attention with is_causal and groups of heads, of [batch, length, heads, width]: nothing is copied.

// CHECK-LABEL: @jax_grouped
// CHECK-NEXT: %[[O:.*]] = fp8.attention %arg0, %arg1, %arg2 scale = 1.250000e-01 window = [*, 0] : tensor<2x64x4x64xbf16>, tensor<2x64x2x64xbf16>, tensor<2x64x2x64xbf16> -> tensor<2x64x4x64xbf16>
// CHECK-NEXT: return %[[O]]
#map = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1, d3, d4)>
#map1 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map6 = affine_map<(d0, d1, d2, d3, d4) -> (d1, d2, d3, d4)>
#map7 = affine_map<(d0, d1, d2, d3, d4) -> (d1, d2, d3, d0, d4)>
#map8 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
#map9 = affine_map<(d0, d1, d2, d3, d4) -> (d3, d0, d1, d4, d2)>
#map10 = affine_map<(d0, d1, d2, d3, d4) -> (d1, d3, d4, d0, d2)>
#map11 = affine_map<(d0, d1, d2, d3, d4) -> (d3, d0, d1, d2, d4)>
func.func @jax_grouped(%arg0: tensor<2x64x4x64xbf16>, %arg1: tensor<2x64x2x64xbf16>, %arg2: tensor<2x64x2x64xbf16>) -> tensor<2x64x4x64xbf16> {
  %cst = arith.constant 0.000000e+00 : bf16
  %cst_0 = arith.constant 0xFF800000 : f32
  %cst_1 = arith.constant -2.38197633E+38 : f32
  %cst_2 = arith.constant 1.250000e-01 : f32
  %cst_3 = arith.constant 0.000000e+00 : f32
  %expanded = tensor.expand_shape %arg0 [[0], [1], [2, 3], [4]] output_shape [2, 64, 2, 2, 64] : tensor<2x64x4x64xbf16> into tensor<2x64x2x2x64xbf16>
  %0 = tensor.empty() : tensor<2x2x64x2x64xbf16>
  %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<2x64x2x2x64xbf16>) outs(%0 : tensor<2x2x64x2x64xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    linalg.yield %in : bf16
  } -> tensor<2x2x64x2x64xbf16>
  %2 = tensor.empty() : tensor<2x2x64x64xbf16>
  %3 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x64x2x64xbf16>) outs(%2 : tensor<2x2x64x64xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    linalg.yield %in : bf16
  } -> tensor<2x2x64x64xbf16>
  %collapsed = tensor.collapse_shape %1 [[0, 1], [2, 3], [4]] : tensor<2x2x64x2x64xbf16> into tensor<4x128x64xbf16>
  %collapsed_4 = tensor.collapse_shape %3 [[0, 1], [2], [3]] : tensor<2x2x64x64xbf16> into tensor<4x64x64xbf16>
  %4 = tensor.empty() : tensor<4x128x64xf32>
  %5 = linalg.fill ins(%cst_3 : f32) outs(%4 : tensor<4x128x64xf32>) -> tensor<4x128x64xf32>
  %6 = linalg.batch_matmul ins(%collapsed, %collapsed_4 : tensor<4x128x64xbf16>, tensor<4x64x64xbf16>) outs(%5 : tensor<4x128x64xf32>) -> tensor<4x128x64xf32>
  %expanded_5 = tensor.expand_shape %6 [[0, 1], [2, 3], [4]] output_shape [2, 2, 64, 2, 64] : tensor<4x128x64xf32> into tensor<2x2x64x2x64xf32>
  %7 = tensor.empty() : tensor<2x2x64x2x64xf32>
  %8 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_5 : tensor<2x2x64x2x64xf32>) outs(%7 : tensor<2x2x64x2x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %52 = arith.mulf %in, %cst_2 : f32
    linalg.yield %52 : f32
  } -> tensor<2x2x64x2x64xf32>
  %9 = tensor.empty() : tensor<64x64xi32>
  %10 = linalg.generic {indexing_maps = [#map4], iterator_types = ["parallel", "parallel"]} outs(%9 : tensor<64x64xi32>) {
  ^bb0(%out: i32):
    %52 = linalg.index 0 : index
    %53 = arith.index_cast %52 : index to i32
    linalg.yield %53 : i32
  } -> tensor<64x64xi32>
  %11 = tensor.empty() : tensor<64x64xi32>
  %12 = linalg.generic {indexing_maps = [#map4], iterator_types = ["parallel", "parallel"]} outs(%11 : tensor<64x64xi32>) {
  ^bb0(%out: i32):
    %52 = linalg.index 1 : index
    %53 = arith.index_cast %52 : index to i32
    linalg.yield %53 : i32
  } -> tensor<64x64xi32>
  %13 = tensor.empty() : tensor<64x64xi1>
  %14 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%10, %12 : tensor<64x64xi32>, tensor<64x64xi32>) outs(%13 : tensor<64x64xi1>) {
  ^bb0(%in: i32, %in_10: i32, %out: i1):
    %52 = arith.cmpi sge, %in, %in_10 : i32
    linalg.yield %52 : i1
  } -> tensor<64x64xi1>
  %15 = tensor.empty() : tensor<2x2x64x64xi1>
  %16 = linalg.generic {indexing_maps = [#map5, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%14 : tensor<64x64xi1>) outs(%15 : tensor<2x2x64x64xi1>) {
  ^bb0(%in: i1, %out: i1):
    linalg.yield %in : i1
  } -> tensor<2x2x64x64xi1>
  %17 = tensor.empty() : tensor<2x2x2x64x64xi1>
  %18 = linalg.generic {indexing_maps = [#map6, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%16 : tensor<2x2x64x64xi1>) outs(%17 : tensor<2x2x2x64x64xi1>) {
  ^bb0(%in: i1, %out: i1):
    linalg.yield %in : i1
  } -> tensor<2x2x2x64x64xi1>
  %19 = tensor.empty() : tensor<2x2x2x64x64xf32>
  %20 = linalg.generic {indexing_maps = [#map7, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%8 : tensor<2x2x64x2x64xf32>) outs(%19 : tensor<2x2x2x64x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2x2x2x64x64xf32>
  %21 = tensor.empty() : tensor<2x2x2x64x64xf32>
  %22 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%18, %20 : tensor<2x2x2x64x64xi1>, tensor<2x2x2x64x64xf32>) outs(%21 : tensor<2x2x2x64x64xf32>) {
  ^bb0(%in: i1, %in_10: f32, %out: f32):
    %52 = arith.select %in, %in_10, %cst_1 : f32
    linalg.yield %52 : f32
  } -> tensor<2x2x2x64x64xf32>
  %23 = tensor.empty() : tensor<2x2x2x64xf32>
  %24 = linalg.fill ins(%cst_0 : f32) outs(%23 : tensor<2x2x2x64xf32>) -> tensor<2x2x2x64xf32>
  %25 = linalg.generic {indexing_maps = [#map1, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%22 : tensor<2x2x2x64x64xf32>) outs(%24 : tensor<2x2x2x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %52 = arith.maximumf %out, %in : f32
    linalg.yield %52 : f32
  } -> tensor<2x2x2x64xf32>
  %26 = tensor.empty() : tensor<2x2x2x64x64xf32>
  %27 = linalg.generic {indexing_maps = [#map8, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%25 : tensor<2x2x2x64xf32>) outs(%26 : tensor<2x2x2x64x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2x2x2x64x64xf32>
  %28 = tensor.empty() : tensor<2x2x2x64x64xf32>
  %29 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%22, %27 : tensor<2x2x2x64x64xf32>, tensor<2x2x2x64x64xf32>) outs(%28 : tensor<2x2x2x64x64xf32>) {
  ^bb0(%in: f32, %in_10: f32, %out: f32):
    %52 = arith.subf %in, %in_10 : f32
    linalg.yield %52 : f32
  } -> tensor<2x2x2x64x64xf32>
  %30 = tensor.empty() : tensor<2x2x2x64x64xf32>
  %31 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%29 : tensor<2x2x2x64x64xf32>) outs(%30 : tensor<2x2x2x64x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %52 = math.exp %in : f32
    linalg.yield %52 : f32
  } -> tensor<2x2x2x64x64xf32>
  %32 = tensor.empty() : tensor<2x2x2x64xf32>
  %33 = linalg.fill ins(%cst_3 : f32) outs(%32 : tensor<2x2x2x64xf32>) -> tensor<2x2x2x64xf32>
  %34 = linalg.generic {indexing_maps = [#map1, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%31 : tensor<2x2x2x64x64xf32>) outs(%33 : tensor<2x2x2x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %52 = arith.addf %out, %in : f32
    linalg.yield %52 : f32
  } -> tensor<2x2x2x64xf32>
  %35 = tensor.empty() : tensor<2x2x2x64x64xf32>
  %36 = linalg.generic {indexing_maps = [#map8, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%34 : tensor<2x2x2x64xf32>) outs(%35 : tensor<2x2x2x64x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<2x2x2x64x64xf32>
  %37 = tensor.empty() : tensor<2x2x2x64x64xf32>
  %38 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%31, %36 : tensor<2x2x2x64x64xf32>, tensor<2x2x2x64x64xf32>) outs(%37 : tensor<2x2x2x64x64xf32>) {
  ^bb0(%in: f32, %in_10: f32, %out: f32):
    %52 = arith.divf %in, %in_10 : f32
    linalg.yield %52 : f32
  } -> tensor<2x2x2x64x64xf32>
  %39 = tensor.empty() : tensor<2x2x2x64x64xbf16>
  %40 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%38 : tensor<2x2x2x64x64xf32>) outs(%39 : tensor<2x2x2x64x64xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %52 = arith.truncf %in : f32 to bf16
    linalg.yield %52 : bf16
  } -> tensor<2x2x2x64x64xbf16>
  %41 = tensor.empty() : tensor<2x2x64x64xbf16>
  %42 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x64x2x64xbf16>) outs(%41 : tensor<2x2x64x64xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    linalg.yield %in : bf16
  } -> tensor<2x2x64x64xbf16>
  %43 = tensor.empty() : tensor<2x2x64x2x64xbf16>
  %44 = linalg.generic {indexing_maps = [#map9, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%40 : tensor<2x2x2x64x64xbf16>) outs(%43 : tensor<2x2x64x2x64xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    linalg.yield %in : bf16
  } -> tensor<2x2x64x2x64xbf16>
  %collapsed_6 = tensor.collapse_shape %42 [[0, 1], [2], [3]] : tensor<2x2x64x64xbf16> into tensor<4x64x64xbf16>
  %collapsed_7 = tensor.collapse_shape %44 [[0, 1], [2], [3, 4]] : tensor<2x2x64x2x64xbf16> into tensor<4x64x128xbf16>
  %45 = tensor.empty() : tensor<4x64x128xbf16>
  %46 = linalg.fill ins(%cst : bf16) outs(%45 : tensor<4x64x128xbf16>) -> tensor<4x64x128xbf16>
  %47 = linalg.batch_matmul ins(%collapsed_6, %collapsed_7 : tensor<4x64x64xbf16>, tensor<4x64x128xbf16>) outs(%46 : tensor<4x64x128xbf16>) -> tensor<4x64x128xbf16>
  %expanded_8 = tensor.expand_shape %47 [[0, 1], [2], [3, 4]] output_shape [2, 2, 64, 2, 64] : tensor<4x64x128xbf16> into tensor<2x2x64x2x64xbf16>
  %48 = tensor.empty() : tensor<2x2x64x2x64xbf16>
  %49 = linalg.generic {indexing_maps = [#map10, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_8 : tensor<2x2x64x2x64xbf16>) outs(%48 : tensor<2x2x64x2x64xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    linalg.yield %in : bf16
  } -> tensor<2x2x64x2x64xbf16>
  %50 = tensor.empty() : tensor<2x64x2x2x64xbf16>
  %51 = linalg.generic {indexing_maps = [#map11, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%49 : tensor<2x2x64x2x64xbf16>) outs(%50 : tensor<2x64x2x2x64xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    linalg.yield %in : bf16
  } -> tensor<2x64x2x2x64xbf16>
  %collapsed_9 = tensor.collapse_shape %51 [[0], [1], [2, 3], [4]] : tensor<2x64x2x2x64xbf16> into tensor<2x64x4x64xbf16>
  return %collapsed_9 : tensor<2x64x4x64xbf16>
}

// -----

// JAX: local_window_size, of numbers that are a constant, chosen by a score of -2.4e38.

// CHECK-LABEL: @jax_window
// CHECK: fp8.attention %arg0, %arg1, %arg2 scale = 1.250000e-01 window = [15, 0] : 
#map = affine_map<(d0, d1, d2, d3, d4) -> (d0, d2, d1, d3, d4)>
#map1 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map6 = affine_map<(d0, d1) -> (d1)>
#map7 = affine_map<(d0, d1) -> (d0)>
#map8 = affine_map<(d0, d1) -> (0, d1)>
#map9 = affine_map<(d0, d1, d2, d3, d4) -> (d1, d2, d3, d4)>
#map10 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3)>
#map11 = affine_map<(d0, d1, d2, d3, d4) -> (d3, d0, d1, d4, d2)>
#map12 = affine_map<(d0, d1, d2, d3, d4) -> (d1, d3, d4, d0, d2)>
func.func @jax_window(%arg0: tensor<2x64x4x64xbf16>, %arg1: tensor<2x64x4x64xbf16>, %arg2: tensor<2x64x4x64xbf16>) -> tensor<2x64x4x64xbf16> {
  %cst = arith.constant 0.000000e+00 : bf16
  %cst_0 = arith.constant 0xFF800000 : f32
  %cst_1 = arith.constant -2.38197633E+38 : f32
  %c15_i32 = arith.constant 15 : i32
  %cst_2 = arith.constant 1.250000e-01 : f32
  %cst_3 = arith.constant 0.000000e+00 : f32
  %cst_4 = arith.constant dense<[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63]> : tensor<64xi32>
  %expanded = tensor.expand_shape %arg0 [[0], [1], [2], [3, 4]] output_shape [2, 64, 4, 1, 64] : tensor<2x64x4x64xbf16> into tensor<2x64x4x1x64xbf16>
  %0 = tensor.empty() : tensor<2x4x64x1x64xbf16>
  %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<2x64x4x1x64xbf16>) outs(%0 : tensor<2x4x64x1x64xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    linalg.yield %in : bf16
  } -> tensor<2x4x64x1x64xbf16>
  %2 = tensor.empty() : tensor<2x4x64x64xbf16>
  %3 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x64x4x64xbf16>) outs(%2 : tensor<2x4x64x64xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    linalg.yield %in : bf16
  } -> tensor<2x4x64x64xbf16>
  %collapsed = tensor.collapse_shape %1 [[0, 1], [2], [3, 4]] : tensor<2x4x64x1x64xbf16> into tensor<8x64x64xbf16>
  %collapsed_5 = tensor.collapse_shape %3 [[0, 1], [2], [3]] : tensor<2x4x64x64xbf16> into tensor<8x64x64xbf16>
  %4 = tensor.empty() : tensor<8x64x64xf32>
  %5 = linalg.fill ins(%cst_3 : f32) outs(%4 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
  %6 = linalg.batch_matmul ins(%collapsed, %collapsed_5 : tensor<8x64x64xbf16>, tensor<8x64x64xbf16>) outs(%5 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
  %expanded_6 = tensor.expand_shape %6 [[0, 1], [2], [3, 4]] output_shape [2, 4, 64, 1, 64] : tensor<8x64x64xf32> into tensor<2x4x64x1x64xf32>
  %7 = tensor.empty() : tensor<2x4x64x1x64xf32>
  %8 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_6 : tensor<2x4x64x1x64xf32>) outs(%7 : tensor<2x4x64x1x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %68 = arith.mulf %in, %cst_2 : f32
    linalg.yield %68 : f32
  } -> tensor<2x4x64x1x64xf32>
  %9 = tensor.empty() : tensor<64x64xi32>
  %10 = linalg.generic {indexing_maps = [#map4], iterator_types = ["parallel", "parallel"]} outs(%9 : tensor<64x64xi32>) {
  ^bb0(%out: i32):
    %68 = linalg.index 0 : index
    %69 = arith.index_cast %68 : index to i32
    linalg.yield %69 : i32
  } -> tensor<64x64xi32>
  %11 = tensor.empty() : tensor<64x64xi32>
  %12 = linalg.generic {indexing_maps = [#map4], iterator_types = ["parallel", "parallel"]} outs(%11 : tensor<64x64xi32>) {
  ^bb0(%out: i32):
    %68 = linalg.index 1 : index
    %69 = arith.index_cast %68 : index to i32
    linalg.yield %69 : i32
  } -> tensor<64x64xi32>
  %13 = tensor.empty() : tensor<64x64xi1>
  %14 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%10, %12 : tensor<64x64xi32>, tensor<64x64xi32>) outs(%13 : tensor<64x64xi1>) {
  ^bb0(%in: i32, %in_13: i32, %out: i1):
    %68 = arith.cmpi sge, %in, %in_13 : i32
    linalg.yield %68 : i1
  } -> tensor<64x64xi1>
  %15 = tensor.empty() : tensor<2x4x64x64xi1>
  %16 = linalg.generic {indexing_maps = [#map5, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%14 : tensor<64x64xi1>) outs(%15 : tensor<2x4x64x64xi1>) {
  ^bb0(%in: i1, %out: i1):
    linalg.yield %in : i1
  } -> tensor<2x4x64x64xi1>
  %17 = tensor.empty() : tensor<1x64xi32>
  %18 = linalg.generic {indexing_maps = [#map6, #map4], iterator_types = ["parallel", "parallel"]} ins(%cst_4 : tensor<64xi32>) outs(%17 : tensor<1x64xi32>) {
  ^bb0(%in: i32, %out: i32):
    linalg.yield %in : i32
  } -> tensor<1x64xi32>
  %19 = tensor.empty() : tensor<1x64xi32>
  %20 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%18 : tensor<1x64xi32>) outs(%19 : tensor<1x64xi32>) {
  ^bb0(%in: i32, %out: i32):
    %68 = arith.addi %in, %c15_i32 : i32
    linalg.yield %68 : i32
  } -> tensor<1x64xi32>
  %21 = tensor.empty() : tensor<64x64xi32>
  %22 = linalg.generic {indexing_maps = [#map7, #map4], iterator_types = ["parallel", "parallel"]} ins(%cst_4 : tensor<64xi32>) outs(%21 : tensor<64x64xi32>) {
  ^bb0(%in: i32, %out: i32):
    linalg.yield %in : i32
  } -> tensor<64x64xi32>
  %23 = tensor.empty() : tensor<64x64xi32>
  %24 = linalg.generic {indexing_maps = [#map8, #map4], iterator_types = ["parallel", "parallel"]} ins(%20 : tensor<1x64xi32>) outs(%23 : tensor<64x64xi32>) {
  ^bb0(%in: i32, %out: i32):
    linalg.yield %in : i32
  } -> tensor<64x64xi32>
  %25 = tensor.empty() : tensor<64x64xi1>
  %26 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%22, %24 : tensor<64x64xi32>, tensor<64x64xi32>) outs(%25 : tensor<64x64xi1>) {
  ^bb0(%in: i32, %in_13: i32, %out: i1):
    %68 = arith.cmpi sle, %in, %in_13 : i32
    linalg.yield %68 : i1
  } -> tensor<64x64xi1>
  %27 = tensor.empty() : tensor<64x64xi32>
  %28 = linalg.generic {indexing_maps = [#map6, #map4], iterator_types = ["parallel", "parallel"]} ins(%cst_4 : tensor<64xi32>) outs(%27 : tensor<64x64xi32>) {
  ^bb0(%in: i32, %out: i32):
    linalg.yield %in : i32
  } -> tensor<64x64xi32>
  %29 = tensor.empty() : tensor<64x64xi1>
  %30 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%22, %28 : tensor<64x64xi32>, tensor<64x64xi32>) outs(%29 : tensor<64x64xi1>) {
  ^bb0(%in: i32, %in_13: i32, %out: i1):
    %68 = arith.cmpi sge, %in, %in_13 : i32
    linalg.yield %68 : i1
  } -> tensor<64x64xi1>
  %31 = tensor.empty() : tensor<64x64xi1>
  %32 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%30, %26 : tensor<64x64xi1>, tensor<64x64xi1>) outs(%31 : tensor<64x64xi1>) {
  ^bb0(%in: i1, %in_13: i1, %out: i1):
    %68 = arith.andi %in, %in_13 : i1
    linalg.yield %68 : i1
  } -> tensor<64x64xi1>
  %33 = tensor.empty() : tensor<2x4x64x64xi1>
  %34 = linalg.generic {indexing_maps = [#map5, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%32 : tensor<64x64xi1>) outs(%33 : tensor<2x4x64x64xi1>) {
  ^bb0(%in: i1, %out: i1):
    linalg.yield %in : i1
  } -> tensor<2x4x64x64xi1>
  %35 = tensor.empty() : tensor<2x4x64x64xi1>
  %36 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%16, %34 : tensor<2x4x64x64xi1>, tensor<2x4x64x64xi1>) outs(%35 : tensor<2x4x64x64xi1>) {
  ^bb0(%in: i1, %in_13: i1, %out: i1):
    %68 = arith.andi %in, %in_13 : i1
    linalg.yield %68 : i1
  } -> tensor<2x4x64x64xi1>
  %37 = tensor.empty() : tensor<1x2x4x64x64xi1>
  %38 = linalg.generic {indexing_maps = [#map9, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%36 : tensor<2x4x64x64xi1>) outs(%37 : tensor<1x2x4x64x64xi1>) {
  ^bb0(%in: i1, %out: i1):
    linalg.yield %in : i1
  } -> tensor<1x2x4x64x64xi1>
  %collapsed_7 = tensor.collapse_shape %8 [[0, 1, 2, 3, 4]] : tensor<2x4x64x1x64xf32> into tensor<32768xf32>
  %expanded_8 = tensor.expand_shape %collapsed_7 [[0, 1, 2, 3, 4]] output_shape [1, 2, 4, 64, 64] : tensor<32768xf32> into tensor<1x2x4x64x64xf32>
  %39 = tensor.empty() : tensor<1x2x4x64x64xf32>
  %40 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%38, %expanded_8 : tensor<1x2x4x64x64xi1>, tensor<1x2x4x64x64xf32>) outs(%39 : tensor<1x2x4x64x64xf32>) {
  ^bb0(%in: i1, %in_13: f32, %out: f32):
    %68 = arith.select %in, %in_13, %cst_1 : f32
    linalg.yield %68 : f32
  } -> tensor<1x2x4x64x64xf32>
  %41 = tensor.empty() : tensor<1x2x4x64xf32>
  %42 = linalg.fill ins(%cst_0 : f32) outs(%41 : tensor<1x2x4x64xf32>) -> tensor<1x2x4x64xf32>
  %43 = linalg.generic {indexing_maps = [#map1, #map10], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%40 : tensor<1x2x4x64x64xf32>) outs(%42 : tensor<1x2x4x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %68 = arith.maximumf %out, %in : f32
    linalg.yield %68 : f32
  } -> tensor<1x2x4x64xf32>
  %44 = tensor.empty() : tensor<1x2x4x64x64xf32>
  %45 = linalg.generic {indexing_maps = [#map10, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%43 : tensor<1x2x4x64xf32>) outs(%44 : tensor<1x2x4x64x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<1x2x4x64x64xf32>
  %46 = tensor.empty() : tensor<1x2x4x64x64xf32>
  %47 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%40, %45 : tensor<1x2x4x64x64xf32>, tensor<1x2x4x64x64xf32>) outs(%46 : tensor<1x2x4x64x64xf32>) {
  ^bb0(%in: f32, %in_13: f32, %out: f32):
    %68 = arith.subf %in, %in_13 : f32
    linalg.yield %68 : f32
  } -> tensor<1x2x4x64x64xf32>
  %48 = tensor.empty() : tensor<1x2x4x64x64xf32>
  %49 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%47 : tensor<1x2x4x64x64xf32>) outs(%48 : tensor<1x2x4x64x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %68 = math.exp %in : f32
    linalg.yield %68 : f32
  } -> tensor<1x2x4x64x64xf32>
  %50 = tensor.empty() : tensor<1x2x4x64xf32>
  %51 = linalg.fill ins(%cst_3 : f32) outs(%50 : tensor<1x2x4x64xf32>) -> tensor<1x2x4x64xf32>
  %52 = linalg.generic {indexing_maps = [#map1, #map10], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]} ins(%49 : tensor<1x2x4x64x64xf32>) outs(%51 : tensor<1x2x4x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    %68 = arith.addf %out, %in : f32
    linalg.yield %68 : f32
  } -> tensor<1x2x4x64xf32>
  %53 = tensor.empty() : tensor<1x2x4x64x64xf32>
  %54 = linalg.generic {indexing_maps = [#map10, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%52 : tensor<1x2x4x64xf32>) outs(%53 : tensor<1x2x4x64x64xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<1x2x4x64x64xf32>
  %55 = tensor.empty() : tensor<1x2x4x64x64xf32>
  %56 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%49, %54 : tensor<1x2x4x64x64xf32>, tensor<1x2x4x64x64xf32>) outs(%55 : tensor<1x2x4x64x64xf32>) {
  ^bb0(%in: f32, %in_13: f32, %out: f32):
    %68 = arith.divf %in, %in_13 : f32
    linalg.yield %68 : f32
  } -> tensor<1x2x4x64x64xf32>
  %57 = tensor.empty() : tensor<1x2x4x64x64xbf16>
  %58 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%56 : tensor<1x2x4x64x64xf32>) outs(%57 : tensor<1x2x4x64x64xbf16>) {
  ^bb0(%in: f32, %out: bf16):
    %68 = arith.truncf %in : f32 to bf16
    linalg.yield %68 : bf16
  } -> tensor<1x2x4x64x64xbf16>
  %59 = tensor.empty() : tensor<2x4x64x64xbf16>
  %60 = linalg.generic {indexing_maps = [#map2, #map3], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x64x4x64xbf16>) outs(%59 : tensor<2x4x64x64xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    linalg.yield %in : bf16
  } -> tensor<2x4x64x64xbf16>
  %61 = tensor.empty() : tensor<2x4x64x1x64xbf16>
  %62 = linalg.generic {indexing_maps = [#map11, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%58 : tensor<1x2x4x64x64xbf16>) outs(%61 : tensor<2x4x64x1x64xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    linalg.yield %in : bf16
  } -> tensor<2x4x64x1x64xbf16>
  %collapsed_9 = tensor.collapse_shape %60 [[0, 1], [2], [3]] : tensor<2x4x64x64xbf16> into tensor<8x64x64xbf16>
  %collapsed_10 = tensor.collapse_shape %62 [[0, 1], [2], [3, 4]] : tensor<2x4x64x1x64xbf16> into tensor<8x64x64xbf16>
  %63 = tensor.empty() : tensor<8x64x64xbf16>
  %64 = linalg.fill ins(%cst : bf16) outs(%63 : tensor<8x64x64xbf16>) -> tensor<8x64x64xbf16>
  %65 = linalg.batch_matmul ins(%collapsed_9, %collapsed_10 : tensor<8x64x64xbf16>, tensor<8x64x64xbf16>) outs(%64 : tensor<8x64x64xbf16>) -> tensor<8x64x64xbf16>
  %expanded_11 = tensor.expand_shape %65 [[0, 1], [2], [3, 4]] output_shape [2, 4, 64, 1, 64] : tensor<8x64x64xbf16> into tensor<2x4x64x1x64xbf16>
  %66 = tensor.empty() : tensor<1x2x64x4x64xbf16>
  %67 = linalg.generic {indexing_maps = [#map12, #map1], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%expanded_11 : tensor<2x4x64x1x64xbf16>) outs(%66 : tensor<1x2x64x4x64xbf16>) {
  ^bb0(%in: bf16, %out: bf16):
    linalg.yield %in : bf16
  } -> tensor<1x2x64x4x64xbf16>
  %collapsed_12 = tensor.collapse_shape %67 [[0, 1], [2], [3], [4]] : tensor<1x2x64x4x64xbf16> into tensor<2x64x4x64xbf16>
  return %collapsed_12 : tensor<2x64x4x64xbf16>
}

// -----

// As Gemma 2 has it.

// CHECK-LABEL: @soft_capped
// CHECK: fp8.attention {{.*}} scale = 3.750000e+00 cap = 3.000000e+01 {{.*}}layout = bhsd
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
func.func @soft_capped(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>) -> (tensor<4x32x64xbf16>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %masked = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) {
  ^bb0(%score: f32, %unused: f32):
    %bend = math.tanh %score : f32
    %cap = arith.constant 30.0 : f32
    %capped = arith.mulf %bend, %cap : f32
    linalg.yield %capped : f32
  } -> tensor<4x32x48xf32>
  %p = linalg.softmax dimension(2) ins(%masked : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %shares = arith.truncf %p : tensor<4x32x48xf32> to tensor<4x32x48xbf16>
  %oe = tensor.empty() : tensor<4x32x64xf32>
  %oinit = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %o = linalg.batch_matmul ins(%shares, %v : tensor<4x32x48xbf16>, tensor<4x48x64xbf16>) outs(%oinit : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %r = arith.truncf %o : tensor<4x32x64xf32> to tensor<4x32x64xbf16>
  return %r : tensor<4x32x64xbf16>
}

// -----

// A mask that is added.

// CHECK-LABEL: @added_mask
// CHECK: fp8.attention {{.*}} mask({{.*}} : tensor<1x4x32x48xf32>) scale = 1.250000e-01
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
func.func @added_mask(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>, %mask: tensor<4x32x48xf32>) -> (tensor<4x32x64xbf16>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %masked = arith.addf %s, %mask : tensor<4x32x48xf32>
  %p = linalg.softmax dimension(2) ins(%masked : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %shares = arith.truncf %p : tensor<4x32x48xf32> to tensor<4x32x48xbf16>
  %oe = tensor.empty() : tensor<4x32x64xf32>
  %oinit = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %o = linalg.batch_matmul ins(%shares, %v : tensor<4x32x48xbf16>, tensor<4x48x64xbf16>) outs(%oinit : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %r = arith.truncf %o : tensor<4x32x64xf32> to tensor<4x32x64xbf16>
  return %r : tensor<4x32x64xbf16>
}

// -----

// One for all heads, of i1.

// CHECK-LABEL: @bool_mask
// CHECK: fp8.attention {{.*}} mask({{.*}} : tensor<1x1x32x48xi1>) scale = 1.250000e-01
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
func.func @bool_mask(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>, %mask: tensor<32x48xi1>) -> (tensor<4x32x64xbf16>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %masked = linalg.generic {indexing_maps = [#all, affine_map<(b, m, n) -> (m, n)>, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %mask : tensor<4x32x48xf32>, tensor<32x48xi1>) outs(%e : tensor<4x32x48xf32>) {
  ^bb0(%score: f32, %seen: i1, %unused: f32):
    %hidden = arith.constant 0xFF800000 : f32
    %chosen = arith.select %seen, %score, %hidden : f32
    linalg.yield %chosen : f32
  } -> tensor<4x32x48xf32>
  %p = linalg.softmax dimension(2) ins(%masked : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %shares = arith.truncf %p : tensor<4x32x48xf32> to tensor<4x32x48xbf16>
  %oe = tensor.empty() : tensor<4x32x64xf32>
  %oinit = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %o = linalg.batch_matmul ins(%shares, %v : tensor<4x32x48xbf16>, tensor<4x48x64xbf16>) outs(%oinit : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %r = arith.truncf %o : tensor<4x32x64xf32> to tensor<4x32x64xbf16>
  return %r : tensor<4x32x64xbf16>
}

// -----

// What is added is computed of numbers of queries and keys, and no window says it: as models have a bias of positions. It is a
// tensor all the same.

// CHECK-LABEL: @computed_mask
// CHECK: %[[MASK:.*]] = linalg.generic
// CHECK: fp8.attention {{.*}} mask({{.*}} : tensor<1x1x32x48xbf16>) scale = 1.250000e-01
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
#one = affine_map<(b, m, n) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
func.func @computed_mask(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>, %seen: tensor<48xi1>) -> (tensor<4x32x64xbf16>) {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant -3.389530e+38 : bf16
  %none = arith.constant 0.0 : bf16
  %me = tensor.empty() : tensor<32x48xbf16>
  %mask = linalg.generic {indexing_maps = [affine_map<(m, n) -> (n)>, #id], iterator_types = ["parallel", "parallel"]} ins(%seen : tensor<48xi1>) outs(%me : tensor<32x48xbf16>) {
  ^bb0(%is_there: i1, %unused: bf16):
    %m = linalg.index 0 : index
    %n = linalg.index 1 : index
    %is_before = arith.cmpi sle, %n, %m : index
    %both = arith.andi %is_there, %is_before : i1
    %chosen = arith.select %both, %none, %least : bf16
    linalg.yield %chosen : bf16
  } -> tensor<32x48xbf16>
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %masked = linalg.generic {indexing_maps = [#all, #one, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s, %mask : tensor<4x32x48xf32>, tensor<32x48xbf16>) outs(%e : tensor<4x32x48xf32>) {
  ^bb0(%score: f32, %added: bf16, %unused: f32):
    %wide = arith.extf %added : bf16 to f32
    %sum = arith.addf %score, %wide : f32
    linalg.yield %sum : f32
  } -> tensor<4x32x48xf32>
  %p = linalg.softmax dimension(2) ins(%masked : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %shares = arith.truncf %p : tensor<4x32x48xf32> to tensor<4x32x48xbf16>
  %oe = tensor.empty() : tensor<4x32x64xf32>
  %oinit = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %o = linalg.batch_matmul ins(%shares, %v : tensor<4x32x48xbf16>, tensor<4x48x64xbf16>) outs(%oinit : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %r = arith.truncf %o : tensor<4x32x64xf32> to tensor<4x32x64xbf16>
  return %r : tensor<4x32x64xbf16>
}

// -----

// Keys are hidden where an added mask is no 0, as older models of transformers have it, and one comparison hides none.

// CHECK-LABEL: @mask_of_a_mask
// CHECK-NOT: mask(
// CHECK: fp8.attention {{.*}} scale = 1.250000e-01 window = [*, 0]
#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#s = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
func.func @mask_of_a_mask(%q: tensor<4x32x64xbf16>, %k: tensor<4x48x64xbf16>, %v: tensor<4x48x64xbf16>) -> (tensor<4x32x64xbf16>) {
  %zero = arith.constant 0.0 : f32
  %least = arith.constant 0xFF7FFFFF : f32
  %c0 = arith.constant 0 : index
  %e = tensor.empty() : tensor<4x32x48xf32>
  %init = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %product = linalg.batch_matmul indexing_maps = [#q, #k, #s] ins(%q, %k : tensor<4x32x64xbf16>, tensor<4x48x64xbf16>) outs(%init : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %factors = arith.constant dense<0.125> : tensor<4x32x48xf32>
  %s = arith.mulf %product, %factors : tensor<4x32x48xf32>
  %masked = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]} ins(%s : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) {
  ^bb0(%score: f32, %unused: f32):
    %m = linalg.index 1 : index
    %n = linalg.index 2 : index
    %is_before = arith.cmpi sle, %n, %m : index
    %is_any = arith.cmpi sge, %m, %c0 : index
    %both = arith.andi %is_before, %is_any : i1
    %added = arith.select %both, %zero, %least : f32
    %is_hidden = arith.cmpf une, %added, %zero : f32
    %chosen = arith.select %is_hidden, %least, %score : f32
    linalg.yield %chosen : f32
  } -> tensor<4x32x48xf32>
  %p = linalg.softmax dimension(2) ins(%masked : tensor<4x32x48xf32>) outs(%e : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %shares = arith.truncf %p : tensor<4x32x48xf32> to tensor<4x32x48xbf16>
  %oe = tensor.empty() : tensor<4x32x64xf32>
  %oinit = linalg.fill ins(%zero : f32) outs(%oe : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %o = linalg.batch_matmul ins(%shares, %v : tensor<4x32x48xbf16>, tensor<4x48x64xbf16>) outs(%oinit : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %r = arith.truncf %o : tensor<4x32x64xf32> to tensor<4x32x64xbf16>
  return %r : tensor<4x32x64xbf16>
}
