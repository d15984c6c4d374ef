!tensor = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>>
!rows = memref<?x?x?xf32, strided<[?, ?, 1]>>
func.func @softcap(%q: !tensor, %k: !tensor, %v: !tensor, %out: !tensor,
                   %lse: !rows, %scale: f32) {
  attn.forward %q, %k, %v, %out lse(%lse) scale(%scale) score {
  ^bb0(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
       %seqlen_q: i32, %seqlen_k: i32):
    %cap = arith.constant 30.0 : f32
    %small = arith.divf %x, %cap : f32
    %bounded = math.tanh %small : f32
    %s = arith.mulf %bounded, %cap : f32
    attn.yield %s : f32
  } : !tensor, !tensor, !tensor, !tensor, !rows
  return
}
