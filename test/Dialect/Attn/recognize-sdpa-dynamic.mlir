// DEFINE: %{clean} = --int-range-optimizations --canonicalize --cse
// RUN: aot-opt %s %{clean} --attn-recognize-sdpa --canonicalize --cse --split-input-file \
// RUN:   | FileCheck %s
// RUN: sed 's/eq, %dim_6, %c1 /eq, %dim, %c1 /' %s \
// RUN:   | aot-opt %{clean} --attn-recognize-sdpa --split-input-file \
// RUN:   | FileCheck %s --check-prefix=OTHER

// Printed by Inputs/torch_attention.py with `dynamic`: what torch-mlir 20261001
// makes of PyTorch 2.13's scaled_dot_product_attention of dynamic lengths.

// Keys are read through a condition that repeats one for all where there is one.
// CHECK-LABEL: func.func @self(
// CHECK-SAME:    %[[Q:.*]]: tensor<2x4x?x64xf16>, %[[K:.*]]: tensor<2x4x?x64xf16>, %[[V:.*]]: tensor<2x4x?x64xf16>)
// CHECK-NOT:     linalg
// CHECK-DAG:     %[[NQ:.*]] = tensor.dim %[[Q]], %c2
// CHECK-DAG:     %[[NV:.*]] = tensor.dim %[[V]], %c2
// CHECK:         %[[VQ:.*]] = arith.cmpi eq, %[[NV]], %[[NQ]]
// CHECK:         cf.assert %[[VQ]], "attention: lengths
// CHECK:         %[[NK:.*]] = tensor.dim %[[K]], %c2
// CHECK:         %[[KQ:.*]] = arith.cmpi eq, %[[NK]], %[[NQ]]
// CHECK:         cf.assert %[[KQ]], "attention: lengths
// CHECK:         attn.sdpa ins(%[[Q]], %[[K]], %[[V]] : {{.*}}) scale(%{{.*}}) visible [#attn.causal<top_left>] outs(
// CHECK-NOT:     linalg
// CHECK:         return

