//===- Shadow.h - Which values were never written ---------------*- C++ -*-===//
//
// Follows undefined values as memcheck does (Seward and Nethercote, "Using
// Valgrind to detect undefined value errors with bit-precision", 2005): copying
// and computing with them is no fault, as compilers do it all the time; an
// address, a branch, a lane mask in EXEC or a store to device memory that
// depends on one is. A vector register has a bit for each lane (a register that
// is written in part counts as written), a scalar register one for each of its
// bits, since lane masks are merged by logic; LDS, scratch and device memory
// one for each byte.
//
//===----------------------------------------------------------------------===//
#ifndef FOVEA_SIMULATOR_CHECK_SHADOW_H
#define FOVEA_SIMULATOR_CHECK_SHADOW_H

#include "check/Report.h"
#include "fovea/Simulator/WrittenMap.h"

#include <vector>

namespace fovea::sim {

/// How an instruction's results follow from its sources; see Rules.cpp.
enum class ShadowRule : uint8_t {
  None,   ///< no result that is followed
  Any,    ///< undefined when a source is, lane by lane
  Words,  ///< each word from the same word of the sources
  Low,    ///< lower words do not depend on upper ones
  Merge,  ///< defined when one of the registers it reads is (logic, packing)
  Select, ///< one of two sources by a mask
  Packed, ///< two fp32, each from words that op_sel names
  PackedMove,
  Compare,
  ReadLane,
  WriteLane,
  Swap,
  Probe,  ///< moves between lanes: executed on shadows
  Matrix, ///< executed on shadows
  Forget, ///< registers by number in M0: what it may write counts as written
  Memory,
  ScalarLoad,
  ScalarAny,
  ScalarLogic,
  ScalarMove,
  ScalarSelect,
  ScalarShift,
  ScalarPack,
  BitCompare,
  SaveExec,
  Branch,
  Jump,
};

/// The rule of one bound instruction (of one half of a dual one).
ShadowRule shadowRule(const MicroOp &op, const std::string &mnemonic);

class Shadow {
public:
  Shadow(const Reporter &reporter, uint32_t checks, WrittenMap &written)
      : Out(reporter), Checks(checks), Written(written) {}
  void beginGroup(const Group &group, Wave *waves, unsigned count);
  void before(Wave &wave, const InstPlan &plan);
  void access(Wave &wave, const InstPlan &plan, const MemoryAccess &access);
  void after(Wave &wave, const InstPlan &plan);

private:
  static constexpr unsigned kScalars = kScalarRegs + 8;
  struct State {
    uint64_t v[kVectorFile]; ///< by lane; 1: undefined
    uint32_t s[kScalars];    ///< by bit
    bool scc;
    uint32_t vFrom[kVectorFile], sFrom[kScalars], sccFrom; ///< origins
    RegSet dirty; ///< registers of which anything is undefined
    // Of the instruction that executes:
    unsigned accesses = 0;
    uint64_t oldDestination = 0;
    const InstPlan *logic = nullptr; ///< its SCC follows from the result
    uint64_t logicUndefined = 0;
  };
  /// Words over lanes, and where what is undefined in them comes from.
  struct Value {
    uint64_t word[4] = {};
    uint32_t from = 0;
    uint64_t any() const { return word[0] | word[1] | word[2] | word[3]; }
  };
  struct Result {
    unsigned reg = 0, words = 0;
    uint64_t mask = 0;
    Value value;
  };

  // Shadow.cpp
  void slow(Wave &wave, const InstPlan &plan, State &s);
  void report(Wave &wave, const InstPlan &plan, uint32_t from, uint64_t lanes,
              const std::string &what);
  std::string originText(uint32_t from) const;
  Check originCheck(uint32_t from) const;
  uint32_t origin(Check check, const InstPlan &plan);
  void setVector(State &s, unsigned reg, uint64_t mask, uint64_t bits,
                 uint32_t from);
  void setScalar(State &s, unsigned reg, unsigned words, uint64_t bits,
                 uint32_t from);
  void setScc(State &s, bool undefined, uint32_t from);

  // ShadowVector.cpp
  Value fetch(const State &s, const Wave &w, const Operand &o,
              unsigned words) const;
  Result vectorResult(Wave &w, const InstPlan &plan, State &s,
                      const MicroOp &op, ShadowRule rule);
  void vector(Wave &w, const InstPlan &plan, State &s);
  void moveLanes(Wave &w, const MicroOp &mover, Value &value, unsigned words,
                 uint64_t &written);
  void probe(Wave &w, const InstPlan &plan, State &s);
  void matrix(Wave &w, const InstPlan &plan, State &s);

  // ShadowScalar.cpp
  uint64_t fetchScalar(const State &s, const Wave &w, const Operand &o,
                       unsigned words, uint32_t &from) const;
  void scalar(Wave &w, const InstPlan &plan, State &s);
  void writeScalar(Wave &w, const InstPlan &plan, State &s, unsigned reg,
                   unsigned words, uint64_t bits, uint32_t from);

  // ShadowMemory.cpp
  void addresses(Wave &w, const InstPlan &plan, State &s);
  void load(Wave &w, const InstPlan &plan, State &s,
            const MemoryAccess &access);
  void store(Wave &w, const InstPlan &plan, State &s,
             const MemoryAccess &access);
  /// The written-bytes of lane \p lane's place; null when all count as written.
  uint8_t *bytes(const Wave &w, const MemoryAccess &access, unsigned lane);

  const Reporter &Out;
  uint32_t Checks;
  WrittenMap &Written;
  WrittenMap::Cache Cached;
  std::vector<State> Waves;
  std::vector<uint8_t> Lds, Scratch; ///< 1: written
  size_t ScratchStride = 0;          ///< bytes of a lane
  struct Load {
    Check check;
    uint32_t index;
  };
  std::vector<Load> Loads; ///< origins that are instructions
};

} // namespace fovea::sim

#endif // FOVEA_SIMULATOR_CHECK_SHADOW_H
