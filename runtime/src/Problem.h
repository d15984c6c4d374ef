//===- Problem.h - a problem to find and run kernels for --------*- C++ -*-===//
//
// What is common to the operations: a checked problem, of which the choice of
// the kernels knows no more than its sizes and what is wanted of it, and the
// checks of parameters from which one is made. Knows nothing of HIP.
//
//===----------------------------------------------------------------------===//

#ifndef FOVEA_RUNTIME_SRC_PROBLEM_H
#define FOVEA_RUNTIME_SRC_PROBLEM_H

#include "fovea/Package/BackwardAbi.h"
#include "fovea/Package/Keys.h"

#include "Versioned.h"

#include <algorithm>
#include <array>

namespace fovea::rt {

/// Tensors that an operation may write, as bits of a set.
enum Output : unsigned {
  kDq = abi::kGradientQ,
  kDk = abi::kGradientK,
  kDv = abi::kGradientV,
  kOut = 8
};

/// The fields that the parameters of all operations have.
struct Sizes {
  int32_t dtype, mask;
  float scale;
  int64_t batch, headsQ, headsK, seqlenQ, seqlenK, headDim;
};

/// Memory that the caller lends to the kernels.
struct Workspace {
  const void *data = nullptr;
  uint64_t bytes = 0;
};

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
  /// Elements from the first to one past the last, after checkStrides().
  int64_t extent = 0;

  /// Number of elements is not 0.
  bool hasElements() const {
    return batch > 0 && heads > 0 && rows > 0 && rowElements > 0;
  }
};

/// The tensors of a call, without memory of their own: a launch must not
/// allocate.
class TensorParams {
public:
  static constexpr size_t kMost = 9; ///< of a backward pass

  /// Where there is no room, the checks of the tensors refuse them all.
  void add(const TensorParam &tensor) {
    if (count < kMost)
      items[count] = tensor;
    ++count;
  }
  bool isComplete() const { return count <= kMost; }
  size_t size() const { return std::min(count, kMost); }
  const TensorParam &operator[](size_t i) const { return items[i]; }
  TensorParam *begin() { return items.data(); }
  TensorParam *end() { return items.data() + size(); }
  const TensorParam *begin() const { return items.data(); }
  const TensorParam *end() const { return items.data() + size(); }

  /// Addresses of the first byte of each and behind its last one, after
  /// checkAddresses(); apart from the rest, since each launch compares many. Of
  /// what has no memory the second one is 0.
  std::array<uint64_t, kMost> begins, ends;

private:
  std::array<TensorParam, kMost> items;
  size_t count = 0;
};

/// Parameters after the checks of docs/KernelAbi.md.
struct Problem {
  ProblemKey key;
  Sizes sizes;
  uint32_t kernel = 0;        ///< id that the caller gave; 0: none
  unsigned wanted = 0;        ///< outputs that have elements and were asked for
  bool deterministic = false; ///< only kernels whose bits never differ
  Workspace workspace;
  TensorParams tensors; ///< that a launch needs

  /// Nothing that is wanted has an element.
  bool empty() const { return wanted == 0; }
};

/// "'forward;dtype=...', batch 2, heads 8/2, lengths 128x256" for messages.
std::string describe(const Problem &problem);

template <typename Params>
Sizes sizesOf(const Params &p) {
  return {p.dtype,   p.mask,     p.scale,    p.batch,   p.heads_q,
          p.heads_k, p.seqlen_q, p.seqlen_k, p.head_dim};
}

/// Checks sizes, mask and type, and fills in `problem`'s key and sizes.
Result readSizes(Operation op, const Sizes &sizes, uint32_t reserved,
                 Problem &problem);

/// Reads parameters of whatever version into `problem`, and checks and fills in
/// what all operations have. \param firstSize  of the first version's structure
template <typename Params, typename Read>
Result readParams(Operation op, const Params *params, uint32_t firstSize,
                  Read &problem) {
  if (Result result =
          readVersioned("params", params, firstSize, problem.params);
      !result.ok())
    return result;
  const Params &p = problem.params;
  problem.kernel = p.kernel;
  return readSizes(op, sizesOf(p), p.reserved, problem);
}

/// [batch, heads, rows, head_dim] of the problem's type.
template <typename Tensor>
TensorParam tensorParam(const char *name, const Tensor &t,
                        const Problem &problem, int64_t heads, int64_t rows,
                        bool written) {
  return {name,
          ".data",
          t.data,
          t.stride_batch,
          t.stride_head,
          t.stride_seq,
          problem.sizes.batch,
          heads,
          rows,
          problem.sizes.headDim,
          elementSize(problem.key.dtype),
          written,
          /*optional=*/false};
}

/// [batch, heads_q, seqlen_q] of f32, the sequence contiguous.
TensorParam lseParam(const float *data, int64_t strideBatch, int64_t strideHead,
                     const Problem &problem, bool written, bool optional);

/// Checks strides, not looking at addresses but of what is optional.
Result checkStrides(TensorParams &tensors);

/// Checks the addresses, of tensors with elements for null too, and that what
/// is written shares no memory with others; for a launch.
Result checkAddresses(TensorParams &tensors);
/// Checks that the first `bytes` of the workspace share none with the tensors.
Result checkWorkspaceApart(const Problem &problem, uint64_t bytes);
/// The same of one pointer.
/// \param suffix  of its name: ".data" or none
Result checkAddress(const char *name, const char *suffix, const void *data,
                    int64_t alignment, const char *what, bool needed);

/// A function tensor(name, value, heads, rows, written) that is tensorParam()
/// of `problem`.
inline auto tensorsOf(const Problem &problem) {
  return [&problem](const char *name, const auto &t, int64_t heads,
                    int64_t rows, bool written) {
    return tensorParam(name, t, problem, heads, rows, written);
  };
}

inline uint64_t addressOf(const void *pointer) {
  return uint64_t(reinterpret_cast<uintptr_t>(pointer));
}

/// Fills in a tensor's part of a kernel's arguments: the address and strides
/// that it is declared with as `name`, `name`StrideBatch and so on.
#define FOVEA_TENSOR_ARGS(args, params, name)                                  \
  args.name = addressOf(params.name.data);                                     \
  args.name##StrideBatch = params.name.stride_batch;                           \
  args.name##StrideHead = params.name.stride_head;                             \
  args.name##StrideSeq = params.name.stride_seq

} // namespace fovea::rt

#endif // FOVEA_RUNTIME_SRC_PROBLEM_H
