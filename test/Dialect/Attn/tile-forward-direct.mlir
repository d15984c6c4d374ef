// REQUIRES: first-argument-first
// RUN: aot-opt %s --split-input-file --attn-to-scheduled=chip=gfx950 --attn-scheduled-to-tiles | FileCheck %s

// K and V copied to LDS past the registers (direct_copy = 1).

// Two stages: one barrier an iteration. Behind it this iteration's block is in
// LDS, and the next one's copies go to the other buffers.

!t = memref<?x?x?x80xbf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @two_stages(
// CHECK:         %[[K:.*]] = attn.alloc_lds buffers 2 : <64 x 128 x bf16>
// CHECK:         %[[V:.*]] = attn.alloc_lds buffers 2 : <64 x 128 x bf16>
// CHECK:         attn.copy_lds %{{.*}}, %{{.*}} : <80 x bf16>, <64 x 128 x bf16>
// CHECK:         attn.copy_lds
// CHECK-NOT:     attn.store_lds
// CHECK:         scf.for %[[BLOCK:[^ ]*]] =
// CHECK-NEXT:      amdgpu.memory_counter_wait load(0)
// CHECK-NEXT:      amdgpu.lds_barrier
// CHECK:           %[[NEXT:.*]] = arith.addi %[[BLOCK]], %{{.*}} : i32
// CHECK:           %[[PARITY:.*]] = arith.andi %[[NEXT]]
// CHECK:           %[[NEXTK:.*]] = attn.lds_buffer %[[K]][%[[PARITY]]]
// CHECK:           attn.copy_lds %{{.*}}, %[[NEXTK]]
// CHECK:           %[[NEXTV:.*]] = attn.lds_buffer %[[V]][%{{.*}}]
// CHECK:           attn.copy_lds %{{.*}}, %[[NEXTV]]
// CHECK:           %[[THIS:.*]] = arith.andi %[[BLOCK]]
// CHECK:           %[[THISK:.*]] = attn.lds_buffer %[[K]][%[[THIS]]]
// CHECK:           attn.load_lds %[[THISK]] : <64 x 128 x bf16> -> tensor<64x80xbf16>
// CHECK:           attn.dot
// CHECK:           attn.round %{{.*}} <nearest_even>
// CHECK:           %[[VALUES:.*]] = attn.load_lds %{{.*}} : <64 x 128 x bf16> -> tensor<64x96xbf16>
// CHECK:           %[[VT:.*]] = attn.transpose %[[VALUES]]
// CHECK:           attn.dot %[[VT]]
// CHECK-NOT:       amdgpu.lds_barrier
// CHECK:           scf.yield
// The last copies, which nobody reads, end before the workgroup may.
// CHECK:         scf.for
// CHECK:           attn.mask
// CHECK:           attn.dot
// CHECK-NEXT:      scf.yield
// CHECK-NEXT:    }
// CHECK-NEXT:    amdgpu.memory_counter_wait load(0)
func.func @two_stages(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s)
    schedule(<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x16>, stages = 2, waves_per_simd = 2, rescale_threshold = 8, direct_copy = 1>)
    : !t, !t, !t, !t
  return
}

// -----

// Three stages: blocks without a mask in pairs, so that buffers are known; the
// scores of the first block before the loop, those of the
// next beside the exponentials of each, behind the branch that rescales; K is a
// block ahead of V.

!t = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @three_stages(
// CHECK-DAG:     %[[C2:.*]] = arith.constant 2 : i32
// CHECK-DAG:     %[[EVEN:.*]] = arith.constant -2 : i32
// CHECK:         %[[FULL:.*]] = arith.andi %{{.*}}, %[[EVEN]]
// CHECK:         attn.copy_lds
// CHECK-NEXT:    amdgpu.memory_counter_wait load(0)
// CHECK-NEXT:    amdgpu.lds_barrier
// CHECK:         attn.copy_lds
// CHECK:         attn.copy_lds
// CHECK:         %[[FIRST:.*]] = attn.dot
// CHECK:         scf.for %[[BLOCK:[^ ]*]] = %{{.*}} to %[[FULL]] step %[[C2]] iter_args({{.*}}, %[[HELD:[^ ]*]] = %[[FIRST]])
// CHECK:           amdgpu.lds_barrier
// CHECK:           attn.copy_lds
// CHECK:           attn.copy_lds
// CHECK:           attn.reduce <max> %[[HELD]]
// CHECK:           %[[SCALED:.*]]:{{[0-9]+}} = scf.if
// CHECK:           %[[AHEAD:.*]] = attn.dot
// CHECK:           math.fma %[[SCALED]]#0
// CHECK:           attn.dot
// CHECK-NEXT:      attn.interleave
// CHECK:           amdgpu.lds_barrier
// CHECK:           attn.reduce <max> %[[AHEAD]]
// CHECK:           %[[TWICE:.*]] = attn.dot
// CHECK:           attn.interleave
// CHECK:           scf.yield {{.*}}%[[TWICE]] :
func.func @three_stages(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s)
    schedule(<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x16>, stages = 3, waves_per_simd = 2, rescale_threshold = 8, direct_copy = 1>)
    : !t, !t, !t, !t
  return
}

