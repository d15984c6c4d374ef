//===- Call.h - structures of fovea.h, made of tensors ----------*- C++ -*-===//

#pragma once

#include "Session.h"

#include <torch/csrc/stable/tensor.h>

#include <array>
#include <deque>
#include <optional>
#include <string>

namespace fovea::operators {

using Tensor = torch::stable::Tensor;

/// An argument of another type than attention has.
struct TypeError : std::runtime_error {
  using std::runtime_error::runtime_error;
};
[[noreturn]] void refuse(const std::string &message);

/// What tensors may be made of: names and the C interface's numbers, 0 where it has
/// none.
struct ElementType {
  int32_t code; ///< PyTorch's, of this process
  const char *name;
  size_t bytes;
  int32_t dtype, capture; ///< FOVEA_DTYPE_..., FOVEA_CAPTURE_...
};

/// A tensor, as it lies in memory.
struct View {
  /// \param wanted  the types that its place takes, for a message about one
  /// that
  ///   nothing takes
  View(const Tensor &tensor, const std::string &name, const char *wanted);

  char *data;
  int64_t rank;
  const int64_t *sizes, *strides;
  const ElementType *type;
  int32_t device; ///< number of a GPU; -1: the host
  size_t span;    ///< bytes from the first element to behind the last

  std::string shape() const;
};

/// What both operators are given besides tensors of attention.
struct Features {
  double scale;
  std::string mask, window, score, scoreText;
  std::vector<Tensor> captures;
  std::optional<Tensor> sinks;
  double dropoutP;
  std::optional<Tensor> seed;
  std::string listed;
  std::vector<Tensor> lists;
  std::vector<int64_t> sizes; ///< most rows of q and k, blocks' queries and keys
  /// Rows of no sequence are not written.
  bool packs() const { return listed.find('.') != std::string::npos; }
};

enum Dim : unsigned {
  kBatch, kHeadsQ, kHeadsK, kSeqQ, kSeqK, kHeadDim, kHeadDimV, kTotalQ, kTotalK,
  kDims
};
/// The dimensions of one of the structures' tensors.
struct Kind {
  const char *name;
  unsigned rank;
  Dim dims[4];
  bool isF32 = false;
};
namespace kinds {
inline constexpr Kind q{"q", 4, {kBatch, kHeadsQ, kSeqQ, kHeadDim}},
    dq{"dq", 4, {kBatch, kHeadsQ, kSeqQ, kHeadDim}},
    k{"k", 4, {kBatch, kHeadsK, kSeqK, kHeadDim}},
    dk{"dk", 4, {kBatch, kHeadsK, kSeqK, kHeadDim}},
    v{"v", 4, {kBatch, kHeadsK, kSeqK, kHeadDimV}},
    dv{"dv", 4, {kBatch, kHeadsK, kSeqK, kHeadDimV}},
    out{"out", 4, {kBatch, kHeadsQ, kSeqQ, kHeadDimV}},
    dout{"dout", 4, {kBatch, kHeadsQ, kSeqQ, kHeadDimV}},
    lse{"lse", 3, {kBatch, kHeadsQ, kSeqQ}, true},
    dlse{"dlse", 3, {kBatch, kHeadsQ, kSeqQ}, true},
    sinks{"sinks", 1, {kHeadsQ}, true}, dsinks{"dsinks", 1, {kHeadsQ}, true};
} // namespace kinds

/// The feature groups of a call, sizes and addresses: what does not depend on the
/// operation. As fovea/_attention.py, whose words errors have.
class CallBase {
public:
  CallBase(const CallBase &) = delete;

protected:
  explicit CallBase(const Features &features);

  /// Holds a tensor to the sizes that others have, or takes its own.
  View see(const Kind &kind, const Tensor &tensor);
  template <typename Structure>
  void tensor(Structure &field, const Kind &kind, const Tensor &tensor,
              bool written = false);
  /// Of lse, dlse, sinks and dsinks.
  template <typename Pointer>
  void rows(Pointer &field, int64_t *strideBatch, int64_t &strideHead,
            const Kind &kind, const Tensor &tensor, bool written = false);
  template <typename Group>
  void group(Group &made, uint32_t number);

  void lengths();
  void window();
  void score(const std::vector<const Tensor *> &gradients);
  void dropout();
  void blocks();
  /// Where the call runs: -1 for the host's memory.
  int32_t place() const;

  struct Place {
    void *field; ///< a pointer to data
    char *data;
    size_t span;
    bool written;
    int32_t device;
    const char *name;
  };
  template <typename Pointer>
  void address(Pointer &field, const View &view, const char *name,
               bool written = false);
  static void store(const Place &place, void *address);

  const Features &features;
  std::array<int64_t, kDims> sizes;
  const ElementType *type = nullptr;
  const fovea_group_t *groups = nullptr;
  std::optional<fovea_varlen_t> varlen;

private:
  const Tensor *listed(const char *name) const;
  std::pair<std::array<Dim, 4>, unsigned> dims(const Kind &kind) const;
  void sequences(fovea_sequences_t &side, const char *name, Dim seq, Dim total,
                 int64_t most);
  void lists(fovea_block_lists_t &made, const char *name, int64_t rows);

protected:
  std::vector<Place> places;

private:
  bool packedQ = false, packedK = false;
  std::vector<std::string> names; // of features.lists
  std::deque<std::string> told;   // names in `places`
  fovea_window_t windowGroup{};
  fovea_score_t scoreGroup{};
  std::vector<fovea_capture_t> captures;
  fovea_dropout_t dropoutGroup{};
  fovea_blocks_t blocksGroup{};

protected:
  fovea_head_dims_t headDims{};
  fovea_sinks_t sinksGroup{};
  fovea_dsinks_t dsinksGroup{};
  fovea_dlse_t dlseGroup{};
};

/// A call of the C interface's operation that has these parameters.
template <typename Params>
class Call : protected CallBase {
public:
  Call(const Features &features, const Tensor &q, const Tensor &k, const Tensor &v,
       const std::vector<const Tensor *> &gradientsOfCaptures);
  /// Enqueues it on the current stream; with tensors of the host, returns when all
  /// is done.
  void run();

protected:
  Params params = fovea::make<Params>();
};

struct ForwardCall : Call<fovea_forward_params_t> {
  ForwardCall(const Features &features, const Tensor &q, const Tensor &k,
              const Tensor &v, const Tensor &out, const Tensor &lse,
              int64_t splits);
};

struct BackwardCall : Call<fovea_backward_params_t> {
  struct Tensors {
    const Tensor &dout;
    const Tensor *dlse;
    const Tensor &q, &k, &v, &out, &lse;
    // NULL: not wanted
    const Tensor *dq, *dk, *dv, *dsinks;
    std::vector<const Tensor *> ofCaptures;
  };
  BackwardCall(const Features &features, const Tensors &tensors,
               bool deterministic);
};

/// Whether tensors of a GPU are a ROCm device's in this process.
bool isRocm();

} // namespace fovea::operators
