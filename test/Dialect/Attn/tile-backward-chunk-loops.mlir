// RUN: aot-compile --target=gfx1100 --op=backward --dtype=fp32 --head-dim=256 --groups=head_dims --emit=mlir --stage=tiles -o - | FileCheck %s

// Where owned rows are read anew and chunks of columns are whole, scores and dP
// are a loop over the chunks, which begins with zeros; what is summed up of them
// takes each chunk in a place of its own, and stays there.

// CHECK-LABEL: gpu.func @attn_bwd_fp32_d256_head_dims_dkdv(
// The loops over heads and over blocks.
// CHECK:      scf.for
// CHECK:      scf.for
// CHECK-NOT:  attn.load
// CHECK:      %[[SCORES:.*]]:2 = scf.for %[[CHUNK:.*]] = %c0_i32{{.*}} to %c4_i32{{.*}} iter_args(%[[S:.*]] = %{{.*}}, %[[P:.*]] = %{{.*}}) -> (tensor<8x32xf32>, tensor<8x32xf32>)
// CHECK:        arith.muli %[[CHUNK]], %c64_i32
// CHECK:        %[[S1:.*]] = attn.dot {{.*}}, %[[S]] {{.*}} tensor<8x32xf32>
// CHECK:        %[[P1:.*]] = attn.dot {{.*}}, %[[P]] {{.*}} tensor<8x32xf32>
// CHECK:        scf.yield %[[S1]], %[[P1]]
// CHECK-COUNT-8: attn.pin
// CHECK-NOT:  attn.pin
// CHECK:      scf.yield
