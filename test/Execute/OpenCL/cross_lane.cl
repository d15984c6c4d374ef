// Lanes of a wave exchange values: through the LDS crossbar, DPP, broadcasts and
// ballots; 7 results a
// lane, the last the number of lanes.
#include "common.h"

kernel void cross_lane(global const int *in, global int *out) {
  int lane = LX, x = in[GX * 64 + lane];
  global int *o = out + (GX * 64 + lane) * 7;
  o[0] = __builtin_amdgcn_ds_bpermute(((lane ^ 21) & 63) * 4, x);
  o[1] = __builtin_amdgcn_readlane(x, 17);
  o[2] = __builtin_amdgcn_readfirstlane(x);
  // Quads reversed: quad_perm [3, 2, 1, 0].
  o[3] = __builtin_amdgcn_update_dpp(0, x, 0x1b, 0xf, 0xf, true);
  ulong votes = __builtin_amdgcn_ballot_w64(x & 1);
  o[4] = __builtin_popcountl(votes);
  // Lanes below this one that voted.
  o[5] = __builtin_amdgcn_mbcnt_hi(
      (uint)(votes >> 32), __builtin_amdgcn_mbcnt_lo((uint)votes, 0));
  o[6] = __builtin_amdgcn_wavefrontsize();
}
