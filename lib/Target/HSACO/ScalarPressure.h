//===- ScalarPressure.h - where scalars are alive, and how many -*- C++ -*-===//
//
// Scalar registers of a kernel's machine code ahead of their allocation: which
// are alive where, and where there are more than fit.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_LIB_TARGET_HSACO_SCALARPRESSURE_H
#define FOVEA_LIB_TARGET_HSACO_SCALARPRESSURE_H

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/CodeGen/LiveIntervals.h"
#include <optional>

namespace llvm {
class MachineOperand;
class MachineRegisterInfo;
class TargetRegisterClass;
class TargetRegisterInfo;
} // namespace llvm

namespace fovea::hsaco {

/// What is counted holds until instructions come or go; then count() again.
struct ScalarPressure {
  /// Finds the target's registers; \p of's liveness is \p intervals.
  void enter(llvm::MachineFunction &of, llvm::LiveIntervals &intervals);
  void count();

  bool isScalar(llvm::Register reg) const;
  unsigned registersOf(llvm::Register reg, llvm::LaneBitmask lanes) const;
  llvm::LaneBitmask lanesOf(const llvm::MachineOperand &operand) const;
  llvm::SlotIndex slotOf(size_t point) const;

  /// The last point from \p from on and ahead of \p to with all lanes alive.
  std::optional<size_t> lastAlive(llvm::Register reg, llvm::LaneBitmask lanes,
                                  size_t from, size_t to) const;
  /// Whether all lanes of a register are alive at a point.
  bool isAlive(llvm::Register reg, llvm::LaneBitmask lanes,
               size_t point) const {
    return lastAlive(reg, lanes, point, point + 1).has_value();
  }
  bool isSame(llvm::Register reg, llvm::LaneBitmask lanes,
              const llvm::MachineInstr &here,
              const llvm::MachineInstr &there) const;
  bool isCrowded(size_t from, size_t to) const {
    return crowdedBefore[to] != crowdedBefore[from];
  }
  bool isCrowdedBetween(const llvm::MachineInstr &from,
                        const llvm::MachineInstr &to) const;

  const llvm::TargetRegisterInfo *registers = nullptr;
  llvm::MachineFunction *function = nullptr;
  llvm::MachineRegisterInfo *values = nullptr;
  llvm::LiveIntervals *intervals = nullptr;
  llvm::MCRegister condition; ///< none: the target has no such register
  llvm::DenseSet<llvm::MCRegister> lanesOnRegisters;
  unsigned limit = 0; ///< of registers

  // Two points an instruction: where it reads, and where it has written.
  llvm::SmallVector<llvm::MachineInstr *> order;
  llvm::SmallVector<llvm::SlotIndex> slots;
  llvm::DenseMap<const llvm::MachineInstr *, size_t> numbers;
  llvm::DenseMap<const llvm::MachineBasicBlock *, std::pair<size_t, size_t>>
      blocks;
  llvm::SmallVector<llvm::Register> scalars;
  llvm::SmallVector<int> pressure; ///< by point
  llvm::DenseMap<const llvm::MachineBasicBlock *, int> mostPressure;
  llvm::SmallVector<unsigned> crowdedBefore; ///< points before
  llvm::BitVector conditionAlive;            ///< before an instruction
  /// Which lanes are on, by number: equal where they are the same.
  llvm::SmallVector<size_t> lanesOn;

private:
  bool isOfScalars(const llvm::TargetRegisterClass &type) const;
  size_t pointOf(llvm::SlotIndex slot) const;
  std::optional<size_t> lastOf(const llvm::LiveRange &range, size_t to) const;
  void countLanes();

  llvm::BitVector scalarClasses; ///< of registers, by number
};

} // namespace fovea::hsaco

#endif // FOVEA_LIB_TARGET_HSACO_SCALARPRESSURE_H
