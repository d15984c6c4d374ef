//===- RdnaAsm.cpp - Assembly kernels for RDNA chips ----------------------===//
//
// Assembly text with the directives and metadata that make it loadable.
//
//===----------------------------------------------------------------------===//
#include "RdnaAsm.h"
#include "KernelTest.h"

namespace fovea::sim::test {

std::string rdnaModule(const RdnaTarget &target,
                       const std::vector<AsmKernel> &kernels) {
  ModuleForm form;
  form.target = target.chip;
  form.kernargBytes = 128;
  form.waveSize = target.lanes;
  form.vgprs = 256;
  form.sgprs = 100;
  form.directives = std::string("\n  .amdhsa_wavefront_size32 ") +
                    (target.lanes == 32 ? "1" : "0");
  return moduleText(kernels, form);
}

std::vector<char> assembleRdna(const RdnaTarget &target,
                               const std::vector<AsmKernel> &kernels) {
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
