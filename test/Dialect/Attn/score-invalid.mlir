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
    // expected-error @below {{(C12) gives the score (f32), then whether it is seen (i1) or not that, found ('f32', 'f32')}}
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

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
func.func @number(%t: !t, %l: !l, %w: !w, %s: f32, %c: f32, %d: memref<f32>) {
  // expected-error @below {{(C16) has the gradient of capture 1, of 1; numbers rise from 0 on}}
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    captures(%c : f32) gradients(1 = %d : memref<f32>) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32, %k: f32):
    %y = arith.addf %x, %k : f32
    attn.yield %y : f32
  } : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
func.func @twice(%t: !t, %l: !l, %w: !w, %s: f32, %c: f32, %d: memref<f32>) {
  // expected-error @below {{(C16) has the gradient of capture 0, of 1; numbers rise from 0 on}}
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    captures(%c : f32) gradients(0 = %d, 0 = %d : memref<f32>, memref<f32>) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32, %k: f32):
    %y = arith.addf %x, %k : f32
    attn.yield %y : f32
  } : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
func.func @integer(%t: !t, %l: !l, %w: !w, %s: f32, %c: i32, %d: memref<f32>) {
  // expected-error @below {{(C16) has the gradient of capture 0, which is 'i32'; f32, f16 and bf16 have one}}
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    captures(%c : i32) gradients(0 = %d : memref<f32>) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32, %k: i32):
    %r = arith.sitofp %k : i32 to f32
    %y = arith.addf %x, %r : f32
    attn.yield %y : f32
  } : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
func.func @boolean(%t: !t, %l: !l, %w: !w, %s: f32, %c: memref<?xi1>, %d: memref<?xf32>) {
  // expected-error @below {{(C16) has the gradient of capture 0, which is 'memref<?xi1>'; f32, f16 and bf16 have one}}
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    captures(%c : memref<?xi1>) gradients(0 = %d : memref<?xf32>) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32, %k: memref<?xi1>):
    attn.yield %x : f32
  } : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
func.func @rank(%t: !t, %l: !l, %w: !w, %s: f32, %c: memref<?xf16>, %d: memref<f32>) {
  // expected-error @below {{(C16) has, for the gradient of capture 0, 'memref<f32>'; it must have rank 1 and a strided layout}}
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    captures(%c : memref<?xf16>) gradients(0 = %d : memref<f32>) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32, %k: memref<?xf16>):
    %e = attn.at %k[%j] : memref<?xf16>
    %y = arith.addf %x, %e : f32
    attn.yield %y : f32
  } : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
func.func @extent(%t: !t, %l: !l, %w: !w, %s: f32, %c: memref<8xf16>, %d: memref<9xf32>) {
  // expected-error @below {{(C16) has 'memref<9xf32>' for the gradient of capture 0, which is 'memref<8xf16>'; extents are the capture's}}
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    captures(%c : memref<8xf16>) gradients(0 = %d : memref<9xf32>) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32, %k: memref<8xf16>):
    %e = attn.at %k[%h] : memref<8xf16>
    %y = arith.addf %x, %e : f32
    attn.yield %y : f32
  } : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
func.func @two_ways(%t: !t, %l: !l, %w: !w, %s: f32, %c: memref<?xf16>, %d: memref<?xf32>) {
  // expected-error @below {{(C16) has the gradient of capture 0, which attn.at reads in several ways; capture it once for each}}
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    captures(%c : memref<?xf16>) gradients(0 = %d : memref<?xf32>) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32, %k: memref<?xf16>):
    %e = attn.at %k[%j] : memref<?xf16>
    %f = attn.at %k[%i] : memref<?xf16>
    %z = arith.addf %x, %e : f32
    %y = arith.addf %z, %f : f32
    attn.yield %y : f32
  } : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
func.func @own_derivative(%t: !t, %l: !l, %w: !w, %s: f32, %c: f32, %d: memref<f32>) {
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    captures(%c : f32) gradients(0 = %d : memref<f32>) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32, %k: f32):
    %y = arith.addf %x, %k : f32
    // expected-error @below {{(C12) gives the score (f32), then whether it is seen (i1) or not that, then the score's derivative and that for each capture of gradients, or neither, found ('f32', 'f32')}}
    attn.yield %y, %x : f32, f32
  } : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// -----

// Reads that are equal are one.
!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
func.func @equal(%t: !t, %l: !l, %w: !w, %s: f32, %c: memref<?xf16>, %d: memref<?xf32>) {
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    captures(%c : memref<?xf16>) gradients(0 = %d : memref<?xf32>) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32, %k: memref<?xf16>):
    %p = arith.addi %i, %j : i32
    %q = arith.addi %i, %j : i32
    %e = attn.at %k[%p] : memref<?xf16>
    %f = attn.at %k[%q] : memref<?xf16>
    %z = arith.addf %x, %e : f32
    %y = arith.mulf %z, %f : f32
    attn.yield %y : f32
  } : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
func.func @mask_alone(%q: !t, %s: f32) {
  attn.forward %q, %q, %q, %q scale(%s) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32):
    %c = arith.cmpi slt, %i, %j : i32
    // expected-error @below {{(C12) gives the score (f32), then whether it is seen (i1) or not that, found ('i1')}}
    attn.yield %c : i1
  } : !t, !t, !t, !t
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
func.func @two_masks(%q: !t, %s: f32) {
  attn.forward %q, %q, %q, %q scale(%s) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32):
    %c = arith.cmpi slt, %i, %j : i32
    // expected-error @below {{(C12) gives the score (f32), then whether it is seen (i1) or not that, found ('f32', 'i1', 'i1')}}
    attn.yield %x, %c, %c : f32, i1, i1
  } : !t, !t, !t, !t
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
func.func @seen_last(%t: !t, %l: !l, %w: !w, %s: f32) {
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32):
    %c = arith.cmpi slt, %i, %j : i32
    // expected-error @below {{(C12) gives the score (f32), then whether it is seen (i1) or not that, then the score's derivative or not that, found ('f32', 'f32', 'i1')}}
    attn.yield %x, %x, %c : f32, f32, i1
  } : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
func.func @stored(%t: !t, %l: !l, %w: !w, %s: f32, %c: memref<?xf16>, %d: memref<?xf16>) {
  // expected-error @below {{(C16) has 'memref<?xf16>' for the gradient of capture 0, 'memref<?xf16>'; a gradient of 16 bits is stored in the capture's type, of what batch, head, query and key index as they are; f32 is added to}}
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    captures(%c : memref<?xf16>) gradients(0 = %d : memref<?xf16>) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32, %k: memref<?xf16>):
    %e = attn.at %k[%j] : memref<?xf16>
    %y = arith.addf %x, %e : f32
    attn.yield %y : f32
  } : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
!l = memref<?x?x?xf32, strided<[?, ?, 1]>>
!w = memref<?xi8>
func.func @unread(%t: !t, %l: !l, %w: !w, %s: f32, %c: memref<?xf16>, %d: memref<?xf32>) {
  // expected-error @below {{(C16) has the gradient of capture 0, which no attn.at reads; yield 0 for it}}
  attn.backward %t, %t, %t, %t, %t, %l -> %t, %t, %t workspace(%w) scale(%s)
    captures(%c : memref<?xf16>) gradients(0 = %d : memref<?xf32>) score {
  ^bb0(%x: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32, %k: memref<?xf16>):
    %one = arith.constant 1.0 : f32
    attn.yield %x, %one, %one : f32, f32, f32
  } : !t, !t, !t, !t, !t, !l -> !t, !t, !t, !w
  return
}
