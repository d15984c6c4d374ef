// Printed by block.py beside this file, with torch 2.13.0 and torch-mlir 20261001.
#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0) -> (d0)>
#map2 = affine_map<(d0, d1) -> (0, d1)>
#map3 = affine_map<(d0, d1) -> (d0, 0)>
#map4 = affine_map<(d0, d1) -> (d0, d1)>
#map5 = affine_map<(d0, d1) -> ()>
#map6 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map7 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  func.func @block(%arg0: tensor<2x96x512xbf16>, %arg1: tensor<2x96x512xbf16>, %arg2: tensor<2x96x512xbf16>) -> tensor<2x96x512xbf16> {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %true = arith.constant true
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<2x8x96x96xf32>
    %cst_2 = arith.constant dense<0.000000e+00> : tensor<f32>
    %cst_3 = arith.constant dense<0xFF800000> : tensor<f32>
    %cst_4 = arith.constant dense<true> : tensor<96x96xi1>
    %cst_5 = arith.constant 0xFFF0000000000000 : f64
    %cst_6 = arith.constant 0.35355339059327379 : f64
    %expanded = tensor.expand_shape %arg0 [[0], [1], [2, 3]] output_shape [2, 96, 8, 64] : tensor<2x96x512xbf16> into tensor<2x96x8x64xbf16>
    %0 = tensor.empty() : tensor<2x8x96x64xbf16>
    %transposed = linalg.transpose ins(%expanded : tensor<2x96x8x64xbf16>) outs(%0 : tensor<2x8x96x64xbf16>) permutation = [0, 2, 1, 3]
    %expanded_7 = tensor.expand_shape %arg1 [[0], [1], [2, 3]] output_shape [2, 96, 8, 64] : tensor<2x96x512xbf16> into tensor<2x96x8x64xbf16>
    %transposed_8 = linalg.transpose ins(%expanded_7 : tensor<2x96x8x64xbf16>) outs(%0 : tensor<2x8x96x64xbf16>) permutation = [0, 2, 1, 3]
    %expanded_9 = tensor.expand_shape %arg2 [[0], [1], [2, 3]] output_shape [2, 96, 8, 64] : tensor<2x96x512xbf16> into tensor<2x96x8x64xbf16>
    %transposed_10 = linalg.transpose ins(%expanded_9 : tensor<2x96x8x64xbf16>) outs(%0 : tensor<2x8x96x64xbf16>) permutation = [0, 2, 1, 3]
    %1 = tensor.empty() : tensor<2x8x96x64xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed : tensor<2x8x96x64xbf16>) outs(%1 : tensor<2x8x96x64xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %44 = arith.extf %in : bf16 to f32
      linalg.yield %44 : f32
    } -> tensor<2x8x96x64xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_8 : tensor<2x8x96x64xbf16>) outs(%1 : tensor<2x8x96x64xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %44 = arith.extf %in : bf16 to f32
      linalg.yield %44 : f32
    } -> tensor<2x8x96x64xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_10 : tensor<2x8x96x64xbf16>) outs(%1 : tensor<2x8x96x64xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %44 = arith.extf %in : bf16 to f32
      linalg.yield %44 : f32
    } -> tensor<2x8x96x64xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2 : tensor<2x8x96x64xf32>) outs(%1 : tensor<2x8x96x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %44 = arith.truncf %cst_6 : f64 to f32
      %45 = arith.mulf %in, %44 : f32
      linalg.yield %45 : f32
    } -> tensor<2x8x96x64xf32>
    %6 = tensor.empty() : tensor<96xi64>
    %7 = linalg.generic {indexing_maps = [#map1], iterator_types = ["parallel"]} outs(%6 : tensor<96xi64>) {
    ^bb0(%out: i64):
      %44 = linalg.index 0 : index
      %45 = arith.index_cast %44 : index to i64
      linalg.yield %45 : i64
    } -> tensor<96xi64>
    %expanded_11 = tensor.expand_shape %7 [[0, 1]] output_shape [1, 96] : tensor<96xi64> into tensor<1x96xi64>
    %expanded_12 = tensor.expand_shape %7 [[0, 1]] output_shape [96, 1] : tensor<96xi64> into tensor<96x1xi64>
    %8 = tensor.empty() : tensor<96x96xi64>
    %9 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel"]} ins(%expanded_11, %expanded_12 : tensor<1x96xi64>, tensor<96x1xi64>) outs(%8 : tensor<96x96xi64>) {
    ^bb0(%in: i64, %in_22: i64, %out: i64):
      %44 = arith.subi %in, %in_22 : i64
      linalg.yield %44 : i64
    } -> tensor<96x96xi64>
    %10 = tensor.empty() : tensor<96x96xi1>
    %11 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%9 : tensor<96x96xi64>) outs(%10 : tensor<96x96xi1>) {
    ^bb0(%in: i64, %out: i1):
      %44 = arith.cmpi sle, %in, %c0_i64 : i64
      linalg.yield %44 : i1
    } -> tensor<96x96xi1>
    %12 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%11, %cst_4 : tensor<96x96xi1>, tensor<96x96xi1>) outs(%10 : tensor<96x96xi1>) {
    ^bb0(%in: i1, %in_22: i1, %out: i1):
      %44 = arith.andi %in, %in_22 : i1
      linalg.yield %44 : i1
    } -> tensor<96x96xi1>
    %13 = tensor.empty() : tensor<96x96xf32>
    %14 = linalg.generic {indexing_maps = [#map4, #map5, #map5, #map4], iterator_types = ["parallel", "parallel"]} ins(%12, %cst_2, %cst_3 : tensor<96x96xi1>, tensor<f32>, tensor<f32>) outs(%13 : tensor<96x96xf32>) {
    ^bb0(%in: i1, %in_22: f32, %in_23: f32, %out: f32):
      %44 = arith.select %in, %in_22, %in_23 : f32
      linalg.yield %44 : f32
    } -> tensor<96x96xf32>
    %15 = tensor.empty() : tensor<2x8x64x96xf32>
    %transposed_13 = linalg.transpose ins(%3 : tensor<2x8x96x64xf32>) outs(%15 : tensor<2x8x64x96xf32>) permutation = [0, 1, 3, 2]
    %16 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed_13 : tensor<2x8x64x96xf32>) outs(%15 : tensor<2x8x64x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      %44 = arith.truncf %cst_6 : f64 to f32
      %45 = arith.mulf %in, %44 : f32
      linalg.yield %45 : f32
    } -> tensor<2x8x64x96xf32>
    %collapsed = tensor.collapse_shape %5 [[0, 1], [2], [3]] : tensor<2x8x96x64xf32> into tensor<16x96x64xf32>
    %collapsed_14 = tensor.collapse_shape %16 [[0, 1], [2], [3]] : tensor<2x8x64x96xf32> into tensor<16x64x96xf32>
    %17 = tensor.empty() : tensor<16x96x96xf32>
    %18 = linalg.fill ins(%cst : f32) outs(%17 : tensor<16x96x96xf32>) -> tensor<16x96x96xf32>
    %19 = linalg.batch_matmul ins(%collapsed, %collapsed_14 : tensor<16x96x64xf32>, tensor<16x64x96xf32>) outs(%18 : tensor<16x96x96xf32>) -> tensor<16x96x96xf32>
    %expanded_15 = tensor.expand_shape %19 [[0, 1], [2], [3]] output_shape [2, 8, 96, 96] : tensor<16x96x96xf32> into tensor<2x8x96x96xf32>
    %20 = tensor.empty() : tensor<2x8x96x96xf32>
    %21 = linalg.generic {indexing_maps = [#map, #map6, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_15, %14 : tensor<2x8x96x96xf32>, tensor<96x96xf32>) outs(%20 : tensor<2x8x96x96xf32>) {
    ^bb0(%in: f32, %in_22: f32, %out: f32):
      %44 = arith.addf %in, %in_22 : f32
      linalg.yield %44 : f32
    } -> tensor<2x8x96x96xf32>
    %22 = tensor.empty() : tensor<2x8x96xi64>
    %23 = linalg.fill ins(%c0_i64 : i64) outs(%22 : tensor<2x8x96xi64>) -> tensor<2x8x96xi64>
    %24 = tensor.empty() : tensor<2x8x96xf32>
    %25 = linalg.fill ins(%cst_0 : f32) outs(%24 : tensor<2x8x96xf32>) -> tensor<2x8x96xf32>
    %26:2 = linalg.generic {indexing_maps = [#map, #map7, #map7], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%21 : tensor<2x8x96x96xf32>) outs(%25, %23 : tensor<2x8x96xf32>, tensor<2x8x96xi64>) {
    ^bb0(%in: f32, %out: f32, %out_22: i64):
      %44 = linalg.index 3 : index
      %45 = arith.index_cast %44 : index to i64
      %46 = arith.maximumf %in, %out : f32
      %47 = arith.cmpf ogt, %in, %out : f32
      %48 = arith.select %47, %45, %out_22 : i64
      linalg.yield %46, %48 : f32, i64
    } -> (tensor<2x8x96xf32>, tensor<2x8x96xi64>)
    %expanded_16 = tensor.expand_shape %26#0 [[0], [1], [2, 3]] output_shape [2, 8, 96, 1] : tensor<2x8x96xf32> into tensor<2x8x96x1xf32>
    %27 = linalg.generic {indexing_maps = [#map, #map8, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%21, %expanded_16 : tensor<2x8x96x96xf32>, tensor<2x8x96x1xf32>) outs(%20 : tensor<2x8x96x96xf32>) {
    ^bb0(%in: f32, %in_22: f32, %out: f32):
      %44 = arith.subf %in, %in_22 : f32
      linalg.yield %44 : f32
    } -> tensor<2x8x96x96xf32>
    %28 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%27 : tensor<2x8x96x96xf32>) outs(%20 : tensor<2x8x96x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      %44 = math.exp %in : f32
      linalg.yield %44 : f32
    } -> tensor<2x8x96x96xf32>
    %29 = tensor.empty() : tensor<2x8x96x1xf32>
    %30 = linalg.fill ins(%cst : f32) outs(%29 : tensor<2x8x96x1xf32>) -> tensor<2x8x96x1xf32>
    %31 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%28 : tensor<2x8x96x96xf32>) outs(%30 : tensor<2x8x96x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %44 = arith.addf %in, %out : f32
      linalg.yield %44 : f32
    } -> tensor<2x8x96x1xf32>
    %32 = linalg.generic {indexing_maps = [#map, #map8, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%28, %31 : tensor<2x8x96x96xf32>, tensor<2x8x96x1xf32>) outs(%20 : tensor<2x8x96x96xf32>) {
    ^bb0(%in: f32, %in_22: f32, %out: f32):
      %44 = arith.divf %in, %in_22 : f32
      linalg.yield %44 : f32
    } -> tensor<2x8x96x96xf32>
    %33 = tensor.empty() : tensor<2x8x96x96xi1>
    %34 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%21 : tensor<2x8x96x96xf32>) outs(%33 : tensor<2x8x96x96xi1>) {
    ^bb0(%in: f32, %out: i1):
      %44 = arith.extf %in : f32 to f64
      %45 = arith.cmpf oeq, %44, %cst_5 : f64
      linalg.yield %45 : i1
    } -> tensor<2x8x96x96xi1>
    %35 = tensor.empty() : tensor<2x8x96x1xi1>
    %36 = linalg.fill ins(%true : i1) outs(%35 : tensor<2x8x96x1xi1>) -> tensor<2x8x96x1xi1>
    %37 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%34 : tensor<2x8x96x96xi1>) outs(%36 : tensor<2x8x96x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %44 = arith.andi %in, %out : i1
      linalg.yield %44 : i1
    } -> tensor<2x8x96x1xi1>
    %38 = linalg.generic {indexing_maps = [#map8, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%37, %cst_1, %32 : tensor<2x8x96x1xi1>, tensor<2x8x96x96xf32>, tensor<2x8x96x96xf32>) outs(%20 : tensor<2x8x96x96xf32>) {
    ^bb0(%in: i1, %in_22: f32, %in_23: f32, %out: f32):
      %44 = arith.select %in, %in_22, %in_23 : f32
      linalg.yield %44 : f32
    } -> tensor<2x8x96x96xf32>
    %collapsed_17 = tensor.collapse_shape %38 [[0, 1], [2], [3]] : tensor<2x8x96x96xf32> into tensor<16x96x96xf32>
    %collapsed_18 = tensor.collapse_shape %4 [[0, 1], [2], [3]] : tensor<2x8x96x64xf32> into tensor<16x96x64xf32>
    %39 = tensor.empty() : tensor<16x96x64xf32>
    %40 = linalg.fill ins(%cst : f32) outs(%39 : tensor<16x96x64xf32>) -> tensor<16x96x64xf32>
    %41 = linalg.batch_matmul ins(%collapsed_17, %collapsed_18 : tensor<16x96x96xf32>, tensor<16x96x64xf32>) outs(%40 : tensor<16x96x64xf32>) -> tensor<16x96x64xf32>
    %expanded_19 = tensor.expand_shape %41 [[0, 1], [2], [3]] output_shape [2, 8, 96, 64] : tensor<16x96x64xf32> into tensor<2x8x96x64xf32>
    %42 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_19 : tensor<2x8x96x64xf32>) outs(%0 : tensor<2x8x96x64xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %44 = arith.truncf %in : f32 to bf16
      linalg.yield %44 : bf16
    } -> tensor<2x8x96x64xbf16>
    %43 = tensor.empty() : tensor<2x96x8x64xbf16>
    %transposed_20 = linalg.transpose ins(%42 : tensor<2x8x96x64xbf16>) outs(%43 : tensor<2x96x8x64xbf16>) permutation = [0, 2, 1, 3]
    %collapsed_21 = tensor.collapse_shape %transposed_20 [[0], [1], [2, 3]] : tensor<2x96x8x64xbf16> into tensor<2x96x512xbf16>
    return %collapsed_21 : tensor<2x96x512xbf16>
  }
}

