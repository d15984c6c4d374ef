//===- RdnaAsm.cpp - Assembly kernels for RDNA chips ----------------------===//
//
// Assembly text with the directives and metadata that make it loadable.
//
//===----------------------------------------------------------------------===//
#include "RdnaAsm.h"
#include "KernelTest.h"

namespace fovea::sim::test {

std::string rdnaModule(const RdnaTarget &target,
                       const std::vector<RdnaKernel> &kernels) {
  std::string id = "amdgcn-amd-amdhsa--" + target.chip;
  std::string text = ".amdgcn_target \"" + id + "\"\n";
  std::string metadata = ".amdgpu_metadata\n---\namdhsa.version:\n  - 1\n  - "
                         "2\namdhsa.target: " +
                         id + "\namdhsa.kernels:\n";
  for (const RdnaKernel &k : kernels) {
    std::string lds = std::to_string(k.ldsBytes);
    text += ".text\n.globl " + k.name + "\n.p2align 8\n.type " + k.name +
            ",@function\n" + k.name + ":\n" + k.body + "\n  s_endpgm\n";
    text += ".rodata\n.p2align 6\n.amdhsa_kernel " + k.name +
            "\n  .amdhsa_user_sgpr_kernarg_segment_ptr 1"
            "\n  .amdhsa_system_sgpr_workgroup_id_x 1"
            "\n  .amdhsa_system_vgpr_workitem_id 0"
            "\n  .amdhsa_wavefront_size32 " +
            std::string(target.lanes == 32 ? "1" : "0") +
            "\n  .amdhsa_float_denorm_mode_32 " + std::to_string(k.denormMode) +
            "\n  .amdhsa_next_free_vgpr 256\n  .amdhsa_next_free_sgpr 100"
            "\n  .amdhsa_group_segment_fixed_size " +
            lds + "\n  .amdhsa_kernarg_size 128\n.end_amdhsa_kernel\n";
    metadata += "  - .name: " + k.name + "\n    .symbol: " + k.name +
                ".kd\n    .kernarg_segment_size: 128"
                "\n    .kernarg_segment_align: 8"
                "\n    .group_segment_fixed_size: " +
                lds +
                "\n    .private_segment_fixed_size: 0"
                "\n    .wavefront_size: " +
                std::to_string(target.lanes) +
                "\n    .sgpr_count: 100\n    .vgpr_count: 256"
                "\n    .max_flat_workgroup_size: 1024\n";
  }
  return text + metadata + "...\n.end_amdgpu_metadata\n";
}

std::vector<char> assembleRdna(const RdnaTarget &target,
                               const std::vector<RdnaKernel> &kernels) {
  return assemble(rdnaModule(target, kernels),
                  target.chip +
                      (target.lanes == 64 ? " -mwavefrontsize64" : ""));
}

std::string rdnaWait(const RdnaTarget &target) {
  return target.gfx12() ? "  s_wait_loadcnt 0x0\n  s_wait_kmcnt 0x0\n"
                        : "  s_waitcnt vmcnt(0) lgkmcnt(0)\n";
}

std::string rdnaVectorBody(const RdnaTarget &target,
                           const std::string &instructions) {
  std::string text = "  s_load_b256 s[8:15], s[0:1], 0x0\n"
                     "  v_and_b32 v0, 0x3ff, v0\n"
                     "  v_lshlrev_b32 v1, 2, v0\n" +
                     rdnaWait(target);
  for (int file = 0; file < 3; ++file)
    for (int r = 0; r < 8; ++r)
      text += "  global_load_b32 v" + std::to_string(8 + 8 * file + r) +
              ", v1, s[" + std::to_string(8 + 2 * file) + ":" +
              std::to_string(9 + 2 * file) +
              "] offset:" + std::to_string(256 * r) + "\n";
  text += rdnaWait(target) + "  " + instructions + "\n";
  for (int r = 0; r < 8; ++r)
    text += "  global_store_b32 v1, v" + std::to_string(24 + r) +
            ", s[14:15] offset:" + std::to_string(256 * r) + "\n";
  return text;
}

std::string rdnaScalarBody(const RdnaTarget &target,
                           const std::string &instructions) {
  std::string text = "  s_load_b128 s[8:11], s[0:1], 0x0\n" + rdnaWait(target) +
                     "  s_load_b512 s[16:31], s[8:9], 0x0\n" +
                     rdnaWait(target) + "  s_mov_b32 vcc_lo, 0\n" +
                     "  s_mov_b32 vcc_hi, 0\n  s_cmp_lg_u32 s0, s0\n  " +
                     instructions +
                     "\n  s_cselect_b32 s32, 1, 0\n"
                     "  s_mov_b32 s33, vcc_lo\n  s_mov_b32 s34, vcc_hi\n"
                     "  s_mov_b32 s35, exec_lo\n  s_mov_b32 s36, exec_hi\n"
                     "  s_mov_b32 exec_lo, -1\n  v_mov_b32 v0, 0\n";
  for (int i = 16; i <= 36; ++i)
    text += "  v_mov_b32 v2, s" + std::to_string(i) +
            "\n  global_store_b32 v0, v2, s[10:11] offset:" +
            std::to_string(4 * (i - 16)) + "\n";
  return text;
}

} // namespace fovea::sim::test
