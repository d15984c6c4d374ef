"""Triton kernels that the tests compile: attention forward and backward, matmul.

Attention tensors are (batch, heads, sequence, dim) with any strides, counted in
elements; dim is contiguous. Keys and values may have fewer heads than queries and
another length. CAUSAL is bottom-right aligned: query i sees key j when
j <= i + seqlen_k - seqlen_q. Log-sum-exps are natural, fp32, (batch, heads,
seqlen_q), contiguous; a row that sees nothing has zeros and -inf.
"""

import triton
import triton.language as tl

LOG2E = tl.constexpr(1.4426950408889634)
LN2 = tl.constexpr(0.6931471805599453)


@triton.jit
def _load(base, rows, stride, dims, count, DIM: tl.constexpr, PADDED: tl.constexpr):
    """Rows [len(rows), PADDED] with zeros outside [0, count) x [0, DIM)."""
    mask = rows[:, None] < count
    if PADDED != DIM:
        mask = mask & (dims[None, :] < DIM)
    return tl.load(base + rows[:, None].to(tl.int64) * stride + dims[None, :],
                   mask=mask, other=0.0)


@triton.jit
def _load_unchecked(base, rows, stride, dims, DIM: tl.constexpr, PADDED: tl.constexpr):
    """Like _load where all rows are known to exist."""
    pointers = base + rows[:, None].to(tl.int64) * stride + dims[None, :]
    if PADDED != DIM:
        return tl.load(pointers, mask=dims[None, :] < DIM, other=0.0)
    return tl.load(pointers)


@triton.jit
def _forward_block(q, k, v, acc, top, total, scale, rows, keys, shift, seqlen_k,
                   MASKED: tl.constexpr, CAUSAL: tl.constexpr):
    """One key block of the online softmax; `scale` has the factor log2(e)."""
    s = tl.dot(q, tl.trans(k)) * scale
    if MASKED:
        seen = keys[None, :] < seqlen_k
        if CAUSAL:
            seen = seen & (keys[None, :] <= rows[:, None] + shift)
        s = tl.where(seen, s, float("-inf"))
    new_top = tl.maximum(top, tl.max(s, 1))
    # A row that has seen nothing yet has no maximum to subtract.
    base = tl.where(new_top == float("-inf"), 0.0, new_top)
    p = tl.math.exp2(s - base[:, None])
    factor = tl.math.exp2(top - base)
    total = total * factor + tl.sum(p, 1)
    acc = tl.dot(p.to(v.dtype), v, acc * factor[:, None])
    return acc, new_top, total


