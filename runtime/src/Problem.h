//===- Problem.h - a problem to find and run kernels for --------*- C++ -*-===//
//
// What is common to the operations: a checked problem, of which the choice of
// the kernels knows no more than its sizes and what is wanted of it, and the
// checks of parameters from which one is made. Knows nothing of HIP.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_SRC_PROBLEM_H
#define FOVEA_RUNTIME_SRC_PROBLEM_H

#include "fovea/Parameters.h"

#include "Versioned.h"

#include <algorithm>
#include <array>
#include <limits>

namespace fovea::rt {

/// Sizes of a problem.
struct Sizes {
  float scale = 0;
  int64_t batch = 0, headsQ = 0, headsK = 0, seqlenQ = 0, seqlenK = 0,
          headDim = 0, headDimV = 0;
  /// Of sequences that lie in one batch the rows of all; of others negative.
  int64_t packedQ = -1, packedK = -1;
  /// Of each batch, where they are not the call's; else negative.
  int64_t batchedQ = -1, batchedK = -1;
  int64_t batched(spec::Extent rows) const {
    return rows == spec::Extent::SeqlenQ   ? batchedQ
           : rows == spec::Extent::SeqlenK ? batchedK
                                           : -1;
  }
  int64_t packed(spec::Extent rows) const {
    return rows == spec::Extent::SeqlenQ   ? packedQ
           : rows == spec::Extent::SeqlenK ? packedK
                                           : -1;
  }

  int64_t of(spec::Extent extent) const {
    return const_cast<Sizes *>(this)->of(extent);
  }
  int64_t &of(spec::Extent extent) {
    switch (extent) {
    case spec::Extent::Batch:
      return batch;
    case spec::Extent::HeadsQ:
      return headsQ;
    case spec::Extent::HeadsK:
      return headsK;
    case spec::Extent::SeqlenQ:
      return seqlenQ;
    case spec::Extent::SeqlenK:
      return seqlenK;
    case spec::Extent::HeadDim:
      return headDim;
    case spec::Extent::HeadDimV:
      break;
    }
    return headDimV;
  }
};

/// Memory that the caller lends to the kernels.
struct Workspace {
  const void *data = nullptr;
  uint64_t bytes = 0;
};

/// Places of what a call may give anew each time, whatever it is launched for:
/// the addresses of tensors by spec::numberOf(), that of the workspace, and
/// scalars of feature groups by their number among those of all.
inline constexpr size_t kWorkspacePlace = spec::kMaxTensors,
                        kFirstScalarPlace = kWorkspacePlace + 1,
                        kPlaces = kFirstScalarPlace + spec::kMaxFeatureScalars;

/// A tensor among the parameters, as the checks see it.
struct TensorParam {
  const char *name;
  const char *suffix; ///< of its pointer's name: ".data" or none
  const void *data;
  int64_t strideBatch, strideHead, strideSeq;
  int64_t batch, heads, rows, rowElements;
  int64_t elementBytes;
  bool written;
  bool optional; ///< a null pointer says that it is not there
  const char *rowStride = ".stride_seq"; ///< its name
  /// Nobody asked for it: it is not looked at.
  bool unwanted = false;
  /// Rows of elements, which kernels of many columns read in words, and whether
  /// they are V's.
  bool hasWords = false, isOfV = false;
  /// They have no whole word of their own to end with, after checkStrides().
  bool lacksWords = false;
  uint8_t place = 0; ///< of its address
  /// Elements from the first to one past the last, after checkStrides().
  int64_t extent = 0;

  /// All zero says that an output is not wanted.
  bool isDescribed() const {
    return data || strideBatch != 0 || strideHead != 0 || strideSeq != 0;
  }
  /// Number of elements is not 0.
  bool hasElements() const {
    return batch > 0 && heads > 0 && rows > 0 && rowElements > 0;
  }
};

/// The tensors of a call by spec::numberOf(), without memory of their own: a
/// launch must not allocate.
class TensorParams {
public:
  void resize(size_t size) { count = size; }
  size_t size() const { return count; }
  TensorParam &operator[](size_t i) { return items[i]; }
  const TensorParam &operator[](size_t i) const { return items[i]; }
  TensorParam *begin() { return items.data(); }
  TensorParam *end() { return items.data() + count; }
  const TensorParam *begin() const { return items.data(); }
  const TensorParam *end() const { return items.data() + count; }

