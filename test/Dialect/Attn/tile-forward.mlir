// REQUIRES: first-argument-first
// RUN: aot-opt %s --split-input-file --attn-to-scheduled --attn-scheduled-to-tiles | FileCheck %s

// The kernel's arguments are those of docs/KernelAbi.md, in order; the schedule
// and the workgroup's size are on the kernel, the chip on its module.

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.module @interface attributes {attn.target = #attn.target<"gfx942">}
// CHECK-NEXT:    gpu.func @interface(
// CHECK-SAME:      %arg0: !llvm.ptr<1>{{[^,]*}}, %arg1: !llvm.ptr<1>{{[^,]*}}, %arg2: !llvm.ptr<1>{{[^,]*}}, %arg3: !llvm.ptr<1>{{[^,]*}}, %arg4: !llvm.ptr<1>{{[^,]*}}, %arg5: i64
// CHECK-SAME:      %arg18: i64{{[^,]*}}, %arg19: i32{{[^,]*}}, %arg20: i32{{[^,]*}}, %arg21: i32{{[^,]*}}, %arg22: i32{{[^,]*}}, %arg23: f32{{[^,]*}}) kernel
// CHECK-SAME:      attn.schedule = #attn.schedule<block_m = 128, block_n = 64, waves = 4
// CHECK-SAME:      known_block_size = array<i32: 256, 1, 1>
// CHECK-NOT:   func.func
func.func @interface(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s) : !t, !t, !t, !t
  return
}

// -----

// Without a mask: full blocks in a loop without attn.mask, the tail in another,
// masked by the number of keys alone.

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @unmasked(
// CHECK-DAG:     %[[C64:.*]] = arith.constant 64 : i32
// CHECK-DAG:     %[[C63:.*]] = arith.constant 63 : i32
// CHECK-DAG:     %[[UP:.*]] = arith.addi %arg20, %[[C63]]
// CHECK-DAG:     %[[END:.*]] = arith.divui %[[UP]], %[[C64]]
// CHECK-DAG:     %[[FULL:.*]] = arith.divui %arg20, %[[C64]]
// CHECK:         scf.for %{{.*}} = %{{.*}} to %[[FULL]]
// CHECK-NOT:       attn.mask
// CHECK-NOT:     attn.column_index
// CHECK:         tensor.splat %arg20 : tensor<1x128xi32>
// CHECK:         scf.for %{{.*}} = %[[FULL]] to %[[END]]
// CHECK:           attn.mask
// CHECK-NOT:     scf.for
func.func @unmasked(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s) : !t, !t, !t, !t
  return
}

// -----

