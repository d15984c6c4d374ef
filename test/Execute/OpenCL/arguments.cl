// Arguments of every size and alignment, structures among them.
#include "common.h"

typedef struct {
  char tag;
  short number;
  int value;
  float factor;
  long wide;
} record;

kernel void arguments(char c, short s, int i, long l, float f, double d,
                      int4 v, record r, global long *out) {
  if (ID_X != 0)
    return;
  out[0] = c;
  out[1] = s;
  out[2] = i;
  out[3] = l;
  out[4] = __builtin_astype(f, int);
  out[5] = __builtin_astype(d, long);
  out[6] = v.x + v.y * 10 + v.z * 100 + v.w * 1000;
  out[7] = r.tag + r.number + r.value;
  out[8] = __builtin_astype(r.factor, int) + r.wide;
}
