#map = affine_map<(d0) -> (d0)>
#map1 = affine_map<(d0, d1) -> (d0, 0)>
#map2 = affine_map<(d0, d1) -> (d1)>
#map3 = affine_map<(d0, d1) -> (d0, d1)>
#map4 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map5 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map6 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
#map7 = affine_map<(d0, d1, d2) -> (d2)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map9 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map10 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>
#map11 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#map12 = affine_map<(d0, d1) -> (0, d1)>
#map13 = affine_map<(d0, d1) -> ()>
#map14 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map15 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  func.func @llama(%arg0: tensor<100x256xf32> {fp8.name = "tokens.weight", fp8.weight}, %arg1: tensor<256xf32> {fp8.name = "layers.0.attention_norm.weight"}, %arg2: tensor<256x256xf32> {fp8.name = "layers.0.attention.q.weight", fp8.weight}, %arg3: tensor<128x256xf32> {fp8.name = "layers.0.attention.k.weight", fp8.weight}, %arg4: tensor<128x256xf32> {fp8.name = "layers.0.attention.v.weight", fp8.weight}, %arg5: tensor<256x256xf32> {fp8.name = "layers.0.attention.out.weight", fp8.weight}, %arg6: tensor<256xf32> {fp8.name = "layers.0.mlp_norm.weight"}, %arg7: tensor<512x256xf32> {fp8.name = "layers.0.mlp.gate.weight", fp8.weight}, %arg8: tensor<512x256xf32> {fp8.name = "layers.0.mlp.up.weight", fp8.weight}, %arg9: tensor<256x512xf32> {fp8.name = "layers.0.mlp.down.weight", fp8.weight}, %arg10: tensor<256xf32> {fp8.name = "layers.1.attention_norm.weight"}, %arg11: tensor<256x256xf32> {fp8.name = "layers.1.attention.q.weight", fp8.weight}, %arg12: tensor<128x256xf32> {fp8.name = "layers.1.attention.k.weight", fp8.weight}, %arg13: tensor<128x256xf32> {fp8.name = "layers.1.attention.v.weight", fp8.weight}, %arg14: tensor<256x256xf32> {fp8.name = "layers.1.attention.out.weight", fp8.weight}, %arg15: tensor<256xf32> {fp8.name = "layers.1.mlp_norm.weight"}, %arg16: tensor<512x256xf32> {fp8.name = "layers.1.mlp.gate.weight", fp8.weight}, %arg17: tensor<512x256xf32> {fp8.name = "layers.1.mlp.up.weight", fp8.weight}, %arg18: tensor<256x512xf32> {fp8.name = "layers.1.mlp.down.weight", fp8.weight}, %arg19: tensor<256xf32> {fp8.name = "norm.weight"}, %arg20: tensor<100x256xf32> {fp8.name = "head.weight", fp8.weight}, %arg21: tensor<2x64xi64> {fp8.name = "tokens"}) -> tensor<2x64x100xf32> {
    %c0_i64 = arith.constant 0 : i64
    %c2_i64 = arith.constant 2 : i64
    %c100 = arith.constant 100 : index
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %true = arith.constant true
    %cst_1 = arith.constant 1.000000e+00 : f32
    %cst_2 = arith.constant dense<0.000000e+00> : tensor<2x4x64x64xf32>
    %cst_3 = arith.constant dense<0.000000e+00> : tensor<f32>
    %cst_4 = arith.constant dense<0xFF800000> : tensor<f32>
    %cst_5 = arith.constant dense<true> : tensor<64x64xi1>
    %cst_6 = arith.constant 0xFFF0000000000000 : f64
    %cst_7 = arith.constant 0.35355339059327379 : f64
    %cst_8 = arith.constant 1.000000e-05 : f64
    %cst_9 = arith.constant 6.400000e+01 : f32
    %cst_10 = arith.constant 1.000000e+04 : f32
    %cst_11 = arith.constant 2.560000e+02 : f32
    %0 = tensor.empty() : tensor<32xi64>
    %1 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%0 : tensor<32xi64>) {
    ^bb0(%out: i64):
      %162 = linalg.index 0 : index
      %163 = arith.index_cast %162 : index to i64
      %164 = arith.muli %163, %c2_i64 : i64
      linalg.yield %164 : i64
    } -> tensor<32xi64>
    %2 = tensor.empty() : tensor<32xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%1 : tensor<32xi64>) outs(%2 : tensor<32xf32>) {
    ^bb0(%in: i64, %out: f32):
      %162 = arith.sitofp %in : i64 to f32
      %163 = arith.divf %162, %cst_9 : f32
      linalg.yield %163 : f32
    } -> tensor<32xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%3 : tensor<32xf32>) outs(%2 : tensor<32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = arith.negf %in : f32
      linalg.yield %162 : f32
    } -> tensor<32xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel"]} ins(%4 : tensor<32xf32>) outs(%2 : tensor<32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = math.powf %cst_10, %in : f32
      linalg.yield %162 : f32
    } -> tensor<32xf32>
    %6 = tensor.empty() : tensor<64xf32>
    %7 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%6 : tensor<64xf32>) {
    ^bb0(%out: f32):
      %162 = linalg.index 0 : index
      %163 = arith.index_cast %162 : index to i64
      %164 = arith.sitofp %163 : i64 to f32
      %165 = arith.addf %164, %cst : f32
      linalg.yield %165 : f32
    } -> tensor<64xf32>
    %expanded = tensor.expand_shape %7 [[0, 1]] output_shape [64, 1] : tensor<64xf32> into tensor<64x1xf32>
    %8 = tensor.empty() : tensor<64x32xf32>
    %9 = linalg.generic {indexing_maps = [#map1, #map2, #map3], iterator_types = ["parallel", "parallel"]} ins(%expanded, %5 : tensor<64x1xf32>, tensor<32xf32>) outs(%8 : tensor<64x32xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.mulf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<64x32xf32>
    %concat = tensor.concat dim(1) %9, %9 : (tensor<64x32xf32>, tensor<64x32xf32>) -> tensor<64x64xf32>
    %10 = tensor.empty() : tensor<64x64xf32>
    %11 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%concat : tensor<64x64xf32>) outs(%10 : tensor<64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = math.cos %in : f32
      linalg.yield %162 : f32
    } -> tensor<64x64xf32>
    %12 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%concat : tensor<64x64xf32>) outs(%10 : tensor<64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = math.sin %in : f32
      linalg.yield %162 : f32
    } -> tensor<64x64xf32>
    %13 = tensor.empty() : tensor<2x64x256xf32>
    %14 = linalg.generic {indexing_maps = [#map4, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg21 : tensor<2x64xi64>) outs(%13 : tensor<2x64x256xf32>) {
    ^bb0(%in: i64, %out: f32):
      %162 = arith.index_cast %in : i64 to index
      %163 = linalg.index 2 : index
      %164 = arith.cmpi slt, %162, %c100 : index
      cf.assert %164, "index must be smaller than dim size"
      %165 = arith.cmpi sge, %in, %c0_i64 : i64
      cf.assert %165, "index must be larger or equal to 0"
      %extracted = tensor.extract %arg0[%162, %163] : tensor<100x256xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x64x256xf32>
    %15 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%14, %14 : tensor<2x64x256xf32>, tensor<2x64x256xf32>) outs(%13 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.mulf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x256xf32>
    %16 = tensor.empty() : tensor<2x64x1xf32>
    %17 = linalg.fill ins(%cst : f32) outs(%16 : tensor<2x64x1xf32>) -> tensor<2x64x1xf32>
    %18 = linalg.generic {indexing_maps = [#map5, #map6], iterator_types = ["parallel", "parallel", "reduction"]} ins(%15 : tensor<2x64x256xf32>) outs(%17 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = arith.addf %in, %out : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x1xf32>
    %19 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%18 : tensor<2x64x1xf32>) outs(%16 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = arith.divf %in, %cst_11 : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x1xf32>
    %20 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%19 : tensor<2x64x1xf32>) outs(%16 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = arith.truncf %cst_8 : f64 to f32
      %163 = arith.addf %in, %162 : f32
      linalg.yield %163 : f32
    } -> tensor<2x64x1xf32>
    %21 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%20 : tensor<2x64x1xf32>) outs(%16 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = math.rsqrt %in : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x1xf32>
    %22 = linalg.generic {indexing_maps = [#map5, #map6, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%14, %21 : tensor<2x64x256xf32>, tensor<2x64x1xf32>) outs(%13 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.mulf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x256xf32>
    %23 = linalg.generic {indexing_maps = [#map5, #map7, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%22, %arg1 : tensor<2x64x256xf32>, tensor<256xf32>) outs(%13 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.mulf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x256xf32>
    %collapsed = tensor.collapse_shape %23 [[0, 1], [2]] : tensor<2x64x256xf32> into tensor<128x256xf32>
    %24 = tensor.empty() : tensor<256x256xf32>
    %transposed = linalg.transpose ins(%arg2 : tensor<256x256xf32>) outs(%24 : tensor<256x256xf32>) permutation = [1, 0] 
    %25 = tensor.empty() : tensor<128x256xf32>
    %26 = linalg.fill ins(%cst : f32) outs(%25 : tensor<128x256xf32>) -> tensor<128x256xf32>
    %27 = linalg.matmul {fp8.name = "layers.0.attention.q"} ins(%collapsed, %transposed : tensor<128x256xf32>, tensor<256x256xf32>) outs(%26 : tensor<128x256xf32>) -> tensor<128x256xf32>
    %expanded_12 = tensor.expand_shape %27 [[0, 1], [2, 3]] output_shape [2, 64, 4, 64] : tensor<128x256xf32> into tensor<2x64x4x64xf32>
    %28 = tensor.empty() : tensor<2x4x64x64xf32>
    %transposed_13 = linalg.transpose ins(%expanded_12 : tensor<2x64x4x64xf32>) outs(%28 : tensor<2x4x64x64xf32>) permutation = [0, 2, 1, 3] 
    %29 = tensor.empty() : tensor<256x128xf32>
    %transposed_14 = linalg.transpose ins(%arg3 : tensor<128x256xf32>) outs(%29 : tensor<256x128xf32>) permutation = [1, 0] 
    %30 = tensor.empty() : tensor<128x128xf32>
    %31 = linalg.fill ins(%cst : f32) outs(%30 : tensor<128x128xf32>) -> tensor<128x128xf32>
    %32 = linalg.matmul {fp8.name = "layers.0.attention.k"} ins(%collapsed, %transposed_14 : tensor<128x256xf32>, tensor<256x128xf32>) outs(%31 : tensor<128x128xf32>) -> tensor<128x128xf32>
    %expanded_15 = tensor.expand_shape %32 [[0, 1], [2, 3]] output_shape [2, 64, 2, 64] : tensor<128x128xf32> into tensor<2x64x2x64xf32>
    %33 = tensor.empty() : tensor<2x2x64x64xf32>
    %transposed_16 = linalg.transpose ins(%expanded_15 : tensor<2x64x2x64xf32>) outs(%33 : tensor<2x2x64x64xf32>) permutation = [0, 2, 1, 3] 
    %transposed_17 = linalg.transpose ins(%arg4 : tensor<128x256xf32>) outs(%29 : tensor<256x128xf32>) permutation = [1, 0] 
    %34 = linalg.matmul {fp8.name = "layers.0.attention.v"} ins(%collapsed, %transposed_17 : tensor<128x256xf32>, tensor<256x128xf32>) outs(%31 : tensor<128x128xf32>) -> tensor<128x128xf32>
    %expanded_18 = tensor.expand_shape %34 [[0, 1], [2, 3]] output_shape [2, 64, 2, 64] : tensor<128x128xf32> into tensor<2x64x2x64xf32>
    %transposed_19 = linalg.transpose ins(%expanded_18 : tensor<2x64x2x64xf32>) outs(%33 : tensor<2x2x64x64xf32>) permutation = [0, 2, 1, 3] 
    %extracted_slice = tensor.extract_slice %transposed_13[0, 0, 0, 0] [2, 4, 64, 32] [1, 1, 1, 1] : tensor<2x4x64x64xf32> to tensor<2x4x64x32xf32>
    %extracted_slice_20 = tensor.extract_slice %transposed_13[0, 0, 0, 32] [2, 4, 64, 32] [1, 1, 1, 1] : tensor<2x4x64x64xf32> to tensor<2x4x64x32xf32>
    %35 = linalg.generic {indexing_maps = [#map8, #map9, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_13, %11 : tensor<2x4x64x64xf32>, tensor<64x64xf32>) outs(%28 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.mulf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x4x64x64xf32>
    %36 = tensor.empty() : tensor<2x4x64x32xf32>
    %37 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice_20 : tensor<2x4x64x32xf32>) outs(%36 : tensor<2x4x64x32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = arith.negf %in : f32
      linalg.yield %162 : f32
    } -> tensor<2x4x64x32xf32>
    %concat_21 = tensor.concat dim(3) %37, %extracted_slice : (tensor<2x4x64x32xf32>, tensor<2x4x64x32xf32>) -> tensor<2x4x64x64xf32>
    %38 = linalg.generic {indexing_maps = [#map8, #map9, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%concat_21, %12 : tensor<2x4x64x64xf32>, tensor<64x64xf32>) outs(%28 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.mulf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x4x64x64xf32>
    %39 = linalg.generic {indexing_maps = [#map8, #map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%35, %38 : tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) outs(%28 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.addf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x4x64x64xf32>
    %extracted_slice_22 = tensor.extract_slice %transposed_16[0, 0, 0, 0] [2, 2, 64, 32] [1, 1, 1, 1] : tensor<2x2x64x64xf32> to tensor<2x2x64x32xf32>
    %extracted_slice_23 = tensor.extract_slice %transposed_16[0, 0, 0, 32] [2, 2, 64, 32] [1, 1, 1, 1] : tensor<2x2x64x64xf32> to tensor<2x2x64x32xf32>
    %40 = linalg.generic {indexing_maps = [#map8, #map9, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_16, %11 : tensor<2x2x64x64xf32>, tensor<64x64xf32>) outs(%33 : tensor<2x2x64x64xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.mulf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x2x64x64xf32>
    %41 = tensor.empty() : tensor<2x2x64x32xf32>
    %42 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice_23 : tensor<2x2x64x32xf32>) outs(%41 : tensor<2x2x64x32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = arith.negf %in : f32
      linalg.yield %162 : f32
    } -> tensor<2x2x64x32xf32>
    %concat_24 = tensor.concat dim(3) %42, %extracted_slice_22 : (tensor<2x2x64x32xf32>, tensor<2x2x64x32xf32>) -> tensor<2x2x64x64xf32>
    %43 = linalg.generic {indexing_maps = [#map8, #map9, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%concat_24, %12 : tensor<2x2x64x64xf32>, tensor<64x64xf32>) outs(%33 : tensor<2x2x64x64xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.mulf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x2x64x64xf32>
    %44 = linalg.generic {indexing_maps = [#map8, #map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%40, %43 : tensor<2x2x64x64xf32>, tensor<2x2x64x64xf32>) outs(%33 : tensor<2x2x64x64xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.addf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x2x64x64xf32>
    %45 = tensor.empty() : tensor<2x2x2x64x64xf32>
    %46 = linalg.generic {indexing_maps = [#map10, #map11], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%44 : tensor<2x2x64x64xf32>) outs(%45 : tensor<2x2x2x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x2x2x64x64xf32>
    %collapsed_25 = tensor.collapse_shape %46 [[0], [1, 2], [3], [4]] : tensor<2x2x2x64x64xf32> into tensor<2x4x64x64xf32>
    %47 = linalg.generic {indexing_maps = [#map10, #map11], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%transposed_19 : tensor<2x2x64x64xf32>) outs(%45 : tensor<2x2x2x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x2x2x64x64xf32>
    %48 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%39 : tensor<2x4x64x64xf32>) outs(%28 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = arith.truncf %cst_7 : f64 to f32
      %163 = arith.mulf %in, %162 : f32
      linalg.yield %163 : f32
    } -> tensor<2x4x64x64xf32>
    %49 = tensor.empty() : tensor<64xi64>
    %50 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel"]} outs(%49 : tensor<64xi64>) {
    ^bb0(%out: i64):
      %162 = linalg.index 0 : index
      %163 = arith.index_cast %162 : index to i64
      linalg.yield %163 : i64
    } -> tensor<64xi64>
    %expanded_26 = tensor.expand_shape %50 [[0, 1]] output_shape [1, 64] : tensor<64xi64> into tensor<1x64xi64>
    %expanded_27 = tensor.expand_shape %50 [[0, 1]] output_shape [64, 1] : tensor<64xi64> into tensor<64x1xi64>
    %51 = tensor.empty() : tensor<64x64xi64>
    %52 = linalg.generic {indexing_maps = [#map12, #map1, #map3], iterator_types = ["parallel", "parallel"]} ins(%expanded_26, %expanded_27 : tensor<1x64xi64>, tensor<64x1xi64>) outs(%51 : tensor<64x64xi64>) {
    ^bb0(%in: i64, %in_88: i64, %out: i64):
      %162 = arith.subi %in, %in_88 : i64
      linalg.yield %162 : i64
    } -> tensor<64x64xi64>
    %53 = tensor.empty() : tensor<64x64xi1>
    %54 = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%52 : tensor<64x64xi64>) outs(%53 : tensor<64x64xi1>) {
    ^bb0(%in: i64, %out: i1):
      %162 = arith.cmpi sle, %in, %c0_i64 : i64
      linalg.yield %162 : i1
    } -> tensor<64x64xi1>
    %55 = linalg.generic {indexing_maps = [#map3, #map3, #map3], iterator_types = ["parallel", "parallel"]} ins(%54, %cst_5 : tensor<64x64xi1>, tensor<64x64xi1>) outs(%53 : tensor<64x64xi1>) {
    ^bb0(%in: i1, %in_88: i1, %out: i1):
      %162 = arith.andi %in, %in_88 : i1
      linalg.yield %162 : i1
    } -> tensor<64x64xi1>
    %56 = linalg.generic {indexing_maps = [#map3, #map13, #map13, #map3], iterator_types = ["parallel", "parallel"]} ins(%55, %cst_3, %cst_4 : tensor<64x64xi1>, tensor<f32>, tensor<f32>) outs(%10 : tensor<64x64xf32>) {
    ^bb0(%in: i1, %in_88: f32, %in_89: f32, %out: f32):
      %162 = arith.select %in, %in_88, %in_89 : f32
      linalg.yield %162 : f32
    } -> tensor<64x64xf32>
    %transposed_28 = linalg.transpose ins(%collapsed_25 : tensor<2x4x64x64xf32>) outs(%28 : tensor<2x4x64x64xf32>) permutation = [0, 1, 3, 2] 
    %57 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_28 : tensor<2x4x64x64xf32>) outs(%28 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = arith.truncf %cst_7 : f64 to f32
      %163 = arith.mulf %in, %162 : f32
      linalg.yield %163 : f32
    } -> tensor<2x4x64x64xf32>
    %collapsed_29 = tensor.collapse_shape %48 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %collapsed_30 = tensor.collapse_shape %57 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %58 = tensor.empty() : tensor<8x64x64xf32>
    %59 = linalg.fill ins(%cst : f32) outs(%58 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %60 = linalg.batch_matmul {fp8.name = "layers.0.attention.matmul"} ins(%collapsed_29, %collapsed_30 : tensor<8x64x64xf32>, tensor<8x64x64xf32>) outs(%59 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %expanded_31 = tensor.expand_shape %60 [[0, 1], [2], [3]] output_shape [2, 4, 64, 64] : tensor<8x64x64xf32> into tensor<2x4x64x64xf32>
    %61 = linalg.generic {indexing_maps = [#map8, #map9, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_31, %56 : tensor<2x4x64x64xf32>, tensor<64x64xf32>) outs(%28 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.addf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x4x64x64xf32>
    %62 = tensor.empty() : tensor<2x4x64xi64>
    %63 = linalg.fill ins(%c0_i64 : i64) outs(%62 : tensor<2x4x64xi64>) -> tensor<2x4x64xi64>
    %64 = tensor.empty() : tensor<2x4x64xf32>
    %65 = linalg.fill ins(%cst_0 : f32) outs(%64 : tensor<2x4x64xf32>) -> tensor<2x4x64xf32>
    %66:2 = linalg.generic {indexing_maps = [#map8, #map14, #map14], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%61 : tensor<2x4x64x64xf32>) outs(%65, %63 : tensor<2x4x64xf32>, tensor<2x4x64xi64>) {
    ^bb0(%in: f32, %out: f32, %out_88: i64):
      %162 = linalg.index 3 : index
      %163 = arith.index_cast %162 : index to i64
      %164 = arith.maximumf %in, %out : f32
      %165 = arith.cmpf ogt, %in, %out : f32
      %166 = arith.select %165, %163, %out_88 : i64
      linalg.yield %164, %166 : f32, i64
    } -> (tensor<2x4x64xf32>, tensor<2x4x64xi64>)
    %expanded_32 = tensor.expand_shape %66#0 [[0], [1], [2, 3]] output_shape [2, 4, 64, 1] : tensor<2x4x64xf32> into tensor<2x4x64x1xf32>
    %67 = linalg.generic {indexing_maps = [#map8, #map15, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%61, %expanded_32 : tensor<2x4x64x64xf32>, tensor<2x4x64x1xf32>) outs(%28 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.subf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x4x64x64xf32>
    %68 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%67 : tensor<2x4x64x64xf32>) outs(%28 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = math.exp %in : f32
      linalg.yield %162 : f32
    } -> tensor<2x4x64x64xf32>
    %69 = tensor.empty() : tensor<2x4x64x1xf32>
    %70 = linalg.fill ins(%cst : f32) outs(%69 : tensor<2x4x64x1xf32>) -> tensor<2x4x64x1xf32>
    %71 = linalg.generic {indexing_maps = [#map8, #map15], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%68 : tensor<2x4x64x64xf32>) outs(%70 : tensor<2x4x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = arith.addf %in, %out : f32
      linalg.yield %162 : f32
    } -> tensor<2x4x64x1xf32>
    %72 = linalg.generic {indexing_maps = [#map8, #map15, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%68, %71 : tensor<2x4x64x64xf32>, tensor<2x4x64x1xf32>) outs(%28 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.divf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x4x64x64xf32>
    %73 = tensor.empty() : tensor<2x4x64x64xi1>
    %74 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%61 : tensor<2x4x64x64xf32>) outs(%73 : tensor<2x4x64x64xi1>) {
    ^bb0(%in: f32, %out: i1):
      %162 = arith.extf %in : f32 to f64
      %163 = arith.cmpf oeq, %162, %cst_6 : f64
      linalg.yield %163 : i1
    } -> tensor<2x4x64x64xi1>
    %75 = tensor.empty() : tensor<2x4x64x1xi1>
    %76 = linalg.fill ins(%true : i1) outs(%75 : tensor<2x4x64x1xi1>) -> tensor<2x4x64x1xi1>
    %77 = linalg.generic {indexing_maps = [#map8, #map15], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%74 : tensor<2x4x64x64xi1>) outs(%76 : tensor<2x4x64x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %162 = arith.andi %in, %out : i1
      linalg.yield %162 : i1
    } -> tensor<2x4x64x1xi1>
    %78 = linalg.generic {indexing_maps = [#map15, #map8, #map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%77, %cst_2, %72 : tensor<2x4x64x1xi1>, tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) outs(%28 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: i1, %in_88: f32, %in_89: f32, %out: f32):
      %162 = arith.select %in, %in_88, %in_89 : f32
      linalg.yield %162 : f32
    } -> tensor<2x4x64x64xf32>
    %collapsed_33 = tensor.collapse_shape %78 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %collapsed_34 = tensor.collapse_shape %47 [[0, 1, 2], [3], [4]] : tensor<2x2x2x64x64xf32> into tensor<8x64x64xf32>
    %79 = linalg.batch_matmul {fp8.name = "layers.0.attention.matmul_1"} ins(%collapsed_33, %collapsed_34 : tensor<8x64x64xf32>, tensor<8x64x64xf32>) outs(%59 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %expanded_35 = tensor.expand_shape %79 [[0, 1], [2], [3]] output_shape [2, 4, 64, 64] : tensor<8x64x64xf32> into tensor<2x4x64x64xf32>
    %80 = tensor.empty() : tensor<2x64x4x64xf32>
    %transposed_36 = linalg.transpose ins(%expanded_35 : tensor<2x4x64x64xf32>) outs(%80 : tensor<2x64x4x64xf32>) permutation = [0, 2, 1, 3] 
    %collapsed_37 = tensor.collapse_shape %transposed_36 [[0, 1], [2, 3]] : tensor<2x64x4x64xf32> into tensor<128x256xf32>
    %transposed_38 = linalg.transpose ins(%arg5 : tensor<256x256xf32>) outs(%24 : tensor<256x256xf32>) permutation = [1, 0] 
    %81 = linalg.matmul {fp8.name = "layers.0.attention.out"} ins(%collapsed_37, %transposed_38 : tensor<128x256xf32>, tensor<256x256xf32>) outs(%26 : tensor<128x256xf32>) -> tensor<128x256xf32>
    %expanded_39 = tensor.expand_shape %81 [[0, 1], [2]] output_shape [2, 64, 256] : tensor<128x256xf32> into tensor<2x64x256xf32>
    %82 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%14, %expanded_39 : tensor<2x64x256xf32>, tensor<2x64x256xf32>) outs(%13 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.addf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x256xf32>
    %83 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%82, %82 : tensor<2x64x256xf32>, tensor<2x64x256xf32>) outs(%13 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.mulf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x256xf32>
    %84 = linalg.generic {indexing_maps = [#map5, #map6], iterator_types = ["parallel", "parallel", "reduction"]} ins(%83 : tensor<2x64x256xf32>) outs(%17 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = arith.addf %in, %out : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x1xf32>
    %85 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%84 : tensor<2x64x1xf32>) outs(%16 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = arith.divf %in, %cst_11 : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x1xf32>
    %86 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%85 : tensor<2x64x1xf32>) outs(%16 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = arith.truncf %cst_8 : f64 to f32
      %163 = arith.addf %in, %162 : f32
      linalg.yield %163 : f32
    } -> tensor<2x64x1xf32>
    %87 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%86 : tensor<2x64x1xf32>) outs(%16 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = math.rsqrt %in : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x1xf32>
    %88 = linalg.generic {indexing_maps = [#map5, #map6, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%82, %87 : tensor<2x64x256xf32>, tensor<2x64x1xf32>) outs(%13 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.mulf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x256xf32>
    %89 = linalg.generic {indexing_maps = [#map5, #map7, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%88, %arg6 : tensor<2x64x256xf32>, tensor<256xf32>) outs(%13 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.mulf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x256xf32>
    %collapsed_40 = tensor.collapse_shape %89 [[0, 1], [2]] : tensor<2x64x256xf32> into tensor<128x256xf32>
    %90 = tensor.empty() : tensor<256x512xf32>
    %transposed_41 = linalg.transpose ins(%arg7 : tensor<512x256xf32>) outs(%90 : tensor<256x512xf32>) permutation = [1, 0] 
    %91 = tensor.empty() : tensor<128x512xf32>
    %92 = linalg.fill ins(%cst : f32) outs(%91 : tensor<128x512xf32>) -> tensor<128x512xf32>
    %93 = linalg.matmul {fp8.name = "layers.0.mlp.gate"} ins(%collapsed_40, %transposed_41 : tensor<128x256xf32>, tensor<256x512xf32>) outs(%92 : tensor<128x512xf32>) -> tensor<128x512xf32>
    %expanded_42 = tensor.expand_shape %93 [[0, 1], [2]] output_shape [2, 64, 512] : tensor<128x512xf32> into tensor<2x64x512xf32>
    %94 = tensor.empty() : tensor<2x64x512xf32>
    %95 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_42 : tensor<2x64x512xf32>) outs(%94 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = arith.negf %in : f32
      %163 = math.exp %162 : f32
      %164 = arith.addf %163, %cst_1 : f32
      %165 = arith.divf %cst_1, %164 : f32
      linalg.yield %165 : f32
    } -> tensor<2x64x512xf32>
    %96 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_42, %95 : tensor<2x64x512xf32>, tensor<2x64x512xf32>) outs(%94 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.mulf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x512xf32>
    %transposed_43 = linalg.transpose ins(%arg8 : tensor<512x256xf32>) outs(%90 : tensor<256x512xf32>) permutation = [1, 0] 
    %97 = linalg.matmul {fp8.name = "layers.0.mlp.up"} ins(%collapsed_40, %transposed_43 : tensor<128x256xf32>, tensor<256x512xf32>) outs(%92 : tensor<128x512xf32>) -> tensor<128x512xf32>
    %expanded_44 = tensor.expand_shape %97 [[0, 1], [2]] output_shape [2, 64, 512] : tensor<128x512xf32> into tensor<2x64x512xf32>
    %98 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%96, %expanded_44 : tensor<2x64x512xf32>, tensor<2x64x512xf32>) outs(%94 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.mulf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x512xf32>
    %collapsed_45 = tensor.collapse_shape %98 [[0, 1], [2]] : tensor<2x64x512xf32> into tensor<128x512xf32>
    %99 = tensor.empty() : tensor<512x256xf32>
    %transposed_46 = linalg.transpose ins(%arg9 : tensor<256x512xf32>) outs(%99 : tensor<512x256xf32>) permutation = [1, 0] 
    %100 = linalg.matmul {fp8.name = "layers.0.mlp.down"} ins(%collapsed_45, %transposed_46 : tensor<128x512xf32>, tensor<512x256xf32>) outs(%26 : tensor<128x256xf32>) -> tensor<128x256xf32>
    %expanded_47 = tensor.expand_shape %100 [[0, 1], [2]] output_shape [2, 64, 256] : tensor<128x256xf32> into tensor<2x64x256xf32>
    %101 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%82, %expanded_47 : tensor<2x64x256xf32>, tensor<2x64x256xf32>) outs(%13 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.addf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x256xf32>
    %102 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%101, %101 : tensor<2x64x256xf32>, tensor<2x64x256xf32>) outs(%13 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.mulf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x256xf32>
    %103 = linalg.generic {indexing_maps = [#map5, #map6], iterator_types = ["parallel", "parallel", "reduction"]} ins(%102 : tensor<2x64x256xf32>) outs(%17 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = arith.addf %in, %out : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x1xf32>
    %104 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%103 : tensor<2x64x1xf32>) outs(%16 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = arith.divf %in, %cst_11 : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x1xf32>
    %105 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%104 : tensor<2x64x1xf32>) outs(%16 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = arith.truncf %cst_8 : f64 to f32
      %163 = arith.addf %in, %162 : f32
      linalg.yield %163 : f32
    } -> tensor<2x64x1xf32>
    %106 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%105 : tensor<2x64x1xf32>) outs(%16 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = math.rsqrt %in : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x1xf32>
    %107 = linalg.generic {indexing_maps = [#map5, #map6, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%101, %106 : tensor<2x64x256xf32>, tensor<2x64x1xf32>) outs(%13 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.mulf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x256xf32>
    %108 = linalg.generic {indexing_maps = [#map5, #map7, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%107, %arg10 : tensor<2x64x256xf32>, tensor<256xf32>) outs(%13 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.mulf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x256xf32>
    %collapsed_48 = tensor.collapse_shape %108 [[0, 1], [2]] : tensor<2x64x256xf32> into tensor<128x256xf32>
    %transposed_49 = linalg.transpose ins(%arg11 : tensor<256x256xf32>) outs(%24 : tensor<256x256xf32>) permutation = [1, 0] 
    %109 = linalg.matmul {fp8.name = "layers.1.attention.q"} ins(%collapsed_48, %transposed_49 : tensor<128x256xf32>, tensor<256x256xf32>) outs(%26 : tensor<128x256xf32>) -> tensor<128x256xf32>
    %expanded_50 = tensor.expand_shape %109 [[0, 1], [2, 3]] output_shape [2, 64, 4, 64] : tensor<128x256xf32> into tensor<2x64x4x64xf32>
    %transposed_51 = linalg.transpose ins(%expanded_50 : tensor<2x64x4x64xf32>) outs(%28 : tensor<2x4x64x64xf32>) permutation = [0, 2, 1, 3] 
    %transposed_52 = linalg.transpose ins(%arg12 : tensor<128x256xf32>) outs(%29 : tensor<256x128xf32>) permutation = [1, 0] 
    %110 = linalg.matmul {fp8.name = "layers.1.attention.k"} ins(%collapsed_48, %transposed_52 : tensor<128x256xf32>, tensor<256x128xf32>) outs(%31 : tensor<128x128xf32>) -> tensor<128x128xf32>
    %expanded_53 = tensor.expand_shape %110 [[0, 1], [2, 3]] output_shape [2, 64, 2, 64] : tensor<128x128xf32> into tensor<2x64x2x64xf32>
    %transposed_54 = linalg.transpose ins(%expanded_53 : tensor<2x64x2x64xf32>) outs(%33 : tensor<2x2x64x64xf32>) permutation = [0, 2, 1, 3] 
    %transposed_55 = linalg.transpose ins(%arg13 : tensor<128x256xf32>) outs(%29 : tensor<256x128xf32>) permutation = [1, 0] 
    %111 = linalg.matmul {fp8.name = "layers.1.attention.v"} ins(%collapsed_48, %transposed_55 : tensor<128x256xf32>, tensor<256x128xf32>) outs(%31 : tensor<128x128xf32>) -> tensor<128x128xf32>
    %expanded_56 = tensor.expand_shape %111 [[0, 1], [2, 3]] output_shape [2, 64, 2, 64] : tensor<128x128xf32> into tensor<2x64x2x64xf32>
    %transposed_57 = linalg.transpose ins(%expanded_56 : tensor<2x64x2x64xf32>) outs(%33 : tensor<2x2x64x64xf32>) permutation = [0, 2, 1, 3] 
    %extracted_slice_58 = tensor.extract_slice %transposed_51[0, 0, 0, 0] [2, 4, 64, 32] [1, 1, 1, 1] : tensor<2x4x64x64xf32> to tensor<2x4x64x32xf32>
    %extracted_slice_59 = tensor.extract_slice %transposed_51[0, 0, 0, 32] [2, 4, 64, 32] [1, 1, 1, 1] : tensor<2x4x64x64xf32> to tensor<2x4x64x32xf32>
    %112 = linalg.generic {indexing_maps = [#map8, #map9, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_51, %11 : tensor<2x4x64x64xf32>, tensor<64x64xf32>) outs(%28 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.mulf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x4x64x64xf32>
    %113 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice_59 : tensor<2x4x64x32xf32>) outs(%36 : tensor<2x4x64x32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = arith.negf %in : f32
      linalg.yield %162 : f32
    } -> tensor<2x4x64x32xf32>
    %concat_60 = tensor.concat dim(3) %113, %extracted_slice_58 : (tensor<2x4x64x32xf32>, tensor<2x4x64x32xf32>) -> tensor<2x4x64x64xf32>
    %114 = linalg.generic {indexing_maps = [#map8, #map9, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%concat_60, %12 : tensor<2x4x64x64xf32>, tensor<64x64xf32>) outs(%28 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.mulf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x4x64x64xf32>
    %115 = linalg.generic {indexing_maps = [#map8, #map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%112, %114 : tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) outs(%28 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.addf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x4x64x64xf32>
    %extracted_slice_61 = tensor.extract_slice %transposed_54[0, 0, 0, 0] [2, 2, 64, 32] [1, 1, 1, 1] : tensor<2x2x64x64xf32> to tensor<2x2x64x32xf32>
    %extracted_slice_62 = tensor.extract_slice %transposed_54[0, 0, 0, 32] [2, 2, 64, 32] [1, 1, 1, 1] : tensor<2x2x64x64xf32> to tensor<2x2x64x32xf32>
    %116 = linalg.generic {indexing_maps = [#map8, #map9, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_54, %11 : tensor<2x2x64x64xf32>, tensor<64x64xf32>) outs(%33 : tensor<2x2x64x64xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.mulf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x2x64x64xf32>
    %117 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%extracted_slice_62 : tensor<2x2x64x32xf32>) outs(%41 : tensor<2x2x64x32xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = arith.negf %in : f32
      linalg.yield %162 : f32
    } -> tensor<2x2x64x32xf32>
    %concat_63 = tensor.concat dim(3) %117, %extracted_slice_61 : (tensor<2x2x64x32xf32>, tensor<2x2x64x32xf32>) -> tensor<2x2x64x64xf32>
    %118 = linalg.generic {indexing_maps = [#map8, #map9, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%concat_63, %12 : tensor<2x2x64x64xf32>, tensor<64x64xf32>) outs(%33 : tensor<2x2x64x64xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.mulf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x2x64x64xf32>
    %119 = linalg.generic {indexing_maps = [#map8, #map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%116, %118 : tensor<2x2x64x64xf32>, tensor<2x2x64x64xf32>) outs(%33 : tensor<2x2x64x64xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.addf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x2x64x64xf32>
    %120 = linalg.generic {indexing_maps = [#map10, #map11], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%119 : tensor<2x2x64x64xf32>) outs(%45 : tensor<2x2x2x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x2x2x64x64xf32>
    %collapsed_64 = tensor.collapse_shape %120 [[0], [1, 2], [3], [4]] : tensor<2x2x2x64x64xf32> into tensor<2x4x64x64xf32>
    %121 = linalg.generic {indexing_maps = [#map10, #map11], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%transposed_57 : tensor<2x2x64x64xf32>) outs(%45 : tensor<2x2x2x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x2x2x64x64xf32>
    %122 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%115 : tensor<2x4x64x64xf32>) outs(%28 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = arith.truncf %cst_7 : f64 to f32
      %163 = arith.mulf %in, %162 : f32
      linalg.yield %163 : f32
    } -> tensor<2x4x64x64xf32>
    %transposed_65 = linalg.transpose ins(%collapsed_64 : tensor<2x4x64x64xf32>) outs(%28 : tensor<2x4x64x64xf32>) permutation = [0, 1, 3, 2] 
    %123 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_65 : tensor<2x4x64x64xf32>) outs(%28 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = arith.truncf %cst_7 : f64 to f32
      %163 = arith.mulf %in, %162 : f32
      linalg.yield %163 : f32
    } -> tensor<2x4x64x64xf32>
    %collapsed_66 = tensor.collapse_shape %122 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %collapsed_67 = tensor.collapse_shape %123 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %124 = linalg.batch_matmul {fp8.name = "layers.1.attention.matmul"} ins(%collapsed_66, %collapsed_67 : tensor<8x64x64xf32>, tensor<8x64x64xf32>) outs(%59 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %expanded_68 = tensor.expand_shape %124 [[0, 1], [2], [3]] output_shape [2, 4, 64, 64] : tensor<8x64x64xf32> into tensor<2x4x64x64xf32>
    %125 = linalg.generic {indexing_maps = [#map8, #map9, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_68, %56 : tensor<2x4x64x64xf32>, tensor<64x64xf32>) outs(%28 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.addf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x4x64x64xf32>
    %126:2 = linalg.generic {indexing_maps = [#map8, #map14, #map14], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%125 : tensor<2x4x64x64xf32>) outs(%65, %63 : tensor<2x4x64xf32>, tensor<2x4x64xi64>) {
    ^bb0(%in: f32, %out: f32, %out_88: i64):
      %162 = linalg.index 3 : index
      %163 = arith.index_cast %162 : index to i64
      %164 = arith.maximumf %in, %out : f32
      %165 = arith.cmpf ogt, %in, %out : f32
      %166 = arith.select %165, %163, %out_88 : i64
      linalg.yield %164, %166 : f32, i64
    } -> (tensor<2x4x64xf32>, tensor<2x4x64xi64>)
    %expanded_69 = tensor.expand_shape %126#0 [[0], [1], [2, 3]] output_shape [2, 4, 64, 1] : tensor<2x4x64xf32> into tensor<2x4x64x1xf32>
    %127 = linalg.generic {indexing_maps = [#map8, #map15, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%125, %expanded_69 : tensor<2x4x64x64xf32>, tensor<2x4x64x1xf32>) outs(%28 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.subf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x4x64x64xf32>
    %128 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%127 : tensor<2x4x64x64xf32>) outs(%28 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = math.exp %in : f32
      linalg.yield %162 : f32
    } -> tensor<2x4x64x64xf32>
    %129 = linalg.generic {indexing_maps = [#map8, #map15], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%128 : tensor<2x4x64x64xf32>) outs(%70 : tensor<2x4x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = arith.addf %in, %out : f32
      linalg.yield %162 : f32
    } -> tensor<2x4x64x1xf32>
    %130 = linalg.generic {indexing_maps = [#map8, #map15, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%128, %129 : tensor<2x4x64x64xf32>, tensor<2x4x64x1xf32>) outs(%28 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.divf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x4x64x64xf32>
    %131 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%125 : tensor<2x4x64x64xf32>) outs(%73 : tensor<2x4x64x64xi1>) {
    ^bb0(%in: f32, %out: i1):
      %162 = arith.extf %in : f32 to f64
      %163 = arith.cmpf oeq, %162, %cst_6 : f64
      linalg.yield %163 : i1
    } -> tensor<2x4x64x64xi1>
    %132 = linalg.generic {indexing_maps = [#map8, #map15], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%131 : tensor<2x4x64x64xi1>) outs(%76 : tensor<2x4x64x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %162 = arith.andi %in, %out : i1
      linalg.yield %162 : i1
    } -> tensor<2x4x64x1xi1>
    %133 = linalg.generic {indexing_maps = [#map15, #map8, #map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%132, %cst_2, %130 : tensor<2x4x64x1xi1>, tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) outs(%28 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: i1, %in_88: f32, %in_89: f32, %out: f32):
      %162 = arith.select %in, %in_88, %in_89 : f32
      linalg.yield %162 : f32
    } -> tensor<2x4x64x64xf32>
    %collapsed_70 = tensor.collapse_shape %133 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %collapsed_71 = tensor.collapse_shape %121 [[0, 1, 2], [3], [4]] : tensor<2x2x2x64x64xf32> into tensor<8x64x64xf32>
    %134 = linalg.batch_matmul {fp8.name = "layers.1.attention.matmul_1"} ins(%collapsed_70, %collapsed_71 : tensor<8x64x64xf32>, tensor<8x64x64xf32>) outs(%59 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %expanded_72 = tensor.expand_shape %134 [[0, 1], [2], [3]] output_shape [2, 4, 64, 64] : tensor<8x64x64xf32> into tensor<2x4x64x64xf32>
    %transposed_73 = linalg.transpose ins(%expanded_72 : tensor<2x4x64x64xf32>) outs(%80 : tensor<2x64x4x64xf32>) permutation = [0, 2, 1, 3] 
    %collapsed_74 = tensor.collapse_shape %transposed_73 [[0, 1], [2, 3]] : tensor<2x64x4x64xf32> into tensor<128x256xf32>
    %transposed_75 = linalg.transpose ins(%arg14 : tensor<256x256xf32>) outs(%24 : tensor<256x256xf32>) permutation = [1, 0] 
    %135 = linalg.matmul {fp8.name = "layers.1.attention.out"} ins(%collapsed_74, %transposed_75 : tensor<128x256xf32>, tensor<256x256xf32>) outs(%26 : tensor<128x256xf32>) -> tensor<128x256xf32>
    %expanded_76 = tensor.expand_shape %135 [[0, 1], [2]] output_shape [2, 64, 256] : tensor<128x256xf32> into tensor<2x64x256xf32>
    %136 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%101, %expanded_76 : tensor<2x64x256xf32>, tensor<2x64x256xf32>) outs(%13 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.addf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x256xf32>
    %137 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%136, %136 : tensor<2x64x256xf32>, tensor<2x64x256xf32>) outs(%13 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.mulf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x256xf32>
    %138 = linalg.generic {indexing_maps = [#map5, #map6], iterator_types = ["parallel", "parallel", "reduction"]} ins(%137 : tensor<2x64x256xf32>) outs(%17 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = arith.addf %in, %out : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x1xf32>
    %139 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%138 : tensor<2x64x1xf32>) outs(%16 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = arith.divf %in, %cst_11 : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x1xf32>
    %140 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%139 : tensor<2x64x1xf32>) outs(%16 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = arith.truncf %cst_8 : f64 to f32
      %163 = arith.addf %in, %162 : f32
      linalg.yield %163 : f32
    } -> tensor<2x64x1xf32>
    %141 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%140 : tensor<2x64x1xf32>) outs(%16 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = math.rsqrt %in : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x1xf32>
    %142 = linalg.generic {indexing_maps = [#map5, #map6, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%136, %141 : tensor<2x64x256xf32>, tensor<2x64x1xf32>) outs(%13 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.mulf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x256xf32>
    %143 = linalg.generic {indexing_maps = [#map5, #map7, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%142, %arg15 : tensor<2x64x256xf32>, tensor<256xf32>) outs(%13 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.mulf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x256xf32>
    %collapsed_77 = tensor.collapse_shape %143 [[0, 1], [2]] : tensor<2x64x256xf32> into tensor<128x256xf32>
    %transposed_78 = linalg.transpose ins(%arg16 : tensor<512x256xf32>) outs(%90 : tensor<256x512xf32>) permutation = [1, 0] 
    %144 = linalg.matmul {fp8.name = "layers.1.mlp.gate"} ins(%collapsed_77, %transposed_78 : tensor<128x256xf32>, tensor<256x512xf32>) outs(%92 : tensor<128x512xf32>) -> tensor<128x512xf32>
    %expanded_79 = tensor.expand_shape %144 [[0, 1], [2]] output_shape [2, 64, 512] : tensor<128x512xf32> into tensor<2x64x512xf32>
    %145 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_79 : tensor<2x64x512xf32>) outs(%94 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = arith.negf %in : f32
      %163 = math.exp %162 : f32
      %164 = arith.addf %163, %cst_1 : f32
      %165 = arith.divf %cst_1, %164 : f32
      linalg.yield %165 : f32
    } -> tensor<2x64x512xf32>
    %146 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_79, %145 : tensor<2x64x512xf32>, tensor<2x64x512xf32>) outs(%94 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.mulf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x512xf32>
    %transposed_80 = linalg.transpose ins(%arg17 : tensor<512x256xf32>) outs(%90 : tensor<256x512xf32>) permutation = [1, 0] 
    %147 = linalg.matmul {fp8.name = "layers.1.mlp.up"} ins(%collapsed_77, %transposed_80 : tensor<128x256xf32>, tensor<256x512xf32>) outs(%92 : tensor<128x512xf32>) -> tensor<128x512xf32>
    %expanded_81 = tensor.expand_shape %147 [[0, 1], [2]] output_shape [2, 64, 512] : tensor<128x512xf32> into tensor<2x64x512xf32>
    %148 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%146, %expanded_81 : tensor<2x64x512xf32>, tensor<2x64x512xf32>) outs(%94 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.mulf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x512xf32>
    %collapsed_82 = tensor.collapse_shape %148 [[0, 1], [2]] : tensor<2x64x512xf32> into tensor<128x512xf32>
    %transposed_83 = linalg.transpose ins(%arg18 : tensor<256x512xf32>) outs(%99 : tensor<512x256xf32>) permutation = [1, 0] 
    %149 = linalg.matmul {fp8.name = "layers.1.mlp.down"} ins(%collapsed_82, %transposed_83 : tensor<128x512xf32>, tensor<512x256xf32>) outs(%26 : tensor<128x256xf32>) -> tensor<128x256xf32>
    %expanded_84 = tensor.expand_shape %149 [[0, 1], [2]] output_shape [2, 64, 256] : tensor<128x256xf32> into tensor<2x64x256xf32>
    %150 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%136, %expanded_84 : tensor<2x64x256xf32>, tensor<2x64x256xf32>) outs(%13 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.addf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x256xf32>
    %151 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%150, %150 : tensor<2x64x256xf32>, tensor<2x64x256xf32>) outs(%13 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.mulf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x256xf32>
    %152 = linalg.generic {indexing_maps = [#map5, #map6], iterator_types = ["parallel", "parallel", "reduction"]} ins(%151 : tensor<2x64x256xf32>) outs(%17 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = arith.addf %in, %out : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x1xf32>
    %153 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%152 : tensor<2x64x1xf32>) outs(%16 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = arith.divf %in, %cst_11 : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x1xf32>
    %154 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%153 : tensor<2x64x1xf32>) outs(%16 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = arith.truncf %cst_8 : f64 to f32
      %163 = arith.addf %in, %162 : f32
      linalg.yield %163 : f32
    } -> tensor<2x64x1xf32>
    %155 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%154 : tensor<2x64x1xf32>) outs(%16 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %162 = math.rsqrt %in : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x1xf32>
    %156 = linalg.generic {indexing_maps = [#map5, #map6, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%150, %155 : tensor<2x64x256xf32>, tensor<2x64x1xf32>) outs(%13 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.mulf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x256xf32>
    %157 = linalg.generic {indexing_maps = [#map5, #map7, #map5], iterator_types = ["parallel", "parallel", "parallel"]} ins(%156, %arg19 : tensor<2x64x256xf32>, tensor<256xf32>) outs(%13 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_88: f32, %out: f32):
      %162 = arith.mulf %in, %in_88 : f32
      linalg.yield %162 : f32
    } -> tensor<2x64x256xf32>
    %collapsed_85 = tensor.collapse_shape %157 [[0, 1], [2]] : tensor<2x64x256xf32> into tensor<128x256xf32>
    %158 = tensor.empty() : tensor<256x100xf32>
    %transposed_86 = linalg.transpose ins(%arg20 : tensor<100x256xf32>) outs(%158 : tensor<256x100xf32>) permutation = [1, 0] 
    %159 = tensor.empty() : tensor<128x100xf32>
    %160 = linalg.fill ins(%cst : f32) outs(%159 : tensor<128x100xf32>) -> tensor<128x100xf32>
    %161 = linalg.matmul {fp8.name = "head"} ins(%collapsed_85, %transposed_86 : tensor<128x256xf32>, tensor<256x100xf32>) outs(%160 : tensor<128x100xf32>) -> tensor<128x100xf32>
    %expanded_87 = tensor.expand_shape %161 [[0, 1], [2]] output_shape [2, 64, 100] : tensor<128x100xf32> into tensor<2x64x100xf32>
    return %expanded_87 : tensor<2x64x100xf32>
  }
}
