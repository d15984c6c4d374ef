//===- BackwardTest.h - packages of backward kernels ------------*- C++ -*-===//
//
// Records of the backward algorithms whose images have names alone, and a call
// that suits them.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_UNIT_RUNTIME_BACKWARDTEST_H
#define FOVEA_TEST_UNIT_RUNTIME_BACKWARDTEST_H

#include "RuntimeTest.h"

namespace fovea::test {

class BackwardTest : public RuntimeTest {
protected:
  using Params = fovea_backward_params_t;

  static Params makeBackward() {
    Params p = makeProblemParams<Params>();
    p.dout = {place(5), 300 * 8 * 128, 128, 8 * 128};
    p.lse = static_cast<float *>(place(6));
    p.lse_stride_batch = 8 * 304;
    p.lse_stride_head = 304;
    p.dq = {place(7), p.q.stride_batch, p.q.stride_head, p.q.stride_seq};
    p.dk = {place(8), p.k.stride_batch, p.k.stride_head, p.k.stride_seq};
    p.dv = {place(9), p.v.stride_batch, p.v.stride_head, p.v.stride_seq};
    p.workspace = place(10);
    p.workspace_bytes = 2 * 8 * 300 * 4;
    return p;
  }

  static KernelRecord makeRows(int32_t queryRows = 128, int32_t keyRows = 64) {
    KernelRecord record = makeBackwardRecord();
    record.abiVersion = fovea::abiVersionOf(fovea::OpKind::Backward);
    record.symbol = "bwd";
    record.launches = {
        {"delta", 64, 256}, {"dkdv", keyRows, 512}, {"dq", queryRows, 128}};
    return record;
  }

  /// Stores one record whose image has its kernels.
  void writeBackward(const KernelRecord &record,
                     const std::string &chip = "gfx942") {
    const TargetId id{chip};
    Expected<PackageWriter> writer = PackageWriter::open(path, id);
    ASSERT_TRUE(writer) << writer.status().message();
    std::string symbols;
    for (const LaunchRecord &launch : record.launches)
      symbols += (symbols.empty() ? "" : " ") + record.symbolOf(launch);
    FOVEA_ASSERT_OK(putFake(*writer, record, symbols, chip));
  }

  /// A record of the algorithm that adds dQ up in memory.
  static KernelRecord makeAtomicRows(int32_t rows = 64) {
    KernelRecord record = makeRows(rows, rows);
    record.schedule = "atomic";
    record.launches = {
        {"prepare", rows, 256}, {"fused", rows, 512}, {"convert", rows, 128}};
    return record;
  }
};

} // namespace fovea::test

#endif // FOVEA_TEST_UNIT_RUNTIME_BACKWARDTEST_H
