// The library of score programs (docs/ScorePrograms.md): aot-compile --score=NAME
// takes them from here. A program is a function of the score, of where it
// stands and of what it captures, which it gets when the kernel is launched. It
// gives the score (f32), whether the place is seen (i1), or both.
//
// On a program: `attn.kind`, the place in the order cap, bias, other, mask in
// which programs are usually composed; `attn.summary`, for --list-scores;
// `attn.variant_of`, a program whose name stands for this one too where what is
// captured is known and fits this one alone.
// On a captured argument: `attn.name`; `attn.element = "problem"` where its
// elements are of the type of queries and keys and not of the one written here.

// Positions are counted from the bottom-right corner: query i of m stands at
// i + n - m of n keys.

func.func @softcap(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
                   %seqlen_q: i32, %seqlen_k: i32, %cap: f32 {attn.name = "cap"}) -> f32
    attributes {attn.kind = "cap", attn.summary = "cap * tanh(x / cap); the cap is above 0"} {
  %small = arith.divf %x, %cap : f32
  %bounded = math.tanh %small : f32
  %s = arith.mulf %bounded, %cap : f32
  return %s : f32
}

func.func @alibi(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
                 %seqlen_q: i32, %seqlen_k: i32,
                 %slopes: memref<?x?xf32, strided<[?, ?]>> {attn.name = "slopes"}) -> f32
    attributes {attn.kind = "bias", attn.summary = "x - slopes[batch, head] * |position - key|"} {
  %corner = arith.subi %seqlen_k, %seqlen_q : i32
  %position = arith.addi %query, %corner : i32
  %distance = arith.subi %position, %key : i32
  %far = arith.sitofp %distance : i32 to f32
  %length = math.absf %far : f32
  %slope = attn.at %slopes[%batch, %head] : memref<?x?xf32, strided<[?, ?]>>
  %less = arith.mulf %slope, %length : f32
  %s = arith.subf %x, %less : f32
  return %s : f32
}

func.func @bias(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
                %seqlen_q: i32, %seqlen_k: i32,
                %bias: memref<?x?x?x?xf32, strided<[?, ?, ?, 1]>>
                  {attn.name = "bias", attn.element = "problem"}) -> f32
    attributes {attn.kind = "bias", attn.summary = "x + bias[batch, head, query, key], rows contiguous"} {
  %b = attn.at %bias[%batch, %head, %query, %key] : memref<?x?x?x?xf32, strided<[?, ?, ?, 1]>>
  %s = arith.addf %x, %b : f32
  return %s : f32
}

func.func @bias_strided(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
                        %seqlen_q: i32, %seqlen_k: i32,
                        %bias: memref<?x?x?x?xf32, strided<[?, ?, ?, ?]>>
                          {attn.name = "bias", attn.element = "problem"}) -> f32
    attributes {attn.kind = "bias", attn.variant_of = "bias",
                attn.summary = "the same with any strides, 0 for keys too"} {
  %b = attn.at %bias[%batch, %head, %query, %key] : memref<?x?x?x?xf32, strided<[?, ?, ?, ?]>>
  %s = arith.addf %x, %b : f32
  return %s : f32
}

func.func @bias_f32(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
                    %seqlen_q: i32, %seqlen_k: i32,
                    %bias: memref<?x?x?x?xf32, strided<[?, ?, ?, 1]>> {attn.name = "bias"}) -> f32
    attributes {attn.kind = "bias", attn.variant_of = "bias",
                attn.summary = "the same as bias, in f32 whatever the problem's type"} {
  %b = attn.at %bias[%batch, %head, %query, %key] : memref<?x?x?x?xf32, strided<[?, ?, ?, 1]>>
  %s = arith.addf %x, %b : f32
  return %s : f32
}

func.func @relative(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
                    %seqlen_q: i32, %seqlen_k: i32,
                    %table: memref<?x?xf32, strided<[?, ?]>> {attn.name = "table"},
                    %most: i32 {attn.name = "most"}) -> f32
    attributes {attn.kind = "bias", attn.summary = "x + table[head, most + d], d = key - position within -most to most"} {
  %corner = arith.subi %seqlen_k, %seqlen_q : i32
  %position = arith.addi %query, %corner : i32
  %d = arith.subi %key, %position : i32
  %zero = arith.constant 0 : i32
  %least = arith.subi %zero, %most : i32
  %above = arith.maxsi %d, %least : i32
  %within = arith.minsi %above, %most : i32
  %place = arith.addi %within, %most : i32
  %b = attn.at %table[%head, %place] : memref<?x?xf32, strided<[?, ?]>>
  %s = arith.addf %x, %b : f32
  return %s : f32
}

