func.func @same(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
                %seqlen_q: i32, %seqlen_k: i32) -> f32 {
  %s = arith.constant 0.5 : f32
  return %s : f32
}

func.func @rising(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
                  %seqlen_q: i32, %seqlen_k: i32) -> f32 {
  %steps = arith.sitofp %key : i32 to f32
  %step = arith.constant 0.1 : f32
  %s = arith.mulf %steps, %step : f32
  return %s : f32
}

// Of the product until its conditions are folded.
func.func @folded(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
                  %seqlen_q: i32, %seqlen_k: i32) -> f32 {
  %steps = arith.sitofp %key : i32 to f32
  %three = arith.constant 3 : i32
  %five = arith.constant 5 : i32
  %never = arith.cmpi sgt, %three, %five : i32
  %s = arith.select %never, %x, %steps : f32
  return %s : f32
}
