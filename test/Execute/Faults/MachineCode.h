//===- MachineCode.h - faults planted into machine code ---------*- C++ -*-===//
//
// What orders the work of a pipeline are waits and barriers. These are found in
// the loops of a code object, and each can be weakened or taken out.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_MACHINECODE_H
#define FOVEA_TEST_MACHINECODE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <utility>
#include <vector>

namespace fovea::test {

/// Other words in a code object.
struct CodeFault {
  enum Kind {
    WaitShort,   ///< one operation more may be under way
    WaitDropped, ///< any may
    NoBarrier,
  } kind;
  std::string what; ///< "dq +0x5c4: s_waitcnt vmcnt(3)"
  llvm::SmallVector<std::pair<size_t, uint32_t>, 2> words; ///< by offset

  std::string plantedInto(std::string code) const;
};
llvm::StringRef describe(CodeFault::Kind kind);

/// All that can be planted into the innermost loops with matrix products, in
/// the order of their places. Left out are waits that hold nothing up: another
/// waited for as much since the last operation that they are for, or no more
/// operations can be under way.
/// \param exceptLast  loops of each kernel, from the last one on, that are
///   left out: they take a single block
std::vector<CodeFault> faultsOfLoops(const std::string &code,
                                     llvm::StringRef chip, int waveSize,
                                     int exceptLast = 0);

} // namespace fovea::test

#endif // FOVEA_TEST_MACHINECODE_H