func.func @bias_bool(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
                     %seqlen_q: i32, %seqlen_k: i32,
                     %mask: memref<?x?x?x?xi1, strided<[?, ?, ?, 1]>> {attn.name = "mask"}) -> i1
    attributes {attn.kind = "mask", attn.summary = "shows keys where mask[batch, head, query, key] is true, rows contiguous"} {
  %shown = attn.at %mask[%batch, %head, %query, %key] : memref<?x?x?x?xi1, strided<[?, ?, ?, 1]>>
  return %shown : i1
}

func.func @bias_bool_strided(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
                             %seqlen_q: i32, %seqlen_k: i32,
                             %mask: memref<?x?x?x?xi1, strided<[?, ?, ?, ?]>> {attn.name = "mask"}) -> i1
    attributes {attn.kind = "mask", attn.variant_of = "bias_bool",
                attn.summary = "the same with any strides, 0 for keys too"} {
  %shown = attn.at %mask[%batch, %head, %query, %key] : memref<?x?x?x?xi1, strided<[?, ?, ?, ?]>>
  return %shown : i1
}

func.func @documents(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
                     %seqlen_q: i32, %seqlen_k: i32,
                     %of_queries: memref<?x?xi32, strided<[?, 1]>> {attn.name = "query_ids"},
                     %of_keys: memref<?x?xi32, strided<[?, 1]>> {attn.name = "key_ids"}) -> i1
    attributes {attn.kind = "mask", attn.summary = "shows keys with key_ids[batch, key] = query_ids[batch, query]"} {
  %mine = attn.at %of_queries[%batch, %query] : memref<?x?xi32, strided<[?, 1]>>
  %its = attn.at %of_keys[%batch, %key] : memref<?x?xi32, strided<[?, 1]>>
  %same = arith.cmpi eq, %mine, %its : i32
  return %same : i1
}

func.func @prefix_lm(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
                     %seqlen_q: i32, %seqlen_k: i32,
                     %prefix: memref<?xi32, strided<[?]>> {attn.name = "prefix"}) -> i1
    attributes {attn.kind = "mask", attn.summary = "shows keys below prefix[batch], and those up to the position"} {
  %corner = arith.subi %seqlen_k, %seqlen_q : i32
  %position = arith.addi %query, %corner : i32
  %length = attn.at %prefix[%batch] : memref<?xi32, strided<[?]>>
  %inside = arith.cmpi slt, %key, %length : i32
  %before = arith.cmpi sle, %key, %position : i32
  %shown = arith.ori %inside, %before : i1
  return %shown : i1
}

func.func @chunked(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
                   %seqlen_q: i32, %seqlen_k: i32, %size: i32 {attn.name = "size"}) -> i1
    attributes {attn.kind = "mask", attn.summary = "shows keys of the position's chunk; the size is above 0"} {
  %zero = arith.constant 0 : i32
  %corner = arith.subi %seqlen_k, %seqlen_q : i32
  %position = arith.addi %query, %corner : i32
  %mine = arith.divsi %position, %size : i32
  %its = arith.divsi %key, %size : i32
  %same = arith.cmpi eq, %mine, %its : i32
  // Positions before the first key have no chunk.
  %real = arith.cmpi sge, %position, %zero : i32
  %shown = arith.andi %same, %real : i1
  return %shown : i1
}

func.func @sliding_window(%x: f32, %batch: i32, %head: i32, %query: i32, %key: i32,
                          %seqlen_q: i32, %seqlen_k: i32,
                          %left: i32 {attn.name = "left"},
                          %leading: i32 {attn.name = "leading"}) -> i1
    attributes {attn.kind = "mask", attn.summary = "shows keys from position - left on, and the first leading keys"} {
  %corner = arith.subi %seqlen_k, %seqlen_q : i32
  %position = arith.addi %query, %corner : i32
  %distance = arith.subi %position, %key : i32
  %near = arith.cmpi sle, %distance, %left : i32
  %first = arith.cmpi slt, %key, %leading : i32
  %shown = arith.ori %near, %first : i1
  return %shown : i1
}