  /// Addresses of the first byte of each and behind its last one, after
  /// checkAddresses(); apart from the rest, since each launch compares many. Of
  /// what has no memory the second one is 0.
  std::array<uint64_t, spec::kMaxTensors> begins, ends;

private:
  std::array<TensorParam, spec::kMaxTensors> items;
  size_t count = 0;
};

/// Parameters after the checks of docs/KernelAbi.md.
struct Problem {
  /// With a mask if there is one that shows the same keys as what was asked
  /// for and was asked for, else with a window. Its head dimension is the least
  /// that kernels have which hold all rows; with the group that cuts columns if
  /// some are shorter.
  ProblemKey key;
  Sizes sizes;
  Window window;
  /// Scalars of all feature groups as bits of their arguments, from the lowest
  /// one on; neutral of those that the caller did not give.
  std::array<uint64_t, spec::kMaxFeatureScalars> features;
  uint32_t varies = 0; ///< those that have a place, as bits
  static_assert(spec::kMaxFeatureScalars <= 32);
  /// Of a score program and what it reads, as the caller gave it; `program` is
  /// null without one. The key has its digest once the packages are known.
  fovea_score_t score{};
  /// What that program captures where a kernel at hand has it, whose variant of
  /// the name a kernel that is compiled must have, too; lives as long as the
  /// device's view.
  const std::vector<spec::CaptureSpec> *captures = nullptr;
  /// Masks that show the same keys for these lengths, as bits by MaskKind.
  unsigned masks = 0;
  uint32_t kernel = 0; ///< id that the caller gave; 0: none
  /// Of the gradients of what the program captures, some add up over places.
  bool sumsCaptures = false;
  unsigned wanted = 0; ///< outputs that have elements and were asked for
  bool describesOutputs = false; ///< of feature groups, elements or none
  bool deterministic = false;    ///< only kernels whose bits never differ
  bool narrowSums = false;       ///< only kernels that sum dq in 16 bits
  bool onDemand = false;         ///< only kernels that were compiled on demand
  bool compiles = false;         ///< those that are missing are compiled
  int32_t splits = 0; ///< shares of the keys that are asked for; 0: any number
  /// Some rows of as many elements as Q's, or V's, lack words, so that only
  /// kernels of at most kElementwiseColumns read them.
  bool lacksWords = false, lacksWordsOfV = false;
  /// The rows of query heads that share a key head can be those of one:
  /// packHeads().
  bool headsCanPack = false;
  /// They may see other keys than one another, and so can't.
  bool headsDiffer = false;
  /// Lengths are the most that a sequence has.
  bool lengthsDiffer = false;
  bool queriesDiffer = false; ///< those of queries, or where they lie
  /// Grids by queries, or by keys, count the blocks of all sequences, which
  /// are much fewer than the longest one's times their number.
  bool packsGridQ = false, packsGridK = false;
  bool packsGrid(spec::Extent rows) const {
    return rows == spec::Extent::SeqlenK ? packsGridK : packsGridQ;
  }
  /// Of lse and dlse: whether packed rows of queries are theirs too, and the
  /// distance of rows.
  bool lseIsPacked = false;
  int64_t lseStrideSeq = 1;
  Workspace workspace;
  /// On which the launch that is planned is to be; null: not told.
  void *stream = nullptr;
  /// Kernels that need more of an algorithm that splits keys are not taken.
  uint64_t mostWorkspace = std::numeric_limits<uint64_t>::max();
  TensorParams tensors; ///< that a launch needs

