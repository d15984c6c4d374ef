// RUN: aot-opt %s --split-input-file --verify-diagnostics

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
func.func @arguments(%q: !t, %s: f32) {
  // expected-error @below {{(C10) its score program takes the score (f32) and batch, head, query, key, seqlen_q and seqlen_k (i32), found ('f32', 'i32')}}
  attn.forward %q, %q, %q, %q scale(%s) score {
  ^bb0(%x: f32, %b: i32):
    attn.yield %x : f32
  } : !t, !t, !t, !t
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
func.func @blocks(%q: !t, %s: f32) {
  // expected-error @below {{(C10) its score program has several blocks, and a program is a straight line}}
  attn.forward %q, %q, %q, %q scale(%s) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32):
    attn.yield %x : f32
  ^bb1:
    attn.yield %x : f32
  } : !t, !t, !t, !t
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
func.func @loop(%q: !t, %s: f32) {
  attn.forward %q, %q, %q, %q scale(%s) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32):
    %c = arith.cmpi slt, %i, %j : i32
    // expected-error @below {{(C11) has regions, and a program is a straight line; use arith.select, or part of the visibility}}
    %y = scf.if %c -> f32 {
      scf.yield %x : f32
    } else {
      scf.yield %x : f32
    }
    attn.yield %y : f32
  } : !t, !t, !t, !t
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
func.func @call(%q: !t, %s: f32) {
  attn.forward %q, %q, %q, %q scale(%s) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32):
    // expected-error @below {{'math.sin' op (C11) is none of arith.constant, arith.addf,}}
    %y = math.sin %x : f32
    attn.yield %y : f32
  } : !t, !t, !t, !t
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
func.func @types(%q: !t, %s: f32) {
  attn.forward %q, %q, %q, %q scale(%s) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32):
    // expected-error @below {{(C11) gives i64; values are i1, i32 or f32}}
    %y = arith.extui %i : i32 to i64
    attn.yield %x : f32
  } : !t, !t, !t, !t
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
func.func @derivative(%q: !t, %s: f32) {
  attn.forward %q, %q, %q, %q scale(%s) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32):
    // expected-error @below {{(C12) gives the score, found 2 values}}
    attn.yield %x, %x : f32, f32
  } : !t, !t, !t, !t
  return
}
