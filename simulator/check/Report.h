//===- Report.h - How checkers end a wave -----------------------*- C++ -*-===//
//
// What the checkers of a launch share to word their reports.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_CHECK_REPORT_H
#define FOVEA_SIMULATOR_CHECK_REPORT_H

#include "check/Plan.h"
#include "exec/Observer.h"
#include "fovea/Simulator/Checks.h"

namespace fovea::sim {

class Reporter {
public:
  Reporter(Program &program, const KernelInfo &kernel, const ChipInfo &chip)
      : Prog(program), Kernel(kernel), Chip(chip) {}

  /// Ends \p wave at \p op: "check 'waitcnt': <what>". \p lanes: those at
  /// fault, 0 when it is not about lanes.
  void fail(Wave &wave, const MicroOp &op, Check check, uint64_t lanes,
            const std::string &what) const;
  /// "`v_mov_b32 v0, v1` at pc +0x40 (source k.cl:3)".
  std::string place(uint32_t index) const;
  /// "4 bytes at 0x7f00, byte 16 of allocation #2 (512 bytes at 0x...)".
  static std::string memoryPlace(const DeviceMemory &memory, uint64_t address,
                                 uint64_t bytes);
  const ChipInfo &chip() const { return Chip; }
  const KernelInfo &kernel() const { return Kernel; }

private:
  Program &Prog;
  const KernelInfo &Kernel;
  const ChipInfo &Chip;
};

/// "0x1f0".
std::string hexText(uint64_t value);

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_CHECK_REPORT_H
