//===- OperationSpec.h - what operations are made of ------------*- C++ -*-===//
//
// The one description of an operation: its feature groups with their tensors
// and scalars, and its algorithms with their launches. From its rows follow the
// signature of a kernel, the launch contract, the checks of a call and the
// filling of its arguments, buffers of tools and descriptions, and the tables
// of docs/KernelAbi.md. docs/AddingAFeature.md walks through a new group.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_PACKAGE_OPERATIONSPEC_H
#define FOVEA_PACKAGE_OPERATIONSPEC_H

#include "fovea/Package/Captures.h"
#include "fovea/Package/Keys.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::spec {

/// Rows of a table.
template <typename T>
struct Rows {
  const T *first = nullptr;
  size_t count = 0;

  constexpr Rows() = default;
  template <size_t N>
  constexpr Rows(const T (&rows)[N]) : first(rows), count(N) {}
  constexpr const T *begin() const { return first; }
  constexpr const T *end() const { return first + count; }
  constexpr size_t size() const { return count; }
  constexpr bool empty() const { return count == 0; }
  constexpr const T &operator[](size_t i) const { return first[i]; }
};

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

/// What a shape is made of.
enum class Extent : uint8_t {
  Batch,
  HeadsQ,
  HeadsK,
  SeqlenQ,
  SeqlenK,
  HeadDim, ///< of q and k
  HeadDimV ///< of v and out
};
/// Those that every operation's parameters have.
inline constexpr Extent kExtents[] = {Extent::Batch,   Extent::HeadsQ,
                                      Extent::HeadsK,  Extent::SeqlenQ,
                                      Extent::SeqlenK, Extent::HeadDim};
const char *toString(Extent extent); ///< "heads_q"

/// The shape of a tensor.
enum class Shape : uint8_t {
  Rows, ///< [batch, heads, rows, head_dim], the last one contiguous
  /// A number for each query and key: [batch, heads, rows, seqlen_k], likewise
  Places,
  Vector, ///< [batch, heads, rows], the last one contiguous
  Heads,  ///< [heads]
  Bytes,  ///< as many as the algorithm's workspace has
  /// Of the blocks that a group cuts the rows into: [batch, heads, blocks], the
  /// last one contiguous
  BlockCounts,
  BlockLists, ///< [batch, heads, blocks, entries], the last one contiguous
  Sequences,  ///< one a batch, and possibly one behind the last
  Number,     ///< one
};

enum class Elements : uint8_t {
  Problem, ///< of the key's type
  F32,
  I32,
  I64,
};
constexpr int64_t bytesOf(Elements elements, DataType problem) {
  return elements == Elements::Problem ? elementSize(problem)
         : elements == Elements::I64   ? 8
                                       : 4;
}

/// Tensors that an operation may write for its caller, as bits of a set.
enum Output : unsigned {
  kNoOutput = 0,
  kDq = 1,
  kDk = 2,
  kDv = 4,
  kOut = 8,
  kDsinks = 16,
  kMask = 32
};

struct TensorSpec {
  const char *name;  ///< of the address among the arguments, "dout"
  const char *title; ///< in sentences, "the gradient of the output"
  Shape shape;
  Extent heads, rows; ///< as far as the shape has them
  Elements elements;
  bool written;
  /// It may be absent: a null address.
  bool optional;
  Output output = kNoOutput; ///< which one it is, of those for the caller
  const char *note = "";     ///< behind title and shape
  Extent columns = Extent::HeadDim; ///< as far as the shape has them
};

/// What a scalar of a base group is filled with.
enum class Scalar : uint8_t {
  SeqlenQ,
  SeqlenK,
  HeadsQ,
  GroupSize, ///< heads_q / heads_k
  Scale,
  Splits, ///< shares of a row block's keys
  PackedHeads, ///< whose rows are those of one where keys are split
};

enum class ArgKind : uint8_t { Pointer, I64, I32, F32 };
constexpr uint32_t sizeOf(ArgKind kind) { // bytes; alignment too
  return kind == ArgKind::Pointer || kind == ArgKind::I64 ? 8 : 4;
}

struct ScalarSpec {
  const char *name;
  ArgKind kind;
  const char *unit, *meaning;
  /// Of a base group.
  Scalar value = Scalar::SeqlenQ;
  /// Of a feature group: with it a kernel computes what those without the group
  /// do.
  double neutral = 0;
};

