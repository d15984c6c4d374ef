// A wave goes ten times round a loop in which it reads LDS (all lanes of one
// bank), multiplies a tile, takes an exponential and meets its workgroup.
.amdgcn_target "amdgcn-amd-amdhsa--gfx942"
.text
.globl looped
.p2align 8
.type looped,@function
looped:
  s_load_dwordx2 s[2:3], s[0:1], 0x0
  v_lshlrev_b32_e32 v1, 7, v0
  v_mov_b32_e32 v2, 0
  v_mov_b32_e32 v3, 0
  v_mov_b32_e32 v8, 1.0
  v_mov_b32_e32 v9, 1.0
  ds_write_b32 v1, v8
  s_movk_i32 s4, 10
  s_waitcnt lgkmcnt(0)
.Lagain:
  ds_read_b32 v10, v1
  s_waitcnt lgkmcnt(0)
  v_mfma_f32_32x32x8_bf16 a[0:15], v[2:3], v[8:9], a[0:15]
  v_exp_f32_e32 v11, v10
  s_barrier
  v_add_f32_e32 v8, v8, v11
  s_sub_u32 s4, s4, 1
  s_cmp_lg_u32 s4, 0
  s_cbranch_scc1 .Lagain
  v_lshlrev_b32_e32 v4, 2, v0
  global_store_dword v4, v8, s[2:3]
  s_endpgm
.Lend:
.size looped, .Lend-looped

.rodata
.p2align 6
.amdhsa_kernel looped
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_next_free_vgpr 32
  .amdhsa_next_free_sgpr 16
  .amdhsa_accum_offset 16
  .amdhsa_group_segment_fixed_size 32768
.end_amdhsa_kernel

.amdgpu_metadata
---
amdhsa.version: [1, 2]
amdhsa.target: amdgcn-amd-amdhsa--gfx942
amdhsa.kernels:
  - .name: looped
    .symbol: looped.kd
    .kernarg_segment_size: 8
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 32768
    .private_segment_fixed_size: 0
    .wavefront_size: 64
    .sgpr_count: 16
    .vgpr_count: 16
    .agpr_count: 16
    .max_flat_workgroup_size: 256
    .args:
      - .offset: 0
        .size: 8
        .value_kind: global_buffer
        .address_space: global
...
.end_amdgpu_metadata