// A condition on another length is none of these.
// OTHER-LABEL: func.func @self(
// OTHER-NOT:     attn.sdpa
// OTHER:         return

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1) -> ()>
#map2 = affine_map<(d0, d1) -> (d0, d1)>
#map3 = affine_map<(d0) -> (d0)>
#map4 = affine_map<(d0, d1) -> (0, d1)>
#map5 = affine_map<(d0, d1) -> (d0, 0)>
#map6 = affine_map<(d0, d1, d2, d3) -> (d2, d3)>
#map7 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map8 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
#map9 = affine_map<(d0, d1, d2, d3) -> ()>
module {
  func.func @self(%arg0: tensor<2x4x?x64xf16>, %arg1: tensor<2x4x?x64xf16>, %arg2: tensor<2x4x?x64xf16>) -> tensor<2x4x?x64xf16> {
    %c0_i64 = arith.constant 0 : i64
    %c1_i64 = arith.constant 1 : i64
    %c2_i64 = arith.constant 2 : i64
    %c4_i64 = arith.constant 4 : i64
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c8_i64 = arith.constant 8 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %true = arith.constant true
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<f32>
    %cst_2 = arith.constant dense<0xFF800000> : tensor<f32>
    %cst_3 = arith.constant dense<true> : tensor<i1>
    %cst_4 = arith.constant 0xFFF0000000000000 : f64
    %cst_5 = arith.constant 0.35355339059327379 : f64
    %dim = tensor.dim %arg0, %c2 : tensor<2x4x?x64xf16>
    %0 = arith.index_cast %dim : index to i64
    %1 = tensor.empty(%dim) : tensor<2x4x?x64xf32>
    %2 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<2x4x?x64xf16>) outs(%1 : tensor<2x4x?x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %79 = arith.extf %in : f16 to f32
      linalg.yield %79 : f32
    } -> tensor<2x4x?x64xf32>
    %dim_6 = tensor.dim %arg1, %c2 : tensor<2x4x?x64xf16>
    %3 = tensor.empty(%dim_6) : tensor<2x4x?x64xf32>
    %4 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x4x?x64xf16>) outs(%3 : tensor<2x4x?x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %79 = arith.extf %in : f16 to f32
      linalg.yield %79 : f32
    } -> tensor<2x4x?x64xf32>
    %dim_7 = tensor.dim %arg2, %c2 : tensor<2x4x?x64xf16>
    %5 = tensor.empty(%dim_7) : tensor<2x4x?x64xf32>
    %6 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x4x?x64xf16>) outs(%5 : tensor<2x4x?x64xf32>) {
    ^bb0(%in: f16, %out: f32):
      %79 = arith.extf %in : f16 to f32
      linalg.yield %79 : f32
    } -> tensor<2x4x?x64xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%2 : tensor<2x4x?x64xf32>) outs(%1 : tensor<2x4x?x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %79 = arith.truncf %cst_5 : f64 to f32
      %80 = arith.mulf %in, %79 : f32
      linalg.yield %80 : f32
    } -> tensor<2x4x?x64xf32>
    %8 = arith.cmpi sge, %0, %c0_i64 : i64
    cf.assert %8, "negative values not allowed in new dimensions"
    cf.assert %8, "negative values not allowed in new dimensions"
    %9 = tensor.empty(%dim, %dim) : tensor<?x?xi1>
    %10 = linalg.generic {indexing_maps = [#map1, #map2], iterator_types = ["parallel", "parallel"]} ins(%cst_3 : tensor<i1>) outs(%9 : tensor<?x?xi1>) {
    ^bb0(%in: i1, %out: i1):
      linalg.yield %in : i1
    } -> tensor<?x?xi1>
    %11 = tensor.empty(%dim) : tensor<?xi64>
    %12 = linalg.generic {indexing_maps = [#map3], iterator_types = ["parallel"]} outs(%11 : tensor<?xi64>) {
    ^bb0(%out: i64):
      %79 = linalg.index 0 : index
      %80 = arith.index_cast %79 : index to i64
      linalg.yield %80 : i64
    } -> tensor<?xi64>
    %expanded = tensor.expand_shape %12 [[0, 1]] output_shape [1, %dim] : tensor<?xi64> into tensor<1x?xi64>
    %expanded_8 = tensor.expand_shape %12 [[0, 1]] output_shape [%dim, 1] : tensor<?xi64> into tensor<?x1xi64>
    %13 = tensor.empty(%dim, %dim) : tensor<?x?xi64>
    %14 = linalg.generic {indexing_maps = [#map4, #map5, #map2], iterator_types = ["parallel", "parallel"]} ins(%expanded, %expanded_8 : tensor<1x?xi64>, tensor<?x1xi64>) outs(%13 : tensor<?x?xi64>) {
    ^bb0(%in: i64, %in_15: i64, %out: i64):
      %79 = arith.subi %in, %in_15 : i64
      linalg.yield %79 : i64
    } -> tensor<?x?xi64>
    %15 = tensor.empty(%dim, %dim) : tensor<?x?xi1>
    %16 = linalg.generic {indexing_maps = [#map2, #map2], iterator_types = ["parallel", "parallel"]} ins(%14 : tensor<?x?xi64>) outs(%15 : tensor<?x?xi1>) {
    ^bb0(%in: i64, %out: i1):
      %79 = arith.cmpi sle, %in, %c0_i64 : i64
      linalg.yield %79 : i1
    } -> tensor<?x?xi1>
    cf.assert %true, "mismatched size for broadcast"
    cf.assert %true, "mismatched size for broadcast"
    %17 = linalg.generic {indexing_maps = [#map2, #map2, #map2], iterator_types = ["parallel", "parallel"]} ins(%16, %10 : tensor<?x?xi1>, tensor<?x?xi1>) outs(%15 : tensor<?x?xi1>) {
    ^bb0(%in: i1, %in_15: i1, %out: i1):
      %79 = arith.andi %in, %in_15 : i1
      linalg.yield %79 : i1
    } -> tensor<?x?xi1>
    %18 = tensor.empty(%dim, %dim) : tensor<?x?xf32>
    %19 = linalg.generic {indexing_maps = [#map2, #map1, #map1, #map2], iterator_types = ["parallel", "parallel"]} ins(%17, %cst_1, %cst_2 : tensor<?x?xi1>, tensor<f32>, tensor<f32>) outs(%18 : tensor<?x?xf32>) {
    ^bb0(%in: i1, %in_15: f32, %in_16: f32, %out: f32):
      %79 = arith.select %in, %in_15, %in_16 : f32
      linalg.yield %79 : f32
    } -> tensor<?x?xf32>
    %20 = tensor.empty(%dim_6) : tensor<2x4x64x?xf32>
    %transposed = linalg.transpose ins(%4 : tensor<2x4x?x64xf32>) outs(%20 : tensor<2x4x64x?xf32>) permutation = [0, 1, 3, 2]
    %21 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed : tensor<2x4x64x?xf32>) outs(%20 : tensor<2x4x64x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %79 = arith.truncf %cst_5 : f64 to f32
      %80 = arith.mulf %in, %79 : f32
      linalg.yield %80 : f32
    } -> tensor<2x4x64x?xf32>
    %22 = arith.cmpi sge, %0, %c0_i64 : i64
    cf.assert %22, "unimplemented: dynamic negative broadcast sizes"
    %23 = tensor.empty(%dim) : tensor<2x4x?x64xf32>
    %24 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%23 : tensor<2x4x?x64xf32>) {
    ^bb0(%out: f32):
      %79 = linalg.index 0 : index
      %80 = linalg.index 1 : index
      %81 = linalg.index 2 : index
      %82 = linalg.index 3 : index
      %83 = arith.cmpi eq, %dim, %c1 : index
      %84 = arith.select %83, %c0, %81 : index
      %extracted = tensor.extract %7[%79, %80, %84, %82] : tensor<2x4x?x64xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x4x?x64xf32>
    %collapsed = tensor.collapse_shape %24 [[0, 1], [2], [3]] : tensor<2x4x?x64xf32> into tensor<8x?x64xf32>
    cf.assert %22, "unimplemented: dynamic negative broadcast sizes"
    %25 = tensor.empty(%dim) : tensor<2x4x64x?xf32>
    %26 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%25 : tensor<2x4x64x?xf32>) {
    ^bb0(%out: f32):
      %79 = linalg.index 0 : index
      %80 = linalg.index 1 : index
      %81 = linalg.index 2 : index
      %82 = linalg.index 3 : index
      %83 = arith.cmpi eq, %dim_6, %c1 : index
      %84 = arith.select %83, %c0, %82 : index
      %extracted = tensor.extract %21[%79, %80, %81, %84] : tensor<2x4x64x?xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x4x64x?xf32>
    %collapsed_9 = tensor.collapse_shape %26 [[0, 1], [2], [3]] : tensor<2x4x64x?xf32> into tensor<8x64x?xf32>
    %27 = tensor.empty(%dim, %dim) : tensor<8x?x?xf32>
    %28 = linalg.fill ins(%cst : f32) outs(%27 : tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
    %29 = linalg.batch_matmul ins(%collapsed, %collapsed_9 : tensor<8x?x64xf32>, tensor<8x64x?xf32>) outs(%28 : tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
    %30 = arith.muli %0, %c8_i64 : i64
    %31 = arith.cmpi slt, %0, %c0_i64 : i64
    %32 = arith.select %31, %c8_i64, %30 : i64
    %33 = arith.extui %31 : i1 to i64
    %34 = arith.muli %32, %0 : i64
    %35 = arith.addi %33, %c1_i64 : i64
    %36 = arith.select %31, %c8_i64, %34 : i64
    %37 = arith.select %31, %35, %33 : i64
    %38 = arith.cmpi sle, %37, %c1_i64 : i64
    cf.assert %38, "must have at most one inferred (negative) dimension"
    %39 = arith.muli %30, %0 : i64
    %40 = arith.divsi %39, %36 : i64
    %41 = arith.select %31, %40, %0 : i64
    %from_elements = tensor.from_elements %c2_i64, %c4_i64, %41, %41 : tensor<4xi64>
    %reshape = tensor.reshape %29(%from_elements) : (tensor<8x?x?xf32>, tensor<4xi64>) -> tensor<2x4x?x?xf32>
    %42 = arith.index_cast %41 : i64 to index
    %43 = arith.cmpi eq, %42, %dim : index
    cf.assert %43, "mismatched size for broadcast"
    cf.assert %43, "mismatched size for broadcast"
    %44 = tensor.empty(%42, %42) : tensor<2x4x?x?xf32>
    %45 = linalg.generic {indexing_maps = [#map, #map6, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%reshape, %19 : tensor<2x4x?x?xf32>, tensor<?x?xf32>) outs(%44 : tensor<2x4x?x?xf32>) {
    ^bb0(%in: f32, %in_15: f32, %out: f32):
      %79 = arith.addf %in, %in_15 : f32
      linalg.yield %79 : f32
    } -> tensor<2x4x?x?xf32>
    %46 = tensor.empty(%42) : tensor<2x4x?xi64>
    %47 = linalg.fill ins(%c0_i64 : i64) outs(%46 : tensor<2x4x?xi64>) -> tensor<2x4x?xi64>
    %48 = tensor.empty(%42) : tensor<2x4x?xf32>
    %49 = linalg.fill ins(%cst_0 : f32) outs(%48 : tensor<2x4x?xf32>) -> tensor<2x4x?xf32>
    %50:2 = linalg.generic {indexing_maps = [#map, #map7, #map7], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%45 : tensor<2x4x?x?xf32>) outs(%49, %47 : tensor<2x4x?xf32>, tensor<2x4x?xi64>) {
    ^bb0(%in: f32, %out: f32, %out_15: i64):
      %79 = linalg.index 3 : index
      %80 = arith.index_cast %79 : index to i64
      %81 = arith.maximumf %in, %out : f32
      %82 = arith.cmpf ogt, %in, %out : f32
      %83 = arith.select %82, %80, %out_15 : i64
      linalg.yield %81, %83 : f32, i64
    } -> (tensor<2x4x?xf32>, tensor<2x4x?xi64>)
    %expanded_10 = tensor.expand_shape %50#0 [[0], [1], [2, 3]] output_shape [2, 4, %42, 1] : tensor<2x4x?xf32> into tensor<2x4x?x1xf32>
    %51 = linalg.generic {indexing_maps = [#map, #map8, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%45, %expanded_10 : tensor<2x4x?x?xf32>, tensor<2x4x?x1xf32>) outs(%44 : tensor<2x4x?x?xf32>) {
    ^bb0(%in: f32, %in_15: f32, %out: f32):
      %79 = arith.subf %in, %in_15 : f32
      linalg.yield %79 : f32
    } -> tensor<2x4x?x?xf32>
    %52 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%51 : tensor<2x4x?x?xf32>) outs(%44 : tensor<2x4x?x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %79 = math.exp %in : f32
      linalg.yield %79 : f32
    } -> tensor<2x4x?x?xf32>
    %53 = tensor.empty(%42) : tensor<2x4x?x1xf32>
    %54 = linalg.fill ins(%cst : f32) outs(%53 : tensor<2x4x?x1xf32>) -> tensor<2x4x?x1xf32>
    %55 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%52 : tensor<2x4x?x?xf32>) outs(%54 : tensor<2x4x?x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %79 = arith.addf %in, %out : f32
      linalg.yield %79 : f32
    } -> tensor<2x4x?x1xf32>
    %56 = linalg.generic {indexing_maps = [#map, #map8, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%52, %55 : tensor<2x4x?x?xf32>, tensor<2x4x?x1xf32>) outs(%44 : tensor<2x4x?x?xf32>) {
    ^bb0(%in: f32, %in_15: f32, %out: f32):
      %79 = arith.divf %in, %in_15 : f32
      linalg.yield %79 : f32
    } -> tensor<2x4x?x?xf32>
    %57 = tensor.empty(%42, %42) : tensor<2x4x?x?xi1>
    %58 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%45 : tensor<2x4x?x?xf32>) outs(%57 : tensor<2x4x?x?xi1>) {
    ^bb0(%in: f32, %out: i1):
      %79 = arith.extf %in : f32 to f64
      %80 = arith.cmpf oeq, %79, %cst_4 : f64
      linalg.yield %80 : i1
    } -> tensor<2x4x?x?xi1>
    %59 = tensor.empty(%42) : tensor<2x4x?x1xi1>
    %60 = linalg.fill ins(%true : i1) outs(%59 : tensor<2x4x?x1xi1>) -> tensor<2x4x?x1xi1>
    %61 = linalg.generic {indexing_maps = [#map, #map8], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%58 : tensor<2x4x?x?xi1>) outs(%60 : tensor<2x4x?x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %79 = arith.andi %in, %out : i1
      linalg.yield %79 : i1
    } -> tensor<2x4x?x1xi1>
    %62 = arith.cmpi sge, %41, %c0_i64 : i64
    cf.assert %62, "negative values not allowed in new dimensions"
    %63 = arith.index_cast %41 : i64 to index
    cf.assert %62, "negative values not allowed in new dimensions"
    %64 = tensor.empty(%63, %63) : tensor<2x4x?x?xf32>
    %65 = linalg.generic {indexing_maps = [#map9, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%cst_1 : tensor<f32>) outs(%64 : tensor<2x4x?x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x?x?xf32>
    %66 = arith.cmpi eq, %42, %63 : index
    cf.assert %66, "mismatched size for broadcast"
    %67 = arith.cmpi eq, %63, %42 : index
    cf.assert %67, "mismatched size for broadcast"
    %68 = tensor.empty(%42, %63) : tensor<2x4x?x?xf32>
    %69 = linalg.generic {indexing_maps = [#map8, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%61, %65, %56 : tensor<2x4x?x1xi1>, tensor<2x4x?x?xf32>, tensor<2x4x?x?xf32>) outs(%68 : tensor<2x4x?x?xf32>) {
    ^bb0(%in: i1, %in_15: f32, %in_16: f32, %out: f32):
      %79 = arith.select %in, %in_15, %in_16 : f32
      linalg.yield %79 : f32
    } -> tensor<2x4x?x?xf32>
    cf.assert %22, "unimplemented: dynamic negative broadcast sizes"
    cf.assert %22, "unimplemented: dynamic negative broadcast sizes"
    %70 = tensor.empty(%dim, %dim) : tensor<2x4x?x?xf32>
    %71 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%70 : tensor<2x4x?x?xf32>) {
    ^bb0(%out: f32):
      %79 = linalg.index 0 : index
      %80 = linalg.index 1 : index
      %81 = linalg.index 2 : index
      %82 = linalg.index 3 : index
      %83 = arith.cmpi eq, %42, %c1 : index
      %84 = arith.select %83, %c0, %81 : index
      %85 = arith.cmpi eq, %63, %c1 : index
      %86 = arith.select %85, %c0, %82 : index
      %extracted = tensor.extract %69[%79, %80, %84, %86] : tensor<2x4x?x?xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x4x?x?xf32>
    cf.assert %38, "must have at most one inferred (negative) dimension"
    %from_elements_11 = tensor.from_elements %c8_i64, %41, %41 : tensor<3xi64>
    %reshape_12 = tensor.reshape %71(%from_elements_11) : (tensor<2x4x?x?xf32>, tensor<3xi64>) -> tensor<8x?x?xf32>
    cf.assert %22, "unimplemented: dynamic negative broadcast sizes"
    %72 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%23 : tensor<2x4x?x64xf32>) {
    ^bb0(%out: f32):
      %79 = linalg.index 0 : index
      %80 = linalg.index 1 : index
      %81 = linalg.index 2 : index
      %82 = linalg.index 3 : index
      %83 = arith.cmpi eq, %dim_7, %c1 : index
      %84 = arith.select %83, %c0, %81 : index
      %extracted = tensor.extract %6[%79, %80, %84, %82] : tensor<2x4x?x64xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x4x?x64xf32>
    %collapsed_13 = tensor.collapse_shape %72 [[0, 1], [2], [3]] : tensor<2x4x?x64xf32> into tensor<8x?x64xf32>
    %73 = arith.cmpi eq, %41, %0 : i64
    cf.assert %73, "mismatching contracting dimension"
    %74 = tensor.empty(%42) : tensor<8x?x64xf32>
    %75 = linalg.fill ins(%cst : f32) outs(%74 : tensor<8x?x64xf32>) -> tensor<8x?x64xf32>
    %76 = linalg.batch_matmul ins(%reshape_12, %collapsed_13 : tensor<8x?x?xf32>, tensor<8x?x64xf32>) outs(%75 : tensor<8x?x64xf32>) -> tensor<8x?x64xf32>
    %expanded_14 = tensor.expand_shape %76 [[0, 1], [2], [3]] output_shape [2, 4, %42, 64] : tensor<8x?x64xf32> into tensor<2x4x?x64xf32>
    %77 = tensor.empty(%42) : tensor<2x4x?x64xf16>
    %78 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_14 : tensor<2x4x?x64xf32>) outs(%77 : tensor<2x4x?x64xf16>) {
    ^bb0(%in: f32, %out: f16):
      %79 = arith.truncf %in : f32 to f16
      linalg.yield %79 : f16
    } -> tensor<2x4x?x64xf16>
    return %78 : tensor<2x4x?x64xf16>
  }
}

// -----

// CHECK-LABEL: func.func @cross(
// CHECK-SAME:    %[[Q:.*]]: tensor<2x4x?x64xbf16>, %[[K:.*]]: tensor<2x2x?x64xbf16>, %[[V:.*]]: tensor<2x2x?x64xbf16>, %[[M:.*]]: tensor<2x1x?x?xi1>)
// CHECK-NOT:     linalg
// CHECK-DAG:     %[[NK:.*]] = tensor.dim %[[K]], %c2
// CHECK-DAG:     %[[NV:.*]] = tensor.dim %[[V]], %c2
// CHECK:         %[[KV:.*]] = arith.cmpi eq, %[[NK]], %[[NV]]
// CHECK:         cf.assert %[[KV]], "attention: lengths
// CHECK:         attn.sdpa ins(%[[Q]], %[[K]], %[[V]] : {{.*}}) mask(%[[M]] : {{.*}}) scale(%{{.*}}) outs(
// CHECK-NOT:     linalg
// CHECK:         return

#map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#map1 = affine_map<(d0, d1, d2, d3) -> ()>
#map2 = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d3, d4)>
#map3 = affine_map<(d0, d1, d2, d3) -> (d0, 0, d2, d3)>
#map4 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2)>
#map5 = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, 0)>
module {
  func.func @cross(%arg0: tensor<2x4x?x64xbf16>, %arg1: tensor<2x2x?x64xbf16>, %arg2: tensor<2x2x?x64xbf16>, %arg3: tensor<2x1x?x?xi1>) -> tensor<2x4x?x64xbf16> {
    %c1_i64 = arith.constant 1 : i64
    %c2_i64 = arith.constant 2 : i64
    %c4_i64 = arith.constant 4 : i64
    %c0_i64 = arith.constant 0 : i64
    %c1 = arith.constant 1 : index
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c8_i64 = arith.constant 8 : i64
    %cst = arith.constant 0.000000e+00 : f32
    %cst_0 = arith.constant 0xFF800000 : f32
    %true = arith.constant true
    %cst_1 = arith.constant dense<0.000000e+00> : tensor<f32>
    %cst_2 = arith.constant dense<0.000000e+00> : tensor<bf16>
    %cst_3 = arith.constant dense<0xFF80> : tensor<bf16>
    %cst_4 = arith.constant 0.35355339059327379 : f64
    %cst_5 = arith.constant 0xFFF0000000000000 : f64
    %dim = tensor.dim %arg0, %c2 : tensor<2x4x?x64xbf16>
    %0 = arith.index_cast %dim : index to i64
    %dim_6 = tensor.dim %arg2, %c2 : tensor<2x2x?x64xbf16>
    %1 = arith.index_cast %dim_6 : index to i64
    %dim_7 = tensor.dim %arg3, %c2 : tensor<2x1x?x?xi1>
    %dim_8 = tensor.dim %arg3, %c3 : tensor<2x1x?x?xi1>
    %2 = tensor.empty(%dim_7, %dim_8) : tensor<2x1x?x?xbf16>
    %3 = linalg.generic {indexing_maps = [#map, #map1, #map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg3, %cst_2, %cst_3 : tensor<2x1x?x?xi1>, tensor<bf16>, tensor<bf16>) outs(%2 : tensor<2x1x?x?xbf16>) {
    ^bb0(%in: i1, %in_19: bf16, %in_20: bf16, %out: bf16):
      %80 = arith.select %in, %in_19, %in_20 : bf16
      linalg.yield %80 : bf16
    } -> tensor<2x1x?x?xbf16>
    %4 = tensor.empty(%dim) : tensor<2x4x?x64xf32>
    %5 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg0 : tensor<2x4x?x64xbf16>) outs(%4 : tensor<2x4x?x64xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %80 = arith.extf %in : bf16 to f32
      linalg.yield %80 : f32
    } -> tensor<2x4x?x64xf32>
    %dim_9 = tensor.dim %arg1, %c2 : tensor<2x2x?x64xbf16>
    %6 = tensor.empty(%dim_9) : tensor<2x2x?x64xf32>
    %7 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg1 : tensor<2x2x?x64xbf16>) outs(%6 : tensor<2x2x?x64xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %80 = arith.extf %in : bf16 to f32
      linalg.yield %80 : f32
    } -> tensor<2x2x?x64xf32>
    %8 = tensor.empty(%dim_6) : tensor<2x2x?x64xf32>
    %9 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%arg2 : tensor<2x2x?x64xbf16>) outs(%8 : tensor<2x2x?x64xf32>) {
    ^bb0(%in: bf16, %out: f32):
      %80 = arith.extf %in : bf16 to f32
      linalg.yield %80 : f32
    } -> tensor<2x2x?x64xf32>
    %10 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%5 : tensor<2x4x?x64xf32>) outs(%4 : tensor<2x4x?x64xf32>) {
    ^bb0(%in: f32, %out: f32):
      %80 = arith.truncf %cst_4 : f64 to f32
      %81 = arith.mulf %in, %80 : f32
      linalg.yield %81 : f32
    } -> tensor<2x4x?x64xf32>
    %expanded = tensor.expand_shape %7 [[0], [1], [2, 3], [4]] output_shape [2, 2, 1, %dim_9, 64] : tensor<2x2x?x64xf32> into tensor<2x2x1x?x64xf32>
    %11 = arith.cmpi sge, %1, %c0_i64 : i64
    cf.assert %11, "unimplemented: dynamic negative broadcast sizes"
    %12 = tensor.empty(%dim_6) : tensor<2x2x2x?x64xf32>
    %13 = linalg.generic {indexing_maps = [#map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} outs(%12 : tensor<2x2x2x?x64xf32>) {
    ^bb0(%out: f32):
      %80 = linalg.index 0 : index
      %81 = linalg.index 1 : index
      %82 = linalg.index 3 : index
      %83 = linalg.index 4 : index
      %84 = arith.cmpi eq, %dim_9, %c1 : index
      %85 = arith.select %84, %c0, %82 : index
      %extracted = tensor.extract %expanded[%80, %81, %c0, %85, %83] : tensor<2x2x1x?x64xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x2x2x?x64xf32>
    %collapsed = tensor.collapse_shape %13 [[0], [1, 2], [3], [4]] : tensor<2x2x2x?x64xf32> into tensor<2x4x?x64xf32>
    %expanded_10 = tensor.expand_shape %9 [[0], [1], [2, 3], [4]] output_shape [2, 2, 1, %dim_6, 64] : tensor<2x2x?x64xf32> into tensor<2x2x1x?x64xf32>
    cf.assert %11, "unimplemented: dynamic negative broadcast sizes"
    %14 = linalg.generic {indexing_maps = [#map2], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} outs(%12 : tensor<2x2x2x?x64xf32>) {
    ^bb0(%out: f32):
      %80 = linalg.index 0 : index
      %81 = linalg.index 1 : index
      %82 = linalg.index 3 : index
      %83 = linalg.index 4 : index
      %84 = arith.cmpi eq, %dim_6, %c1 : index
      %85 = arith.select %84, %c0, %82 : index
      %extracted = tensor.extract %expanded_10[%80, %81, %c0, %85, %83] : tensor<2x2x1x?x64xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x2x2x?x64xf32>
    %collapsed_11 = tensor.collapse_shape %14 [[0], [1, 2], [3], [4]] : tensor<2x2x2x?x64xf32> into tensor<2x4x?x64xf32>
    %15 = tensor.empty(%dim_6) : tensor<2x4x64x?xf32>
    %transposed = linalg.transpose ins(%collapsed : tensor<2x4x?x64xf32>) outs(%15 : tensor<2x4x64x?xf32>) permutation = [0, 1, 3, 2]
    %16 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%transposed : tensor<2x4x64x?xf32>) outs(%15 : tensor<2x4x64x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %80 = arith.truncf %cst_4 : f64 to f32
      %81 = arith.mulf %in, %80 : f32
      linalg.yield %81 : f32
    } -> tensor<2x4x64x?xf32>
    %17 = arith.cmpi sge, %0, %c0_i64 : i64
    cf.assert %17, "unimplemented: dynamic negative broadcast sizes"
    %18 = tensor.empty(%dim) : tensor<2x4x?x64xf32>
    %19 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%18 : tensor<2x4x?x64xf32>) {
    ^bb0(%out: f32):
      %80 = linalg.index 0 : index
      %81 = linalg.index 1 : index
      %82 = linalg.index 2 : index
      %83 = linalg.index 3 : index
      %84 = arith.cmpi eq, %dim, %c1 : index
      %85 = arith.select %84, %c0, %82 : index
      %extracted = tensor.extract %10[%80, %81, %85, %83] : tensor<2x4x?x64xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x4x?x64xf32>
    %collapsed_12 = tensor.collapse_shape %19 [[0, 1], [2], [3]] : tensor<2x4x?x64xf32> into tensor<8x?x64xf32>
    cf.assert %11, "unimplemented: dynamic negative broadcast sizes"
    %20 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%15 : tensor<2x4x64x?xf32>) {
    ^bb0(%out: f32):
      %80 = linalg.index 0 : index
      %81 = linalg.index 1 : index
      %82 = linalg.index 2 : index
      %83 = linalg.index 3 : index
      %84 = arith.cmpi eq, %dim_6, %c1 : index
      %85 = arith.select %84, %c0, %83 : index
      %extracted = tensor.extract %16[%80, %81, %82, %85] : tensor<2x4x64x?xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x4x64x?xf32>
    %collapsed_13 = tensor.collapse_shape %20 [[0, 1], [2], [3]] : tensor<2x4x64x?xf32> into tensor<8x64x?xf32>
    %21 = tensor.empty(%dim, %dim_6) : tensor<8x?x?xf32>
    %22 = linalg.fill ins(%cst : f32) outs(%21 : tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
    %23 = linalg.batch_matmul ins(%collapsed_12, %collapsed_13 : tensor<8x?x64xf32>, tensor<8x64x?xf32>) outs(%22 : tensor<8x?x?xf32>) -> tensor<8x?x?xf32>
    %24 = arith.muli %0, %c8_i64 : i64
    %25 = arith.cmpi slt, %0, %c0_i64 : i64
    %26 = arith.select %25, %c8_i64, %24 : i64
    %27 = arith.extui %25 : i1 to i64
    %28 = arith.muli %26, %1 : i64
    %29 = arith.addi %27, %c1_i64 : i64
    %30 = arith.cmpi slt, %1, %c0_i64 : i64
    %31 = arith.select %30, %26, %28 : i64
    %32 = arith.select %30, %29, %27 : i64
    %33 = arith.cmpi sle, %32, %c1_i64 : i64
    cf.assert %33, "must have at most one inferred (negative) dimension"
    %34 = arith.muli %24, %1 : i64
    %35 = arith.divsi %34, %31 : i64
    %36 = arith.select %25, %35, %0 : i64
    %37 = arith.select %30, %35, %1 : i64
    %from_elements = tensor.from_elements %c2_i64, %c4_i64, %36, %37 : tensor<4xi64>
    %reshape = tensor.reshape %23(%from_elements) : (tensor<8x?x?xf32>, tensor<4xi64>) -> tensor<2x4x?x?xf32>
    %38 = arith.index_cast %36 : i64 to index
    %39 = arith.index_cast %37 : i64 to index
    %40 = arith.cmpi eq, %38, %dim_7 : index
    cf.assert %40, "mismatched size for broadcast"
    %41 = arith.cmpi eq, %39, %dim_8 : index
    cf.assert %41, "mismatched size for broadcast"
    %42 = tensor.empty(%38, %39) : tensor<2x4x?x?xf32>
    %43 = linalg.generic {indexing_maps = [#map, #map3, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%reshape, %3 : tensor<2x4x?x?xf32>, tensor<2x1x?x?xbf16>) outs(%42 : tensor<2x4x?x?xf32>) {
    ^bb0(%in: f32, %in_19: bf16, %out: f32):
      %80 = arith.extf %in_19 : bf16 to f32
      %81 = arith.addf %in, %80 : f32
      linalg.yield %81 : f32
    } -> tensor<2x4x?x?xf32>
    %44 = tensor.empty(%38) : tensor<2x4x?xi64>
    %45 = linalg.fill ins(%c0_i64 : i64) outs(%44 : tensor<2x4x?xi64>) -> tensor<2x4x?xi64>
    %46 = tensor.empty(%38) : tensor<2x4x?xf32>
    %47 = linalg.fill ins(%cst_0 : f32) outs(%46 : tensor<2x4x?xf32>) -> tensor<2x4x?xf32>
    %48:2 = linalg.generic {indexing_maps = [#map, #map4, #map4], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%43 : tensor<2x4x?x?xf32>) outs(%47, %45 : tensor<2x4x?xf32>, tensor<2x4x?xi64>) {
    ^bb0(%in: f32, %out: f32, %out_19: i64):
      %80 = linalg.index 3 : index
      %81 = arith.index_cast %80 : index to i64
      %82 = arith.maximumf %in, %out : f32
      %83 = arith.cmpf ogt, %in, %out : f32
      %84 = arith.select %83, %81, %out_19 : i64
      linalg.yield %82, %84 : f32, i64
    } -> (tensor<2x4x?xf32>, tensor<2x4x?xi64>)
    %expanded_14 = tensor.expand_shape %48#0 [[0], [1], [2, 3]] output_shape [2, 4, %38, 1] : tensor<2x4x?xf32> into tensor<2x4x?x1xf32>
    %49 = linalg.generic {indexing_maps = [#map, #map5, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%43, %expanded_14 : tensor<2x4x?x?xf32>, tensor<2x4x?x1xf32>) outs(%42 : tensor<2x4x?x?xf32>) {
    ^bb0(%in: f32, %in_19: f32, %out: f32):
      %80 = arith.subf %in, %in_19 : f32
      linalg.yield %80 : f32
    } -> tensor<2x4x?x?xf32>
    %50 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%49 : tensor<2x4x?x?xf32>) outs(%42 : tensor<2x4x?x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      %80 = math.exp %in : f32
      linalg.yield %80 : f32
    } -> tensor<2x4x?x?xf32>
    %51 = tensor.empty(%38) : tensor<2x4x?x1xf32>
    %52 = linalg.fill ins(%cst : f32) outs(%51 : tensor<2x4x?x1xf32>) -> tensor<2x4x?x1xf32>
    %53 = linalg.generic {indexing_maps = [#map, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%50 : tensor<2x4x?x?xf32>) outs(%52 : tensor<2x4x?x1xf32>) {
    ^bb0(%in: f32, %out: f32):
      %80 = arith.addf %in, %out : f32
      linalg.yield %80 : f32
    } -> tensor<2x4x?x1xf32>
    %54 = linalg.generic {indexing_maps = [#map, #map5, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%50, %53 : tensor<2x4x?x?xf32>, tensor<2x4x?x1xf32>) outs(%42 : tensor<2x4x?x?xf32>) {
    ^bb0(%in: f32, %in_19: f32, %out: f32):
      %80 = arith.divf %in, %in_19 : f32
      linalg.yield %80 : f32
    } -> tensor<2x4x?x?xf32>
    %55 = tensor.empty(%38, %39) : tensor<2x4x?x?xi1>
    %56 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%43 : tensor<2x4x?x?xf32>) outs(%55 : tensor<2x4x?x?xi1>) {
    ^bb0(%in: f32, %out: i1):
      %80 = arith.extf %in : f32 to f64
      %81 = arith.cmpf oeq, %80, %cst_5 : f64
      linalg.yield %81 : i1
    } -> tensor<2x4x?x?xi1>
    %57 = tensor.empty(%38) : tensor<2x4x?x1xi1>
    %58 = linalg.fill ins(%true : i1) outs(%57 : tensor<2x4x?x1xi1>) -> tensor<2x4x?x1xi1>
    %59 = linalg.generic {indexing_maps = [#map, #map5], iterator_types = ["parallel", "parallel", "parallel", "reduction"]} ins(%56 : tensor<2x4x?x?xi1>) outs(%58 : tensor<2x4x?x1xi1>) {
    ^bb0(%in: i1, %out: i1):
      %80 = arith.andi %in, %out : i1
      linalg.yield %80 : i1
    } -> tensor<2x4x?x1xi1>
    %60 = arith.cmpi sge, %36, %c0_i64 : i64
    cf.assert %60, "negative values not allowed in new dimensions"
    %61 = arith.index_cast %36 : i64 to index
    %62 = arith.cmpi sge, %37, %c0_i64 : i64
    cf.assert %62, "negative values not allowed in new dimensions"
    %63 = arith.index_cast %37 : i64 to index
    %64 = tensor.empty(%61, %63) : tensor<2x4x?x?xf32>
    %65 = linalg.generic {indexing_maps = [#map1, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%cst_1 : tensor<f32>) outs(%64 : tensor<2x4x?x?xf32>) {
    ^bb0(%in: f32, %out: f32):
      linalg.yield %in : f32
    } -> tensor<2x4x?x?xf32>
    %66 = arith.cmpi eq, %38, %61 : index
    cf.assert %66, "mismatched size for broadcast"
    %67 = arith.cmpi eq, %63, %39 : index
    cf.assert %67, "mismatched size for broadcast"
    %68 = tensor.empty(%38, %63) : tensor<2x4x?x?xf32>
    %69 = linalg.generic {indexing_maps = [#map5, #map, #map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%59, %65, %54 : tensor<2x4x?x1xi1>, tensor<2x4x?x?xf32>, tensor<2x4x?x?xf32>) outs(%68 : tensor<2x4x?x?xf32>) {
    ^bb0(%in: i1, %in_19: f32, %in_20: f32, %out: f32):
      %80 = arith.select %in, %in_19, %in_20 : f32
      linalg.yield %80 : f32
    } -> tensor<2x4x?x?xf32>
    cf.assert %17, "unimplemented: dynamic negative broadcast sizes"
    cf.assert %11, "unimplemented: dynamic negative broadcast sizes"
    %70 = tensor.empty(%dim, %dim_6) : tensor<2x4x?x?xf32>
    %71 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%70 : tensor<2x4x?x?xf32>) {
    ^bb0(%out: f32):
      %80 = linalg.index 0 : index
      %81 = linalg.index 1 : index
      %82 = linalg.index 2 : index
      %83 = linalg.index 3 : index
      %84 = arith.cmpi eq, %38, %c1 : index
      %85 = arith.select %84, %c0, %82 : index
      %86 = arith.cmpi eq, %63, %c1 : index
      %87 = arith.select %86, %c0, %83 : index
      %extracted = tensor.extract %69[%80, %81, %85, %87] : tensor<2x4x?x?xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x4x?x?xf32>
    cf.assert %33, "must have at most one inferred (negative) dimension"
    %from_elements_15 = tensor.from_elements %c8_i64, %36, %37 : tensor<3xi64>
    %reshape_16 = tensor.reshape %71(%from_elements_15) : (tensor<2x4x?x?xf32>, tensor<3xi64>) -> tensor<8x?x?xf32>
    cf.assert %11, "unimplemented: dynamic negative broadcast sizes"
    %72 = tensor.empty(%dim_6) : tensor<2x4x?x64xf32>
    %73 = linalg.generic {indexing_maps = [#map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} outs(%72 : tensor<2x4x?x64xf32>) {
    ^bb0(%out: f32):
      %80 = linalg.index 0 : index
      %81 = linalg.index 1 : index
      %82 = linalg.index 2 : index
      %83 = linalg.index 3 : index
      %84 = arith.cmpi eq, %dim_6, %c1 : index
      %85 = arith.select %84, %c0, %82 : index
      %extracted = tensor.extract %collapsed_11[%80, %81, %85, %83] : tensor<2x4x?x64xf32>
      linalg.yield %extracted : f32
    } -> tensor<2x4x?x64xf32>
    %collapsed_17 = tensor.collapse_shape %73 [[0, 1], [2], [3]] : tensor<2x4x?x64xf32> into tensor<8x?x64xf32>
    %74 = arith.cmpi eq, %37, %1 : i64
    cf.assert %74, "mismatching contracting dimension"
    %75 = tensor.empty(%38) : tensor<8x?x64xf32>
    %76 = linalg.fill ins(%cst : f32) outs(%75 : tensor<8x?x64xf32>) -> tensor<8x?x64xf32>
    %77 = linalg.batch_matmul ins(%reshape_16, %collapsed_17 : tensor<8x?x?xf32>, tensor<8x?x64xf32>) outs(%76 : tensor<8x?x64xf32>) -> tensor<8x?x64xf32>
    %expanded_18 = tensor.expand_shape %77 [[0, 1], [2], [3]] output_shape [2, 4, %38, 64] : tensor<8x?x64xf32> into tensor<2x4x?x64xf32>
    %78 = tensor.empty(%38) : tensor<2x4x?x64xbf16>
    %79 = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%expanded_18 : tensor<2x4x?x64xf32>) outs(%78 : tensor<2x4x?x64xbf16>) {
    ^bb0(%in: f32, %out: bf16):
      %80 = arith.truncf %in : f32 to bf16
      linalg.yield %80 : bf16
    } -> tensor<2x4x?x64xbf16>
    return %79 : tensor<2x4x?x64xbf16>
  }
}
