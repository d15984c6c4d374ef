//===- AsmKernels.cpp - Kernels around single instructions ----------------===//
//
// Assembly text with the directives and metadata that make it loadable.
//
//===----------------------------------------------------------------------===//
#include "AsmKernels.h"

namespace fovea::sim::test {

std::string moduleText(const std::vector<AsmKernel> &kernels,
                       const ModuleForm &form) {
  const std::string id = "amdgcn-amd-amdhsa--" + form.target;
  const std::string kernargBytes = std::to_string(form.kernargBytes);
  const std::string sgprs = std::to_string(form.sgprs);
  const std::string vgprs = std::to_string(form.vgprs);
  std::string text = ".amdgcn_target \"" + id + "\"\n";
  std::string metadata = ".amdgpu_metadata\n---\namdhsa.version:\n  - 1\n  - "
                         "2\namdhsa.target: " +
                         id + "\namdhsa.kernels:\n";
  for (const AsmKernel &k : kernels) {
    std::string lds = std::to_string(k.ldsBytes);
    text += ".text\n.globl " + k.name + "\n.p2align 8\n.type " + k.name +
            ",@function\n" + k.name + ":\n" + k.body + "\n  s_endpgm\n";
    text += ".rodata\n.p2align 6\n.amdhsa_kernel " + k.name +
            "\n  .amdhsa_user_sgpr_kernarg_segment_ptr 1"
            "\n  .amdhsa_system_sgpr_workgroup_id_x 1"
            "\n  .amdhsa_system_vgpr_workitem_id 0"
            "\n  .amdhsa_float_denorm_mode_32 " +
            std::to_string(k.denormMode) + "\n  .amdhsa_float_round_mode_32 " +
            std::to_string(k.roundMode) + "\n  .amdhsa_next_free_vgpr " +
            vgprs + form.directives + "\n  .amdhsa_next_free_sgpr " + sgprs +
            "\n  .amdhsa_group_segment_fixed_size " + lds +
            "\n  .amdhsa_kernarg_size " + kernargBytes +
            "\n.end_amdhsa_kernel\n";
    metadata += "  - .name: " + k.name + "\n    .symbol: " + k.name +
                ".kd\n    .kernarg_segment_size: " + kernargBytes +
                "\n    .kernarg_segment_align: 8"
                "\n    .group_segment_fixed_size: " +
                lds +
                "\n    .private_segment_fixed_size: 0"
                "\n    .wavefront_size: " +
                std::to_string(form.waveSize) + "\n    .sgpr_count: " + sgprs +
                "\n    .vgpr_count: " + vgprs + form.metadata +
                "\n    .max_flat_workgroup_size: 1024\n";
  }
  return text + metadata + "...\n.end_amdgpu_metadata\n";
}

std::string asmModule(const std::vector<AsmKernel> &kernels,
                      unsigned kernargBytes, const std::string &target) {
  ModuleForm form;
  form.target = target;
  form.kernargBytes = kernargBytes;
  form.waveSize = 64;
  form.sgprs = 96;
  form.metadata = "\n    .agpr_count: 256";
  // gfx908 has the AGPRs in a file of their own.
  const bool unified = target != "gfx908";
  form.vgprs = unified ? 512 : 256;
  form.directives = unified ? "\n  .amdhsa_accum_offset 256" : "";
  return moduleText(kernels, form);
}

std::string vectorBody(const std::string &instructions) {
  return "  s_load_dwordx8 s[8:15], s[0:1], 0x0\n"
         "  v_and_b32 v0, 0x3ff, v0\n"
         "  v_lshlrev_b32 v1, 3, v0\n"
         "  s_waitcnt lgkmcnt(0)\n"
         "  global_load_dwordx2 v[2:3], v1, s[8:9]\n"
         "  global_load_dwordx2 v[4:5], v1, s[10:11]\n"
         "  global_load_dwordx2 v[6:7], v1, s[12:13]\n"
         "  global_load_dwordx2 v[8:9], v1, s[14:15]\n"
         "  s_waitcnt vmcnt(0)\n  " +
         instructions +
         "\n  global_store_dwordx2 v1, v[8:9], s[14:15]\n";
}

std::string scalarBody(const std::string &instructions) {
  return "  s_load_dwordx8 s[8:15], s[0:1], 0x0\n"
         "  s_waitcnt lgkmcnt(0)\n"
         "  s_load_dwordx2 s[16:17], s[8:9], 0x0\n"
         "  s_load_dwordx2 s[18:19], s[10:11], 0x0\n"
         "  s_load_dwordx2 s[20:21], s[12:13], 0x0\n"
         "  s_load_dwordx2 s[22:23], s[14:15], 0x0\n"
         "  s_waitcnt lgkmcnt(0)\n"
         "  s_cmp_lg_u32 s20, 0\n" // SCC is c's low word
         "  " + instructions +
         "\n  s_cselect_b32 s24, 1, 0\n"
         "  v_mov_b32 v0, 0\n"
         "  v_mov_b32 v2, s22\n"
         "  v_mov_b32 v3, s23\n"
         "  v_mov_b32 v4, s24\n"
         "  v_mov_b32 v5, 0\n"
         "  global_store_dwordx4 v0, v[2:5], s[14:15]\n";
}

} // namespace fovea::sim::test
