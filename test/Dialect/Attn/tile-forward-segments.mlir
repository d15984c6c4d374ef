// RUN: aot-opt %s --attn-to-scheduled=chip=gfx942 --attn-scheduled-to-tiles | FileCheck %s

// Four stages: an iteration has a segment that reads K and one that reads V,
// each with a barrier behind it, and computes between them, urgently: scores
// beside sums and rounding of the block before, its output beside exponentials
// of this one. What these make is pinned in them. The sums follow a new
// reference last.

!t = memref<?x?x?x128xbf16, strided<[?, ?, ?, 1]>>
// CHECK-LABEL: gpu.func @segments(
// CHECK-DAG:     %[[NOROWS:.*]] = arith.constant dense<0.000000e+00> : tensor<32x128xbf16>
// CHECK-DAG:     %[[NOWEIGHTS:.*]] = arith.constant dense<0.000000e+00> : tensor<32x128xf32>
// CHECK:         %[[K:.*]] = attn.alloc_lds : <32 x 128 x bf16>
// CHECK:         %[[V:.*]] = attn.alloc_lds : <128 x 32 x bf16>

// K of the first block is stored, and of the second on its way.
// CHECK:         %[[K0:.*]] = attn.load {{.*}} -> tensor<32x128xbf16>
// CHECK:         attn.store_lds %[[K0]], %[[K]]
// CHECK-NOT:     rocdl.s.setprio
// CHECK:         %[[K1:.*]] = attn.load {{.*}} -> tensor<32x128xbf16>
// CHECK-NEXT:    amdgpu.lds_barrier
// CHECK:         %[[LOOP:.*]]:7 = scf.for {{.*}} iter_args(%[[MAX:[^ ]*]] = %{{[^ ]*}}, %[[SUM:[^ ]*]] = %{{[^ ]*}}, %[[ACC:[^ ]*]] = %{{[^ ]*}}, %{{[^ ]*}} = %{{[^ ]*}}, %[[NEXTK:[^ ]*]] = %[[K1]], %[[LASTV:[^ ]*]] = %[[NOROWS]], %[[WEIGHTS:[^ ]*]] = %[[NOWEIGHTS]])
// CHECK-NEXT:      %[[KEYS:.*]] = attn.load_lds %[[K]]
// CHECK-NEXT:      amdgpu.sched_barrier
// CHECK-NEXT:      %[[VT:.*]] = attn.transpose %[[LASTV]]
// CHECK-NEXT:      attn.store_lds %[[VT]], %[[V]]
// CHECK:           %[[VROWS:.*]] = attn.load
// CHECK-NEXT:      amdgpu.lds_barrier
// CHECK-NEXT:      rocdl.s.setprio 1
// CHECK-NEXT:      %[[S:.*]] = attn.dot %[[KEYS]]
// CHECK-NEXT:      %[[ROUNDED:.*]] = attn.round %[[WEIGHTS]]
// CHECK-NEXT:      %[[PART:.*]] = attn.reduce <sum> %[[WEIGHTS]]
// CHECK-NEXT:      %[[NEWSUM:.*]] = arith.addf %[[SUM]], %[[PART]]
// CHECK-NEXT:      attn.interleave
// CHECK-NEXT:      %[[P:.*]] = attn.pin %[[ROUNDED]]
// CHECK-NEXT:      %[[PINNED:.*]] = attn.pin %[[NEWSUM]]
// CHECK-NEXT:      rocdl.s.setprio 0
// CHECK-NEXT:      %[[VALUES:.*]] = attn.load_lds %[[V]]
// CHECK-NEXT:      attn.store_lds %[[NEXTK]], %[[K]]
// CHECK-NEXT:      amdgpu.sched_barrier
// CHECK:           %[[ANY:.*]] = attn.wave_any
// CHECK:           %[[CHOSEN:.*]]:5 = scf.if %[[ANY]] -> (tensor<32x128xf32>, tensor<1x128xf32>, i32, tensor<1x128xf32>, i32)
// CHECK:             %[[ONE:.*]] = llvm.inline_asm has_side_effects "", "=s,0"
// CHECK-NEXT:        scf.yield {{.*}}, %[[ONE]] :
// CHECK:             scf.yield %[[S]], {{.*}}, %[[C0:[^ ]*]] :
// CHECK:           %[[KROWS:.*]] = attn.load
// CHECK-NEXT:      amdgpu.lds_barrier
// CHECK-NEXT:      rocdl.s.setprio 1
// CHECK:           %[[EXP:.*]] = math.exp2
// CHECK-NEXT:      %[[OUT:.*]] = attn.dot %[[VALUES]], %[[P]], %[[ACC]]
// CHECK-NEXT:      attn.interleave
// CHECK-NEXT:      %[[NEWWEIGHTS:.*]] = attn.pin %[[EXP]]
// CHECK-NEXT:      rocdl.s.setprio 0
// CHECK-NEXT:      %[[CHANGED:.*]] = llvm.inline_asm has_side_effects "", "=s,0" %[[CHOSEN]]#4
// CHECK-NEXT:      %[[RESCALES:.*]] = arith.cmpi ne, %[[CHANGED]], %[[C0]]
// CHECK-NEXT:      %[[RESCALED:.*]]:2 = scf.if %[[RESCALES]]
// CHECK:             attn.pin
// CHECK:             scf.yield %[[PINNED]], %[[OUT]]
// CHECK:           scf.yield %[[CHOSEN]]#3, %[[RESCALED]]#0, %[[RESCALED]]#1, %[[CHOSEN]]#2, %[[KROWS]], %[[VROWS]], %[[NEWWEIGHTS]]

// The loop over masked blocks takes up where that one ends; behind it the output
// of the last block is still to be added.
// CHECK:         %[[TAIL:.*]]:7 = scf.for {{.*}} iter_args({{.*}}, %{{[^ ]*}} = %[[LOOP]]#4, %{{[^ ]*}} = %[[LOOP]]#5, %{{[^ ]*}} = %[[LOOP]]#6)
// CHECK:           attn.mask
// CHECK:           attn.wave_any
// CHECK:           scf.yield
// CHECK:         %[[LAST:.*]] = attn.transpose %[[TAIL]]#5
// CHECK-NEXT:    attn.store_lds %[[LAST]], %[[V]]
// CHECK-NEXT:    amdgpu.lds_barrier
// CHECK-NOT:     rocdl.s.setprio
// CHECK:         attn.round %[[TAIL]]#6
// CHECK:         attn.load_lds %[[V]]
// CHECK:         attn.dot %{{.*}}, %{{.*}}, %[[TAIL]]#2
// CHECK-NOT:     attn.interleave
func.func @segments(%q: !t, %k: !t, %v: !t, %o: !t, %s: f32) {
  attn.forward %q, %k, %v, %o scale(%s)
    schedule(<block_m = 128, block_n = 32, waves = 4, inst = <mfma_32x32x8>, stages = 4, waves_per_simd = 2, rescale_threshold = 8>)
    : !t, !t, !t, !t
  return
}
