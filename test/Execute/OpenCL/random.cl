// Random numbers: many rounds of 64-bit mixing, and a Monte Carlo estimate.
#include "common.h"

ulong mix(ulong *state) {
  ulong z = (*state += 0x9e3779b97f4a7c15ul);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ul;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebul;
  return z ^ (z >> 31);
}

kernel void monte_carlo(global uint *inside, ulong seed, int rounds, int n) {
  int i = ID_X;
  if (i >= n)
    return;
  ulong state = seed + (ulong)i;
  uint count = 0;
  for (int k = 0; k < rounds; ++k) {
    float x = (float)(uint)(mix(&state) >> 40) * 0x1p-24f;
    float y = (float)(uint)(mix(&state) >> 40) * 0x1p-24f;
    count += __builtin_fmaf(x, x, y * y) < 1.0f;
  }
  inside[i] = count;
}