// Top-left: query i sees i + 1 keys. Workgroups start with the last rows, of all
// several batches; key
// blocks after the last visible key are not visited, those before the first
// row's diagonal are not masked.

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @top_left(
// CHECK:         %[[ID:.*]] = gpu.block_id y
// CHECK:         %[[Y:.*]] = arith.index_cast %[[ID]]
// CHECK:         %[[UP:.*]] = arith.addi %arg{{[0-9]+}},
// CHECK-NEXT:    %[[BLOCKS:.*]] = arith.divui %[[UP]],
// CHECK:         math.ctlz
// CHECK:         arith.addi %{{.*}}, %[[Y]]
// CHECK:         %[[PLACE:.*]] = arith.divui
// CHECK:         %[[LASTBLOCK:.*]] = arith.subi %[[BLOCKS]], %{{.*}}
// CHECK:         %[[BLOCK:.*]] = arith.subi %[[LASTBLOCK]], %[[PLACE]]
// CHECK:         %[[ROW:.*]] = arith.muli %[[BLOCK]], %{{.*}}
// CHECK:         scf.for %{{.*}} = %{{.*}} to %[[FULL:.*]] step
// CHECK-NOT:       attn.mask
// CHECK:         attn.column_index : tensor<1x128xi32>
// CHECK:         %[[LIMIT:.*]] = arith.minsi %{{.*}}, %{{.*}} : tensor<1x128xi32>
// CHECK:         scf.for %{{.*}} = %[[FULL]] to
// CHECK:           %[[HERE:.*]] = arith.subi %[[LIMIT]], %{{.*}} : tensor<1x128xi32>
// CHECK:           attn.mask %{{.*}} to %[[HERE]]
// CHECK-NOT:     scf.for
func.func @top_left(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s) visible [#attn.causal<top_left>] : !t, !t, !t, !t
  return
}

// -----

// Bottom-right is the same, shifted by seqlen_k - seqlen_q.

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @bottom_right(
// CHECK:         %[[SHIFT:.*]] = arith.subi %arg20, %arg19
// CHECK:         scf.for
// CHECK-NOT:       attn.mask
// CHECK:         scf.for
// CHECK:           attn.mask
// CHECK-NOT:     scf.for
func.func @bottom_right(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s) visible [#attn.causal<bottom_right>] : !t, !t, !t, !t
  return
}

// -----

// A window is three arguments behind the others. Full blocks come first, then
// the tail, masked at its end, then the head, at both: a block of either says
// where it lies by its number.

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @window(
// CHECK-SAME:    %arg24: i32, %arg25: i32, %arg26: i32) kernel
// CHECK-SAME:    "scale", "window_left", "window_right", "window_alignment"]
// CHECK:         scf.for %{{.*}} = %{{.*}} to %[[FULL:.*]] step
// CHECK-NOT:       attn.mask
// CHECK:         scf.for %{{.*}} = %[[FULL]] to %[[TAIL:.*]] step
// CHECK:           arith.select
// CHECK:           attn.mask %{{.*}} to %{{.*}} : tensor<1x128xi32> : tensor<64x128xf32>
// CHECK:         scf.for %{{.*}} = %[[TAIL]] to
// CHECK:           attn.mask %{{.*}} from %{{.*}} : tensor<1x128xi32> to %{{.*}} : tensor<1x128xi32>
// CHECK-NOT:     scf.for
func.func @window(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32, %l: i32, %r: i32, %a: i32) {
  attn.forward %q, %k, %v, %o scale(%s) visible [#attn.window] (%l, %r, %a) : !t, !t, !t, !t
  return
}

// -----

// An operand is the kernel argument that it is: tensors in another order are
// read where they lie, and one that is two operands is one argument.

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @turned(
// CHECK-SAME:    ["out", "v", "k", "q", "lse", "out_stride_batch"
func.func @turned(%o: !t, %v: !t, %k: !t, %q: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s) : !t, !t, !t, !t
  return
}
// CHECK-LABEL: gpu.func @shared(
// CHECK-SAME:    ["q", "k", "out", "lse", "q_stride_batch"
func.func @shared(%q: !t, %kv: !t, %o: !t, %s: f32) {
  attn.forward %q, %kv, %kv, %o scale(%s) : !t, !t, !t, !t
  return
}

// -----

// Two stages: K of the next block is loaded before the scores and stored after
// the second product; V of the next is loaded after the second barrier, before
// the second product, and carried by the loop.

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @two_stages(
// CHECK:         %[[K:.*]] = attn.alloc_lds : <64 x 64 x f16>
// CHECK:         %[[V:.*]] = attn.alloc_lds : <64 x 64 x f16>
// CHECK:         %[[Q:.*]] = attn.transpose {{.*}} : tensor<128x64xf16>
// CHECK:         %[[K0:.*]] = attn.load {{.*}} -> tensor<64x64xf16>
// CHECK:         %[[V0:.*]] = attn.load {{.*}} -> tensor<64x64xf16>
// CHECK:         attn.store_lds %[[K0]], %[[K]]
// CHECK:         scf.for {{.*}} iter_args({{.*}}, %[[HELD:[^ ]*]] = %[[V0]])
// CHECK:           amdgpu.lds_barrier
// CHECK:           %[[NEXTK:.*]] = attn.load
// CHECK:           %[[KEYS:.*]] = attn.load_lds %[[K]]
// CHECK:           %[[S:.*]] = attn.dot %[[KEYS]], %[[Q]], %{{.*}} inst<mfma_32x32x8> : tensor<64x64xf16>, tensor<64x128xf16>, tensor<64x128xf32>
// CHECK:           %[[VT:.*]] = attn.transpose %[[HELD]]
// CHECK:           attn.store_lds %[[VT]], %[[V]]
// CHECK:           attn.reduce <max> %[[S]] : tensor<64x128xf32> -> tensor<2x128xf32>
// CHECK:           %[[P:.*]] = attn.round
// CHECK:           amdgpu.lds_barrier
// CHECK:           %[[NEXTV:.*]] = attn.load
// CHECK:           %[[VALUES:.*]] = attn.load_lds %[[V]]
// CHECK:           attn.dot %[[VALUES]], %[[P]], %{{.*}} : tensor<64x64xf16>, tensor<64x128xf16>, tensor<64x128xf32>
// CHECK:           attn.store_lds %[[NEXTK]], %[[K]]
// CHECK:           scf.yield {{.*}}%[[NEXTV]] :
func.func @two_stages(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s)
    schedule(<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>)
    : !t, !t, !t, !t
  return
}

// -----

// One stage: load, store, barrier, use.

!t = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @one_stage(
// CHECK-NOT:     attn.store_lds
// CHECK:         scf.for
// CHECK-NEXT:      amdgpu.lds_barrier
// CHECK:           %[[K:.*]] = attn.load
// CHECK:           %[[V:.*]] = attn.load
// CHECK:           attn.store_lds %[[K]]
// CHECK:           attn.transpose %[[V]]
// CHECK:           attn.store_lds
// CHECK-NEXT:      amdgpu.lds_barrier
// CHECK:           attn.dot
// CHECK:           attn.dot
// CHECK-NOT:       attn.store_lds
// CHECK:           scf.yield
func.func @one_stage(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s)
    schedule(<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 1, waves_per_simd = 2, rescale_threshold = 8>)
    : !t, !t, !t, !t
  return
}

// -----

// Heads are regrouped so that an XCD gets a run of them, if they divide; the
// head of K and V is the query head over the group size.

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @heads(
// CHECK-DAG:     %[[C8:.*]] = arith.constant 8 : i32
// CHECK:         %[[ID:.*]] = gpu.block_id x
// CHECK:         %[[X:.*]] = arith.index_cast %[[ID]]
// CHECK:         %[[PER:.*]] = arith.divui %arg21, %[[C8]]
// CHECK:         %[[ALL:.*]] = arith.muli %[[PER]], %[[C8]]
// CHECK:         %[[EVEN:.*]] = arith.cmpi eq, %[[ALL]], %arg21
// CHECK:         %[[XCD:.*]] = arith.remui %[[X]], %[[C8]]
// CHECK:         %[[START:.*]] = arith.muli %[[XCD]], %[[PER]]
// CHECK:         %[[WITHIN:.*]] = arith.divui %[[X]], %[[C8]]
// CHECK:         %[[GROUPED:.*]] = arith.addi %[[START]], %[[WITHIN]]
// CHECK:         %[[HEAD:.*]] = arith.select %[[EVEN]], %[[GROUPED]], %[[X]]
// CHECK:         arith.divui %[[HEAD]], %arg22
func.func @heads(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s) : !t, !t, !t, !t
  return
}

// -----

// A null log-sum-exp is not written; the check is one scalar branch.

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @log_sum_exp(
// CHECK-DAG:     %[[NULL:.*]] = llvm.mlir.zero : !llvm.ptr<1>
// CHECK:         attn.store {{.*}} : tensor<128x64xf16>, <64 x f16>
// CHECK:         %[[WANTED:.*]] = llvm.icmp "ne" %arg4, %[[NULL]]
// CHECK:         scf.if %[[WANTED]] {
// CHECK:           math.log2
// CHECK:           attn.view %arg4
// CHECK:           attn.store {{.*}} : tensor<128x1xf32>, <1 x f32>
// CHECK:         }
// CHECK-NEXT:    gpu.return
func.func @log_sum_exp(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s) : !t, !t, !t, !t
  return
}

// -----

// Scores are scaled in the exponent; a negative scale turns Q's sign.

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @scale(
// CHECK-DAG:     %[[LOG2E:.*]] = arith.constant 1.44269502 : f32
// CHECK-DAG:     %[[LEAST:.*]] = arith.constant 1.17549435E-38 : f32
// CHECK:         %[[SIZE:.*]] = math.absf %arg23
// CHECK:         %[[BASE2:.*]] = arith.mulf %[[SIZE]], %[[LOG2E]]
// CHECK:         %[[FACTOR:.*]] = arith.maxnumf %[[BASE2]], %[[LEAST]]
// CHECK:         %[[NEGATIVE:.*]] = arith.cmpf olt, %arg23
// CHECK:         attn.negate_if %{{.*}}, %[[NEGATIVE]]
// CHECK:         scf.for
// CHECK:           %[[WIDE:.*]] = tensor.splat %[[FACTOR]] : tensor<64x128xf32>
// CHECK:           math.fma %{{.*}}, %[[WIDE]]
func.func @scale(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s) : !t, !t, !t, !t
  return
}

// -----

// bf16: P is rounded the cheap way, and the sums are of what was not rounded.
// f16: a second sum for the log-sum-exp.

!t = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @bf16_sums(
// CHECK:         scf.for
// CHECK:           %[[P:.*]] = math.exp2 {{.*}} : tensor<64x128xf32>
// CHECK:           attn.round %[[P]] <nearest_away> : tensor<64x128xf32> -> tensor<64x128xbf16>
// CHECK:           attn.reduce <sum> %[[P]] : tensor<64x128xf32> -> tensor<2x128xf32>
// CHECK-NOT:       attn.reduce
// CHECK:           scf.yield
func.func @bf16_sums(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s)
    schedule(<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>)
    : !t, !t, !t, !t
  return
}

// -----

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
// Sums by dot products may lack subnormal weights: these are multiplied by 2^7.
// CHECK-LABEL: gpu.func @f16_sums(
// CHECK:         arith.constant -7.000000e+00 : f32
// CHECK:         scf.for
// CHECK:           %[[P:.*]] = math.exp2 {{.*}} : tensor<64x128xf32>
// CHECK:           %[[NARROW:.*]] = attn.round %[[P]] <nearest_even> : tensor<64x128xf32> -> tensor<64x128xf16>
// CHECK:           attn.reduce <sum> %[[NARROW]] : tensor<64x128xf16> -> tensor<2x128xf32>
// CHECK:           attn.reduce <sum> %[[P]] : tensor<64x128xf32> -> tensor<2x128xf32>
func.func @f16_sums(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s)
    schedule(<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x8>, stages = 2, waves_per_simd = 2, rescale_threshold = 8>)
    : !t, !t, !t, !t
  return
}

// -----

// The rescale is guarded by the schedule's threshold, whose bits (3.0) the loop
// carries; lanes that share a query are as many as the instruction has. Each asks
// for its own maximum, and the branch for that of all of them.
// Within it, a reference past 2^15 makes the wave subtract before it multiplies:
// the scores then come out of the branch less their maximum, and the threshold
// below any growth.

!t = memref<?x?x?x64xf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @threshold(
// CHECK-DAG:     %[[THREE:.*]] = arith.constant 1077936128 : i32
// CHECK-DAG:     %[[ALWAYS:.*]] = arith.constant -1 : i32
// CHECK-DAG:     %[[LARGEST:.*]] = arith.constant dense<3.276800e+04> : tensor<1x64xf32>
// CHECK-DAG:     %[[DOWN:.*]] = arith.constant -1.200000e+01 : f32
// CHECK:         llvm.inline_asm {{.*}} %[[DOWN]]
// CHECK:         scf.for {{.*}} iter_args({{.*}}, %[[THRESHOLD:[^ ]*]] = %[[THREE]], %{{[^ ]*}} = %{{[^ ]*}})
// CHECK:           %[[S:.*]] = attn.dot
// CHECK:           %[[HELD:.*]] = arith.maxnumf {{.*}} : tensor<4x64xf32>
// CHECK:           %[[GROWTH:.*]] = arith.mulf
// CHECK:           %[[BITS:.*]] = arith.bitcast %[[GROWTH]]
// CHECK:           %[[LIMIT:.*]] = tensor.splat %[[THRESHOLD]]
// CHECK:           %[[MORE:.*]] = arith.cmpi sgt, %[[BITS]], %[[LIMIT]]
// CHECK:           %[[ANY:.*]] = attn.wave_any %[[MORE]]
// CHECK:           %[[SCALED:.*]]:7 = scf.if %[[ANY]] -> (tensor<64x64xf32>, tensor<1x64xf32>, i32, tensor<1x64xf32>, tensor<4x64xf32>, tensor<64x64xf32>, tensor<4x64xf32>)
// CHECK:             %[[MAX:.*]] = attn.reduce <max> %[[HELD]]
// CHECK:             arith.cmpf ogt, %{{.*}}, %[[LARGEST]]
// CHECK:             %[[WAS:.*]] = arith.cmpi slt, %[[THRESHOLD]]
// CHECK:             %[[BEYOND:.*]] = attn.wave_any
// CHECK:             %[[LARGE:.*]] = arith.ori %[[WAS]], %[[BEYOND]]
// CHECK:             %[[NEXT:.*]] = arith.select %[[LARGE]], %[[ALWAYS]], %[[THRESHOLD]]
// CHECK:             %[[NEW:.*]]:2 = scf.if %[[LARGE]]
// CHECK:               %[[WIDE:.*]] = attn.broadcast %[[MAX]]
// CHECK:               %[[LESS:.*]] = arith.subf %[[S]], %[[WIDE]]
// CHECK:               scf.yield %[[LESS]], %{{.*}}
// CHECK:             } else {
// CHECK:               scf.yield %[[S]], %{{.*}}
// CHECK:             %[[EXPONENT:.*]] = arith.select
// CHECK:             math.exp2 %[[EXPONENT]] : tensor<1x64xf32>
// CHECK:             scf.yield %[[NEW]]#0, %[[NEW]]#1, %[[NEXT]], %[[MAX]],
// CHECK:           } else {
// CHECK:             scf.yield %[[S]], %{{.*}}, %[[THRESHOLD]],
// CHECK:           math.fma %[[SCALED]]#0
func.func @threshold(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s)
    schedule(<block_m = 64, block_n = 64, waves = 4, inst = <mfma_16x16x16>, stages = 2, waves_per_simd = 2, rescale_threshold = 3>)
    : !t, !t, !t, !t
  return
}

// -----

// Padding: views are of head_dim columns, tiles of what instruction and LDS
// want. A single row has no distance, whatever stride the tensor carries.

!t = memref<?x?x?x40xf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @padding(
// CHECK-DAG:     %[[D:.*]] = arith.constant 40 : i32
// CHECK:         attn.alloc_lds : <64 x 64 x f16>
// CHECK:         attn.alloc_lds : <64 x 64 x f16>
// CHECK:         %[[SINGLE:.*]] = arith.cmpi sle, %arg19, %{{.*}} : i32
// CHECK:         %[[STRIDE:.*]] = arith.trunci %arg7 : i64 to i32
// CHECK:         arith.select %[[SINGLE]], %[[D]], %[[STRIDE]]
// CHECK:         attn.load %{{.*}} : <40 x f16> -> tensor<128x48xf16>
// CHECK:         attn.load %{{.*}} : <40 x f16> -> tensor<64x64xf16>
// CHECK:         attn.load_lds %{{.*}} : <64 x 64 x f16> -> tensor<64x48xf16>
// CHECK:         attn.store {{.*}} : tensor<128x64xf16>, <40 x f16>
func.func @padding(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s) : !t, !t, !t, !t
  return
}

// -----

// Functions without attn.forward stay.

// CHECK-LABEL: func.func @other(
// CHECK-NOT:   gpu.module
func.func @other() {
  return
}
