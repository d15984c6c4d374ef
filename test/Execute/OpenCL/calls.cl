// Calls that are not inlined: through registers, with structures, several
// levels deep, from divergent code.
#include "common.h"

typedef struct {
  int quotient, remainder;
} division;

__attribute__((noinline)) division divide(int a, int b) {
  division d = {a / b, a % b};
  return d;
}

__attribute__((noinline)) int polynomial(int x, int a, int b, int c) {
  return (a * x + b) * x + c;
}

__attribute__((noinline)) int nested(int x, int y) {
  division d = divide(x, y | 1);
  return polynomial(d.quotient, d.remainder, 3, x) - divide(y, 7).remainder;
}

__attribute__((noinline)) void through_pointer(int *value, int add) {
  *value += add * 2;
}

kernel void calls(global const int *in, global int *out, int n) {
  int i = ID_X;
  if (i >= n)
    return;
  int x = in[i], r;
  if (x % 3 == 0)
    r = nested(x, i);
  else
    r = polynomial(x, 2, i, 5);
  for (int k = 0; k < (x & 3); ++k)
    through_pointer(&r, k + x);
  out[i] = r;
}