@triton.jit
def attention_forward(Q, K, V, Out, Lse, scale,
                      stride_qb, stride_qh, stride_qs, stride_kb, stride_kh, stride_ks,
                      stride_vb, stride_vh, stride_vs, stride_ob, stride_oh, stride_os,
                      heads, group, seqlen_q, seqlen_k,
                      DIM: tl.constexpr, PADDED: tl.constexpr, CAUSAL: tl.constexpr,
                      BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """Grid: (query blocks, heads, batch)."""
    block, head, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    dims = tl.arange(0, PADDED)
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    Q += batch.to(tl.int64) * stride_qb + head.to(tl.int64) * stride_qh
    K += batch.to(tl.int64) * stride_kb + (head // group).to(tl.int64) * stride_kh
    V += batch.to(tl.int64) * stride_vb + (head // group).to(tl.int64) * stride_vh
    Out += batch.to(tl.int64) * stride_ob + head.to(tl.int64) * stride_oh
    shift = seqlen_k - seqlen_q

    q = _load(Q, rows, stride_qs, dims, seqlen_q, DIM, PADDED)
    scale *= LOG2E
    acc = tl.zeros([BLOCK_M, PADDED], tl.float32)
    top = tl.full([BLOCK_M], float("-inf"), tl.float32)
    total = tl.zeros([BLOCK_M], tl.float32)

    # Key blocks that every row sees in full come first and need no mask.
    full, last = seqlen_k // BLOCK_N, tl.cdiv(seqlen_k, BLOCK_N)
    if CAUSAL:
        first_end = tl.maximum(block * BLOCK_M + shift + 1, 0)
        last_end = tl.maximum((block + 1) * BLOCK_M + shift, 0)
        full = tl.minimum(full, first_end // BLOCK_N)
        last = tl.minimum(last, tl.cdiv(last_end, BLOCK_N))
    for index in range(0, full):
        keys = index * BLOCK_N + tl.arange(0, BLOCK_N)
        k = _load_unchecked(K, keys, stride_ks, dims, DIM, PADDED)
        v = _load_unchecked(V, keys, stride_vs, dims, DIM, PADDED)
        acc, top, total = _forward_block(q, k, v, acc, top, total, scale, rows, keys,
                                         shift, seqlen_k, False, CAUSAL)
    for index in range(full, last):
        keys = index * BLOCK_N + tl.arange(0, BLOCK_N)
        k = _load(K, keys, stride_ks, dims, seqlen_k, DIM, PADDED)
        v = _load(V, keys, stride_vs, dims, seqlen_k, DIM, PADDED)
        acc, top, total = _forward_block(q, k, v, acc, top, total, scale, rows, keys,
                                         shift, seqlen_k, True, CAUSAL)

    out = acc / tl.where(total == 0.0, 1.0, total)[:, None]
    lse = tl.where(total == 0.0, float("-inf"),
                   (top + tl.math.log2(total)) * LN2)
    mask = rows[:, None] < seqlen_q
    if PADDED != DIM:
        mask = mask & (dims[None, :] < DIM)
    tl.store(Out + rows[:, None].to(tl.int64) * stride_os + dims[None, :],
             out.to(Out.dtype.element_ty), mask=mask)
    tl.store(Lse + (batch * heads + head).to(tl.int64) * seqlen_q + rows, lse,
             mask=rows < seqlen_q)


@triton.jit
def attention_backward_delta(Out, DOut, Delta, stride_ob, stride_oh, stride_os,
                             stride_gb, stride_gh, stride_gs, heads, seqlen_q,
                             DIM: tl.constexpr, PADDED: tl.constexpr,
                             BLOCK_M: tl.constexpr):
    """Delta[i] = sum over dim of out * dout. Grid: (query blocks, heads, batch)."""
    block, head, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    dims = tl.arange(0, PADDED)
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    Out += batch.to(tl.int64) * stride_ob + head.to(tl.int64) * stride_oh
    DOut += batch.to(tl.int64) * stride_gb + head.to(tl.int64) * stride_gh
    out = _load(Out, rows, stride_os, dims, seqlen_q, DIM, PADDED).to(tl.float32)
    dout = _load(DOut, rows, stride_gs, dims, seqlen_q, DIM, PADDED).to(tl.float32)
    tl.store(Delta + (batch * heads + head).to(tl.int64) * seqlen_q + rows,
             tl.sum(out * dout, 1), mask=rows < seqlen_q)


@triton.jit
def _probabilities(s, lse, rows, keys, shift, seqlen_q, seqlen_k,
                   CAUSAL: tl.constexpr):
    """exp(s - lse) for scaled logits s [rows, keys], 0 where nothing is seen."""
    seen = (rows[:, None] < seqlen_q) & (keys[None, :] < seqlen_k)
    if CAUSAL:
        seen = seen & (keys[None, :] <= rows[:, None] + shift)
    return tl.where(seen, tl.math.exp2((s - lse[:, None]) * LOG2E), 0.0)


@triton.jit
def attention_backward_kv(Q, K, V, DOut, Lse, Delta, DK, DV, scale,
                          stride_qb, stride_qh, stride_qs,
                          stride_kb, stride_kh, stride_ks,
                          stride_vb, stride_vh, stride_vs,
                          stride_gb, stride_gh, stride_gs,
                          heads, group, seqlen_q, seqlen_k,
                          DIM: tl.constexpr, PADDED: tl.constexpr,
                          CAUSAL: tl.constexpr,
                          BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """dK and dV, with the strides of K and V. Grid: (key blocks, key heads, batch)."""
    block, head_k, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    dims = tl.arange(0, PADDED)
    keys = block * BLOCK_N + tl.arange(0, BLOCK_N)
    offset_k = batch.to(tl.int64) * stride_kb + head_k.to(tl.int64) * stride_kh
    offset_v = batch.to(tl.int64) * stride_vb + head_k.to(tl.int64) * stride_vh
    shift = seqlen_k - seqlen_q
    k = _load(K + offset_k, keys, stride_ks, dims, seqlen_k, DIM, PADDED)
    v = _load(V + offset_v, keys, stride_vs, dims, seqlen_k, DIM, PADDED)
    dk = tl.zeros([BLOCK_N, PADDED], tl.float32)
    dv = tl.zeros([BLOCK_N, PADDED], tl.float32)
    first = 0
    if CAUSAL:
        first = tl.maximum(block * BLOCK_N - shift, 0) // BLOCK_M
    for head in range(head_k * group, (head_k + 1) * group):
        q_base = Q + batch.to(tl.int64) * stride_qb + head.to(tl.int64) * stride_qh
        g_base = DOut + batch.to(tl.int64) * stride_gb + head.to(tl.int64) * stride_gh
        row_base = (batch * heads + head).to(tl.int64) * seqlen_q
        for index in range(first, tl.cdiv(seqlen_q, BLOCK_M)):
            rows = index * BLOCK_M + tl.arange(0, BLOCK_M)
            q = _load(q_base, rows, stride_qs, dims, seqlen_q, DIM, PADDED)
            dout = _load(g_base, rows, stride_gs, dims, seqlen_q, DIM, PADDED)
            lse = tl.load(Lse + row_base + rows, mask=rows < seqlen_q, other=0.0)
            delta = tl.load(Delta + row_base + rows, mask=rows < seqlen_q, other=0.0)
            s = tl.dot(q, tl.trans(k)) * scale
            p = _probabilities(s, lse, rows, keys, shift, seqlen_q, seqlen_k, CAUSAL)
            dv = tl.dot(tl.trans(p.to(q.dtype)), dout, dv)
            dp = tl.dot(dout, tl.trans(v))
            ds = p * (dp - delta[:, None])
            dk = tl.dot(tl.trans(ds.to(q.dtype)), q, dk)
    mask = keys[:, None] < seqlen_k
    if PADDED != DIM:
        mask = mask & (dims[None, :] < DIM)
    tl.store(DK + offset_k + keys[:, None].to(tl.int64) * stride_ks + dims[None, :],
             (dk * scale).to(DK.dtype.element_ty), mask=mask)
    tl.store(DV + offset_v + keys[:, None].to(tl.int64) * stride_vs + dims[None, :],
             dv.to(DV.dtype.element_ty), mask=mask)


@triton.jit
def attention_backward_q(Q, K, V, DOut, Lse, Delta, DQ, scale,
                         stride_qb, stride_qh, stride_qs,
                         stride_kb, stride_kh, stride_ks,
                         stride_vb, stride_vh, stride_vs,
                         stride_gb, stride_gh, stride_gs,
                         heads, group, seqlen_q, seqlen_k,
                         DIM: tl.constexpr, PADDED: tl.constexpr,
                         CAUSAL: tl.constexpr,
                         BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    """dQ, with the strides of Q. Grid: (query blocks, heads, batch)."""
    block, head, batch = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    dims = tl.arange(0, PADDED)
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    offset_q = batch.to(tl.int64) * stride_qb + head.to(tl.int64) * stride_qh
    K += batch.to(tl.int64) * stride_kb + (head // group).to(tl.int64) * stride_kh
    V += batch.to(tl.int64) * stride_vb + (head // group).to(tl.int64) * stride_vh
    DOut += batch.to(tl.int64) * stride_gb + head.to(tl.int64) * stride_gh
    row_base = (batch * heads + head).to(tl.int64) * seqlen_q
    shift = seqlen_k - seqlen_q
    q = _load(Q + offset_q, rows, stride_qs, dims, seqlen_q, DIM, PADDED)
    dout = _load(DOut, rows, stride_gs, dims, seqlen_q, DIM, PADDED)
    lse = tl.load(Lse + row_base + rows, mask=rows < seqlen_q, other=0.0)
    delta = tl.load(Delta + row_base + rows, mask=rows < seqlen_q, other=0.0)
    dq = tl.zeros([BLOCK_M, PADDED], tl.float32)
    last = tl.cdiv(seqlen_k, BLOCK_N)
    if CAUSAL:
        end = tl.maximum((block + 1) * BLOCK_M + shift, 0)
        last = tl.minimum(last, tl.cdiv(end, BLOCK_N))
    for index in range(0, last):
        keys = index * BLOCK_N + tl.arange(0, BLOCK_N)
        k = _load(K, keys, stride_ks, dims, seqlen_k, DIM, PADDED)
        v = _load(V, keys, stride_vs, dims, seqlen_k, DIM, PADDED)
        s = tl.dot(q, tl.trans(k)) * scale
        p = _probabilities(s, lse, rows, keys, shift, seqlen_q, seqlen_k, CAUSAL)
        dp = tl.dot(dout, tl.trans(v))
        ds = p * (dp - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq)
    mask = rows[:, None] < seqlen_q
    if PADDED != DIM:
        mask = mask & (dims[None, :] < DIM)
    tl.store(DQ + offset_q + rows[:, None].to(tl.int64) * stride_qs + dims[None, :],
             (dq * scale).to(DQ.dtype.element_ty), mask=mask)


@triton.jit
def matmul(A, B, C, m, n, k, stride_am, stride_ak, stride_bk, stride_bn, stride_cm,
           BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
           GROUP_M: tl.constexpr, PRECISION: tl.constexpr):
    """C [m, n] = A [m, k] @ B [k, n]. Grid: (blocks of C), grouped by rows."""
    index = tl.program_id(0)
    blocks_m, blocks_n = tl.cdiv(m, BLOCK_M), tl.cdiv(n, BLOCK_N)
    group = index // (GROUP_M * blocks_n)
    group_rows = tl.minimum(blocks_m - group * GROUP_M, GROUP_M)
    inner = index % (GROUP_M * blocks_n)
    rows = (group * GROUP_M + inner % group_rows) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = inner // group_rows * BLOCK_N + tl.arange(0, BLOCK_N)
    depth = tl.arange(0, BLOCK_K)
    a_pointers = A + rows[:, None] * stride_am + depth[None, :] * stride_ak
    b_pointers = B + depth[:, None] * stride_bk + columns[None, :] * stride_bn
    if C.dtype.element_ty == tl.int32:
        acc = tl.zeros([BLOCK_M, BLOCK_N], tl.int32)
    else:
        acc = tl.zeros([BLOCK_M, BLOCK_N], tl.float32)
    for step in range(0, tl.cdiv(k, BLOCK_K)):
        left = k - step * BLOCK_K
        a = tl.load(a_pointers, mask=(rows[:, None] < m) & (depth[None, :] < left),
                    other=0.0)
        b = tl.load(b_pointers, mask=(depth[:, None] < left) & (columns[None, :] < n),
                    other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION, out_dtype=acc.dtype)
        a_pointers += BLOCK_K * stride_ak
        b_pointers += BLOCK_K * stride_bk
    tl.store(C + rows[:, None] * stride_cm + columns[None, :],
             acc.to(C.dtype.element_ty),
             mask=(rows[:, None] < m) & (columns[None, :] < n))
