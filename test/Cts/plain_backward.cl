//===- plain_backward.cl - gradients as plainly as can be --------*- C -*-===//
//
// The kernels of attn.backward with the argument layout of docs/KernelAbi.md, a
// work-item a row, built by clang as plain_forward.cl is. 64 rows a workgroup.
//
//===----------------------------------------------------------------------===//

#include "plain.h"

#define ARGUMENTS                                                              \
  global const element *q, global const element *k, global const element *v,   \
      global const element *out, global const element *dout,                   \
      global const float *lse, global element *dq, global element *dk,         \
      global element *dv, global float *delta, long qsb, long qsh, long qss,   \
      long ksb, long ksh, long kss, long vsb, long vsh, long vss, long osb,    \
      long osh, long oss, long dosb, long dosh, long doss, long dqsb,          \
      long dqsh, long dqss, long dksb, long dksh, long dkss, long dvsb,        \
      long dvsh, long dvss, long lsb, long lsh, int seqlenQ, int seqlenK,      \
      int headsQ, int groupSize, float scale WINDOW_PARAMETERS

static inline float dot(global const element *a, global const element *b) {
  float sum = 0;
  for (int d = 0; d < D; ++d)
    sum += load(a + d) * load(b + d);
  return sum;
}

/// The probability of a key that is seen.
static inline float probability(float logit, float lse) {
  return __builtin_amdgcn_exp2f((logit - lse) * LOG2E);
}

kernel void plain_backward_delta(ARGUMENTS) {
  const int head = __builtin_amdgcn_workgroup_id_x();
  const int batch = __builtin_amdgcn_workgroup_id_z();
  const int row = rowOfWorkItem();
  if (row < seqlenQ)
    delta[((long)batch * headsQ + head) * seqlenQ + row] =
        dot(out + batch * osb + head * osh + row * oss,
            dout + batch * dosb + head * dosh + row * doss);
}

kernel void plain_backward_dkdv(ARGUMENTS) {
  const int keyHead = __builtin_amdgcn_workgroup_id_x();
  const int batch = __builtin_amdgcn_workgroup_id_z();
  const int key = rowOfWorkItem();
  if (key >= seqlenK)
    return;
  k += batch * ksb + keyHead * ksh + key * kss;
  v += batch * vsb + keyHead * vsh + key * vss;
  dk += batch * dksb + keyHead * dksh + key * dkss;
  dv += batch * dvsb + keyHead * dvsh + key * dvss;
  for (int chunk = 0; chunk < D; chunk += CHUNK) {
    float sumK[CHUNK] = {0}, sumV[CHUNK] = {0};
    for (int head = keyHead * groupSize; head < (keyHead + 1) * groupSize;
         ++head)
      for (int row = 0; row < seqlenQ; ++row) {
        const Keys keys = keysOf(row, seqlenQ, seqlenK WINDOW);
        if (key < keys.begin || key >= keys.end)
          continue;
        global const element *qRow = q + batch * qsb + head * qsh + row * qss;
        global const element *doRow =
            dout + batch * dosb + head * dosh + row * doss;
        const float p = probability(dot(qRow, k) * scale,
                                    lse[batch * lsb + head * lsh + row]);
        const float ds =
            p * (dot(doRow, v) -
                 delta[((long)batch * headsQ + head) * seqlenQ + row]);
        for (int c = 0; c < CHUNK; ++c) {
          sumV[c] += p * load(doRow + chunk + c);
          sumK[c] += ds * load(qRow + chunk + c);
        }
      }
    for (int c = 0; c < CHUNK; ++c) {
      store(dk + chunk + c, sumK[c] * scale);
      store(dv + chunk + c, sumV[c]);
    }
  }
}

kernel void plain_backward_dq(ARGUMENTS) {
  const int head = __builtin_amdgcn_workgroup_id_x();
  const int batch = __builtin_amdgcn_workgroup_id_z();
  const int row = rowOfWorkItem();
  if (row >= seqlenQ)
    return;
  q += batch * qsb + head * qsh + row * qss;
  dout += batch * dosb + head * dosh + row * doss;
  dq += batch * dqsb + head * dqsh + row * dqss;
  k += batch * ksb + (head / groupSize) * ksh;
  v += batch * vsb + (head / groupSize) * vsh;
  const float rowLse = lse[batch * lsb + head * lsh + row];
  const float rowDelta = delta[((long)batch * headsQ + head) * seqlenQ + row];
  const Keys keys = keysOf(row, seqlenQ, seqlenK WINDOW);
  for (int chunk = 0; chunk < D; chunk += CHUNK) {
    float sum[CHUNK] = {0};
    for (int key = keys.begin; key < keys.end; ++key) {
      const float p = probability(dot(q, k + key * kss) * scale, rowLse);
      const float ds = p * (dot(dout, v + key * vss) - rowDelta);
      for (int c = 0; c < CHUNK; ++c)
        sum[c] += ds * load(k + key * kss + chunk + c);
    }
    for (int c = 0; c < CHUNK; ++c)
      store(dq + chunk + c, sum[c] * scale);
  }
}
