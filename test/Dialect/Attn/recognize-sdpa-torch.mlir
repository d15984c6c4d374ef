// RUN: aot-opt %s --attn-recognize-sdpa --split-input-file | FileCheck %s

// Printed by Inputs/torch_attention.py: what torch-mlir 20261001 makes of
// PyTorch 2.13's scaled_dot_product_attention.

// CHECK-LABEL: func.func @plain(
// CHECK-SAME:    %[[Q:.*]]: tensor<2x4x64x64xf16>, %[[K:.*]]: tensor<2x4x96x64xf16>, %[[V:.*]]: tensor<2x4x96x64xf16>)
// CHECK-NOT:     linalg
// CHECK:         arith.constant 0.124999993 : f32
// CHECK:         attn.sdpa ins(%[[Q]], %[[K]], %[[V]] : {{.*}}) scale(%{{.*}}) outs(
// CHECK-NOT:     linalg
// CHECK:         return

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  func.func @plain(%arg0: tensor<2x4x64x64xf16>, %arg1: tensor<2x4x96x64xf16>, %arg2: tensor<2x4x96x64xf16>) -> tensor<2x4x64x64xf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %c0_i64 = arith.constant 0 : i64
    %cst_0 = arith.constant 0xFF800000 : f32
    %true = arith.constant true
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<2x4x64x96xf32>
    %cst_2 = arith.constant 0xFFF0000000000000 : f64
    %cst_3 = arith.constant 0.35355339059327379 : f64
    %0 = tensor.empty() : tensor<2x4x64x64xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<2x4x64x64xf16>) outs(%0 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %33 = arith.extf %in : f16 to f32
      linalg.yield %33 : f32
    } -> tensor<2x4x64x64xf32>
    %2 = tensor.empty() : tensor<2x4x96x64xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x4x96x64xf16>) outs(%2 : tensor<2x4x96x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %33 = arith.extf %in : f16 to f32
      linalg.yield %33 : f32
    } -> tensor<2x4x96x64xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x4x96x64xf16>) outs(%2 : tensor<2x4x96x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %33 = arith.extf %in : f16 to f32
      linalg.yield %33 : f32
    } -> tensor<2x4x96x64xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%1 : tensor<2x4x64x64xf32>) outs(%0 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %33 = arith.truncf %cst_3 : f64 to f32
      %34 = arith.mulf %in, %33 : f32
      linalg.yield %34 : f32
    } -> tensor<2x4x64x64xf32>
    %6 = tensor.empty() : tensor<2x4x64x96xf32>
    %transposed = linalg.transpose ins(%3 : tensor<2x4x96x64xf32>) outs(%6 : tensor<2x4x64x96xf32>) permutation = [0, 1, 3, 2]
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed : tensor<2x4x64x96xf32>) outs(%6 : tensor<2x4x64x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      %33 = arith.truncf %cst_3 : f64 to f32
      %34 = arith.mulf %in, %33 : f32
      linalg.yield %34 : f32
    } -> tensor<2x4x64x96xf32>
    %collapsed = tensor.collapse_shape %5 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %collapsed_4 = tensor.collapse_shape %7 [[0, 1], [2], [3]] : tensor<2x4x64x96xf32> into tensor<8x64x96xf32>
    %8 = tensor.empty() : tensor<8x64x96xf32>
    %9 = linalg.fill ins(%cst : f32) outs(%8 : tensor<8x64x96xf32>) -> tensor<8x64x96xf32>
    %10 = linalg.batch_matmul ins(%collapsed, %collapsed_4 : tensor<8x64x64xf32>, tensor<8x64x96xf32>) outs(%9 : tensor<8x64x96xf32>) -> tensor<8x64x96xf32>
    %expanded = tensor.expand_shape %10 [[0, 1], [2], [3]] output_shape [2, 4, 64, 96] : tensor<8x64x96xf32> into tensor<2x4x64x96xf32>
    %11 = tensor.empty() : tensor<2x4x64xi64>
    %12 = linalg.fill ins(%c0_i64 : i64) outs(%11 : tensor<2x4x64xi64>) -> tensor<2x4x64xi64>
    %13 = tensor.empty() : tensor<2x4x64xf32>
    %14 = linalg.fill ins(%cst_0 : f32) outs(%13 : tensor<2x4x64xf32>) -> tensor<2x4x64xf32>
    %15:2 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%expanded : tensor<2x4x64x96xf32>) outs(%14, %12 : tensor<2x4x64xf32>, tensor<2x4x64xi64>) {
    ^bb0(%in: f32, %out: f32, %out_9: i64):
      %33 = linalg.index 3 : index
      %34 = arith.index_cast %33 : index to i64
      %35 = arith.maximumf %in, %out : f32
      %36 = arith.cmpf ogt, %in, %out : f32
      %37 = arith.select %36, %34, %out_9 : i64
      linalg.yield %35, %37 : f32, i64
    } -> (tensor<2x4x64xf32>, tensor<2x4x64xi64>)
    %expanded_5 = tensor.expand_shape %15#0 [[0], [1], [2, 3]] output_shape [2, 4, 64, 1] : tensor<2x4x64xf32> into tensor<2x4x64x1xf32>
    %16 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded, %expanded_5 : tensor<2x4x64x96xf32>, tensor<2x4x64x1xf32>) outs(%6 : tensor<2x4x64x96xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %33 = arith.subf %in, %in_9 : f32
      linalg.yield %33 : f32
    } -> tensor<2x4x64x96xf32>
    %17 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%16 : tensor<2x4x64x96xf32>) outs(%6 : tensor<2x4x64x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      %33 = math.exp %in : f32
      linalg.yield %33 : f32
    } -> tensor<2x4x64x96xf32>
    %18 = tensor.empty() : tensor<2x4x64x1xf32>
    %19 = linalg.fill ins(%cst : f32) outs(%18 : tensor<2x4x64x1xf32>) -> tensor<2x4x64x1xf32>
    %20 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%17 : tensor<2x4x64x96xf32>) outs(%19 : tensor<2x4x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %33 = arith.addf %in, %out : f32
      linalg.yield %33 : f32
    } -> tensor<2x4x64x1xf32>
    %21 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%17, %20 : tensor<2x4x64x96xf32>, tensor<2x4x64x1xf32>) outs(%6 : tensor<2x4x64x96xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %33 = arith.divf %in, %in_9 : f32
      linalg.yield %33 : f32
    } -> tensor<2x4x64x96xf32>
    %22 = tensor.empty() : tensor<2x4x64x96xi1>
    %23 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<2x4x64x96xf32>) outs(%22 : tensor<2x4x64x96xi1>) {
    ^bb0(%in: f32, %out: i1):
      %33 = arith.extf %in : f32 to f64
      %34 = arith.cmpf oeq, %33, %cst_2 : f64
      linalg.yield %34 : i1
    } -> tensor<2x4x64x96xi1>
    %24 = tensor.empty() : tensor<2x4x64x1xi1>
    %25 = linalg.fill ins(%true : i1) outs(%24 : tensor<2x4x64x1xi1>) -> tensor<2x4x64x1xi1>
    %26 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%23 : tensor<2x4x64x96xi1>) outs(%25 : tensor<2x4x64x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %33 = arith.andi %in, %out : i1
      linalg.yield %33 : i1
    } -> tensor<2x4x64x1xi1>
    %27 = linalg.generic {indexing_maps = [#map2, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%26, %cst_1, %21 : tensor<2x4x64x1xi1>, tensor<2x4x64x96xf32>, tensor<2x4x64x96xf32>) outs(%6 : tensor<2x4x64x96xf32>) {
    ^bb0(%in: i1, %in_9: f32, %in_10: f32, %out: f32):
      %33 = arith.select %in, %in_9, %in_10 : f32
      linalg.yield %33 : f32
    } -> tensor<2x4x64x96xf32>
    %collapsed_6 = tensor.collapse_shape %27 [[0, 1], [2], [3]] : tensor<2x4x64x96xf32> into tensor<8x64x96xf32>
    %collapsed_7 = tensor.collapse_shape %4 [[0, 1], [2], [3]] : tensor<2x4x96x64xf32> into tensor<8x96x64xf32>
    %28 = tensor.empty() : tensor<8x64x64xf32>
    %29 = linalg.fill ins(%cst : f32) outs(%28 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %30 = linalg.batch_matmul ins(%collapsed_6, %collapsed_7 : tensor<8x64x96xf32>, tensor<8x96x64xf32>) outs(%29 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %expanded_8 = tensor.expand_shape %30 [[0, 1], [2], [3]] output_shape [2, 4, 64, 64] : tensor<8x64x64xf32> into tensor<2x4x64x64xf32>
    %31 = tensor.empty() : tensor<2x4x64x64xf16>
    %32 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_8 : tensor<2x4x64x64xf32>) outs(%31 : tensor<2x4x64x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %33 = arith.truncf %in : f32 to f16
      linalg.yield %33 : f16
    } -> tensor<2x4x64x64xf16>
    return %32 : tensor<2x4x64x64xf16>
  }
}

