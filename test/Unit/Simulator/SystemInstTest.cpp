//===- SystemInstTest.cpp - Clocks, hardware registers and traps ----------===//
//
// What of a wave's surroundings kernels can see.
//
//===----------------------------------------------------------------------===//
#include "HostBits.h"
#include "KernelTest.h"
#include "RdnaAsm.h"

using namespace fovea::sim;
using namespace fovea::sim::test;

namespace {

class SystemInst : public KernelTest {
protected:
  /// Runs \p instructions of a scalar body (RdnaAsm.h) and returns s[16:31].
  std::vector<uint32_t> rdna(const std::string &chip,
                             const std::string &instructions) {
    use(chip);
    RdnaTarget target{chip, 32};
    load(assembleRdna(target, {{"k", rdnaScalarBody(target, instructions)}}));
    uint32_t *a = buffer(std::vector<uint32_t>(64, 0));
    uint32_t *d = buffer(std::vector<uint32_t>(64, 0));
    LaunchConfig config;
    config.block = {32, 1, 1};
    config.options.waveBudget = 1000000;
    Status status = run("k", config, Args().add(a).add(d));
    EXPECT_TRUE(status.ok()) << status.message();
    return std::vector<uint32_t>(d, d + 16);
  }
};

TEST_F(SystemInst, ClocksOfTheShaderGoOn) {
  // Both wait until 200 more are counted.
  rdna("gfx1100", "s_getreg_b32 s20, hwreg(HW_REG_SHADER_CYCLES, 0, 20)\n"
                  ".Lspin:\n"
                  "  s_getreg_b32 s21, hwreg(HW_REG_SHADER_CYCLES, 0, 20)\n"
                  "  s_sub_u32 s22, s21, s20\n"
                  "  s_and_b32 s22, s22, 0xfffff\n"
                  "  s_cmp_lt_u32 s22, 200\n  s_cbranch_scc1 .Lspin");
  rdna("gfx1201", "s_getreg_b32 s20, hwreg(HW_REG_SHADER_CYCLES_LO)\n"
                  "  s_getreg_b32 s23, hwreg(HW_REG_SHADER_CYCLES_HI)\n"
                  ".Lspin:\n"
                  "  s_getreg_b32 s21, hwreg(HW_REG_SHADER_CYCLES_LO)\n"
                  "  s_sub_co_u32 s22, s21, s20\n"
                  "  s_cmp_lt_u32 s22, 200\n  s_cbranch_scc1 .Lspin");
}

TEST_F(SystemInst, ApertureBasesAreAHardwareRegister) {
  auto s = rdna("gfx1100", "s_getreg_b32 s20, hwreg(HW_REG_SH_MEM_BASES)\n"
                           "  s_mov_b64 s[22:23], src_shared_base\n"
                           "  s_mov_b64 s[24:25], src_private_base");
  EXPECT_EQ(s[4] & 0xffff0000, s[7]);
  EXPECT_EQ(s[4] << 16, s[9]);
}

TEST_F(SystemInst, DebuggersTrapDoesNothing) {
  load(assemble(asmModule({{"k", vectorBody("s_trap 3\n  v_mov_b32 v8, 7")}})));
  uint64_t *p = buffer(std::vector<uint64_t>(64, 0));
  Status status = run("k", 1, 64, Args().add(p).add(p).add(p).add(p));
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_EQ(p[3], 7u);
}

} // namespace
