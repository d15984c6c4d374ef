// RUN: aot-opt %s --split-input-file --verify-diagnostics

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
func.func @arguments(%q: !t, %s: f32) {
  // expected-error @below {{(C10) its score program takes the score (f32) and batch, head, query, key, seqlen_q and seqlen_k (i32), then what is captured, found ('f32', 'i32')}}
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
    // expected-error @below {{'math.sin' op (C11) is none of arith.constant, attn.at, arith.addf,}}
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

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
func.func @no_program(%q: !t, %s: f32, %cap: f32) {
  // expected-error @below {{(C13) captures values and has no score program that reads them; take them out}}
  attn.forward %q, %q, %q, %q scale(%s) captures(%cap : f32) : !t, !t, !t, !t
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
func.func @other_captures(%q: !t, %s: f32, %cap: f32) {
  // expected-error @below {{(C13) captures ('f32'), but the arguments of its score program behind the seventh are ()}}
  attn.forward %q, %q, %q, %q scale(%s) captures(%cap : f32) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32):
    attn.yield %x : f32
  } : !t, !t, !t, !t
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
func.func @many(%q: !t, %s: f32, %c: f32) {
  // expected-error @below {{(C13) captures 9 values; there are at most 8}}
  attn.forward %q, %q, %q, %q scale(%s)
    captures(%c, %c, %c, %c, %c, %c, %c, %c, %c
             : f32, f32, f32, f32, f32, f32, f32, f32, f32) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32, %0: f32,
       %1: f32, %2: f32, %3: f32, %4: f32, %5: f32, %6: f32, %7: f32, %8: f32):
    attn.yield %x : f32
  } : !t, !t, !t, !t
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!c = memref<?xf32, strided<[?], offset: 3>>
func.func @offset(%q: !t, %s: f32, %c: !c) {
  // expected-error @below {{(C13) capture 0 must have a strided layout without an offset or negative strides, in the default memory space, found 'memref<?xf32, strided<[?], offset: 3>>'}}
  attn.forward %q, %q, %q, %q scale(%s) captures(%c : !c) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32, %a: !c):
    attn.yield %x : f32
  } : !t, !t, !t, !t
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!c = memref<?x?xf32, strided<[?, ?]>>
func.func @indices(%q: !t, %s: f32, %c: !c) {
  attn.forward %q, %q, %q, %q scale(%s) captures(%c : !c) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32, %a: !c):
    // expected-error @below {{has 1 indices, and the tensor has rank 2}}
    %y = attn.at %a[%i] : !c
    attn.yield %y : f32
  } : !t, !t, !t, !t
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!c = memref<?xf64, strided<[?]>>
func.func @element(%q: !t, %s: f32, %c: !c) {
  // expected-error @below {{operand #5 must be variadic of 32-bit float or 32-bit signless integer or 1D/2D/3D/4D memref of 32-bit float or 16-bit float or bfloat16 type or 32-bit signless integer or 1-bit signless integer values, but got 'memref<?xf64}}
  attn.forward %q, %q, %q, %q scale(%s) captures(%c : !c) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32, %a: !c):
    attn.yield %x : f32
  } : !t, !t, !t, !t
  return
}