/// One of the kernels that make an operation. Its grid: x heads, y blocks of
/// rows, z batch, times the shares of the keys where they are split; x and y are
/// then those of packed heads.
struct LaunchSpec {
  /// Of the symbol, behind "<name>_"; empty: the symbol is the name.
  const char *suffix;
  bool ownsKeys;   ///< heads and rows are those of K and V, or else of Q
  unsigned writes; ///< outputs that it stores
  unsigned feeds;  ///< outputs that launches after it make of its results
  int products;    ///< matrix products that it takes a pair of blocks
  int credited;    ///< and those that count as work: none is done twice
  int creditedV;   ///< of these, those over the columns of V
  /// Its workgroups take a share of the keys each.
  bool splitsKeys = false;
  /// Its workgroups take a head each, with all batches and rows: y and z are 1.
  bool ownsHeads = false;
  /// Of keys in more shares than these its workgroups own one row each; of no
  /// more, the rows of a block; 0: of a block always.
  int sharesOfBlock = 0;

  /// Rows that a workgroup owns.
  /// \param block   rows of a block
  /// \param shares  of the keys
  int32_t rowsOf(int32_t block, int64_t shares) const {
    return sharesOfBlock && shares > sharesOfBlock ? 1 : block;
  }
  Extent heads() const { return ownsKeys ? Extent::HeadsK : Extent::HeadsQ; }
  Extent rows() const { return ownsKeys ? Extent::SeqlenK : Extent::SeqlenQ; }
};

/// Operations as bits by OpKind: that one alone, and those of attention.
constexpr unsigned only(OpKind op) { return 1u << unsigned(op); }
inline constexpr unsigned kOfAttention =
    only(OpKind::Forward) | only(OpKind::Backward);

/// Arguments that a kernel has together or not at all. Those of a kernel are of
/// the groups that its key names, so that a new group leaves kernels without it
/// as they are.
struct GroupSpec {
  const char *name = nullptr;
  /// Of the layout and meaning of its arguments; any change takes the next
  /// number. That of a base group is a package's `abi_version`, that of a
  /// feature group part of the key.
  int32_t version = 0;
  Rows<TensorSpec> tensors;
  Rows<ScalarSpec> scalars;
  /// Of a feature group the operations that may have it, as such bits.
  unsigned operations = kOfAttention;
  /// Of a feature group: what is launched besides, behind the launches of any
  /// algorithm.
  Rows<LaunchSpec> launches = {};

  bool isOf(OpKind op) const { return (operations >> unsigned(op) & 1) != 0; }
};

/// The groups besides the bases, in the order of their arguments; at most
/// kMaxGroups. No two of an operation have a tensor or a scalar of one name.
/// The rows are alone in Groups.cpp.
Rows<GroupSpec> featureGroups();
/// The row of that name; -1: there is none.
int findGroup(std::string_view name);
/// The versions of the group that the operation needs; all 0: none.
GroupVersions neededGroups(OpKind op);
/// The first group of these versions that kernels of the operation can't have;
/// null: none.
const GroupSpec *foreignGroup(OpKind op, const GroupVersions &versions);
/// "forward, backward": those that may have the group.
std::string operationsOf(const GroupSpec &group);
/// "window+bias": those whose version is not 0.
std::string groupNames(const GroupVersions &versions);
/// Number of a group's first scalar, or tensor, among those of all feature
/// groups.
size_t firstScalarOf(size_t row);
size_t firstTensorOf(size_t row);
/// Number of a tensor among those of its operation's base group, then of all
/// feature groups, then of the operation's algorithms.
size_t numberOf(OpKind op, const TensorSpec &tensor);
/// More scalars than this all feature groups have not.
inline constexpr size_t kMaxFeatureScalars = 32;

//===----------------------------------------------------------------------===//
// Algorithms
//===----------------------------------------------------------------------===//

/// Workspace in f32, for each batch `columns` of them a row, head, query and,
/// where keys are split, share of them.
struct WorkspaceSpec {
  int64_t columns = 0; ///< beside what follows
  /// And as many as rows of the tensors with this head dimension have.
  std::optional<Extent> headDim = std::nullopt;
  /// Rows of a batch are padded to a multiple of this.
  int64_t rowStep = 1;
  bool splits = false; ///< as many times as keys have shares
  /// Not 0: what is of the head dimension are pairs of 16 bits, of two rows
  /// each, their columns padded to a multiple of this; and rows are padded by
  /// head.
  int64_t pairStep = 0;
  int64_t spareRows = 0; ///< of each head, behind its others

