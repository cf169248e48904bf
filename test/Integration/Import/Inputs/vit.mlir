#map = affine_map<(d0, d1, d2) -> (d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2) -> (0, d1, d2)>
#map3 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
#map4 = affine_map<(d0, d1, d2) -> (d2)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map6 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map7 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
#map8 = affine_map<(d0, d1) -> (d0, d1)>
#map9 = affine_map<(d0, d1) -> (d0, 0)>
#map10 = affine_map<(d0, d1) -> (d1)>
module {
  func.func @vit(%arg0: tensor<1x1x256xf32> {fp8.name = "class_token", fp8.weight}, %arg1: tensor<1x17x256xf32> {fp8.name = "positions", fp8.weight}, %arg2: tensor<256x3x16x16xf32> {fp8.name = "patches.weight", fp8.weight}, %arg3: tensor<256xf32> {fp8.name = "patches.bias"}, %arg4: tensor<256xf32> {fp8.name = "layers.0.attention_norm.weight"}, %arg5: tensor<256xf32> {fp8.name = "layers.0.attention_norm.bias"}, %arg6: tensor<256x256xf32> {fp8.name = "layers.0.attention.q.weight", fp8.weight}, %arg7: tensor<256xf32> {fp8.name = "layers.0.attention.q.bias"}, %arg8: tensor<256x256xf32> {fp8.name = "layers.0.attention.k.weight", fp8.weight}, %arg9: tensor<256xf32> {fp8.name = "layers.0.attention.k.bias"}, %arg10: tensor<256x256xf32> {fp8.name = "layers.0.attention.v.weight", fp8.weight}, %arg11: tensor<256xf32> {fp8.name = "layers.0.attention.v.bias"}, %arg12: tensor<256x256xf32> {fp8.name = "layers.0.attention.out.weight", fp8.weight}, %arg13: tensor<256xf32> {fp8.name = "layers.0.attention.out.bias"}, %arg14: tensor<256xf32> {fp8.name = "layers.0.mlp_norm.weight"}, %arg15: tensor<256xf32> {fp8.name = "layers.0.mlp_norm.bias"}, %arg16: tensor<512x256xf32> {fp8.name = "layers.0.mlp.up.weight", fp8.weight}, %arg17: tensor<512xf32> {fp8.name = "layers.0.mlp.up.bias"}, %arg18: tensor<256x512xf32> {fp8.name = "layers.0.mlp.down.weight", fp8.weight}, %arg19: tensor<256xf32> {fp8.name = "layers.0.mlp.down.bias"}, %arg20: tensor<256xf32> {fp8.name = "layers.1.attention_norm.weight"}, %arg21: tensor<256xf32> {fp8.name = "layers.1.attention_norm.bias"}, %arg22: tensor<256x256xf32> {fp8.name = "layers.1.attention.q.weight", fp8.weight}, %arg23: tensor<256xf32> {fp8.name = "layers.1.attention.q.bias"}, %arg24: tensor<256x256xf32> {fp8.name = "layers.1.attention.k.weight", fp8.weight}, %arg25: tensor<256xf32> {fp8.name = "layers.1.attention.k.bias"}, %arg26: tensor<256x256xf32> {fp8.name = "layers.1.attention.v.weight", fp8.weight}, %arg27: tensor<256xf32> {fp8.name = "layers.1.attention.v.bias"}, %arg28: tensor<256x256xf32> {fp8.name = "layers.1.attention.out.weight", fp8.weight}, %arg29: tensor<256xf32> {fp8.name = "layers.1.attention.out.bias"}, %arg30: tensor<256xf32> {fp8.name = "layers.1.mlp_norm.weight"}, %arg31: tensor<256xf32> {fp8.name = "layers.1.mlp_norm.bias"}, %arg32: tensor<512x256xf32> {fp8.name = "layers.1.mlp.up.weight", fp8.weight}, %arg33: tensor<512xf32> {fp8.name = "layers.1.mlp.up.bias"}, %arg34: tensor<256x512xf32> {fp8.name = "layers.1.mlp.down.weight", fp8.weight}, %arg35: tensor<256xf32> {fp8.name = "layers.1.mlp.down.bias"}, %arg36: tensor<256xf32> {fp8.name = "norm.weight"}, %arg37: tensor<256xf32> {fp8.name = "norm.bias"}, %arg38: tensor<100x256xf32> {fp8.name = "head.weight", fp8.weight}, %arg39: tensor<100xf32> {fp8.name = "head.bias"}, %arg40: tensor<2x3x64x64xf32> {fp8.name = "images"}) -> tensor<2x100xf32> {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0.000000e+00 : f64
    %cst_1 = arith.constant 0xFF800000 : f32
    %true = arith.constant true
    %cst_2 = arith.constant 1.000000e+00 : f32
    %cst_3 = arith.constant 5.000000e-01 : f32
    %cst_4 = arith.constant dense<0.000000e+00> : tensor<2x4x17x17xf32>
    %cst_5 = arith.constant 0xFFF0000000000000 : f64
    %cst_6 = arith.constant 0.35355339059327379 : f64
    %cst_7 = arith.constant 1.000000e-05 : f64
    %cst_8 = arith.constant 2.560000e+02 : f64
    %cst_9 = arith.constant 2.560000e+02 : f32
    %cst_10 = arith.constant 1.41421354 : f32
    %0 = tensor.empty() : tensor<2x256x4x4xf32>
    %broadcasted = linalg.broadcast ins(%arg3 : tensor<256xf32>) outs(%0 : tensor<2x256x4x4xf32>) dimensions = [0, 2, 3] 
    %1 = linalg.conv_2d_nchw_fchw {dilations = dense<1> : vector<2xi64>, fp8.name = "patches", strides = dense<16> : vector<2xi64>} ins(%arg40, %arg2 : tensor<2x3x64x64xf32>, tensor<256x3x16x16xf32>) outs(%broadcasted : tensor<2x256x4x4xf32>) -> tensor<2x256x4x4xf32>
    %collapsed = tensor.collapse_shape %1 [[0], [1], [2, 3]] : tensor<2x256x4x4xf32> into tensor<2x256x16xf32>
    %2 = tensor.empty() : tensor<2x16x256xf32>
    %transposed = linalg.transpose ins(%collapsed : tensor<2x256x16xf32>) outs(%2 : tensor<2x16x256xf32>) permutation = [0, 2, 1] 
    %3 = tensor.empty() : tensor<2x1x256xf32>
    %collapsed_11 = tensor.collapse_shape %arg0 [[0, 1], [2]] : tensor<1x1x256xf32> into tensor<1x256xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%collapsed_11 : tensor<1x256xf32>) outs(%3 : tensor<2x1x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x1x256xf32>
    %concat = tensor.concat dim(1) %4, %transposed : (tensor<2x1x256xf32>, tensor<2x16x256xf32>) -> tensor<2x17x256xf32>
    %5 = tensor.empty() : tensor<2x17x256xf32>
    %6 = linalg.generic {indexing_maps = [#map1, #map2, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%concat, %arg1 : tensor<2x17x256xf32>, tensor<1x17x256xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.addf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %7 = tensor.empty() : tensor<2x17x256xf64>
    %8 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6 : tensor<2x17x256xf32>) outs(%7 : tensor<2x17x256xf64>) {
    ^bb0(%in: f32, %out: f64):
      %182 = arith.extf %in : f32 to f64
      linalg.yield %182 : f64
    } -> tensor<2x17x256xf64>
    %9 = tensor.empty() : tensor<2x17x1xf64>
    %10 = linalg.fill ins(%cst_0 : f64) outs(%9 : tensor<2x17x1xf64>) -> tensor<2x17x1xf64>
    %11 = linalg.generic {indexing_maps = [#map1, #map3], iterator_types = ["parallel", "parallel", "reduction"]} ins(%8 : tensor<2x17x256xf64>) outs(%10 : tensor<2x17x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %182 = arith.addf %in, %out : f64
      linalg.yield %182 : f64
    } -> tensor<2x17x1xf64>
    %12 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%11 : tensor<2x17x1xf64>) outs(%9 : tensor<2x17x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %182 = arith.divf %in, %cst_8 : f64
      linalg.yield %182 : f64
    } -> tensor<2x17x1xf64>
    %13 = linalg.generic {indexing_maps = [#map1, #map3, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%8, %12 : tensor<2x17x256xf64>, tensor<2x17x1xf64>) outs(%7 : tensor<2x17x256xf64>) {
    ^bb0(%in: f64, %in_73: f64, %out: f64):
      %182 = arith.subf %in, %in_73 : f64
      linalg.yield %182 : f64
    } -> tensor<2x17x256xf64>
    %14 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%13, %13 : tensor<2x17x256xf64>, tensor<2x17x256xf64>) outs(%7 : tensor<2x17x256xf64>) {
    ^bb0(%in: f64, %in_73: f64, %out: f64):
      %182 = arith.mulf %in, %in_73 : f64
      linalg.yield %182 : f64
    } -> tensor<2x17x256xf64>
    %15 = linalg.generic {indexing_maps = [#map1, #map3], iterator_types = ["parallel", "parallel", "reduction"]} ins(%14 : tensor<2x17x256xf64>) outs(%10 : tensor<2x17x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %182 = arith.addf %in, %out : f64
      linalg.yield %182 : f64
    } -> tensor<2x17x1xf64>
    %16 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%15 : tensor<2x17x1xf64>) outs(%9 : tensor<2x17x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %182 = arith.divf %in, %cst_8 : f64
      linalg.yield %182 : f64
    } -> tensor<2x17x1xf64>
    %17 = tensor.empty() : tensor<2x17x1xf32>
    %18 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%16 : tensor<2x17x1xf64>) outs(%17 : tensor<2x17x1xf32>) {
    ^bb0(%in: f64, %out: f32):
      %182 = arith.truncf %in : f64 to f32
      linalg.yield %182 : f32
    } -> tensor<2x17x1xf32>
    %19 = linalg.fill ins(%cst : f32) outs(%17 : tensor<2x17x1xf32>) -> tensor<2x17x1xf32>
    %20 = linalg.generic {indexing_maps = [#map1, #map3], iterator_types = ["parallel", "parallel", "reduction"]} ins(%6 : tensor<2x17x256xf32>) outs(%19 : tensor<2x17x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = arith.addf %in, %out : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x1xf32>
    %21 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%20 : tensor<2x17x1xf32>) outs(%17 : tensor<2x17x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = arith.divf %in, %cst_9 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x1xf32>
    %22 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%18 : tensor<2x17x1xf32>) outs(%17 : tensor<2x17x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = arith.truncf %cst_7 : f64 to f32
      %183 = arith.addf %in, %182 : f32
      linalg.yield %183 : f32
    } -> tensor<2x17x1xf32>
    %23 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%22 : tensor<2x17x1xf32>) outs(%17 : tensor<2x17x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = math.rsqrt %in : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x1xf32>
    %24 = linalg.generic {indexing_maps = [#map1, #map3, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6, %21 : tensor<2x17x256xf32>, tensor<2x17x1xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.subf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %25 = linalg.generic {indexing_maps = [#map1, #map3, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%24, %23 : tensor<2x17x256xf32>, tensor<2x17x1xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.mulf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %26 = linalg.generic {indexing_maps = [#map1, #map4, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%25, %arg4 : tensor<2x17x256xf32>, tensor<256xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.mulf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %27 = linalg.generic {indexing_maps = [#map1, #map4, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%26, %arg5 : tensor<2x17x256xf32>, tensor<256xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.addf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %collapsed_12 = tensor.collapse_shape %27 [[0, 1], [2]] : tensor<2x17x256xf32> into tensor<34x256xf32>
    %28 = tensor.empty() : tensor<256x256xf32>
    %transposed_13 = linalg.transpose ins(%arg6 : tensor<256x256xf32>) outs(%28 : tensor<256x256xf32>) permutation = [1, 0] 
    %29 = tensor.empty() : tensor<34x256xf32>
    %30 = linalg.fill ins(%cst : f32) outs(%29 : tensor<34x256xf32>) -> tensor<34x256xf32>
    %31 = linalg.matmul {fp8.name = "layers.0.attention.q"} ins(%collapsed_12, %transposed_13 : tensor<34x256xf32>, tensor<256x256xf32>) outs(%30 : tensor<34x256xf32>) -> tensor<34x256xf32>
    %expanded = tensor.expand_shape %31 [[0, 1], [2]] output_shape [2, 17, 256] : tensor<34x256xf32> into tensor<2x17x256xf32>
    %32 = linalg.generic {indexing_maps = [#map1, #map4, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded, %arg7 : tensor<2x17x256xf32>, tensor<256xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.addf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %expanded_14 = tensor.expand_shape %32 [[0], [1], [2, 3]] output_shape [2, 17, 4, 64] : tensor<2x17x256xf32> into tensor<2x17x4x64xf32>
    %33 = tensor.empty() : tensor<2x4x17x64xf32>
    %transposed_15 = linalg.transpose ins(%expanded_14 : tensor<2x17x4x64xf32>) outs(%33 : tensor<2x4x17x64xf32>) permutation = [0, 2, 1, 3] 
    %transposed_16 = linalg.transpose ins(%arg8 : tensor<256x256xf32>) outs(%28 : tensor<256x256xf32>) permutation = [1, 0] 
    %34 = linalg.matmul {fp8.name = "layers.0.attention.k"} ins(%collapsed_12, %transposed_16 : tensor<34x256xf32>, tensor<256x256xf32>) outs(%30 : tensor<34x256xf32>) -> tensor<34x256xf32>
    %expanded_17 = tensor.expand_shape %34 [[0, 1], [2]] output_shape [2, 17, 256] : tensor<34x256xf32> into tensor<2x17x256xf32>
    %35 = linalg.generic {indexing_maps = [#map1, #map4, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_17, %arg9 : tensor<2x17x256xf32>, tensor<256xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.addf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %expanded_18 = tensor.expand_shape %35 [[0], [1], [2, 3]] output_shape [2, 17, 4, 64] : tensor<2x17x256xf32> into tensor<2x17x4x64xf32>
    %transposed_19 = linalg.transpose ins(%arg10 : tensor<256x256xf32>) outs(%28 : tensor<256x256xf32>) permutation = [1, 0] 
    %36 = linalg.matmul {fp8.name = "layers.0.attention.v"} ins(%collapsed_12, %transposed_19 : tensor<34x256xf32>, tensor<256x256xf32>) outs(%30 : tensor<34x256xf32>) -> tensor<34x256xf32>
    %expanded_20 = tensor.expand_shape %36 [[0, 1], [2]] output_shape [2, 17, 256] : tensor<34x256xf32> into tensor<2x17x256xf32>
    %37 = linalg.generic {indexing_maps = [#map1, #map4, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_20, %arg11 : tensor<2x17x256xf32>, tensor<256xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.addf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %expanded_21 = tensor.expand_shape %37 [[0], [1], [2, 3]] output_shape [2, 17, 4, 64] : tensor<2x17x256xf32> into tensor<2x17x4x64xf32>
    %transposed_22 = linalg.transpose ins(%expanded_21 : tensor<2x17x4x64xf32>) outs(%33 : tensor<2x4x17x64xf32>) permutation = [0, 2, 1, 3] 
    %38 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_15 : tensor<2x4x17x64xf32>) outs(%33 : tensor<2x4x17x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = arith.truncf %cst_6 : f64 to f32
      %183 = arith.mulf %in, %182 : f32
      linalg.yield %183 : f32
    } -> tensor<2x4x17x64xf32>
    %39 = tensor.empty() : tensor<2x4x64x17xf32>
    %transposed_23 = linalg.transpose ins(%expanded_18 : tensor<2x17x4x64xf32>) outs(%39 : tensor<2x4x64x17xf32>) permutation = [0, 2, 3, 1] 
    %40 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_23 : tensor<2x4x64x17xf32>) outs(%39 : tensor<2x4x64x17xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = arith.truncf %cst_6 : f64 to f32
      %183 = arith.mulf %in, %182 : f32
      linalg.yield %183 : f32
    } -> tensor<2x4x64x17xf32>
    %collapsed_24 = tensor.collapse_shape %38 [[0, 1], [2], [3]] : tensor<2x4x17x64xf32> into tensor<8x17x64xf32>
    %collapsed_25 = tensor.collapse_shape %40 [[0, 1], [2], [3]] : tensor<2x4x64x17xf32> into tensor<8x64x17xf32>
    %41 = tensor.empty() : tensor<8x17x17xf32>
    %42 = linalg.fill ins(%cst : f32) outs(%41 : tensor<8x17x17xf32>) -> tensor<8x17x17xf32>
    %43 = linalg.batch_matmul {fp8.name = "layers.0.attention.matmul"} ins(%collapsed_24, %collapsed_25 : tensor<8x17x64xf32>, tensor<8x64x17xf32>) outs(%42 : tensor<8x17x17xf32>) -> tensor<8x17x17xf32>
    %expanded_26 = tensor.expand_shape %43 [[0, 1], [2], [3]] output_shape [2, 4, 17, 17] : tensor<8x17x17xf32> into tensor<2x4x17x17xf32>
    %44 = tensor.empty() : tensor<2x4x17xi64>
    %45 = linalg.fill ins(%c0_i64 : i64) outs(%44 : tensor<2x4x17xi64>) -> tensor<2x4x17xi64>
    %46 = tensor.empty() : tensor<2x4x17xf32>
    %47 = linalg.fill ins(%cst_1 : f32) outs(%46 : tensor<2x4x17xf32>) -> tensor<2x4x17xf32>
    %48:2 = linalg.generic {indexing_maps = [#map5, #map6, #map6], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%expanded_26 : tensor<2x4x17x17xf32>) outs(%47, %45 : tensor<2x4x17xf32>, tensor<2x4x17xi64>) {
    ^bb0(%in: f32, %out: f32, %out_73: i64):
      %182 = linalg.index 3 : index
      %183 = arith.index_cast %182 : index to i64
      %184 = arith.maximumf %in, %out : f32
      %185 = arith.cmpf ogt, %in, %out : f32
      %186 = arith.select %185, %183, %out_73 : i64
      linalg.yield %184, %186 : f32, i64
    } -> (tensor<2x4x17xf32>, tensor<2x4x17xi64>)
    %expanded_27 = tensor.expand_shape %48#0 [[0], [1], [2, 3]] output_shape [2, 4, 17, 1] : tensor<2x4x17xf32> into tensor<2x4x17x1xf32>
    %49 = tensor.empty() : tensor<2x4x17x17xf32>
    %50 = linalg.generic {indexing_maps = [#map5, #map7, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_26, %expanded_27 : tensor<2x4x17x17xf32>, tensor<2x4x17x1xf32>) outs(%49 : tensor<2x4x17x17xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.subf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x4x17x17xf32>
    %51 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%50 : tensor<2x4x17x17xf32>) outs(%49 : tensor<2x4x17x17xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = math.exp %in : f32
      linalg.yield %182 : f32
    } -> tensor<2x4x17x17xf32>
    %52 = tensor.empty() : tensor<2x4x17x1xf32>
    %53 = linalg.fill ins(%cst : f32) outs(%52 : tensor<2x4x17x1xf32>) -> tensor<2x4x17x1xf32>
    %54 = linalg.generic {indexing_maps = [#map5, #map7], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%51 : tensor<2x4x17x17xf32>) outs(%53 : tensor<2x4x17x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = arith.addf %in, %out : f32
      linalg.yield %182 : f32
    } -> tensor<2x4x17x1xf32>
    %55 = linalg.generic {indexing_maps = [#map5, #map7, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%51, %54 : tensor<2x4x17x17xf32>, tensor<2x4x17x1xf32>) outs(%49 : tensor<2x4x17x17xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.divf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x4x17x17xf32>
    %56 = tensor.empty() : tensor<2x4x17x17xi1>
    %57 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_26 : tensor<2x4x17x17xf32>) outs(%56 : tensor<2x4x17x17xi1>) {
    ^bb0(%in: f32, %out: i1):
      %182 = arith.extf %in : f32 to f64
      %183 = arith.cmpf oeq, %182, %cst_5 : f64
      linalg.yield %183 : i1
    } -> tensor<2x4x17x17xi1>
    %58 = tensor.empty() : tensor<2x4x17x1xi1>
    %59 = linalg.fill ins(%true : i1) outs(%58 : tensor<2x4x17x1xi1>) -> tensor<2x4x17x1xi1>
    %60 = linalg.generic {indexing_maps = [#map5, #map7], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%57 : tensor<2x4x17x17xi1>) outs(%59 : tensor<2x4x17x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %182 = arith.andi %in, %out : i1
      linalg.yield %182 : i1
    } -> tensor<2x4x17x1xi1>
    %61 = linalg.generic {indexing_maps = [#map7, #map5, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%60, %cst_4, %55 : tensor<2x4x17x1xi1>, tensor<2x4x17x17xf32>, tensor<2x4x17x17xf32>) outs(%49 : tensor<2x4x17x17xf32>) {
    ^bb0(%in: i1, %in_73: f32, %in_74: f32, %out: f32):
      %182 = arith.select %in, %in_73, %in_74 : f32
      linalg.yield %182 : f32
    } -> tensor<2x4x17x17xf32>
    %collapsed_28 = tensor.collapse_shape %61 [[0, 1], [2], [3]] : tensor<2x4x17x17xf32> into tensor<8x17x17xf32>
    %collapsed_29 = tensor.collapse_shape %transposed_22 [[0, 1], [2], [3]] : tensor<2x4x17x64xf32> into tensor<8x17x64xf32>
    %62 = tensor.empty() : tensor<8x17x64xf32>
    %63 = linalg.fill ins(%cst : f32) outs(%62 : tensor<8x17x64xf32>) -> tensor<8x17x64xf32>
    %64 = linalg.batch_matmul {fp8.name = "layers.0.attention.matmul_1"} ins(%collapsed_28, %collapsed_29 : tensor<8x17x17xf32>, tensor<8x17x64xf32>) outs(%63 : tensor<8x17x64xf32>) -> tensor<8x17x64xf32>
    %expanded_30 = tensor.expand_shape %64 [[0, 1], [2], [3]] output_shape [2, 4, 17, 64] : tensor<8x17x64xf32> into tensor<2x4x17x64xf32>
    %65 = tensor.empty() : tensor<2x17x4x64xf32>
    %transposed_31 = linalg.transpose ins(%expanded_30 : tensor<2x4x17x64xf32>) outs(%65 : tensor<2x17x4x64xf32>) permutation = [0, 2, 1, 3] 
    %collapsed_32 = tensor.collapse_shape %transposed_31 [[0, 1], [2, 3]] : tensor<2x17x4x64xf32> into tensor<34x256xf32>
    %transposed_33 = linalg.transpose ins(%arg12 : tensor<256x256xf32>) outs(%28 : tensor<256x256xf32>) permutation = [1, 0] 
    %66 = linalg.matmul {fp8.name = "layers.0.attention.out"} ins(%collapsed_32, %transposed_33 : tensor<34x256xf32>, tensor<256x256xf32>) outs(%30 : tensor<34x256xf32>) -> tensor<34x256xf32>
    %expanded_34 = tensor.expand_shape %66 [[0, 1], [2]] output_shape [2, 17, 256] : tensor<34x256xf32> into tensor<2x17x256xf32>
    %67 = linalg.generic {indexing_maps = [#map1, #map4, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_34, %arg13 : tensor<2x17x256xf32>, tensor<256xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.addf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %68 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6, %67 : tensor<2x17x256xf32>, tensor<2x17x256xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.addf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %69 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%68 : tensor<2x17x256xf32>) outs(%7 : tensor<2x17x256xf64>) {
    ^bb0(%in: f32, %out: f64):
      %182 = arith.extf %in : f32 to f64
      linalg.yield %182 : f64
    } -> tensor<2x17x256xf64>
    %70 = linalg.generic {indexing_maps = [#map1, #map3], iterator_types = ["parallel", "parallel", "reduction"]} ins(%69 : tensor<2x17x256xf64>) outs(%10 : tensor<2x17x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %182 = arith.addf %in, %out : f64
      linalg.yield %182 : f64
    } -> tensor<2x17x1xf64>
    %71 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%70 : tensor<2x17x1xf64>) outs(%9 : tensor<2x17x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %182 = arith.divf %in, %cst_8 : f64
      linalg.yield %182 : f64
    } -> tensor<2x17x1xf64>
    %72 = linalg.generic {indexing_maps = [#map1, #map3, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%69, %71 : tensor<2x17x256xf64>, tensor<2x17x1xf64>) outs(%7 : tensor<2x17x256xf64>) {
    ^bb0(%in: f64, %in_73: f64, %out: f64):
      %182 = arith.subf %in, %in_73 : f64
      linalg.yield %182 : f64
    } -> tensor<2x17x256xf64>
    %73 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%72, %72 : tensor<2x17x256xf64>, tensor<2x17x256xf64>) outs(%7 : tensor<2x17x256xf64>) {
    ^bb0(%in: f64, %in_73: f64, %out: f64):
      %182 = arith.mulf %in, %in_73 : f64
      linalg.yield %182 : f64
    } -> tensor<2x17x256xf64>
    %74 = linalg.generic {indexing_maps = [#map1, #map3], iterator_types = ["parallel", "parallel", "reduction"]} ins(%73 : tensor<2x17x256xf64>) outs(%10 : tensor<2x17x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %182 = arith.addf %in, %out : f64
      linalg.yield %182 : f64
    } -> tensor<2x17x1xf64>
    %75 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%74 : tensor<2x17x1xf64>) outs(%9 : tensor<2x17x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %182 = arith.divf %in, %cst_8 : f64
      linalg.yield %182 : f64
    } -> tensor<2x17x1xf64>
    %76 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%75 : tensor<2x17x1xf64>) outs(%17 : tensor<2x17x1xf32>) {
    ^bb0(%in: f64, %out: f32):
      %182 = arith.truncf %in : f64 to f32
      linalg.yield %182 : f32
    } -> tensor<2x17x1xf32>
    %77 = linalg.generic {indexing_maps = [#map1, #map3], iterator_types = ["parallel", "parallel", "reduction"]} ins(%68 : tensor<2x17x256xf32>) outs(%19 : tensor<2x17x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = arith.addf %in, %out : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x1xf32>
    %78 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%77 : tensor<2x17x1xf32>) outs(%17 : tensor<2x17x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = arith.divf %in, %cst_9 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x1xf32>
    %79 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%76 : tensor<2x17x1xf32>) outs(%17 : tensor<2x17x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = arith.truncf %cst_7 : f64 to f32
      %183 = arith.addf %in, %182 : f32
      linalg.yield %183 : f32
    } -> tensor<2x17x1xf32>
    %80 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%79 : tensor<2x17x1xf32>) outs(%17 : tensor<2x17x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = math.rsqrt %in : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x1xf32>
    %81 = linalg.generic {indexing_maps = [#map1, #map3, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%68, %78 : tensor<2x17x256xf32>, tensor<2x17x1xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.subf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %82 = linalg.generic {indexing_maps = [#map1, #map3, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%81, %80 : tensor<2x17x256xf32>, tensor<2x17x1xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.mulf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %83 = linalg.generic {indexing_maps = [#map1, #map4, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%82, %arg14 : tensor<2x17x256xf32>, tensor<256xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.mulf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %84 = linalg.generic {indexing_maps = [#map1, #map4, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%83, %arg15 : tensor<2x17x256xf32>, tensor<256xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.addf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %collapsed_35 = tensor.collapse_shape %84 [[0, 1], [2]] : tensor<2x17x256xf32> into tensor<34x256xf32>
    %85 = tensor.empty() : tensor<256x512xf32>
    %transposed_36 = linalg.transpose ins(%arg16 : tensor<512x256xf32>) outs(%85 : tensor<256x512xf32>) permutation = [1, 0] 
    %86 = tensor.empty() : tensor<34x512xf32>
    %87 = linalg.fill ins(%cst : f32) outs(%86 : tensor<34x512xf32>) -> tensor<34x512xf32>
    %88 = linalg.matmul {fp8.name = "layers.0.mlp.up"} ins(%collapsed_35, %transposed_36 : tensor<34x256xf32>, tensor<256x512xf32>) outs(%87 : tensor<34x512xf32>) -> tensor<34x512xf32>
    %expanded_37 = tensor.expand_shape %88 [[0, 1], [2]] output_shape [2, 17, 512] : tensor<34x512xf32> into tensor<2x17x512xf32>
    %89 = tensor.empty() : tensor<2x17x512xf32>
    %90 = linalg.generic {indexing_maps = [#map1, #map4, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_37, %arg17 : tensor<2x17x512xf32>, tensor<512xf32>) outs(%89 : tensor<2x17x512xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.addf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x512xf32>
    %91 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%90 : tensor<2x17x512xf32>) outs(%89 : tensor<2x17x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = arith.divf %in, %cst_10 : f32
      %183 = math.erf %182 : f32
      %184 = arith.addf %183, %cst_2 : f32
      %185 = arith.mulf %184, %cst_3 : f32
      %186 = arith.mulf %in, %185 : f32
      linalg.yield %186 : f32
    } -> tensor<2x17x512xf32>
    %collapsed_38 = tensor.collapse_shape %91 [[0, 1], [2]] : tensor<2x17x512xf32> into tensor<34x512xf32>
    %92 = tensor.empty() : tensor<512x256xf32>
    %transposed_39 = linalg.transpose ins(%arg18 : tensor<256x512xf32>) outs(%92 : tensor<512x256xf32>) permutation = [1, 0] 
    %93 = linalg.matmul {fp8.name = "layers.0.mlp.down"} ins(%collapsed_38, %transposed_39 : tensor<34x512xf32>, tensor<512x256xf32>) outs(%30 : tensor<34x256xf32>) -> tensor<34x256xf32>
    %expanded_40 = tensor.expand_shape %93 [[0, 1], [2]] output_shape [2, 17, 256] : tensor<34x256xf32> into tensor<2x17x256xf32>
    %94 = linalg.generic {indexing_maps = [#map1, #map4, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_40, %arg19 : tensor<2x17x256xf32>, tensor<256xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.addf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %95 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%68, %94 : tensor<2x17x256xf32>, tensor<2x17x256xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.addf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %96 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%95 : tensor<2x17x256xf32>) outs(%7 : tensor<2x17x256xf64>) {
    ^bb0(%in: f32, %out: f64):
      %182 = arith.extf %in : f32 to f64
      linalg.yield %182 : f64
    } -> tensor<2x17x256xf64>
    %97 = linalg.generic {indexing_maps = [#map1, #map3], iterator_types = ["parallel", "parallel", "reduction"]} ins(%96 : tensor<2x17x256xf64>) outs(%10 : tensor<2x17x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %182 = arith.addf %in, %out : f64
      linalg.yield %182 : f64
    } -> tensor<2x17x1xf64>
    %98 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%97 : tensor<2x17x1xf64>) outs(%9 : tensor<2x17x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %182 = arith.divf %in, %cst_8 : f64
      linalg.yield %182 : f64
    } -> tensor<2x17x1xf64>
    %99 = linalg.generic {indexing_maps = [#map1, #map3, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%96, %98 : tensor<2x17x256xf64>, tensor<2x17x1xf64>) outs(%7 : tensor<2x17x256xf64>) {
    ^bb0(%in: f64, %in_73: f64, %out: f64):
      %182 = arith.subf %in, %in_73 : f64
      linalg.yield %182 : f64
    } -> tensor<2x17x256xf64>
    %100 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%99, %99 : tensor<2x17x256xf64>, tensor<2x17x256xf64>) outs(%7 : tensor<2x17x256xf64>) {
    ^bb0(%in: f64, %in_73: f64, %out: f64):
      %182 = arith.mulf %in, %in_73 : f64
      linalg.yield %182 : f64
    } -> tensor<2x17x256xf64>
    %101 = linalg.generic {indexing_maps = [#map1, #map3], iterator_types = ["parallel", "parallel", "reduction"]} ins(%100 : tensor<2x17x256xf64>) outs(%10 : tensor<2x17x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %182 = arith.addf %in, %out : f64
      linalg.yield %182 : f64
    } -> tensor<2x17x1xf64>
    %102 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%101 : tensor<2x17x1xf64>) outs(%9 : tensor<2x17x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %182 = arith.divf %in, %cst_8 : f64
      linalg.yield %182 : f64
    } -> tensor<2x17x1xf64>
    %103 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%102 : tensor<2x17x1xf64>) outs(%17 : tensor<2x17x1xf32>) {
    ^bb0(%in: f64, %out: f32):
      %182 = arith.truncf %in : f64 to f32
      linalg.yield %182 : f32
    } -> tensor<2x17x1xf32>
    %104 = linalg.generic {indexing_maps = [#map1, #map3], iterator_types = ["parallel", "parallel", "reduction"]} ins(%95 : tensor<2x17x256xf32>) outs(%19 : tensor<2x17x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = arith.addf %in, %out : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x1xf32>
    %105 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%104 : tensor<2x17x1xf32>) outs(%17 : tensor<2x17x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = arith.divf %in, %cst_9 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x1xf32>
    %106 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%103 : tensor<2x17x1xf32>) outs(%17 : tensor<2x17x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = arith.truncf %cst_7 : f64 to f32
      %183 = arith.addf %in, %182 : f32
      linalg.yield %183 : f32
    } -> tensor<2x17x1xf32>
    %107 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%106 : tensor<2x17x1xf32>) outs(%17 : tensor<2x17x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = math.rsqrt %in : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x1xf32>
    %108 = linalg.generic {indexing_maps = [#map1, #map3, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%95, %105 : tensor<2x17x256xf32>, tensor<2x17x1xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.subf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %109 = linalg.generic {indexing_maps = [#map1, #map3, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%108, %107 : tensor<2x17x256xf32>, tensor<2x17x1xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.mulf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %110 = linalg.generic {indexing_maps = [#map1, #map4, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%109, %arg20 : tensor<2x17x256xf32>, tensor<256xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.mulf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %111 = linalg.generic {indexing_maps = [#map1, #map4, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%110, %arg21 : tensor<2x17x256xf32>, tensor<256xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.addf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %collapsed_41 = tensor.collapse_shape %111 [[0, 1], [2]] : tensor<2x17x256xf32> into tensor<34x256xf32>
    %transposed_42 = linalg.transpose ins(%arg22 : tensor<256x256xf32>) outs(%28 : tensor<256x256xf32>) permutation = [1, 0] 
    %112 = linalg.matmul {fp8.name = "layers.1.attention.q"} ins(%collapsed_41, %transposed_42 : tensor<34x256xf32>, tensor<256x256xf32>) outs(%30 : tensor<34x256xf32>) -> tensor<34x256xf32>
    %expanded_43 = tensor.expand_shape %112 [[0, 1], [2]] output_shape [2, 17, 256] : tensor<34x256xf32> into tensor<2x17x256xf32>
    %113 = linalg.generic {indexing_maps = [#map1, #map4, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_43, %arg23 : tensor<2x17x256xf32>, tensor<256xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.addf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %expanded_44 = tensor.expand_shape %113 [[0], [1], [2, 3]] output_shape [2, 17, 4, 64] : tensor<2x17x256xf32> into tensor<2x17x4x64xf32>
    %transposed_45 = linalg.transpose ins(%expanded_44 : tensor<2x17x4x64xf32>) outs(%33 : tensor<2x4x17x64xf32>) permutation = [0, 2, 1, 3] 
    %transposed_46 = linalg.transpose ins(%arg24 : tensor<256x256xf32>) outs(%28 : tensor<256x256xf32>) permutation = [1, 0] 
    %114 = linalg.matmul {fp8.name = "layers.1.attention.k"} ins(%collapsed_41, %transposed_46 : tensor<34x256xf32>, tensor<256x256xf32>) outs(%30 : tensor<34x256xf32>) -> tensor<34x256xf32>
    %expanded_47 = tensor.expand_shape %114 [[0, 1], [2]] output_shape [2, 17, 256] : tensor<34x256xf32> into tensor<2x17x256xf32>
    %115 = linalg.generic {indexing_maps = [#map1, #map4, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_47, %arg25 : tensor<2x17x256xf32>, tensor<256xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.addf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %expanded_48 = tensor.expand_shape %115 [[0], [1], [2, 3]] output_shape [2, 17, 4, 64] : tensor<2x17x256xf32> into tensor<2x17x4x64xf32>
    %transposed_49 = linalg.transpose ins(%arg26 : tensor<256x256xf32>) outs(%28 : tensor<256x256xf32>) permutation = [1, 0] 
    %116 = linalg.matmul {fp8.name = "layers.1.attention.v"} ins(%collapsed_41, %transposed_49 : tensor<34x256xf32>, tensor<256x256xf32>) outs(%30 : tensor<34x256xf32>) -> tensor<34x256xf32>
    %expanded_50 = tensor.expand_shape %116 [[0, 1], [2]] output_shape [2, 17, 256] : tensor<34x256xf32> into tensor<2x17x256xf32>
    %117 = linalg.generic {indexing_maps = [#map1, #map4, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_50, %arg27 : tensor<2x17x256xf32>, tensor<256xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.addf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %expanded_51 = tensor.expand_shape %117 [[0], [1], [2, 3]] output_shape [2, 17, 4, 64] : tensor<2x17x256xf32> into tensor<2x17x4x64xf32>
    %transposed_52 = linalg.transpose ins(%expanded_51 : tensor<2x17x4x64xf32>) outs(%33 : tensor<2x4x17x64xf32>) permutation = [0, 2, 1, 3] 
    %118 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_45 : tensor<2x4x17x64xf32>) outs(%33 : tensor<2x4x17x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = arith.truncf %cst_6 : f64 to f32
      %183 = arith.mulf %in, %182 : f32
      linalg.yield %183 : f32
    } -> tensor<2x4x17x64xf32>
    %transposed_53 = linalg.transpose ins(%expanded_48 : tensor<2x17x4x64xf32>) outs(%39 : tensor<2x4x64x17xf32>) permutation = [0, 2, 3, 1] 
    %119 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_53 : tensor<2x4x64x17xf32>) outs(%39 : tensor<2x4x64x17xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = arith.truncf %cst_6 : f64 to f32
      %183 = arith.mulf %in, %182 : f32
      linalg.yield %183 : f32
    } -> tensor<2x4x64x17xf32>
    %collapsed_54 = tensor.collapse_shape %118 [[0, 1], [2], [3]] : tensor<2x4x17x64xf32> into tensor<8x17x64xf32>
    %collapsed_55 = tensor.collapse_shape %119 [[0, 1], [2], [3]] : tensor<2x4x64x17xf32> into tensor<8x64x17xf32>
    %120 = linalg.batch_matmul {fp8.name = "layers.1.attention.matmul"} ins(%collapsed_54, %collapsed_55 : tensor<8x17x64xf32>, tensor<8x64x17xf32>) outs(%42 : tensor<8x17x17xf32>) -> tensor<8x17x17xf32>
    %expanded_56 = tensor.expand_shape %120 [[0, 1], [2], [3]] output_shape [2, 4, 17, 17] : tensor<8x17x17xf32> into tensor<2x4x17x17xf32>
    %121:2 = linalg.generic {indexing_maps = [#map5, #map6, #map6], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%expanded_56 : tensor<2x4x17x17xf32>) outs(%47, %45 : tensor<2x4x17xf32>, tensor<2x4x17xi64>) {
    ^bb0(%in: f32, %out: f32, %out_73: i64):
      %182 = linalg.index 3 : index
      %183 = arith.index_cast %182 : index to i64
      %184 = arith.maximumf %in, %out : f32
      %185 = arith.cmpf ogt, %in, %out : f32
      %186 = arith.select %185, %183, %out_73 : i64
      linalg.yield %184, %186 : f32, i64
    } -> (tensor<2x4x17xf32>, tensor<2x4x17xi64>)
    %expanded_57 = tensor.expand_shape %121#0 [[0], [1], [2, 3]] output_shape [2, 4, 17, 1] : tensor<2x4x17xf32> into tensor<2x4x17x1xf32>
    %122 = linalg.generic {indexing_maps = [#map5, #map7, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_56, %expanded_57 : tensor<2x4x17x17xf32>, tensor<2x4x17x1xf32>) outs(%49 : tensor<2x4x17x17xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.subf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x4x17x17xf32>
    %123 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%122 : tensor<2x4x17x17xf32>) outs(%49 : tensor<2x4x17x17xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = math.exp %in : f32
      linalg.yield %182 : f32
    } -> tensor<2x4x17x17xf32>
    %124 = linalg.generic {indexing_maps = [#map5, #map7], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%123 : tensor<2x4x17x17xf32>) outs(%53 : tensor<2x4x17x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = arith.addf %in, %out : f32
      linalg.yield %182 : f32
    } -> tensor<2x4x17x1xf32>
    %125 = linalg.generic {indexing_maps = [#map5, #map7, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%123, %124 : tensor<2x4x17x17xf32>, tensor<2x4x17x1xf32>) outs(%49 : tensor<2x4x17x17xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.divf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x4x17x17xf32>
    %126 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_56 : tensor<2x4x17x17xf32>) outs(%56 : tensor<2x4x17x17xi1>) {
    ^bb0(%in: f32, %out: i1):
      %182 = arith.extf %in : f32 to f64
      %183 = arith.cmpf oeq, %182, %cst_5 : f64
      linalg.yield %183 : i1
    } -> tensor<2x4x17x17xi1>
    %127 = linalg.generic {indexing_maps = [#map5, #map7], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%126 : tensor<2x4x17x17xi1>) outs(%59 : tensor<2x4x17x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %182 = arith.andi %in, %out : i1
      linalg.yield %182 : i1
    } -> tensor<2x4x17x1xi1>
    %128 = linalg.generic {indexing_maps = [#map7, #map5, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%127, %cst_4, %125 : tensor<2x4x17x1xi1>, tensor<2x4x17x17xf32>, tensor<2x4x17x17xf32>) outs(%49 : tensor<2x4x17x17xf32>) {
    ^bb0(%in: i1, %in_73: f32, %in_74: f32, %out: f32):
      %182 = arith.select %in, %in_73, %in_74 : f32
      linalg.yield %182 : f32
    } -> tensor<2x4x17x17xf32>
    %collapsed_58 = tensor.collapse_shape %128 [[0, 1], [2], [3]] : tensor<2x4x17x17xf32> into tensor<8x17x17xf32>
    %collapsed_59 = tensor.collapse_shape %transposed_52 [[0, 1], [2], [3]] : tensor<2x4x17x64xf32> into tensor<8x17x64xf32>
    %129 = linalg.batch_matmul {fp8.name = "layers.1.attention.matmul_1"} ins(%collapsed_58, %collapsed_59 : tensor<8x17x17xf32>, tensor<8x17x64xf32>) outs(%63 : tensor<8x17x64xf32>) -> tensor<8x17x64xf32>
    %expanded_60 = tensor.expand_shape %129 [[0, 1], [2], [3]] output_shape [2, 4, 17, 64] : tensor<8x17x64xf32> into tensor<2x4x17x64xf32>
    %transposed_61 = linalg.transpose ins(%expanded_60 : tensor<2x4x17x64xf32>) outs(%65 : tensor<2x17x4x64xf32>) permutation = [0, 2, 1, 3] 
    %collapsed_62 = tensor.collapse_shape %transposed_61 [[0, 1], [2, 3]] : tensor<2x17x4x64xf32> into tensor<34x256xf32>
    %transposed_63 = linalg.transpose ins(%arg28 : tensor<256x256xf32>) outs(%28 : tensor<256x256xf32>) permutation = [1, 0] 
    %130 = linalg.matmul {fp8.name = "layers.1.attention.out"} ins(%collapsed_62, %transposed_63 : tensor<34x256xf32>, tensor<256x256xf32>) outs(%30 : tensor<34x256xf32>) -> tensor<34x256xf32>
    %expanded_64 = tensor.expand_shape %130 [[0, 1], [2]] output_shape [2, 17, 256] : tensor<34x256xf32> into tensor<2x17x256xf32>
    %131 = linalg.generic {indexing_maps = [#map1, #map4, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_64, %arg29 : tensor<2x17x256xf32>, tensor<256xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.addf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %132 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%95, %131 : tensor<2x17x256xf32>, tensor<2x17x256xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.addf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %133 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%132 : tensor<2x17x256xf32>) outs(%7 : tensor<2x17x256xf64>) {
    ^bb0(%in: f32, %out: f64):
      %182 = arith.extf %in : f32 to f64
      linalg.yield %182 : f64
    } -> tensor<2x17x256xf64>
    %134 = linalg.generic {indexing_maps = [#map1, #map3], iterator_types = ["parallel", "parallel", "reduction"]} ins(%133 : tensor<2x17x256xf64>) outs(%10 : tensor<2x17x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %182 = arith.addf %in, %out : f64
      linalg.yield %182 : f64
    } -> tensor<2x17x1xf64>
    %135 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%134 : tensor<2x17x1xf64>) outs(%9 : tensor<2x17x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %182 = arith.divf %in, %cst_8 : f64
      linalg.yield %182 : f64
    } -> tensor<2x17x1xf64>
    %136 = linalg.generic {indexing_maps = [#map1, #map3, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%133, %135 : tensor<2x17x256xf64>, tensor<2x17x1xf64>) outs(%7 : tensor<2x17x256xf64>) {
    ^bb0(%in: f64, %in_73: f64, %out: f64):
      %182 = arith.subf %in, %in_73 : f64
      linalg.yield %182 : f64
    } -> tensor<2x17x256xf64>
    %137 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%136, %136 : tensor<2x17x256xf64>, tensor<2x17x256xf64>) outs(%7 : tensor<2x17x256xf64>) {
    ^bb0(%in: f64, %in_73: f64, %out: f64):
      %182 = arith.mulf %in, %in_73 : f64
      linalg.yield %182 : f64
    } -> tensor<2x17x256xf64>
    %138 = linalg.generic {indexing_maps = [#map1, #map3], iterator_types = ["parallel", "parallel", "reduction"]} ins(%137 : tensor<2x17x256xf64>) outs(%10 : tensor<2x17x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %182 = arith.addf %in, %out : f64
      linalg.yield %182 : f64
    } -> tensor<2x17x1xf64>
    %139 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%138 : tensor<2x17x1xf64>) outs(%9 : tensor<2x17x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %182 = arith.divf %in, %cst_8 : f64
      linalg.yield %182 : f64
    } -> tensor<2x17x1xf64>
    %140 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%139 : tensor<2x17x1xf64>) outs(%17 : tensor<2x17x1xf32>) {
    ^bb0(%in: f64, %out: f32):
      %182 = arith.truncf %in : f64 to f32
      linalg.yield %182 : f32
    } -> tensor<2x17x1xf32>
    %141 = linalg.generic {indexing_maps = [#map1, #map3], iterator_types = ["parallel", "parallel", "reduction"]} ins(%132 : tensor<2x17x256xf32>) outs(%19 : tensor<2x17x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = arith.addf %in, %out : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x1xf32>
    %142 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%141 : tensor<2x17x1xf32>) outs(%17 : tensor<2x17x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = arith.divf %in, %cst_9 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x1xf32>
    %143 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%140 : tensor<2x17x1xf32>) outs(%17 : tensor<2x17x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = arith.truncf %cst_7 : f64 to f32
      %183 = arith.addf %in, %182 : f32
      linalg.yield %183 : f32
    } -> tensor<2x17x1xf32>
    %144 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%143 : tensor<2x17x1xf32>) outs(%17 : tensor<2x17x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = math.rsqrt %in : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x1xf32>
    %145 = linalg.generic {indexing_maps = [#map1, #map3, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%132, %142 : tensor<2x17x256xf32>, tensor<2x17x1xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.subf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %146 = linalg.generic {indexing_maps = [#map1, #map3, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%145, %144 : tensor<2x17x256xf32>, tensor<2x17x1xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.mulf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %147 = linalg.generic {indexing_maps = [#map1, #map4, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%146, %arg30 : tensor<2x17x256xf32>, tensor<256xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.mulf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %148 = linalg.generic {indexing_maps = [#map1, #map4, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%147, %arg31 : tensor<2x17x256xf32>, tensor<256xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.addf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %collapsed_65 = tensor.collapse_shape %148 [[0, 1], [2]] : tensor<2x17x256xf32> into tensor<34x256xf32>
    %transposed_66 = linalg.transpose ins(%arg32 : tensor<512x256xf32>) outs(%85 : tensor<256x512xf32>) permutation = [1, 0] 
    %149 = linalg.matmul {fp8.name = "layers.1.mlp.up"} ins(%collapsed_65, %transposed_66 : tensor<34x256xf32>, tensor<256x512xf32>) outs(%87 : tensor<34x512xf32>) -> tensor<34x512xf32>
    %expanded_67 = tensor.expand_shape %149 [[0, 1], [2]] output_shape [2, 17, 512] : tensor<34x512xf32> into tensor<2x17x512xf32>
    %150 = linalg.generic {indexing_maps = [#map1, #map4, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_67, %arg33 : tensor<2x17x512xf32>, tensor<512xf32>) outs(%89 : tensor<2x17x512xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.addf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x512xf32>
    %151 = linalg.generic {indexing_maps = [#map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%150 : tensor<2x17x512xf32>) outs(%89 : tensor<2x17x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = arith.divf %in, %cst_10 : f32
      %183 = math.erf %182 : f32
      %184 = arith.addf %183, %cst_2 : f32
      %185 = arith.mulf %184, %cst_3 : f32
      %186 = arith.mulf %in, %185 : f32
      linalg.yield %186 : f32
    } -> tensor<2x17x512xf32>
    %collapsed_68 = tensor.collapse_shape %151 [[0, 1], [2]] : tensor<2x17x512xf32> into tensor<34x512xf32>
    %transposed_69 = linalg.transpose ins(%arg34 : tensor<256x512xf32>) outs(%92 : tensor<512x256xf32>) permutation = [1, 0] 
    %152 = linalg.matmul {fp8.name = "layers.1.mlp.down"} ins(%collapsed_68, %transposed_69 : tensor<34x512xf32>, tensor<512x256xf32>) outs(%30 : tensor<34x256xf32>) -> tensor<34x256xf32>
    %expanded_70 = tensor.expand_shape %152 [[0, 1], [2]] output_shape [2, 17, 256] : tensor<34x256xf32> into tensor<2x17x256xf32>
    %153 = linalg.generic {indexing_maps = [#map1, #map4, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_70, %arg35 : tensor<2x17x256xf32>, tensor<256xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.addf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %154 = linalg.generic {indexing_maps = [#map1, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel"]} ins(%132, %153 : tensor<2x17x256xf32>, tensor<2x17x256xf32>) outs(%5 : tensor<2x17x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.addf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x17x256xf32>
    %extracted_slice = tensor.extract_slice %154[0, 0, 0] [2, 1, 256] [1, 1, 1] : tensor<2x17x256xf32> to tensor<2x1x256xf32>
    %collapsed_71 = tensor.collapse_shape %extracted_slice [[0, 1], [2]] : tensor<2x1x256xf32> into tensor<2x256xf32>
    %155 = tensor.empty() : tensor<2x256xf64>
    %156 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel"]} ins(%collapsed_71 : tensor<2x256xf32>) outs(%155 : tensor<2x256xf64>) {
    ^bb0(%in: f32, %out: f64):
      %182 = arith.extf %in : f32 to f64
      linalg.yield %182 : f64
    } -> tensor<2x256xf64>
    %157 = tensor.empty() : tensor<2x1xf64>
    %158 = linalg.fill ins(%cst_0 : f64) outs(%157 : tensor<2x1xf64>) -> tensor<2x1xf64>
    %159 = linalg.generic {indexing_maps = [#map8, #map9], iterator_types = ["parallel", "reduction"]} ins(%156 : tensor<2x256xf64>) outs(%158 : tensor<2x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %182 = arith.addf %in, %out : f64
      linalg.yield %182 : f64
    } -> tensor<2x1xf64>
    %160 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel"]} ins(%159 : tensor<2x1xf64>) outs(%157 : tensor<2x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %182 = arith.divf %in, %cst_8 : f64
      linalg.yield %182 : f64
    } -> tensor<2x1xf64>
    %161 = linalg.generic {indexing_maps = [#map8, #map9, #map8], iterator_types = ["parallel", "parallel"]} ins(%156, %160 : tensor<2x256xf64>, tensor<2x1xf64>) outs(%155 : tensor<2x256xf64>) {
    ^bb0(%in: f64, %in_73: f64, %out: f64):
      %182 = arith.subf %in, %in_73 : f64
      linalg.yield %182 : f64
    } -> tensor<2x256xf64>
    %162 = linalg.generic {indexing_maps = [#map8, #map8, #map8], iterator_types = ["parallel", "parallel"]} ins(%161, %161 : tensor<2x256xf64>, tensor<2x256xf64>) outs(%155 : tensor<2x256xf64>) {
    ^bb0(%in: f64, %in_73: f64, %out: f64):
      %182 = arith.mulf %in, %in_73 : f64
      linalg.yield %182 : f64
    } -> tensor<2x256xf64>
    %163 = linalg.generic {indexing_maps = [#map8, #map9], iterator_types = ["parallel", "reduction"]} ins(%162 : tensor<2x256xf64>) outs(%158 : tensor<2x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %182 = arith.addf %in, %out : f64
      linalg.yield %182 : f64
    } -> tensor<2x1xf64>
    %164 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel"]} ins(%163 : tensor<2x1xf64>) outs(%157 : tensor<2x1xf64>) {
    ^bb0(%in: f64, %out: f64):
      %182 = arith.divf %in, %cst_8 : f64
      linalg.yield %182 : f64
    } -> tensor<2x1xf64>
    %165 = tensor.empty() : tensor<2x1xf32>
    %166 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel"]} ins(%164 : tensor<2x1xf64>) outs(%165 : tensor<2x1xf32>) {
    ^bb0(%in: f64, %out: f32):
      %182 = arith.truncf %in : f64 to f32
      linalg.yield %182 : f32
    } -> tensor<2x1xf32>
    %167 = linalg.fill ins(%cst : f32) outs(%165 : tensor<2x1xf32>) -> tensor<2x1xf32>
    %168 = linalg.generic {indexing_maps = [#map8, #map9], iterator_types = ["parallel", "reduction"]} ins(%collapsed_71 : tensor<2x256xf32>) outs(%167 : tensor<2x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = arith.addf %in, %out : f32
      linalg.yield %182 : f32
    } -> tensor<2x1xf32>
    %169 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel"]} ins(%168 : tensor<2x1xf32>) outs(%165 : tensor<2x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = arith.divf %in, %cst_9 : f32
      linalg.yield %182 : f32
    } -> tensor<2x1xf32>
    %170 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel"]} ins(%166 : tensor<2x1xf32>) outs(%165 : tensor<2x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = arith.truncf %cst_7 : f64 to f32
      %183 = arith.addf %in, %182 : f32
      linalg.yield %183 : f32
    } -> tensor<2x1xf32>
    %171 = linalg.generic {indexing_maps = [#map8, #map8], iterator_types = ["parallel", "parallel"]} ins(%170 : tensor<2x1xf32>) outs(%165 : tensor<2x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %182 = math.rsqrt %in : f32
      linalg.yield %182 : f32
    } -> tensor<2x1xf32>
    %172 = tensor.empty() : tensor<2x256xf32>
    %173 = linalg.generic {indexing_maps = [#map8, #map9, #map8], iterator_types = ["parallel", "parallel"]} ins(%collapsed_71, %169 : tensor<2x256xf32>, tensor<2x1xf32>) outs(%172 : tensor<2x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.subf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x256xf32>
    %174 = linalg.generic {indexing_maps = [#map8, #map9, #map8], iterator_types = ["parallel", "parallel"]} ins(%173, %171 : tensor<2x256xf32>, tensor<2x1xf32>) outs(%172 : tensor<2x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.mulf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x256xf32>
    %175 = linalg.generic {indexing_maps = [#map8, #map10, #map8], iterator_types = ["parallel", "parallel"]} ins(%174, %arg36 : tensor<2x256xf32>, tensor<256xf32>) outs(%172 : tensor<2x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.mulf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x256xf32>
    %176 = linalg.generic {indexing_maps = [#map8, #map10, #map8], iterator_types = ["parallel", "parallel"]} ins(%175, %arg37 : tensor<2x256xf32>, tensor<256xf32>) outs(%172 : tensor<2x256xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.addf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x256xf32>
    %177 = tensor.empty() : tensor<256x100xf32>
    %transposed_72 = linalg.transpose ins(%arg38 : tensor<100x256xf32>) outs(%177 : tensor<256x100xf32>) permutation = [1, 0] 
    %178 = tensor.empty() : tensor<2x100xf32>
    %179 = linalg.fill ins(%cst : f32) outs(%178 : tensor<2x100xf32>) -> tensor<2x100xf32>
    %180 = linalg.matmul {fp8.name = "head"} ins(%176, %transposed_72 : tensor<2x256xf32>, tensor<256x100xf32>) outs(%179 : tensor<2x100xf32>) -> tensor<2x100xf32>
    %181 = linalg.generic {indexing_maps = [#map8, #map10, #map8], iterator_types = ["parallel", "parallel"]} ins(%180, %arg39 : tensor<2x100xf32>, tensor<100xf32>) outs(%178 : tensor<2x100xf32>) {
    ^bb0(%in: f32, %in_73: f32, %out: f32):
      %182 = arith.addf %in, %in_73 : f32
      linalg.yield %182 : f32
    } -> tensor<2x100xf32>
    return %181 : tensor<2x100xf32>
  }
}
