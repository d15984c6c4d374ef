// Of a number and NaN both are the number, and its derivative is 1.
func.func @number(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
                  %seqlen_q: i32, %seqlen_k: i32, %c: f32) -> f32 {
  %s = arith.maxnumf %x, %c : f32
  %t = arith.minnumf %s, %c : f32
  return %t : f32
}