// -----

// One stage: one buffer each, filled between two barriers.

!t = memref<?x?x?x64xbf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @one_stage(
// CHECK:         %[[K:.*]] = attn.alloc_lds : <64 x 64 x bf16>
// CHECK:         %[[V:.*]] = attn.alloc_lds : <64 x 64 x bf16>
// CHECK-NOT:     attn.copy_lds
// CHECK:         scf.for
// CHECK-NEXT:      amdgpu.lds_barrier
// CHECK:           attn.copy_lds %{{.*}}, %[[K]]
// CHECK:           attn.copy_lds %{{.*}}, %[[V]]
// CHECK-NEXT:      amdgpu.memory_counter_wait load(0)
// CHECK-NEXT:      amdgpu.lds_barrier
// CHECK:           attn.load_lds %[[K]]
// CHECK:           attn.load_lds %[[V]]
func.func @one_stage(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s)
    schedule(<block_m = 128, block_n = 64, waves = 4, inst = <mfma_32x32x16>, stages = 1, waves_per_simd = 2, rescale_threshold = 8, direct_copy = 1>)
    : !t, !t, !t, !t
  return
}

// -----

// Four stages: blocks in two parts, with buffers of their own. A wait leaves the
// four copies behind under way, and no barrier waits for them. Half of the waves
// are a barrier behind the others. Exponentials of the second part are made beside
// the next block's scores; the branch for a new reference is between the parts of
// the output.

!t = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @segments(
// CHECK-DAG:     %[[C2:.*]] = arith.constant 2 : i32
// CHECK-DAG:     %[[NOVALUES:.*]] = arith.constant dense<0.000000e+00> : tensor<32x128xbf16>
// CHECK-DAG:     %[[NOSCORES:.*]] = arith.constant dense<0xFF800000> : tensor<32x256xf32>
// CHECK:         attn.alloc_lds buffers 4 : <32 x 128 x bf16>
// CHECK:         %[[V:.*]] = attn.alloc_lds buffers 4 : <32 x 128 x bf16>

// The first two blocks' K are on their way before anything waits for Q; V of the block before the first is 0.
// CHECK:         %[[V2:.*]] = attn.lds_buffer %[[V]][%[[C2]]]
// CHECK-NEXT:    attn.store_lds %[[NOVALUES]], %[[V2]]
// CHECK:         attn.store_lds %[[NOVALUES]]
// CHECK-COUNT-4: attn.copy_lds
// CHECK:         attn.pin
// CHECK-NEXT:    amdgpu.memory_counter_wait load(2)
// CHECK-NEXT:    amdgpu.sched_barrier
// CHECK-NEXT:    amdgpu.memory_counter_wait ds(0)
// CHECK-NEXT:    llvm.inline_asm has_side_effects "s_barrier"
// CHECK-NEXT:    amdgpu.sched_barrier
// CHECK-NEXT:    %[[LATE:.*]] = attn.is_late_wave
// CHECK-NEXT:    scf.if %[[LATE]]
// CHECK:           llvm.inline_asm has_side_effects "s_barrier"
// CHECK:         scf.for {{.*}} step %[[C2]] {{.*}}%[[NOSCORES]]
// CHECK-COUNT-2:   attn.copy_lds
// CHECK-NEXT:      %[[K0:.*]] = attn.load_lds
// CHECK-NEXT:      %[[K1:.*]] = attn.load_lds
// CHECK-NEXT:      amdgpu.sched_barrier
// CHECK-NEXT:      amdgpu.memory_counter_wait load(4)
// CHECK-NOT:       amdgpu.lds_barrier
// CHECK:           llvm.inline_asm has_side_effects "s_barrier"
// CHECK:           %[[S0:.*]] = attn.dot %[[K0]]
// CHECK:           %[[EXP:.*]] = math.exp2
// CHECK-NEXT:      attn.interleave
// CHECK-NEXT:      amdgpu.sched_barrier
// CHECK-NEXT:      %[[S1:.*]] = attn.dot %[[K1]]
// CHECK:           %[[P0:.*]] = attn.round
// CHECK:           %[[P1:.*]] = attn.round %[[EXP]]
// CHECK:           attn.interleave
// CHECK:           %[[PINNED0:.*]] = attn.pin %[[P0]]
// CHECK:           %[[PINNED1:.*]] = attn.pin %[[P1]]
// CHECK:           llvm.inline_asm has_side_effects "s_barrier"
// CHECK-COUNT-2:   attn.copy_lds
// CHECK-NEXT:      attn.load_lds
// CHECK:           attn.load_lds
// CHECK:           amdgpu.memory_counter_wait load(4)
// CHECK:           llvm.inline_asm has_side_effects "s_barrier"
// CHECK:           %[[ACC:.*]] = attn.dot %{{.*}}, %[[PINNED0]]
// CHECK:           attn.reduce <max> %[[S0]]
// CHECK:           attn.reduce <max> %[[S1]]
// CHECK:           %[[ANY:.*]] = attn.wave_any
// CHECK:           attn.interleave
// CHECK-NEXT:      %[[RARE:.*]] = llvm.intr.expect %[[ANY]]
// CHECK-NEXT:      scf.if %[[RARE]]
// CHECK:           math.exp2
// CHECK-NEXT:      attn.dot %{{.*}}, %[[PINNED1]], %[[ACC]]
// CHECK-NEXT:      attn.interleave
// CHECK:           scf.if
// CHECK:           llvm.inline_asm has_side_effects "s_barrier"

// Masked blocks go in pairs too. Who is not late meets the others' last barrier.
// CHECK:         scf.for {{.*}} step %[[C2]]
// CHECK-COUNT-4:   attn.mask
// CHECK:           scf.yield
// CHECK:         %[[EARLY:.*]] = arith.xori %[[LATE]]
// CHECK:         scf.if %[[EARLY]]
// CHECK-NOT:     amdgpu.lds_barrier
func.func @segments(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s)
    schedule(<block_m = 256, block_n = 64, waves = 8, inst = <mfma_32x32x16>, stages = 4, waves_per_simd = 2, rescale_threshold = 8, direct_copy = 1>)
    : !t, !t, !t, !t
  return
}

