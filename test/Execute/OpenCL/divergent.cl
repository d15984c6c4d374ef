// Divergent nested loops with break, continue and early return: the number of
// Collatz steps, and primes counted by trial division.
#include "common.h"

kernel void collatz(global const uint *in, global uint *steps, int n) {
  int i = ID_X;
  if (i >= n)
    return;
  uint x = in[i], count = 0;
  while (x != 1) {
    if (count >= 1000)
      break;
    x = (x & 1) ? 3 * x + 1 : x >> 1;
    ++count;
  }
  steps[i] = count;
}

kernel void primes(global uint *counts, int n) {
  int i = ID_X;
  if (i >= n)
    return;
  uint count = 0;
  for (uint candidate = 2; candidate <= (uint)i; ++candidate) {
    if (candidate > 2 && candidate % 2 == 0)
      continue;
    bool prime = true;
    for (uint d = 3; d * d <= candidate; d += 2)
      if (candidate % d == 0) {
        prime = false;
        break;
      }
    count += prime;
    if (count > 40)
      break;
  }
  counts[i] = count;
}
