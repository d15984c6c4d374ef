//===- plain_forward.cl - attention as plainly as can be ---------*- C -*-===//
//
// attn.forward with the argument layout of docs/KernelAbi.md, a work-item a
// query row, built by clang. It owes nothing to our compiler, so the
// conformance suite can tell a fault of the runtime or of a HIP library from
// one of our kernels. 64 rows a workgroup.
//
//===----------------------------------------------------------------------===//

#include "plain.h"

kernel void plain_forward(
    global const element *q, global const element *k, global const element *v,
    global element *out, global float *lse, long qsb, long qsh, long qss,
    long ksb, long ksh, long kss, long vsb, long vsh, long vss, long osb,
    long osh, long oss, long lsb, long lsh, int seqlenQ, int seqlenK,
    int headsQ, int groupSize, float scale WINDOW_PARAMETERS) {
  const int head = __builtin_amdgcn_workgroup_id_x();
  const int batch = __builtin_amdgcn_workgroup_id_z();
  const int row = rowOfWorkItem();
  if (row >= seqlenQ)
    return;
  q += batch * qsb + head * qsh + row * qss;
  k += batch * ksb + (head / groupSize) * ksh;
  v += batch * vsb + (head / groupSize) * vsh;
  out += batch * osb + head * osh + row * oss;

  const Keys keys = keysOf(row, seqlenQ, seqlenK WINDOW);
  float most = -INFINITY;
  for (int j = keys.begin; j < keys.end; ++j) {
    float dot = 0;
    for (int d = 0; d < D; ++d)
      dot += load(q + d) * load(k + j * kss + d);
    most = __builtin_fmaxf(most, dot * scale);
  }
  float sum = 0;
  for (int chunk = 0; chunk < D; chunk += CHUNK) {
    float acc[CHUNK] = {0};
    sum = 0;
    for (int j = keys.begin; j < keys.end; ++j) {
      float dot = 0;
      for (int d = 0; d < D; ++d)
        dot += load(q + d) * load(k + j * kss + d);
      const float p =
          __builtin_amdgcn_exp2f((dot * scale - most) * LOG2E);
      sum += p;
      for (int c = 0; c < CHUNK; ++c)
        acc[c] += p * load(v + j * vss + chunk + c);
    }
    for (int c = 0; c < CHUNK; ++c)
      store(out + chunk + c, keys.end > keys.begin ? acc[c] / sum : 0.0f);
  }
  if (lse)
    lse[batch * lsb + head * lsh + row] =
        keys.end > keys.begin ? most + __builtin_amdgcn_logf(sum) * LN2 : -INFINITY;
}
