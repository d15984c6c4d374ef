//===- Aliases.cpp - Instructions that were renamed -----------------------===//
//
// GFX11 and GFX12 renamed instructions without changing what they do. One line
// each: the new name, and the row whose copy it is. Sources: the tables of
// renamed instructions in AMD's RDNA3 and RDNA4 ISA documents.
//
//===----------------------------------------------------------------------===//
#include "isa/Table.h"

#include <deque>
#include <map>
#include <string>

namespace fovea::sim {

namespace {
struct Alias {
  const char *name, *of;
};
constexpr Alias kAliases[] = {
    // Scalar.
    {"s_and_not1_b32", "s_andn2_b32"},
    {"s_and_not1_b64", "s_andn2_b64"},
    {"s_or_not1_b32", "s_orn2_b32"},
    {"s_or_not1_b64", "s_orn2_b64"},
    {"s_and_not1_saveexec_b32", "s_andn2_saveexec_b32"},
    {"s_and_not1_saveexec_b64", "s_andn2_saveexec_b64"},
    {"s_or_not1_saveexec_b32", "s_orn2_saveexec_b32"},
    {"s_or_not1_saveexec_b64", "s_orn2_saveexec_b64"},
    {"s_and_not0_saveexec_b32", "s_andn1_saveexec_b32"},
    {"s_and_not0_saveexec_b64", "s_andn1_saveexec_b64"},
    {"s_or_not0_saveexec_b32", "s_orn1_saveexec_b32"},
    {"s_or_not0_saveexec_b64", "s_orn1_saveexec_b64"},
    {"s_and_not0_wrexec_b32", "s_andn1_wrexec_b32"},
    {"s_and_not0_wrexec_b64", "s_andn1_wrexec_b64"},
    {"s_and_not1_wrexec_b32", "s_andn2_wrexec_b32"},
    {"s_and_not1_wrexec_b64", "s_andn2_wrexec_b64"},
    {"s_ctz_i32_b32", "s_ff1_i32_b32"},
    {"s_ctz_i32_b64", "s_ff1_i32_b64"},
    {"s_clz_i32_u32", "s_flbit_i32_b32"},
    {"s_clz_i32_u64", "s_flbit_i32_b64"},
    {"s_cls_i32", "s_flbit_i32"},
    {"s_cls_i32_i64", "s_flbit_i32_i64"},
    {"s_add_co_u32", "s_add_u32"},
    {"s_sub_co_u32", "s_sub_u32"},
    {"s_add_co_ci_u32", "s_addc_u32"},
    {"s_sub_co_ci_u32", "s_subb_u32"},
    {"s_add_co_i32", "s_add_i32"},
    {"s_sub_co_i32", "s_sub_i32"},
    {"s_addk_co_i32", "s_addk_i32"},
    {"s_load_b32", "s_load_dword"},
    {"s_load_b64", "s_load_dwordx2"},
    {"s_load_b128", "s_load_dwordx4"},
    {"s_load_b256", "s_load_dwordx8"},
    {"s_load_b512", "s_load_dwordx16"},
    {"s_buffer_load_b32", "s_buffer_load_dword"},
    {"s_buffer_load_b64", "s_buffer_load_dwordx2"},
    {"s_buffer_load_b128", "s_buffer_load_dwordx4"},
    {"s_buffer_load_b256", "s_buffer_load_dwordx8"},
    {"s_buffer_load_b512", "s_buffer_load_dwordx16"},
    // Vector.
    {"v_add_nc_u32", "v_add_u32"},
    {"v_sub_nc_u32", "v_sub_u32"},
    {"v_subrev_nc_u32", "v_subrev_u32"},
    {"v_add_nc_i32", "v_add_i32"},
    {"v_sub_nc_i32", "v_sub_i32"},
    {"v_add_nc_u16", "v_add_u16"},
    {"v_sub_nc_u16", "v_sub_u16"},
    {"v_add_nc_i16", "v_add_i16"},
    {"v_sub_nc_i16", "v_sub_i16"},
    {"v_add_nc_u32_clamp", "v_add_u32_clamp"},
    {"v_sub_nc_u32_clamp", "v_sub_u32_clamp"},
    {"v_subrev_nc_u32_clamp", "v_subrev_u32_clamp"},
    {"v_add_nc_i32_clamp", "v_add_i32_clamp"},
    {"v_sub_nc_i32_clamp", "v_sub_i32_clamp"},
    {"v_add_nc_u16_clamp", "v_add_u16_clamp"},
    {"v_sub_nc_u16_clamp", "v_sub_u16_clamp"},
    {"v_add_nc_i16_clamp", "v_add_i16_clamp"},
    {"v_sub_nc_i16_clamp", "v_sub_i16_clamp"},
    {"v_add_co_ci_u32", "v_addc_co_u32"},
    {"v_sub_co_ci_u32", "v_subb_co_u32"},
    {"v_subrev_co_ci_u32", "v_subbrev_co_u32"},
    {"v_add_co_ci_u32_clamp", "v_addc_co_u32_clamp"},
    {"v_sub_co_ci_u32_clamp", "v_subb_co_u32_clamp"},
    {"v_subrev_co_ci_u32_clamp", "v_subbrev_co_u32_clamp"},
    {"v_mad_co_u64_u32_clamp", "v_mad_u64_u32_clamp"},
    {"v_mad_co_i64_i32_clamp", "v_mad_i64_i32_clamp"},
    {"v_mad_co_u64_u32", "v_mad_u64_u32"},
    {"v_mad_co_i64_i32", "v_mad_i64_i32"},
    {"v_mul_dx9_zero_f32", "v_mul_legacy_f32"},
    {"v_clz_i32_u32", "v_ffbh_u32"},
    {"v_ctz_i32_b32", "v_ffbl_b32"},
    {"v_cls_i32", "v_ffbh_i32"},
    {"v_cvt_nearest_i32_f32", "v_cvt_rpi_i32_f32"},
    {"v_cvt_floor_i32_f32", "v_cvt_flr_i32_f32"},
    {"v_cvt_pk_rtz_f16_f32", "v_cvt_pkrtz_f16_f32"},
    {"v_cvt_pk_norm_i16_f32", "v_cvt_pknorm_i16_f32"},
    {"v_cvt_pk_norm_u16_f32", "v_cvt_pknorm_u16_f32"},
    {"v_cvt_pk_norm_i16_f16", "v_cvt_pknorm_i16_f16"},
    {"v_cvt_pk_norm_u16_f16", "v_cvt_pknorm_u16_f16"},
    {"v_dot2acc_f32_f16", "v_dot2c_f32_f16"},
    {"v_cmp_t_f16", "v_cmp_tru_f16"},
    {"v_cmp_t_f32", "v_cmp_tru_f32"},
    {"v_cmp_t_f64", "v_cmp_tru_f64"},
};

/// Words that the names of memory instructions changed by.
constexpr Alias kMemoryWords[] = {
    {"load_u8", "load_ubyte"},
    {"load_i8", "load_sbyte"},
    {"load_u16", "load_ushort"},
    {"load_i16", "load_sshort"},
    {"load_d16_u8", "load_ubyte_d16"},
    {"load_d16_hi_u8", "load_ubyte_d16_hi"},
    {"load_d16_i8", "load_sbyte_d16"},
    {"load_d16_hi_i8", "load_sbyte_d16_hi"},
    {"load_d16_b16", "load_short_d16"},
    {"load_d16_hi_b16", "load_short_d16_hi"},
    {"load_b32", "load_dword"},
    {"load_b64", "load_dwordx2"},
    {"load_b96", "load_dwordx3"},
    {"load_b128", "load_dwordx4"},
    {"store_b8", "store_byte"},
    {"store_b16", "store_short"},
    {"store_d16_hi_b8", "store_byte_d16_hi"},
    {"store_d16_hi_b16", "store_short_d16_hi"},
    {"store_b32", "store_dword"},
    {"store_b64", "store_dwordx2"},
    {"store_b96", "store_dwordx3"},
    {"store_b128", "store_dwordx4"},
    {"load_d16_format_x", "load_format_d16_x"},
    {"load_d16_format_xy", "load_format_d16_xy"},
    {"load_d16_format_xyz", "load_format_d16_xyz"},
    {"load_d16_format_xyzw", "load_format_d16_xyzw"},
    {"load_d16_hi_format_x", "load_format_d16_hi_x"},
    {"store_d16_format_x", "store_format_d16_x"},
    {"store_d16_format_xy", "store_format_d16_xy"},
    {"store_d16_format_xyz", "store_format_d16_xyz"},
    {"store_d16_format_xyzw", "store_format_d16_xyzw"},
    {"store_d16_hi_format_x", "store_format_d16_hi_x"},
    {"atomic_swap_b32", "atomic_swap"},
    {"atomic_swap_b64", "atomic_swap_x2"},
    {"atomic_cmpswap_b32", "atomic_cmpswap"},
    {"atomic_cmpswap_b64", "atomic_cmpswap_x2"},
    {"atomic_add_u32", "atomic_add"},
    {"atomic_add_u64", "atomic_add_x2"},
    {"atomic_sub_u32", "atomic_sub"},
    {"atomic_sub_u64", "atomic_sub_x2"},
    {"atomic_min_i32", "atomic_smin"},
    {"atomic_min_i64", "atomic_smin_x2"},
    {"atomic_min_u32", "atomic_umin"},
    {"atomic_min_u64", "atomic_umin_x2"},
    {"atomic_max_i32", "atomic_smax"},
    {"atomic_max_i64", "atomic_smax_x2"},
    {"atomic_max_u32", "atomic_umax"},
    {"atomic_max_u64", "atomic_umax_x2"},
    {"atomic_and_b32", "atomic_and"},
    {"atomic_and_b64", "atomic_and_x2"},
    {"atomic_or_b32", "atomic_or"},
    {"atomic_or_b64", "atomic_or_x2"},
    {"atomic_xor_b32", "atomic_xor"},
    {"atomic_xor_b64", "atomic_xor_x2"},
    {"atomic_inc_u32", "atomic_inc"},
    {"atomic_inc_u64", "atomic_inc_x2"},
    {"atomic_dec_u32", "atomic_dec"},
    {"atomic_dec_u64", "atomic_dec_x2"},
};
constexpr Alias kLdsWords[] = {
    {"load_b32", "read_b32"},
    {"load_b64", "read_b64"},
    {"load_b96", "read_b96"},
    {"load_b128", "read_b128"},
    {"load_u8", "read_u8"},
    {"load_i8", "read_i8"},
    {"load_u16", "read_u16"},
    {"load_i16", "read_i16"},
    {"load_u8_d16", "read_u8_d16"},
    {"load_u8_d16_hi", "read_u8_d16_hi"},
    {"load_i8_d16", "read_i8_d16"},
    {"load_i8_d16_hi", "read_i8_d16_hi"},
    {"load_u16_d16", "read_u16_d16"},
    {"load_u16_d16_hi", "read_u16_d16_hi"},
    {"load_2addr_b32", "read2_b32"},
    {"load_2addr_b64", "read2_b64"},
    {"load_2addr_stride64_b32", "read2st64_b32"},
    {"load_2addr_stride64_b64", "read2st64_b64"},
    {"store_b8", "write_b8"},
    {"store_b16", "write_b16"},
    {"store_b8_d16_hi", "write_b8_d16_hi"},
    {"store_b16_d16_hi", "write_b16_d16_hi"},
    {"store_b32", "write_b32"},
    {"store_b64", "write_b64"},
    {"store_b96", "write_b96"},
    {"store_b128", "write_b128"},
    {"store_2addr_b32", "write2_b32"},
    {"store_2addr_b64", "write2_b64"},
    {"store_2addr_stride64_b32", "write2st64_b32"},
    {"store_2addr_stride64_b64", "write2st64_b64"},
    {"load_addtid_b32", "read_addtid_b32"},
    {"store_addtid_b32", "write_addtid_b32"},
    {"storexchg_2addr_rtn_b32", "wrxchg2_rtn_b32"},
    {"storexchg_2addr_rtn_b64", "wrxchg2_rtn_b64"},
    {"storexchg_2addr_stride64_rtn_b32", "wrxchg2st64_rtn_b32"},
    {"storexchg_2addr_stride64_rtn_b64", "wrxchg2st64_rtn_b64"},
    {"storexchg_rtn_b32", "wrxchg_rtn_b32"},
    {"storexchg_rtn_b64", "wrxchg_rtn_b64"},
};
} // namespace

void addAliases(std::vector<Row> &rows) {
  std::map<std::string, size_t> index;
  for (size_t i = 0; i < rows.size(); ++i)
    index.emplace(rows[i].mnemonic, i);
  // Names made here live as long as the process; the table is built once.
  static std::deque<std::string> names;
  auto add = [&](const std::string &name, const std::string &of) {
    auto found = index.find(of);
    if (found == index.end() || index.count(name))
      return;
    Row row = rows[found->second];
    row.mnemonic = names.emplace_back(name);
    rows.push_back(row);
  };
  for (const Alias &alias : kAliases)
    add(alias.name, alias.of);
  for (const char *space : {"flat_", "global_", "scratch_", "buffer_",
                            "tbuffer_"})
    for (const Alias &alias : kMemoryWords)
      add(std::string(space) + alias.name, std::string(space) + alias.of);
  for (const Alias &alias : kLdsWords)
    add(std::string("ds_") + alias.name, std::string("ds_") + alias.of);
}

} // namespace fovea::sim
