//===- Plan.h - Instructions as checkers see them ---------------*- C++ -*-===//
//
// For each instruction the registers it touches as bit sets and what the
// checkers ask of it, worked out once for a program and shared by all launches
// and threads: a checker looks nothing up while a kernel runs.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_CHECK_PLAN_H
#define FOVEA_SIMULATOR_CHECK_PLAN_H

#include "decode/Program.h"
#include "exec/MicroOp.h"

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

namespace fovea::sim {

/// Registers as one bit set: vector registers, then scalar ones, then SCC.
constexpr unsigned kSccBit = kVectorRegs + kScalarRegs + 8;
constexpr unsigned kRegWords = kSccBit / 64 + 1;
struct RegSet {
  uint64_t word[kRegWords] = {};
  void add(const RegRange &range);
  void remove(const RegRange &range);
  bool any() const;
};
/// The part of a set that is not empty.
struct RegSetPart {
  uint64_t mask;
  uint32_t word;
};

/// "v8", "a3", "s12", "vcc_lo"... of one register of \p file.
std::string registerName(RegRange::File file, unsigned reg);
/// The same for bit \p bit of a RegSet.
std::string registerName(unsigned bit);

enum class ShadowRule : uint8_t; // check/Shadow.h

struct InstPlan {
  const InstInfo *info = nullptr;
  const MicroOp *op = nullptr;
  uint32_t index = 0; ///< dword in the program
  uint8_t touchedParts = 0;
  bool waits = false;       ///< waits for a counter
  bool unordered =
      false; ///< completes in any order: scalar memory, FLAT of GFX9
  bool flat = false;        ///< flat_*: LDS or memory
  bool shared = false;      ///< lanes access memory or LDS (not scratch)
  bool deviceScope = false; ///< a load or store that other workgroups see
  bool namedBarrier = false;
  RegSetPart touched[kRegWords]; ///< read or written, EXEC and VCC too
  ShadowRule rule{}; ///< of the instruction, or of the first half of a dual one
  ShadowRule rule2{};             ///< of the second half
  std::unique_ptr<MicroOp> mover; ///< v_mov_b32 with the instruction's DPP
};

/// The plans of one program, each made when first asked for.
class PlanTable {
public:
  explicit PlanTable(Program &program);
  const InstPlan &at(uint32_t index) {
    const InstPlan *plan = Plans[index].load(std::memory_order_acquire);
    return __builtin_expect(plan != nullptr, 1) ? *plan : make(index);
  }
  Program &program() { return Prog; }
  /// The table of \p program; lives as long as it does.
  static PlanTable &of(Program &program);

private:
  const InstPlan &make(uint32_t index);
  struct Free {
    void operator()(void *p) const { std::free(p); }
  };
  Program &Prog;
  std::mutex Mutex;
  std::unique_ptr<std::atomic<const InstPlan *>[], Free> Plans;
  std::deque<InstPlan> Pool;
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_CHECK_PLAN_H