  int64_t rowsOfHead(int64_t seqlenQ) const {
    return (seqlenQ + rowStep - 1) / rowStep * rowStep + spareRows;
  }
  int64_t rows(int64_t headsQ, int64_t seqlenQ) const {
    return pairStep ? headsQ * rowsOfHead(seqlenQ)
                    : (headsQ * seqlenQ + rowStep - 1) / rowStep * rowStep;
  }
  int64_t pairColumns(int64_t dim) const {
    return (dim + pairStep - 1) / pairStep * pairStep;
  }
  /// The one of kernels' head dimensions that counts.
  int64_t dimOf(const ProblemKey &key) const {
    return headDim == Extent::HeadDimV ? key.dimOfV() : key.headDim;
  }
  int64_t bytesOfRow(int64_t dim) const {
    return 4 * columns + (pairStep  ? 2 * pairColumns(dim)
                          : headDim ? 4 * dim
                                    : 0);
  }
  /// \param shares  of the keys
  int64_t bytes(int64_t batch, int64_t headsQ, int64_t seqlenQ, int64_t dim,
                int64_t shares = 1) const {
    return batch * rows(headsQ, seqlenQ) * bytesOfRow(dim) *
           (splits ? shares : 1);
  }
};

/// A way to compute an operation: its kernels in the order of their launch. No
/// two algorithms or groups of an operation have a suffix in common.
struct AlgorithmSpec {
  const char *name;
  bool deterministic; ///< the same bits in every run
  Rows<LaunchSpec> launches;
  WorkspaceSpec workspace;
  /// Sums of a gradient in memory have 16 bits, and errors that grow with their
  /// number: for those alone who ask for it.
  bool sumsNarrowly() const { return workspace.pairStep != 0; }
  /// What its kernels alone are passed, behind all other groups. It never
  /// changes: who passes something else has launches of other names, which
  /// earlier readers refuse.
  GroupSpec own = {};
  /// What launches are no more that kernels of before may have in the place of
  /// others.
  Rows<LaunchSpec> earlier = {};

  /// Whether the number of shares of the keys is chosen for each problem.
  bool splitsKeys() const { return workspace.splits; }
  unsigned writes() const {
    unsigned all = 0;
    for (const LaunchSpec &launch : launches)
      all |= launch.writes;
    return all;
  }
};

/// More launches than this no kernel of a package has.
inline constexpr size_t kMaxLaunches = 4;

struct OperationSpec {
  OpKind op;
  const char *name;
  GroupSpec base; ///< what every kernel has
  Rows<AlgorithmSpec> algorithms;
  /// Of queries and keys; or else its keys have neither head dimension nor mask
  /// nor score program.
  bool isAttention = true;
  /// The feature group without which it has no meaning; null: none.
  const char *needs = nullptr;

  /// By name; null: none.
  const AlgorithmSpec *findAlgorithm(std::string_view name) const;
  /// Whether there is an algorithm of that name, and its sums are narrow.
  bool sumsNarrowly(std::string_view algorithm) const {
    const AlgorithmSpec *found = findAlgorithm(algorithm);
    return found && found->sumsNarrowly();
  }
  /// The launch of that suffix, and its algorithm; null: there is none, or it
  /// is a feature group's, of which every algorithm may have it.
  struct Found {
    const LaunchSpec *launch = nullptr;
    const AlgorithmSpec *algorithm = nullptr;
  };
  Found findLaunch(std::string_view suffix) const;
};

/// All rows, in the order of Operation.
Rows<OperationSpec> allOperations();
const OperationSpec &specOf(OpKind op);

/// For command lines: {"forward", "backward"}, {"fp16", "bf16"}.
/// \param attention  those alone that are
std::vector<std::string> operationNames(bool attention = false);
std::vector<std::string> dataTypeNames();

/// For messages: "a, b" of rows with those names.
template <typename Table>
std::string namesOf(const Table &rows) {
  std::string text;
  for (const auto &row : rows)
    text += (text.empty() ? "" : ", ") + std::string(row.name);
  return text;
}

//===----------------------------------------------------------------------===//
// Signatures
//===----------------------------------------------------------------------===//

/// What an argument is filled with.
enum class Source : uint8_t {
  Address,
  StrideBatch,
  StrideHead,
  StrideSeq,
  Scalar,
  Feature, ///< a scalar of a feature group
  Capture, ///< of a score program: the scalar, or the address
  CaptureStride,
  CaptureExtent,
  /// Of the gradient of a capture, f32; its extents are the capture's.
  CaptureGradient,
  CaptureGradientStride,
};
/// Whether it comes of a tensor of the operation's tables.
inline constexpr bool isOfTensor(Source source) {
  return source <= Source::StrideSeq;
}

struct Argument {
  std::string name;
  ArgKind kind;
  uint32_t offset; ///< bytes from the start of the segment
  const char *unit;
  std::string meaning;
  Source source;
  /// Number of the tensor among those of the signature, of the Scalar, of the
  /// scalar among those of all feature groups, or of the capture.
  uint8_t index;
  uint8_t dim = 0; ///< of the capture
};

