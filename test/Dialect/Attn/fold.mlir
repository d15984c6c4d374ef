// RUN: aot-opt %s --canonicalize --cse | FileCheck %s

#x = #attn.layout<reg = [], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 0]], wave = [], grid = [1, 1]>
#y = #attn.layout<reg = [], lane = [[0, 2], [0, 1], [0, 4], [0, 8], [0, 16], [0, 0]], wave = [], grid = [1, 1]>

// CHECK-LABEL: func.func @same_layout(
// CHECK-SAME:    %[[TILE:[^:]*]]:
// CHECK-NEXT:    return %[[TILE]]
func.func @same_layout(%tile: tensor<1x32xf32, #x>) -> tensor<1x32xf32, #x> {
  %r = attn.convert_layout %tile : tensor<1x32xf32, #x> -> tensor<1x32xf32, #x>
  return %r : tensor<1x32xf32, #x>
}

// CHECK-LABEL: func.func @other_layout(
// CHECK:         %[[MOVED:.*]] = attn.convert_layout
// CHECK-NEXT:    return %[[MOVED]]
func.func @other_layout(%tile: tensor<1x32xf32, #x>) -> tensor<1x32xf32, #y> {
  %r = attn.convert_layout %tile : tensor<1x32xf32, #x> -> tensor<1x32xf32, #y>
  return %r : tensor<1x32xf32, #y>
}

// Without effects and users: gone.
// CHECK-LABEL: func.func @unused(
// CHECK-NEXT:    return
func.func @unused(%tile: tensor<1x32xf32, #x>, %s: tensor<32x32xf32>) {
  %r = attn.convert_layout %tile : tensor<1x32xf32, #x> -> tensor<1x32xf32, #y>
  %max = attn.reduce <max> %s : tensor<32x32xf32> -> tensor<1x32xf32>
  %t = attn.transpose %s : tensor<32x32xf32>
  return
}

// Reads stay before and after a write.
// CHECK-LABEL: func.func @memory(
// CHECK:         attn.load_lds
// CHECK-NEXT:    attn.store_lds
// CHECK-NEXT:    attn.load_lds
func.func @memory(%lds: !attn.lds<32 x 32 x f16>, %tile: tensor<32x32xf16>) -> (tensor<32x32xf16>, tensor<32x32xf16>) {
  %before = attn.load_lds %lds : !attn.lds<32 x 32 x f16> -> tensor<32x32xf16>
  attn.store_lds %tile, %lds : tensor<32x32xf16>, !attn.lds<32 x 32 x f16>
  %after = attn.load_lds %lds : !attn.lds<32 x 32 x f16> -> tensor<32x32xf16>
  return %before, %after : tensor<32x32xf16>, tensor<32x32xf16>
}
