// RUN: aot-opt %s --attn-recognize-sdpa | FileCheck %s
// RUN: sed -e "s/dimension(2)/dimension(1)/" %s | aot-opt --attn-recognize-sdpa | FileCheck %s --check-prefix=LEFT
// RUN: sed -e "s/ins(%q, %kt :/ins(%q, %k :/" %s | aot-opt --attn-recognize-sdpa | FileCheck %s --check-prefix=LEFT
// LEFT-NOT: attn.sdpa
// LEFT:     linalg.softmax
// LEFT-NOT: attn.sdpa

// Named ops; the softmax of another dimension, and keys as they lie, are left.
// CHECK-LABEL: func.func @softmax(
// CHECK-NOT:     linalg
// CHECK:         arith.constant 1.000000e+00 : f32
// CHECK:         attn.sdpa {{.*}} outs(%{{.*}} : tensor<1x4x32x64xf16>)
// CHECK-NOT:     linalg
// CHECK:         return
func.func @softmax(%q: tensor<4x32x64xf16>, %k: tensor<4x64x64xf16>, %v: tensor<4x64x64xf16>) -> tensor<4x32x64xf16> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x32x64xf32>
  %z = linalg.fill ins(%zero : f32) outs(%e : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %t0 = tensor.empty() : tensor<4x64x64xf16>
  %kt = linalg.transpose ins(%k : tensor<4x64x64xf16>) outs(%t0 : tensor<4x64x64xf16>) permutation = [0, 2, 1]
  %s = linalg.batch_matmul ins(%q, %kt : tensor<4x32x64xf16>, tensor<4x64x64xf16>) outs(%z : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<4x32x64xf32>) outs(%e : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<4x32x64xf32>, tensor<4x64x64xf16>) outs(%z : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %h = tensor.empty() : tensor<4x32x64xf16>
  %r = linalg.generic {indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%o : tensor<4x32x64xf32>) outs(%h : tensor<4x32x64xf16>) {
  ^bb0(%x: f32, %unused: f16):
    %y = arith.truncf %x : f32 to f16
    linalg.yield %y : f16
  } -> tensor<4x32x64xf16>
  return %r : tensor<4x32x64xf16>
}
