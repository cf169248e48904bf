#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
#map3 = affine_map<(d0, d1, d2) -> (d2)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d2, d1, d3)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map6 = affine_map<(d0, d1, d2, d3) -> (d0, d3, d1, d2)>
#map7 = affine_map<(d0, d1) -> (d0, d1)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map9 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map10 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3, d2)>
#map11 = affine_map<(d0, d1, d2, d3) -> (d0, d2, d3, d1)>
module @jit_forward {
  func.func public @attention(%arg0: tensor<256xf32> {fp8.name = "attention.norm"}, %arg1: tensor<256x256xf32> {fp8.name = "attention.out", fp8.weight}, %arg2: tensor<256x768xf32> {fp8.name = "attention.qkv", fp8.weight}, %arg3: tensor<512x256xf32> {fp8.name = "mlp.down", fp8.weight}, %arg4: tensor<256xf32> {fp8.name = "mlp.norm"}, %arg5: tensor<256x512xf32> {fp8.name = "mlp.up", fp8.weight}, %arg6: tensor<2x64x256xf32> {fp8.name = "x"}) -> tensor<2x64x256xf32> {
    %cst = arith.constant 1.12837911 : f32
    %cst_0 = arith.constant -0.37612626 : f32
    %cst_1 = arith.constant 0.112835854 : f32
    %cst_2 = arith.constant -0.0268538129 : f32
    %cst_3 = arith.constant 0.00518832775 : f32
    %cst_4 = arith.constant -8.0101937E-4 : f32
    %cst_5 = arith.constant 7.85386146E-5 : f32
    %cst_6 = arith.constant -88.7228394 : f32
    %cst_7 = arith.constant 0.564189494 : f32
    %cst_8 = arith.constant -0.282076746 : f32
    %cst_9 = arith.constant 0.42184633 : f32
    %cst_10 = arith.constant -1.01526523 : f32
    %cst_11 = arith.constant 2.92101908 : f32
    %cst_12 = arith.constant -7.49551868 : f32
    %cst_13 = arith.constant 1.297720e+01 : f32
    %cst_14 = arith.constant -10.477664 : f32
    %cst_15 = arith.constant 0.563825965 : f32
    %cst_16 = arith.constant -0.274112701 : f32
    %cst_17 = arith.constant 3.404880e-01 : f32
    %cst_18 = arith.constant -0.494451523 : f32
    %cst_19 = arith.constant 0.621000468 : f32
    %cst_20 = arith.constant -0.582473278 : f32
    %cst_21 = arith.constant 0.368742466 : f32
    %cst_22 = arith.constant -0.138703942 : f32
    %cst_23 = arith.constant 2.326820e-02 : f32
    %cst_24 = arith.constant 2.000000e+00 : f32
    %cst_25 = arith.constant 1.000000e+00 : f32
    %cst_26 = arith.constant 0.707106769 : f32
    %cst_27 = arith.constant 5.000000e-01 : f32
    %cst_28 = arith.constant 0xFF800000 : f32
    %cst_29 = arith.constant -1.000000e+09 : f32
    %cst_30 = arith.constant 8.000000e+00 : f32
    %cst_31 = arith.constant 9.99999974E-6 : f32
    %cst_32 = arith.constant 2.560000e+02 : f32
    %cst_33 = arith.constant 0.000000e+00 : f32
    %0 = tensor.empty() : tensor<2x64x256xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg6 : tensor<2x64x256xf32>) outs(%0 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.mulf %in, %in : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x256xf32>
    %2 = tensor.empty() : tensor<2x64xf32>
    %3 = linalg.fill ins(%cst_33 : f32) outs(%2 : tensor<2x64xf32>) -> tensor<2x64xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%1 : tensor<2x64x256xf32>) outs(%3 : tensor<2x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.addf %out, %in : f32
      linalg.yield %228 : f32
    } -> tensor<2x64xf32>
    %expanded = tensor.expand_shape %4 [[0], [1, 2]] output_shape [2, 64, 1] : tensor<2x64xf32> into tensor<2x64x1xf32>
    %5 = tensor.empty() : tensor<2x64x1xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded : tensor<2x64x1xf32>) outs(%5 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.divf %in, %cst_32 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x1xf32>
    %7 = tensor.empty() : tensor<2x64x1xf32>
    %8 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%6 : tensor<2x64x1xf32>) outs(%7 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.addf %in, %cst_31 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x1xf32>
    %9 = tensor.empty() : tensor<2x64x1xf32>
    %10 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%8 : tensor<2x64x1xf32>) outs(%9 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = math.rsqrt %in : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x1xf32>
    %11 = tensor.empty() : tensor<2x64x256xf32>
    %12 = linalg.generic {indexing_maps = [#map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%10 : tensor<2x64x1xf32>) outs(%11 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x64x256xf32>
    %13 = tensor.empty() : tensor<2x64x256xf32>
    %14 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg6, %12 : tensor<2x64x256xf32>, tensor<2x64x256xf32>) outs(%13 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.mulf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x256xf32>
    %15 = tensor.empty() : tensor<2x64x256xf32>
    %16 = linalg.generic {indexing_maps = [#map3, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0 : tensor<256xf32>) outs(%15 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x64x256xf32>
    %17 = tensor.empty() : tensor<2x64x256xf32>
    %18 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%14, %16 : tensor<2x64x256xf32>, tensor<2x64x256xf32>) outs(%17 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.mulf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x256xf32>
    %collapsed = tensor.collapse_shape %18 [[0, 1], [2]] : tensor<2x64x256xf32> into tensor<128x256xf32>
    %19 = tensor.empty() : tensor<128x768xf32>
    %20 = linalg.fill ins(%cst_33 : f32) outs(%19 : tensor<128x768xf32>) -> tensor<128x768xf32>
    %21 = linalg.matmul {fp8.name = "attention.qkv"} ins(%collapsed, %arg2 : tensor<128x256xf32>, tensor<256x768xf32>) outs(%20 : tensor<128x768xf32>) -> tensor<128x768xf32>
    %expanded_34 = tensor.expand_shape %21 [[0, 1], [2]] output_shape [2, 64, 768] : tensor<128x768xf32> into tensor<2x64x768xf32>
    %extracted_slice = tensor.extract_slice %expanded_34[0, 0, 0] [2, 64, 256] [1, 1, 1] : tensor<2x64x768xf32> to tensor<2x64x256xf32>
    %extracted_slice_35 = tensor.extract_slice %expanded_34[0, 0, 256] [2, 64, 256] [1, 1, 1] : tensor<2x64x768xf32> to tensor<2x64x256xf32>
    %extracted_slice_36 = tensor.extract_slice %expanded_34[0, 0, 512] [2, 64, 256] [1, 1, 1] : tensor<2x64x768xf32> to tensor<2x64x256xf32>
    %expanded_37 = tensor.expand_shape %extracted_slice [[0], [1], [2, 3]] output_shape [2, 64, 4, 64] : tensor<2x64x256xf32> into tensor<2x64x4x64xf32>
    %expanded_38 = tensor.expand_shape %extracted_slice_35 [[0], [1], [2, 3]] output_shape [2, 64, 4, 64] : tensor<2x64x256xf32> into tensor<2x64x4x64xf32>
    %22 = tensor.empty() : tensor<2x4x64x64xf32>
    %23 = linalg.generic {indexing_maps = [#map4, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_37 : tensor<2x64x4x64xf32>) outs(%22 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x64x64xf32>
    %24 = tensor.empty() : tensor<2x4x64x64xf32>
    %25 = linalg.generic {indexing_maps = [#map6, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_38 : tensor<2x64x4x64xf32>) outs(%24 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x64x64xf32>
    %collapsed_39 = tensor.collapse_shape %23 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %collapsed_40 = tensor.collapse_shape %25 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %26 = tensor.empty() : tensor<8x64x64xf32>
    %27 = linalg.fill ins(%cst_33 : f32) outs(%26 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %28 = linalg.batch_matmul {fp8.name = "attention.scores"} ins(%collapsed_39, %collapsed_40 : tensor<8x64x64xf32>, tensor<8x64x64xf32>) outs(%27 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %expanded_41 = tensor.expand_shape %28 [[0, 1], [2], [3]] output_shape [2, 4, 64, 64] : tensor<8x64x64xf32> into tensor<2x4x64x64xf32>
    %29 = tensor.empty() : tensor<2x4x64x64xf32>
    %30 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_41 : tensor<2x4x64x64xf32>) outs(%29 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.divf %in, %cst_30 : f32
      linalg.yield %228 : f32
    } -> tensor<2x4x64x64xf32>
    %31 = tensor.empty() : tensor<64x64xi32>
    %32 = linalg.generic {indexing_maps = [#map7], iterator_types = ["parallel", "parallel"]} outs(%31 : tensor<64x64xi32>) {
    ^bb0(%out: i32):
      %228 = linalg.index 0 : index
      %229 = arith.index_cast %228 : index to i32
      linalg.yield %229 : i32
    } -> tensor<64x64xi32>
    %33 = tensor.empty() : tensor<64x64xi32>
    %34 = linalg.generic {indexing_maps = [#map7], iterator_types = ["parallel", "parallel"]} outs(%33 : tensor<64x64xi32>) {
    ^bb0(%out: i32):
      %228 = linalg.index 1 : index
      %229 = arith.index_cast %228 : index to i32
      linalg.yield %229 : i32
    } -> tensor<64x64xi32>
    %35 = tensor.empty() : tensor<64x64xi1>
    %36 = linalg.generic {indexing_maps = [#map7, #map7, #map7], iterator_types = ["parallel", "parallel"]} ins(%32, %34 : tensor<64x64xi32>, tensor<64x64xi32>) outs(%35 : tensor<64x64xi1>) {
    ^bb0(%in: i32, %in_53: i32, %out: i1):
      %228 = arith.cmpi sge, %in, %in_53 : i32
      linalg.yield %228 : i1
    } -> tensor<64x64xi1>
    %37 = tensor.empty() : tensor<2x4x64x64xi1>
    %38 = linalg.generic {indexing_maps = [#map8, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%36 : tensor<64x64xi1>) outs(%37 : tensor<2x4x64x64xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<2x4x64x64xi1>
    %39 = tensor.empty() : tensor<2x4x64x64xf32>
    %40 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%38, %30 : tensor<2x4x64x64xi1>, tensor<2x4x64x64xf32>) outs(%39 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: i1, %in_53: f32, %out: f32):
      %228 = arith.select %in, %in_53, %cst_29 : f32
      linalg.yield %228 : f32
    } -> tensor<2x4x64x64xf32>
    %41 = tensor.empty() : tensor<2x4x64xf32>
    %42 = linalg.fill ins(%cst_28 : f32) outs(%41 : tensor<2x4x64xf32>) -> tensor<2x4x64xf32>
    %43 = linalg.generic {indexing_maps = [#map5, #map9], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%40 : tensor<2x4x64x64xf32>) outs(%42 : tensor<2x4x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.maximumf %out, %in : f32
      linalg.yield %228 : f32
    } -> tensor<2x4x64xf32>
    %44 = tensor.empty() : tensor<2x4x64x64xf32>
    %45 = linalg.generic {indexing_maps = [#map9, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%43 : tensor<2x4x64xf32>) outs(%44 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x64x64xf32>
    %46 = tensor.empty() : tensor<2x4x64x64xf32>
    %47 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%40, %45 : tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) outs(%46 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.subf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x4x64x64xf32>
    %48 = tensor.empty() : tensor<2x4x64x64xf32>
    %49 = linalg.generic {indexing_maps = [#map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%47 : tensor<2x4x64x64xf32>) outs(%48 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = math.exp %in : f32
      linalg.yield %228 : f32
    } -> tensor<2x4x64x64xf32>
    %50 = tensor.empty() : tensor<2x4x64xf32>
    %51 = linalg.fill ins(%cst_33 : f32) outs(%50 : tensor<2x4x64xf32>) -> tensor<2x4x64xf32>
    %52 = linalg.generic {indexing_maps = [#map5, #map9], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%49 : tensor<2x4x64x64xf32>) outs(%51 : tensor<2x4x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.addf %out, %in : f32
      linalg.yield %228 : f32
    } -> tensor<2x4x64xf32>
    %53 = tensor.empty() : tensor<2x4x64x64xf32>
    %54 = linalg.generic {indexing_maps = [#map9, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%52 : tensor<2x4x64xf32>) outs(%53 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x64x64xf32>
    %55 = tensor.empty() : tensor<2x4x64x64xf32>
    %56 = linalg.generic {indexing_maps = [#map5, #map5, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%49, %54 : tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) outs(%55 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.divf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x4x64x64xf32>
    %expanded_42 = tensor.expand_shape %extracted_slice_36 [[0], [1], [2, 3]] output_shape [2, 64, 4, 64] : tensor<2x64x256xf32> into tensor<2x64x4x64xf32>
    %57 = tensor.empty() : tensor<2x4x64x64xf32>
    %58 = linalg.generic {indexing_maps = [#map6, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_42 : tensor<2x64x4x64xf32>) outs(%57 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x64x64xf32>
    %59 = tensor.empty() : tensor<2x4x64x64xf32>
    %60 = linalg.generic {indexing_maps = [#map10, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%56 : tensor<2x4x64x64xf32>) outs(%59 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x64x64xf32>
    %collapsed_43 = tensor.collapse_shape %58 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %collapsed_44 = tensor.collapse_shape %60 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %61 = tensor.empty() : tensor<8x64x64xf32>
    %62 = linalg.fill ins(%cst_33 : f32) outs(%61 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %63 = linalg.batch_matmul {fp8.name = "attention.values"} ins(%collapsed_43, %collapsed_44 : tensor<8x64x64xf32>, tensor<8x64x64xf32>) outs(%62 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %expanded_45 = tensor.expand_shape %63 [[0, 1], [2], [3]] output_shape [2, 4, 64, 64] : tensor<8x64x64xf32> into tensor<2x4x64x64xf32>
    %64 = tensor.empty() : tensor<2x64x4x64xf32>
    %65 = linalg.generic {indexing_maps = [#map11, #map5], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_45 : tensor<2x4x64x64xf32>) outs(%64 : tensor<2x64x4x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x64x4x64xf32>
    %collapsed_46 = tensor.collapse_shape %65 [[0, 1], [2, 3]] : tensor<2x64x4x64xf32> into tensor<128x256xf32>
    %66 = tensor.empty() : tensor<128x256xf32>
    %67 = linalg.fill ins(%cst_33 : f32) outs(%66 : tensor<128x256xf32>) -> tensor<128x256xf32>
    %68 = linalg.matmul {fp8.name = "attention.out"} ins(%collapsed_46, %arg1 : tensor<128x256xf32>, tensor<256x256xf32>) outs(%67 : tensor<128x256xf32>) -> tensor<128x256xf32>
    %expanded_47 = tensor.expand_shape %68 [[0, 1], [2]] output_shape [2, 64, 256] : tensor<128x256xf32> into tensor<2x64x256xf32>
    %69 = tensor.empty() : tensor<2x64x256xf32>
    %70 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg6, %expanded_47 : tensor<2x64x256xf32>, tensor<2x64x256xf32>) outs(%69 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.addf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x256xf32>
    %71 = tensor.empty() : tensor<2x64x256xf32>
    %72 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%70 : tensor<2x64x256xf32>) outs(%71 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.mulf %in, %in : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x256xf32>
    %73 = tensor.empty() : tensor<2x64xf32>
    %74 = linalg.fill ins(%cst_33 : f32) outs(%73 : tensor<2x64xf32>) -> tensor<2x64xf32>
    %75 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%72 : tensor<2x64x256xf32>) outs(%74 : tensor<2x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.addf %out, %in : f32
      linalg.yield %228 : f32
    } -> tensor<2x64xf32>
    %expanded_48 = tensor.expand_shape %75 [[0], [1, 2]] output_shape [2, 64, 1] : tensor<2x64xf32> into tensor<2x64x1xf32>
    %76 = tensor.empty() : tensor<2x64x1xf32>
    %77 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_48 : tensor<2x64x1xf32>) outs(%76 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.divf %in, %cst_32 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x1xf32>
    %78 = tensor.empty() : tensor<2x64x1xf32>
    %79 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%77 : tensor<2x64x1xf32>) outs(%78 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.addf %in, %cst_31 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x1xf32>
    %80 = tensor.empty() : tensor<2x64x1xf32>
    %81 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%79 : tensor<2x64x1xf32>) outs(%80 : tensor<2x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = math.rsqrt %in : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x1xf32>
    %82 = tensor.empty() : tensor<2x64x256xf32>
    %83 = linalg.generic {indexing_maps = [#map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%81 : tensor<2x64x1xf32>) outs(%82 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x64x256xf32>
    %84 = tensor.empty() : tensor<2x64x256xf32>
    %85 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%70, %83 : tensor<2x64x256xf32>, tensor<2x64x256xf32>) outs(%84 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.mulf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x256xf32>
    %86 = tensor.empty() : tensor<2x64x256xf32>
    %87 = linalg.generic {indexing_maps = [#map3, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg4 : tensor<256xf32>) outs(%86 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x64x256xf32>
    %88 = tensor.empty() : tensor<2x64x256xf32>
    %89 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%85, %87 : tensor<2x64x256xf32>, tensor<2x64x256xf32>) outs(%88 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.mulf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x256xf32>
    %collapsed_49 = tensor.collapse_shape %89 [[0, 1], [2]] : tensor<2x64x256xf32> into tensor<128x256xf32>
    %90 = tensor.empty() : tensor<128x512xf32>
    %91 = linalg.fill ins(%cst_33 : f32) outs(%90 : tensor<128x512xf32>) -> tensor<128x512xf32>
    %92 = linalg.matmul {fp8.name = "mlp.up"} ins(%collapsed_49, %arg5 : tensor<128x256xf32>, tensor<256x512xf32>) outs(%91 : tensor<128x512xf32>) -> tensor<128x512xf32>
    %expanded_50 = tensor.expand_shape %92 [[0, 1], [2]] output_shape [2, 64, 512] : tensor<128x512xf32> into tensor<2x64x512xf32>
    %93 = tensor.empty() : tensor<2x64x512xf32>
    %94 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_50 : tensor<2x64x512xf32>) outs(%93 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.mulf %in, %cst_27 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %95 = tensor.empty() : tensor<2x64x512xf32>
    %96 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%expanded_50 : tensor<2x64x512xf32>) outs(%95 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.negf %in : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %97 = tensor.empty() : tensor<2x64x512xf32>
    %98 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%96 : tensor<2x64x512xf32>) outs(%97 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.mulf %in, %cst_26 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %99 = tensor.empty() : tensor<2x64x512xf32>
    %100 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%98 : tensor<2x64x512xf32>) outs(%99 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.mulf %in, %in : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %101 = tensor.empty() : tensor<2x64x512xf32>
    %102 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%100 : tensor<2x64x512xf32>) outs(%101 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.negf %in : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %103 = tensor.empty() : tensor<2x64x512xf32>
    %104 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%98 : tensor<2x64x512xf32>) outs(%103 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = math.absf %in : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %105 = tensor.empty() : tensor<2x64x512xf32>
    %106 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%100 : tensor<2x64x512xf32>) outs(%105 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.divf %cst_25, %in : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %107 = tensor.empty() : tensor<2x64x512xf32>
    %108 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%102 : tensor<2x64x512xf32>) outs(%107 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = math.exp %in : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %109 = tensor.empty() : tensor<2x64x512xf32>
    %110 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%104 : tensor<2x64x512xf32>) outs(%109 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.divf %cst_25, %in : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %111 = tensor.empty() : tensor<2x64x512xf32>
    %112 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%108, %110 : tensor<2x64x512xf32>, tensor<2x64x512xf32>) outs(%111 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.mulf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %113 = tensor.empty() : tensor<2x64x512xi1>
    %114 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%104 : tensor<2x64x512xf32>) outs(%113 : tensor<2x64x512xi1>) {
    ^bb0(%in: f32, %out: i1):
      %228 = arith.cmpf olt, %in, %cst_24 : f32
      linalg.yield %228 : i1
    } -> tensor<2x64x512xi1>
    %115 = tensor.empty() : tensor<2x64x512xf32>
    %116 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%106 : tensor<2x64x512xf32>) outs(%115 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.mulf %in, %cst_23 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %117 = tensor.empty() : tensor<2x64x512xf32>
    %118 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%116 : tensor<2x64x512xf32>) outs(%117 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.addf %in, %cst_22 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %119 = tensor.empty() : tensor<2x64x512xf32>
    %120 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%118, %106 : tensor<2x64x512xf32>, tensor<2x64x512xf32>) outs(%119 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.mulf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %121 = tensor.empty() : tensor<2x64x512xf32>
    %122 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%120 : tensor<2x64x512xf32>) outs(%121 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.addf %in, %cst_21 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %123 = tensor.empty() : tensor<2x64x512xf32>
    %124 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%122, %106 : tensor<2x64x512xf32>, tensor<2x64x512xf32>) outs(%123 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.mulf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %125 = tensor.empty() : tensor<2x64x512xf32>
    %126 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%124 : tensor<2x64x512xf32>) outs(%125 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.addf %in, %cst_20 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %127 = tensor.empty() : tensor<2x64x512xf32>
    %128 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%126, %106 : tensor<2x64x512xf32>, tensor<2x64x512xf32>) outs(%127 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.mulf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %129 = tensor.empty() : tensor<2x64x512xf32>
    %130 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%128 : tensor<2x64x512xf32>) outs(%129 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.addf %in, %cst_19 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %131 = tensor.empty() : tensor<2x64x512xf32>
    %132 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%130, %106 : tensor<2x64x512xf32>, tensor<2x64x512xf32>) outs(%131 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.mulf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %133 = tensor.empty() : tensor<2x64x512xf32>
    %134 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%132 : tensor<2x64x512xf32>) outs(%133 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.addf %in, %cst_18 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %135 = tensor.empty() : tensor<2x64x512xf32>
    %136 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%134, %106 : tensor<2x64x512xf32>, tensor<2x64x512xf32>) outs(%135 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.mulf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %137 = tensor.empty() : tensor<2x64x512xf32>
    %138 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%136 : tensor<2x64x512xf32>) outs(%137 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.addf %in, %cst_17 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %139 = tensor.empty() : tensor<2x64x512xf32>
    %140 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%138, %106 : tensor<2x64x512xf32>, tensor<2x64x512xf32>) outs(%139 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.mulf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %141 = tensor.empty() : tensor<2x64x512xf32>
    %142 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%140 : tensor<2x64x512xf32>) outs(%141 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.addf %in, %cst_16 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %143 = tensor.empty() : tensor<2x64x512xf32>
    %144 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%142, %106 : tensor<2x64x512xf32>, tensor<2x64x512xf32>) outs(%143 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.mulf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %145 = tensor.empty() : tensor<2x64x512xf32>
    %146 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%144 : tensor<2x64x512xf32>) outs(%145 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.addf %in, %cst_15 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %147 = tensor.empty() : tensor<2x64x512xf32>
    %148 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%106 : tensor<2x64x512xf32>) outs(%147 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.mulf %in, %cst_14 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %149 = tensor.empty() : tensor<2x64x512xf32>
    %150 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%148 : tensor<2x64x512xf32>) outs(%149 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.addf %in, %cst_13 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %151 = tensor.empty() : tensor<2x64x512xf32>
    %152 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%150, %106 : tensor<2x64x512xf32>, tensor<2x64x512xf32>) outs(%151 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.mulf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %153 = tensor.empty() : tensor<2x64x512xf32>
    %154 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%152 : tensor<2x64x512xf32>) outs(%153 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.addf %in, %cst_12 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %155 = tensor.empty() : tensor<2x64x512xf32>
    %156 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%154, %106 : tensor<2x64x512xf32>, tensor<2x64x512xf32>) outs(%155 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.mulf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %157 = tensor.empty() : tensor<2x64x512xf32>
    %158 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%156 : tensor<2x64x512xf32>) outs(%157 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.addf %in, %cst_11 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %159 = tensor.empty() : tensor<2x64x512xf32>
    %160 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%158, %106 : tensor<2x64x512xf32>, tensor<2x64x512xf32>) outs(%159 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.mulf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %161 = tensor.empty() : tensor<2x64x512xf32>
    %162 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%160 : tensor<2x64x512xf32>) outs(%161 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.addf %in, %cst_10 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %163 = tensor.empty() : tensor<2x64x512xf32>
    %164 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%162, %106 : tensor<2x64x512xf32>, tensor<2x64x512xf32>) outs(%163 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.mulf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %165 = tensor.empty() : tensor<2x64x512xf32>
    %166 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%164 : tensor<2x64x512xf32>) outs(%165 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.addf %in, %cst_9 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %167 = tensor.empty() : tensor<2x64x512xf32>
    %168 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%166, %106 : tensor<2x64x512xf32>, tensor<2x64x512xf32>) outs(%167 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.mulf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %169 = tensor.empty() : tensor<2x64x512xf32>
    %170 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%168 : tensor<2x64x512xf32>) outs(%169 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.addf %in, %cst_8 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %171 = tensor.empty() : tensor<2x64x512xf32>
    %172 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%170, %106 : tensor<2x64x512xf32>, tensor<2x64x512xf32>) outs(%171 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.mulf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %173 = tensor.empty() : tensor<2x64x512xf32>
    %174 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%172 : tensor<2x64x512xf32>) outs(%173 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.addf %in, %cst_7 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %175 = tensor.empty() : tensor<2x64x512xf32>
    %176 = linalg.generic {indexing_maps = [#map, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%114, %146, %174 : tensor<2x64x512xi1>, tensor<2x64x512xf32>, tensor<2x64x512xf32>) outs(%175 : tensor<2x64x512xf32>) {
    ^bb0(%in: i1, %in_53: f32, %in_54: f32, %out: f32):
      %228 = arith.select %in, %in_53, %in_54 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %177 = tensor.empty() : tensor<2x64x512xf32>
    %178 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%112, %176 : tensor<2x64x512xf32>, tensor<2x64x512xf32>) outs(%177 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.mulf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %179 = tensor.empty() : tensor<2x64x512xi1>
    %180 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%102 : tensor<2x64x512xf32>) outs(%179 : tensor<2x64x512xi1>) {
    ^bb0(%in: f32, %out: i1):
      %228 = arith.cmpf olt, %in, %cst_6 : f32
      linalg.yield %228 : i1
    } -> tensor<2x64x512xi1>
    %181 = tensor.empty() : tensor<2x64x512xf32>
    %182 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%180, %178 : tensor<2x64x512xi1>, tensor<2x64x512xf32>) outs(%181 : tensor<2x64x512xf32>) {
    ^bb0(%in: i1, %in_53: f32, %out: f32):
      %228 = arith.select %in, %cst_33, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %183 = tensor.empty() : tensor<2x64x512xi1>
    %184 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%98 : tensor<2x64x512xf32>) outs(%183 : tensor<2x64x512xi1>) {
    ^bb0(%in: f32, %out: i1):
      %228 = arith.cmpf olt, %in, %cst_33 : f32
      linalg.yield %228 : i1
    } -> tensor<2x64x512xi1>
    %185 = tensor.empty() : tensor<2x64x512xf32>
    %186 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%182 : tensor<2x64x512xf32>) outs(%185 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.subf %cst_24, %in : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %187 = tensor.empty() : tensor<2x64x512xf32>
    %188 = linalg.generic {indexing_maps = [#map, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%184, %186, %182 : tensor<2x64x512xi1>, tensor<2x64x512xf32>, tensor<2x64x512xf32>) outs(%187 : tensor<2x64x512xf32>) {
    ^bb0(%in: i1, %in_53: f32, %in_54: f32, %out: f32):
      %228 = arith.select %in, %in_53, %in_54 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %189 = tensor.empty() : tensor<2x64x512xf32>
    %190 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%100 : tensor<2x64x512xf32>) outs(%189 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.mulf %in, %cst_5 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %191 = tensor.empty() : tensor<2x64x512xf32>
    %192 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%190 : tensor<2x64x512xf32>) outs(%191 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.addf %in, %cst_4 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %193 = tensor.empty() : tensor<2x64x512xf32>
    %194 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%192, %100 : tensor<2x64x512xf32>, tensor<2x64x512xf32>) outs(%193 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.mulf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %195 = tensor.empty() : tensor<2x64x512xf32>
    %196 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%194 : tensor<2x64x512xf32>) outs(%195 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.addf %in, %cst_3 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %197 = tensor.empty() : tensor<2x64x512xf32>
    %198 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%196, %100 : tensor<2x64x512xf32>, tensor<2x64x512xf32>) outs(%197 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.mulf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %199 = tensor.empty() : tensor<2x64x512xf32>
    %200 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%198 : tensor<2x64x512xf32>) outs(%199 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.addf %in, %cst_2 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %201 = tensor.empty() : tensor<2x64x512xf32>
    %202 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%200, %100 : tensor<2x64x512xf32>, tensor<2x64x512xf32>) outs(%201 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.mulf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %203 = tensor.empty() : tensor<2x64x512xf32>
    %204 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%202 : tensor<2x64x512xf32>) outs(%203 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.addf %in, %cst_1 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %205 = tensor.empty() : tensor<2x64x512xf32>
    %206 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%204, %100 : tensor<2x64x512xf32>, tensor<2x64x512xf32>) outs(%205 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.mulf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %207 = tensor.empty() : tensor<2x64x512xf32>
    %208 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%206 : tensor<2x64x512xf32>) outs(%207 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.addf %in, %cst_0 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %209 = tensor.empty() : tensor<2x64x512xf32>
    %210 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%208, %100 : tensor<2x64x512xf32>, tensor<2x64x512xf32>) outs(%209 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.mulf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %211 = tensor.empty() : tensor<2x64x512xf32>
    %212 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%210 : tensor<2x64x512xf32>) outs(%211 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.addf %in, %cst : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %213 = tensor.empty() : tensor<2x64x512xf32>
    %214 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%98, %212 : tensor<2x64x512xf32>, tensor<2x64x512xf32>) outs(%213 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.mulf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %215 = tensor.empty() : tensor<2x64x512xf32>
    %216 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%214 : tensor<2x64x512xf32>) outs(%215 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %out: f32):
      %228 = arith.subf %cst_25, %in : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %217 = tensor.empty() : tensor<2x64x512xi1>
    %218 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%104 : tensor<2x64x512xf32>) outs(%217 : tensor<2x64x512xi1>) {
    ^bb0(%in: f32, %out: i1):
      %228 = arith.cmpf olt, %in, %cst_25 : f32
      linalg.yield %228 : i1
    } -> tensor<2x64x512xi1>
    %219 = tensor.empty() : tensor<2x64x512xf32>
    %220 = linalg.generic {indexing_maps = [#map, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%218, %216, %188 : tensor<2x64x512xi1>, tensor<2x64x512xf32>, tensor<2x64x512xf32>) outs(%219 : tensor<2x64x512xf32>) {
    ^bb0(%in: i1, %in_53: f32, %in_54: f32, %out: f32):
      %228 = arith.select %in, %in_53, %in_54 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %221 = tensor.empty() : tensor<2x64x512xf32>
    %222 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%94, %220 : tensor<2x64x512xf32>, tensor<2x64x512xf32>) outs(%221 : tensor<2x64x512xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.mulf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x512xf32>
    %collapsed_51 = tensor.collapse_shape %222 [[0, 1], [2]] : tensor<2x64x512xf32> into tensor<128x512xf32>
    %223 = tensor.empty() : tensor<128x256xf32>
    %224 = linalg.fill ins(%cst_33 : f32) outs(%223 : tensor<128x256xf32>) -> tensor<128x256xf32>
    %225 = linalg.matmul {fp8.name = "mlp.down"} ins(%collapsed_51, %arg3 : tensor<128x512xf32>, tensor<512x256xf32>) outs(%224 : tensor<128x256xf32>) -> tensor<128x256xf32>
    %expanded_52 = tensor.expand_shape %225 [[0, 1], [2]] output_shape [2, 64, 256] : tensor<128x256xf32> into tensor<2x64x256xf32>
    %226 = tensor.empty() : tensor<2x64x256xf32>
    %227 = linalg.generic {indexing_maps = [#map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%70, %expanded_52 : tensor<2x64x256xf32>, tensor<2x64x256xf32>) outs(%226 : tensor<2x64x256xf32>) {
    ^bb0(%in: f32, %in_53: f32, %out: f32):
      %228 = arith.addf %in, %in_53 : f32
      linalg.yield %228 : f32
    } -> tensor<2x64x256xf32>
    return %227 : tensor<2x64x256xf32>
  }
}
