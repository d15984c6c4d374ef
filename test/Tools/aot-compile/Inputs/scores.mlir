func.func @twice(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
                 %seqlen_q: i32, %seqlen_k: i32) -> f32 {
  %s = arith.addf %x, %x : f32
  return %s : f32
}
func.func @narrow(%x: f32, %key: i32) -> f32 {
  return %x : f32
}
func.func @sine(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
                %seqlen_q: i32, %seqlen_k: i32) -> f32 {
  %s = math.sin %x : f32
  return %s : f32
}
func.func @bias(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
                %seqlen_q: i32, %seqlen_k: i32) -> f32 {
  return %x : f32
}
func.func @kind(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
                %seqlen_q: i32, %seqlen_k: i32) -> f32
    attributes {attn.kind = "tail"} {
  return %x : f32
}
func.func @element(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
                   %seqlen_q: i32, %seqlen_k: i32,
                   %t: memref<?xf32, strided<[1]>> {attn.element = "f16"}) -> f32 {
  return %x : f32
}
func.func @capped(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
                  %seqlen_q: i32, %seqlen_k: i32) -> (f32, i1) {
  %most = arith.constant 8.0 : f32
  %s = arith.minimumf %x, %most : f32
  %seen = arith.cmpi ne, %query, %key : i32
  return %s, %seen : f32, i1
}
func.func @whole(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
                 %seqlen_q: i32, %seqlen_k: i32) -> i32 {
  return %key : i32
}
