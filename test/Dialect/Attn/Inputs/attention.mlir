// Attention on tensors, spelled out, for recognize-sdpa.test to change.
#q = affine_map<(b, h, i, j, e) -> (b, h, i, e)>
#k = affine_map<(b, h, i, j, e) -> (b, h, j, e)>
#s = affine_map<(b, h, i, j, e) -> (b, h, i, j)>
#all = affine_map<(b, h, i, j) -> (b, h, i, j)>
#row = affine_map<(b, h, i, j) -> (b, h, i)>
#p = affine_map<(b, h, i, d, j) -> (b, h, i, j)>
#v = affine_map<(b, h, i, d, j) -> (b, h, j, d)>
#o = affine_map<(b, h, i, d, j) -> (b, h, i, d)>
func.func @attention(%q: tensor<2x4x?x64xf16>, %k: tensor<2x4x?x64xf16>,
                     %v: tensor<2x4x?x64xf16>) -> (tensor<2x4x?x64xf16>, f32) {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %zero16 = arith.constant 0.0 : f16
  %none = arith.constant 0xFF800000 : f32
  %scale = arith.constant 0.125 : f32
  %other = arith.constant 3.0 : f32
  %m = tensor.dim %q, %c2 : tensor<2x4x?x64xf16>
  %n = tensor.dim %k, %c2 : tensor<2x4x?x64xf16>
  %scores = tensor.empty(%m, %n) : tensor<2x4x?x?xf32>
  %rows = tensor.empty(%m) : tensor<2x4x?xf32>
  %out = tensor.empty(%m) : tensor<2x4x?x64xf32>
  %half = tensor.empty(%m) : tensor<2x4x?x64xf16>
  %zeros = linalg.fill ins(%zero : f32) outs(%scores : tensor<2x4x?x?xf32>) -> tensor<2x4x?x?xf32>
  %qk = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<2x4x?x64xf16>, tensor<2x4x?x64xf16>) outs(%zeros : tensor<2x4x?x?xf32>) {
  ^bb0(%x: f16, %y: f16, %sum: f32):
    %xl = arith.extf %x : f16 to f32
    %yl = arith.extf %y : f16 to f32
    %xy = arith.mulf %xl, %yl : f32
    %next = arith.addf %sum, %xy : f32
    linalg.yield %next : f32
  } -> tensor<2x4x?x?xf32>
  %s = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%qk : tensor<2x4x?x?xf32>) outs(%scores : tensor<2x4x?x?xf32>) {
  ^bb0(%x: f32, %unused: f32):
    %i = linalg.index 2 : index
    %j = linalg.index 3 : index
    %scaled = arith.mulf %x, %scale : f32
    %seen = arith.cmpi sge, %i, %j : index
    %masked = arith.select %seen, %scaled, %none : f32
    linalg.yield %masked : f32
  } -> tensor<2x4x?x?xf32>
  %lowest = linalg.fill ins(%none : f32) outs(%rows : tensor<2x4x?xf32>) -> tensor<2x4x?xf32>
  %most = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%s : tensor<2x4x?x?xf32>) outs(%lowest : tensor<2x4x?xf32>) {
  ^bb0(%x: f32, %a: f32):
    %next = arith.maximumf %a, %x : f32
    linalg.yield %next : f32
  } -> tensor<2x4x?xf32>
  %w = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s, %most : tensor<2x4x?x?xf32>, tensor<2x4x?xf32>) outs(%scores : tensor<2x4x?x?xf32>) {
  ^bb0(%x: f32, %a: f32, %unused: f32):
    %less = arith.subf %x, %a : f32
    %e = math.exp %less : f32
    linalg.yield %e : f32
  } -> tensor<2x4x?x?xf32>
  %none_yet = linalg.fill ins(%zero : f32) outs(%rows : tensor<2x4x?xf32>) -> tensor<2x4x?xf32>
  %all = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%w : tensor<2x4x?x?xf32>) outs(%none_yet : tensor<2x4x?xf32>) {
  ^bb0(%x: f32, %a: f32):
    %next = arith.addf %a, %x : f32
    linalg.yield %next : f32
  } -> tensor<2x4x?xf32>
  %p = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%w, %all : tensor<2x4x?x?xf32>, tensor<2x4x?xf32>) outs(%scores : tensor<2x4x?x?xf32>) {
  ^bb0(%x: f32, %a: f32, %unused: f32):
    %part = arith.divf %x, %a : f32
    linalg.yield %part : f32
  } -> tensor<2x4x?x?xf32>
  %no_out = linalg.fill ins(%zero : f32) outs(%out : tensor<2x4x?x64xf32>) -> tensor<2x4x?x64xf32>
  %pv = linalg.generic {indexing_maps = [#p, #v, #o], iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%p, %v : tensor<2x4x?x?xf32>, tensor<2x4x?x64xf16>) outs(%no_out : tensor<2x4x?x64xf32>) {
  ^bb0(%x: f32, %y: f16, %sum: f32):
    %yl = arith.extf %y : f16 to f32
    %xy = arith.mulf %x, %yl : f32
    %next = arith.addf %sum, %xy : f32
    linalg.yield %next : f32
  } -> tensor<2x4x?x64xf32>
  %o = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%pv : tensor<2x4x?x64xf32>) outs(%half : tensor<2x4x?x64xf16>) {
  ^bb0(%x: f32, %unused: f16):
    %rounded = arith.truncf %x : f32 to f16
    linalg.yield %rounded : f16
  } -> tensor<2x4x?x64xf16>
  %extra = arith.constant 0.0 : f32
  return %o, %extra : tensor<2x4x?x64xf16>, f32
}
