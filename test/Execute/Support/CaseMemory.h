//===- CaseMemory.h - what cases of tests have on the device ----*- C++ -*-===//
//
// Sequences, captures of a score program and lists of blocks of a case, made,
// put on the device and told to call and oracle.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TEST_EXECUTE_SUPPORT_CASEMEMORY_H
#define FOVEA_TEST_EXECUTE_SUPPORT_CASEMEMORY_H

#include "Blocks.h"
#include "Scores.h"
#include "Sequences.h"
#include "fovea/Package/Package.h"

namespace fovea::test {

/// Lives as long as the case is run, and holds what one case has. Each part
/// depends on those before it: sequences, score program, lists, dropout. What
/// fails is a failure of the test.
class CaseMemory {
public:
  /// "packed:100,0,37x80", in the place of the case's batch and lengths.
  void addSequences(run::Session &session, const std::string &text,
                    run::ForwardCase &c);
  /// \param gradients  of which captures a backward call asks for, as bits by
  ///   number, and which of these are stored
  void addScore(run::Session &session, const ScoreRecord &program,
                const std::vector<run::CaptureFill> &fills, run::ForwardCase &c,
                uint8_t gradients = 0, uint8_t stored = 0);
  void addBlocks(run::Session &session, const run::BlocksFill &fill,
                 run::ForwardCase &c);

  std::unique_ptr<run::CaseSequences> sequences;
  std::unique_ptr<run::CaseScore> score;
  std::unique_ptr<run::CaseBlocks> blocks;
};

/// Of a case with its sizes.
reference::Dropout dropoutOf(const run::ForwardCase &c, float p, uint64_t seed,
                             uint64_t offset, bool swapsWords = false);

} // namespace fovea::test

#endif // FOVEA_TEST_EXECUTE_SUPPORT_CASEMEMORY_H
