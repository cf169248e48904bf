#map = affine_map<(d0, d1, d2) -> (d0, d1)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map2 = affine_map<(d0) -> (d0)>
#map3 = affine_map<(d0, d1) -> (d0)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
#map5 = affine_map<(d0, d1, d2) -> (d1, d2)>
#map6 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
#map7 = affine_map<(d0, d1, d2) -> (d2)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map9 = affine_map<(d0, d1, d2, d3) -> ()>
#map10 = affine_map<(d0, d1, d2, d3) -> (d0, 0, 0, d3)>
#map11 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map12 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
#map13 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @bert(%arg0: tensor<100x256xf32> {fp8.name = "tokens.weight", fp8.weight}, %arg1: tensor<64x256xf32> {fp8.name = "positions.weight", fp8.weight}, %arg2: tensor<256xf32> {fp8.name = "norm.weight"}, %arg3: tensor<256xf32> {fp8.name = "norm.bias"}, %arg4: tensor<256x256xf32> {fp8.name = "layers.0.attention.q.weight", fp8.weight}, %arg5: tensor<256xf32> {fp8.name = "layers.0.attention.q.bias"}, %arg6: tensor<256x256xf32> {fp8.name = "layers.0.attention.k.weight", fp8.weight}, %arg7: tensor<256xf32> {fp8.name = "layers.0.attention.k.bias"}, %arg8: tensor<256x256xf32> {fp8.name = "layers.0.attention.v.weight", fp8.weight}, %arg9: tensor<256xf32> {fp8.name = "layers.0.attention.v.bias"}, %arg10: tensor<256x256xf32> {fp8.name = "layers.0.attention.out.weight", fp8.weight}, %arg11: tensor<256xf32> {fp8.name = "layers.0.attention.out.bias"}, %arg12: tensor<256xf32> {fp8.name = "layers.0.attention_norm.weight"}, %arg13: tensor<256xf32> {fp8.name = "layers.0.attention_norm.bias"}, %arg14: tensor<512x256xf32> {fp8.name = "layers.0.mlp.up.weight", fp8.weight}, %arg15: tensor<512xf32> {fp8.name = "layers.0.mlp.up.bias"}, %arg16: tensor<256x512xf32> {fp8.name = "layers.0.mlp.down.weight", fp8.weight}, %arg17: tensor<256xf32> {fp8.name = "layers.0.mlp.down.bias"}, %arg18: tensor<256xf32> {fp8.name = "layers.0.mlp_norm.weight"}, %arg19: tensor<256xf32> {fp8.name = "layers.0.mlp_norm.bias"}, %arg20: tensor<256x256xf32> {fp8.name = "layers.1.attention.q.weight", fp8.weight}, %arg21: tensor<256xf32> {fp8.name = "layers.1.attention.q.bias"}, %arg22: tensor<256x256xf32> {fp8.name = "layers.1.attention.k.weight", fp8.weight}, %arg23: tensor<256xf32> {fp8.name = "layers.1.attention.k.bias"}, %arg24: tensor<256x256xf32> {fp8.name = "layers.1.attention.v.weight", fp8.weight}, %arg25: tensor<256xf32> {fp8.name = "layers.1.attention.v.bias"}, %arg26: tensor<256x256xf32> {fp8.name = "layers.1.attention.out.weight", fp8.weight}, %arg27: tensor<256xf32> {fp8.name = "layers.1.attention.out.bias"}, %arg28: tensor<256xf32> {fp8.name = "layers.1.attention_norm.weight"}, %arg29: tensor<256xf32> {fp8.name = "layers.1.attention_norm.bias"}, %arg30: tensor<512x256xf32> {fp8.name = "layers.1.mlp.up.weight", fp8.weight}, %arg31: tensor<512xf32> {fp8.name = "layers.1.mlp.up.bias"}, %arg32: tensor<256x512xf32> {fp8.name = "layers.1.mlp.down.weight", fp8.weight}, %arg33: tensor<256xf32> {fp8.name = "layers.1.mlp.down.bias"}, %arg34: tensor<256xf32> {fp8.name = "layers.1.mlp_norm.weight"}, %arg35: tensor<256xf32> {fp8.name = "layers.1.mlp_norm.bias"}, %arg36: tensor<256x256xf32> {fp8.name = "pooler.weight", fp8.weight}, %arg37: tensor<256xf32> {fp8.name = "pooler.bias"}, %arg38: tensor<2x64xi64> {fp8.name = "tokens"}) -> tensor<2x256xf32> {
    %c0_i64 = arith.constant 0 : i64
    %c64 = arith.constant 64 : index
    %c100 = arith.constant 100 : index
    %cst = arith.constant 0.000000e+00 : f64
    %cst_0 = arith.constant 0.000000e+00 : f32
    %cst_1 = arith.constant 0xFF800000 : f32
    %true = arith.constant true
    %cst_2 = arith.constant 1.000000e+00 : f32
    %cst_3 = arith.constant 5.000000e-01 : f32
    %cst_4 = arith.constant dense<0.000000e+00> : tensor<2x4x64x64xf32>
    %cst_5 = arith.constant dense<0.000000e+00> : tensor<f32>
    %cst_6 = arith.constant dense<0xFF800000> : tensor<f32>
    %cst_7 = arith.constant 0.35355339059327379 : f64
    %cst_8 = arith.constant 0xFFF0000000000000 : f64
    %cst_9 = arith.constant 1.000000e-05 : f64
    %cst_10 = arith.constant 2.560000e+02 : f64
    %cst_11 = arith.constant 2.560000e+02 : f32
    %cst_12 = arith.constant 1.41421354 : f32
    %0 = tensor.empty() : tensor<2x64x256xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg38 : tensor<2x64xi64>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: i64, %out: f32):
      %178 = arith.index_cast %in : i64 to index
      %179 = linalg.index 2 : index
      %180 = arith.cmpi slt, %178, %c100 : index
      cf.assert %180, "index must be smaller than dim size"
      %181 = arith.cmpi sge, %in, %c0_i64 : i64
      cf.assert %181, "index must be larger or equal to 0"
      %extracted = tensor.extract %arg0[%178, %179] : tensor<100x256xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x64x256xf32>
    %2 = tensor.empty() : tensor<64xi64>
    %3 = linalg.generic {indexing_maps = [#map2], iterator_types = ["parallel"]} outs(%2 : tensor<64xi64>) {
    ^bb0(%out: i64):
      %178 = linalg.index 0 : index
      %179 = arith.index_cast %178 : index to i64
      linalg.yield %179 : i64
    } -> tensor<64xi64>
    %4 = tensor.empty() : tensor<64x256xf32>
    %5 = linalg.generic {indexing_maps = [#map3, #map4], iterator_types = ["parallel", "parallel"]} ins(%3 : tensor<64xi64>) outs(%4 : tensor<64x256xf32>) {
    ^bb0(%in: i64, %out: f32):
      %178 = arith.index_cast %in : i64 to index
      %179 = linalg.index 1 : index
      %180 = arith.cmpi slt, %178, %c64 : index
      cf.assert %180, "index must be smaller than dim size"
      %181 = arith.cmpi sge, %in, %c0_i64 : i64
      cf.assert %181, "index must be larger or equal to 0"
      %extracted = tensor.extract %arg1[%178, %179] : tensor<64x256xf32>
      linalg.yield %extracted : f32
    } -> tensor<64x256xf32>
    %6 = linalg.generic {indexing_maps = [#map1, #map5, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%1, %5 : tensor<2x64x256xf32>, tensor<64x256xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.addf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %7 = tensor.empty() : tensor<2x64x256xf64>
    %8 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6 : tensor<2x64x256xf32>) outs(%7 : tensor<2x64x256xf64>) {
    ^bb0(%in: f32, %out: f64):
      %178 = arith.extf %in : f32 to f64
      linalg.yield %178 : f64
    } -> tensor<2x64x256xf64>
    %9 = tensor.empty() : tensor<2x64x1xf64>
    %10 = linalg.fill ins(%cst : f64) outs(%9 : tensor<2x64x1xf64>) -> tensor<2x64x1xf64>
    %11 = linalg.generic {indexing_maps = [#map1, #map6], iterator_types = ["parallel", "parallel", "reduction"]} ins(%8 : tensor<2x64x256xf64>) outs(%10 : tensor<2x64x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %178 = arith.addf %in, %out : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x1xf64>
    %12 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%11 : tensor<2x64x1xf64>) outs(%9 : tensor<2x64x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %178 = arith.divf %in, %cst_10 : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x1xf64>
    %13 = linalg.generic {indexing_maps = [#map1, #map6, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%8, %12 : tensor<2x64x256xf64>, tensor<2x64x1xf64>) outs(%7 : tensor<2x64x256xf64>) {
    ^bb0(%in: f64, %in_73: f64, %out: f64):
      %178 = arith.subf %in, %in_73 : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x256xf64>
    %14 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%13, %13 : tensor<2x64x256xf64>, tensor<2x64x256xf64>) outs(%7 : tensor<2x64x256xf64>) {
    ^bb0(%in: f64, %in_73: f64, %out: f64):
      %178 = arith.mulf %in, %in_73 : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x256xf64>
    %15 = linalg.generic {indexing_maps = [#map1, #map6], iterator_types = ["parallel", "parallel", "reduction"]} ins(%14 : tensor<2x64x256xf64>) outs(%10 : tensor<2x64x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %178 = arith.addf %in, %out : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x1xf64>
    %16 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%15 : tensor<2x64x1xf64>) outs(%9 : tensor<2x64x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %178 = arith.divf %in, %cst_10 : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x1xf64>
    %17 = tensor.empty() : tensor<2x64x1xf32>
    %18 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%16 : tensor<2x64x1xf64>) outs(%17 : tensor<2x64x1xf32>) {
    ^bb0(%in: f64, %out: f32):
      %178 = arith.truncf %in : f64 to f32
      linalg.yield %178 : f32
    } -> tensor<2x64x1xf32>
    %19 = linalg.fill ins(%cst_0 : f32) outs(%17 : tensor<2x64x1xf32>) -> tensor<2x64x1xf32>
    %20 = linalg.generic {indexing_maps = [#map1, #map6], iterator_types = ["parallel", "parallel", "reduction"]} ins(%6 : tensor<2x64x256xf32>) outs(%19 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = arith.addf %in, %out : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x1xf32>
    %21 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%20 : tensor<2x64x1xf32>) outs(%17 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = arith.divf %in, %cst_11 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x1xf32>
    %22 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%18 : tensor<2x64x1xf32>) outs(%17 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = arith.truncf %cst_9 : f64 to f32
      %179 = arith.addf %in, %178 : f32
      linalg.yield %179 : f32
    } -> tensor<2x64x1xf32>
    %23 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%22 : tensor<2x64x1xf32>) outs(%17 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = math.rsqrt %in : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x1xf32>
    %24 = linalg.generic {indexing_maps = [#map1, #map6, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6, %21 : tensor<2x64x256xf32>, tensor<2x64x1xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.subf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %25 = linalg.generic {indexing_maps = [#map1, #map6, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%24, %23 : tensor<2x64x256xf32>, tensor<2x64x1xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.mulf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %26 = linalg.generic {indexing_maps = [#map1, #map7, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%25, %arg2 : tensor<2x64x256xf32>, tensor<256xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.mulf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %27 = linalg.generic {indexing_maps = [#map1, #map7, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%26, %arg3 : tensor<2x64x256xf32>, tensor<256xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.addf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %28 = tensor.empty() : tensor<2x64xi1>
    %29 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%arg38 : tensor<2x64xi64>) outs(%28 : tensor<2x64xi1>) {
    ^bb0(%in: i64, %out: i1):
      %178 = arith.cmpi ne, %in, %c0_i64 : i64
      linalg.yield %178 : i1
    } -> tensor<2x64xi1>
    %expanded = tensor.expand_shape %29 [[0], [1, 2, 3]] output_shape [2, 1, 1, 64] : tensor<2x64xi1> into tensor<2x1x1x64xi1>
    %collapsed = tensor.collapse_shape %27 [[0, 1], [2]] : tensor<2x64x256xf32> into tensor<128x256xf32>
    %30 = tensor.empty() : tensor<256x256xf32>
    %transposed = linalg.transpose ins(%arg4 : tensor<256x256xf32>) outs(%30 : tensor<256x256xf32>) permutation = [1, 0] 
    %31 = tensor.empty() : tensor<128x256xf32>
    %32 = linalg.fill ins(%cst_0 : f32) outs(%31 : tensor<128x256xf32>) -> tensor<128x256xf32>
    %33 = linalg.matmul {fp8.name = "layers.0.attention.q"} ins(%collapsed, %transposed : tensor<128x256xf32>, tensor<256x256xf32>) outs(%32 : tensor<128x256xf32>) -> tensor<128x256xf32>
    %expanded_13 = tensor.expand_shape %33 [[0, 1], [2]] output_shape [2, 64, 256] : tensor<128x256xf32> into tensor<2x64x256xf32>
    %34 = linalg.generic {indexing_maps = [#map1, #map7, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_13, %arg5 : tensor<2x64x256xf32>, tensor<256xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.addf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %expanded_14 = tensor.expand_shape %34 [[0], [1], [2, 3]] output_shape [2, 64, 4, 64] : tensor<2x64x256xf32> into tensor<2x64x4x64xf32>
    %35 = tensor.empty() : tensor<2x4x64x64xf32>
    %transposed_15 = linalg.transpose ins(%expanded_14 : tensor<2x64x4x64xf32>) outs(%35 : tensor<2x4x64x64xf32>) permutation = [0, 2, 1, 3] 
    %transposed_16 = linalg.transpose ins(%arg6 : tensor<256x256xf32>) outs(%30 : tensor<256x256xf32>) permutation = [1, 0] 
    %36 = linalg.matmul {fp8.name = "layers.0.attention.k"} ins(%collapsed, %transposed_16 : tensor<128x256xf32>, tensor<256x256xf32>) outs(%32 : tensor<128x256xf32>) -> tensor<128x256xf32>
    %expanded_17 = tensor.expand_shape %36 [[0, 1], [2]] output_shape [2, 64, 256] : tensor<128x256xf32> into tensor<2x64x256xf32>
    %37 = linalg.generic {indexing_maps = [#map1, #map7, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_17, %arg7 : tensor<2x64x256xf32>, tensor<256xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.addf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %expanded_18 = tensor.expand_shape %37 [[0], [1], [2, 3]] output_shape [2, 64, 4, 64] : tensor<2x64x256xf32> into tensor<2x64x4x64xf32>
    %transposed_19 = linalg.transpose ins(%arg8 : tensor<256x256xf32>) outs(%30 : tensor<256x256xf32>) permutation = [1, 0] 
    %38 = linalg.matmul {fp8.name = "layers.0.attention.v"} ins(%collapsed, %transposed_19 : tensor<128x256xf32>, tensor<256x256xf32>) outs(%32 : tensor<128x256xf32>) -> tensor<128x256xf32>
    %expanded_20 = tensor.expand_shape %38 [[0, 1], [2]] output_shape [2, 64, 256] : tensor<128x256xf32> into tensor<2x64x256xf32>
    %39 = linalg.generic {indexing_maps = [#map1, #map7, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_20, %arg9 : tensor<2x64x256xf32>, tensor<256xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.addf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %expanded_21 = tensor.expand_shape %39 [[0], [1], [2, 3]] output_shape [2, 64, 4, 64] : tensor<2x64x256xf32> into tensor<2x64x4x64xf32>
    %transposed_22 = linalg.transpose ins(%expanded_21 : tensor<2x64x4x64xf32>) outs(%35 : tensor<2x4x64x64xf32>) permutation = [0, 2, 1, 3] 
    %40 = tensor.empty() : tensor<2x1x1x64xf32>
    %41 = linalg.generic {indexing_maps = [#map8, #map9, #map9, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded, %cst_5, %cst_6 : tensor<2x1x1x64xi1>, tensor<f32>, tensor<f32>) outs(%40 : tensor<2x1x1x64xf32>) {
    ^bb0(%in: i1, %in_73: f32, %in_74: f32, %out: f32):
      %178 = arith.select %in, %in_73, %in_74 : f32
      linalg.yield %178 : f32
    } -> tensor<2x1x1x64xf32>
    %42 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_15 : tensor<2x4x64x64xf32>) outs(%35 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = arith.truncf %cst_7 : f64 to f32
      %179 = arith.mulf %in, %178 : f32
      linalg.yield %179 : f32
    } -> tensor<2x4x64x64xf32>
    %transposed_23 = linalg.transpose ins(%expanded_18 : tensor<2x64x4x64xf32>) outs(%35 : tensor<2x4x64x64xf32>) permutation = [0, 2, 3, 1] 
    %43 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_23 : tensor<2x4x64x64xf32>) outs(%35 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = arith.truncf %cst_7 : f64 to f32
      %179 = arith.mulf %in, %178 : f32
      linalg.yield %179 : f32
    } -> tensor<2x4x64x64xf32>
    %collapsed_24 = tensor.collapse_shape %42 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %collapsed_25 = tensor.collapse_shape %43 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %44 = tensor.empty() : tensor<8x64x64xf32>
    %45 = linalg.fill ins(%cst_0 : f32) outs(%44 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %46 = linalg.batch_matmul {fp8.name = "layers.0.attention.matmul"} ins(%collapsed_24, %collapsed_25 : tensor<8x64x64xf32>, tensor<8x64x64xf32>) outs(%45 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %expanded_26 = tensor.expand_shape %46 [[0, 1], [2], [3]] output_shape [2, 4, 64, 64] : tensor<8x64x64xf32> into tensor<2x4x64x64xf32>
    %47 = linalg.generic {indexing_maps = [#map8, #map10, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_26, %41 : tensor<2x4x64x64xf32>, tensor<2x1x1x64xf32>) outs(%35 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.addf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x4x64x64xf32>
    %48 = tensor.empty() : tensor<2x4x64xi64>
    %49 = linalg.fill ins(%c0_i64 : i64) outs(%48 : tensor<2x4x64xi64>) -> tensor<2x4x64xi64>
    %50 = tensor.empty() : tensor<2x4x64xf32>
    %51 = linalg.fill ins(%cst_1 : f32) outs(%50 : tensor<2x4x64xf32>) -> tensor<2x4x64xf32>
    %52:2 = linalg.generic {indexing_maps = [#map8, #map11, #map11], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%47 : tensor<2x4x64x64xf32>) outs(%51, %49 : tensor<2x4x64xf32>, tensor<2x4x64xi64>) {
    ^bb0(%in: f32, %out: f32, %out_73: i64):
      %178 = linalg.index 3 : index
      %179 = arith.index_cast %178 : index to i64
      %180 = arith.maximumf %in, %out : f32
      %181 = arith.cmpf ogt, %in, %out : f32
      %182 = arith.select %181, %179, %out_73 : i64
      linalg.yield %180, %182 : f32, i64
    } -> (tensor<2x4x64xf32>, tensor<2x4x64xi64>)
    %expanded_27 = tensor.expand_shape %52#0 [[0], [1], [2, 3]] output_shape [2, 4, 64, 1] : tensor<2x4x64xf32> into tensor<2x4x64x1xf32>
    %53 = linalg.generic {indexing_maps = [#map8, #map12, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%47, %expanded_27 : tensor<2x4x64x64xf32>, tensor<2x4x64x1xf32>) outs(%35 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.subf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x4x64x64xf32>
    %54 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%53 : tensor<2x4x64x64xf32>) outs(%35 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = math.exp %in : f32
      linalg.yield %178 : f32
    } -> tensor<2x4x64x64xf32>
    %55 = tensor.empty() : tensor<2x4x64x1xf32>
    %56 = linalg.fill ins(%cst_0 : f32) outs(%55 : tensor<2x4x64x1xf32>) -> tensor<2x4x64x1xf32>
    %57 = linalg.generic {indexing_maps = [#map8, #map12], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%54 : tensor<2x4x64x64xf32>) outs(%56 : tensor<2x4x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = arith.addf %in, %out : f32
      linalg.yield %178 : f32
    } -> tensor<2x4x64x1xf32>
    %58 = linalg.generic {indexing_maps = [#map8, #map12, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%54, %57 : tensor<2x4x64x64xf32>, tensor<2x4x64x1xf32>) outs(%35 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.divf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x4x64x64xf32>
    %59 = tensor.empty() : tensor<2x4x64x64xi1>
    %60 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%47 : tensor<2x4x64x64xf32>) outs(%59 : tensor<2x4x64x64xi1>) {
    ^bb0(%in: f32, %out: i1):
      %178 = arith.extf %in : f32 to f64
      %179 = arith.cmpf oeq, %178, %cst_8 : f64
      linalg.yield %179 : i1
    } -> tensor<2x4x64x64xi1>
    %61 = tensor.empty() : tensor<2x4x64x1xi1>
    %62 = linalg.fill ins(%true : i1) outs(%61 : tensor<2x4x64x1xi1>) -> tensor<2x4x64x1xi1>
    %63 = linalg.generic {indexing_maps = [#map8, #map12], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%60 : tensor<2x4x64x64xi1>) outs(%62 : tensor<2x4x64x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %178 = arith.andi %in, %out : i1
      linalg.yield %178 : i1
    } -> tensor<2x4x64x1xi1>
    %64 = linalg.generic {indexing_maps = [#map12, #map8, #map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%63, %cst_4, %58 : tensor<2x4x64x1xi1>, tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) outs(%35 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: i1, %in_73: f32, %in_74: f32, %out: f32):
      %178 = arith.select %in, %in_73, %in_74 : f32
      linalg.yield %178 : f32
    } -> tensor<2x4x64x64xf32>
    %collapsed_28 = tensor.collapse_shape %64 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %collapsed_29 = tensor.collapse_shape %transposed_22 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %65 = linalg.batch_matmul {fp8.name = "layers.0.attention.matmul_1"} ins(%collapsed_28, %collapsed_29 : tensor<8x64x64xf32>, tensor<8x64x64xf32>) outs(%45 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %expanded_30 = tensor.expand_shape %65 [[0, 1], [2], [3]] output_shape [2, 4, 64, 64] : tensor<8x64x64xf32> into tensor<2x4x64x64xf32>
    %66 = tensor.empty() : tensor<2x64x4x64xf32>
    %transposed_31 = linalg.transpose ins(%expanded_30 : tensor<2x4x64x64xf32>) outs(%66 : tensor<2x64x4x64xf32>) permutation = [0, 2, 1, 3] 
    %collapsed_32 = tensor.collapse_shape %transposed_31 [[0, 1], [2, 3]] : tensor<2x64x4x64xf32> into tensor<128x256xf32>
    %transposed_33 = linalg.transpose ins(%arg10 : tensor<256x256xf32>) outs(%30 : tensor<256x256xf32>) permutation = [1, 0] 
    %67 = linalg.matmul {fp8.name = "layers.0.attention.out"} ins(%collapsed_32, %transposed_33 : tensor<128x256xf32>, tensor<256x256xf32>) outs(%32 : tensor<128x256xf32>) -> tensor<128x256xf32>
    %expanded_34 = tensor.expand_shape %67 [[0, 1], [2]] output_shape [2, 64, 256] : tensor<128x256xf32> into tensor<2x64x256xf32>
    %68 = linalg.generic {indexing_maps = [#map1, #map7, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_34, %arg11 : tensor<2x64x256xf32>, tensor<256xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.addf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %69 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%27, %68 : tensor<2x64x256xf32>, tensor<2x64x256xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.addf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %70 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%69 : tensor<2x64x256xf32>) outs(%7 : tensor<2x64x256xf64>) {
    ^bb0(%in: f32, %out: f64):
      %178 = arith.extf %in : f32 to f64
      linalg.yield %178 : f64
    } -> tensor<2x64x256xf64>
    %71 = linalg.generic {indexing_maps = [#map1, #map6], iterator_types = ["parallel", "parallel", "reduction"]} ins(%70 : tensor<2x64x256xf64>) outs(%10 : tensor<2x64x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %178 = arith.addf %in, %out : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x1xf64>
    %72 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%71 : tensor<2x64x1xf64>) outs(%9 : tensor<2x64x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %178 = arith.divf %in, %cst_10 : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x1xf64>
    %73 = linalg.generic {indexing_maps = [#map1, #map6, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%70, %72 : tensor<2x64x256xf64>, tensor<2x64x1xf64>) outs(%7 : tensor<2x64x256xf64>) {
    ^bb0(%in: f64, %in_73: f64, %out: f64):
      %178 = arith.subf %in, %in_73 : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x256xf64>
    %74 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%73, %73 : tensor<2x64x256xf64>, tensor<2x64x256xf64>) outs(%7 : tensor<2x64x256xf64>) {
    ^bb0(%in: f64, %in_73: f64, %out: f64):
      %178 = arith.mulf %in, %in_73 : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x256xf64>
    %75 = linalg.generic {indexing_maps = [#map1, #map6], iterator_types = ["parallel", "parallel", "reduction"]} ins(%74 : tensor<2x64x256xf64>) outs(%10 : tensor<2x64x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %178 = arith.addf %in, %out : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x1xf64>
    %76 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%75 : tensor<2x64x1xf64>) outs(%9 : tensor<2x64x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %178 = arith.divf %in, %cst_10 : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x1xf64>
    %77 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%76 : tensor<2x64x1xf64>) outs(%17 : tensor<2x64x1xf32>) {
    ^bb0(%in: f64, %out: f32):
      %178 = arith.truncf %in : f64 to f32
      linalg.yield %178 : f32
    } -> tensor<2x64x1xf32>
    %78 = linalg.generic {indexing_maps = [#map1, #map6], iterator_types = ["parallel", "parallel", "reduction"]} ins(%69 : tensor<2x64x256xf32>) outs(%19 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = arith.addf %in, %out : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x1xf32>
    %79 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%78 : tensor<2x64x1xf32>) outs(%17 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = arith.divf %in, %cst_11 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x1xf32>
    %80 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%77 : tensor<2x64x1xf32>) outs(%17 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = arith.truncf %cst_9 : f64 to f32
      %179 = arith.addf %in, %178 : f32
      linalg.yield %179 : f32
    } -> tensor<2x64x1xf32>
    %81 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%80 : tensor<2x64x1xf32>) outs(%17 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = math.rsqrt %in : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x1xf32>
    %82 = linalg.generic {indexing_maps = [#map1, #map6, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%69, %79 : tensor<2x64x256xf32>, tensor<2x64x1xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.subf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %83 = linalg.generic {indexing_maps = [#map1, #map6, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%82, %81 : tensor<2x64x256xf32>, tensor<2x64x1xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.mulf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %84 = linalg.generic {indexing_maps = [#map1, #map7, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%83, %arg12 : tensor<2x64x256xf32>, tensor<256xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.mulf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %85 = linalg.generic {indexing_maps = [#map1, #map7, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%84, %arg13 : tensor<2x64x256xf32>, tensor<256xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.addf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %collapsed_35 = tensor.collapse_shape %85 [[0, 1], [2]] : tensor<2x64x256xf32> into tensor<128x256xf32>
    %86 = tensor.empty() : tensor<256x512xf32>
    %transposed_36 = linalg.transpose ins(%arg14 : tensor<512x256xf32>) outs(%86 : tensor<256x512xf32>) permutation = [1, 0] 
    %87 = tensor.empty() : tensor<128x512xf32>
    %88 = linalg.fill ins(%cst_0 : f32) outs(%87 : tensor<128x512xf32>) -> tensor<128x512xf32>
    %89 = linalg.matmul {fp8.name = "layers.0.mlp.up"} ins(%collapsed_35, %transposed_36 : tensor<128x256xf32>, tensor<256x512xf32>) outs(%88 : tensor<128x512xf32>) -> tensor<128x512xf32>
    %expanded_37 = tensor.expand_shape %89 [[0, 1], [2]] output_shape [2, 64, 512] : tensor<128x512xf32> into tensor<2x64x512xf32>
    %90 = tensor.empty() : tensor<2x64x512xf32>
    %91 = linalg.generic {indexing_maps = [#map1, #map7, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_37, %arg15 : tensor<2x64x512xf32>, tensor<512xf32>) outs(%90 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.addf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x512xf32>
    %92 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%91 : tensor<2x64x512xf32>) outs(%90 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = arith.divf %in, %cst_12 : f32
      %179 = math.erf %178 : f32
      %180 = arith.addf %179, %cst_2 : f32
      %181 = arith.mulf %180, %cst_3 : f32
      %182 = arith.mulf %in, %181 : f32
      linalg.yield %182 : f32
    } -> tensor<2x64x512xf32>
    %collapsed_38 = tensor.collapse_shape %92 [[0, 1], [2]] : tensor<2x64x512xf32> into tensor<128x512xf32>
    %93 = tensor.empty() : tensor<512x256xf32>
    %transposed_39 = linalg.transpose ins(%arg16 : tensor<256x512xf32>) outs(%93 : tensor<512x256xf32>) permutation = [1, 0] 
    %94 = linalg.matmul {fp8.name = "layers.0.mlp.down"} ins(%collapsed_38, %transposed_39 : tensor<128x512xf32>, tensor<512x256xf32>) outs(%32 : tensor<128x256xf32>) -> tensor<128x256xf32>
    %expanded_40 = tensor.expand_shape %94 [[0, 1], [2]] output_shape [2, 64, 256] : tensor<128x256xf32> into tensor<2x64x256xf32>
    %95 = linalg.generic {indexing_maps = [#map1, #map7, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_40, %arg17 : tensor<2x64x256xf32>, tensor<256xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.addf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %96 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%85, %95 : tensor<2x64x256xf32>, tensor<2x64x256xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.addf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %97 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%96 : tensor<2x64x256xf32>) outs(%7 : tensor<2x64x256xf64>) {
    ^bb0(%in: f32, %out: f64):
      %178 = arith.extf %in : f32 to f64
      linalg.yield %178 : f64
    } -> tensor<2x64x256xf64>
    %98 = linalg.generic {indexing_maps = [#map1, #map6], iterator_types = ["parallel", "parallel", "reduction"]} ins(%97 : tensor<2x64x256xf64>) outs(%10 : tensor<2x64x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %178 = arith.addf %in, %out : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x1xf64>
    %99 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%98 : tensor<2x64x1xf64>) outs(%9 : tensor<2x64x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %178 = arith.divf %in, %cst_10 : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x1xf64>
    %100 = linalg.generic {indexing_maps = [#map1, #map6, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%97, %99 : tensor<2x64x256xf64>, tensor<2x64x1xf64>) outs(%7 : tensor<2x64x256xf64>) {
    ^bb0(%in: f64, %in_73: f64, %out: f64):
      %178 = arith.subf %in, %in_73 : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x256xf64>
    %101 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%100, %100 : tensor<2x64x256xf64>, tensor<2x64x256xf64>) outs(%7 : tensor<2x64x256xf64>) {
    ^bb0(%in: f64, %in_73: f64, %out: f64):
      %178 = arith.mulf %in, %in_73 : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x256xf64>
    %102 = linalg.generic {indexing_maps = [#map1, #map6], iterator_types = ["parallel", "parallel", "reduction"]} ins(%101 : tensor<2x64x256xf64>) outs(%10 : tensor<2x64x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %178 = arith.addf %in, %out : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x1xf64>
    %103 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%102 : tensor<2x64x1xf64>) outs(%9 : tensor<2x64x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %178 = arith.divf %in, %cst_10 : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x1xf64>
    %104 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%103 : tensor<2x64x1xf64>) outs(%17 : tensor<2x64x1xf32>) {
    ^bb0(%in: f64, %out: f32):
      %178 = arith.truncf %in : f64 to f32
      linalg.yield %178 : f32
    } -> tensor<2x64x1xf32>
    %105 = linalg.generic {indexing_maps = [#map1, #map6], iterator_types = ["parallel", "parallel", "reduction"]} ins(%96 : tensor<2x64x256xf32>) outs(%19 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = arith.addf %in, %out : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x1xf32>
    %106 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%105 : tensor<2x64x1xf32>) outs(%17 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = arith.divf %in, %cst_11 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x1xf32>
    %107 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%104 : tensor<2x64x1xf32>) outs(%17 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = arith.truncf %cst_9 : f64 to f32
      %179 = arith.addf %in, %178 : f32
      linalg.yield %179 : f32
    } -> tensor<2x64x1xf32>
    %108 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%107 : tensor<2x64x1xf32>) outs(%17 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = math.rsqrt %in : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x1xf32>
    %109 = linalg.generic {indexing_maps = [#map1, #map6, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%96, %106 : tensor<2x64x256xf32>, tensor<2x64x1xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.subf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %110 = linalg.generic {indexing_maps = [#map1, #map6, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%109, %108 : tensor<2x64x256xf32>, tensor<2x64x1xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.mulf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %111 = linalg.generic {indexing_maps = [#map1, #map7, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%110, %arg18 : tensor<2x64x256xf32>, tensor<256xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.mulf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %112 = linalg.generic {indexing_maps = [#map1, #map7, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%111, %arg19 : tensor<2x64x256xf32>, tensor<256xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.addf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %collapsed_41 = tensor.collapse_shape %112 [[0, 1], [2]] : tensor<2x64x256xf32> into tensor<128x256xf32>
    %transposed_42 = linalg.transpose ins(%arg20 : tensor<256x256xf32>) outs(%30 : tensor<256x256xf32>) permutation = [1, 0] 
    %113 = linalg.matmul {fp8.name = "layers.1.attention.q"} ins(%collapsed_41, %transposed_42 : tensor<128x256xf32>, tensor<256x256xf32>) outs(%32 : tensor<128x256xf32>) -> tensor<128x256xf32>
    %expanded_43 = tensor.expand_shape %113 [[0, 1], [2]] output_shape [2, 64, 256] : tensor<128x256xf32> into tensor<2x64x256xf32>
    %114 = linalg.generic {indexing_maps = [#map1, #map7, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_43, %arg21 : tensor<2x64x256xf32>, tensor<256xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.addf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %expanded_44 = tensor.expand_shape %114 [[0], [1], [2, 3]] output_shape [2, 64, 4, 64] : tensor<2x64x256xf32> into tensor<2x64x4x64xf32>
    %transposed_45 = linalg.transpose ins(%expanded_44 : tensor<2x64x4x64xf32>) outs(%35 : tensor<2x4x64x64xf32>) permutation = [0, 2, 1, 3] 
    %transposed_46 = linalg.transpose ins(%arg22 : tensor<256x256xf32>) outs(%30 : tensor<256x256xf32>) permutation = [1, 0] 
    %115 = linalg.matmul {fp8.name = "layers.1.attention.k"} ins(%collapsed_41, %transposed_46 : tensor<128x256xf32>, tensor<256x256xf32>) outs(%32 : tensor<128x256xf32>) -> tensor<128x256xf32>
    %expanded_47 = tensor.expand_shape %115 [[0, 1], [2]] output_shape [2, 64, 256] : tensor<128x256xf32> into tensor<2x64x256xf32>
    %116 = linalg.generic {indexing_maps = [#map1, #map7, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_47, %arg23 : tensor<2x64x256xf32>, tensor<256xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.addf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %expanded_48 = tensor.expand_shape %116 [[0], [1], [2, 3]] output_shape [2, 64, 4, 64] : tensor<2x64x256xf32> into tensor<2x64x4x64xf32>
    %transposed_49 = linalg.transpose ins(%arg24 : tensor<256x256xf32>) outs(%30 : tensor<256x256xf32>) permutation = [1, 0] 
    %117 = linalg.matmul {fp8.name = "layers.1.attention.v"} ins(%collapsed_41, %transposed_49 : tensor<128x256xf32>, tensor<256x256xf32>) outs(%32 : tensor<128x256xf32>) -> tensor<128x256xf32>
    %expanded_50 = tensor.expand_shape %117 [[0, 1], [2]] output_shape [2, 64, 256] : tensor<128x256xf32> into tensor<2x64x256xf32>
    %118 = linalg.generic {indexing_maps = [#map1, #map7, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_50, %arg25 : tensor<2x64x256xf32>, tensor<256xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.addf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %expanded_51 = tensor.expand_shape %118 [[0], [1], [2, 3]] output_shape [2, 64, 4, 64] : tensor<2x64x256xf32> into tensor<2x64x4x64xf32>
    %transposed_52 = linalg.transpose ins(%expanded_51 : tensor<2x64x4x64xf32>) outs(%35 : tensor<2x4x64x64xf32>) permutation = [0, 2, 1, 3] 
    %119 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_45 : tensor<2x4x64x64xf32>) outs(%35 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = arith.truncf %cst_7 : f64 to f32
      %179 = arith.mulf %in, %178 : f32
      linalg.yield %179 : f32
    } -> tensor<2x4x64x64xf32>
    %transposed_53 = linalg.transpose ins(%expanded_48 : tensor<2x64x4x64xf32>) outs(%35 : tensor<2x4x64x64xf32>) permutation = [0, 2, 3, 1] 
    %120 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_53 : tensor<2x4x64x64xf32>) outs(%35 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = arith.truncf %cst_7 : f64 to f32
      %179 = arith.mulf %in, %178 : f32
      linalg.yield %179 : f32
    } -> tensor<2x4x64x64xf32>
    %collapsed_54 = tensor.collapse_shape %119 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %collapsed_55 = tensor.collapse_shape %120 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %121 = linalg.batch_matmul {fp8.name = "layers.1.attention.matmul"} ins(%collapsed_54, %collapsed_55 : tensor<8x64x64xf32>, tensor<8x64x64xf32>) outs(%45 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %expanded_56 = tensor.expand_shape %121 [[0, 1], [2], [3]] output_shape [2, 4, 64, 64] : tensor<8x64x64xf32> into tensor<2x4x64x64xf32>
    %122 = linalg.generic {indexing_maps = [#map8, #map10, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_56, %41 : tensor<2x4x64x64xf32>, tensor<2x1x1x64xf32>) outs(%35 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.addf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x4x64x64xf32>
    %123:2 = linalg.generic {indexing_maps = [#map8, #map11, #map11], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%122 : tensor<2x4x64x64xf32>) outs(%51, %49 : tensor<2x4x64xf32>, tensor<2x4x64xi64>) {
    ^bb0(%in: f32, %out: f32, %out_73: i64):
      %178 = linalg.index 3 : index
      %179 = arith.index_cast %178 : index to i64
      %180 = arith.maximumf %in, %out : f32
      %181 = arith.cmpf ogt, %in, %out : f32
      %182 = arith.select %181, %179, %out_73 : i64
      linalg.yield %180, %182 : f32, i64
    } -> (tensor<2x4x64xf32>, tensor<2x4x64xi64>)
    %expanded_57 = tensor.expand_shape %123#0 [[0], [1], [2, 3]] output_shape [2, 4, 64, 1] : tensor<2x4x64xf32> into tensor<2x4x64x1xf32>
    %124 = linalg.generic {indexing_maps = [#map8, #map12, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%122, %expanded_57 : tensor<2x4x64x64xf32>, tensor<2x4x64x1xf32>) outs(%35 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.subf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x4x64x64xf32>
    %125 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%124 : tensor<2x4x64x64xf32>) outs(%35 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = math.exp %in : f32
      linalg.yield %178 : f32
    } -> tensor<2x4x64x64xf32>
    %126 = linalg.generic {indexing_maps = [#map8, #map12], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%125 : tensor<2x4x64x64xf32>) outs(%56 : tensor<2x4x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = arith.addf %in, %out : f32
      linalg.yield %178 : f32
    } -> tensor<2x4x64x1xf32>
    %127 = linalg.generic {indexing_maps = [#map8, #map12, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%125, %126 : tensor<2x4x64x64xf32>, tensor<2x4x64x1xf32>) outs(%35 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.divf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x4x64x64xf32>
    %128 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%122 : tensor<2x4x64x64xf32>) outs(%59 : tensor<2x4x64x64xi1>) {
    ^bb0(%in: f32, %out: i1):
      %178 = arith.extf %in : f32 to f64
      %179 = arith.cmpf oeq, %178, %cst_8 : f64
      linalg.yield %179 : i1
    } -> tensor<2x4x64x64xi1>
    %129 = linalg.generic {indexing_maps = [#map8, #map12], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%128 : tensor<2x4x64x64xi1>) outs(%62 : tensor<2x4x64x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %178 = arith.andi %in, %out : i1
      linalg.yield %178 : i1
    } -> tensor<2x4x64x1xi1>
    %130 = linalg.generic {indexing_maps = [#map12, #map8, #map8, #map8], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%129, %cst_4, %127 : tensor<2x4x64x1xi1>, tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) outs(%35 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: i1, %in_73: f32, %in_74: f32, %out: f32):
      %178 = arith.select %in, %in_73, %in_74 : f32
      linalg.yield %178 : f32
    } -> tensor<2x4x64x64xf32>
    %collapsed_58 = tensor.collapse_shape %130 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %collapsed_59 = tensor.collapse_shape %transposed_52 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %131 = linalg.batch_matmul {fp8.name = "layers.1.attention.matmul_1"} ins(%collapsed_58, %collapsed_59 : tensor<8x64x64xf32>, tensor<8x64x64xf32>) outs(%45 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %expanded_60 = tensor.expand_shape %131 [[0, 1], [2], [3]] output_shape [2, 4, 64, 64] : tensor<8x64x64xf32> into tensor<2x4x64x64xf32>
    %transposed_61 = linalg.transpose ins(%expanded_60 : tensor<2x4x64x64xf32>) outs(%66 : tensor<2x64x4x64xf32>) permutation = [0, 2, 1, 3] 
    %collapsed_62 = tensor.collapse_shape %transposed_61 [[0, 1], [2, 3]] : tensor<2x64x4x64xf32> into tensor<128x256xf32>
    %transposed_63 = linalg.transpose ins(%arg26 : tensor<256x256xf32>) outs(%30 : tensor<256x256xf32>) permutation = [1, 0] 
    %132 = linalg.matmul {fp8.name = "layers.1.attention.out"} ins(%collapsed_62, %transposed_63 : tensor<128x256xf32>, tensor<256x256xf32>) outs(%32 : tensor<128x256xf32>) -> tensor<128x256xf32>
    %expanded_64 = tensor.expand_shape %132 [[0, 1], [2]] output_shape [2, 64, 256] : tensor<128x256xf32> into tensor<2x64x256xf32>
    %133 = linalg.generic {indexing_maps = [#map1, #map7, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_64, %arg27 : tensor<2x64x256xf32>, tensor<256xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.addf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %134 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%112, %133 : tensor<2x64x256xf32>, tensor<2x64x256xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.addf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %135 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%134 : tensor<2x64x256xf32>) outs(%7 : tensor<2x64x256xf64>) {
    ^bb0(%in: f32, %out: f64):
      %178 = arith.extf %in : f32 to f64
      linalg.yield %178 : f64
    } -> tensor<2x64x256xf64>
    %136 = linalg.generic {indexing_maps = [#map1, #map6], iterator_types = ["parallel", "parallel", "reduction"]} ins(%135 : tensor<2x64x256xf64>) outs(%10 : tensor<2x64x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %178 = arith.addf %in, %out : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x1xf64>
    %137 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%136 : tensor<2x64x1xf64>) outs(%9 : tensor<2x64x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %178 = arith.divf %in, %cst_10 : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x1xf64>
    %138 = linalg.generic {indexing_maps = [#map1, #map6, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%135, %137 : tensor<2x64x256xf64>, tensor<2x64x1xf64>) outs(%7 : tensor<2x64x256xf64>) {
    ^bb0(%in: f64, %in_73: f64, %out: f64):
      %178 = arith.subf %in, %in_73 : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x256xf64>
    %139 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%138, %138 : tensor<2x64x256xf64>, tensor<2x64x256xf64>) outs(%7 : tensor<2x64x256xf64>) {
    ^bb0(%in: f64, %in_73: f64, %out: f64):
      %178 = arith.mulf %in, %in_73 : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x256xf64>
    %140 = linalg.generic {indexing_maps = [#map1, #map6], iterator_types = ["parallel", "parallel", "reduction"]} ins(%139 : tensor<2x64x256xf64>) outs(%10 : tensor<2x64x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %178 = arith.addf %in, %out : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x1xf64>
    %141 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%140 : tensor<2x64x1xf64>) outs(%9 : tensor<2x64x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %178 = arith.divf %in, %cst_10 : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x1xf64>
    %142 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%141 : tensor<2x64x1xf64>) outs(%17 : tensor<2x64x1xf32>) {
    ^bb0(%in: f64, %out: f32):
      %178 = arith.truncf %in : f64 to f32
      linalg.yield %178 : f32
    } -> tensor<2x64x1xf32>
    %143 = linalg.generic {indexing_maps = [#map1, #map6], iterator_types = ["parallel", "parallel", "reduction"]} ins(%134 : tensor<2x64x256xf32>) outs(%19 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = arith.addf %in, %out : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x1xf32>
    %144 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%143 : tensor<2x64x1xf32>) outs(%17 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = arith.divf %in, %cst_11 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x1xf32>
    %145 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%142 : tensor<2x64x1xf32>) outs(%17 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = arith.truncf %cst_9 : f64 to f32
      %179 = arith.addf %in, %178 : f32
      linalg.yield %179 : f32
    } -> tensor<2x64x1xf32>
    %146 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%145 : tensor<2x64x1xf32>) outs(%17 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = math.rsqrt %in : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x1xf32>
    %147 = linalg.generic {indexing_maps = [#map1, #map6, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%134, %144 : tensor<2x64x256xf32>, tensor<2x64x1xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.subf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %148 = linalg.generic {indexing_maps = [#map1, #map6, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%147, %146 : tensor<2x64x256xf32>, tensor<2x64x1xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.mulf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %149 = linalg.generic {indexing_maps = [#map1, #map7, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%148, %arg28 : tensor<2x64x256xf32>, tensor<256xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.mulf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %150 = linalg.generic {indexing_maps = [#map1, #map7, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%149, %arg29 : tensor<2x64x256xf32>, tensor<256xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.addf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %collapsed_65 = tensor.collapse_shape %150 [[0, 1], [2]] : tensor<2x64x256xf32> into tensor<128x256xf32>
    %transposed_66 = linalg.transpose ins(%arg30 : tensor<512x256xf32>) outs(%86 : tensor<256x512xf32>) permutation = [1, 0] 
    %151 = linalg.matmul {fp8.name = "layers.1.mlp.up"} ins(%collapsed_65, %transposed_66 : tensor<128x256xf32>, tensor<256x512xf32>) outs(%88 : tensor<128x512xf32>) -> tensor<128x512xf32>
    %expanded_67 = tensor.expand_shape %151 [[0, 1], [2]] output_shape [2, 64, 512] : tensor<128x512xf32> into tensor<2x64x512xf32>
    %152 = linalg.generic {indexing_maps = [#map1, #map7, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_67, %arg31 : tensor<2x64x512xf32>, tensor<512xf32>) outs(%90 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.addf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x512xf32>
    %153 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%152 : tensor<2x64x512xf32>) outs(%90 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = arith.divf %in, %cst_12 : f32
      %179 = math.erf %178 : f32
      %180 = arith.addf %179, %cst_2 : f32
      %181 = arith.mulf %180, %cst_3 : f32
      %182 = arith.mulf %in, %181 : f32
      linalg.yield %182 : f32
    } -> tensor<2x64x512xf32>
    %collapsed_68 = tensor.collapse_shape %153 [[0, 1], [2]] : tensor<2x64x512xf32> into tensor<128x512xf32>
    %transposed_69 = linalg.transpose ins(%arg32 : tensor<256x512xf32>) outs(%93 : tensor<512x256xf32>) permutation = [1, 0] 
    %154 = linalg.matmul {fp8.name = "layers.1.mlp.down"} ins(%collapsed_68, %transposed_69 : tensor<128x512xf32>, tensor<512x256xf32>) outs(%32 : tensor<128x256xf32>) -> tensor<128x256xf32>
    %expanded_70 = tensor.expand_shape %154 [[0, 1], [2]] output_shape [2, 64, 256] : tensor<128x256xf32> into tensor<2x64x256xf32>
    %155 = linalg.generic {indexing_maps = [#map1, #map7, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_70, %arg33 : tensor<2x64x256xf32>, tensor<256xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.addf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %156 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%150, %155 : tensor<2x64x256xf32>, tensor<2x64x256xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.addf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %157 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%156 : tensor<2x64x256xf32>) outs(%7 : tensor<2x64x256xf64>) {
    ^bb0(%in: f32, %out: f64):
      %178 = arith.extf %in : f32 to f64
      linalg.yield %178 : f64
    } -> tensor<2x64x256xf64>
    %158 = linalg.generic {indexing_maps = [#map1, #map6], iterator_types = ["parallel", "parallel", "reduction"]} ins(%157 : tensor<2x64x256xf64>) outs(%10 : tensor<2x64x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %178 = arith.addf %in, %out : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x1xf64>
    %159 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%158 : tensor<2x64x1xf64>) outs(%9 : tensor<2x64x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %178 = arith.divf %in, %cst_10 : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x1xf64>
    %160 = linalg.generic {indexing_maps = [#map1, #map6, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%157, %159 : tensor<2x64x256xf64>, tensor<2x64x1xf64>) outs(%7 : tensor<2x64x256xf64>) {
    ^bb0(%in: f64, %in_73: f64, %out: f64):
      %178 = arith.subf %in, %in_73 : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x256xf64>
    %161 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%160, %160 : tensor<2x64x256xf64>, tensor<2x64x256xf64>) outs(%7 : tensor<2x64x256xf64>) {
    ^bb0(%in: f64, %in_73: f64, %out: f64):
      %178 = arith.mulf %in, %in_73 : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x256xf64>
    %162 = linalg.generic {indexing_maps = [#map1, #map6], iterator_types = ["parallel", "parallel", "reduction"]} ins(%161 : tensor<2x64x256xf64>) outs(%10 : tensor<2x64x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %178 = arith.addf %in, %out : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x1xf64>
    %163 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%162 : tensor<2x64x1xf64>) outs(%9 : tensor<2x64x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %178 = arith.divf %in, %cst_10 : f64
      linalg.yield %178 : f64
    } -> tensor<2x64x1xf64>
    %164 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%163 : tensor<2x64x1xf64>) outs(%17 : tensor<2x64x1xf32>) {
    ^bb0(%in: f64, %out: f32):
      %178 = arith.truncf %in : f64 to f32
      linalg.yield %178 : f32
    } -> tensor<2x64x1xf32>
    %165 = linalg.generic {indexing_maps = [#map1, #map6], iterator_types = ["parallel", "parallel", "reduction"]} ins(%156 : tensor<2x64x256xf32>) outs(%19 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = arith.addf %in, %out : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x1xf32>
    %166 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%165 : tensor<2x64x1xf32>) outs(%17 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = arith.divf %in, %cst_11 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x1xf32>
    %167 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%164 : tensor<2x64x1xf32>) outs(%17 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = arith.truncf %cst_9 : f64 to f32
      %179 = arith.addf %in, %178 : f32
      linalg.yield %179 : f32
    } -> tensor<2x64x1xf32>
    %168 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%167 : tensor<2x64x1xf32>) outs(%17 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = math.rsqrt %in : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x1xf32>
    %169 = linalg.generic {indexing_maps = [#map1, #map6, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%156, %166 : tensor<2x64x256xf32>, tensor<2x64x1xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.subf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %170 = linalg.generic {indexing_maps = [#map1, #map6, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%169, %168 : tensor<2x64x256xf32>, tensor<2x64x1xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.mulf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %171 = linalg.generic {indexing_maps = [#map1, #map7, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%170, %arg34 : tensor<2x64x256xf32>, tensor<256xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.mulf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %172 = linalg.generic {indexing_maps = [#map1, #map7, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%171, %arg35 : tensor<2x64x256xf32>, tensor<256xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.addf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x64x256xf32>
    %extracted_slice = tensor.extract_slice %172[0, 0, 0] [2, 1, 256] [1, 1, 1] : tensor<2x64x256xf32> to tensor<2x1x256xf32>
    %collapsed_71 = tensor.collapse_shape %extracted_slice [[0, 1], [2]] : tensor<2x1x256xf32> into tensor<2x256xf32>
    %transposed_72 = linalg.transpose ins(%arg36 : tensor<256x256xf32>) outs(%30 : tensor<256x256xf32>) permutation = [1, 0] 
    %173 = tensor.empty() : tensor<2x256xf32>
    %174 = linalg.fill ins(%cst_0 : f32) outs(%173 : tensor<2x256xf32>) -> tensor<2x256xf32>
    %175 = linalg.matmul {fp8.name = "pooler"} ins(%collapsed_71, %transposed_72 : tensor<2x256xf32>, tensor<256x256xf32>) outs(%174 : tensor<2x256xf32>) -> tensor<2x256xf32>
    %176 = linalg.generic {indexing_maps = [#map4, #map13, #map4], iterator_types = ["parallel", "parallel"]} ins(%175, %arg37 : tensor<2x256xf32>, tensor<256xf32>) outs(%173 : tensor<2x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %178 = arith.addf %in, %in_73 : f32
      linalg.yield %178 : f32
    } -> tensor<2x256xf32>
    %177 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%176 : tensor<2x256xf32>) outs(%173 : tensor<2x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %178 = math.tanh %in : f32
      linalg.yield %178 : f32
    } -> tensor<2x256xf32>
    return %177 : tensor<2x256xf32>
  }
}
