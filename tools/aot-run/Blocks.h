//===- Blocks.h - lists of blocks of a case ---------------------*- C++ -*-===//
//
// Which blocks of keys a case's blocks of queries see (docs/BlockLists.md), on
// the device as lists and for the oracle as pairs.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTRUN_BLOCKS_H
#define FOVEA_TOOLS_AOTRUN_BLOCKS_H

#include "DeviceCopies.h"
#include "ForwardRun.h"

#include <functional>

namespace fovea::run {

/// How lists are made.
struct BlocksFill {
  int64_t qBlock = 128, kvBlock = 128;
  /// Of the pairs of blocks of which mask and program show some query a key the
  /// part that is listed, by chance. Negative: every pair by chance of the
  /// number's size, also where nothing is shown.
  double part = 1;
  bool isShared = false; ///< one for all batches and heads, by strides of 0
  /// Lists of what is seen in part have a number more, which is no block's.
  bool hasStrays = false;
  /// Pairs are listed as seen in whole where they end within both sequences,
  /// whatever the program's predicate is there.
  bool isAllFull = false;
  /// Which of the pairs are listed, instead of chance.
  std::function<bool(int64_t b, int64_t head, int64_t q, int64_t kv)> lists;
};
/// "128x256:mask", "128x128:random:0.3", with ":shared" behind it or not.
std::optional<BlocksFill> parseBlocks(const std::string &text);

/// The lists of a case: those pairs are in the full ones of which mask and
/// program show everything and which end within both sequences. Entries are in
/// an order by chance, with others behind them that do not count.
class CaseBlocks {
public:
  /// \param c  with its sizes, mask and program
  CaseBlocks(const BlocksFill &fill, const ForwardCase &c);

  /// Empty, or what the device's library answered: puts lists into memory of
  /// the device, each into an allocation that ends with it.
  std::string upload(Session &session);

  /// For ForwardCase::given, once uploaded.
  const fovea_group_t *group() const { return &blocks.header; }
  /// For ForwardCase::listed.
  decltype(ForwardCase::listed) listed() const;
  /// Pairs of blocks in all lists, and in the full ones.
  int64_t pairs() const { return count; }
  int64_t fullPairs() const { return fullCount; }

  fovea_blocks_t blocks = {}; ///< addresses are null before the upload

private:
  enum Kind : uint8_t { None, Part, Full };
  void list(fovea_block_lists_t &lists, Kind kind, bool isOfKeys);
  Kind &kindOf(int64_t b, int64_t head, int64_t q, int64_t kv);

  const BlocksFill fill;
  int64_t batches, heads, blocksQ, blocksK;
  std::shared_ptr<std::vector<Kind>> kinds;
  std::vector<DeviceCopies::Integers> memory;
  DeviceCopies copies{"the lists of blocks"};
  reference::Random chance;
  int64_t count = 0, fullCount = 0;
};

} // namespace fovea::run

#endif // FOVEA_TOOLS_AOTRUN_BLOCKS_H
