//===- plain.h - what the plain attention kernels share ----------*- C -*-===//
//
// Elements, masks and rows. D: head dimension; BF16: type; MASK: 0 none, 1
// causal top left, 2 bottom right, 3 a window, which three more arguments say.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_CTS_PLAIN_H
#define FOVEA_TEST_CTS_PLAIN_H

#pragma OPENCL EXTENSION cl_khr_fp16 : enable

#if BF16
typedef ushort element;
static inline float load(global const element *p) {
  return as_float((uint)*p << 16);
}
static inline void store(global element *p, float x) {
  uint bits = as_uint(x); // to nearest, ties to even; x is no NaN
  *p = (ushort)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}
#else
typedef half element;
static inline float load(global const element *p) { return (float)*p; }
static inline void store(global element *p, float x) { *p = (half)x; }
#endif

#define LOG2E 1.44269504f
#define LN2 0.693147181f
#define CHUNK 8
#define LEAST(a, b) ((a) < (b) ? (a) : (b)) // no device library is linked

/// The row of this work-item.
static inline int rowOfWorkItem() {
  return __builtin_amdgcn_workgroup_id_y() * 64 +
         __builtin_amdgcn_workitem_id_x();
}

#if MASK == 3
#define WINDOW_PARAMETERS , int windowLeft, int windowRight, int windowAlignment
#define WINDOW , windowLeft, windowRight, windowAlignment
#else
#define WINDOW_PARAMETERS
#define WINDOW
#endif

typedef struct {
  int begin, end; // begin <= end
} Keys;

/// Keys that a row sees.
static inline Keys keysOf(int row, int seqlenQ, int seqlenK WINDOW_PARAMETERS) {
  long begin = 0, end = seqlenK;
#if MASK == 1
  end = row + 1;
#elif MASK == 2
  end = row + 1 + seqlenK - seqlenQ;
#elif MASK == 3
  const long shift = (long)seqlenK - seqlenQ;
  if (windowLeft != 0x7fffffff)
    begin = row + (windowAlignment & 1 ? shift : 0) - windowLeft;
  if (windowRight != 0x7fffffff)
    end = row + (windowAlignment & 2 ? shift : 0) + windowRight + 1;
#endif
  Keys keys;
  keys.begin = begin < 0 ? 0 : LEAST(begin, seqlenK);
  keys.end = end < keys.begin ? keys.begin : LEAST(end, seqlenK);
  return keys;
}

#endif // FOVEA_TEST_CTS_PLAIN_H
