// RUN: aot-opt %s --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" --attn-outline-kernels --split-input-file | FileCheck %s

!q = tensor<2x8x?x64xf16>
!k = tensor<2x2x?x64xf16>

// Two calls of one kernel, for each of two signatures.
// CHECK-LABEL: func.func @calls(
// CHECK-SAME:    %[[Q:.*]]: memref<2x8x?x64xf16>, %[[K:[^:]*]]: memref<2x2x?x64xf16>, %[[V:[^:]*]]: memref<2x2x?x64xf16>, {{.*}}, %[[SCALE:[^:]*]]: f32)
// CHECK:         %[[QS:.*]] = memref.cast %[[Q]] : memref<2x8x?x64xf16> to memref<?x?x?x64xf16, strided<[?, ?, ?, 1], offset: ?>>
// CHECK:         %[[KS:.*]] = memref.cast %[[K]]
// CHECK:         %[[VS:.*]] = memref.cast %[[V]]
// CHECK:         %[[OS:.*]] = memref.cast %{{.*}} : memref<2x8x?x64xf16>
// CHECK:         call @forward_dtype_fp16_head_dim_64_mask_causal_bottom_right(%[[QS]], %[[KS]], %[[VS]], %[[OS]], %[[SCALE]])
// CHECK:         call @forward_dtype_fp16_head_dim_64_mask_causal_bottom_right_lse(
func.func @calls(%q: !q, %k: !k, %v: !k, %out: !q, %lse: tensor<2x8x?xf32>, %scale: f32) -> (!q, tensor<2x8x?xf32>) {
  %a = attn.sdpa ins(%q, %k, %v : !q, !k, !k) scale(%scale) visible [#attn.causal<bottom_right>] outs(%out : !q) -> !q
  %b:2 = attn.sdpa ins(%a, %k, %v : !q, !k, !k) scale(%scale) visible [#attn.causal<bottom_right>]
    outs(%out, %lse : !q, tensor<2x8x?xf32>) -> !q, tensor<2x8x?xf32>
  return %b#0, %b#1 : !q, tensor<2x8x?xf32>
}
// The window's numbers are passed; a program makes another kernel, without a key.
// CHECK-LABEL: func.func @window(
// CHECK:         call @forward_dtype_fp16_head_dim_64_window_1(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}})
// CHECK:         call @forward_dtype_fp16_head_dim_64_mask_causal_bottom_right_score_{{[0-9a-f]+}}(
func.func @window(%q: !q, %k: !k, %v: !k, %out: !q, %scale: f32, %l: i32, %r: i32, %a: i32) -> !q {
  %x = attn.sdpa ins(%q, %k, %v : !q, !k, !k) scale(%scale) visible [#attn.window] (%l, %r, %a) outs(%out : !q) -> !q
  %y = attn.sdpa ins(%x, %k, %v : !q, !k, !k) scale(%scale) visible [#attn.causal<bottom_right>] score {
  ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32):
    %t = math.tanh %s : f32
    attn.yield %t : f32
  } outs(%out : !q) -> !q
  return %y : !q
}

// CHECK:       module @attn_kernels attributes {attn.kernels} {
// CHECK-NEXT:    func.func @forward_dtype_fp16_head_dim_64_mask_causal_bottom_right(%{{.*}}: memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>, {{.*}}, %{{.*}}: memref<?x?x?xf32, strided<[?, ?, 1]>>, %{{.*}}: f32) attributes {attn.key = "forward;dtype=fp16;head_dim=64;mask=causal_bottom_right"} {
// CHECK-NEXT:      attn.forward {{.*}} visible [#attn.causal<bottom_right>]
// CHECK:         func.func @forward_dtype_fp16_head_dim_64_window_1(
// CHECK:           attn.forward {{.*}} visible [#attn.window](
// CHECK:         func.func @forward_dtype_fp16_head_dim_64_mask_causal_bottom_right_score_[[SCORE:[0-9a-f]+]](
// CHECK-SAME:      attn.key = "forward;dtype=fp16;head_dim=64;mask=causal_bottom_right;score=[[SCORE]]"
// CHECK:           math.tanh
// CHECK:       func.func private @forward_dtype_fp16_head_dim_64_mask_causal_bottom_right(memref<?x?x?x64xf16, strided<[?, ?, ?, 1], offset: ?>>, {{.*}}, f32) attributes {attn.kernel = @attn_kernels::@forward_dtype_fp16_head_dim_64_mask_causal_bottom_right, attn.key = "forward;dtype=fp16;head_dim=64;mask=causal_bottom_right", llvm.emit_c_interface}
// CHECK:       func.func private @forward_dtype_fp16_head_dim_64_mask_causal_bottom_right_lse({{.*}}) attributes {attn.kernel = @attn_kernels::@forward_dtype_fp16_head_dim_64_mask_causal_bottom_right,
// CHECK:       func.func private @forward_dtype_fp16_head_dim_64_mask_causal_bottom_right_score_[[SCORE]](
// CHECK-SAME:    attributes {attn.kernel = @attn_kernels::@forward_dtype_fp16_head_dim_64_mask_causal_bottom_right_score_[[SCORE]], attn.key = "forward;{{.*}};score=[[SCORE]]", llvm.emit_c_interface}

// -----

// A buffer in its place is written in place; one that is read later is copied.
// CHECK-LABEL: func.func @in_place(
// CHECK:         memref.alloc
// CHECK-NOT:     memref.copy
// CHECK:         call @forward_dtype_bf16_head_dim_32(
!t = tensor<1x1x8x32xbf16>
func.func @in_place(%q: !t, %scale: f32) -> (!t, !t) {
  %o = attn.sdpa ins(%q, %q, %q : !t, !t, !t) scale(%scale) outs(%q : !t) -> !t
  return %o, %q : !t, !t
}

// -----

// A mask is captured, by the library's programs; where it repeats, its strides
// are 0.
// CHECK-LABEL: func.func @masks(
// CHECK:         memref.reinterpret_cast %{{[^ ]+}} to offset: [%{{[^]]+}}], sizes: [%{{[^,]+}}, %{{[^,]+}}, %{{[^,]+}}, %{{[^]]+}}], strides: [%{{[^,]+}}, 0, 0, %{{[^]]+}}] : memref<i1> to memref<?x?x?x?xi1, strided<[?, ?, ?, ?], offset: ?>>
// CHECK:         call @forward_dtype_bf16_head_dim_32_score_[[BOOL:[0-9a-f]+]](
// CHECK:         memref.reinterpret_cast %{{.*}} strides: [%{{[^,]+}}, 0, %{{[^,]+}}, %{{[^]]+}}]
// CHECK:         call @forward_dtype_bf16_head_dim_32_score_[[BIAS:[0-9a-f]+]](
// CHECK:         module @attn_kernels
// CHECK:           func.func @forward_dtype_bf16_head_dim_32_score_[[BOOL]]({{.*}}memref<?x?x?x?xi1, strided<[?, ?, ?, ?]>>)
// CHECK:           attn.forward {{.*}} captures(
// CHECK:           %[[SEEN:.*]] = attn.at
// CHECK:           attn.yield %{{.*}}, %[[SEEN]] : f32, i1
// CHECK:           func.func @forward_dtype_bf16_head_dim_32_score_[[BIAS]](
// CHECK:           %[[ADDED:.*]] = attn.at
// CHECK:           %[[SCORE:.*]] = arith.addf %{{.*}}, %[[ADDED]] : f32
// CHECK:           math.tanh %[[SCORE]]
// Beside a predicate of the op's own both have to show a key.
// CHECK:           func.func @forward_dtype_bf16_head_dim_32_score_{{[0-9a-f]+}}({{.*}}memref<?x?x?x?xi1, strided<[?, ?, ?, ?]>>)
// CHECK:           %[[SEEN:.*]] = attn.at
// CHECK:           %[[OWN:.*]] = arith.cmpi
// CHECK:           %[[BOTH:.*]] = arith.andi %[[OWN]], %[[SEEN]] : i1
// CHECK:           attn.yield %{{.*}}, %[[BOTH]] : f32, i1
!t = tensor<2x3x?x32xbf16>
func.func @masks(%q: !t, %keys: tensor<2x1x1x?xi1>, %bias: tensor<2x1x?x?xbf16>, %scale: f32) -> !t {
  %o = attn.sdpa ins(%q, %q, %q : !t, !t, !t) mask(%keys : tensor<2x1x1x?xi1>) scale(%scale) outs(%q : !t) -> !t
  %p = attn.sdpa ins(%o, %o, %o : !t, !t, !t) mask(%bias : tensor<2x1x?x?xbf16>) scale(%scale) score {
  ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32):
    %t = math.tanh %s : f32
    attn.yield %t : f32
  } outs(%q : !t) -> !t
  %r = attn.sdpa ins(%p, %q, %q : !t, !t, !t) mask(%keys : tensor<2x1x1x?xi1>) scale(%scale) score {
  ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32, %m: i32, %n: i32):
    %c = arith.cmpi ne, %i, %j : i32
    attn.yield %s, %c : f32, i1
  } outs(%q : !t) -> !t
  return %r : !t
}
