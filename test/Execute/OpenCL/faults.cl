// Kernels that do something wrong: each must be reported, none may end the
// process.
#include "common.h"

kernel void store_out_of_bounds(global int *out, int n) {
  int i = ID_X;
  if (i <= n) // one too far
    out[i] = i;
}

kernel void load_out_of_bounds(global const int *in, global int *out) {
  out[LX] = in[LX + (LX == 5 ? 4096 : 0)];
}

kernel void null_pointer(global int *out) {
  global int *nothing = (global int *)0;
  if (LX == 3)
    out = nothing;
  out[LX] = 1;
}

kernel void endless(global int *out) {
  while (*(volatile global int *)out == 0)
    ;
}

kernel void trap(global int *out) {
  out[0] = 7;
  __builtin_trap();
}

kernel void fine(global int *out) { out[LX] = LX * 3; }
