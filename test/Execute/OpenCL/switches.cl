// A dense switch with fall-through, and a small interpreter that branches on
// data: each item runs another program.
#include "common.h"

kernel void switches(global const int *in, global int *out, int n) {
  int i = ID_X;
  if (i >= n)
    return;
  int x = in[i], r = 0;
  switch (x & 15) {
  case 0: r = 11; break;
  case 1: r = x * 3; break;
  case 2: r += 5; // fall through
  case 3: r += 7; break;
  case 4: r = x / 3; break;
  case 5: r = x ^ 0x55; break;
  case 6: r = ~x; break;
  case 7: r = x << 3; break;
  case 9: r = x >> 2; break;
  case 12: r = x % 13; break;
  default: r = -x; break;
  }
  // Four steps, two bits of the input each.
  int acc = r;
  for (int step = 0; step < 4; ++step)
    switch ((x >> (2 * step)) & 3) {
    case 0: acc += step; break;
    case 1: acc *= 3; break;
    case 2: acc -= x; break;
    case 3: acc ^= acc >> 5; break;
    }
  out[i] = acc;
}