/// What the kernels of a problem are passed: of each group addresses, strides
/// and scalars, of each capture its address, strides and extents, of each
/// gradient of a capture its address and strides, one behind the other, each
/// aligned to its size.
struct Signature {
  std::vector<const TensorSpec *> tensors;
  std::vector<Argument> arguments;
  uint32_t bytes = 0; ///< of the segment, a multiple of 8

  const Argument *find(std::string_view name) const;
  /// Number of a tensor; -1: there is none of that name.
  int tensor(std::string_view name) const;
};

/// The base group, those that a key names, and the algorithm's own, if it has
/// one; null: one without.
std::vector<const GroupSpec *>
groupsOf(const ProblemKey &key, const AlgorithmSpec *algorithm = nullptr);

/// Those of the algorithm, then those of the groups that the key names.
std::vector<const LaunchSpec *> launchesOf(const ProblemKey &key,
                                           const AlgorithmSpec &algorithm);

/// Of any kernel of a problem by that algorithm; null: one without arguments of
/// its own.
/// \param captures  those of the problem's score program
Signature signatureOf(const ProblemKey &key,
                      const AlgorithmSpec *algorithm = nullptr,
                      const std::vector<CaptureSpec> &captures = {});
/// Of one that takes the base group's tensors in an order of its own, some of
/// them perhaps not at all. It serves no package.
Signature signatureOf(const ProblemKey &key,
                      const std::vector<const TensorSpec *> &tensors,
                      const AlgorithmSpec *algorithm = nullptr,
                      const std::vector<CaptureSpec> &captures = {});

/// Whether these are all of the base group's tensors in the table's order.
bool isStandard(const ProblemKey &key,
                const std::vector<const TensorSpec *> &tensors);

/// "[batch, heads_q, seqlen_q, head_dim]".
std::string shapeOf(const TensorSpec &tensor);

/// Largest number of tensors and bytes that any signature has.
inline constexpr size_t kMaxTensors = 40;
inline constexpr size_t kMaxArgumentBytes = 2048;

//===----------------------------------------------------------------------===//
// Limits that every launcher checks
//===----------------------------------------------------------------------===//

/// Largest distance between two rows, in elements of `bytes` bytes, that a
/// kernel addresses: a tile of up to 256 rows must span less than 2^31 bytes.
inline constexpr int64_t maxSeqStride(int64_t bytes) {
  return (int64_t(1) << 31) / (256 * bytes) - 1;
}

/// Largest seqlen_q and seqlen_k: the block of rows after the last one must
/// still have a number in 32 bits.
inline constexpr int32_t kMaxSeqlen = std::numeric_limits<int32_t>::max() - 512;

/// Largest magnitude of scale: kernels multiply it by log2 e, in fp32.
inline constexpr double kMostScale =
    double(std::numeric_limits<float>::max()) * 0.69314718055994531;

/// Largest extents of a grid's y and z (HIP).
inline constexpr int64_t kMaxGridYZ = 65535;

/// Most heads of queries, and blocks of keys, of a launch that splits keys: it
/// divides numbers of these by f32.
inline constexpr int64_t kMostOfSplitLaunch = (1 << 21) - 1;

/// Most shares of a row block's keys: a tile of 256 rows of the workspace must
/// span less than 2^31 bytes.
inline constexpr int32_t kMaxSplits = 1024;

/// Bits of the scalar `varlen_flags` of group `varlen`.
inline constexpr int32_t kSeqlensQAreSums = 1, kSeqlensKAreSums = 2,
                         kLseHasStarts = 4, kGridIsPackedQ = 8,
                         kGridIsPackedK = 16;

/// Divides the size of a block of group `blocks`, and is divided by what a
/// workgroup owns and what an iteration visits.
inline constexpr int32_t kListBlockUnit = 128;
inline constexpr int32_t kMostListBlock = 1 << 30;
/// Most entries of a row of lists of such blocks. Numbers of blocks of 16 rows
/// or more are to have 31 bits; and kernels divide them by the size with a
/// product, which for other sizes than powers of two is exact as long as number
/// times divisor has 31 bits too, of both lists together.
constexpr int64_t mostListEntries(int64_t block) {
  const int64_t most = std::numeric_limits<int32_t>::max() / block;
  return (block & (block - 1)) == 0
             ? most
             : std::min(most, ((int64_t(1) << 37) - 1) / block / block);
}

/// What a workspace is aligned to, in bytes.
inline constexpr int64_t kWorkspaceAlignment = 16;

} // namespace fovea::spec

#endif // FOVEA_PACKAGE_OPERATIONSPEC_H
