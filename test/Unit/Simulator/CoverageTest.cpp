//===- CoverageTest.cpp - No instruction without a row or a reason --------===//
//
// Whatever LLVM's disassembler knows of a chip either binds to a row of the
// semantics table or stands on the list of what is refused, with a reason. The
// list is part of docs/Simulator.md.
//
//===----------------------------------------------------------------------===//
#include "../../Support/FullGrids.h"
#include "InstructionSampler.h"

#include "gtest/gtest.h"

using namespace fovea::sim::test;

namespace {

constexpr unsigned kRounds = 12;

const std::vector<Refusal> kRefused = {
    // Operands and modifiers.
    {".* [-+~]*[va][0-9]+!.*", "a tuple that runs past the last register"},
    {".*src_lds_direct.*", "LDS as a source of vector instructions: graphics"},
    {".*src_pops_exiting_wave_id.*", "ordered rasterisation: graphics"},
    {".* gds( .*)?", "global data share"},
    {".* tfe( .*)?", "partially resident textures"},
    {"v_cmpx?_.* clamp", "exceptions by signalling compares"},
    {"v_cmpx?_.*_e64 src_.*", "a result to what is no register"},
    {"v_(alignb|cvt_(i|u|norm|flr|rpi|floor|nearest|pk|f16_u|f16_i)|frexp_exp|"
     "mad_(co_)?(i|u)(32|"
     "64)|"
     "max3_[iu]|min3_[iu]|med3_[iu]|m?q?sad_|pack_|pk_(ash|lsh|max_[iu]|min_["
     "iu])|"
     "perm|cvt_off)\\S* .*(clamp|mul|div)( .*)?",
     "output modifiers of results that are no floats; compilers emit none"},
    {"v_\\S+_sdwa .* clamp .*", "saturation of integers by SDWA; not emitted"},
    {"v_mul_[iu]32_[iu]24_e64 .* clamp", "saturation of 24-bit products"},
    {"v_div_fmas_.*(clamp|mul|div)( .*)?", "no compiler emits them"},
    {"v_cvt_scalef32_(sr_)?(pk_)?(fp|bf)[48]_(f|bf)(16|32) .*[-+].*",
     "neg and abs of packed or 16-bit sources of conversions"},
    {"v_pk_mov_b32 .*neg_.*", "moves do not negate"},
    {"v_s?mf\\w+ [va][0-9]+ ([va][0-9]+ )?(src_|s[0-9]|int|float).*",
     "A or B from what is no vector register"},
    {"v_smf\\w+ [va][0-9]+ [va][0-9]+ [va][0-9]+ (src_|s[0-9]).*",
     "an index set from what is no vector register"},
    {"v_mfma_f64_\\w+f64 .*blgp", "gfx90a: fp64 has no lane patterns of B"},
    {"v_permlane\\w+ v1 (src_|s[0-9]).*", "swaps with what is no register"},
    {"s_(buffer_)?(load|store)_dwordx\\w+ s1 .*", "null as a tuple"},
    {"s_set_gpr_idx_on .* int", "reserved bits of the mode"},
    {"t?buffer_\\S+ .* s1 .*", "null as a resource"},
    {"v_dot[48]_\\S+ .*neg_.*", "signs of what is unsigned"},
    {"v_pk_\\S+ .*neg_.* clamp", "neg of integers"},
    {"v_cndmask_b32_dpp .*\\|.*", "neg and abs of masks"},
    // Instructions.
    {"(image|exp)(_| ).*", "graphics (gfx908 and gfx90a decode them)"},
    {"v_interp_.*", "graphics"},
    {"v_screen_partition_.*", "graphics"},
    {"buffer_store_lds_dword .*", "no compiler emits it"},
    {"s_scratch_(load|store)_.*",
     "scratch by hardware's swizzled layout; no compiler emits them"},
    {"s_cbranch_(g_fork|i_fork|join).*", "control flow by a hardware stack"},
    {"s_(rfe_b64|rfe_restore_b64).*", "trap handlers"},
    {"s_setvskip .*", "skipping of vector instructions"},
    {"s_setkill .*", "debugger"},
    {"s_sendmsghalt .*", "graphics"},
    {"(export|image)(_| ).*", "graphics"},
    {"(ds|lds)_(param|direct)_load .*", "graphics"},
    {"ds_bvh_stack_.*", "ray tracing"},
    {"ds_\\w+_src2_.*", "a second LDS address as data; no compiler emits them"},
    {"s_atc_probe.*", "probes of address translation"},
    {"s_cbranch_cdbg.*", "debugger"},
    {"s_subvector_loop_.*", "loops over halves of a wave; not emitted"},
    {"s_alloc_vgpr .*", "registers that grow and shrink"},
    {"(global|scratch)_(load|store)_block .*", "registers by a mask in M0"},
    {"global_(load|store)_addtid_.*", "no compiler emits them"},
    {"global_atomic_ordered_add_.*", "order of waves: graphics"},
    {"global_load_tr_b64 .*", "no document says which lane gets what"},
};

/// Samples of what instructions are there for, that a change of the sampler
/// must not lose.
const std::vector<std::string> kReached = {
    "v_mfma_f32_32x32x1", "v_div_scale_f64",  "v_mqsad_pk_u16_u8",
    "s_load_dwordx16",    "v_cmpx_class_f64", "ds_wrxchg2_rtn",
    "tbuffer_load",       "global_atomic"};

/// What the list of a chip's samples must reach besides.
const std::vector<std::string> kReachedOnRdna = {
    "v_dual_fmac_f32", "v_fma_f16",     "s_and_not1_saveexec_b32",
    "ds_load_b128",    "v_fma_mix_f32", "v_mov_b16",
    "tbuffer_load",    "global_atomic"};

class Chips : public ::testing::TestWithParam<const char *> {};

TEST_P(Chips, EveryInstructionBindsOrIsRefusedForAReason) {
  Coverage coverage = coverageOf(GetParam(), kRounds);
  EXPECT_GT(coverage.decoded, 200000u);
  EXPECT_GT(coverage.forms.size(), 5000u);
  bool rdna = std::string(GetParam()).substr(0, 4) == "gfx1";
  for (const std::string &prefix : rdna ? kReachedOnRdna : kReached) {
    auto it = coverage.forms.lower_bound(prefix);
    EXPECT_TRUE(it != coverage.forms.end() &&
                it->first.compare(0, prefix.size(), prefix) == 0)
        << prefix << " is not in the sample";
  }
  std::vector<size_t> used;
  for (const std::string &form : unexplained(coverage, kRefused, used))
    ADD_FAILURE() << form;
}

// gfx1151 has the instructions of gfx1100, which runs with --full.
INSTANTIATE_TEST_SUITE_P(Coverage, Chips, ::testing::ValuesIn([] {
                           std::vector<const char *> chips = {
                               "gfx908", "gfx90a",  "gfx942",
                               "gfx950", "gfx1151", "gfx1201"};
                           if (fovea::test::runsFullGrids())
                             chips.push_back("gfx1100");
                           return chips;
                         }()),
                         [](const auto &info) {
                           return std::string(info.param);
                         });

} // namespace