// -----

// CHECK-LABEL: func.func @causal(
// CHECK-NOT:     linalg
// CHECK:         attn.sdpa {{.*}} visible [#attn.causal<top_left>] outs(%{{.*}} : tensor<2x4x64x64xbf16>)
// CHECK-NOT:     linalg
// CHECK:         return

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
  func.func @causal(%arg0: tensor<2x4x64x64xbf16>, %arg1: tensor<2x4x64x64xbf16>, %arg2: tensor<2x4x64x64xbf16>) -> tensor<2x4x64x64xbf16> {
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
      %39 = arith.extf %in : bf16 to f32
      linalg.yield %39 : f32
    } -> tensor<2x4x64x64xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x4x64x64xbf16>) outs(%0 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %39 = arith.extf %in : bf16 to f32
      linalg.yield %39 : f32
    } -> tensor<2x4x64x64xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x4x64x64xbf16>) outs(%0 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %39 = arith.extf %in : bf16 to f32
      linalg.yield %39 : f32
    } -> tensor<2x4x64x64xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%1 : tensor<2x4x64x64xf32>) outs(%0 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %39 = arith.truncf %cst_6 : f64 to f32
      %40 = arith.mulf %in, %39 : f32
      linalg.yield %40 : f32
    } -> tensor<2x4x64x64xf32>
    %5 = tensor.empty() : tensor<64xi64>
    %6 = linalg.generic {indexing_maps = [#map1], iterator_types = ["parallel"]} outs(%5 : tensor<64xi64>) {
    ^bb0(%out: i64):
      %39 = linalg.index 0 : index
      %40 = arith.index_cast %39 : index to i64
      linalg.yield %40 : i64
    } -> tensor<64xi64>
    %expanded = tensor.expand_shape %6 [[0, 1]] output_shape [1, 64] : tensor<64xi64> into tensor<1x64xi64>
    %expanded_7 = tensor.expand_shape %6 [[0, 1]] output_shape [64, 1] : tensor<64xi64> into tensor<64x1xi64>
    %7 = tensor.empty() : tensor<64x64xi64>
    %8 = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel"]} ins(%expanded, %expanded_7 : tensor<1x64xi64>, tensor<64x1xi64>) outs(%7 : tensor<64x64xi64>) {
    ^bb0(%in: i64, %in_14: i64, %out: i64):
      %39 = arith.subi %in, %in_14 : i64
      linalg.yield %39 : i64
    } -> tensor<64x64xi64>
    %9 = tensor.empty() : tensor<64x64xi1>
    %10 = linalg.generic {indexing_maps = [#map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%8 : tensor<64x64xi64>) outs(%9 : tensor<64x64xi1>) {
    ^bb0(%in: i64, %out: i1):
      %39 = arith.cmpi sle, %in, %c0_i64 : i64
      linalg.yield %39 : i1
    } -> tensor<64x64xi1>
    %11 = linalg.generic {indexing_maps = [#map4, #map4, #map4], iterator_types = ["parallel", "parallel"]} ins(%10, %cst_4 : tensor<64x64xi1>, tensor<64x64xi1>) outs(%9 : tensor<64x64xi1>) {
    ^bb0(%in: i1, %in_14: i1, %out: i1):
      %39 = arith.andi %in, %in_14 : i1
      linalg.yield %39 : i1
    } -> tensor<64x64xi1>
    %12 = tensor.empty() : tensor<64x64xf32>
    %13 = linalg.generic {indexing_maps = [#map4, #map5, #map5, #map4], iterator_types = ["parallel", "parallel"]} ins(%11, %cst_2, %cst_3 : tensor<64x64xi1>, tensor<f32>, tensor<f32>) outs(%12 : tensor<64x64xf32>) {
    ^bb0(%in: i1, %in_14: f32, %in_15: f32, %out: f32):
      %39 = arith.select %in, %in_14, %in_15 : f32
      linalg.yield %39 : f32
    } -> tensor<64x64xf32>
    %transposed = linalg.transpose ins(%2 : tensor<2x4x64x64xf32>) outs(%0 : tensor<2x4x64x64xf32>) permutation = [0, 1, 3, 2]
    %14 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed : tensor<2x4x64x64xf32>) outs(%0 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %39 = arith.truncf %cst_6 : f64 to f32
      %40 = arith.mulf %in, %39 : f32
      linalg.yield %40 : f32
    } -> tensor<2x4x64x64xf32>
    %collapsed = tensor.collapse_shape %4 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %collapsed_8 = tensor.collapse_shape %14 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %15 = tensor.empty() : tensor<8x64x64xf32>
    %16 = linalg.fill ins(%cst : f32) outs(%15 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %17 = linalg.batch_matmul ins(%collapsed, %collapsed_8 : tensor<8x64x64xf32>, tensor<8x64x64xf32>) outs(%16 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %expanded_9 = tensor.expand_shape %17 [[0, 1], [2], [3]] output_shape [2, 4, 64, 64] : tensor<8x64x64xf32> into tensor<2x4x64x64xf32>
    %18 = linalg.generic {indexing_maps = [#map, #map6, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_9, %13 : tensor<2x4x64x64xf32>, tensor<64x64xf32>) outs(%0 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %in_14: f32, %out: f32):
      %39 = arith.addf %in, %in_14 : f32
      linalg.yield %39 : f32
    } -> tensor<2x4x64x64xf32>
    %19 = tensor.empty() : tensor<2x4x64xi64>
    %20 = linalg.fill ins(%c0_i64 : i64) outs(%19 : tensor<2x4x64xi64>) -> tensor<2x4x64xi64>
    %21 = tensor.empty() : tensor<2x4x64xf32>
    %22 = linalg.fill ins(%cst_0 : f32) outs(%21 : tensor<2x4x64xf32>) -> tensor<2x4x64xf32>
    %23:2 = linalg.generic {indexing_maps = [#map, #map7, #map7], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%18 : tensor<2x4x64x64xf32>) outs(%22, %20 : tensor<2x4x64xf32>, tensor<2x4x64xi64>) {
    ^bb0(%in: f32, %out: f32, %out_14: i64):
      %39 = linalg.index 3 : index
      %40 = arith.index_cast %39 : index to i64
      %41 = arith.maximumf %in, %out : f32
      %42 = arith.cmpf ogt, %in, %out : f32
      %43 = arith.select %42, %40, %out_14 : i64
      linalg.yield %41, %43 : f32, i64
    } -> (tensor<2x4x64xf32>, tensor<2x4x64xi64>)
    %expanded_10 = tensor.expand_shape %23#0 [[0], [1], [2, 3]] output_shape [2, 4, 64, 1] : tensor<2x4x64xf32> into tensor<2x4x64x1xf32>
    %24 = linalg.generic {indexing_maps = [#map, #map8, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%18, %expanded_10 : tensor<2x4x64x64xf32>, tensor<2x4x64x1xf32>) outs(%0 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %in_14: f32, %out: f32):
      %39 = arith.subf %in, %in_14 : f32
      linalg.yield %39 : f32
    } -> tensor<2x4x64x64xf32>
    %25 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%24 : tensor<2x4x64x64xf32>) outs(%0 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %39 = math.exp %in : f32
      linalg.yield %39 : f32
    } -> tensor<2x4x64x64xf32>
    %26 = tensor.empty() : tensor<2x4x64x1xf32>
    %27 = linalg.fill ins(%cst : f32) outs(%26 : tensor<2x4x64x1xf32>) -> tensor<2x4x64x1xf32>
    %28 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%25 : tensor<2x4x64x64xf32>) outs(%27 : tensor<2x4x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %39 = arith.addf %in, %out : f32
      linalg.yield %39 : f32
    } -> tensor<2x4x64x1xf32>
    %29 = linalg.generic {indexing_maps = [#map, #map8, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%25, %28 : tensor<2x4x64x64xf32>, tensor<2x4x64x1xf32>) outs(%0 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %in_14: f32, %out: f32):
      %39 = arith.divf %in, %in_14 : f32
      linalg.yield %39 : f32
    } -> tensor<2x4x64x64xf32>
    %30 = tensor.empty() : tensor<2x4x64x64xi1>
    %31 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%18 : tensor<2x4x64x64xf32>) outs(%30 : tensor<2x4x64x64xi1>) {
    ^bb0(%in: f32, %out: i1):
      %39 = arith.extf %in : f32 to f64
      %40 = arith.cmpf oeq, %39, %cst_5 : f64
      linalg.yield %40 : i1
    } -> tensor<2x4x64x64xi1>
    %32 = tensor.empty() : tensor<2x4x64x1xi1>
    %33 = linalg.fill ins(%true : i1) outs(%32 : tensor<2x4x64x1xi1>) -> tensor<2x4x64x1xi1>
    %34 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%31 : tensor<2x4x64x64xi1>) outs(%33 : tensor<2x4x64x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %39 = arith.andi %in, %out : i1
      linalg.yield %39 : i1
    } -> tensor<2x4x64x1xi1>
    %35 = linalg.generic {indexing_maps = [#map8, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%34, %cst_1, %29 : tensor<2x4x64x1xi1>, tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) outs(%0 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: i1, %in_14: f32, %in_15: f32, %out: f32):
      %39 = arith.select %in, %in_14, %in_15 : f32
      linalg.yield %39 : f32
    } -> tensor<2x4x64x64xf32>
    %collapsed_11 = tensor.collapse_shape %35 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %collapsed_12 = tensor.collapse_shape %3 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %36 = linalg.batch_matmul ins(%collapsed_11, %collapsed_12 : tensor<8x64x64xf32>, tensor<8x64x64xf32>) outs(%16 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %expanded_13 = tensor.expand_shape %36 [[0, 1], [2], [3]] output_shape [2, 4, 64, 64] : tensor<8x64x64xf32> into tensor<2x4x64x64xf32>
    %37 = tensor.empty() : tensor<2x4x64x64xbf16>
    %38 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_13 : tensor<2x4x64x64xf32>) outs(%37 : tensor<2x4x64x64xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %39 = arith.truncf %in : f32 to bf16
      linalg.yield %39 : bf16
    } -> tensor<2x4x64x64xbf16>
    return %38 : tensor<2x4x64x64xbf16>
  }
}

// -----

// CHECK-LABEL: func.func @groups(
// CHECK-SAME:    %[[Q:.*]]: tensor<2x4x64x64xf16>, %[[K:.*]]: tensor<2x2x96x64xf16>, %[[V:.*]]: tensor<2x2x96x64xf16>)
// CHECK-NOT:     linalg
// CHECK:         arith.constant 3.000000e-01 : f32
// CHECK:         attn.sdpa ins(%[[Q]], %[[K]], %[[V]] :
// CHECK-NOT:     linalg
// CHECK:         return

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d3, d4)>
#map2 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  func.func @groups(%arg0: tensor<2x4x64x64xf16>, %arg1: tensor<2x2x96x64xf16>, %arg2: tensor<2x2x96x64xf16>) -> tensor<2x4x64x64xf16> {
    %c0_i64 = arith.constant 0 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %true = arith.constant true
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<2x4x64x96xf32>
    %cst_2 = arith.constant 0xFFF0000000000000 : f64
    %cst_3 = arith.constant 0.54772255750516607 : f64
    %0 = tensor.empty() : tensor<2x4x64x64xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<2x4x64x64xf16>) outs(%0 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %36 = arith.extf %in : f16 to f32
      linalg.yield %36 : f32
    } -> tensor<2x4x64x64xf32>
    %2 = tensor.empty() : tensor<2x2x96x64xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x2x96x64xf16>) outs(%2 : tensor<2x2x96x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %36 = arith.extf %in : f16 to f32
      linalg.yield %36 : f32
    } -> tensor<2x2x96x64xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x2x96x64xf16>) outs(%2 : tensor<2x2x96x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %36 = arith.extf %in : f16 to f32
      linalg.yield %36 : f32
    } -> tensor<2x2x96x64xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%1 : tensor<2x4x64x64xf32>) outs(%0 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %36 = arith.truncf %cst_3 : f64 to f32
      %37 = arith.mulf %in, %36 : f32
      linalg.yield %37 : f32
    } -> tensor<2x4x64x64xf32>
    %6 = tensor.empty() : tensor<2x2x2x96x64xf32>
    %7 = linalg.generic {indexing_maps = [#map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%3 : tensor<2x2x96x64xf32>) outs(%6 : tensor<2x2x2x96x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x2x2x96x64xf32>
    %collapsed = tensor.collapse_shape %7 [[0], [1, 2], [3], [4]] : tensor<2x2x2x96x64xf32> into tensor<2x4x96x64xf32>
    %8 = linalg.generic {indexing_maps = [#map1, #map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%4 : tensor<2x2x96x64xf32>) outs(%6 : tensor<2x2x2x96x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x2x2x96x64xf32>
    %9 = tensor.empty() : tensor<2x4x64x96xf32>
    %transposed = linalg.transpose ins(%collapsed : tensor<2x4x96x64xf32>) outs(%9 : tensor<2x4x64x96xf32>) permutation = [0, 1, 3, 2]
    %10 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed : tensor<2x4x64x96xf32>) outs(%9 : tensor<2x4x64x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      %36 = arith.truncf %cst_3 : f64 to f32
      %37 = arith.mulf %in, %36 : f32
      linalg.yield %37 : f32
    } -> tensor<2x4x64x96xf32>
    %collapsed_4 = tensor.collapse_shape %5 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %collapsed_5 = tensor.collapse_shape %10 [[0, 1], [2], [3]] : tensor<2x4x64x96xf32> into tensor<8x64x96xf32>
    %11 = tensor.empty() : tensor<8x64x96xf32>
    %12 = linalg.fill ins(%cst : f32) outs(%11 : tensor<8x64x96xf32>) -> tensor<8x64x96xf32>
    %13 = linalg.batch_matmul ins(%collapsed_4, %collapsed_5 : tensor<8x64x64xf32>, tensor<8x64x96xf32>) outs(%12 : tensor<8x64x96xf32>) -> tensor<8x64x96xf32>
    %expanded = tensor.expand_shape %13 [[0, 1], [2], [3]] output_shape [2, 4, 64, 96] : tensor<8x64x96xf32> into tensor<2x4x64x96xf32>
    %14 = tensor.empty() : tensor<2x4x64xi64>
    %15 = linalg.fill ins(%c0_i64 : i64) outs(%14 : tensor<2x4x64xi64>) -> tensor<2x4x64xi64>
    %16 = tensor.empty() : tensor<2x4x64xf32>
    %17 = linalg.fill ins(%cst_0 : f32) outs(%16 : tensor<2x4x64xf32>) -> tensor<2x4x64xf32>
    %18:2 = linalg.generic {indexing_maps = [#map, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%expanded : tensor<2x4x64x96xf32>) outs(%17, %15 : tensor<2x4x64xf32>, tensor<2x4x64xi64>) {
    ^bb0(%in: f32, %out: f32, %out_10: i64):
      %36 = linalg.index 3 : index
      %37 = arith.index_cast %36 : index to i64
      %38 = arith.maximumf %in, %out : f32
      %39 = arith.cmpf ogt, %in, %out : f32
      %40 = arith.select %39, %37, %out_10 : i64
      linalg.yield %38, %40 : f32, i64
    } -> (tensor<2x4x64xf32>, tensor<2x4x64xi64>)
    %expanded_6 = tensor.expand_shape %18#0 [[0], [1], [2, 3]] output_shape [2, 4, 64, 1] : tensor<2x4x64xf32> into tensor<2x4x64x1xf32>
    %19 = linalg.generic {indexing_maps = [#map, #map4, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded, %expanded_6 : tensor<2x4x64x96xf32>, tensor<2x4x64x1xf32>) outs(%9 : tensor<2x4x64x96xf32>) {
    ^bb0(%in: f32, %in_10: f32, %out: f32):
      %36 = arith.subf %in, %in_10 : f32
      linalg.yield %36 : f32
    } -> tensor<2x4x64x96xf32>
    %20 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%19 : tensor<2x4x64x96xf32>) outs(%9 : tensor<2x4x64x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      %36 = math.exp %in : f32
      linalg.yield %36 : f32
    } -> tensor<2x4x64x96xf32>
    %21 = tensor.empty() : tensor<2x4x64x1xf32>
    %22 = linalg.fill ins(%cst : f32) outs(%21 : tensor<2x4x64x1xf32>) -> tensor<2x4x64x1xf32>
    %23 = linalg.generic {indexing_maps = [#map, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%20 : tensor<2x4x64x96xf32>) outs(%22 : tensor<2x4x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %36 = arith.addf %in, %out : f32
      linalg.yield %36 : f32
    } -> tensor<2x4x64x1xf32>
    %24 = linalg.generic {indexing_maps = [#map, #map4, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%20, %23 : tensor<2x4x64x96xf32>, tensor<2x4x64x1xf32>) outs(%9 : tensor<2x4x64x96xf32>) {
    ^bb0(%in: f32, %in_10: f32, %out: f32):
      %36 = arith.divf %in, %in_10 : f32
      linalg.yield %36 : f32
    } -> tensor<2x4x64x96xf32>
    %25 = tensor.empty() : tensor<2x4x64x96xi1>
    %26 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<2x4x64x96xf32>) outs(%25 : tensor<2x4x64x96xi1>) {
    ^bb0(%in: f32, %out: i1):
      %36 = arith.extf %in : f32 to f64
      %37 = arith.cmpf oeq, %36, %cst_2 : f64
      linalg.yield %37 : i1
    } -> tensor<2x4x64x96xi1>
    %27 = tensor.empty() : tensor<2x4x64x1xi1>
    %28 = linalg.fill ins(%true : i1) outs(%27 : tensor<2x4x64x1xi1>) -> tensor<2x4x64x1xi1>
    %29 = linalg.generic {indexing_maps = [#map, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%26 : tensor<2x4x64x96xi1>) outs(%28 : tensor<2x4x64x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %36 = arith.andi %in, %out : i1
      linalg.yield %36 : i1
    } -> tensor<2x4x64x1xi1>
    %30 = linalg.generic {indexing_maps = [#map4, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%29, %cst_1, %24 : tensor<2x4x64x1xi1>, tensor<2x4x64x96xf32>, tensor<2x4x64x96xf32>) outs(%9 : tensor<2x4x64x96xf32>) {
    ^bb0(%in: i1, %in_10: f32, %in_11: f32, %out: f32):
      %36 = arith.select %in, %in_10, %in_11 : f32
      linalg.yield %36 : f32
    } -> tensor<2x4x64x96xf32>
    %collapsed_7 = tensor.collapse_shape %30 [[0, 1], [2], [3]] : tensor<2x4x64x96xf32> into tensor<8x64x96xf32>
    %collapsed_8 = tensor.collapse_shape %8 [[0, 1, 2], [3], [4]] : tensor<2x2x2x96x64xf32> into tensor<8x96x64xf32>
    %31 = tensor.empty() : tensor<8x64x64xf32>
    %32 = linalg.fill ins(%cst : f32) outs(%31 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %33 = linalg.batch_matmul ins(%collapsed_7, %collapsed_8 : tensor<8x64x96xf32>, tensor<8x96x64xf32>) outs(%32 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %expanded_9 = tensor.expand_shape %33 [[0, 1], [2], [3]] output_shape [2, 4, 64, 64] : tensor<8x64x64xf32> into tensor<2x4x64x64xf32>
    %34 = tensor.empty() : tensor<2x4x64x64xf16>
    %35 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_9 : tensor<2x4x64x64xf32>) outs(%34 : tensor<2x4x64x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %36 = arith.truncf %in : f32 to f16
      linalg.yield %36 : f16
    } -> tensor<2x4x64x64xf16>
    return %35 : tensor<2x4x64x64xf16>
  }
}

// -----

// CHECK-LABEL: func.func @rank3(
// CHECK-NOT:     linalg
// CHECK:         attn.sdpa {{.*}} outs(%{{.*}} : tensor<1x8x64x64xf16>)
// CHECK:         tensor.collapse_shape
// CHECK-NOT:     linalg
// CHECK:         return

#map = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
#map1 = affine_map<(d0, d1, d2) -> (d0, d1)>
#map2 = affine_map<(d0, d1, d2) -> (d0, d1, 0)>
module {
  func.func @rank3(%arg0: tensor<8x64x64xf16>, %arg1: tensor<8x96x64xf16>, %arg2: tensor<8x96x64xf16>) -> tensor<8x64x64xf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %c0_i64 = arith.constant 0 : i64
    %cst_0 = arith.constant 0xFF800000 : f32
    %true = arith.constant true
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<8x64x96xf32>
    %cst_2 = arith.constant 0xFFF0000000000000 : f64
    %cst_3 = arith.constant 0.35355339059327379 : f64
    %0 = tensor.empty() : tensor<8x64x64xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg0 : tensor<8x64x64xf16>) outs(%0 : tensor<8x64x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %31 = arith.extf %in : f16 to f32
      linalg.yield %31 : f32
    } -> tensor<8x64x64xf32>
    %2 = tensor.empty() : tensor<8x96x64xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg1 : tensor<8x96x64xf16>) outs(%2 : tensor<8x96x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %31 = arith.extf %in : f16 to f32
      linalg.yield %31 : f32
    } -> tensor<8x96x64xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg2 : tensor<8x96x64xf16>) outs(%2 : tensor<8x96x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %31 = arith.extf %in : f16 to f32
      linalg.yield %31 : f32
    } -> tensor<8x96x64xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%1 : tensor<8x64x64xf32>) outs(%0 : tensor<8x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %31 = arith.truncf %cst_3 : f64 to f32
      %32 = arith.mulf %in, %31 : f32
      linalg.yield %32 : f32
    } -> tensor<8x64x64xf32>
    %6 = tensor.empty() : tensor<8x64x96xf32>
    %transposed = linalg.transpose ins(%3 : tensor<8x96x64xf32>) outs(%6 : tensor<8x64x96xf32>) permutation = [0, 2, 1]
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%transposed : tensor<8x64x96xf32>) outs(%6 : tensor<8x64x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      %31 = arith.truncf %cst_3 : f64 to f32
      %32 = arith.mulf %in, %31 : f32
      linalg.yield %32 : f32
    } -> tensor<8x64x96xf32>
    %8 = linalg.fill ins(%cst : f32) outs(%6 : tensor<8x64x96xf32>) -> tensor<8x64x96xf32>
    %9 = linalg.batch_matmul ins(%5, %7 : tensor<8x64x64xf32>, tensor<8x64x96xf32>) outs(%8 : tensor<8x64x96xf32>) -> tensor<8x64x96xf32>
    %10 = tensor.empty() : tensor<8x64xi64>
    %11 = linalg.fill ins(%c0_i64 : i64) outs(%10 : tensor<8x64xi64>) -> tensor<8x64xi64>
    %12 = tensor.empty() : tensor<8x64xf32>
    %13 = linalg.fill ins(%cst_0 : f32) outs(%12 : tensor<8x64xf32>) -> tensor<8x64xf32>
    %14:2 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "parallel", "reduction"]} ins(%9 : tensor<8x64x96xf32>) outs(%13, %11 : tensor<8x64xf32>, tensor<8x64xi64>) {
    ^bb0(%in: f32, %out: f32, %out_4: i64):
      %31 = linalg.index 2 : index
      %32 = arith.index_cast %31 : index to i64
      %33 = arith.maximumf %in, %out : f32
      %34 = arith.cmpf ogt, %in, %out : f32
      %35 = arith.select %34, %32, %out_4 : i64
      linalg.yield %33, %35 : f32, i64
    } -> (tensor<8x64xf32>, tensor<8x64xi64>)
    %expanded = tensor.expand_shape %14#0 [[0], [1, 2]] output_shape [8, 64, 1] : tensor<8x64xf32> into tensor<8x64x1xf32>
    %15 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%9, %expanded : tensor<8x64x96xf32>, tensor<8x64x1xf32>) outs(%6 : tensor<8x64x96xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %31 = arith.subf %in, %in_4 : f32
      linalg.yield %31 : f32
    } -> tensor<8x64x96xf32>
    %16 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%15 : tensor<8x64x96xf32>) outs(%6 : tensor<8x64x96xf32>) {
    ^bb0(%in: f32, %out: f32):
      %31 = math.exp %in : f32
      linalg.yield %31 : f32
    } -> tensor<8x64x96xf32>
    %17 = tensor.empty() : tensor<8x64x1xf32>
    %18 = linalg.fill ins(%cst : f32) outs(%17 : tensor<8x64x1xf32>) -> tensor<8x64x1xf32>
    %19 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%16 : tensor<8x64x96xf32>) outs(%18 : tensor<8x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %31 = arith.addf %in, %out : f32
      linalg.yield %31 : f32
    } -> tensor<8x64x1xf32>
    %20 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%16, %19 : tensor<8x64x96xf32>, tensor<8x64x1xf32>) outs(%6 : tensor<8x64x96xf32>) {
    ^bb0(%in: f32, %in_4: f32, %out: f32):
      %31 = arith.divf %in, %in_4 : f32
      linalg.yield %31 : f32
    } -> tensor<8x64x96xf32>
    %21 = tensor.empty() : tensor<8x64x96xi1>
    %22 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%9 : tensor<8x64x96xf32>) outs(%21 : tensor<8x64x96xi1>) {
    ^bb0(%in: f32, %out: i1):
      %31 = arith.extf %in : f32 to f64
      %32 = arith.cmpf oeq, %31, %cst_2 : f64
      linalg.yield %32 : i1
    } -> tensor<8x64x96xi1>
    %23 = tensor.empty() : tensor<8x64x1xi1>
    %24 = linalg.fill ins(%true : i1) outs(%23 : tensor<8x64x1xi1>) -> tensor<8x64x1xi1>
    %25 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "reduction"]} ins(%22 : tensor<8x64x96xi1>) outs(%24 : tensor<8x64x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %31 = arith.andi %in, %out : i1
      linalg.yield %31 : i1
    } -> tensor<8x64x1xi1>
    %26 = linalg.generic {indexing_maps = [#map2, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%25, %cst_1, %20 : tensor<8x64x1xi1>, tensor<8x64x96xf32>, tensor<8x64x96xf32>) outs(%6 : tensor<8x64x96xf32>) {
    ^bb0(%in: i1, %in_4: f32, %in_5: f32, %out: f32):
      %31 = arith.select %in, %in_4, %in_5 : f32
      linalg.yield %31 : f32
    } -> tensor<8x64x96xf32>
    %27 = linalg.fill ins(%cst : f32) outs(%0 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %28 = linalg.batch_matmul ins(%26, %4 : tensor<8x64x96xf32>, tensor<8x96x64xf32>) outs(%27 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %29 = tensor.empty() : tensor<8x64x64xf16>
    %30 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel"]} ins(%28 : tensor<8x64x64xf32>) outs(%29 : tensor<8x64x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %31 = arith.truncf %in : f32 to f16
      linalg.yield %31 : f16
    } -> tensor<8x64x64xf16>
    return %30 : tensor<8x64x64xf16>
  }
}

