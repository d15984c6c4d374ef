//===- InstInfo.h - Registers and counters of an instruction ----*- C++ -*-===//
//
// What an instruction reads, writes, counts and waits for, as LLVM's MC layer
// describes it. The functional engine does not need this; checkers and the
// timing model do.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_DECODE_INSTINFO_H
#define FOVEA_SIMULATOR_DECODE_INSTINFO_H

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace fovea::sim {

/// Consecutive 32-bit registers, numbered as in exec/MicroOp.h.
struct RegRange {
  enum File : uint8_t { Vector, Scalar, Scc };
  File file = Vector;
  uint8_t words = 1;
  uint16_t reg = 0; ///< AGPRs from kAgprBase on; VCC, M0 and EXEC are scalar
};

/// Counters of outstanding operations. Before gfx12, LDS and scalar memory share
/// LgkmCnt; from gfx12 on they have DsCnt and KmCnt.
enum WaitCounter : uint8_t {
  VmCnt,   ///< vector memory loads; before gfx10 stores too
  VsCnt,   ///< vector memory stores (gfx10 and later)
  LgkmCnt, ///< LDS, scalar memory, messages
  ExpCnt,
  DsCnt, KmCnt, ///< gfx12
  kWaitCounters
};

struct InstInfo {
  std::string mnemonic; ///< without encoding suffix
  std::vector<RegRange> reads, writes; ///< implicit ones too
  /// For each counter the most that may be outstanding to go on; 0xff: no wait.
  std::array<uint8_t, kWaitCounters> waits;
  /// Bit c: counter c is incremented when the instruction issues.
  uint8_t counts = 0;
  bool mayLoad = false, mayStore = false;
  /// LLVM's scheduling model: issue to result, and how long the instruction
  /// keeps its unit; on CDNA in passes of four clocks.
  unsigned schedLatency = 1;
  double schedThroughput = 1;
  InstInfo() { waits.fill(0xff); }
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_DECODE_INSTINFO_H
