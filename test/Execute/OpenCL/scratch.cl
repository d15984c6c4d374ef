// Private arrays indexed at run time: scratch memory, a stack and a sort.
#include "common.h"

kernel void scratch_sort(global const int *in, global int *out, int n) {
  int i = ID_X;
  if (i >= n)
    return;
  int values[24];
  for (int k = 0; k < 24; ++k)
    values[k] = in[(i * 7 + k * 13) % n];
  for (int a = 1; a < 24; ++a) {
    int v = values[a], b = a;
    while (b > 0 && values[b - 1] > v) {
      values[b] = values[b - 1];
      --b;
    }
    values[b] = v;
  }
  int hash = 0;
  for (int k = 0; k < 24; ++k)
    hash = hash * 31 + values[k];
  out[i] = hash;
}

kernel void scratch_bytes(global const uchar *in, global uchar *out, int n) {
  int i = ID_X;
  if (i >= n)
    return;
  uchar table[64];
  for (int k = 0; k < 64; ++k)
    table[k] = (uchar)(k * 5 + i);
  uchar acc = 0;
  for (int k = 0; k < 16; ++k) {
    int at = in[(i + k) % n] & 63;
    acc ^= table[at];
    table[at] += acc;
  }
  out[i] = acc;
}
