// Attention with a mask in memory, for recognize-sdpa-mask.test to change.
#all = affine_map<(n, i, j) -> (n, i, j)>
#mask = affine_map<(n, i, j) -> (n, i, j)>
func.func @attention(%q: tensor<4x32x64xf16>, %k: tensor<4x48x64xf16>,
                     %v: tensor<4x48x64xf16>, %bias: tensor<4x32x48xf16>,
                     %other: tensor<32x48xf32>) -> tensor<4x32x64xf16> {
  %zero = arith.constant 0.0 : f32
  %none = arith.constant 0xFF800000 : f32
  %scale = arith.constant 0.125 : f32
  %es = tensor.empty() : tensor<4x32x48xf32>
  %eo = tensor.empty() : tensor<4x32x64xf32>
  %zs = linalg.fill ins(%zero : f32) outs(%es : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %zo = linalg.fill ins(%zero : f32) outs(%eo : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %et = tensor.empty() : tensor<4x64x48xf16>
  %kt = linalg.transpose ins(%k : tensor<4x48x64xf16>) outs(%et : tensor<4x64x48xf16>) permutation = [0, 2, 1]
  %s = linalg.batch_matmul ins(%q, %kt : tensor<4x32x64xf16>, tensor<4x64x48xf16>) outs(%zs : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %masked = linalg.generic {indexing_maps = [#all, #mask, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %bias : tensor<4x32x48xf32>, tensor<4x32x48xf16>) outs(%es : tensor<4x32x48xf32>) {
  ^bb0(%x: f32, %b: f16, %unused: f32):
    %scaled = arith.mulf %x, %scale : f32
    %wide = arith.extf %b : f16 to f32
    %y = arith.addf %scaled, %wide : f32
    linalg.yield %y : f32
  } -> tensor<4x32x48xf32>
  %p = linalg.softmax dimension(2) ins(%masked : tensor<4x32x48xf32>) outs(%es : tensor<4x32x48xf32>) -> tensor<4x32x48xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<4x32x48xf32>, tensor<4x48x64xf16>) outs(%zo : tensor<4x32x64xf32>) -> tensor<4x32x64xf32>
  %h = tensor.empty() : tensor<4x32x64xf16>
  %r = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%o : tensor<4x32x64xf32>) outs(%h : tensor<4x32x64xf16>) {
  ^bb0(%x: f32, %unused: f16):
    %y = arith.truncf %x : f32 to f16
    linalg.yield %y : f16
  } -> tensor<4x32x64xf16>
  return %r : tensor<4x32x64xf16>
}
