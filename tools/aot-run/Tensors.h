//===- Tensors.h - the tensors of a run -------------------------*- C++ -*-===//
//
// What a run does with every tensor of an operation, by the rows of its table
// (OperationSpec.h): shape, parameters, memory with its guards, and the search
// for what was written where nothing may be. Private to this folder.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_TOOLS_AOTRUN_TENSORS_H
#define FOVEA_TOOLS_AOTRUN_TENSORS_H

#include "ForwardRun.h"
#include "GuardedTensor.h"

#include "fovea/Package/OperationSpec.h"
#include "fovea/Parameters.h"

namespace fovea::run {

class CallGroups; // SessionImpl.h

using Halves = GuardedTensor<uint16_t>;
using Words = GuardedTensor<uint32_t>;

int64_t extentOf(const ForwardCase &c, spec::Extent extent);

class Tensors {
public:
  /// Shapes alone; no memory is taken.
  Tensors(OpKind op, const ForwardCase &problem);

  /// Of the tensors with rows, with the gaps in them.
  uint64_t bytes() const;
  /// One with rows; null data before allocate(), then the elements on the host.
  const reference::Tensor &operator[](const char *name) const {
    return find(name).tensor;
  }

  /// Fills in the strides of the operation's parameters and of the structures
  /// of groups, and their addresses.
  void describe(void *params, const CallGroups &groups) const;
  void setAddresses(void *params, const CallGroups &groups) const;

  /// Takes the memory on the host. `guardBytes` on each side of a tensor.
  void allocate(int64_t guardBytes, uint64_t workspaceBytes);
  HipStatus upload(const HipCalls &hip);
  HipStatus download();
  /// What was written and may not be, a line each.
  std::vector<std::string> changes() const;

  /// Of one with rows those that a part of the case has (Sequences.h).
  reference::Tensor part(const char *name, size_t number) const;
  /// The values of one without rows that a part has, dense: [batch, heads,
  /// sequence] or [heads].
  std::vector<float> vector(const char *name, size_t part = 0) const;
  void setVector(const char *name, const std::vector<float> &values,
                 size_t part = 0);

private:
  struct Entry {
    const spec::TensorSpec *spec;
    bool wanted; ///< it gets an address
    params::TensorField field;
    const GroupOption *group; ///< of whose structure; null: the parameters
    Rows rows;
    reference::Tensor tensor; ///< of one with rows
    // One of them, by the type of the elements.
    std::unique_ptr<Halves> halves;
    std::unique_ptr<Words> words;
  };
  const Entry &find(std::string_view name) const;
  static void *addressOf(const Entry &entry);
  /// Calls it with the words on the host and their place, once a row.
  template <typename Function>
  void forEachVector(const char *name, size_t part, Function function) const;
  /// Makes the rows of an entry those of sequences that differ.
  void placeSequences(Entry &entry) const;
  /// Of a part of an entry: its batch, first row and number of rows.
  struct Place {
    int64_t batch, batches, start, rows;
  };
  Place placeOf(const Entry &entry, size_t part) const;

  DataType type;
  int64_t offset, rowPadding;
  std::shared_ptr<const SequencesShape> sequences;
  std::vector<Entry> entries;
};

} // namespace fovea::run

#endif // FOVEA_TOOLS_AOTRUN_TENSORS_H