// -----

// Where rows see differently many keys, a launch takes the last rows of several
// batches first: of a power of two (at most 8) that gives four rounds or fewer of
// 256 compute units. The dispatch packet says how many batches there are.

!t = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @order(
// CHECK-DAG:     %[[ROOM:.*]] = arith.constant 21 : i32
// CHECK-DAG:     %[[MOST:.*]] = arith.constant 3 : i32
// CHECK-DAG:     %[[ONE:.*]] = arith.constant 1 : i32
// CHECK:         gpu.block_id z
// CHECK-NEXT:    %[[BATCH:.*]] = arith.index_cast
// CHECK:         gpu.block_id y
// CHECK-NEXT:    %[[Y:.*]] = arith.index_cast
// CHECK:         %[[UP:.*]] = arith.addi %arg{{[0-9]+}},
// CHECK-NEXT:    %[[BLOCKS:.*]] = arith.divui %[[UP]],
// CHECK:         %[[GROUPS:.*]] = arith.muli %{{.*}}, %[[BLOCKS]]
// CHECK:         %[[BOUNDED:.*]] = arith.minui %[[GROUPS]],
// CHECK:         %[[BITS:.*]] = math.ctlz %[[BOUNDED]]
// CHECK:         %[[FEWER:.*]] = arith.subi %[[BITS]], %[[ROOM]]
// CHECK-NOT:     arith.max
// CHECK:         %[[SHIFT:.*]] = arith.minsi %[[FEWER]], %[[MOST]]
// CHECK:         %[[PAST:.*]] = arith.shrui %[[BATCH]], %[[SHIFT]]
// CHECK:         %[[FIRST:.*]] = arith.shli %[[PAST]], %[[SHIFT]]
// CHECK:         %[[ALL:.*]] = arith.shli %[[ONE]], %[[SHIFT]]
// CHECK:         %[[PACKET:.*]] = llvm.call_intrinsic "llvm.amdgcn.dispatch.ptr"
// CHECK:         %[[AT:.*]] = llvm.getelementptr %[[PACKET]][20]
// CHECK:         %[[BATCHES:.*]] = llvm.load %[[AT]] invariant
// CHECK:         %[[LEFT:.*]] = arith.subi %[[BATCHES]], %[[FIRST]]
// CHECK:         %[[TOGETHER:.*]] = arith.minsi %[[ALL]], %[[LEFT]]
// CHECK:         %[[OF:.*]] = arith.subi %[[BATCH]], %[[FIRST]]
// CHECK:         %[[BEFORE:.*]] = arith.muli %[[OF]], %[[BLOCKS]]
// CHECK:         %[[PLACE:.*]] = arith.addi %[[BEFORE]], %[[Y]]
// CHECK:         %[[BLOCK:.*]] = arith.divui %[[PLACE]], %[[TOGETHER]]
// CHECK:         %[[WHOLE:.*]] = arith.muli %[[BLOCK]], %[[TOGETHER]]
// CHECK:         %[[OTHER:.*]] = arith.subi %[[PLACE]], %[[WHOLE]]
// CHECK:         arith.addi %[[FIRST]], %[[OTHER]]
// CHECK:         %[[LAST:.*]] = arith.subi %[[BLOCKS]], %[[ONE]]
// CHECK:         arith.subi %[[LAST]], %[[BLOCK]]
func.func @order(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s) visible [#attn.causal<top_left>]
    schedule(<block_m = 256, block_n = 64, waves = 8, inst = <mfma_32x32x16>, stages = 4, waves_per_simd = 2, rescale_threshold = 8, direct_copy = 1>)
    : !t, !t, !t, !t
  return
}
