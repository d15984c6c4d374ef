//===- Sequences.h - sequences of different lengths -------------*- C++ -*-===//
//
// Lengths and places of a case's sequences (docs/VariableLengths.md): on the
// device as the kernels read them, and the case of each sequence alone, which
// the oracle takes.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTRUN_SEQUENCES_H
#define FOVEA_TOOLS_AOTRUN_SEQUENCES_H

#include "DeviceCopies.h"
#include "ForwardRun.h"

#include "fovea/Package/OperationSpec.h"

namespace fovea::run {

/// Queries or keys of a case's sequences.
struct SequenceSide {
  std::vector<int64_t> lengths; ///< of each
  std::vector<int64_t> starts;  ///< row of its batch with which each begins
  bool isPacked = false;        ///< all lie in one batch
  int64_t total = 0;            ///< rows of that
  bool isCumulative = false;    ///< lengths are passed as sums
  bool hasLengths = true;       ///< else all are alike, and none are passed
  bool hasStarts = false;       ///< they are passed
};

/// How a case's sequences lie.
struct SequencesShape {
  std::string text; ///< for messages
  SequenceSide q, k;
  bool isLseBatched = false; ///< log-sum-exps lie as unpacked ones do
  bool isLseByRow = false;   ///< the heads of a row lie beside one another

  const SequenceSide &side(spec::Extent rows) const {
    return rows == spec::Extent::SeqlenK ? k : q;
  }
};

/// "packed:100,0,37x80": queries, and keys if these are not as many, of each
/// sequence behind a layout, and ":th" or ":batched" for log-sum-exps. nullopt:
/// something else, and `error` says what.
std::optional<SequencesShape> parseSequences(const std::string &text,
                                             std::string &error);
/// "packed (one behind the other), padded (each in a batch), ..."
std::string layoutsOfSequences();

/// The sequences of a case, on a device.
class CaseSequences {
public:
  /// Takes the place of the case's batch and lengths.
  CaseSequences(const SequencesShape &shape, ForwardCase &c);

  /// Empty, or what the device's library answered.
  std::string upload(Session &session);
  /// For ForwardCase::given, once uploaded.
  const fovea_group_t *group() const { return &varlen.header; }

  fovea_varlen_t varlen = {};

private:
  void describe(const SequenceSide &side, fovea_sequences_t &given);

  std::vector<DeviceCopies::Integers> memory;
  DeviceCopies copies{"the lengths of sequences"};
};

/// How many cases a case is for the oracle: one a sequence where lengths
/// differ, else one.
size_t countParts(const ForwardCase &c);
/// One of them: the sequence alone, or the case.
ForwardCase partOf(const ForwardCase &c, size_t number);

} // namespace fovea::run

#endif // FOVEA_TOOLS_AOTRUN_SEQUENCES_H