  /// Nothing that is wanted has an element.
  bool empty() const { return wanted == 0; }
};

/// Whether kernels of a key show the problem's keys by their mask or window.
inline bool shows(const ProblemKey &key, const Problem &problem) {
  return key.takesWindow() || (problem.masks >> int(key.mask) & 1) != 0;
}
/// Whether they hold its rows: of their head dimensions, or of less, which they
/// then cut.
inline bool holdsRows(const ProblemKey &key, const Problem &problem) {
  const int32_t dim = problem.key.headDim, dimOfV = problem.key.dimOfV();
  return (key.headDim == dim && key.dimOfV() == dimOfV) ||
         (key.cutsColumns() && key.headDim >= dim && key.dimOfV() >= dimOfV);
}
/// Whether they read its rows, wherever those lie.
inline bool readsRows(const ProblemKey &key, const Problem &problem) {
  return (!problem.lacksWords || key.headDim <= kElementwiseColumns) &&
         (!problem.lacksWordsOfV || key.dimOfV() <= kElementwiseColumns);
}
/// Whether they have the other feature groups that the problem has. Of what
/// they have besides, the neutral values are passed.
inline bool hasGroups(const ProblemKey &key, const Problem &problem) {
  for (size_t row = kWindowGroup + 1; row != kMaxGroups; ++row)
    if (problem.key.groups[row] && !key.groups[row])
      return false;
  return true;
}

/// What a kernel that is compiled for the problem is for.
ProblemKey compiledKeyOf(const Problem &problem);

/// The sizes of a grid in which the rows of the query heads that share a key
/// head are those of one.
Sizes packHeads(const Sizes &sizes);

/// "'forward;dtype=...', batch 2, heads 8/2, lengths 128x256" for messages.
std::string describe(const Problem &problem);

/// What the parameters of all operations have in common.
struct CommonParams {
  int32_t dtype, mask;
  uint32_t reserved;
  const fovea_group_t *groups;
};

/// Checks sizes, mask, groups and type, and fills in what follows from them.
Result readSizes(OpKind op, const Sizes &sizes, const CommonParams &common,
                 Problem &problem);

/// Reads a tensor of a problem whose sizes and type are there.
/// \param params  the structure that has the field, of this version
inline TensorParam readTensor(const void *params,
                              const params::TensorField &field,
                              const spec::TensorSpec &spec,
                              const Problem &problem) {
  const Sizes &sizes = problem.sizes;
  TensorParam tensor{};
  tensor.name = field.name;
  const bool isStructure =
      spec.shape == spec::Shape::Rows || spec.shape == spec::Shape::Places;
  tensor.suffix = isStructure ? ".data" : "";
  tensor.data = field.address(params);
  tensor.heads = sizes.of(spec.heads);
  if (spec.shape == spec::Shape::Heads) {
    tensor.strideHead = field.stride(params, 0);
    tensor.batch = tensor.rows = tensor.rowElements = 1;
  } else if (spec.shape == spec::Shape::Sequences ||
             spec.shape == spec::Shape::Number) {
    tensor.batch = tensor.heads = tensor.rows = 1;
    tensor.rowElements = spec.shape == spec::Shape::Number ? 1 : sizes.batch;
  } else {
    tensor.strideBatch = field.stride(params, 0);
    tensor.strideHead = field.stride(params, 1);
    tensor.batch = sizes.batch;
  }
  const bool isPacked =
      sizes.packed(spec.rows) >= 0 &&
      (spec.shape == spec::Shape::Rows ||
       (spec.shape == spec::Shape::Vector && problem.lseIsPacked));
  const bool isBatched =
      spec.shape == spec::Shape::Rows && sizes.batched(spec.rows) >= 0;
  const int64_t rows = isPacked    ? sizes.packed(spec.rows)
                       : isBatched ? sizes.batched(spec.rows)
                                   : sizes.of(spec.rows);
  if (isPacked) { // all sequences are in one
    tensor.batch = std::min<int64_t>(tensor.batch, 1);
    tensor.strideBatch = 0;
  }
  switch (spec.shape) {
  case spec::Shape::Rows:
    tensor.strideSeq = field.stride(params, 2);
    tensor.rows = rows;
    tensor.rowElements = sizes.of(spec.columns);
    tensor.hasWords = true;
    tensor.isOfV = spec.columns == spec::Extent::HeadDimV;
    break;
  case spec::Shape::Places:
    tensor.strideSeq = field.stride(params, 2);
    tensor.rows = rows;
    tensor.rowElements = sizes.seqlenK;
    break;
  case spec::Shape::Vector:
    if (problem.lseStrideSeq != 1) {
      tensor.strideSeq = problem.lseStrideSeq;
      tensor.rowStride = "'s rows by varlen.lse_stride_seq";
      tensor.rows = rows;
      tensor.rowElements = 1;
      break;
    }
    // The sequence is contiguous: one row of it a head.
    tensor.rows = 1;
    tensor.rowElements = rows;
    break;
  case spec::Shape::BlockLists:
    tensor.strideSeq = field.stride(params, 2);
    tensor.rowStride = ".stride_block";
    break; // the group knows the rest
  case spec::Shape::BlockCounts:
    tensor.rows = 1;
    break;
  case spec::Shape::Heads:
  case spec::Shape::Bytes:
  case spec::Shape::Sequences:
  case spec::Shape::Number:
    break;
  }
  tensor.elementBytes = spec::bytesOf(spec.elements, problem.key.dtype);
  tensor.written = spec.written;
  tensor.optional = spec.optional;
  return tensor;
}

/// Checks strides, not looking at addresses but of what is optional.
Result checkStrides(Problem &problem);

/// Checks the addresses, of tensors with elements for null too, and that what
/// is written shares no memory with others; for a launch.
Result checkAddresses(TensorParams &tensors);
/// Checks that the first `bytes` of the workspace share none with the tensors,
/// those of a score program among them.
Result checkWorkspaceApart(const Problem &problem, uint64_t bytes);
/// The same of one pointer.
/// \param suffix  of its name: ".data" or none
Result checkAddress(const char *name, const char *suffix, const void *data,
                    int64_t alignment, const char *what, bool needed);

inline uint64_t addressOf(const void *pointer) {
  return uint64_t(reinterpret_cast<uintptr_t>(pointer));
}

} // namespace fovea::rt

#endif // FOVEA_RUNTIME_SRC_PROBLEM_H