// -----

// The mask that PyTorch makes numbers of, and adds.
// CHECK-LABEL: func.func @mask(
// CHECK-SAME:    %[[Q:[^:]*]]: tensor<2x4x64x64xf16>, %[[K:[^:]*]]: tensor<2x4x64x64xf16>, %[[V:[^:]*]]: tensor<2x4x64x64xf16>, %[[M:[^:]*]]: tensor<2x1x64x64xi1>)
// CHECK-NOT:     linalg
// CHECK:         attn.sdpa ins(%[[Q]], %[[K]], %[[V]] : {{.*}}) mask(%[[M]] : tensor<2x1x64x64xi1>) scale(
// CHECK-NOT:     linalg
// CHECK:         return

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> ()>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, 0, d2, d3)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  func.func @mask(%arg0: tensor<2x4x64x64xf16>, %arg1: tensor<2x4x64x64xf16>, %arg2: tensor<2x4x64x64xf16>, %arg3: tensor<2x1x64x64xi1>) -> tensor<2x4x64x64xf16> {
    %cst = arith.constant 0.000000e+00 : f32
    %c0_i64 = arith.constant 0 : i64
    %cst_0 = arith.constant 0xFF800000 : f32
    %true = arith.constant true
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<2x4x64x64xf32>
    %cst_2 = arith.constant 0.35355339059327379 : f64
    %cst_3 = arith.constant 0xFFF0000000000000 : f64
    %cst_4 = arith.constant dense<0xFC00> : tensor<f16>
    %cst_5 = arith.constant dense<0.000000e+00> : tensor<f16>
    %0 = tensor.empty() : tensor<2x1x64x64xf16>
    %1 = linalg.generic {indexing_maps = [#map, #map1, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg3, %cst_5, %cst_4 : tensor<2x1x64x64xi1>, tensor<f16>, tensor<f16>) outs(%0 : tensor<2x1x64x64xf16>) {
    ^bb0(%in: i1, %in_11: f16, %in_12: f16, %out: f16):
      %32 = arith.select %in, %in_11, %in_12 : f16
      linalg.yield %32 : f16
    } -> tensor<2x1x64x64xf16>
    %2 = tensor.empty() : tensor<2x4x64x64xf32>
    %3 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<2x4x64x64xf16>) outs(%2 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %32 = arith.extf %in : f16 to f32
      linalg.yield %32 : f32
    } -> tensor<2x4x64x64xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x4x64x64xf16>) outs(%2 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %32 = arith.extf %in : f16 to f32
      linalg.yield %32 : f32
    } -> tensor<2x4x64x64xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x4x64x64xf16>) outs(%2 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %32 = arith.extf %in : f16 to f32
      linalg.yield %32 : f32
    } -> tensor<2x4x64x64xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%3 : tensor<2x4x64x64xf32>) outs(%2 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %32 = arith.truncf %cst_2 : f64 to f32
      %33 = arith.mulf %in, %32 : f32
      linalg.yield %33 : f32
    } -> tensor<2x4x64x64xf32>
    %transposed = linalg.transpose ins(%4 : tensor<2x4x64x64xf32>) outs(%2 : tensor<2x4x64x64xf32>) permutation = [0, 1, 3, 2]
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed : tensor<2x4x64x64xf32>) outs(%2 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %32 = arith.truncf %cst_2 : f64 to f32
      %33 = arith.mulf %in, %32 : f32
      linalg.yield %33 : f32
    } -> tensor<2x4x64x64xf32>
    %collapsed = tensor.collapse_shape %6 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %collapsed_6 = tensor.collapse_shape %7 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %8 = tensor.empty() : tensor<8x64x64xf32>
    %9 = linalg.fill ins(%cst : f32) outs(%8 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %10 = linalg.batch_matmul ins(%collapsed, %collapsed_6 : tensor<8x64x64xf32>, tensor<8x64x64xf32>) outs(%9 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %expanded = tensor.expand_shape %10 [[0, 1], [2], [3]] output_shape [2, 4, 64, 64] : tensor<8x64x64xf32> into tensor<2x4x64x64xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded, %1 : tensor<2x4x64x64xf32>, tensor<2x1x64x64xf16>) outs(%2 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %in_11: f16, %out: f32):
      %32 = arith.extf %in_11 : f16 to f32
      %33 = arith.addf %in, %32 : f32
      linalg.yield %33 : f32
    } -> tensor<2x4x64x64xf32>
    %12 = tensor.empty() : tensor<2x4x64xi64>
    %13 = linalg.fill ins(%c0_i64 : i64) outs(%12 : tensor<2x4x64xi64>) -> tensor<2x4x64xi64>
    %14 = tensor.empty() : tensor<2x4x64xf32>
    %15 = linalg.fill ins(%cst_0 : f32) outs(%14 : tensor<2x4x64xf32>) -> tensor<2x4x64xf32>
    %16:2 = linalg.generic {indexing_maps = [#map, #map3, #map3], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%11 : tensor<2x4x64x64xf32>) outs(%15, %13 : tensor<2x4x64xf32>, tensor<2x4x64xi64>) {
    ^bb0(%in: f32, %out: f32, %out_11: i64):
      %32 = linalg.index 3 : index
      %33 = arith.index_cast %32 : index to i64
      %34 = arith.maximumf %in, %out : f32
      %35 = arith.cmpf ogt, %in, %out : f32
      %36 = arith.select %35, %33, %out_11 : i64
      linalg.yield %34, %36 : f32, i64
    } -> (tensor<2x4x64xf32>, tensor<2x4x64xi64>)
    %expanded_7 = tensor.expand_shape %16#0 [[0], [1], [2, 3]] output_shape [2, 4, 64, 1] : tensor<2x4x64xf32> into tensor<2x4x64x1xf32>
    %17 = linalg.generic {indexing_maps = [#map, #map4, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%11, %expanded_7 : tensor<2x4x64x64xf32>, tensor<2x4x64x1xf32>) outs(%2 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %in_11: f32, %out: f32):
      %32 = arith.subf %in, %in_11 : f32
      linalg.yield %32 : f32
    } -> tensor<2x4x64x64xf32>
    %18 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%17 : tensor<2x4x64x64xf32>) outs(%2 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %32 = math.exp %in : f32
      linalg.yield %32 : f32
    } -> tensor<2x4x64x64xf32>
    %19 = tensor.empty() : tensor<2x4x64x1xf32>
    %20 = linalg.fill ins(%cst : f32) outs(%19 : tensor<2x4x64x1xf32>) -> tensor<2x4x64x1xf32>
    %21 = linalg.generic {indexing_maps = [#map, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%18 : tensor<2x4x64x64xf32>) outs(%20 : tensor<2x4x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %32 = arith.addf %in, %out : f32
      linalg.yield %32 : f32
    } -> tensor<2x4x64x1xf32>
    %22 = linalg.generic {indexing_maps = [#map, #map4, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%18, %21 : tensor<2x4x64x64xf32>, tensor<2x4x64x1xf32>) outs(%2 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %in_11: f32, %out: f32):
      %32 = arith.divf %in, %in_11 : f32
      linalg.yield %32 : f32
    } -> tensor<2x4x64x64xf32>
    %23 = tensor.empty() : tensor<2x4x64x64xi1>
    %24 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%11 : tensor<2x4x64x64xf32>) outs(%23 : tensor<2x4x64x64xi1>) {
    ^bb0(%in: f32, %out: i1):
      %32 = arith.extf %in : f32 to f64
      %33 = arith.cmpf oeq, %32, %cst_3 : f64
      linalg.yield %33 : i1
    } -> tensor<2x4x64x64xi1>
    %25 = tensor.empty() : tensor<2x4x64x1xi1>
    %26 = linalg.fill ins(%true : i1) outs(%25 : tensor<2x4x64x1xi1>) -> tensor<2x4x64x1xi1>
    %27 = linalg.generic {indexing_maps = [#map, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%24 : tensor<2x4x64x64xi1>) outs(%26 : tensor<2x4x64x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %32 = arith.andi %in, %out : i1
      linalg.yield %32 : i1
    } -> tensor<2x4x64x1xi1>
    %28 = linalg.generic {indexing_maps = [#map4, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%27, %cst_1, %22 : tensor<2x4x64x1xi1>, tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) outs(%2 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: i1, %in_11: f32, %in_12: f32, %out: f32):
      %32 = arith.select %in, %in_11, %in_12 : f32
      linalg.yield %32 : f32
    } -> tensor<2x4x64x64xf32>
    %collapsed_8 = tensor.collapse_shape %28 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %collapsed_9 = tensor.collapse_shape %5 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %29 = linalg.batch_matmul ins(%collapsed_8, %collapsed_9 : tensor<8x64x64xf32>, tensor<8x64x64xf32>) outs(%9 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %expanded_10 = tensor.expand_shape %29 [[0, 1], [2], [3]] output_shape [2, 4, 64, 64] : tensor<8x64x64xf32> into tensor<2x4x64x64xf32>
    %30 = tensor.empty() : tensor<2x4x64x64xf16>
    %31 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_10 : tensor<2x4x64x64xf32>) outs(%30 : tensor<2x4x64x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %32 = arith.truncf %in : f32 to f16
      linalg.yield %32 : f16
    } -> tensor<2x4x64x64xf16>
    return %31 : tensor<2x4x64x64xf16>
  }
}

// -----

// Nor of f32.
// CHECK-LABEL: func.func @single(
// CHECK-NOT:     attn.sdpa
// CHECK:         math.exp
// CHECK-NOT:     attn.sdpa

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map2 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  func.func @single(%arg0: tensor<2x4x64x64xf32>, %arg1: tensor<2x4x64x64xf32>, %arg2: tensor<2x4x64x64xf32>) -> tensor<2x4x64x64xf32> {
    %cst = arith.constant 0.000000e+00 : f32
    %c0_i64 = arith.constant 0 : i64
    %cst_0 = arith.constant 0xFF800000 : f32
    %true = arith.constant true
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<2x4x64x64xf32>
    %cst_2 = arith.constant 0xFFF0000000000000 : f64
    %cst_3 = arith.constant 0.35355339059327379 : f64
    %0 = tensor.empty() : tensor<2x4x64x64xf32>
    %1 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<2x4x64x64xf32>) outs(%0 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %24 = arith.truncf %cst_3 : f64 to f32
      %25 = arith.mulf %in, %24 : f32
      linalg.yield %25 : f32
    } -> tensor<2x4x64x64xf32>
    %transposed = linalg.transpose ins(%arg1 : tensor<2x4x64x64xf32>) outs(%0 : tensor<2x4x64x64xf32>) permutation = [0, 1, 3, 2]
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed : tensor<2x4x64x64xf32>) outs(%0 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %24 = arith.truncf %cst_3 : f64 to f32
      %25 = arith.mulf %in, %24 : f32
      linalg.yield %25 : f32
    } -> tensor<2x4x64x64xf32>
    %collapsed = tensor.collapse_shape %1 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %collapsed_4 = tensor.collapse_shape %2 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %3 = tensor.empty() : tensor<8x64x64xf32>
    %4 = linalg.fill ins(%cst : f32) outs(%3 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %5 = linalg.batch_matmul ins(%collapsed, %collapsed_4 : tensor<8x64x64xf32>, tensor<8x64x64xf32>) outs(%4 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %expanded = tensor.expand_shape %5 [[0, 1], [2], [3]] output_shape [2, 4, 64, 64] : tensor<8x64x64xf32> into tensor<2x4x64x64xf32>
    %6 = tensor.empty() : tensor<2x4x64xi64>
    %7 = linalg.fill ins(%c0_i64 : i64) outs(%6 : tensor<2x4x64xi64>) -> tensor<2x4x64xi64>
    %8 = tensor.empty() : tensor<2x4x64xf32>
    %9 = linalg.fill ins(%cst_0 : f32) outs(%8 : tensor<2x4x64xf32>) -> tensor<2x4x64xf32>
    %10:2 = linalg.generic {indexing_maps = [#map, #map1, #map1], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%expanded : tensor<2x4x64x64xf32>) outs(%9, %7 : tensor<2x4x64xf32>, tensor<2x4x64xi64>) {
    ^bb0(%in: f32, %out: f32, %out_9: i64):
      %24 = linalg.index 3 : index
      %25 = arith.index_cast %24 : index to i64
      %26 = arith.maximumf %in, %out : f32
      %27 = arith.cmpf ogt, %in, %out : f32
      %28 = arith.select %27, %25, %out_9 : i64
      linalg.yield %26, %28 : f32, i64
    } -> (tensor<2x4x64xf32>, tensor<2x4x64xi64>)
    %expanded_5 = tensor.expand_shape %10#0 [[0], [1], [2, 3]] output_shape [2, 4, 64, 1] : tensor<2x4x64xf32> into tensor<2x4x64x1xf32>
    %11 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded, %expanded_5 : tensor<2x4x64x64xf32>, tensor<2x4x64x1xf32>) outs(%0 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %24 = arith.subf %in, %in_9 : f32
      linalg.yield %24 : f32
    } -> tensor<2x4x64x64xf32>
    %12 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%11 : tensor<2x4x64x64xf32>) outs(%0 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %24 = math.exp %in : f32
      linalg.yield %24 : f32
    } -> tensor<2x4x64x64xf32>
    %13 = tensor.empty() : tensor<2x4x64x1xf32>
    %14 = linalg.fill ins(%cst : f32) outs(%13 : tensor<2x4x64x1xf32>) -> tensor<2x4x64x1xf32>
    %15 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%12 : tensor<2x4x64x64xf32>) outs(%14 : tensor<2x4x64x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %24 = arith.addf %in, %out : f32
      linalg.yield %24 : f32
    } -> tensor<2x4x64x1xf32>
    %16 = linalg.generic {indexing_maps = [#map, #map2, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%12, %15 : tensor<2x4x64x64xf32>, tensor<2x4x64x1xf32>) outs(%0 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: f32, %in_9: f32, %out: f32):
      %24 = arith.divf %in, %in_9 : f32
      linalg.yield %24 : f32
    } -> tensor<2x4x64x64xf32>
    %17 = tensor.empty() : tensor<2x4x64x64xi1>
    %18 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded : tensor<2x4x64x64xf32>) outs(%17 : tensor<2x4x64x64xi1>) {
    ^bb0(%in: f32, %out: i1):
      %24 = arith.extf %in : f32 to f64
      %25 = arith.cmpf oeq, %24, %cst_2 : f64
      linalg.yield %25 : i1
    } -> tensor<2x4x64x64xi1>
    %19 = tensor.empty() : tensor<2x4x64x1xi1>
    %20 = linalg.fill ins(%true : i1) outs(%19 : tensor<2x4x64x1xi1>) -> tensor<2x4x64x1xi1>
    %21 = linalg.generic {indexing_maps = [#map, #map2], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%18 : tensor<2x4x64x64xi1>) outs(%20 : tensor<2x4x64x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %24 = arith.andi %in, %out : i1
      linalg.yield %24 : i1
    } -> tensor<2x4x64x1xi1>
    %22 = linalg.generic {indexing_maps = [#map2, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%21, %cst_1, %16 : tensor<2x4x64x1xi1>, tensor<2x4x64x64xf32>, tensor<2x4x64x64xf32>) outs(%0 : tensor<2x4x64x64xf32>) {
    ^bb0(%in: i1, %in_9: f32, %in_10: f32, %out: f32):
      %24 = arith.select %in, %in_9, %in_10 : f32
      linalg.yield %24 : f32
    } -> tensor<2x4x64x64xf32>
    %collapsed_6 = tensor.collapse_shape %22 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %collapsed_7 = tensor.collapse_shape %arg2 [[0, 1], [2], [3]] : tensor<2x4x64x64xf32> into tensor<8x64x64xf32>
    %23 = linalg.batch_matmul ins(%collapsed_6, %collapsed_7 : tensor<8x64x64xf32>, tensor<8x64x64xf32>) outs(%4 : tensor<8x64x64xf32>) -> tensor<8x64x64xf32>
    %expanded_8 = tensor.expand_shape %23 [[0, 1], [2], [3]] output_shape [2, 4, 64, 64] : tensor<8x64x64xf32> into tensor<2x4x64x64xf32>
    return %expanded_8 : tensor<2x4x64x64xf32>
  }
}
