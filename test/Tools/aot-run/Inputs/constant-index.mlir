// A factor for each head, in the first column of a table.
func.func @of_head(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
                   %seqlen_q: i32, %seqlen_k: i32,
                   %table: memref<?x?xf32, strided<[?, ?]>>) -> f32 {
  %first = arith.constant 0 : i32
  %factor = attn.at %table[%head, %first] : memref<?x?xf32, strided<[?, ?]>>
  %score = arith.mulf %x, %factor : f32
  return %score : f32
}
